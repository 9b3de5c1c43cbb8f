"""Tests of numbers in words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from notebook_cells import defined

from lnsim import words
from lnsim.errors import NotebookError

BY_ROLE = pd.DataFrame({"role": ["pre_mlp", "pre_attention", "pre_mlp"], "cosine": [0.9, 0.03, 0.98]})
SAID = {
    "−0.50": words.rounded(-0.5, ".2f"),
    "0.00": words.rounded(-0.001, ".2f"),
    "0.035": words.rounded(0.0349, ".3f"),
    "50.0%": words.rounded(0.5, ".1%"),
    "−0.02 to 0.30": words.span([0.3, -0.017, 0.1]),
    "0.90": words.span([0.901, 0.902]),
    "a": words.listed(["a"]),
    "a and b": words.listed(["a", "b"]),
    "a, b and c": words.listed("abc"),
    "1 layer": words.count(1, "layer"),
    "30 layers": words.count(30, "layer"),
    "9,999 layers": words.count(9999, "layer"),
    "0 layers": words.count(0, "layer"),
    "3 × 10⁻¹⁶": defined("01")["power_of_ten"](2.9e-16),
    "0": defined("01")["power_of_ten"](0),
    "−4 × 10¹²": defined("01")["power_of_ten"](-4e12),
    "pre-MLP, encoder/pre-attention and final": words.role_names(["pre_mlp", "encoder/pre_attention", "final"]),
    "0.90 to 0.98 for the pre-MLP norm and 0.03 for the pre-attention norm": words.by_role(BY_ROLE, "cosine"),
}


@pytest.mark.parametrize(("expected", "said"), SAID.items(), ids=SAID)
def test_numbers_lists_and_roles_are_written_as_people_write_them(expected: str, said: str) -> None:
    assert said == expected


def test_nothing_and_undefined_values_have_no_words() -> None:
    for values in ([], [0.1, np.nan]):
        with pytest.raises(NotebookError, match="it needs at least one, and no undefined one"):
            words.span(values)
    with pytest.raises(NotebookError, match="it is empty"):
        words.listed([])
