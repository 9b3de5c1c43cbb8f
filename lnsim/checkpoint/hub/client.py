"""This module holds what all reading of one process shares: connections, threads, limits and settings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from huggingface_hub import constants

from lnsim.checkpoint.hub.limits import ANONYMOUS, RateLimits
from lnsim.checkpoint.hub.wire import Wire
from lnsim.checkpoint.opening import IN_FLIGHT
from lnsim.checkpoint.source import Progress, no_progress

__all__ = ["Client", "Settings", "client_for", "close_clients", "stopped_by_hand"]

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Settings:
    """How hard and how patiently to ask.

    Args:
        max_in_flight: requests at once, and connections kept open to an origin.
        max_tries: tries of one request before it is an error.
        first_pause: seconds before the second try; doubled for each further one, with jitter.
        max_pause: longest pause of our own, in seconds.
        max_retry_after: longest pause that a server or a limit may ask for; a longer one is an error that says so. The
            Hub's windows are 300 seconds long.
        connect_timeout: seconds to wait for a connection.
        read_timeout: seconds to wait for the next bytes.
        total_timeout: seconds for a whole answer, beyond what its bytes take at 50 kB a second.
    """

    max_in_flight: int = IN_FLIGHT
    max_tries: int = 5
    first_pause: float = 0.25
    max_pause: float = 20.0
    max_retry_after: float = 330.0
    connect_timeout: float = 10.0
    read_timeout: float = 20.0
    total_timeout: float = 60.0


class Client:
    """Connections, threads and limits under one bound of requests in flight, whatever number of checkpoints is read.

    Args:
        settings: patience and concurrency.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.wire = Wire(
            connect_timeout=settings.connect_timeout,
            read_timeout=settings.read_timeout,
            total_timeout=settings.total_timeout,
        )
        # What a mirror grants is its own affair; its headers may tell.
        at_the_hub = constants.ENDPOINT == constants._HF_DEFAULT_ENDPOINT
        self.limits = RateLimits(ANONYMOUS if at_the_hub else {})
        self.in_flight = threading.BoundedSemaphore(settings.max_in_flight)
        self._pool = ThreadPoolExecutor(settings.max_in_flight, thread_name_prefix="lnsim")
        self._side = ThreadPoolExecutor(settings.max_in_flight, thread_name_prefix="lnsim-side")

    def aside(self, work: Callable[[], B]) -> Future[B]:
        """Do one thing beside the caller's own, ahead of all reads that wait for their turn."""
        return self._side.submit(work)

    def map(self, work: Callable[[A], B], items: Iterable[A], progress: Progress = no_progress) -> list[B]:
        """Results in the order of the items; the first error is raised, and what has not begun is left out."""
        futures = [self._pool.submit(work, item) for item in items]
        try:
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                progress(done, len(futures))
        finally:
            for future in futures:
                future.cancel()
        return [future.result() for future in futures]

    def close(self) -> None:
        """Shut all connections and drop all work; whoever waits for it gets an error."""
        self.wire.close()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._side.shutdown(wait=False, cancel_futures=True)


_clients: dict[Settings, Client] = {}
_clients_lock = threading.Lock()


def client_for(settings: Settings) -> Client:
    """The process's client of these settings, made when it is first asked for."""
    with _clients_lock:
        client = _clients.get(settings)
        if client is None:
            client = _clients[settings] = Client(settings)
        return client


def close_clients() -> None:
    """Close every client; the next reading makes new ones."""
    with _clients_lock:
        clients = list(_clients.values())
        _clients.clear()
    for client in clients:
        client.close()


@contextmanager
def stopped_by_hand() -> Iterator[None]:
    """Close every client when the person at the keyboard stops the reading, so that no thread waits on."""
    try:
        yield
    except KeyboardInterrupt:
        close_clients()
        raise
