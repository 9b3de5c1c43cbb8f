"""Fuzzing of the headers of GGUF and of PyTorch's files: only a header or a HeaderError may come out.

    python benchmarks/fuzz_other.py --count 1000000 --seed 0 --jobs 2

Each input is one of the files below with bytes changed, runs copied, numbers set to extremes, or its end cut off; of
PyTorch's files also the pickle alone, since a changed byte of an archive mostly hits its checksums' names. Exit code 1
on any other exception, an input over 2 s of CPU time, or memory over 256 MB. The inputs depend on seed and count.
"""

from __future__ import annotations

import argparse
import random
import struct
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from fuzz_header import BLOCK, MAX_BYTES, MAX_SECONDS, peak  # noqa: E402

from lnsim import HeaderError  # noqa: E402
from lnsim.checkpoint.format.gguf import gguf_header  # noqa: E402
from lnsim.checkpoint.format.torch_pickle import state_dict  # noqa: E402
from lnsim.checkpoint.format.torch_zip import torch_header  # noqa: E402

EXTREMES = (0, 1, 2, 7, 8, 9, 12, 13, 0x7F, 0x80, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 1 << 40, (1 << 64) - 1)
Outcome = tuple[Counter[str], list[str], float, int]


def gguf_file() -> bytes:
    """A small file with a value of every kind, texts in an array, and three tensors."""

    def text(value: bytes) -> bytes:
        return struct.pack("<Q", len(value)) + value

    kinds = {0: "<B", 2: "<H", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 12: "<d"}
    pairs = [text(b"k%d" % kind) + struct.pack("<I", kind) + struct.pack(code, 1) for kind, code in kinds.items()]
    pairs += [text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")]
    pairs += [text(b"tokens") + struct.pack("<IIQ", 9, 8, 3) + text(b"a") + text(b"bc") + text(b"")]
    pairs += [text(b"scores") + struct.pack("<IIQ", 9, 6, 3) + bytes(12)]
    names = (b"blk.0.attn_norm.weight", b"blk.0.ffn_norm.weight", b"output_norm.weight")
    tensors = [text(name) + struct.pack("<IQIQ", 1, 8, 0, 32 * place) for place, name in enumerate(names)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs + tensors)
    return head + bytes(-len(head) % 32) + bytes(96)


TORCH = [path.read_bytes() for path in sorted((ROOT / "tests" / "data" / "torch").glob("*.bin"))]
PICKLES = [
    zipfile.ZipFile(path).read(f"{path.stem}/data.pkl")
    for path in sorted((ROOT / "tests" / "data" / "torch").glob("[kmnp]*.bin"))
]


def read(header: Callable[..., object]) -> Callable[[bytes, int], object]:
    """A reader that has the first bytes of a file, and asks for the others."""
    return lambda data, first: header(lambda s: data[s.start : s.stop], data[:first], len(data), where="x")


READERS: dict[str, tuple[list[bytes], Callable[[bytes, int], object]]] = {
    "gguf": ([gguf_file()], read(gguf_header)),
    "torch": (TORCH, read(torch_header)),
    "pickle": (PICKLES, lambda data, first: state_dict(data)),
}


def mutated(rng: random.Random, base: bytes) -> bytes:
    """The file with one to four things done to it."""
    data = bytearray(base)
    for _ in range(rng.randint(1, 4)):
        place, kind = rng.randrange(len(data) or 1), rng.randrange(6)
        if kind == 0:
            data[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            size = rng.choice((1, 2, 4, 8))
            data[place : place + size] = (rng.choice(EXTREMES) % (1 << 8 * size)).to_bytes(size, "little")
        elif kind == 2:
            data[place:place] = rng.randbytes(rng.randint(1, 12))
        elif kind == 3:
            del data[place : place + rng.randint(1, 12)]
        elif kind == 4:
            other = rng.randrange(len(data) or 1)
            data[place:place] = data[other : other + rng.randint(1, 60)]
        else:
            del data[place : place + 1 if rng.random() < 0.7 else None]
    return bytes(data)


def fuzz(number: str, count: int, kind: str) -> Outcome:
    """Read so many inputs made from a seed."""
    rng, counts, failures, slowest = random.Random(number), Counter[str](), list[str](), 0.0
    bases, reader = READERS[kind]
    for _ in range(count):
        data, first = mutated(rng, rng.choice(bases)), rng.choice((24, 100, 700, 1 << 17))
        begun = time.thread_time()
        try:
            reader(data, first)
            counts[f"{kind}, read"] += 1
        except HeaderError:
            counts[f"{kind}, refused"] += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            failures.append(f"{kind}: {error!r:.200}: {data[:300]!r}")
        slowest = max(slowest, time.thread_time() - begun)
    return counts, failures, slowest, peak()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fuzzer; 0 where nothing else came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000, help="inputs of each format")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    begun, jobs = time.perf_counter(), []
    for kind in READERS:
        for start in range(0, given.count, BLOCK):
            jobs.append((f"{given.seed}:{kind}:{start}", min(BLOCK, given.count - start), kind))
    counts, failures, slowest, most = Counter[str](), list[str](), 0.0, 0
    with ProcessPoolExecutor(given.jobs) as pool:
        for told, wrong, slow, memory in pool.map(fuzz, *zip(*jobs, strict=True)):
            counts += told
            failures += wrong
            slowest, most = max(slowest, slow), max(most, memory)
    print(*(f"{name:<18} {n:>11,}" for name, n in sorted(counts.items())), sep="\n")
    print(f"slowest input      {1000 * slowest:.1f} ms\npeak memory        {most / 2**20:.0f} MiB in one process")
    print(f"other exceptions   {len(failures)}\nseconds            {time.perf_counter() - begun:.0f}")
    print(*failures[:10], sep="\n")
    return 1 if failures or slowest > MAX_SECONDS or most > MAX_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
