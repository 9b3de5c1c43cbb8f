"""Projection matrices: found by kind and layer, read in ranges from disk and from the Hub, never a byte outside."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors_bytes import checkpoint_files, file_bytes, write_files

from lnsim.checkpoint.local import open_local
from lnsim.errors import FormatError, RangeError, TensorNotFoundError, UnsupportedDtypeError
from studies.projections.matrices import find_weights

KINDS = ("k_proj", "v_proj")
RNG = np.random.default_rng(0)


def matrix(rows: int = 12, columns: int = 8) -> np.ndarray:
    return RNG.standard_normal((rows, columns)).astype(ml_dtypes.bfloat16)


TENSORS = {
    f"model.layers.{layer}.self_attn.{kind}.weight": matrix() for layer in (0, 1) for kind in ("q_proj", *KINDS)
} | {"model.layers.0.input_layernorm.weight": matrix(1)[0]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_files(tmp_path, checkpoint_files(TENSORS, {"model_type": "llama"}, 2))
    return tmp_path


def test_matrices_are_found_by_kind_and_layer_and_read_block_by_block_bit_for_bit(folder: Path) -> None:
    opened = open_local(folder)
    found = find_weights(opened, KINDS, [0, 1])
    assert list(found) == [("k_proj", 0), ("k_proj", 1), ("v_proj", 0), ("v_proj", 1)]
    for (kind, layer), one in found.items():
        blocks = list(one.blocks(5))
        assert [len(block) for block in blocks] == [5, 5, 2]
        assert one.shape == (12, 8)
        expected = TENSORS[f"model.layers.{layer}.self_attn.{kind}.weight"]
        assert np.concatenate(blocks).tobytes() == expected.tobytes()
    before = opened.traffic.bytes_received
    found["k_proj", 1].read_rows(3, 5)
    assert opened.traffic.bytes_received - before == 2 * 8 * 2  # only the rows asked for


@pytest.mark.parametrize(("start", "stop"), [(0, 13), (-1, 2), (4, 4), (12, 13)])
def test_rows_outside_the_matrix_are_an_error_and_not_a_neighbours_bytes(folder: Path, start: int, stop: int) -> None:
    one = find_weights(open_local(folder), ["k_proj"], [0])["k_proj", 0]
    with pytest.raises(RangeError, match=r"k_proj.weight': it has 192 bytes"):
        one.read_rows(start, stop)


def test_a_missing_matrix_is_named_with_what_is_there_and_a_packed_one_is_refused(folder: Path) -> None:
    with pytest.raises(TensorNotFoundError, match=r"k_proj of layer 7.*holds no such matrix of that layer"):
        find_weights(open_local(folder), ["k_proj"], [7])
    with pytest.raises(TensorNotFoundError, match="it has k_proj, q_proj, v_proj there"):
        find_weights(open_local(folder), ["o_proj"], [0])
    packed = file_bytes({"model.layers.0.self_attn.k_proj.weight": np.ones((4, 4), np.int8)})
    (folder / "packed").mkdir()
    (folder / "packed" / "a.safetensors").write_bytes(packed)
    with pytest.raises(UnsupportedDtypeError, match="found I8 of shape"):
        find_weights(open_local(folder / "packed"), ["k_proj"], [0])


def test_other_towers_are_left_out_and_two_main_ones_are_an_error(tmp_path: Path) -> None:
    name = "layers.0.self_attn.k_proj.weight"
    (tmp_path / "a.safetensors").write_bytes(file_bytes({f"vision_tower.{name}": matrix(), f"model.{name}": matrix()}))
    assert find_weights(open_local(tmp_path), ["k_proj"], [0])["k_proj", 0].info.name == f"model.{name}"
    (tmp_path / "a.safetensors").write_bytes(file_bytes({f"left.{name}": matrix(), f"right.{name}": matrix()}))
    with pytest.raises(FormatError, match=r"'left.*' and 'right.*' could both be it"):
        find_weights(open_local(tmp_path), ["k_proj"], [0])
