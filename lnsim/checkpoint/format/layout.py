"""This module decides which files of a checkpoint hold its weights, from their names and the index alone.

Nothing here opens a file. The names come from a repo, so they are checked before anyone uses them as a path or URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from lnsim.checkpoint.format.header_json import FORMATS
from lnsim.checkpoint.source import parse_json
from lnsim.errors import FormatError, named

CONFIG_NAME = "config.json"
ADAPTER_CONFIG_NAME = "adapter_config.json"
SINGLE_NAME = "model.safetensors"
INDEX_NAME = "model.safetensors.index.json"

_ENDING = r"\.(?:safetensors|bin|gguf)"
_SHARD = re.compile(
    rf"(?P<stem>[^/]*?)[-_.]?(?P<number>\d+)-of-(?P<count>\d+)(?P<variant>(?:\.[^./]+)*){_ENDING}", re.ASCII
)
_RANK = re.compile(r"(?P<stem>[^/]*?)(?P<number>\d+)-mp(?P<count>\d+)(?P<variant>)\.safetensors", re.ASCII)
_INDEX = re.compile(r"[^/]+\.(?:safetensors|bin)\.index(?:\.[^./]+)?\.json")
_TORCH_NAME, _TORCH_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
# How names begin of files that are passed over where there are others: Mistral's own layout, and an adapter beside its
# merged model.
_SECONDARY = ("consolidated", "adapter_model")
_MAX_NAME = 255  # of a file, on the usual disks
_MOST_PARTS = 1000  # of a GGUF model that is split


@dataclass(frozen=True, slots=True)
class Layout:
    """Which files hold the weights."""

    shards: tuple[str, ...]  # in the order of their numbers; those that an unread index is likely to name
    index: str | None = None
    notes: tuple[str, ...] = ()  # on files that were passed over
    replicated: bool = False  # shards of ranks: each has its own copy of what is not split
    weights: tuple[str, ...] = ()  # every safetensors file in sight
    weight_map: Mapping[str, str] = field(default_factory=dict)  # the shard of each tensor, where there is an index

    def indexed(self, text: bytes, *, where: str) -> Layout:
        """The same once the index is read: its shards are those that it lists; raises as ``parse_index``."""
        of_torch = self.index is not None and ".bin." in self.index
        weight_map = parse_index(text, where=where, ending=".bin" if of_torch else ".safetensors")
        shards = tuple(sorted(set(weight_map.values())))
        notes = _passed_over(self.weights, {*shards, self.index})
        return replace(self, shards=shards, notes=notes, weight_map=weight_map)


@dataclass(frozen=True, slots=True)
class _Set:
    """Files that belong together by their numbers."""

    stem: str
    count: str
    variant: str
    replicated: bool


def find_layout(names: Iterable[str], *, where: str, typed: str | None = None) -> Layout:
    """Choose the weight files of a listing; FormatError where there are none, or which to take is unclear.

    The order is that of transformers: ``model.safetensors``, then the index with its shards. Without either, another
    index, a complete numbered set of shards or a single safetensors file is taken. Anything beside that repeats the
    same weights and is passed over, with a note. ``typed`` is what a person would type for the checkpoint.
    """
    with named(FormatError, f"Looking for the weights of {where}"):
        names = list(names)
        top = sorted(name for name in names if "/" not in name)
        candidates = [name for name in top if _is_plain(name)]
        nested = sorted(name for name in names if "/" in name and name.endswith(".safetensors"))
        weights = (*candidates, *(name for name in top if _INDEX.fullmatch(name)), *nested)
        if SINGLE_NAME in top:
            return Layout((SINGLE_NAME,), None, _passed_over(weights, {SINGLE_NAME}))
        if not any(".safetensors" in name for name in weights) and (other := _other_layout(top, typed or where)):
            return other
        index = _find_index(top, candidates)
        if index is not None:
            numbered = tuple(name for name in _primary(candidates) if _SHARD.fullmatch(name))
            return Layout(numbered, index, weights=weights)
        shards, replicated = _numbered(candidates)
        shards = shards or _primary(_plainest(candidates))
        if not shards:
            raise FormatError(_no_safetensors(top, nested, typed or where))
        if len(shards) > 1 and _place(shards[0]) is None:
            raise FormatError(
                f"{SINGLE_NAME} or {INDEX_NAME} was expected, found {_some(shards)}. Name one of these files instead, "
                f"for example {typed or where}/{shards[0]:.80}."
            )
        return Layout(tuple(shards), None, _passed_over(weights, {*shards}), replicated)


def _other_layout(top: list[str], typed: str) -> Layout | None:
    """The files of PyTorch, else those of GGUF, where there are no others; FormatError for several GGUF models."""
    torch = [name for name in top if name.startswith("pytorch_model") and name.endswith(".bin")]
    if _TORCH_INDEX in top:
        return Layout(tuple(torch), _TORCH_INDEX, weights=tuple(torch))
    if torch:
        taken = [_TORCH_NAME] if _TORCH_NAME in torch else _numbered(torch)[0] or torch[:1]
        return Layout(tuple(taken), None, _passed_over(torch, {*taken}))
    models = [name for name in top if name.endswith(".gguf") and not name.startswith("mmproj")]
    first = {place[0]: name for name in reversed(models) if (place := _place(name)) is not None}
    single = [name for name in models if _place(name) is None]
    if len(first) + len(single) > 1:
        found = _some([*first.values(), *single])
        raise FormatError(
            f"one model was expected, found {len(first) + len(single)} in GGUF ({found}). Name the one that you mean, "
            f"for example {typed}/{[*first.values(), *single][0]:.80}."
        )
    return named_file(models[0]) if models else None


def named_file(name: str) -> Layout:
    """The layout where a person named one file: one of weights, or the index of several.

    Of a GGUF model that is split, any part names all of them: the first one tells what the model is.
    """
    if _INDEX.fullmatch(name):
        return Layout((), name)
    place = _place(name)
    if place is None or int(place[0].count) < 2:
        return Layout((name,))
    if name.endswith(".gguf"):
        number = re.compile(r"\d+(?=-of-\d+[^/]*\.gguf\Z)", re.ASCII)
        width, count = len(str(number.findall(name)[0])), min(int(place[0].count), _MOST_PARTS)
        return Layout(tuple(number.sub(f"{part:0{width}}", name) for part in range(1, count + 1)))
    return Layout((name,), None, (f"{name} is one of {int(place[0].count)} files; the others were not read.",))


def parse_index(text: bytes, *, where: str, ending: str = ".safetensors") -> dict[str, str]:
    """The index's ``weight_map``, tensor name to shard; FormatError where there is none, or a shard lies elsewhere."""
    content = parse_json(text, where=f"the index of {where}")
    weight_map = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise FormatError(f"Reading the index of {where}: an object 'weight_map' with tensors was expected.")
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or not _is_plain(shard, ending):
            raise FormatError(
                f"Reading the index of {where}: tensor {name!r:.120} should lie in a {ending[1:]} file of the same "
                f"checkpoint, found {shard!r:.120}."
            )
    return weight_map


