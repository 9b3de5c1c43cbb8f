"""This module traces, on tiny random models, which norm feeds what: the truth that the role tables are tested against.

    python tools/trace_roles.py OUT_DIR [MODEL_TYPE ...]

Needs the ``trace`` extra (torch, transformers); no weights and no network. For every model type a small random model is
built, run once with gradients, and the autograd graph is read: what a norm's input depends on and what its output
reaches. Names play no part, except that a class's name tells a token mixer without a softmax. Each norm module is also fed known numbers, which tells LayerNorm from RMSNorm and gamma from gamma minus one.
The names written are those of ``save_pretrained`` (it renames), found again by their values.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file
from tiny_models import Builder

MIXERS = re.compile(r"^(?!.*DecoderLayer).*(DeltaNet|Mamba|Mixer|ShortConv|LightningAttention|RecurrentBlock|KimiDelta|LinearAttention)")
LINEAR = ("AddmmBackward", "MmBackward", "ConvolutionBackward", "BmmBackward", "BaddbmmBackward", "LinearBackward")
PRODUCTS = ("BmmBackward", "BaddbmmBackward")  # of two activations, as in attention written out
BLOCK = re.compile(r"\.\d+(\.|$)")


class Core(torch.autograd.Function):
    """Scaled dot-product attention as one node, whose inputs 0 and 1 are queries and keys."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
        return Core.plain(q, k, v, **options)

    plain = staticmethod(torch.nn.functional.scaled_dot_product_attention)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *args: Any, **options: Any) -> torch.Tensor:
    """Stand in for ``scaled_dot_product_attention``."""
    names = ("attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    return Core.apply(q, k, v, {**dict(zip(names, args, strict=False)), **options})


class Call:
    """One run of one norm module: where its input comes from and where its output goes."""

    def __init__(self, name: str, before: Any, after: Any) -> None:
        self.name, self.before, self.after = name, before, after
        self.in_block = bool(BLOCK.search(name))


def producers(node: Any) -> list[Any]:
    return [parent for parent, _ in node.next_functions if parent is not None]


def is_linear(node: Any) -> bool:
    return node.name().startswith(LINEAR) or "GroupedMm" in node.name()


class Graph:
    """The autograd graph of one forward pass, with its norms and attention cores marked."""

    def __init__(self, outputs: Iterable[torch.Tensor], calls: list[Call], mixers: dict[Any, str]) -> None:
        self.calls, self.mixers = calls, mixers
        self.consumers: dict[Any, list[Any]] = defaultdict(list)
        self.outputs = {tensor.grad_fn for tensor in outputs if tensor.grad_fn is not None}
        seen = self.spread(self.outputs, producers)
        for node in seen:
            for parent in producers(node):
                self.consumers[parent].append(node)
        self.nodes = seen
        self.norm_of = {node: call for call in calls for node in self.inside(call)}
        self.cores = {node for node in seen if node.name() == "CoreBackward"} | set(mixers) | self.softmax_cores()

    @staticmethod
    def spread(start: Iterable[Any], step: Any, stop: Any = lambda node: False) -> set[Any]:
        seen, todo = set(), list(start)
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            if not stop(node):
                todo.extend(step(node))
        return seen

    def inside(self, call: Call) -> set[Any]:
        return self.spread([call.after], producers, lambda node: node is call.before) - {call.before}

    def softmax_cores(self) -> set[Any]:
        """The product of queries and keys in front of a softmax (a router's softmax has a linear layer there)."""
        cores = set()
        for node in self.nodes:
            if node.name() == "SoftmaxBackward0" and node._saved_result.dim() >= 3:
                cores |= {n for n in self.spread([node], producers, is_linear) if n.name().startswith(PRODUCTS)}
        return cores

    @staticmethod
    def slots(core: Any) -> list[Any]:
        """The inputs of an attention core, queries and keys first."""
        inputs = [parent for parent, _ in core.next_functions]
        return inputs[1:] if core.name().startswith("Baddbmm") else inputs

    def backward(self, call: Call, stop: Any) -> set[Any]:
        return set() if call.before is None else self.spread([call.before], producers, stop)

    def forward(self, call: Call, stop: Any) -> set[Any]:
        own = self.inside(call)
        start = [n for n in self.consumers[call.after] if n not in own]
        return self.spread(start, lambda node: self.consumers[node], stop)


class Tracer:
    """Roles of the norms of one model, from its graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.qk = {call: role for call in graph.calls if (role := self.query_or_key(call))}
        self.into = {call: self.takes_residual(call) for call in graph.calls}
        self.out = {call: self.gives_residual(call) for call in graph.calls}
        self.block = {c for c in graph.calls if c not in self.qk and (self.into[c] or self.out[c])}

    def barrier(self, node: Any) -> bool:
        return is_linear(node) or node in self.graph.cores or node in self.graph.norm_of

    def query_or_key(self, call: Call) -> str:
        """Queries or keys: a path without a product from the norm to an attention core."""
        reach = self.graph.forward(call, self.barrier) | {call.after}
        roles = set()
        for core in self.graph.cores & reach:
            slots = self.graph.slots(core)
            for slot, role in ((0, "q_norm"), (1, "k_norm")):
                back = self.graph.spread([slots[slot]], producers, self.barrier) if len(slots) > 1 else set()
                roles |= {role} if call.after in back else set()
        return "|".join(sorted(roles))

    def takes_residual(self, call: Call) -> bool:
        # A convolution embeds pixels or sound; what comes out of it is the start of a residual stream.
        near = self.graph.backward(call, lambda n: self.barrier(n) and not n.name().startswith("Convolution"))
        names = {node.name().rstrip("0123456789") for node in near}
        norms = {self.graph.norm_of.get(node) for node in near} - {None, call}
        return bool(names & {"AddBackward", "EmbeddingBackward", "ConvolutionBackward"}) or bool(norms)

    def gives_residual(self, call: Call) -> bool:
        near = self.graph.forward(call, self.barrier)
        others = {self.graph.norm_of.get(node) for node in near} - {None, call} - set(self.qk)
        return bool(others) or bool(near & self.graph.outputs) or call.after in self.graph.outputs

    def at_block_norm(self, call: Call) -> Any:
        return lambda node: self.graph.norm_of.get(node) not in (None, call) and self.graph.norm_of[node] in self.block

    def role(self, call: Call) -> tuple[str, bool]:
        """The role, and whether the norm is shared."""
        if call in self.qk:
            return self.qk[call], False
        if call not in self.block:
            return "other", False
        if not call.in_block:
            return self.outer_role(call), False
        if self.out[call]:
            return self.post_role(call), False
        return self.pre_role(call)

    def outer_role(self, call: Call) -> str:
        before = {self.graph.norm_of.get(n) for n in self.graph.backward(call, lambda n: False)} - {None, call}
        after = {self.graph.norm_of.get(n) for n in self.graph.forward(call, lambda n: False)} - {None, call}
        stack = call.name.rpartition(".")[0].split(".")[:2]
        here = [c for c in before if c.in_block and (not stack[0] or c.name.split(".")[: len(stack)] == stack)]
        if self.into[call] and (here or (not call.name.count(".") and any(c.in_block for c in before))):
            return "final"
        return "embedding" if any(c.in_block for c in after) and not here else "other"

    def post_role(self, call: Call) -> str:
        region = self.graph.backward(call, self.at_block_norm(call))
        stop = self.at_block_norm(call)
        cores = {n for n in region & self.graph.cores if not stop(n)}
        if not any(is_linear(n) for n in region):
            return "other"
        return self.kind_of(cores, "post") if cores else "post_mlp"

    def pre_role(self, call: Call) -> tuple[str, bool]:
        stop = self.at_block_norm(call)
        region = {n for n in self.graph.forward(call, stop) if not stop(n)}
        cores = region & self.graph.cores
        if not cores:
            return ("pre_mlp" if self.second_products(region, set()) else "other"), False
        return self.kind_of(cores, "pre"), bool(self.second_products(region, cores))

    def second_products(self, region: set[Any], cores: set[Any]) -> set[Any]:
        """Products fed by another product, on a path that avoids the attention core: an MLP's second layer."""
        inside = lambda step: lambda node: [n for n in step(node) if n in region]  # noqa: E731
        after = self.graph.spread(cores, inside(lambda n: self.graph.consumers[n]))
        before = self.graph.spread(cores, inside(producers))
        free = region - after - before
        found = set()
        for node in free:
            if is_linear(node):
                further = self.graph.spread(self.graph.consumers[node], inside(lambda n: self.graph.consumers[n]))
                found |= {n for n in further & free if is_linear(n) and n is not node}
        return found

    def kind_of(self, cores: set[Any], side: str) -> str:
        mixer = next((self.graph.mixers[core] for core in cores if core in self.graph.mixers), "")
        if mixer and all(core in self.graph.mixers for core in cores):
            return f"{side}_attention:{mixer}"
        return f"{side}_cross_attention" if all(self.is_cross(core) for core in cores) else f"{side}_attention"

    def is_cross(self, core: Any) -> bool:
        """Whether queries and keys come from different block norms."""
        stop = lambda node: self.graph.norm_of.get(node) in self.block  # noqa: E731
        slots = self.graph.slots(core)
        if core in self.graph.mixers or len(slots) < 2 or None in slots[:2]:
            return False
        sides = [{self.graph.norm_of.get(n) for n in self.graph.spread([s], producers, stop)} for s in slots[:2]]
        sources = [{call for call in side if call in self.block} for side in sides]
        return bool(sources[0]) and bool(sources[1]) and not sources[0] & sources[1]


def is_norm(module: torch.nn.Module) -> bool:
    name = type(module).__name__
    sized = any(1 <= p.dim() <= 2 for p in module.parameters(recurse=False))
    return "Norm" in name and not re.search(r"Batch|Group|Instance", name) and sized


def watch(model: torch.nn.Module) -> tuple[list[Call], dict[Any, str]]:
    """Hook every norm and every token mixer without a softmax."""
    calls: list[Call] = []
    mixers: dict[Any, str] = {}
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

    for name, module in model.named_modules():
        if is_norm(module) and not any(name.startswith(f"{outer}.") for outer in inner):
            module.register_forward_hook(norm_hook(name), with_kwargs=True)
        elif name in inner and not any(name.startswith(f"{o}.") for o in inner):
            module.register_forward_hook(mixer_hook)
    return calls, mixers


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
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
    calls, mixers = watch(model)
    torch.nn.functional.scaled_dot_product_attention = attend
    try:
        output = run(model, inputs)
    finally:
        torch.nn.functional.scaled_dot_product_attention = Core.plain
    values = [v for k, v in output.items() if "past" not in k and "router" not in k]
    graph = Graph(tensors_of(values), [c for c in calls if c.after is not None], mixers)
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
    """Everything the tests need of one model type.

    Raises:
        ValueError: no tiny model could be built or run; the message says what failed.
    """
    model, inputs = Builder(model_type).build()
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
        except (TypeError, RuntimeError):
            norm_type, offset = "unknown", 0.0
        norms[saved] = {
            "role": "/".join(sorted(role for role, _ in found)),
            "shared": any(shared for _, shared in found),
            "norm_type": norm_type,
            "offset": offset,
            "shape": shapes[saved],
        }
    return {"model_type": model_type, "config": config, "norms": norms, "transformers": transformers.__version__}


def main(out: str, *model_types: str) -> None:
    torch.manual_seed(0)
    for model_type in model_types:
        try:
            result = trace(model_type)
        except Exception as error:  # noqa: BLE001  one family must not stop the others
            print(f"{model_type}: FAILED {type(error).__name__}: {str(error)[:300]}")
            continue
        Path(out, f"{model_type}.json").write_text(json.dumps(result))
        print(f"{model_type}: {len(result['norms'])} norms")


if __name__ == "__main__":
    main(*sys.argv[1:])
