"""This module tests the role tables: against traced models, real names, look-alikes and hostile names."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traced_families import TRACED, names_of, shapes_of

from lnsim.checkpoint.families import table
from lnsim.checkpoint.families.names import collapse, parse_name
from lnsim.checkpoint.families.table import FAMILIES, ROLES, Pattern, Stack, patterns
from lnsim.checkpoint.roles import NormTensor, RoleMap, map_roles
from lnsim.errors import RoleError

Shapes = dict[str, tuple[int, ...]]
WHERE = "org/model@0123abc"

# Traced, and left without a table on purpose: an error is right.
UNKNOWN = {
    "axk2", "blip", "bloom-residual", "convnext", "deepseek_v4", "doge", "dpr", "encoder-decoder", "fnet", "funnel",
    "git", "inkling_text", "kosmos-2.5", "lfm3", "mobilebert", "moshi", "mra", "nanochat", "olmo", "perceiver",
    "resnet", "seamless_m4t", "segformer", "trocr", "vilt", "wav2vec2-conformer", "yoso", "zaya",
}  # fmt: skip
KNOWN = sorted(set(TRACED) - UNKNOWN)
assert len(KNOWN) > 290

# Where the table says `other` although the trace finds a place, with the reason.
STATED_OTHER = {
    "feature_projection.layer_norm": "normalises convolution features, of another width, in front of the projection",
    "feature_extractor.conv_layers.*.layer_norm": "inside the convolution stem",
    "post_per_layer_input_norm": "on the output of the per-layer embeddings, neither attention nor MLP",
    "altup.router_norm": "in front of AltUp's router, a single small product",
    "laurel.post_laurel_norm": "on LAuReL's output, a low-rank branch beside attention",
    "global_self_attn_layer_norm": "Pegasus-X normalises a second stream, that of the global tokens",
    "self_attn.norm_q": "Cosmos3 renames them; only Qwen3's own names are in the table",
    "self_attn.norm_k": "as norm_q",
}
# Where the trace is misled or the place is outside the vocabulary, and the source says what holds.
BY_SOURCE = {
    ("gemma3n_text", "model.layers.*.input_layernorm"): "pre_attention",  # LAuReL adds the normed input back
    ("sew", "layer_norm"): "other",  # on the convolution features
    # RWKV's gates lead the trace past its time mixing: modeling_rwkv.py, RwkvBlock
    ("rwkv", "rwkv.blocks.*.pre_ln"): "embedding",
    ("rwkv", "rwkv.blocks.*.ln1"): "pre_mixer",
    ("rwkv", "rwkv.blocks.*.ln2"): "pre_mlp",
    # the experts beside the first MLP of a layer join the stream behind the second: modeling_longcat_flash.py
    ("longcat_flash", "model.layers.*.post_attention_layernorm.0"): "pre_mlp",
}


@functools.cache
def roles_of(name: str) -> RoleMap:
    """The roles of a traced model, read with its config."""
    return map_roles(shapes_of(TRACED[name]), TRACED[name]["config"], where=WHERE)


def read(shapes: Shapes, model_type: str | None = "llama", **config: Any) -> RoleMap:
    """The roles of names read with a config of three layers."""
    return map_roles(shapes, {"model_type": model_type, "num_hidden_layers": 3} | config, where=WHERE)


def true_role(name: str, row: list[Any], tensor: str) -> str:
    """The role of a traced row: in front of a token mixer that is no attention it is ``pre_mixer``."""
    path, role = row[0].rpartition(".")[0], row[3]
    if any(path.endswith(ending) for ending in STATED_OTHER):
        return "other"
    of_text = path == "language_model.model.layers.*.input_layernorm"
    if name == "mllama" and of_text and int(tensor.split(".")[3]) in (1, 3):
        return "pre_cross_attention"  # it was given image states that no norm made: MllamaCrossAttentionDecoderLayer
    role = BY_SOURCE.get((name, path), role)
    return "pre_mixer" if role.startswith("pre_attention:") else str(role).split(":")[0]


def by_name(roles: RoleMap) -> dict[str, NormTensor]:
    return {tensor.name: tensor for tensor in roles.tensors}


# Against traced models


# One test over all traced models: an item each would cost more.
def test_every_traced_norm_has_the_role_type_offset_and_sharing_of_its_module() -> None:
    for name in KNOWN:
        check_as_traced(name)


def check_as_traced(name: str) -> None:
    roles = roles_of(name)
    found = by_name(roles)
    for row in TRACED[name]["norms"]:
        for tensor in (found[each] for each in names_of(row)):
            role = true_role(name, row, tensor.name)
            if role != "unused":
                assert tensor.role == role, (name, tensor)
            elif roles.main_tower not in ("vision", "audio") and "cross" not in str(TRACED[name]["config"]):
                # what the text run did not use is never in the main tower with a role
                assert tensor.role == "other" or tensor.tower != roles.main_tower, (name, tensor)
            if tensor.role != "other" and row[3] != "unused" and row[4] != "unknown":
                offset = row[5] if tensor.kind == "weight" else 0.0
                assert (tensor.norm_type, tensor.offset, tensor.shared) == (row[4], offset, row[6]), (name, tensor)


@pytest.mark.parametrize("name", sorted(UNKNOWN))
def test_a_traced_family_without_a_table_is_an_error(name: str) -> None:
    with pytest.raises(RoleError, match="While giving roles to the norms of org/model@0123abc"):
        roles_of(name)


def test_a_family_read_as_another_never_gets_a_wrong_role_without_its_config() -> None:
    for name in KNOWN:
        check_by_names(name)


def check_by_names(name: str) -> None:
    try:
        found = by_name(map_roles(shapes_of(TRACED[name]), None, where=WHERE))
    except RoleError:
        return
    towers = {tensor.name: tensor.tower for tensor in roles_of(name).tensors}
    for row in TRACED[name]["norms"]:
        for tensor in names_of(row):
            role = true_role(name, row, tensor)
            if role != "unused":
                assert found[tensor].role in (role, "other"), (name, tensor)
                assert found[tensor].role == "other" or found[tensor].tower == towers[tensor], (name, tensor)


# Real names of families whose code lives in their repos


def checkpoint(table: str, layers: int = 3, width: int = 8, bias: bool = False) -> tuple[Shapes, dict[str, str]]:
    """Shapes and expected roles from ``path role``, by lines or ``;``; two projections stand between the norms."""
    shapes: Shapes = {}
    expected = {}
    for line in filter(str.strip, re.split("[\n;]", table)):
        path, role = line.split()
        for layer in range(layers) if "*" in path else [0]:
            for kind in ("weight", "bias") if bias else ("weight",):
                name = f"{path.replace('*', str(layer))}.{kind}"
                shapes[name], expected[name] = (width,), role
    shapes |= {f"layers.{layer}.proj.weight": (width, width) for layer in range(layers)}
    return shapes, expected


LLAMA = (
    "model.layers.*.input_layernorm pre_attention; model.layers.*.post_attention_layernorm pre_mlp; model.norm final;"
)
GPT2 = "transformer.h.*.ln_1 pre_attention; transformer.h.*.ln_2 pre_mlp; transformer.ln_f final"
BERT = (
    "embeddings.LayerNorm embedding; encoder.layer.*.attention.output.LayerNorm post_attention; "
    "encoder.layer.*.output.LayerNorm post_mlp"
)
CONSOLIDATED = "layers.*.attention_norm pre_attention; layers.*.ffn_norm pre_mlp; norm final;"
PIXTRAL = (
    CONSOLIDATED + "vision_encoder.transformer.layers.*.attention_norm vision/pre_attention; "
    "vision_encoder.transformer.layers.*.ffn_norm vision/pre_mlp; vision_encoder.ln_pre vision/embedding; "
    "pre_mm_projector_norm other"
)
LATENT = "layers.*.attention.q_a_norm other\nlayers.*.attention.kv_a_norm other"
GPT_OSS = "block.*.attn.norm pre_attention\nblock.*.mlp.norm pre_mlp\nnorm final"
DEEPSEEK = (
    "layers.*.attn_norm pre_attention; layers.*.ffn_norm pre_mlp; layers.*.attn.q_norm other; "
    "layers.*.attn.kv_norm other; norm final"
)
WHISPER = (
    "decoder.blocks.*.attn_ln pre_attention; decoder.blocks.*.cross_attn_ln pre_cross_attention; "
    "decoder.blocks.*.mlp_ln pre_mlp; decoder.ln final; encoder.blocks.*.attn_ln encoder/pre_attention; "
    "encoder.blocks.*.mlp_ln encoder/pre_mlp; encoder.ln_post encoder/final"
)
RWKV = "blocks.*.ln1 pre_mixer; blocks.*.ln2 pre_mlp; blocks.*.att.ln_x other; ln_out final; blocks.0.ln0 embedding"
OPEN_CLIP = (
    "transformer.resblocks.*.ln_1 pre_attention; transformer.resblocks.*.ln_2 pre_mlp; ln_final final; "
    "visual.ln_pre vision/embedding; visual.transformer.resblocks.*.ln_1 vision/pre_attention; "
    "visual.transformer.resblocks.*.ln_2 vision/pre_mlp; visual.ln_post vision/final"
)
_MTP = "model.layers.3.input_layernorm mtp/pre_attention; model.layers.3.post_attention_layernorm mtp/pre_mlp"
_MTP += "; model.layers.3.enorm mtp/other; model.layers.3.hnorm mtp/other"
_ONE_MTP = {"num_nextn_predict_layers": 1}
_MISTRAL3 = {f"{part}_config": {"model_type": kind, "num_hidden_layers": 3}
             for part, kind in (("text", "mistral"), ("vision", "pixtral"))}  # fmt: skip
# Names, whether there are biases, the config: of families whose code lives in their repos, by model type.
NAMED: dict[str, tuple[str, bool, dict[str, Any]]] = {
    **{kind: (LLAMA, False, {}) for kind in (
        "yi", "baichuan", "skywork", "internlm", "aquila", "minicpm", "deepseek", "xverse", "bailing_moe", "kimi_k2",
        "solar_open")},
    **{kind: (LLAMA, True, {}) for kind in ("orion", "phimoe")},
    "stablelm_epoch": (LLAMA, True, {"use_parallel_residual": True}),
    "Yi": ("model.layers.*.ln1 pre_attention; model.layers.*.ln2 pre_mlp; model.norm final", False, {}),
    "phi4mm": (LLAMA + "model.embed_tokens_extend.image_embed.img_processor.encoder.layers.*.layer_norm1 vision/other; "
        "model.embed_tokens_extend.audio_embed.encoder.encoders.*.feed_forward_in.layer_norm audio/other", False, {}),
    "hunyuan": (
        LLAMA + "model.layers.*.self_attn.query_layernorm q_norm;model.layers.*.self_attn.key_layernorm k_norm", False,
        {"norm_type": "hf_rms", "mamba": False, "use_qk_norm": True}),
    "bailing_moe_v2": (
        LLAMA + "model.layers.*.attention.query_layernorm q_norm;model.layers.*.attention.key_layernorm k_norm;"
        + _MTP + "; model.layers.3.attention.query_layernorm mtp/q_norm; "
        "model.layers.3.attention.key_layernorm mtp/k_norm; model.layers.3.final_layernorm mtp/final", False,
        {"use_qk_norm": True, "use_rmsnorm": True, **_ONE_MTP}),
    "new": ("new.embeddings.LayerNorm embedding; new.encoder.layer.*.attn_ln post_attention; "
        "new.encoder.layer.*.mlp_ln post_mlp", True, {"layer_norm_type": "layer_norm"}),
    "qwen": (GPT2, False, {}),
    "jais": (GPT2, True, {}),
    "chatglm": (LLAMA.replace("model.norm", "model.final_layernorm").replace("model.", "transformer.encoder."), False,
        {"rmsnorm": True, "apply_residual_connection_post_layernorm": False}),
    "phi-msft": ("transformer.h.*.ln pre_attention; lm_head.ln final", True, {}),
    "RefinedWebModel": ("transformer.h.*.input_layernorm pre_attention; transformer.ln_f final", True,
        {"parallel_attn": True, "multi_query": True}),
    "RefinedWeb": (
        "transformer.h.*.ln_attn pre_attention; transformer.h.*.ln_mlp pre_mlp; transformer.ln_f final", True,
        {"parallel_attn": True, "n_head_kv": 8}),
    "openelm": ("transformer.layers.*.attn_norm pre_attention; transformer.layers.*.ffn_norm pre_mlp; "
        "transformer.layers.*.attn.q_norm q_norm; transformer.layers.*.attn.k_norm k_norm; transformer.norm final",
        False, {"num_transformer_layers": 3}),
    "internvl_chat": ("language_model.model.layers.*.attention_norm pre_attention; "
        "language_model.model.layers.*.ffn_norm pre_mlp; language_model.model.norm final; "
        "vision_model.encoder.layers.*.norm1 vision/other; mlp1.0.norm other", False,
        {"llm_config": {"model_type": "internlm2", "num_hidden_layers": 3}}),
    # Prefixes, blocks of other kinds, and blocks for multi-token prediction.
    **{f"a Llama below {root!r}": (LLAMA.replace("model.", root), False, {"model_type": "llama"})
       for root in ("", "model.language_model.", "language_model.model.", "thinker.model.")},
    "a class that is listed": (LLAMA, False, {"model_type": "mine", "architectures": ["LlamaForCausalLM"]}),
    "Solar Open has neither query norms nor an MTP block": (LLAMA + "model.layers.*.self_attn.q_norm other"
        "; model.layers.3.input_layernorm other", False, {"model_type": "solar_open", **_ONE_MTP}),
    **{f"{kind}: its MTP block ends in a final_layernorm": (LLAMA.replace("pre_attention", role) + _MTP
        + "; model.layers.3.final_layernorm mtp/final", False, {"model_type": kind, **_ONE_MTP})
       for kind, role in (("bailing_hybrid", "pre_mixer"), ("sarvam_moe", "pre_attention"))},
    "a block past the last one": (LLAMA + _MTP + "; model.layers.3.shared_head.norm mtp/final", False,
        {"model_type": "glm4_moe", **_ONE_MTP}),
    "MiMo's MTP blocks lie beside the others and count from zero": (LLAMA +
        "model.mtp_layers.0.token_layernorm mtp/other; model.mtp_layers.0.hidden_layernorm mtp/other; "
        "model.mtp_layers.0.input_layernorm mtp/pre_attention; "
        "model.mtp_layers.0.post_attention_layernorm mtp/pre_mlp; model.mtp_layers.0.final_layernorm mtp/final", False,
        {"model_type": "mimo", **_ONE_MTP}),
    "Qwen3-Next's MTP block has a prefix": (LLAMA.replace("pre_attention", "pre_mixer") +
        "mtp.layers.0.input_layernorm mtp/pre_attention; mtp.layers.0.post_attention_layernorm mtp/pre_mlp; "
        "mtp.norm mtp/final; mtp.pre_fc_norm_hidden mtp/other", False, {"model_type": "qwen3_next"}),
    "the letters of Nemotron-H": ("backbone.layers.0.norm pre_mixer; backbone.layers.1.norm pre_mlp"
        "; backbone.layers.2.norm pre_attention; backbone.layers.3.norm pre_mlp; backbone.norm_f final",
        False, {"model_type": "nemotron_h", "num_hidden_layers": 4, "hybrid_override_pattern": "M-*E"}),
    "a letter of Nemotron-H to come": ("backbone.layers.0.norm pre_mixer; backbone.layers.1.norm other; "
        "backbone.layers.2.norm pre_attention; backbone.norm_f final", False,
        {"model_type": "nemotron_h", "hybrid_override_pattern": "M?*"}),
    "the cross-attention of Mllama": ("model.layers.0.input_layernorm pre_attention; model.norm final"
        "; model.layers.1.input_layernorm pre_cross_attention; model.layers.2.input_layernorm pre_attention"
        "; model.layers.*.post_attention_layernorm pre_mlp; model.layers.1.cross_attn.q_norm q_norm"
        "; model.layers.1.cross_attn.k_norm k_norm", False,
        {"model_type": "mllama_text_model", "cross_attention_layers": [1]}),
    "a MiniMax with a normed residual stream": ("model.layers.*.input_layernorm other; model.norm final"
        "; model.layers.*.post_attention_layernorm post_attention", False,
        {"model_type": "minimax_m1", "postnorm": True}),
    **{f"a Mamba below {root!r}": (
        f"{root}layers.*.norm pre_mixer; {root}layers.*.mixer.norm other; {root}norm_f final", False,
        {"model_type": "mamba2"}) for root in ("model.backbone.", "model.")},
}  # fmt: skip
# Names of first releases, which tell the family without a config as well.
NATIVE: dict[str, tuple[str, bool, dict[str, Any]]] = {
    **{
        f"native {kind}": (CONSOLIDATED, False, {"model_type": kind})
        for kind in ("llama", "mistral", "mixtral", "ministral3")
    },
    "params.json": (CONSOLIDATED, False, {"dim": 8, "n_layers": 3, "vocab_size": 32768}),
    "native mistral4": (CONSOLIDATED + LATENT, False, {"model_type": "mistral4"}),
    "native llava": (PIXTRAL, False, {"model_type": "llava", **_MISTRAL3}),
    "native pixtral": (PIXTRAL, False, {"model_type": "pixtral"}),
    "native gpt_oss": (GPT_OSS, False, {"model_type": "gpt_oss"}),
    "original/config.json": (GPT_OSS, False, {"num_experts": 32}),
    "native deepseek_v3": (DEEPSEEK, False, {"model_type": "deepseek_v3"}),
    "native whisper": (WHISPER, True, {"model_type": "whisper", "encoder_layers": 3, "decoder_layers": 3}),
    "native clip": (OPEN_CLIP, True, {"model_type": "clip"}),
    "native rwkv": (RWKV, True, {"model_type": "rwkv"}),
}


@pytest.mark.parametrize("name", NAMED | NATIVE)
def test_names_get_their_roles_and_their_layers_numbers(name: str) -> None:
    table, bias, config = (NAMED | NATIVE)[name]
    shapes, expected = checkpoint(table, bias=bias)
    if table == GPT_OSS:
        shapes = {name.replace("norm.weight", "norm.scale"): shape for name, shape in shapes.items()}
        expected = {name.replace("norm.weight", "norm.scale"): role for name, role in expected.items()}
    told = {"model_type": name} | config if name in NAMED else {"num_hidden_layers": 3} | config
    for one in (told, None) if name in NATIVE else (told,):
        roles = map_roles(shapes, one and {"num_hidden_layers": 3, "n_layer": 3} | one, where=WHERE)
        assert [(t.name, roles.key(t)) for t in roles.tensors] == list(expected.items())
        assert {t.offset for t in roles.tensors} == {1.0 if config.get("model_type") == "qwen3_next" else 0.0}
        layers: dict[str, set[int]] = {}
        for tensor in roles.tensors:
            number = next((int(part) for part in tensor.name.split(".") if part.isdigit()), -1)
            if tensor.role not in ("other", "embedding") or tensor.tower == "mtp":
                assert tensor.layer == number, tensor
                layers.setdefault(tensor.tower, set()).update({number} - {-1})
        assert roles.n_layers == {name: 1 + max(found) - min(found) for name, found in layers.items()}
        assert roles.missing_layers == {}
        assert roles.norm_type == ("layernorm" if bias else "rmsnorm")
        in_blocks = {t.shared for t in roles.tensors if t.layer >= 0}
        assert in_blocks == {name in ("phi-msft", "RefinedWebModel")}


def test_the_old_spelling_gamma_and_beta_is_read() -> None:
    shapes, expected = checkpoint(BERT, bias=True)
    old = {name.replace(".weight", ".gamma").replace(".bias", ".beta"): shape for name, shape in shapes.items()}
    roles = read(old, "bert")
    assert [tensor.role for tensor in roles.tensors] == list(expected.values())
    assert {t.kind for t in roles.tensors if t.name.endswith(".beta")} == {"bias"}


def test_an_mtp_block_is_known_by_its_own_norms_and_a_gap_where_the_config_promises_it() -> None:
    shapes = checkpoint(LLAMA + _MTP)[0]
    assert map_roles(shapes, None, model_type="glm4_moe", where=WHERE).n_layers == {"text": 3, "mtp": 1}
    missing = read(checkpoint(LLAMA)[0], "glm4_moe", **_ONE_MTP).missing_layers
    assert missing == {"mtp/pre_attention": (3,), "mtp/pre_mlp": (3,), "mtp/final": (3,)}


# Towers


def test_a_vision_tower_with_a_table_has_roles_of_its_own_and_stores_no_gamma_minus_one() -> None:
    roles = roles_of("gemma3")
    keys = {roles.key(tensor) for tensor in roles.tensors}
    assert keys >= {"pre_attention", "post_attention", "pre_mlp", "post_mlp", "final", "vision/pre_attention", "other"}
    assert (roles.main_tower, roles.n_layers) == ("text", {"text": 4, "vision": 4})
    assert {t.offset for t in roles.tensors if t.tower == "vision"} == {0.0}
    assert any("Gamma is stored minus one" in note for note in roles.notes)
    unknown = TRACED["gemma3"]["config"] | {"vision_config": {"model_type": "unheard_of"}}
    vision = [t for t in map_roles(shapes_of(TRACED["gemma3"]), unknown, where=WHERE).tensors if "vision_" in t.name]
    assert {(t.tower, t.role, t.norm_type) for t in vision} == {("vision", "other", "layernorm")}


def test_the_encoder_of_t5_alone_becomes_the_main_tower_and_the_decoder_is_missing() -> None:
    shapes = {name: shape for name, shape in shapes_of(TRACED["t5"]).items() if name.startswith("encoder.")}
    roles = map_roles(shapes, TRACED["t5"]["config"], where=WHERE)
    assert roles.main_tower == "encoder"
    assert roles.missing_layers["decoder/pre_cross_attention"] == (0, 1, 2, 3)


# Layer kinds


@pytest.mark.parametrize(("model_type", "names", "config", "attention"), [
    ("lfm2", "model.layers.*.operator_norm x; model.layers.*.ffn_norm y; model.embedding_norm z",
        {"full_attn_idxs": [0, 2]}, (0, 2)),
    ("qwen3_next", LLAMA, {}, (3, 7)),
    ("qwen3_next", LLAMA, {"full_attention_interval": 2}, (1, 3, 5, 7)),
])  # fmt: skip
def test_a_norm_in_front_of_a_mixer_is_pre_mixer_and_no_gap_of_attention(
    model_type: str, names: str, config: dict[str, Any], attention: tuple[int, ...]
) -> None:
    roles = read(checkpoint(names, layers=8)[0], model_type, num_hidden_layers=8, **config)
    assert tuple(t.layer for t in roles.tensors if t.role == "pre_attention") == attention
    mixer = sorted(set(range(8)) - set(attention))
    assert [t.layer for t in roles.tensors if t.role == "pre_mixer"] == mixer
    assert roles.missing_layers == {"q_norm": attention, "k_norm": attention}


# What a mixer holds, and what an attention does, in the layers of a traced model.
HYBRIDS = {
    "qwen3_next": ("linear_attn.in_proj_qkvz", "self_attn.q_proj"),
    "olmo_hybrid": ("linear_attn.A_log", "self_attn.q_proj"),
    "lfm2": ("conv.in_proj", "self_attn.q_proj"),
    "lfm2_moe": ("conv.in_proj", "self_attn.q_proj"),
    "bamba": ("mamba.in_proj", "self_attn.q_proj"),
    "jamba": ("mamba.A_log", "self_attn.q_proj"),
    "granitemoehybrid": ("mamba.in_proj", "self_attn.q_proj"),
    "kimi_linear": ("self_attn.A_log", "self_attn.kv_a_proj_with_mqa"),
    "bailing_hybrid": ("attention.A_log", "attention.kv_a_proj_with_mqa"),
    "zamba2": ("mamba.in_proj", "mamba_decoder.mamba.in_proj"),
    "mllama": ("self_attn.q_proj", "cross_attn.q_proj"),
}


def with_parts(name: str) -> Shapes:
    """A traced model with one more tensor a layer, of a mixer and of an attention in turn: what shows its kind."""
    root = "language_model.model" if name == "mllama" else "model"
    parts = {f"{root}.layers.{layer}.{HYBRIDS[name][layer % 2]}.weight": (8, 8) for layer in range(4)}
    return shapes_of(TRACED[name]) | parts


def without_kinds(name: str) -> dict[str, Any]:
    """The config without what tells the layers' kinds, nor the number that a class default would go by."""
    config = TRACED[name]["config"]
    return {"model_type": config.get("text_config", config)["model_type"]}


