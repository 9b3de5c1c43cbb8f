"""Faults of server and network: each ends in the right vectors, or in one clear error with nothing written."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from fault_table import CONFIG, N_SHARDS, ROWS, TENSORS, TRIES, OneError, Place, Recovers, Row, Stage
from hub_stand_in import HubStandIn
from safetensors_bytes import checkpoint_files, norm_bits

import lnsim
from lnsim.checkpoint.extract import extract_and_keep
from lnsim.checkpoint.hub.session import Settings, close_clients

# Every row is tried every day, at one of its places: the next row at the next one. The rest is slow.
CASES = [
    pytest.param(row, place, id=f"{row.does}, {row.often}, {place.name}",
                 marks=[] if place is row.places[number % len(row.places)] else [pytest.mark.slow])
    for number, row in enumerate(ROWS) for place in row.places
]  # fmt: skip
_plain_requests: list[int] = []  # those without any fault, once they were counted


@pytest.fixture
def stage(make_hub: Callable[..., HubStandIn], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Stage]:
    """Set up a stand-in with the checkpoint of the table, and patience as a row wants it."""

    def set_up(**settings: float) -> Stage:
        quick = Settings(**{"max_tries": TRIES, "first_pause": 0.001} | settings)
        monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: quick)
        hub = make_hub()
        found = Stage(hub, hub.add("a/b", checkpoint_files(TENSORS, CONFIG, N_SHARDS)), monkeypatch)
        if not _plain_requests:
            _plain_requests.append(lnsim.extract("a/b").requests)
            hub.forget()
        return found

    return set_up


def files_under(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("row", "place"), CASES)
def test_a_fault_ends_in_the_right_vectors_or_in_one_error_and_nothing_written(
    row: Row, place: Place, stage: Callable[..., Stage], tmp_path: Path
) -> None:
    arranged = stage(**row.settings)
    row.arrange(arranged, place)
    begun = time.monotonic()
    if isinstance(row.outcome, Recovers):
        check_recovery(row.source, row.outcome, arranged.hub, tmp_path / "out")
    else:
        check_error(row.source, row.outcome, arranged.hub, tmp_path / "out")
    assert time.monotonic() - begun >= row.least_seconds
    assert sum(request.sent for request in arranged.hub.requests) <= row.most_bytes
    close_clients()
    deadline = time.monotonic() + 5
    for thread in threading.enumerate():
        if thread.name.startswith("lnsim"):
            thread.join(max(0.0, deadline - time.monotonic()))
            assert not thread.is_alive(), thread.name


def check_recovery(source: str, outcome: Recovers, hub: HubStandIn, out: Path) -> None:
    found = extract_and_keep(source, out=out)
    assert norm_bits(found.stored) == norm_bits(TENSORS)
    assert dict(found.config) == CONFIG
    assert files_under(out) == [found.path]
    assert norm_bits(lnsim.load(str(found.path)).stored) == norm_bits(TENSORS)
    assert max(found.requests, len(hub.requests)) <= _plain_requests[0] + outcome.more_requests


def check_error(source: str, outcome: OneError, hub: HubStandIn, out: Path) -> None:
    says = re.escape(outcome.says).replace(re.escape("..."), ".*")
    with pytest.raises(outcome.kind, match=says) as caught:
        extract_and_keep(source, out=out)
    assert files_under(out) == []
    assert "\n" not in str(caught.value)
    assert "X-Signature" not in str(caught.value)
    assert outcome.most_requests is None or len(hub.requests) <= outcome.most_requests
