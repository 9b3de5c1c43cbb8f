"""This module turns a tensor's bytes into an array of its own dtype, and arrays into float32.

BF16 and FP8 come from ml_dtypes; NumPy knows the rest. Bits are never changed: ``decode`` is a view of the bytes.
The FP8 names of the format mean the OCP types (arXiv:2209.05433), in which E4M3 has no infinities.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.format.header_json import FORMATS
from lnsim.errors import DecodeError, UnsupportedDtypeError

# The format's dtype names that lnsim reads, as little-endian NumPy dtypes.
DTYPES: Mapping[str, np.dtype[Any]] = {
    name: np.dtype(getattr(ml_dtypes, kind, kind)).newbyteorder("<")
    for name, kind in FORMATS["safetensors"]["read"].items()
}


def decode(data: bytes, dtype: str, shape: tuple[int, ...], *, where: str = "a tensor") -> npt.NDArray[Any]:
    """A read-only array over exactly a tensor's bytes, row-major and in the stored dtype; ``where`` is for messages.

    Raises UnsupportedDtypeError for a dtype that is not read (sub-byte and complex ones), DecodeError for too many or
    too few bytes.

    >>> float(decode(bytes([0x80, 0x3f]), "BF16", (1,))[0])
    1.0
    """
    if dtype not in DTYPES:
        raise UnsupportedDtypeError(f"Decoding {where}: dtype {dtype} is not read; these are: {', '.join(DTYPES)}.")
    kind = DTYPES[dtype]
    expected = int(np.prod(shape, dtype=object)) * kind.itemsize
    if len(data) != expected:
        raise DecodeError(f"Decoding {where}: shape {list(shape)} of {dtype} needs {expected} bytes, {len(data)} came.")
    return np.frombuffer(data, dtype=kind).reshape(shape)


def dtype_name(array: npt.NDArray[Any]) -> str:
    """The format's name of an array's dtype; raises UnsupportedDtypeError where it has none."""
    for name, kind in DTYPES.items():
        if array.dtype == kind:
            return name
    raise UnsupportedDtypeError(f"Storing an array of {array.dtype}: the format has no name for this dtype.")


def to_float32(array: npt.NDArray[Any], *, offset: float = 0.0) -> npt.NDArray[np.float32]:
    """The values as float32, with ``offset`` added where γ is stored minus one.

    Exact for every 8- and 16-bit float and F32. F64 and integers beyond 2^24 are rounded to nearest. The sum with the
    offset is formed in float32, as the models themselves form it.
    """
    # A signalling NaN becomes a quiet one, since it would warn wherever it is used; what is beyond float32 becomes an
    # infinity. Readers are told of both.
    with np.errstate(invalid="ignore", over="ignore"):
        values = array.astype(np.float32)
        values[np.isnan(values)] = np.nan
    return values + np.float32(offset) if offset else values
