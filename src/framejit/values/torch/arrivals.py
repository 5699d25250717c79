"""Hooks of results that do more than compute, and of modules: the program's Python, which is traced
when captured code computes the gradient that they are called with.

In: calls that put such hooks in place, and gradients that arrive. Out: effects, and what a hook
makes of a gradient as a graph in the node that computes it; or a graph break where they are put in
place. Next room: graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable
from typing import Any, NamedTuple

import torch
from torch.utils.hooks import BackwardHook, RemovableHandle

from framejit.exc import GraphBreak
from framejit.graph.differentiation import ancestors, check_example, passed_through
from framejit.graph.nested import Stretch
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Declared, Kwargs, Value
from framejit.values.core.carried import NewNumber, carried_sum
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.functions import BoundBuiltin, function_value
from framejit.values.torch.tensors import TensorValue, graph_call

_NONE = ConstantValue(None)


class Watching:
    """One hook. ``of_node``: it is one of autograd's node, which is called after those of tensors,
    with tuples of gradients."""

    def __init__(self, hook: Value, of_node: bool) -> None:
        self.hook, self.of_node = hook, of_node


class Watched(NamedTuple):
    """A result with such hooks, and the step in which it got the first one."""

    tensor: TensorValue
    step: int
    hooks: list[Watching]

    def see(self, space: Space, gradient: TensorValue, call: Any) -> TensorValue:
        """A gradient arrives that ``call``, a node, computes; what hooks make of it."""
        stretch = Stretch(space.builder)
        ordered = sorted(self.hooks, key=lambda one: one.of_node)
        pairs: list[Value] = [TupleValue([one.hook, ConstantValue(one.of_node)]) for one in ordered]
        function = function_value(space, polyfills.seen_by_hooks)
        changed = space.call_now(function, [gradient, ListValue(pairs)]).realize()
        if space.builder.is_written(gradient.node):
            raise GraphBreak("FJ0117", "a hook writes to the gradient that it is called with")
        if changed is gradient:
            return gradient
        if not isinstance(changed, TensorValue) or not _alike(gradient, changed):
            raise GraphBreak("FJ0117", "a hook returns what does not look like its gradient")
        self._change(space, gradient, changed, stretch, call)
        return changed

    def _change(
        self, space: Space, gradient: TensorValue, changed: TensorValue, stretch: Stretch, call: Any
    ) -> None:
        """The node that computes gradients goes on with what the hooks have made of this one."""
        builder, node = space.builder, changed.proxy(space)
        stretch.stay("a hook that changes a gradient")
        before = set(itertools.takewhile(lambda one: one is not call, builder.operations))
        used = [one for one in stretch.used_from_outside([node]) if one is not gradient.node]
        if not before.issuperset(used):
            raise GraphBreak("FJ0117", "a hook changes a gradient by what another one has seen")
        *rest, watched, changes = call.args
        held = changes[watched.index(self.tensor.node)][0]
        builder.replace_module(held, stretch.module([gradient.node, *used], [node], unpacked=True))
        now = [(held, *used) if one[0] is held else one for one in changes]
        call.args = (*rest, watched, now)
        check_example(builder, call)


def changes_of(space: Space, nodes: list[Any], watched: Container[Any]) -> list[tuple[Any, ...]]:
    """What becomes of gradients of these. Of what is watched that is found out when they arrive."""
    add = space.builder.add_module
    return [(add("change", torch.nn.Identity()) if n in watched else None,) for n in nodes]


def forget_unchanged(space: Space, call: Any) -> None:
    """What ``call`` computes has arrived everywhere: where no hook has changed it, it goes on."""
    *rest, changes = call.args
    modules = [one[0] and space.builder.example(one[0]) for one in changes]
    pairs = zip(changes, modules, strict=True)
    kept = [one if isinstance(module, torch.fx.GraphModule) else (None,) for one, module in pairs]
    call.args = (*rest, kept)


def _alike(one: TensorValue, other: TensorValue) -> bool:
    looks = [
        (str(tuple(m.shape)), m.dtype, m.device, m.requires_grad)
        for m in (one.metadata(), other.metadata())
    ]
    return looks[0] == looks[1] and other.cls is one.cls


def number_of_handle(space: Space) -> Value:
    """The number of a new handle of hooks, which is counted."""
    counter = space.class_value(RemovableHandle).realize()
    written = space.class_writes.get(RemovableHandle, {}).get("next_id")
    if written is None:
        source = space.class_source(RemovableHandle).child("type_attr", "next_id")
        written = space.load(source, RemovableHandle.next_id)
    following = carried_sum(space, "+", written, ConstantValue(1))
    if following is None:
        raise GraphBreak("FJ0117", "the number of a handle of hooks was looked at")
    space.write_class_attribute(RemovableHandle, "next_id", following)
    space.effects.note(counter)
    return NewNumber(following.base, following.step - 1)


class HandleValue(Declared):
    """What ``register_hook`` of a new tensor returns; it can only be used in the same graph. Its
    classes say in ``call_method`` what ``remove()`` does."""

    step: int
    kind = RemovableHandle

    def getattr(self, space: Space, name: str) -> Result:
        if name != "remove":
            raise GraphBreak("FJ0117", f"attribute {name!r} of the handle of a gradient hook")
        return BoundBuiltin(self, name)


class WatchHandle(HandleValue):
    """The handle of a hook that is traced."""

    watched: Watched
    watching: Watching

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if self.watching in self.watched.hooks:
            self.watched.hooks.remove(self.watching)
            space.effects.note_watching()
        return _NONE


def watch(
    space: Space, tensor: TensorValue, hook: Value, step: int, of_node: bool = False
) -> WatchHandle:
    """Trace this hook when a gradient arrives at this result."""
    if space.task.alone:
        raise GraphBreak("FJ0111", "Tensor.register_hook() in a call that is captured alone")
    watched = space.effects.watched.setdefault(tensor.node, Watched(tensor, step, []))
    watching = Watching(hook, of_node)
    watched.hooks.append(watching)
    space.effects.note_watching()
    number_of_handle(space)
    return WatchHandle(space.step, watched, watching)


def watched_among(space: Space, nodes: list[Any]) -> dict[Any, Watched]:
    """The results with hooks among what these are computed from."""
    reached = ancestors(nodes) if space.effects.watched else ()
    found = {n: one for n, one in space.effects.watched.items() if n in reached and one.hooks}
    if any(space.builder.is_written(node) for node in found):
        raise GraphBreak("FJ0117", "a tensor that has hooks is written to")
    return found


# -- hooks of modules ------------------------------------------------------------------------------


class NodeValue(Declared):
    """The node of autograd's in front of or after a module, for those who set hooks on it."""

    tensor: TensorValue
    step: int

    def python_type(self) -> type:
        return torch.autograd.graph.Node

    def getattr(self, space: Space, name: str) -> Result:
        if name != "register_hook":
            raise GraphBreak("FJ0117", f"attribute {name!r} of a node of autograd's")
        return BoundBuiltin(self, name)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        (hook,) = args
        return watch(space, self.tensor, hook, self.step, of_node=True)


