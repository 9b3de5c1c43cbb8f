"""What is installed: a wheel with the studies and stored vectors, exact versions, a citation that agrees."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files

import lnsim
from lnsim.paths import find_stored, notebooks_dir, project_root, stored_models, studies_dir, vectors_dir, working_root

ROOT = Path(__file__).resolve().parents[1]
_PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT, SETUP = _PYPROJECT["project"], _PYPROJECT["tool"]["setuptools"]["package-data"]
BUNDLED = ("data/studies/", "data/vectors/small_models/", "data/vectors/zoo/", "data/claims/", "data/licences/")


def test_the_lock_names_every_dependency_within_its_bounds_each_package_once_in_order_and_no_server() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "http" not in re.sub(r"^http(core|x)2?==", "", text, flags=re.MULTILINE)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[a-z0-9.]+", line) for line in lines)
    versions = dict(line.split("==") for line in lines)
    assert list(versions) == sorted(versions)
    assert len(versions) == len(lines)
    assert all(Version(version) for version in versions.values())
    for requirement in map(Requirement, PROJECT["dependencies"]):
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), requirement


def test_the_citation_has_what_the_format_asks_for_and_the_version_of_the_package_which_is_typed() -> None:
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert found["cff-version"] == "1.2.0"
    assert found["authors"] == [{"name": "lnsim contributors"}]
    assert all(isinstance(found[key], str) and found[key] for key in ("message", "title", "abstract"))
    assert (found["type"], found["license"]) == ("software", PROJECT["license"])
    assert "py.typed" in SETUP["lnsim"]
    assert (ROOT / "lnsim" / "py.typed").is_file()
    assert str(found["version"]) == lnsim.__version__ == PROJECT["version"]
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{lnsim.__version__}] - {found['date-released']}" in changes


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with its bundle, outside any clone; returns the working directory, which is empty."""
    package, here = tmp_path / "site" / "lnsim", tmp_path / "here"
    for name in ("data/studies/a.toml", "data/vectors/a/one.safetensors", "notebooks/00_a.ipynb"):
        path = package / "bundled" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    here.mkdir()
    monkeypatch.delenv("LNSIM_HOME", raising=False)
    monkeypatch.setattr("lnsim.paths.__file__", str(package / "paths.py"))
    monkeypatch.chdir(here)
    return here


def test_an_installed_package_writes_to_the_working_directory(installed: Path) -> None:
    bundle = installed.parent / "site" / "lnsim" / "bundled"
    assert project_root() == bundle
    assert (studies_dir(), notebooks_dir()) == (bundle / "data" / "studies", bundle / "notebooks")
    assert (working_root(), vectors_dir()) == (installed, installed / "data" / "vectors")
    own = installed / "data" / "vectors" / "two.safetensors"
    own.parent.mkdir(parents=True)
    own.touch()
    assert list(stored_models()) == ["one", "two"]
    assert find_stored("two") == own
    (own.parent / "one.safetensors").touch()
    assert list(stored_models()) == ["a/one", "one", "two"]


def test_a_project_folder_comes_before_the_bundle(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = installed.parent / "project"
    (project / "data" / "studies").mkdir(parents=True)
    monkeypatch.chdir(project)
    assert project_root() == working_root() == project
    assert not stored_models()
    assert notebooks_dir() == installed.parent / "site" / "lnsim" / "bundled" / "notebooks"


def built(kind: str, source: Path, out: Path) -> Path:
    """A wheel or a source distribution, made as pip makes it, with what is installed already."""
    code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(out)!r}))"
    out.mkdir(exist_ok=True)
    done = subprocess.run([sys.executable, "-c", code], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git would hold of this folder: no build, no cache, no report."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    names = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    target = tmp_path_factory.mktemp("clone")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target / name)
    return target


@pytest.fixture(scope="module")
def wheel(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    left_over = clone / "build" / "lib" / "lnsim" / "left_over.py"
    left_over.parent.mkdir(parents=True)
    left_over.touch()
    return built("wheel", clone, tmp_path_factory.mktemp("wheel"))


@pytest.mark.slow
def test_the_wheel_has_all_modules_and_the_whole_bundle_and_nothing_left_over(clone: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    # The zoo works in a clone only.
    studies = ["studies/*.py", *(f"studies/{one}/*" for one in ("claims", "controls", "projections", "replica", "run"))]
    folders = [path for pattern in ("lnsim/**/*", *studies) for path in clone.glob(pattern)]
    modules = {path.relative_to(clone).as_posix() for path in folders if path.is_file()}
    bundled = [
        path.relative_to(clone).as_posix()
        for folder in (*BUNDLED, "notebooks/")
        for path in (clone / folder).rglob("*")
        if path.suffix in (".toml", ".csv", ".safetensors", ".ipynb", ".txt", ".md") and path.name != "README.md"
    ]
    assert len(bundled) > 30
    assert {f"lnsim/bundled/{name}" for name in [*bundled, "data/README.md"]} <= names
    others = {name for name in names if not name.startswith(("lnsim/bundled/", "lnsim-"))}
    assert others == modules
    assert wheel.stat().st_size < 8_000_000


@pytest.mark.slow
def test_a_source_distribution_builds_the_same_wheel(clone: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(built("sdist", clone, tmp_path / "sdist")) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    (source,) = (tmp_path / "source").iterdir()
    again = built("wheel", source, tmp_path / "again")
    assert set(zipfile.ZipFile(again).namelist()) == set(zipfile.ZipFile(wheel).namelist())


@pytest.mark.slow
def test_an_installed_wheel_works_outside_the_repo_and_leaves_itself_as_it_was(wheel: Path, tmp_path: Path) -> None:
    site, here = tmp_path / "site", tmp_path / "here"
    here.mkdir()
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([*pip, "--target", str(site), str(wheel)], check=True, capture_output=True)
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*") if path.is_file()}

    def typed(*words: str) -> str:
        environment = {name: value for name, value in os.environ.items() if name != "LNSIM_HOME"}
        environment |= {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "lnsim", *words]
        done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = json.loads(typed("list", "--json"))
    assert {study["name"] for study in listed["studies"]} >= {"small_models", "solar_glm"}
    places = {model["name"]: model["path"] for model in listed["models"]}
    assert Path(places["all-minilm-l6-v2"]).is_relative_to(site / "lnsim" / "bundled")
    assert "Verdict: Strong shared-origin signal" in typed("compare", "all-minilm-l6-v2", "sre-minilm-l6")
    assert not list(here.iterdir())

    write_files(here / "mine", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    kept = Path(json.loads(typed("extract", "./mine", "--json"))["path"])
    assert (here / kept).parent == here / "data" / "vectors"
    places = {model["name"]: model["path"] for model in json.loads(typed("list", "--json"))["models"]}
    assert f"data/vectors/{kept.name}" in places.values()
    assert "all-minilm-l6-v2" in places
    code = "from studies.claims import judging; from studies.claims.rows import cosines_of_003; cosines_of_003()"
    where = {"PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", code], cwd=here, env=where, check=True)
    assert {path: path.stat().st_mtime_ns for path in site.rglob("*") if path.is_file()} == before
