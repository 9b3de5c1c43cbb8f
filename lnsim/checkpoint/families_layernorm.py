"""This module holds the tables of LayerNorm decoders and hybrids. How to read and add a line: see ``families.py``.

Source of each table: the module of that name in transformers 5.24, traced on tiny random models
(``tools/trace_roles.py``, ``tests/data/roles``), or the repo or project named beside it.
"""

from __future__ import annotations

from lnsim.checkpoint.families import Config, Family, family, stack
from lnsim.checkpoint.families_blocks import LAYER_NORM, MIXED_PRE_NORM, NOT_ONE_PLACE, PRE_NORM
from lnsim.checkpoint.layer_kinds import (
    bamba_kinds,
    hybrid_pattern,
    is_false,
    jamba_kinds,
    layer_types,
    zamba_kinds,
)

__all__ = ["LN_DECODERS"]

SHARED_NORM = """
    h.*.input_layernorm  pre_attention shared
    ln_f                 final
    """
GPT2_BLOCK = """
    h.*.ln_1           pre_attention
    h.*.ln_2           pre_mlp
    h.*.ln_cross_attn  pre_cross_attention if=add_cross_attention
    ln_f               final
    """
MAMBA_PRE_NORM = """
    layers.*.input_layernorm   pre_attention in=attention
    layers.*.input_layernorm   pre_mixer in=mixer
    layers.*.pre_ff_layernorm  pre_mlp
    final_layernorm            final
    """
MAMBA_ROOTS = ("backbone.", "model.", "", "model.backbone.")  # the last: Codestral's consolidated file
OPT_ROOTS = ("model.decoder.", "decoder.", "language_model.model.decoder.")  # the last: BLIP-2

