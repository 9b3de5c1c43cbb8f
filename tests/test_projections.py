"""Large matrices a block at a time: the same sums as whole, little memory, and a null of all orders of their rows."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

import ml_dtypes
import numpy as np
import pandas as pd
import pytest
from safetensors_bytes import file_bytes

from lnsim.checkpoint.local import open_local
from lnsim.errors import ComparisonError
from studies.projections.matrices import find_weights
from studies.projections.sums import KEPT, ROWS, SWAPPED, Blocks, HalvesSwapped, joint_blocks, pair_sums

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


def sums_of(a: Blocks, b: Blocks) -> pd.Series:
    """The sums of two matrices."""
    found = pair_sums({("a", "k_proj", 0): a, ("b", "k_proj", 0): b})
    return found[found.order == KEPT].iloc[0]


def both(rows: int, columns: int) -> tuple[Whole, Whole]:
    return Whole(RNG.normal(0.1, 1, (rows, columns))), Whole(RNG.normal(-0.2, 2, (rows, columns)))


def test_block_by_block_equals_the_whole() -> None:
    a, b = both(2 * ROWS, 40)
    found, x, y = sums_of(a, b), a.values, b.values
    expected = {"a": x.sum(), "b": y.sum(), "aa": (x * x).sum(), "bb": (y * y).sum(), "ab": (x * y).sum(),
                "dd": ((x - y) ** 2).sum(), "gap": np.abs(x - y).sum()}  # fmt: skip
    assert {name: found[f"sum_{name}"] for name in expected} == pytest.approx(expected, rel=1e-12)
    assert (found["rows"], found["columns"]) == a.shape


def test_pairs_are_those_of_one_kind_and_each_matrix_is_set_against_itself_with_its_halves_swapped() -> None:
    a, b = both(2 * ROWS, 3)
    found = pair_sums({("a", "k_proj", 0): a, ("a", "v_proj", 0): b, ("b", "k_proj", 1): b})
    kept, swapped = found[found.order == KEPT], found[found.order == SWAPPED]
    assert kept[["kind", "a", "layer_a", "b", "layer_b"]].values.tolist() == [["k_proj", "a", 0, "b", 1]]
    assert swapped[["kind", "a"]].values.tolist() == [["k_proj", "a"], ["k_proj", "b"], ["v_proj", "a"]]
    assert swapped.sum_ab.iloc[0] == pytest.approx((a.values * np.roll(a.values, ROWS, axis=0)).sum(), rel=1e-12)
    assert swapped.sum_aa.iloc[0] == pytest.approx(swapped.sum_bb.iloc[0])


def test_two_matrices_of_one_shape_and_finite_values_are_needed() -> None:
    a, _ = both(150, 40)
    with pytest.raises(ComparisonError, match=r"one shape, found \(150, 40\), \(2, 40\)"):
        list(joint_blocks([a, Whole(np.ones((2, 40)))]))
    broken = a.values.copy()
    broken[ROWS + 1, 3] = np.nan
    with pytest.raises(ComparisonError, match=rf"matrix 1, counted from 0, has a value in rows \[{ROWS}, {2 * ROWS}\)"):
        sums_of(a, Whole(broken))


def test_swapping_halves_twice_gives_the_matrix_back_and_odd_sizes_are_refused() -> None:
    a, odd = Whole(RNG.normal(size=(4 * ROWS, 3))), Whole(np.ones((150, 40)))
    once = np.concatenate(list(HalvesSwapped(a).blocks(ROWS)))
    assert np.array_equal(once, np.roll(a.values, 2 * ROWS, axis=0))
    with pytest.raises(ComparisonError, match="Swapping the halves of a matrix of 150 rows"):
        HalvesSwapped(odd).blocks(ROWS)


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
    assert sums.sum_ab == pytest.approx(expected, rel=1e-12)


def test_the_null_of_shuffled_rows_is_that_of_all_orders_and_blocks_add_up() -> None:
    a, b = (one.values for one in both(ROWS, 3))
    a[2:] = 0  # so that the order of two rows is all that counts
    products = [a[0] @ b[i] + a[1] @ b[j] for i, j in permutations(range(ROWS), 2)]
    twice = sums_of(*(Whole(np.tile(one, (2, 1))) for one in (a, b)))
    assert twice.sum_rows_mean == pytest.approx(2 * np.mean(products))
    assert twice.sum_rows_std == pytest.approx(math.sqrt(2) * np.std(products))


def test_strangers_lie_within_the_null_and_a_relative_stands_out() -> None:
    a, b = both(4 * ROWS, 32)
    z = {}
    for name, other in {"stranger": b, "relative": Whole(a.values + RNG.normal(0, 3, a.shape))}.items():
        found = sums_of(a, other)
        z[name] = (found.sum_ab - found.sum_rows_mean) / found.sum_rows_std
    assert abs(z["stranger"]) < 4 < z["relative"] / 5
