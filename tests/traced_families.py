"""The traced models of `data/roles`: their configs, and their norm tensors as a checkpoint lists them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["TRACED", "names_of", "shapes_of"]

TRACED: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text()) for path in sorted(Path(__file__).parent.glob("data/roles/*.json"))
}


def shapes_of(traced: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Every norm tensor of a traced model, in the order of its fixture."""
    return {name: tuple(row[2]) for row in traced["norms"] for name in names_of(row)}


def names_of(row: list[Any]) -> list[str]:
    """The tensors of one row, a name a layer."""
    path, layers = row[0], row[1]
    return [path.replace("*", str(layer), 1) for layer in layers] if layers else [path]
