"""This module runs the blocks of a search on Dask: threads of this process, or the workers of a cluster.

A worker that dies costs the blocks that it held, and these are run again elsewhere: a block is a function of the
atlas's folder, which every worker must see under the same path, and changes nothing.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
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
