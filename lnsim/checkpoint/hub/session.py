"""This module makes single requests over the session of ``huggingface_hub``, so many at once, and can stop them all.

Proxies, certificates, the ``HF_*`` settings and a user's own client factory come with ``get_session()``; here are a
bound on the requests in flight, deadlines, an end that wakes whoever waits, and silence about what is sent.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar
from urllib.request import getproxies, proxy_bypass
from weakref import WeakSet

from huggingface_hub import get_session, set_client_factory
from huggingface_hub.utils import _http, httpx  # type: ignore[attr-defined]  # exported in all its versions, undeclared

from lnsim.checkpoint.hub.answers import TryAgainError
from lnsim.checkpoint.opening import IN_FLIGHT
from lnsim.checkpoint.source import Progress, no_progress

A = TypeVar("A")
B = TypeVar("B")

_MIN_RATE = 50_000  # bytes a second that a long answer must reach on the whole
_KEPT_OPEN = 128
_SHUT_BOTH_WAYS = 2
_PROXY = re.compile(r"([\w.-]+|\[[\da-f:.]+\])(:\d+)?", re.IGNORECASE)


class UnreachableError(TryAgainError):
    """Nobody answers at this address, or it has no such name."""


class UnusableAddressError(Exception):
    """No request can be made to this address, and trying again is of no use."""


class ProxyError(UnusableAddressError):
    """The proxy that the environment names cannot be used as it is named there."""


class ClosedError(Exception):
    """The client was closed while it was in use: whoever waits for it shall stop."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How hard and how patiently to ask; times in seconds. A head has no deadline but ``read_timeout``."""

    max_in_flight: int = IN_FLIGHT  # requests at once
    max_tries: int = 5  # of one request, before it is an error
    first_pause: float = 0.25  # before the second try; doubled for each further one, with jitter
    max_pause: float = 20.0  # of our own
    max_retry_after: float = 330.0  # that a server may ask for; the Hub's windows are 300 seconds long
    connect_timeout: float = 10.0
    read_timeout: float = 20.0  # for the next bytes, of head and body
    total_timeout: float = 60.0  # for a whole body, beyond what its bytes take at 50 kB a second


@dataclass(slots=True)
class Answer:
    """A response whose body is yet to be read; its headers by lower-case name, and the bytes received so far."""

    url: httpx.URL = field(repr=False)
    status: int
    headers: Mapping[str, str] = field(repr=False)
    _response: httpx.Response = field(repr=False)
    _patience: float
    received: int = 0

    def chunks(self) -> Iterator[bytes]:
        """The body piece by piece, to its announced end or an error."""
        begun = time.monotonic()
        for chunk in self._response.iter_raw():
            self.received += len(chunk)
            if time.monotonic() - begun > self._patience + self.received / _MIN_RATE:
                raise TryAgainError(f"no whole answer within {self._patience:g} seconds, after {self.received} bytes")
            yield chunk

    @property
    def missing(self) -> int:
        """Bytes of the body that were announced and have not come."""
        return max(0, (whole_number(self.headers.get("content-length")) or 0) - self.received)


class Client:
    """Requests and threads under one bound, whatever number of checkpoints is read."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.closed = threading.Event()
        self._in_flight = threading.BoundedSemaphore(settings.max_in_flight)
        self._streams: WeakSet[Any] = WeakSet()
        self._lock = threading.Lock()
        self._opener = ThreadPoolExecutor(1, thread_name_prefix="lnsim-open")
        self._pool = ThreadPoolExecutor(settings.max_in_flight, thread_name_prefix="lnsim")

    @contextmanager
    def get(self, url: httpx.URL, headers: Mapping[str, str], *, at_the_hub: bool = False) -> Iterator[Answer]:
        """One GET, when it is its turn; redirects are not followed.

        Only ``at_the_hub`` are logins sent that the session itself brings. Raises TryAgainError for whatever may pass,
        ClosedError when the client was closed, ProxyError when the proxy on the way cannot be used.
        """
        answer: Answer | None = None
        token = _quiet.set(True)
        try:
            with self._in_flight, closing(self._send(url, headers, at_the_hub)) as response:
                told = {name.lower(): text for name, text in response.headers.items()}
                answer = Answer(url, response.status_code, told, response, self.settings.total_timeout)
                yield answer
        except (httpx.HTTPError, UnicodeError) as error:
            if self.closed.is_set():
                raise ClosedError from None
            if isinstance(error, httpx.RemoteProtocolError) and answer is not None and answer.missing:
                raise TryAgainError(f"the body ended {answer.missing} bytes early") from None
            raise _failure(error, url) from None
        finally:
            _quiet.reset(token)

    def _send(self, url: httpx.URL, headers: Mapping[str, str], at_the_hub: bool) -> httpx.Response:
        if self.closed.is_set():
            raise ClosedError
        session, asked = _session(), self.settings
        timeout = httpx.Timeout(asked.read_timeout, connect=asked.connect_timeout, pool=asked.total_timeout)
        extensions = {"trace": self._watch}
        request = session.build_request("GET", url, headers=dict(headers), timeout=timeout, extensions=extensions)
        if not at_the_hub:
            for name in ("authorization", "cookie"):  # a session of the user's may add its own to every request
                request.headers.pop(name, None)
        login = httpx.USE_CLIENT_DEFAULT if at_the_hub else httpx.Auth()
        return session.send(request, stream=True, follow_redirects=False, auth=login)

    def _watch(self, event: str, told: Mapping[str, Any]) -> None:
        """Called by the HTTP library at each step: remember the connection, and go no further where all is closed."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            with self._lock:
                self._streams.add(told["return_value"])
        if event.endswith(".started") and "close" not in event and self.closed.is_set():
            raise ClosedError

    def aside(self, work: Callable[[], B]) -> Future[B]:
        """Do one thing beside the caller's own."""
        return self._pool.submit(work)

    def open(self, work: Callable[[], B]) -> B:
        """Open a checkpoint when it is its turn: each has many headers to ask for, and holds an index meanwhile.

        One thread parses all indexes: memory that one has freed is of little use to others.
        """
        with _stopped_by_hand():
            return self._opener.submit(work).result()

    def map(self, work: Callable[[A], B], items: Iterable[A], progress: Progress = no_progress) -> list[B]:
        """Results in the order of the items; the first error is raised, and what has not begun is left out."""
        futures = [self._pool.submit(work, item) for item in items]
        try:
            with _stopped_by_hand():
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
        for pool in (self._pool, self._opener):
            pool.shutdown(wait=False, cancel_futures=True)


