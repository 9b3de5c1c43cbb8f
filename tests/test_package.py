"""The package as a whole: light to import, walls where they should be, two lists of dependencies that agree."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import lnsim

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "lnsim").rglob("*.py"))
HEAVY = ("pandas", "matplotlib", "huggingface_hub", "scipy", "papermill", "nbconvert", "jinja2", "tqdm", "IPython")


def every_module(check: Callable[[Path], None]) -> Callable[[], None]:
    """One test that checks all modules: a thousand items would cost more than what they check."""

    @functools.wraps(check)
    def test() -> None:
        for path in MODULES:
            try:
                check(path)
            except AssertionError as error:
                raise AssertionError(f"{path.relative_to(ROOT)}: {error}") from error

    del test.__wrapped__  # pytest would look for a fixture named path
    return test


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))


def imports(path: Path) -> set[str]:
    """Top-level packages that a module imports anywhere, inside functions too."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


LIGHT = """
v = lnsim.load('all-minilm-l6-v2'); v._repr_html_(); v['post_mlp']._repr_html_()
lnsim.permutation_test(v['post_mlp'].scale, v['post_mlp'].scale, 9)._repr_html_()
lnsim.compare('all-minilm-l6-v2', 'sre-minilm-l6', 'embedding', 9)._repr_html_()
"""


def test_importing_loading_testing_and_showing_load_nothing_heavy() -> None:
    code = f"import sys, lnsim\n{LIGHT}\nprint([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_is_there() -> None:
    assert all(getattr(lnsim, name) is not None for name in lnsim.__all__)
    assert set(lnsim.__all__) <= set(dir(lnsim))
    with pytest.raises(AttributeError, match="module 'lnsim' has no attribute 'nope'"):
        lnsim.nope  # noqa: B018


@every_module
def test_a_module_imports_no_more_than_its_room_allows(path: Path) -> None:
    room = path.relative_to(ROOT / "lnsim").parts[0]
    found = imports(path)
    assert not found & {"httpx", "httpx2", "requests", "urllib3", "socket", "ssl", "http"}
    assert "studies" not in found
    if path.parent.name != "hub":
        assert "huggingface_hub" not in found
    if room in ("checkpoint", "measure", "study"):
        assert not found & {"matplotlib", "seaborn", "nbconvert", "papermill", "jinja2"}
    if room == "measure":
        assert not found & {"os", "pathlib", "io"}


ORDER = ("base", "checkpoint", "measure", "study", "plots", "report", "cli")
"""Data flows one way: a room imports from itself and from those before it, inside functions too."""

ROOMS = dict.fromkeys(("errors", "text", "paths", "version", "tables", "words"), "base")
ROOMS |= {"near_names": "report", "__main__": "cli"}


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module, by its name after ``lnsim``; that of the package itself, which has them all, is cli."""
    name = parts[0] if parts else "cli"
    return "cli" if name.startswith("cli") else ROOMS.get(name, name)


def rooms_imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in nodes(path):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"lnsim.{one.name}" for one in node.names] if node.module == "lnsim" else [node.module]
        found |= {room_of(tuple(name.split(".")[1:])) for name in names if name.split(".")[0] == "lnsim"}
    return found


def test_no_import_runs_upwards() -> None:
    for path in MODULES:
        if path != ROOT / "lnsim" / "__init__.py":  # gives out names of every room, each when it is first used
            room = room_of(path.relative_to(ROOT / "lnsim").with_suffix("").parts)
            assert not [other for other in rooms_imported(path) if ORDER.index(other) > ORDER.index(room)], path


@every_module
def test_a_module_says_what_it_does_first(path: Path) -> None:
    text = ast.get_docstring(parsed(path)) or ""
    assert text.startswith("This module ") or path.name == "__init__.py"
    assert text


@every_module
def test_no_function_is_longer_than_40_lines(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef):
            has_docstring = ast.get_docstring(node) is not None
            body = node.body[1:] if has_docstring else node.body
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= 40, f"{node.name} has {length} lines"


@every_module
def test_no_handler_is_broad_and_no_failure_returns_none(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.ExceptHandler):
            name = ast.unparse(node.type) if node.type else ""
            reraises = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
            assert name not in ("", "Exception", "BaseException") or reraises


@functools.cache
def names_of_studies() -> set[str]:
    """Names of the studies, and keys, labels and repo ids of their models."""
    studies = [lnsim.load_study(path.stem) for path in (ROOT / "data" / "studies").glob("*.toml")]
    models = [model for study in studies for model in study.models]
    found = {text for model in models for text in (model.key, model.label, model.repo_id, model.stored) if text}
    return found | {study.name for study in studies}


@every_module
def test_no_code_knows_the_name_of_a_study_or_of_its_models(path: Path) -> None:
    """Families are known by their model type, and stand in tables of their own."""
    if path.parent.name == "families":
        return
    words = {node.value for node in nodes(path) if isinstance(node, ast.Constant)}
    assert not words & names_of_studies()


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
