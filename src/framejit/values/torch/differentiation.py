"""``backward`` and ``torch.autograd.grad`` of what captured code has computed.

In: calls of these. Out: a node that computes the gradients, and ``.grad`` of leaves as attributes
with effects; or a graph break, after which Python does it. Next room: graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from framejit.exc import DifferentiatedTwice, GraphBreak
from framejit.graph.differentiation import (
    ancestors,
    as_stored,
    gradients,
    leaf_gradients,
    leaves_of,
    order_of_arrival,
    record,
)
from framejit.graph.metadata import Example
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Kwargs, Unmaterialisable, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.functions import function_value
from framejit.values.torch.arrivals import (
    Watched,
    changes_of,
    forget_unchanged,
    watched_among,
)
from framejit.values.torch.hooks import Hooks
from framejit.values.torch.leaf_hooks import LeafHooks, changed_by, guard_leaf
from framejit.values.torch.leaves import replaced_in
from framejit.values.torch.tensors import TensorValue, autograd_arguments, from_fx, graph_call

_NONE = ConstantValue(None)
_BACKWARD = ("tensors", "grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs")
_GRAD = ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph", "only_inputs",
         "allow_unused", "is_grads_batched", "materialize_grads")  # fmt: skip


def _several(space: Space, value: Value) -> list[Value]:
    value = value.realize()
    if isinstance(value, TensorValue):
        return [value]
    if not isinstance(value, (TupleValue, ListValue)):
        raise GraphBreak("FJ0117", f"autograd is given a {value.describe()}")
    return [item.realize() for item in space.items(value)]


def _tensors(space: Space, value: Value) -> list[TensorValue]:
    found = _several(space, value)
    if not all(isinstance(item, TensorValue) for item in found):
        raise GraphBreak("FJ0117", "autograd is given something else than tensors")
    return found  # type: ignore[return-value]


def _given(space: Space, value: Value, outputs: list[TensorValue]) -> list[Any] | None:
    """The gradients of the outputs, as nodes or None; None if there are none at all."""
    if value.is_none():
        return None
    found = _several(space, value)
    if len(found) != len(outputs):
        raise GraphBreak("FJ0117", "autograd is given another number of gradients than of tensors")
    nodes: list[Any] = []
    for item in found:
        if not (item.is_none() or isinstance(item, TensorValue)):
            raise GraphBreak("FJ0117", "autograd is given something else than tensors")
        nodes.append(item.proxy(space) if isinstance(item, TensorValue) else None)
    return nodes


def _is_pure(space: Space, hooks: Hooks) -> bool:
    assert hooks.tensor is not None
    pure, _ = space.task.is_pure_hook(hooks.makers[0](()), hooks.tensor.fake(space))
    return pure


def _check_possible(space: Space) -> None:
    """GraphBreak where a gradient does more than to be computed, or means something else."""
    if space.transforms:
        raise GraphBreak("FJ0117", "a gradient is computed inside of a transform of torch.func")
    hooked = space.builder.leader.before_saving is not None
    for hooks in space.effects.hooks:  # a recording that is run calls those of gradients
        hooked = hooked or hooks.tensor is None or not _is_pure(space, hooks)
    if hooked:
        raise GraphBreak("FJ0117", "a gradient is computed where hooks of autograd are in place")
    if torch.is_anomaly_enabled() or torch.is_inference_mode_enabled():
        raise GraphBreak("FJ0117", "a gradient is computed in a mode of autograd")


def _accumulate(space: Space, stored: dict[Value, Value]) -> None:
    """These leaves get gradients: all in one call, which switches gradients off once."""
    function = function_value(space, polyfills.accumulate)
    space.call_now(function, [ListValue(list(stored)), ListValue(list(stored.values()))])


def _store(space: Space, leaf: TensorValue, gradient: TensorValue, hooks: LeafHooks | None) -> None:
    """A gradient arrives."""
    given = changed_by(space, hooks, gradient)
    if hooks is not None and hooks.first:
        given = graph_call(space, as_stored, [leaf, given], {})
    _accumulate(space, {leaf: given})
    if hooks is not None and hooks.last:
        function = function_value(space, polyfills.call_last_hooks)
        results = space.call_now(function, [leaf, ListValue(hooks.last)])
        if not all(result.realize().is_none() for result in space.items(results)):
            raise GraphBreak("FJ0117", "a hook of a leaf returns something where it must not")


def _end_after(tensor: Value, what: str) -> None:
    """Python does it. With respect to a tensor that the same graph has made and used there would be
    no gradient: then the graph ends right after that tensor."""
    if isinstance(tensor, TensorValue) and tensor.step and tensor.node.users:
        why = f"{what} with respect to a tensor that was used before"
        raise Unmaterialisable(tensor.step + 1, why)


def _record(space: Space, target: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
    if replaced_in(space, args[0]) is not None:
        raise GraphBreak("FJ0117", "a gradient goes through a tensor whose data was replaced")
    made = record(space.builder, target, args)
    space.effects.differentiations.append(space.step)
    return made


def _reached(space: Space, outputs: list[Any]) -> dict[Any, TensorValue]:
    """The leaves that ``backward`` of these nodes stores gradients in, by their nodes."""
    builder = space.builder
    inputs = [one.node for one in builder.placeholders]
    by_node = dict(zip(inputs, space.graph_inputs, strict=True))
    by_node.update({node: leaf.value for node, leaf in space.effects.made_leaves.items()})
    found = leaves_of(builder, outputs, list(space.effects.made_leaves))
    if any(by_node[node].obj is None and node.op == "placeholder" for node in found):
        raise GraphBreak("FJ0117", "backward() comes to a tensor that only the graph knows")
    # Autograd asks for it when it comes there.
    return {node: by_node[node] for node in found if by_node[node].metadata().requires_grad}


def _retaining(space: Space, outputs: list[Any]) -> dict[Any, TensorValue]:
    """The results that keep their gradients, among what these are computed from."""
    kept = space.effects.retaining
    reached = kept.keys() & ancestors(outputs)
    found: dict[Any, Any] = {node: kept[node].value for node in kept if node in reached}
    hooked = {hooks.tensor.node for hooks in space.effects.hooks if hooks.tensor is not None}
    hooked |= space.effects.watched.keys()
    if any(node in hooked or space.builder.is_written(node) for node in found):
        raise GraphBreak("FJ0117", "a tensor that keeps its gradient is written to or has hooks")
    return found


def _keep_apart(space: Space, tensors: Iterable[TensorValue]) -> None:
    """These must stay different objects: each gets a gradient of its own."""
    for tensor in tensors:
        if tensor.obj is not None and tensor.metadata().requires_grad:
            space.effects.given_gradient[tensor] = None


def _listed(space: Space, value: Value) -> Value:
    """The tensors that autograd takes any iterable of."""
    value = value.realize()
    if isinstance(value, (TensorValue, TupleValue, ListValue)) or value.is_constant:
        return value
    return space.call_now(space.constant(list), [value])


@lookaside(torch.autograd.backward)
def _backward(space: Space, args: Args, kwargs: Kwargs) -> Result:
    named = autograd_arguments(_BACKWARD, args, kwargs)
    if not named.get("grad_variables", _NONE).is_none():
        raise GraphBreak("FJ0117", "backward() is given grad_variables")
    if space.truth(named.get("create_graph", ConstantValue(False))):
        try:
            return _backward_to_go_on_from(space, named)
        except GraphBreak as broken:
            raise DifferentiatedTwice("FJ0117", broken.reason) from broken
    _check_possible(space)
    outputs = _tensors(space, named.get("tensors", _NONE))
    given = _given(space, named.get("grad_tensors", _NONE), outputs)
    retain = space.truth(named.get("retain_graph", ConstantValue(False)))
    nodes = [output.proxy(space) for output in outputs]
    wanted = named.get("inputs", _NONE)
    if wanted.is_none():
        leaves = _reached(space, nodes)
    else:
        leaves = {leaf.proxy(space): leaf for leaf in _tensors(space, wanted)}
        if any(leaf.replaced for leaf in leaves.values()):
            raise GraphBreak("FJ0117", "backward() with inputs whose data was replaced")
        for node, leaf in leaves.items():
            if node not in space.effects.made_leaves:
                _end_after(leaf, "backward() with inputs")
    if not leaves:
        raise GraphBreak("FJ0117", "backward() comes to no leaf")
    hooks: dict[Any, LeafHooks] = {}
    for node, leaf in leaves.items():
        if (found := guard_leaf(space, leaf)) is not None:
            hooks[node] = found
    retaining, watched = _retaining(space, nodes), watched_among(space, nodes)
    if (retaining or watched) and not wanted.is_none():
        raise GraphBreak("FJ0117", "backward() with inputs goes through what sees its gradient")
    order = [*leaves]
    if hooks or watched:
        order = order_of_arrival(space.builder, nodes, given, [*leaves, *retaining, *watched])
    seen = [*watched, *[node for node, found in hooks.items() if found.first]]
    more: list[Any] = [seen, changes_of(space, seen, watched)] if seen else []
    call = (nodes, given, [*leaves, *retaining], retain, *more)
    node, example = _record(space, leaf_gradients, call)
    arriving = Arriving(node, example, leaves, hooks, retaining, watched)
    _keep_apart(space, leaves.values())
    arriving.deliver(space, order)
    return _NONE


def _backward_to_go_on_from(space: Space, named: dict[str, Value]) -> Result:
    """``backward(create_graph=True)``: gradients of leaves are results with a history."""
    _check_possible(space)
    outputs = _tensors(space, named.get("tensors", _NONE))
    given = _given(space, named.get("grad_tensors", _NONE), outputs)
    retain = named.get("retain_graph", _NONE)
    nodes = [output.proxy(space) for output in outputs]
    if not named.get("inputs", _NONE).is_none():
        raise GraphBreak("FJ0117", "backward() with create_graph=True and inputs")
    leaves = _reached(space, nodes)
    if not leaves:
        raise GraphBreak("FJ0117", "backward() comes to no leaf")
    seen = [guard_leaf(space, leaf) for leaf in leaves.values()]
    if any(seen) or _retaining(space, nodes) or watched_among(space, nodes):
        raise GraphBreak("FJ0117", "backward() with create_graph=True goes through hooks")
    kept = retain.is_none() or space.truth(retain)
    node, example = _record(space, gradients, (nodes, given, [*leaves], kept, True, True))
    _keep_apart(space, leaves.values())
    found = space.items(from_fx(space, node, example))
    function = function_value(space, polyfills.accumulate_with_history)
    arguments: list[Value] = [ListValue([*leaves.values()]), ListValue(found)]
    space.call_now(function, [*arguments, space.constant(as_stored)])
    return _NONE


@lookaside(as_stored)
def _as_stored(space: Space, args: Args, kwargs: Kwargs) -> Result:
    return graph_call(space, as_stored, args, kwargs)


class Arriving(NamedTuple):
    """What a node of the graph computes, and where it arrives: in leaves, with their hooks, and in
    results that keep their gradients or whose hooks are the program's Python."""

    node: Any
    example: Any
    leaves: dict[Any, TensorValue]
    hooks: dict[Any, LeafHooks]
    retaining: dict[Any, TensorValue]
    watched: dict[Any, Watched]

    def deliver(self, space: Space, order: list[Any]) -> None:
        """Each comes where it is stored or seen, in this order. (What keeps a gradient is not
        asked for it meanwhile where no hook of a result is called.)"""
        found = space.items(from_fx(space, self.node, self.example))
        hooked = [node for node, hooks in self.hooks.items() if hooks.first]
        places = [*self.leaves, *self.retaining, *self.watched, *hooked]
        arrived = {
            place: gradient for place, gradient in zip(places, found, strict=True)
            if isinstance(gradient, TensorValue)
        }  # fmt: skip
        if not self.watched:
            kept = [n for n in self.retaining if n in arrived]
            _retain(space, [(self.retaining[n], arrived[n]) for n in kept])
            order = [node for node in order if node in self.leaves]
        if not (self.hooks or self.watched):
            _accumulate(space, {self.leaves[n]: arrived[n] for n in order if n in arrived})
            return
        self._check_new(space, len(self.watched) + len(hooked))
        seen: dict[Example, TensorValue] = {}  # what several have is one object
        for node in order:
            gradient = arrived.get(node)
            if gradient is None:
                continue
            example, gradient = gradient.example, seen.get(gradient.example, gradient)
            if node in self.retaining:
                _retain(space, [(self.retaining[node], gradient)])
            elif node in self.watched:
                seen[example] = self.watched[node].see(space, gradient, self.node)
            else:
                _store(space, self.leaves[node], gradient, self.hooks.get(node))
        if self.watched:
            forget_unchanged(space, self.node)

    def _check_new(self, space: Space, count: int) -> None:
        """GraphBreak where a hook is called with a tensor that is there already."""
        seen = self.example[len(self.example) - count :]
        others = space.builder.operations.values()
        known = {id(one.example) for one in others if one.node not in (self.node, *self.node.users)}
        if any(one is not None and id(one) in known for one in seen):
            raise GraphBreak("FJ0117", "a hook is called with a tensor that the program has")


