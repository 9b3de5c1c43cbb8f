"""This module reads many checkpoints at once, under one bound of requests in flight."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import TypeVar

from lnsim.checkpoint.extract import Extracted, read_to_keep
from lnsim.checkpoint.opening import IN_FLIGHT
from lnsim.checkpoint.question import Question
from lnsim.checkpoint.source import Progress, no_progress
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import LnsimError
from lnsim.paths import vectors_dir

__all__ = ["extract_many", "read_many"]

_AT_ONCE = 10
"""Checkpoints read at once: enough that some can ask while others think, few enough to hold all their headers."""

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

    Files are written by the calling thread alone, as the answers come in.

    Args:
        questions: what to read.
        out: folder for the extracts, as for ``extract_and_keep``.
        again: read from the Hub even what is there.
        in_flight: requests at once, of all sources together.
        progress: told how many reads of all sources are done of how many planned so far.

    Yields:
        For each question in turn its vectors, or the error that says why there are none.
    """
    read = partial(read_to_keep, out=out, again=again, in_flight=in_flight)
    return _answers(questions, read, lambda found: found.keep(vectors_dir() if out is None else out), progress)


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
    return _answers(questions, partial(read_to_keep, in_flight=in_flight), lambda found: found, progress)


def _answers(
    questions: Sequence[Question],
    read: Callable[..., Extracted],
    finish: Callable[[Extracted], T],
    progress: Progress,
) -> Iterator[T | LnsimError]:
    """What `finish` makes of each answer, in the order of the questions; it is called as the answers come in."""
    if len(questions) == 1:
        question = questions[0]
        yield _finished(lambda: read(question, progress=progress), finish)
        return
    total = _Total(progress)
    done: dict[int, T | LnsimError] = {}
    pool = ThreadPoolExecutor(min(len(questions), _AT_ONCE), thread_name_prefix="lnsim-model")
    try:
        numbers: dict[Future[Extracted], int] = {
            pool.submit(read, question, progress=total.part(number)): number
            for number, question in enumerate(questions)
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


def _finished(work: Callable[[], Extracted], finish: Callable[[Extracted], T]) -> T | LnsimError:
    try:
        return finish(work())
    except LnsimError as error:
        return error


def _stop_reading() -> None:
    # Imported here: where nothing came from the Hub, its code was never loaded.
    from lnsim.checkpoint.hub import close_clients

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
