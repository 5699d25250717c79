"""``torch.func`` and ``torch.vmap``: the function runs once, between operations that enter and
leave the transform, as it does in eager mode.

In: calls of transforms with Python functions as arguments. Out: the graph gets what torch's own
Python code calls: ``_vmap_increment_nesting``, ``_add_batch_dim``, the function's operations on one
slice, ``_remove_batch_dim``, ... What comes out is imagined by running the transform on fake
tensors. ``jvp`` and ``jacfwd`` are one node with a nested graph. Next: graph.
"""

from __future__ import annotations

import contextlib
import math
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch._functorch.apis
import torch._functorch.vmap
import torch.func
from torch._C import _functorch as native_transforms
from torch._functorch import eager_transforms, predispatch

from framejit.exc import GraphBreak
from framejit.graph import nested
from framejit.graph.global_state import refused_hooks
from framejit.graph.nested import Stretch, transformed
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Declared, Kwargs, Raised, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import LOOKASIDES, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.functions import function_value
from framejit.values.objects.partials import PartialValue
from framejit.values.torch.nesting import (
    Nested,
    Terms,
    leaves,
    parts_of,
    rebuild,
    refilled,
    stand_in,
    structure,
    tensors_in,
    trial,
)
from framejit.values.torch.tensors import TensorValue, from_fx, graph_call, to_fx
from framejit.values.torch.torch_library import as_written

#: What torch says when somebody packs saved tensors inside of a transform.
_NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an "
    "issue with your use case."
)


@contextlib.contextmanager
def entered(space: Space, levels: int = 1) -> Iterator[int]:
    """Inside of one more transform: its level. Transforms around the capture are none of ours.
    An error of the program would leave it without the operations that do."""
    space.transforms += 1
    space.levels += levels
    space.transformed = True
    try:
        yield space.levels
    except Raised:
        raise GraphBreak("FJ0123", "an error leaves a transform of torch.func") from None
    finally:
        space.transforms -= 1
        space.levels -= levels


def _inside(
    space: Space, function: Value, args: list[Value], kwargs: Kwargs
) -> tuple[Value, Stretch]:
    """Run ``function`` here; what it recorded stays where it is, and is a stretch as well."""
    stretch, step = Stretch(space.builder), space.step
    result = space.now(space.call(function, args, kwargs))
    stretch.note(step)
    return result, stretch


class _Body(NamedTuple):
    """A function that was run: what it recorded, from which nodes to which."""

    recorded: Stretch
    inputs: list[Any]
    outputs: list[Any]


def _imagine(
    space: Space, body: _Body, target: Any, before: tuple[Any, ...], given: list[Any]
) -> list[Any]:
    """What ``target(*before, body, *given, *what the body uses from outside)`` would return."""
    recorded, inputs, outputs = body
    lifted = [node for node in recorded.used_from_outside(outputs) if node not in inputs]
    module = space.builder.add_module("body", recorded.module([*inputs, *lifted], outputs))
    levels = space.levels
    if levels:
        target, before = nested.inside, (levels, target.__name__, *before)
    return list(space.builder.imagine(target, (*before, module, *given, *lifted)))


# -- torch.vmap -------------------------------------------------------------------------------


@lookaside(torch._functorch.vmap.vmap_impl)
def _vmap(space: Space, args: Args, kwargs: Kwargs) -> Result:
    function, in_dims, out_dims, randomness, chunk_size, *operands = args
    if space.truth(chunk_size):  # torch's own code calls `_flat_vmap` for each chunk
        return as_written(space, torch._functorch.vmap.vmap_impl, args, kwargs)
    mapping = _Mapping(function, in_dims, out_dims, randomness)
    return _mapped(space, mapping, operands, kwargs)


@lookaside(torch._functorch.vmap._flat_vmap)
def _flat_vmap(space: Space, args: Args, kwargs: Kwargs) -> Result:
    function, _, in_dims, operands, spec, out_dims, randomness = args
    unflattened = PartialValue(function_value(space, polyfills.call_flat), [function, spec], {})
    mapping = _Mapping(unflattened, in_dims, out_dims, randomness)
    return _mapped(space, mapping, space.items(operands), kwargs)


class _Mapping(NamedTuple):
    """What ``torch.vmap`` is told."""

    function: Value
    in_dims: Value
    out_dims: Value
    randomness: Value


