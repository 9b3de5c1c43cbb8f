"""This module writes extracts: small safetensors files with the original tensor names, bits and provenance.

An extract is a checkpoint like any other. Its ``__metadata__`` says where each tensor's bytes came from, so that a
reader of the numbers can go back to ``repo@commit/shard [start, stop)`` and compare the sha256. The file under its
final name is always either the old extract or the whole new one, read back and checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lnsim.checkpoint.format.header import LENGTH_BYTES, Header, header_stop, parse_header
from lnsim.checkpoint.format.ranges import tensor_range
from lnsim.checkpoint.vectors import TensorSource
from lnsim.errors import HeaderError, StoreError

# Keys of an extract's metadata, and what marks it as one.
FORMAT = "lnsim-extract-1"  # the value of ``format``
ANSWERS_KEY = "answers"  # the questions that it answers
ROLES_KEY = "roles_read"  # the role keys it holds, so that a narrowed one does not look as if layers were lost
_ORIGIN_KEY = "origin"  # a digest of the path, for what lay on disk, so that it is known again and not told
_PART_KEY = "part"  # the folder or file below the repo's root, for a part of it

_MAX_CONFIG_ITEMS = 256  # longer lists (label names, token lists) are left out: no role depends on them
_MAX_DEPTH = 50  # deeper parts of a config are left out too; the deepest known has 5 levels
_OWN_KEYS = {"format", "source", "repo_id", "commit", "revision", "model_type", "config", "tensors"}
_OWN_KEYS |= {"hidden_size", "n_layers"}

Decoded = TypeVar("Decoded")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor as it goes into an extract, its bytes unchanged: ``[start, stop)`` of a file of the checkpoint."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: bytes = field(repr=False)
    shard: str
    start: int
    stop: int

    @property
    def source(self) -> TensorSource:
        """Its origin, with the sha256 of its bytes."""
        return TensorSource(self.shard, self.start, self.stop, hashlib.sha256(self.data).hexdigest(), self.dtype)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a source is, whatever its commit: two extracts of one source may replace each other, and no other file."""

    kind: str  # repo, path, or name: of what was made for the purpose
    name: str  # the repo id, or the digest of a path on disk
    part: str = ""

    def texts(self) -> dict[str, str]:
        """What an extract's metadata must hold to tell it, beside the repo id and the source."""
        if self.kind == "path":
            return {_ORIGIN_KEY: self.name}
        return {_PART_KEY: self.part} if self.part else {}


@dataclass(frozen=True, slots=True)
class Provenance:
    """What an extract remembers about its checkpoint."""

    source: str  # what was read, as a person would write it
    repo_id: str | None
    commit: str | None  # that was read
    revision: str | None  # that was asked for
    model_type: str
    config: Mapping[str, Any]  # without long lists
    extra: Mapping[str, str] = field(default_factory=dict)  # all else worth keeping: package, licence, ...

    @property
    def identity(self) -> Identity:
        """What the extract is of."""
        if self.repo_id is not None:
            return Identity("repo", self.repo_id, self.extra.get(_PART_KEY, ""))
        if _ORIGIN_KEY in self.extra:
            return Identity("path", self.extra[_ORIGIN_KEY])
        return Identity("name", self.source)


def write_extract(path: Path, tensors: Sequence[StoredTensor], provenance: Provenance) -> Path:
    """Write an extract and check it by reading it back; StoreError where that fails, or another file has the name."""
    if not tensors:
        raise StoreError(f"Writing {path.name}: there are no tensors to write.")
    content = _serialise(tensors, _metadata(tensors, provenance))
    try:
        _check_replaceable(path, provenance)
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", suffix=".part", delete=False
        ) as file:
            part = Path(file.name)
            try:
                _write_synced(file, content)
                _check(part, tensors)
                part.chmod(0o644)
                part.replace(path)
            finally:
                part.unlink(missing_ok=True)  # nothing is left of it where it got its name
    except OSError as error:
        raise StoreError(f"Writing {path}: {error.strerror or error}. Nothing was changed.") from error
    return path


def _check_replaceable(path: Path, provenance: Provenance) -> None:
    """Refuse to replace what is no extract of the same source, however it came there: a StoreError names the file."""
    if not os.path.lexists(path):
        return
    kept = None if path.is_symlink() else provenance_at(path)
    if kept is None or kept.identity != provenance.identity:
        what = "no extract of lnsim" if kept is None else f"an extract of another source, '{kept.source:.120}'"
        raise StoreError(
            f"Writing {path}: a file of this name is there, and it is {what}. It is not replaced; move it away, or "
            f"name another folder. Nothing was changed."
        )


def provenance_at(path: Path) -> Provenance | None:
    """The provenance of the extract at a path; None where there is no file, or one that is no extract."""
    header = kept_header(path)
    return None if header is None else read_provenance(header)


