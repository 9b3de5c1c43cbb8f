"""This module reads projection matrices of a checkpoint in blocks of rows, by kind and layer.

They are no norms and have no role. A matrix of a large model takes more memory than all its norms together, so it is
never read whole: ``WeightMatrix.blocks`` goes through the same readers as every other tensor, a range at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from lnsim.checkpoint.format.decode import DTYPES, decode
from lnsim.checkpoint.format.header import TensorInfo
from lnsim.checkpoint.format.ranges import part_range
from lnsim.checkpoint.source import Checkpoint, no_progress
from lnsim.errors import FormatError, TensorNotFoundError, UnsupportedDtypeError

__all__ = ["WeightMatrix", "find_weights"]

_FLOATS = ("F64", "F32", "F16", "BF16")
_NAME = re.compile(r"(?:^|\.)layers\.(?P<layer>\d{1,9})\.(?:[a-z_]*attn|mlp)\.(?P<kind>\w+)\.weight$", re.ASCII)
_OTHER_TOWER = re.compile(r"vision|visual|audio|encoder|mtp", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class WeightMatrix:
    """One projection matrix of an opened checkpoint; nothing of it is read yet.

    Args:
        opened: the checkpoint.
        kind: one of ``MATRIX_KINDS`` of ``lnsim.study.catalog``.
        layer: zero-based block number.
        info: the tensor's name, dtype and shape ``(rows, columns)``.
    """

    opened: Checkpoint
    kind: str
    layer: int
    info: TensorInfo

    def __post_init__(self) -> None:
        if len(self.info.shape) != 2 or 0 in self.info.shape or self.info.dtype not in _FLOATS:
            raise UnsupportedDtypeError(
                f"Reading '{self.info.name}' of {self.opened.where}: a matrix of {', '.join(_FLOATS)} was expected, "
                f"found {self.info.dtype} of shape {list(self.info.shape)}. Packed weights have to be unpacked first."
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Rows (output channels) and columns (input channels)."""
        rows, columns = self.info.shape
        return rows, columns

    def read_rows(self, start: int, stop: int) -> npt.NDArray[Any]:
        """Rows ``[start, stop)`` in the stored dtype, shape ``(stop - start, columns)``.

        Raises:
            RangeError: when the rows do not lie inside the matrix, or their bytes did not come as asked for.
            HubError: or the subclass that fits, for a checkpoint on the Hub.
        """
        columns = self.shape[1]
        row_bytes = columns * DTYPES[self.info.dtype].itemsize
        data = _read_part(self.opened, self.info.name, start * row_bytes, stop * row_bytes)
        where = f"rows [{start}, {stop}) of '{self.info.name}' of {self.opened.where}"
        return decode(data, self.info.dtype, (stop - start, columns), where=where)

    def blocks(self, rows: int) -> Iterator[npt.NDArray[Any]]:
        """The matrix from top to bottom, `rows` rows at a time; the last block may be shorter."""
        for start in range(0, self.shape[0], rows):
            yield self.read_rows(start, min(start + rows, self.shape[0]))


def _read_part(opened: Checkpoint, name: str, start: int, stop: int) -> bytes:
    """The bytes ``[start, stop)`` of one tensor; FormatError where ranks share it."""
    if any(name in header.tensors for header in opened.copies.values()):
        raise FormatError(
            f"Reading {opened.where}: tensor {name!r:.160} is split over ranks, and its parts are not put together."
        )
    shard = opened.shard_of[name]
    (data,) = opened.fetch([(shard, part_range(opened.headers[shard], name, start, stop))], no_progress)
    return data


def find_weights(
    opened: Checkpoint, kinds: Sequence[str], layers: Sequence[int]
) -> Mapping[tuple[str, int], WeightMatrix]:
    """The projection matrices of the main tower, by kind and layer.

    Args:
        opened: the checkpoint; only its headers are used here.
        kinds: as the last part of their names has them.
        layers: zero-based block numbers.

    Raises:
        TensorNotFoundError: when one is not there; the message says what the checkpoint has in its place.
        UnsupportedDtypeError: when one is no matrix of floats, as in a quantised checkpoint.
        FormatError: when two tensors could be the same one.
        LnsimError: when one is promised and cannot be read.
    """
    infos = opened.tensors
    there = _by_place([*infos, *opened.faults], opened.where)
    found: dict[tuple[str, int], WeightMatrix] = {}
    for kind in kinds:
        for layer in layers:
            if (kind, layer) not in there:
                raise TensorNotFoundError(_not_there(opened, kind, layer, there))
            if there[kind, layer] in opened.faults:
                raise opened.faults[there[kind, layer]]
            found[kind, layer] = WeightMatrix(opened, kind, layer, infos[there[kind, layer]])
    return found


def _by_place(names: Iterable[str], where: str) -> dict[tuple[str, int], str]:
    """Tensor name by kind and layer; names of other towers are left out."""
    found: dict[tuple[str, int], str] = {}
    for name in names:
        match = _NAME.search(name)
        if match is not None and not _OTHER_TOWER.search(name[: match.start()]):
            place = match["kind"], int(match["layer"])
            if place in found:
                raise FormatError(
                    f"Looking for {place[0]} of layer {place[1]} in {where}: '{found[place]}' and '{name}' could both "
                    f"be it, and which tower is the main one is unclear from their names."
                )
            found[place] = name
    return found


def _not_there(opened: Checkpoint, kind: str, layer: int, there: Mapping[tuple[str, int], str]) -> str:
    kinds = sorted({name for name, number in there if number == layer})
    beside = f"it has {', '.join(kinds)} there" if kinds else "it holds no such matrix of that layer"
    return (
        f"Looking for {kind} of layer {layer} in {opened.where}: a tensor '...layers.{layer}.self_attn.{kind}.weight' "
        f"was expected, but {beside}. Choose other layers, or leave this model out."
    )
