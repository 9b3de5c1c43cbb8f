"""This module makes checked requests to the Hub: the right bytes or one clear error, tried again where it may pass.

A range counts only when the answer says that it is this range and brings all of it. Bodies are read piece by piece, so
that a server which ignores ``Range`` costs no gigabytes. What may pass is tried again, with growing pauses that honour
``Retry-After``. The token goes to the Hub's endpoint only, never along a redirect to another origin.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar
from urllib.parse import urlsplit

from huggingface_hub import constants

from lnsim.checkpoint.hub.addresses import ProxyError, UnusableAddressError, joined, origin_of
from lnsim.checkpoint.hub.answers import (
    DeadAddressError,
    NoRangeError,
    TooLongError,
    TryAgainError,
    check_range,
    check_status,
)
from lnsim.checkpoint.hub.client import Answer, Client, ClosedError, RequestError, UnreachableError, whole_number
from lnsim.checkpoint.ranges import ByteRange
from lnsim.checkpoint.source import Progress, Traffic, no_progress
from lnsim.errors import HubError, NetworkError, OfflineError
from lnsim.text import printable
from lnsim.version import __version__

__all__ = ["Body", "Resolved", "Transport"]

logger = logging.getLogger(__name__)

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

_Kinds = type[Exception] | tuple[type[Exception], ...]

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_HOPS = 5
_MAX_SIDE_BODY = 64 * 1024
_UNRANGED = 2
"""Answers other than a range that are dropped unread before one ends the reading: few of many servers give them."""

_STEP = 0.2
"""Seconds between two looks, during a pause, at whether it is still worth waiting."""

_LOG_IN = "Log in anew with `hf auth login`, or set HF_TOKEN."


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
    """

    url: str = field(repr=False)


