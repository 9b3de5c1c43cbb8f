"""A stand-in for the Hub on this machine: an API origin that redirects to a second origin, which serves ranges.

Both are real HTTP/1.1 servers on port 0. Files may be virtual, so that a repo of 200 GB costs nothing. Every request is
recorded, and misbehaviour is switched on for the paths that a test names.
"""

from __future__ import annotations

import gzip
import itertools
import json
import re
import select
import socket
import struct
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LATER_COMMIT = "fedcba9876543210fedcba9876543210fedcba98"


@dataclass(frozen=True)
class VirtualFile:
    """A file of which only the bytes asked for are ever made."""

    size: int
    read: Callable[[int, int], bytes]


def real_file(content: bytes) -> VirtualFile:
    """A file that is all there."""
    return VirtualFile(len(content), lambda start, stop: content[start:stop])


@dataclass
class Repo:
    """One repo: files by commit, commits by branch."""

    files: dict[str, dict[str, VirtualFile]]
    refs: dict[str, str]
    gated: bool = False


@dataclass(frozen=True)
class Request:
    """What came in, and what went out."""

    origin: str
    path: str
    range: str | None
    authorization: str | None
    status: int
    client: tuple[str, int]
    sent: int = 0  # bytes of the body that left the server


@dataclass
class Fault:
    """Misbehaviour of the requests whose path matches; ``times`` of them, then all is well.

    One of kind ``change`` answers well, and does something between making the answer and sending it.
    """

    pattern: str
    kind: str
    times: int = 1_000_000
    headers: Mapping[str, str] = field(default_factory=dict)
    skip: int = 0
    action: Callable[[], object] = bool
    _used: int = 0

    def takes(self, path: str) -> bool:
        """Whether this request is one of them."""
        if not re.search(self.pattern, path):
            return False
        self._used += 1
        return self.skip < self._used <= self.skip + self.times


_IN_GIT = 5_000_000  # larger tokenizers lie where the shards do


