"""Ctrl-C, and errors beside a server that keeps silent: the command ends at once, says one line and leaves nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from fault_table import ADDRESS, BYTES, CONFIG, CONFIG_FILE, LISTING, N_SHARDS, NORMS, START, TENSORS, Place, shows
from hub_stand_in import COMMIT, Fault, HubStandIn
from safetensors_bytes import checkpoint_files

from lnsim.checkpoint.extract import extract, extract_and_keep, load
from lnsim.checkpoint.hub.session import Settings
from lnsim.errors import HubError

ROOT = Path(__file__).resolve().parents[1]
MOST_SECONDS = 2.0
SILENCE, PAUSE = {"seconds": "30"}, {"status": "429", "Retry-After": "60"}
# A shell that starts the tests in the background makes them ignore Ctrl-C, and they pass that on.
PROGRAM = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from lnsim.cli import main; main()"
ENDS = "exits within 2 s with code 130 and one line; no file is left"
SAID = "lnsim: interrupted. What was not finished was not written.\n"


@pytest.fixture
def hub(hub: HubStandIn) -> HubStandIn:
    """The stand-in with the checkpoint of the table of faults."""
    hub.add("a/b", checkpoint_files(TENSORS, CONFIG, N_SHARDS))
    return hub


@contextmanager
def started(endpoint: str, folder: Path, *sources: str) -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_ENDPOINT": endpoint, "HF_HOME": str(folder / "home")}
    words = [sys.executable, "-c", PROGRAM, "extract", "a/b", *sources, "--out", str(folder / "out")]
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(condition: Callable[[], object], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert condition()


def struck(fault: Fault) -> Callable[[], bool]:
    return lambda: fault._used > fault.skip


def interrupted(process: subprocess.Popen[str]) -> str:
    """What it printed, when it has been stopped by hand while nothing moved."""
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=MOST_SECONDS)
    assert (process.returncode, stderr) == (130, SAID)
    return stdout


@shows("Ctrl-C", "while a server keeps silent, stalls, drips or asks to wait, at any kind of request", ENDS)
@pytest.mark.parametrize(("place", "kind"), [
    (LISTING, "silent"),
    pytest.param(CONFIG_FILE, "silent", marks=pytest.mark.slow),
    pytest.param(START, "stall", marks=pytest.mark.slow),
    pytest.param(ADDRESS, "silent", marks=pytest.mark.slow),
    (BYTES, "stall"),
    (BYTES, "drip"),
    (BYTES, "status"),
], ids=lambda value: value.name if isinstance(value, Place) else value)  # fmt: skip
def test_ctrl_c_ends_waiting_for_a_server(hub: HubStandIn, tmp_path: Path, place: Place, kind: str) -> None:
    fault = Fault(place.pattern, kind, headers=PAUSE if kind == "status" else SILENCE, skip=place.skip)
    hub.faults.append(fault)
    with started(hub.endpoint, tmp_path) as process:
        wait_until(struck(fault))
        assert interrupted(process) == ""
    assert not (tmp_path / "out").exists()


@contextmanager
def deaf_server() -> Iterator[int]:
    """The port of a machine that lets nobody connect and refuses nobody: its queue is full and it never looks."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server, ExitStack() as waiting:
        for _ in range(3):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        yield server.getsockname()[1]


def knocking(port: int) -> int:
    """How many connections to a port wait to be made (Linux only)."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(line[2].endswith(f":{port:04X}") and line[3] == "02" for line in lines)


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells of connections that wait")
@shows("Ctrl-C", "while a connection is waited for", ENDS)
def test_ctrl_c_ends_a_command_that_waits_for_a_connection(tmp_path: Path) -> None:
    with deaf_server() as port:
        before = knocking(port)
        with started(f"http://127.0.0.1:{port}", tmp_path) as process:
            wait_until(lambda: knocking(port) > before)
            assert interrupted(process) == ""


@shows("Ctrl-C", "while one of two models is read and the other is done",
       "exits within 2 s with code 130 and one line; "
       "the finished extract is there, whole, and no other file")  # fmt: skip
def test_ctrl_c_keeps_what_is_finished(hub: HubStandIn, tmp_path: Path) -> None:
    hub.add("c/d", checkpoint_files(TENSORS, CONFIG, N_SHARDS))
    # Silent once it is open: checkpoints are opened one after the other, in whichever order their listings come.
    hub.faults.append(Fault(r"^/c/d.*X-Signature", "silent", headers=SILENCE, skip=N_SHARDS))
    kept = tmp_path / "out" / f"a--b@{COMMIT[:12]}.safetensors"
    with started(hub.endpoint, tmp_path, "c/d") as process:
        wait_until(kept.exists)
        assert interrupted(process).startswith("a/b")
    assert [path.name for path in (tmp_path / "out").iterdir()] == [kept.name]
    assert load(kept).n_vectors == len(NORMS)


@shows("an error, while another request hangs", "once", "exits within 2 s with code 1 and one line")
def test_an_error_is_not_kept_waiting_by_another_request_that_hangs(hub: HubStandIn, tmp_path: Path) -> None:
    hub.faults.append(Fault(r"00002-of.*X-Signature", "silent", headers=SILENCE))
    refusal = Fault(r"00003-of.*X-Signature", "ignore_range")
    hub.faults.append(refusal)
    with started(hub.endpoint, tmp_path) as process:
        wait_until(struck(refusal))
        stdout, stderr = process.communicate(timeout=MOST_SECONDS)
    assert (process.returncode, stdout) == (1, "")
    assert "the server ignored Range" in stderr
    assert stderr.count("\n") == 1


@shows("the kernel of a notebook is interrupted", "while vectors are read",
       "KeyboardInterrupt; within 2 s no thread is left; the next reading works")  # fmt: skip
@pytest.mark.parametrize("fault", [
    Fault(BYTES.pattern, "silent", times=3, headers=SILENCE),
    Fault(BYTES.pattern, "status", times=3, headers=PAUSE),
], ids=["no answer", "a pause"])  # fmt: skip
def test_an_interrupt_of_a_kernel_leaves_no_thread(hub: HubStandIn, tmp_path: Path, fault: Fault) -> None:
    hub.faults.append(fault)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        extract_and_keep("a/b", out=tmp_path / "out")
    signal.signal(signal.SIGINT, before)
    wait_until(lambda: not reading_threads(), MOST_SECONDS)
    assert not (tmp_path / "out").exists()
    hub.faults.clear()
    assert extract_and_keep("a/b", out=tmp_path / "out").n_vectors == len(NORMS)


def test_after_the_first_error_nothing_is_tried_again(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    patient = Settings(max_tries=20, first_pause=0.2, max_pause=0.2)  # of which the dice leave at least half
    monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: patient)
    hub.faults.append(Fault(r"00002-of.*X-Signature", "status", headers={"status": "503"}))
    hub.faults.append(Fault(r"00003-of.*X-Signature", "ignore_range"))
    with pytest.raises(HubError, match="the server ignored Range"):
        extract("a/b")
    time.sleep(0.1)
    asked = hub.paths("cdn")
    time.sleep(0.3)
    assert hub.paths("cdn") == asked


def reading_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("lnsim")]
