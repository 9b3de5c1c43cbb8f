"""This module joins the readers: a SOURCE in, the norm vectors of a checkpoint out."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lnsim.checkpoint.opening import open_checkpoint, open_stored
from lnsim.checkpoint.reading import Reading, read_norms
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.vectors import NormVectors
from lnsim.paths import vectors_dir

__all__ = ["extract", "extract_and_keep", "load"]


def extract(
    source: str | Path,
    roles: str | Iterable[str] | None = None,
    revision: str | None = None,
    *,
    everything: bool = False,
    model_type: str | None = None,
    progress: Progress = no_progress,
) -> NormVectors:
    """Read the norm vectors of a repo id, ``repo@revision``, folder, safetensors file or stored model; write nothing.

    Args:
        source: what to read.
        roles: roles to read, by lnsim's names (``pre_attention``, ``encoder/pre_mlp``) or the Llama family's; by
            default every role of the main tower and of an MTP block.
        revision: branch, tag or commit, for a repo id.
        everything: read every other norm as well, as ``other/...`` where it has no role.
        model_type: read the checkpoint as this family, whatever its config says.
        progress: told how many reads are done of how many planned.

    Raises:
        LnsimError: a sentence on what could not be read and what to do.
    """
    begun = time.perf_counter()
    reading = _read(source, roles, revision, everything, model_type, progress)
    return replace(reading.vectors(), seconds=time.perf_counter() - begun)


def extract_and_keep(
    source: str | Path,
    roles: str | Iterable[str] | None = None,
    revision: str | None = None,
    *,
    out: Path | None = None,
    name: str | None = None,
    everything: bool = False,
    model_type: str | None = None,
    progress: Progress = no_progress,
) -> NormVectors:
    """Read the norm vectors of a source as ``extract`` does, and keep them as an extract; ``path`` says where.

    Args:
        source: what to read.
        roles: see ``extract``.
        revision: see ``extract``.
        out: folder for the extract, ``data/vectors`` of the project by default. A source that is a stored extract
            already is not written again unless a folder is given.
        name: file name of the extract; by default made of the repo id and the commit.
        everything: see ``extract``.
        model_type: see ``extract``.
        progress: see ``extract``.

    Raises:
        LnsimError: a sentence on what could not be read or written.
    """
    begun = time.perf_counter()
    reading = _read(source, roles, revision, everything, model_type, progress)
    vectors = reading.vectors()
    path = reading.extract_path if out is None else None
    if path is None:
        path = reading.write(vectors_dir() if out is None else out, name)
    return replace(vectors, path=path, seconds=time.perf_counter() - begun)


def _read(
    source: str | Path,
    roles: str | Iterable[str] | None,
    revision: str | None,
    everything: bool,
    model_type: str | None,
    progress: Progress,
) -> Reading:
    wanted = (roles,) if isinstance(roles, str) else roles
    opened = open_checkpoint(str(source), revision, progress=progress)
    return read_norms(opened, wanted, everything=everything, model_type=model_type, progress=progress)


def load(source: str | Path) -> NormVectors:
    """Read a stored model by name, or a folder or file on disk; never the network.

    Raises:
        SourceError: when there is neither; near names are suggested.

    >>> load("SmolLM2-135M-Instruct")["pre_attention"].scale.shape
    (30, 576)
    """
    begun = time.perf_counter()
    vectors = read_norms(open_stored(str(source))).vectors()
    return replace(vectors, seconds=time.perf_counter() - begun)
