"""This module decides which tensors of a checkpoint's shards count, and why others cannot be read.

What cannot be read is an error once it is asked for, and a note until then: nobody needs the matrices. Where there is
an index, it decides: a tensor counts in the shard that the index names for it and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Any

from lnsim.checkpoint.families.names import adapter_kind, norm_names
from lnsim.checkpoint.format.header import Header
from lnsim.checkpoint.format.layout import Layout
from lnsim.checkpoint.source import Checkpoint, file_in
from lnsim.errors import FormatError, HeaderError, LnsimError

__all__ = ["settle"]


def settle(
    opened: Checkpoint,
    layout: Layout,
    unread: Mapping[str, LnsimError],
    adapter_config: Callable[[], Mapping[str, Any] | None],
) -> Checkpoint:
    """Decide what of a checkpoint counts: its headers are narrowed to that, its faults, copies and notes are filled.

    It comes with the headers as each shard's file has them; ``unread`` are shards that the index names and whose
    headers cannot be read, with the reasons. Raises LnsimError for the first tensor where none can be read, and for
    an adapter.
    """
    headers, weight_map = opened.headers, layout.weight_map
    opened.notes += layout.notes
    refused = {
        name: HeaderError(f"Reading the header of {file_in(opened.where, shard)}: {entry.reason}")
        for shard, header in headers.items()
        for name, entry in header.refused.items()
        if not weight_map or weight_map.get(name) == shard
    }
    _refuse(opened, refused, "with a wrong entry in the header, or beyond the end of the file")
    if weight_map:
        _by_index(opened, weight_map, unread)
    else:
        _by_headers(opened, layout.replicated)
    if opened.faults and not any(header.tensors for header in opened.headers.values()):
        raise next(iter(opened.faults.values()))
    if _is_adapter(headers):
        raise _adapter_error(adapter_config, opened.where)
    return opened


def _refuse(opened: Checkpoint, faults: Mapping[str, LnsimError], why: str) -> None:
    """Take tensors that cannot be read, with a note on how many and the first."""
    opened.faults |= faults
    if faults:
        name, error = next(iter(faults.items()))
        opened.notes += (
            f"Not asked for and not readable: {_tensors(faults)} {why}; the first is {name!r:.120} "
            f"({str(error).partition('; ')[0].rstrip('.'):.300}).",
        )


def _by_index(opened: Checkpoint, weight_map: Mapping[str, str], unread: Mapping[str, LnsimError]) -> None:
    headers, faults = opened.headers, opened.faults
    lost = {name: unread[shard] for name, shard in weight_map.items() if shard in unread}
    _refuse(opened, lost, f"in {len(unread)} of the index's files, which cannot be read")
    elsewhere = [
        name
        for name, shard in weight_map.items()
        if shard in headers and name not in headers[shard].tensors and name not in faults
    ]
    _refuse(opened, _misplaced(elsewhere, headers, weight_map, opened.where), "not where the index says")
    extra = {
        name: shard for shard, header in headers.items() for name in header.tensors if weight_map.get(name) != shard
    }
    _narrow(opened, weight_map)
    if unlisted := {name: shard for name, shard in extra.items() if name not in weight_map}:
        norms = norm_names({name: headers[shard].tensors[name].shape for name, shard in unlisted.items()}, ())
        first = norms[0].name if norms else next(iter(unlisted))
        opened.notes += (
            f"Left out, since the index does not list them: {_tensors(unlisted)}, {len(norms)} by name of a norm; the "
            f"first is {first!r:.120} in {unlisted[first]}.",
        )
    twice = [name for name in extra if name in weight_map and name not in faults]
    if twice:
        opened.notes += (
            f"In more than one file: {_tensors(twice)}; the index decides, so the first, {twice[0]!r:.120}, is that of "
            f"{weight_map[twice[0]]} and not that of {extra[twice[0]]}.",
        )


def _narrow(opened: Checkpoint, shard_of: Mapping[str, str]) -> None:
    """Keep each tensor in its shard alone."""
    opened.headers = {
        shard: header.narrowed({name for name in header.tensors if shard_of.get(name) == shard})
        for shard, header in opened.headers.items()
    }


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


def _by_headers(opened: Checkpoint, replicated: bool) -> None:
    headers = opened.headers
    if len(headers) == 1:  # the usual case, and of up to 100,000 tensors
        return
    first: dict[str, str] = {}
    clashes: dict[str, LnsimError] = {}
    copied: dict[str, set[str]] = {}
    for shard, header in headers.items():
        for name, info in header.tensors.items():
            other = first.setdefault(name, shard)
            if other == shard:
                continue
            known = headers[other].tensors[name]
            if replicated and (known.dtype, known.shape) == (info.dtype, info.shape):
                copied.setdefault(shard, set()).add(name)
            else:
                clashes[name] = FormatError(
                    f"Reading the headers of {opened.where}: tensor {name!r:.160} lies in both {other} and {shard}, so "
                    f"which one counts is unclear."
                )
    _refuse(opened, clashes, "in more than one file, and no index says which counts")
    _narrow(opened, {name: shard for name, shard in first.items() if name not in clashes})
    opened.copies = {shard: headers[shard].narrowed(names - clashes.keys()) for shard, names in copied.items()}
    if replicated:
        opened.notes += (
            f"Split over {len(headers)} ranks: each file may have its own copy of a tensor; the copies of what is "
            f"asked for are compared byte by byte.",
        )


def _tensors(names: Sized) -> str:
    return f"{len(names)} tensor{'' if len(names) == 1 else 's'}"


def _is_adapter(headers: Mapping[str, Header]) -> bool:
    """Whether files or tensors have the names of an adapter's, and no tensor that of a norm."""
    shapes = {name: info.shape for header in headers.values() for name, info in header.tensors.items()}
    named = any(shard.startswith("adapter_model") for shard in headers) or adapter_kind(shapes) is not None
    return named and not norm_names(shapes, ())


def _adapter_error(read_config: Callable[[], Mapping[str, Any] | None], where: str) -> FormatError:
    """The error for an adapter, which names its base model where its own config does."""
    try:
        config = read_config() or {}
    except LnsimError:  # its own config cannot be read; that it is an adapter is true all the same
        config = {}
    kind, base = config.get("peft_type"), config.get("base_model_name_or_path")
    told = f" ({'LoRA' if kind == 'LORA' else kind:.40})" if isinstance(kind, str) else " (LoRA or one of its kin)"
    of = f" of {base:.200}" if isinstance(base, str) and base else ""
    return FormatError(f"Opening {where}: it is an adapter{told}{of}, without norms of its own: name its base model.")