def _load_decompositions(space: Space) -> None:
    """They stay loaded, so once in a graph is enough."""
    load = predispatch.lazy_load_decompositions
    if not any(operation.node.target is load for operation in space.builder.recorded):
        space.builder.call_effect(load, (), {})


@lookaside(predispatch.lazy_load_decompositions)
def _loads_decompositions(space: Space, args: Args, kwargs: Kwargs) -> Result:
    _load_decompositions(space)
    return ConstantValue(None)


def _mapped(space: Space, mapping: _Mapping, operands: list[Value], kwargs: Kwargs) -> Result:
    """``torch.vmap`` of the function, which gets the keyword arguments whole."""
    function, in_dims, out_dims, randomness = mapping
    builder = space.builder
    given = TupleValue(list(operands))
    found = [(tensor, _dim_of(tensor, dim)) for tensor, dim in _with_dims(space, given, in_dims)]
    mapped = [(tensor, dim) for tensor, dim in found if dim is not None]
    if not mapped:
        raise GraphBreak("FJ0123", "torch.vmap() without a dimension to map over")
    sizes = space.items(space.getattr_now(mapped[0][0], "shape"))
    size, how = to_fx(space, sizes[mapped[0][1]]), randomness.realize().as_python()
    with entered(space) as level:
        _load_decompositions(space)
        builder.call_effect(predispatch._vmap_increment_nesting, (size, how), {})
        slices: list[TensorValue] = []
        for value, dim in mapped:
            node = value.proxy(space)
            example = builder.imagine(nested.one_slice, (node, dim))
            made = builder.record(predispatch._add_batch_dim, (node, dim, level), example)
            slices.append(TensorValue(made, example))
        rest = list(slices)
        inside: list[Value] = [t if dim is None else rest.pop(0) for t, dim in found]
        result, body = _inside(space, function, space.items(refilled(given, inside)), kwargs)
    outputs = tensors_in(result)
    out = [dim for _, dim in _with_dims(space, result, out_dims)]
    if not all(type(dim) is int for dim in out):
        raise GraphBreak("FJ0123", "torch.vmap() with an out_dim of None")
    if not outputs or leaves(result) != len(outputs):
        raise GraphBreak("FJ0123", "a function under torch.vmap() answers no tensor")
    nodes = [value.proxy(space) for value in outputs]
    examples = _imagine(
        space,
        _Body(body, [value.proxy(space) for value in slices], nodes),
        nested.batched,
        (tuple(dim for _, dim in mapped), tuple(out), how),
        [value.proxy(space) for value, _ in mapped],
    )
    answers = []
    for node, dim, example in zip(nodes, out, examples, strict=True):
        made = builder.record(predispatch._remove_batch_dim, (node, level, size, dim), example)
        answers.append(from_fx(space, made, example))
    builder.call_effect(predispatch._vmap_decrement_nesting, (), {})
    return refilled(result, answers)


def _dim_of(value: TensorValue, number: Any) -> int | None:
    if number is None:
        return None
    rank = len(value.metadata().shape)
    if type(number) is not int or not -rank <= number < rank:
        raise GraphBreak("FJ0123", "torch.vmap() along a dimension that a tensor does not have")
    return number % rank


def _pairs(space: Space, value: Value, dims: Value) -> list[tuple[Value, Value]]:
    """The parts of a container, each with its dimensions."""
    parts = parts_of(value)
    dims = dims.realize()
    kind = dims.python_type()
    if kind is int or kind is type(None):
        return [(part, dims) for part in parts]
    if kind is dict and type(value) is DictValue and type(dims) is DictValue:
        same = list(dims.items) == list(value.items)
        dims_of_parts = parts_of(dims) if same else []
    else:
        dims_of_parts = space.items(dims) if kind in (tuple, list) else []
    if len(dims_of_parts) != len(parts):
        raise GraphBreak("FJ0123", "torch.vmap() with dimensions of another structure")
    return list(zip(parts, dims_of_parts, strict=True))