def kept_header(path: Path) -> Header | None:
    """The header of the extract at a path, even where its vectors are cut short; None where there is none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with path.open("rb") as file:
            start = file.read(LENGTH_BYTES)
            header = parse_header(start + file.read(header_stop(start) - LENGTH_BYTES), where=path.name)
        return None if read_provenance(header) is None else header
    except (OSError, ValueError, HeaderError, StoreError):
        return None  # not to be read: whatever it is, it is no extract that may be replaced


def read_provenance(header: Header) -> Provenance | None:
    """The provenance in an extract's metadata; None for a file that is no extract."""
    metadata = header.metadata
    if metadata.get("format") != FORMAT:
        return None
    source, model_type = metadata.get("source", ""), metadata.get("model_type", "")
    repo_id, commit, revision = map(metadata.get, ("repo_id", "commit", "revision"))
    extra = {key: value for key, value in metadata.items() if key not in _OWN_KEYS}
    return Provenance(source, repo_id, commit, revision, model_type, _config(metadata.get("config", "{}")), extra)


def read_sources(header: Header) -> dict[str, TensorSource]:
    """Where each tensor of an extract first came from, by name; StoreError where the record is not that of the file."""
    record = _decoded(header.metadata.get("tensors", "{}"), dict[str, TensorSource], "record of byte ranges")
    if odd := sorted(record.keys() ^ header.tensors.keys()):
        raise StoreError(
            f"Reading an extract: its record and its tensors differ in {odd[0]!r:.120} and {len(odd)} in all."
        )
    return record


def _metadata(tensors: Sequence[StoredTensor], provenance: Provenance) -> dict[str, str]:
    optional = {key: getattr(provenance, key) for key in ("repo_id", "commit", "revision")}
    config = _trimmed(provenance.config)
    hidden_size = max((tensor.shape[-1] for tensor in tensors if tensor.shape), default=0)
    return {
        **dict(provenance.extra),
        "format": FORMAT,
        "source": provenance.source,
        **{key: value for key, value in optional.items() if value is not None},
        "model_type": provenance.model_type,
        "hidden_size": str(config.get("hidden_size", hidden_size)),
        "n_layers": str(config.get("num_hidden_layers", "")),
        "config": json.dumps(config, sort_keys=True),
        "tensors": json.dumps({tensor.name: msgspec.structs.asdict(tensor.source) for tensor in tensors}),
    }


def _trimmed(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config without long lists and tables, which only tell labels and tokens, and without endless nesting."""
    kept: dict[str, Any] = {}
    for key, value in config.items():
        if _is_deep(value):
            continue
        if isinstance(value, Mapping):
            if len(value) <= _MAX_CONFIG_ITEMS and not key.endswith(("2id", "id2label")):
                kept[key] = _trimmed(value)
        elif not isinstance(value, list) or len(value) <= _MAX_CONFIG_ITEMS:
            kept[key] = value
    return kept


def _is_deep(value: Any, left: int = _MAX_DEPTH) -> bool:
    """Whether lists and objects are nested deeper than what walks them by recursion should go."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left == 0 or any(_is_deep(one, left - 1) for one in inner)


def _serialise(tensors: Sequence[StoredTensor], metadata: Mapping[str, str]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    position = 0
    for tensor in tensors:
        if tensor.name in entries:
            raise StoreError(f"Writing an extract: tensor {tensor.name!r:.120} was given twice.")
        stop = position + len(tensor.data)
        entries[tensor.name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [position, stop]}
        position = stop
    text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(LENGTH_BYTES, "little") + text + b"".join(tensor.data for tensor in tensors)


def _write_synced(file: Any, content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _check(path: Path, tensors: Sequence[StoredTensor]) -> None:
    """Read the file back as a stranger would, and compare every tensor's bytes."""
    content = path.read_bytes()
    try:
        header = parse_header(content, len(content), where=path.name)
    except HeaderError as error:
        raise StoreError(f"Checking what was written: {error}") from error
    for tensor in tensors:
        span = tensor_range(header, tensor.name)
        found = content[span.start : span.stop] if span else b""
        if found != tensor.data:
            raise StoreError(f"Checking what was written: tensor {tensor.name!r:.120} did not read back the same.")


def json_texts(metadata: Mapping[str, str], key: str) -> tuple[str, ...]:
    """A list of texts in an extract's metadata; raises StoreError when it is none."""
    return _decoded(metadata.get(key, "[]"), tuple[str, ...], f"metadata '{key}'")


def _decoded(text: str, kind: type[Decoded], what: str) -> Decoded:
    """A part of an extract's record; anyone can have written the file, so its types are looked at."""
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise StoreError(f"Reading an extract: its {what} is malformed ({error!s:.200}).") from None


def _config(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)  # which takes the NaN and Infinity of a config that has them
    except (ValueError, RecursionError) as error:
        raise StoreError(f"Reading an extract: its metadata 'config' should be JSON ({error}).") from None
    if not isinstance(config, dict):
        raise StoreError("Reading an extract: its metadata 'config' should be a JSON object.")
    return config
