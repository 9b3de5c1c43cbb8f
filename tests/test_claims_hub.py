"""The whole way with vectors that were read from the Hub: extracts with a commit, judged as real ones."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from published_claims import FOLDER, by_the_others

import lnsim
from lnsim.checkpoint.header import LENGTH_BYTES, parse_header
from lnsim.checkpoint.store import StoredTensor, extract_name, read_provenance, write_extract
from lnsim.study.vectors import study_vectors
from studies.claims import judging
from studies.claims.corpus import claims_dir, read_corpus
from studies.replica import build_replica

ROOT = FOLDER.parents[2]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
KEYS = ("solar", "glm")


def as_if_from_the_hub(path: Path, repo_id: str, folder: Path) -> None:
    """The tensors of a file under the name, repo and commit of another origin."""
    content = path.read_bytes()
    start = LENGTH_BYTES + int.from_bytes(content[:LENGTH_BYTES], "little")
    header = parse_header(content[:start], len(content), where=path.name)
    provenance = read_provenance(header)
    assert provenance is not None
    tensors = []
    for name, info in header.tensors.items():
        first, last = info.start, info.stop
        data = content[start + first : start + last]
        tensors.append(StoredTensor(name, info.dtype, info.shape, data, "model.safetensors", first, last))
    real = replace(provenance, source=repo_id, repo_id=repo_id, commit=COMMIT, revision="main", extra={})
    write_extract(folder / extract_name(repo_id, COMMIT), tensors, real)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with the study, its claims and the extracts of two models."""
    monkeypatch.setenv("LNSIM_HOME", str(ROOT))
    study = lnsim.load_study("solar_glm")
    paths = build_replica(study)
    shutil.copytree(ROOT / "data" / "studies", tmp_path / "data" / "studies")
    shutil.copytree(ROOT / "data" / "claims", tmp_path / "data" / "claims")
    for key in KEYS:
        as_if_from_the_hub(paths[key], str(study.model(key).repo_id), tmp_path / "data" / "vectors" / "solar_glm")
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    return tmp_path


def test_vectors_from_the_hub_judge_every_row_that_they_can(home: Path) -> None:
    study = lnsim.load_study("solar_glm")
    found = study_vectors(study, "hub", KEYS)
    assert found.kind == "hub"
    assert {vectors.commit for vectors in found.vectors.values()} == {COMMIT}

    corpus = read_corpus(claims_dir(study.name))
    judged = judging.judge_study(corpus, study.name, found.vectors, found.kind, by_the_others())
    verdicts = {one.claim.name: one.verdict for one in judged}
    assert len(judged) == 443
    assert not {judging.CALIBRATED, judging.FROM_REPLICA} & set(verdicts.values())
    # These vectors were built to the numbers of 001, so as real ones they reproduce them and differ from the table.
    assert verdicts["001-017"] == verdicts["001-001"] == judging.REPRODUCED
    assert verdicts["004-091"] == judging.DIFFERS
    assert verdicts["001-018"] == judging.UNTESTED
    assert verdicts["001-049"] == judging.CONTRADICTED
