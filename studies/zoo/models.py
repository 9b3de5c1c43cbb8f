"""This module builds the zoo's networks with transformers' own classes, and finds the norms in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from studies.zoo.recipes import Recipe, Size

__all__ = ["N_BYTES", "blank_model", "initial_model", "load_model", "norm_modules", "reset_norms"]

N_BYTES = 256
"""A token is a byte."""


def blank_model(architecture: str, size: Size, n_layers: int | None = None) -> PreTrainedModel:
    """A network with transformers' random weights; seed torch before."""
    layers = size.layers if n_layers is None else n_layers
    if architecture == "llama":
        return LlamaForCausalLM(
            LlamaConfig(
                vocab_size=N_BYTES,
                hidden_size=size.hidden,
                intermediate_size=size.mlp,
                num_hidden_layers=layers,
                num_attention_heads=size.heads,
                max_position_embeddings=size.context,
                bos_token_id=None,
                eos_token_id=None,
            )
        )
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=N_BYTES,
            n_embd=size.hidden,
            n_layer=layers,
            n_head=size.heads,
            n_inner=size.mlp * 3 // 2,
            n_positions=size.context,
            resid_pdrop=0.0,
            embd_pdrop=0.0,
            attn_pdrop=0.0,
            bos_token_id=None,
            eos_token_id=None,
        )
    )


def initial_model(recipe: Recipe) -> PreTrainedModel:
    """The network a recipe without parents' weights begins with."""
    torch.manual_seed(recipe.seed)
    model = blank_model(recipe.architecture, recipe.size)
    reset_norms(model, recipe.gamma)
    return model


def load_model(folder: Path) -> PreTrainedModel:
    """A finished model of the zoo, in float32."""
    config = (folder / "config.json").read_text()
    kind = LlamaForCausalLM if '"LlamaForCausalLM"' in config else GPT2LMHeadModel
    return kind.from_pretrained(folder, dtype=torch.float32, local_files_only=True)


def norm_modules(model: PreTrainedModel) -> Iterator[tuple[str, nn.Module]]:
    """Every norm of a network, with its name."""
    for name, module in model.named_modules():
        if type(module).__name__ in ("LlamaRMSNorm", "LayerNorm"):
            yield name, module


@torch.no_grad()
def reset_norms(model: PreTrainedModel, gamma: str) -> None:
    """Set γ of every norm to its first value (see ``GAMMA_INITS``) and β to zero; draws come from torch's state."""
    for _, norm in norm_modules(model):
        weight = norm.weight
        drawn = torch.randn(weight.shape)
        value = {
            "ones": torch.ones_like(weight),
            "normal": drawn,
            "near_one": 1 + 0.1 * drawn,
            "absolute": drawn.abs(),
            "two": torch.full_like(weight, 2.0),
        }[gamma]
        weight.copy_(value)
        if getattr(norm, "bias", None) is not None:
            norm.bias.zero_()
