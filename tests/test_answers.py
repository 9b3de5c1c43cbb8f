"""HTTP responses: what counts as the range asked for, and what each status means."""

from __future__ import annotations

import email.utils
import time

import pytest

from lnsim.checkpoint.format.ranges import ByteRange
from lnsim.checkpoint.hub.answers import (
    ForbiddenError,
    NotThereError,
    TryAgainError,
    check_range,
    check_status,
    retry_after,
)
from lnsim.errors import GatedError, HubError, RepoNotFoundError

SPAN = ByteRange(8, 108)


def told(text: str) -> dict[str, str]:
    return {"content-range": text}


@pytest.mark.parametrize("text", [
    "", "bytes 9-107/5000", "bytes 8-106/5000", "bytes 8-108/5000", "bytes 8-107/*", "items 8-107/5000", "bytes */5000",
])  # fmt: skip
def test_any_other_range_may_be_a_passing_fault(text: str) -> None:
    with pytest.raises(TryAgainError, match="Content-Range should"):
        check_range(206, told(text), SPAN, where="f")


def test_an_end_clipped_at_the_files_own_end_is_accepted_for_the_first_window_only() -> None:
    clipped = told("bytes 8-59/60")
    assert check_range(206, clipped, SPAN, where="f", may_be_clipped=True) == (60, 60)
    with pytest.raises(TryAgainError):
        check_range(206, clipped, SPAN, where="f")
    with pytest.raises(TryAgainError):
        check_range(206, told("bytes 8-58/60"), SPAN, where="f", may_be_clipped=True)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_status_is_tried_again_after_the_pause_asked_for(status: int) -> None:
    with pytest.raises(TryAgainError, match=f"status {status}") as caught:
        check_status(status, {"retry-after": "7"}, where="f", has_token=False)
    assert caught.value.pause == 7.0


@pytest.mark.parametrize(("status", "headers", "kind", "message"), [
    (401, {}, RepoNotFoundError, "no such repo"),
    (403, {"x-error-code": "GatedRepo"}, GatedError, "the repo is gated, and no token was sent. Accept its terms"),
    (403, {"x-error-message": "Access to this resource is disabled."}, RepoNotFoundError, "disabled access"),
    (404, {}, NotThereError, "not found"),
    (403, {}, ForbiddenError, "refused access"),
    (418, {}, HubError, "the server answered 418"),
    (410, {}, HubError, r"gone for good \(410\)"),
    (451, {"x-error-message": "By order of a court."}, HubError, r"legal reasons \(451\)\. The server says: 'By or"),
    (403, {"x-error-message": "disabled for tokens"}, ForbiddenError, r"\(403\)\. The server says: 'disabled for tok"),
    (401, {"x-error-message": "Invalid username or password."}, RepoNotFoundError, r"Check the spelling\.$"),
    (401, {"x-error-message": "Log in."}, RepoNotFoundError, r"spelling\. The server says: 'Log in'\.$"),
])  # fmt: skip
def test_each_failure_has_its_own_error_and_sentence(
    status: int, headers: dict[str, str], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=rf"^Reading a/b@main: .*{message}"):
        check_status(status, headers, where="a/b@main", has_token=False)


_REFUSED = r"the Hub refuses your token \(401\)\. Log in anew with `hf auth login`; .* unset HF_TOKEN"


@pytest.mark.parametrize(("status", "headers", "kind", "message"), [
    (401, {}, HubError, _REFUSED),
    (401, {"x-error-code": "RepoNotFound", "x-error-message": "The token is expired"}, HubError,
     _REFUSED + ".*is expired'"),
    (401, {"x-error-code": "RepoNotFound"}, RepoNotFoundError, "no such repo, or it refuses your token"),
    (404, {"x-error-code": "RepoNotFound"}, RepoNotFoundError, r"the Hub has no such repo\. Check the spelling\.$"),
])  # fmt: skip
def test_a_token_that_is_refused_is_told_with_the_reason_and_what_to_do(
    status: int, headers: dict[str, str], kind: type[HubError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        check_status(status, headers, where="a/b@main", has_token=True)
    assert type(caught.value) is kind


@pytest.mark.parametrize("status", [401, 403])
def test_an_address_elsewhere_that_refuses_says_nothing_of_the_repo_or_the_token(status: int) -> None:
    with pytest.raises(ForbiddenError, match=rf"^Reading f: the server refused access \({status}\)\.$"):
        check_status(status, {}, where="f", has_token=False, at_the_hub=False)


def test_a_reason_is_one_line_that_steers_nothing_and_is_not_too_long() -> None:
    said = "\x1b[31mfirst\n second " + "x" * 5000
    with pytest.raises(ForbiddenError, match=r"says: '\\x1b\[31mfirst second x{200,300} \[\.\.\.\]'\.$"):
        check_status(403, {"x-error-message": said}, where="f", has_token=False)


def test_retry_after_is_read_in_both_forms() -> None:
    soon = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert retry_after({"retry-after": "120"}) == 120.0
    assert 90 < (retry_after({"retry-after": soon}) or 0) <= 100
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None
