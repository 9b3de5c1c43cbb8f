"""Exchanges: connections kept and replaced, deadlines that nothing outlasts, an end that wakes everyone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from lnsim.checkpoint.hub.wire import ClosedError, UnreachableError, Wire, WireError

Talk = Callable[[socket.socket], None]


@contextmanager
def listening(talk: Talk) -> Iterator[tuple[str, list[int]]]:
    """A server that does as told with each connection, and counts them."""
    server = socket.create_server(("127.0.0.1", 0))
    accepted: list[int] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            accepted.append(1)
            threading.Thread(target=attend, args=(connection,), daemon=True).start()

    def attend(connection: socket.socket) -> None:
        with connection:
            try:
                talk(connection)
            except OSError:
                return  # the client has left

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/a", accepted
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    wire = Wire(connect_timeout=2, read_timeout=2, total_timeout=0.4)
    yield wire
    wire.close()


def get(wire: Wire, url: str) -> bytes:
    with wire.get(url, {"X-A": "b"}) as answer:
        return b"".join(answer.chunks())


def answering(times: int, text: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") -> Talk:
    def talk(connection: socket.socket) -> None:
        for _ in range(times):
            if not connection.recv(65_536):
                return
            connection.sendall(text)

    return talk


def test_a_connection_is_kept_for_the_next_request(wire: Wire) -> None:
    with listening(answering(9)) as (url, accepted):
        assert [get(wire, url) for _ in range(3)] == [b"ok"] * 3
    assert len(accepted) == 1


def test_one_that_the_server_closed_meanwhile_is_replaced_without_a_word(wire: Wire) -> None:
    with listening(answering(1)) as (url, accepted):
        assert [get(wire, url) for _ in range(3)] == [b"ok"] * 3
    assert len(accepted) == 3


def test_one_whose_body_was_not_read_is_not_used_again(wire: Wire) -> None:
    with listening(answering(9)) as (url, accepted):
        with wire.get(url, {}) as answer:
            assert answer.status == 200
        assert get(wire, url) == b"ok"
    assert len(accepted) == 2


def _refuse(wire: Wire, url: str) -> None:
    with wire.get(url, {}) as answer:
        assert list(answer.chunks()) == []
        raise KeyError(answer.status)


def test_one_whose_body_was_read_is_kept_whatever_is_made_of_it(wire: Wire) -> None:
    with listening(answering(9, b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")) as (url, accepted):
        for _ in range(3):
            with pytest.raises(KeyError):
                _refuse(wire, url)
    assert len(accepted) == 1


def test_a_server_that_says_close_is_taken_at_its_word(wire: Wire) -> None:
    text = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    with listening(answering(9, text)) as (url, accepted):
        assert [get(wire, url) for _ in range(2)] == [b"ok"] * 2
    assert len(accepted) == 2


@pytest.mark.parametrize("part", ["status", "header", "body"])
def test_an_answer_that_drips_for_ever_ends_at_its_deadline(wire: Wire, part: str) -> None:
    begun = {
        "status": b"HTTP/1.1 2",
        "header": b"HTTP/1.1 200 OK\r\nX-A: ",
        "body": b"HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n",
    }[part]

    def drip(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(begun)
        while True:
            connection.sendall(b"0")
            time.sleep(0.02)

    with listening(drip) as (url, _), pytest.raises(WireError, match=r"no whole answer within 0\.4 seconds"):
        get(wire, url)


def test_a_long_answer_that_comes_fast_enough_may_take_longer_than_the_deadline(wire: Wire) -> None:
    def talk(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 160000\r\n\r\n")
        for _ in range(16):
            connection.sendall(b"x" * 10_000)
            time.sleep(0.04)

    with listening(talk) as (url, _):
        assert len(get(wire, url)) == 160_000


def test_a_body_that_ends_early_is_an_error(wire: Wire) -> None:
    with (
        listening(answering(1, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")) as (url, _),
        pytest.raises(WireError, match="the body ended 7 bytes early"),
    ):
        get(wire, url)


@pytest.mark.parametrize(
    "text",
    [b"HELLO\r\n\r\n", b"\r\n\r\n", b"HTTP/1.1 abc OK\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n"],
)
def test_what_is_no_http_is_an_error_that_may_pass(wire: Wire, text: bytes) -> None:
    with listening(answering(1, text)) as (url, _), pytest.raises(WireError):
        get(wire, url)


def test_nobody_there_is_told_apart(wire: Wire) -> None:
    with pytest.raises(UnreachableError, match=r"127\.0\.0\.1:9 cannot be reached \(ConnectionRefusedError"):
        get(wire, "http://127.0.0.1:9/a")


def test_closing_wakes_whoever_waits_and_refuses_whoever_comes(wire: Wire) -> None:
    def silent(connection: socket.socket) -> None:
        connection.recv(65_536)
        time.sleep(5)

    patient = Wire(connect_timeout=5, read_timeout=5, total_timeout=5)
    errors: list[Exception] = []

    def ask() -> None:
        try:
            get(patient, url)
        except ClosedError as error:
            errors.append(error)

    with listening(silent) as (url, accepted):
        thread = threading.Thread(target=ask)
        thread.start()
        while not accepted:
            time.sleep(0.01)
        time.sleep(0.05)
        patient.close()
        thread.join(2)
        assert not thread.is_alive()
        with pytest.raises(ClosedError):
            get(patient, url)
    assert len(errors) == 1


def watchmen() -> set[int | None]:
    return {thread.ident for thread in threading.enumerate() if thread.name == "lnsim-watch"}


def test_no_watchman_is_left_behind() -> None:
    before = watchmen()  # other tests of this process may have clients of their own
    for _ in range(30):
        wire = Wire(connect_timeout=1, read_timeout=1, total_timeout=0.2)
        with listening(answering(1)) as (url, _):
            get(wire, url)
        wire.close()
    deadline = time.monotonic() + 10
    while watchmen() - before and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not watchmen() - before
