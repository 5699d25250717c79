"""Runs functions of the user on the side, to see whether they are pure.

In: a function with its arguments, or hooks of autograd and the metadata of a tensor.
Out: whether the call is a computation and nothing else, and for hooks the sources with the facts
this relies on.
Next room: codegen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.graph.builder import GraphBuilder
from framejit.graph.fakes import isolated
from framejit.interpreter.loop import Interpreter
from framejit.interpreter.outcomes import Returned
from framejit.source import Source
from framejit.values.core import polyfills
from framejit.values.core.base import Unmaterialisable, Value
from framejit.values.core.space import Computed, Space, Task
from framejit.values.object_space import ObjectSpace
from framejit.values.torch.tensors import TensorValue

Hook = Callable[[Any], Any]


def is_pure_round_trip(pack: Hook, unpack: Hook, like: torch.Tensor) -> tuple[bool, list[Source]]:
    """Does ``unpack(pack(x))`` only compute, for an ``x`` like this one (perhaps a fake tensor)?

    The facts on the sources hold as long as the result does.
    """
    with isolated():  # whoever asks may be tracing
        return _computes(polyfills.round_trip, (pack, unpack), like)


def is_pure_hook(hook: Hook, like: torch.Tensor) -> tuple[bool, list[Source]]:
    """The same for ``hook(x)``."""
    with isolated():
        return _computes(polyfills.call_with_one, (hook,), like)


def compute(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], trusts_caches: bool
) -> Computed | None:
    """What ``function(*args, **kwargs)`` returns; None if it does anything other than compute.
    ``trusts_caches``: may calls in it find their results in caches?"""
    with isolated():
        space = ObjectSpace(GraphBuilder(), task=Task(trusts_caches=trusts_caches))
        values = [space.load(space.const_source(obj, "an argument"), obj)
                  for obj in (function, args, kwargs)]  # fmt: skip
        value = _outcome(space, polyfills.call_with, values)
        return None if value is None else Computed(value, space)


def _computes(
    function: Any, hooks: tuple[Hook, ...], like: torch.Tensor
) -> tuple[bool, list[Source]]:
    builder = GraphBuilder()
    space = ObjectSpace(builder)
    sizes, strides = map(_numbers, (like.shape, like.stride()))
    imagined = builder.world.imagined(sizes, strides, like)
    node, example = builder.add_input("saved", like, imagined)
    values = [space.load(space.const_source(hook, "a hook"), hook) for hook in hooks]
    given = TensorValue(node, example)
    space.graph_inputs.append(given)
    result = _outcome(space, function, [*values, given])
    # A tensor from elsewhere would be frozen into the graph.
    if isinstance(result, TensorValue) and len(builder.inputs) == 1:
        return True, list(space.const_roots.values())
    return False, []


def _outcome(space: Space, function: Any, slots: list[Any]) -> Value | None:
    """What the function returns; None if it does anything other than compute that."""
    interpreter = Interpreter(space, {})
    frame = interpreter.make_frame(function.__code__, slots, function.__globals__, None)
    effects, builder = space.effects, space.builder
    try:
        outcome = interpreter.capture(frame)
    except (GraphBreak, Unmaterialisable):
        return None
    finally:
        effects.restore_state()
    clean = not (effects.count or effects.nesting or effects.expected)
    if not clean or builder.mutated_inputs or builder.draws_random:
        return None
    return outcome.value.realize() if isinstance(outcome, Returned) else None


def _numbers(sizes: Sequence[Any]) -> list[int]:
    """Symbolic sizes as they are now."""
    return [s if isinstance(s, int) else int(s.node.hint) for s in sizes]
