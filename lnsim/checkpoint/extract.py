"""This module joins the readers: a SOURCE in, the norm vectors of a checkpoint out."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from lnsim.checkpoint.kept import kept_reading
from lnsim.checkpoint.opening import IN_FLIGHT, Found, find_source, open_found, open_stored
from lnsim.checkpoint.question import Question
from lnsim.checkpoint.reading import Prepared, Reading, read_norms
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.vectors import NormVectors
from lnsim.paths import vectors_dir

__all__ = ["Extracted", "extract", "extract_and_keep", "load", "read_to_keep"]


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read for a question, and is not written yet.

    Args:
        question: what was asked.
        vectors: the answer; ``path`` is set where the file is there already.
        prepared: the extract; None where the file is there already.
    """

    question: Question
    vectors: NormVectors
    prepared: Prepared | None

    def keep(self, folder: Path, name: str | None = None) -> NormVectors:
        """Write the extract if it is not there, and return the vectors with its path.

        Raises:
            StoreError: when the disk refuses, or the file does not read back the same.
        """
        return self.vectors if self.prepared is None else replace(self.vectors, path=self.prepared.write(folder, name))


def extract(
    source: str | Path,
    roles: str | Iterable[str] | None = None,
    revision: str | None = None,
    *,
    everything: bool = False,
    model_type: str | None = None,
    progress: Progress = no_progress,
) -> NormVectors:
    """Read the norm vectors of a repo on the Hub, folder, safetensors file or stored model; write nothing.

    Args:
        source: what to read: a path, a stored model's name, ``repo@revision/part`` or an address of the Hub.
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
    question = Question.of(source, roles, revision, everything=everything, model_type=model_type)
    reading = _read(find_source(question.source, revision), question, progress)
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
    again: bool = False,
    progress: Progress = no_progress,
) -> NormVectors:
    """Read the norm vectors of a source as ``extract`` does, and keep them as an extract; ``path`` says where.

    What was asked before at the same commit, and lies in the folder, is not read from the Hub again.

    Args:
        source: what to read.
        roles: see ``extract``.
        revision: see ``extract``.
        out: folder for the extract, ``data/vectors`` of the project by default. A source that is a stored extract
            already is not written again unless a folder is given.
        name: file name of the extract; by default made of the repo id and the commit.
        everything: see ``extract``.
        model_type: see ``extract``.
        again: read from the Hub even what is there.
        progress: see ``extract``.

    Raises:
        LnsimError: a sentence on what could not be read or written.
    """
    question = Question.of(source, roles, revision, everything=everything, model_type=model_type)
    found = read_to_keep(question, out, name, again=again, progress=progress)
    return found.keep(vectors_dir() if out is None else out, name)


def read_to_keep(
    question: Question,
    out: Path | None = None,
    name: str | None = None,
    *,
    again: bool = False,
    in_flight: int = IN_FLIGHT,
    progress: Progress = no_progress,
) -> Extracted:
    """Read what a question asks, or find that it was kept before; the arguments are those of ``extract_and_keep``.

    Args:
        question: what is asked.
        out: where it may be kept.
        name: under which name.
        again: read from the Hub even what is there.
        in_flight: requests at once, together with all other reading of the same number.
        progress: told how many reads are done of how many planned.

    Raises:
        LnsimError: a sentence on what could not be read.
    """
    begun = time.perf_counter()
    found = find_source(question.source, question.revision, in_flight=in_flight)
    kept = None if again else kept_reading(found, question, vectors_dir() if out is None else out, name)
    reading = _read(found, question, progress) if kept is None else kept
    path = reading.extract_path if kept is not None or out is None else None
    vectors = replace(reading.vectors(), path=path, seconds=time.perf_counter() - begun)
    if kept is not None:
        traffic = found.traffic
        vectors = replace(vectors, requests=traffic.requests, bytes_received=traffic.bytes_received)
    return Extracted(question, vectors, reading.prepared(question.record()) if path is None else None)


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


def _read(found: Found, question: Question, progress: Progress) -> Reading:
    return read_norms(
        open_found(found, progress=progress),
        question.roles,
        everything=question.everything,
        model_type=question.model_type,
        progress=progress,
    )
