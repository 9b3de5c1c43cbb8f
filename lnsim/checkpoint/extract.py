"""This module joins the readers: a SOURCE in, the norm vectors of a checkpoint out."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lnsim.checkpoint.opening import open_checkpoint, open_stored
from lnsim.checkpoint.reading import read_norms
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.vectors import NormVectors

__all__ = ["extract", "load"]


def extract(
    source: str | Path,
    roles: str | Iterable[str] | None = None,
    revision: str | None = None,
    *,
    everything: bool = False,
    model_type: str | None = None,
    out: Path | None = None,
    name: str | None = None,
    progress: Progress = no_progress,
) -> NormVectors:
    """Read the norm vectors of a repo id, ``repo@revision``, folder, safetensors file or stored model.

    Args:
        source: what to read.
        roles: roles to read, by lnsim's names (``pre_attention``, ``encoder/pre_mlp``) or the Llama family's; by
            default every role of the main tower and of an MTP block.
        revision: branch, tag or commit, for a repo id.
        everything: read every other norm as well, as ``other/...`` where it has no role.
        model_type: read the checkpoint as this family, whatever its config says.
        out: folder to keep an extract in; by default nothing is written.
        name: file name of the extract; by default made of the repo id and the commit.
        progress: told how many reads are done of how many planned.

    Raises:
        LnsimError: a sentence on what could not be read and what to do.
    """
    begun = time.perf_counter()
    wanted = (roles,) if isinstance(roles, str) else roles
    opened = open_checkpoint(str(source), revision, progress=progress)
    reading = read_norms(opened, wanted, everything=everything, model_type=model_type, progress=progress)
    vectors = reading.vectors()
    path = None if out is None else reading.write(out, name)
    return replace(vectors, path=path, seconds=time.perf_counter() - begun)


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
