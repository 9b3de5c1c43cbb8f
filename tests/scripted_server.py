"""A server that answers as a script says, and remembers who asked for what with which token."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

__all__ = ["Answer", "ScriptedServer", "file_answer", "zeros_as_gzip"]


@dataclass(frozen=True)
class Answer:
    """One answer; without a body of known length the connection is closed at its end."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Iterable[bytes] = (b"",)


def file_answer(content: bytes, span: str | None = None) -> Answer:
    """A file, or the range of it that was asked for."""
    if span is None:
        return Answer(200, {"Content-Length": str(len(content))}, (content,))
    start, last = (int(number) for number in span.removeprefix("bytes=").split("-"))
    part = content[start : last + 1]
    told = {"Content-Range": f"bytes {start}-{start + len(part) - 1}/{len(content)}", "Content-Length": str(len(part))}
    return Answer(206, told, (part,))


class ScriptedServer:
    """An origin of its own on this machine, a context; ``script`` answers a path and a ``Range`` header."""

    def __init__(self, script: Callable[[str, str | None], Answer]) -> None:
        self.script = script
        self.asked: list[tuple[str, str | None]] = []
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """Its origin."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        """Its port."""
        return int(self._server.server_address[1])

    def __enter__(self) -> ScriptedServer:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up early is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: ScriptedServer

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def do_GET(self) -> None:
        self.owner.asked.append((self.path, self.headers.get("Authorization")))
        answer = self.owner.script(self.path, self.headers.get("Range"))
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        for piece in answer.body:
            self.wfile.write(piece)


def zeros_as_gzip(n_bytes: int) -> Iterator[bytes]:
    """A gzip stream of so many zeros in 64 MB steps, at a thousandth of their size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    step = 1 << 26
    block = packer.compress(bytes(step)) + packer.flush(zlib.Z_FULL_FLUSH)  # whole and without memory: can be repeated
    yield b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    for _ in range(n_bytes // step):
        yield block
    yield packer.flush(zlib.Z_FINISH) + bytes(8)
