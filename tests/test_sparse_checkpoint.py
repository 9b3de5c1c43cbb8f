"""A checkpoint of 205 GB on disk, as sparse files: read at the cost of its headers and norms."""

from __future__ import annotations

import ctypes
import mmap
import os
from pathlib import Path

import pytest
from hub_stand_in import VirtualFile
from virtual_dispute import DISPUTE, dispute_bytes, dispute_files

import lnsim
from lnsim.checkpoint.format.header import parse_header

SOLAR = DISPUTE[0]
PAGE = mmap.PAGESIZE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint; only headers and norms take room on the disk."""
    folder = tmp_path_factory.mktemp("solar")
    for name, content in dispute_files(SOLAR).items():
        if isinstance(content, VirtualFile):
            write_sparse(folder / name, content)
        else:
            (folder / name).write_bytes(content)
    return folder


def write_sparse(path: Path, content: VirtualFile) -> None:
    stop = 8 + int.from_bytes(content.read(0, 8), "little")
    header = parse_header(content.read(0, stop), content.size)
    with path.open("wb") as file:
        file.truncate(content.size)
        file.write(content.read(0, stop))
        for info in header.tensors.values():
            if len(info.shape) == 1:
                file.seek(stop + info.start)
                file.write(content.read(stop + info.start, stop + info.stop))


def first_bytes(path: Path, count: int) -> bytes:
    with path.open("rb", buffering=0) as file:
        return file.read(count)


def header_length(path: Path) -> int:
    return 8 + int.from_bytes(first_bytes(path, 8), "little")


def read_so_far() -> int:
    """Bytes that this process asked the system for."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def test_it_is_read_at_the_cost_of_its_headers_and_norms(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) > 200e9
    before = read_so_far()
    found = lnsim.extract(folder)
    cost = read_so_far() - before
    names = [path for path in folder.iterdir() if path.suffix == ".safetensors"]
    headers = sum(map(header_length, names))
    small = sum(path.stat().st_size for path in folder.glob("*.json"))
    assert cost <= headers + small + 97 * 8192 + 200_000
    assert all(array.tobytes() == dispute_bytes(SOLAR, name, 8192) for name, array in found.stored.items())
    assert (found.n_vectors, found.requests) == (97, 0)


def resident(path: Path) -> set[int]:
    """Pages of a file that lie in the system's cache, by number (mincore)."""
    size = path.stat().st_size
    libc = ctypes.CDLL(None, use_errno=True)
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_SHARED, mmap.PROT_READ) as view:
        libc.mmap.restype = ctypes.c_void_p
        address = libc.mmap(None, ctypes.c_size_t(size), mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        vector = (ctypes.c_ubyte * (-(-size // PAGE)))()
        found = libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), vector)
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
        del view
    if found:
        pytest.skip("this system does not tell which pages are in its cache")
    return {number for number, flag in enumerate(bytes(vector)) if flag & 1}


def test_no_page_of_anything_else_is_touched(folder: Path) -> None:
    path = max(folder.glob("*.safetensors"), key=lambda path: path.stat().st_size)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    if len(resident(path)) > 10:
        pytest.skip("this file system does not drop pages from its cache")
    lnsim.extract(folder)
    touched = resident(path)
    stop = header_length(path)
    header = parse_header(first_bytes(path, stop), path.stat().st_size)
    norms = [info for name, info in header.tensors.items() if name.endswith("norm.weight")]
    allowed = set(range(stop // PAGE + 1))
    for info in norms:
        allowed |= set(range((stop + info.start) // PAGE, (stop + info.stop) // PAGE + 1))
    assert touched
    assert touched <= allowed
