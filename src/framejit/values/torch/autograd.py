"""Autograd in captured code: ``checkpoint``, and what Python must run.

In: calls of these. Out: one node each (the functions are traced to see that they are pure and to
guard what they read), or a graph break before what works on the autograd graph itself.
Next room: graph.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.modules._functions
import torch.utils.checkpoint
import torch.utils.hooks
from torch.optim.optimizer import _get_value, _stack_if_compiling

from framejit.exc import GraphBreak
from framejit.graph.global_state import refused_hooks
from framejit.graph.nested import HeldHook, checkpointed
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Args, Declared, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import NAMED_LOOKASIDES, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.torch.hooks import held_callable
from framejit.values.torch.nesting import Nested, Terms, rebuild, trial_of_function
from framejit.values.torch.read_numbers import read_number
from framejit.values.torch.tensors import TensorValue, from_fx

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
    result, stretch = trial_of_function(space, function, operands, terms, None, named)
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