class Transport:
    """Checked requests for one checkpoint.

    Args:
        client: the connections, and how patient to be.
        traffic: where requests and bytes are counted.
    """

    def __init__(self, client: Client, traffic: Traffic) -> None:
        self.client = client
        self.traffic = traffic
        self._given_up = threading.Event()
        self._hub = origin_of(constants.ENDPOINT)
        self._headers = _base_headers()
        self.has_token = "authorization" in self._headers
        if self.has_token and constants.ENDPOINT != constants._HF_DEFAULT_ENDPOINT:
            _tell_of_mirror(urlsplit(constants.ENDPOINT).netloc)

    def get(self, url: str, *, where: str, max_bytes: int, compressed: bool = False) -> bytes:
        """A whole small file, along its redirects.

        Raises:
            HubError: or the subclass that fits; NotThereError when the repo has no such file.
        """
        encoding = {"accept-encoding": "gzip"} if compressed else {}

        def once() -> bytes:
            with self._follow(url, encoding) as answer:
                self._check(answer, where)
                if answer.status != 200:
                    raise HubError(f"Reading {where}: 200 was expected, the server answered {answer.status}.")
                told = whole_number(answer.headers.get("content-length"))
                data = b"" if told is not None and told > max_bytes else _unpacked(answer, max_bytes)
            if len(data) > max_bytes or (told is not None and told > max_bytes):
                raise TooLongError(f"Reading {where}: at most {max_bytes} bytes were expected, the answer is longer.")
            return data

        return self._retry(once, where, url)

    def resolve(self, url: str, *, where: str) -> Resolved:
        """Ask the Hub where a file is served from, and go no further than its answer.

        Raises:
            HubError: or the subclass that fits.
        """

        def once() -> Resolved:
            # One byte: where nothing redirects, that is all the answer holds.
            with self._follow(url, {"Range": ByteRange(0, 1).http}, stop_at_foreign=True) as answer:
                self._check(answer, where)
                if answer.status in _REDIRECTS:
                    _read(answer, _MAX_SIDE_BODY)
                    target = joined(answer.url, answer.headers.get("location", ""))
                    if target == answer.url:
                        raise UnusableAddressError("it says that the file has moved, and not where to")
                    return Resolved(target)
                check_range(answer.status, answer.headers, ByteRange(0, 1), where=where)
                _read(answer, 1)
                return Resolved(answer.url)

        return self._retry(once, where, url)

    def get_range(
        self, url: str, span: ByteRange, *, where: str, may_be_clipped: bool = False, leave_if_dead: bool = False
    ) -> Body:
        """The bytes of a range: all of them and no others.

        Args:
            url: address from ``resolve``.
            span: what to read.
            where: the file, for messages.
            may_be_clipped: accept an end that the file's own end cuts off; right for the first window of a file only.
            leave_if_dead: do not try an address again where nobody answers.

        Raises:
            DeadAddressError: when nobody answers there.
            NetworkError: when the tries are used up; HubError: when the server does not serve ranges.
        """

        def once() -> Body:
            with self._follow(url, {"Range": span.http}) as answer:
                self._check(answer, where)
                told = check_range(answer.status, answer.headers, span, where=where, may_be_clipped=may_be_clipped)
                data = _read(answer, told.stop - span.start)
            if len(data) != told.stop - span.start:
                raise TryAgainError(f"{told.stop - span.start} bytes were announced, another number came")
            return Body(data, told.file_size)

        what = f"bytes {span.start} to {span.stop} of {where}"
        try:
            return self._retry(once, what, url, UnreachableError if leave_if_dead else ())
        except UnreachableError as error:
            raise DeadAddressError(f"Reading {what}: {error}.") from None

    def _check(self, answer: Answer, where: str) -> None:
        """Raise what a status means, told by the Hub or by whoever it sends us to."""
        if answer.status >= 400:
            said, sent = self._harmless(answer.headers), self.has_token and answer.at_the_hub
            check_status(answer.status, said, where=where, has_token=sent, at_the_hub=answer.at_the_hub)

    def _harmless(self, headers: Mapping[str, str]) -> dict[str, str]:
        """What a server says, without the token that it may repeat."""
        token = self._headers.get("authorization", "").removeprefix("Bearer ")
        return {name: text.replace(token, "[token]") if token else text for name, text in headers.items()}

    @contextmanager
    def _follow(self, url: str, headers: Mapping[str, str], *, stop_at_foreign: bool = False) -> Iterator[Answer]:
        """The answer at the end of the redirects; the token stays with the Hub's own origin."""
        for _ in range(_MAX_HOPS):
            with self._exchange(url, headers) as answer:
                target = joined(url, answer.headers.get("location", "")) if answer.status in _REDIRECTS else url
                redirected = target != url
                if not redirected or (stop_at_foreign and origin_of(target) != origin_of(url)):
                    if answer.status >= 400:
                        _read(answer, _MAX_SIDE_BODY)  # of no use but for keeping the connection
                    yield answer
                    return
                _read(answer, _MAX_SIDE_BODY)
                if origin_of(url).scheme == "https" != origin_of(target).scheme:
                    raise UnusableAddressError("it leads from https to an address without encryption")
            url = target
        raise HubError(f"Following the redirects of {urlsplit(url).netloc}: more than {_MAX_HOPS} in a row.")

    @contextmanager
    def _exchange(self, url: str, headers: Mapping[str, str]) -> Iterator[Answer]:
        """One request; what it took is counted."""
        at_the_hub = origin_of(url) == self._hub
        own = self._headers if at_the_hub else _without_token(self._headers)
        self.traffic.count(requests=1)
        with self.client.get(url, {**own, **headers}, at_the_hub=at_the_hub) as answer:
            try:
                yield answer
            finally:
                self.traffic.count(received=answer.received)

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.client.closed.wait(min(left, _STEP)) or self._given_up.is_set():
                raise ClosedError("the reading was stopped")

    def map(self, work: Callable[[A], B], items: Iterable[A], progress: Progress = no_progress) -> list[B]:
        """Results in the order of the items, many at a time.

        The first error is raised. What has not begun by then is left out, and what has is not tried again.
        """
        self._given_up.clear()
        with ExitStack() as on_failure:
            on_failure.callback(self._given_up.set)
            results = self.client.map(work, items, progress)
            on_failure.pop_all()
        return results

    def _retry(self, once: Callable[[], T], where: str, url: str, final: _Kinds = ()) -> T:
        if constants.is_offline_mode():
            raise OfflineError(
                f"Reading {where}: the network is switched off by HF_HUB_OFFLINE, and the cache does not have it. "
                f"Unset HF_HUB_OFFLINE, or name a stored model or a folder."
            )
        try:
            return self._tried(once, where, urlsplit(url).netloc, final)
        except ProxyError as error:
            raise NetworkError(f"Reading {where}: {error}.") from None
        except UnusableAddressError as error:
            raise HubError(f"Reading {where}: the server sends us to an address of no use: {error}.") from None
        except ClosedError:
            raise NetworkError(f"Reading {where}: the reading was stopped before it was done.") from None

    def _tried(self, once: Callable[[], T], where: str, host: str, final: _Kinds) -> T:
        tries, unranged = self.client.settings.max_tries, 0
        for number in range(1, tries + 1):
            try:
                return once()
            except final:
                raise
            except NoRangeError as error:
                unranged += 1
                if unranged > _UNRANGED or number == tries:
                    raise
                reason, pause = str(error), None
            except (TryAgainError, RequestError) as error:
                reason = _one_line(str(error))
                pause = error.pause if isinstance(error, TryAgainError) else None
                kind = DeadAddressError if isinstance(error, UnreachableError) else NetworkError
            if number < tries:
                logger.debug("Reading %s again: %s", where, reason)
                self._sleep(self._pause(number, pause, where, reason))
        raise kind(
            f"Reading {where}: no usable answer from {host:.120} in {tries} tries, the last one: {reason}. Check the "
            f"network and try again."
        )

    def _pause(self, number: int, asked: float | None, where: str, reason: str) -> float:
        """Seconds before the next try: what the server asked for, else growing and jittered."""
        settings = self.client.settings
        if asked is None:
            longest = min(settings.first_pause * 2 ** (number - 1), settings.max_pause)
            return float(longest * random.uniform(0.5, 1.0))
        if asked > settings.max_retry_after:
            raise NetworkError(f"Reading {where}: the server asks to wait {asked:.0f} seconds ({reason}). Try later.")
        return asked