@pytest.mark.parametrize("name", HYBRIDS)
def test_what_a_layer_holds_tells_its_kind_where_the_config_does_not(name: str) -> None:
    shapes, truth = with_parts(name), by_name(roles_of(name))
    for config in (without_kinds(name), None):
        if config is None and name in ("olmo_hybrid", "mllama"):  # others have the same names
            continue
        roles = map_roles(shapes, config, where=WHERE)
        of_text = [t for t in roles.tensors if t.tower == "text"]
        assert [(t.role, t.layer) for t in of_text] == [(truth[t.name].role, truth[t.name].layer) for t in of_text]
        assert any("taken from the other tensors" in note for note in roles.notes)
        alone = {tensor.name: shapes[tensor.name] for tensor in roles.tensors}  # as an extract keeps them
        kept = {"model_type": "", **(config or {}), **roles.shown}
        assert map_roles(alone, kept, where=WHERE).tensors == roles.tensors


@pytest.mark.parametrize("name", ["bamba", "jamba", "nemotron_h", "recurrent_gemma"])
def test_a_hybrid_whose_layers_nothing_tells_apart_is_an_error_and_no_guess(name: str) -> None:
    with pytest.raises(RoleError, match=r"depends on the kind of its layer; .* found neither for layers [01], [123]"):
        map_roles(shapes_of(TRACED[name]), without_kinds(name), where=WHERE)
    with pytest.raises(RoleError, match="there is no config"):
        map_roles(shapes_of(TRACED[name]), None, where=WHERE)


