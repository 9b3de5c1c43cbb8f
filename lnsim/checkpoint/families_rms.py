"""This module holds the tables of text decoders with RMSNorm. How to read and add a line: see ``families.py``.

Source of each table: the module of that name in transformers 5.24, traced on tiny random models
(``tools/trace_roles.py``, ``tests/data/roles``), or the repo or project named beside it.
"""

from __future__ import annotations

from lnsim.checkpoint.families import Family, family, stack
from lnsim.checkpoint.families_blocks import (
    BAILING_MTP,
    BAILING_QK,
    HUNYUAN_QK,
    LATENTS,
    MIXED_PRE_NORM,
    MTP_BLOCK,
    NOT_ONE_PLACE,
    PRE_NORM,
    QK_IF_TOLD,
    QK_NORM,
    SANDWICH,
)
from lnsim.checkpoint.layer_kinds import (
    bailing_kinds,
    has,
    is_false,
    kimi_kinds,
    kv_sharing,
    layer_types,
    mllama_kinds,
    qwen_kinds,
    recurrent_kinds,
)

__all__ = ["RMS_DECODERS"]

POST_NORM = """
    layers.*.post_attention_layernorm   post_attention
    layers.*.post_feedforward_layernorm post_mlp
    layers.*.self_attn.q_norm           q_norm
    layers.*.self_attn.k_norm           k_norm
    norm                                final
    """
# the norms in front of the projection: vllm's qwen3_next_mtp.py, which takes the norm of the blocks for them
QWEN_MTP = stack("mtp", PRE_NORM + QK_NORM.replace("_norm\n", "_norm optional\n") + """
    pre_fc_norm_embedding               other
    pre_fc_norm_hidden                  other
    """, offset=1.0, roots=("mtp.",),
    counts=("mtp_num_hidden_layers", "num_nextn_predict_layers"))  # fmt: skip