def _read(answer: Answer, limit: int) -> bytes:
    """The body, or its start as soon as that is longer than ``limit``."""
    pieces: list[bytes] = []
    for chunk in answer.chunks():
        pieces.append(chunk)
        if answer.received > limit:
            break
    return b"".join(pieces)


def _unpacked(answer: Answer, limit: int) -> bytes:
    """The body, decompressed where it is; it may be cut as soon as it is longer than ``limit``, packed or not."""
    coding = answer.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip", "x-gzip"):
        raise TryAgainError(f"an uncompressed or gzip body was expected, found {coding[:40]!r}")
    if coding == "identity":
        return _read(answer, limit)
    unpacker = zlib.decompressobj(wbits=31)
    data = bytearray()
    try:
        for chunk in answer.chunks():
            data += unpacker.decompress(chunk, limit + 1 - len(data))
            if len(data) > limit:
                return bytes(data)
    except zlib.error as error:
        raise TryAgainError(f"a gzip body was expected ({error})") from None
    if not unpacker.eof:
        raise TryAgainError("the gzip body ends early")
    return bytes(data)


def _base_headers() -> dict[str, str]:
    """Headers of every request. huggingface_hub's own builder would fetch a list of agents first: a stray request."""
    headers = {"user-agent": f"lnsim/{__version__}", "accept-encoding": "identity"}
    token = _token()
    return headers | {"authorization": f"Bearer {token}"} if token else headers


def _token() -> str | None:
    """The user's token as the client library finds it; that is a slow import, paid only where there may be one."""
    names = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE")
    there = any(map(os.environ.get, names)) or os.path.exists(constants.HF_TOKEN_PATH) or "google.colab" in sys.modules
    if not there or constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return None
    from huggingface_hub import get_token

    try:
        token = get_token()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
        raise HubError(f"Reading your Hub token from {constants.HF_TOKEN_PATH}: {why}. {_LOG_IN}") from None
    if token and not (token.isascii() and token.isprintable() and " " not in token):
        raise HubError(f"Reading your Hub token: it holds signs that no token has, perhaps quotation marks. {_LOG_IN}")
    return token


def _without_token(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "authorization"}


@cache
def _tell_of_mirror(host: str) -> None:
    logger.warning("HF_ENDPOINT is set: your Hub token is sent to %s.", host)


def _one_line(text: str) -> str:
    return printable(" ".join(text.split())[:200].removesuffix(":"))