def test_one_layer_that_shows_two_kinds_is_an_error() -> None:
    shapes = with_parts("bamba") | {"model.layers.2.self_attn.q_proj.weight": (8, 8)}
    with pytest.raises(RoleError, match="found neither for layers 2"):
        map_roles(shapes, without_kinds("bamba"), where=WHERE)


def test_a_bare_mamba_is_known_by_its_mixers_and_a_bare_nemotron_h_by_all_of_its_kinds() -> None:
    shapes = checkpoint("backbone.layers.*.norm x\nbackbone.norm_f z")[0]
    mixers = {f"backbone.layers.{layer}.mixer.A_log": (8,) for layer in range(3)}
    assert [t.role for t in map_roles(shapes | mixers, None, where=WHERE).tensors] == ["pre_mixer"] * 3 + ["final"]
    mixed = mixers | {"backbone.layers.1.mixer.q_proj.weight": (8, 8)}
    del mixed["backbone.layers.1.mixer.A_log"]
    roles = map_roles(shapes | mixed, None, where=WHERE)
    assert [t.role for t in roles.tensors] == ["pre_mixer", "pre_attention", "pre_mixer", "final"]


# Wrappers

LLAMA3 = {"model_type": "llama", "num_hidden_layers": 3}
WRAPPERS = [
    ("^", "_orig_mod.", "torch.compile"), ("^", "module.", "DataParallel"), ("^", "base_model.model.", "PEFT"),
    ("^", "module._orig_mod.", "torch.compile"), ("^", "_fsdp_wrapped_module.", "FSDP"),
    ("^", "_forward_module.module.", "Fabric"), ("^", "0.auto_model.", "sentence-transformers"),
    (r"model\.layers\.1\.", "model.layers.1._checkpoint_wrapped_module.", ""),
    (r"layernorm\.weight", "layernorm.base_layer.weight", ""),
    (r"layernorm\.weight", "layernorm.modules_to_save.default.weight", ""),
    (r"layernorm\.weight", "layernorm.modules_to_save.weight", ""),
    (r"layernorm\.weight", "layernorm.ln_tuning_layers.default.weight", ""),
    (r"norm\.weight", "norm.original_module.weight", ""),
]  # fmt: skip


