"""This module holds the tables of vision and audio towers. How to read and add a line: see ``families.py``.

Source of each table: the module of that name in transformers 5.24, traced on tiny random models
(``tools/trace_roles.py``, ``tests/data/roles``).
"""

from __future__ import annotations

from lnsim.checkpoint.families import Family, family, stack
from lnsim.checkpoint.families_blocks import LAYER_NORM

__all__ = ["MEDIA"]

# Alone, in a two-tower model, or beside a text decoder; with and without `vision_model.`
VISION_ROOTS = (
    "", "vision_model.", "vision_tower.", "vision_tower.vision_model.", "model.vision_tower.", "model.vision_model.",
    "model.vision_tower.vision_model.", "model.vision_encoder.",
    "vit.", "deit.", "beit.", "dinov2.", "dinov2_with_registers.", "ijepa.",
    "dpt.", "yolos.", "vit_msn.", "data2vec_vision.", "vision_encoder.",
)  # fmt: skip
AUDIO_ROOTS = (
    "", "audio_tower.", "model.audio_tower.", "wav2vec2.", "hubert.", "wavlm.", "sew.", "unispeech.", "unispeech_sat.",
    "data2vec_audio.", "audio_spectrogram_transformer.",
)  # fmt: skip
CLIP_VISION = """
    pre_layrnorm                 embedding optional
    encoder.layers.*.layer_norm1 pre_attention
    encoder.layers.*.layer_norm2 pre_mlp
    post_layernorm               final
    head.layernorm               other
    """
CLIP_TEXT = """
    encoder.layers.*.layer_norm1 pre_attention
    encoder.layers.*.layer_norm2 pre_mlp
    final_layer_norm             final
    """
VIT = """
    encoder.layer.*.layernorm_before  pre_attention
    encoder.layer.*.layernorm_after   pre_mlp
    layernorm                         final
    pooler.layernorm                  other
    """

VISION: tuple[Family, ...] = (
    family("clip", "clip siglip siglip2 clipseg metaclip_2",
        stack("text", CLIP_TEXT, roots=("text_model.",), **LAYER_NORM),
        stack("vision", CLIP_VISION, roots=("vision_model.",), **LAYER_NORM)),
    family("clip_text", "clip_text_model siglip_text_model siglip2_text_model",
        stack("text", CLIP_TEXT, roots=("", "text_model."), **LAYER_NORM)),
    family("clip_vision", "clip_vision_model siglip_vision_model siglip2_vision_model mlcd mlcd_vision_model "
        "chinese_clip_vision_model idefics3_vision smolvlm_vision",
        stack("vision", CLIP_VISION, roots=VISION_ROOTS, **LAYER_NORM)),
    # openai/CLIP's clip/model.py, and mlfoundations/open_clip's transformer.py
    family("open-clip", "",
        stack("text", """
            transformer.resblocks.*.ln_1  pre_attention
            transformer.resblocks.*.ln_2  pre_mlp
            ln_final                      final
            """, roots=("", "text."), **LAYER_NORM),
        stack("vision", """
            ln_pre                        embedding
            transformer.resblocks.*.ln_1  pre_attention
            transformer.resblocks.*.ln_2  pre_mlp
            ln_post                       final
            """, roots=("visual.",), **LAYER_NORM), native="clip"),
    family("vit", "vit vit_mae vit_msn deit ijepa dpt yolos",
        stack("vision", VIT, roots=VISION_ROOTS, **LAYER_NORM), by_name=False),
    family("beit", "beit data2vec-vision internvl_vision", stack("vision",
        VIT.replace("final", "final optional"), roots=VISION_ROOTS, **LAYER_NORM), by_name=False),
    family("dinov2", "dinov2 dinov2_with_registers", stack("vision", """
        encoder.layer.*.norm1  pre_attention
        encoder.layer.*.norm2  pre_mlp
        layernorm              final
        """, roots=VISION_ROOTS, **LAYER_NORM), by_name=False),
    family("dinov3", "dinov3_vit", stack("vision", """
        layer.*.norm1  pre_attention
        layer.*.norm2  pre_mlp
        norm           final
        """, roots=VISION_ROOTS, **LAYER_NORM), by_name=False),
    family("pixtral", "pixtral", stack("vision", """
        ln_pre                               embedding
        transformer.layers.*.attention_norm  pre_attention
        transformer.layers.*.ffn_norm        pre_mlp
        """, roots=VISION_ROOTS), by_name=False),
)  # fmt: skip

AUDIO: tuple[Family, ...] = (
    family("wav2vec2-stable", "wav2vec2 hubert unispeech unispeech-sat wavlm", stack("audio", """
        encoder.layers.*.layer_norm        pre_attention
        encoder.layers.*.final_layer_norm  pre_mlp
        encoder.layer_norm                 final
        feature_projection.layer_norm      other
        """, roots=AUDIO_ROOTS, **LAYER_NORM), when=lambda c: c.get("do_stable_layer_norm") is True, by_name=False),
    family("wav2vec2", "wav2vec2 hubert unispeech unispeech-sat wavlm sew data2vec-audio", stack("audio", """
        encoder.layers.*.layer_norm        post_attention
        encoder.layers.*.final_layer_norm  post_mlp
        encoder.layer_norm                 embedding
        feature_projection.layer_norm      other
        """, roots=AUDIO_ROOTS, **LAYER_NORM), by_name=False),
    family("audio-spectrogram-transformer", "audio-spectrogram-transformer",
        stack("audio", VIT, roots=AUDIO_ROOTS, **LAYER_NORM), by_name=False),
    family("whisper_encoder", "qwen2_audio_encoder voxtral_encoder audioflamingo3_encoder", stack("audio", """
        layers.*.self_attn_layer_norm  pre_attention
        layers.*.final_layer_norm      pre_mlp
        layer_norm                     final
        """, roots=AUDIO_ROOTS, counts=("encoder_layers", "num_hidden_layers"), **LAYER_NORM)),
)  # fmt: skip

MEDIA: tuple[Family, ...] = (*VISION, *AUDIO)
