"""The few matrix rows of the tests by signs: which they are in each layout, read by range, kept and read again."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hub_stand_in import HubStandIn
from made_tokenizers import byte_level
from safetensors_bytes import LLAMA_CONFIG, checkpoint_files, llama_tensors, write_files
from virtual_dispute import DISPUTE, dispute_files

import lnsim
from lnsim.checkpoint.extract import extract, extract_and_keep
from lnsim.checkpoint.format.header import parse_header
from lnsim.checkpoint.token_texts import NO_TEXTS, Tokens
from lnsim.checkpoint.weight_rows import RowPiece, choose_rows
from lnsim.errors import RoleError, StoreError
from studies.zoo.keep import keep_norms, keep_rows

H = 16
CONFIG = LLAMA_CONFIG | {"num_hidden_layers": 3, "hidden_size": H, "num_attention_heads": 4, "num_key_value_heads": 2}


Shapes = dict[str, tuple[int, ...]]


def choose(shapes: Shapes, config: dict[str, Any], model_type: str = "llama", **more: Any) -> tuple[Any, str]:
    """The pieces of a checkpoint of these shapes, and what is missing, in one text."""
    tensors = {name: np.zeros(shape, ml_dtypes.bfloat16) for name, shape in shapes.items()}
    header = parse_header(checkpoint_files(tensors)["model.safetensors"], where="x")
    norms = [name for name in shapes if name.endswith("norm.weight")]
    pieces, missing = choose_rows(header.tensors, norms, config, model_type, "x", **more)
    return pieces, " ".join(missing)


def chosen(shapes: Shapes, config: dict[str, Any], model_type: str = "llama") -> list[tuple[str, int, int]]:
    pieces, missing = choose(shapes, config, model_type)
    assert "value rows" not in missing
    return [(piece.tensor.rpartition("layers.")[2], piece.start, piece.stop) for piece in pieces]


def blocks(kind: str, shape: tuple[int, ...], numbers: tuple[int, ...] = (0, 1, 2)) -> Shapes:
    found: Shapes = {}
    for number in numbers:
        found[f"layers.{number}.input_layernorm.weight"] = (shape[-1],)
        found[f"layers.{number}.{kind}.weight"] = shape
    return found


HEADS = {"num_attention_heads": 4}


@pytest.mark.parametrize(
    ("config", "model_type", "kind", "rows", "expected"),
    [
        (HEADS | {"num_key_value_heads": 2}, "llama", "self_attn.v_proj", 8, [(0, 8)]),
        (HEADS, "bert", "attention.self.value", 16, [(0, 16)]),
        (HEADS | {"num_key_value_heads": 2}, "phi3", "self_attn.qkv_proj", 32, [(24, 32)]),
        (HEADS | {"multi_query_group_num": 1}, "chatglm", "self_attention.query_key_value", 24, [(20, 24)]),
        (HEADS, "gpt_neox", "attention.query_key_value", 48, [(8, 12), (20, 24), (32, 36), (44, 48)]),
        (HEADS | {"qk_nope_head_dim": 3, "v_head_dim": 5}, "deepseek_v3", "self_attn.kv_b_proj", 32,
         [(3, 8), (11, 16), (19, 24), (27, 32)]),
        (HEADS | {"num_key_value_heads": 2}, "internlm2", "attention.wqkv", 32, [(12, 16), (28, 32)]),
        (HEADS | {"multi_query": True}, "falcon", "self_attention.query_key_value", 24, [(20, 24)]),
        ({"n_head": 4}, "gpt2", "attn.c_proj", 16, [(0, 16)]),
    ],
    ids=["apart", "bert", "in one", "one group", "head by head", "latent", "groups", "falcon", "in, out"],
)  # fmt: skip
def test_the_values_of_each_layout_are_those_of_the_first_and_the_last_block(
    config: dict[str, Any], model_type: str, kind: str, rows: int, expected: list[tuple[int, int]]
) -> None:
    found = chosen(blocks(kind, (rows, H)), config, model_type)
    assert found == [(f"{layer}.{kind}.weight", *span) for layer in (0, 2) for span in expected]


def test_of_many_heads_whole_ones_are_read_up_to_1024_rows() -> None:
    found = chosen(blocks("self_attn.v_proj", (32 * 96, 8), (0, 7)), {"num_attention_heads": 32})
    assert [(start, stop) for _, start, stop in found] == [(0, 960), (0, 960)]


def test_other_towers_and_cross_attention_are_left_alone() -> None:
    shapes = blocks("self_attn.v_proj", (8, H)) | {"vision.layers.9.self_attn.v_proj.weight": (8, H)}
    shapes |= {"layers.5.cross_attn.v_proj.weight": (8, H)}
    assert [name[0] for name, _, _ in chosen(shapes, HEADS | {"num_key_value_heads": 2})] == ["0", "2"]


@pytest.mark.parametrize(
    ("config", "shapes", "message"),
    [
        (HEADS, {}, "has the name of a value projection"),
        ({}, blocks("self_attn.v_proj", (8, H)), "its config has no 'num_attention_heads'"),
        ({"num_attention_heads": 3}, blocks("self_attn.v_proj", (8, H)), "has 8 rows, which are not whole heads"),
        (HEADS, blocks("self_attn.v_proj", (8,)), r"is BF16 of shape \[8\], expected a matrix of"),
    ],
)
def test_what_cannot_be_told_by_heads_is_named_with_the_reason(
    config: dict[str, Any], shapes: Shapes, message: str
) -> None:
    pieces, missing = choose({"layers.0.input_layernorm.weight": (H,)} | shapes, config)
    assert pieces == ()
    assert re.search(message, missing)


TOLD = (3, tuple(f"t{n}" for n in range(3, 963)))


@pytest.mark.parametrize(
    ("tokens", "n_rows", "start", "stop", "texts"),
    [
        (NO_TEXTS, 8, 0, 8, ()),
        (NO_TEXTS, 1000, 40, 1000, ()),
        (NO_TEXTS, 9000, 256, 1216, ()),
        (TOLD, 8, 0, 8, ("",) * 3 + ("t3", "t4", "t5", "t6", "t7")),
        (TOLD, 961, 1, 961, ("", "", *TOLD[1][:958])),
        (TOLD, 9000, 3, 963, TOLD[1]),
    ],
)
def test_token_rows_are_one_run_behind_the_rare_ids_or_from_where_the_tokenizer_lists_words(
    tokens: Tokens, n_rows: int, start: int, stop: int, texts: tuple[str, ...]
) -> None:
    name = "model.embed_tokens.weight"
    found, _ = choose({name: (n_rows, 2)}, {}, tokens=tokens)
    assert found == (RowPiece(name, start, stop, "token", n_rows=n_rows, texts=texts),)


def made(n_values: int = 8, n_tokens: int = 8) -> dict[str, np.ndarray]:
    """A Llama of three blocks with values and tokens."""
    rng = np.random.default_rng(3)
    shapes = {f"model.layers.{n}.self_attn.v_proj.weight": (n_values, H) for n in range(3)}
    shapes |= {"model.embed_tokens.weight": (n_tokens, H)}
    drawn = {name: rng.normal(size=shape).astype(ml_dtypes.bfloat16) for name, shape in shapes.items()}
    return llama_tensors(3, H) | drawn


@pytest.fixture
def tensors() -> dict[str, np.ndarray]:
    return made()


def test_rows_are_kept_with_ranges_and_hashes_and_read_again_bit_for_bit(
    tmp_path: Path, tensors: dict[str, np.ndarray]
) -> None:
    source = write_files(tmp_path / "m", checkpoint_files(tensors, CONFIG))
    kept = extract_and_keep(source, evidence=True, out=tmp_path / "out")
    again = extract(str(kept.path), evidence=True)
    for one in (kept, again):
        assert one.rows is not None
        assert one.rows.missing == ()
        assert list(one.rows.values()) == [0, 2]
        for layer, (use, size, rows) in one.rows.values().items():
            assert (use, size) == ("value", 4)
            assert rows.tobytes() == tensors[f"model.layers.{layer}.self_attn.v_proj.weight"].tobytes()
        ids, rows = one.rows.tokens or ((), np.zeros(0))
        assert ids == tuple(range(8))
        assert rows.tobytes() == tensors["model.embed_tokens.weight"].tobytes()
    origin = kept.tensors["model.layers.2.self_attn.v_proj.weight[0:8]"]
    content = (source / origin.shard).read_bytes()[origin.start : origin.stop]
    assert content == tensors["model.layers.2.self_attn.v_proj.weight"].tobytes()
    assert origin.sha256 == hashlib.sha256(content).hexdigest()
    assert again.tensors == kept.tensors
    assert lnsim.load(kept.path).rows is None  # not asked for, not read
    assert list(lnsim.load(kept.path).roles) == list(kept.roles)
    norms = extract_and_keep(source, out=tmp_path / "out")  # the same file keeps its rows
    assert (norms.path, set(norms.tensors)) == (kept.path, set(kept.tensors))


def test_one_without_rows_says_how_to_have_them_and_a_damaged_record_is_told(
    tmp_path: Path, tensors: dict[str, np.ndarray]
) -> None:
    source = write_files(tmp_path / "m", checkpoint_files(tensors, CONFIG))
    kept = extract_and_keep(source, out=tmp_path / "out")
    assert (extract(str(kept.path), evidence=True).rows or kept.rows).missing == (
        f"No rows are kept of {kept.path}: read it from its source again, with --evidence.",
    )
    with pytest.raises(RoleError, match="all roles are read; leave --role out, or --evidence"):
        extract(source, "pre_mlp", evidence=True)
    whole = extract_and_keep(source, evidence=True, out=tmp_path / "rows")
    assert whole.path is not None
    content = whole.path.read_bytes()
    whole.path.write_bytes(content.replace(b'\\"use\\"', b'\\"ues\\"'))
    with pytest.raises(StoreError, match="its record 'weight_rows' is malformed"):
        extract(str(whole.path), evidence=True)


def test_a_model_of_a_hundred_billion_costs_less_than_25_megabytes_and_five_requests_more(hub: HubStandIn) -> None:
    family = DISPUTE[0]
    tokenizer = byte_level() + b" " * 9_000_000
    hub.add(family.repo_id, dispute_files(family) | {"tokenizer.json": tokenizer})
    without = extract(family.repo_id)
    found = extract(family.repo_id, evidence=True)
    assert found.requests - without.requests <= 5  # rows of two blocks, of tokens; the tokenizer's address and start
    rows, start, redirect = (2 * 1024 + 960) * 4096 * 2, 1 << 17, len(b"Found")
    assert found.bytes_received - without.bytes_received == rows + start + redirect < 25_000_000
    assert found.rows is not None
    assert " the" in found.rows.texts
    assert {layer: rows.shape for layer, (_, _, rows) in found.rows.values().items()} == {
        0: (1024, 4096), family.n_layers - 1: (1024, 4096)
    }  # fmt: skip


@pytest.mark.parametrize("size", [0, 6_000_000], ids=["in git, without ranges", "where the shards lie"])
def test_of_a_tokenizer_the_start_is_read_whoever_serves_it(
    hub: HubStandIn, tensors: dict[str, np.ndarray], size: int
) -> None:
    tokenizer = byte_level() + b" " * size
    hub.add("owner/model", checkpoint_files(tensors, CONFIG) | {"tokenizer.json": tokenizer})
    rows = extract("owner/model", evidence=True).rows
    assert rows is not None
    assert rows.missing == ()
    assert len(rows.texts) == 8  # as many as the model has tokens
    (asked,) = [one for one in hub.requests if one.path.partition("?")[0].endswith("tokenizer.json") and one.sent > 9]
    assert (asked.range, asked.status, asked.sent) == (
        "bytes=0-131071", 206 if size else 200, min(len(tokenizer), 1 << 17)
    )  # fmt: skip


def test_a_tokenizer_that_cannot_be_read_is_named_and_rows_are_read_all_the_same(
    tmp_path: Path, tensors: dict[str, np.ndarray]
) -> None:
    source = write_files(tmp_path / "m", checkpoint_files(tensors, CONFIG) | {"tokenizer.json": b"{}"})
    rows = extract(source, evidence=True).rows
    assert rows is not None
    (sentence,) = rows.missing
    assert sentence.startswith(
        f"No texts of tokens of {source}: {source}/tokenizer.json was expected to list its tokens"
    )
    assert rows.tokens is not None


def test_of_the_hub_nothing_is_read_a_second_time(hub: HubStandIn, tmp_path: Path) -> None:
    tensors = made(n_tokens=4000)
    hub.add("owner/model", checkpoint_files(tensors, CONFIG))
    kept = extract_and_keep("owner/model", evidence=True, out=tmp_path)
    assert kept.rows is not None
    ids, rows = kept.rows.tokens or ((), np.zeros(0))
    assert (ids[0], ids[-1]) == (256, 1215)
    assert rows.tobytes() == tensors["model.embed_tokens.weight"][256:1216].tobytes()
    again = extract_and_keep("owner/model", evidence=True, out=tmp_path)
    assert again.bytes_received < 5000  # what the repo is, and no range
    assert again.rows is not None
    assert json.loads(again.rows.record()) == json.loads(kept.rows.record())


def test_rows_kept_apart_from_the_norms_are_found_and_are_those_of_the_checkpoint(tmp_path: Path) -> None:
    tensors = made(n_values=H, n_tokens=128)
    wide = {name: one.astype(np.float32) for name, one in tensors.items()}
    source = write_files(tmp_path / "m", checkpoint_files(wide, CONFIG | {"num_key_value_heads": 4}))
    out = tmp_path / "data" / "vectors" / "zoo"
    kept, rows_at = keep_norms(source, "one", {"seed": "1"}, out), keep_rows(source, "one", out)
    assert rows_at == tmp_path / "data" / "rows" / "zoo" / "one.safetensors"
    found = extract(str(kept), evidence=True).rows
    assert found is not None
    ids, rows = found.tokens or ((), np.zeros(0))
    assert ids == tuple(range(59, 123))
    assert rows.tobytes() == tensors["model.embed_tokens.weight"][59:123].tobytes()
    assert {layer: len(rows) for layer, (_, _, rows) in found.values().items()} == {0: 12, 2: 8}  # whole heads of four
    assert found.vocabulary == 128
    assert extract(str(kept)).rows is None
