"""The package as a whole: light to import, walls where they should be, two lists of dependencies that agree."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import lnsim

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "lnsim").rglob("*.py"))
HEAVY = ("pandas", "matplotlib", "huggingface_hub", "scipy", "papermill", "nbconvert", "jinja2", "tqdm", "IPython")


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text())))


def imported(path: Path) -> set[str]:
    """What a module imports anywhere, inside functions too, as ``package.module``."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"lnsim.{one.name}" for one in node.names} if node.module == "lnsim" else {node.module}
    return found


LIGHT = """
v = lnsim.load('all-minilm-l6-v2'); v._repr_html_(); v['post_mlp']._repr_html_()
lnsim.permutation_test(v['post_mlp'].scale, v['post_mlp'].scale, 9)._repr_html_()
lnsim.compare('all-minilm-l6-v2', 'sre-minilm-l6', 'embedding', 9)._repr_html_()
import lnsim.cli; lnsim.cli.run(['compare', 'all-minilm-l6-v2', 'sre-minilm-l6', '--json'])
"""


def test_importing_loading_testing_showing_and_comparing_load_nothing_heavy_and_say_nothing_else() -> None:
    code = f"import sys, lnsim\n{LIGHT}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    compared, loaded = done.stdout.splitlines()
    assert json.loads(compared)["roles"]["post_mlp"]["pvalue"] == 0.0001
    assert (loaded, done.stderr) == ("[]", "")


def test_every_public_name_is_there() -> None:
    assert all(getattr(lnsim, name) is not None for name in lnsim.__all__)
    assert dir(lnsim) == sorted([*lnsim.__all__, "__version__"])
    with pytest.raises(AttributeError, match="module 'lnsim' has no attribute 'nope'"):
        lnsim.nope  # noqa: B018


def test_a_module_imports_no_more_than_its_room_allows() -> None:
    for path in MODULES:
        room = path.relative_to(ROOT / "lnsim").parts[0]
        banned = {"httpx", "httpx2", "requests", "urllib3", "socket", "ssl", "http", "studies"}
        banned |= set() if path.parent.name == "hub" else {"huggingface_hub"}
        if room in ("checkpoint", "measure", "study"):
            banned |= {"matplotlib", "seaborn", "nbconvert", "papermill", "jinja2"}
        banned |= {"os", "pathlib", "io"} if room == "measure" else set()
        assert not {name.split(".")[0] for name in imported(path)} & banned, path


ORDER = ("base", "checkpoint", "measure", "study", "plots", "atlas", "report", "cli")
"""Data flows one way: a room imports from itself and from those before it, inside functions too."""

ROOMS = dict.fromkeys(("errors", "text", "paths", "version", "tables", "words"), "base")
ROOMS |= {"near_names": "report", "__main__": "cli"}


def room_of(module: str) -> str:
    """The room of ``lnsim.module``; that of the package itself, which has them all, is cli."""
    name = module.partition(".")[2].partition(".")[0] or "cli"
    return "cli" if name.startswith("cli") else ROOMS.get(name, name)


def test_no_import_runs_upwards() -> None:
    for path in MODULES:
        if path != ROOT / "lnsim" / "__init__.py":  # gives out names of every room, each when it is first used
            room = room_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
            others = [room_of(name) for name in imported(path) if name.split(".")[0] == "lnsim"]
            assert not [other for other in others if ORDER.index(other) > ORDER.index(room)], path


def test_a_module_says_what_it_does_first_and_no_function_is_longer_than_40_lines() -> None:
    for path in MODULES:
        text = ast.get_docstring(nodes(path)[0]) or ""  # type: ignore[arg-type]
        assert text.startswith("This module ") or (text and path.name == "__init__.py"), path
        for node in nodes(path):
            if isinstance(node, ast.FunctionDef):
                body = node.body[1:] if ast.get_docstring(node) is not None else node.body
                length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
                assert length <= 40, f"{path}: {node.name} has {length} lines"


def test_no_code_knows_the_name_of_a_study_or_of_its_models() -> None:
    """Families are known by their model type, and stand in tables of their own."""
    studies = [lnsim.load_study(path.stem) for path in (ROOT / "data" / "studies").glob("*.toml")]
    models = [model for study in studies for model in study.models]
    names = {text for model in models for text in (model.key, model.label, model.repo_id, model.stored) if text}
    names |= {study.name for study in studies}
    for path in MODULES:
        words = {node.value for node in nodes(path) if isinstance(node, ast.Constant)}
        assert path.parent.name == "families" or not words & names, path


def test_the_readme_names_every_notebook() -> None:
    text = (ROOT / "README.md").read_text()
    assert not [path.name for path in (ROOT / "notebooks").glob("*.ipynb") if path.name not in text]


def test_environment_yml_lists_the_same_names_and_bounds_as_pyproject() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    entries = [Requirement(entry) for entry in environment["dependencies"] if isinstance(entry, str)]
    conda = {req.name.lower(): str(req.specifier) for req in entries if req.name != "pip"}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pip = {req.name.lower(): str(req.specifier) for req in map(Requirement, project["dependencies"])}
    assert conda == pip | {"python": project["requires-python"]}


def test_no_host_of_a_registry_and_no_path_of_a_machine_is_in_the_repo() -> None:
    done = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=True)
    hosts = [f"{name}.org" for name in ("pypi", "pythonhosted", "registry.npmjs", "conda.anaconda", "deb.debian")]
    machine = ["/" + "root/", "/" + "work/", "/" + "tmp/w", "/" + "home/"]
    for name in filter(None, done.stdout.split("\n")):
        data = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        text = data.decode("utf-8", "ignore")
        assert not [word for word in hosts + machine if word in text], name
