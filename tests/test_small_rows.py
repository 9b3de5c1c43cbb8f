"""Matrix rows of real models: their record, and what the two exact tests say of known relations."""

from __future__ import annotations

import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from lnsim.checkpoint.extract import extract
from lnsim.checkpoint.vectors import NormVectors
from lnsim.measure.evidence import weigh_rows

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / "data" / "rows" / "small_models").glob("*.safetensors"))
RELATED = {
    frozenset(pair)
    for pair in (
        *combinations(("all-minilm-l6-v2", "sre-minilm-l6", "paraphrase-minilm-l3-v2"), 2),
        ("multilingual-e5-small", "portuguese-e5-small"),
    )
}


@pytest.fixture(scope="module")
def models() -> dict[str, NormVectors]:
    return {path.stem: extract(path.stem, evidence=True) for path in FILES}


def test_five_models_take_less_than_two_megabytes_and_name_the_file_that_their_rows_come_from(
    models: dict[str, NormVectors],
) -> None:
    facts = {fact["name"]: fact for fact in tomllib.loads((ROOT / "data/build/small_models.toml").read_text())["model"]}
    assert len(FILES) == 5
    assert sum(path.stat().st_size for path in FILES) < 2_000_000
    for name, vectors in models.items():
        rows = vectors.rows
        assert rows is not None
        assert {len(one) for _, _, one in rows.values().values()} == {128}
        assert list(rows.values()) == [0, facts[name]["n_layers"] - 1]
        assert (rows.tokens is None) == (name == "portuguese-e5-small")


@pytest.mark.parametrize(("a", "b"), list(combinations([path.stem for path in FILES], 2)))
def test_relatives_are_strong_and_strangers_are_not(a: str, b: str, models: dict[str, NormVectors]) -> None:
    found = weigh_rows(models[a], models[b], n_permutations=199, same_token_ids=True)
    assert (found.strength == "strong") == (frozenset((a, b)) in RELATED)
    if frozenset((a, b)) not in RELATED:
        assert (found.pvalue or 0) > 0.05