@pytest.mark.parametrize(("place", "wrapped", "tool"), WRAPPERS)
@pytest.mark.parametrize("config", [None, LLAMA3])
def test_a_wrapper_around_or_inside_the_model_is_left_out_and_told_and_the_names_stay(
    place: str, wrapped: str, tool: str, config: dict[str, Any] | None
) -> None:
    shapes, expected = checkpoint(LLAMA)
    names = {name: re.sub(place, wrapped, name) for name in shapes}
    roles = map_roles({names[name]: shape for name, shape in shapes.items()}, config, where=WHERE)
    assert {t.name: t.role for t in roles.tensors} == {names[name]: role for name, role in expected.items()}
    assert [t.layer for t in roles.tensors if t.role == "pre_mlp"] == [0, 1, 2]
    notes = [note for note in roles.notes if "Left out of the names" in note and tool in note]
    assert len(notes) == 1 if tool else notes
    assert roles.missing_layers == {}


@pytest.mark.parametrize("config", [None, LLAMA3])
@pytest.mark.parametrize(("first", "second"), [
    ("model.norm.original_module.weight", "model.norm.modules_to_save.default.weight"),
    ("model.norm.modules_to_save.default.weight", "model.norm.modules_to_save.other.weight"),
    ("module.model.norm.weight", "model.norm.weight"),
])  # fmt: skip
def test_two_norms_that_only_a_wrapper_tells_apart_are_refused_by_both_names(
    first: str, second: str, config: dict[str, Any] | None
) -> None:
    shapes = {name: shape for name, shape in checkpoint(LLAMA)[0].items() if name != "model.norm.weight"}
    with pytest.raises(RoleError) as caught:
        map_roles(shapes | {first: (8,), second: (8,)}, config, where=WHERE)
    assert first in str(caught.value)
    assert second in str(caught.value)


