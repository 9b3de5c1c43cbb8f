"""This file adds one step to the build: a wheel gets copies of the studies, the stored vectors and the notebooks.

In a clone they are folders of their own, where people look for them, and nothing is copied. All else about the package
stands in pyproject.toml.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

BUNDLED = (
    "data/README.md",
    "data/licences/*",
    "data/studies/**/*.toml",
    "data/claims/**/*.csv",
    "data/measured/**/*.csv",
    "data/weights_statistics/*.csv",
    "data/vectors/small_models/*.safetensors",
    "data/vectors/zoo/*.safetensors",
    "data/rows/small_models/*.safetensors",
    "notebooks/*.ipynb",
    "docs/glossary.md",
)
"""What an installed lnsim has of the project; lnsim/paths.py finds it there."""

ROOT = Path(__file__).resolve().parent


class BuildWithData(build_py):
    """The usual step, then the copies, below ``lnsim/bundled``."""

    def run(self) -> None:
        """Build from nothing, so that no file of an earlier build is packed; in a clone, nothing is copied."""
        if not self.editable_mode:
            for package in ("lnsim", "studies"):
                shutil.rmtree(Path(self.build_lib) / package, ignore_errors=True)
        super().run()
        for source, target in self._copies():
            self.mkpath(str(target.parent))
            self.copy_file(str(source), str(target), preserve_mode=False)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """The usual files and the copies."""
        return [*super().get_outputs(include_bytecode), *(str(target) for _, target in self._copies())]

    def _copies(self) -> list[tuple[Path, Path]]:
        if self.editable_mode:
            return []
        sources = sorted(path for pattern in BUNDLED for path in ROOT.glob(pattern) if path.is_file())
        bundle = Path(self.build_lib) / "lnsim" / "bundled"
        return [(source, bundle / source.relative_to(ROOT)) for source in sources]


setup(cmdclass={"build_py": BuildWithData})
