"""``backward`` and ``torch.autograd.grad`` of what captured code has computed.

In: calls of these. Out: a node that computes the gradients, and ``.grad`` of leaves as attributes
with effects; or a graph break, after which Python does it. Next room: graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from framejit import native
from framejit.exc import DifferentiatedTwice, GraphBreak
from framejit.graph.differentiation import gradients, leaf_gradients, leaves_of, record
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Kwargs, Unmaterialisable, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.functions import function_value
from framejit.values.torch.tensors import TensorValue, autograd_arguments, from_fx

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


def _check_possible(space: Space) -> None:
    """GraphBreak where a gradient does more than to be computed, or means something else."""
    if space.transforms:
        raise GraphBreak("FJ0117", "a gradient is computed inside of a transform of torch.func")
    if space.effects.hooks or space.builder.leader.before_saving is not None:
        raise GraphBreak("FJ0117", "a gradient is computed where hooks of autograd are in place")
    if torch.is_anomaly_enabled() or torch.is_inference_mode_enabled():
        raise GraphBreak("FJ0117", "a gradient is computed in a mode of autograd")


def _guard_leaf(space: Space, tensor: TensorValue) -> None:
    """Autograd does nothing with this input's gradient but to store it or to return it."""
    if tensor.obj is None or tensor.source is None or tensor.cls is not type(tensor.obj):
        raise GraphBreak("FJ0117", "the gradient of a tensor that is no plain input")
    if not native.is_leaf_without_hooks(tensor.obj):
        raise GraphBreak("FJ0117", "the gradient of a tensor with hooks, or of an earlier result")
    space.guard(tensor.source, "LEAF")


def _end_after(tensor: Value, what: str) -> None:
    """Python does it. With respect to a tensor that the same graph has made and used there would be
    no gradient: then the graph ends right after that tensor."""
    if isinstance(tensor, TensorValue) and tensor.step and tensor.node.users:
        why = f"{what} with respect to a tensor that was used before"
        raise Unmaterialisable(tensor.step + 1, why)


def _record(space: Space, target: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
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
    # Autograd asks for it when it comes there.
    return {node: by_node[node] for node in found if by_node[node].metadata().requires_grad}


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
        raise DifferentiatedTwice("FJ0117", "backward() with create_graph=True")
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
        for node, leaf in leaves.items():
            if node not in space.effects.made_leaves:
                _end_after(leaf, "backward() with inputs")
    if not leaves:
        raise GraphBreak("FJ0117", "backward() comes to no leaf")
    for node, leaf in leaves.items():
        if leaf.obj is not None or node not in space.effects.made_leaves:
            _guard_leaf(space, leaf)
    node, example = _record(space, leaf_gradients, (nodes, given, list(leaves), retain))
    stored = space.items(from_fx(space, node, example))
    pairs = [pair for pair in zip(leaves.values(), stored, strict=True) if not pair[1].is_none()]
    _keep_apart(space, leaves.values())
    accumulate = function_value(space, polyfills.accumulate)
    space.call_now(accumulate, [ListValue([p[0] for p in pairs]), ListValue([p[1] for p in pairs])])
    return _NONE


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
    for name in ("is_grads_batched", "materialize_grads"):
        if space.truth(named.get(name, ConstantValue(False))):
            raise GraphBreak("FJ0117", f"torch.autograd.grad() with {name}=True")
    _check_possible(space)
    outputs = _tensors(space, named.get("outputs", _NONE))
    given = _given(space, named.get("grad_outputs", _NONE), outputs)
    inputs = _tensors(space, named.get("inputs", _NONE))
    retain = named.get("retain_graph", _NONE)
    for tensor in inputs:
        if tensor.obj is not None:
            _guard_leaf(space, tensor)
    _keep_apart(space, [*inputs, *space.graph_inputs])
    unused = space.truth(named.get("allow_unused", ConstantValue(False)))
    kept = twice if retain.is_none() else space.truth(retain)
    nodes, wanted = [[one.proxy(space) for one in some] for some in (outputs, inputs)]
    call = (nodes, given, wanted, kept, twice, unused)
    node, example = _record(space, gradients, call)
    return from_fx(space, node, example)
