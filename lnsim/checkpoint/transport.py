"""This module makes checked requests to the Hub through huggingface_hub's own session.

A range counts only when the answer says that it is this range and brings all of it. Bodies are streamed, so that a
server which ignores ``Range`` costs no gigabytes. What may pass is tried again, with growing pauses that honour
``Retry-After``. The token goes to the Hub's endpoint only, never along a redirect to another origin.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from huggingface_hub import constants, get_token, set_client_factory
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import get_session, httpx  # type: ignore[attr-defined]
from huggingface_hub.utils._http import hf_request_event_hook

import lnsim
from lnsim.checkpoint.answers import TryAgainError, check_range, check_status
from lnsim.checkpoint.ranges import ByteRange
from lnsim.checkpoint.source import Traffic
from lnsim.errors import HubError, NetworkError, OfflineError

__all__ = ["Body", "Resolved", "Settings", "Transport"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_HOPS = 5
_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """How hard and how patiently to ask.

    Args:
        max_in_flight: requests at once, and connections kept open.
        max_tries: tries of one request before it is an error.
        first_pause: seconds before the second try; doubled for each further one, with jitter.
        max_pause: longest pause of our own, in seconds.
        max_retry_after: longest pause that a server may ask for; a longer one is an error that says so. The Hub's
            windows are 300 seconds long.
        connect_timeout: seconds to wait for a connection.
        read_timeout: seconds to wait for the next bytes.
    """

    max_in_flight: int = 16
    max_tries: int = 5
    first_pause: float = 0.25
    max_pause: float = 20.0
    max_retry_after: float = 330.0
    connect_timeout: float = 10.0
    read_timeout: float = 20.0

    @property
    def timeout(self) -> Any:
        """The same as the client's own value. The threads are bounded, so waiting for a free connection is not."""
        return httpx.Timeout(self.read_timeout, connect=self.connect_timeout, pool=None)


@dataclass(frozen=True, slots=True)
class Body:
    """A checked range.

    Args:
        data: its bytes.
        file_size: bytes of the whole file, as the server tells it.
    """

    data: bytes = field(repr=False)
    file_size: int


@dataclass(frozen=True, slots=True)
class Resolved:
    """Where a file's bytes are served from.

    Args:
        url: final address; often signed, so good for some minutes and not to be shown.
        file_size: bytes of the file where the redirect told it, else None.
    """

    url: str = field(repr=False)
    file_size: int | None


