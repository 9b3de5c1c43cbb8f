"""Tests of numbers in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from notebook_cells import defined

from lnsim import words
from lnsim.errors import NotebookError


@pytest.mark.parametrize(
    ("value", "spec", "expected"),
    [(-0.5, ".2f", "−0.50"), (-0.001, ".2f", "0.00"), (0.0349, ".3f", "0.035"), (0.5, ".1%", "50.0%")],
)
def test_a_number_is_rounded_with_a_real_minus_and_no_negative_zero(value: float, spec: str, expected: str) -> None:
    assert words.rounded(value, spec) == expected


def test_a_span_runs_from_the_smallest_to_the_largest() -> None:
    assert words.span([0.3, -0.017, 0.1]) == "−0.02 to 0.30"


def test_a_span_that_rounds_to_one_number_is_one_number() -> None:
    assert words.span([0.901, 0.902]) == "0.90"


@pytest.mark.parametrize("values", [[], [0.1, np.nan]])
def test_a_span_of_nothing_or_of_undefined_values_is_refused(values: list[float]) -> None:
    with pytest.raises(NotebookError, match="it needs at least one, and no undefined one"):
        words.span(values)


@pytest.mark.parametrize(("given", "expected"), [(["a"], "a"), (["a", "b"], "a and b"), ("abc", "a, b and c")])
def test_lists_are_written_as_people_write_them(given: list[str], expected: str) -> None:
    assert words.listed(given) == expected


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(NotebookError, match="it is empty"):
        words.listed([])


@pytest.mark.parametrize(
    ("number", "expected"), [(1, "1 layer"), (30, "30 layers"), (9999, "9,999 layers"), (0, "0 layers")]
)
def test_counts_agree_with_their_nouns(number: int, expected: str) -> None:
    assert words.count(number, "layer") == expected


@pytest.mark.parametrize(("value", "expected"), [(2.9e-16, "3 × 10⁻¹⁶"), (0, "0"), (-4e12, "−4 × 10¹²")])
def test_powers_of_ten_are_raised(value: float, expected: str) -> None:
    assert defined("01")["power_of_ten"](value) == expected


def test_roles_are_named_as_in_prose_with_their_tower() -> None:
    assert words.role_names(["pre_mlp", "encoder/pre_attention", "final"]) == "pre-MLP, encoder/pre-attention and final"


def test_spans_by_role_keep_the_order_of_the_rows() -> None:
    frame = pd.DataFrame({"role": ["pre_mlp", "pre_attention", "pre_mlp"], "cosine": [0.9, 0.03, 0.98]})
    assert words.by_role(frame, "cosine") == "0.90 to 0.98 for the pre-MLP norm and 0.03 for the pre-attention norm"
