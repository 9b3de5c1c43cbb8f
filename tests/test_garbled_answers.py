"""Answers that are hardly HTTP: whatever a server sends, a request ends in what was announced or in one clear error."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from lnsim.checkpoint.format.ranges import ByteRange
from lnsim.checkpoint.hub.session import Client, Settings
from lnsim.checkpoint.hub.transport import Transport
from lnsim.errors import HubError

SPAN = ByteRange(10, 20)
N_REQUESTS = 150
CONTENT = b"0123456789"
PLAIN = tuple(
    b"HTTP/1.1 " + head + b"\r\nContent-Length: 10\r\nX-Linked-Size: 100\r\nRetry-After: 0\r\n\r\n" + CONTENT
    for head in (
        b"200 OK\r\nX-Repo-Commit: 0123",
        b"302 Found\r\nLocation: http://127.0.0.1:9/x",
        b"206 Partial Content\r\nContent-Range: bytes 10-19/100",
    )
)
"""A right answer for each kind of request."""

PIECES = (
    b"HTTP/1.1", b"HTTP/9.9", b"206", b"302", b"100", b"204", b"999", b"-1", b"\r\n", b"\n", b"\0", b"\xff\xfe", b": ",
    b"Content-Length: -5\r\n", b"Content-Length: 99999999999999999999999\r\n", b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: gzip\r\n", b"Connection: close\r\n", b"Location: http://[\r\n",
    b"Content-Range: bytes 10-19/*\r\n", b"Retry-After: Mon, 01 Jan 0001 00:00:00 GMT\r\n",
    b"X: " + b"y" * 70_000 + b"\r\n", b"X: y\r\n" * 150, b"zz\r\n",
)  # fmt: skip


def garbled(rng: random.Random, plain: bytes) -> bytes:
    """A right answer with up to three pieces of its head cut out, put in, or put in another's place."""
    answer = bytearray(plain)
    for _ in range(rng.randint(0, 3)):
        start = rng.randrange(max(1, len(answer) - len(CONTENT)))
        stop = start + rng.choice((0, 0, 1, 3, 10, 40))
        answer[start:stop] = rng.choice(PIECES) if rng.random() < 0.7 else b""
    return bytes(answer)


@contextmanager
def server(answers: Iterator[bytes]) -> Iterator[str]:
    """Sends each connection the next answer, whatever it asks, and hangs up."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                with connection, suppress(OSError):
                    connection.recv(65_536)
                    connection.sendall(next(answers))

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/file"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()


def ask(transport: Transport, url: str, kind: int) -> None:
    """One of the three kinds of request."""
    if kind == 0:
        assert len(transport.get(url, where="x", max_bytes=1000)) <= 1000
    elif kind == 1:
        transport.resolve(url, where="x")
    else:
        assert len(transport.get_range(url, SPAN, where="x")[0]) == len(SPAN)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_server_sends_ends_in_one_of_two_ways(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, rng, errors = time.monotonic(), random.Random(seed), []
    with server(iter(lambda: garbled(rng, PLAIN[number % 3]), None)) as url:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", url.removesuffix("/file"))
        client = Client(Settings(max_tries=1, read_timeout=2.0, total_timeout=4.0, max_retry_after=0.0))
        transport = Transport(client)
        for number in range(N_REQUESTS):
            try:
                ask(transport, url, number % 3)
            except HubError as error:
                errors.append(str(error))
        client.close()
    assert time.monotonic() - begun < 20
    assert N_REQUESTS // 5 < len(errors) < N_REQUESTS * 4 // 5
    assert all(text.startswith(("Reading ", "Following ")) and text.isprintable() for text in errors)
