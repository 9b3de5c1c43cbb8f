"""Large matrices a block at a time: the same numbers as whole, little memory, and no number where none is defined."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors_bytes import file_bytes

from lnsim.checkpoint.local import open_local
from lnsim.errors import ComparisonError
from lnsim.measure.metrics import pairwise
from lnsim.measure.nulls import pvalue
from studies.projections.matrices import find_weights
from studies.projections.scores import (
    ROWS,
    Blocks,
    HalvesSwapped,
    PairSums,
    gram,
    joint_blocks,
    pair_sums,
    row_shuffles,
)

RNG = np.random.default_rng(1)


@dataclass(frozen=True)
class Whole:
    """A matrix in memory that gives itself out in blocks."""

    values: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        return (self.values[start : start + rows] for start in range(0, len(self.values), rows))


def sums_of(a: Blocks, b: Blocks, n_permutations: int = 0, seed: int = 0) -> PairSums:
    """The sums of two matrices."""
    return pair_sums({"a": a, "b": b}, n_permutations, seed)["a", "b"]


def both(rows: int = 150, columns: int = 40) -> tuple[Whole, Whole]:
    return Whole(RNG.normal(0.1, 1, (rows, columns))), Whole(RNG.normal(-0.2, 2, (rows, columns)))


@pytest.mark.parametrize(
    "metric", ["cosine", "pearson", "rel_l2", "rel_l2_b", "rel_l2_symmetric", "mean_abs_diff", "max_abs_diff"]
)
def test_block_by_block_equals_the_whole(metric: str) -> None:
    a, b = both()
    expected = pairwise(a.values.reshape(1, -1), b.values.reshape(1, -1), metric)[0, 0]
    assert sums_of(a, b).measures()[metric] == pytest.approx(expected, rel=1e-12)
    if metric in ("cosine", "pearson"):  # every matrix with every other
        of_all = dict(zip(("cosine", "pearson"), gram([a, b, a]), strict=True))[metric]
        assert (of_all[0, 1], of_all[0, 2]) == (pytest.approx(expected, rel=1e-12), pytest.approx(1))


def test_the_99th_percentile_is_within_its_promise() -> None:
    a, b = both(600)
    expected = np.percentile(np.abs(a.values - b.values), 99)
    assert sums_of(a, b).measures()["p99_abs_diff"] == pytest.approx(expected, rel=2e-3)


def test_equal_matrices_differ_by_nothing_and_a_zero_matrix_has_no_direction() -> None:
    a, _ = both()
    found = sums_of(a, a).measures()
    assert (found["rel_l2"], found["mean_abs_diff"], found["max_abs_diff"]) == (0, 0, 0)
    assert found["cosine"] == pytest.approx(1, abs=1e-15)
    found = sums_of(a, Whole(np.zeros(a.shape))).measures()
    assert np.isnan([found["cosine"], found["pearson"]]).all()
    assert found["rel_l2"] == pytest.approx(1)


def test_the_variation_is_compared_only_where_both_means_are_clear_of_zero() -> None:
    a, b = Whole(RNG.normal(3, 1, (100, 50))), Whole(RNG.normal(2, 1, (100, 50)))
    cvs = [x.values.std() / x.values.mean() for x in (a, b)]
    assert sums_of(a, b).measures()["cv_diff"] == pytest.approx(abs(cvs[0] - cvs[1]))
    assert math.isnan(sums_of(a, Whole(RNG.normal(0, 1, (100, 50)))).measures()["cv_diff"])


def test_two_matrices_of_one_shape_and_finite_values_are_needed() -> None:
    a, _ = both()
    with pytest.raises(ComparisonError, match=r"one shape, found \(150, 40\), \(2, 40\)"):
        list(joint_blocks([a, Whole(np.ones((2, 40)))]))
    broken = a.values.copy()
    broken[ROWS + 1, 3] = np.nan
    with pytest.raises(ComparisonError, match=rf"matrix 1, counted from 0, has a value in rows \[{ROWS}, {2 * ROWS}\)"):
        sums_of(a, Whole(broken))
    with pytest.raises(ComparisonError, match="two were expected, found Solar"):
        pair_sums({"Solar": a})


def test_swapping_halves_twice_gives_the_matrix_back_and_odd_sizes_are_refused() -> None:
    a = Whole(RNG.normal(size=(4 * ROWS, 3)))
    once = np.concatenate(list(HalvesSwapped(a).blocks(ROWS)))
    assert np.array_equal(once, np.roll(a.values, 2 * ROWS, axis=0))
    with pytest.raises(ComparisonError, match="Swapping the halves of a matrix of 150 rows"):
        HalvesSwapped(both()[0]).blocks(ROWS)


def test_a_pair_of_large_matrices_is_measured_in_a_fraction_of_its_size(tmp_path: Path) -> None:
    """Two matrices that take 64 MB in float64 are compared within 16 MB."""
    whole = RNG.standard_normal((1024, 4096), dtype=np.float32).astype(ml_dtypes.bfloat16)
    names = [f"model.layers.{layer}.self_attn.k_proj.weight" for layer in (0, 1)]
    (tmp_path / "a.safetensors").write_bytes(file_bytes({names[0]: whole, names[1]: whole[::-1]}))
    found = find_weights(open_local(tmp_path), ["k_proj"], [0, 1])
    expected = float(np.vdot(whole.astype(np.float64), whole[::-1].astype(np.float64)))
    del whole
    tracemalloc.start()
    try:
        sums = sums_of(found["k_proj", 0], found["k_proj", 1])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * 2**20
    assert sums.total("ab") == pytest.approx(expected, rel=1e-12)


def test_shuffled_rows_give_strangers_the_null_that_theory_gives_and_a_relative_stands_out() -> None:
    a, b = both(4 * ROWS, 32)
    related = Whole(a.values + RNG.normal(0, 0.1, a.shape))
    found = pair_sums({"a": a, "b": b, "related": related}, 199, 0)
    assert list(found) == [("a", "b"), ("a", "related"), ("b", "related")]
    judged = {}
    for pair, sums in found.items():
        of = sums.measures()
        judged[pair] = pvalue(of["cosine"], sums.shuffled / (of["norm_a"] * of["norm_b"]))
    assert judged["a", "related"].pvalue == pytest.approx(1 / 200)
    assert judged["a", "b"].null_std == pytest.approx(1 / math.sqrt(a.values.size), rel=0.25)
    assert found["a", "related"].measures()["cosine"] > 0.99
    again, other = (sums_of(a, b, 199, seed).shuffled for seed in (0, 1))
    assert np.array_equal(found["a", "b"].shuffled, again)
    assert not np.array_equal(again, other)


def test_shuffles_stay_within_their_blocks_and_hold_every_row() -> None:
    blocks = list(row_shuffles(ROWS + 7, 5, 0))
    assert [block.shape for block in blocks] == [(5, ROWS), (5, 7)]
    for block in blocks:
        assert (np.sort(block, axis=1) == np.arange(block.shape[1])).all()
