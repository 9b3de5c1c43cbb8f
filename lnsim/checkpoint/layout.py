"""This module decides which files of a checkpoint hold its weights, from their names and the index alone.

Nothing here opens a file. The names come from a repo, so they are checked before anyone uses them as a path or URL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lnsim.checkpoint.source import check_parts
from lnsim.errors import FormatError, HeaderError

__all__ = ["CONFIG_NAME", "INDEX_NAME", "SINGLE_NAME", "Layout", "check_index", "find_layout", "parse_index"]

CONFIG_NAME = "config.json"
SINGLE_NAME = "model.safetensors"
INDEX_NAME = "model.safetensors.index.json"

_SHARD = re.compile(r"(?P<stem>[^/]+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors", re.ASCII)
_MAX_NAME = 255  # of a file, on the usual disks
_OTHER_FORMATS = {
    "PyTorch pickles": (".bin", ".pt", ".pth", ".ckpt"),
    "GGUF": (".gguf",),
    "TensorFlow": (".h5", ".index"),
    "Flax": (".msgpack",),
    "ONNX": (".onnx",),
}


@dataclass(frozen=True, slots=True)
class Layout:
    """Which files hold the weights.

    Args:
        shards: safetensors files, in the order of their names.
        index: the index file that lists them, or None where there is none.
        notes: sentences on files that were passed over.
    """

    shards: tuple[str, ...]
    index: str | None = None
    notes: tuple[str, ...] = ()


def find_layout(names: Iterable[str], *, where: str, typed: str | None = None) -> Layout:
    """Choose the weight files of a listing.

    The order is that of transformers: ``model.safetensors``, then the index with its shards. Without either, a complete
    numbered set of shards or a single safetensors file is taken. Anything beside that, such as Mistral's
    ``consolidated.safetensors``, repeats the same weights and is passed over, with a note. ``typed`` is what a person
    would type for the checkpoint, for the error that advises to name a part of it; ``where`` by default.

    Raises:
        FormatError: when no safetensors weights are there, or which to take is unclear.
    """
    top = sorted(name for name in names if "/" not in name)
    candidates = [name for name in top if _is_plain(name)]
    if SINGLE_NAME in top:
        return Layout((SINGLE_NAME,), None, _passed_over(candidates, {SINGLE_NAME}))
    if INDEX_NAME in top:
        shards = tuple(name for name in candidates if _SHARD.fullmatch(name))
        return Layout(shards, INDEX_NAME, ())
    shards = _numbered(candidates, where)
    if shards:
        return Layout(shards, None, _passed_over(candidates, set(shards)))
    if len(candidates) == 1:
        return Layout((candidates[0],))
    if candidates:
        raise FormatError(
            f"Looking for the weights of {where}: {SINGLE_NAME} or {INDEX_NAME} was expected, found "
            f"{_some(candidates)}. Name one of these files instead, for example {typed or where}/{candidates[0]:.80}."
        )
    raise FormatError(_no_safetensors(top, names, where, typed or where))


def parse_index(text: bytes, *, where: str) -> dict[str, str]:
    """The index's ``weight_map``: tensor name to shard.

    Raises:
        FormatError: when it is no JSON, has no weight map, or names a shard outside the checkpoint's own folder.
    """
    check_parts(text, where=f"the index of {where}")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"Reading the index of {where}: JSON was expected ({error!s:.120}).") from None
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise FormatError(f"Reading the index of {where}: an object 'weight_map' with tensors was expected.")
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or not _is_plain(shard):
            raise FormatError(
                f"Reading the index of {where}: tensor {name!r:.120} should lie in a safetensors file of the same "
                f"checkpoint, found {shard!r:.120}."
            )
    return weight_map


def check_index(weight_map: Mapping[str, str], tensors: Mapping[str, str], *, where: str) -> None:
    """Compare what the index promises with what the headers of the opened shards hold.

    Args:
        weight_map: tensor name to shard, by the index; only for shards that were opened.
        tensors: tensor name to shard, by the headers.
        where: the checkpoint, for messages.

    Raises:
        HeaderError: when the index names a tensor that its shard lacks (huggingface_hub issue 4725).
    """
    wrong = [name for name, shard in weight_map.items() if tensors.get(name) != shard]
    if wrong:
        found = tensors.get(wrong[0])
        raise HeaderError(
            f"Comparing the index of {where} with its shards: tensor {wrong[0]!r:.160} should lie in "
            f"{weight_map[wrong[0]]}, but {f'lies in {found}' if found else 'no shard holds it'}; "
            f"{len(wrong)} such in all. The upload is incomplete or mixed; nothing was read."
        )


def _is_plain(shard: str) -> bool:
    """Whether a name is a safetensors file's and nothing else: no path, no address, nothing hidden or unprintable."""
    usual = shard.endswith(".safetensors") and not shard.startswith(".") and len(shard) <= _MAX_NAME
    return usual and shard.isprintable() and not set(shard) & set("/\\")


def _numbered(candidates: list[str], where: str) -> tuple[str, ...]:
    """A full set ``stem-00001-of-0000N``, for repos that come without their index."""
    found = [(match["stem"], int(match["count"]), name) for name in candidates if (match := _SHARD.fullmatch(name))]
    sets = {(stem, count) for stem, count, _ in found}
    if len(sets) != 1:
        return ()
    ((stem, count),) = sets
    if len(found) != count:
        raise FormatError(
            f"Looking for the weights of {where}: {count} shards '{stem}-*-of-{count:05d}' were expected, found "
            f"{len(found)}, and no {INDEX_NAME}. The upload is incomplete."
        )
    return tuple(name for _, _, name in found)


def _passed_over(candidates: Iterable[str], taken: set[str]) -> tuple[str, ...]:
    rest = [name for name in candidates if name not in taken]
    return (f"Passed over beside the weights: {_some(rest)}.",) if rest else ()


def _no_safetensors(top: list[str], names: Iterable[str], where: str, typed: str) -> str:
    lead = f"Looking for the weights of {where}: {SINGLE_NAME} or {INDEX_NAME} was expected, found "
    nested = sorted(name for name in names if name.endswith(".safetensors"))
    below = f"safetensors files in sub-folders only ({_some(nested)}). Name one folder or file instead, for example "
    below += f"{typed}/{nested[0].rpartition('/')[0]:.160}." if nested else ""
    for kind, endings in _OTHER_FORMATS.items():
        found = [name for name in top if name.endswith(endings)]
        if found:
            if nested:
                return f"{lead}{kind} ({_some(found)}) and {below}"
            advice = "lnsim reads safetensors only"
            if kind == "PyTorch pickles":
                advice += " and never unpickles, since that runs code from the file"
            return f"{lead}{kind} ({_some(found)}). {advice}: look for a conversion, often under a revision refs/pr/N."
    if nested:
        return f"{lead}{below}"
    return f"{lead}no weights at all ({_some(top) if top else 'an empty listing'})."


def _some(names: list[str]) -> str:
    shown = ", ".join(f"{name:.80}" if name.isprintable() else repr(name)[:80] for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")
