"""Autograd in captured code: ``autograd.Function``, ``checkpoint``, and what Python must run.

In: calls of these. Out: one node each (the functions are traced to see that they are pure and to
guard what they read), or a graph break before what works on the autograd graph itself.
Next room: graph.
"""

from __future__ import annotations

import inspect
import types
from typing import Any

import torch
import torch.nn.modules._functions
import torch.utils.checkpoint
import torch.utils.hooks
from torch.optim.optimizer import _get_value, _stack_if_compiling

from framejit.exc import GraphBreak
from framejit.graph.global_state import refused_hooks
from framejit.graph.nested import HeldHook, Stretch, applied, checkpointed
from framejit.torchcompat.function_apply import APPLY
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Declared, Kwargs, Value, parts_held
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import NAMED_LOOKASIDES, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import FunctionValue, function_value
from framejit.values.objects.local_classes import DescriptorValue
from framejit.values.torch.hooks import held_callable
from framejit.values.torch.nesting import Nested, Terms, rebuild, trial
from framejit.values.torch.read_numbers import read_number
from framejit.values.torch.tensors import TensorValue, from_fx, graph_call, to_fx


def _trial(
    space: Space, function: Value, args: list[Value], terms: Terms, context: Value | None,
    kwargs: Any = None,
) -> tuple[Value, Stretch]:  # fmt: skip
    """A `trial` of what autograd calls as often as it likes: it may not write to objects that the
    program has made, either, but for the ``context`` of the call."""
    made: dict[Value, list[int]] = {}
    todo = [function, *args, *(kwargs or {}).values()]
    while todo:
        value = todo.pop()
        if value.source is None and value is not context and value not in made:
            made[value] = _parts(value)
            todo += parts_held(value)
    result, stretch = trial(space, function, args, terms, kwargs)
    if any(parts != _parts(value) for value, parts in made.items()):
        raise GraphBreak("FJ0122", f"{terms.what} changes something outside")
    return result, stretch


def _parts(value: Value) -> list[int]:
    return [id(part) for part in parts_held(value)]


# -- torch.autograd.Function ------------------------------------------------------------------


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
    what = f"{cls.__qualname__}.forward()"
    context = space.call_now(space.class_value(polyfills.FunctionContext), list(operands))
    nodes = [_operand(space, operand) for operand in operands]
    forward = function_value(space, polyfills.function_forward)
    arguments = [owner, context, *operands]
    result, stretch = _trial(
        space, forward, arguments, Terms(what, state=True, writes=True), context
    )
    several = isinstance(result.realize(), (TupleValue, ListValue))
    answers = [answer.realize() for answer in (space.items(result) if several else [result])]
    if not all(isinstance(answer, TensorValue) or answer.is_constant for answer in answers):
        raise GraphBreak("FJ0119", f"{what} answers something else than tensors and constants")
    outputs = [answer for answer in answers if isinstance(answer, TensorValue)]
    given: set[torch.fx.Node] = set()
    torch.fx.node.map_arg(nodes, given.add)
    _no_free_tensors(space, stretch, operands, given, what)
    if torch.is_grad_enabled() and any(o.metadata().requires_grad for o in (*outputs, *operands)
                                       if isinstance(o, TensorValue)):  # fmt: skip
        what = f"{cls.__qualname__}.backward()"
        gradients = [
            graph_call(space, torch.empty_like, [answer], {}) if isinstance(answer, TensorValue)
            else ConstantValue(None) for answer in answers
        ]  # fmt: skip
        start = len(space.builder.recorded)
        backward = function_value(space, polyfills.function_backward)
        arguments = [owner, context, *gradients]
        _, inner = _trial(space, backward, arguments, Terms(what, state=True, writes=True), context)
        kept = {o.proxy(space) for o in outputs} | given | set(stretch.nodes)
        kept.update(operation.node for operation in space.builder.recorded[:start])
        _no_free_tensors(space, inner, operands, kept, what)
    made = cls if owner.making is None else _made_class(space, owner)
    node, example = space.builder.call_function(applied(made), tuple(nodes), {})
    return from_fx(space, node, example)


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


# -- torch.utils.checkpoint ---------------------------------------------------------------------

_CHECKPOINT = torch.utils.checkpoint.checkpoint
#: What a transform of a gradient calls: in the reentrant form once without, once with gradients.
_autograd_grad = torch._functorch.eager_transforms._autograd_grad
_PLAIN = {"context_fn", "determinism_check", "debug", "early_stop"}


