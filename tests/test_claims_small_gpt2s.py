"""Tests of the printed cosines of 003's small GPT-2s: all forty-eight, none of the sentences about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lnsim.errors import StudyError
from studies.claims.small_gpt2s import cosines_of_003, printed_cosines

ROOT = Path(__file__).resolve().parents[1]


def test_both_beginnings_have_a_cosine_for_every_layer_and_role(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LNSIM_HOME", str(ROOT))
    frame = cosines_of_003()
    assert len(frame) == 48
    sizes = frame.groupby(["gamma", "role"])["layer"].agg(list)
    assert sizes.index.tolist() == [(g, r) for g in ("normal", "ones") for r in ("pre_attention", "pre_mlp")]
    assert all(layers == list(range(12)) for layers in sizes)
    ends = frame.groupby("gamma")["cosine"].agg(["min", "max"])
    assert ends.loc["ones"].tolist() == [0.99981, 0.99997]
    assert ends.loc["normal"].tolist() == [-0.12613, 0.11864]


def test_the_root_mean_square_of_the_random_ones_is_the_one_on_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LNSIM_HOME", str(ROOT))
    frame = cosines_of_003()
    normal = frame.loc[frame["gamma"] == "normal", "cosine"]
    assert (normal**2).mean() ** 0.5 == pytest.approx(0.053, abs=0.0005)


def test_a_list_without_them_is_an_error() -> None:
    with pytest.raises(StudyError, match="none of 0 claims is of 'gpt2 toy'"):
        printed_cosines([])
