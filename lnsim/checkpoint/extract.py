"""This module joins the readers: SOURCEs in, many at once, and their norm vectors out, kept as extracts where asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from lnsim.checkpoint import opening, store
from lnsim.checkpoint.format.header import Header
from lnsim.checkpoint.local import open_local
from lnsim.checkpoint.reading import Question, Reading, read_norms
from lnsim.checkpoint.source import Progress, no_progress, shared_progress
from lnsim.checkpoint.vectors import NormVectors, same_stored
from lnsim.checkpoint.weight_rows import RECORD_KEY, is_piece
from lnsim.errors import LnsimError, StoreError
from lnsim.paths import vectors_dir

# Checkpoints read at once: enough that some can ask while others think. Ten would hold 8 MiB more of headers.
_AT_ONCE = 4

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Plan:
    """A question whose source is known, before anything of it is read."""

    question: Question
    found: opening.Found
    origin: opening.Origin | None  # None, as the path, where nothing will be written
    path: Path | None  # where the extract goes
    begun: float  # when it was first asked about


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was read for a question, and is not written yet."""

    question: Question
    vectors: NormVectors
    # What ``write_extract`` takes; None where the file is there.
    prepared: tuple[tuple[store.StoredTensor, ...], store.Provenance] | None = field(repr=False)
    path: Path | None = None  # where it goes, if anybody said

    def keep(self, path: Path | None = None) -> NormVectors:
        """Write the extract if it is not there, and return the vectors with its path; raises as ``write_extract``."""
        target = path or self.path
        if self.prepared is None or target is None:
            return self.vectors
        return replace(self.vectors, path=store.write_extract(target, *self.prepared))


def extract(
    source: str | Path,
    roles: str | Iterable[str] | None = None,
    revision: str | None = None,
    *,
    everything: bool = False,
    model_type: str | None = None,
    evidence: bool = False,
) -> NormVectors:
    """Read the norm vectors of a SOURCE, as the command line takes it; write nothing.

    By default every role of the main tower and of an MTP block is read. ``roles`` are lnsim's names
    (``pre_attention``, ``encoder/pre_mlp``), the Llama family's, or a tower's (``encoder``) for all of its roles;
    ``everything`` reads every other norm as well, as ``other/...`` where it has no role; ``evidence`` the matrix rows
    of ``weight_rows`` too, for the tests beyond norms. The checkpoint is read as the family of ``model_type``, whatever
    its config says. LnsimError is a sentence on what could not be read and what to do.
    """
    begun = time.perf_counter()
    question = Question.of(source, roles, revision, everything=everything, model_type=model_type, evidence=evidence)
    opened = opening.open_checkpoint(question.source, revision)
    return replace(read_norms(opened, question).vectors(), seconds=time.perf_counter() - begun)


def extract_and_keep(
    source: str | Path,
    roles: str | Iterable[str] | None = None,
    revision: str | None = None,
    *,
    out: Path | None = None,
    name: str | None = None,
    again: bool = False,
    **how: Any,
) -> NormVectors:
    """Read the norm vectors of a source, asked for as of ``extract``, and keep them as ``extract_many`` does."""
    question = Question.of(source, roles, revision, **how)
    (found,) = extract_many([question], out=out, name=name, again=again)
    if isinstance(found, LnsimError):
        raise found
    return found


