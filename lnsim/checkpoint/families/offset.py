"""This module decides, once for a checkpoint and from all evidence, whether its files store gamma or gamma minus one.

The family's table says what its own models store. Of the converters, MLX adds the 1 to the norms of Qwen3-Next and
Qwen3.5 and turns the convolutions' axes round, so the layout of a convolution tells (mlx-lm's qwen3_next.py and
qwen3_5.py, ``sanitize``). Without a config the names may fit families of both kinds, and then nothing is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from lnsim.checkpoint.families.choice import Choice
from lnsim.checkpoint.vectors import Offset, RoleVectors
from lnsim.errors import RoleError

# Metadata of an extract, which holds neither the convolutions nor the format that the decision rested on.
_KEY, _REASON_KEY = "offset", "offset_reason"
_FOLDED_BY_MLX = ("qwen3_next", "qwen3_5")  # how the model types begin whose norms MLX converts
_CONVOLUTION = ".linear_attn.conv1d.weight"
_MANY = 0.25  # share of negative values that speaks for gamma minus one: a gamma that begins at 1 rarely crosses 0


def offset_texts(offset: Offset) -> dict[str, str]:
    """The decision as an extract's metadata keep it; nothing where there was none to take."""
    if not offset.reason:
        return {}
    return {_KEY: f"{offset.value:g}" if offset.decided else "open", _REASON_KEY: offset.reason}


def offset_sentence(offset: Offset) -> str:
    """The decision for whoever reads the numbers; empty where there was none to take."""
    if not offset.reason:
        return ""
    if not offset.decided:
        return f"Not known whether gamma is stored minus one; it is taken as stored ({offset.reason})."
    if offset.value:
        return (
            f"Gamma is stored minus one ({offset.reason}): 1.0 is added for the effective gamma, the stored bytes are "
            f"kept. Norms that no table knows are given as stored."
        )
    return f"Gamma is stored with its 1 added already ({offset.reason}): nothing is added again."


def decide_offset(
    choice: Choice, shapes: Mapping[str, tuple[int, ...]], metadata: Mapping[str, str], *, told: bool = False
) -> Offset:
    """Decide it for a checkpoint; that a person named the family decides what an extract remembers as open."""
    recorded = metadata.get(_KEY)
    if recorded in ("0", "1") or (recorded == "open" and not told):
        return Offset(float(recorded == "1"), recorded != "open", metadata.get(_REASON_KEY, "as its extract says"))
    if choice.both_offsets:
        return Offset(0.0, False, "without a config, families that store it so and others have exactly these names")
    if not any(stack.offset for stack in choice.family.stacks):
        return Offset()
    if choice.model_type.startswith(_FOLDED_BY_MLX):
        return _of_linear_attention(choice, shapes, metadata.get("format"))
    return Offset(1.0, True, f"as every {choice.family.name} does")


def _of_linear_attention(choice: Choice, shapes: Mapping[str, tuple[int, ...]], written: str | None) -> Offset:
    """PyTorch stores a convolution as (channels, 1, width), MLX as (channels, width, 1)."""
    convolutions = [shape for name, shape in shapes.items() if len(shape) == 3 and name.endswith(_CONVOLUTION)]
    layouts = {(shape[1] == 1, shape[2] == 1) for shape in convolutions}
    if layouts == {(True, False)}:
        return Offset(1.0, True, f"as every {choice.family.name} does; its convolutions have PyTorch's layout")
    if layouts == {(False, True)}:
        return Offset(0.0, True, "a conversion by MLX: its convolutions have that layout")
    if written == "mlx":
        return Offset(0.0, True, "a conversion by MLX, as the file's metadata say", by_format=True)
    return Offset(1.0, True, f"as every {choice.family.name} does")


def check_values(offset: Offset, roles: Iterable[RoleVectors], *, where: str) -> Offset:
    """Hold the decision against the stored values where nothing stronger tells; RoleError where they contradict it."""
    if offset.decided and not offset.by_format:
        return offset
    negative = [one.stored.astype(np.float32).ravel() < 0 for one in roles if not one.role.startswith("other")]
    share = float(np.concatenate(negative).mean()) if negative else 0.0
    if share < _MANY:
        return offset
    if offset.decided:
        raise RoleError(
            f"Reading {where}: its metadata say that MLX wrote it, so the 1 should be added to gamma already, but "
            f"{share:.0%} of the stored values are negative. Which holds cannot be told; name the checkpoint that it "
            f"was made from."
        )
    reason = f"{offset.reason}; {share:.0%} of the values are negative, which speaks for it"
    return replace(offset, reason=reason, likely=1.0)
