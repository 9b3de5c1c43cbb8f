"""This module judges HTTP responses by status and headers: the right range, what may pass, or an error."""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Mapping

from lnsim.checkpoint.format.ranges import ByteRange
from lnsim.errors import GatedError, HubError, NetworkError, RepoNotFoundError, RevisionError
from lnsim.text import printable
from lnsim.words import TEXTS

_CONTENT_RANGE = re.compile(r"bytes (\d{1,19})-(\d{1,19})/(\d{1,19})", re.ASCII)
_WINDOW_OVER = re.compile(r'"\w{1,40}"\s*;\s*r\s*=\s*\d{1,9}\s*;\s*t\s*=\s*(\d{1,9})', re.ASCII)
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_BY_THE_WAY = frozenset({502, 504})
_LONGEST_REASON = 300
_ON_THE_TOKEN = re.compile(r"token|credential|expired", re.IGNORECASE)
_USUAL = "Invalid username or password"  # the Hub's answer to anyone who asks for a repo that is not there


class TryAgainError(Exception):
    """A failure that may pass; ``pause`` are the seconds that the server asked to wait, or None."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


class NotThereError(HubError):
    """The repo has no such file; whoever asked decides whether that is an error."""


class NoRangeError(HubError):
    """Something else than a range was answered: a whole file, or a page of a machine on the way."""


class DeadAddressError(NetworkError):
    """Nobody answers at the address that a file was said to be served from."""


class ForbiddenError(HubError):
    """Access refused: an expired signed address, or a token without the right to it."""


def check_range(
    status: int, headers: Mapping[str, str], span: ByteRange, *, where: str, may_be_clipped: bool = False
) -> tuple[int, int]:
    """Accept a response as the range asked for, whose end the file's own end may cut off where that is said.

    Returns the byte after the last that came, and the bytes of the whole file. Raises NoRangeError for something else
    than a range, HubError for one of another form of the file, TryAgainError when ``Content-Range`` tells other bytes.
    """
    if status != 206:
        raise NoRangeError(
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
    return expected, size


def check_status(
    status: int, headers: Mapping[str, str], *, where: str, has_token: bool, at_the_hub: bool = True
) -> None:
    """Raise what a status of 400 and above means: TryAgainError for what may pass, else the HubError that fits.

    The Hub tells the kind in ``X-Error-Code``, and more in a message. ``has_token`` says whether a token was sent,
    ``at_the_hub`` that no address which the Hub gave out has answered.
    """
    if status in _PASSING:
        by_whom = ", from a proxy or gateway before the server" if status in _BY_THE_WAY else ""
        pause = retry_after(headers)
        if pause is None and status == 429 and (window := _WINDOW_OVER.search(headers.get("ratelimit", ""))):
            pause = float(window[1])
        raise TryAgainError(f"status {status}{by_whom}", pause)
    if status < 400:
        return
    lead, reason = f"Reading {where}:", _reason(headers)
    if at_the_hub:
        _raise_of_the_hub(status, headers, lead, reason, has_token)
    if status in (401, 403):
        advice = " Your token may not read it: see what it permits, or log in with another (`hf auth login`)."
        raise ForbiddenError(f"{lead} the server refused access ({status}).{advice if has_token else ''}{reason}")
    if status == 404:
        raise NotThereError(f"{lead} not found (404).")
    raise HubError(f"{lead} {TEXTS['statuses'].get(str(status), f'the server answered {status}')}.{reason}")


def _raise_of_the_hub(status: int, headers: Mapping[str, str], lead: str, reason: str, has_token: bool) -> None:
    code = headers.get("x-error-code", "")
    if code == "GatedRepo":
        advice = "your token has no access" if has_token else "no token was sent"
        raise GatedError(
            f"{lead} the repo is gated, and {advice}. Accept its terms on its page, then log in with `hf auth login`."
            f"{reason}"
        )
    if code == "RevisionNotFound":
        raise RevisionError(f"{lead} the repo has no such revision (branch, tag or commit).")
    if code == "EntryNotFound":
        raise NotThereError(f"{lead} the repo has no such file.")
    if "resource is disabled" in headers.get("x-error-message", ""):
        raise RepoNotFoundError(f"{lead} the Hub has disabled access to the repo.")
    if status == 401 and has_token and (code != "RepoNotFound" or _ON_THE_TOKEN.search(reason)):
        raise HubError(
            f"{lead} the Hub refuses your token (401). Log in anew with `hf auth login`; a public repo needs no token: "
            f"unset HF_TOKEN, or `hf auth logout`.{reason}"
        )
    if code == "RepoNotFound" or status == 401:
        private = "" if has_token else ", or it is private and no token was sent (`hf auth login`)"
        if has_token and status == 401:  # to a token that it knows, the Hub says 404
            private = ", or it refuses your token (401; `hf auth login` anew, or unset HF_TOKEN)"
        told = "" if _USUAL in reason else reason
        raise RepoNotFoundError(f"{lead} the Hub has no such repo{private}. Check the spelling.{told}")


def _reason(headers: Mapping[str, str]) -> str:
    """A sentence with what the Hub says itself, on one line and not too long; empty where it says nothing."""
    text = printable(" ".join(headers.get("x-error-message", "").split())).rstrip(".")
    shown = f"{text[:_LONGEST_REASON]} [...]" if len(text) > _LONGEST_REASON else text
    return f" The server says: '{shown}'." if shown else ""


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