def extract_many(
    questions: Sequence[Question],
    *,
    out: Path | None = None,
    name: str | None = None,
    again: bool = False,
    in_flight: int = opening.IN_FLIGHT,
    progress: Progress = no_progress,
) -> Iterator[NormVectors | LnsimError]:
    """Read the norm vectors of every source and keep them as extracts; one that fails does not stop the others.

    For each question in turn come its vectors, whose ``path`` is the extract, or the error that says why there are
    none. What each source is, and where its extract goes, is known of all of them before the first is read. What was
    asked before at the same commit is not read from the Hub again. A file that is no extract of the same source is
    never replaced, and what such an extract holds stays in it. Only the calling thread writes files.

    Extracts go to ``out``, by default ``data/vectors``, where a stored one is not written again, under a ``name`` for a
    single question, by default made of the repo id and the commit, or of the path. ``again`` reads from the Hub even
    what is there; ``in_flight`` are requests at once, of all sources together.
    """
    find = partial(_find, stays=out is None, in_flight=in_flight)
    found = list(_answers(questions, find, lambda plan: plan, no_progress))
    origins = [plan.origin for plan in found if isinstance(plan, _Plan) and plan.origin is not None]
    origins = [replace(origin, names=(name,)) for origin in origins] if name else origins
    paths = iter(opening.choose_paths(origins, out or vectors_dir()))
    plans: list[_Plan | LnsimError] = []
    for plan in found:
        if isinstance(plan, _Plan) and plan.origin is not None:
            path = next(paths)
            plan = path if isinstance(path, StoreError) else replace(plan, path=path)
        plans.append(plan)
    good = [plan for plan in plans if isinstance(plan, _Plan)]
    answers = _answers(good, partial(_read, again=again), Extracted.keep, progress)
    return (next(answers) if isinstance(plan, _Plan) else plan for plan in plans)


def read_many(questions: Sequence[Question], *, progress: Progress = no_progress) -> Iterator[Extracted | LnsimError]:
    """Read every source, or what was kept of the same commit, and write nothing: answers or errors, in turn."""
    return _answers(questions, _look_and_read, lambda found: found, progress)


def read_pair(
    a: Question, b: Question, *, progress: Progress = no_progress
) -> tuple[Extracted | LnsimError, Extracted | LnsimError]:
    """Read two sources that are to be compared, both in the same sense, and write nothing.

    Where their main towers differ, both are read anew by a tower that they have in common; where the file of one does
    not tell whether it stores γ minus one, and has the very bits of the other, it is read as that family.
    """
    found = list(read_many([a, b], progress=progress))
    for change in (_by_one_tower, _as_one_family):
        one, other = found
        if isinstance(one, LnsimError) or isinstance(other, LnsimError):
            break
        asked = change(one, other)
        if asked != (one.question, other.question):
            found = list(read_many(asked, progress=progress))
    return found[0], found[1]


def load(source: str | Path, evidence: bool = False) -> NormVectors:
    """Read a stored model by name, or a folder or file on disk; SourceError, with near names, where there is neither.

    With `evidence`, the matrix rows of ``weight_rows`` come along, of a stored model those that were kept.

    >>> load("SmolLM2-135M-Instruct")["pre_attention"].scale.shape
    (30, 576)
    """
    begun = time.perf_counter()
    opened = opening.open_stored(str(source))
    vectors = read_norms(opened, Question(opened.source, evidence=evidence)).vectors()
    return replace(vectors, seconds=time.perf_counter() - begun)


def _find(question: Question, *, stays: bool, in_flight: int, progress: Progress) -> _Plan:
    """Find what a question's source is, and of a repo its commit; an extract that ``stays`` is not written again."""
    begun = time.perf_counter()
    found = opening.find_source(question.source, question.revision, in_flight=in_flight)
    stays = stays and found.path is not None and store.provenance_at(found.path) is not None
    return _Plan(question, found, None if stays else opening.origin_of(found), None, begun)


def _look_and_read(question: Question, *, progress: Progress) -> Extracted:
    """Read what a question asks and plan no extract; what ``data/vectors`` holds of the same commit is taken."""
    begun, folder = time.perf_counter(), vectors_dir()
    found = opening.find_source(question.source, question.revision)
    name = found.repo_name
    # Where nothing of the repo was kept, its commit can be asked for when it is opened.
    known = name is not None and any(folder.glob(f"{name.repo_id.replace('/', '--')}*"))
    origin = opening.origin_of(found) if known else None
    path = None if origin is None else folder / origin.names[0]
    return _read(_Plan(question, found, origin, path, begun), progress=progress)


