"""Convolutions of one graph agree on where channels lie in memory.

In: a graph of ATen operators that Inductor is about to generate code for. Out: the same graph, in
which what convolutions take is laid out channels last, and what follows from that as well. Inductor
does so itself with convolutions, but not with what their gradients take (each activation and weight
would be in memory twice where a graph has both), nor where activations go from region to region:
a subgraph takes and returns what the graph says. Used by inductor_passes. Next: Inductor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.fx
from torch._higher_order_ops import invoke_subgraph
from torch.fx.node import map_arg

_Node = torch.fx.Node
_Strides = tuple[int, ...]

aten = torch.ops.aten

#: Which arguments of a convolution, and of its gradient, are laid out; which of them are weights.
_LAID_OUT: dict[Any, tuple[int, ...]] = {
    aten.convolution.default: (0, 1),
    aten.convolution_backward.default: (0, 1, 2),
}
_WEIGHT: dict[Any, int] = {aten.convolution.default: 1, aten.convolution_backward.default: 2}
#: They mean places in memory.
_OF_MEMORY = frozenset(
    (
        aten.as_strided, aten.as_strided_, aten.as_strided_copy, aten.as_strided_scatter,
        aten.set_, aten.resize_, aten.stride, aten.sym_stride, aten.is_contiguous,
        aten.sym_is_contiguous, aten.storage_offset, aten.sym_storage_offset, aten.view,
        aten._unsafe_view,
    )
)  # fmt: skip


def spread_channels_last(graph: torch.fx.Graph, is_inference: bool) -> None:
    """Lay out what the convolutions of ``graph`` and of its regions take, if Inductor does."""
    module = graph.owning_module
    if module is None:
        return
    calls = graph.find_nodes(op="call_function", target=invoke_subgraph)
    both = all(graph.find_nodes(op="call_function", target=target) for target in _LAID_OUT)
    both = both and _is_laid_out_by_inductor(module, is_inference)
    if both or any(_convolutions(_subgraph(module, call).graph) for call in calls):
        _Spreading(module, both, is_inference).run()


class _Spreading:
    """``before``: values that lie otherwise now, as they were. ``copies``: of what is laid out.
    ``restored``: copies that lie as before.

    ``lays_out``: are the arguments of this graph's own convolutions laid out?
    """

    def __init__(self, module: torch.fx.GraphModule, lays_out: bool, is_inference: bool) -> None:
        self.module, self.graph = module, module.graph
        self.lays_out, self.is_inference = lays_out, is_inference
        self.copies: dict[tuple[_Node, _Strides], _Node] = {}
        self.before: dict[_Node, Any] = {}
        self.restored: dict[_Node, _Node] = {}
        self.visible = self._visible(self.graph.output_node())
        #: Results share memory, and begin somewhere in it, as they do in eager mode.
        self.views = _views_among(self.visible)
        self.regions: dict[torch.fx.GraphModule, list[_Strides | None]] = {}

    def run(self) -> None:
        for node in list(self.graph.nodes):
            if node.op == "output":
                self._finish(node)
            elif node.target is invoke_subgraph:
                self._call(node)
            else:
                self._lay_out_arguments(node)
                changed = [used for used in node.all_input_nodes if used in self.before]
                if not changed:
                    continue
                if node in self.views or _needs_order(node):
                    self._restore_arguments(node, changed)
                else:
                    self._infer(node)

    def _lay_out_arguments(self, node: _Node) -> None:
        for position in _LAID_OUT.get(node.target, ()) if self.lays_out else ():
            argument: Any = node.args[position]
            if _is_other_picture(argument):
                node.update_arg(position, self._copy(argument, _channels_last(argument), node))

    def _copy(self, node: _Node, strides: _Strides, user: _Node) -> _Node:
        """The value of ``node`` with other strides."""
        if (node, strides) not in self.copies:
            with self.graph.inserting_before(user):
                made = _ordered(self.graph, node, strides)
            self.copies[node, strides] = made
            self.before[made] = self.before.get(node, node.meta["val"])
        return self.copies[node, strides]

    def _restore_arguments(self, node: _Node, arguments: Sequence[_Node]) -> None:
        for argument in arguments:
            self._restore(argument, [node])

    def _infer(self, node: _Node) -> None:
        """Find out whether a result lies otherwise, as arguments do."""
        before = node.meta["val"]
        value = _computed(node)
        if _strides(value) == _strides(before):
            return
        node.meta["val"], self.before[node] = value, before
        if _is_gradient_of_weight(node):  # what it is combined with lies as before
            self._restore(node, list(node.users))

    def _restore(self, node: _Node, users: Sequence[_Node]) -> None:
        """Let ``users`` find the value of ``node`` as it was."""
        if node not in self.restored:
            self.restored[node] = self._as_before(node)
        for user in users:
            user.replace_input_with(node, self.restored[node])

    def _as_before(self, node: _Node) -> _Node:
        value, strides = node.meta["val"], self.before[node].stride()
        made = node
        with self.graph.inserting_before(node.next):
            if not _same_but_for_ones(value, strides):
                made = _ordered(self.graph, made, strides)
            if 1 in value.shape:  # their strides mean nothing, but can be seen
                made = _call(self.graph, aten.as_strided.default, made, value.shape, strides)
        return made

    def _visible(self, output: _Node) -> list[_Node]:
        """Results that others than backward see."""
        results: Any = output.args[0]
        seen = range(len(results))
        if not self.is_inference:
            seen = output.meta.get("user_visible_output_idxs", seen)
        return [results[i] for i in seen if isinstance(results[i], _Node)]

    def _finish(self, output: _Node) -> None:
        for node in dict.fromkeys(self.visible):
            if node in self.before:
                self._restore(node, [output])

    def _call(self, call: _Node) -> None:
        """Let a region take what it is laid out for, and find out how its results lie."""
        subgraph, arguments = _subgraph(self.module, call), call.args[2:]
        if subgraph not in self.regions:
            self.regions[subgraph] = self._lay_out_region(subgraph, arguments)
        for position, strides in enumerate(self.regions[subgraph], 2):
            argument: Any = call.args[position]
            if strides is not None:
                if not _same_but_for_ones(argument.meta["val"], strides):
                    call.update_arg(position, self._copy(argument, strides, call))
            elif argument in self.before:
                self._restore_arguments(call, [argument])
        self._note_arguments(call)
        before = call.meta["val"]
        made = [
            _like(value, result.meta["val"]) if isinstance(result, _Node) else value
            for value, result in zip(before, _results(subgraph), strict=True)
        ]
        if _strides(made) != _strides(before):
            call.meta["val"], self.before[call] = type(before)(made), before

    def _note_arguments(self, call: _Node) -> None:
        """Inductor gives the arguments of a region the strides that are noted."""
        noted, *others = call.meta.get("eager_input_vals", (None,))
        if noted is not None:
            values = list(noted)
            for position, argument in enumerate(call.args[2:], 2):
                if isinstance(argument, _Node):
                    values[position] = argument.meta["val"]
            call.meta["eager_input_vals"] = (tuple(values), *others)

    def _lay_out_region(
        self, subgraph: torch.fx.GraphModule, arguments: Sequence[Any]
    ) -> list[_Strides | None]:
        """How a region takes its arguments; None: as before."""
        inputs = subgraph.graph.find_nodes(op="placeholder")
        pictures = _pictures(subgraph.graph)
        given = [argument for node, argument in zip(inputs, arguments, strict=True)
                 if node in pictures]  # fmt: skip
        if not given or not (
            _is_laid_out_by_inductor(subgraph, self.is_inference) or any(map(_is_laid_out, given))
        ):
            return [None for _ in inputs]
        inside = _SpreadingInRegion(subgraph, False, self.is_inference)
        strides = [_channels_last(node) if node in pictures else None for node in inputs]
        for node, wanted in zip(inputs, strides, strict=True):
            value = node.meta["val"]
            if wanted is not None and value.stride() != wanted:
                inside.before[node] = value
                node.meta["val"] = value.new_empty_strided(value.shape, wanted)
        inside.run()
        return strides


class _SpreadingInRegion(_Spreading):
    """The same within a region, which gives pictures to others as they are."""

    def _visible(self, output: _Node) -> list[_Node]:
        return []

    def _finish(self, output: _Node) -> None:
        recorded = output.meta.get("original_output_strides")
        for position, node in enumerate(_results(self.module)):
            if node not in self.before:
                continue
            if not _is_laid_out(node):
                self._restore_arguments(output, [node])
            elif recorded is not None:
                recorded[position] = node.meta["val"].stride()


def _subgraph(module: torch.fx.GraphModule, call: _Node) -> torch.fx.GraphModule:
    found: torch.fx.GraphModule = getattr(module, call.args[0].target)  # type: ignore[union-attr, arg-type]
    return found


def _results(subgraph: torch.fx.GraphModule) -> Sequence[Any]:
    results: Any = subgraph.graph.output_node().args[0]
    return results  # type: ignore[no-any-return]


def _convolutions(graph: torch.fx.Graph) -> list[_Node]:
    """Convolutions, and gradients of them."""
    found = (graph.find_nodes(op="call_function", target=target) for target in _LAID_OUT)
    return [node for nodes in found for node in nodes]


def _views_among(results: Sequence[_Node]) -> set[_Node]:
    """The views that results are, and those on the way from what these are views of."""
    found: set[_Node] = set()
    waiting = list(results)
    while waiting:
        node = waiting.pop()
        memory = _memory(node.meta.get("val"))
        bases = [used for used in node.all_input_nodes if _memory(used.meta.get("val")) & memory]
        if bases and node not in found:
            found.add(node)
            waiting += bases
    return {node for node in found if node.target is not operator.getitem}


def _memory(value: Any) -> set[int]:
    if isinstance(value, (list, tuple)):
        return set().union(*map(_memory, value))
    return {value.untyped_storage()._cdata} if isinstance(value, torch.Tensor) else set()


def _pictures(graph: torch.fx.Graph) -> set[_Node]:
    """Values that convolutions are computed of, or that are computed of their results, with as many
    dimensions, in whichever order: all that should lie alike. Weights are none."""
    found: set[_Node] = set()
    waiting = _convolutions(graph)
    while waiting:
        for near in _neighbours(waiting.pop()):
            if near not in found and _is_picture(near):
                found.add(near)
                waiting.append(near)
    return found


def _neighbours(node: _Node) -> Iterator[_Node]:
    """What a node takes, and who takes its result, weights and their gradients left out."""
    if node.target in _LAID_OUT:
        taken = [node.args[i] for i in _LAID_OUT[node.target] if i != _WEIGHT[node.target]]
        yield from (one for one in taken if isinstance(one, _Node))
    else:
        yield from node.all_input_nodes
    for user in node.users:
        if user.target in _WEIGHT and user.args[_WEIGHT[user.target]] is node:
            continue
        if user.target in _LAID_OUT and not _is_picture(user):  # has several results
            yield from (item for item in user.users if not _is_gradient_of_weight(item))
        elif not _is_gradient_of_weight(user):
            yield user


def _is_laid_out_by_inductor(module: torch.fx.GraphModule, is_inference: bool) -> bool:
    from torch._inductor.graph import GraphLowering  # slow optional dependency

    return GraphLowering.decide_layout_opt(module, is_inference=is_inference)


def _needs_order(node: _Node) -> bool:
    """Does this depend on where its arguments lie in memory, or may it?"""
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or target.namespace not in ("aten", "prims"):
        return True
    return target.overloadpacket in _OF_MEMORY or _fills_memory(node)


def _fills_memory(node: _Node) -> bool:
    """Are these eager's random numbers, which fill memory in its order?"""
    from torch._inductor import config  # slow optional dependency

    random = torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
    return random and bool(config.fallback_random)


