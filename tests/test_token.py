"""The token: sent to the Hub's endpoint and nowhere else, and never written down anywhere."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from hub_stand_in import COMMIT, Fault, HubStandIn
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors

import lnsim
from lnsim import LnsimError
from lnsim.checkpoint.hub import transport
from lnsim.checkpoint.hub.session import Client, Settings
from lnsim.checkpoint.hub.transport import Transport

TOKEN = "hf_good"  # what the stand-in accepts for a gated repo
SECRET = "hf_a5ecretThatNobodyMaySee"
FILES = checkpoint_files(llama_tensors(), LLAMA_CONFIG)


@pytest.fixture(autouse=True)
def _token(make_hub: Callable[..., HubStandIn], monkeypatch: pytest.MonkeyPatch) -> None:
    """A token, after `make_hub` took away the user's own."""
    monkeypatch.setenv("HF_TOKEN", SECRET)
    quick = Settings(max_tries=3, first_pause=0.001)
    monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: quick)
    transport._tell_of_mirror.cache_clear()


@pytest.fixture
def hub(hub: HubStandIn) -> HubStandIn:
    hub.add("a/b", FILES)
    hub.add("a/c", FILES)
    return hub


@pytest.fixture
def other() -> Iterator[HubStandIn]:
    """An origin that is not the Hub's; it offers every file of the repo to whoever asks."""
    with HubStandIn() as stand_in:
        stand_in.add("a/b", FILES)
        yield stand_in


def sends(hub: HubStandIn, target: str, status: int = 302, pattern: str = r"^/a/b/resolve/.*config\.json") -> None:
    """Let a Hub send whoever asks for a file elsewhere."""
    hub.faults[:] = [Fault(pattern, "status", headers={"status": str(status), "Location": target})]


def tokens(hub: HubStandIn, origin: str = "hub") -> set[str | None]:
    return {request.authorization for request in hub.requests if request.origin == origin}


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_goes_without_the_token(hub: HubStandIn, other: HubStandIn, status: int, name: str) -> None:
    sends(hub, f"{other.cdn}/a/b/{COMMIT}/{name}?X-Signature=1", status, f"^/a/b/resolve/.*{name}")
    assert lnsim.extract("a/b").n_vectors == 7
    assert tokens(hub) == {f"Bearer {SECRET}"}
    assert tokens(other, "cdn") == {None}


TRICKS = {
    "another port": "http://127.0.0.1:{other}/x",
    "without a scheme": "//127.0.0.1:{other}/x",
    "the Hub's address as user and password": "http://127.0.0.1:{hub}@127.0.0.1:{other}/x",
    "the Hub's name as user": "http://127.0.0.1@127.0.0.1:{other}/x",
    "another name of the machine": "http://localhost:{other}/x",
    "the Hub's address in the query": "http://127.0.0.1:{other}/x?http://127.0.0.1:{hub}/config.json",
    "the Hub's address in the fragment": "http://127.0.0.1:{other}/x#@127.0.0.1:{hub}/",
    "a backslash": "http://127.0.0.1:{other}\\@127.0.0.1:{hub}/x",
    "white space": " \thttp://127.0.0.1:{other}/x",
}


@pytest.mark.parametrize("target", TRICKS.values(), ids=TRICKS)
def test_no_spelling_brings_the_token_to_another_origin(hub: HubStandIn, other: HubStandIn, target: str) -> None:
    sends(hub, target.format(hub=hub.endpoint.rpartition(":")[2], other=other.endpoint.rpartition(":")[2]))
    with suppress(LnsimError):  # a place that is no address at all, or has no such page
        lnsim.extract("a/b")
    assert tokens(other) <= {None}
    assert "config.json" in str(hub.paths("hub"))


