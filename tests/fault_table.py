"""What a row of the table of faults says, and what it may arrange on the stand-in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hub_stand_in import COMMIT, Fault, HubStandIn, Repo, real_file
from safetensors_bytes import LLAMA_CONFIG, llama_tensors

from lnsim.errors import LnsimError, NetworkError

# Wide enough that matrices lie between the norms further apart than is worth reading over: several ranges a shard.
TENSORS = llama_tensors(n_layers=6, hidden_size=128)
NORMS = [name for name in TENSORS if "norm" in name]
CONFIG = LLAMA_CONFIG | {"hidden_size": 128, "num_hidden_layers": 6}
N_SHARDS = 3
TRIES = 3
DEAD = "127.0.0.1:9"
"""Nobody listens there: a machine that refuses connections."""


@dataclass(frozen=True)
class Place:
    """A kind of request: its path, and how many of those that match come before the first of them."""

    name: str
    pattern: str
    skip: int = 0


LISTING = Place("listing", r"^/api/models/a/b(\?|/revision/|$)")
CONFIG_FILE = Place("config.json", r"/resolve/.*/config\.json$")
INDEX = Place("index", r"/resolve/.*/model\.safetensors\.index\.json$")
ADDRESS = Place("address", r"/resolve/.*\.safetensors$")
START = Place("first bytes", r"X-Signature")
BYTES = Place("bytes", r"X-Signature", skip=N_SHARDS)
EVERYWHERE = (LISTING, CONFIG_FILE, INDEX, ADDRESS, START, BYTES)
WITH_BODY = tuple(place for place in EVERYWHERE if place is not ADDRESS)
RANGES = (START, BYTES)


@dataclass(frozen=True)
class Recovers:
    """Every vector is right, bit by bit, for so many more requests than without the fault."""

    more_requests: int = 0

    @property
    def text(self) -> str:
        many = "" if self.more_requests == 1 else "s"
        return f"reads on; at most {self.more_requests} more request{many}" if self.more_requests else "reads on"


@dataclass(frozen=True)
class OneError:
    """One error of this type, whose sentence holds ``says`` (``...`` for any text), and nothing is written."""

    kind: type[LnsimError]
    says: str
    most_requests: int | None = None

    @property
    def text(self) -> str:
        bound = "" if self.most_requests is None else f"; after {self.most_requests} request"
        return f'`{self.kind.__name__}`: "{self.says}"{bound}'


@dataclass
class Stage:
    """What a row may arrange: the stand-in, the repo on it, and the test's patches."""

    hub: HubStandIn
    repo: Repo
    monkeypatch: pytest.MonkeyPatch

    def spoil(self, place: Place, kind: str, times: int = 1_000_000, skip: int = 0, **headers: str) -> None:
        """Let requests of a place go wrong."""
        told = {name.replace("_", "-"): value for name, value in headers.items()}
        self.hub.faults.append(Fault(place.pattern, kind, times, told, place.skip + skip))

    def when(self, place: Place, action: Callable[[], object], nth: int = 1) -> None:
        """Let something happen while the nth request of a place is answered."""
        self.hub.faults.append(Fault(place.pattern, "change", 1, skip=place.skip + nth - 1, action=action))

    def put(self, name: str, content: bytes) -> None:
        """Put another content under a file's name."""
        self.repo.files[COMMIT][name] = real_file(content)


Arrange = Callable[[Stage, Place], object]


@dataclass(frozen=True)
class Row:
    """One fault: what the server or the machine does and how often, set up for each of the places, one by one."""

    does: str
    often: str
    outcome: Recovers | OneError
    arrange: Arrange
    places: tuple[Place, ...] = (BYTES,)
    source: str = "a/b"
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the transport, beside few tries and short pauses
    least_seconds: float = 0.0  # the pause that the server asked for
    most_bytes: int = 2_000_000  # that may leave the server, over all answers


def fault(kind: str, times: int = 1_000_000, **headers: str) -> Arrange:
    return lambda stage, place: stage.spoil(place, kind, times, **headers)


def no_answer(reason: str) -> OneError:
    return OneError(NetworkError, f"no usable answer from ... in {TRIES} tries, the last one: {reason}")


def fails(
    does: str, kind: type[LnsimError], says: str, arrange: Arrange, places: tuple[Place, ...] = (BYTES,), *,
    often: str = "for ever", most_requests: int | None = None, **more: Any,
) -> Row:  # fmt: skip
    """A fault that ends in one error."""
    return Row(does, often, OneError(kind, says, most_requests), arrange, places, **more)


def both(does: str, kind: str, reason: str, places: tuple[Place, ...], **headers: str) -> tuple[Row, Row]:
    """A fault that passes before the tries are used up, and the same one that lasts."""
    passing = Row(does, "twice", Recovers(2), fault(kind, 2, **headers), places)
    lasting = Row(does, "for ever", no_answer(reason), fault(kind, **headers), places)
    return passing, lasting


Test = TypeVar("Test", bound=Callable[..., object])


def shows(does: str, often: str, outcome: str) -> Callable[[Test], Test]:
    """Give a test a line of its own in the README's table of faults of the machine."""

    def mark(test: Test) -> Test:
        test.shows = (does, often, outcome)  # type: ignore[attr-defined]
        return test

    return mark