class Transport:
    """Checked requests for one checkpoint.

    Args:
        settings: patience and concurrency.
        traffic: where requests and bytes are counted.
    """

    def __init__(self, settings: Settings, traffic: Traffic) -> None:
        self.settings = settings
        self.traffic = traffic
        self._headers = _base_headers()
        self.has_token = "authorization" in self._headers
        _use_client(settings)
        if self.has_token and constants.ENDPOINT != constants._HF_DEFAULT_ENDPOINT:
            logger.warning("HF_ENDPOINT is set: your Hub token is sent to %s.", urlsplit(constants.ENDPOINT).netloc)

    def get(self, url: str, *, where: str, max_bytes: int, compressed: bool = False) -> bytes:
        """A whole small file, along its redirects.

        Raises:
            HubError: or the subclass that fits; NotThereError when the repo has no such file.
        """
        encoding = {"accept-encoding": "gzip"} if compressed else {}

        def once() -> bytes:
            with self._follow(url, encoding) as response:
                check_status(response.status_code, response.headers, where=where, has_token=self.has_token)
                data = self._body(response, max_bytes)
            if len(data) > max_bytes:
                raise HubError(f"Reading {where}: at most {max_bytes} bytes were expected, the answer is longer.")
            return data

        return self._retry(once, where)

    def resolve(self, url: str, *, where: str) -> Resolved:
        """Ask the Hub where a file is served from, and go no further than its answer.

        Raises:
            HubError: or the subclass that fits.
        """

        def once() -> Resolved:
            # One byte: where nothing redirects, that is all the answer holds.
            with self._follow(url, {"Range": ByteRange(0, 1).http}, stop_at_foreign=True) as response:
                check_status(response.status_code, response.headers, where=where, has_token=self.has_token)
                if response.status_code in _REDIRECTS:
                    size = _whole_number(response.headers.get("x-linked-size"))
                    return Resolved(urljoin(str(response.url), response.headers["location"]), size)
                size = check_range(response.status_code, response.headers, ByteRange(0, 1), where=where).file_size
                return Resolved(str(response.url), size)

        return self._retry(once, where)

    def get_range(self, url: str, span: ByteRange, *, where: str, may_be_clipped: bool = False) -> Body:
        """The bytes of a range: all of them and no others.

        Args:
            url: address from ``resolve``.
            span: what to read.
            where: the file, for messages.
            may_be_clipped: accept an end that the file's own end cuts off; right for the first window of a file only.

        Raises:
            NetworkError: when the tries are used up; HubError: when the server does not serve ranges.
        """

        def once() -> Body:
            with self._follow(url, {"Range": span.http}) as response:
                status, headers = response.status_code, response.headers
                check_status(status, headers, where=where, has_token=self.has_token)
                told = check_range(status, headers, span, where=where, may_be_clipped=may_be_clipped)
                data = self._body(response, told.stop - span.start)
            if len(data) != told.stop - span.start:
                raise TryAgainError(f"{told.stop - span.start} bytes were announced, another number came")
            return Body(data, told.file_size)

        return self._retry(once, f"bytes {span.start} to {span.stop} of {where}")

    @contextmanager
    def _follow(self, url: str, headers: Mapping[str, str], *, stop_at_foreign: bool = False) -> Iterator[Any]:
        """The response at the end of the redirects; the token stays with the Hub's own origin."""
        for _ in range(_MAX_HOPS):
            self.traffic.count(requests=1)
            with get_session().stream(
                "GET",
                url,
                headers=self._headers_for(url) | dict(headers),
                timeout=self.settings.timeout,
                follow_redirects=False,
            ) as response:
                target = urljoin(url, response.headers.get("location", ""))
                redirected = response.status_code in _REDIRECTS and target != url
                if not redirected or (stop_at_foreign and _origin(target) != _origin(url)):
                    yield response
                    return
            url = target
        raise HubError(f"Following the redirects of {urlsplit(url).netloc}: more than {_MAX_HOPS} in a row.")

    def _headers_for(self, url: str) -> dict[str, str]:
        if _origin(url) == _origin(constants.ENDPOINT):
            return dict(self._headers)
        return {name: value for name, value in self._headers.items() if name != "authorization"}

    def _body(self, response: Any, limit: int) -> bytes:
        """The body, or its start as soon as that is longer than ``limit``."""
        data = bytearray()
        try:
            for chunk in response.iter_bytes(_CHUNK):
                data += chunk
                if len(data) > limit:
                    break
        finally:
            self.traffic.count(received=response.num_bytes_downloaded)
        return bytes(data)

    def _retry(self, once: Callable[[], T], where: str) -> T:
        tries = self.settings.max_tries
        for number in range(1, tries + 1):
            try:
                return once()
            except OfflineModeIsEnabled:
                raise OfflineError(
                    f"Reading {where}: the network is switched off by HF_HUB_OFFLINE, and the cache does not have it. "
                    f"Unset HF_HUB_OFFLINE, or name a stored model or a folder."
                ) from None
            except (TryAgainError, httpx.RequestError) as error:
                reason = _one_line(f"{type(error).__name__}: {error}".removeprefix("TryAgainError: "))
                pause = error.pause if isinstance(error, TryAgainError) else None
            except httpx.InvalidURL as error:
                raise HubError(f"Reading {where}: the server redirects to no valid address ({error!s:.80}).") from None
            if number < tries:
                logger.debug("Reading %s again: %s", where, reason)
                time.sleep(self._pause(number, pause, where, reason))
        raise NetworkError(
            f"Reading {where}: no usable answer from {urlsplit(constants.ENDPOINT).netloc} in {tries} tries, the last "
            f"one: {reason}. Check the network and try again."
        )

    def _pause(self, number: int, asked: float | None, where: str, reason: str) -> float:
        """Seconds before the next try: what the server asked for, else growing and jittered."""
        if asked is None:
            longest = min(self.settings.first_pause * 2 ** (number - 1), self.settings.max_pause)
            return float(longest * random.uniform(0.5, 1.0))
        if asked > self.settings.max_retry_after:
            raise NetworkError(f"Reading {where}: the server asks to wait {asked:.0f} seconds ({reason}). Try later.")
        return asked


def _base_headers() -> dict[str, str]:
    """Headers of every request. huggingface_hub's own builder would fetch a list of agents first: a stray request."""
    headers = {"user-agent": f"lnsim/{lnsim.__version__}", "accept-encoding": "identity"}
    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    return headers | {"authorization": f"Bearer {token}"} if token else headers


def _whole_number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 20 else None


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200].removesuffix(":")


_client_lock = threading.Lock()
_client_size = 0


def _use_client(settings: Settings) -> None:
    """Let the shared client keep as many connections as are in flight; by itself it keeps 20."""
    global _client_size
    with _client_lock:
        if settings.max_in_flight <= _client_size:
            return
        limits = httpx.Limits(max_keepalive_connections=settings.max_in_flight, keepalive_expiry=60.0)
        set_client_factory(
            lambda: httpx.Client(
                event_hooks={"request": [hf_request_event_hook]},
                follow_redirects=True,
                timeout=settings.timeout,
                limits=limits,
            )
        )
        _client_size = settings.max_in_flight
