"""Identity: which existing object a value represents, and whether two values are one object.

In: two values, of which nobody may have asked before whether they are the same. Out: yes or no,
with a fact wherever it could be the other one in a call with equal values: a constant with a
source is known by its value only. What the program makes itself is a new object, except for the few
that CPython makes once (small ints, the empty tuple). Next room: interpreter.
"""

from __future__ import annotations

import enum
import weakref
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import NULL, Value
from framejit.values.core.constants import BY_IDENTITY, ConstantValue
from framejit.values.core.space import Space
from framejit.values.torch.tensors import TensorValue

#: CPython has one object for each of these ints.
_SMALL = range(-5, 257)
#: In place of an existing object: the program has made this one.
_NEW = object()


def identical(space: Space, left: Value, right: Value) -> bool:
    """``left is right``."""
    left, right = left.realize(), right.realize()
    if left is right:
        return True
    if left is NULL or right is NULL:
        return False
    if left.is_symbolic or right.is_symbolic:
        return _same_number(space, left, right)
    if isinstance(left, TensorValue) and isinstance(right, TensorValue):
        left, right = left.original(space), right.original(space)
        if left is right:
            return True
    one, two = _object(left), _object(right)
    if one is _NEW or two is _NEW:
        if isinstance(left, TensorValue) and isinstance(right, TensorValue):
            known = not (left.own_identity or right.own_identity)
            same = known and one is two and left.node is right.node
            if same and space.transforms:  # one of them is wrapped
                raise GraphBreak("FJ0159", "whether two tensors in a transform are one object")
            return same
        if space.effects.held_by_caches:
            _check_held(space, left, right)
        if left.python_type() is right.python_type() is weakref.ReferenceType:
            raise GraphBreak("FJ0159", "whether two weak references to an object are one object")
        return _is_empty_tuple(left) and _is_empty_tuple(right)
    same = one is two
    if type(one) is not type(two) or is_shared(one):
        return same
    if isinstance(left, ConstantValue) and not same and one == one and one != two:
        return False
    sources = [
        value.source or (space.const_source(real, f"const {type(real).__name__}"))
        for value, real in ((left, one), (right, two)) if value.source or value.is_constant
    ]  # fmt: skip
    if len(sources) == 2 and sources[0] is not sources[1]:
        payload = sources[0] if same else (sources[0],)
        space.guard(sources[1], "SAME_OBJECT" if same else "DISTINCT", payload)
    return same


def _check_held(space: Space, left: Value, right: Value) -> None:
    """GraphBreak if one is what a cache will hold, and may be the other one, which exists or will
    be held, too."""
    held = space.effects.held_by_caches
    if left in held or right in held:
        known = all(value in held or _object(value) is not _NEW for value in (left, right))
        empty = _is_empty_tuple(left) and _is_empty_tuple(right)
        if known and left.python_type() is right.python_type() and not empty:
            raise GraphBreak("FJ0159", "whether two results of a cached function are one object")


def is_shared(obj: Any) -> bool:
    """Is every object that is equal to this one the very same?"""
    kind = type(obj)
    if kind is int:
        return obj in _SMALL
    return kind in BY_IDENTITY or isinstance(obj, enum.Enum)


def _object(value: Value) -> Any:
    """The existing object that a value represents; `_NEW` if the program has made it."""
    if isinstance(value, ConstantValue):
        made = value.is_open or type(value.value) is torch.device  # each ``x.device`` is a new one
        return _NEW if made and value.source is None else value.value
    real = value.obj
    real = getattr(value, "module", None) if real is None else real
    return _NEW if real is None else real


def _is_empty_tuple(value: Value) -> bool:
    return type(value) is TupleValue and value.cls is tuple and not value.items


def _same_number(space: Space, left: Value, right: Value) -> bool:
    """The same for numbers one of which varies: those that are computed are new objects."""
    if left.python_type() is not right.python_type():
        return False
    if not space.truth(space.now(space.compare("==", left, right))):
        return False  # they go on varying
    kind, bounds = left.python_type(), ((">=", _SMALL.start), ("<", _SMALL.stop))
    if kind is bool or (kind is int and all(_holds(space, op, left, at) for op, at in bounds)):
        return True
    if any(getattr(number, "shared", True) for number in (left, right)):
        raise GraphBreak("FJ0159", "whether two equal numbers are one object is not known")
    return False


def _holds(space: Space, op: str, number: Value, limit: int) -> bool:
    return space.truth(space.now(space.compare(op, number, ConstantValue(limit))))
