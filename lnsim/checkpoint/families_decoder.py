"""This module holds the tables of the text decoders. How to read and add a line: see ``families.py``."""

from __future__ import annotations

from lnsim.checkpoint.families import family, stack

__all__ = ["DECODERS"]

PRE_NORM = """
    layers.*.input_layernorm            pre_attention
    layers.*.post_attention_layernorm   pre_mlp
    layers.*.self_attn.q_norm           q_norm optional
    layers.*.self_attn.k_norm           k_norm optional
    norm                                final
    """

DECODERS = (
    family("llama", "llama mistral mixtral yi qwen2 qwen2_moe qwen3 qwen3_moe", stack("text", PRE_NORM)),
    family("gpt2", "gpt2", stack("text", """
        h.*.ln_1    pre_attention
        h.*.ln_2    pre_mlp
        h.*.ln_cross_attn  pre_cross_attention optional
        ln_f        final
        """, norm="layernorm", bias=True)),
)  # fmt: skip
