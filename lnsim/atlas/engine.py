"""This module runs the blocks of a search on Dask: threads of this process, or the workers of a cluster.

A worker that dies costs the blocks that it held, and these are run again elsewhere: a block is a function of the
atlas's folder, which every worker must see under the same path, and changes nothing.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from lnsim.errors import SourceError

T = TypeVar("T")
Run = Callable[[Callable[..., T], Iterable[tuple[Any, ...]]], Iterator[T]]
"""Calls a function with each of some arguments; the answers come in their order."""

_AT_ONCE = 256  # blocks that are handed out at a time, so that neither graph nor answers grow with the atlas
_RETRIES = 3


def needed(name: str) -> Any:
    """A module of the extra ``[atlas]``; SourceError says how to install it where it is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise SourceError(
            f"Working on an atlas: the package '{error.name}' is not installed. Install it by: "
            "pip install 'lnsim[atlas]'"
        ) from None


@contextmanager
def engine(scheduler: str | None = None) -> Iterator[Run[Any]]:
    """What runs blocks: threads by default, else the cluster at an address; SourceError where nobody answers there."""
    if scheduler is None:
        dask = needed("dask")
        yield lambda function, arguments: _windows(
            arguments, lambda some: dask.compute(*(dask.delayed(function)(*one) for one in some), scheduler="threads")
        )
        return
    distributed = needed("distributed")
    try:
        client = distributed.Client(scheduler, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SourceError(
            f"Asking the Dask scheduler at '{scheduler}': no answer ({str(error) or type(error).__name__}). Start one "
            "with `dask scheduler`, or leave --scheduler out."
        ) from None

    def on_cluster(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]]) -> Iterator[Any]:
        submit = partial(client.submit, function, pure=False, retries=_RETRIES)
        return _windows(arguments, lambda some: client.gather([submit(*one) for one in some]))

    with client:
        yield on_cluster


def _windows(arguments: Iterable[tuple[Any, ...]], work: Callable[[list[Any]], Iterable[Any]]) -> Iterator[Any]:
    waiting = iter(arguments)
    while some := list(itertools.islice(waiting, _AT_ONCE)):
        yield from work(some)