def _is_plain(shard: str, ending: str = ".safetensors") -> bool:
    """Whether a name is that of a file of weights alone: no path, no address, nothing hidden or unprintable."""
    usual = shard.endswith(ending) and not shard.startswith(".") and len(shard) <= _MAX_NAME
    return usual and shard.isprintable() and not set(shard) & set("/\\")


def _place(name: str) -> tuple[_Set, int] | None:
    """The set that a file belongs to, and its number in it; None where its name tells none."""
    for pattern in (_SHARD, _RANK):
        match = pattern.fullmatch(name)
        if match is not None:
            return _Set(match["stem"], match["count"], match["variant"], pattern is _RANK), int(match["number"])
    return None


def _numbered(candidates: list[str]) -> tuple[list[str], bool]:
    """A full set such as ``stem-00001-of-0000N``, and whether it is one of ranks; empty where no file has a number.

    Of several sets the one to prefer: whole, of the usual layout, not split over ranks, no variant such as fp16.
    Raises FormatError when files are missing, or no set is to be preferred.
    """
    sets: dict[_Set, list[tuple[int, str]]] = {}
    for name in candidates:
        if (place := _place(name)) is not None:
            sets.setdefault(place[0], []).append((place[1], name))
    if not sets:
        return [], False
    first = {key: min(members)[1] for key, members in sets.items()}
    ranks = {
        key: (_is_whole(key, sets[key]), not _is_secondary(name), not key.replicated, name.count(".") == 1)
        for key, name in first.items()
    }
    key, *others = (key for key in sets if ranks[key] == max(ranks.values()))
    if others:
        raise FormatError(
            f"one set of files was expected, found {len(others) + 1}, which begin with "
            f"{_some([first[one] for one in (key, *others)])}. Put the one that you mean into a folder of its own, or "
            f"name one of its files."
        )
    if not _is_whole(key, sets[key]):
        example = "*-mp" if key.replicated else "-*-of-"
        raise FormatError(
            f"{int(key.count)} shards '{key.stem}{example}{key.count}' were expected, found {len(sets[key])}, and no "
            f"{INDEX_NAME}. The upload or download is incomplete; a file that is there can be named alone."
        )
    return [name for _, name in sorted(sets[key])], key.replicated


