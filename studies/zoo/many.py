"""This module trains many small models of one design at once, each with weights, batches and a loss of its own.

Every weight of all models is one tensor with the models along its first axis, so a step of a hundred models is one
product of stacked matrices. Nothing is shared between them: losses are summed, so each model's gradient is its own, and
gradients are clipped model by model. The design is that of a small GPT: LayerNorm with bias before attention and before
the MLP, one table for input and output; only how a model is told positions differs (``POSITIONS``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from studies.zoo.models import N_BYTES
from studies.zoo.texts import Text
from studies.zoo.training import DECAY, share_of_rate

__all__ = [
    "BATCH",
    "CONTEXT",
    "HEADS",
    "HIDDEN",
    "LAYERS",
    "POSITIONS",
    "RATE",
    "STEPS",
    "Many",
    "norms_of",
    "train_many",
]

POSITIONS: Mapping[str, str] = {
    "learned": "a table of positions, learned",
    "rotary": "queries and keys turned by their position (Su et al. 2021)",
    "fixed": "fixed sines and cosines added to the tokens (Vaswani et al. 2017)",
}
"""How a model is told the positions of its tokens."""

HIDDEN, LAYERS, HEADS, CONTEXT = 64, 2, 4, 64
BATCH, STEPS, RATE = 4, 600, 4e-3
FIRST_STD = 0.02

Weights = dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class Many:
    """Models that are trained together.

    Args:
        positions: one of POSITIONS.
        seeds: of the first weights, one a model.
        batch_seeds: of the batches, one a model.
    """

    positions: str
    seeds: tuple[int, ...]
    batch_seeds: tuple[int, ...]


def train_many(many: Many, text: Text, steps: int = STEPS) -> tuple[Weights, list[float]]:
    """The weights of all models after training, and each model's loss on held-out bytes, in nats a byte."""
    weights = _first(many)
    optimiser = torch.optim.AdamW(
        [
            {"params": [value for value in weights.values() if value.ndim > 2], "weight_decay": DECAY},
            {"params": [value for value in weights.values() if value.ndim == 2], "weight_decay": 0.0},
        ],
        lr=RATE,
        betas=(0.9, 0.95),
    )
    data = torch.frombuffer(bytearray(text.training), dtype=torch.uint8)
    draws = [np.random.default_rng(seed) for seed in many.batch_seeds]
    for number in range(steps):
        starts = np.stack([draw.integers(len(data) - CONTEXT - 1, size=BATCH) for draw in draws])
        losses = _losses(weights, _rows(data, starts), many.positions)
        losses.sum().backward()
        _clip(weights.values())
        for group in optimiser.param_groups:
            group["lr"] = RATE * share_of_rate(number, steps)
        optimiser.step()
        optimiser.zero_grad()
    return weights, _held_out(weights, many, text)


def norms_of(weights: Mapping[str, torch.Tensor], model: int) -> dict[str, np.ndarray]:
    """γ and β of one model, by the names of this module: ``0.attention.weight``, ..., ``final.bias``."""
    return {
        name: value[model].detach().numpy() for name, value in weights.items() if name.endswith((".weight", ".bias"))
    }


def _first(many: Many) -> Weights:
    """Weights before training, each model's drawn from its own seed."""
    n, wide = len(many.seeds), 4 * HIDDEN
    shapes = {"table": (N_BYTES, HIDDEN)}
    if many.positions == "learned":
        shapes["places"] = (CONTEXT, HIDDEN)
    for layer in range(LAYERS):
        shapes |= {
            f"{layer}.qkv": (HIDDEN, 3 * HIDDEN), f"{layer}.out": (HIDDEN, HIDDEN),
            f"{layer}.up": (HIDDEN, wide), f"{layer}.down": (wide, HIDDEN),
        }  # fmt: skip
    drawn: dict[str, list[torch.Tensor]] = {name: [] for name in shapes}
    for seed in many.seeds:
        generator = torch.Generator().manual_seed(seed)
        for name, shape in shapes.items():
            std = FIRST_STD / math.sqrt(2 * LAYERS) if name.endswith(("out", "down")) else FIRST_STD
            if name == "table" and many.positions == "fixed":
                std = HIDDEN**-0.5  # times its root, as long as the sines and cosines that are added
            drawn[name].append(std * torch.randn(shape, generator=generator))
    weights = {name: torch.stack(values) for name, values in drawn.items()}
    norms = [f"{layer}.{place}" for layer in range(LAYERS) for place in ("attention", "mlp")] + ["final"]
    for name in norms:
        weights |= {f"{name}.weight": torch.ones(n, HIDDEN), f"{name}.bias": torch.zeros(n, HIDDEN)}
    return {name: value.requires_grad_() for name, value in weights.items()}


