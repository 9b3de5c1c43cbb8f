"""This module reads many checkpoints at once, under one bound of requests in flight."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from lnsim.checkpoint.extract import Extracted, Plan, find_to_keep, place, read, read_to_keep
from lnsim.checkpoint.opening import IN_FLIGHT
from lnsim.checkpoint.reading import Question
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.vectors import NormVectors, same_stored
from lnsim.errors import LnsimError

__all__ = ["extract_many", "read_many", "read_pair"]

_AT_ONCE = 4
"""Checkpoints read at once: enough that some can ask while others think. Ten would hold 8 MiB more of headers."""

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")


def extract_many(
    questions: Sequence[Question],
    *,
    out: Path | None = None,
    again: bool = False,
    in_flight: int = IN_FLIGHT,
    progress: Progress = no_progress,
) -> Iterator[NormVectors | LnsimError]:
    """Read and keep the norm vectors of every source; one that fails does not stop the others.

    What each source is, and where its extract goes, is known of all of them before the first is read. Files are written
    by the calling thread alone, as the answers come in.

    Args:
        questions: what to read.
        out: folder for the extracts, as for ``extract_and_keep``.
        again: read from the Hub even what is there.
        in_flight: requests at once, of all sources together.
        progress: told how many reads of all sources are done of how many planned so far.

    Yields:
        For each question in turn its vectors, or the error that says why there are none.
    """
    find = partial(find_to_keep, out=out, in_flight=in_flight)
    found = list(_answers(questions, lambda question, progress: find(question), lambda plan: plan, no_progress))
    placed = iter(place([plan for plan in found if isinstance(plan, Plan)], out))
    plans = [next(placed) if isinstance(plan, Plan) else plan for plan in found]
    good = [plan for plan in plans if isinstance(plan, Plan)]
    answers = _answers(good, partial(read_to_keep, again=again), Extracted.keep, progress)
    return (next(answers) if isinstance(plan, Plan) else plan for plan in plans)


def read_many(
    questions: Sequence[Question], *, in_flight: int = IN_FLIGHT, progress: Progress = no_progress
) -> Iterator[Extracted | LnsimError]:
    """Read the norm vectors of every source and write nothing; what was kept before of the same commit is taken.

    Args:
        questions: what to read.
        in_flight: requests at once, of all sources together.
        progress: told how many reads of all sources are done of how many planned so far.

    Yields:
        For each question in turn what was read, which can be kept later, or the error that says why there is nothing.
    """
    return _answers(questions, partial(read, in_flight=in_flight), lambda found: found, progress)


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


def _by_one_tower(a: Extracted, b: Extracted) -> tuple[Question, Question]:
    towers = [one.vectors.main_tower for one in (b, a)]
    if towers[0] != towers[1]:
        for tower in (*towers, *a.vectors.towers):
            if tower != "mtp" and all(tower in one.vectors.towers for one in (a, b)):
                return replace(a.question, tower=tower), replace(b.question, tower=tower)
    return a.question, b.question


def _as_one_family(a: Extracted, b: Extracted) -> tuple[Question, Question]:
    asked = {"a": a.question, "b": b.question}
    for side, one, other in (("a", a.vectors, b.vectors), ("b", b.vectors, a.vectors)):
        if not one.offset.decided and other.offset.decided and other.offset.value and same_stored(one, other):
            asked[side] = replace(asked[side], model_type=other.model_type)
    return asked["a"], asked["b"]


def _answers(
    items: Sequence[A], work: Callable[..., B], finish: Callable[[B], T], progress: Progress
) -> Iterator[T | LnsimError]:
    """What `finish` makes of the work on each item, in their order; it is called as the results come in."""
    if len(items) == 1:
        yield _finished(lambda: work(items[0], progress=progress), finish)
        return
    if not items:
        return
    total = _Total(progress)
    done: dict[int, T | LnsimError] = {}
    pool = ThreadPoolExecutor(min(len(items), _AT_ONCE), thread_name_prefix="lnsim-model")
    try:
        numbers: dict[Future[B], int] = {
            pool.submit(work, item, progress=total.part(number)): number for number, item in enumerate(items)
        }
        following = 0
        for future in as_completed(list(numbers)):
            done[numbers.pop(future)] = _finished(future.result, finish)
            while following in done:
                yield done.pop(following)
                following += 1
    except KeyboardInterrupt:
        _stop_reading()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _finished(work: Callable[[], B], finish: Callable[[B], T]) -> T | LnsimError:
    try:
        return finish(work())
    except LnsimError as error:
        return error


def _stop_reading() -> None:
    # Imported here: where nothing came from the Hub, its code was never loaded.
    from lnsim.checkpoint.hub.session import close_clients

    close_clients()


class _Total:
    """One progress for the reads of many checkpoints."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._counts: dict[int, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def part(self, number: int) -> Progress:
        """The progress of one of them."""

        def tell(done: int, planned: int) -> None:
            with self._lock:
                self._counts[number] = done, planned
                sums = [sum(column) for column in zip(*self._counts.values(), strict=True)]
                self._progress(sums[0], sums[1])

        return tell
