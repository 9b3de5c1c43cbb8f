"""Which files hold the weights, from their names alone."""

from __future__ import annotations

import json

import pytest

from lnsim.checkpoint.layout import check_index, find_layout, parse_index
from lnsim.errors import FormatError, HeaderError

INDEX = "model.safetensors.index.json"
TWO = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]


def test_a_single_file_is_taken() -> None:
    layout = find_layout(["README.md", "model.safetensors", "pytorch_model.bin"], where="a/b")
    assert (layout.shards, layout.index, layout.notes) == (("model.safetensors",), None, ())


def test_an_index_is_taken_with_its_shards() -> None:
    layout = find_layout([INDEX, *TWO], where="a/b")
    assert (layout.shards, layout.index) == (tuple(TWO), INDEX)


def test_consolidated_files_beside_the_weights_are_passed_over_with_a_note() -> None:
    layout = find_layout(["model.safetensors", "consolidated.safetensors"], where="a/b")
    assert layout.shards == ("model.safetensors",)
    assert layout.notes == ("Passed over beside the weights: consolidated.safetensors.",)


def test_consolidated_files_beside_an_index_are_passed_over() -> None:
    layout = find_layout([INDEX, *TWO, "consolidated.00.safetensors"], where="a/b")
    assert layout.shards == tuple(TWO)


def test_shards_without_an_index_are_taken_when_they_are_complete() -> None:
    assert find_layout(TWO, where="a/b").shards == tuple(TWO)
    with pytest.raises(FormatError, match=r"2 shards 'model-\*-of-00002' were expected, found 1, and no model"):
        find_layout(TWO[:1], where="a/b")


def test_one_file_of_another_name_is_taken() -> None:
    assert find_layout(["adapter.safetensors"], where="a/b").shards == ("adapter.safetensors",)


def test_several_files_of_other_names_are_an_error_that_lists_them() -> None:
    with pytest.raises(FormatError, match=r"found x\.safetensors, y\.safetensors\. Name one of these files instead"):
        find_layout(["x.safetensors", "y.safetensors"], where="a/b")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["pytorch_model.bin"], r"PyTorch pickles \(pytorch_model.bin\).*never unpickles"),
        (["a.Q4_0.gguf", "a.Q8_0.gguf"], r"GGUF \(a.Q4_0.gguf, a.Q8_0.gguf\)"),
        (["tf_model.h5"], "TensorFlow"),
        (["unet/model.safetensors"], "in sub-folders only"),
        (["README.md"], r"no weights at all \(README.md\)"),
        ([], r"no weights at all \(an empty listing\)"),
    ],
)
def test_a_repo_without_safetensors_is_an_error_that_says_what_it_has(names: list[str], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        find_layout(names, where="a/b@main")


def test_an_index_gives_the_shard_of_each_tensor() -> None:
    text = json.dumps({"metadata": {}, "weight_map": {"w": TWO[0], "v": TWO[1]}}).encode()
    assert parse_index(text, where="a/b") == {"w": TWO[0], "v": TWO[1]}


@pytest.mark.parametrize(
    "shard",
    ["../x.safetensors", "/x.safetensors", "http://h/x.safetensors", "x\n.safetensors", "x.bin", "", 3, None],
)
def test_an_index_that_points_outside_the_checkpoint_is_refused(shard: object) -> None:
    with pytest.raises(FormatError, match="tensor 'w' should lie in a safetensors file of the same checkpoint"):
        parse_index(json.dumps({"weight_map": {"w": shard}}).encode(), where="a/b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "JSON was expected"),
        (b"[" * 100_000, "JSON was expected"),
        (b"[]", "an object 'weight_map' with tensors was expected"),
        (b'{"weight_map": {}}', "an object 'weight_map' with tensors was expected"),
    ],
)
def test_a_malformed_index_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        parse_index(text, where="a/b")


def test_an_index_that_names_a_tensor_which_its_shard_lacks_is_refused() -> None:
    check_index({"w": TWO[0]}, {"w": TWO[0], "extra": TWO[0]}, where="a/b")
    with pytest.raises(HeaderError, match=r"'v' should lie in model-00002.*, but no shard holds it; 1 such in all"):
        check_index({"w": TWO[0], "v": TWO[1]}, {"w": TWO[0]}, where="a/b")
    with pytest.raises(HeaderError, match=r"'w' should lie in model-00002.*, but lies in model-00001"):
        check_index({"w": TWO[1]}, {"w": TWO[0]}, where="a/b")
