"""Byte ranges: planned, merged, and cut again without losing or adding a byte."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors_bytes import file_bytes

from lnsim import parse_header
from lnsim.checkpoint.format.ranges import ByteRange, plan_reads, slice_reads, tensor_range
from lnsim.errors import RangeError, TensorNotFoundError

SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=12)


def a_file(sizes: list[int]) -> bytes:
    values = np.arange(sum(sizes), dtype=np.uint8)
    starts = np.cumsum([0, *sizes])
    return file_bytes({f"t{i}": values[starts[i] : starts[i + 1]] for i in range(len(sizes))})


@settings(max_examples=100, derandomize=True, deadline=None)
@given(SIZES, st.integers(0, 60), st.randoms(use_true_random=False))
def test_merged_reads_lie_further_apart_than_the_gap_and_give_back_exactly_each_tensors_bytes(
    sizes: list[int], max_gap: int, rng: random.Random
) -> None:
    data = a_file(sizes)
    header = parse_header(data)
    names = rng.sample(list(header.tensors), k=rng.randint(0, len(sizes)))
    reads = plan_reads(header, names, max_gap=max_gap)
    for left, right in itertools.pairwise(reads):
        assert right.span.start - left.span.stop > max_gap
    found = slice_reads((read, data[read.span.start : read.span.stop]) for read in reads)
    expected = {name: tensor_range(header, name) for name in names}
    assert found == {name: data[span.start : span.stop] for name, span in expected.items() if span}


@pytest.mark.parametrize(("max_gap", "n_reads"), [(9, 2), (10, 1)])
def test_a_gap_is_bridged_up_to_its_limit_and_not_one_byte_further(max_gap: int, n_reads: int) -> None:
    header = parse_header(a_file([4, 10, 4]))
    assert len(plan_reads(header, ["t0", "t2"], max_gap=max_gap)) == n_reads


def test_a_missing_tensor_is_named() -> None:
    with pytest.raises(TensorNotFoundError, match="Looking up tensor 'nope': the header lists 1 others"):
        tensor_range(parse_header(a_file([1])), "nope")


@pytest.mark.parametrize(("start", "stop"), [(-1, 4), (4, 4), (5, 4)])
def test_an_impossible_range_cannot_be_built(start: int, stop: int) -> None:
    with pytest.raises(RangeError, match=rf"needs 0 <= start < stop; found \[{start}, {stop}\)"):
        ByteRange(start, stop)


@pytest.mark.parametrize("length", [7, 9])
def test_a_read_that_brings_too_few_or_too_many_bytes_is_refused(length: int) -> None:
    header = parse_header(a_file([8]))
    reads = plan_reads(header, ["t0"])
    with pytest.raises(RangeError, match=f"8 bytes were expected, {length} came"):
        slice_reads([(reads[0], b"\0" * length)])
