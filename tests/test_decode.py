"""Dtypes: known bit patterns, and nothing changed on the way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lnsim.checkpoint.format.decode import DTYPES, decode, dtype_name, to_float32
from lnsim.errors import DecodeError, UnsupportedDtypeError

INF, NAN = math.inf, math.nan
BITS = [
    ("BF16", 0x3F80, 1.0), ("BF16", 0xBF80, -1.0), ("BF16", 0x0000, 0.0), ("BF16", 0x8000, -0.0), ("BF16", 0x7F80, INF),
    ("BF16", 0xFF80, -INF), ("BF16", 0x7FC0, NAN), ("BF16", 0x0001, 2.0**-133), ("BF16", 0x007F, 127 * 2.0**-133),
    ("BF16", 0x0080, 2.0**-126), ("BF16", 0x7F7F, (2 - 2.0**-7) * 2.0**127), ("BF16", 0x3E71, 0.2353515625),
    ("F16", 0x3C00, 1.0), ("F16", 0x0001, 2.0**-24), ("F16", 0x03FF, 1023 * 2.0**-24), ("F16", 0x7BFF, 65504.0),
    ("F16", 0x7C00, INF), ("F16", 0xFE00, NAN), ("F16", 0x8000, -0.0), ("F8_E4M3", 0x38, 1.0),
    ("F8_E4M3", 0x01, 2.0**-9), ("F8_E4M3", 0x7E, 448.0), ("F8_E4M3", 0x7F, NAN), ("F8_E4M3", 0x80, -0.0),
    ("F8_E5M2", 0x3C, 1.0), ("F8_E5M2", 0x01, 2.0**-16), ("F8_E5M2", 0x7B, 57344.0), ("F8_E5M2", 0x7C, INF),
    ("F8_E5M2", 0xFC, -INF), ("F8_E5M2", 0x7D, NAN), ("F32", 0x3F800001, 1 + 2.0**-23), ("F32", 0x00000001, 2.0**-149),
    ("F32", 0x7F800000, INF), ("F64", 0x3FF0000000000001, 1 + 2.0**-52), ("I8", 0xFF, -1), ("U8", 0xFF, 255),
    ("I16", 0x8000, -32768), ("U16", 0xFFFF, 65535), ("I32", 0xFFFFFFFE, -2), ("U32", 0xFFFFFFFE, 2**32 - 2),
    ("I64", 2**63, -(2**63)), ("U64", 2**64 - 1, 2**64 - 1), ("BOOL", 1, True),
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "bits", "value"), BITS)
def test_a_bit_pattern_has_its_value(dtype: str, bits: int, value: float) -> None:
    found = decode(bits.to_bytes(DTYPES[dtype].itemsize, "little"), dtype, (1,))[0]
    assert found == value or (math.isnan(value) and np.isnan(found.astype(np.float64)))
    assert math.copysign(1, float(found)) == math.copysign(1, value) or math.isnan(value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_bit_pattern_comes_back_unchanged(dtype: str) -> None:
    size = DTYPES[dtype].itemsize
    data = np.random.default_rng(0).integers(0, 256, 512 * size, dtype=np.uint8).tobytes()
    array = decode(data, dtype, (512,))
    assert array.tobytes() == data
    assert dtype_name(array) == dtype


@pytest.mark.parametrize("dtype", ["BF16", "F16", "F8_E4M3", "F8_E5M2", "F32"])
def test_widening_to_float32_loses_no_bit(dtype: str) -> None:
    size = DTYPES[dtype].itemsize
    n = min(2 ** (8 * size), 65_536)
    array = decode(np.arange(n, dtype=f"<u{size}").tobytes(), dtype, (n,))
    numbers = array[~np.isnan(to_float32(array))]
    assert to_float32(numbers).astype(DTYPES[dtype]).tobytes() == numbers.tobytes()


def test_shapes_are_row_major_and_may_be_empty_or_scalar() -> None:
    assert decode(bytes(range(6)), "U8", (2, 3)).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert decode(b"", "F32", (0, 7)).shape == (0, 7)
    assert decode(b"\1", "U8", ()).shape == ()


@pytest.mark.parametrize("n_bytes", [3, 5])
def test_a_wrong_number_of_bytes_is_refused(n_bytes: int) -> None:
    with pytest.raises(DecodeError, match=rf"Decoding t of m: shape \[1\] of F32 needs 4 bytes, {n_bytes} came"):
        decode(bytes(n_bytes), "F32", (1,), where="t of m")


def test_a_dtype_that_is_not_read_is_named_with_those_that_are() -> None:
    with pytest.raises(UnsupportedDtypeError, match="dtype F6_E2M3 is not read; these are: F64, F32"):
        decode(bytes(8), "F6_E2M3", (1,))
