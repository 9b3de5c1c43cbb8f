"""This module reads an autograd graph: which norm feeds attention, which the MLP, which stands on a sublayer's output.

A norm's input and output are nodes of the graph. Queries, keys and values meet in an *attention core*; matrix products
bound a sublayer; a path without a product is the residual stream. From these alone:

- queries or keys: a path without a product leads from the norm into a core;
- a post-norm: its output joins the residual stream; what it normalises comes from a core, or else from an MLP;
- a pre-norm: its output goes only into products; a core is reached, or else an MLP (both: the norm is shared).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch

LINEAR = ("AddmmBackward", "MmBackward", "ConvolutionBackward", "BmmBackward", "BaddbmmBackward", "LinearBackward")
PRODUCTS = ("BmmBackward", "BaddbmmBackward")  # of two activations, as in attention written out
RESIDUAL = {"AddBackward", "EmbeddingBackward", "ConvolutionBackward"}
BLOCK = re.compile(r"\.\d+(\.|$)")

Node = Any  # an autograd node; torch gives it no public type
Step = Callable[[Node], Iterable[Node]]
Stop = Callable[[Node], bool]


class Core(torch.autograd.Function):
    """Scaled dot-product attention as one node, whose inputs 0 and 1 are queries and keys."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, options: dict[str, Any]) -> torch.Tensor:
        """Attend; the graph is never run backwards."""
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


def producers(node: Node) -> list[Node]:
    """The nodes whose outputs a node takes."""
    return [parent for parent, _ in node.next_functions if parent is not None]


def is_linear(node: Node) -> bool:
    """Whether the node is a matrix product or a convolution."""
    return node.name().startswith(LINEAR) or "GroupedMm" in node.name()


class Graph:
    """The autograd graph of one forward pass, with its norms and attention cores marked."""

    def __init__(
        self, outputs: Iterable[torch.Tensor], calls: list[Call], mixers: dict[Node, str], borders: set[Node]
    ) -> None:
        self.calls, self.mixers, self.borders = calls, mixers, borders
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
    def spread(start: Iterable[Node], step: Step, stop: Stop = lambda node: False) -> set[Node]:
        """Every node reached from ``start``; nodes where ``stop`` holds are reached, not passed."""
        seen, todo = set(), list(start)
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            if not stop(node):
                todo.extend(step(node))
        return seen

    def inside(self, call: Call) -> set[Node]:
        """The nodes of the norm itself."""
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

    def backward(self, call: Call, stop: Stop) -> set[Node]:
        """What the norm's input depends on."""
        return set() if call.before is None else self.spread([call.before], producers, stop)

    def forward(self, call: Call, stop: Stop) -> set[Node]:
        """What the norm's output reaches."""
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

    def barrier(self, node: Node) -> bool:
        """Whether a path along the residual stream ends here."""
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
        """Whether the norm reads the residual stream, not a product's bare result."""
        # A convolution embeds pixels or sound; what comes out of it is the start of a residual stream.
        near = self.graph.backward(call, lambda n: self.barrier(n) and not n.name().startswith("Convolution"))
        names = {node.name().rstrip("0123456789") for node in near}
        norms = {self.graph.norm_of.get(node) for node in near} - {None, call}
        return bool(names & RESIDUAL) or bool(norms)

    def gives_residual(self, call: Call) -> bool:
        """Whether the norm's output joins the residual stream without a product in between."""
        near = self.graph.forward(call, self.barrier)
        others = {self.graph.norm_of.get(node) for node in near} - {None, call} - set(self.qk)
        return bool(others) or bool(near & self.graph.outputs) or call.after in self.graph.outputs

    def at_block_norm(self, call: Call) -> Stop:
        """Stop at the next norm of the residual stream, and where the block ends."""

        def stop(node: Node) -> bool:
            other = self.graph.norm_of.get(node)
            return node in self.graph.borders or (other is not None and other is not call and other in self.block)

        return stop

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
        """Outside the blocks: behind the stack, in front of it, or neither."""
        before = {self.graph.norm_of.get(n) for n in self.graph.backward(call, lambda n: False)} - {None, call}
        after = {self.graph.norm_of.get(n) for n in self.graph.forward(call, lambda n: False)} - {None, call}
        stack = call.name.rpartition(".")[0].split(".")[:2]
        here = [c for c in before if c.in_block and (not stack[0] or c.name.split(".")[: len(stack)] == stack)]
        if self.into[call] and (here or (not call.name.count(".") and any(c.in_block for c in before))):
            return "final"
        return "embedding" if any(c.in_block for c in after) and not here else "other"

    def post_role(self, call: Call) -> str:
        """On a sublayer's output: which sublayer."""
        region = self.graph.backward(call, self.at_block_norm(call))
        stop = self.at_block_norm(call)
        cores = {n for n in region & self.graph.cores if not stop(n)}
        if not any(is_linear(n) for n in region):
            return "other"
        return self.kind_of(cores, "post") if cores else "post_mlp"

    def pre_role(self, call: Call) -> tuple[str, bool]:
        """In front of a sublayer: which one, and whether of both at once."""
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

    def kind_of(self, cores: set[Node], side: str) -> str:
        """Self-attention, cross-attention, or ``attention:Class`` for a token mixer without a softmax."""
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
