"""The project's folders, and stored models by name."""

from __future__ import annotations

from pathlib import Path

import pytest

import lnsim
from lnsim.errors import SourceError
from lnsim.paths import find_stored, project_root, stored_models, studies_dir, vectors_dir


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder with stored extracts, found through LNSIM_HOME."""
    (tmp_path / "data" / "studies").mkdir(parents=True)
    for name in ("small/alpha-1", "small/Beta", "other/gamma", "owner--model-7b@0123456789ab", "small/.hidden"):
        path = tmp_path / "data" / "vectors" / f"{name}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (tmp_path / "data" / "vectors" / "small" / "alpha-1.safetensors.part").touch()
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    return tmp_path


def test_the_environment_comes_first_then_the_nearest_folder_above(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert project_root() == home.resolve()
    assert studies_dir() == home.resolve() / "data" / "studies"
    assert vectors_dir() == home.resolve() / "data" / "vectors"
    monkeypatch.setenv("LNSIM_HOME", str(home / "nowhere"))
    with pytest.raises(SourceError, match=r"LNSIM_HOME is '.*nowhere', which has no data/studies"):
        project_root()
    deep = home / "notebooks" / "drafts"
    deep.mkdir(parents=True)
    monkeypatch.delenv("LNSIM_HOME")
    monkeypatch.chdir(deep)
    assert project_root() == home


def test_no_project_folder_at_all_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LNSIM_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("lnsim.paths.__file__", str(tmp_path / "lib" / "lnsim" / "paths.py"))
    with pytest.raises(SourceError, match=r"has data/studies\. Start lnsim inside a clone of the project"):
        project_root()


@pytest.mark.usefixtures("home")
def test_a_stored_model_is_found_by_name_or_repo_whatever_its_capitals() -> None:
    repo = "owner--model-7b@0123456789ab"
    assert list(stored_models()) == ["Beta", "alpha-1", "gamma", repo]  # no hidden and no unfinished files
    for name, file in (("alpha-1", "alpha-1"), ("ALPHA-1", "alpha-1"), ("beta", "Beta")):
        assert find_stored(name).name == f"{file}.safetensors"
    for name in ("owner/model-7b", "Owner/Model-7B", "owner/model-7b@0123456789abcdef", repo):
        assert find_stored(name).name == f"{repo}.safetensors"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("name", ["owner/model-7b@fedcba987654", "owner/model", "alpha", "@", "alpha_1", "zzzzzz"])
def test_another_name_is_not_found_and_is_answered_with_near_ones(name: str) -> None:
    with pytest.raises(SourceError, match=f"There is no stored model '{name}' among the 4 in data/vectors") as caught:
        find_stored(name)
    hints = {"alpha_1": "Did you mean 'alpha-1'?", "zzzzzz": "'lnsim list' names them all"}
    assert hints.get(name, "") in str(caught.value)


def test_two_files_of_one_name_stay_apart_by_their_folders(home: Path) -> None:
    (home / "data" / "vectors" / "other" / "alpha-1.safetensors").touch()
    assert "small/alpha-1" in stored_models()
    assert find_stored("other/alpha-1") == home.resolve() / "data" / "vectors" / "other" / "alpha-1.safetensors"
    with pytest.raises(SourceError, match="'alpha-1' could be any of the stored models 'other/alpha-1', 'small/alpha"):
        find_stored("alpha-1")
    (home / "data" / "vectors" / "owner--model-7b@ba9876543210.safetensors").touch()  # two commits of one repo
    with pytest.raises(SourceError, match=r"'owner/model-7b' could be any of .*@0123456789ab.*@ba9876543210"):
        find_stored("owner/model-7b")


def test_a_project_without_vectors_says_how_to_get_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "studies").mkdir(parents=True)
    monkeypatch.setenv("LNSIM_HOME", str(tmp_path))
    with pytest.raises(SourceError, match=r"data/vectors holds none\. 'lnsim extract' writes one"):
        find_stored("anything")


def test_a_stored_model_is_found_by_its_folder_and_by_the_repo_that_it_was_made_from() -> None:
    assert lnsim.load("zoo/gpt2-code-8").source == "zoo/gpt2-code-8"
    assert lnsim.load("sentence-transformers/all-MiniLM-L6-v2").source == "all-MiniLM-L6-v2"
    assert {"all-minilm-l6-v2", "gpt2-code-8"} <= set(lnsim.stored())
