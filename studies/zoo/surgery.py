"""This module makes models from models without training: renumbered, rescaled, folded, cut, doubled, rounded, merged.

A norm multiplies channel c of what it normalises by γ_c (and adds β_c); the matrices behind it read channel c. So a
factor of γ_c can be taken back by the columns that read c, and a renumbering of the channels by renumbering whatever
reads or writes them: the model computes the same as before. Llama's matrices are stored (out, in), GPT-2's (in, out).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from transformers import PreTrainedModel

from studies.zoo.models import blank_model
from studies.zoo.recipes import Recipe

__all__ = ["SURGERIES", "doubled", "folded", "halved", "merged", "permuted", "rescaled", "rounded"]

Weights = dict[str, torch.Tensor]

_READERS = {
    "llama": {
        "input_layernorm": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        "post_attention_layernorm": ("mlp.gate_proj", "mlp.up_proj"),
    },
    "gpt2": {"ln_1": ("attn.c_attn",), "ln_2": ("mlp.c_fc",)},
}
"""By norm of a block, the matrices that read what it gives out."""

_WRITERS = ("o_proj.weight", "down_proj.weight", "c_proj.weight", "c_proj.bias")
"""Ends of the names of all that writes into the hidden channels."""

_TABLES = ("embed_tokens.weight", "wte.weight", "wpe.weight", "lm_head.weight")
"""Ends of the names of the tables, one row a token or position, one column a channel."""


def permuted(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """The weights with the hidden channels in another order."""
    order = torch.randperm(recipe.size.hidden, generator=_generator(recipe))
    weights = _weights(model)
    readers = {name for _, names in _norms_with_readers(recipe, model) for name in names}
    for name, value in weights.items():
        if name.endswith(_TABLES) or (name in readers and recipe.architecture == "llama"):
            weights[name] = value[:, order]
        elif value.ndim == 1 and (_is_norm(name) or name.endswith(_WRITERS)):
            weights[name] = value[order]
        elif name in readers:
            weights[name] = value[order, :]
        elif name.endswith(_WRITERS):
            weights[name] = value[order, :] if recipe.architecture == "llama" else value[:, order]
    return weights


def rescaled(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """γ and β of every block's norms times random factors (log-normal, of spread 0.5), the matrices divided by them.

    The final norm stays: GPT-2's output table is its input table as well, and could not be divided.
    """
    generator = _generator(recipe)
    return _with_factors(
        model, recipe, lambda gamma: torch.exp(0.5 * torch.randn(gamma.shape, generator=generator)), "multiply"
    )


def folded(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """γ of every block's norms set to one and β to zero, worked into the matrices and biases behind."""
    weights = _with_factors(model, recipe, lambda gamma: 1 / gamma, "set to one")
    if recipe.architecture == "gpt2":
        for norm, readers in _norms_with_readers(recipe, model):
            beta = weights[f"{norm}.bias"]  # divided by γ already, as the matrices are multiplied by it
            for reader in readers:
                weights[reader.replace("weight", "bias")] += beta @ weights[reader]
            weights[f"{norm}.bias"] = torch.zeros_like(beta)
    return weights


def _with_factors(
    model: PreTrainedModel, recipe: Recipe, factors: Callable[[torch.Tensor], torch.Tensor], how: str
) -> Weights:
    weights = _weights(model)
    for norm, readers in _norms_with_readers(recipe, model):
        gamma = weights[f"{norm}.weight"]
        factor = factors(gamma)
        weights[f"{norm}.weight"] = torch.ones_like(gamma) if how == "set to one" else gamma * factor
        if recipe.architecture == "gpt2":
            weights[f"{norm}.bias"] = weights[f"{norm}.bias"] * factor
        for reader in readers:
            value = weights[reader]
            weights[reader] = value / factor if recipe.architecture == "llama" else value / factor[:, None]
    return weights


def rounded(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """Every weight in BF16."""
    return {name: value.to(torch.bfloat16) for name, value in _weights(model).items()}


def merged(models: Sequence[PreTrainedModel]) -> Weights:
    """The mean of the models' weights."""
    all_weights = [_weights(model) for model in models]
    return {name: torch.stack([weights[name] for weights in all_weights]).mean(0) for name in all_weights[0]}


def doubled(model: PreTrainedModel, recipe: Recipe) -> PreTrainedModel:
    """A network with every layer twice, one after the other."""
    return _restacked(model, recipe, [layer for layer in range(recipe.size.layers) for _ in range(2)])


def halved(model: PreTrainedModel, recipe: Recipe) -> PreTrainedModel:
    """A network with every second layer, the first one kept."""
    return _restacked(model, recipe, list(range(0, recipe.size.layers, 2)))


def _restacked(model: PreTrainedModel, recipe: Recipe, layers: list[int]) -> PreTrainedModel:
    stack = "model.layers" if recipe.architecture == "llama" else "transformer.h"
    weights = _weights(model)
    result = blank_model(recipe.architecture, recipe.size, len(layers))
    kept = {name: value for name, value in weights.items() if not name.startswith(f"{stack}.")}
    for place, layer in enumerate(layers):
        start = f"{stack}.{layer}."
        kept |= {
            f"{stack}.{place}.{name.removeprefix(start)}": value
            for name, value in weights.items()
            if name.startswith(start)
        }
    result.load_state_dict(kept)
    return result


def _norms_with_readers(recipe: Recipe, model: PreTrainedModel) -> list[tuple[str, list[str]]]:
    """Names of the blocks' norms, each with the names of the matrices that read it."""
    stack = "model.layers" if recipe.architecture == "llama" else "transformer.h"
    n_layers = int(model.config.num_hidden_layers)
    return [
        (f"{stack}.{layer}.{norm}", [f"{stack}.{layer}.{reader}.weight" for reader in readers])
        for layer in range(n_layers)
        for norm, readers in _READERS[recipe.architecture].items()
    ]


def _is_norm(name: str) -> bool:
    return any(part in name for part in ("norm.", "ln_1.", "ln_2.", "ln_f."))


def _weights(model: PreTrainedModel) -> Weights:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


def _generator(recipe: Recipe) -> torch.Generator:
    return torch.Generator().manual_seed(recipe.seed)


SURGERIES: dict[str, Callable[[PreTrainedModel, Recipe], Weights]] = {
    "permuted": permuted,
    "rescaled": rescaled,
    "folded": folded,
    "rounded": rounded,
}
"""Kinds that are made from one parent without training."""
