"""Seconds and memory of a synthetic atlas: adding from local extracts, one query, all pairs, beside the bound.

    python benchmarks/atlas.py [--models 1000 3000 10000] [--folder DIR]

Every model is synthetic: two roles of four layers of 4,096 channels, a pattern of its own drawn at random with as much
spread again in every layer by itself; but 200 of each atlas are planted relatives, the norms of another one with noise
of the same spread. Each case is a whole process. The bound of adding is reading each byte once and writing it twice
(extract and read-back are one, the sketch is small), of a query reading the sketches, of all pairs the product of
matrices on all cores and reading the sketches once: at the rates that this machine shows for plain files and products.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

HIDDEN_SIZE, N_LAYERS, N_PLANTED, N_QUERIES = 4096, 4, 200, 20
ROLES = {"pre_attention": "input_layernorm", "pre_mlp": "post_attention_layernorm"}
CASES = ("add", "add again", "query", "pairs")
CONFIG = {"model_type": "llama", "num_hidden_layers": N_LAYERS, "hidden_size": HIDDEN_SIZE}


def rows_of(number: int) -> object:
    """γ of a synthetic model, ``(n_roles, n_layers, hidden_size)``; the first 200 are relatives of the next 200."""
    import numpy as np

    rng = np.random.default_rng([0, number])
    if number < N_PLANTED:
        parent = rows_of(number + N_PLANTED)
        return (parent + rng.normal(0, 0.14, (len(ROLES), N_LAYERS, HIDDEN_SIZE))).astype(np.float32)
    own = rng.normal(0, 0.1, (len(ROLES), 1, HIDDEN_SIZE))
    return (1 + own + rng.normal(0, 0.1, (len(ROLES), N_LAYERS, HIDDEN_SIZE))).astype(np.float32)


def make(folder: Path, n_models: int) -> list[str]:
    """Write the extracts of the synthetic models that are not there yet."""
    from lnsim.checkpoint.store import Provenance, StoredTensor, write_extract

    paths = [folder / f"synthetic-{number:05d}.safetensors" for number in range(n_models)]
    for number, path in enumerate(paths):
        if path.exists():
            continue
        tensors, start = [], 0
        for name, rows in zip(ROLES.values(), rows_of(number), strict=True):  # type: ignore[call-overload]
            for layer, row in enumerate(rows):
                where = (path.name, start, start + row.nbytes)
                full = f"model.layers.{layer}.{name}.weight"
                tensors.append(StoredTensor(full, "F32", (HIDDEN_SIZE,), row.tobytes(), *where))
                start += row.nbytes
        write_extract(path, tensors, Provenance(path.stem, None, None, None, "llama", CONFIG))
    return [str(path) for path in paths]


def child(case: str, folder: Path, sources: list[str]) -> dict[str, object]:
    """Do one case; seconds do not include the start of Python and of the imports."""
    import lnsim
    from lnsim.atlas.search import pairs, relatives
    from lnsim.atlas.store import Atlas, Wanted

    begun = time.perf_counter()
    if case.startswith("add"):
        new = sum(one.new for one in Atlas(folder).add([Wanted(source) for source in sources]))
        return {"s": time.perf_counter() - begun, "found": f"{new} new"}
    atlas = Atlas(folder)
    if case == "pairs":
        found = pairs(atlas)
        seconds = time.perf_counter() - begun
        strong = [one for one in found.found if one["strength"] == "strong"]
        planted = sum(abs(_number(one["a"]) - _number(one["b"])) == N_PLANTED for one in strong)
        more = f"{planted} of {N_PLANTED} planted, {len(strong) - planted} false at strong; {len(found.found)} tested"
        return {"s": seconds, "found": more}
    opened, times, first, false = time.perf_counter() - begun, [], 0, 0
    for number in range(N_QUERIES):
        query = lnsim.load(sources[number])
        begun = time.perf_counter()
        found = relatives(atlas, query)
        times.append(time.perf_counter() - begun)
        strong = [one for one in found.found if one["strength"] == "strong"]
        first += bool(strong) and _number(strong[0]["b"]) == number + N_PLANTED
        false += sum(_number(one["b"]) != number + N_PLANTED for one in strong)
    told = f"{first} of {N_QUERIES} planted, {false} false at strong; opening {opened:.2f} s, first {times[0]:.2f} s"
    return {"s": sorted(times)[len(times) // 2], "found": told}


def _number(source: str) -> int:
    return int(Path(source).stem.rpartition("-")[2])


def rates(folder: Path) -> tuple[float, float, float]:
    """Bytes a second that plain files are read and written with, and operations of products on all cores."""
    import numpy as np

    data, path = os.urandom(1 << 22), folder / "rate"
    begun = time.perf_counter()
    for number in range(64):
        path.with_suffix(f".{number}").write_bytes(data)
    written = time.perf_counter()
    for number in range(64):
        path.with_suffix(f".{number}").read_bytes()
    read = time.perf_counter()
    for number in range(64):
        path.with_suffix(f".{number}").unlink()
    # Two blocks: the product of one with itself would be half as much work.
    block, other, cores = *np.ones((2, 1024, HIDDEN_SIZE), np.float32), os.cpu_count() or 1
    with ThreadPoolExecutor(cores) as pool:
        start = time.perf_counter()
        list(pool.map(lambda _: block @ other.T, range(16 * cores)))
        seconds = time.perf_counter() - start
    total = 64 * len(data)
    return total / (read - written), total / (written - begun), 16 * cores * 2 * 1024**2 * HIDDEN_SIZE / seconds


def bound(case: str, n_models: int, folder: Path) -> float:
    """Seconds that the bytes and the products take, at this machine's rates."""
    read, write, products = rates(folder)
    row = len(ROLES) * HIDDEN_SIZE * 4
    if case.startswith("add"):
        extract = N_LAYERS * row
        return n_models * (extract / read + ((extract + row) / write if case == "add" else 0))
    if case == "query":
        return n_models * row / read
    return n_models * row / read + math.comb(n_models, 2) * 2 * len(ROLES) * HIDDEN_SIZE / products


def run(case: str, folder: Path, sources: Path) -> dict[str, object]:
    """One case in a process of its own: its seconds, what it found, its peak in MiB."""
    words = [sys.executable, __file__, "--child", case, "--folder", str(folder), "--sources", str(sources)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def main() -> int:
    """Measure every case of every size; returns the exit code."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy, as the command line does
    parser = argparse.ArgumentParser(description="Measure a synthetic atlas.")
    parser.add_argument("--models", type=int, nargs="+", default=[1_000, 3_000, 10_000], metavar="N")
    parser.add_argument("--folder", type=Path, help="for some gigabytes that are deleted afterwards")
    parser.add_argument("--child", choices=CASES, help=argparse.SUPPRESS)
    parser.add_argument("--sources", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        found = child(options.child, options.folder, json.loads(options.sources.read_text("utf-8")))
        print(json.dumps(found | {"mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="atlas_bench_") as name:
        folder = Path(name)
        print("| models (synthetic) | case | bound s | s | peak MiB | |\n|---|---|---|---|---|---|")
        for n_models in sorted(options.models):
            (folder / "sources.json").write_text(json.dumps(make(folder / "made", n_models)), "utf-8")
            for case in CASES:
                found = run(case, folder / "atlas", folder / "sources.json")
                least = bound(case, n_models, folder)
                told = f"{least:.2f} | {found['s']:.2f} | {found['mib']:.0f} | {found['found']}"
                print(f"| {n_models:,} | {case} | {told} |", flush=True)
            shutil.rmtree(folder / "atlas")
    return 0


if __name__ == "__main__":
    sys.exit(main())
