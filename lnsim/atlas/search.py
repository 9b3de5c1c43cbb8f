"""This module looks for relatives in an atlas: sketches say which pairs to look at, the full test says what they are.

Screening is a product of matrices, block by block: the sketch of the query, or of every model, with those of all models
of its hidden size. What is similar enough (``sketch.lets_in``), and for a query the best ten in any case, gets the test
that verdicts rest on, over all norms of both extracts, by ``judge``'s rules. No p rests on a sketch: a pair that was
screened out counts as tested with p = 1.

What a search costs: Holm runs over all comparable pairs, tested or screened out: for a query as many as the atlas has
models of its hidden size with a role in common, for all pairs n (n - 1) / 2. So p is multiplied by thousands or
millions, and 99,999 permutations of all channels would reach no level; where they would not, the channels are permuted
in parts (``parted_test``), which give a p as small as needed.

Memory is that of some blocks and of the pairs that pass, whatever the number of models. Blocks run on Dask: threads of
this process, or the workers of a cluster. A worker that dies costs the blocks that it held, and these are run again
elsewhere: a block is a function of the atlas's folder, which every worker must see under the same path, and changes
nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lnsim.atlas import store
from lnsim.atlas.sketch import Sketch, lets_in, sketch
from lnsim.atlas.store import Atlas, Entry, extract_path, needed, read_block
from lnsim.checkpoint.extract import load
from lnsim.checkpoint.vectors import NormVectors
from lnsim.errors import SourceError
from lnsim.measure.many import Relation, best_first, relation
from lnsim.measure.pair_test import MOST, PairTest
from lnsim.measure.parted_test import parted_test
from lnsim.measure.verdict import Rows, judged, matched_rows

_BEST = 10  # models that a query is tested against in any case
_TESTS = 4  # pairs in a block of full tests
_AT_ONCE = 256  # blocks that are handed out at a time, so that neither graph nor answers grow with the atlas
_RETRIES = 3  # of a block whose worker died

Passed = tuple[float, int, int]
"""A similarity, and the rows of the two models; of a query the second alone counts."""
_Live = npt.NDArray[np.bool_]
_Block = tuple[int, _Live]
_Pair = tuple[float, NormVectors | Entry, Entry]
_Tested = tuple[Rows, PairTest | None]
_Run = Callable[[Callable[..., Any], Iterable[tuple[Any, ...]]], Iterator[Any]]
"""Calls a function with each of some arguments; the answers come in their order."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found, and over how many comparisons."""

    n_models: int  # in the atlas, the query not counted
    n_tests: int  # comparisons that p is adjusted over, by sketch or by the full test
    found: Sequence[Relation]
    """Those that got the full test, best first, with the ``similarity`` of the sketches and what is ``known`` of b."""


@contextmanager
def engine(scheduler: str | None = None) -> Iterator[_Run]:
    """What runs blocks: threads by default, else the cluster at an address; SourceError where nobody answers there."""
    dask, client = needed("dask"), None if scheduler is None else _client(scheduler)

    def run(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        waiting = iter(arguments)
        while some := [dask.delayed(function, pure=False)(*one) for one in itertools.islice(waiting, _AT_ONCE)]:
            if client is None:
                yield from dask.compute(*some, scheduler="threads")
            else:
                yield from client.gather(client.compute(some, retries=_RETRIES))

    with client or nullcontext():
        yield run


def _client(address: str) -> Any:
    try:
        return needed("distributed").Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"Asking the Dask scheduler at '{address}': no answer ({str(error) or type(error).__name__}). Start one "
            "with `dask scheduler`, or leave --scheduler out."
        ) from None


def relatives(
    atlas: Atlas, query: NormVectors, most: int = MOST, seed: int = 0, scheduler: str | None = None
) -> Search:
    """Every model of the atlas that may be a relative of one; raises LnsimError where an extract is gone.

    The query's own extract, at the same commit, is passed over where the atlas has it.
    """
    size = query.hidden_size
    entries = [one if one is None or not _is(one, query) else None for one in atlas.of_size(size)]
    blocks, n_live = _blocks(entries), sum(one is not None for one in entries)
    with engine(scheduler) as run:
        jobs = ((atlas.folder, size, sketch(query), block, lets_in(n_live, size), _BEST) for block in blocks)
        n, passed = 0, list[_Pair]()
        for count, some in run(_screen, jobs):
            n += count
            passed += [(close, query, b) for close, _, row in some if (b := entries[row]) is not None]
        passed = sorted(passed, key=lambda one: -one[0])
        chosen = [one for place, one in enumerate(passed) if place < _BEST or one[0] >= lets_in(n_live, size)]
        found = _full_tests(atlas.folder, run, chosen, n, most, seed)
    return Search(sum(not _is(one, query) for one in atlas.entries.values()), n, found)


