"""The replica: published numbers out of built files, its shapes and relations, and the same bits everywhere."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

import lnsim
from lnsim.errors import StoreError, StudyError
from lnsim.paths import extract_name
from lnsim.study.catalog import Study
from lnsim.study.vectors import study_vectors
from studies.replica import REPLICA_SENTENCE, build_replica
from studies.replica.bits import exact_dot, from_bits, round_to_bf16
from studies.replica.build import is_current, write_file
from studies.replica.calibration import calibration_path, load_calibration
from studies.replica.vectors import all_patterns, pinned_places

ROOT = Path(__file__).resolve().parents[1]
Array = npt.NDArray[Any]
Vectors = dict[str, lnsim.NormVectors]
Paths = Mapping[str, Path]
CALIBRATION = load_calibration(calibration_path("solar_glm"))

N_LAYERS = {"solar": 48, "glm": 46, "intellect": 46, "yi9b": 48}
N_LAYERS |= dict.fromkeys(("phi", "mixtral", "mistral", "yi6b", "internlm2", "qwen15"), 32)


@pytest.fixture(scope="session")
def study() -> Study:
    return lnsim.load_study("solar_glm")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replica")


@pytest.fixture(scope="session")
def paths(study: Study, folder: Path) -> Paths:
    return build_replica(study, folder)


@pytest.fixture(scope="session")
def vectors(paths: Paths) -> Vectors:
    return {key: lnsim.load(path) for key, path in paths.items()}


def test_every_model_has_its_norms_says_that_it_is_a_replica_and_names_no_repo(
    study: Study, paths: Paths, vectors: Vectors
) -> None:
    missing = json.loads((paths["solar"].parent / "missing.json").read_text("utf-8"))
    assert list(missing) == ["qwen3_4b", "qwen3_14b"]
    assert all("nothing to calibrate with" in reason for reason in missing.values())
    assert set(vectors) == set(N_LAYERS)
    for key, found in vectors.items():
        for role in ("pre_attention", "pre_mlp"):
            assert found[role].layers.tolist() == list(range(N_LAYERS[key]))
            assert found[role].scale.shape == (N_LAYERS[key], 4096)
            assert (found[role].bias is not None) == (key == "phi") == (found.norm_type == "layernorm")
        assert found["final"].scale.shape == (1, 4096)
        assert {tensor.dtype for tensor in found.tensors.values()} == {"BF16"}
        assert not any(found.missing_layers.values())
        assert not found.notes
        with safe_open(paths[key], framework="np") as file:
            metadata = file.metadata()
        assert (metadata["replica"], metadata["replica_note"]) == ("yes", REPLICA_SENTENCE)
        assert metadata["source"] == found.source == f"REPLICA of {study.model(key).repo_id}"
        assert found.commit is None
        assert not {"repo_id", "commit", "revision"} & set(metadata)
    assert vectors["internlm2"]["pre_attention"].names[3] == "model.layers.3.attention_norm.weight"  # its own names
    assert np.std(vectors["phi"]["final"].bias) == pytest.approx(0.02, rel=0.02)


def test_the_mtp_block_is_a_role_of_its_own_and_only_where_one_is_stored(vectors: Vectors) -> None:
    assert [key for key, found in vectors.items() if any(role.startswith("mtp/") for role in found.roles)] == ["glm"]
    block = vectors["glm"]["mtp/pre_attention"]
    assert block.names == ("model.layers.46.input_layernorm.weight",)
    last = vectors["glm"]["pre_attention"].scale[-1:]
    assert abs(lnsim.pairwise(block.scale, last, "pearson")[0, 0]) < 0.08


def same_layer(vectors: Vectors, a: str, b: str, role: str) -> Array:
    """Pearson of layers of the same number, as many as both have."""
    common = min(N_LAYERS[a], N_LAYERS[b])
    return np.diag(lnsim.pairwise(vectors[a][role].scale[:common], vectors[b][role].scale[:common], "pearson"))


@pytest.mark.parametrize("role", ["pre_attention", "pre_mlp"])
def test_the_related_pairs_correlate_and_the_others_do_not(vectors: Vectors, role: str) -> None:
    assert same_layer(vectors, "mixtral", "mistral", role).min() > 0.98
    assert same_layer(vectors, "yi6b", "yi9b", role)[:28].min() > 0.98
    for a, b in [("solar", "glm"), ("glm", "phi"), ("yi6b", "qwen15"), ("internlm2", "mistral")]:
        assert abs(same_layer(vectors, a, b, role)).max() < 0.08, (a, b)


def test_the_depth_expanded_model_repeats_layers_of_the_other(vectors: Vectors) -> None:
    matrix = lnsim.pairwise(vectors["yi9b"]["pre_attention"].scale, vectors["yi6b"]["pre_attention"].scale, "pearson")
    assert matrix.argmax(axis=1).tolist() == [*range(28), *range(12, 32)]


def test_the_update_changes_the_values_that_rounding_predicts(vectors: Vectors) -> None:
    before, after = (vectors[key]["pre_attention"].stored.view(np.uint16) for key in ("glm", "intellect"))
    share = 100 * (before != after).mean(axis=1)
    expected = {0: (88, 96), 1: (72, 83), 2: (56, 70), 3: (13, 62)}
    expected |= {5: (8, 30), 10: (4, 12), 20: (0.05, 1.5), 40: (0, 1.5)}
    assert all(low <= share[layer] <= high for layer, (low, high) in expected.items()), share


def test_only_a_file_cut_short_or_of_another_calibration_is_made_again(
    study: Study, paths: Paths, folder: Path, tmp_path: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in paths.values()}
    assert build_replica(study, folder) == paths
    assert {path: path.stat().st_mtime_ns for path in paths.values()} == before
    assert is_current(paths["phi"], CALIBRATION)
    assert not is_current(paths["phi"], replace(CALIBRATION, digest="another"))
    cut = tmp_path / "phi.safetensors"
    cut.write_bytes(paths["phi"].read_bytes()[:1000])
    assert not is_current(cut, CALIBRATION)
    assert not is_current(tmp_path / "none.safetensors", CALIBRATION)


def changed_calibration(tmp_path: Path, old: str, new: str) -> Path:
    text = calibration_path("solar_glm").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "data" / "studies" / "replica" / "solar_glm.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def test_other_bits_than_those_on_record_are_refused_and_not_written(tmp_path: Path) -> None:
    arrays = {"model.norm.weight": np.zeros(4096, dtype=np.uint16)}
    path = tmp_path / "solar.safetensors"
    expected = f"'solar': its tensors should have the sha256 {CALIBRATION.sha256['solar']} .* nothing was written"
    with pytest.raises(StoreError, match=expected):
        write_file(path, arrays, CALIBRATION.recipe("solar"), CALIBRATION)
    assert not path.exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 3", 'seed = "3"', r"key 'seed': expected a whole number, 0 or more, found '3'"),
        ("share = 0.37197397", "share = 1.2", r"Point of layer 0: expected .* share from -1 to 1, found"),
        ("pinned = true, apart", "pined = true, apart", r"key 'models\.solar\..*points\[0\]\.pined': .* unknown key"),
        ('a = "solar@10", b', 'a = "solar", b', r"key 'correlations\[0\]\.a': expected model@layer"),
        ('to = "mixtral"', 'to = "qwen15"', r"Model 'mistral': 'qwen15' must come before it"),
        ("about =", "about ", r"expected TOML in UTF-8, found an error"),
    ],
)
def test_a_wrong_calibration_names_the_file_and_the_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = changed_calibration(tmp_path, old, new)
    with pytest.raises(StudyError, match=r"Reading data/studies/replica/solar_glm\.toml: .*" + message):
        load_calibration(path)


def test_correlations_that_contradict_one_another_are_refused(tmp_path: Path) -> None:
    path = changed_calibration(tmp_path, 'b = "glm@20", r = 0.013', 'b = "glm@20", r = 0.99')
    with pytest.raises(StudyError, match=r"The correlations of the pinned vectors contradict one another"):
        all_patterns(load_calibration(path))


def test_no_code_of_the_replica_knows_a_study_or_a_model(study: Study) -> None:
    names = {study.name, *(model.key for model in study.models), *(model.label for model in study.models)}
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "studies/replica").glob("*.py"))
    assert not [name for name in names if re.search(rf"\b{re.escape(name)}\b", code, re.IGNORECASE)]


@pytest.fixture
def home(paths: Paths, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the studies and a built replica, and no stored vectors."""
    shutil.copytree(ROOT / "data" / "studies", tmp_path / "data" / "studies")
    (tmp_path / "data" / "replica").mkdir()
    (tmp_path / "data" / "replica" / "solar_glm").symlink_to(folder, target_is_directory=True)
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    return tmp_path


