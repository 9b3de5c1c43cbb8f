"""This module holds one tensor as a header describes it, checked against its dtype and shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lnsim.errors import HeaderError

__all__ = ["DTYPE_BITS", "U64_LIMIT", "TensorInfo", "quoted"]

U64_LIMIT = 1 << 64
"""Sizes and counts of bits from here on are errors, as in the reference."""

DTYPE_BITS: Mapping[str, int] = MappingProxyType(
    {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
    | dict.fromkeys(
        ("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"),
        8,
    )
    | dict.fromkeys(("I16", "U16", "F16", "BF16"), 16)
    | dict.fromkeys(("I32", "U32", "F32"), 32)
    | dict.fromkeys(("I64", "U64", "F64", "C64"), 64)
)
"""Bits of one element, for every dtype of the format."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor as the header describes it.

    Args:
        name: tensor name.
        dtype: the format's name of the dtype, a key of ``DTYPE_BITS``.
        shape: dimensions, row-major; empty for a scalar.
        start: first byte, relative to the byte buffer (the format's ``data_offsets``).
        stop: byte after the last, relative to the byte buffer.

    Raises:
        HeaderError: when ``stop - start`` is not the size that shape and dtype need.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.stop:
            raise HeaderError(
                f"Tensor {quoted(self.name)}: data offsets must ascend; found [{self.start}, {self.stop}]."
            )
        expected = _n_bytes(self)
        if self.stop - self.start != expected:
            raise HeaderError(
                f"Tensor {quoted(self.name)}: shape {list(self.shape)} of {self.dtype} needs {expected} bytes, "
                f"but its data offsets [{self.start}, {self.stop}] hold {self.stop - self.start}."
            )

    @property
    def n_bytes(self) -> int:
        """Bytes in the buffer."""
        return self.stop - self.start


def _n_bytes(info: TensorInfo) -> int:
    """Bytes that shape and dtype need; sizes that no 64-bit machine can count are errors, as in the reference."""
    count = 1
    for size in info.shape:
        count *= size
        if count >= U64_LIMIT:
            break
    bits = count * DTYPE_BITS[info.dtype]
    if bits >= U64_LIMIT:
        raise HeaderError(f"Tensor {quoted(info.name)}: shape {list(info.shape)!s:.80} overflows 64 bits.")
    if bits % 8:
        raise HeaderError(f"Tensor {quoted(info.name)}: {bits} bits of {info.dtype} do not fill whole bytes.")
    return bits // 8


def quoted(name: str) -> str:
    """A name from a file, made safe and short for a message."""
    return repr(name if len(name) <= 120 else name[:117] + "...")
