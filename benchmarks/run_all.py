"""Whole-process cost of `python run_all.py`: seconds by notebook, peak memory of a process, bytes that differ.

    python benchmarks/run_all.py [--jobs 2]

Runs everything twice. The second run must write the same tables, figures and pages, byte for byte; the index and
run.json hold the seconds and are left out of that comparison.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def run(reports: Path, jobs: int) -> float:
    """Seconds of one whole run."""
    begun = time.perf_counter()
    command = [sys.executable, str(ROOT / "run_all.py"), "--reports", str(reports), "--jobs", str(jobs)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def digests(reports: Path) -> dict[str, str]:
    """sha256 of every table, figure and report."""
    paths = [path for path in reports.rglob("*") if path.is_file()]
    kept = [path for path in paths if path.name not in ("index.html", "run.json")]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in kept}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        reports = Path(folder)
        first = run(reports, options.jobs)
        before = digests(reports)
        second = run(reports, options.jobs)
        after = digests(reports)
        for record in sorted(reports.glob("*/run.json")):
            for entry in json.loads(record.read_text())["notebooks"].values():
                print(f"{record.parent.name:<14} {entry['file']:<26} {entry['seconds']:>6.1f} s  {entry['status']}")
    differ = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"whole run {first:.1f} s, again {second:.1f} s; largest process {peak:.0f} MiB")
    print(f"{len(after)} files compared, {len(differ)} differ {' '.join(differ[:5])}")


if __name__ == "__main__":
    main()