def _retain(space: Space, pairs: list[tuple[TensorValue, Value]]) -> None:
    """These results keep their gradients."""
    if pairs:
        kept: list[Value] = [ListValue([pair[at] for pair in pairs]) for at in (0, 1)]
        space.call_now(function_value(space, polyfills.retain), kept)


@lookaside(torch.autograd.grad)
def _grad(space: Space, args: Args, kwargs: Kwargs) -> Result:
    named = autograd_arguments(_GRAD, args, kwargs)
    if "inputs" in named:  # an iterator is used up by whoever takes its items first
        named["inputs"] = _listed(space, named["inputs"])
    twice = space.truth(named.get("create_graph", ConstantValue(False)))
    try:
        return _captured_grad(space, named, twice)
    except GraphBreak as broken:
        inputs = named.get("inputs", _NONE).realize()
        for tensor in (
            space.items(inputs) if isinstance(inputs, (TupleValue, ListValue)) else [inputs]
        ):
            _end_after(tensor.realize(), "torch.autograd.grad()")
        raise (DifferentiatedTwice if twice else GraphBreak)("FJ0117", broken.reason) from broken


def _captured_grad(space: Space, named: dict[str, Value], twice: bool) -> Result:
    _check_possible(space)
    outputs = _tensors(space, named.get("outputs", _NONE))
    starts = [output.proxy(space) for output in outputs]
    if _retaining(space, starts) or watched_among(space, starts):
        raise GraphBreak("FJ0117", "torch.autograd.grad() goes through what sees its gradient")
    given = _given(space, named.get("grad_outputs", _NONE), outputs)
    inputs = _tensors(space, named.get("inputs", _NONE))
    if any(one.replaced for one in inputs):
        raise GraphBreak("FJ0117", "a gradient with respect to a tensor whose data was replaced")
    retain = named.get("retain_graph", _NONE)
    made = space.effects.made_leaves
    hooks = [
        guard_leaf(space, one) if one.obj is not None or one.node in made else None
        for one in inputs
    ]
    _keep_apart(space, [*inputs, *space.graph_inputs])
    zeros = space.truth(named.get("materialize_grads", ConstantValue(False)))
    allowed = named.get("allow_unused", _NONE)
    if zeros and (twice or not (allowed.is_none() or space.truth(allowed))):
        raise GraphBreak("FJ0117", "torch.autograd.grad() with materialize_grads=True")
    unused = zeros or (not allowed.is_none() and space.truth(allowed))
    kept = twice if retain.is_none() else space.truth(retain)
    nodes, wanted = [[one.proxy(space) for one in some] for some in (outputs, inputs)]
    batched = space.truth(named.get("is_grads_batched", ConstantValue(False)))
    call = (nodes, given, wanted, kept, twice, unused, *([True] if batched else []))
    if twice and any(hooks):
        raise GraphBreak("FJ0117", "torch.autograd.grad() of a tensor with hooks, to go on from")
    node, example = _record(space, gradients, call)
    found = from_fx(space, node, example)
    if zeros:
        function = function_value(space, polyfills.with_zeros)
        found = space.call_now(function, [found, ListValue(list(inputs))])
    if not any(hooks):
        return found
    return TupleValue(
        [changed_by(space, *pair) for pair in zip(hooks, space.items(found), strict=True)]
    )