def _read(plan: _Plan, *, again: bool = False, progress: Progress) -> Extracted:
    """Read what is planned, or find that it was kept before."""
    found, question = plan.found, plan.question
    kept = _kept(plan)
    reading = None if again or found.repo_name is None else _kept_reading(plan, kept)
    if reading is not None:
        traffic, path, prepared = found.traffic, plan.path, None
    else:
        opened = opening.open_found(found, progress=progress)
        held = kept is not None and RECORD_KEY in kept.metadata  # rows that it keeps are read again, whoever asks
        keep = [name for name in kept.tensors if not is_piece(name)] if kept else ()
        reading = read_norms(
            opened, replace(question, evidence=question.evidence or held), keep=keep, progress=progress
        )
        traffic, path = opened.traffic, reading.extract_path if plan.path is None else None
        answers = () if found.repo_name is None else (*_texts(kept, store.ANSWERS_KEY), question.record())
        identity = None if plan.origin is None else plan.origin.identity
        prepared = None if path else reading.prepared(identity, answers, _texts(kept, store.ROLES_KEY))
    vectors = replace(
        reading.vectors(),
        path=path,
        requests=traffic.requests,
        bytes_received=traffic.bytes_received,
        seconds=time.perf_counter() - plan.begun,
    )
    return Extracted(question, vectors, prepared, plan.path)


def _kept(plan: _Plan) -> Header | None:
    """The header of the extract that lies where this one would, if of the same source and commit."""
    header = None if plan.path is None else store.kept_header(plan.path)
    known = None if header is None else store.read_provenance(header)
    if known is None or plan.origin is None:
        return None
    return header if (known.identity, known.commit) == (plan.origin.identity, plan.origin.commit) else None


def _texts(kept: Header | None, key: str) -> tuple[str, ...]:
    """A list that the extract has on record; a damaged record answers nothing, and the vectors stay all the same."""
    try:
        return () if kept is None else store.json_texts(kept.metadata, key)
    except StoreError:
        return ()


def _kept_reading(plan: _Plan, kept: Header | None) -> Reading | None:
    """The answer to a question about a repo at a commit; None where no extract holds it, or it is damaged."""
    answered = plan.question.answered_by(_texts(kept, store.ANSWERS_KEY), _texts(kept, store.ROLES_KEY))
    if plan.path is None or not answered:
        return None
    try:
        # The family that was named, if any, stands in the extract's config.
        return read_norms(open_local(plan.path), replace(plan.question, model_type=None), as_asked=True)
    except LnsimError:
        return None  # it is read anew, and replaced


def _by_one_tower(a: Extracted, b: Extracted) -> tuple[Question, Question]:
    towers = [one.vectors.main_tower for one in (b, a)]
    if towers[0] != towers[1]:
        for tower in (*towers, *a.vectors.towers):
            if tower != "mtp" and all(tower in one.vectors.towers for one in (a, b)):
                return replace(a.question, tower=tower), replace(b.question, tower=tower)
    return a.question, b.question


def _as_one_family(a: Extracted, b: Extracted) -> tuple[Question, Question]:
    def like(asked: Question, own: NormVectors, other: NormVectors) -> Question:
        told = not own.offset.decided and other.offset.decided and other.offset.value
        return replace(asked, model_type=other.model_type) if told and same_stored(own, other) else asked

    return like(a.question, a.vectors, b.vectors), like(b.question, b.vectors, a.vectors)


def _answers(
    items: Sequence[A], work: Callable[..., B], finish: Callable[[B], T], progress: Progress
) -> Iterator[T | LnsimError]:
    """What `finish` makes of the work on each item, in their order; it is called as the results come in."""
    if len(items) == 1:
        yield _finished(lambda: work(items[0], progress=progress), finish)
        return
    progress_of = shared_progress(progress)
    done: dict[Future[B], T | LnsimError] = {}
    pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="lnsim-model")
    try:
        waiting = [pool.submit(work, item, progress=progress_of(number)) for number, item in enumerate(items)]
        for future in as_completed(waiting.copy()):
            done[future] = _finished(future.result, finish)
            while waiting and waiting[0] in done:
                yield done.pop(waiting.pop(0))
    except KeyboardInterrupt:
        # Imported here: where nothing came from the Hub, its code was never loaded.
        from lnsim.checkpoint.hub.session import close_clients

        close_clients()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _finished(work: Callable[[], B], finish: Callable[[B], T]) -> T | LnsimError:
    try:
        return finish(work())
    except LnsimError as error:
        return error
