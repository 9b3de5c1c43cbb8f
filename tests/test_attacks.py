"""Attacks: a hostile repo ends in one clear error and nothing written, or in the right bits; never in harm."""

from __future__ import annotations

import gc
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attack_rows import BOMBS, HUGE, LONGER, NORMS, ROWS, TENSORS, Attack, Reads
from fault_table import OneError
from hub_stand_in import Fault, HubStandIn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, write_files

import lnsim
from lnsim.checkpoint.extract import extract_and_keep
from lnsim.checkpoint.families.table import FAMILIES
from lnsim.checkpoint.roles import map_roles
from lnsim.errors import RoleError

LARGE = ("100,000 tensors", "2 MB of lists", "40 shards")
CASES = [
    pytest.param(row, place, id=f"{row.group}: {row.holds}, {place}",
                 marks=[pytest.mark.slow] if any(word in row.holds for word in LARGE) else [])
    for row in ROWS for place in row.places
]  # fmt: skip


@pytest.fixture
def source(make_hub: Callable[..., HubStandIn], tmp_path: Path) -> Callable[[Attack, str], str]:
    """Put a row's files into a folder, or behind the stand-in."""

    def put(row: Attack, place: str) -> str:
        if place == "hub":
            make_hub().add("a/b", row.files())
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
    gc.freeze()  # what other tests left behind is not gone through again and again at the attack's expense
    begun = time.process_time()
    if isinstance(row.outcome, OneError):
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
    took = time.process_time() - begun
    gc.unfreeze()
    assert took < 2


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


MAX_PEAK = 256 * 1024 * 1024


def in_a_process(script: str, *arguments: str, **environment: str) -> dict[str, Any]:
    """Run a script of the tests by itself; what it printed as JSON."""
    tests = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}"} | environment
    command = [sys.executable, str(tests / script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return dict(json.loads(done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize(("megabytes", "of", "says"), HUGE)
def test_a_huge_header_costs_less_than_256_mb(megabytes: int, of: str, says: str, tmp_path: Path) -> None:
    found = in_a_process("attack_memory.py", "header", of, str(megabytes), str(tmp_path))
    assert says in found["said"]
    assert found["peak"] < MAX_PEAK
    assert (tmp_path / "model.safetensors").stat().st_size > megabytes * 990_000


@pytest.mark.slow
@pytest.mark.parametrize("pattern", BOMBS.values(), ids=BOMBS)
def test_a_gzip_bomb_costs_less_than_256_mb(pattern: str, make_hub: Callable[..., HubStandIn], tmp_path: Path) -> None:
    hub = make_hub()
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 4))
    hub.faults.append(Fault(pattern, "bomb"))
    found = in_a_process("attack_memory.py", "hub", HF_ENDPOINT=hub.endpoint, HF_HOME=str(tmp_path))
    assert LONGER in found["said"]
    assert found["peak"] < MAX_PEAK
    assert any(re.search(pattern, path) for path in hub.paths())


CHECKPOINT = Path(lnsim.__file__).parent / "checkpoint"
SOURCES = sorted((CHECKPOINT / "families").iterdir())
KEYS = sorted(
    {key for path in SOURCES if path.is_file() for key in re.findall(r'(?:"|if=)([a-z_]{5,})', path.read_text("utf-8"))}
)
"""Words among which is every key of a config that is looked at."""

ABSURD = [
    *(10**9, -1, 1.5, 10**30, "x\x1b[31m", True, None, [], {}, [None], [[1]], ["a"] * 20, [{}] * 3, [-1], [10**30]),
    {"model_type": []},
    {"num_hidden_layers": -1},
]


def absurd_configs(numbers: range) -> Iterator[dict[str, Any]]:
    """For each model type those of these numbers, with a few absurd values or nothing else."""
    for model_type in sorted({name for family in FAMILIES for name in family.model_types}):
        rng = random.Random(model_type)
        for number in range(numbers.stop):
            absurd = {key: rng.choice(ABSURD) for key in rng.sample(KEYS, rng.choice((1, 3, len(KEYS))))}
            if number in numbers:
                yield {"model_type": model_type, "num_hidden_layers": 3} | absurd


@pytest.mark.parametrize("numbers", [range(4), pytest.param(range(4, 12), marks=pytest.mark.slow)], ids=str)
def test_no_config_makes_anything_but_roles_or_a_role_error(numbers: range) -> None:
    shapes = {name: array.shape for name, array in TENSORS.items()}
    for config in absurd_configs(numbers):
        try:
            assert map_roles(shapes, config, where="a/b").tensors
        except RoleError:
            continue
        except Exception as error:
            error.add_note(f"config: {config}")
            raise
