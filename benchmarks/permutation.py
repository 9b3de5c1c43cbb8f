"""Seconds and memory of the permutation test of two stacks: 9,999 permutations of 46 layers x 4,096 channels.

    python benchmarks/permutation.py [--runs 3] [--loop 200]

Every figure is that of a whole process: the start of Python and the imports are in it. The plain loop gathers one stack
anew for every permutation and sums the products; it runs for fewer permutations, and its seconds are scaled up to
9,999, which the output says. The first permutations of each test are checked against that loop.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

N_LAYERS, HIDDEN_SIZE, N_PERMUTATIONS = 46, 4096, 9999
CASES = [(statistic, correlation) for statistic in ("mean", "max") for correlation in ("pearson", "spearman")]
LEVELS = {"mean": (3.0, 400)}
"""Seconds and MiB that must hold, where some are set."""


def stacks() -> tuple[object, object]:
    """Two stacks of strangers, seeded."""
    import numpy as np

    generator = np.random.default_rng(0)
    return tuple(1 + 0.1 * generator.standard_normal((N_LAYERS, HIDDEN_SIZE)) for _ in range(2))  # type: ignore[return-value]


def plain_loop(n: int, statistic: str, correlation: str) -> tuple[float, list[float]]:
    """Seconds and values of the first `n` permutations, one after the other."""
    import numpy as np

    from lnsim.measure.nulls import centred_unit
    from lnsim.measure.permutation import channel_orders
    from lnsim.measure.rows import prepared

    a, b = (centred_unit(prepared(rows, correlation)) for rows in stacks())
    orders, found = channel_orders(HIDDEN_SIZE, n, 0), []
    start = time.perf_counter()
    for place in range(n):
        layers = np.sum(a * b[:, orders[:, place]], axis=1)
        found.append(float(layers.mean() if statistic == "mean" else layers.max()))
    return time.perf_counter() - start, found


def child(statistic: str, correlation: str) -> None:
    """One test; prints its p-value and the peak of this process in MiB."""
    from lnsim import permutation_test

    a, b = stacks()
    result = permutation_test(a, b, N_PERMUTATIONS, 0, statistic=statistic, correlation=correlation)
    print(f"{result.pvalue:.4f}", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, flush=True)


def measured(statistic: str, correlation: str) -> tuple[float, float, float]:
    """Seconds, processor seconds and peak MiB of one process."""
    command = [sys.executable, __file__, "--child", statistic, correlation]
    start, busy = time.perf_counter(), _children()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, _children() - busy, float(done.stdout.split()[1])


def _children() -> float:
    """Processor seconds of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check(statistic: str, correlation: str) -> float:
    """The largest gap between the test's values and the loop's, over a few permutations."""
    import numpy as np

    from lnsim import permutation_test

    values = permutation_test(*stacks(), 20, 0, statistic=statistic, correlation=correlation).null_distribution
    return float(np.abs(values - plain_loop(20, statistic, correlation)[1]).max())


def main() -> int:
    """Measure every case, the best of some runs; returns 1 where a level is missed."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=3, help="the best of so many processes is printed")
    options.add_argument("--loop", type=int, default=200, help="permutations of the plain loop")
    options.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.child:
        child(*given.child)
        return 0
    names = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy"))
    print(f"Python {platform.python_version()}, {names}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{N_PERMUTATIONS:,} permutations of {N_LAYERS} x {HIDDEN_SIZE:,}; best of {given.runs} whole processes\n")
    head = f"plain loop, s (scaled from {given.loop})"
    print(f"| statistic | correlation | s | processor s | peak MiB | {head} | gap to the loop |")
    print("|---|---|---|---|---|---|---|")
    missed = 0
    for statistic, correlation in CASES:
        runs = [measured(statistic, correlation) for _ in range(given.runs)]
        seconds, busy, memory = (pick(run) for pick, run in zip((min, min, max), zip(*runs, strict=True), strict=True))
        loops = [plain_loop(given.loop, statistic, correlation)[0] for _ in range(given.runs)]
        loop = min(loops) / given.loop * N_PERMUTATIONS
        gap = check(statistic, correlation)
        row = f"{seconds:.2f} | {busy:.2f} | {memory:.0f} | {loop:.0f} | {gap:.0e}"
        print(f"| {statistic} | {correlation} | {row} |", flush=True)
        most_seconds, most_memory = LEVELS.get(statistic, (float("inf"), float("inf")))
        missed += seconds > most_seconds or memory > most_memory or gap > 1e-12
    most_seconds, most_memory = LEVELS["mean"]
    print(f"\nThe mean under {most_seconds:g} s and {most_memory} MiB: {'missed' if missed else 'met'}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
