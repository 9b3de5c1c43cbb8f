"""This module makes checked requests to the Hub: the right bytes or one clear error, tried again where it may pass.

A range counts only when the answer says that it is this range and brings all of it; bodies are read piece by piece, so
that a server which ignores ``Range`` costs no gigabytes. The token goes to the Hub's own origin only.
"""

from __future__ import annotations

import logging
import os
import random
import re
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import TypeVar

from huggingface_hub import constants
from huggingface_hub.utils import httpx  # type: ignore[attr-defined]  # exported in all its versions, undeclared

from lnsim.checkpoint.format.ranges import ByteRange
from lnsim.checkpoint.hub.answers import DeadAddressError, NoRangeError, TryAgainError, check_range, check_status
from lnsim.checkpoint.hub.session import (
    Answer,
    Client,
    ClosedError,
    ProxyError,
    UnreachableError,
    UnusableAddressError,
    whole_number,
)
from lnsim.checkpoint.source import Progress, Traffic, no_progress
from lnsim.errors import HubError, NetworkError, OfflineError
from lnsim.text import printable
from lnsim.version import __version__

logger = logging.getLogger(__name__)

A = TypeVar("A")
B = TypeVar("B")
T = TypeVar("T")

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_HOPS = 5
_MAX_SIDE_BODY = 64 * 1024
_UNRANGED = 2  # answers other than a range that are dropped unread before one ends the reading
_STEP = 0.2  # seconds between two looks, during a pause, at whether it is still worth waiting
_HOST = re.compile(r"[\w.:-]+", re.ASCII)
_LAST_PORT = 65_535
_LOG_IN = "Log in anew with `hf auth login`, or set HF_TOKEN."


