"""This module holds the tables of vision and audio towers. How to read and add a line: see ``families.py``."""

from __future__ import annotations

from lnsim.checkpoint.families import family, stack

__all__ = ["MEDIA"]

MEDIA = (
    family("whisper", "whisper",
        stack("decoder", """
            layers.*.self_attn_layer_norm     pre_attention
            layers.*.encoder_attn_layer_norm  pre_cross_attention
            layers.*.final_layer_norm         pre_mlp
            layer_norm                        final
            """, norm="layernorm", bias=True, roots=("model.decoder.", "decoder."), counts=("decoder_layers",)),
        stack("encoder", """
            layers.*.self_attn_layer_norm     pre_attention
            layers.*.final_layer_norm         pre_mlp
            layer_norm                        final
            """, norm="layernorm", bias=True, roots=("model.encoder.", "encoder."), counts=("encoder_layers",))),
)  # fmt: skip
