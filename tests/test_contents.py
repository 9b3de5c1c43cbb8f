"""What counts among the shards: the index decides, and what is not asked for does not stop the reading."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hub_stand_in import HubStandIn
from safetensors_bytes import (
    LLAMA_CONFIG,
    checkpoint_files,
    file_bytes,
    header_bytes,
    llama_tensors,
    norm_bits,
    write_files,
)

import lnsim
from lnsim.checkpoint.format.header import parse_header
from lnsim.checkpoint.inspection import inspect
from lnsim.checkpoint.opening import open_checkpoint
from lnsim.errors import FormatError, HeaderError, LnsimError
from studies.projections.matrices import find_weights

TENSORS = llama_tensors(hidden_size=64)
NORMS = norm_bits(TENSORS)
MATRIX = "model.layers.0.self_attn.q_proj.weight"
NORM = "model.layers.1.input_layernorm.weight"
INDEX = "model.safetensors.index.json"
ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
PARTS = {ONE: dict(list(TENSORS.items())[:8]), TWO: dict(list(TENSORS.items())[8:])}
WHERE = {name: shard for shard, part in PARTS.items() for name in part}
Files = dict[str, bytes]


def files_of(parts: Mapping[str, Mapping[str, Any]], weight_map: Mapping[str, str] | None) -> Files:
    files = {"config.json": json.dumps(LLAMA_CONFIG).encode()}
    files |= {shard: file_bytes(part) for shard, part in parts.items()}
    return files if weight_map is None else files | {INDEX: json.dumps({"weight_map": weight_map}).encode()}


@pytest.fixture(params=["folder", "hub"])
def put(request: pytest.FixtureRequest, make_hub: Callable[..., HubStandIn], tmp_path: Path) -> Callable[[Files], str]:
    """Puts files into a folder or behind the stand-in."""

    def into(files: Files) -> str:
        if request.param == "folder":
            return str(write_files(tmp_path / "model", files))
        make_hub().add("a/b", files)
        return "a/b"

    return into


def read(source: str, note: str = "") -> lnsim.NormVectors:
    found = lnsim.extract(source)
    assert norm_bits(found.stored) == NORMS
    assert not note or any(note in one for one in found.notes), found.notes
    return found


def edited(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """The same byte buffer behind a changed header."""
    stop = 8 + int.from_bytes(content[:8], "little")
    entries = json.loads(content[8:stop])
    change(entries)
    return header_bytes(json.dumps(entries)) + content[stop:]


# The index decides


def test_of_a_tensor_in_two_shards_the_one_counts_that_the_index_names(put: Callable[[Files], str]) -> None:
    stale = {MATRIX: TENSORS[MATRIX] * 0, NORM: TENSORS[NORM] * 0}
    parts = {ONE: PARTS[ONE] | stale, TWO: PARTS[TWO] | stale, "model-overlay.safetensors": {NORM: TENSORS[NORM]}}
    source = put(files_of(parts, WHERE | {NORM: "model-overlay.safetensors", MATRIX: TWO}))
    found = read(source, "In more than one file: 2 tensors; the index decides")
    assert found.tensors[NORM].shard == "model-overlay.safetensors"


def test_a_norm_that_the_index_does_not_list_is_left_out_with_a_note(put: Callable[[Files], str]) -> None:
    more = {"model.layers.9.mlp.up_proj.weight": np.zeros((2, 2), np.float32)}
    more["model.layers.7.input_layernorm.weight"] = np.ones(64, np.float32)
    source = put(files_of({ONE: PARTS[ONE] | more, TWO: PARTS[TWO]}, WHERE))
    note = (
        f"Left out, since the index does not list them: 2 tensors, 1 by name of a norm; the first is "
        f"'model.layers.7.input_layernorm.weight' in {ONE}."
    )
    assert note in read(source).notes


# Headers that are wrong about what is not read


def moved(which: int, by: int) -> Callable[[dict[str, Any]], None]:
    def change(entry: dict[str, Any]) -> None:
        entry["data_offsets"][which] += by

    return change


WRONG: dict[str, Callable[[dict[str, Any]], None]] = {
    "of a wrong shape": lambda entry: entry.update(shape=[3, 5]),
    "that begins too early": moved(0, -2),
    "of a new dtype": lambda entry: entry.update(dtype="F2_E1M0"),
    "of a huge shape": lambda entry: entry.update(shape=[2**62, 2**62]),
    "that ends beyond the file": moved(1, 2**40),
}


def with_wrong(name: str, wrong: Callable[[dict[str, Any]], None], more: Mapping[str, Any]) -> Files:
    """A file with a wrong entry; with ``more`` in it, it is read by the careful way, as no writer's is."""

    def change(entries: dict[str, Any]) -> None:
        wrong(entries[name])
        entries[name] |= more

    content = edited(file_bytes(TENSORS), change)
    with pytest.raises(HeaderError):
        parse_header(content, len(content))
    return {"config.json": json.dumps(LLAMA_CONFIG).encode(), "model.safetensors": content}


