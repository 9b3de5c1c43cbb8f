"""Tests of the words on how γ began, and of the models trained anew beside the stored ones."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from made_trained import LABELS, ROLES, trained_model, zoo_of

from lnsim.measure.initialisation import moved, trained
from lnsim.measure.initialisation_pairs import by_first_gamma, by_layer, compared, pairs_of_one_kind
from lnsim.render import initialisation_words as words
from lnsim.render.retrained import beside_stored, show_retrained
from lnsim.render.table import table

PAIRS = pd.DataFrame(
    {
        "first_gamma": ["1", "1", "N(0, 1)"],
        "predicted": [1.0, 1.0, 0.0],
        "cosine": [0.99, 0.97, -0.04],
        "r": [0.02, -0.03, 0.01],
        "pvalue": [0.2, 0.0004, 0.5],
        "p_holm": [0.4, 0.0012, 0.5],
    }
)


def test_the_answer_says_yes_where_all_cosines_are_near_their_beginning() -> None:
    said = words.answer_in_words(PAIRS)
    assert said.startswith(
        "Yes: the mean cosine of strangers is 0.980 where γ began as 1 and −0.040 where γ began as N"
    )
    assert "before any training it was 1.000 and 0.000. Pearson r is −0.03 to 0.02" in said
    assert words.claim_in_words(PAIRS) == (
        "The cosine of strangers lies within 0.04 of what γ began with; their r lies within 0.03 of zero."
    )


def test_the_answer_says_in_part_where_one_cosine_is_far_from_its_beginning() -> None:
    assert words.answer_in_words(PAIRS.assign(cosine=[0.99, 0.7, 0.0])).startswith("In part: ")


def test_found_pairs_are_counted_after_adjustment() -> None:
    assert words.found_in_words(PAIRS) == (
        "the permutation test calls 1 of 3 pairs related (smallest p 0.0004, adjusted 0.00)"
    )


def test_a_sentence_begins_with_a_capital_unless_with_a_greek_letter() -> None:
    assert words.sentence("where it ended") == "Where it ended."
    assert words.sentence("γ ended") == "γ ended."
    assert words.sentence("18 of 20") == "18 of 20."


def test_models_say_what_they_learnt_and_how_far_gamma_went() -> None:
    models = zoo_of(["ones", "normal"])
    assert words.learnt_in_words(trained(models, ROLES, LABELS)) == (
        "2 models: held-out loss 2.00 nats a byte, 1.00 below that of unigrams."
    )
    assert words.moved_in_words(moved(models, ROLES, LABELS)) == (
        "where γ began with one value in all channels, it ended 0.04 away from it (root mean square), with a spread of "
        "0.040"
    )
    assert "not on record" in words.moved_in_words(moved(zoo_of(["normal"]), ROLES, LABELS))


def test_values_outside_the_band_stand_beside_what_chance_gives() -> None:
    layers = pd.DataFrame({"r": [0.0] * 98 + [0.21, -0.3]})
    assert words.outside_in_words(layers, 100) == "2 of 100 values lie outside; chance would put about 5 there"


@pytest.mark.parametrize(
    ("least", "verdict"), [(0.985, "so no threshold parts them"), (0.995, "which is below all of")]
)
def test_relatives_stand_beside_strangers(least: float, verdict: str) -> None:
    derived = pd.DataFrame({"derivation": ["light"], "cosine_low": [least], "cosine_high": [0.999], "r": [0.9]})
    said = words.relatives_in_words(derived, PAIRS[1:2], PAIRS)
    assert f"cosines of {least:.4f} to 0.9990; strangers that began as they did have 0.9700, and" in said
    assert f"strangers of any beginning up to 0.9900, {verdict}" in said
    assert said.endswith("parents and children is 0.90 (light); r of all strangers is −0.03 to 0.02.")


def test_printed_cosines_stand_beside_ours_of_the_same_beginnings() -> None:
    models = zoo_of(["ones", "ones", "two", "two"])
    layers = by_layer(models, pairs_of_one_kind(models, True), ROLES, LABELS)
    printed = pd.DataFrame({"gamma": ["ones", "ones"], "role": ["pre_mlp"] * 2, "layer": [0, 1], "cosine": [0.6, 0.8]})
    frame = words.beside_printed(layers, printed)
    assert frame.index.tolist() == ["document 003", "here, Llama"]
    assert frame["values"].tolist() == [2, 8]
    assert frame.loc["document 003", ["least", "mean", "most"]].tolist() == pytest.approx([0.6, 0.7, 0.8])
    assert frame.loc["document 003", "root_mean_square"] == pytest.approx(0.5**0.5)


def test_every_table_has_heads_that_differ() -> None:
    models = zoo_of(["ones", "ones"])
    pairs = compared(models, [("a", "b")], ROLES, LABELS, 19, seed=0)
    for frame in (pairs, by_first_gamma(pairs), trained(models, ROLES, LABELS), moved(models, ROLES, LABELS)):
        heads = [words.START_LABELS.get(str(name), str(name)) for name in frame.columns]
        assert len(set(heads)) == len(heads)
    assert "γ began as" in table(words.start_rows(by_first_gamma(pairs)), "x", "Table 1.", "A table.", "", {}, {})


class Pages:
    """A page that remembers what it was given."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.tables: dict[str, tuple[pd.DataFrame, str]] = {}

    def say(self, text: str) -> None:
        self.said.append(text)

    def table(self, frame: pd.DataFrame, name: str, claim: str, *_: str, **__: Any) -> None:
        self.tables[name] = frame, claim


def test_without_models_trained_now_the_page_says_how_to_get_some() -> None:
    page = Pages()
    show_retrained(page, {}, zoo_of(["ones", "ones"]), ROLES)  # type: ignore[arg-type]
    assert "python -m studies.zoo --quick --out DIR" in page.said[0]
    assert not page.tables


def test_models_trained_now_stand_beside_the_stored_ones_of_the_same_beginnings() -> None:
    stored = zoo_of(["ones", "ones", "normal", "normal"])
    fresh = {"x": trained_model(20), "y": trained_model(21), "z": trained_model(22, "normal"),
             "alone": trained_model(23, "ones", "gpt2")}  # fmt: skip
    both = beside_stored(fresh, stored, ROLES).set_index("first_gamma")
    assert both.index.tolist() == ["1", "1 × N(0, 1)"]
    assert both["pairs, trained now"].tolist() == [1, 2]
    assert both["pairs"].tolist() == [1, 4]
    assert (both["cosine, trained now"] - both["cosine"]).abs().max() < 0.1
    page = Pages()
    show_retrained(page, fresh, stored, ROLES)  # type: ignore[arg-type]
    losses, claim = page.tables["retrained"]
    assert len(losses) == 4
    assert claim.startswith("Trained now. 4 models: held-out loss")
    assert "within 0.0" in page.tables["retrained_pairs"][1]
