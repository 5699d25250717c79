"""Helpers of torch's own Python code that framejit handles itself.

In: calls of checks, groupings, annotations and weak references that torch's library code makes.
Out: constants and values; no graph nodes. Next room: interpreter.
"""

from __future__ import annotations

import gc
import weakref
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.mappings import DictValue, InstanceDictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Declared, Kwargs, Value, type_name
from framejit.values.core.constants import ConstantValue, constant_value
from framejit.values.core.keys import ReferenceKey, key_of
from framejit.values.core.registry import NAMED_LOOKASIDES, Result, lookaside, wraps
from framejit.values.core.space import Space
from framejit.values.core.symbolic import SymbolicValue, check
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import FunctionValue, call_polyfill, function_value
from framejit.values.torch.arrivals import number_of_handle
from framejit.values.torch.tensors import TensorValue

# -- functions that are run as they are written -------------------------------------------------


def as_written(space: Space, function: Any, args: Args, kwargs: Kwargs) -> Result:
    """A call of a Python function of torch's, whatever is registered to run instead of it."""
    value = function_value(space, function)
    assert isinstance(value, FunctionValue)
    return value.inline(space, args, kwargs)


# -- handles of hooks --------------------------------------------------------------------------


@lookaside(RemovableHandle.__init__)
def _new_handle(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """Nobody looks at the number of a handle, which is new in the dict of hooks; so calls that
    register hooks and remove them are all alike."""
    named = dict(zip(("self", "hooks_dict"), args, strict=False)) | kwargs
    named["number"] = number_of_handle(space)
    return call_polyfill(space, polyfills.new_handle, [], named)


# -- named results -----------------------------------------------------------------------------


def _named_results(cls: Any) -> None:
    @lookaside(cls)
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        items = space.items(args[0]) if len(args) == 1 and not kwargs else []
        if len(items) != cls.n_sequence_fields:
            raise GraphBreak("FJ0153", f"making a torch.return_types.{cls.__name__}")
        return TupleValue(items, None, cls)


for _cls in torch.return_types.all_return_types:
    _named_results(_cls)


# -- annotations and checks -------------------------------------------------------------------


@lookaside(torch.jit.annotate)
def _annotate(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return kwargs["the_value"] if "the_value" in kwargs else args[1]


@lookaside(torch._check_with)
def _check_with(space: Space, args: Args, kwargs: Kwargs) -> Value:
    named = dict(zip(("error_type", "cond", "message"), args, strict=False)) | kwargs
    condition = named["cond"].realize()
    if isinstance(condition, SymbolicValue):
        if condition.python_type() is bool and check(space, condition):
            return ConstantValue(None)
        condition = condition.fixed()
    if not condition.is_constant:
        raise GraphBreak("FJ0121", f"torch._check() of a {condition.describe()}")
    if condition.python_type() is not bool:
        return space.raise_error(
            TypeError, f"cond must be a bool, but got {condition.python_type()}"
        )
    if condition.as_python():
        return ConstantValue(None)
    message = named["message"].realize()
    if message.is_none():
        text: Value = ConstantValue(
            "Expected cond to be True, but got False. (Could this error "
            "message be improved? If so, please report an enhancement request "
            "to PyTorch.)"
        )
    else:
        text = space.call_now(space.constant(str), [space.call_now(message, [])])
    error = named["error_type"].realize().as_python()
    return space.raise_error(error, text.realize().as_python())


def _as_given(space: Space, args: Args, kwargs: Kwargs) -> Value:
    (condition,) = [*args, *kwargs.values()]
    if condition.realize().python_type() is not bool:
        raise GraphBreak("FJ0121", f"a question about sizes with a {condition.describe()}")
    return ConstantValue(space.truth(condition))


def _no_symbols(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return ConstantValue(False)


# What code asks that PyTorch's own compilers trace as well; without them, this is what they answer.
_SYMBOLIC = "torch.fx.experimental.symbolic_shapes"
for _name in ("guard_or_false", "guard_or_true", "guard_size_oblivious"):
    NAMED_LOOKASIDES[_SYMBOLIC, _name] = _as_given
for _name in ("has_free_symbols", "has_free_unbacked_symbols"):
    NAMED_LOOKASIDES[_SYMBOLIC, _name] = _no_symbols


@lookaside(torch.Size)
def _size(space: Space, args: Args, kwargs: Kwargs) -> Value:
    items = space.items(args[0]) if args else []
    for item in items:
        if not issubclass(item.realize().python_type(), int):
            raise GraphBreak("FJ0121", f"torch.Size() with a {item.describe()}")
    return TupleValue(items, None, torch.Size)


@lookaside(torch._C._group_tensors_by_device_and_dtype)
def _group_tensors(space: Space, args: Args, kwargs: Kwargs) -> Value:
    lists = [space.items(part) for part in space.items(args[0])]
    with_indices = len(args) > 1 and space.truth(args[1])
    if not lists or not lists[0] or any(len(part) not in (0, len(lists[0])) for part in lists):
        raise GraphBreak("FJ0121", "grouping lists of tensors that torch refuses")
    groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    for index, first in enumerate(lists[0]):
        tensor = first.realize()
        if not isinstance(tensor, TensorValue):
            raise GraphBreak(
                "FJ0121", "grouping tensor lists whose first list holds something else"
            )
        metadata = tensor.metadata()
        groups.setdefault((metadata.device, metadata.dtype), []).append(index)
    # They come in the order of a hash table in C++, which their kinds decide.
    kinds: list[torch.Tensor | None] = [
        torch.empty(0, device=device, dtype=dtype) for device, dtype in groups
    ]
    result = DictValue({})
    for key in torch._C._group_tensors_by_device_and_dtype([kinds], False):
        members = groups[key]
        parts: list[Value] = [
            ListValue([part[index] for index in members] if part else []) for part in lists
        ]
        indices = [ConstantValue(index) for index in members] if with_indices else []
        pair = TupleValue([ListValue(parts), ListValue(list(indices))])
        result.store(space, key, constant_value(space, key), pair)
    return result


# -- weak references --------------------------------------------------------------------------


def dereference(reference: Any) -> Any:
    """What a weak reference refers to."""
    return reference()


class WeakReferenceValue(Declared):
    """A ``weakref.ref``; ``target`` is None for one that existed before."""

    obj: Any
    source: Source | None
    target: Value | None = None
    step: int = 0
    kind = weakref.ReferenceType

    def hash_key(self, space: Space) -> Any:
        """Its key in dicts and sets."""
        return ReferenceKey(key_of(space, self.call(space, [], {})))  # type: ignore[arg-type]

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        if isinstance(other, WeakReferenceValue):
            raise GraphBreak("FJ0163", f"`{op}` of two weak references, which compares the objects")
        return None

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        if args or kwargs:
            raise GraphBreak("FJ0163", "a weak reference called with arguments")
        if self.target is not None:
            found: Value = self.target
        else:
            assert self.source is not None
            found = space.load(self.source.child("call", dereference), self.obj())
        _check_alive(space, found)
        return found


def _check_alive(space: Space, value: Value) -> None:
    """A graph break if the program has let go of the object: others may hold it, or nobody."""
    obj = value.obj
    if obj is None or issubclass(type(obj), type):
        return
    held = [space.known_value(obj), *[v for v in space.given() if v.obj is obj]]
    if any(one is not None and space.running.holds(one) for one in held):
        return
    let_go = len(held) > 1
    for changed in space.effects.changed:
        let_go |= any(one is obj for one in _replaced(changed))
    if let_go:
        raise GraphBreak(
            "FJ0163", f"following a weak reference to a {type(obj).__name__} that may be gone"
        )


def _replaced(changed: Value) -> list[Any]:
    """What an object held where the program has written; everything in a container."""
    content: Any = changed.obj
    if isinstance(changed, InstanceDictValue) and not changed.rewritten:
        return [content[name] for name in changed.written if name in content]
    return gc.get_referents(content)


@wraps(weakref.ReferenceType)
def _wrap_reference(space: Space, source: Source, obj: Any) -> Value:
    space.guard(source, "TYPE_MATCH", weakref.ReferenceType)
    return space.remember(obj, WeakReferenceValue(obj, source))


@lookaside(weakref.ReferenceType)
def _make_reference(space: Space, args: Args, kwargs: Kwargs) -> Value:
    if len(args) != 1 or kwargs:
        raise GraphBreak("FJ0163", "making a weak reference with a callback")
    target = args[0].realize()
    cls = target.python_type()
    if not cls.__weakrefoffset__:
        text = f"cannot create weak reference to {type_name(cls)!r} object"
        return space.raise_error(TypeError, text)
    # Something else must keep the object alive as long as in eager: it must be part of another one.
    # A class lives long enough, too.
    kept = target.source is not None and target.source.base is not None
    kept = kept or target in space.effects.hook_dicts
    if not (kept or isinstance(target, ClassValue)) or isinstance(target, TensorValue):
        raise GraphBreak("FJ0163", f"making a weak reference to a {target.describe()}")
    return WeakReferenceValue(None, None, target, space.step)
