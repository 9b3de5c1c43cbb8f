"""Differential fuzzing of `lnsim.parse_header` against the official parser, `safetensors.deserialize`.

    python benchmarks/fuzz_header.py --count 1000000 --seed 0 --jobs 2

Both must accept the same inputs, and then see the same names, dtypes, shapes, bytes and metadata; a header alone must
give what the whole file gives. The only difference allowed is the one that the parser's docstring lists and that small
inputs can reach: a tensor name that comes twice, which we refuse. Exit code 1 on any other difference, an exception
that is no HeaderError, an input over 2 s of CPU time, or memory over 256 MB. The inputs depend on seed and count,
not on the number of jobs. One in a hundred comes from Hypothesis (and depends on its version), the rest from
`header_inputs.py`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import safetensors
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from header_inputs import KINDS, make_input, whole_file  # noqa: E402

from lnsim import HeaderError, parse_header  # noqa: E402

BLOCK = 10_000
MAX_SECONDS = 2.0
MAX_BYTES = 256 * 1024 * 1024
DUPLICATE = "stands there twice; its bytes would be ambiguous"


@dataclass
class Result:
    """What a run found.

    Args:
        kinds: inputs by kind of mutation.
        valid: inputs that both parsers accept, by kind.
        duplicates: inputs refused for a tensor name that comes twice, and accepted by the official parser.
        disagreements: kind, what differs, and the input.
        slowest: CPU seconds of the slowest input, and the input.
        peak: most memory of a process, in bytes.
    """

    kinds: Counter[str] = field(default_factory=Counter)
    valid: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    disagreements: list[tuple[str, str, bytes]] = field(default_factory=list)
    slowest: tuple[float, bytes] = (0.0, b"")
    peak: int = 0

    def add(self, other: Result) -> None:
        """Take in another run's findings."""
        self.kinds += other.kinds
        self.valid += other.valid
        self.duplicates += other.duplicates
        self.disagreements += other.disagreements
        self.slowest = max(self.slowest, other.slowest)
        self.peak = max(self.peak, other.peak)

    @property
    def failures(self) -> list[str]:
        """Why the run fails; empty where it does not."""
        found = [f"{kind}: {what}: {data[:400]!r}" for kind, what, data in self.disagreements[:20]]
        if self.slowest[0] > MAX_SECONDS:
            found.append(f"an input took {self.slowest[0]:.2f} s: {self.slowest[1][:400]!r}")
        if self.peak > MAX_BYTES:
            found.append(f"memory rose to {self.peak / 2**20:.0f} MiB")
        return found


def judge(kind: str, data: bytes, result: Result) -> None:
    """Give one input to both parsers, and note what they say."""
    result.kinds[kind] += 1
    try:
        official = {
            name: (t["dtype"], tuple(t["shape"]), bytes(t["data"])) for name, t in safetensors.deserialize(data)
        }
    except safetensors.SafetensorError:
        official = None
    begun = time.thread_time()  # a busy machine makes an input wait, not work
    try:
        header = parse_header(data, file_size=len(data))
    except HeaderError as error:
        if official is not None and DUPLICATE in str(error):
            result.duplicates += 1
        elif official is not None:
            result.disagreements.append((kind, f"only ours refuses ({error!s:.200})", data))
        return
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        result.disagreements.append((kind, f"raised {error!r:.200}", data))
        return
    finally:
        result.slowest = max(result.slowest, (time.thread_time() - begun, data))
    if official is None:
        result.disagreements.append((kind, "only ours accepts", data))
        return
    result.valid[kind] += 1
    start = header.buffer_start
    ours = {n: (t.dtype, t.shape, data[start + t.start : start + t.stop]) for n, t in header.tensors.items()}
    text = json.loads(data[8:start])
    if ours != official:
        result.disagreements.append((kind, "the tensors differ", data))
    elif dict(header.metadata) != (text.get("__metadata__") or {}) or list(ours) != [n for n in text if n in ours]:
        result.disagreements.append((kind, "the metadata or the order of the names differ", data))
    elif parse_header(data[:start]) != header:
        result.disagreements.append((kind, "the header alone gives another result", data))


def fuzz(number: str, count: int) -> Result:
    """Judge `count` inputs made from a seed, one in a hundred of them Hypothesis's."""
    rng, result = random.Random(number), Result()
    for _ in range(count - count // 100):
        judge(*make_input(rng), result)
    _strategies(rng, count // 100, result)
    result.peak = peak()
    return result


def peak() -> int:
    """Most bytes that this process had in memory; `getrusage` would count those of whoever started it as well."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 2**65) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
ENTRY = st.fixed_dictionaries(
    {"dtype": st.sampled_from(["U8", "F32", "BF16", "F4"]) | JSON},
    optional={
        "shape": st.lists(st.integers(0, 3), max_size=3) | JSON,
        "data_offsets": st.tuples(st.integers(0, 9), st.integers(0, 20)) | JSON,
        "more": JSON,
    },
)
HEADER = st.dictionaries(st.text(max_size=5), ENTRY | JSON, max_size=3)
METADATA = st.none() | st.dictionaries(st.text(max_size=5), st.text(max_size=5) | JSON, max_size=3)


def _strategies(rng: random.Random, count: int, result: Result) -> None:
    """Headers of any JSON values; of those, Hypothesis keeps trying new corners."""
    before = result.kinds["hypothesis"]

    @seed(rng.randrange(2**32))
    @settings(max_examples=max(1, count), database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(HEADER, METADATA, st.booleans(), st.integers(0, 12))
    def run(header: dict[str, object], metadata: object, escaped: bool, n_bytes: int) -> None:
        if result.kinds["hypothesis"] < before + count:
            text = json.dumps({"__metadata__": metadata} | header, ensure_ascii=escaped)
            judge("hypothesis", whole_file(rng, text, n_bytes), result)

    if count:
        run()
    while result.kinds["hypothesis"] < before + count:  # it stops where it has nothing new to try
        judge(*make_input(rng), result)
        before -= 1


def report(result: Result, seconds: float) -> str:
    """The figures as text."""
    total = sum(result.kinds.values())
    lines = [
        f"inputs          {total:,}, of which both parsers accept {sum(result.valid.values()):,}",
        f"disagreements   {len(result.disagreements):,}; refused for a name that comes twice {result.duplicates:,}",
        f"slowest input   {1000 * result.slowest[0]:.1f} ms ({len(result.slowest[1]):,} bytes)",
        f"peak memory     {result.peak / 2**20:.0f} MiB in one process",
        f"seconds         {seconds:.0f}",
        f"{'kind':<15} {'inputs':>9} {'valid':>9}",
        *(f"{kind:<15} {n:>9,} {result.valid[kind]:>9,}" for kind, n in sorted(result.kinds.items())),
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fuzzer; 0 where the parsers agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    given_ = parser.parse_args(arguments)
    begun = time.perf_counter()
    sizes = [min(BLOCK, given_.count - start) for start in range(0, given_.count, BLOCK)]
    seeds = [f"{given_.seed}:{number}" for number in range(len(sizes))]
    total = Result()
    with ProcessPoolExecutor(given_.jobs) as pool:
        for result in pool.map(fuzz, seeds, sizes):
            total.add(result)
    print(f"seed            {given_.seed}, {len(KINDS)} kinds of mutation and Hypothesis")
    print(report(total, time.perf_counter() - begun))
    print(*total.failures, sep="\n")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())