# LayerNorm instead of RMSNorm.
LAYER_NORMS: tuple[Family, ...] = (
    # orion: vllm's orion.py; stablelm_epoch: StabilityAI's modeling_stablelm_epoch.py as PKU-YuanGroup/MoE-LLaVA has it
    family("phimoe", "phimoe starcoder2 jais2 orion stablelm_epoch", stack("text", PRE_NORM, **LAYER_NORM)),
    family("stablelm-parallel", "stablelm", stack("text", """
        layers.*.input_layernorm                pre_attention shared
        layers.*.self_attn.q_layernorm.norms.#  q_norm if=qk_layernorm
        layers.*.self_attn.k_layernorm.norms.#  k_norm if=qk_layernorm
        norm                                    final
        """, norm="layernorm", bias=True), when=lambda c: c.get("use_parallel_residual") is True),
    family("stablelm", "stablelm", stack("text", PRE_NORM + """
        layers.*.self_attn.q_layernorm.norms.#  q_norm if=qk_layernorm
        layers.*.self_attn.k_layernorm.norms.#  k_norm if=qk_layernorm
        """, norm="layernorm", bias=True)),
    family("cohere", "cohere cohere2 cohere2_moe", stack("text", """
        layers.*.input_layernorm   pre_attention shared
        layers.*.self_attn.q_norm  q_norm if=use_qk_norm
        layers.*.self_attn.k_norm  k_norm if=use_qk_norm
        norm                       final
        """, norm="layernorm")),
    family("nemotron", "nemotron", stack("text", PRE_NORM, offset=1.0, **LAYER_NORM)),
    family("persimmon", "persimmon fuyu", stack("text", """
        layers.*.input_layernorm           pre_attention
        layers.*.post_attention_layernorm  pre_mlp
        layers.*.self_attn.q_layernorm     q_norm if=qk_layernorm
        layers.*.self_attn.k_layernorm     k_norm if=qk_layernorm
        final_layernorm                    final
        """, **LAYER_NORM)),
    family("phi", "phi", stack("text", """
        layers.*.input_layernorm        pre_attention shared
        layers.*.self_attn.q_layernorm  q_norm if=qk_layernorm
        layers.*.self_attn.k_layernorm  k_norm if=qk_layernorm
        final_layernorm                 final
        """, **LAYER_NORM)),
    # phi-msft: repo microsoft/phi-1_5 at its first commits, and llama.cpp's tensor_mapping.py
    family("phi-msft", "phi-msft", stack("text", """
        h.*.ln       pre_attention shared
        /lm_head.ln  final
        """, **LAYER_NORM)),
    # jais: vllm's jais.py
    family("gpt2", "gpt2 gpt-sw3 gpt_bigcode gpt_neo jais", stack("text", GPT2_BLOCK, **LAYER_NORM)),
    family("gptj", "gptj codegen", stack("text", """
        h.*.ln_1  pre_attention shared
        ln_f      final
        """, **LAYER_NORM)),
    family("openai-gpt", "openai-gpt", stack("text", """
        h.*.ln_1  post_attention
        h.*.ln_2  post_mlp
        """, **LAYER_NORM)),
    family("gpt_neox", "gpt_neox gpt_neox_japanese", stack("text", """
        layers.*.input_layernorm           pre_attention
        layers.*.post_attention_layernorm  pre_mlp
        final_layer_norm                   final
        """, roots=("gpt_neox.", "gpt_neox_japanese.", ""), **LAYER_NORM)),
    family("bloom-residual", "bloom", when=lambda c: c.get("apply_residual_connection_post_layernorm") is True,
        note=NOT_ONE_PLACE),
    family("bloom", "bloom", stack("text", """
        word_embeddings_layernorm          embedding
        h.*.input_layernorm                pre_attention
        h.*.post_attention_layernorm       pre_mlp
        ln_f                               final
        """, **LAYER_NORM)),
    # Falcon's first names: text-generation-inference's flash_rw_modeling.py, and vllm's falcon.py. A RefinedWebModel
    # whose config leaves `parallel_attn` out has no table: the sources differ in what that means
    family("falcon-two-norms", "falcon RefinedWeb", stack("text", """
        h.*.ln_attn  pre_attention
        h.*.ln_mlp   pre_mlp
        ln_f         final
        """, **LAYER_NORM), when=lambda c: _falcon_norms(c) == "two"),
    family("falcon-serial", "falcon RefinedWebModel", stack("text", """
        h.*.input_layernorm           pre_attention
        h.*.post_attention_layernorm  pre_mlp
        ln_f                          final
        """, **LAYER_NORM), when=lambda c: _falcon_norms(c) == "serial"),
    family("falcon-first", "RefinedWebModel", stack("text", SHARED_NORM, **LAYER_NORM),
        when=lambda c: c.get("parallel_attn") is True),
    family("falcon", "falcon", stack("text", SHARED_NORM, **LAYER_NORM)),
    family("opt-post", "opt", stack("text", """
        layers.*.self_attn_layer_norm  post_attention
        layers.*.final_layer_norm      post_mlp
        """, roots=OPT_ROOTS, **LAYER_NORM), by_name=False,
        when=lambda c: is_false(c, "do_layer_norm_before")),
    family("opt", "opt", stack("text", """
        layers.*.self_attn_layer_norm  pre_attention
        layers.*.final_layer_norm      pre_mlp
        final_layer_norm               final
        """, roots=OPT_ROOTS, **LAYER_NORM), by_name=False),
    family("biogpt", "biogpt xglm", stack("text", """
        layers.*.self_attn_layer_norm     pre_attention
        layers.*.encoder_attn_layer_norm  pre_cross_attention if=add_cross_attention
        layers.*.final_layer_norm         pre_mlp
        layer_norm                        final
        """, roots=("biogpt.", "model.", ""), **LAYER_NORM)),
    family("mpt", "mpt", stack("text", """
        blocks.*.norm_1  pre_attention
        blocks.*.norm_2  pre_mlp
        norm_f           final
        """, norm="layernorm", bias=None)),
    family("dbrx", "dbrx", stack("text", """
        blocks.*.norm_attn_norm.norm_1  pre_attention
        blocks.*.norm_attn_norm.norm_2  pre_mlp
        norm_f                          final
        """, norm="layernorm")),
    family("ctrl", "ctrl", stack("text", """
        h.*.layernorm1  pre_attention
        h.*.layernorm2  pre_mlp
        layernorm       final
        """, **LAYER_NORM)),
    family("modernbert-decoder", "modernbert-decoder", stack("text", """
        embeddings.norm     embedding
        layers.*.attn_norm  pre_attention
        layers.*.mlp_norm   pre_mlp
        final_norm          final
        """, norm="layernorm")),
)  # fmt: skip


# Some or all layers mix tokens with a convolution, a state space or a linear recurrence.
MAMBA = """
    layers.*.norm        pre_mixer in=mixer
    layers.*.mixer.norm  other
    norm_f               final
    """
