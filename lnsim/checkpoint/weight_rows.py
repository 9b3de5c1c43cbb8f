"""This module chooses and holds the few matrix rows that the tests of ``lnsim.measure.evidence`` need.

Value rows: those of ``v_proj`` (or of the values' part of a fused matrix) in the first and the last block of the main
tower, whole heads up to 1,024 rows. Token rows: 960 of the embedding, one run, from where the tokenizer begins to list
words (``token_texts``). Each is a contiguous range of bytes, and is read through the same layer as the norms. In an
extract a piece is a tensor of its own, named after matrix and rows, ``model.embed_tokens.weight[256:1216]``; a record
in the metadata says what it is.

How values lie in a checkpoint is data, ``families/names.toml``: in a matrix of their own, behind queries and keys, or
group by group, in the up-projection of MLA, and as the rows of what they write where matrices are stored (in, out).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from lnsim.checkpoint.families.config import MEDIA_KEYS, tower_config
from lnsim.checkpoint.families.names import WORDS
from lnsim.checkpoint.format.decode import decode
from lnsim.checkpoint.format.header import TensorInfo
from lnsim.checkpoint.token_texts import N_TOKENS, NO_TEXTS, Tokens
from lnsim.errors import RoleError, StoreError

if TYPE_CHECKING:
    from lnsim.checkpoint.store import StoredTensor

RECORD_KEY = "weight_rows"  # key of an extract's metadata under which the pieces are listed
MOST_VALUE_ROWS = 1024

_FLOATS = ("F64", "F32", "F16", "BF16")
_BLOCK = re.compile(r"(.*?\.)(\d{1,5})\.", re.ASCII)
_LAYOUTS: Mapping[str, tuple[str, ...]] = {
    layout: tuple(f".{name}.weight" for name in WORDS["values"][layout])
    for layout in ("separate", "latent", "fused", "output")
}

Use = Literal["value", "output", "latent", "token"]


class RowPiece(msgspec.Struct, frozen=True):
    """Rows ``[start, stop)`` of one matrix, and what they are for."""

    tensor: str
    start: int
    stop: int
    use: Use  # value: rows of v_proj; output: rows that a value dimension writes; latent: rows of MLA's up-projection
    layer: int = -1
    head_size: int = 0
    n_rows: int = 0  # of the whole matrix; of an embedding the size of the vocabulary
    texts: tuple[str, ...] = ()  # of the tokens, where a tokenizer tells them; an empty one is no word


class WeightRows(msgspec.Struct, frozen=True, eq=False):
    """The rows of one model as they were read."""

    pieces: tuple[RowPiece, ...] = ()
    arrays: tuple[npt.NDArray[Any], ...] = ()  # one a piece, (rows, columns) in the stored dtype
    missing: tuple[str, ...] = ()  # sentences: what was looked for and is not there, with the reason

    @property
    def tokens(self) -> tuple[tuple[int, ...], npt.NDArray[Any]] | None:
        """Ids of the tokens, and their rows; None where none was read."""
        return next(((tuple(range(piece.start, piece.stop)), rows) for piece, rows in self._of(("token",))), None)

    @property
    def texts(self) -> tuple[str, ...]:
        """What the tokens stand for, empty for one that is no word; none where no tokenizer told."""
        return next((piece.texts for piece, _ in self._of(("token",))), ())

    @property
    def vocabulary(self) -> int | None:
        """Rows of the whole embedding."""
        return next((piece.n_rows for piece, _ in self._of(("token",))), None)

    def values(self) -> dict[int, tuple[str, int, npt.NDArray[Any]]]:
        """By layer: the use, the size of a head, and the rows of all heads that were read."""
        found: dict[int, tuple[str, int, npt.NDArray[Any]]] = {}
        for piece, rows in self._of(("value", "output", "latent")):
            before = found.get(piece.layer)
            joined = rows if before is None else np.concatenate([before[2], rows])
            found[piece.layer] = piece.use, piece.head_size, joined
        return found

    def record(self) -> str:
        """What an extract keeps in its metadata."""
        return msgspec.json.encode({"pieces": self.pieces, "missing": self.missing}).decode()

    def _of(self, uses: Sequence[str]) -> list[tuple[RowPiece, npt.NDArray[Any]]]:
        return [(piece, rows) for piece, rows in zip(self.pieces, self.arrays, strict=True) if piece.use in uses]


def piece_name(piece: RowPiece) -> str:
    """The name of a piece in an extract."""
    return f"{piece.tensor}[{piece.start}:{piece.stop}]"


def is_piece(name: str) -> bool:
    """Whether a tensor of an extract is a piece of a matrix, by its name."""
    return re.search(r"\[\d+:\d+\]\Z", name) is not None


class _Record(msgspec.Struct):
    pieces: tuple[RowPiece, ...]
    missing: tuple[str, ...]


def kept_pieces(metadata: Mapping[str, str], where: str) -> tuple[tuple[RowPiece, ...], tuple[str, ...]]:
    """The pieces that an extract keeps, and what was not there; StoreError where its record is none."""
    if RECORD_KEY not in metadata:
        return (), (f"No rows are kept of {where}: read it from its source again, with --evidence.",)
    try:
        found = msgspec.json.decode(metadata[RECORD_KEY], type=_Record)
    except msgspec.DecodeError as error:
        raise StoreError(f"Reading {where}: its record '{RECORD_KEY}' is malformed ({error!s:.200}).") from None
    return found.pieces, found.missing


def whole_rows(
    pieces: Sequence[RowPiece], stored: Mapping[str, StoredTensor], missing: Iterable[str], where: str
) -> WeightRows:
    """The rows of pieces that were read, by their names."""
    found = [stored[piece_name(one)] for one in pieces]
    arrays = (decode(one.data, one.dtype, one.shape, where=f"'{one.name}' of {where}") for one in found)
    return WeightRows(tuple(pieces), tuple(arrays), tuple(missing))


def choose_rows(
    infos: Mapping[str, TensorInfo],
    norms: Iterable[str],
    config: Mapping[str, Any],
    model_type: str,
    where: str,
    tokens: Tokens = NO_TEXTS,
    tower: str = "text",
) -> tuple[tuple[RowPiece, ...], tuple[str, ...]]:
    """The pieces to read of a checkpoint, and a sentence on each kind that cannot be read.

    ``norms`` are the names of those inside the blocks of the main tower; value rows are those of the same blocks. A
    tower of pictures or sounds has no tokens.
    """
    told = tower_config(config, tower if tower in MEDIA_KEYS else "text")
    pieces: list[RowPiece] = []
    missing: list[str] = []
    named = tuple(norms)
    values = partial(_value_pieces, infos, named, told, model_type)
    rows = partial(_token_pieces, infos, named, tokens, tower)
    for what, choose in (("value rows", values), ("token rows", rows)):
        try:
            pieces += choose()
        except RoleError as error:
            missing.append(f"No {what} of {where}: {error}.")
    return tuple(pieces), tuple(missing)


def _token_pieces(infos: Mapping[str, TensorInfo], norms: Sequence[str], tokens: Tokens, tower: str) -> list[RowPiece]:
    if tower in MEDIA_KEYS:
        raise RoleError(f"its {tower} tower reads no tokens")
    ends = tuple(f".{name}.weight" for name in WORDS["embeddings"]["names"])
    tables = [name for name, info in infos.items() if f".{name}".endswith(ends) and len(info.shape) == 2]
    # Two tensors lie in one tower, as far as their names tell, where their first parts agree.
    shared = [name for name in tables if norms and name.split(".")[0] == norms[0].split(".")[0]] or tables
    if not shared:
        raise RoleError("no tensor has the name of an embedding, such as '...embed_tokens.weight'")
    name = min(shared, key=len)
    n_rows = _floats(name, infos[name])
    told, texts = tokens
    start = max(0, min(told, n_rows - N_TOKENS))
    stop = min(start + N_TOKENS, n_rows)
    texts = (("",) * (told - start) + texts)[: stop - start] if texts else ()
    return [RowPiece(name, start, stop, "token", n_rows=n_rows, texts=texts)]


def _value_pieces(
    infos: Mapping[str, TensorInfo], norms: Sequence[str], config: Mapping[str, Any], model_type: str
) -> list[RowPiece]:
    blocks = {found.groups() for name in norms if (found := _BLOCK.match(name))}
    layouts = ("output",) if model_type in WORDS["values"]["in_out"] else ("separate", "latent", "fused")
    for layout in layouts:
        there: dict[int, str] = {}
        for name in infos:
            block = _BLOCK.match(name)
            if block and block.groups() in blocks and name.endswith(_LAYOUTS[layout]) and "cross" not in name.lower():
                there[int(block[2])] = name
        if there:
            ends = dict.fromkeys((min(there), max(there)))
            return [
                piece for layer in ends for piece in _of_block(layout, there[layer], layer, infos, config, model_type)
            ]
    raise RoleError("no tensor of its blocks has the name of a value projection, such as '...self_attn.v_proj.weight'")


def _of_block(
    layout: str, name: str, layer: int, infos: Mapping[str, TensorInfo], config: Mapping[str, Any], model_type: str
) -> list[RowPiece]:
    n_rows = _floats(name, infos[name])
    n_heads = _number(config, "num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads")
    if layout == "latent":
        keys, values = _number(config, "qk_nope_head_dim"), _number(config, "v_head_dim")
        return _by_head(name, layer, n_rows, keys + values, keys, values, "latent")
    if config.get("multi_query") is True and config.get("new_decoder_architecture") is not True:
        n_values = 1
    else:
        names = ("num_key_value_heads", "multi_query_group_num", "num_kv_heads", "n_head_kv")
        n_values = _number(config, *names, default=n_heads)
    if layout == "fused":
        size = n_rows // (n_heads + 2 * n_values)
        if model_type in WORDS["values"]["grouped"]:
            shared = n_heads // n_values
            return _by_head(name, layer, n_rows, (shared + 2) * size, (shared + 1) * size, size, "value")
        first, n_own = n_rows - n_values * size, n_values * size
        n_told = (n_heads + 2 * n_values) * size
    else:
        n_values = n_heads if layout == "output" else n_values
        size, first, n_own = n_rows // n_values, 0, n_rows
        n_told = n_values * size
    if size < 2 or n_told != n_rows:
        raise RoleError(
            f"'{name}' has {n_rows} rows, which are not whole heads of {n_heads} queries and {n_values} values"
        )
    n_read = min(n_own, max(1, MOST_VALUE_ROWS // size) * size)
    return [RowPiece(name, first, first + n_read, "output" if layout == "output" else "value", layer, size, n_rows)]


def _by_head(name: str, layer: int, n_rows: int, step: int, skipped: int, size: int, use: Use) -> list[RowPiece]:
    """The values of each head, which lie behind what is skipped of each step."""
    if size < 2 or n_rows % step:
        raise RoleError(f"'{name}' has {n_rows} rows, which are not whole heads of {step}")
    heads = range(min(n_rows // step, max(1, MOST_VALUE_ROWS // size)))
    starts = (head * step + skipped for head in heads)
    return [RowPiece(name, start, start + size, use, layer, size, n_rows) for start in starts]


def _number(config: Mapping[str, Any], *names: str, default: int | None = None) -> int:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 65536:
            return value
    if default is None:
        raise RoleError(f"its config has no '{names[0]}', without which rows are not told by heads")
    return default


def _floats(name: str, info: TensorInfo) -> int:
    """The rows of a matrix of floats; RoleError for any other tensor."""
    if len(info.shape) != 2 or info.dtype not in _FLOATS:
        raise RoleError(
            f"'{name}' is {info.dtype} of shape {list(info.shape)}, expected a matrix of {', '.join(_FLOATS)}"
        )
    return info.shape[0]
