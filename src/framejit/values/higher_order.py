"""Functions that take functions of tensors: ``torch.cond``, ``while_loop``, ``scan``, ``vmap``.

In: calls with Python functions as arguments. Out: the functions are traced into nested graphs, and
one node stands for the call. Next room: graph.
"""

from __future__ import annotations

from typing import Any

import torch
import torch._functorch.apis
import torch._functorch.vmap
import torch.func
from torch._functorch import eager_transforms
from torch._higher_order_ops.map import map as higher_order_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from framejit.exc import GraphBreak
from framejit.graph import nested
from framejit.graph.nested import batched, transformed
from framejit.report.messages import side_effect_error
from framejit.values import polyfills
from framejit.values.base import Value
from framejit.values.builtin_functions import call_polyfill
from framejit.values.constants import ConstantValue
from framejit.values.mappings import DictValue
from framejit.values.nesting import (
    Nested,
    SideEffect,
    parts_of,
    refilled,
    stand_in,
    structure,
    tensors_in,
    trial,
)
from framejit.values.sequences import ListValue, TupleValue
from framejit.values.space import LOOKASIDES, Result, Space, lookaside
from framejit.values.tensors import TensorValue, from_fx, graph_call_method


def _operator_body(space: Space, function: Value, operands: list[Value], what: str) -> Nested:
    """A function that becomes part of an operator, which eager mode does not run otherwise."""
    try:
        result, stretch = trial(space, function, operands, what)
    except SideEffect as effect:
        filename, line = space.line() or ("", 0)
        raise side_effect_error(effect.identifier, what, effect.reason, filename, line)
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
        raise GraphBreak("FJ0123", f"torch.cond() with a {predicate.describe()} as predicate")
    branches = []
    given = [tensor.proxy(space) for item in operands for tensor in tensors_in(item)]
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
    space.changes += 1
    return refilled(branches[0].result, space.items(from_fx(space, node, example)))


# -- torch.while_loop, scan, map ----------------------------------------------------------------


def _stand_ins(space: Space, value: Value) -> tuple[Value, list[TensorValue]]:
    """The same structure with tensors that the nested graph takes as its own inputs."""
    tensors = [stand_in(space, tensor) for tensor in tensors_in(value)]
    return refilled(value, list(tensors)), tensors


def _nodes(space: Space, tensors: list[TensorValue]) -> list[Any]:
    return [tensor.proxy(space) for tensor in tensors]


