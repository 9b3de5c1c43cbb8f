"""Tests of what is said about listed pairs."""

from __future__ import annotations

import pandas as pd

from lnsim.render.pair_words import cosine_against_r, groups_begin, pair_rows, smallest_p


def frame(**changes: list[float]) -> pd.DataFrame:
    values = {
        "pair": ["A × B", "A × C", "A × D"], "norms": ["MLP", "MLP", "decoder attention"],
        "relation": ["fine_tune", "independent", "independent"], "group": ["related", "independent", "independent"],
        "layers": [6, 4, 4], "cosine": [0.98, 0.9912, 0.95], "mean_term": [0.97, 0.99, 0.94], "r": [0.7, 0.01, 0.105],
        "null_low": [-0.08] * 3, "null_high": [0.08] * 3, "pvalue": [0.0001, 0.4, 0.0058],
        "p_ranks": [0.0001, 0.3, 0.18], "p_holm": [0.0001, 0.4, 0.0116],
        "r_without": [0.69, 0.0, 0.014], "p_without": [0.0001, 0.5, 0.31], "extremes": [8, 8, 7],
        "carriers": ["many", "none", "99, 223"],
    }  # fmt: skip
    return pd.DataFrame({**values, **changes})


def test_the_first_sentence_says_which_measure_parts_strangers_from_relatives() -> None:
    first, second = cosine_against_r(frame()).split("\n")
    assert first == "Cosine cannot tell strangers from relatives. Centred correlation can."
    assert second.startswith("Strangers reach a cosine of 0.991; related pairs go down to 0.980 (fine-tune).")
    assert second.endswith("are 0.010 and 0.700.")


def test_the_sentence_follows_the_numbers() -> None:
    assert cosine_against_r(frame(cosine=[1.0, 0.9, 0.8])).startswith("Cosine and centred correlation both tell")
    assert cosine_against_r(frame(r=[0.05, 0.1, 0.0])).startswith("Neither cosine nor centred correlation tells")
    both = frame(cosine=[1.0, 0.9, 0.8], r=[0.05, 0.1, 0.0])
    assert cosine_against_r(both).startswith("Cosine tells strangers from relatives. Centred correlation cannot.")
    assert cosine_against_r(frame().head(1)) == "1 comparison, but not both of relatives and of strangers."


def test_the_smallest_p_of_strangers_stands_beside_its_p_by_ranks() -> None:
    assert smallest_p(frame()) == (
        "Of 2 independent comparisons one has p below 0.05; the smallest is 0.0058 (A × D, decoder attention), after "
        "Holm 0.01, by ranks 0.18. Ranks do not see it: channels 99 and 223 carry it, and without the 7 most "
        "extreme channels of the two models r is 0.014 and p 0.31."
    )
    assert "one has" in smallest_p(frame(p_ranks=[0.1, 0.1, 0.01]))
    assert "Ranks do not" not in smallest_p(frame(p_ranks=[0.1, 0.1, 0.01]))
    assert smallest_p(frame(pvalue=[0.1, 0.4, 0.3])).startswith("Of 2 independent comparisons none has p below 0.05")
    assert smallest_p(frame(pvalue=[0.1, 0.01, 0.02])).startswith("Of 2 independent comparisons 2 have p below 0.05")
    assert smallest_p(frame().head(1)) == "No pair of strangers is among them."


def test_what_carries_the_smallest_p_is_said_as_measured() -> None:
    assert "see it: channel 99 carries it, and without" in smallest_p(frame(carriers=["many", "none", "99"]))
    assert "see it; without the 7 most extreme" in smallest_p(frame(carriers=["many", "none", "many"]))
    still = smallest_p(frame(p_without=[0.0001, 0.5, 0.02]))
    assert still.endswith(
        "but it is there without the 7 most extreme channels of the two models r is 0.014 and p 0.02."
    )


def test_rows_are_named_by_the_pair_and_hold_r_once_more_as_a_strip() -> None:
    rows = pair_rows(frame())
    assert list(rows.index) == ["A × B", "A × C", "A × D"]
    assert list(rows["relation"]) == ["fine-tune", "independent", "independent"]
    assert [strip.r for strip in rows["strip"]] == [0.7, 0.01, 0.105]


def test_a_line_is_drawn_where_a_group_begins() -> None:
    assert groups_begin(frame()) == ["A × C"]