class Transport:
    """Checked requests for one checkpoint; ``traffic`` is where they and their bytes are counted."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.traffic = Traffic()
        self._given_up = threading.Event()
        hub = parse_address(constants.ENDPOINT)
        self._hub = _origin(hub)
        self._headers = {"user-agent": f"lnsim/{__version__}", "accept-encoding": "identity"}
        # huggingface_hub's own builder of headers would fetch a list of agents first: a stray request.
        token = _token()
        self._login = {"authorization": f"Bearer {token}"} if token else {}
        if token and constants.ENDPOINT != constants._HF_DEFAULT_ENDPOINT:
            _tell_of_mirror(_host(hub))

    def get(self, url: str, *, where: str, max_bytes: int, compressed: bool = False) -> bytes:
        """A whole small file, along its redirects; raises HubError, and NotThereError when the repo has none such."""
        encoding = {"accept-encoding": "gzip"} if compressed else {}

        def once(address: httpx.URL) -> bytes:
            with self._follow(address, encoding) as answer:
                self._check(answer, where)
                if answer.status != 200:
                    raise HubError(f"Reading {where}: 200 was expected, the server answered {answer.status}.")
                told = whole_number(answer.headers.get("content-length")) or 0
                data = _unpacked(answer, max_bytes) if told <= max_bytes else b""
            if max(told, len(data)) > max_bytes:
                raise HubError(f"Reading {where}: at most {max_bytes} bytes were expected, the answer is longer.")
            return data

        return self._retry(once, url, where)

    def get_start(self, url: str, n_bytes: int, *, where: str) -> bytes:
        """The first bytes of a file, as far as it goes; of a server without ranges no more is read either."""

        def once(address: httpx.URL) -> bytes:
            span = ByteRange(0, n_bytes)
            with self._follow(address, {"Range": span.http}) as answer:
                self._check(answer, where)
                told = whole_number(answer.headers.get("content-length")) if answer.status == 200 else None
                if answer.status != 200:
                    told, _ = check_range(answer.status, answer.headers, span, where=where, may_be_clipped=True)
                data = _read(answer, n_bytes)[:n_bytes]
            if told is not None and len(data) != min(told, n_bytes):
                raise TryAgainError(f"{min(told, n_bytes)} bytes were announced, another number came")
            return data

        return self._retry(once, url, where)

    def resolve(self, url: str, *, where: str) -> httpx.URL:
        """Where a file's bytes are served from, as the Hub says: often a signed address, good for some minutes."""

        def once(address: httpx.URL) -> httpx.URL:
            # One byte: where nothing redirects, that is all the answer holds.
            with self._follow(address, {"Range": ByteRange(0, 1).http}, stop_at_foreign=True) as answer:
                self._check(answer, where)
                if answer.status in _REDIRECTS:
                    _read(answer, _MAX_SIDE_BODY)
                    return _joined(answer.url, answer.headers.get("location", ""))
                check_range(answer.status, answer.headers, ByteRange(0, 1), where=where)
                _read(answer, 1)
                return answer.url

        return self._retry(once, url, where)

    def get_range(
        self, url: httpx.URL, span: ByteRange, *, where: str, may_be_clipped: bool = False, leave_if_dead: bool = False
    ) -> tuple[bytes, int]:
        """The bytes of a range, all of them and no others, and those of the whole file, as the server tells them.

        The address is one from ``resolve``; with ``leave_if_dead`` it is not tried again where nobody answers. That the
        file's own end cuts off the range may be accepted for the first window of a file only. Raises DeadAddressError
        when nobody answers there, NetworkError when the tries are used up, HubError when no ranges are served.
        """

        def once(address: httpx.URL) -> tuple[bytes, int]:
            with self._follow(address, {"Range": span.http}) as answer:
                self._check(answer, where)
                told = check_range(answer.status, answer.headers, span, where=where, may_be_clipped=may_be_clipped)
                stop, file_size = told
                data = _read(answer, stop - span.start)
            if len(data) != stop - span.start:
                raise TryAgainError(f"{stop - span.start} bytes were announced, another number came")
            return data, file_size

        return self._retry(once, url, f"bytes {span.start} to {span.stop} of {where}", leave_if_dead)

    def _check(self, answer: Answer, where: str) -> None:
        """Raise what a status means, told by the Hub or by whoever it sends us to."""
        if answer.status >= 400:
            at_the_hub = _origin(answer.url) == self._hub
            sent, told = bool(self._login) and at_the_hub, self._harmless(answer.headers)
            check_status(answer.status, told, where=where, has_token=sent, at_the_hub=at_the_hub)

    def _harmless(self, headers: Mapping[str, str]) -> dict[str, str]:
        """What a server says, without the token that it may repeat; in no frame that an error passes through."""
        token = self._login.get("authorization", "").removeprefix("Bearer ")
        return {name: text.replace(token, "[token]") if token else text for name, text in headers.items()}

    @contextmanager
    def _follow(self, url: httpx.URL, headers: Mapping[str, str], *, stop_at_foreign: bool = False) -> Iterator[Answer]:
        """The answer at the end of the redirects, each request counted; the token stays with the Hub's own origin."""
        for _ in range(_MAX_HOPS):
            at_the_hub = _origin(url) == self._hub
            own = {**self._headers, **self._login} if at_the_hub else self._headers
            self.traffic.count(requests=1)
            with self.client.get(url, {**own, **headers}, at_the_hub=at_the_hub) as answer:
                try:
                    if answer.status not in _REDIRECTS:
                        if answer.status >= 400:
                            _read(answer, _MAX_SIDE_BODY)  # of no use but for keeping the connection
                        yield answer
                        return
                    target = _joined(url, answer.headers.get("location", ""))
                    if stop_at_foreign and _origin(target) != _origin(url):
                        yield answer
                        return
                    _read(answer, _MAX_SIDE_BODY)
                finally:
                    self.traffic.count(received=answer.received)
            if url.scheme == "https" != target.scheme:
                raise UnusableAddressError("it leads from https to an address without encryption")
            url = target
        raise HubError(f"Following the redirects of {_host(url)}: more than {_MAX_HOPS} in a row.")

    def map(self, work: Callable[[A], B], items: Iterable[A], progress: Progress = no_progress) -> list[B]:
        """Results in the order of the items; after the first error nothing is begun or tried again."""
        self._given_up.clear()
        with ExitStack() as on_failure:
            on_failure.callback(self._given_up.set)
            results = self.client.map(work, items, progress)
            on_failure.pop_all()
        return results

    def _retry(
        self, once: Callable[[httpx.URL], T], url: str | httpx.URL, where: str, leave_if_dead: bool = False
    ) -> T:
        if constants.is_offline_mode():
            raise OfflineError(
                f"Reading {where}: the network is switched off by HF_HUB_OFFLINE, and the cache does not have it. "
                f"Unset HF_HUB_OFFLINE, or name a stored model or a folder."
            )
        try:
            address = parse_address(url) if isinstance(url, str) else url
            return self._tried(once, address, where, leave_if_dead)
        except ProxyError as error:
            raise NetworkError(f"Reading {where}: {error}.") from None
        except UnusableAddressError as error:
            raise HubError(f"Reading {where}: the server sends us to an address of no use: {error}.") from None
        except ClosedError:
            raise NetworkError(f"Reading {where}: the reading was stopped before it was done.") from None

    def _tried(self, once: Callable[[httpx.URL], T], url: httpx.URL, where: str, leave_if_dead: bool) -> T:
        tries, unranged = self.client.settings.max_tries, 0
        kind: type[NetworkError] = NetworkError
        for number in range(1, tries + 1):
            try:
                return once(url)
            except NoRangeError as error:
                unranged += 1
                if unranged > _UNRANGED or number == tries:
                    raise
                reason, asked = str(error), None
            except TryAgainError as error:
                reason = printable(" ".join(str(error).split())[:200].removesuffix(":"))
                asked, kind = error.pause, DeadAddressError if isinstance(error, UnreachableError) else NetworkError
                if leave_if_dead and kind is DeadAddressError:
                    raise DeadAddressError(f"Reading {where}: {reason}.") from None
            if number < tries:
                logger.debug("Reading %s again: %s", where, reason)
                self._sleep(self._pause(number, asked, where, reason))
        raise kind(
            f"Reading {where}: no usable answer from {_host(url):.120} in {tries} tries, the last one: {reason}. Check "
            f"the network and try again."
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

    def _sleep(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.client.closed.wait(min(left, _STEP)) or self._given_up.is_set():
                raise ClosedError


def parse_address(text: str, base: httpx.URL | None = None) -> httpx.URL:
    """An address that a request may be made to, as the code that makes it reads it; raises UnusableAddressError.

    One that another leads to comes without a user and password: they would be sent as a login.
    """
    try:
        url = httpx.URL(text) if base is None else base.join(text).copy_with(username=None, password=None)
        host = url.raw_host.decode("ascii")
        host.encode("idna")  # as the socket will
    except (httpx.InvalidURL, ValueError) as error:
        raise UnusableAddressError(f"it is no valid address ({error!s:.80})") from None
    if url.scheme not in ("http", "https") or not host:
        raise UnusableAddressError(f"an http or https address with a host was expected, found {str(url)[:40]!r}")
    if not _HOST.fullmatch(host) or not 0 <= (url.port or 0) <= _LAST_PORT:
        raise UnusableAddressError("it is no valid address (no host or port can be spelt so)")
    return url


def _joined(url: httpx.URL, location: str) -> httpx.URL:
    if "\\" in location:
        raise UnusableAddressError("a backslash is in it, behind which programs see different hosts")
    target = parse_address(location, url)
    if target == url:
        raise UnusableAddressError("it says that the file has moved, and not where to")
    return target


def _origin(url: httpx.URL) -> tuple[str, bytes]:
    """Scheme, host and port: what decides who sees the token."""
    return url.scheme, url.netloc


def _host(url: httpx.URL) -> str:
    return url.netloc.decode("ascii")


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


@cache
def _tell_of_mirror(host: str) -> None:
    logger.warning("HF_ENDPOINT is set: your Hub token is sent to %s.", host)