# One tower alone


@pytest.mark.parametrize("with_config", [True, False])
@pytest.mark.parametrize("bare", [True, False])
@pytest.mark.parametrize(("name", "prefix", "tower"), [
    *((name, "encoder.", "encoder") for name in ("t5", "mt5", "umt5")),
    ("t5", "decoder.", "decoder"),
    *((name, "model.encoder.", "encoder") for name in ("whisper", "m2m_100")),
    ("whisper", "model.decoder.", "decoder"),
    ("bart", "model.encoder.", "encoder"),
    ("siglip", "vision_model.", "vision"),
    ("clip", "text_model.", "text"),
    ("qwen2_audio", "audio_tower.", "audio"),
])  # fmt: skip
def test_a_tower_saved_alone_keeps_its_true_name_or_is_an_error(
    name: str, prefix: str, tower: str, bare: bool, with_config: bool
) -> None:
    whole = {t.name: t for t in roles_of(name).tensors if t.name.startswith(prefix)}
    shapes = {t: shape for t, shape in shapes_of(TRACED[name]).items() if t in whole}
    cut = len(prefix) if bare else 0
    shapes = {t[cut:]: shape for t, shape in shapes.items()}
    config = TRACED[name]["config"] if with_config else None
    # Without a config and a prefix these are the names of encoders, decoders and text models alike; BART's without a
    # config are those of blocks with the norm in front or behind.
    unclear = not with_config and (name == "bart" or (bare and name in ("whisper", "m2m_100", "qwen2_audio")))
    if unclear:
        with pytest.raises(RoleError, match="no table has exactly" if name == "bart" else "with these names disagree"):
            map_roles(shapes, config, where=WHERE)
        return
    roles = map_roles(shapes, config, where=WHERE)
    assert roles.main_tower == tower
    assert {(t.name, t.tower, t.role, t.layer) for t in roles.tensors} == {
        (t.name[cut:], t.tower, t.role, t.layer) for t in whole.values()
    }


# Adapters

LORA = {f"base_model.model.model.layers.{layer}.self_attn.q_proj.lora_A.weight": (8, 8) for layer in range(3)}


@pytest.mark.parametrize(("names", "kind"), [
    (LORA, "LoRA"),
    ({"base_model.model.model.layers.0.mlp.down_proj.ia3_l": (1, 8)}, "IA3"),
    ({name.replace("lora_A.weight", "lora_magnitude_vector"): shape for name, shape in LORA.items()}, "LoRA"),
    ({"lora_unet_down_blocks_0.lora_down.weight": (4, 8)}, "LoRA"),
    ({"prompt_embeddings": (8, 8)}, "prompt tuning"),
])  # fmt: skip
@pytest.mark.parametrize("config", [None, LLAMA3])
def test_an_adapter_without_norms_says_what_it_is_and_to_name_its_base_model(
    names: Shapes, kind: str, config: dict[str, Any] | None
) -> None:
    with pytest.raises(RoleError, match=rf"an adapter \({kind}\).*no norms of its own. Name its base model, whose"):
        map_roles(names, config, where=WHERE)
    with pytest.raises(RoleError, match=r"Name its base model \(org/base\)") as caught:
        map_roles(names, {**(config or {}), "base_model_name_or_path": "org/base"}, where=WHERE)
    assert "Add an entry" not in str(caught.value)


