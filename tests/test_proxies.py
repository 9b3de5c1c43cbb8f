"""The session: proxies and certificates from the environment, with a real proxy and a real TLS server on this machine.

A session that a user made is used as it is.
"""

from __future__ import annotations

import http.server
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trustme
from hub_stand_in import HubStandIn
from huggingface_hub import close_session, set_client_factory
from huggingface_hub.utils import _http, httpx
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors

import lnsim
from lnsim.checkpoint.hub.answers import TryAgainError
from lnsim.checkpoint.hub.session import Settings, client_for
from lnsim.checkpoint.hub.transport import parse_address
from lnsim.errors import NetworkError


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    close_session()
    yield
    close_session()


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[int]:
    """The port of a server and proxy."""
    Plain.seen = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Plain)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()


class Plain(http.server.BaseHTTPRequestHandler):
    """Answers by itself; as a proxy, it answers a wish for a tunnel with a status."""

    protocol_version = "HTTP/1.1"
    tunnels = 403
    seen: ClassVar[list[tuple[str, str, str | None]]]

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        self.seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
        status, body = (200, b"by TLS") if self.command == "GET" else (self.tunnels, b"")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        self.do_GET()


def get(url: str) -> bytes:
    with client_for(Settings()).get(parse_address(url), {}) as answer:
        return b"".join(answer.chunks())


def test_the_proxy_of_the_environment_gets_the_whole_address_and_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as port:
        monkeypatch.setenv("http_proxy", f"http://me:p%40ss@127.0.0.1:{port}")
        assert get("http://models.example/a?b=c") == b"by TLS"
    assert Plain.seen == [("GET", "http://models.example/a?b=c", "Basic bWU6cEBzcw==")]


@pytest.mark.parametrize(("status", "says"), [
    (403, r"models\.example cannot be reached \(the proxy answered 403"),
    (407, r"wants a login \(407\), as in https_proxy=http://user:password@127\."),
])  # fmt: skip
def test_https_goes_through_a_tunnel_which_the_proxy_may_refuse_or_want_a_login_for(
    hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, status: int, says: str
) -> None:
    monkeypatch.setattr(Plain, "tunnels", status)
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "https://models.example")
    monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: Settings(max_tries=2, first_pause=0.001))
    with serving() as port:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{port}")
        with pytest.raises(NetworkError, match=says):
            lnsim.extract("a/b")
    assert Plain.seen == [("CONNECT", "models.example:443", None)] * (1 if status == 407 else 2)


def test_no_proxy_is_honoured(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    assert lnsim.extract("a/b").n_vectors == 7


WRONG_PROXIES = (
    "socks5://me:secret@127.0.0.1:1080", "ftp://me:secret@127.0.0.1:21", "me:secret@127.0.0.1:port",
    "http://me:se/cret@127.0.0.1:80", "http://[bad", f"http://{'a' * 70}.example:80", "http://:80",
)  # fmt: skip
WANTED = (
    r"no proxy that can be used; an address such as http://host:port was expected \(socks5 needs the package socksio"
)


@pytest.mark.parametrize("variable", ["http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("proxy", WRONG_PROXIES)
def test_a_proxy_that_cannot_be_used_is_one_error_that_names_the_variable(
    hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, proxy: str, variable: str
) -> None:
    monkeypatch.setenv(variable, proxy)
    with pytest.raises(NetworkError, match=f"^Reading a/b@main: {variable} names {WANTED}") as caught:
        lnsim.extract("a/b")
    assert not re.search("se/?cret", str(caught.value))
    assert hub.requests == []


def test_a_proxy_that_is_not_there_is_named(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:9")
    monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: Settings(max_tries=2, first_pause=0.001))
    with pytest.raises(NetworkError, match=r"http_proxy names the proxy 127\.0\.0\.1:9: Connection refused") as caught:
        lnsim.extract("a/b")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "named", "says"),
    [("127.0.0.1", True, ""), ("127.0.0.1", False, "certificate verify failed"), ("x.example", True, "IP address mis")],
    ids=["as it should be", "of an authority that nobody named", "of another host"],
)
def test_https_is_read_where_the_environment_names_the_authority_of_the_hosts_certificate(
    make_hub: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, named: bool, says: str
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    if named:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    with serving(context) as port, pytest.raises(TryAgainError, match=says) if says else nullcontext():
        assert get(f"https://127.0.0.1:{port}/a") == b"by TLS"


@pytest.fixture
def own_factory() -> Iterator[Callable[[Callable[[], Any]], None]]:
    before = _http._GLOBAL_CLIENT_FACTORY
    yield set_client_factory
    set_client_factory(before)


def test_a_client_factory_of_the_users_own_is_used_as_it_is(
    hub: HubStandIn, own_factory: Callable[[Callable[[], Any]], None]
) -> None:
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG))
    asked: list[Any] = []
    limits = httpx.Limits(max_connections=2)
    hooks = {"request": [asked.append]}
    own_factory(lambda: httpx.Client(event_hooks=hooks, limits=limits, follow_redirects=True, timeout=0.001))
    assert lnsim.extract("a/b").n_vectors == 7
    assert len(asked) == len(hub.requests) == 4
    assert {request.extensions["timeout"]["read"] for request in asked} == {Settings().read_timeout}


def test_a_login_that_the_users_own_session_sends_stays_with_the_hub(
    hub: HubStandIn, own_factory: Callable[[Callable[[], Any]], None]
) -> None:
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG), gated=True)
    own_factory(lambda: httpx.Client(headers={"Authorization": "Bearer hf_good"}, auth=None))
    assert lnsim.extract("a/b").n_vectors == 7
    own_factory(lambda: httpx.Client(headers={"Authorization": "Bearer hf_good"}, auth=("me", "secret")))
    with pytest.raises(lnsim.LnsimError, match="the repo is gated"):  # the stand-in takes no other login
        lnsim.extract("a/b")
    logins = {request.authorization for request in hub.requests if request.origin == "hub"}
    assert logins == {"Bearer hf_good", "Basic bWU6c2VjcmV0"}
    assert {request.authorization for request in hub.requests if request.origin == "cdn"} == {None}