def pairs(atlas: Atlas, most: int = MOST, seed: int = 0, scheduler: str | None = None) -> Search:
    """Every pair of the atlas that may be related, of one hidden size each; raises LnsimError as ``relatives``."""
    with engine(scheduler) as run:
        n, passed = 0, list[_Pair]()
        for size in sorted({entry.hidden_size for entry in atlas.entries.values()}):
            entries = atlas.of_size(size)
            threshold = lets_in(math.comb(sum(one is not None for one in entries), 2), size)
            both = itertools.combinations_with_replacement(_blocks(entries), 2)
            for count, some in run(_screen, ((atlas.folder, size, *blocks, threshold) for blocks in both)):
                n += count
                named = ((close, entries[one], entries[other]) for close, one, other in some)
                passed += [(close, a, b) for close, a, b in named if a is not None and b is not None]
        return Search(len(atlas.entries), n, _full_tests(atlas.folder, run, passed, n, most, seed))


def _blocks(entries: Sequence[Entry | None]) -> list[_Block]:
    """Rows of the store, some at a time: where they begin, and which of them count."""
    live = np.array([one is not None for one in entries], dtype=bool)
    return [(start, live[start : start + store.BLOCK]) for start in range(0, len(live), store.BLOCK)]


def _is(entry: Entry, query: NormVectors) -> bool:
    """Whether an entry is the very checkpoint that the query was read from."""
    return entry.name == query.source and entry.digest == query.digest


def _full_tests(folder: Path, run: _Run, chosen: Sequence[_Pair], n_tests: int, most: int, seed: int) -> list[Relation]:
    """The full tests of what passed, Holm over all that was compared."""
    some = (chosen[start : start + _TESTS] for start in range(0, len(chosen), _TESTS))
    jobs = ((folder, [(a, b) for _, a, b in block], n_tests, most, seed) for block in some)
    results = [one for block in run(_tested, jobs) for one in block]
    judgements = judged([rows for rows, _ in results], [test for _, test in results], max(n_tests, len(results)))
    return best_first(
        relation(a.title if isinstance(a, Entry) else a.source, b.title, one)
        | {"similarity": round(close, 6), "known": b.known}
        for (close, a, b), one in zip(chosen, judgements, strict=True)
    )


def _screen(
    folder: Path, size: int, one: _Block | Sketch, other: _Block, least: float, best: int = 0
) -> tuple[int, list[Passed]]:
    """How many pairs of two blocks, or of a query and a block, can be compared, and those that pass or are the best."""
    start, live = other
    rows_b = read_block(folder, size, start, start + len(live))
    if isinstance(one, tuple):
        first, live_a = one
        rows_a = rows_b if first == start else read_block(folder, size, first, first + len(live_a))
    else:
        first, live_a, rows_a = 0, np.array([True]), {role: row[np.newaxis] for role, row in one.items()}
    total, n_roles = (np.zeros((len(live_a), len(live)), kind) for kind in (np.float32, np.int8))
    for role in rows_a.keys() & rows_b.keys():
        total += rows_a[role] @ rows_b[role].T
        n_roles += np.outer(_has(rows_a[role]), _has(rows_b[role]))
    comparable = (n_roles > 0) & np.outer(live_a, live)
    if rows_a is rows_b:
        comparable = np.triu(comparable, 1)
    close = np.where(comparable, total / np.maximum(n_roles, 1), -np.inf)
    enough = min(least, np.sort(close, axis=None)[-best:].min()) if best else least
    passed = np.argwhere(comparable & (close >= enough))
    return int(comparable.sum()), [(float(close[i, j]), first + int(i), start + int(j)) for i, j in passed]


def _has(rows: npt.NDArray[np.float32]) -> _Live:
    """Which rows are patterns: their length is 1, that of a missing one 0."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows) > 0.5)


def _tested(
    folder: Path, some: Iterable[tuple[NormVectors | Entry, Entry]], n_tests: int, most: int, seed: int
) -> list[_Tested]:
    """The full test of some pairs on their extracts; of the rows comes back all but the values."""
    found = []
    for a, b in some:
        one = load(extract_path(folder, a)) if isinstance(a, Entry) else a
        rows = matched_rows(one, load(extract_path(folder, b)), seed=seed)
        test = parted_test(rows.stacks, n_tests, most, seed) if rows.stacks else None
        found.append((replace(rows, stacks=(), ordered=rows.ordered and not rows.stacks), test))
    return found