def pointer(name: str) -> Files:
    """A file of its own for the tensor, which is a pointer of git-lfs."""
    parts = {ONE: {n: a for n, a in TENSORS.items() if n != name}}
    return files_of(parts, dict.fromkeys(TENSORS, ONE) | {name: TWO}) | {
        TWO: b"version https://git-lfs.github.com/spec"
    }


def lost(name: str) -> Files:
    return files_of({shard: {n: a for n, a in part.items() if n != name} for shard, part in PARTS.items()}, WHERE)


ELSEWHERE = "1 tensor not where the index says"
TROUBLE: dict[str, tuple[Callable[[str], Files], str, type[LnsimError], str]] = {
    "that no shard holds": (
        lost, ELSEWHERE, HeaderError, rf"tensor '{NORM}' should lie in {ONE}, but no shard holds it; 1 such in"),
    "in another shard than the index says": (lambda name: files_of(PARTS, WHERE | {name: TWO}), ELSEWHERE,
        HeaderError, rf"'{NORM}' should lie in {TWO}, but lies in {ONE}; 1 such in all"),
    "in a shard without a header": (pointer, "1 tensor in 1 of the index's files, which cannot be read", HeaderError,
        rf"Reading the header of .*{TWO}: it is a git-lfs pointer"),
    "in two shards without an index": (
        lambda name: files_of({ONE: PARTS[ONE], TWO: PARTS[TWO] | {name: TENSORS[name]}}, None),
        "1 tensor in more than one file, and no index says which counts", FormatError,
        f"tensor '{NORM}' lies in both {ONE} and {TWO}"),
    "in a shard that is missing": (lambda name: files_of(PARTS, WHERE | {name: "model-00003-of-00003.safetensors"}),
        "1 tensor in 1 of the index's files, which cannot be read", LnsimError,
        r"its index names .*model-00003-of-00003\.safetensors.*\(1 (missing|such) in all\)"),
    **{f"{what}, {'oddly' if more else 'usually'} spelt": (
        partial(with_wrong, wrong=wrong, more=more),
        "1 tensor with a wrong entry in the header, or beyond the end of the file", HeaderError,
        rf"Reading the header of .*model\.safetensors: [Tt]ensor '{NORM}'")
       for what, wrong in WRONG.items() for more in ({}, {"more": 1})},
}  # fmt: skip


@pytest.mark.parametrize("name", [MATRIX, NORM])
@pytest.mark.parametrize(("make", "note", "kind", "says"), TROUBLE.values(), ids=TROUBLE)
def test_a_tensor_in_trouble_is_an_error_only_if_it_is_a_norm_asked_for(
    put: Callable[[Files], str], name: str, make: Callable[[str], Files], note: str, kind: type[LnsimError], says: str
) -> None:
    source = put(make(name))
    if name == MATRIX:
        read(source, f"{note}; the first is '{name}'")
        return
    with pytest.raises(kind, match=says):
        lnsim.extract(source)
    assert lnsim.extract(source, roles="pre_mlp").n_vectors == 3  # nobody asked for it


def test_norms_that_overlap_are_an_error_whatever_else_is_wrong(tmp_path: Path) -> None:
    def change(entries: dict[str, Any]) -> None:
        entries[MATRIX]["dtype"] = "NEW"
        entries[NORM]["data_offsets"] = entries["model.norm.weight"]["data_offsets"]

    write_files(tmp_path, {"model.safetensors": edited(file_bytes(TENSORS), change)})
    with pytest.raises(HeaderError, match="an overlap"):
        lnsim.load(tmp_path)


def test_a_file_that_was_cut_off_is_read_as_far_as_the_norms_asked_for_lie_in_it(put: Callable[[Files], str]) -> None:
    content = file_bytes(TENSORS)  # whose last tensor is the final norm
    source = put({"config.json": json.dumps(LLAMA_CONFIG).encode(), "model.safetensors": content[:-100]})
    with pytest.raises(HeaderError, match=rf"its tensors end at byte {len(content)}, the file at byte"):
        lnsim.extract(source)
    assert lnsim.extract(source, roles=["pre_mlp", "pre_attention"]).n_vectors == 6


def test_inspecting_shows_what_can_be_read_and_notes_the_rest(put: Callable[[Files], str]) -> None:
    found = inspect(put(files_of(PARTS, WHERE | {NORM: TWO, MATRIX: TWO})))
    assert {role: one.n_layers for role, one in found.roles.items()} == {"pre_attention": 2, "pre_mlp": 3, "final": 1}
    assert any("2 tensors not where the index says" in note for note in found.notes)


