"""Tests of the nulls of alignments: related stacks stand out, strangers do not, and no measure is computed twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from made_vectors import matrix, noisy, stack

from lnsim.errors import ComparisonError
from lnsim.measure.alignment import LayerMatrix
from lnsim.measure.permutation import channel_orders
from studies.controls.layer_nulls import layer_nulls, layer_orders, longest_ascents, match_in_order, pattern_nulls

ORDERS = channel_orders(256, 99, 0)


def best_mean(found: pd.DataFrame) -> float:
    """The mean of the cells at the best offset."""
    one = LayerMatrix.of(found)
    return float(one.values.ravel()[one.offsets()[one.best_offset()]].mean())


@pytest.mark.parametrize(
    "origin", [[*range(4, 16)], [*range(1, 16, 2)], [*range(12), *range(6, 16)]], ids=["shifted", "pruned", "expanded"]
)
def test_moved_layers_keep_their_order_beyond_both_nulls(origin: list[int]) -> None:
    a, b = stack(16), noisy(stack(16)[origin])
    found = matrix(a, b)
    layers, channels = layer_nulls(found, 199, 0), pattern_nulls(a, b, found, ORDERS)
    assert layers["match"].pvalue == 1 / 200
    assert layers["offset"].pvalue <= 0.02
    assert max(channels[name].pvalue for name in ("offset", "match", "match_mean")) == 0.01


def test_a_null_over_layers_holds_the_measures_of_matrices_with_their_columns_permuted() -> None:
    found = matrix(stack(6, seed=1), stack(7, seed=2))
    orders, nulls = layer_orders(7, 20, 5), layer_nulls(found, 20, 5)
    assert nulls["offset"].statistic == pytest.approx(best_mean(found))
    for place, order in enumerate(orders):
        shuffled = pd.DataFrame(found.to_numpy()[:, order], index=found.index, columns=found.columns)
        assert nulls["offset"].null_distribution[place] == pytest.approx(best_mean(shuffled))
        assert nulls["rate"].null_distribution[place] == LayerMatrix.of(shuffled).alignment_rate()
        assert nulls["margin"].null_distribution[place] == pytest.approx(LayerMatrix.of(shuffled).margin())
        match = match_in_order(shuffled.to_numpy())[2]
        assert nulls["match"].null_distribution[place] == longest_ascents(match[np.newaxis])[0] / 6


def test_a_null_over_channels_holds_the_measures_of_the_permuted_rows() -> None:
    a, b = stack(5, seed=1), stack(5, seed=2)
    nulls = pattern_nulls(a, b, matrix(a, b), ORDERS[:, :5])
    values = matrix(a, b).to_numpy()
    assert nulls["match_mean"].statistic == pytest.approx(values[match_in_order(values)[1:]].mean())
    for place, order in enumerate(ORDERS[:, :5].T):
        permuted = matrix(a, b[:, order])
        assert nulls["margin"].null_distribution[place] == pytest.approx(LayerMatrix.of(permuted).margin())
        assert nulls["offset"].null_distribution[place] == pytest.approx(best_mean(permuted))


def test_the_order_of_a_match_is_judged_by_its_longest_ascending_part() -> None:
    share, rows, columns = match_in_order(np.eye(4)[[1, 0, 2, 3]])
    assert (share, rows.tolist(), columns.tolist()) == (0.75, [0, 1, 2, 3], [1, 0, 2, 3])


def test_one_layer_no_permutation_and_permutations_of_another_number_of_channels_are_refused() -> None:
    a = stack(3, hidden_size=32)
    for call, message in (
        (lambda: layer_orders(1, 9, 0), "expected at least 2 layers and 1 permutation"),
        (lambda: layer_orders(4, 0, 0), "Permuting 4 layers 0 times"),
        (lambda: pattern_nulls(a, a, matrix(a, a), ORDERS), "the permutations are of 256 channels"),
    ):
        with pytest.raises(ComparisonError, match=message):
            call()