class HubStandIn:
    """Two servers and what they hold; use it as a context."""

    def __init__(self, latency: float = 0.0) -> None:
        self.latency = latency
        self.redirects = True  # else it serves the weights itself, as some mirrors do
        self.signature_uses = 1_000_000
        self.signature_seconds = 1e9
        self.repos: dict[str, Repo] = {}
        self.faults: list[Fault] = []
        self._requests: list[Request] = []
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._active = 0
        self._signatures: dict[str, int] = {}
        self._issued: dict[str, float] = {}
        self._numbers = itertools.count()
        self._hub = self._server("hub", self._answer_hub)
        self._cdn = self._server("cdn", self._answer_cdn)

    def __enter__(self) -> HubStandIn:
        for server in (self._hub, self._cdn):
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        for server in (self._hub, self._cdn):
            server.shutdown()
            server.server_close()

    @property
    def endpoint(self) -> str:
        """Address of the API origin, for HF_ENDPOINT."""
        return f"http://127.0.0.1:{self._hub.server_address[1]}"

    @property
    def cdn(self) -> str:
        """Address of the second origin."""
        return f"http://127.0.0.1:{self._cdn.server_address[1]}"

    def add(
        self,
        repo_id: str,
        files: Mapping[str, bytes | VirtualFile],
        *,
        commit: str = COMMIT,
        branch: str = "main",
        gated: bool = False,
    ) -> Repo:
        """Put a commit of a repo at the head of a branch."""
        held = {name: real_file(content) if isinstance(content, bytes) else content for name, content in files.items()}
        repo = self.repos.setdefault(repo_id, Repo({}, {}))
        repo.files[commit] = held
        repo.refs[branch] = commit
        repo.gated = gated
        return repo

    @property
    def requests(self) -> list[Request]:
        """What came in so far, once every answer under way has been sent (a client may be faster than our record)."""
        with self._idle:
            self._idle.wait_for(lambda: self._active == 0, timeout=1.5)
            return list(self._requests)

    def forget(self) -> None:
        """Start the record anew, once every answer under way has been sent."""
        del self._requests[: len(self.requests)]

    def paths(self, origin: str | None = None) -> list[str]:
        """Paths asked for, in the order of the answers."""
        return [request.path for request in self.requests if origin in (None, request.origin)]

    def grow_old(self, seconds: float) -> None:
        """Let so much time pass for the addresses signed so far."""
        with self._lock:
            self._issued = {signature: then - seconds for signature, then in self._issued.items()}

    def connections(self, origin: str) -> int:
        """Connections that were opened to an origin."""
        return len({request.client for request in self.requests if request.origin == origin})

    def _server(self, origin: str, answer: Callable[[_Handler], None]) -> ThreadingHTTPServer:
        handler = type("Handler", (_Handler,), {"stand_in": self, "origin": origin, "answer": staticmethod(answer)})
        server = _Server(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        return server

    def _record(self, request: Request) -> None:
        with self._idle:
            self._requests.append(request)
            self._active -= 1
            self._idle.notify_all()

    def _fault(self, path: str) -> Fault | None:
        with self._lock:
            return next((fault for fault in self.faults if fault.takes(path)), None)

    def _answer_hub(self, handler: _Handler) -> None:
        path = unquote(urlsplit(handler.path).path)
        if match := re.fullmatch(r"/api/models/(.+?)(?:/revision/(.+))?", path):
            self._answer_info(handler, match[1], match[2] or "main")
        elif match := re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path):
            self._answer_resolve(handler, *match.groups())
        else:
            handler.send(404, b"no such page")

    def _commit(self, handler: _Handler, repo_id: str, revision: str) -> str | None:
        repo = self.repos.get(repo_id)
        if repo is None:
            handler.send(401, b'{"error":"Invalid username or password."}', {"X-Error-Code": "RepoNotFound"})
            return None
        commit = repo.refs.get(revision, revision)
        if commit not in repo.files:
            handler.send(404, b'{"error":"Invalid rev id"}', {"X-Error-Code": "RevisionNotFound"})
            return None
        return commit

    def _answer_info(self, handler: _Handler, repo_id: str, revision: str) -> None:
        commit = self._commit(handler, repo_id, revision)
        if commit is None:
            return
        repo = self.repos[repo_id]
        siblings = [{"rfilename": name} for name in repo.files[commit]]
        handler.send_json(
            {"id": repo_id, "sha": commit, "gated": "auto" if repo.gated else False, "siblings": siblings}
        )

    def _answer_resolve(self, handler: _Handler, repo_id: str, revision: str, name: str) -> None:
        commit = self._commit(handler, repo_id, revision)
        if commit is None:
            return
        repo = self.repos[repo_id]
        file = repo.files[commit].get(name)
        if repo.gated and handler.headers.get("Authorization") != "Bearer hf_good":
            handler.send(403 if handler.headers.get("Authorization") else 401, b"{}", {"X-Error-Code": "GatedRepo"})
        elif file is None:
            handler.send(404, b'{"error":"Entry not found"}', {"X-Error-Code": "EntryNotFound"})
        elif not self.redirects:
            handler.send_file(file)
        elif name.endswith((".safetensors", ".gguf", ".bin")) or (name.startswith("tokenizer") and file.size > _IN_GIT):
            signature = f"s{next(self._numbers)}"
            with self._lock:
                self._issued[signature] = time.monotonic()
            target = f"{self.cdn}/{repo_id}/{commit}/{name}?X-Signature={signature}"
            handler.send(302, b"Found", {"Location": target, "X-Linked-Size": str(file.size), "X-Repo-Commit": commit})
        else:
            handler.send(200, file.read(0, file.size), {"X-Repo-Commit": commit})

    def _answer_cdn(self, handler: _Handler) -> None:
        signature = parse_qs(urlsplit(handler.path).query).get("X-Signature", [""])[0]
        with self._lock:
            self._signatures[signature] = self._signatures.get(signature, 0) + 1
            used = self._signatures[signature]
            age = time.monotonic() - self._issued.get(signature, 0.0)
        if not signature or used > self.signature_uses or age > self.signature_seconds:
            handler.send(403, b"<Error>Request has expired</Error>")
            return
        handler.send_file(self._file(handler.path))

    def _file(self, path: str) -> VirtualFile:
        owner, name, commit, file_name = unquote(urlsplit(path).path).lstrip("/").split("/", 3)
        return self.repos[f"{owner}/{name}"].files[commit][file_name]