@lookaside(_CHECKPOINT)
def _checkpoint(space: Space, args: Args, kwargs: Kwargs) -> Result:
    named = dict(kwargs)
    function = args[0] if args else named.pop("function")
    reentrant = named.pop("use_reentrant", ConstantValue(None)).realize().as_python()
    preserve = space.truth(named.pop("preserve_rng_state", ConstantValue(True)))
    if reentrant is None:
        raise GraphBreak("FJ0120", "checkpoint() without use_reentrant, which warns")
    context = named.pop("context_fn", None)
    if context is not None and reentrant:
        raise GraphBreak("FJ0120", "reentrant checkpoint() with context_fn")
    named = {name: value for name, value in named.items() if name not in _PLAIN}
    operands = [operand.realize() for operand in args[1:]]
    if reentrant and (named or not _requires_grad(space, operands)):
        raise GraphBreak(
            "FJ0120", "reentrant checkpoint() without an argument that requires a gradient"
        )
    if not torch.is_grad_enabled():
        return space.call(function, operands, named)
    if refused_hooks() is not None:
        raise GraphBreak("FJ0120", "checkpoint() where saved-tensor hooks are not allowed")
    what = "the function under checkpoint()"
    terms = Terms(what, random=True, state=True, writes=context is None)
    result, stretch = _trial(space, function, operands, terms, None, named)
    if reentrant and not _plain_tensors(result.realize()):
        raise GraphBreak(
            "FJ0120", "reentrant checkpoint() of a function that answers no plain tensors"
        )
    if reentrant and any(node.target is _autograd_grad for node in stretch.nodes):
        raise GraphBreak("FJ0120", "reentrant checkpoint() of a function with a gradient inside")
    nested = Nested(space, result, stretch)
    inputs = nested.lifted([])
    inside = set(stretch.nodes)
    outputs = dict.fromkeys(node for node in nested.outputs if node in inside)
    if reentrant and len(outputs) < len(set(nested.outputs)):
        raise GraphBreak("FJ0120", "reentrant checkpoint() of a function that returns its operand")
    if not outputs:
        return result
    nested.outputs = list(outputs)
    module = nested.node("checkpoint_body", inputs)
    own = {operand.node for operand in operands if isinstance(operand, TensorValue)}
    given = None if reentrant else tuple([i for i, node in enumerate(inputs) if node in own])
    more = {} if context is None else {"contexts": _held_contexts(space, context)}
    node, example = space.builder.call_function(
        checkpointed, (module, preserve, given, *inputs), more
    )
    made = dict(zip(outputs, space.items(from_fx(space, node, example)), strict=True))
    return rebuild(result, lambda value: made.get(value.node, value))


class SelectiveContexts(Declared):
    """What ``create_selective_checkpoint_contexts`` returns."""

    step: int
    kind = tuple


@lookaside(torch.utils.checkpoint.create_selective_checkpoint_contexts)
def _selective(space: Space, args: Args, kwargs: Kwargs) -> Result:
    return SelectiveContexts(space.step)


def _held_contexts(space: Space, function: Value) -> Any:
    """The node of ``context_fn``: the graph calls it whenever it runs, and a compiler once. What it
    does is looked at for the guards."""
    held = held_callable(space, function, "checkpoint() with a context_fn")
    before = space.effects.count
    made = space.call_now(function, []).realize()
    if not isinstance(made, SelectiveContexts) or space.effects.count != before:
        raise GraphBreak(
            "FJ0120", "checkpoint() with a context_fn that makes other contexts than selective ones"
        )
    return space.builder.add_module("contexts", HeldHook(held))


def _plain_tensors(result: Value) -> bool:
    """Reentrant checkpointing gives gradients to these only, not to tensors deeper inside."""
    answers = result.items if type(result) is TupleValue else [result]
    return all(isinstance(answer.realize(), TensorValue) for answer in answers)


def _requires_grad(space: Space, operands: list[Value]) -> bool:
    """What reentrant checkpointing asks: tensors that are arguments themselves."""
    return any(isinstance(o, TensorValue) and o.metadata().requires_grad for o in operands)


# -- what optimizers ask ---------------------------------------------------------------------------


@lookaside(_get_value)
def _number_of_optimizer(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """An optimizer asks for a step count or learning rate as a number."""
    value = args[0].realize()
    if isinstance(value, TensorValue):
        return read_number(space, value) or value.call_method(space, "item", [], {})
    return value


@lookaside(_stack_if_compiling)
def _as_it_is(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """Optimizers make one tensor of numbers for compilers that have taken them for tensors."""
    return args[0]


def _torch_graph_break(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """Optimizers call it for the sake of ``torch.compile``; for others it means what it says."""
    line = space.running.user_line()
    if line is None or line[0] != _get_value.__code__.co_filename:
        raise GraphBreak("FJ0135", "torch._dynamo.graph_break() was called")
    return ConstantValue(None)


NAMED_LOOKASIDES["torch._dynamo.decorators", "graph_break"] = _torch_graph_break