def test_the_trained_norms_of_an_adapter_are_read() -> None:
    expected = checkpoint(LLAMA)[1]
    norms = {f"base_model.model.{name}": (8,) for name in expected}
    roles = map_roles(LORA | norms, {"peft_type": "LORA", "base_model_name_or_path": "org/base"}, where=WHERE)
    assert [t.role for t in roles.tensors] == list(expected.values())
    final = {name: shape for name, shape in norms.items() if name.endswith("model.norm.weight")}
    with pytest.raises(RoleError, match=r"some trained norms: model\.norm\.weight\. Pass the model_type of its base"):
        map_roles(LORA | final, None, where=WHERE)
    roles = map_roles(LORA | final, {"base_model_name_or_path": "org/base"}, where=WHERE, model_type="llama")
    assert [(t.role, t.tower) for t in roles.tensors] == [("final", "text")]
    assert roles.missing_layers == {}
    assert "An adapter (LoRA) of org/base, which has the norms that are not here." in roles.notes


# Look-alikes

LOOK_ALIKES = (
    "model.layers.0.self_attn.indexer.k_norm.weight", "model.layers.0.mixer.norm.weight",
    "model.layers.00.input_layernorm.weight", "model.layers.7.input_layernorm.weight",
    "model.layers.-1.input_layernorm.weight", "model.layers.99999999999999999999.input_layernorm.weight",
    "model.layers.\u0663.input_layernorm.weight", "model.layers.0.input_layernorm.0.weight",
    "norm.weight", "draft.layers.0.input_layernorm.weight", "score.LayerNorm.weight",
)  # fmt: skip


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_look_alike_is_other_and_is_named_in_a_note(name: str) -> None:
    roles = read(checkpoint(LLAMA)[0] | {name: (8,)})
    assert by_name(roles)[name].role == "other"
    assert any("Read as other" in note for note in roles.notes)
    assert roles.missing_layers == {}


def test_what_is_no_norm_parameter_is_not_listed() -> None:
    names = (
        "transformer.blocks.0.norm_attn_norm.attn.Wqkv.weight", "model.layers.0.mlp.gate.e_score_correction_bias",
        "model.layers.0.input_layernorm.running_mean", "model.layers.0.input_layernorm.weight_scale",
    )  # fmt: skip
    shapes = checkpoint(LLAMA)[0]
    assert read(shapes | dict.fromkeys(names, (8, 8))) == read(shapes)


def test_a_matrix_under_a_norm_name_is_no_norm_and_leaves_a_gap() -> None:
    shapes = checkpoint(LLAMA)[0] | {"model.layers.1.input_layernorm.weight": (8, 8)}
    roles = read(shapes)
    assert "model.layers.1.input_layernorm.weight" not in by_name(roles)
    assert roles.missing_layers == {"pre_attention": (1,)}


def test_a_query_norm_with_a_row_a_head_is_a_query_norm() -> None:
    roles, shapes = roles_of("cohere-qk"), shapes_of(TRACED["cohere-qk"])
    assert {t.role for t in roles.tensors if len(shapes[t.name]) == 2} == {"q_norm", "k_norm"}
    assert any("a head at a time" in note for note in roles.notes)


# Gaps

BLOCK = "model.layers.{}_layernorm.weight"
GAPS: dict[str, tuple[str, dict[str, Any], tuple[str, ...], dict[str, tuple[int, ...]]]] = {
    "a role that is wholly absent": ("llama", {}, tuple(BLOCK.format(f"{n}.post_attention") for n in range(4)),
        {"pre_mlp": (0, 1, 2, 3)}),
    "a norm, the last layer and the final norm": ("llama", {"num_hidden_layers": 5},
        (BLOCK.format("1.input"), "model.norm.weight"),
        {"pre_attention": (1, 4), "pre_mlp": (4,), "final": (-1,)}),
    "by design, ModernBERT's first norm": ("modernbert", {}, (), {"pre_attention": (0,)}),
    "by design, norms that ALBERT shares": ("albert", {}, (),
        {"post_attention": (1, 2, 3), "post_mlp": (1, 2, 3)}),
    "of a mixer and of an attention": ("bamba", {}, (BLOCK.format("2.input"), BLOCK.format("3.input")),
        {"pre_mixer": (2,), "pre_attention": (3,)}),
    "of the second block of a LongCat layer": ("longcat_flash", {}, ("model.layers.2.input_layernorm.1.weight",),
        {"pre_attention": (5,)}),
    **{f"of a key norm, {shared} layers sharing keys": ("gemma3n_text", {"num_kv_shared_layers": shared},
        ("model.layers.3.self_attn.k_norm.weight",), gap) for shared, gap in ((1, {}), (0, {"k_norm": (3,)}))},
}  # fmt: skip


@pytest.mark.parametrize(("name", "more", "removed", "gaps"), GAPS.values(), ids=GAPS)
def test_every_layer_that_lacks_a_norm_is_named_and_the_others_keep_their_numbers(
    name: str, more: dict[str, Any], removed: tuple[str, ...], gaps: dict[str, tuple[int, ...]]
) -> None:
    shapes, config = shapes_of(TRACED[name]), TRACED[name]["config"]
    assert shapes.keys() >= set(removed)
    left = {tensor: shape for tensor, shape in shapes.items() if tensor not in removed}
    roles, whole = map_roles(left, config | more, where=WHERE), by_name(roles_of(name))
    assert roles.missing_layers == gaps
    assert [(t.role, t.layer) for t in roles.tensors] == [
        (whole[t.name].role, whole[t.name].layer) for t in roles.tensors
    ]


LOST = {name: TRACED[name]["config"] for name in (
    "qwen3", "qwen3_moe", "qwen3_vl", "qwen3_vl_text", "qwen3_omni_moe_thinker", "qwen3_next", "qwen3_5", "gemma3",
    "gemma3_text", "olmoe", "olmo2", "olmo_hybrid", "exaone4", "exaone_moe", "dots1", "minimax_m2", "apertus", "afmoe",
    "hunyuan_v1_dense", "hunyuan_v1_moe", "lfm2", "gemma3n_text", "gemma4_text", "t5gemma2", "mllama",
)}  # fmt: skip
LOST |= {
    "glm4_moe-qk": TRACED["glm4_moe-qk"]["config"] | {"use_qk_norm": True, "num_nextn_predict_layers": 0},
    "cohere-qk": TRACED["cohere-qk"]["config"] | {"use_qk_norm": True},
    **{name: TRACED[name]["config"] | {"qk_layernorm": True} for name in ("stablelm-qk", "phi-qk", "persimmon")},
}