# Blocks of two RMSNorms in front of attention and MLP.
LLAMA_LIKE: tuple[Family, ...] = (
    # Remote code, by another project's source: baichuan, internlm, aquila, minicpm, deepseek and xverse by vllm's file
    # of that name; skywork by TensorRT-LLM's models/skywork/model.py and examples/skywork/convert_checkpoint.py;
    # phi3_v and phi4mm by vllm's phi3v.py and phi4mm.py (Llama blocks under `model.`). solar_open: transformers, and
    # vllm's solar_open.py: no norms on queries and keys, no multi-token prediction
    family("llama", "llama mistral mixtral qwen2 qwen2_moe qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text "
        "qwen2_5_omni_thinker qwen2_5_omni_text arcee aria_text cwm diffllama emu3 emu3_text_model ernie4_5 "
        "ernie4_5_moe eurobert glm gpt_oss granite granite_swa granitemoe granitemoe_swa granitemoeshared helium "
        "internlm3 iquestcoder jetmoe llama4 llama4_text mimo_v2_flash ministral ministral3 phi3 "
        "phi3_v phi4mm phi4_multimodal seed_oss smollm3 baichuan internlm aquila minicpm deepseek xverse skywork "
        "solar_open granite_docling_text",
        stack("text", PRE_NORM)),
    family("qwen3", "qwen3 qwen3_moe qwen3_vl_text qwen3_vl_moe_text qwen3_vl qwen3_vl_moe exaone_moe flint hy_v3 "
        "laguna mellum minimax_m2 olmoe dots1 qwen3_omni_moe_text", stack("text", PRE_NORM + QK_NORM)),
    # MiMo: vllm's mimo.py and mimo_mtp.py
    family("mimo", "mimo", stack("text", PRE_NORM), stack("mtp", """
        *.input_layernorm           pre_attention
        *.post_attention_layernorm  pre_mlp
        *.token_layernorm           other
        *.hidden_layernorm          other
        *.final_layernorm           final
        """, roots=("model.mtp_layers.",), counts=("num_nextn_predict_layers",))),
    # the multi-token-prediction block, which transformers does not load: vllm's glm4_moe_mtp.py
    family("glm4_moe", "glm4_moe glm4v_moe_text", stack("text", PRE_NORM + QK_IF_TOLD + MTP_BLOCK, mtp=True)),
    # kimi_k2: mlx-lm's utils.py loads it as deepseek_v3
    family("deepseek_v3", "deepseek_v2 deepseek_v3 deepseek_v32 glm4_moe_lite glm_moe_dsa kimi_k2 minicpm3 youtu "
        "sarvam_mla hy_v4 mistral4", stack("text", PRE_NORM + LATENTS + MTP_BLOCK, mtp=True)),
    family("kimi_linear", "kimi_linear", stack("text", MIXED_PRE_NORM + LATENTS + """
        layers.*.self_attn.o_norm  other
        """, kinds=kimi_kinds, marks="self_attn.A_log=mixer self_attn.kv_a_proj_with_mqa=attention")),
    family("kimi_k25", "kimi_k25", stack("text", """
        layers.*.input_layernorm            pre_attention
        layers.*.post_attention_layernorm   pre_mlp
        blocks.*.input_layernorm            pre_attention
        blocks.*.post_attention_layernorm   pre_mlp
        norm                                final
        """ + LATENTS, mtp=True), by_name=False),
    family("hunyuan", "hunyuan_v1_dense hunyuan_v1_moe", stack("text", PRE_NORM + HUNYUAN_QK)),
    # hunyuan: mlx-lm's and sglang's hunyuan.py; its config may also ask for Mamba layers or for another norm
    family("hunyuan-first", "hunyuan",
        stack("text", PRE_NORM + HUNYUAN_QK.replace("_norm\n", "_norm if=use_qk_norm\n")),
        when=lambda c: c.get("mamba") is not True and c.get("norm_type") in (None, "rms", "hf_rms")),
    # bailing_moe, bailing_moe_v2: repos inclusionAI/Ling and inclusionAI/Ling-V2, and vllm's bailing_moe.py, which has
    # LayerNorm on queries and keys where `use_rmsnorm` is false. Multi-token prediction: Ling-V2, its blocks behind the
    # others as in llama.cpp's conversion/bailingmoe.py (for sarvam_moe too)
    family("bailing_moe", "bailing_moe bailing_moe_v2",
        stack("text", PRE_NORM + BAILING_QK + BAILING_MTP, mtp=True),
        when=lambda c: c.get("use_qk_norm") is not True or not is_false(c, "use_rmsnorm")),
    family("sarvam_moe", "sarvam_moe", stack("text", PRE_NORM + BAILING_QK + BAILING_MTP, mtp=True)),
    # its multi-token prediction: vllm's bailing_moe_mtp.py
    family("bailing_hybrid", "bailing_hybrid", stack("text", MIXED_PRE_NORM + LATENTS + BAILING_MTP + """
        layers.*.attention.q_a_layernorm    other
        layers.*.attention.kv_a_layernorm   other
        layers.*.attention.o_norm           other
        """, mtp=True, kinds=bailing_kinds,
        marks="attention.A_log=mixer attention.kv_a_proj_with_mqa=attention")),
    family("apertus", "apertus apertus1p5_text", stack("text", """
        layers.*.attention_layernorm        pre_attention
        layers.*.feedforward_layernorm      pre_mlp
        norm                                final
        """ + QK_NORM)),
    family("bitnet", "bitnet", stack("text", PRE_NORM + """
        layers.*.self_attn.attn_sub_norm    other
        layers.*.mlp.ffn_sub_norm           other
        """)),
    # InternLM2: repo internlm/internlm2-7b, and vllm's internlm2.py
    family("internlm2", "internlm2 mistral_large4_text", stack("text", """
        layers.*.attention_norm  pre_attention
        layers.*.ffn_norm        pre_mlp
        norm                     final
        """)),
    # Yi's first release has its own names: repo 01-ai/Yi-34B at its first commits, and lightllm's yi weights
    family("yi", "yi Yi", stack("text", PRE_NORM + """
        layers.*.ln1  pre_attention
        layers.*.ln2  pre_mlp
        """), by_name=False),
    family("yi-first", "", stack("text", """
        layers.*.ln1  pre_attention
        layers.*.ln2  pre_mlp
        norm          final
        """)),
    # ChatGLM2/3 and GLM-4-9B: repo zai-org/chatglm3-6b, and vllm's chatglm.py
    family("chatglm-v1", "chatglm", when=lambda c: has(c, "inner_hidden_size") or has(c, "position_encoding_2d"),
        note=NOT_ONE_PLACE),
    family("chatglm-residual", "chatglm", when=lambda c: c.get("apply_residual_connection_post_layernorm") is True,
        note=NOT_ONE_PLACE),
    family("chatglm", "chatglm", stack("text", """
        layers.*.input_layernorm            pre_attention
        layers.*.post_attention_layernorm   pre_mlp
        final_layernorm                     final
        """, roots=("transformer.encoder.", "encoder."), counts=("num_layers",)),
        when=lambda c: not is_false(c, "rmsnorm")),
    # Qwen-1: repo Qwen/Qwen-7B, and vllm's qwen.py
    family("qwen", "qwen exaone", stack("text", """
        h.*.ln_1  pre_attention
        h.*.ln_2  pre_mlp
        ln_f      final
        """)),
    family("cpmant", "cpmant", stack("text", """
        layers.*.self_att.layernorm_before_attention  pre_attention
        layers.*.ffn.layernorm_before_ffn             pre_mlp
        output_layernorm                              final
        """, roots=("cpmant.encoder.", "encoder."))),
    family("mllama", "mllama mllama_text_model", stack("text", """
        layers.*.input_layernorm           pre_attention in=attention
        layers.*.input_layernorm           pre_cross_attention in=cross
        layers.*.post_attention_layernorm  pre_mlp
        layers.*.cross_attn.q_norm         q_norm in=cross
        layers.*.cross_attn.k_norm         k_norm in=cross
        norm                               final
        """, kinds=mllama_kinds, marks="self_attn=attention cross_attn=cross")),
    # OpenELM: mlx-lm's openelm.py, and llama.cpp's conversion/openelm.py
    family("openelm", "openelm", stack("text", """
        layers.*.attn_norm    pre_attention
        layers.*.ffn_norm     pre_mlp
        layers.*.attn.q_norm  q_norm if=normalize_qk_projections
        layers.*.attn.k_norm  k_norm if=normalize_qk_projections
        norm                  final
        """, roots=("transformer.",), counts=("num_transformer_layers",))),
    # the trace of minimax; the others by vllm's minimax_text_01.py, where `postnorm` says that the residual is taken
    # after the norm, as it always is in transformers
    family("minimax-prenorm", "minimax minimax_text_01 minimax_m1",
        when=lambda c: is_false(c, "postnorm") or (c.get("model_type") != "minimax" and not has(c, "postnorm")),
        note="Its config does not say that 'postnorm' is true, and only such blocks were traced"),
    family("minimax", "minimax minimax_text_01 minimax_m1", stack("text", """
        layers.*.input_layernorm           other
        layers.*.post_attention_layernorm  post_attention
        layers.*.self_attn.norm            other
        norm                               final
        """), by_name=False, note="Its residual stream is taken after the norm: input_layernorm stands after the "
        "MLP of the block before and in front of attention at once, and is other."),
    family("longcat_flash", "longcat_flash", stack("text", """
        layers.*.input_layernorm.&           pre_attention
        layers.*.post_attention_layernorm.&  pre_mlp
        layers.*.self_attn.#.q_a_layernorm   other
        layers.*.self_attn.#.kv_a_layernorm  other
        norm                                 final
        """, counts=("num_layers", "num_hidden_layers"), sub_blocks=2),
        note="Each stored layer holds two blocks: the layers 2n and 2n + 1 here are the parts 0 and 1 of its layer n."),
)  # fmt: skip


