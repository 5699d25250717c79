"""``autograd.Function`` in captured code.

In: calls of ``apply``. Out: one node each; ``forward`` and ``backward`` are traced to see that they
are pure and to guard what they read. Where they exchange data with other processes, the node has
what was recorded of them as well, for compilers. Next room: graph.
"""

from __future__ import annotations

import inspect
import itertools
import types
from typing import Any, NamedTuple

import torch

from framejit.exc import GraphBreak
from framejit.graph.functions import Bodies, applied
from framejit.graph.metadata import Example
from framejit.graph.nested import HeldHook, Stretch
from framejit.torchcompat.function_apply import APPLY
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import FunctionValue, function_value
from framejit.values.objects.local_classes import DescriptorValue
from framejit.values.torch.hooks import held_callable
from framejit.values.torch.nesting import Terms, trial_of_function
from framejit.values.torch.tensors import TensorValue, from_fx, graph_call, to_fx


class Forward(NamedTuple):
    """A call of ``forward`` that was traced: what it was given, as values and in the graph, and
    what it returned."""

    name: str
    owner: ClassValue
    context: Value
    operands: list[Value]
    given: set[Any]
    answers: list[Value]
    several: bool
    stretch: Stretch

    @property
    def outputs(self) -> list[TensorValue]:
        """The tensors that it returned."""
        return [answer for answer in self.answers if isinstance(answer, TensorValue)]

    @property
    def differentiable(self) -> bool:
        """Does autograd call ``backward``?"""
        tensors = [one for one in (*self.outputs, *self.operands) if isinstance(one, TensorValue)]
        return torch.is_grad_enabled() and any(one.metadata().requires_grad for one in tensors)


class Backward(NamedTuple):
    """A call of ``backward`` that was traced, with the gradients that it was given."""

    gradients: list[Value]
    result: Value
    stretch: Stretch


@lookaside(APPLY)
def _apply(space: Space, args: Args, kwargs: Kwargs) -> Result:
    owner = args[0].realize()
    if not isinstance(owner, ClassValue):
        raise GraphBreak("FJ0119", "an autograd.Function is applied in an unusual way")
    cls = owner.cls
    for name in ("forward", "backward", "setup_context", "vjp", "apply"):
        space.class_attribute(cls, name)
    operands = [operand.realize() for operand in _bound(space, owner, args[1:], kwargs)]
    if getattr(cls, "vjp", None) is not torch.autograd.Function.vjp:
        raise GraphBreak("FJ0119", f"{cls.__qualname__} has a vjp of its own")
    nodes = tuple([_operand(space, operand) for operand in operands])
    forward = _forward(space, owner, operands, nodes)
    backward = _backward(space, forward) if forward.differentiable else None
    recorded = [*forward.stretch.nodes, *(backward.stretch.nodes if backward else [])]
    exchanges = any(space.builder.operation(node).exchanges for node in recorded)
    bodies = {"bodies": tuple(_bodies(space, forward, backward))} if exchanges else {}
    made = cls if owner.making is None else _made_class(space, owner)
    node, example = space.builder.call_function(applied(made), nodes, bodies)
    space.builder.operation(node).exchanges |= exchanges
    return from_fx(space, node, example, _told(space, forward, "_dirty"))


def _forward(space: Space, owner: ClassValue, operands: list[Value], nodes: Any) -> Forward:
    """Trace ``forward``. GraphBreak if it does more than compute, and exchange data."""
    what = f"{owner.cls.__qualname__}.forward()"
    context = space.call_now(space.class_value(polyfills.FunctionContext), list(operands))
    given: set[Any] = set()
    torch.fx.node.map_arg(nodes, given.add)
    function = function_value(space, polyfills.function_forward)
    terms = Terms(what, state=True, writes=True, given=given)
    result, stretch = trial_of_function(
        space, function, [owner, context, *operands], terms, context
    )
    several = isinstance(result.realize(), (TupleValue, ListValue))
    answers = [answer.realize() for answer in (space.items(result) if several else [result])]
    if not all(isinstance(answer, TensorValue) or answer.is_constant for answer in answers):
        raise GraphBreak("FJ0119", f"{what} answers something else than tensors and constants")
    _no_free_tensors(space, stretch, operands, given, what)
    name = owner.cls.__qualname__
    return Forward(name, owner, context, operands, given, answers, several, stretch)