def _with_dims(space: Space, value: Value, dims: Value) -> list[tuple[TensorValue, Any]]:
    """The tensors in ``value``, in order, each with what is said of its dimension."""
    value = value.realize()
    if isinstance(value, TensorValue):
        return [(value, dims.realize().as_python())]
    pairs = [] if value.is_constant else _pairs(space, value, dims)
    return [found for part, dim in pairs for found in _with_dims(space, part, dim)]


# -- torch.func.grad, grad_and_value, jacrev ----------------------------------------------------


def _set_grad_mode(space: Space, enabled: bool) -> None:
    if torch.is_grad_enabled() is not enabled:
        setter = torch._C._set_grad_enabled
        space.now(LOOKASIDES[setter](space, [ConstantValue(enabled)], {}))


class _Differentiated:
    """A function that was run on tensors that are differentiated, between entering and leaving."""

    def __init__(
        self, space: Space, function: Value, operands: list[Value], named: dict[str, Value],
        argnums: tuple[int, ...], what: str,
    ) -> None:  # fmt: skip
        builder = space.builder
        self.space = space
        if not argnums or not all(-len(operands) <= n < len(operands) for n in argnums):
            raise GraphBreak("FJ0123", f"{what} with these argnums")
        chosen = [operands[n] for n in argnums]
        self.given = [tensor for operand in operands for tensor in tensors_in(operand)]
        self.like = chosen
        #: Who does not allow hooks already, in words.
        self.refused = refused_hooks()
        with entered(space) as self.level:
            builder.call_effect(torch._C._autograd._saved_tensors_hooks_disable, (_NO_HOOKS,), {})
            builder.call_effect(native_transforms._grad_increment_nesting, (), {})
            #: Transforms differentiate also where the program has switched that off.
            self.grad_mode = torch.is_grad_enabled()
            _set_grad_mode(space, True)
            wrapped = [rebuild(operand, self._wrap) for operand in operands]
            named = {key: rebuild(operand, self._wrap) for key, operand in named.items()}
            self.variables = [t for n in argnums for t in tensors_in(wrapped[n])]
            if len(set(self.variables)) != len(self.variables) or not self.variables:
                raise GraphBreak("FJ0123", f"{what} of one argument twice, or of no tensor")
            for variable in self.variables:
                allow = native_transforms.set_inplace_requires_grad_allowed
                builder.call_effect(allow, (True,), {})
                require = eager_transforms._set_tensor_requires_grad
                builder.call_effect(require, (variable.proxy(space),), {})
                builder.call_effect(allow, (False,), {})
            self.body, step = Stretch(builder), space.step
            self.result = space.now(space.call(function, wrapped, named))
            self.body.note(step)

    def _wrap(self, tensor: TensorValue) -> Value:
        builder, node = self.space.builder, tensor.proxy(self.space)
        example = builder.imagine(torch.clone, (node,))
        wrap = native_transforms._wrap_for_grad
        return TensorValue(builder.record(wrap, (node, self.level), example), example)

    def nodes(self, values: list[Any]) -> list[Any]:
        return [value.proxy(self.space) for value in values]

    def unwrap(self, node: Any, example: Any) -> Value:
        unwrap = predispatch._unwrap_for_grad
        return from_fx(self.space, self.space.builder.record(unwrap, (node, self.level), example),
                       example)  # fmt: skip

    def gradients(self, outputs: list[Any], examples: list[Any], **options: Any) -> list[Any]:
        """The nodes of the derivatives of ``outputs``."""
        builder = self.space.builder
        args = (outputs, self.nodes(self.variables), *options.pop("vectors", ()))
        node = builder.record(
            eager_transforms._autograd_grad, args, tuple(examples),
            create_graph=torch.is_grad_enabled(), **options,
        )  # fmt: skip
        return [builder.unpack(node, tuple(examples), i)[0] for i in range(len(examples))]

    def leave(self) -> None:
        builder = self.space.builder
        _set_grad_mode(self.space, self.grad_mode)
        builder.call_effect(native_transforms._grad_decrement_nesting, (), {})
        if self.refused is None:
            builder.call_effect(torch._C._autograd._saved_tensors_hooks_enable, (), {})
        else:
            disable = torch._C._autograd._saved_tensors_hooks_disable
            builder.call_effect(disable, (self.refused,), {})

    def in_structure(self, argnums: Any, tensors: list[Value]) -> Value:
        """The derivatives as torch returns them: like the argument, or like the arguments."""
        rest = list(tensors)
        made = [rebuild(like, lambda _: rest.pop(0)) for like in self.like]
        return made[0] if isinstance(argnums, int) else TupleValue(made)


