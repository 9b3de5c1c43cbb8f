"""This module judges HTTP responses: is it the range that was asked for, may it pass, or what error is it.

Pure: it looks at a status and headers, and never reads a body.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass

from lnsim.checkpoint.hub.limits import reset_seconds
from lnsim.checkpoint.ranges import ByteRange
from lnsim.errors import GatedError, HubError, NetworkError, RepoNotFoundError, RevisionError

__all__ = [
    "DeadAddressError",
    "ForbiddenError",
    "NotThereError",
    "TooLongError",
    "TryAgainError",
    "check_range",
    "check_status",
    "retry_after",
]

_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})", re.ASCII)
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


class TryAgainError(Exception):
    """A failure that may pass.

    Args:
        reason: what was wrong with the answer.
        pause: seconds that the server asked to wait, or None.
    """

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


class NotThereError(HubError):
    """The repo has no such file; whoever asked decides whether that is an error."""


class TooLongError(HubError):
    """The answer is longer than a small file may be."""


class DeadAddressError(NetworkError):
    """Nobody answers at the address that a file was said to be served from."""


class ForbiddenError(HubError):
    """403 without a word on why: an expired signed address, or no access."""


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a file that a 206 holds: bytes up to ``stop``, of ``file_size`` in all."""

    stop: int
    file_size: int


def check_range(
    status: int, headers: Mapping[str, str], span: ByteRange, *, where: str, may_be_clipped: bool = False
) -> Span:
    """Accept a response as the range asked for.

    Args:
        status: of the response; only 206 is a range.
        headers: of the response.
        span: what was asked for.
        where: the file, for messages.
        may_be_clipped: accept an end that the file's own end cuts off.

    Raises:
        HubError: when the server answered with something else than a range, so that trying again is of no use.
        TryAgainError: when ``Content-Range`` tells other bytes.
    """
    if status != 206:
        raise HubError(
            f"Reading bytes {span.start} to {span.stop} of {where}: the server ignored Range and answered {status} "
            f"instead of 206. Nothing more was read."
        )
    coding = headers.get("content-encoding", "identity").strip().lower()
    if coding != "identity":
        raise HubError(
            f"Reading bytes {span.start} to {span.stop} of {where}: the server sent a range of the file's {coding:.40} "
            f"coding; the file's own bytes were expected. A proxy on the way may do that."
        )
    told = headers.get("content-range", "").strip()
    match = _CONTENT_RANGE.fullmatch(told)
    if match is None:
        raise TryAgainError(f"Content-Range should tell the bytes, found {told!r:.80}")
    start, last, size = (int(group) for group in match.groups())
    expected = min(span.stop, size) if may_be_clipped else span.stop
    if (start, last + 1) != (span.start, expected):
        raise TryAgainError(f"Content-Range should be {span.start}-{expected - 1}, found {told!r:.80}")
    return Span(expected, size)


def check_status(status: int, headers: Mapping[str, str], *, where: str, has_token: bool) -> None:
    """Raise what a status of 400 and above means; the Hub tells the kind in ``X-Error-Code``.

    Raises:
        TryAgainError: for 408, 425, 429 and 5xx.
        HubError: or the subclass that fits.
    """
    if status in _PASSING:
        asked = retry_after(headers)
        raise TryAgainError(f"status {status}", reset_seconds(headers) if asked is None and status == 429 else asked)
    if status < 400:
        return
    code = headers.get("x-error-code", "")
    lead = f"Reading {where}:"
    if code == "GatedRepo":
        advice = "your token has no access" if has_token else "no token was sent"
        raise GatedError(
            f"{lead} the repo is gated, and {advice}. Accept its terms on its page, then log in with `hf auth login`."
        )
    if code == "RevisionNotFound":
        raise RevisionError(f"{lead} the repo has no such revision (branch, tag or commit).")
    if code == "EntryNotFound":
        raise NotThereError(f"{lead} the repo has no such file.")
    if "disabled" in headers.get("x-error-message", ""):
        raise RepoNotFoundError(f"{lead} the Hub has disabled access to the repo.")
    if code == "RepoNotFound" or status == 401:
        private = "" if has_token else ", or it is private and no token was sent (`hf auth login`)"
        raise RepoNotFoundError(f"{lead} the Hub has no such repo{private}. Check the spelling.")
    _raise_plain(status, lead)


def _raise_plain(status: int, lead: str) -> None:
    if status == 404:
        raise NotThereError(f"{lead} not found (404).")
    if status == 403:
        raise ForbiddenError(f"{lead} the server refused access (403).")
    if status == 416:
        raise HubError(f"{lead} the server says that the file has no such bytes (416).")
    raise HubError(f"{lead} the server answered {status}.")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, from either form of ``Retry-After`` (RFC 9110, section 10.2.3).

    >>> retry_after({"retry-after": "7"})
    7.0
    """
    text = headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text[:9])
    try:
        then = email.utils.parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, then.timestamp() - time.time())
