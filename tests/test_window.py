"""Guesses at the size of headers: never much too long, and right once one header is known."""

from __future__ import annotations

import pytest
from virtual_dispute import DISPUTE, Family, dispute_files

from lnsim.checkpoint.format.header import Header, parse_header
from lnsim.checkpoint.hub.checkpoint import FIRST_WINDOW, Window


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
