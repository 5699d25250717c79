"""Runs functions of the user on the side, to see whether they are pure.

In: a pair of saved-tensor hooks and the metadata of a tensor. Out: whether unpacking what was
packed is a computation on that tensor and nothing else, and the sources with the facts this relies
on.
Next room: codegen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.graph.builder import GraphBuilder
from framejit.graph.fakes import isolated
from framejit.interpreter.loop import Interpreter, Restart, Returned
from framejit.source import Source
from framejit.values import polyfills
from framejit.values.base import Unmaterialisable
from framejit.values.space import Space
from framejit.values.tensors import TensorValue

Hook = Callable[[Any], Any]


def is_pure_round_trip(pack: Hook, unpack: Hook, like: torch.Tensor) -> tuple[bool, list[Source]]:
    """Does ``unpack(pack(x))`` only compute, for an ``x`` like this one (perhaps a fake tensor)?

    The facts on the sources hold as long as the answer does.
    """
    with isolated():  # whoever asks may be tracing
        return _round_trip(pack, unpack, like)


def _round_trip(pack: Hook, unpack: Hook, like: torch.Tensor) -> tuple[bool, list[Source]]:
    builder = GraphBuilder()
    space = Space(builder)
    interpreter = Interpreter(space, {})
    sizes, strides = map(_numbers, (like.shape, like.stride()))
    node, example = builder.add_input("saved", like, builder.imagined_example(sizes, strides, like))
    hooks = [space.load(space.const_source(hook, "saved-tensor hook"), hook)
             for hook in (pack, unpack)]  # fmt: skip
    code = polyfills.round_trip.__code__
    slots: list[Any] = [*hooks, TensorValue(node, example)]
    frame = interpreter.make_frame(code, slots, polyfills.round_trip.__globals__, None)
    try:
        outcome = interpreter.capture(frame)
    except (Restart, GraphBreak, Unmaterialisable):
        return False, []
    effects = space.effects
    clean = (
        isinstance(outcome, Returned)
        and isinstance(outcome.value.realize(), TensorValue)
        and not (effects.changed or effects.globals or effects.state or effects.nesting)
        and not effects.expected
        and not (builder.mutated_inputs or builder.draws_random)
        and len(builder.inputs) == 1  # a tensor from elsewhere would be frozen into the graph
    )
    if not clean:
        return False, []
    return True, list(space.const_roots.values())


def _numbers(sizes: Sequence[Any]) -> list[int]:
    """Symbolic sizes as they are now."""
    return [s if isinstance(s, int) else int(s.node.hint) for s in sizes]
