"""Functions that take functions of tensors: ``torch.cond``, ``while_loop``, ``scan``, ``vmap``.

In: calls with Python functions as arguments. Out: the functions are traced into nested graphs, and
one node stands for the call. Next room: graph.
"""

from __future__ import annotations

import torch
import torch._functorch.apis
import torch._functorch.vmap

from framejit.exc import GraphBreak
from framejit.graph.nested import batched
from framejit.report.messages import side_effect_error
from framejit.values.base import Value
from framejit.values.constants import ConstantValue
from framejit.values.mappings import DictValue
from framejit.values.nesting import (
    Nested,
    SideEffect,
    refilled,
    structure,
    tensors_in,
    trial,
)
from framejit.values.sequences import ListValue, TupleValue
from framejit.values.space import Result, Space, lookaside
from framejit.values.tensors import TensorValue, from_fx, graph_call_method


def _operator_body(space: Space, function: Value, operands: list[Value], what: str) -> Nested:
    """A function that becomes part of an operator, which eager mode does not run otherwise."""
    try:
        result, stretch = trial(space, function, operands, what)
    except SideEffect as effect:
        filename, line = space.line() or ("", 0)
        raise side_effect_error(what, effect.reason, filename, line)
    return Nested(space, result, stretch, own=True)


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
    given = [tensor.proxy(space) for item in operands for tensor in tensors_in(item)]
    for name in ("true_fn", "false_fn"):
        branches.append(_operator_body(space, named[name], operands, "a branch of torch.cond()"))
    if structure(branches[0].result) != structure(branches[1].result):
        raise GraphBreak("the branches of torch.cond() answer different structures")
    inputs = dict.fromkeys(given)
    for branch in branches:
        inputs.update(dict.fromkeys(branch.lifted([])))
    modules = [
        branch.node(f"cond_{label}", list(inputs))
        for label, branch in zip(("true", "false"), branches, strict=True)
    ]
    node, example = space.builder.call_function(
        torch.ops.higher_order.cond, (predicate.proxy(space), *modules, tuple(inputs)), {}
    )
    space.changes += 1
    return refilled(branches[0].result, space.items(from_fx(space, node, example)))


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
    result, stretch = trial(space, function, space.items(inner), "the function under torch.vmap()")
    if not out_dims.realize().is_constant:
        raise GraphBreak("torch.vmap() with several out_dims")
    outputs = [tensor.proxy(space) for tensor in tensors_in(result)]
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
    return refilled(result, space.items(from_fx(space, node, example)))


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
