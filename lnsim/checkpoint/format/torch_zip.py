"""This module turns a PyTorch file, as ``torch.save`` writes it, into a header like that of a safetensors file.

Format: a zip archive (PKWARE's APPNOTE, sections 4.3.12 to 4.3.16) of stored members: ``data.pkl``, a pickle of the
state dict, and one member a storage (torch/serialization.py). Its directory stands at the end of the file. Where the
bytes of a member begin is told by the writer's rule (``getPadding`` of caffe2's inline_container.cc: behind the local
header, padded to 64 bytes). They must end where the next member begins; and where the directory holds a checksum of
them, which a file saved without checksums does not, it is held against them when they are read.

The pickle is never unpickled: ``torch_pickle`` interprets the few opcodes that a state dict needs.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from struct import unpack_from

from lnsim.checkpoint.format.header import DISGUISE_BYTES, Header, Refused, TensorInfo, disguise
from lnsim.checkpoint.format.header_json import DTYPE_BITS, quoted
from lnsim.checkpoint.format.ranges import Ask, ByteRange
from lnsim.checkpoint.format.torch_pickle import Tensor, state_dict
from lnsim.errors import HeaderError, named

TAIL_BYTES = 1 << 16  # of the end of the file, which hold the directory of some 800 members
_MAX_DIRECTORY, _MAX_MEMBERS, _MAX_PICKLE = 1 << 26, 200_000, 1 << 24
_BEHIND = (0, 16, 24)  # bytes of the descriptor that may follow a member
_END, _LOCATOR, _END64, _ENTRY = b"PK\x05\x06", b"PK\x06\x07", b"PK\x06\x06", b"PK\x01\x02"
_BIG = 0xFFFFFFFF
_LEGACY = re.compile(rb"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19")  # a pickle of torch's magic number
_AGAIN = "save it again with a current PyTorch, or look for a conversion to safetensors, often under refs/pr/N"


@dataclass(frozen=True, slots=True)
class Member:
    """One stored file of the archive, as its directory tells it."""

    name: str
    offset: int  # of the local header
    size: int
    crc: int

    def start(self, alignment: int) -> int:
        """Where its bytes begin, by the rule of torch's writer."""
        begin = self.offset + 30 + len(self.name.encode()) + 4
        if max(self.offset, self.size) >= _BIG:
            begin += 4 + 16 * (self.size >= _BIG) + 8 * (self.offset >= _BIG)
        return -(-begin // alignment) * alignment


def torch_header(ask: Ask, start: bytes, file_size: int, where: str) -> Header:
    """The header of a PyTorch file; HeaderError for another, damaged, compressed or encrypted one, or a pickle of else.

    ``start`` are its first bytes, or all of a smaller file; ``ask`` reads its last 64 KB, and what lies in neither.
    Places count from the start of the file, and each tensor that is a whole member has its checksum. One of an odd
    layout or type is among the refused.
    """
    with named(HeaderError, f"Reading the header of {where}"):
        _check_kind(start)
        tail_start = max(0, file_size - TAIL_BYTES)
        tail = start[tail_start:] if len(start) == file_size else ask(ByteRange(tail_start, file_size))
        members = {one.name: one for one in _members(ask, tail, tail_start, file_size)}
        root = _root(members)
        alignment = _alignment(members, root, start)
        pickle = members[f"{root}/data.pkl"]
        if pickle.size > _MAX_PICKLE:
            raise HeaderError(f"a data.pkl of at most {_MAX_PICKLE} bytes was expected, found {pickle.size}.")
        begin = pickle.start(alignment)
        text = start[begin : begin + pickle.size]
        if len(text) < pickle.size:
            stop = begin + pickle.size
            if stop > file_size:
                raise HeaderError(f"data.pkl up to byte {stop} was expected, the file ends at byte {file_size}.")
            text = ask(ByteRange(begin, stop))
        return _header(state_dict(text), members, root, alignment, file_size)


def _check_kind(start: bytes) -> None:
    if _LEGACY.match(start):
        raise HeaderError(f"it is of the format before PyTorch 1.6, which is not read: {_AGAIN}.")
    if start[257:262] == b"ustar":
        raise HeaderError(f"it is a tar file, of PyTorch before 0.1.10, which is not read: {_AGAIN}.")
    if start[:4] != b"PK\x03\x04":
        kind = disguise(start[:DISGUISE_BYTES])
        raise HeaderError(f"a zip archive was expected, as torch.save writes it, found {kind or repr(start[:8])}.")


def _members(ask: Ask, tail: bytes, tail_start: int, file_size: int) -> Iterator[Member]:
    """The members by the directory; HeaderError where it is none."""
    at = tail.rfind(_END)
    if at < 0 or at + 22 > len(tail):
        raise HeaderError("no end of a zip directory was found: the download or the copy is not complete.")
    count, size, offset = unpack_from("<HII", tail, at + 10)
    if max(size, offset) == _BIG or count == 0xFFFF:
        count, size, offset = _end64(ask, tail, tail_start, at)
    if count > _MAX_MEMBERS or size > _MAX_DIRECTORY or offset + size > tail_start + at:
        raise HeaderError(
            f"a directory of at most {_MAX_MEMBERS} members before its end was expected, found {count} in {size} bytes "
            f"at {offset}."
        )
    if offset >= tail_start:
        data = tail[offset - tail_start : offset - tail_start + size]
    else:
        data = ask(ByteRange(offset, offset + size)) if size else b""
    place, seen = 0, set[str]()
    for _ in range(count):
        member, place = _entry(data, place, offset)
        if member.name in seen:
            raise HeaderError(f"each member once was expected, found {quoted(member.name)} twice.")
        seen.add(member.name)
        yield member


def _end64(ask: Ask, tail: bytes, tail_start: int, at: int) -> tuple[int, int, int]:
    """Count, size and offset of a directory beyond 4 GB."""
    if at < 20 or tail[at - 20 : at - 16] != _LOCATOR:
        raise HeaderError("a zip64 locator was expected before the end of the directory, found none.")
    (place,) = unpack_from("<Q", tail, at - 12)
    record = tail[place - tail_start :][:56] if place >= tail_start else b""
    if record[:4] != _END64 or len(record) < 56:
        raise HeaderError(f"the end of a zip64 directory was expected at byte {place}, found none.")
    return unpack_from("<QQQ", record, 32)


def _entry(data: bytes, at: int, limit: int) -> tuple[Member, int]:
    """One entry of the directory, and where the next begins; members lie before `limit`."""
    if data[at : at + 4] != _ENTRY or at + 46 > len(data):
        raise HeaderError(f"an entry of the zip directory was expected at its byte {at}, found none.")
    flags, method = unpack_from("<HH", data, at + 8)
    crc, packed, size, n_name, n_extra, n_comment = unpack_from("<IIIHHH", data, at + 16)
    (offset,) = unpack_from("<I", data, at + 42)
    end = at + 46 + n_name + n_extra + n_comment
    raw, extra = data[at + 46 : at + 46 + n_name], data[at + 46 + n_name : at + 46 + n_name + n_extra]
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise HeaderError(f"a member's name in UTF-8 was expected, found {raw[:40]!r}.") from None
    size, packed, offset = _wide(extra, size, packed, offset, name)
    if flags & 1:
        raise HeaderError(f"its member {quoted(name)} is encrypted, which is not read.")
    if method or packed != size:
        raise HeaderError(
            f"stored members were expected, as torch.save writes a state dict, found {quoted(name)} compressed, as in "
            f"a TorchScript program: {_AGAIN}."
        )
    if offset + 30 + size > limit:
        raise HeaderError(f"members before the directory were expected, found {quoted(name)} up to {offset + size}.")
    return Member(name, offset, size, crc), end


def _wide(extra: bytes, size: int, packed: int, offset: int, name: str) -> tuple[int, int, int]:
    """Sizes and offset, from the zip64 field where they do not fit 32 bits."""
    values, at = [size, packed, offset], 0
    while at + 4 <= len(extra):
        kind, n_bytes = unpack_from("<HH", extra, at)
        if kind == 1:
            wanted = [place for place, value in enumerate(values) if value == _BIG]
            if n_bytes < 8 * len(wanted) or at + 4 + n_bytes > len(extra):
                raise HeaderError(f"sizes of 64 bits were expected of {quoted(name)}, found {n_bytes} bytes of them.")
            for number, place in enumerate(wanted):
                (values[place],) = unpack_from("<Q", extra, at + 4 + 8 * number)
        at += 4 + n_bytes
    return values[0], values[1], values[2]


def _root(members: Mapping[str, Member]) -> str:
    """The folder that all members lie in."""
    roots = [name.removesuffix("/data.pkl") for name in members if name.endswith("/data.pkl")]
    if len(roots) != 1:
        raise HeaderError(f"one data.pkl was expected, as torch.save writes it, found {len(roots)}.")
    if f"{roots[0]}/constants.pkl" in members:
        raise HeaderError(f"it is a TorchScript program, not a state dict, which is not read: {_AGAIN}.")
    return roots[0]


def _alignment(members: Mapping[str, Member], root: str, start: bytes) -> int:
    """To how many bytes storages are aligned: 64, unless a member near the start says otherwise."""
    order, told = members.get(f"{root}/byteorder"), members.get(f"{root}/.storage_alignment")
    if order is not None and order.size != len("little"):
        raise HeaderError("a little-endian file was expected, found one of another byte order.")
    number = b"" if told is None else start[told.start(64) : told.start(64) + told.size]
    return int(number) if number.isdigit() and 0 < int(number) <= 1 << 20 else 64


def _header(
    tensors: Mapping[str, Tensor], members: Mapping[str, Member], root: str, alignment: int, file_size: int
) -> Header:
    found: dict[str, TensorInfo] = {}
    refused: dict[str, Refused] = {}
    checks: dict[str, int] = {}
    offsets = sorted(one.offset for one in members.values())
    for name, tensor in tensors.items():
        member = members.get(f"{root}/data/{tensor.key}")
        if member is None:
            raise HeaderError(f"storage {quoted(tensor.key)} of {quoted(name)} was expected, found no such member.")
        width = DTYPE_BITS.get(tensor.dtype, 0) // 8
        first, n_bytes = tensor.offset * width, prod(tensor.shape) * width
        end, place = member.start(alignment) + member.size, bisect_right(offsets, member.offset)
        if place < len(offsets) and offsets[place] - end not in _BEHIND:
            refused[name] = Refused(file_size, f"tensor {quoted(name)}: it does not lie where torch.save puts it.")
            continue
        if not width or not tensor.contiguous:
            why = f"its layout of strides {list(tensor.strides)}" if width else f"its type {tensor.dtype}"
            refused[name] = Refused(file_size, f"tensor {quoted(name)}: {why[:80]} is not read.")
            continue
        if first + n_bytes > member.size:
            raise HeaderError(
                f"tensor {quoted(name)} was expected within its storage of {member.size} bytes, found up to byte "
                f"{first + n_bytes} of it."
            )
        begin = member.start(alignment) + first
        found[name] = TensorInfo(name, tensor.dtype, tensor.shape, begin, begin + n_bytes)
        if n_bytes == member.size and member.crc:
            checks[name] = member.crc
    return Header(found, {"format": "pt"}, 0, refused, buffer_size=file_size, checks=checks)
