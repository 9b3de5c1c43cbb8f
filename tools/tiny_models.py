"""This module builds tiny random models of any transformers model type, and inputs that they run on."""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSpeechSeq2Seq,
)
from transformers.configuration_utils import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

LAYERS = 4
SIZES: tuple[tuple[int, tuple[str, ...]], ...] = (
    (32, ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size", "word_embed_proj_dim", "model_dim",
         "projection_dim", "out_hidden_size", "text_embed_dim", "output_dim", "decoder_hidden_size",
         "vision_hidden_size",
         "cross_attention_hidden_size", "shared_expert_hidden_size", "d_embed", "lru_width", "attention_hidden_size")),
    (48, ("intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_ff", "n_inner", "ffn_hidden_size",
         "moe_intermediate_size", "shared_expert_intermediate_size", "ffn_size", "hidden_dim", "intermediate_size_mlp",
         "expert_ffn_hidden_size", "dense_intermediate_size", "mlp_dim", "moe_shared_expert_intermediate_size",
         "shared_intermediate_size", "block_ffn_size", "mlp_hidden_size")),
    (LAYERS, ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers", "depth",
             "num_encoder_layers", "num_decoder_layers", "num_decoder_layers", "n_decoder_layers")),
    (4, ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads",
        "num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts", "num_experts_per_layer",
        "linear_num_value_heads", "swa_num_attention_heads", "num_global_key_value_heads")),
    (2, ("num_key_value_heads", "num_kv_heads", "linear_num_key_heads", "num_experts_per_tok", "moe_k", "moe_topk",
         "top_k",
        "top_k_experts", "n_group", "mamba_n_groups_", "num_hidden_groups_", "swa_num_key_value_heads")),
    (4, ("rotary_dim", "partial_rotary_dim")),
    (1, ("topk_group", "n_shared_experts", "moe_num_shared_experts", "num_shared_experts", "first_k_dense_replace",
        "num_dense_layers", "moe_layer_start_index")),
    (8, ("head_dim", "d_kv", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "linear_key_head_dim",
        "linear_value_head_dim", "attention_head_dim", "kv_channels", "global_head_dim", "hidden_size_per_layer_input",
        "swa_head_dim", "mamba_d_head", "mamba_head_dim", "index_head_dim")),
    (16, ("q_lora_rank", "kv_lora_rank", "qk_head_dim_", "mamba_d_state", "ssm_state_size", "state_size")),
    (256, ("vocab_size", "vocab_size_per_layer_input", "text_vocab_size", "max_source_positions_",
         "tokenizer_vocab_size")),
    (128, ("max_position_embeddings", "n_positions", "n_ctx", "max_target_positions", "max_source_positions",
         "max_seq_len")),
)  # fmt: skip
SMALL = {name: size for size, names in SIZES for name in names}
TOKENS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
ONE_SIDED = (AutoModelForImageTextToText, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModel)
TWO_SIDED = (AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq, AutoModel)


def shrink(config: PreTrainedConfig, extra: dict[str, Any] | None = None) -> dict[str, Any]:
    """Keyword arguments that make a config of the same class small."""
    extra = extra or {}
    small: dict[str, Any] = {}
    for key, value in vars(config).items():
        if isinstance(getattr(type(config), key, None), property):
            continue
        if isinstance(value, PreTrainedConfig):
            small[key] = {**shrink(value, extra), "model_type": value.model_type}
        elif key in SMALL and isinstance(value, int) and not isinstance(value, bool):
            small[key] = min(SMALL[key], value) if value > 0 or key not in ("num_hidden_layers",) else value
        elif key in SMALL and isinstance(value, list) and value and all(type(v) is int for v in value):
            small[key] = [SMALL[key]] * LAYERS
    if hasattr(config, "kv_lora_rank") and "num_key_value_heads" in small:
        small["num_key_value_heads"] = small["num_attention_heads"]  # latent attention shares nothing between heads
    kinds = getattr(config, "layer_types", None)
    names = ("layer_types", "layers_block_type")  # one may be the other's alias; a property cannot be set
    settable = not any(isinstance(getattr(type(config), name, None), property) for name in names)
    if settable and isinstance(kinds, (list, tuple)) and kinds and getattr(config, "num_hidden_layers", 0):
        distinct = list(dict.fromkeys(kinds))
        small["layer_types"] = [distinct[i % len(distinct)] for i in range(LAYERS)]
    for key in TOKENS:
        if hasattr(config, key):
            small[key] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}.get(key, 1)
    for key, value in extra.items():
        if hasattr(config, key):
            small[key] = value
    return small


class Builder:
    """Builds one model type; ``extra`` are config keys to set wherever they occur."""

    def __init__(self, model_type: str, extra: dict[str, Any] | None = None) -> None:
        self.model_type, self.extra = model_type, extra or {}

    def config(self) -> PreTrainedConfig:
        """The small config."""
        cls = CONFIG_MAPPING[self.model_type]
        return cls(**shrink(cls(), {**EXTRAS.get(self.model_type, {}), **self.extra}))

    def build(self) -> tuple[Any, dict[str, Any]]:
        """A model in eval mode and inputs on which it runs.

        Raises:
            ValueError: none of the auto classes built a model that runs; the message holds every failure.
        """
        config, failures = self.config(), []
        for auto in TWO_SIDED if getattr(config, "is_encoder_decoder", False) else ONE_SIDED:
            if type(config) not in auto._model_mapping:
                continue
            try:
                model = self._make(auto, config)
            except Exception as error:  # noqa: BLE001  try the next class
                failures.append(f"{auto.__name__} build: {type(error).__name__} {str(error)[:150]}")
                continue
            for inputs in candidate_inputs(model, config):
                try:
                    model(**inputs)
                except Exception as error:  # noqa: BLE001  try the next inputs
                    failures.append(f"{auto.__name__} {'+'.join(inputs)}: {type(error).__name__} {str(error)[:150]}")
                    continue
                return model, inputs
        raise ValueError(" | ".join(failures) or "no auto class")

    def _make(self, auto: Any, config: PreTrainedConfig) -> Any:
        try:
            return auto.from_config(config, attn_implementation="sdpa").eval().float()
        except (ValueError, ImportError):
            return auto.from_config(config, attn_implementation="eager").eval().float()


