"""A checkpoint of 205 GB on disk, as sparse files: read at the cost of its headers and norms."""

from __future__ import annotations

from pathlib import Path

import pytest
from hub_stand_in import VirtualFile
from virtual_dispute import DISPUTE, dispute_bytes, dispute_files

import lnsim
from lnsim.checkpoint.format.header import parse_header

SOLAR = DISPUTE[0]


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


def header_length(path: Path) -> int:
    with path.open("rb", buffering=0) as file:
        return 8 + int.from_bytes(file.read(8), "little")


def read_so_far() -> int:
    """Bytes that this process asked the system for."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def test_it_is_read_at_the_cost_of_its_headers_and_norms(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.iterdir()) > 200e9
    lnsim.extract(folder)  # whose imports are read as well
    before = read_so_far()
    found = lnsim.extract(folder)
    cost = read_so_far() - before
    names = [path for path in folder.iterdir() if path.suffix == ".safetensors"]
    headers = sum(map(header_length, names))
    small = sum(path.stat().st_size for path in folder.glob("*.json"))
    assert cost <= headers + small + 97 * 8192 + 200_000
    assert all(array.tobytes() == dispute_bytes(SOLAR, name, 8192) for name, array in found.stored.items())
    assert (found.n_vectors, found.requests) == (97, 0)
