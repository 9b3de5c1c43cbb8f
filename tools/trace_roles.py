"""This module traces, on tiny random models, which norm feeds what: the truth that the role tables are tested against.

    python tools/trace_roles.py OUT_DIR MODEL_TYPE ...

Needs the ``trace`` extra (torch, transformers); no weights and no network. For every model type (or variant, see
``tiny_models.py``) a small random model is built, run once with gradients, and its graph is read (``role_graph.py``).
Names play no part, except that a class's name tells a token mixer without a softmax. Each norm module is also fed
known numbers, which tells LayerNorm from RMSNorm and gamma from gamma minus one. The names written are those of
``save_pretrained`` (it renames), found again by their values. A norm that the run did not use (a vision tower without
an image) is ``unused``.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from role_graph import Call, Core, Graph, Tracer, attend
from safetensors.torch import load_file
from tiny_models import VARIANTS, Builder

MIXERS = re.compile(
    r"^(?!.*(DecoderLayer|HybridLayer|Model|ForCausalLM|Mamba2?Block|Norm)).*"
    r"(DeltaNet|Mamba|Mixer|ShortConv|LightningAttention|RecurrentBlock|DeltaAttention|LinearAttention|RwkvSelf)"
)
NUMBERED = re.compile(r"\.\d+$")


def is_norm(module: torch.nn.Module) -> bool:
    """Whether a module is a norm over channels with a weight."""
    name = type(module).__name__
    sized = any(1 <= p.dim() <= 2 for p in module.parameters(recurse=False))
    return "Norm" in name and not re.search(r"Batch|Group|Instance|Head", name) and sized


def watch(model: torch.nn.Module) -> tuple[list[Call], dict[Any, str], set[Any]]:
    """Hook every norm, every token mixer without a softmax and every numbered block that holds norms."""
    calls: list[Call] = []
    mixers: dict[Any, str] = {}
    borders: set[Any] = set()
    inner = [name for name, m in model.named_modules() if MIXERS.search(type(m).__name__)]

    def norm_hook(name: str) -> Any:
        def hook(module: Any, args: Any, kwargs: Any, out: Any) -> None:
            value = args[0] if args else next(iter(kwargs.values()))
            out = out[0] if isinstance(out, tuple) else out
            calls.append(Call(name, value.grad_fn, out.grad_fn))

        return hook

    def mixer_hook(module: Any, args: Any, out: Any) -> None:
        first = out[0] if isinstance(out, tuple) else out
        mixers[first.grad_fn] = type(module).__name__

    def border_hook(module: Any, args: Any, out: Any) -> None:
        first = out[0] if isinstance(out, tuple) else out
        borders.add(getattr(first, "grad_fn", None))

    for name, module in model.named_modules():
        if NUMBERED.search(name) and any(is_norm(inner) for inner in module.children()):
            module.register_forward_hook(border_hook)
        if is_norm(module) and not any(name.startswith(f"{outer}.") for outer in inner):
            module.register_forward_hook(norm_hook(name), with_kwargs=True)
        elif name in inner and not any(name.startswith(f"{o}.") for o in inner):
            module.register_forward_hook(mixer_hook)
    return calls, mixers, borders


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Every tensor in a nest of dicts, lists and tuples that belongs to the graph."""
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from tensors_of(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from tensors_of(inner)


def run(model: torch.nn.Module, inputs: dict[str, Any]) -> Any:
    """Run with the hidden states as outputs where the model can: the residual stream ends there."""
    try:
        return model(**inputs, output_hidden_states=True)
    except TypeError:
        return model(**inputs)


def roles_of(model: torch.nn.Module, inputs: dict[str, Any]) -> dict[str, set[tuple[str, bool]]]:
    """Run the model once and give each norm module its role (a set: a module may run several times)."""
    calls, mixers, borders = watch(model)
    torch.nn.functional.scaled_dot_product_attention = attend
    try:
        output = run(model, inputs)
    finally:
        torch.nn.functional.scaled_dot_product_attention = Core.plain
    values = [v for k, v in output.items() if "past" not in k and "router" not in k]
    graph = Graph(tensors_of(values), [c for c in calls if c.after is not None], mixers, borders - {None})
    tracer = Tracer(graph)
    found: dict[str, set[tuple[str, bool]]] = defaultdict(set)
    for call in graph.calls:
        if call.after in graph.nodes:
            found[call.name].add(tracer.role(call))
    return found


def norm_type_and_offset(module: torch.nn.Module, width: int) -> tuple[str, float]:
    """Feed a norm known numbers: does a constant shift matter, and does a zero weight silence it?"""
    generator = torch.Generator().manual_seed(0)
    weight = next(iter(module.parameters(recurse=False)))
    bias = getattr(module, "bias", None)
    shape = (2, 3, *weight.shape) if weight.dim() == 2 else (2, 3, width)
    x = torch.randn(*shape, generator=generator)
    with torch.no_grad():
        if isinstance(bias, torch.Tensor):
            bias.zero_()
        weight.zero_()
        offset = 0.0 if module(x).abs().max() < 1e-3 else 1.0
        weight.fill_(1.0)
        shift = (module(x) - module(x + 5.0)).abs().max()
    return ("layernorm" if shift < 1e-3 else "rmsnorm"), offset


def saved_names(model: Any) -> tuple[dict[str, str], dict[str, list[int]], dict[str, Any]]:
    """Which name each norm parameter has on disk, every saved tensor's shape, and the saved config."""
    parameters = {}
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, module in model.named_modules():
            if is_norm(module):
                for key, parameter in module.named_parameters(recurse=False):
                    parameter.copy_(torch.rand(parameter.shape, generator=generator) + 0.5)
                    parameters[f"{name}.{key}"] = parameter.detach().clone()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        saved = {}
        for file in Path(folder).glob("*.safetensors"):
            saved.update(load_file(file))
        config = json.loads((Path(folder) / "config.json").read_text())
    names = {}
    by_values = {value.numpy().tobytes(): name for name, value in saved.items() if value.dim() <= 2}
    for name, value in parameters.items():
        names[name] = by_values.get(value.numpy().tobytes(), "")
    return names, {name: list(value.shape) for name, value in saved.items()}, config


def parents(name: str) -> Iterator[str]:
    """The names of the modules around one."""
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


def trace(model_type: str) -> dict[str, Any]:
    """Everything the tests need of one model type or variant.

    Raises:
        ValueError: no tiny model could be built or run; the message says what failed.
    """
    base, extra = VARIANTS.get(model_type, (model_type, {}))
    model, inputs = Builder(base, extra).build()
    roles = roles_of(model, inputs)
    modules = dict(model.named_modules())
    names, shapes, config = saved_names(model)
    norms = {}
    for parameter, saved in names.items():
        if not saved:
            continue
        module = parameter.rpartition(".")[0]
        inner = any(MIXERS.search(type(modules[outer]).__name__) for outer in parents(module) if outer in modules)
        found = roles.get(module, {("other" if inner else "unused", False)})
        try:
            norm_type, offset = norm_type_and_offset(modules[module], shapes[saved][-1])
        except (TypeError, RuntimeError, AttributeError):
            norm_type, offset = "unknown", 0.0
        norms[saved] = {
            "role": "/".join(sorted(role for role, _ in found)),
            "shared": any(shared for _, shared in found),
            "norm_type": norm_type,
            "offset": offset,
            "shape": shapes[saved],
        }
    return {"model_type": model_type, "config": config, "norms": norms, "transformers": transformers.__version__}


KEPT = {
    "model_type", "architectures", "hidden_size", "num_hidden_layers", "n_layer", "n_layers", "num_layers",
    "layer_types", "encoder_layers", "decoder_layers", "num_decoder_layers", "num_encoder_layers",
    "num_transformer_layers",
    "num_nextn_predict_layers", "mtp_num_hidden_layers", "layers_block_type", "hybrid_override_pattern", "block_types",
    "attn_layer_indices", "attn_layer_period", "attn_layer_offset", "cross_attention_layers", "do_layer_norm_before",
    "use_parallel_residual", "new_decoder_architecture", "parallel_attn", "num_ln_in_parallel_attn",
    "do_stable_layer_norm",
    "full_attention_interval", "layer_group_size", "linear_attn_config", "num_kv_shared_layers", "hybrid_layer_ids",
    "apply_residual_connection_post_layernorm", "prenorm", "rmsnorm", "is_encoder_decoder",
}  # fmt: skip


def trim(config: dict[str, Any]) -> dict[str, Any]:
    """The keys of a config that the mapping reads, nested ones included."""
    nested = {key: trim(value) for key, value in config.items() if isinstance(value, dict) and "model_type" in value}
    return {key: value for key, value in config.items() if key in KEPT} | nested


def compact(result: dict[str, Any]) -> dict[str, Any]:
    """The fixture: one line for all layers with the same answer."""
    rows: dict[str, list[Any]] = {}
    for name, norm in result["norms"].items():
        number = re.search(r"(?<=\.)\d+(?=\.)", name)
        path = name if number is None else f"{name[: number.start()]}*{name[number.end() :]}"
        answer = [norm[key] for key in ("shape", "role", "norm_type", "offset", "shared")]
        row = rows.setdefault(json.dumps([path, answer]), [path, [], *answer])
        if number is not None:
            row[1].append(int(number[0]))
    return {**result, "config": trim(result["config"]), "norms": list(rows.values())}


def main(out: str, *model_types: str) -> None:
    """Trace the model types and write one fixture each; one that fails is named and left out."""
    torch.manual_seed(0)
    for model_type in model_types:
        try:
            result = compact(trace(model_type))
        except Exception as error:  # noqa: BLE001  one family must not stop the others
            print(f"{model_type}: FAILED {type(error).__name__}: {str(error)[:300]}")
            continue
        rows = ",\n".join(json.dumps(row) for row in result.pop("norms"))
        text = json.dumps(result)[:-1] + f', "norms": [\n{rows}\n]}}\n'
        Path(out, f"{model_type}.json").write_text(text)
        print(f"{model_type}: {rows.count(chr(10)) + 1} norms")


if __name__ == "__main__":
    main(*sys.argv[1:])
