"""This module holds the tables of text encoders and encoder-decoders. How to read and add a line: see ``families.py``.

Source of each table: the module of that name in transformers 5.24, traced on tiny random models
(``tools/trace_roles.py``, ``tests/data/roles``), or the repo named beside it.
"""

from __future__ import annotations

from lnsim.checkpoint.families import Family, Stack, family, stack
from lnsim.checkpoint.families_blocks import LAYER_NORM, QK_NORM

__all__ = ["ENCODERS"]

BERT_MODELS = (
    "bert roberta xlm-roberta camembert electra ernie layoutlm longformer luke markuplm nystromformer rembert roc_bert "
    "roformer splinter tapas visual_bert big_bird bert-generation data2vec-text convbert deberta deberta-v2"
)
BERT_ROOTS = (
    "", "bert.", "roberta.", "electra.", "ernie.", "layoutlm.", "longformer.", "luke.", "markuplm.", "nystromformer.",
    "rembert.", "roc_bert.", "roformer.", "splinter.", "tapas.", "visual_bert.", "data2vec_text.", "convbert.",
    "deberta.",
)  # fmt: skip
BERT_BLOCK = """
    embeddings.LayerNorm                             embedding
    encoder.layer.*.attention.output.LayerNorm       post_attention
    encoder.layer.*.crossattention.output.LayerNorm  post_cross_attention if=add_cross_attention
    encoder.layer.*.output.LayerNorm                 post_mlp
    """

ENCODER_ONLY: tuple[Family, ...] = (
    family("bert", BERT_MODELS, stack("encoder", BERT_BLOCK, roots=BERT_ROOTS, **LAYER_NORM)),
    family("roberta-prelayernorm", "roberta-prelayernorm", stack("encoder", """
        embeddings.LayerNorm                    embedding
        encoder.layer.*.attention.LayerNorm     pre_attention
        encoder.layer.*.intermediate.LayerNorm  pre_mlp
        LayerNorm                               final
        """, roots=("", "roberta_prelayernorm."), **LAYER_NORM)),
    family("xlm-roberta-xl", "xlm-roberta-xl", stack("encoder", """
        encoder.layer.*.attention.self_attn_layer_norm  pre_attention
        encoder.layer.*.LayerNorm                       pre_mlp
        encoder.LayerNorm                               final
        """, roots=("", "roberta."), **LAYER_NORM)),
    family("megatron-bert", "megatron-bert", stack("encoder", """
        encoder.layer.*.attention.ln  pre_attention
        encoder.layer.*.ln            pre_mlp
        encoder.ln                    final
        """, roots=("", "bert."), **LAYER_NORM)),
    family("distilbert", "distilbert", stack("encoder", """
        embeddings.LayerNorm                   embedding
        transformer.layer.*.sa_layer_norm      post_attention
        transformer.layer.*.output_layer_norm  post_mlp
        """, roots=("", "distilbert."), **LAYER_NORM)),
    family("albert", "albert", stack("encoder", """
        embeddings.LayerNorm                                                   embedding
        encoder.albert_layer_groups.*.albert_layers.0.attention.LayerNorm      post_attention
        encoder.albert_layer_groups.*.albert_layers.0.full_layer_layer_norm    post_mlp
        """, roots=("", "albert."), **LAYER_NORM),
        note="All blocks of a group share one set of norms, stored once; the other layers show as missing."),
    family("mpnet", "mpnet", stack("encoder", """
        embeddings.LayerNorm                 embedding
        encoder.layer.*.attention.LayerNorm  post_attention
        encoder.layer.*.output.LayerNorm     post_mlp
        """, roots=("", "mpnet."), **LAYER_NORM)),
    family("esm", "esm", stack("encoder", """
        embeddings.layer_norm                embedding if=emb_layer_norm_before
        encoder.layer.*.attention.LayerNorm  pre_attention
        encoder.layer.*.LayerNorm            pre_mlp
        encoder.emb_layer_norm_after         final
        """, roots=("", "esm."), **LAYER_NORM)),
    # also the remote code of nomic-ai/nomic-bert-2048 and jinaai/xlm-roberta-flash-implementation
    family("nomic_bert", "nomic_bert jina_embeddings_v3", stack("encoder", """
        emb_ln                  embedding
        encoder.layers.*.norm1  post_attention
        encoder.layers.*.norm2  post_mlp
        """, roots=("", "bert.", "nomic_bert.", "roberta."), **LAYER_NORM), by_name=False,
        when=lambda c: c.get("prenorm") is not True),
    # new: the remote code of Alibaba-NLP/new-impl, by vllm's bert_with_rope.py (GteNewModel)
    family("gte", "gte new", stack("encoder", """
        embeddings.LayerNorm     embedding
        encoder.layer.*.attn_ln  post_attention
        encoder.layer.*.mlp_ln   post_mlp
        """, roots=("", "gte.", "new."), **LAYER_NORM),
        when=lambda c: c.get("layer_norm_type") in (None, "layer_norm")),
    family("modernbert", "modernbert", stack("encoder", """
        embeddings.norm     embedding
        layers.*.attn_norm  pre_attention
        layers.*.mlp_norm   pre_mlp
        final_norm          final
        """, norm="layernorm", roots=("", "model.", "model.text_model."))),
    family("squeezebert", "squeezebert", stack("encoder", """
        embeddings.LayerNorm                       embedding
        encoder.layers.*.post_attention.layernorm  post_attention
        encoder.layers.*.output.layernorm          post_mlp
        """, roots=("", "transformer."), **LAYER_NORM)),
    family("xlm", "xlm", stack("encoder", """
        layer_norm_emb  embedding
        layer_norm1.*   post_attention
        layer_norm2.*   post_mlp
        """, roots=("", "transformer."), **LAYER_NORM), by_name=False),
    family("xlnet", "xlnet", stack("text", """
        layer.*.rel_attn.layer_norm  post_attention
        layer.*.ff.layer_norm        post_mlp
        """, roots=("", "transformer."), **LAYER_NORM)),
)  # fmt: skip

