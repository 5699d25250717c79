"""Functions that take functions of tensors: ``torch.cond``, ``vmap``, ``autograd.Function``.

In: calls with Python functions as arguments. Out: the functions are traced into nested graphs (or,
for ``autograd.Function``, traced to see that they are pure and to guard what they read), and one
node stands for the call. Next room: graph.
"""

from __future__ import annotations

from typing import Any

import torch
import torch._functorch.apis
import torch._functorch.vmap

from framejit.exc import GraphBreak
from framejit.graph.nested import Stretch, applied, batched
from framejit.values import polyfills
from framejit.values.base import Raised, Value
from framejit.values.builtin_functions import call_polyfill
from framejit.values.classes import ClassValue, class_value
from framejit.values.constants import ConstantValue
from framejit.values.mappings import DictValue
from framejit.values.sequences import ListValue, TupleValue
from framejit.values.space import Result, Space, lookaside
from framejit.values.tensors import TensorValue, from_fx, graph_call, graph_call_method, to_fx


def _trial(space: Space, function: Value, args: list[Value], what: str) -> tuple[Value, Stretch]:
    """Call ``function`` and say what it recorded; it may do nothing else."""
    stretch = Stretch(space.builder)
    effects = len(space.effects.changed), len(space.effects.globals)
    try:
        result = space.call_now(function, args)
    except Raised as error:
        raise GraphBreak(f"{what} raises {error.value.python_type().__name__}")
    stretch.close(what)
    if effects != (len(space.effects.changed), len(space.effects.globals)):
        raise GraphBreak(f"{what} changes something outside")
    return result, stretch


def _tensors(value: Value) -> list[TensorValue]:
    """The tensors in a result made of tuples and lists; GraphBreak for anything else."""
    value = value.realize()
    if isinstance(value, TensorValue):
        return [value]
    if type(value) in (TupleValue, ListValue):
        return [tensor for item in value.items for tensor in _tensors(item)]  # type: ignore[attr-defined]
    raise GraphBreak(f"a traced function answers a {value.describe()}")


def _rebuild(space: Space, like: Value, tensors: list[Value]) -> Value:
    """``like`` with other tensors, taken from the front of the list."""
    like = like.realize()
    if isinstance(like, TensorValue):
        return tensors.pop(0)
    items = [_rebuild(space, item, tensors) for item in like.items]  # type: ignore[attr-defined]
    return ListValue(items) if isinstance(like, ListValue) else TupleValue(items)


def _shape(value: Value) -> Any:
    value = value.realize()
    if isinstance(value, TensorValue):
        return None
    return type(value), [_shape(item) for item in value.items]  # type: ignore[attr-defined]


# -- torch.cond -------------------------------------------------------------------------------