def test_a_user_and_password_in_an_address_are_never_sent(
    hub: HubStandIn, other: HubStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    for name in ("config.json", "model.safetensors"):
        target = f"{other.cdn}/a/b/{COMMIT}/{name}?X-Signature=1".replace("://", "://me:secret@")
        sends(hub, target, pattern=f"^/a/b/resolve/.*{name}")
        assert lnsim.extract("a/b").n_vectors == 7
    sends(hub, f"{hub.endpoint}/a/c/resolve/{COMMIT}/config.json".replace("://", "://me:secret@"))
    assert lnsim.extract("a/b").n_vectors == 7
    assert tokens(hub) == tokens(other, "cdn") == {None}


def test_the_logins_of_netrc_are_never_sent(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HF_TOKEN")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("HOME", str(tmp_path))
    lnsim.extract("a/b")
    assert tokens(hub) == tokens(hub, "cdn") == {None}


def test_a_log_shows_no_header_and_no_signed_address(hub: HubStandIn, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.DEBUG, "huggingface_hub"):
        lnsim.extract("a/b")
    assert not [text for text in ("X-Signature", "Authorization", "Content-Range", SECRET) if text in caplog.text]


def test_https_never_leads_to_http() -> None:
    left = Client(Settings())
    answers = Transport(left)

    @contextmanager
    def exchange(url: str, headers: object, *, at_the_hub: bool) -> Iterator[object]:
        assert str(url) == "https://huggingface.co/x"
        yield SimpleNamespace(status=302, headers={"location": "http://huggingface.co/y"}, chunks=list, received=0)

    left.get = exchange  # type: ignore[method-assign, assignment]
    with pytest.raises(LnsimError, match="it leads from https to an address without encryption"):
        answers.get("https://huggingface.co/x", where="x", max_bytes=10)
    left.close()


@pytest.mark.parametrize("relative", [True, False])
def test_back_at_the_hub_the_token_is_sent_again(hub: HubStandIn, other: HubStandIn, relative: bool) -> None:
    landing = f"/a/c/resolve/{COMMIT}/config.json"
    sends(other, hub.endpoint + landing, pattern="^/x")
    sends(hub, landing if relative else f"{other.endpoint}/x")
    assert lnsim.extract("a/b").n_vectors == 7
    assert tokens(other) == (set() if relative else {None})
    assert [r.authorization for r in hub.requests if r.path == landing] == [f"Bearer {SECRET}"]


@pytest.mark.parametrize(
    "token", [f"\N{LEFT DOUBLE QUOTATION MARK}{SECRET}", f"{SECRET}\x7f", f"export HF_TOKEN={SECRET}"]
)
def test_a_token_that_can_be_none_is_told_unseen(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(LnsimError, match=r"^Reading your Hub token: it holds signs that no token has") as caught:
        lnsim.extract("a/b")
    assert SECRET not in str(caught.value)
    assert hub.requests == []


def test_a_token_that_cannot_be_read_is_one_error_that_says_where_it_lies(
    hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("HF_TOKEN")
    (tmp_path / "no-token").mkdir()
    with pytest.raises(LnsimError, match=r"^Reading your Hub token from .*/no-token: Is a directory\. Log in anew"):
        lnsim.extract("a/b")
    (tmp_path / "no-token").rmdir()
    (tmp_path / "no-token").write_bytes(b"\xff\xfe")
    with pytest.raises(LnsimError, match=r"no-token: UnicodeDecodeError\. Log in anew with `hf auth login`"):
        lnsim.extract("a/b")


@pytest.mark.parametrize("pattern", ["api/models", "config", "safetensors$", "Signature"])
@pytest.mark.parametrize("kind", ["401", "403", "451", "reset", "html", "short_body"])
def test_no_error_no_log_record_and_no_traceback_with_every_local_variable_shows_a_token_that_the_server_repeats(
    hub: HubStandIn, kind: str, pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    told = {"status": kind, "X-Error-Message": f"no right for Bearer {SECRET}, that is {SECRET}\x1b[31m"}
    hub.faults.append(Fault(pattern, "status", headers=told) if kind.isdigit() else Fault(pattern, kind))
    del told
    says = r"no right for Bearer \[token\], that is \[token\]" if kind.isdigit() else "^Reading "
    with caplog.at_level(logging.DEBUG), pytest.raises(LnsimError, match=says) as caught:
        lnsim.extract("a/b")
    shown = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    for text in (repr(caught.value), shown, caplog.text, *(str(vars(record)) for record in caplog.records)):
        assert SECRET not in text
    assert all(text.isprintable() for text in (str(caught.value), *(one.getMessage() for one in caplog.records)))


def test_a_mirror_is_named_once_as_the_one_that_receives_the_token(
    make_hub: Callable[..., HubStandIn], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        hub = make_hub()
        hub.add("a/b", FILES)
        for _ in range(2):
            lnsim.extract("a/b")
        host = hub.endpoint.removeprefix("http://")
        notices = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING and host in r.getMessage()]
        assert notices == [f"HF_ENDPOINT is set: your Hub token is sent to {host}."]


def test_no_token_no_notice(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv("HF_TOKEN")
    lnsim.extract("a/b")
    assert caplog.records == []


def files_with(text: str, folder: Path) -> list[Path]:
    """Files under a folder that hold a text, in whatever encoding of the usual ones."""
    forms = [text.encode(), text.encode("utf-16-le"), text[::-1].encode()]
    return [path for path in folder.rglob("*") if path.is_file() and any(form in path.read_bytes() for form in forms)]


def test_after_a_whole_run_no_file_and_no_stream_holds_the_token(
    hub: HubStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.add("a/b", checkpoint_files(llama_tensors(), LLAMA_CONFIG, 4), gated=True)
    hub.add("a/d", {"README.md": b"x"})
    home = tmp_path / "home"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PYTEST"))},
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "HF_ENDPOINT": hub.endpoint,
        "HF_HOME": str(home),
        "HF_TOKEN": TOKEN,
    }
    command = [sys.executable, "-m", "lnsim", "extract", "a/b", "a/d", "--out", str(home / "out"), "--json", "--debug"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home.parent, check=False)
    assert done.returncode == 1, done.stderr  # a/d has no weights: an error with its traceback
    assert "Traceback" in done.stderr
    assert json.loads(done.stdout)["commit"] == COMMIT
    assert (tokens(hub), tokens(hub, "cdn")) == ({f"Bearer {TOKEN}"}, {None})
    assert f"your Hub token is sent to {hub.endpoint.removeprefix('http://')}" in done.stderr
    assert TOKEN not in done.stdout + done.stderr
    assert files_with(TOKEN, tmp_path) == []
    assert files_with(COMMIT, tmp_path) != []
