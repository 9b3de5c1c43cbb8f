"""The Hub's limits: counted by us, told by the headers, waited for."""

from __future__ import annotations

import logging

import pytest
from hub_stand_in import Fault, HubStandIn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors

import lnsim
from lnsim.checkpoint.hub.limits import ANONYMOUS, Quota, RateLimits, kind_of, reset_seconds
from lnsim.errors import NetworkError


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def left(kind: str, count: int, seconds: int) -> dict[str, str]:
    return {"ratelimit": f'"{kind}";r={count};t={seconds}'}


def test_an_anonymous_user_stays_under_the_windows_of_the_hub(clock: Clock) -> None:
    limits = RateLimits(ANONYMOUS, clock)
    for kind, quota in ANONYMOUS.items():
        granted = 0
        while not limits.take(kind):
            granted += 1
        assert granted == quota.requests


def test_the_window_slides(clock: Clock) -> None:
    limits = RateLimits({"api": Quota(2, 300)}, clock)
    assert limits.take("api") == 0
    clock.now += 100
    assert limits.take("api") == 0
    assert limits.take("api") == 200
    clock.now += 200
    assert limits.take("api") == 0
    assert limits.take("api") == 100


def test_kinds_are_counted_apart(clock: Clock) -> None:
    limits = RateLimits({"api": Quota(1, 300), "resolvers": Quota(1, 300)}, clock)
    assert [limits.take("api"), limits.take("resolvers")] == [0, 0]


def test_what_the_server_says_goes_over_our_count(clock: Clock) -> None:
    limits = RateLimits({"api": Quota(500, 300)}, clock)
    limits.learn(left("api", 1, 40))
    assert limits.take("api") == 0
    assert limits.take("api") == 40  # another program of this address used up the rest
    clock.now += 40
    assert limits.take("api") == 0


def test_answers_that_come_late_do_not_give_back_what_was_taken_since(clock: Clock) -> None:
    limits = RateLimits({}, clock)
    limits.learn(left("api", 3, 40))
    assert [limits.take("api") for _ in range(2)] == [0, 0]
    limits.learn(left("api", 2, 40))
    assert [limits.take("api") for _ in range(2)] == [0, 40]


def test_a_new_window_starts_with_what_the_server_says(clock: Clock) -> None:
    limits = RateLimits({}, clock)
    limits.learn(left("api", 0, 10))
    clock.now += 11
    limits.learn(left("api", 5, 300))
    assert limits.take("api") == 0


@pytest.mark.parametrize("text", ["", "api;r=1", '"api";r=-1;t=5', '"api";r=1e9;t=5', '"' + "x" * 999 + '";r=1;t=1'])
def test_a_header_that_is_none_changes_nothing(clock: Clock, text: str) -> None:
    limits = RateLimits({"api": Quota(1, 300)}, clock)
    limits.learn({"ratelimit": text})
    assert limits.take("api") == 0
    assert reset_seconds({"ratelimit": text}) is None


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/api/models/a/b", "api"), ("/a/b/resolve/main/config.json", "resolvers"), ("/api/models/a/b/revision/x", "api")],
)
def test_a_path_is_counted_as_the_hub_counts_it(path: str, kind: str) -> None:
    assert kind_of(path) == kind


def test_a_limit_told_by_the_server_is_waited_for_with_a_word(
    hub: HubStandIn, caplog: pytest.LogCaptureFixture
) -> None:
    hub.also.append((r"/resolve/.*config\.json$", {"RateLimit": '"resolvers";r=0;t=1'}))
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG, 2))
    with caplog.at_level(logging.WARNING):
        assert lnsim.extract("a/b").n_vectors == 7
    assert "The Hub's limit of resolvers requests is used up: going on in 1 seconds." in caplog.text


def test_a_limit_that_lasts_too_long_is_an_error_that_says_so(hub: HubStandIn) -> None:
    hub.also.append((r"/resolve/.*config\.json$", {"RateLimit": '"resolvers";r=0;t=9000'}))
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG, 4))
    with pytest.raises(NetworkError, match=r"the limit of resolvers requests is used up\). Try later"):
        lnsim.extract("a/b")


def test_a_429_without_retry_after_is_waited_for_as_its_window_says(hub: HubStandIn) -> None:
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    told = {"status": "429", "RateLimit": '"api";r=0;t=9000'}
    hub.faults.append(Fault("/api/models", "status", headers=told))
    with pytest.raises(NetworkError, match="the server asks to wait 9000 seconds"):
        lnsim.extract("a/b")
