"""Whole-process cost of `lnsim extract` on a virtual 42-shard, 200 GB checkpoint behind a slow stand-in for the Hub.

    python benchmarks/extract.py [--latency 0.05] [--runs 3]

The server runs in a process of its own and adds the latency to every request. Printed beside each figure is the least
that any client could do: requests of the same plan, 16 in flight, nothing but latency.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

IN_FLIGHT = 16


def serve(latency: float, offers_one_call: bool, ready: multiprocessing.connection.Connection) -> None:
    """Serve one virtual repo until the parent ends."""
    from hub_stand_in import HubStandIn
    from virtual_models import solar_like

    with HubStandIn(latency=latency, offers_one_call=offers_one_call) as hub:
        hub.add("upstage/like-solar", solar_like())
        ready.send(hub.endpoint)
        time.sleep(3600)


def measure(endpoint: str) -> tuple[dict[str, object], float, float]:
    """One extract as a process of its own: its JSON, wall seconds, peak MiB."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"HF_ENDPOINT": endpoint, "HF_HOME": folder, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "lnsim", "extract", "upstage/like-solar", "--out", folder, "--json"]
        begun = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return json.loads(done.stdout), seconds, peak


def main() -> None:
    """Print one line a way of reading the headers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds added to each request")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    print("headers          requests      MB   bound s   read s   process s   peak MiB")
    for offers_one_call in (True, False):
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.Process(target=serve, args=(options.latency, offers_one_call, theirs), daemon=True)
        server.start()
        endpoint = ours.recv()
        runs = [measure(endpoint) for _ in range(options.runs)]
        server.kill()
        found, seconds, peak = min(runs, key=lambda run: run[1])
        requests, received = int(str(found["requests"])), int(str(found["bytes_received"]))
        bound = math.ceil(requests / IN_FLIGHT) * options.latency
        name = "in one call" if offers_one_call else "by range"
        print(
            f"{name:<15}{requests:>10}{received / 1e6:>8.2f}{bound:>10.2f}{float(str(found['seconds'])):>9.2f}"
            f"{seconds:>12.2f}{peak:>11.0f}"
        )


if __name__ == "__main__":
    main()