# Names of the first release, beside or in place of those that transformers writes.
NATIVE: tuple[Family, ...] = (
    # transformers' convert_llama_weights_to_hf.py, convert_mistral_weights_to_hf.py, convert_pixtral_weights_to_hf.py;
    # the latents of Large 3: vllm's mistral_large_3.py
    family("mistral-native", "", stack("text", """
        layers.*.attention_norm       pre_attention
        layers.*.ffn_norm             pre_mlp
        layers.*.attention.q_a_norm   other
        layers.*.attention.kv_a_norm  other
        norm                          final
        """), stack("vision", """
        ln_pre                               embedding
        transformer.layers.*.attention_norm  pre_attention
        transformer.layers.*.ffn_norm        pre_mlp
        """, roots=("vision_encoder.",)),
        native="llama mistral mixtral ministral ministral3 mistral4 deepseek_v2 deepseek_v3 pixtral"),
    # repo openai/gpt-oss, gpt_oss/torch/model.py
    family("gpt-oss-native", "", stack("text", """
        block.*.attn.norm  pre_attention
        block.*.mlp.norm   pre_mlp
        norm               final
        """), native="gpt_oss"),
    # repo deepseek-ai/DeepSeek-V3, inference/model.py and convert.py
    family("deepseek-native", "", stack("text", """
        layers.*.attn_norm            pre_attention
        layers.*.ffn_norm             pre_mlp
        layers.*.attn.q_norm          other
        layers.*.attn.kv_norm         other
        norm                          final
        """), native="deepseek_v2 deepseek_v3 deepseek_v32 kimi_k2"),
)  # fmt: skip