# Encoder-decoders: the decoder is the main tower.


def _sides(encoder: str, decoder: str) -> tuple[Stack, Stack]:
    """The two towers of a model of the BART kind, whose lines differ by the cross-attention norm."""
    return (
        stack("decoder", decoder, roots=("model.decoder.", "decoder."), counts=("decoder_layers",), **LAYER_NORM),
        stack("encoder", encoder, roots=("model.encoder.", "encoder."), counts=("encoder_layers",), **LAYER_NORM),
    )


PRE_ENCODER = """
    layernorm_embedding               embedding optional
    layers.*.self_attn_layer_norm     pre_attention
    layers.*.final_layer_norm         pre_mlp
    layer_norm                        final
    """
PRE_DECODER = PRE_ENCODER + """
    layers.*.encoder_attn_layer_norm  pre_cross_attention
    """  # fmt: skip
POST_ENCODER = """
    layernorm_embedding               embedding optional
    layers.*.self_attn_layer_norm     post_attention
    layers.*.final_layer_norm         post_mlp
    """
POST_DECODER = POST_ENCODER + """
    layers.*.encoder_attn_layer_norm  post_cross_attention
    """  # fmt: skip
T5GEMMA_BLOCK = """
    layers.*.pre_self_attn_layernorm     pre_attention
    layers.*.post_self_attn_layernorm    post_attention
    layers.*.pre_feedforward_layernorm   pre_mlp
    layers.*.post_feedforward_layernorm  post_mlp
    norm                                 final
    """
T5_ROOTS = {
    "encoder": ("encoder.", "model.encoder.", "language_model.encoder."),
    "decoder": ("decoder.", "model.decoder.", "language_model.decoder."),
}
T5_LAYERS = ("num_layers", "num_hidden_layers")


def _gemma_sides(encoder: str, decoder: str) -> tuple[Stack, Stack]:
    """The two towers of a T5Gemma, whose gammas are stored minus one."""
    roots = (*T5_ROOTS["encoder"], "model.encoder.text_model.")
    return (
        stack("decoder", decoder, roots=T5_ROOTS["decoder"], offset=1.0),
        stack("encoder", encoder, roots=roots, offset=1.0),
    )


