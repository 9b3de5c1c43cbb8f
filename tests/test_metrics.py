"""Metrics against scipy and a naive loop, and what they do where a value is not defined."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from lnsim.errors import ComparisonError
from lnsim.measure.metrics import METRICS, pairwise, undefined_rows
from lnsim.measure.rows import row_statistics

Row = npt.NDArray[np.float64]


def gammas(n_layers: int, hidden_size: int = 96, seed: int = 0) -> npt.NDArray[np.float32]:
    """Vectors as norms have them: a mean, a spread around it, a few extreme channels."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0.2, 2.0, (n_layers, 1)) + 0.1 * rng.standard_normal((n_layers, hidden_size))
    rows[:, :3] *= 4
    return rows.astype(np.float32)


def cv(x: Row) -> float:
    return float(x.std() / abs(x.mean()))


NAIVE: dict[str, Callable[[Row, Row], float]] = {
    "cosine": lambda x, y: x @ y / math.sqrt((x @ x) * (y @ y)),
    "pearson": lambda x, y: stats.pearsonr(x, y).statistic,
    "spearman": lambda x, y: stats.spearmanr(x, y).statistic,
    "l2": lambda x, y: math.dist(x, y),
    "rel_l2": lambda x, y: math.dist(x, y) / math.hypot(*x),
    "rel_l2_b": lambda x, y: math.dist(x, y) / math.hypot(*y),
    "rel_l2_symmetric": lambda x, y: 2 * math.dist(x, y) / (math.hypot(*x) + math.hypot(*y)),
    "mean_abs_diff": lambda x, y: sum(abs(p - q) for p, q in zip(x, y, strict=True)) / len(x),
    "p99_abs_diff": lambda x, y: float(np.quantile(np.abs(x - y), 0.99)),
    "max_abs_diff": lambda x, y: max(abs(p - q) for p, q in zip(x, y, strict=True)),
    "cv_diff": lambda x, y: abs(cv(x) - cv(y)),
    "changed_ratio": lambda x, y: sum(p != q for p, q in zip(x, y, strict=True)) / len(x),
}


@pytest.mark.parametrize("metric", METRICS)
def test_a_matrix_holds_what_a_naive_loop_over_float64_gives_and_leaves_its_inputs_as_they_were(metric: str) -> None:
    a, b = gammas(4).astype(float), gammas(3, seed=1).astype(float)
    b[0] = a[1]
    kept = a.copy(), b.copy()
    expected = [[NAIVE[metric](x, y) for y in b] for x in a]
    found = pairwise(a, b, metric)
    assert found.shape == (4, 3)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(a, kept[0])
    np.testing.assert_array_equal(b, kept[1])
    assert set(NAIVE) == set(METRICS)


CORRELATIONS = ("cosine", "pearson", "spearman")


@pytest.mark.parametrize("metric", METRICS)
def test_a_vector_is_one_to_itself_within_an_ulp_or_differs_by_exactly_nothing(metric: str) -> None:
    a = gammas(40, 1000)
    gaps = np.abs(np.diag(pairwise(a, a.copy(), metric)) - (metric in CORRELATIONS))
    assert gaps.max() <= (np.spacing(1.0) if metric in CORRELATIONS else 0)
    if metric in ("cosine", "pearson"):
        assert (np.diag(pairwise(a[:3], -a[:3], metric)) == -1).all()


def test_scale_does_not_matter_to_scale_free_metrics_and_a_shift_leaves_pearson_and_moves_cosine() -> None:
    a, b = gammas(3).astype(float), gammas(3, seed=1).astype(float)
    for metric in (*CORRELATIONS, "cv_diff"):
        found = pairwise(1e-30 * a, 1e30 * b, metric)
        np.testing.assert_allclose(found, pairwise(a, b, metric), rtol=1e-12, atol=1e-15)
    a, b = a[:2], b[:2]
    np.testing.assert_allclose(pairwise(a + 7, b, "pearson"), pairwise(a, b, "pearson"), atol=1e-13)
    assert (np.abs(pairwise(a + 7, b, "cosine") - pairwise(a, b, "cosine")) > 0.01).all()
    tiny = np.array([[5e-324, 0.0], [0.0, 5e-324]])  # the smallest values still have a direction
    np.testing.assert_array_equal(pairwise(tiny, tiny, "cosine"), [[1, 0], [0, 1]])
    assert np.isfinite(pairwise(tiny, tiny, "rel_l2")).all()
    tied = np.array([[1.0, 2, 2, 3, 3, 3, -0.0]]), np.array([[0.0, 5, 1, 1, 2, 2, 0.0]])  # ranks are shared
    expected = stats.spearmanr(tied[0][0], tied[1][0]).statistic
    assert pairwise(*tied, "spearman")[0, 0] == pytest.approx(expected, abs=1e-15)


