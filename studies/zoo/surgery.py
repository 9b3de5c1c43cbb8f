"""This module makes models from models without training: renumbered, rescaled, folded, cut, doubled, rounded, merged.

And disguised: units or heads in another order, random signs, the residual basis rotated, all of it the same function.

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

__all__ = [
    "DISGUISES", "SURGERIES", "channels_signed", "doubled", "folded", "halved", "heads_permuted", "merged", "permuted",
    "rescaled", "rotated", "rounded", "units_permuted", "values_signed",
]  # fmt: skip

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

_INSIDE = {
    "llama": {
        "units": (("mlp.gate_proj.weight", 0), ("mlp.up_proj.weight", 0), ("mlp.down_proj.weight", 1)),
        "heads": (*((f"self_attn.{name}_proj.weight", 0) for name in "qkv"), ("self_attn.o_proj.weight", 1)),
        "values": (("self_attn.v_proj.weight", 0), ("self_attn.o_proj.weight", 1)),
    },
    "gpt2": {
        "units": (("mlp.c_fc.weight", 1), ("mlp.c_fc.bias", 0), ("mlp.c_proj.weight", 0)),
        "heads": (("attn.c_attn.weight", 1), ("attn.c_attn.bias", 0), ("attn.c_proj.weight", 0)),
        "values": (("attn.c_attn.weight", 1), ("attn.c_attn.bias", 0), ("attn.c_proj.weight", 0)),
    },
}
"""By what lies inside a block, the weights along whose axis it lies; that of the last one has it once."""


def permuted(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """The weights with the hidden channels in another order."""
    order = torch.randperm(recipe.size.hidden, generator=_generator(recipe))
    weights = _weights(model)
    for name, axis in _channel_axes(model, recipe).items():
        weights[name] = weights[name].index_select(axis, order)
    return weights


def channels_signed(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """The weights with the hidden channels of random sign; γ stays as it is.

    LayerNorm takes out the mean over the channels, which knows one sign only: a GPT-2 gets that of all its channels.
    """
    signs = _signs(recipe.size.hidden, _generator(recipe))
    if recipe.architecture == "gpt2":
        signs = -torch.ones_like(signs)
    weights = _weights(model)
    for name, axis in _channel_axes(model, recipe).items():
        if not (_is_norm(name) and name.endswith("weight")):
            weights[name] = weights[name] * _along(signs, axis, weights[name])
    return weights


def rotated(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """The weights of a Llama in another orthogonal basis of the residual stream, every γ worked in; ValueError else.

    A LayerNorm takes out the mean over the channels, which no rotation keeps.
    """
    if recipe.architecture != "llama":
        raise ValueError(f"Recipe '{recipe.name}': only an RMSNorm can be rotated, not one of a {recipe.architecture}.")
    turn = torch.linalg.qr(torch.randn(2 * (recipe.size.hidden,), generator=_generator(recipe), dtype=torch.float64))[0]
    weights = folded(model, recipe)
    weights["lm_head.weight"] = weights["lm_head.weight"] * weights["model.norm.weight"]
    weights["model.norm.weight"] = torch.ones_like(weights["model.norm.weight"])
    for name, axis in _channel_axes(model, recipe).items():
        if not _is_norm(name):
            value = weights[name].double()
            weights[name] = (value @ turn if axis else turn.T @ value).float()
    return weights


def units_permuted(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """The weights with the units of every MLP in another order."""
    return _inside(model, recipe, "units", lambda n, generator: (torch.randperm(n, generator=generator), torch.ones(n)))


def heads_permuted(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """The weights with the heads of every attention in another order."""

    def drawn(n: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        order = torch.randperm(recipe.size.heads, generator=generator)
        return torch.arange(n).reshape(recipe.size.heads, -1)[order].ravel(), torch.ones(n)

    return _inside(model, recipe, "heads", drawn)


def values_signed(model: PreTrainedModel, recipe: Recipe) -> Weights:
    """The weights with the value dimensions of every head of random sign."""
    return _inside(model, recipe, "values", lambda n, generator: (torch.arange(n), _signs(n, generator)))


def _inside(
    model: PreTrainedModel,
    recipe: Recipe,
    part: str,
    drawn: Callable[[int, torch.Generator], tuple[torch.Tensor, torch.Tensor]],
) -> Weights:
    """The weights with what lies inside each block in an order, and of signs, that are drawn block by block."""
    weights, generator = _weights(model), _generator(recipe)
    for block in _blocks(recipe, model):
        *_, (last, last_axis) = _INSIDE[recipe.architecture][part]
        order, signs = drawn(weights[f"{block}.{last}"].shape[last_axis], generator)
        for name, axis in _INSIDE[recipe.architecture][part]:
            pieces = list(weights[f"{block}.{name}"].split(len(order), axis))  # GPT-2 has queries, keys, values in one
            for place in range(len(pieces) - 1 if part == "values" else 0, len(pieces)):
                pieces[place] = pieces[place].index_select(axis, order) * _along(signs, axis, pieces[place])
            weights[f"{block}.{name}"] = torch.cat(pieces, axis)
    return weights


def _channel_axes(model: PreTrainedModel, recipe: Recipe) -> dict[str, int]:
    """By the name of every weight that has the hidden channels along an axis, which one."""
    readers = {name for _, names in _norms_with_readers(recipe, model) for name in names}
    out_in, found = recipe.architecture == "llama", {}
    for name, value in _weights(model).items():
        if name.endswith(_TABLES) or name in readers:
            found[name] = 1 if name.endswith(_TABLES) or out_in else 0
        elif _is_norm(name) or name.endswith(_WRITERS):
            found[name] = 0 if out_in or value.ndim == 1 else 1
    return found


def _signs(n: int, generator: torch.Generator) -> torch.Tensor:
    return 2.0 * torch.randint(0, 2, (n,), generator=generator) - 1


def _along(signs: torch.Tensor, axis: int, value: torch.Tensor) -> torch.Tensor:
    return signs.reshape([-1 if place == axis else 1 for place in range(value.ndim)])


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
    return [
        (f"{block}.{norm}", [f"{block}.{reader}.weight" for reader in readers])
        for block in _blocks(recipe, model)
        for norm, readers in _READERS[recipe.architecture].items()
    ]


def _blocks(recipe: Recipe, model: PreTrainedModel) -> list[str]:
    stack = "model.layers" if recipe.architecture == "llama" else "transformer.h"
    return [f"{stack}.{layer}" for layer in range(int(model.config.num_hidden_layers))]


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

DISGUISES: dict[str, Callable[[PreTrainedModel, Recipe], Weights]] = {
    "channels permuted": permuted,
    "channels of random sign": channels_signed,
    "values of random sign": values_signed,
    "heads permuted": heads_permuted,
    "units permuted": units_permuted,
    "γ folded": folded,
    "rotated": rotated,
}
"""Changes that leave the function as it is; ``rotated`` is for Llamas alone."""