BOTH_SIDES: tuple[Family, ...] = (
    family("bart", "bart blenderbot-small plbart mvp marian fsmt", *_sides(POST_ENCODER, POST_DECODER), by_name=False),
    family("led", "led",
        stack("decoder", POST_DECODER, roots=("led.decoder.", "decoder."), counts=("decoder_layers",), **LAYER_NORM),
        stack("encoder", POST_ENCODER, roots=("led.encoder.", "encoder."), counts=("encoder_layers",), **LAYER_NORM),
        by_name=False),
    family("whisper", "whisper mbart m2m_100 pegasus blenderbot speech_to_text", *_sides(PRE_ENCODER, PRE_DECODER)),
    # repo openai/whisper, whisper/model.py; mlx-community's conversions keep these names
    family("whisper-native", "",
        stack("decoder", """
            blocks.*.attn_ln        pre_attention
            blocks.*.cross_attn_ln  pre_cross_attention
            blocks.*.mlp_ln         pre_mlp
            ln                      final
            """, roots=("decoder.",), counts=("decoder_layers", "n_text_layer"), **LAYER_NORM),
        stack("encoder", """
            blocks.*.attn_ln        pre_attention
            blocks.*.mlp_ln         pre_mlp
            ln_post                 final
            """, roots=("encoder.",), counts=("encoder_layers", "n_audio_layer"), **LAYER_NORM), native="whisper"),
    family("pegasus_x", "pegasus_x", *_sides(PRE_ENCODER + """
        layers.*.global_self_attn_layer_norm  other
        """, PRE_DECODER)),
    family("bigbird_pegasus", "bigbird_pegasus", *_sides("""
        layernorm_embedding               final
        layers.*.self_attn_layer_norm     pre_attention
        layers.*.final_layer_norm         pre_mlp
        """, """
        layernorm_embedding               final
        layers.*.self_attn_layer_norm     pre_attention
        layers.*.encoder_attn_layer_norm  pre_cross_attention
        layers.*.final_layer_norm         pre_mlp
        """), by_name=False),
    family("nllb-moe", "nllb-moe", *_sides("""
        layers.*.self_attn_layer_norm       pre_attention
        layers.*.ff_layer_norm              pre_mlp
        layer_norm                          final
        """, """
        layers.*.self_attn_layer_norm       pre_attention
        layers.*.cross_attention_layer_norm pre_cross_attention
        layers.*.ff_layer_norm              pre_mlp
        layer_norm                          final
        """)),
    family("prophetnet", "prophetnet",
        stack("decoder", """
            embeddings_layer_norm             embedding
            layers.*.self_attn_layer_norm     post_attention
            layers.*.cross_attn_layer_norm    post_cross_attention
            layers.*.feed_forward_layer_norm  post_mlp
            """, roots=("prophetnet.decoder.", "decoder."), counts=("num_decoder_layers",), **LAYER_NORM),
        stack("encoder", """
            embeddings_layer_norm             embedding
            layers.*.self_attn_layer_norm     post_attention
            layers.*.feed_forward_layer_norm  post_mlp
            """, roots=("prophetnet.encoder.", "encoder."), counts=("num_encoder_layers",), **LAYER_NORM)),
    family("t5", "t5 mt5 umt5 longt5 switch_transformers",
        stack("decoder", """
            block.*.layer.0.layer_norm  pre_attention
            block.*.layer.1.layer_norm  pre_cross_attention
            block.*.layer.2.layer_norm  pre_mlp
            final_layer_norm            final
            """, roots=T5_ROOTS["decoder"], counts=("num_decoder_layers", *T5_LAYERS)),
        stack("encoder", """
            block.*.layer.0.layer_norm  pre_attention
            block.*.layer.1.layer_norm  pre_mlp
            final_layer_norm            final
            """, roots=T5_ROOTS["encoder"], counts=T5_LAYERS)),
    family("t5gemma", "t5gemma", *_gemma_sides(T5GEMMA_BLOCK, T5GEMMA_BLOCK + """
        layers.*.pre_cross_attn_layernorm    pre_cross_attention
        layers.*.post_cross_attn_layernorm   post_cross_attention
        """)),
    family("t5gemma2", "t5gemma2", *_gemma_sides(T5GEMMA_BLOCK + QK_NORM + """
        multi_modal_projector.mm_soft_emb_norm                 other
        /model.encoder.multi_modal_projector.mm_soft_emb_norm  other
        """, T5GEMMA_BLOCK + QK_NORM)),
)  # fmt: skip

ENCODERS: tuple[Family, ...] = (*ENCODER_ONLY, *BOTH_SIDES)
