"""Hooks of leaves of autograd: what is in the dicts of hooks that tensors have.

In: leaves that get a gradient, and calls that put hooks on leaves, which are torch's own Python
functions. Out: the hooks as values, guarded where they exist; dicts that the program gives to a
tensor, which is told of them after the graph. Next room: graph.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from framejit import native
from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Result
from framejit.values.core.space import Space
from framejit.values.objects.functions import FunctionValue, function_value
from framejit.values.torch.tensors import HOOK_DICTS, TensorValue

_REGISTER = {
    "register_hook": torch.Tensor.register_hook,
    "register_post_accumulate_grad_hook": torch.Tensor.register_post_accumulate_grad_hook,
}


class LeafHooks(NamedTuple):
    """The hooks of a leaf: those that its gradient goes through, those that see it once that is
    stored."""

    first: list[Value]
    last: list[Value]


def guard_leaf(space: Space, tensor: TensorValue) -> LeafHooks | None:
    """Autograd does nothing with this leaf's gradient but to store it or to return it, and to call
    these hooks, if there are any."""
    if tensor.obj is None and tensor.node in space.effects.made_leaves:
        hooked = bool(tensor.hook_dicts)
    else:
        hooked = _guard_existing(space, tensor) or bool(tensor.hook_dicts)
    if not hooked:
        return None
    hooks = LeafHooks(*[_hooks_in(space, tensor, name) for name in HOOK_DICTS])
    return hooks if any(hooks) else None


def _guard_existing(space: Space, tensor: TensorValue) -> bool:
    """Whether an existing leaf came with dicts of hooks."""
    if tensor.obj is None or tensor.source is None or tensor.cls is not type(tensor.obj):
        raise GraphBreak("FJ0117", "the gradient of a tensor that is no plain input")
    hooked = not native.is_plain_leaf(tensor.obj, False)
    if hooked and not native.is_plain_leaf(tensor.obj, True):
        raise GraphBreak("FJ0117", "the gradient of an earlier result, or of a distributed tensor")
    space.guard(tensor.source, "LEAF", hooked)
    return hooked


def _hooks_in(space: Space, tensor: TensorValue, name: str) -> list[Value]:
    """The hooks in a dict of a tensor. Their keys are numbers that count all hooks of a process:
    they are found by their places, unless the program has changed the dict."""
    hooks = hook_dict(space, tensor, name).realize()
    if hooks.is_none():
        return []
    if isinstance(hooks, DictValue) and hooks.source is not None and not hooks.mutated:
        return _by_places(space, hooks.source, hooks.obj)
    return space.items(space.call_now(space.getattr_now(hooks, "values"), []))


def _by_places(space: Space, source: Source, held: Any) -> list[Value]:
    space.guard(source, "LEN_MATCH", len(held))
    return [
        space.load(source.child("value_at", place), hook)
        for place, hook in enumerate(dict.values(held))
    ]


def changed_by(space: Space, hooks: LeafHooks | None, gradient: Value) -> Value:
    """What these make of a gradient."""
    if hooks is None or not hooks.first or not isinstance(gradient, TensorValue):
        return gradient
    function = function_value(space, polyfills.changed_by_hooks)
    changed = space.call_now(function, [gradient, ListValue(hooks.first)]).realize()
    looks = [
        (str(tuple(m.shape)), m.dtype, m.device)
        for m in (gradient.metadata(), changed.metadata())
    ] if isinstance(changed, TensorValue) else [None, 0]  # fmt: skip
    if looks[0] != looks[1]:
        raise GraphBreak("FJ0117", "a hook of a leaf returns what does not look like its gradient")
    return changed


# -- dicts of hooks --------------------------------------------------------------------------------


def hook_dict(space: Space, tensor: TensorValue, name: str) -> Value:
    """What the attribute of a leaf that holds its hooks is: a dict or None."""
    if tensor.hook_dicts is not None and name in tensor.hook_dicts:
        return tensor.hook_dicts[name]
    if tensor.obj is None or tensor.source is None:
        return ConstantValue(None)
    return space.load(tensor.source.child("attr", name), getattr(tensor.obj, name))


def assign_hook_dict(space: Space, tensor: TensorValue, name: str, value: Value) -> None:
    """``tensor._backward_hooks = OrderedDict()``, as torch does it for the first hook."""
    made = isinstance(value, DictValue) and value.source is None
    if not made or not hook_dict(space, tensor, name).is_none():
        raise GraphBreak("FJ0112", f"assigning attribute {name!r} of a tensor")
    tensor.hook_dicts = {**(tensor.hook_dicts or {}), name: value}
    space.effects.hook_dicts[value] = None
    space.changed(tensor)


def hook_leaf(space: Space, tensor: TensorValue, method: str, args: Args, kwargs: Kwargs) -> Result:
    """``leaf.register_hook(hook)`` and the like, as torch has written it."""
    if space.task.alone or space.transforms:
        raise GraphBreak("FJ0111", f"Tensor.{method}() where the graph cannot do it")
    function = function_value(space, _REGISTER[method])
    assert isinstance(function, FunctionValue)
    return function.inline(space, [tensor, *args], kwargs)


def is_leaf(space: Space, tensor: TensorValue) -> bool:
    """Is it one that an entry may put hooks on: existing and plain, or made by the graph?"""
    if tensor.obj is None:
        return tensor.node in space.effects.made_leaves
    plain = tensor.source is not None and tensor.cls is type(tensor.obj)
    return plain and space.truth(space.now(tensor.getattr(space, "is_leaf")))
