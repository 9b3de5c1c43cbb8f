"""Faults of servers and of the network between: busy, broken off, slow, out of reach, or answering something else."""

from __future__ import annotations

import email.utils
import random
import socket
import time
from typing import Any

from fault_table import (
    ADDRESS,
    BYTES,
    CONFIG_FILE,
    DEAD,
    EVERYWHERE,
    INDEX,
    LISTING,
    RANGES,
    TRIES,
    WITH_BODY,
    Arrange,
    Place,
    Recovers,
    Row,
    Stage,
    both,
    fails,
    fault,
    no_answer,
)  # fmt: skip
from hub_stand_in import Fault

from lnsim.errors import FormatError, HubError, NetworkError


def _retry_at(stage: Stage, place: Place) -> None:
    # The date counts whole seconds: two from now are between one and two.
    stage.spoil(place, "status", 1, status="429", Retry_After=email.utils.formatdate(time.time() + 2, usegmt=True))


BUSY = (
    *both("503", "status", "status 503", EVERYWHERE, status="503"),
    *both("500", "status", "status 500", (LISTING, BYTES), status="500"),
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
    "an address of another kind": "file:///etc/hostname",
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

NETWORK_ROWS = (*BUSY, *LOGIN, *BROKEN, *WRONG_RANGE, *SLOW, *BAD_DAYS, *MISLEADING, *UNREACHABLE)
