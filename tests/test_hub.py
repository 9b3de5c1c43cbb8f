"""Checkpoints on the Hub, read for real over HTTP from the stand-in: right bits and few requests.

What servers do wrong is in ``test_faults.py``.
"""

from __future__ import annotations

import json

import pytest
from hub_stand_in import COMMIT, Fault, HubStandIn, VirtualFile
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, file_bytes, llama_tensors, norm_bits
from virtual_dispute import DISPUTE, Family, dispute_bytes, dispute_files

import lnsim
from lnsim.checkpoint.format.header import Header, parse_header
from lnsim.checkpoint.hub.checkpoint import FIRST_WINDOW, Window
from lnsim.checkpoint.hub.session import Settings
from lnsim.checkpoint.opening import open_checkpoint
from lnsim.errors import NetworkError

TENSORS = llama_tensors()
NORMS = [name for name in TENSORS if "norm" in name]
CONFIG = json.dumps(LLAMA_CONFIG).encode()
QUICK = Settings(max_tries=3, first_pause=0.001)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lnsim.checkpoint.hub.checkpoint.Settings", lambda: QUICK)


@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_each_header_is_read_by_range_in_a_window_guessed_from_the_index(hub: HubStandIn, revision: str | None) -> None:
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG, 4))
    found = lnsim.extract("a/b", revision=revision)
    assert norm_bits(found.stored) == norm_bits(TENSORS)
    assert (found.source, found.commit, found.model_type) == ("a/b", COMMIT, "llama")
    windows = [int(r.range.split("-")[1]) for r in hub.requests if r.origin == "cdn" and r.range.startswith("bytes=0-")]
    assert windows == [4095] * 4  # these headers are short
    assert len(hub.paths("cdn")) == 4  # and the norms of such a small model come along with them


def test_a_mirror_that_serves_the_weights_itself_is_asked_for_a_byte_and_then_for_ranges(hub: HubStandIn) -> None:
    hub.redirects = False
    hub.add("a/b", checkpoint_files(TENSORS, LLAMA_CONFIG))
    assert norm_bits(lnsim.extract("a/b").stored) == norm_bits(TENSORS)
    assert [request.range for request in hub.requests if request.range] == ["bytes=0-0", f"bytes=0-{FIRST_WINDOW - 1}"]


@pytest.mark.parametrize("stop", [FIRST_WINDOW - 1, FIRST_WINDOW, FIRST_WINDOW + 1, 150_000])
def test_a_header_longer_than_the_first_window_takes_one_more_request(hub: HubStandIn, stop: int) -> None:
    bare = 8 + int.from_bytes(file_bytes(TENSORS, padding=0)[:8], "little")
    hub.add("a/b", {"config.json": CONFIG, "model.safetensors": file_bytes(TENSORS, padding=stop - bare)})
    assert norm_bits(lnsim.extract("a/b").stored) == norm_bits(TENSORS)
    ranges = [request.range for request in hub.requests if request.origin == "cdn"]
    assert ranges[0] == f"bytes=0-{FIRST_WINDOW - 1}"
    assert (f"bytes={FIRST_WINDOW}-{stop - 1}" in ranges) == (stop > FIRST_WINDOW)


def test_the_headers_of_200_gb_in_42_shards_come_in_one_request_each_with_the_norm_behind_them(hub: HubStandIn) -> None:
    files = dispute_files(DISPUTE[0])
    assert sum(file.size for file in files.values() if isinstance(file, VirtualFile)) > 200e9
    hub.add("upstage/like-solar", files)
    found = lnsim.extract("upstage/like-solar")
    assert found.n_vectors == 97
    assert found.bytes_received < 5e6  # its headers have 4.3 MB
    assert hub.connections("cdn") <= QUICK.max_in_flight
    assert all(array.tobytes() == dispute_bytes(DISPUTE[0], name, 8192) for name, array in found.stored.items())
    firsts = [request for request in hub.requests if request.origin == "cdn" and request.range.startswith("bytes=0-")]
    assert len(firsts) == 42
    # commit, config, index; 42 addresses; 42 headers, of which all but two bring a norm along; the other norms
    assert found.requests <= 3 + 42 + 42 + (97 - 40)


def test_after_a_reading_that_failed_a_later_one_is_tried_as_often_as_any(hub: HubStandIn) -> None:
    tensors = llama_tensors(hidden_size=512)
    hub.add("a/b", checkpoint_files(tensors, LLAMA_CONFIG, 3))
    opened = open_checkpoint("a/b")
    name = "model.layers.1.input_layernorm.weight"
    hub.faults.append(Fault("X-Signature", "status", times=100, headers={"status": "503"}))
    with pytest.raises(NetworkError, match="status 503"):
        opened.read([name])
    hub.faults[:] = [Fault("X-Signature", "status", times=1, headers={"status": "503"})]
    assert opened.read([name]) == {name: tensors[name].tobytes()}


# Guesses at the size of headers


def headers(family: Family) -> list[Header]:
    """The header of each shard."""
    shards = [file for name, file in dispute_files(family).items() if name.endswith(".safetensors")]
    return [parse_header(file.read(0, 8 + int.from_bytes(file.read(0, 8), "little")), file.size) for file in shards]


@pytest.mark.parametrize("family", DISPUTE, ids=lambda family: family.repo_id)
def test_the_window_of_every_shard_holds_its_header_and_little_more(family: Family) -> None:
    shards = headers(family)
    guess, learnt = Window(), Window.learnt(shards[0])
    for number, header in enumerate(shards):
        size = (learnt if number else guess).size(list(header.tensors))
        assert size >= header.buffer_start
        assert size <= max(4096, header.buffer_start * 1.2 + 200 + 3 * (8192 + 2048))


def test_a_norm_that_opens_the_buffer_is_taken_along_and_one_hostile_name_cannot_make_it_huge() -> None:
    assert Window().size(["a.norm.weight"]) == 4096  # whose size is not known
    assert Window().size(["x" * 10_000]) < FIRST_WINDOW
    learnt = Window(per_entry=80, norm_bytes=8192)
    experts = [f"model.layers.1.mlp.experts.{number}.up_proj.weight" for number in range(98)]
    without = learnt.size(experts)
    assert learnt.size([*experts, "model.layers.1.input_layernorm.weight"]) >= without + 8192
    assert learnt.size([*experts, "model.layers.1.post_attention_layernorm.weight"]) < without + 200


def test_a_first_shard_without_a_norm_still_tells_how_large_one_is() -> None:
    first = headers(DISPUTE[0])[0]
    assert not [name for name in first.tensors if name.endswith("norm.weight")]
    assert Window.learnt(first).norm_bytes == 8192
