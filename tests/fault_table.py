"""The table of faults: what a row says and may arrange on the stand-in, then the rows.

Faults of servers and of the network between: busy, broken off, slow, out of reach, or answering something else. Faults
of what is read: addresses that expire, doors that are shut, headers that lie, commits that move.
"""

from __future__ import annotations

import email.utils
import random
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hub_stand_in import COMMIT, LATER_COMMIT, Fault, HubStandIn, Repo, real_file
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, llama_tensors

from lnsim.errors import (
    FormatError,
    GatedError,
    HeaderError,
    HubError,
    LnsimError,
    NetworkError,
    RangeError,
    RepoNotFoundError,
    RevisionError,
)

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


# Rows


def _retry_at(stage: Stage, place: Place) -> None:
    # The date counts whole seconds: two from now are between one and two.
    stage.spoil(place, "status", 1, status="429", Retry_After=email.utils.formatdate(time.time() + 2, usegmt=True))


BUSY = (
    *both("503", "status", "status 503", EVERYWHERE, status="503"),
    *both("429 without a word on when", "status", "status 429", EVERYWHERE, status="429"),
    Row("429, Retry-After: 1 (seconds)", "once", Recovers(1), fault("status", 1, status="429", Retry_After="1"),
        (LISTING, BYTES), least_seconds=1.0),
    Row("429, Retry-After: a date", "once", Recovers(1), _retry_at, (LISTING, BYTES), least_seconds=1.0),
    fails("429, RateLimit: the window ends in 9000 seconds", NetworkError,
          "the server asks to wait 9000 seconds (status 429). Try later.",
          fault("status", 1, status="429", RateLimit='"api";r=0;t=9000'), (LISTING, BYTES), often="once"),
    fails("429, Retry-After: 3600", NetworkError, "the server asks to wait 3600 seconds (status 429). Try later.",
          fault("status", 1, status="429", Retry_After="3600"), often="once"),
)  # fmt: skip

LOGIN = (
    fails("407: a proxy wants a login", HubError,
          "a proxy on the way wants a login (407): write http://user:password@host:port in HTTPS_PROXY",
          fault("status", status="407"), (LISTING, BYTES)),
    fails("511: the network wants a login", HubError,
          "the network wants a login first (511): open any page in a browser.", fault("status", status="511"),
          (LISTING, BYTES)),
    *both("502", "status", "status 502, from a proxy or gateway before the server", (LISTING, BYTES), status="502"),
)  # fmt: skip

BROKEN = (
    *both("TCP reset before any answer", "reset", "ConnectionResetError", EVERYWHERE),
    *both("TCP reset in the middle of the body", "reset_midway", "ConnectionResetError", WITH_BODY),
    *both("body that ends after half of its bytes", "short_body", "the body ended ... bytes early", WITH_BODY),
)

WRONG_RANGE = (
    *both("206 with fewer bytes than asked for", "short_range", "Content-Range should be", RANGES),
    *both("206 of other bytes, as Content-Range says", "wrong_content_range", "Content-Range should be", RANGES),
    *both("206 without Content-Range", "no_content_range", "Content-Range should tell the bytes", RANGES),
    *both("206 with more bytes than Content-Range says", "long_body", "... bytes were announced, another", RANGES),
    fails("206 of a range of the gzip-compressed file", HubError, "gzip", fault("encoded"), RANGES),
    Row("200 instead of 206, with a body of a terabyte", "twice", Recovers(2), fault("ignore_range", 2), RANGES,
        most_bytes=5_000_000),
    Row("200 instead of 206, with a page to log in to the network", "twice", Recovers(2), fault("html", 2), RANGES),
    fails("200 instead of 206, with a body of a terabyte", HubError,
          "the server ignored Range and answered 200 instead of 206. Nothing more was read.", fault("ignore_range"),
          RANGES, most_bytes=5_000_000),
    fails("200 instead of 206, with a page to log in to the network", HubError,
          "the server ignored Range and answered 200 instead of 206. Nothing more was read.", fault("html"), RANGES),
    fails("200 with a page to log in to the network", FormatError, "JSON was expected", fault("html"),
          (LISTING, CONFIG_FILE, INDEX)),
    fails("200 with a body that never ends", HubError, "at most 67108864 bytes were expected, the answer is longer.",
          fault("endless"), (CONFIG_FILE,), most_bytes=90_000_000),
    fails("200 with a body of a terabyte, as its Content-Length says", HubError,
          "at most 67108864 bytes were expected, the answer is longer.", fault("ignore_range"),
          (LISTING, CONFIG_FILE, INDEX), most_bytes=5_000_000),
)  # fmt: skip