_clients: dict[Settings, Client] = {}
_clients_lock = threading.Lock()


def client_for(settings: Settings) -> Client:
    """The process's client of these settings, made when it is first asked for."""
    with _clients_lock:
        if settings not in _clients:
            _clients[settings] = Client(settings)
        return _clients[settings]


def close_clients() -> None:
    """Close every client; the next reading makes new ones."""
    with _clients_lock:
        clients = list(_clients.values())
        _clients.clear()
    for client in clients:
        client.close()


@contextmanager
def _stopped_by_hand() -> Iterator[None]:
    """Close every client when the person at the keyboard stops the reading, so that no thread waits on."""
    try:
        yield
    except KeyboardInterrupt:
        close_clients()
        raise


def whole_number(text: str | None) -> int | None:
    """The number that a header tells; None where it is none."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 20 else None


def _failure(error: Exception, url: httpx.URL) -> Exception:
    """What went wrong on the way, by the operating system's error where there is one, and by the proxy's variable."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    why = f"{type(cause or error).__name__}: {(cause and cause.strerror) or cause or error}".removesuffix(": ")
    if not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError, UnicodeError)):
        return TryAgainError(why)
    host = url.netloc.decode("ascii")
    variable, proxy = _proxy_for(url) if get_session().trust_env else ("", "")
    if isinstance(error, httpx.ProxyError):
        if not str(error).startswith("407"):
            return UnreachableError(f"{host:.80} cannot be reached (the proxy answered {error!s:.60})")
        how = f" {proxy} wants a login (407), as in {variable}=http://user:password@{proxy}"
        return ProxyError(f"the proxy{how if proxy else ' on the way wants a login (407)'}")
    if variable and (isinstance(error, UnicodeError) or not _PROXY.fullmatch(proxy)):
        return _no_proxy(variable)
    if variable:
        why = why.partition(": ")[2] or why
        return UnreachableError(f"{host:.80} cannot be reached ({variable} names the proxy {proxy:.80}: {why})")
    if type(cause).__name__ == "gaierror":
        return UnreachableError(f"the name {url.host:.80} could not be resolved")
    return UnreachableError(f"{host:.80} cannot be reached ({why})")


def _proxy_for(url: httpx.URL) -> tuple[str, str]:
    """The variable that names the proxy on the way, and its host and port, for messages; empty where there is none."""
    found = getproxies()
    kind = url.scheme if found.get(url.scheme) else "all"
    if not found.get(kind) or proxy_bypass(f"{url.host}:{url.port or ''}".rstrip(":")):
        return "", ""
    return _variable(kind, found[kind]), found[kind].rpartition("@")[2].rpartition("://")[2].rstrip("/")


def _variable(kind: str, text: str) -> str:
    names = (f"{kind}_proxy", f"{kind.upper()}_PROXY")
    return next((name for name in names if os.environ.get(name) == text), f"the system's setting for {kind}")


def _no_proxy(variable: str) -> ProxyError:
    return ProxyError(
        f"{variable} names no proxy that can be used; an address such as http://host:port was expected (socks5 needs "
        f"the package socksio)"
    )


def _session() -> httpx.Client:
    _prepare()
    try:
        return get_session()
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        for kind, text in getproxies().items():
            try:
                httpx.HTTPTransport(proxy=text if "://" in text else f"http://{text}").close()
            except (ImportError, ValueError, httpx.InvalidURL):
                raise _no_proxy(_variable(kind, text)) from None
        raise ProxyError(f"the session of huggingface_hub cannot be made ({type(error).__name__})") from None


_quiet: ContextVar[bool] = ContextVar("_quiet", default=False)


class _NotOurs(logging.Filter):
    """Drops what the libraries log of our requests: signed addresses, and headers that a server may repeat."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _quiet.get()


@cache
def _prepare() -> None:
    """Once a process: keep our requests out of the libraries' logs, and our connections open between them.

    The one place with private names: the library's own session keeps 20 idle connections, too few for two origins, and
    nothing public tells whether there is a session or a user's factory, which are used as they are.
    """
    core = httpx.__name__.replace("httpx", "httpcore")
    parts = (f"{core}.{part}" for part in ("connection", "http11", "http2", "proxy", "socks"))
    for name in (httpx.__name__, _http.__name__, *parts):
        logging.getLogger(name).addFilter(_NotOurs())
    if _http._GLOBAL_CLIENT is None and _http._GLOBAL_CLIENT_FACTORY is _http.default_client_factory:
        hooks = {"request": [_http.hf_request_event_hook]}
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=_KEPT_OPEN)
        set_client_factory(lambda: httpx.Client(event_hooks=hooks, follow_redirects=True, timeout=None, limits=limits))