def test_a_tiny_change_still_shows_in_pearson() -> None:
    a = gammas(1, 4096).astype(float)
    centred = a - a.mean()
    noise = np.random.default_rng(3).standard_normal(a.shape)
    noise -= noise.mean() + centred * ((noise * centred).sum() / (centred**2).sum())
    tilt = 1e-7 * math.sqrt((centred**2).sum() / (noise**2).sum())
    gap = 1 - pairwise(a, a + tilt * noise, "pearson")[0, 0]
    assert gap == pytest.approx(0.5e-14, rel=0.05)  # 1 - cos of a small angle is half its square


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize("metric", [name for name in METRICS if name != "changed_ratio"])
def test_a_narrow_dtype_counts_as_its_exact_values_in_float64(dtype: type, metric: str) -> None:
    a, b = gammas(3).astype(dtype), gammas(3, seed=1).astype(dtype)
    np.testing.assert_array_equal(pairwise(a, b, metric), pairwise(a.astype(np.float64), b.astype(np.float64), metric))


def test_changed_ratio_compares_bits_of_one_dtype_and_not_values() -> None:
    a = np.array([[0.0, np.nan, 1.0, 2.0]], dtype=np.float32)
    b = np.array([[-0.0, np.nan, 1.0, 2.5]], dtype=np.float32)
    assert pairwise(a, b, "changed_ratio") == 0.5  # -0.0 has other bits, the same NaN has not
    b.view(np.uint32)[0, 1] += 1
    assert pairwise(a, b, "changed_ratio") == 0.75
    a = np.linspace(0.5, 2, 64).astype(ml_dtypes.bfloat16)[None, :]
    b = a.copy()
    b.view(np.uint16)[0, 10:26] += 1
    assert pairwise(a, b, "changed_ratio") == 0.25  # one ulp of bfloat16
    a = gammas(3)
    assert (np.diag(pairwise(a[:, ::2], a[:, ::2].copy(), "changed_ratio")) == 0).all()  # a view that is not contiguous
    with pytest.raises(ComparisonError, match=r"a has dtype float32 and b float16\. Bits compare only within one"):
        pairwise(a, a.astype(np.float16), "changed_ratio")


def reasons(rows: npt.NDArray[Any], metric: str, side: str) -> list[tuple[int, str]]:
    """The rows that leave a metric undefined, each with its reason."""
    masks = undefined_rows(rows, metric, side)[1]
    return [(int(row), reason) for reason, mask in masks.items() for row in np.flatnonzero(mask)]


@pytest.mark.parametrize("value", [0.1, 1.0, -3.7, 0.0])
@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_a_constant_vector_has_no_correlation(metric: str, value: float) -> None:
    a, b = gammas(3), gammas(2, seed=1)
    a[1] = value
    found = pairwise(a, b, metric)
    assert np.isnan(found[1]).all()
    assert np.isfinite(found[[0, 2]]).all()
    assert reasons(a, metric, "a") == [(1, "is constant")]
    assert value == 0.0 or not reasons(a, "cosine", "a")
    assert np.isfinite(pairwise(a, b, "cosine")).all() == (value != 0.0)  # it has a direction all the same


@pytest.mark.parametrize(("metric", "sides"), [("cosine", "ab"), ("rel_l2", "a"), ("rel_l2_b", "b")])
def test_an_all_zero_vector_is_undefined_where_it_is_divided_by(metric: str, sides: str) -> None:
    a, b = gammas(2), gammas(3, seed=1)
    a[0], b[2] = 0, 0
    found = pairwise(a, b, metric)
    assert np.isnan(found[0, :2]).all() == ("a" in sides)
    assert np.isnan(found[1, 2]) == ("b" in sides)
    assert np.isfinite(found[1, :2]).all()
    assert reasons(a, metric, "a") == [(0, "is all zeros")] * ("a" in sides)
    assert reasons(b, metric, "b") == [(2, "is all zeros")] * ("b" in sides)


def test_the_symmetric_form_is_undefined_only_between_two_zero_vectors() -> None:
    a, b = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_array_equal(pairwise(a, b, "rel_l2_symmetric"), [[np.nan, 2.0], [2.0, 0.0]])