_dice = random.Random()
IMPATIENT = {"read_timeout": 0.25}

SLOW = (
    Row("no answer at all", "twice", Recovers(2), fault("silent", 2), (LISTING, BYTES), settings=IMPATIENT),
    Row("no answer at all", "for ever", no_answer("TimeoutError: timed out"), fault("silent"), (LISTING,),
        settings=IMPATIENT),
    Row("one byte, then silence", "twice", Recovers(2), fault("stall", 2), (CONFIG_FILE, BYTES), settings=IMPATIENT),
    Row("one byte, then silence", "for ever", no_answer("TimeoutError: timed out"), fault("stall"), (BYTES,),
        settings=IMPATIENT),
    Row("a byte at a time, for ever", "once", Recovers(1), fault("drip", 1), (CONFIG_FILE, BYTES),
        settings={"total_timeout": 0.5}),
    Row("a byte at a time, for ever", "for ever", no_answer("no whole answer within 0.3 seconds, after ... bytes"),
        fault("drip"), (BYTES,), settings={"total_timeout": 0.3}),
)  # fmt: skip


def _endpoint(address: str) -> Arrange:
    def arrange(stage: Stage, place: Place) -> None:
        stage.monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", f"http://{address}")

    return arrange


def _leads_to(address: str, times: int = 1_000_000) -> Arrange:
    return fault("status", times, status="302", Location=f"http://{address}/x?X-Signature=1")


class Chance(Fault):
    """A fault that strikes at random."""

    def takes(self, path: str) -> bool:
        return _dice.random() < 0.05


def _bad_day(stage: Stage, place: Place) -> None:
    _dice.seed(20261128)
    busy = {"status": "503"}
    stage.hub.faults.append(Chance("", "status", headers=busy))
    stage.hub.faults.extend(Chance("", kind) for kind in ("reset", "reset_midway", "short_body", "stall"))


BAD_DAYS = (
    Row("503, a reset, a body broken off or stalled: one answer in five", "at random", Recovers(25), _bad_day,
        (LISTING, INDEX), settings={"read_timeout": 0.1, "max_tries": 10}),
)  # fmt: skip


def _nameless(arrange: Arrange) -> Arrange:
    """Names that end in .invalid have no address, and no name server is asked for one."""

    def with_names(stage: Stage, place: Place) -> None:
        real = socket.getaddrinfo

        def look_up(host: str, *rest: Any, **named: Any) -> Any:
            if host.endswith(".invalid"):
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            return real(host, *rest, **named)

        stage.monkeypatch.setattr(socket, "getaddrinfo", look_up)
        arrange(stage, place)

    return with_names


def _circle(stage: Stage, place: Place) -> None:
    for here, there in ((r"/circle/1", "/circle/2"), (r"/circle/2|\.safetensors$", "/circle/1")):
        headers = {"status": "302", "Location": stage.hub.endpoint + there}
        stage.hub.faults.append(Fault(here, "status", headers=headers))


_NO_ADDRESSES = {
    "nowhere (no Location)": "",
    "an address without a host": "http://",
    "an address of another kind": "ftp://127.0.0.1:9/x",
    "an address with a broken host": "http://[bad/x",
    "an address with an impossible port": "http://127.0.0.1:99999/x",
    "a host whose name is too long": f"http://{'a' * 70}.invalid/x",
    "a host whose name has an empty part": "http://a..invalid/x",
    "an address with a backslash": "http://127.0.0.1:9\\@huggingface.co/x",
}
MISLEADING = tuple(
    fails(f"302 to {name}", HubError, "the server ..." if address in ("", "http://") else "an address of no use",
          fault("status", status="302", **({"Location": address} if address else {})), (LISTING, ADDRESS))
    for name, address in _NO_ADDRESSES.items()
)  # fmt: skip

UNREACHABLE = (
    Row("connection refused by the Hub", "for ever", no_answer("... cannot be reached (ConnectionRefusedError"),
        _endpoint(DEAD)),
    Row("no such host as the Hub's (DNS)", "for ever", no_answer("the name ... could not be resolved"),
        _nameless(_endpoint("hub.invalid"))),
    Row("connection refused where an address leads", "for ever",
        no_answer("... cannot be reached (ConnectionRefusedError"), _leads_to(DEAD), (ADDRESS,)),
    Row("no such host where an address leads (DNS)", "for ever", no_answer("the name ... could not be resolved"),
        _nameless(_leads_to("x.invalid")), (ADDRESS,)),
    Row("connection refused where an address leads", "once", Recovers(TRIES + 1), _leads_to(DEAD, 1), (ADDRESS,)),
    fails("addresses that lead in circles", HubError, "more than 5 in a row", _circle, (ADDRESS,)),
)  # fmt: skip