@pytest.mark.parametrize("name", LOST)
def test_query_and_key_norms_that_a_merge_tool_lost_are_missing_where_the_model_has_them(name: str) -> None:
    whole = map_roles(shapes_of(TRACED[name]), LOST[name], where=WHERE)
    lost: dict[str, set[int]] = {}
    for tensor in whole.tensors:
        if tensor.role in ("q_norm", "k_norm") and tensor.tower in ("text", "encoder", "decoder"):
            lost.setdefault(whole.key(tensor), set()).add(tensor.layer)
    left = {t.name: s for t in whole.tensors for s in [shapes_of(TRACED[name])[t.name]] if whole.key(t) not in lost}
    assert lost
    assert whole.missing_layers == {}
    missing = map_roles(left, LOST[name], where=WHERE).missing_layers
    assert {key: set(layers) for key, layers in missing.items()} == lost


@pytest.mark.parametrize(
    ("model_type", "key"),
    [("bailing_moe", "use_qk_norm"), ("hunyuan", "use_qk_norm"), ("openelm", "normalize_qk_projections")],
)
def test_the_config_decides_whether_query_norms_are_promised(model_type: str, key: str) -> None:
    names = NAMED[model_type][0].replace("q_norm", "q_proj").replace("k_norm", "k_proj")
    shapes = checkpoint(LLAMA if model_type == "hunyuan" else names)[0]
    promised = [
        {name for name in read(shapes, model_type, **more).missing_layers if name[0] in "qk"}
        for more in ({}, {key: False}, {key: True})
    ]
    assert promised == [set(), set(), {"q_norm", "k_norm"}]


# Gamma stored minus one, outside the blocks


@pytest.mark.parametrize(("name", "tensor", "offset"), [
    ("gemma3", "multi_modal_projector.mm_soft_emb_norm.weight", 1.0),
    ("t5gemma2", "model.encoder.multi_modal_projector.mm_soft_emb_norm.weight", 1.0),
    ("qwen3_next", "mtp.pre_fc_norm_embedding.weight", 1.0),
    ("qwen3_next", "mtp.layers.0.input_layernorm.weight", 1.0),
    ("qwen3_next", "mtp.norm.weight", 1.0),
    ("qwen3_next", "model.layers.0.linear_attn.norm.weight", 0.0),
    ("minimax_m3_vl_text", "model.layers.0.self_attn.indexer.q_norm.weight", 1.0),
    ("vaultgemma", "model.layers.0.pre_feedforward_layernorm.weight", 1.0),
    ("gemma4_text", "model.layers.0.self_attn.q_norm.weight", 0.0),
])  # fmt: skip
def test_a_norm_that_has_no_role_still_has_its_familys_offset(name: str, tensor: str, offset: float) -> None:
    block = {"mtp.layers.0.input_layernorm.weight": (8,), "mtp.layers.0.post_attention_layernorm.weight": (8,)}
    shapes = shapes_of(TRACED[name]) | {tensor: (8,)} | (block if tensor.startswith("mtp") else {})
    found = by_name(map_roles(shapes, TRACED[name]["config"], where=WHERE))[tensor]
    assert found.offset == offset
    assert (found.tower == "mtp") == tensor.startswith("mtp")


# Errors

WRONG_NAMES: list[tuple[Shapes, dict[str, Any] | None, str]] = [
    (checkpoint(LLAMA)[0] | checkpoint(LLAMA.replace("model.", "language_model.model."))[0], LLAMA3,
     r"blocks appear twice, under 'model\.' and under 'language_model\.model\.'"),
    (checkpoint(LLAMA + "model.layers.*.ln1 pre_attention")[0], {"model_type": "yi", "num_hidden_layers": 3},
     "would both be the pre_attention weight of layer 0; expected one"),
    (checkpoint(LLAMA + "model.layers.*.pre_feedforward_layernorm pre_mlp")[0], LLAMA3,
     "norms that the blocks of 'llama' do not have"),
    (checkpoint(LLAMA + "model.layers.*.some_norm other")[0], None, "no table has exactly these names"),
    ({"a.weight": (2, 2)}, {"model_type": "llama"}, "no norm-like names at all"),
    *(({"model.layers.0.mlp.weight": (8, 8)}, {"model_type": kind}, "norms of this family have no weights")
      for kind in ("olmo", "nanochat")),
]  # fmt: skip


_TWICE, _POSTNORM = "residual stream is taken after the norm", "'postnorm' is true, and only such blocks were traced"
REFUSED: list[tuple[Any, str]] = [
    ({"model_type": "hunyuan", "mamba": True}, "has no table"),  # layouts that no source settles
    ({"model_type": "hunyuan", "norm_type": "fused"}, "has no table"),
    ({"model_type": "hunyuan_moe"}, "has no table"),
    ({"model_type": "bailing_moe", "use_qk_norm": True, "use_rmsnorm": False}, "has no table"),
    ({"model_type": "RefinedWebModel", "n_layer": 3}, "has no table"),
    ({"model_type": "new", "layer_norm_type": "rms_norm"}, "has no table"),
    ({"model_type": 7}, "has no table"),
    ({"architectures": 3}, "has no table"),
    ({"text_config": {}}, "has no table"),
    ({"model_type": "chatglm", "inner_hidden_size": 16384, "position_encoding_2d": True}, _TWICE),
    ({"model_type": "bloom", "apply_residual_connection_post_layernorm": True}, _TWICE),
    ({"model_type": "minimax", "postnorm": False}, _POSTNORM),
    ({"model_type": "minimax_m1"}, _POSTNORM),
    ({"model_type": "gpt2", "n_layer": 3}, "none of the block norms of 'gpt2' is there"),
    *((config, "expected a JSON object") for config in ([], "llama", 3)),
    *(
        ({"model_type": "llama", "num_hidden_layers": n}, "'num_hidden_layers' is .*; expected a whole number")
        for n in (-1, 10**9, "32", 3.5, True, [3])
    ),
]


@pytest.mark.parametrize(
    ("shapes", "config", "says"), [*WRONG_NAMES, *((checkpoint(LLAMA)[0], *row) for row in REFUSED)]
)
def test_names_and_a_config_that_no_table_fits_are_an_error_that_says_why(
    shapes: Shapes, config: Any, says: str
) -> None:
    with pytest.raises(RoleError, match=says):
        map_roles(shapes, config, where=WHERE)