def test_cv_diff_is_refused_where_the_mean_is_near_zero() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 400)), 1 + 0.1 * rng.standard_normal((2, 400))
    a[1] += 1  # the mean is 20 standard errors from zero
    found = pairwise(a, b, "cv_diff")
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1]).all()
    assert reasons(a, "cv_diff", "a") == [(0, "has a mean within 5 standard errors of zero")]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
@pytest.mark.parametrize("metric", [name for name in METRICS if name != "changed_ratio"])
def test_a_broken_row_is_nan_and_leaves_the_others_alone(metric: str, bad: float) -> None:
    a, b = gammas(3).astype(float), gammas(2, seed=1).astype(float)
    before = pairwise(a, b, metric)
    a[1, 5] = bad
    found = pairwise(a, b, metric)
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], before[[0, 2]])
    assert reasons(a, metric, "a") == [(1, "holds a value that is not finite or beyond 1e+150")]


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float16])
def test_a_nan_of_a_narrow_dtype_and_a_signalling_one_break_their_row_without_a_warning(dtype: type) -> None:
    a = np.array([[1, 2, 3, np.nan], [1, 2, 3, 5]]).astype(dtype)
    np.testing.assert_array_equal(np.isnan(pairwise(a, a, "pearson")), [[True, True], [True, False]])
    a = np.array([[1, 2, 3], [4, 5, 7]], dtype=np.float32)
    a.view(np.uint32)[0, 1] = 0x7F800001
    np.testing.assert_array_equal(np.diag(pairwise(a, a, "l2")), [np.nan, 0])


ROWS = st.tuples(*[
    arrays(np.float32, st.tuples(st.integers(1, 4), st.just(6)), elements=st.floats(-1e6, 1e6, width=32))
] * 2)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_every_metric_stays_in_its_range_and_a_nan_has_a_reason(pair: tuple[Row, Row]) -> None:
    a, b = pair
    for metric in METRICS:
        found = pairwise(a, b, metric)
        if metric not in ("changed_ratio", "rel_l2_symmetric"):  # undefined for pairs of rows, not for rows
            assert np.isnan(found).any() == bool(reasons(a, metric, "a") + reasons(b, metric, "b"))
        low, high = (-1, 1) if metric in CORRELATIONS else (0, np.inf)
        assert ((found >= low) & (found <= high))[~np.isnan(found)].all()


def test_row_statistics_are_numpys_in_float64_and_odd_rows_are_told_apart() -> None:
    rows = gammas(5)
    wide, found = rows.astype(np.float64), row_statistics(rows)
    expected = {
        "mean": wide.mean(axis=1), "std": wide.std(axis=1), "norm": np.linalg.norm(wide, axis=1),
        "min": wide.min(axis=1), "max": wide.max(axis=1),
        "share": wide.mean(axis=1) / np.sqrt((wide**2).mean(axis=1)),
    }  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_allclose(getattr(found, name), values, rtol=1e-13)
    found = row_statistics(np.array([[0.1] * 7, [0.0] * 7, [np.nan] + [1.0] * 6]))
    assert (found.std[0], found.share[0], found.norm[1]) == (0, 1, 0)
    assert np.isnan(found.share[1])
    assert np.isnan([found.mean[2], found.std[2], found.norm[2], found.min[2], found.max[2], found.share[2]]).all()


ONES = np.ones((2, 5))


@pytest.mark.parametrize(
    ("a", "b", "metric", "message"),
    [
        *((ONES, np.ones(shape), "cosine", r"b has shape .*expected \(n_layers, hidden_size\)")
          for shape in ((5,), (0, 5), (5, 0), (1, 2, 3), ())),
        *((ONES.astype(dtype), ONES, "cosine", r"a has dtype .*, expected real numbers")
          for dtype in (np.complex64, np.bool_, np.str_, object)),
        *((gammas(2), gammas(3, 64), metric, r"a of shape \(2, 96\) with b of shape \(3, 64\).*96 and 64 differ")
          for metric in METRICS),
        (ONES, ONES, "cosin", "no metric 'cosin'; the known ones are cosine, pearson, spearman"),
    ],
)  # fmt: skip
def test_all_but_real_matrices_and_known_metrics_is_refused(
    a: npt.NDArray[Any], b: npt.NDArray[Any], metric: str, message: str
) -> None:
    with pytest.raises(ComparisonError, match=message):
        pairwise(a, b, metric)