def plain_numbers(value: Value) -> Any:
    return value.realize().as_python()


def _numbers(argnums: Any) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _gradient(name: str) -> Any:
    what = f"torch.func.{name}()"

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        function, numbers, has_aux, positional, keywords = args
        argnums, aux = plain_numbers(numbers), space.truth(has_aux)
        operands = [operand.realize() for operand in space.items(positional)]
        named = keywords.realize()
        options = {}
        if type(named) is DictValue:
            options = {key.as_python(): value for key, value in named.items.values()}
        run = _Differentiated(space, function, operands, options, _numbers(argnums), what)
        answer = run.result.realize()
        output, extra = _with_aux(answer, what) if aux else (answer, TupleValue([]))
        beside = tensors_in(extra)
        if not isinstance(output, TensorValue):
            raise GraphBreak("FJ0123", f"the function under {what} answers no tensor")
        nodes = run.nodes([output, *beside])
        body = _Body(run.body, run.nodes(run.variables), nodes)
        before = (len(run.variables),)
        examples = _imagine(space, body, nested.differentiated, before, _originals(run))
        count = len(run.variables)
        grads = run.gradients(nodes[:1], examples[:count])
        answers = [run.unwrap(g, e) for g, e in zip(grads, examples, strict=False)]
        rest = [run.unwrap(n, e) for n, e in zip(nodes, examples[count:], strict=True)]
        run.leave()
        result = run.in_structure(argnums, answers)
        value, others = rest[0], refilled(extra, rest[1:])
        if name == "grad":
            return TupleValue([result, others]) if aux else result
        return TupleValue([result, TupleValue([value, others]) if aux else value])

    return handler


def _with_aux(answer: Value, what: str) -> tuple[Value, Value]:
    if type(answer) is not TupleValue or len(answer.items) != 2:
        raise GraphBreak("FJ0123", f"the function under {what} answers no pair")
    if leaves(answer.items[1]) != len(tensors_in(answer.items[1])):
        raise GraphBreak("FJ0123", f"the function under {what} returns more beside than tensors")
    return answer.items[0].realize(), answer.items[1]


def _originals(run: _Differentiated) -> list[Any]:
    """The nodes of the tensors behind the variables."""
    return [variable.proxy(run.space).args[0] for variable in run.variables]


LOOKASIDES[eager_transforms.grad_impl] = _gradient("grad")
LOOKASIDES[eager_transforms.grad_and_value_impl] = _gradient("grad_and_value")


class Jacobian(NamedTuple):
    """What ``torch.func.jacrev`` is told: so many rows at once, and whether the function returns
    something beside."""

    argnums: Any
    chunk_size: int | None = None
    has_aux: bool = False


def jacrev(space: Space, function: Value, told: Jacobian, operands: list[Value]) -> Result:
    """``torch.func.jacrev``: the function once, then all rows pulled back, many under one vmap."""
    builder, what = space.builder, "torch.func.jacrev()"
    run = _Differentiated(space, function, operands, {}, _numbers(told.argnums), what)
    answer = run.result.realize()
    output, extra = _with_aux(answer, what) if told.has_aux else (answer, TupleValue([]))
    if not isinstance(output, TensorValue) or any(
        not isinstance(operand.realize(), TensorValue) for operand in run.like
    ):
        raise GraphBreak("FJ0123", f"{what} of several tensors")
    shape = tuple(output.metadata().shape)
    shapes = [tuple(variable.metadata().shape) for variable in run.variables]
    numbers = [n for each in (shape, *shapes) for n in each]
    if not all(type(n) is int for n in numbers) or 0 in numbers:
        raise GraphBreak("FJ0123", f"{what} of sizes that vary, or of nothing")
    node, *beside = nodes = run.nodes([output, *tensors_in(extra)])
    body, count = _Body(run.body, run.nodes(run.variables), nodes), len(run.variables)
    examples = _imagine(space, body, nested.jacobians, (count,), _originals(run))
    run.unwrap(node, builder.imagine(torch.clone, (node,)))
    others = [run.unwrap(n, e) for n, e in zip(beside, examples[count:], strict=True)]
    run.leave()
    chunks = _rows_pulled_back(run, output, math.prod(shape), told.chunk_size)
    answers: list[Value] = []
    for found, example, size in zip(chunks, examples, shapes, strict=False):
        whole = (
            found[0] if len(found) == 1 else graph_call(space, torch.cat, [TupleValue(found)], {})
        )
        made = builder.record(torch.reshape, (to_fx(space, whole), shape + size), example)
        answers.append(TensorValue(made, example))
    result = run.in_structure(told.argnums, answers)
    return TupleValue([result, refilled(extra, others)]) if told.has_aux else result


