"""Whole-process cost of `lnsim extract` on the ten checkpoints of the dispute behind a slow stand-in for the Hub.

    python benchmarks/extract.py [--latency 0.05] [--runs 3]

The checkpoints are virtual: true headers over bytes that are made when they are read (`tests/virtual_dispute.py`). The
server runs in a process of its own and adds the latency to every request. Every vector is compared by sha256. Printed
beside each figure is the least that any client could need: the same requests, all of them in flight at once as far as
allowed, and nothing but latency.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import hub_stand_in  # noqa: E402
from virtual_dispute import DISPUTE, dispute_bytes, dispute_files  # noqa: E402

REPOS = [family.repo_id for family in DISPUTE]


class Server(hub_stand_in.HubStandIn):
    """A stand-in that has its answers ready, so that its own work is not what is measured.

    JSON is packed where the client asks for that, as a web server does.
    """

    def fill(self) -> None:
        """Put the ten checkpoints in, and pack their JSON files."""
        self.packed: dict[str, bytes] = {}
        for family in DISPUTE:
            files = dispute_files(family)
            self.add(family.repo_id, files)
            for name in ("config.json", "model.safetensors.index.json"):
                content = files[name]
                assert isinstance(content, bytes)
                self.packed[f"{family.repo_id}/{name}"] = gzip.compress(content, 6)

    def _answer_resolve(self, handler: Any, repo_id: str, revision: str, name: str) -> None:
        key = f"{repo_id}/{name}"
        if "gzip" not in handler.headers.get("Accept-Encoding", "") or key not in self.packed:
            super()._answer_resolve(handler, repo_id, revision, name)
        else:
            handler.send(200, self.packed[key], {"Content-Encoding": "gzip", "Content-Type": "application/json"})


def serve(latency: float, pipe: multiprocessing.connection.Connection) -> None:
    """Serve until the parent ends; a message is answered with the connections to each origin since the last one."""
    with Server(latency=latency) as hub:
        hub.fill()
        pipe.send(hub.endpoint)
        while pipe.recv():
            pipe.send((hub.connections("hub"), hub.connections("cdn")))
            hub.forget()


@dataclass(frozen=True)
class Run:
    """One process: what it printed and what it took."""

    records: list[dict[str, Any]]
    seconds: float
    cpu: float
    peak: float

    def sum(self, key: str) -> int:
        """A count over all models."""
        return sum(int(record[key]) for record in self.records)


def extract(endpoint: str, sources: list[str], out: str, in_flight: int) -> Run:
    """Run `lnsim extract` once, as a process of its own."""
    environment = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": f"{out}/hf", "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled once, as on any machine where lnsim has run before
    command = [sys.executable, "-m", "lnsim", "extract", *sources, "--out", out, "--json"]
    command += ["--in-flight", str(in_flight)]
    begun = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begun
    if process.returncode:
        raise SystemExit(f"lnsim extract ended with {process.returncode}")
    records = [json.loads(line) for line in text.splitlines()]
    return Run(records, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def wrong_vectors(run: Run) -> int:
    """Vectors whose sha256 is not that of the bytes the server made."""
    import lnsim

    families = {family.repo_id: family for family in DISPUTE}
    wrong = 0
    for record in run.records:
        found = lnsim.load(record["path"])
        for name, array in found.stored.items():
            data = array.tobytes()
            made = dispute_bytes(families[record["repo_id"]], name, len(data))
            wrong += hashlib.sha256(data).digest() != hashlib.sha256(made).digest()
    return wrong


def line(name: str, run: Run, bound: float, rest: str) -> None:
    """Print one row of the table."""
    print(
        f"| {name} | {run.sum('requests')} | {run.sum('bytes_received') / 1e6:.2f} | {bound:.2f} | {run.seconds:.2f} "
        f"| {run.cpu:.2f} | {run.peak:.0f} | {rest} |",
        flush=True,
    )


def measure(name: str, server: Any, sources: list[str], in_flight: int, options: argparse.Namespace) -> None:
    """The fastest of some first runs, and the second run that finds the extracts in its folder."""
    pipe, endpoint = server
    runs = []
    for _ in range(options.runs):
        with tempfile.TemporaryDirectory() as out:
            run = extract(endpoint, sources, out, in_flight)
            pipe.send(True)
            connections = pipe.recv()
            wrong = wrong_vectors(run)
            again = extract(endpoint, sources, out, in_flight)
            pinned = [f"{record['repo_id']}@{record['commit']}" for record in run.records]
            same_commit = extract(endpoint, pinned, out, in_flight)
            pipe.send(True)
            pipe.recv()
        runs.append((run, connections, wrong, again, same_commit))
    run, connections, wrong, again, same_commit = min(runs, key=lambda found: found[0].seconds)
    bound = math.ceil(run.sum("requests") / in_flight) * options.latency
    rest = f"{connections[0]} and {connections[1]} connections, {run.sum('n_vectors')} vectors, {wrong} wrong"
    line(f"{name}, {in_flight} in flight", run, bound, rest)
    line("the same again", again, math.ceil(again.sum("requests") / in_flight) * options.latency, "")
    line("again, at a pinned commit", same_commit, 0.0, "")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds added to each request")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, numpy {version('numpy')}, huggingface_hub {version('huggingface_hub')}")
    print(f"{os.cpu_count()} cores, {options.latency * 1000:g} ms a request, best of {options.runs}\n")
    print("| what | requests | MB | bound s | process s | CPU s | peak MiB | |\n|---|---|---|---|---|---|---|---|")
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=serve, args=(options.latency, theirs), daemon=True)
    process.start()
    server = (ours, ours.recv())
    for in_flight in (16, 64):
        measure("ten models", server, REPOS, in_flight, options)
    measure("Solar alone", server, REPOS[:1], 16, options)
    process.kill()


if __name__ == "__main__":
    main()