def test_an_unknown_family_lists_its_names_safely_and_says_how_to_add_it() -> None:
    shapes = checkpoint("backbone.blocks.*.norm_a pre_attention\nbackbone.blocks.*.norm_b pre_mlp", layers=40)[0]
    odd: Shapes = dict.fromkeys(("layers." * 1500 + "norm.weight", "a\n\x1b[31m.norm.weight", ".weight", ""), (8,))
    for more in ({}, odd):
        with pytest.raises(RoleError) as caught:
            map_roles(shapes | more, {"model_type": "unheard_of"}, where=WHERE)
        message = str(caught.value)
        assert len(message) < 1000 + 200 * bool(more)
        assert "\n" not in message
        assert "\x1b" not in message
    assert "the model type 'unheard_of' has no table" in message
    assert "backbone.blocks.*.norm_a.weight, backbone.blocks.*.norm_b.weight" in message
    assert "families.toml" in message
    assert "model_type of a family with the same blocks" in message


@pytest.mark.parametrize("config", [{}, {"model_type": None}, {"model_type": "", "hidden_size": 8}])
def test_a_config_that_names_no_model_counts_as_none(config: dict[str, Any]) -> None:
    shapes = checkpoint(LLAMA)[0]
    assert map_roles(shapes, config, where=WHERE) == map_roles(shapes, None, where=WHERE)


def test_a_model_type_from_the_caller_goes_before_the_config() -> None:
    roles = map_roles(checkpoint(LLAMA)[0], {"model_type": "mine"}, where=WHERE, model_type="gemma")
    assert (roles.model_type, {t.offset for t in roles.tensors}) == ("gemma", {1.0})


# Without a config


def test_names_that_all_their_families_agree_on_are_read_with_a_note() -> None:
    roles = map_roles(checkpoint(LLAMA)[0], None, where=WHERE)
    assert {t.role for t in roles.tensors} == {"pre_attention", "pre_mlp", "final"}
    assert {t.offset for t in roles.tensors} == {0.0}
    assert any("roles from names alone" in note and "llama" in note and "gemma" in note for note in roles.notes)
    assert any("minus one; it is taken as stored" in note for note in roles.notes)


@pytest.mark.parametrize("name", ["opt", "wav2vec2-stable"])
def test_names_that_mean_two_things_are_an_error_without_a_config(name: str) -> None:
    shapes = shapes_of(TRACED[name])
    with pytest.raises(RoleError, match="there is no config"):
        map_roles(shapes, None, where=WHERE)
    with pytest.raises(RoleError, match="has several layouts, and there is no config to tell which"):
        map_roles(shapes, None, where=WHERE, model_type=name.split("-")[0])


@pytest.mark.parametrize("name", ["falcon-new", "falcon-serial", "stablelm"])
def test_block_norms_that_only_one_layout_has_decide_where_the_config_is_not_there(name: str) -> None:
    without = map_roles(shapes_of(TRACED[name]), None, where=WHERE, model_type=name.split("-")[0])
    assert without.tensors == roles_of(name).tensors


def test_a_bias_decides_between_families_without_a_config() -> None:
    assert map_roles(checkpoint(GPT2)[0], None, where=WHERE).norm_type == "rmsnorm"
    assert map_roles(checkpoint(GPT2, bias=True)[0], None, where=WHERE).norm_type == "layernorm"


# Hostile names


NAME = st.lists(
    st.sampled_from(["model", "layers", "norm", "0", "7", "99999", "input_layernorm", "self_attn", "", "ln_1", "é\n"]),
    max_size=8,
).map(".".join)


@settings(max_examples=100, deadline=None)
@given(names=st.lists(NAME, max_size=6), kind=st.sampled_from([".weight", ".bias", ".gamma", "_weight", ""]))
def test_any_names_give_a_map_or_a_role_error(names: list[str], kind: str) -> None:
    shapes: Shapes = {name + kind: (8,) for name in names}
    for config in (None, {"model_type": "llama", "num_hidden_layers": 2}):
        try:
            roles = map_roles(shapes, config, where=WHERE)
        except RoleError:
            continue
        assert all(tensor.role in ROLES and tensor.layer < 10_000 for tensor in roles.tensors)


# The tables themselves


def test_no_family_is_shadowed_by_one_without_a_condition() -> None:
    unconditional: dict[str, str] = {}
    for family in FAMILIES:
        for model_type in family.model_types:
            assert model_type not in unconditional, (model_type, family.name)
            if family.when is None:
                unconditional[model_type] = family.name


def test_a_malformed_line_is_quoted() -> None:
    with pytest.raises(ValueError, match="has the unknown flag 'sharde'"):
        patterns("layers.*.norm pre_mlp sharde")
    with pytest.raises(ValueError, match="has the role 'premlp'"):
        patterns("layers.*.norm premlp")
    with pytest.raises(ValueError, match="names two layers"):
        Pattern("layers.*.heads.*.norm", "q_norm")
    with pytest.raises(ValueError, match="has the tower 'txt'"):
        Stack("txt", patterns("layers.*.norm pre_mlp"))


def test_the_example_in_the_instructions_is_a_table() -> None:
    text = Path(table.__file__).with_name("families.toml").read_text("utf-8")
    example = text.split("'''")[1].replace("\n#", "\n")
    assert [pattern.role for pattern in patterns(example)] == ["pre_attention", "pre_mlp", "q_norm", "final"]


def test_a_family_without_a_table_says_why() -> None:
    assert [family.name for family in FAMILIES if not family.stacks and not family.note] == []


def test_a_parameter_of_the_block_itself_is_cut_into_name_and_kind() -> None:
    name = parse_name("decoder.layers.3.linear_qkv.layer_norm_weight", (8,))
    assert (name.template, name.numbers, name.kind) == ("decoder.layers.*.linear_qkv.layer_norm", (3,), "weight")


def test_a_long_list_of_names_is_cut_with_a_count() -> None:
    names = [parse_name(f"norm_{letter}.weight", (8,)) for letter in "abcdefghijklmnop"]
    assert collapse(names, limit=3)[-1] == "and 13 more"


OWN = """
[blocks]
second_of_mine = "blocks.*.second  pre_mlp"

[families.mine]
types = "mine"
table = '''
blocks.*.first   pre_attention
@second_of_mine'''

[families.llama]
table = "own.*.norm  post_mlp"
"""


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (OWN, "pre_attention pre_mlp post_mlp"),
        ("[families.mine", "Reading families of"),
        ("[families.mine]\ntable = 'a b'", "expected entries as in families.toml"),
    ],
)
def test_a_file_of_families_of_ones_own_is_read_before_the_table_and_replaces_those_of_the_same_name(
    content: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text(content, "utf-8")
    code = (
        "from lnsim.checkpoint.families.table import FAMILIES\n"
        "own = [family for family in FAMILIES if family.name in ('mine', 'llama')]\n"
        "print(*(one.role for family in own for one in family.stacks[0].patterns))\n"
        "assert any(family.name == 'bert' for family in FAMILIES)"
    )
    environment = {**os.environ, "LNSIM_FAMILIES": str(tmp_path / "own.toml")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert told in done.stdout + done.stderr