def _backward(space: Space, forward: Forward) -> Backward:
    """Trace ``backward`` with gradients of which nothing else is known than how they look."""
    what = f"{forward.name}.backward()"
    gradients = [
        graph_call(space, torch.empty_like, [answer], {}) if isinstance(answer, TensorValue)
        else ConstantValue(None) for answer in forward.answers
    ]  # fmt: skip
    start = len(space.builder.recorded)
    function = function_value(space, polyfills.function_backward)
    given = [one.proxy(space) for one in gradients if isinstance(one, TensorValue)]
    terms = Terms(what, state=True, writes=True, given=given)
    arguments = [forward.owner, forward.context, *gradients]
    result, inner = trial_of_function(space, function, arguments, terms, forward.context)
    kept = {o.proxy(space) for o in forward.outputs} | forward.given | set(forward.stretch.nodes)
    kept.update(operation.node for operation in space.builder.recorded[:start])
    _no_free_tensors(space, inner, forward.operands, kept, what)
    return Backward(gradients, result, inner)


def _bodies(space: Space, forward: Forward, backward: Backward | None) -> Bodies:
    """What was recorded, as a graph can hold it."""
    operands = [o.proxy(space) if isinstance(o, TensorValue) else None for o in forward.operands]
    tensors = [place for place, node in enumerate(operands) if node is not None]
    direct = [operands[place] for place in tensors]
    outputs = [output.proxy(space) for output in forward.outputs]
    inside = set(forward.stretch.nodes)
    arriving: list[Any] = []
    results: list[Any] = []
    used: list[Any] = []
    if backward is not None:
        arriving = [one.proxy(space) for one in backward.gradients if isinstance(one, TensorValue)]
        results = _gradients(space, forward, backward)
        used = backward.stretch.used_from_outside([one for one in results if one is not None])
    made = [*outputs, *[node for node in used if node in inside and node not in outputs]]
    others = [*forward.stretch.used_from_outside(made), *used]
    others = [n for n in dict.fromkeys(others) if n not in {*direct, *inside, *arriving}]
    for node in others:
        if node not in forward.given and isinstance(space.builder.example(node), Example):
            raise GraphBreak("FJ0119", f"{forward.name} uses a tensor that is not an argument")
    places = [*direct, *others, *made, *arriving]
    body = None
    if backward is not None:
        returned = [one for one in results if one is not None]
        body = _module(space, "backward_body", backward.stretch, used, returned)
    told = [
        [one.proxy(space) for one in _told(space, forward, name)]
        for name in ("_dirty", "_constant", "_tensors")
    ]
    numbers = iter(range(len(outputs)))
    known = iter(range(len(results)))
    return Bodies(
        _module(space, "forward_body", forward.stretch, [*direct, *others], made), body,
        others=tuple(others),
        tensors=tuple(tensors),
        answers=tuple([next(numbers) if isinstance(answer, TensorValue) else (answer.as_python(),)
                       for answer in forward.answers]),
        several=forward.several,
        dirty=tuple(map(places.index, told[0])),
        constant=tuple([outputs.index(node) for node in told[1] if node in outputs]),
        used=tuple(map(places.index, used)),
        saved=tuple([places.index(node) for node in used if node in told[2]]),
        writes=(backward.stretch.writes_given, backward.stretch.writes_parts)
        if backward is not None else (False, False),
        gradients=tuple([None if one is None else next(known) for one in results]),
    )  # fmt: skip


def _module(space: Space, name: str, stretch: Stretch, inputs: Any, outputs: Any) -> Any:
    return space.builder.add_module(name, stretch.module(inputs, outputs))


def _told(space: Space, forward: Forward, name: str) -> list[TensorValue]:
    """The tensors of which ``forward`` has told its context."""
    told = [one.realize() for one in space.items(space.getattr_now(forward.context, name))]
    return [one for one in told if isinstance(one, TensorValue)]


def _gradients(space: Space, forward: Forward, backward: Backward) -> list[Any]:
    """The nodes of the gradients of operands that are tensors, or None. GraphBreak for what
    autograd refuses, or calls ``backward`` in another way for."""
    what = f"{forward.name}.backward()"
    materializes = space.getattr_now(forward.context, "_materializes")
    if not space.truth(materializes):
        raise GraphBreak("FJ0119", f"{what} is called without gradients that are zero")
    result = backward.result.realize()
    several = isinstance(result, (TupleValue, ListValue))
    results = [one.realize() for one in (space.items(result) if several else [result])]
    fitting = len(results) >= len(forward.operands) and all(
        one.is_none() or (isinstance(one, TensorValue) and isinstance(operand, TensorValue))
        for one, operand in itertools.zip_longest(results, forward.operands)
    )
    if not fitting:
        raise GraphBreak("FJ0119", f"{what} returns no gradient for each argument")
    pairs = zip(results, forward.operands, strict=False)
    return [
        one.proxy(space) if isinstance(one, TensorValue) else None
        for one, operand in pairs if isinstance(operand, TensorValue)
    ]  # fmt: skip