def test_a_source_gives_its_own_vectors_and_names_the_rest(study: Study, home: Path, paths: Paths) -> None:
    def given(source: str, *keys: str) -> tuple[str, list[str], list[str]]:
        found = study_vectors(study, source, keys)
        assert all(vectors.source.startswith("REPLICA of ") for vectors in found.vectors.values())
        return found.kind, list(found.vectors), list(found.missing)

    assert given("replica", "phi", "qwen3_4b") == ("replica", ["phi"], ["qwen3_4b"])
    assert given("auto", "solar", "qwen3_4b") == ("stored", [], ["solar", "qwen3_4b"])  # never a replica unasked
    path = home / "data" / "vectors" / "solar_glm" / extract_name("microsoft/Phi-3.5-MoE-instruct", "a" * 40)
    path.parent.mkdir(parents=True)
    shutil.copy(paths["phi"], path)
    assert given("auto", "solar", "phi") == ("stored", ["phi"], ["solar"])  # the two never mix


@pytest.mark.parametrize("lost", ["missing.json", "phi.safetensors"])
def test_a_replica_that_was_not_made_whole_names_the_command_that_makes_it(study: Study, home: Path, lost: str) -> None:
    folder = home / "data" / "replica" / "solar_glm"
    made = folder.resolve()
    folder.unlink()
    shutil.copytree(made, folder, ignore=lambda _, names: {lost} & {*names})
    command = "python run_all.py --study solar_glm --source replica"
    with pytest.raises(StudyError, match=rf"'solar_glm': the vectors of its replica.* not made yet.*: {command}$"):
        study_vectors(study, "replica", ["phi"])


def test_pinned_patterns_have_the_listed_correlations_exactly() -> None:
    patterns = all_patterns(CALIBRATION)
    role = CALIBRATION.pinned_role
    assert len(pinned_places(CALIBRATION)) == 32
    for pair, r in CALIBRATION.correlations.items():
        (model_a, layer_a), (model_b, layer_b) = sorted(pair)
        a, b = patterns[model_a, role][layer_a], patterns[model_b, role][layer_b]
        assert exact_dot(a, b) / len(a) == pytest.approx(r, abs=1e-9), pair


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=-(2.0**100), max_value=2.0**100))
def test_rounding_to_bf16_is_the_rounding_of_ml_dtypes(value: float) -> None:
    expected = np.array([value], dtype=np.float32).astype(ml_dtypes.bfloat16)
    bits = round_to_bf16(np.array([value]))
    assert bits.tolist() == expected.view(np.uint16).tolist()
    assert from_bits(bits).tolist() == expected.astype(np.float64).tolist()
