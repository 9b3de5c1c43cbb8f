"""This module makes single requests over the Hub's own client library, so many at once, and can stop them all.

``huggingface_hub.utils.get_session()`` brings proxies, certificates, the ``HF_*`` settings and a user's own client
factory. What it does not bring is here: a bound on the requests in flight, deadlines, an end that wakes whoever waits,
and silence about what is sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar
from weakref import WeakSet

from huggingface_hub import get_session, set_client_factory
from huggingface_hub.utils import _http, httpx  # type: ignore[attr-defined]  # exported in all its versions, undeclared

from lnsim.checkpoint.hub.addresses import (
    Origin,
    Proxy,
    ProxyError,
    UnusableAddressError,
    check_proxies,
    origin_of,
    proxy_for,
)
from lnsim.checkpoint.opening import IN_FLIGHT
from lnsim.checkpoint.source import Progress, no_progress

__all__ = [
    "MIN_RATE",
    "Answer",
    "Client",
    "ClosedError",
    "RequestError",
    "Settings",
    "UnreachableError",
    "client_for",
    "close_clients",
    "stopped_by_hand",
    "whole_number",
]

A = TypeVar("A")
B = TypeVar("B")

MIN_RATE = 50_000
"""Bytes a second that a long answer must reach on the whole."""

_KEPT_OPEN = 128
_SHUT_BOTH_WAYS = 2
_STOPPED = "the reading was stopped"


class RequestError(Exception):
    """A request that failed in a way that may pass."""


class UnreachableError(RequestError):
    """Nobody answers at this address, or it has no such name."""


class ClosedError(Exception):
    """The client was closed while it was in use: whoever waits for it shall stop."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How hard and how patiently to ask.

    Args:
        max_in_flight: requests at once.
        max_tries: tries of one request before it is an error.
        first_pause: seconds before the second try; doubled for each further one, with jitter.
        max_pause: longest pause of our own, in seconds.
        max_retry_after: longest pause that a server may ask for; a longer one is an error that says so. The Hub's
            windows are 300 seconds long.
        connect_timeout: seconds to wait for a connection.
        read_timeout: seconds to wait for the next bytes.
        total_timeout: seconds for a whole body, beyond what its bytes take at 50 kB a second.
    """

    max_in_flight: int = IN_FLIGHT
    max_tries: int = 5
    first_pause: float = 0.25
    max_pause: float = 20.0
    max_retry_after: float = 330.0
    connect_timeout: float = 10.0
    read_timeout: float = 20.0
    total_timeout: float = 60.0


@dataclass(slots=True)
class Answer:
    """A response whose body is yet to be read.

    Args:
        url: what was asked for.
        status: of the response.
        headers: by lower-case name.
        at_the_hub: whether the Hub itself gave it.
        received: bytes of the body that came so far.
    """

    url: str = field(repr=False)
    status: int
    headers: Mapping[str, str] = field(repr=False)
    at_the_hub: bool
    _response: httpx.Response = field(repr=False)
    _patience: float
    received: int = 0

    def chunks(self) -> Iterator[bytes]:
        """The body piece by piece, to its announced end or an error."""
        begun = time.monotonic()
        for chunk in self._response.iter_raw():
            self.received += len(chunk)
            if time.monotonic() - begun > self._patience + self.received / MIN_RATE:
                raise RequestError(f"no whole answer within {self._patience:g} seconds, after {self.received} bytes")
            yield chunk

    @property
    def missing(self) -> int:
        """Bytes of the body that were announced and have not come."""
        return max(0, (whole_number(self.headers.get("content-length")) or 0) - self.received)


class Client:
    """Requests and threads under one bound, whatever number of checkpoints is read.

    Args:
        settings: patience and concurrency.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.closed = threading.Event()
        self._in_flight = threading.BoundedSemaphore(settings.max_in_flight)
        self._streams: WeakSet[Any] = WeakSet()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(settings.max_in_flight, thread_name_prefix="lnsim")
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="lnsim-open")

    @contextmanager
    def get(self, url: str, headers: Mapping[str, str], *, at_the_hub: bool = False) -> Iterator[Answer]:
        """One GET, when it is its turn; redirects are not followed.

        Args:
            url: an address that ``origin_of`` takes.
            headers: of the request.
            at_the_hub: whether logins that the session itself brings may be sent there.

        Raises:
            RequestError: for whatever went wrong on the way and may pass.
            ClosedError: when the client was closed.
            UnusableAddressError: when no request can be made to this address.
        """
        with self._in_flight, _unlogged():
            session = self._session()
            answer: Answer | None = None
            try:
                with closing(self._send(session, url, headers, at_the_hub)) as response:
                    told = {name.lower(): text for name, text in response.headers.items()}
                    patience = self.settings.total_timeout
                    answer = Answer(url, response.status_code, told, at_the_hub, response, patience)
                    yield answer
            except httpx.RemoteProtocolError as error:
                early = answer is not None and answer.missing
                reason = f"the body ended {early} bytes early" if early else _described(error)
                raise ClosedError(_STOPPED) if self.closed.is_set() else RequestError(reason) from None
            except RuntimeError:
                if not session.is_closed:
                    raise
                raise RequestError("the session was closed by whoever else uses it") from None
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                raise self._failure(error, origin_of(url), session.trust_env) from None

    def _session(self) -> httpx.Client:
        if self.closed.is_set():
            raise ClosedError(_STOPPED)
        _prepare()
        try:
            return get_session()
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            check_proxies()
            raise ProxyError(f"the session of huggingface_hub cannot be made ({type(error).__name__})") from None

    def _send(self, session: httpx.Client, url: str, headers: Mapping[str, str], at_the_hub: bool) -> httpx.Response:
        asked = self.settings
        timeout = httpx.Timeout(asked.read_timeout, connect=asked.connect_timeout, pool=asked.total_timeout)
        extensions = {"trace": self._watch}
        request = session.build_request("GET", url, headers=dict(headers), timeout=timeout, extensions=extensions)
        if at_the_hub:
            return session.send(request, stream=True, follow_redirects=False)
        for name in ("authorization", "cookie"):  # a session of the user's may add its own to every request
            request.headers.pop(name, None)
        return session.send(request, stream=True, follow_redirects=False, auth=httpx.Auth())

    def _watch(self, event: str, told: Mapping[str, Any]) -> None:
        """Called by the HTTP library at each step: remember the connection, and go no further where all is closed."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._lock:
                self._streams.add(told["return_value"])
        if self.closed.is_set() and event.endswith(".started") and "close" not in event:
            raise ClosedError(_STOPPED)

    def _failure(self, error: Exception, origin: Origin, by_environment: bool) -> Exception:
        if self.closed.is_set():
            return ClosedError(_STOPPED)
        if isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol)):
            return UnusableAddressError(f"it is no valid address ({error!s:.80})")
        if not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, UnicodeError)):
            return RequestError(_described(_cause(error)))
        proxy = proxy_for(origin) if by_environment else None
        if isinstance(error, httpx.ProxyError):
            return _refusal_of_a_proxy(str(error), origin, proxy)
        return UnreachableError(_why_unreachable(_cause(error), origin, proxy))

    def aside(self, work: Callable[[], B]) -> Future[B]:
        """Do one thing beside the caller's own."""
        return self._pool.submit(work)

    def open(self, work: Callable[[], B]) -> B:
        """Open a checkpoint when it is its turn: each has many headers to ask for, and holds an index meanwhile.

        One thread parses all indexes, since memory that one thread has freed is of little use to others.
        """
        return self._opener.submit(work).result()

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
        """Cut the connections and drop all work; whoever waits for one, or comes later, gets ClosedError."""
        with self._lock:
            self.closed.set()
            streams = list(self._streams)
        for stream in streams:
            sock = stream.get_extra_info("socket")
            if sock is not None:
                with suppress(OSError):  # it may have been closed a moment ago
                    # The plain socket's own method: that of TLS would forget its keys under a reader's hands.
                    plain: Any = super(type(sock), sock)
                    plain.shutdown(_SHUT_BOTH_WAYS)
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._opener.shutdown(wait=False, cancel_futures=True)


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


