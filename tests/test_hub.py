"""Checkpoints on the Hub, read for real over HTTP from the stand-in: right bits and few requests.

What servers do wrong is in ``test_faults.py``.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hub_stand_in import COMMIT, Fault, HubStandIn, VirtualFile
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, llama_tensors, write_files
from virtual_models import norm_bytes, solar_like

import lnsim
from lnsim.checkpoint.hub.session import Settings
from lnsim.checkpoint.opening import open_checkpoint
from lnsim.errors import FormatError, NetworkError, OfflineError

TENSORS = llama_tensors()
NORMS = [name for name in TENSORS if "norm" in name]
QUICK = Settings(max_tries=3, first_pause=0.001)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: QUICK)


def same_bits(found: lnsim.NormVectors, tensors: dict[str, np.ndarray] = TENSORS) -> bool:
    return {n: a.tobytes() for n, a in found.stored.items()} == {n: tensors[n].tobytes() for n in NORMS}


@pytest.mark.parametrize("n_shards", [1, 2, 4])
@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_the_bits_are_those_of_the_file(hub: HubStandIn, n_shards: int, revision: str | None) -> None:
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, n_shards))
    found = lnsim.extract("a/b", revision=revision)
    assert same_bits(found)
    assert (found.source, found.commit, found.model_type) == ("a/b", COMMIT, "llama")


def test_a_small_single_file_takes_four_requests(hub: HubStandIn) -> None:
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG))
    found = lnsim.extract("a/b")
    assert found.requests == len(hub.requests) == 4  # commit, config, redirect, first window with all norms in it


def test_a_listing_that_tells_no_sizes_is_enough(make_hub: Callable[..., HubStandIn]) -> None:
    hub = make_hub(tells_sizes=False)
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 4))
    assert same_bits(lnsim.extract("a/b"))


def test_each_header_is_read_by_range_in_a_window_guessed_from_the_index(hub: HubStandIn) -> None:
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 4))
    assert same_bits(lnsim.extract("a/b"))
    windows = [int(r.range.split("-")[1]) for r in hub.requests if r.origin == "cdn" and r.range.startswith("bytes=0-")]
    assert windows == [4095] * 4  # these headers are short
    assert len(hub.paths("cdn")) == 4  # and the norms of such a small model come along with them


def test_the_headers_of_a_large_model_come_in_one_request_each_with_the_norm_behind_them(hub: HubStandIn) -> None:
    hub.add("upstage/like-solar", solar_like())
    found = lnsim.extract("upstage/like-solar")
    assert all(array.tobytes() == norm_bytes(name, 8192) for name, array in found.stored.items())
    firsts = [request for request in hub.requests if request.origin == "cdn" and request.range.startswith("bytes=0-")]
    assert len(firsts) == 42
    # commit, config, index; 42 addresses; 42 headers, of which all but two bring a norm along; the other norms
    assert found.requests <= 3 + 42 + 42 + (97 - 40)


def test_a_header_longer_than_the_first_window_takes_one_more_request(hub: HubStandIn) -> None:
    files = {
        "config.json": json.dumps(LLAMA_CONFIG).encode(),
        "model.safetensors": file_bytes(TENSORS, padding=150_000),
    }
    hub.add("a/b", files)
    found = lnsim.extract("a/b")
    assert same_bits(found)
    assert [r.range for r in hub.requests if r.origin == "cdn"][:2] == [
        "bytes=0-99999",
        f"bytes=100000-{_stop(files) - 1}",
    ]


def _stop(files: dict[str, bytes]) -> int:
    return 8 + int.from_bytes(files["model.safetensors"][:8], "little")


def test_a_virtual_200_gb_checkpoint_of_42_shards_costs_little(hub: HubStandIn) -> None:
    files = solar_like()
    assert sum(file.size for file in files.values() if isinstance(file, VirtualFile)) > 200e9
    hub.add("upstage/like-solar", files)
    found = lnsim.extract("upstage/like-solar")
    assert found.n_vectors == 97
    assert found.bytes_received < 5e6  # its headers have 4.3 MB
    assert found.requests < 200
    assert hub.connections("cdn") <= QUICK.max_in_flight
    assert all(array.tobytes() == norm_bytes(name, 8192) for name, array in found.stored.items())


def test_the_token_goes_to_the_hub_and_never_to_the_second_origin(
    hub: HubStandIn, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 2), gated=True)
    with caplog.at_level(logging.DEBUG):
        assert same_bits(lnsim.extract("a/b"))
    assert {r.authorization for r in hub.requests if r.origin == "hub"} == {"Bearer hf_good"}
    assert {r.authorization for r in hub.requests if r.origin == "cdn"} == {None}
    assert "hf_good" not in caplog.text
    assert "your Hub token is sent to 127.0.0.1" in caplog.text


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"pytorch_model.bin": b"x", "config.json": b"{}"}, "PyTorch pickles"),
        ({"model.Q4_K_M.gguf": b"x"}, "GGUF"),
        ({"README.md": b"x"}, "no weights at all"),
    ],
)
def test_a_repo_without_safetensors_says_what_it_has(hub: HubStandIn, files: dict[str, bytes], message: str) -> None:
    hub.add("a/b", files)
    with pytest.raises(FormatError, match=message):
        lnsim.extract("a/b")


def test_consolidated_weights_are_ignored_with_a_note(hub: HubStandIn) -> None:
    files = checkpoint_files(TENSORS, LLAMA_CONFIG)
    hub.add("a/b", files | {"consolidated.safetensors": file_bytes(llama_tensors(seed=3))})
    found = lnsim.extract("a/b")
    assert same_bits(found)
    assert "Passed over beside the weights: consolidated.safetensors." in found.notes
    assert not any("consolidated" in path for path in hub.paths())


def test_a_hostile_shard_name_never_becomes_a_request(hub: HubStandIn) -> None:
    files = checkpoint_files(TENSORS, LLAMA_CONFIG, 3)
    index = {"weight_map": {"model.norm.weight": "../../evil.safetensors"}}
    hub.add("a/b", files | {"model.safetensors.index.json": json.dumps(index).encode()})
    with pytest.raises(FormatError, match="of the same checkpoint"):
        lnsim.extract("a/b")
    assert not any("evil" in path for path in hub.paths())


def cache_snapshot(folder: Path, files: dict[str, bytes]) -> None:
    repo = folder / "hub-cache" / "models--a--b"
    write_files(repo / "snapshots" / COMMIT, files)
    write_files(repo / "refs", {"main": COMMIT.encode()})


def test_a_cached_snapshot_of_a_commit_is_read_without_a_request(hub: HubStandIn, tmp_path: Path) -> None:
    cache_snapshot(tmp_path, checkpoint_files(TENSORS, LLAMA_CONFIG, 2))
    found = lnsim.extract(f"a/b@{COMMIT}")
    assert same_bits(found)
    assert (found.requests, hub.requests, found.commit) == (0, [], COMMIT)


def test_offline_the_cache_serves_the_branch_and_anything_else_is_one_clear_sentence(
    hub: HubStandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache_snapshot(tmp_path, checkpoint_files(TENSORS, LLAMA_CONFIG))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert same_bits(lnsim.extract("a/b"))
    with pytest.raises(OfflineError, match="switched off by HF_HUB_OFFLINE, and the cache does not have it"):
        lnsim.extract("c/d")
    assert hub.requests == []


def test_an_incomplete_snapshot_is_read_from_the_hub_instead(hub: HubStandIn, tmp_path: Path) -> None:
    cache_snapshot(tmp_path, {"config.json": b"{}"})
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG))
    found = lnsim.extract(f"a/b@{COMMIT}")
    assert same_bits(found)
    assert found.requests == 4


def test_after_a_reading_that_failed_a_later_one_is_tried_as_often_as_any(hub: HubStandIn) -> None:
    tensors = llama_tensors(hidden_size=512)
    hub.add("a/b", checkpoint_files(tensors, LLAMA_CONFIG, 3))
    opened = open_checkpoint("a/b")
    name = "model.layers.1.input_layernorm.weight"
    hub.faults.append(Fault("X-Signature", "status", times=100, headers={"status": "503"}))
    with pytest.raises(NetworkError, match="status 503"):
        opened.read([name])
    hub.faults[:] = [Fault("X-Signature", "status", times=1, headers={"status": "503"})]
    assert opened.read_part(name, 2, 8) == tensors[name].tobytes()[2:8]
