"""Which files hold the weights, from their names alone."""

from __future__ import annotations

import json

import pytest

from lnsim.checkpoint.format.layout import find_layout, named_file, parse_index
from lnsim.errors import FormatError

INDEX = "model.safetensors.index.json"
TWO = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
ONE, UNET, OWN = "model.safetensors", "unet.safetensors.index.json", "consolidated.safetensors.index.json"
OWN_SHARDS = ["consolidated-00001-of-00002.safetensors", "consolidated-00002-of-00002.safetensors"]
LEFT = "model-00003-of-00005.safetensors"
TORCH = [f"pytorch_model-0000{n}-of-00002.bin" for n in (1, 2)]
GGUF = [f"m-Q8_0-0000{n}-of-00003.gguf" for n in (1, 2, 3)]
TAKEN: dict[str, tuple[list[str], list[str], str | None, list[str]]] = {
    "a single file": (["README.md", ONE, "pytorch_model.bin"], [ONE], None, []),
    "an index with its shards": ([INDEX, *TWO], TWO, INDEX, []),
    "shards without an index": (TWO, TWO, None, []),
    "one file beside an index, as for transformers": ([INDEX, *TWO, ONE], [ONE], None, [*TWO, INDEX]),
    "consolidated files beside one": ([ONE, "consolidated.safetensors"], [ONE], None, ["consolidated.safetensors"]),
    "Mistral's own layout beside the converted one": ([*OWN_SHARDS, OWN, *TWO], TWO, None, [*OWN_SHARDS, OWN]),
    "Mistral's own layout alone": ([*OWN_SHARDS, OWN], OWN_SHARDS, OWN, []),
    "the plain one of several indexes": ([UNET, "unet.fp16.safetensors.index.json", OWN], [], UNET, []),
    "a whole set beside what is left of another": ([*TWO, LEFT], TWO, None, [LEFT]),
    "PyTorch's file": (["pytorch_model.bin", "training_args.bin", "a.gguf"], ["pytorch_model.bin"], None, []),
    "PyTorch's index": (["pytorch_model.bin.index.json", *TORCH, "a.gguf"], TORCH, "pytorch_model.bin.index.json", []),
    "the only GGUF model": (["config.json", "mmproj-F16.gguf", "m-Q4_K_M.gguf"], ["m-Q4_K_M.gguf"], None, []),
    "the parts of a GGUF model": (GGUF[::-1], GGUF, None, []),
    "no adapter": (["m.fp16.safetensors", "adapter_model.safetensors"], ["m.fp16.safetensors"], None,
                   ["adapter_model.safetensors"]),
    "no variant": (["u.safetensors", "u.fp16.safetensors", "u.non_ema.safetensors"], ["u.safetensors"], None,
                   ["u.fp16.safetensors", "u.non_ema.safetensors"]),
    "no consolidated file": (["w.safetensors", "consolidated.safetensors"], ["w.safetensors"], None,
                             ["consolidated.safetensors"]),
    **{f"the only index, {index}": ([index, "consolidated-a.safetensors", "config.json"], [], index, []) for index in (
        OWN, "model.safetensors.index.fp16.json", "model.fp16.safetensors.index.json")},
}  # fmt: skip


@pytest.mark.parametrize(("names", "shards", "index", "passed_over"), TAKEN.values(), ids=TAKEN)
def test_of_a_listing_these_files_are_taken_and_the_others_are_noted(
    names: list[str], shards: list[str], index: str | None, passed_over: list[str]
) -> None:
    layout = find_layout(names, where="a/b")
    assert (layout.shards, layout.index) == (tuple(shards), index)
    noted = (f"Passed over beside the weights: {', '.join(sorted(passed_over))}.",) if passed_over else ()
    assert layout.notes == noted


@pytest.mark.parametrize(("names", "message"), [
    (TWO[:1], r"2 shards 'model-\*-of-00002' were expected, found 1, and no model"),
    (["x.safetensors", "y.safetensors"], r"found x\.safetensors, y\.safetensors\. Name one of these files instead"),
    (["a.safetensors.index.json", "b.safetensors.index.json"],
     r"one index was expected, found a\.safetensors\.index\.json, b\."),
    ([*TWO, *(f"vae-0000{n}-of-00003.safetensors" for n in (1, 2, 3))],
     rf"found 2, which begin with {TWO[0]}, vae-00001-of-00003\.safetensors\. Put the one"),
    (["adapter_config.json", "adapter_model.bin"], "of an adapter.*name the model that it was made for"),
    (["model.pt"], r"PyTorch pickles \(model.pt\).*never unpickles"),
    (["a.Q4_0.gguf", "a.Q8_0.gguf"],
     r"one model was expected, found 2 in GGUF \(a.Q4_0.gguf, a.Q8_0.gguf\)\. Name the one .* example a/b@main/a.Q4"),
    (["tf_model.h5"], "TensorFlow"),
    (["unet/model.safetensors"], "in sub-folders only"),
    (["README.md"], r"no weights at all \(README.md\)"),
    ([], r"no weights at all \(an empty listing\)"),
])  # fmt: skip
def test_a_listing_of_which_nothing_can_be_taken_is_an_error_that_says_what_it_has(
    names: list[str], message: str
) -> None:
    with pytest.raises(FormatError, match=message):
        find_layout(names, where="a/b@main")


@pytest.mark.parametrize("text", [b"[]", b'{"weight_map": {}}'])
def test_an_index_without_a_tensor_is_refused(text: bytes) -> None:
    with pytest.raises(FormatError, match="an object 'weight_map' with tensors was expected"):
        parse_index(text, where="a/b")


# Names in common use


def numbered(form: str, count: int, start: int = 1) -> list[str]:
    return [form.format(number) for number in range(start, start + count)]


@pytest.mark.parametrize("names", [
    numbered("model-{:05d}-of-000012.safetensors", 12),
    numbered("model_{:05d}-of-00003.safetensors", 3),
    numbered("model-{:05d}-of-00004.safetensors", 4, start=0),
    numbered("model--{:05d}-of-00002.safetensors", 2),
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


def test_once_the_index_is_read_what_it_does_not_list_is_passed_over() -> None:
    layout = find_layout([INDEX, *TWO, "overlay.safetensors", "original/model.safetensors"], where="a/b")
    weight_map = {"a": TWO[0], "b": "overlay.safetensors", "c": TWO[0]}
    listed = layout.indexed(json.dumps({"weight_map": weight_map}).encode(), where="a/b")
    assert listed.weight_map == weight_map
    assert listed.shards == (TWO[0], "overlay.safetensors")
    assert listed.notes == (f"Passed over beside the weights: {TWO[1]}, original/model.safetensors.",)


def test_a_file_named_by_itself_is_told_to_be_one_of_many() -> None:
    assert named_file("weights.safetensors").notes == ()
    assert named_file(TWO[1]).notes == (f"{TWO[1]} is one of 2 files; the others were not read.",)
    assert named_file("model3-mp8.safetensors").notes[0].startswith("model3-mp8.safetensors is one of 8 files")
    assert named_file(INDEX).index == INDEX