@lookaside(BackwardHook._apply_on_tensors)
def _pass_through(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """The tensors in front of or after a module whose gradients hooks are called with pass through
    a node of autograd's."""
    _, register, given = args
    given, step = given.realize(), space.step
    if type(given) is not TupleValue or given.python_type() is not tuple:
        raise GraphBreak("FJ0117", "hooks of a module that is called with a subclass of tuple")
    items = [item.realize() for item in given.items]
    tensors = [(i, one) for i, one in enumerate(items) if isinstance(one, TensorValue)]
    wanted = any(one.metadata().requires_grad for _, one in tensors)
    if not (wanted and torch.is_grad_enabled()):
        return TupleValue([given, _NONE])
    if len(tensors) != 1 or space.transforms or space.task.alone:
        raise GraphBreak("FJ0117", "hooks of a module that takes or returns several tensors")
    place, tensor = tensors[0]
    passed = graph_call(space, passed_through, [tensor], {}).realize()
    assert isinstance(passed, TensorValue)
    items[place] = passed
    space.call_now(register, [NodeValue(passed, step)])
    return TupleValue([TupleValue(items), ListValue([ConstantValue(place)])])


# -- what is left of them --------------------------------------------------------------------------


def unsettled(
    space: Space, outputs: Iterable[Any], calls_none: Container[Any]
) -> tuple[int, GraphBreak] | None:
    """The capture has ended: if hooks are left that somebody's gradient of these ``outputs`` might
    come to, the step that must not be captured, and why. ``calls_none``: whose gradients raise an
    error before that."""
    left = {node: one for node, one in space.effects.watched.items() if one.hooks}
    if not left:
        return None
    for output in outputs:
        operation = space.builder.operations[output]
        if operation.differentiable and output not in calls_none:
            for node in ancestors([output]) & left.keys():
                why = "Tensor.register_hook() of a hook that does more than compute"
                return left[node].step, GraphBreak("FJ0111", why)
    return None