# Gamma stored minus one, and blocks with norms on the sublayers' outputs.
SANDWICHES: tuple[Family, ...] = (
    family("gemma", "gemma", stack("text", PRE_NORM, offset=1.0)),
    family("minimax_m3", "minimax_m3_vl_text", stack("text", PRE_NORM + QK_NORM + """
        layers.*.self_attn.index_q_norm     other
        layers.*.self_attn.index_k_norm     other
        layers.*.self_attn.indexer.q_norm   other
        layers.*.self_attn.indexer.k_norm   other
        """, offset=1.0)),
    family("gemma2", "gemma2", stack("text", SANDWICH, offset=1.0)),
    family("gemma3", "gemma3 gemma3_text", stack("text", SANDWICH + QK_NORM + """
        /multi_modal_projector.mm_soft_emb_norm        other
        /model.multi_modal_projector.mm_soft_emb_norm  other
        """, offset=1.0)),
    family("vaultgemma", "vaultgemma", stack("text", """
        layers.*.input_layernorm            pre_attention
        layers.*.pre_feedforward_layernorm  pre_mlp
        norm                                final
        """, offset=1.0)),
    family("recurrent_gemma", "recurrent_gemma", stack("text", """
        layers.*.temporal_pre_norm  pre_attention in=attention
        layers.*.temporal_pre_norm  pre_mixer in=mixer
        layers.*.channel_pre_norm   pre_mlp
        final_norm                  final
        """, offset=1.0, kinds=recurrent_kinds,
        marks="temporal_block.rg_lru=mixer temporal_block.q_proj=attention")),
    family("gemma4", "gemma3n gemma3n_text gemma4 gemma4_text gemma4_unified gemma4_unified_text "
        "embedding_gemma2_text",
        stack("text", SANDWICH + """
        layers.*.self_attn.q_norm             q_norm
        layers.*.self_attn.k_norm             k_norm free=shared
        layers.*.post_per_layer_input_norm    other
        layers.*.laurel.post_laurel_norm      other
        layers.*.altup.router_norm            other
        per_layer_projection_norm             other
        """, kinds=kv_sharing)),
    family("qwen3_next", "qwen3_next qwen3_5 qwen3_5_text qwen3_5_moe qwen3_5_moe_text",
        stack("text", MIXED_PRE_NORM + """
        layers.*.self_attn.q_norm  q_norm in=attention
        layers.*.self_attn.k_norm  k_norm in=attention
        layers.*.linear_attn.norm  other plain
        """, offset=1.0, kinds=qwen_kinds, marks="linear_attn=mixer self_attn=attention"), QWEN_MTP),
    family("olmo2", "olmo2 olmo3 flex_olmo exaone4 exaone4_5_text", stack("text", POST_NORM)),
    family("glm4", "glm4 glm4v_text glm_ocr_text", stack("text", PRE_NORM + """
        layers.*.post_self_attn_layernorm   post_attention
        layers.*.post_mlp_layernorm         post_mlp
        """)),
    family("olmo_hybrid", "olmo_hybrid", stack("text", """
        layers.*.attention_layer_norm        pre_mixer in=mixer
        layers.*.input_layernorm             pre_mixer in=mixer
        layers.*.feedforward_layer_norm      pre_mlp in=mixer
        layers.*.post_attention_layernorm    pre_mlp in=mixer
        layers.*.post_attention_layernorm    post_attention in=attention
        layers.*.feedforward_layer_norm      post_attention in=attention
        layers.*.post_feedforward_layernorm  post_mlp in=attention
        layers.*.self_attn.q_norm            q_norm in=attention
        layers.*.self_attn.k_norm            k_norm in=attention
        layers.*.linear_attn.o_norm          other
        norm                                 final
        """, kinds=layer_types, marks="linear_attn=mixer self_attn=attention"), by_name=False),
    family("kolibri1", "kolibri1", stack("text", PRE_NORM + QK_NORM + """
        layers.*.post_attn_norm              post_attention
        layers.*.post_ffn_norm               post_mlp
        """)),
    family("hyperclovax", "hyperclovax", stack("text", PRE_NORM + """
        layers.*.post_norm1                 post_attention if=use_post_norm
        layers.*.post_norm2                 post_mlp if=use_post_norm
        """)),
    family("afmoe", "afmoe", stack("text", """
        layers.*.input_layernorm            pre_attention
        layers.*.post_attention_layernorm   post_attention
        layers.*.pre_mlp_layernorm          pre_mlp
        layers.*.post_mlp_layernorm         post_mlp
        norm                                final
        """ + QK_NORM)),
    family("axk1", "axk1", stack("text", PRE_NORM + LATENTS + """
        layers.*.post_mlp_layernorm         post_mlp
        """)),
)  # fmt: skip


WEIGHTLESS: tuple[Family, ...] = (
    family("olmo", "olmo hf_olmo nanochat", note="The norms of this family have no weights (elementwise_affine=False)"),
)


RMS_DECODERS: tuple[Family, ...] = (*LLAMA_LIKE, *SANDWICHES, *NATIVE, *WEIGHTLESS)