_NETWORK = (*BUSY, *LOGIN, *BROKEN, *WRONG_RANGE, *SLOW, *BAD_DAYS, *MISLEADING, *UNREACHABLE)


_SHARDS = tuple(f"model-0000{number}-of-00003.safetensors" for number in (1, 2, 3))
_FIRST, _SECOND, _ = _SHARDS
_LOST = next(name for name in list(TENSORS)[0::N_SHARDS] if name in NORMS)


def _signatures(**limits: float) -> Arrange:
    def arrange(stage: Stage, place: Place) -> None:
        stage.hub.latency = 0.02  # so that several reads of a shard are under way at once
        for name, value in limits.items():
            setattr(stage.hub, name, value)

    return arrange


def _time_passes(stage: Stage, place: Place) -> None:
    stage.hub.signature_seconds = 60.0
    stage.when(place, lambda: stage.hub.grow_old(61.0), nth=2)


SIGNED = (
    Row("an address good for one use only (then 403)", "always", Recovers(40), _signatures(signature_uses=1), RANGES),
    Row("addresses too old after the second read (403)", "once", Recovers(16), _time_passes, RANGES),
    fails("403 for every address, however new", HubError, "the server refused access (403)",
          fault("status", status="403"), RANGES),
    fails("403 without a reason", HubError, "the server refused access (403)", fault("status", status="403"),
          (LISTING, CONFIG_FILE, INDEX, ADDRESS)),
)  # fmt: skip


def _gated(token: str = "") -> Arrange:
    def arrange(stage: Stage, place: Place) -> None:
        stage.repo.gated = True
        if token:
            stage.monkeypatch.setenv("HF_TOKEN", token)

    return arrange


def _refused(status: str, why: str, times: int = 1_000_000, **headers: str) -> Arrange:
    def arrange(stage: Stage, place: Place) -> None:
        stage.monkeypatch.setenv("HF_TOKEN", "hf_expired")
        stage.spoil(place, "status", times, status=status, X_Error_Message=why, **headers)

    return arrange


def _without(name: str, place_of_loss: str) -> Arrange:
    """A shard that the index names: not in the listing, or listed but gone."""

    def arrange(stage: Stage, place: Place) -> None:
        if place_of_loss == "listing":
            del stage.repo.files[COMMIT][name]
        else:
            stage.hub.faults.append(Fault(name, "status", headers={"status": "404", "X-Error-Code": "EntryNotFound"}))

    return arrange


REFUSED = (
    fails("401: no such repo, or a private one", RepoNotFoundError,
          "Reading no/such@main: the Hub has no such repo, or it is private and no token was sent (`hf auth login`).",
          lambda stage, place: None, (LISTING,), source="no/such", most_requests=1),
    fails("404: no such revision", RevisionError,
          "Reading a/b@v9: the repo has no such revision (branch, tag or commit).", lambda stage, place: None,
          (LISTING,), source="a/b@v9", most_requests=1),
    fails("401: gated, no token", GatedError,
          "the repo is gated, and no token was sent. Accept its terms on its page, then log in with `hf auth login`.",
          _gated(), (CONFIG_FILE, INDEX)),
    fails("403: gated, a token without access", GatedError, "the repo is gated, and your token has no access.",
          _gated("hf_other"), (CONFIG_FILE, INDEX)),
    fails("401: a token that the Hub refuses, and says why", HubError,
          "the Hub refuses your token (401). Log in anew with `hf auth login`; a public repo needs no token: unset "
          "HF_TOKEN, or `hf auth logout`. The server says: 'Invalid credentials in Authorization header'.",
          _refused("401", "Invalid credentials in Authorization header"), (LISTING, CONFIG_FILE, INDEX, ADDRESS)),
    fails("403: a token without the permission, and why", HubError,
          "the server refused access (403). Your token may not read it: see what it permits, or log in with another "
          "(`hf auth login`). The server says: 'Please enable access to gated repositories'.",
          _refused("403", "Please enable access to gated repositories"), (LISTING, CONFIG_FILE, INDEX, ADDRESS)),
    fails("403: gated, a token without the permission, and why", GatedError,
          "and your token has no access. ... The server says: 'Please enable access'.",
          _refused("403", "Please enable access", X_Error_Code="GatedRepo"), (LISTING, CONFIG_FILE, ADDRESS)),
    Row("401 where an address leads, with a token at the Hub", "twice", Recovers(4), _refused("401", "no", times=2),
        RANGES),
    fails("404: a shard that the index names is not listed", HubError,
          f"its index names '{_SECOND}', which the commit does not hold", _without(_SECOND, "listing"), (INDEX,)),
    fails("404: a shard that is listed is gone", HubError, f"{_SECOND}: the repo has no such file",
          _without(_SECOND, "storage"), (INDEX, ADDRESS)),
)  # fmt: skip