@lookaside(while_loop, torch.while_loop)
def _while_loop(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    named = dict(zip(("cond_fn", "body_fn", "carried_inputs"), args, strict=False)) | kwargs
    carried = named["carried_inputs"].realize()
    given = tensors_in(carried)
    if len(given) != _leaves(carried):
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
    space.changes += 1
    return refilled(carried, space.items(from_fx(space, node, example)))


def _leaves(value: Value) -> int:
    """How many parts that are no containers ``value`` has."""
    value = value.realize()
    if isinstance(value, TensorValue) or value.is_constant:
        return 1
    return sum(map(_leaves, parts_of(value)))


def _first_slices(space: Space, xs: list[TensorValue]) -> list[TensorValue]:
    made = [
        graph_call_method(space, "select", [x, ConstantValue(0), ConstantValue(0)], {}) for x in xs
    ]
    return [stand_in(space, one) for one in made]  # type: ignore[arg-type]


@lookaside(scan)
def _scan(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
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
    own = _nodes(space, [*init_inputs, *slices])
    lifted = body.lifted(own)
    module = body.node("scan_combine", [*own, *lifted])
    node, example = space.builder.call_function(
        torch.ops.higher_order.scan,
        (module, _nodes(space, carried), _nodes(space, moved), tuple(lifted)), {},
    )  # fmt: skip
    space.changes += 1
    made = space.items(from_fx(space, node, example))
    count = len(carried)
    stacked: list[Value] = [_moved_back(space, y, dim, reverse) for y in made[count:]]
    return TupleValue([refilled(pair[0], made[:count]), refilled(pair[1], stacked)])


def _moved(space: Space, x: TensorValue, source: int, to: int, reverse: bool) -> TensorValue:
    if source != to:
        ends: list[Value] = [ConstantValue(source), ConstantValue(to)]
        x = graph_call_method(space, "movedim", [x, *ends], {})  # type: ignore[assignment]
    if reverse:
        zero = TupleValue([ConstantValue(0)])
        x = graph_call_method(space, "flip", [x, zero], {})  # type: ignore[assignment]
    return x


def _moved_back(space: Space, y: Value, dim: int, reverse: bool) -> Value:
    assert isinstance(y, TensorValue)
    y = _moved(space, y, 0, 0, reverse)
    return _moved(space, y, 0, dim, False) if dim < len(y.metadata().shape) else y


@lookaside(higher_order_map)
def _map(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
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
    space.changes += 1
    return refilled(body.result, space.items(from_fx(space, node, example)))


# -- torch.func: grad, vjp, jvp, jacobians ------------------------------------------------------


def transform(
    space: Space, name: str, function: Value, operands: list[Value], options: dict[str, Any],
    vectors: list[Value] | None = None,
) -> Result:  # fmt: skip
    """``torch.func.<name>(function, **options)(*operands)`` as one node.

    ``vectors`` are what ``vjp`` pulls back or ``jvp`` pushes forward.
    """
    given = [operand.realize() for operand in operands]
    if not given or not all(isinstance(operand, TensorValue) for operand in given):
        raise GraphBreak("FJ0123", f"torch.func.{name}() of something else than tensors")
    inputs = [stand_in(space, operand) for operand in given]  # type: ignore[arg-type]
    what = f"the function under torch.func.{name}()"
    result, stretch = trial(space, function, list(inputs), what, state=True)
    body = Nested(space, result, stretch, own=False)
    if not body.outputs or _leaves(result) != len(body.outputs):
        raise GraphBreak("FJ0123", f"{what} answers something else than tensors")
    simple = isinstance(result.realize(), TensorValue)
    if not simple and name not in ("vjp", "jvp"):
        raise GraphBreak("FJ0123", f"{what} answers several tensors")
    own = _nodes(space, inputs)
    lifted = body.lifted(own)
    body.unpacked = simple
    module = body.node(f"{name}_body", [*own, *lifted])
    extra = [tensor for value in vectors or [] for tensor in tensors_in(value)]
    options = {**options, "operands": len(own), "vectors": len(extra)}
    arguments = _nodes(space, [*given, *extra])  # type: ignore[list-item]
    node, example = space.builder.call_function(
        transformed, (name, options, module, *arguments, *lifted), {}
    )
    space.changes += 1
    return from_fx(space, node, example)


def _plain(value: Value) -> Any:
    return value.realize().as_python()


def _gradient(name: str) -> Any:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        function, argnums, has_aux, operands, named = args
        if space.truth(has_aux) or space.truth(named) or kwargs:
            raise GraphBreak("FJ0123", f"torch.func.{name}() with has_aux or keyword arguments")
        options = {"argnums": _plain(argnums)}
        return transform(space, name, function, space.items(operands), options)

    return handler


LOOKASIDES[eager_transforms.grad_impl] = _gradient("grad")
LOOKASIDES[eager_transforms.grad_and_value_impl] = _gradient("grad_and_value")


@lookaside(polyfills.transformed)
def _transformed(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    name, function, argnums, operands = args
    options = {"argnums": _plain(argnums)}
    return transform(space, _plain(name), function, space.items(operands), options)


def _jacobian(name: str) -> Any:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        named = dict(zip(("func", "argnums"), args, strict=False)) | kwargs
        if named.keys() - {"func", "argnums"}:
            raise GraphBreak("FJ0123", f"torch.func.{name}() with {', '.join(named)}")
        argnums = named.get("argnums", ConstantValue(0))
        return call_polyfill(
            space, polyfills.jacobian, [ConstantValue(name), named["func"], argnums]
        )

    return handler


for _name in ("jacrev", "jacfwd", "hessian"):
    LOOKASIDES[getattr(torch.func, _name)] = _jacobian(_name)


@lookaside(torch.func.jvp)
def _jvp(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    if len(args) != 3 or kwargs:
        raise GraphBreak("FJ0123", "torch.func.jvp() with options")
    function, primals, tangents = args
    return transform(space, "jvp", function, space.items(primals), {}, space.items(tangents))


@lookaside(torch.func.vjp)
def _vjp(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    if kwargs or len(args) < 2:
        raise GraphBreak("FJ0123", "torch.func.vjp() with options")
    return call_polyfill(space, polyfills.vjp, args)


@lookaside(polyfills.pull_back)
def _pull_back(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    function, primals, cotangents = args
    return transform(space, "vjp", function, space.items(primals), {}, [cotangents])


# -- torch.vmap -------------------------------------------------------------------------------


@lookaside(torch._functorch.vmap.vmap_impl)
def _vmap(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    function, in_dims, out_dims, randomness, chunk_size, *operands = args
    if kwargs or space.truth(chunk_size):
        raise GraphBreak("FJ0123", "torch.vmap() with keyword arguments or chunks")
    dims: dict[TensorValue, int | None] = {}
    sliced: dict[TensorValue, TensorValue] = {}

    def slices(value: Value, dim: Value) -> Value:
        value, dim = value.realize(), dim.realize()
        if isinstance(value, TensorValue):
            number = dim.as_python()
            if value in dims and dims[value] != number:
                raise GraphBreak("FJ0123", "torch.vmap() of one tensor along two dimensions")
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
            raise GraphBreak("FJ0123", "torch.vmap() of a dict")
        return value

    inner = slices(TupleValue(list(operands)), in_dims)
    if not any(dim is not None for dim in dims.values()):
        raise GraphBreak("FJ0123", "torch.vmap() without a dimension to map over")
    result, stretch = trial(space, function, space.items(inner), "the function under torch.vmap()")
    if not out_dims.realize().is_constant:
        raise GraphBreak("FJ0123", "torch.vmap() with several out_dims")
    outputs = [tensor.proxy(space) for tensor in tensors_in(result)]
    if len(set(outputs)) != len(outputs) or not outputs:
        raise GraphBreak(
            "FJ0123", "a function under torch.vmap() answers one tensor twice, or none"
        )
    parts = [part.proxy(space) for part in sliced.values()]
    lifted = [n for n in stretch.used_from_outside(outputs) if n not in parts]
    if {value.proxy(space) for value in dims}.intersection(lifted):
        raise GraphBreak("FJ0123", "a function under torch.vmap() also uses the whole tensor")
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
        raise GraphBreak("FJ0123", "torch.vmap() along a dimension that a tensor does not have")
    if shape.pop(dim) == 0:
        return graph_call_method(space, "new_empty", [value, space.constant(shape)], {})  # type: ignore[return-value]
    return graph_call_method(space, "select", [value, ConstantValue(dim), ConstantValue(0)], {})  # type: ignore[return-value]