def _rows_pulled_back(
    run: _Differentiated, output: TensorValue, rows: int, chunk_size: int | None
) -> list[list[Value]]:
    """The rows of the Jacobian by each variable, so many in one piece."""
    space = run.space
    shape, kind = tuple(output.metadata().shape), output.metadata()
    like: dict[str, Value] = {
        "dtype": ConstantValue(kind.dtype), "device": ConstantValue(kind.device)
    }  # fmt: skip
    eye = graph_call(space, torch.eye, [ConstantValue(rows)], like)
    basis = graph_call(space, torch.reshape, [eye, space.constant((rows, *shape))], {})
    step = min(chunk_size or rows, rows)
    if step < rows:
        pieces = space.items(graph_call(space, torch.split, [basis, ConstantValue(step)], {}))
    else:
        pieces = [basis]
    counts = [min(step, rows - start) for start in range(0, rows, step)]
    pulled = [
        _pulled_back(run, output, to_fx(space, piece), count)
        for piece, count in zip(pieces, counts, strict=True)
    ]
    return [list(found) for found in zip(*pulled, strict=True)]


def _pulled_back(run: _Differentiated, output: TensorValue, basis: Any, rows: int) -> list[Value]:
    """So many rows by each variable, under one vmap."""
    space, builder, node = run.space, run.space.builder, output.proxy(run.space)
    with entered(space) as level:
        _load_decompositions(space)
        builder.call_effect(predispatch._vmap_increment_nesting, (rows, "error"), {})
        row = builder.record(predispatch._add_batch_dim, (basis, 0, level),
                             builder.imagine(nested.one_slice, (basis, 0)))  # fmt: skip
        pulled = [builder.imagine(torch.clone, (n,)) for n in run.nodes(run.variables)]
        grads = run.gradients([node], pulled, vectors=([row],), retain_graph=True)
    found: list[Value] = []
    for grad in grads:
        stacked = builder.imagine(nested.repeated, (grad, rows))
        whole = builder.record(predispatch._remove_batch_dim, (grad, level, rows, 0), stacked)
        found.append(TensorValue(whole, stacked))
    builder.call_effect(predispatch._vmap_decrement_nesting, (), {})
    return found


# -- torch.func.vjp -----------------------------------------------------------------------------


#: A function as ``torch.func.vjp`` returns it.
_PULL_BACK = torch.func.vjp(torch.sin, torch.ones(()))[1]


class PullBackValue(Declared):
    """The function that ``torch.func.vjp`` returns: the derivatives of what was computed then."""

    run: _Differentiated
    answer: Value
    step: int
    kind = types.FunctionType

    def describe(self) -> str:
        return "function that torch.func.vjp() answers"

    def getattr(self, space: Space, name: str) -> Result:
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return ConstantValue(getattr(_PULL_BACK, name))
        if name == "__type_params__" and hasattr(_PULL_BACK, name):
            return TupleValue([])
        if name == "__annotate__" and hasattr(_PULL_BACK, name):
            function = function_value(space, polyfills.first_of)
            return PartialValue(function, [space.getattr_now(self, "__annotations__")], {})
        if name in ("__annotations__", "__dict__"):
            known = getattr(_PULL_BACK, name).items()
            return DictValue({k: (ConstantValue(k), ConstantValue(v)) for k, v in known})
        return space.generic_getattr(self, name)

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        if len(args) != 1 or kwargs:
            raise GraphBreak("FJ0123", "what torch.func.vjp() answers, called with options")
        if structure(args[0]) != structure(self.answer):
            raise GraphBreak("FJ0123", "what torch.func.vjp() answers, called with a structure "
                                       "that is not the output's")  # fmt: skip
        run, outputs = self.run, self.run.nodes(tensors_in(self.answer))
        vectors = run.nodes(tensors_in(args[0]))
        examples = _imagine_vjp(run, outputs, vectors)
        grads = run.gradients(outputs, examples, vectors=(vectors,), retain_graph=True)
        answers = [from_fx(space, g, e) for g, e in zip(grads, examples, strict=True)]
        return run.in_structure((), answers)


