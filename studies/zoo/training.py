"""This module trains one network on one text, and measures its loss on held-out bytes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional
from transformers import PreTrainedModel

from studies.zoo.models import N_BYTES, norm_modules
from studies.zoo.recipes import Recipe
from studies.zoo.texts import Text

__all__ = ["DECAY", "held_out_loss", "share_of_rate", "train"]

WARM_UP = 1 / 12
"""Share of the steps in which the rate rises."""

LAST_RATE = 0.1
"""Share of the highest rate that is left at the last step."""

DECAY = 0.1
"""Weight decay of the matrices; norms and biases have none, as is usual."""

EVALUATED = 128
"""Rows of held-out text that a loss is measured on."""

Step = Callable[[int], None]


def train(model: PreTrainedModel, recipe: Recipe, text: Text, teacher: PreTrainedModel | None, step: Step) -> None:
    """Train for the recipe's steps with AdamW and a cosine schedule.

    Args:
        model: changed in place.
        recipe: steps, rate, seed and sizes; the kind ``frozen`` holds the norms fixed.
        text: where batches are drawn from.
        teacher: the model whose probabilities are the goal, or None for the text's next byte.
        step: told the number of each finished step.

    Raises:
        ArithmeticError: when the loss is no number any more.
    """
    norms = [weight for _, norm in norm_modules(model) for weight in norm.parameters()]
    if recipe.kind == "frozen":
        for weight in norms:
            weight.requires_grad_(False)
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    optimiser = torch.optim.AdamW(
        [
            {"params": [weight for weight in learning if weight.ndim > 1], "weight_decay": DECAY},
            {"params": [weight for weight in learning if weight.ndim == 1], "weight_decay": 0.0},
        ],
        lr=recipe.rate,
        betas=(0.9, 0.95),
    )
    model.train()
    data, rng = _tokens(text.training), np.random.default_rng(recipe.seed)
    for number in range(recipe.steps):
        rows = _rows(data, rng.integers(len(data) - recipe.size.context - 1, size=recipe.size.batch), recipe)
        loss = _loss(model, rows, teacher)
        if not math.isfinite(loss.item()):
            raise ArithmeticError(f"Training '{recipe.name}': the loss at step {number} is {loss.item()}.")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate * share_of_rate(number, recipe.steps)
        optimiser.step()
        optimiser.zero_grad()
        step(number + 1)


@torch.no_grad()
def held_out_loss(model: PreTrainedModel, recipe: Recipe, text: Text) -> float:
    """Mean loss in nats a byte on rows spread evenly over the held-out bytes."""
    model.eval()
    data = _tokens(text.held_out)
    starts = np.linspace(0, len(data) - recipe.size.context - 1, EVALUATED).astype(int)
    return float(_loss(model, _rows(data, starts, recipe), None).item())


def _loss(model: PreTrainedModel, rows: torch.Tensor, teacher: PreTrainedModel | None) -> torch.Tensor:
    given, following = rows[:, :-1], rows[:, 1:].reshape(-1)
    logits = model(given).logits.reshape(-1, N_BYTES)
    if teacher is None:
        return functional.cross_entropy(logits, following)
    with torch.no_grad():
        goal = functional.softmax(teacher(given).logits.reshape(-1, N_BYTES), dim=-1)
    return functional.cross_entropy(logits, goal)


def _tokens(data: bytes) -> torch.Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _rows(data: torch.Tensor, starts: np.ndarray, recipe: Recipe) -> torch.Tensor:
    return torch.stack([data[start : start + recipe.size.context + 1] for start in starts.tolist()]).long()


def share_of_rate(number: int, steps: int) -> float:
    """What the learning rate is at a step, as a share of the highest: a warm-up, then half a cosine."""
    rising = min(1.0, (number + 1) / max(1.0, WARM_UP * steps))
    falling = 0.5 * (1 + math.cos(math.pi * number / steps))
    return rising * (LAST_RATE + (1 - LAST_RATE) * falling)