@lookaside(torch.cond)
def _cond(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    named = dict(zip(("pred", "true_fn", "false_fn", "operands"), args, strict=False)) | kwargs
    predicate = named["pred"].realize()
    operands = space.items(named["operands"]) if "operands" in named else []
    if predicate.is_constant:
        chosen = "true_fn" if space.truth(predicate) else "false_fn"
        return space.call(named[chosen], operands, {})
    if not isinstance(predicate, TensorValue):
        raise GraphBreak(f"torch.cond() with a {predicate.describe()} as predicate")
    branches = []
    given = [tensor.proxy(space) for item in operands for tensor in _tensors(item)]
    for name in ("true_fn", "false_fn"):
        result, stretch = _trial(space, named[name], operands, "a branch of torch.cond()")
        outputs = [tensor.proxy(space) for tensor in _tensors(result)]
        branches.append((result, stretch, outputs))
    if _shape(branches[0][0]) != _shape(branches[1][0]):
        raise GraphBreak("the branches of torch.cond() answer different structures")
    inputs = dict.fromkeys(given)
    for _, stretch, outputs in branches:
        inputs.update(dict.fromkeys(stretch.used_from_outside(outputs)))
    modules = [
        space.builder.add_module(f"cond_{label}", stretch.module(list(inputs), outputs))
        for label, (_, stretch, outputs) in zip(("true", "false"), branches, strict=True)
    ]
    node, example = space.builder.call_function(
        torch.ops.higher_order.cond, (predicate.proxy(space), *modules, tuple(inputs)), {}
    )
    space.changes += 1
    return _rebuild(space, branches[0][0], space.items(from_fx(space, node, example)))


# -- torch.vmap -------------------------------------------------------------------------------


@lookaside(torch._functorch.vmap.vmap_impl)
def _vmap(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    function, in_dims, out_dims, randomness, chunk_size, *operands = args
    if kwargs or space.truth(chunk_size):
        raise GraphBreak("torch.vmap() with keyword arguments or chunks")
    dims: dict[TensorValue, int | None] = {}
    sliced: dict[TensorValue, TensorValue] = {}

    def slices(value: Value, dim: Value) -> Value:
        value, dim = value.realize(), dim.realize()
        if isinstance(value, TensorValue):
            number = dim.as_python()
            if value in dims and dims[value] != number:
                raise GraphBreak("torch.vmap() of one tensor along two dimensions")
            dims[value] = number
            if value not in sliced:
                part = _one_slice(space, value, number)
                assert isinstance(part, TensorValue)
                sliced[value] = part
            return sliced[value]
        if type(value) in (TupleValue, ListValue):
            items = value.items  # type: ignore[attr-defined]
            whole = dim.python_type() in (int, type(None))
            parts = [dim] * len(items) if whole else space.items(dim)
            made = [slices(item, part) for item, part in zip(items, parts, strict=True)]
            return ListValue(made) if isinstance(value, ListValue) else TupleValue(made)
        if isinstance(value, DictValue):
            raise GraphBreak("torch.vmap() of a dict")
        return value

    inner = slices(TupleValue(list(operands)), in_dims)
    if not any(dim is not None for dim in dims.values()):
        raise GraphBreak("torch.vmap() without a dimension to map over")
    result, stretch = _trial(space, function, space.items(inner), "the function under torch.vmap()")
    if not out_dims.realize().is_constant:
        raise GraphBreak("torch.vmap() with several out_dims")
    outputs = [tensor.proxy(space) for tensor in _tensors(result)]
    if len(set(outputs)) != len(outputs) or not outputs:
        raise GraphBreak("a function under torch.vmap() answers one tensor twice, or none")
    parts = [part.proxy(space) for part in sliced.values()]
    lifted = [n for n in stretch.used_from_outside(outputs) if n not in parts]
    if {value.proxy(space) for value in dims}.intersection(lifted):
        raise GraphBreak("a function under torch.vmap() also uses the whole tensor")
    module = space.builder.add_module("vmap_body", stretch.module([*parts, *lifted], outputs))
    every_dim = (*dims.values(), *([None] * len(lifted)))
    out = (out_dims.realize().as_python(),) * len(outputs)
    node, example = space.builder.call_function(
        batched,
        (module, every_dim, out, randomness.realize().as_python(),
         *[value.proxy(space) for value in dims], *lifted),
        {},
    )  # fmt: skip
    space.changes += 1
    return _rebuild(space, result, space.items(from_fx(space, node, example)))


def _one_slice(space: Space, value: TensorValue, dim: int | None) -> Value:
    """What the function under vmap sees of ``value``; the node is only a stand-in."""
    if dim is None:
        return graph_call_method(space, "clone", [value], {})  # type: ignore[return-value]
    shape = list(value.metadata().shape)
    if not -len(shape) <= dim < len(shape):
        raise GraphBreak("torch.vmap() along a dimension that a tensor does not have")
    if shape.pop(dim) == 0:
        return graph_call_method(space, "new_empty", [value, space.constant(shape)], {})  # type: ignore[return-value]
    return graph_call_method(space, "select", [value, ConstantValue(dim), ConstantValue(0)], {})  # type: ignore[return-value]


# -- torch.autograd.Function ------------------------------------------------------------------


@lookaside(torch.autograd.Function.apply.__func__)  # type: ignore[attr-defined]
def _apply(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    owner = args[0].realize()
    if not isinstance(owner, ClassValue) or kwargs:
        raise GraphBreak("an autograd.Function applied with keyword arguments")
    cls, operands = owner.cls, args[1:]
    for name in ("forward", "backward", "setup_context", "vjp", "apply"):
        space.class_attribute(cls, name)
    if getattr(cls, "vjp", None) is not torch.autograd.Function.vjp:
        raise GraphBreak(f"{cls.__qualname__} has a vjp of its own")
    what = f"{cls.__qualname__}.forward()"
    context = space.call_now(class_value(space, polyfills.FunctionContext), list(operands))
    forward = _PolyfillCall(polyfills.function_forward, space)
    result, stretch = _trial(space, forward, [owner, context, *operands], what)
    answers = [result] if isinstance(result.realize(), TensorValue) else space.items(result)
    outputs = [a for a in map(Value.realize, answers) if isinstance(a, TensorValue)]
    given = {a.proxy(space) for a in map(Value.realize, operands) if isinstance(a, TensorValue)}
    _no_free_tensors(stretch, given, what)
    if torch.is_grad_enabled() and any(output.metadata().requires_grad for output in outputs):
        what = f"{cls.__qualname__}.backward()"
        gradients = [graph_call(space, torch.empty_like, [output], {}) if output in outputs
                     else ConstantValue(None) for output in map(Value.realize, answers)]  # type: ignore[comparison-overlap]  # fmt: skip
        stretch = Stretch(space.builder)
        backward = _PolyfillCall(polyfills.function_backward, space)
        _, inner = _trial(space, backward, [owner, context, *gradients], what)
        saved = {o.proxy(space) for o in outputs} | given
        _no_free_tensors(inner, saved | set(stretch.builder._nodes[: inner.start]), what)
    nodes = [to_fx(space, operand) for operand in operands]
    node, example = space.builder.call_function(applied(cls), tuple(nodes), {})
    space.changes += 1
    return from_fx(space, node, example)


def _no_free_tensors(stretch: Stretch, given: set[Any], what: str) -> None:
    outside = [n for node in stretch.nodes for n in node.all_input_nodes]
    known = {*stretch.nodes, *given}
    if any(node not in known for node in outside):
        raise GraphBreak(f"{what} uses a tensor that is not an argument")


class _PolyfillCall(Value):
    """A function of `polyfills` as a value."""

    __slots__ = ("function",)

    def __init__(self, function: Any, space: Space) -> None:
        self.function = function
        self.source = None

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        return call_polyfill(space, self.function, args)