def _is_picture(node: Any) -> bool:
    value = node.meta.get("val") if isinstance(node, _Node) else None
    return (
        isinstance(value, torch.Tensor)
        and value.dim() == 4
        and all(isinstance(size, int) for size in value.shape)
        and value.shape[1] != 1
        and value.shape[2:] != (1, 1)
    )


def _is_laid_out(node: Any) -> bool:
    """Does a picture lie with channels last, and not in order as well?"""
    return _is_picture(node) and _same_but_for_ones(node.meta["val"], _channels_last(node))


def _is_other_picture(node: Any) -> bool:
    return _is_picture(node) and not _is_laid_out(node)


def _channels_last(node: _Node) -> _Strides:
    """The strides that a picture has with channels last."""
    value = node.meta["val"]
    strides: _Strides = value.clone(memory_format=torch.channels_last).stride()
    return strides


def _is_gradient_of_weight(node: _Node) -> bool:
    if node.target is not operator.getitem or node.args[1] != 1:
        return False
    (results,) = node.all_input_nodes
    return results.target is aten.convolution_backward.default


def _ordered(graph: torch.fx.Graph, node: _Node, strides: Any) -> _Node:
    from torch._inductor.inductor_prims import force_stride_order  # slow optional dependency

    return _call(graph, force_stride_order, node, strides)


def _call(graph: torch.fx.Graph, target: Any, *args: Any) -> _Node:
    made = graph.call_function(target, args)
    made.meta["val"] = _computed(made)
    return made


def _computed(node: _Node) -> Any:
    """The fake value of a node, from those of its arguments."""
    args, kwargs = map_arg((node.args, node.kwargs), lambda used: used.meta["val"])
    target: Callable[..., Any] = node.target  # type: ignore[assignment]
    with torch.no_grad():
        return target(*args, **kwargs)


def _like(value: Any, result: Any) -> Any:
    """The fake value of a call's result, as the subgraph returns it."""
    if _strides(value) == _strides(result):
        return value
    return value.new_empty_strided(value.shape, result.stride())


def _same_but_for_ones(value: torch.Tensor, strides: Sequence[int]) -> bool:
    each = zip(value.shape, value.stride(), strides, strict=True)
    return all(size == 1 or one == other for size, one, other in each)


def _strides(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_strides(part) for part in value]
    return value.stride() if isinstance(value, torch.Tensor) else None
