"""This module makes single exchanges over kept-alive HTTP/1.1 connections, each with a deadline that nothing outlasts.

The client library's own HTTP stack costs four times the processor time a request (``benchmarks/README.md``), and it
cannot end a header or a body that drips for ever: its timeouts count from byte to byte. Here one watchman looks at all
exchanges, and shuts down the sockets of those that are overdue, and of all when the reading is stopped.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from lnsim.checkpoint.hub.dialling import Connection, Origin, dial, origin_of

__all__ = ["MIN_RATE", "Answer", "ClosedError", "UnreachableError", "Wire", "WireError"]

MIN_RATE = 50_000
"""Bytes a second that a long answer must reach on the whole."""

_CHUNK = 64 * 1024
_STALE = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


class WireError(Exception):
    """An exchange that failed in a way that may pass."""


class UnreachableError(WireError):
    """Nobody answers at this address, or it has no such name."""


class ClosedError(Exception):
    """The wire was closed while it was in use: whoever waits for it shall stop."""


@dataclass(slots=True, eq=False)
class _Exchange:
    """A request under way, as the watchman sees it."""

    begun: float
    connection: Connection | None = None
    sock: socket.socket | None = None
    received: int = 0
    asked: int = 1
    overdue: bool = False

    def shut(self) -> None:
        """Wake whoever waits for its bytes."""
        if self.sock is not None:
            with suppress(OSError):  # it may have been closed a moment ago
                # The plain socket's own method: that of TLS would forget its keys under a reader's hands.
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


@dataclass(slots=True)
class Answer:
    """A response whose body is yet to be read.

    Args:
        status: of the response.
        headers: by lower-case name.
    """

    status: int
    headers: Mapping[str, str]
    _response: http.client.HTTPResponse = field(repr=False)
    _exchange: _Exchange = field(repr=False)
    _whole: bool = False

    @property
    def received(self) -> int:
        """Bytes of the body that came so far."""
        return self._exchange.received

    @property
    def asked(self) -> int:
        """Requests sent for it: one more where a connection had been closed while it lay idle."""
        return self._exchange.asked

    @property
    def leaves_connection_clean(self) -> bool:
        """Whether its body was read to the end, and the server means to go on."""
        return self._whole and not self._response.will_close

    def chunks(self) -> Iterator[bytes]:
        """The body piece by piece, to its announced end or an error."""
        while chunk := self._response.read1(_CHUNK):
            self._exchange.received += len(chunk)
            yield chunk
        if self._response.length:
            raise WireError(f"the body ended {self._response.length} bytes early")
        if self._exchange.overdue or (self._response.length is None and not self._exchange.received):
            # An end in the middle of the headers looks like their end, and then like an empty body of no length.
            raise WireError("the server hung up before the body")
        self._response.close()
        self._whole = True


class Wire:
    """Connections to any number of origins, at most one a request in flight and origin.

    Args:
        connect_timeout: seconds to wait for a connection.
        read_timeout: seconds to wait for the next bytes.
        total_timeout: seconds for a whole answer, beyond what its bytes take at ``MIN_RATE``.
    """

    def __init__(self, *, connect_timeout: float, read_timeout: float, total_timeout: float) -> None:
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        self._total_timeout = total_timeout
        self._idle: dict[Origin, list[Connection]] = {}
        self._busy: set[_Exchange] = set()
        self._lock = threading.Condition()
        self._watched = False
        self.closed = threading.Event()

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        """One GET. The connection is kept where the body was read to its end.

        Raises:
            WireError: for whatever went wrong on the way and may pass.
            ClosedError: when the wire was closed.
            UnusableAddressError: when no request can be made to this address.
        """
        origin = origin_of(url)
        exchange = self._begin()
        answer: Answer | None = None
        try:
            answer = self._send(exchange, origin, _target(url), {"Host": origin.netloc, **headers})
            yield answer
        except (OSError, http.client.HTTPException, WireError) as error:
            raise self._failure(exchange, error) from None
        finally:
            self._end(exchange, origin, keep=answer is not None and answer.leaves_connection_clean)

    def close(self) -> None:
        """Shut every connection; whoever waits for one gets ClosedError, and so does whoever comes later."""
        with self._lock:
            self.closed.set()
            for exchange in self._busy:
                exchange.shut()
            idle = [connection for group in self._idle.values() for connection in group]
            self._idle.clear()
            self._lock.notify_all()
        for connection in idle:
            connection.close()

    def _send(self, exchange: _Exchange, origin: Origin, target: str, headers: Mapping[str, str]) -> Answer:
        with self._lock:
            kept = self._idle.get(origin)
            connection = kept.pop() if kept else None
        if connection is not None:
            try:
                return _request(exchange, connection, target, headers)
            except _STALE:
                # The server closed it while it lay idle. Nothing was answered, so asking anew is no second try.
                connection.close()
                exchange.asked += 1
                if exchange.overdue or self.closed.is_set():
                    raise
        return _request(exchange, self._dial(origin), target, headers)

    def _dial(self, origin: Origin) -> Connection:
        try:
            return dial(origin, connect_timeout=self._connect_timeout, read_timeout=self._read_timeout)
        except socket.gaierror:
            raise UnreachableError(f"the name {origin.host:.80} could not be resolved") from None
        except OSError as error:
            raise UnreachableError(f"{origin.netloc:.80} cannot be reached ({_described(error)})") from None

    def _failure(self, exchange: _Exchange, error: Exception) -> Exception:
        if self.closed.is_set():
            return ClosedError("the reading was stopped")
        if exchange.overdue:
            return WireError(f"no whole answer within {self._total_timeout:g} seconds, after {exchange.received} bytes")
        return error if isinstance(error, WireError) else WireError(_described(error))

    def _begin(self) -> _Exchange:
        exchange = _Exchange(time.monotonic())
        with self._lock:
            if self.closed.is_set():
                raise ClosedError("the reading was stopped")
            self._busy.add(exchange)
            if not self._watched:
                self._watched = True
                threading.Thread(target=self._watch, name="lnsim-watch", daemon=True).start()
            elif len(self._busy) == 1:
                self._lock.notify_all()
        return exchange

    def _end(self, exchange: _Exchange, origin: Origin, keep: bool) -> None:
        connection = exchange.connection
        with self._lock:
            self._busy.discard(exchange)
            keep = keep and not exchange.overdue and not self.closed.is_set()
            if keep and connection is not None:
                self._idle.setdefault(origin, []).append(connection)
        if not keep and connection is not None:
            connection.close()

    def _watch(self) -> None:
        step = min(0.25, self._total_timeout / 4)
        while not self.closed.wait(step):
            now = time.monotonic()
            with self._lock:
                for exchange in self._busy:
                    if now - exchange.begun > self._total_timeout + exchange.received / MIN_RATE:
                        exchange.overdue = True
                        exchange.shut()
                if not self._busy and not self.closed.is_set():
                    self._lock.wait()  # until there is something to watch, or all is closed


def _request(exchange: _Exchange, connection: Connection, target: str, headers: Mapping[str, str]) -> Answer:
    exchange.connection, exchange.sock = connection, connection.sock
    if connection.proxy_authorization:
        headers = {**headers, "Proxy-Authorization": connection.proxy_authorization}
    connection.request("GET", connection.prefix + target, headers=dict(headers))
    response = connection.getresponse()
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response, exchange)


def _target(url: str) -> str:
    """Path and query as the request line needs them: printable ASCII without spaces, whatever a redirect says."""
    parts = urlsplit(url)
    text = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return quote(text, safe="/?&=%:@!$'()*+,;~-._[]|^`{}\\\"<>#")


def _described(error: Exception) -> str:
    text = str(error.strerror if isinstance(error, OSError) and error.strerror else error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