def _lacks_a_tensor(stage: Stage, place: Place) -> None:
    """The first shard was uploaded without a tensor that the index names."""
    kept = [name for name in list(TENSORS)[0::N_SHARDS] if name != _LOST]
    assert len(kept) + 1 == len(list(TENSORS)[0::N_SHARDS])
    stage.put(_FIRST, file_bytes({name: TENSORS[name] for name in kept}))


_MIXED = OneError(
    HeaderError,
    f"tensor '{_LOST}' should lie in {_FIRST}, but no shard holds it; 1 such in all. The upload is incomplete or "
    f"mixed; nothing was read.",
)

HEADER_ANSWERS = (Row("the index names a tensor that its shard lacks", "for ever", _MIXED, _lacks_a_tensor, (INDEX,)),)


def _later(stage: Stage) -> None:
    """Another commit: other weights under the same names, in another order, and another config."""
    other = dict(reversed(llama_tensors(n_layers=6, seed=9, hidden_size=128).items()))
    stage.hub.add("a/b", checkpoint_files(other, CONFIG | {"rope_theta": 1}, N_SHARDS), commit=LATER_COMMIT)
    stage.repo.refs["main"] = COMMIT


def _moves(at: Place) -> Arrange:
    def arrange(stage: Stage, place: Place) -> None:
        _later(stage)
        stage.when(at, lambda: stage.repo.refs.update(main=LATER_COMMIT))

    return arrange


def _vanishes(stage: Stage, place: Place) -> None:
    """main is rewritten, and the commit that was pinned is gone."""
    _later(stage)

    def rewrite() -> None:
        stage.repo.refs.update(main=LATER_COMMIT)
        del stage.repo.files[COMMIT]

    stage.when(LISTING, rewrite)


def _replaced(stage: Stage, place: Place) -> None:
    """Each shard gets a longer header, so that all its tensors lie elsewhere."""
    longer = {
        name: file_bytes({tensor: TENSORS[tensor] for tensor in list(TENSORS)[number::N_SHARDS]}, padding=800)
        for number, name in enumerate(_SHARDS)
    }
    stage.when(BYTES, lambda: [stage.put(name, content) for name, content in longer.items()])


MOVING = (
    Row("main moves after its commit was asked for", "once", Recovers(3), _moves(LISTING), (INDEX,)),
    Row("main moves after the headers came", "once", Recovers(3), _moves(START), (START,)),
    Row("main moves while vectors are read", "once", Recovers(0), _moves(BYTES), RANGES),
    fails("main is rewritten and the pinned commit is gone", RevisionError, "the repo has no such revision", _vanishes,
          (INDEX,), often="once"),
    fails("shards are replaced by longer ones while they are read", RangeError,
          "The file was replaced while it was read; try again.", _replaced, often="once"),
)  # fmt: skip


def _content(name: str, content: bytes) -> Arrange:
    return lambda stage, place: stage.put(name, content)


CONTENT = (
    fails("config.json is no JSON", FormatError, "Reading a/b@0123456789ab/config.json: JSON was expected",
          _content("config.json", b"\x00garbage"), (CONFIG_FILE,)),
    fails("config.json is a list", FormatError, "a JSON object was expected, found list.",
          _content("config.json", b"[]"), (CONFIG_FILE,)),
    fails("a shard's file is cut off behind its header", HeaderError,
          f"Reading the header of a/b@0123456789ab/{_SECOND}:",
          _content(_SECOND, checkpoint_files(TENSORS, CONFIG, N_SHARDS)[_SECOND][:-5000]), (START,)),
    fails("a shard's file is empty", HubError, f"{_SECOND}: the server says that the file has no such bytes (416).",
          _content(_SECOND, b""), (START,)),
)  # fmt: skip

ROWS = (*_NETWORK, *SIGNED, *REFUSED, *HEADER_ANSWERS, *MOVING, *CONTENT)
