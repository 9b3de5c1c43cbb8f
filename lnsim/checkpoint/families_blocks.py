"""This module holds the lines that many families share, and one reason why a family has no table."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BAILING_MTP",
    "BAILING_QK",
    "HUNYUAN_QK",
    "LATENTS",
    "LAYER_NORM",
    "MIXED_PRE_NORM",
    "MTP_BLOCK",
    "NOT_ONE_PLACE",
    "PRE_NORM",
    "QK_IF_TOLD",
    "QK_NORM",
    "SANDWICH",
]

PRE_NORM = """
    layers.*.input_layernorm            pre_attention
    layers.*.post_attention_layernorm   pre_mlp
    norm                                final
    """
MIXED_PRE_NORM = """
    layers.*.input_layernorm            pre_attention in=attention|mtp
    layers.*.input_layernorm            pre_mixer in=mixer
    layers.*.post_attention_layernorm   pre_mlp
    norm                                final
    """
QK_NORM = """
    layers.*.self_attn.q_norm           q_norm
    layers.*.self_attn.k_norm           k_norm
    """
QK_IF_TOLD = """
    layers.*.self_attn.q_norm           q_norm if=use_qk_norm
    layers.*.self_attn.k_norm           k_norm if=use_qk_norm
    """
HUNYUAN_QK = """
    layers.*.self_attn.query_layernorm  q_norm
    layers.*.self_attn.key_layernorm    k_norm
    """
BAILING_QK = """
    layers.*.attention.query_layernorm  q_norm if=use_qk_norm
    layers.*.attention.key_layernorm    k_norm if=use_qk_norm
    """
LATENTS = """
    layers.*.self_attn.q_a_layernorm    other
    layers.*.self_attn.kv_a_layernorm   other
    """
MTP_BLOCK = """
    layers.*.enorm                      other in=mtp
    layers.*.hnorm                      other in=mtp
    layers.*.shared_head.norm           final in=mtp
    """
BAILING_MTP = """
    layers.*.enorm                      other in=mtp
    layers.*.hnorm                      other in=mtp
    layers.*.final_layernorm            final in=mtp
    """
SANDWICH = """
    layers.*.input_layernorm            pre_attention
    layers.*.post_attention_layernorm   post_attention
    layers.*.pre_feedforward_layernorm  pre_mlp
    layers.*.post_feedforward_layernorm post_mlp
    norm                                final
    """

LAYER_NORM: dict[str, Any] = {"norm": "layernorm", "bias": True}
NOT_ONE_PLACE = (
    "Its residual stream is taken after the norm, so that each norm stands after one sublayer and before the next at "
    "once; no single role is right"
)
