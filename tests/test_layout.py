"""Which files hold the weights, from their names alone."""

from __future__ import annotations

import json

import pytest

from lnsim.checkpoint.format.layout import find_layout, named_file, parse_index
from lnsim.errors import FormatError

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


@pytest.mark.parametrize(("names", "message"), [
    (["pytorch_model.bin"], r"PyTorch pickles \(pytorch_model.bin\).*never unpickles"),
    (["a.Q4_0.gguf", "a.Q8_0.gguf"], r"GGUF \(a.Q4_0.gguf, a.Q8_0.gguf\)"),
    (["tf_model.h5"], "TensorFlow"),
    (["unet/model.safetensors"], "in sub-folders only"),
    (["README.md"], r"no weights at all \(README.md\)"),
    ([], r"no weights at all \(an empty listing\)"),
])  # fmt: skip
def test_a_repo_without_safetensors_is_an_error_that_says_what_it_has(names: list[str], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        find_layout(names, where="a/b@main")


def test_an_index_gives_the_shard_of_each_tensor() -> None:
    text = json.dumps({"metadata": {}, "weight_map": {"w": TWO[0], "v": TWO[1]}}).encode()
    assert parse_index(text, where="a/b") == {"w": TWO[0], "v": TWO[1]}


@pytest.mark.parametrize("text", [b"[]", b'{"weight_map": {}}'])
def test_an_index_without_a_tensor_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError, match="an object 'weight_map' with tensors was expected"):
        parse_index(text, where="a/b")


# Names in common use


def numbered(form: str, count: int, start: int = 1) -> list[str]:
    return [form.format(number) for number in range(start, start + count)]


@pytest.mark.parametrize("names", [
    numbered("model-{:05d}-of-000012.safetensors", 12),
    numbered("model-{}-of-11.safetensors", 11),
    numbered("model_{:05d}-of-00003.safetensors", 3),
    numbered("model-{:05d}-of-00004.safetensors", 4, start=0),
    numbered("model--{:05d}-of-00002.safetensors", 2),
    numbered("consolidated-{:05d}-of-00002.safetensors", 2),
    numbered("diffusion_pytorch_model.fp16-{:05d}-of-00002.safetensors", 2),
    numbered("model-{:05d}-of-00002.fp16.safetensors", 2),
], ids=lambda names: names[0])  # fmt: skip
def test_shards_of_any_width_are_a_set_in_the_order_of_their_numbers(names: list[str]) -> None:
    layout = find_layout(sorted(names), where="a/b")
    assert (layout.shards, layout.index, layout.notes) == (tuple(names), None, ())
    with pytest.raises(FormatError, match=rf"{len(names)} shards .* were expected, found {len(names) - 1}"):
        find_layout(names[:-1], where="a/b")


def test_a_file_of_each_rank_is_a_set_of_copies() -> None:
    names = numbered("model{}-mp8.safetensors", 8, start=0)
    layout = find_layout(names, where="a/b")
    assert (layout.shards, layout.replicated) == (tuple(names), True)
    assert not find_layout([*names, *TWO], where="a/b").replicated  # the converted one beside it counts
    assert find_layout([*names, *TWO], where="a/b").shards == tuple(TWO)


@pytest.mark.parametrize("index", [
    "consolidated.safetensors.index.json", "diffusion_pytorch_model.safetensors.index.json",
    "model.safetensors.index.fp16.json", "model.fp16.safetensors.index.json",
])  # fmt: skip
def test_an_index_of_any_name_is_taken_where_it_is_the_only_one(index: str) -> None:
    assert find_layout([index, "consolidated-a.safetensors", "config.json"], where="a/b").index == index


def test_of_several_indexes_the_plain_one_counts_or_they_are_named() -> None:
    plain, half = "unet.safetensors.index.json", "unet.fp16.safetensors.index.json"
    assert find_layout([plain, half, "consolidated.safetensors.index.json"], where="a/b").index == plain
    with pytest.raises(FormatError, match=r"one index was expected, found a\.safetensors\.index\.json, b\."):
        find_layout(["a.safetensors.index.json", "b.safetensors.index.json"], where="a/b")


def test_mistrals_own_layout_is_passed_over_beside_the_converted_one_and_read_where_it_is_alone() -> None:
    own = [*numbered("consolidated-{:05d}-of-00002.safetensors", 2), "consolidated.safetensors.index.json"]
    assert find_layout([*own, *TWO], where="a/b").shards == tuple(TWO)
    assert find_layout(own, where="a/b").index == "consolidated.safetensors.index.json"
    assert find_layout(["consolidated.safetensors", "params.json"], where="a/b").shards == ("consolidated.safetensors",)


def test_once_the_index_is_read_what_it_does_not_list_is_passed_over() -> None:
    layout = find_layout([INDEX, *TWO, "overlay.safetensors", "original/model.safetensors"], where="a/b")
    listed = layout.listed([TWO[0], "overlay.safetensors", TWO[0]])
    assert listed.shards == (TWO[0], "overlay.safetensors")
    assert listed.notes == (f"Passed over beside the weights: {TWO[1]}, original/model.safetensors.",)


def test_one_file_beside_an_index_counts_as_it_does_for_transformers() -> None:
    layout = find_layout([INDEX, *TWO, "model.safetensors"], where="a/b")
    assert (layout.shards, layout.index) == (("model.safetensors",), None)
    assert INDEX in layout.notes[0]


@pytest.mark.parametrize(("names", "taken"), [
    (["model.fp16.safetensors", "adapter_model.safetensors"], "model.fp16.safetensors"),
    (["unet.safetensors", "unet.fp16.safetensors", "unet.non_ema.safetensors"], "unet.safetensors"),
    (["weights.safetensors", "consolidated.safetensors"], "weights.safetensors"),
])  # fmt: skip
def test_variants_and_adapters_are_passed_over_beside_the_plain_file(names: list[str], taken: str) -> None:
    layout = find_layout(names, where="a/b")
    assert layout.shards == (taken,)
    assert all(name in layout.notes[0] for name in names if name != taken)


def test_a_whole_set_counts_beside_what_is_left_of_another_and_two_whole_ones_are_named() -> None:
    left = "model-00003-of-00005.safetensors"
    layout = find_layout([*TWO, left], where="a/b")
    assert (layout.shards, layout.notes) == (tuple(TWO), (f"Passed over beside the weights: {left}.",))
    other = numbered("vae-{:05d}-of-00003.safetensors", 3)
    with pytest.raises(FormatError, match=rf"found 2, which begin with {TWO[0]}, {other[0]}\. Put the one"):
        find_layout([*TWO, *other], where="a/b")


def test_the_pickles_of_an_adapter_are_told_as_such() -> None:
    with pytest.raises(FormatError, match=r"of an adapter.*name the model that it was made for"):
        find_layout(["adapter_config.json", "adapter_model.bin"], where="a/b")


def test_a_file_named_by_itself_is_told_to_be_one_of_many() -> None:
    assert named_file("weights.safetensors").notes == ()
    assert named_file(TWO[1]).notes == (f"{TWO[1]} is one of 2 files; the others were not read.",)
    assert named_file("model3-mp8.safetensors").notes[0].startswith("model3-mp8.safetensors is one of 8 files")
    assert named_file(INDEX).index == INDEX
