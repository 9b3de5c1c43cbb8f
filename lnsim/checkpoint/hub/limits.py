"""This module keeps requests under the Hub's limits: so many of a kind in each window of some minutes.

The Hub counts anonymous users by address, 500 API and 3,000 resolve requests in five minutes
(https://huggingface.co/docs/hub/rate-limits), and tells in the headers ``RateLimit`` and ``RateLimit-Policy`` (IETF
draft-ietf-httpapi-ratelimit-headers-09) what is left. What it tells goes over what we counted.
"""

from __future__ import annotations

import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

__all__ = ["ANONYMOUS", "Quota", "RateLimits", "kind_of", "reset_seconds"]

_LEFT = re.compile(r'"(\w{1,40})"\s*;\s*r\s*=\s*(\d{1,9})\s*;\s*t\s*=\s*(\d{1,9})', re.ASCII)


@dataclass(frozen=True, slots=True)
class Quota:
    """At most ``requests`` in any ``window`` seconds."""

    requests: int
    window: float


ANONYMOUS: Mapping[str, Quota] = {"api": Quota(500, 300.0), "resolvers": Quota(3000, 300.0)}
"""What the Hub grants an address without a token."""


@dataclass(slots=True)
class _Bucket:
    quota: Quota | None
    times: deque[float] = field(default_factory=deque)
    left: int | None = None
    reset: float = 0.0

    def pause(self, now: float) -> float:
        """Seconds until one more request fits; 0 when it does now."""
        if self.left is not None and now >= self.reset:
            self.left = None
        if self.left is not None:
            return 0.0 if self.left > 0 else self.reset - now
        if self.quota is None:
            return 0.0
        while self.times and now - self.times[0] >= self.quota.window:
            self.times.popleft()
        if len(self.times) < self.quota.requests:
            return 0.0
        return self.times[0] + self.quota.window - now

    def take(self, now: float) -> None:
        """Count one request."""
        if self.quota is not None:
            self.times.append(now)
        if self.left is not None:
            self.left -= 1

    def learn(self, left: int, reset: float) -> None:
        """Take over what the server says, less what was asked since in the same window."""
        same_window = self.left is not None and abs(reset - self.reset) < 2.0
        self.left = min(left, self.left) if same_window and self.left is not None else left
        self.reset = reset


class RateLimits:
    """Counts of one user at one endpoint; safe to use from many threads.

    Args:
        quotas: by kind, what is known before the server says anything.
        clock: seconds that only grow.
    """

    def __init__(self, quotas: Mapping[str, Quota], clock: Callable[[], float] = time.monotonic) -> None:
        self._buckets = {kind: _Bucket(quota) for kind, quota in quotas.items()}
        self._clock = clock
        self._lock = threading.Lock()

    def take(self, kind: str) -> float:
        """Count one request of a kind if it fits now: 0.0, else seconds to wait before asking again."""
        with self._lock:
            bucket = self._buckets.setdefault(kind, _Bucket(None))
            now = self._clock()
            pause = bucket.pause(now)
            if not pause:
                bucket.take(now)
            return pause

    def learn(self, headers: Mapping[str, str]) -> None:
        """Read what a response says is left."""
        match = _LEFT.search(headers.get("ratelimit", ""))
        if match is not None:
            with self._lock:
                bucket = self._buckets.setdefault(match[1], _Bucket(None))
                bucket.learn(int(match[2]), self._clock() + int(match[3]))


def kind_of(path: str) -> str:
    """The kind of request that the Hub counts a path as."""
    return "resolvers" if "/resolve/" in path else "api"


def reset_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds until the window that a response names is over; None where it names none.

    >>> reset_seconds({"ratelimit": '"api";r=0;t=55'})
    55.0
    """
    match = _LEFT.search(headers.get("ratelimit", ""))
    return None if match is None else float(match[3])