def _imagine_vjp(run: _Differentiated, outputs: list[Any], vectors: list[Any]) -> list[Any]:
    """What pulling ``vectors`` back would return; without any, what the function returns."""
    counts = {"operands": len(run.variables), "vectors": len(vectors)}
    body = _Body(run.body, run.nodes(run.variables), outputs)
    return _imagine(run.space, body, transformed, ("vjp", counts), [*_originals(run), *vectors])


@lookaside(torch.func.vjp)
def _vjp(space: Space, args: Args, kwargs: Kwargs) -> Result:
    what = "torch.func.vjp()"
    if kwargs.keys() - {"has_aux"} or len(args) < 2:
        raise GraphBreak("FJ0123", f"{what} with {', '.join(kwargs)}")
    function, *operands = [value.realize() for value in args]
    step = space.step
    run = _Differentiated(space, function, operands, {}, tuple(range(len(operands))), what)
    aux = "has_aux" in kwargs and space.truth(kwargs["has_aux"])
    result = run.result.realize()
    answer, extra = _with_aux(result, what) if aux else (result, TupleValue([]))
    inside, beside = tensors_in(answer), tensors_in(extra)
    kinds = [value.metadata().dtype for value in inside]
    if (
        not inside
        or leaves(answer) != len(inside)
        or not all(kind.is_floating_point or kind.is_complex for kind in kinds)
    ):
        raise GraphBreak("FJ0123", f"the function under {what} answers no tensor of numbers")
    nodes = run.nodes([*inside, *beside])
    examples = _imagine_vjp(run, nodes, [])
    out = [run.unwrap(n, e) for n, e in zip(nodes, examples, strict=True)]
    run.leave()
    value, others = refilled(answer, out[: len(inside)]), refilled(extra, out[len(inside) :])
    pull = PullBackValue(run, answer, step)
    return TupleValue([value, pull, others] if aux else [value, pull])


#: How many transforms of torch's a function runs in.
_LEVELS = {"jvp": 1, "jacfwd": 2}

# -- the others: one node each --------------------------------------------------------------------


def transform(
    space: Space, name: str, function: Value, operands: list[Value], options: dict[str, Any],
    vectors: list[Value] | None = None,
) -> Result:  # fmt: skip
    """``torch.func.<name>(function, **options)(*operands)`` as one node.

    ``vectors`` are what ``jvp`` pushes forward.
    """
    given = [operand.realize() for operand in operands]
    if not given or not all(isinstance(operand, TensorValue) for operand in given):
        raise GraphBreak("FJ0123", f"torch.func.{name}() of something else than tensors")
    inputs = [stand_in(space, operand) for operand in given]  # type: ignore[arg-type]
    what = f"the function under torch.func.{name}()"
    with entered(space, _LEVELS[name]):  # transforms in the function nest inside this one
        result, stretch = trial(space, function, list(inputs), Terms(what, state=True))
    body = Nested(space, result, stretch)
    if not body.outputs or leaves(result) != len(body.outputs):
        raise GraphBreak("FJ0123", f"{what} answers something else than tensors")
    simple = isinstance(result.realize(), TensorValue)
    if not simple and name != "jvp":
        raise GraphBreak("FJ0123", f"{what} answers several tensors")
    own = [value.proxy(space) for value in inputs]
    lifted = body.lifted(own)
    body.unpacked = simple
    module = body.node(f"{name}_body", [*own, *lifted])
    extra = [tensor for value in vectors or [] for tensor in tensors_in(value)]
    options = {**options, "operands": len(own), "vectors": len(extra)}
    arguments = [value.proxy(space) for value in (*given, *extra)]  # type: ignore[attr-defined]
    node, example = space.builder.call_function(
        transformed, (name, options, module, *arguments, *lifted), {}
    )
    return from_fx(space, node, example)
