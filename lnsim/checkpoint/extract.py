"""This module joins the readers: a SOURCE in, the norm vectors of a checkpoint out, kept as an extract where asked."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from lnsim.checkpoint.format.header import Header
from lnsim.checkpoint.local import open_local
from lnsim.checkpoint.naming import Origin, choose_paths, origin_of
from lnsim.checkpoint.opening import IN_FLIGHT, Found, find_source, open_found, open_stored
from lnsim.checkpoint.reading import Question, Reading, read_norms
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.store import (
    ANSWERS_KEY,
    ROLES_KEY,
    Provenance,
    StoredTensor,
    json_texts,
    kept_header,
    provenance_at,
    read_provenance,
    write_extract,
)
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import LnsimError, StoreError
from lnsim.paths import vectors_dir

__all__ = ["Extracted", "Plan", "extract", "extract_and_keep", "find_to_keep", "load", "place", "read", "read_to_keep"]


@dataclass(frozen=True, slots=True)
class Plan:
    """A question whose source is known, before anything of it is read.

    Args:
        question: what is asked.
        found: what its source names.
        origin: what that is; None where nothing will be written.
        path: where the extract goes; None where nothing will be written.
        begun: when the first of it was asked for.
    """

    question: Question
    found: Found
    origin: Origin | None
    path: Path | None
    begun: float


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read for a question, and is not written yet.

    Args:
        question: what was asked.
        vectors: the answer; ``path`` is set where the file is there already.
        prepared: what is written; None where the file is there already.
        path: where it goes; None where nobody said so.
    """

    question: Question
    vectors: NormVectors
    prepared: tuple[tuple[StoredTensor, ...], Provenance] | None = field(repr=False)
    path: Path | None = None

    def keep(self, path: Path | None = None) -> NormVectors:
        """Write the extract if it is not there, and return the vectors with its path.

        Raises:
            StoreError: when the disk refuses, another file has the name, or the file does not read back the same.
        """
        target = path or self.path
        if self.prepared is None or target is None:
            return self.vectors
        return replace(self.vectors, path=write_extract(target, *self.prepared))


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
        roles: roles to read, by lnsim's names (``pre_attention``, ``encoder/pre_mlp``), the Llama family's, or a
            tower's (``encoder``) for all of its roles; by default every role of the main tower and of an MTP block.
        revision: branch, tag or commit, for a repo id.
        everything: read every other norm as well, as ``other/...`` where it has no role.
        model_type: read the checkpoint as this family, whatever its config says.
        progress: told how many reads are done of how many planned.

    Raises:
        LnsimError: a sentence on what could not be read and what to do.
    """
    begun = time.perf_counter()
    question = Question.of(source, roles, revision, everything=everything, model_type=model_type)
    opened = open_found(find_source(question.source, revision), progress=progress)
    return replace(read_norms(opened, question, progress=progress).vectors(), seconds=time.perf_counter() - begun)


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

    What was asked before at the same commit, and lies in the folder, is not read from the Hub again. A file that is no
    extract of the same source is never replaced, and what such an extract holds stays in it.

    Args:
        source: what to read.
        roles: see ``extract``.
        revision: see ``extract``.
        out: folder for the extract, ``data/vectors`` of the project by default. A source that is a stored extract
            already is not written again unless a folder is given.
        name: file name of the extract; by default made of the repo id and the commit, or of the path.
        everything: see ``extract``.
        model_type: see ``extract``.
        again: read from the Hub even what is there.
        progress: see ``extract``.

    Raises:
        LnsimError: a sentence on what could not be read or written.
    """
    question = Question.of(source, roles, revision, everything=everything, model_type=model_type)
    (planned,) = place([find_to_keep(question, out)], out, name)
    if isinstance(planned, StoreError):
        raise planned
    return read_to_keep(planned, again=again, progress=progress).keep()


def find_to_keep(question: Question, out: Path | None = None, *, in_flight: int = IN_FLIGHT) -> Plan:
    """Find what a question's source is, and that of a repo its commit; nothing of it is read.

    Args:
        question: what is asked.
        out: folder for the extract, as for ``extract_and_keep``.
        in_flight: requests at once, together with all other reading of the same number.

    Raises:
        LnsimError: a sentence on what is not there.
    """
    begun = time.perf_counter()
    found = find_source(question.source, question.revision, in_flight=in_flight)
    stays = out is None and found.path is not None and provenance_at(found.path) is not None
    return Plan(question, found, None if stays else origin_of(found), None, begun)


