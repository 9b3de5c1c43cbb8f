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
from lnsim.errors import HubError, RepoNotFoundError

SPAN = ByteRange(8, 108)


def test_any_other_range_may_be_a_passing_fault_but_for_an_end_clipped_at_the_files_own_in_the_first_window() -> None:
    for text in ("bytes 8-108/5000", "bytes 8-107/*", "items 8-107/5000", "bytes 8-59/60"):
        with pytest.raises(TryAgainError, match="Content-Range should"):
            check_range(206, {"content-range": text}, SPAN, where="f")
    assert check_range(206, {"content-range": "bytes 8-59/60"}, SPAN, where="f", may_be_clipped=True) == (60, 60)
    with pytest.raises(TryAgainError):
        check_range(206, {"content-range": "bytes 8-58/60"}, SPAN, where="f", may_be_clipped=True)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_passing_status_is_tried_again_after_the_pause_asked_for(status: int) -> None:
    with pytest.raises(TryAgainError, match=f"status {status}") as caught:
        check_status(status, {"retry-after": "7"}, where="f", has_token=False)
    assert caught.value.pause == 7.0


@pytest.mark.parametrize(("status", "headers", "kind", "message"), [
    (403, {"x-error-message": "Access to this resource is disabled."}, RepoNotFoundError, "disabled access"),
    (404, {}, NotThereError, "not found"),
    (418, {}, HubError, "the server answered 418"),
    (410, {}, HubError, r"gone for good \(410\)"),
    (451, {"x-error-message": "By order of a court."}, HubError, r"legal reasons \(451\)\. The server says: 'By or"),
    (403, {"x-error-message": "disabled for tokens"}, ForbiddenError, r"\(403\)\. The server says: 'disabled for tok"),
    (403, {"x-error-message": "\x1b[31mfirst\n second " + "x" * 5000}, ForbiddenError,
     r"says: '\\x1b\[31mfirst second x{200,300} \[\.\.\.\]'\.$"),
    (401, {"x-error-message": "Invalid username or password."}, RepoNotFoundError, r"Check the spelling\.$"),
    (401, {"x-error-message": "Log in."}, RepoNotFoundError, r"spelling\. The server says: 'Log in'\.$"),
])  # fmt: skip
def test_each_failure_has_its_own_error_and_sentence(
    status: int, headers: dict[str, str], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=rf"^Reading a/b@main: .*{message}"):
        check_status(status, headers, where="a/b@main", has_token=False)


@pytest.mark.parametrize(("status", "message", "kind", "says"), [
    (401, "The token is expired", HubError, r"the Hub refuses your token \(401\)\. .* unset HF_TOKEN.*is expired'"),
    (401, "", RepoNotFoundError, "no such repo, or it refuses your token"),
    (404, "", RepoNotFoundError, r"the Hub has no such repo\. Check the spelling\.$"),
])  # fmt: skip
def test_of_a_repo_that_is_not_found_with_a_token_the_hub_says_which_is_wrong(
    status: int, message: str, kind: type[HubError], says: str
) -> None:
    told = {"x-error-code": "RepoNotFound", "x-error-message": message}
    with pytest.raises(kind, match=says) as caught:
        check_status(status, told, where="a/b@main", has_token=True)
    assert type(caught.value) is kind


def test_an_address_elsewhere_that_refuses_says_nothing_of_the_repo_or_the_token() -> None:
    with pytest.raises(ForbiddenError, match=r"^Reading f: the server refused access \(401\)\.$"):
        check_status(401, {}, where="f", has_token=False, at_the_hub=False)


def test_retry_after_is_read_in_both_forms() -> None:
    soon = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < (retry_after({"retry-after": soon}) or 0) <= 100
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    assert retry_after({"retry-after": "soon"}) is None
    assert retry_after({}) is None