def whole_number(text: str | None) -> int | None:
    """The number that a header tells; None where it is none."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 20 else None


def _refusal_of_a_proxy(text: str, origin: Origin, proxy: Proxy | None) -> Exception:
    if not text.startswith("407"):
        return UnreachableError(f"{origin.netloc:.80} cannot be reached (the proxy answered {text:.60})")
    if proxy is None:
        return ProxyError("the proxy on the way wants a login (407)")
    how = f"{proxy.variable}={proxy.scheme}://user:password@{proxy.netloc}"
    return ProxyError(f"the proxy {proxy.netloc} wants a login (407), as in {how}")


def _why_unreachable(cause: Exception, origin: Origin, proxy: Proxy | None) -> str:
    if proxy is not None:
        why = cause.strerror if isinstance(cause, OSError) and cause.strerror else _described(cause)
        return f"{origin.netloc:.80} cannot be reached ({proxy.variable} names the proxy {proxy.netloc:.80}: {why})"
    if type(cause).__name__ == "gaierror":
        return f"the name {origin.host:.80} could not be resolved"
    return f"{origin.netloc:.80} cannot be reached ({_described(cause)})"


def _cause(error: BaseException) -> Exception:
    """The operating system's error behind an error of the HTTP library, else that one itself."""
    inner: BaseException | None = error
    while inner is not None and not isinstance(inner, OSError):
        inner = inner.__cause__ or inner.__context__
    found = error if inner is None else inner
    return found if isinstance(found, Exception) else RequestError(type(found).__name__)


def _described(error: Exception) -> str:
    text = str(error.strerror if isinstance(error, OSError) and error.strerror else error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


_ours: ContextVar[bool] = ContextVar("_ours", default=False)


@contextmanager
def _unlogged() -> Iterator[None]:
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


class _NotOurs(logging.Filter):
    """Drops what the HTTP library logs of our requests: signed addresses, and headers in which a server may repeat."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _ours.get()


@cache
def _prepare() -> None:
    """Once a process: keep our requests out of the HTTP library's logs, and our connections open between them."""
    core = httpx.__name__.replace("httpx", "httpcore")
    for name in (httpx.__name__, *(f"{core}.{part}" for part in ("connection", "http11", "http2", "proxy", "socks"))):
        logging.getLogger(name).addFilter(_NotOurs())
    # The library's own session keeps 20 idle connections: too few for two origins. One that is there, or that a user's
    # factory will make, is used as it is.
    if _http._GLOBAL_CLIENT is None and _http._GLOBAL_CLIENT_FACTORY is _http.default_client_factory:
        set_client_factory(_roomy_session)


def _roomy_session() -> httpx.Client:
    hooks = {"request": [_http.hf_request_event_hook]}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT_OPEN)
    return httpx.Client(event_hooks=hooks, follow_redirects=True, timeout=None, limits=limits)