class _Server(ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up early is what the tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    stand_in: HubStandIn
    origin: str
    answer: Callable[[_Handler], None]

    def log_message(self, *_: object) -> None:
        """Keep quiet; the requests are recorded."""

    def do_GET(self) -> None:
        self.sent_status = self.sent = 0
        self.deliver, self.change = self.write, bool
        with self.stand_in._lock:
            self.stand_in._active += 1
        if self.stand_in.latency:
            time.sleep(self.stand_in.latency)
        fault = self.stand_in._fault(self.path)
        try:
            if fault is None:
                self.answer(self)
            else:
                getattr(self, f"fault_{fault.kind}")(fault)
        finally:
            asked = self.headers.get("Range"), self.headers.get("Authorization")
            told = self.sent_status, self.client_address[:2], self.sent
            self.stand_in._record(Request(self.origin, self.path, *asked, *told))

    def send(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.change()
        self.sent_status = status
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.deliver(body)

    def write(self, data: bytes) -> None:
        self.sent += self.wfile.write(data)

    def send_json(self, content: Any) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content, ensure_ascii=False).encode()
        if "gzip" in self.headers.get("Accept-Encoding", ""):
            self.send(200, gzip.compress(body, 6), {"Content-Encoding": "gzip", "Content-Type": "application/json"})
        else:
            self.send(200, body, {"Content-Type": "application/json"})

    def span(self, size: int) -> tuple[int, int] | None:
        match = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range") or "")
        return (int(match[1]), min(int(match[2]) + 1, size)) if match else None

    def send_file(self, file: VirtualFile) -> None:
        span = self.span(file.size)
        if span is None:
            self.send(200, file.read(0, file.size))
        elif span[0] >= file.size:
            self.send(416, b"", {"Content-Range": f"bytes */{file.size}"})
        else:
            start, stop = span
            self.send(206, file.read(start, stop), {"Content-Range": f"bytes {start}-{stop - 1}/{file.size}"})

    def part(self) -> tuple[int, int, int, bytes]:
        """The range that was asked for, the size of its file and the bytes."""
        file = self.stand_in._file(self.path)
        start, stop = self.span(file.size) or (0, 2)
        return start, stop, file.size, file.read(start, stop)

    # Faults: each does one thing wrong.

    def fault_change(self, fault: Fault) -> None:
        self.change = fault.action  # type: ignore[assignment]
        self.answer(self)

    def fault_status(self, fault: Fault) -> None:
        headers = dict(fault.headers)
        self.send(int(headers.pop("status")), b"{}", headers)

    def flood(self, pieces: Iterable[bytes], headers: Mapping[str, str]) -> None:
        """200 with a body that would hardly end."""
        self.sent_status = 200
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        # What waits in the kernel's buffers counts as sent; let it be little.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
        for piece in pieces:
            self.write(piece)
        self.close_connection = True

    def fault_ignore_range(self, fault: Fault) -> None:
        """All of a file of a terabyte."""
        self.flood([b"\0" * 65_536] * 10_000, {"Content-Length": str(10**12)})

    def fault_endless(self, fault: Fault) -> None:
        """Chunk after chunk, without a word on how many will come."""
        self.flood([b"10000\r\n" + b" " * 65_536 + b"\r\n"] * 10_000, {"Transfer-Encoding": "chunked"})

    def fault_bomb(self, fault: Fault) -> None:
        """10 GB of zeros in 10 MB of gzip."""
        self.flood(_zeros_as_gzip(10 * 2**30), {"Content-Encoding": "gzip", "Connection": "close"})

    def answer_by(self, deliver: Callable[[bytes], None]) -> None:
        """The right answer, whose body goes out in a way of its own."""
        self.deliver = deliver
        self.answer(self)

    def half(self, body: bytes) -> None:
        self.write(body[: len(body) // 2])
        self.close_connection = True

    def fault_short_body(self, fault: Fault) -> None:
        """An answer that promises all its bytes and hangs up after half of them."""
        self.answer_by(self.half)

    def fault_reset_midway(self, fault: Fault) -> None:
        """Half of the bytes, then a TCP reset."""

        def deliver(body: bytes) -> None:
            self.half(body)
            time.sleep(0.02)  # a reset overtakes what has not been read yet
            self.fault_reset(fault)

        self.answer_by(deliver)

    def send_part(self, body: bytes, first: int, stop: int, size: int, **more: str) -> None:
        self.send(206, body, {"Content-Range": f"bytes {first}-{stop - 1}/{size}", **more})

    def fault_short_range(self, fault: Fault) -> None:
        """A 206 that honestly holds fewer bytes than asked for."""
        start, stop, size, body = self.part()
        count = max(1, (stop - start) // 2)
        self.send_part(body[:count], start, start + count, size)

    def fault_long_body(self, fault: Fault) -> None:
        """A 206 whose body is longer than its Content-Range says."""
        start, stop, size, body = self.part()
        self.send_part(body + b"\0" * 8, start, stop, size)

    def fault_encoded(self, fault: Fault) -> None:
        """A 206 of the right range, but of the file as gzip would store it."""
        start, stop, size, body = self.part()
        packed = (gzip.compress(b"") * len(body))[: len(body)]
        self.send_part(packed, start, stop, size, **{"Content-Encoding": "gzip"})

    def fault_wrong_content_range(self, fault: Fault) -> None:
        """The bytes of another place."""
        start, stop, size, body = self.part()
        self.send_part(body, start + 1, stop + 1, size)

    def fault_no_content_range(self, fault: Fault) -> None:
        self.send(206, self.part()[3])

    def fault_html(self, fault: Fault) -> None:
        self.send(200, b"<html>Please log in to the network</html>", {"Content-Type": "text/html"})

    def fault_reset(self, fault: Fault) -> None:
        """A TCP reset instead of an answer."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def fault_silent(self, fault: Fault) -> None:
        """Not a byte more for so long, or until the client hangs up."""
        select.select([self.connection], [], [], float(fault.headers.get("seconds", "5")))
        self.close_connection = True

    def fault_stall(self, fault: Fault) -> None:
        """Some bytes, then silence until the client gives up."""

        def deliver(body: bytes) -> None:
            self.write(body[:1])
            self.fault_silent(fault)

        self.answer_by(deliver)

    def fault_drip(self, fault: Fault) -> None:
        """The right body a byte at a time, each soon enough that no wait for the next one is long."""

        def deliver(body: bytes) -> None:
            for position in range(len(body)):
                self.write(body[position : position + 1])
                if select.select([self.connection], [], [], 0.05)[0]:
                    break
            self.close_connection = True

        self.answer_by(deliver)


def _zeros_as_gzip(n_bytes: int) -> Iterator[bytes]:
    """A gzip stream of so many zeros in 64 MB steps, at a thousandth of their size."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    step = 1 << 26
    block = packer.compress(bytes(step)) + packer.flush(zlib.Z_FULL_FLUSH)  # whole and without memory: can be repeated
    yield b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    for _ in range(n_bytes // step):
        yield block
    yield packer.flush(zlib.Z_FINISH) + bytes(8)


def virtual_shard(
    entries: Iterable[tuple[str, str, tuple[int, ...], int]], content: Callable[[str, int], bytes]
) -> VirtualFile:
    """A shard of any size: (name, dtype, shape, bytes) for each tensor, and bytes made when a norm is read.

    Matrices read as zeros; ``content`` makes the bytes of a one-dimensional tensor.
    """
    table: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    places: list[tuple[int, int, str]] = []
    position = 0
    for name, dtype, shape, n_bytes in entries:
        table[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [position, position + n_bytes]}
        if len(shape) == 1:
            places.append((position, position + n_bytes, name))
        position += n_bytes
    raw = json.dumps(table, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    head = len(raw).to_bytes(8, "little") + raw

    def read(start: int, stop: int) -> bytes:
        data = bytearray(stop - start)
        for first, last, piece in ((0, len(head), head), *((a + len(head), b + len(head), n) for a, b, n in places)):
            low, high = max(start, first), min(stop, last)
            if low < high:
                source = piece if isinstance(piece, bytes) else content(piece, last - first)
                data[low - start : high - start] = source[low - first : high - first]
        return bytes(data)

    return VirtualFile(len(head) + position, read)
