"""Checkpoints on the Hub, read for real over HTTP from the stand-in: right bits, few requests, clear errors."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hub_stand_in import COMMIT, LATER_COMMIT, Fault, HubStandIn, VirtualFile
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, llama_tensors, write_files
from virtual_models import norm_bytes, solar_like

import lnsim
from lnsim.checkpoint.hub import open_hub
from lnsim.checkpoint.hub.client import Settings
from lnsim.errors import (
    FormatError,
    GatedError,
    HeaderError,
    HubError,
    NetworkError,
    OfflineError,
    RangeError,
    RepoNotFoundError,
    RevisionError,
)

TENSORS = llama_tensors()
NORMS = [name for name in TENSORS if "norm" in name]
QUICK = Settings(max_tries=3, first_pause=0.001)
IMPATIENT = Settings(max_tries=3, first_pause=0.001, read_timeout=0.3)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: QUICK)


def be_impatient_with(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """A stall is only seen by waiting; nobody else should be hurried on a busy machine."""
    if kind == "stall":
        monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: IMPATIENT)


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


def test_all_headers_come_in_one_call_where_the_hub_offers_it(make_hub: Callable[..., HubStandIn]) -> None:
    hub = make_hub()
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 4))
    found = lnsim.extract("a/b")
    # commit, all headers, config (which tells the commit again); a redirect and a read for each shard that holds norms
    shards_with_norms = set(hub.paths("cdn"))
    assert found.requests == 3 + 2 * len(shards_with_norms)
    assert not any(request.range == "bytes=0-99999" for request in hub.requests)


def test_where_the_listing_tells_no_sizes_the_redirect_does(make_hub: Callable[..., HubStandIn]) -> None:
    hub = make_hub(tells_sizes=False)
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 4))
    assert same_bits(lnsim.extract("a/b"))
    assert not any(request.range == "bytes=0-99999" for request in hub.requests)


def test_without_that_call_each_header_is_read_by_range_in_a_window_learnt_from_the_first(
    make_hub: Callable[..., HubStandIn],
) -> None:
    hub = make_hub(offers_one_call=False)
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 4))
    assert same_bits(lnsim.extract("a/b"))
    windows = [int(r.range.split("-")[1]) for r in hub.requests if r.origin == "cdn" and r.range.startswith("bytes=0-")]
    assert windows[0] == 99_999
    assert len(windows) == 4
    assert all(5_000 > window > 4_096 for window in windows[1:])


def test_when_main_moves_meanwhile_the_pinned_commit_is_read_all_the_same(hub: HubStandIn) -> None:
    hub.add("a/b", checkpoint_files(llama_tensors(seed=9), LLAMA_CONFIG, 4), commit=LATER_COMMIT)
    repo = hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 4))
    repo.moves_to = LATER_COMMIT
    found = lnsim.extract("a/b")
    assert found.commit == COMMIT
    assert same_bits(found)


def test_headers_that_do_not_fit_the_file_size_are_read_from_the_file(hub: HubStandIn) -> None:
    files = checkpoint_files(TENSORS, LLAMA_CONFIG, 3)
    names = list(TENSORS)
    files["model-00001-of-00003.safetensors"] = file_bytes({n: TENSORS[n] for n in names[0::3]}, padding=400)
    hub.add("a/b", files)
    assert same_bits(lnsim.extract("a/b"))
    assert sum(request.range == "bytes=0-99999" for request in hub.requests) == 1


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
    assert found.bytes_received < 2e6
    assert found.requests < 200
    assert hub.connections("cdn") <= QUICK.max_in_flight
    assert all(array.tobytes() == norm_bytes(name, 8192) for name, array in found.stored.items())


@pytest.mark.parametrize(
    "kind", ["short_body", "short_range", "wrong_content_range", "no_content_range", "reset", "stall"]
)
def test_a_passing_fault_is_recovered_from_and_the_bits_are_right(
    hub: HubStandIn, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_impatient_with(monkeypatch, kind)
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 2))
    hub.faults.append(Fault("X-Signature", kind, times=2))
    assert same_bits(lnsim.extract("a/b"))


@pytest.mark.parametrize(("status", "headers"), [(503, {}), (429, {"Retry-After": "0"}), (500, {})])
def test_a_busy_server_is_asked_again(hub: HubStandIn, status: int, headers: dict[str, str]) -> None:
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG))
    hub.faults.append(Fault("/api/models|X-Signature", "status", times=2, headers={"status": str(status)} | headers))
    assert same_bits(lnsim.extract("a/b"))


@pytest.mark.parametrize("kind", ["short_body", "wrong_content_range", "reset", "stall"])
def test_a_lasting_fault_is_one_error_that_says_what_was_seen(
    hub: HubStandIn, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    be_impatient_with(monkeypatch, kind)
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG))
    hub.faults.append(Fault("X-Signature", kind))
    with pytest.raises(
        NetworkError, match=r"bytes 0 to 100000 of a/b@0123456789ab/model\.safetensors: no usable answer"
    ):
        lnsim.extract("a/b")


def test_a_server_that_ignores_range_costs_no_gigabytes(hub: HubStandIn) -> None:
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG))
    hub.faults.append(Fault("X-Signature", "ignore_range"))
    with pytest.raises(HubError, match="the server ignored Range and answered 200 instead of 206"):
        lnsim.extract("a/b")
    assert len(hub.paths("cdn")) <= 1


def test_a_page_instead_of_a_range_is_refused(hub: HubStandIn) -> None:
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG))
    hub.faults.append(Fault("X-Signature", "html"))
    with pytest.raises(HubError, match="the server ignored Range"):
        lnsim.extract("a/b")


def test_an_expired_address_is_resolved_again(make_hub: Callable[..., HubStandIn]) -> None:
    hub = make_hub(offers_one_call=False, signature_uses=1)
    hub.add("a/b", checkpoint_files(llama_tensors(hidden_size=128), LLAMA_CONFIG, 2))
    tensors = llama_tensors(hidden_size=128)
    assert same_bits(lnsim.extract("a/b"), tensors)


def test_a_shard_replaced_while_it_is_read_is_an_error(hub: HubStandIn) -> None:
    tensors = llama_tensors(hidden_size=512)
    repo = hub.add("a/b", checkpoint_files(tensors, LLAMA_CONFIG, 3))
    opened = open_hub("a/b")
    longer = checkpoint_files(tensors | {"more": np.zeros(99, np.float32)}, LLAMA_CONFIG, 3)
    repo.files[COMMIT] = {name: VirtualFile(len(c), lambda a, b, c=c: c[a:b]) for name, c in longer.items()}
    with pytest.raises(RangeError, match="The file was replaced while it was read"):
        opened.read([name for name in tensors if "norm" in name])


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


def test_a_gated_repo_is_one_clear_sentence(hub: HubStandIn) -> None:
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG), gated=True)
    with pytest.raises(GatedError, match="the repo is gated, and no token was sent"):
        lnsim.extract("a/b")


def test_a_missing_repo_is_one_clear_sentence(hub: HubStandIn) -> None:
    with pytest.raises(RepoNotFoundError, match="Reading no/such@main: the Hub has no such repo"):
        lnsim.extract("no/such")


def test_a_wrong_revision_is_one_clear_sentence(hub: HubStandIn) -> None:
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG))
    with pytest.raises(RevisionError, match="Reading a/b@v9: the repo has no such revision"):
        lnsim.extract("a/b@v9")


def test_a_server_that_is_not_there_is_one_clear_sentence(hub: HubStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        NetworkError, match=r"no usable answer from 127\.0\.0\.1:9 in 3 tries, the last one: ConnectionRefusedError"
    ):
        lnsim.extract("a/b")


def test_a_server_that_asks_for_an_hour_is_not_waited_for(hub: HubStandIn) -> None:
    hub.faults.append(Fault("/api/models", "status", headers={"status": "429", "Retry-After": "3600"}))
    with pytest.raises(NetworkError, match="the server asks to wait 3600 seconds"):
        lnsim.extract("a/b")
    assert len(hub.requests) == 1


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


def test_an_index_that_names_a_missing_tensor_is_an_error(make_hub: Callable[..., HubStandIn]) -> None:
    hub = make_hub(offers_one_call=False)
    files = checkpoint_files(TENSORS, LLAMA_CONFIG, 3)
    index = json.loads(files["model.safetensors.index.json"])
    index["weight_map"]["model.layers.9.input_layernorm.weight"] = "model-00001-of-00003.safetensors"
    hub.add("a/b", files | {"model.safetensors.index.json": json.dumps(index).encode()})
    with pytest.raises(HeaderError, match=r"'model\.layers\.9\.input_layernorm\.weight' should lie in"):
        lnsim.extract("a/b")


def test_an_index_that_names_a_missing_shard_is_an_error(make_hub: Callable[..., HubStandIn]) -> None:
    hub = make_hub(offers_one_call=False)
    files = checkpoint_files(TENSORS, LLAMA_CONFIG, 3)
    del files["model-00002-of-00003.safetensors"]
    hub.add("a/b", files)
    with pytest.raises(HubError, match=r"index names 'model-00002-of-00003\.safetensors', which the commit does not"):
        lnsim.extract("a/b")


def test_a_hostile_shard_name_never_becomes_a_request(make_hub: Callable[..., HubStandIn]) -> None:
    hub = make_hub(offers_one_call=False)
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
