"""Dask: threads and workers give the same, a worker that dies costs its block alone, a missing package is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lnsim
from lnsim.atlas import search
from lnsim.atlas.search import engine
from lnsim.atlas.store import Atlas, Wanted, needed
from lnsim.errors import SourceError
from lnsim.paths import stored_models


def square(number: int) -> int:
    return number**2


def test_threads_answer_in_turn_however_many_there_are() -> None:
    with engine() as run:
        assert list(run(square, ((number,) for number in range(600)))) == [number**2 for number in range(600)]


def test_a_missing_package_is_one_sentence_that_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(SourceError, match=r"'zarr' is not installed. Install it by: pip install 'lnsim\[atlas\]'"):
        needed("zarr")


def test_importing_the_atlas_loads_neither_zarr_nor_dask() -> None:
    code = "import sys, lnsim.atlas.search; print([n for n in ('zarr', 'dask', 'distributed') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as found:
        yield found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_workers_find_what_threads_find(cluster: Any, tmp_path: Path) -> None:
    names = [name for name in stored_models() if name.startswith("gpt2-")]
    atlas = Atlas(tmp_path)
    list(atlas.add(Wanted(name) for name in names))
    query = lnsim.load("gpt2-code-8-light")
    assert told(search.pairs(atlas, 999, 0, cluster.scheduler_address)) == told(search.pairs(atlas, 999, 0))
    of_one = search.relatives(atlas, query, 999, 0, cluster.scheduler_address)
    assert told(of_one) == told(search.relatives(atlas, query, 999, 0))


def told(found: search.Search) -> list[object]:
    """All but the last digits, which the number of threads of a product may change."""
    names = ("a", "b", "strength", "pvalue")
    rows = [(round(one["similarity"], 5), *(one[name] for name in names)) for one in found.found]
    return [found.n_tests, *sorted(rows, key=str)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_killed_in_the_middle_costs_its_block_and_no_more(cluster: Any, tmp_path: Path) -> None:
    def block(number: int, folder: str) -> int:
        """The tenth block kills its worker, the first time; each run of a block leaves a file."""
        import tempfile

        tempfile.mkstemp(prefix=f"{number}-", dir=folder)
        if number == 10 and len(list(Path(folder).glob("10-*"))) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    with engine(cluster.scheduler_address) as run:
        assert list(run(block, ((number, str(tmp_path)) for number in range(40)))) == list(range(40))
    runs = [path.name.partition("-")[0] for path in tmp_path.iterdir()]
    assert runs.count("10") == 2
    assert len(set(runs)) == 40
    assert len(runs) < 80  # what the dead worker had given to nobody yet is run again, and nothing else
