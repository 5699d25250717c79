"""Functions that take functions of tensors: ``torch.cond``, ``while_loop``, ``scan``, ``map``.

In: calls with Python functions as arguments. Out: the functions are traced into nested graphs, and
one node represents the call. Next room: graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch._higher_order_ops.map import map as higher_order_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from framejit.exc import GraphBreak
from framejit.graph import nested
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.torch.nesting import (
    Nested,
    Terms,
    leaves,
    refilled,
    stand_in,
    structure,
    tensors_in,
    trial,
)
from framejit.values.torch.tensors import TensorValue, from_fx, tensor_call


def _operator_body(space: Space, function: Value, operands: list[Value], what: str) -> Nested:
    """A function that becomes part of an operator. What shares memory is left to torch, which
    refuses most of it, and operators in most transforms."""
    if space.transforms:
        raise GraphBreak("FJ0123", f"{what} in a transform of torch.func")
    result, stretch = trial(space, function, operands, Terms(what, writes=True))
    body = Nested(space, result, stretch)
    memory = [*body.lifted([]), *body.outputs]
    for index, node in enumerate(memory):
        if space.builder.share(node, memory[:index]):
            raise GraphBreak("FJ0122", f"{what} is given or answers tensors that share memory")
    return body


def _carry(space: Space, given: list[TensorValue], returned: Value, what: str) -> None:
    """torch refuses a loop that carries on other tensors than it began with."""

    def layouts(tensors: list[TensorValue]) -> list[Any]:
        fakes = [tensor.fake(space) for tensor in tensors]
        return [(x.dtype, x.device, tuple(x.shape), x.stride()) for x in fakes]

    if layouts(given) != layouts(tensors_in(returned)):
        raise GraphBreak("FJ0123", f"{what} carries on another shape, dtype or strides")


# -- torch.cond -------------------------------------------------------------------------------


@lookaside(torch.cond)
def _cond(space: Space, args: Args, kwargs: Kwargs) -> Result:
    named = dict(zip(("pred", "true_fn", "false_fn", "operands"), args, strict=False)) | kwargs
    predicate = named["pred"].realize()
    operands = space.items(named["operands"]) if "operands" in named else []
    if predicate.is_constant and predicate.python_type() is bool:
        chosen = "true_fn" if space.truth(predicate) else "false_fn"
        return space.call(named[chosen], operands, {})
    if not isinstance(predicate, TensorValue):
        raise GraphBreak("FJ0123", f"torch.cond() with a {predicate.describe()} as predicate")
    branches = []
    given = [tensor.proxy(space) for item in operands for tensor in tensors_in(item)]
    if sum([leaves(item) for item in operands]) != len(given):
        raise GraphBreak("FJ0123", "torch.cond() with an operand that is no tensor")
    for name in ("true_fn", "false_fn"):
        branches.append(_operator_body(space, named[name], operands, "a branch of torch.cond()"))
    if structure(branches[0].result) != structure(branches[1].result):
        raise GraphBreak("FJ0123", "the branches of torch.cond() answer different structures")
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
    return refilled(branches[0].result, space.items(from_fx(space, node, example)))


# -- torch.while_loop, scan, map ----------------------------------------------------------------


def _stand_ins(space: Space, value: Value) -> tuple[Value, list[TensorValue]]:
    """The same structure with tensors that the nested graph takes as its own inputs."""
    tensors = [stand_in(space, tensor) for tensor in tensors_in(value)]
    return refilled(value, list(tensors)), tensors


def _nodes(space: Space, tensors: list[TensorValue]) -> list[Any]:
    return [tensor.proxy(space) for tensor in tensors]


@lookaside(while_loop, torch.while_loop)
def _while_loop(space: Space, args: Args, kwargs: Kwargs) -> Result:
    named = dict(zip(("cond_fn", "body_fn", "carried_inputs"), args, strict=False)) | kwargs
    carried = named["carried_inputs"].realize()
    given = tensors_in(carried)
    if len(given) != leaves(carried):
        raise GraphBreak("FJ0123", "while_loop() carries something that is no tensor")
    inner, inputs = _stand_ins(space, carried)
    parts = []
    for name in ("cond_fn", "body_fn"):
        what = f"the {name} of while_loop()"
        parts.append(_operator_body(space, named[name], space.items(inner), what))
    if len(parts[0].outputs) != 1 or len(parts[1].outputs) != len(given):
        raise GraphBreak(
            "FJ0123", "the functions of while_loop() answer something else than they carry"
        )
    _carry(space, given, parts[1].result, "while_loop()")
    own = _nodes(space, inputs)
    lifted = list(dict.fromkeys([n for part in parts for n in part.lifted(own)]))
    parts[0].unpacked = True
    modules = [
        part.node(f"while_loop_{label}", [*own, *lifted])
        for label, part in zip(("cond", "body"), parts, strict=True)
    ]
    node, example = space.builder.call_function(
        nested.while_loop,
        (*modules, tuple(_nodes(space, given)), tuple(lifted)), {},
    )  # fmt: skip
    return refilled(carried, space.items(from_fx(space, node, example)))


def _first_slices(space: Space, xs: list[TensorValue]) -> list[TensorValue]:
    zero = ConstantValue(0)
    return [stand_in(space, tensor_call(space, "select", x, zero, zero)) for x in xs]


@lookaside(scan)
def _scan(space: Space, args: Args, kwargs: Kwargs) -> Result:
    named = dict(zip(("combine_fn", "init", "xs"), args, strict=False)) | kwargs
    init, xs = named["init"].realize(), named["xs"].realize()
    dim = named.get("dim", ConstantValue(0)).realize().as_python()
    reverse = space.truth(named.get("reverse", ConstantValue(False)))
    carried, sliced = tensors_in(init), tensors_in(xs)
    if not sliced or not carried or any(len(x.metadata().shape) <= dim for x in sliced):
        raise GraphBreak("FJ0123", "scan() of something else than tensors")
    moved = [_moved(space, x, dim, 0, reverse) for x in sliced]
    if any(x.metadata().shape[0] == 0 for x in moved):
        raise GraphBreak("FJ0123", "scan() over nothing")
    inner_init, init_inputs = _stand_ins(space, init)
    slices = _first_slices(space, moved)
    body = _operator_body(space, named["combine_fn"],
                          [inner_init, refilled(xs, list(slices))],
                          "the combine_fn of scan()")  # fmt: skip
    answer = body.result.realize()
    pair = answer.items if type(answer) is TupleValue else []  # type: ignore[attr-defined]
    if len(pair) != 2 or structure(pair[0]) != structure(init):
        raise GraphBreak(
            "FJ0123", "the combine_fn of scan() answers something else than a carry like init"
        )
    _carry(space, carried, pair[0], "scan()")
    own = _nodes(space, [*init_inputs, *slices])
    lifted = body.lifted(own)
    module = body.node("scan_combine", [*own, *lifted])
    node, example = space.builder.call_function(
        torch.ops.higher_order.scan,
        (module, _nodes(space, carried), _nodes(space, moved), tuple(lifted)), {},
    )  # fmt: skip
    made = space.items(from_fx(space, node, example))
    count = len(carried)
    stacked: list[Value] = [_moved_back(space, y, dim, reverse) for y in made[count:]]
    return TupleValue([refilled(pair[0], made[:count]), refilled(pair[1], stacked)])


def _moved(space: Space, x: TensorValue, source: int, to: int, reverse: bool) -> TensorValue:
    if source != to:
        x = tensor_call(space, "movedim", x, ConstantValue(source), ConstantValue(to))
    return tensor_call(space, "flip", x, TupleValue([ConstantValue(0)])) if reverse else x


def _moved_back(space: Space, y: Value, dim: int, reverse: bool) -> Value:
    assert isinstance(y, TensorValue)
    y = _moved(space, y, 0, 0, reverse)
    return _moved(space, y, 0, dim, False) if dim < len(y.metadata().shape) else y


@lookaside(higher_order_map)
def _map(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if kwargs:
        raise GraphBreak("FJ0123", "map() with keyword arguments")
    function, xs, *rest = args
    sliced = tensors_in(xs)
    if not sliced or any(len(x.metadata().shape) == 0 for x in sliced):
        raise GraphBreak("FJ0123", "map() of something else than tensors")
    if any(x.metadata().shape[0] == 0 for x in sliced):
        raise GraphBreak("FJ0123", "map() over nothing")
    slices = _first_slices(space, sliced)
    body = _operator_body(space, function, [refilled(xs, list(slices)), *rest],
                          "the function of map()")  # fmt: skip
    own = _nodes(space, slices)
    lifted = body.lifted(own)
    module = body.node("map_body", [*own, *lifted])
    node, example = space.builder.call_function(
        torch.ops.higher_order.map_impl, (module, _nodes(space, sliced), lifted), {}
    )
    return refilled(body.result, space.items(from_fx(space, node, example)))