def _bound(space: Space, owner: ClassValue, args: Args, kwargs: Kwargs) -> Args:
    """The arguments as ``forward`` gets them: where there is a ``setup_context``, that gets the
    defaults as well, and names are resolved."""
    forward = space.getattr_now(owner, "forward").realize()
    base = torch.autograd.function._SingleLevelFunction
    if owner.cls.setup_context is not base.setup_context and isinstance(forward, FunctionValue):
        code = forward.code
        if not (code.co_kwonlyargcount or code.co_flags & inspect.CO_VARKEYWORDS):
            count, slots = code.co_argcount, forward.bind(space, args, kwargs)
            others = slots[count] if code.co_flags & inspect.CO_VARARGS else None
            known = [value for value in slots[:count] if value is not None]
            return known + (others.items if isinstance(others, TupleValue) else [])
    if kwargs:
        raise GraphBreak("FJ0119", "an autograd.Function applied with keyword arguments")
    return args


def _made_class(space: Space, owner: ClassValue) -> type[torch.autograd.Function]:
    """A class that the program makes in this call, for the graph to hold: one with functions that
    do the same."""
    what = "an autograd.Function made by the program"
    namespace: dict[str, Any] = {"__qualname__": owner.cls.__qualname__}
    for name, value in space.class_writes[owner.cls].items():
        if value is None:  # it was deleted
            continue
        content = value.realize()
        if isinstance(content, DescriptorValue) and content.kind in (staticmethod, classmethod):
            (function,) = content.parts.values()
            namespace[name] = content.kind(held_callable(space, function, what, True))
        else:
            namespace[name] = held_callable(space, content, what, True)
    made: Any = type(owner.cls)(owner.cls.__name__, owner.cls.__bases__, namespace)
    return made  # type: ignore[no-any-return]


def _operand(space: Space, value: Value) -> Any:
    """An argument of ``apply`` in the graph. Autograd knows only tensors that are arguments."""
    if isinstance(value, FunctionValue) and value.function is None:
        held = held_callable(space, value, "an autograd.Function applied to a function")
        return space.builder.add_module("operand", HeldHook(held))
    if type(value) is not DictValue:
        return _held_object(space, value) if _lasts(value) else to_fx(space, value)
    items = {key: item.realize() for key, (_, item) in value.items.items()}
    if any(type(key) is not str or isinstance(item, TensorValue) for key, item in items.items()):
        raise GraphBreak("FJ0119", "an autograd.Function applied to a dict of tensors")
    return {key: _operand(space, item) for key, item in items.items()}


def _lasts(value: Value) -> bool:
    """Is it an object, of which the graph knows nothing, that later calls meet again?"""
    plain = value.is_constant or value.to_fx is not None or value.source is None
    if plain or value.obj is None or isinstance(value, (TensorValue, ListValue, TupleValue)):
        return False
    lasts = isinstance(value.obj, (torch.nn.Module, types.FunctionType, types.MethodType))
    return lasts or value.source.base is not None  # type: ignore[union-attr]


def _held_object(space: Space, value: Value) -> Any:
    """The node of such an argument: the graph holds this very object."""
    assert value.source is not None
    space.guard(value.source, "ID_MATCH", value.obj)
    return space.builder.add_module("operand", HeldHook(value.obj))


def _no_free_tensors(
    space: Space, stretch: Stretch, operands: list[Value], given: set[Any], what: str
) -> None:
    """GraphBreak for a stretch that needs more than ``given`` and the sizes of the operands."""
    outside = {n for node in stretch.nodes for n in node.all_input_nodes} - given
    outside.difference_update(stretch.nodes)
    for operand in operands if outside else ():
        if isinstance(operand, TensorValue):  # its sizes may vary
            for size in space.items(space.getattr_now(operand, "shape")):
                torch.fx.node.map_arg(to_fx(space, size), outside.discard)
    if outside:
        raise GraphBreak("FJ0119", f"{what} uses a tensor or number that is not an argument")
