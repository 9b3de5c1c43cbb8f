"""Attacks: a hostile repo ends in one clear error and nothing written, or in the right bits; never in harm."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from attack_rows import NORMS, ROWS, Attack, Reads, Refuses
from hub_stand_in import HubStandIn
from safetensors_bytes import write_files

import lnsim
from lnsim.checkpoint.extract import extract_and_keep

CASES = [pytest.param(row, place, id=f"{row.group}: {row.holds}, {place}") for row in ROWS for place in row.places]


@pytest.fixture
def source(make_hub: Callable[..., HubStandIn], tmp_path: Path) -> Callable[[Attack, str], str]:
    """Put a row's files into a folder, or behind the stand-in."""

    def put(row: Attack, place: str) -> str:
        if place == "hub":
            make_hub(offers_one_call=False).add("a/b", row.files())
            return "a/b"
        return str(write_files(tmp_path / "repo", row.files()))

    return put


def everything_under(folder: Path) -> set[str]:
    return {os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names}


@pytest.mark.parametrize(("row", "place"), CASES)
def test_an_attack_ends_in_one_error_and_nothing_written_or_in_the_right_bits(
    row: Attack, place: str, source: Callable[[Attack, str], str], tmp_path: Path
) -> None:
    name = source(row, place)
    before = everything_under(tmp_path)
    begun = time.process_time()
    if isinstance(row.outcome, Refuses):
        with pytest.raises(row.outcome.kind) as caught:
            extract_and_keep(name, out=tmp_path / "out", everything=row.everything)
        text = str(caught.value)
        assert type(caught.value) is row.outcome.kind
        assert row.outcome.says in text
        assert text.isprintable()
        assert len(text) < 2_000
        assert everything_under(tmp_path) == before
    else:
        check_reading(row, name, tmp_path, before)
    assert time.process_time() - begun < 2


def check_reading(row: Attack, name: str, folder: Path, before: set[str]) -> None:
    assert isinstance(row.outcome, Reads)
    found = extract_and_keep(name, out=folder / "out", everything=row.everything)
    expected = NORMS if row.outcome.stored is None else dict(row.outcome.stored)
    assert {key: array.tobytes() for key, array in found.stored.items()} == expected
    assert any(row.outcome.note in note for note in found.notes) or not row.outcome.note
    assert all(note.isprintable() and len(note) < 2_000 for note in found.notes)
    new = everything_under(folder) - before
    assert new == {os.path.relpath(str(found.path), folder)}
    assert Path(os.path.dirname(str(found.path))) == folder / "out"
    again = lnsim.load(str(found.path))
    assert {key: array.tobytes() for key, array in again.stored.items()} == expected