def _losses(weights: Weights, rows: torch.Tensor, positions: str) -> torch.Tensor:
    """Mean loss of each model on its own rows of bytes, shape ``(models, rows, CONTEXT + 1)``."""
    given, following = rows[..., :-1], rows[..., 1:]
    n, batch, length = given.shape
    table = weights["table"]
    x = table[torch.arange(n)[:, None, None], given]
    if positions == "learned":
        x = x + weights["places"][:, None, :length]
    elif positions == "fixed":
        x = math.sqrt(HIDDEN) * x + _sines(length)
    x = x.reshape(n, batch * length, HIDDEN)
    for layer in range(LAYERS):
        qkv = torch.bmm(_normed(x, weights, f"{layer}.attention"), weights[f"{layer}.qkv"])
        q, k, v = qkv.reshape(n * batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if positions == "rotary":
            q, k = _turned(q), _turned(k)
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + torch.bmm(seen.transpose(1, 2).reshape(n, batch * length, HIDDEN), weights[f"{layer}.out"])
        up = torch.bmm(_normed(x, weights, f"{layer}.mlp"), weights[f"{layer}.up"])
        x = x + torch.bmm(functional.gelu(up), weights[f"{layer}.down"])
    logits = torch.bmm(_normed(x, weights, "final"), table.transpose(1, 2))
    each = functional.cross_entropy(logits.reshape(-1, N_BYTES), following.reshape(-1), reduction="none")
    return each.reshape(n, -1).mean(dim=1)


def _normed(x: torch.Tensor, weights: Weights, name: str) -> torch.Tensor:
    return functional.layer_norm(x, (HIDDEN,)) * weights[f"{name}.weight"][:, None] + weights[f"{name}.bias"][:, None]


def _angles(length: int, n_rates: int) -> torch.Tensor:
    rates = torch.exp(-math.log(10_000) * torch.arange(n_rates) / n_rates)
    return torch.arange(length)[:, None] * rates


def _sines(length: int) -> torch.Tensor:
    """Sines in the first half of the channels, cosines in the second, as fairseq and XGLM have them."""
    angles = _angles(length, HIDDEN // 2)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def _turned(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions (Su et al. 2021), halves of a head turned against each other as in GPT-NeoX."""
    angles = _angles(x.shape[-2], x.shape[-1] // 2)
    first, second = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def _clip(weights: Sequence[torch.Tensor], largest: float = 1.0) -> None:
    """Each model's gradient is scaled down to a length of at most ``largest``."""
    gradients = [value.grad for value in weights]
    total = torch.sqrt(sum((gradient.flatten(1) ** 2).sum(dim=1) for gradient in gradients))
    factor = torch.clamp(largest / (total + 1e-6), max=1.0)
    for gradient in gradients:
        gradient.mul_(factor.reshape(-1, *[1] * (gradient.ndim - 1)))


@torch.no_grad()
def _held_out(weights: Weights, many: Many, text: Text, n_rows: int = 64) -> list[float]:
    data = torch.frombuffer(bytearray(text.held_out), dtype=torch.uint8)
    starts = np.linspace(0, len(data) - CONTEXT - 1, n_rows).astype(int)
    parts = [
        _losses(weights, _rows(data, np.tile(part, (len(many.seeds), 1))), many.positions)
        for part in starts.reshape(-1, BATCH)
    ]
    return torch.stack(parts).mean(dim=0).tolist()


def _rows(data: torch.Tensor, starts: np.ndarray) -> torch.Tensor:
    return data[torch.from_numpy(starts)[..., None] + torch.arange(CONTEXT + 1)].long()
