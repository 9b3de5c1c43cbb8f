"""Seconds and memory of the test that verdicts rest on, each as a whole process.

    python benchmarks/judge.py [--runs 3]

Strangers of 46 layers and 4,096 channels until they are decided; 9,999 permutations of the same, by r and by ranks; and
every pair of the 100 small roots trained apart, 999 permutations each; value rows (8 heads of 128, two blocks) and 512
token rows of two strangers of 4,096 channels. Beside each stands the least that any program needs: drawing and
gathering the permutations for one pair, the products of matrices for the others, at the rates that this machine shows.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

N_LAYERS, HIDDEN_SIZE, N_PERMUTATIONS = 46, 4096, 9_999
CASES = ("strangers decided", "9,999 permutations", "4,950 pairs", "value and token rows")


def stacks() -> list[tuple[object, object]]:
    """Two stacks of strangers, seeded."""
    import numpy as np

    a, b = 1 + 0.1 * np.random.default_rng(0).standard_normal((2, N_LAYERS, HIDDEN_SIZE))
    return [(a, b)]


def exact_tests() -> str:
    """Both exact tests of two strangers, and what they say."""
    import numpy as np

    from lnsim.measure.evidence import ValueBlock, token_rows, value_rows

    rng, gamma = np.random.default_rng(0), np.ones(HIDDEN_SIZE)
    values = [
        [ValueBlock(layer, rng.standard_normal((1024, HIDDEN_SIZE), dtype=np.float32), gamma, 128) for layer in (0, 45)]
        for _ in "ab"
    ]
    tokens = rng.standard_normal((2, 512, HIDDEN_SIZE), dtype=np.float32)
    return f"p {value_rows(*values).pvalue:.2f} and {token_rows(*tokens).pvalue:.2f}"


def child(case: str) -> None:
    """Do one case, and print what came out and the peak of this process in MiB."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy, as the command line does
    import numpy as np

    import lnsim
    from lnsim.measure.pair_test import pair_test
    from lnsim.paths import stored_models
    from studies.controls.every_pair import every_pair

    if case == "value and token rows":
        said = exact_tests()
    elif case == "4,950 pairs":
        names = [name for name in stored_models() if name.rpartition("-")[0] in ("learned", "rotary")]
        rows = np.stack([np.concatenate([one.scale for one in lnsim.load(name).roles.values()]) for name in names])
        _, p = every_pair(rows, 999, 0)
        said = f"{(p[np.triu_indices(len(names), 1)] <= 0.05).sum()} at 0.05"
    else:
        to_the_end = {} if case == "strangers decided" else {"levels": np.linspace(0, 1, 9999), "most": N_PERMUTATIONS}
        found = pair_test(stacks(), **to_the_end)
        said = f"p {found.pvalue:.3f} after {found.n_permutations}"
    print(f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f};{said}")


def bound(case: str) -> float:
    """Seconds that drawing and gathering, or the products of matrices, take at this machine's rates."""
    import numpy as np

    if case == "value and token rows":
        a = np.random.default_rng(0).standard_normal((512, HIDDEN_SIZE))
        start = time.perf_counter()
        a.T @ a
        return time.perf_counter() - start
    n = {"strangers decided": 200, "9,999 permutations": N_PERMUTATIONS, "4,950 pairs": 999}[case]
    if case == "4,950 pairs":
        a = np.random.default_rng(0).standard_normal((100, 5 * 64))
        start = time.perf_counter()
        for _ in range(200):
            a @ a.T
        return (time.perf_counter() - start) / 200 * 2 * n
    start = time.perf_counter()
    orders = np.random.default_rng(0).permuted(np.tile(np.arange(HIDDEN_SIZE), (200, 1)), axis=1)
    drawn = time.perf_counter()
    np.take(np.ones(HIDDEN_SIZE), orders).sum()
    return (drawn - start + 2 * (time.perf_counter() - drawn)) / 200 * n


def main() -> int:
    """Measure every case, the fastest of some runs; returns the exit code."""
    parser = argparse.ArgumentParser(description="Measure the test that verdicts rest on.")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("--child", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return 0
    print("| case | bound s | process s | peak MiB | |\n|---|---|---|---|---|")
    for case in CASES:
        seconds, told = [], ""
        for _ in range(options.runs):
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, __file__, "--child", case], check=True, capture_output=True, text=True
            )
            seconds.append(time.perf_counter() - start)
            told = done.stdout.strip()
        peak, said = told.split(";")
        print(f"| {case} | {bound(case):.2f} | {min(seconds):.2f} | {peak} | {said} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