def place(plans: Iterable[Plan], out: Path | None, name: str | None = None) -> list[Plan | StoreError]:
    """The same plans with the paths of their extracts, all of them known and checked; or why there is none.

    Args:
        plans: of one call.
        out: folder for the extracts.
        name: file name, for a single plan.
    """
    plans, folder = list(plans), vectors_dir() if out is None else out
    origins = [plan.origin if name is None else replace(plan.origin, names=(name,)) for plan in plans if plan.origin]
    paths = iter(choose_paths(origins, folder))
    return [_placed(plan, None if plan.origin is None else next(paths)) for plan in plans]


def _placed(plan: Plan, path: Path | StoreError | None) -> Plan | StoreError:
    return path if isinstance(path, StoreError) else replace(plan, path=path)


def read(question: Question, *, in_flight: int = IN_FLIGHT, progress: Progress = no_progress) -> Extracted:
    """Read what a question asks and plan no extract; what ``data/vectors`` holds of the same commit is taken.

    Raises:
        LnsimError: a sentence on what could not be read.
    """
    begun = time.perf_counter()
    found = find_source(question.source, question.revision, in_flight=in_flight)
    folder = vectors_dir()
    known = found.repo_name is not None and any(folder.glob(f"{_beginning(found)}*"))
    origin = origin_of(found) if known else None  # else its commit can be asked for when it is opened
    path = None if origin is None else folder / origin.names[0]
    return read_to_keep(Plan(question, found, origin, path, begun), progress=progress)


def _beginning(found: Found) -> str:
    return "" if found.repo_name is None else found.repo_name.repo_id.replace("/", "--")


def read_to_keep(plan: Plan, *, again: bool = False, progress: Progress = no_progress) -> Extracted:
    """Read what is planned, or find that it was kept before.

    Args:
        plan: with its path, where it is to be kept.
        again: read from the Hub even what is there.
        progress: told how many reads are done of how many planned.

    Raises:
        LnsimError: a sentence on what could not be read.
    """
    found, question = plan.found, plan.question
    kept = _kept(plan)
    reading = None if again or found.repo_name is None else _kept_reading(plan, kept)
    if reading is not None:
        traffic, path, prepared = found.traffic, plan.path, None
    else:
        opened = open_found(found, progress=progress)
        reading = read_norms(opened, question, keep=kept.tensors if kept else (), progress=progress)
        traffic, path = opened.traffic, reading.extract_path if plan.path is None else None
        prepared = None if path else _prepared(reading, plan, kept)
    vectors = replace(
        reading.vectors(),
        path=path,
        requests=traffic.requests,
        bytes_received=traffic.bytes_received,
        seconds=time.perf_counter() - plan.begun,
    )
    return Extracted(question, vectors, prepared, plan.path)


def _kept(plan: Plan) -> Header | None:
    """The header of the extract that lies where this one would: of the same source and commit, so the two can be one.

    It may be damaged behind its header.
    """
    header = None if plan.origin is None or plan.path is None else kept_header(plan.path)
    provenance = None if header is None else read_provenance(header)
    if plan.origin is None or provenance is None:
        return None
    same = (provenance.identity, provenance.commit) == (plan.origin.identity, plan.origin.commit)
    return header if same else None


def _texts(kept: Header | None, key: str) -> tuple[str, ...]:
    """A list that the extract has on record; a damaged record answers nothing, and the vectors stay all the same."""
    try:
        return () if kept is None else json_texts(kept.metadata, key)
    except StoreError:
        return ()


def _kept_reading(plan: Plan, kept: Header | None) -> Reading | None:
    """The answer to a question about a repo at a commit; None where no extract holds it, or it is damaged."""
    answered = plan.question.answered_by(_texts(kept, ANSWERS_KEY), _texts(kept, ROLES_KEY))
    if plan.path is None or not answered:
        return None
    try:
        # The family that was named, if any, stands in the extract's config.
        return read_norms(open_local(plan.path), replace(plan.question, model_type=None), as_asked=True)
    except LnsimError:
        return None  # it is read anew, and replaced


def _prepared(reading: Reading, plan: Plan, kept: Header | None) -> tuple[tuple[StoredTensor, ...], Provenance]:
    answers = () if plan.found.repo_name is None else (*_texts(kept, ANSWERS_KEY), plan.question.record())
    identity = None if plan.origin is None else plan.origin.identity
    return reading.prepared(identity, answers, _texts(kept, ROLES_KEY))


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
