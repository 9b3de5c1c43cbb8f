"""The small roots as stored: their records, their size, and that every one learnt."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np

import lnsim
from lnsim.checkpoint.vectors import NormVectors
from lnsim.paths import stored_models
from studies.zoo.records import TrainingRecord

ROOT = Path(__file__).resolve().parents[1] / "data" / "vectors" / "roots"
SIZES = {"learned": 50, "rotary": 50, "fixed": 24, "one-seed": 12}


@cache
def roots() -> dict[str, NormVectors]:
    return {path.stem: lnsim.load(path) for path in sorted(ROOT.glob("*.safetensors"))}


def test_the_groups_are_whole_small_and_named_by_no_machine() -> None:
    assert Counter(name.rpartition("-")[0] for name in roots()) == SIZES
    assert set(roots()) <= set(stored_models())
    assert sum(path.stat().st_size for path in ROOT.iterdir()) < 1_500_000
    places = [str(folder).encode() for folder in (Path.home(), ROOT.parents[2], Path(tempfile.gettempdir()))]
    contents = [path.read_bytes() for path in ROOT.iterdir()]
    assert not any(place in content for content in contents for place in places)


def test_every_root_has_five_norms_learnt_and_a_seed_of_its_own_but_for_one_group() -> None:
    seeds: dict[str, list[int]] = {}
    for name, vectors in roots().items():
        assert {role: len(one.layers) for role, one in vectors.roles.items()} == {
            "pre_attention": 2, "pre_mlp": 2, "final": 1,
        }  # fmt: skip
        assert all(np.ptp(one.scale, axis=1).min() > 0 for one in vectors.roles.values())
        record = TrainingRecord.of(vectors)
        assert record.loss < record.unigram_loss - 0.5, name
        seeds.setdefault(name.rpartition("-")[0], []).append(record.seed)
    assert {group: len(set(some)) for group, some in seeds.items()} == SIZES | {"one-seed": 1}