def _is_whole(key: _Set, members: list[tuple[int, str]]) -> bool:
    """Whether every number is there, from 1 or from 0."""
    numbers = sorted(number for number, _ in members)
    return len(numbers) == int(key.count) and numbers in (list(range(1, len(numbers) + 1)), list(range(len(numbers))))


def _find_index(top: list[str], candidates: list[str]) -> str | None:
    """The index that counts: ``model.safetensors.index.json``, or the only other one."""
    found = [name for name in top if _INDEX.fullmatch(name)]
    if INDEX_NAME in found:
        return INDEX_NAME
    left = _primary(_plainest(found, ".json"))
    if len(left) > 1:
        raise FormatError(f"one index was expected, found {_some(left)}. Name one of these files instead.")
    beside = any(_is_secondary(name) for name in left) and not all(map(_is_secondary, candidates))
    return left[0] if left and not beside else None


def _primary(names: list[str]) -> list[str]:
    """Without secondary files, where there are others."""
    return [name for name in names if not _is_secondary(name)] or names


def _is_secondary(name: str) -> bool:
    return name.startswith(_SECONDARY)


def _plainest(names: list[str], ending: str = ".safetensors") -> list[str]:
    """Without the variants of others, such as ``model.fp16.safetensors`` beside ``model.safetensors``."""

    def plainer(name: str) -> set[str]:
        words = name.removesuffix(ending).split(".")
        return {".".join(words[:place] + words[place + 1 :]) + ending for place in range(1, len(words))}

    return [name for name in names if not plainer(name) & set(names)]


def _passed_over(weights: Iterable[str], taken: Set[str | None]) -> tuple[str, ...]:
    rest = [name for name in weights if name not in taken]
    return (f"Passed over beside the weights: {_some(rest)}.",) if rest else ()


def _no_safetensors(top: list[str], nested: list[str], typed: str) -> str:
    lead = f"{SINGLE_NAME} or {INDEX_NAME} was expected, found "
    below = f"safetensors files in sub-folders only ({_some(nested)}). Name one folder or file instead, for example "
    below += f"{typed}/{nested[0].rpartition('/')[0]:.160}." if nested else ""
    for kind, endings in FORMATS["others"].items():
        found = [name for name in top if name.endswith(tuple(endings))]
        if found:
            if nested:
                return f"{lead}{kind} ({_some(found)}) and {below}"
            advice = "lnsim reads safetensors, pytorch_model.bin and GGUF, and never unpickles"
            if ADAPTER_CONFIG_NAME in top:
                return f"{lead}{kind} ({_some(found)}) of an adapter. {advice}: name the model that it was made for."
            return f"{lead}{kind} ({_some(found)}). {advice}: look for a conversion, often under a revision refs/pr/N."
    if nested:
        return f"{lead}{below}"
    return f"{lead}no weights at all ({_some(top) if top else 'an empty listing'})."


def _some(names: list[str]) -> str:
    shown = ", ".join(f"{name:.80}" if name.isprintable() else repr(name)[:80] for name in names[:3])
    return shown + (f" and {len(names) - 3} more" if len(names) > 3 else "")