def test_a_sound_header_is_read_the_same_by_both_readers_and_no_other_is_read_by_the_strict_one() -> None:
    rng = random.Random(0)
    plain = file_bytes({name: TENSORS[name] for name in list(TENSORS)[:6]})
    stop = 8 + int.from_bytes(plain[:8], "little")
    kinds = {"both": 0, "careful": 0, "none": 0}
    for _ in range(3_000):
        data = bytearray(plain)
        for _ in range(rng.randrange(3)):
            data[rng.randrange(8, stop)] = rng.choice(b'0123456789,:"[]{}aF')
        try:
            sound = parse_header(bytes(data), len(data))
        except HeaderError:
            sound = None
        try:
            found = parse_header(bytes(data), len(data), where="x", lenient=True)
        except LnsimError:
            assert sound is None
            kinds["none"] += 1
            continue
        assert sound is None or found == sound
        assert (sound is None) == bool(found.refused)
        assert all(info.stop <= len(data) - found.buffer_start for info in found.tensors.values())
        kinds["careful" if sound is None else "both"] += 1
    assert min(kinds.values()) > 100


# Copies of ranks


def ranks(**changed: Any) -> Files:
    """Three files of ranks: each has its own copy of a norm, and its own rows of a matrix."""
    rng = np.random.default_rng(0)
    files = {"config.json": json.dumps(LLAMA_CONFIG).encode()}
    for rank in range(3):
        own = {name: a if name in NORMS else rng.normal(size=(4, 4)).astype(a.dtype) for name, a in TENSORS.items()}
        if rank == 2:
            own |= changed
        files[f"model{rank}-mp3.safetensors"] = file_bytes(own)
    return files


def test_copies_that_agree_are_read_once_and_a_part_is_not_the_whole(put: Callable[[Files], str]) -> None:
    source = put(ranks())
    found = read(source, "Split over 3 ranks")
    assert {origin.shard for origin in found.tensors.values()} == {"model0-mp3.safetensors"}
    matrix = find_weights(open_checkpoint(source), ["q_proj"], [0])["q_proj", 0]
    with pytest.raises(FormatError, match=f"tensor '{MATRIX}' is split over ranks"):
        matrix.read_rows(0, 1)


@pytest.mark.parametrize(("copy", "says"), [
    (TENSORS[NORM] * 2, r"other bytes in model2-mp3\.safetensors"),
    (TENSORS[NORM][:8], r"lies in both model0-mp3\.safetensors and model2-mp3\.safetensors"),
], ids=["bytes", "shape"])  # fmt: skip
def test_copies_that_differ_are_an_error(put: Callable[[Files], str], copy: Any, says: str) -> None:
    source = put(ranks(**{NORM: copy}))
    with pytest.raises(FormatError, match=f"tensor '{NORM}' (has )?{says}"):
        lnsim.extract(source)
    assert lnsim.extract(source, roles="pre_mlp").n_vectors == 3


def test_a_projection_matrix_that_cannot_be_read_is_an_error_that_says_why(put: Callable[[Files], str]) -> None:
    opened = open_checkpoint(put(files_of(PARTS, WHERE | {MATRIX: TWO})))
    with pytest.raises(HeaderError, match=f"'{MATRIX}' should lie in {TWO}, but lies in {ONE}"):
        find_weights(opened, ["q_proj"], [0])
    assert find_weights(opened, ["q_proj"], [1])["q_proj", 1].shape == (64, 64)


# Adapters


LORA = {f"base_model.model.model.layers.0.q_proj.lora_{x}.weight": np.zeros((4, 64), np.float32) for x in "AB"}
ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "org/base"}


@pytest.mark.parametrize(("name", "config", "says"), [
    ("adapter_model", json.dumps(ADAPTER).encode(), r"\(LoRA\) of org/base, without norms of its own: name its base"),
    ("adapter_model", b'{"peft_type": "IA3"}', r"\(IA3\), without norms of its own: name its base model\."),
    ("pytorch_lora_weights", b"{", r"\(LoRA or one of its kin\), without norms of its own"),
    ("pytorch_lora_weights", None, r"\(LoRA or one of its kin\), without norms of its own"),
])  # fmt: skip
def test_an_adapter_is_told_as_such_with_its_base_model_where_its_config_can_be_read(
    put: Callable[[Files], str], name: str, config: bytes | None, says: str
) -> None:
    more = {} if config is None else {"adapter_config.json": config}
    with pytest.raises(FormatError, match=f"it is an adapter {says}"):
        lnsim.extract(put({f"{name}.safetensors": file_bytes(LORA)} | more))


def test_an_adapter_that_holds_norms_is_read_and_one_beside_the_merged_model_passed_over(tmp_path: Path) -> None:
    adapter = {
        "config.json": json.dumps(LLAMA_CONFIG).encode(),
        "adapter_model.safetensors": file_bytes(TENSORS | LORA),
    }
    read(str(write_files(tmp_path, adapter)))
    write_files(tmp_path, checkpoint_files(TENSORS, LLAMA_CONFIG))
    read(str(tmp_path), "Passed over beside the weights: adapter_model.safetensors.")