HYBRIDS: tuple[Family, ...] = (
    family("lfm2", "lfm2 lfm2_moe", stack("text", """
        layers.*.operator_norm          pre_attention in=attention
        layers.*.operator_norm          pre_mixer in=mixer
        layers.*.ffn_norm               pre_mlp
        layers.*.self_attn.q_layernorm  q_norm in=attention
        layers.*.self_attn.k_layernorm  k_norm in=attention
        embedding_norm                  final
        """, kinds=layer_types, marks="conv=mixer self_attn=attention")),
    family("granitemoehybrid", "granitemoehybrid", stack("text", MIXED_PRE_NORM + """
        layers.*.mamba.norm                 other
        """, kinds=layer_types, marks="mamba=mixer self_attn=attention")),
    family("bamba", "bamba", stack("text", MAMBA_PRE_NORM + """
        layers.*.mamba.norm        other
        """, kinds=bamba_kinds, marks="mamba=mixer self_attn=attention")),
    family("jamba", "jamba", stack("text", MAMBA_PRE_NORM + """
        layers.*.mamba.b_layernorm  other
        layers.*.mamba.c_layernorm  other
        layers.*.mamba.dt_layernorm other
        """, kinds=jamba_kinds, marks="mamba=mixer self_attn=attention")),
    family("falcon_h1", "falcon_h1", stack("text", """
        layers.*.input_layernorm   pre_attention
        layers.*.pre_ff_layernorm  pre_mlp
        layers.*.mamba.norm        other
        final_layernorm            final
        """), by_name=False,
        note="In each block one norm feeds attention and a Mamba mixer side by side; it is pre_attention."),
    # the norm between the shared block's attention and its MLP has no residual stream beside it: other, as traced
    family("zamba2", "zamba2", stack("text", """
        layers.*.input_layernorm                      pre_mixer in=mixer
        layers.*.mamba_decoder.input_layernorm        pre_mixer in=hybrid
        layers.*.shared_transformer.input_layernorm   pre_attention in=hybrid free=hybrid
        layers.*.shared_transformer.pre_ff_layernorm  other
        layers.*.mamba.norm                           other
        layers.*.mamba_decoder.mamba.norm             other
        final_layernorm                               final
        """, kinds=zamba_kinds, marks="mamba=mixer mamba_decoder=hybrid"),
        note="The hybrid layers share one or a few blocks of attention, stored with the first layer that has each."),
    family("zamba", "zamba", stack("text", """
        layers.*.input_layernorm                  pre_mixer in=mixer
        layers.*.mamba_decoder.input_layernorm    pre_mixer in=hybrid
        layers.*.shared_transf.input_layernorm    pre_attention in=hybrid free=hybrid
        layers.*.shared_transf.pre_ff_layernorm   other
        final_layernorm                           final
        """, kinds=zamba_kinds, marks="mamba=mixer mamba_decoder=hybrid"),
        note="The hybrid layers share one block of attention, stored with the first of them."),
    family("mamba", "mamba mamba2 falcon_mamba", stack("text", MAMBA.replace(" in=mixer", ""), roots=MAMBA_ROOTS),
        by_name=False),
    family("mamba-by-name", "", stack("text", MAMBA, roots=MAMBA_ROOTS, marks="mixer.A_log=mixer")),
    family("nemotron_h", "nemotron_h", stack("text", MAMBA + """
        layers.*.norm        pre_attention in=attention
        layers.*.norm        pre_mlp in=mlp|moe
        """, roots=MAMBA_ROOTS, kinds=hybrid_pattern,
        marks="mixer.A_log=mixer mixer.q_proj=attention mixer.up_proj=mlp mixer.gate=moe")),
    # rwkv: transformers' modeling_rwkv.py, whose time mixing the trace takes apart; rwkv-native: the names that repo
    # BlinkDL/RWKV-LM writes, whose `ln0` its convert_rwkv_checkpoint_to_hf.py renames `pre_ln`
    family("rwkv", "rwkv", stack("text", """
        blocks.0.pre_ln  embedding
        blocks.*.ln1     pre_mixer
        blocks.*.ln2     pre_mlp
        ln_out           final
        """, roots=("rwkv.", ""), **LAYER_NORM)),
    family("rwkv-native", "", stack("text", """
        blocks.0.ln0      embedding
        blocks.*.ln1      pre_mixer
        blocks.*.ln2      pre_mlp
        blocks.*.att.ln_x other
        ln_out            final
        """, **LAYER_NORM), native="rwkv"),
)  # fmt: skip


def _falcon_norms(config: Config) -> str:
    """How many norms a Falcon block has: ``two``, ``serial`` (two, one after the other) or ``one``."""
    new = config.get("new_decoder_architecture") is True or config.get("model_type") == "RefinedWeb"
    number = config.get("num_ln_in_parallel_attn")
    if new and (number is None or number == 2):
        return "two"
    return "serial" if not new and is_false(config, "parallel_attn") else "one"


LN_DECODERS: tuple[Family, ...] = (*LAYER_NORMS, *HYBRIDS)
