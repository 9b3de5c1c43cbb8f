"""This module decides which tensors of a checkpoint's shards count, and why others cannot be read.

What cannot be read is an error once it is asked for, and a note until then: nobody needs the matrices. Where there is
an index, it decides: a tensor counts in the shard that the index names for it and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field

from lnsim.checkpoint.families.names import norm_names
from lnsim.checkpoint.header import Header
from lnsim.checkpoint.source import file_in
from lnsim.errors import FormatError, HeaderError, LnsimError

__all__ = ["Contents", "check_copies", "check_whole", "settle"]


@dataclass(slots=True)
class Contents:
    """What of a checkpoint can be read.

    Args:
        headers: of each shard, with the tensors that count there; no tensor is in two of them.
        faults: by name of a tensor, the error that it is to ask for it.
        copies: further copies of these tensors, by shard, in a checkpoint that is split over ranks.
        notes: sentences on what is left out.
    """

    headers: dict[str, Header] = field(default_factory=dict)
    faults: dict[str, LnsimError] = field(default_factory=dict)
    copies: dict[str, Header] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def refuse(self, faults: Mapping[str, LnsimError], why: str) -> None:
        """Take tensors that cannot be read, with a note on how many and the first."""
        self.faults.update(faults)
        if faults:
            name, error = next(iter(faults.items()))
            self.notes.append(
                f"Not asked for and not readable: {_tensors(faults)} {why}; the first is {name!r:.120} "
                f"({str(error).partition('; ')[0].rstrip('.'):.300})."
            )


def settle(
    headers: Mapping[str, Header],
    *,
    where: str,
    weight_map: Mapping[str, str] | None = None,
    unread: Mapping[str, LnsimError] | None = None,
    replicated: bool = False,
) -> Contents:
    """Decide what counts.

    Args:
        headers: as each shard's file has it.
        where: the checkpoint, for messages.
        weight_map: tensor name to shard, by the index.
        unread: shards that the index names and that have no header to be read, with the reasons.
        replicated: the shards are those of ranks, and each may hold a copy of a tensor.

    Raises:
        LnsimError: when nothing can be read, for the first tensor.
    """
    found = Contents()
    refused = {
        name: HeaderError(f"Reading the header of {file_in(where, shard)}: {entry.reason}")
        for shard, header in headers.items()
        for name, entry in header.refused.items()
        if not weight_map or weight_map.get(name) == shard
    }
    found.refuse(refused, "with a wrong entry in the header, or beyond the end of the file")
    if weight_map:
        _by_index(found, headers, weight_map, unread or {}, where)
    else:
        _by_headers(found, headers, replicated, where)
    if found.faults and not any(header.tensors for header in found.headers.values()):
        raise next(iter(found.faults.values()))
    return found


def _by_index(
    found: Contents,
    headers: Mapping[str, Header],
    weight_map: Mapping[str, str],
    unread: Mapping[str, LnsimError],
    where: str,
) -> None:
    lost = {name: unread[shard] for name, shard in weight_map.items() if shard in unread}
    found.refuse(lost, f"in {len(unread)} of the index's files, which cannot be read")
    elsewhere = [
        name
        for name, shard in weight_map.items()
        if shard in headers and name not in headers[shard].tensors and name not in found.faults
    ]
    found.refuse(_misplaced(elsewhere, headers, weight_map, where), "not where the index says")
    extra: dict[str, str] = {}
    for shard, header in headers.items():
        away = [name for name in header.tensors if weight_map.get(name) != shard]
        found.headers[shard] = _without(header, away)
        extra.update(dict.fromkeys(away, shard))
    _note_unlisted(found, {name: shard for name, shard in extra.items() if name not in weight_map}, headers)
    twice = [name for name in extra if name in weight_map and name not in found.faults]
    if twice:
        found.notes.append(
            f"In more than one file: {_tensors(twice)}; the index decides, so the first, {twice[0]!r:.120}, is that of "
            f"{weight_map[twice[0]]} and not that of {extra[twice[0]]}."
        )


def _misplaced(
    names: Iterable[str], headers: Mapping[str, Header], weight_map: Mapping[str, str], where: str
) -> dict[str, LnsimError]:
    """Errors for tensors that the index names and their shards lack (huggingface_hub issue 4725)."""
    names = list(names)
    holder = {name: shard for shard, header in headers.items() for name in header.tensors} if names else {}
    return {
        name: HeaderError(
            f"Comparing the index of {where} with its shards: tensor {name!r:.160} should lie in {weight_map[name]}, "
            f"but {f'lies in {holder[name]}' if name in holder else 'no shard holds it'}; {len(names)} such in all. "
            f"The upload is incomplete or mixed; nothing was read."
        )
        for name in names
    }


def _note_unlisted(found: Contents, unlisted: Mapping[str, str], headers: Mapping[str, Header]) -> None:
    """Say what the index does not list, norms first."""
    if unlisted:
        norms = norm_names({name: headers[shard].tensors[name].shape for name, shard in unlisted.items()}, ())
        first = norms[0].name if norms else next(iter(unlisted))
        found.notes.append(
            f"Left out, since the index does not list them: {_tensors(unlisted)}, {len(norms)} by name of a norm; the "
            f"first is {first!r:.120} in {unlisted[first]}."
        )


def _by_headers(found: Contents, headers: Mapping[str, Header], replicated: bool, where: str) -> None:
    if len(headers) == 1:  # the usual case, and of up to 100,000 tensors
        found.headers.update(headers)
        return
    first: dict[str, str] = {}
    clashes: dict[str, LnsimError] = {}
    copied: dict[str, list[str]] = {}
    for shard, header in headers.items():
        for name, info in header.tensors.items():
            other = first.setdefault(name, shard)
            if other == shard:
                continue
            known = headers[other].tensors[name]
            if replicated and (known.dtype, known.shape) == (info.dtype, info.shape):
                copied.setdefault(shard, []).append(name)
            else:
                clashes[name] = _clash(name, other, shard, where)
    found.refuse(clashes, "in more than one file, and no index says which counts")
    for shard, header in headers.items():
        away = [name for name in header.tensors if name in clashes or first[name] != shard]
        found.headers[shard] = _without(header, away)
    for shard, names in copied.items():
        found.copies[shard] = headers[shard].narrowed(frozenset(names) - clashes.keys())
    if replicated and len(headers) > 1:
        found.notes.append(
            f"Split over {len(headers)} ranks: each file may have its own copy of a tensor; the copies of what is "
            f"asked for are compared byte by byte."
        )


def check_copies(data: Mapping[str, bytes], shard: str, again: Mapping[str, bytes], *, where: str) -> None:
    """Compare copies of tensors with what was read first.

    Raises:
        FormatError: when the bytes of one differ.
    """
    for name, copy in again.items():
        if data[name] != copy:
            raise FormatError(
                f"Reading {where}: tensor {name!r:.160} has other bytes in {shard} than in a file before it, so which "
                f"copy counts is unclear."
            )


def check_whole(name: str, copies: Iterable[Header], *, where: str) -> None:
    """Refuse to read parts of a tensor that ranks share: each may have another part of it.

    Raises:
        FormatError: when it is in more than one file.
    """
    if any(name in header.tensors for header in copies):
        raise FormatError(
            f"Reading {where}: tensor {name!r:.160} is split over ranks, and its parts are not put together."
        )


def _clash(name: str, one: str, other: str, where: str) -> FormatError:
    return FormatError(
        f"Reading the headers of {where}: tensor {name!r:.160} lies in both {one} and {other}, so which one counts is "
        f"unclear."
    )


def _tensors(names: Sized) -> str:
    return f"{len(names)} tensor{'' if len(names) == 1 else 's'}"


def _without(header: Header, names: Iterable[str]) -> Header:
    away = frozenset(names)
    return header.narrowed(header.tensors.keys() - away) if away else header