HALF = ["conv", "full_attention", "conv", "full_attention"]
MROPE = {"rope_type": "default", "rope_theta": 10000.0}
# What the defaults leave open, or what would leave a kind of layer out of a model of four layers.
EXTRAS: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1, 3], "mamba_n_heads": 8, "mamba_n_groups": 1, "mamba_d_head": 8},
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 48},
    },
    "deepseek_v2": {"num_experts_per_tok": 2, "n_group": 1, "topk_group": 1},
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "esm": {"vocab_size": 64, "emb_layer_norm_before": True, "mask_token_id": 3},
    "gemma3n_text": {"num_kv_shared_layers": 0, "layer_types": ["sliding_attention", "full_attention"] * 2},
    "glm4v_text": {"rope_parameters": {**MROPE, "mrope_section": [1, 1, 2]}},
    "glm_ocr_text": {"rope_parameters": {**MROPE, "mrope_section": [1, 1, 2]}},
    "glm4v_moe_text": {"rope_parameters": {**MROPE, "mrope_section": [1, 1, 0]}},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"] * 2, "mamba_n_heads": 8, "mamba_d_head": 8},
    "hunyuan_v1_dense": {"head_dim": 8},
    "hunyuan_v1_moe": {"head_dim": 8, "num_experts": 4, "moe_topk": 2},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "use_mamba_kernels": False},
    "bailing_hybrid": {
        "layer_group_size": 2,
        "layer_types": ["linear_attention", "full_attention"] * 2,
        "n_group": 1,
        "topk_group": 1,
        "num_experts_per_tok": 2,
    },
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "mllama": {"cross_attention_layers": [1, 3]},
    "mistral4": {"head_dim": 16},
    "zamba2": {
        "layers_block_type": ["linear_attention", "hybrid"] * 2,
        "attention_hidden_size": 64,
        "attention_head_dim": 16,
    },
    "kimi_linear": {"num_experts_per_token": 2, "num_experts": 4},
    "lfm2": {"layer_types": HALF},
    "lfm2_moe": {"layer_types": HALF},
    "ministral": {"head_dim": 8},
    "nemotron": {"num_key_value_heads": 2, "head_dim": 8},
    "zamba": {"attention_hidden_size": 64, "attention_head_dim": 16},
}

# The same model type with another layout, by the config.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "bloom-residual": ("bloom", {"apply_residual_connection_post_layernorm": True}),
    "cohere-qk": ("cohere", {"use_qk_norm": True}),
    "falcon-new": ("falcon", {"new_decoder_architecture": True}),
    "falcon-new-one": ("falcon", {"new_decoder_architecture": True, "num_ln_in_parallel_attn": 1}),
    "falcon-serial": ("falcon", {"parallel_attn": False}),
    "glm4_moe-qk": ("glm4_moe", {"use_qk_norm": True}),
    "gpt_neox-serial": ("gpt_neox", {"use_parallel_residual": False}),
    "hubert-stable": ("hubert", {"do_stable_layer_norm": True}),
    "hyperclovax-post": ("hyperclovax", {"use_post_norm": True}),
    "opt-post": ("opt", {"do_layer_norm_before": False}),
    "persimmon-plain": ("persimmon", {"qk_layernorm": False}),
    "phi-qk": ("phi", {"qk_layernorm": True}),
    "stablelm-parallel": ("stablelm", {"use_parallel_residual": True}),
    "stablelm-qk": ("stablelm", {"qk_layernorm": True}),
    "wav2vec2-stable": ("wav2vec2", {"do_stable_layer_norm": True}),
}


def candidate_inputs(model: Any, config: PreTrainedConfig) -> list[dict[str, Any]]:
    """Inputs to try, in order: tokens, tokens for both sides, features, pixels."""
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 60, (1, 7), generator=generator)
    mels = getattr(config, "num_mel_bins", 80)
    size = getattr(getattr(config, "vision_config", config), "image_size", 32)
    size = size if isinstance(size, int) else 32
    pixels = torch.randn(1, getattr(config, "num_channels", 3), size, size, generator=generator)
    wave = torch.randn(1, 4000, generator=generator)
    features = torch.randn(1, mels, 2 * getattr(config, "max_source_positions", 20), generator=generator)
    both = {"input_ids": ids, "decoder_input_ids": ids[:, :5]}
    if getattr(config, "is_encoder_decoder", False):
        text = [both, {"input_features": features, "decoder_input_ids": ids[:, :5]}, {"input_ids": ids}]
    else:
        text = [{"input_ids": ids}]
    if getattr(getattr(config, "text_config", None), "cross_attention_layers", None):
        states = torch.randn(1, 6, config.text_config.hidden_size, generator=generator)
        text = [{"input_ids": ids, "cross_attention_states": states}, *text]
    return [
        *text,
        {"pixel_values": pixels},
        {"input_values": torch.randn(1, getattr(config, "max_length", 8), mels, generator=generator)},
        {"input_ids": torch.cat([ids, torch.full((1, 1), 2)], 1), "pixel_values": pixels},
        {"input_values": wave},
        {"input_features": features},
        {"input_features": features.transpose(1, 2)},
    ]
