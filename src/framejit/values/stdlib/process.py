"""What differs from process to process and from thread to thread: addresses, hashes of texts, the
thread's number, the exception being handled, context variables.

In: calls of ``id``, ``hash``, ``sys.exc_info``, ... Out: values that are compared while capturing
and known at run time only, or facts that hold for this process. Next room: interpreter.
"""

from __future__ import annotations

import _thread
import contextvars
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Args, Declared, Kwargs, Value, type_name
from framejit.values.core.constants import ConstantValue
from framejit.values.core.ends import search_what_is_seen
from framejit.values.core.keys import IdentityKey, hash_known_here, real_object, tell_apart
from framejit.values.core.methods import as_returned, builtin
from framejit.values.core.registry import Result, by_identity, wraps
from framejit.values.core.space import Space
from framejit.values.objects.exceptions import handled_by_caller
from framejit.values.torch.tensors import TensorValue


class IdentityValue(Declared):
    """``id(target)``, or without a target ``function()``: an int that is known at run time only.
    While capturing, ids can be compared with each other and be keys; all else is a graph break."""

    function: Callable[..., int]
    target: Value | None
    kind = int

    def truth(self, space: Space) -> bool:
        return True

    def same(self, space: Space, other: Value) -> bool | None:
        """Are the numbers equal? None when that is not known while capturing."""
        if not isinstance(other, IdentityValue) or other.function is not self.function:
            return None
        if self.target is None or other.target is None:
            return self.target is other.target
        return space.is_(self.target, other.target)

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        same = self.same(space, other) if op in ("==", "!=") else None
        if same is None and op in ("==", "!=") and other.is_constant:
            same = self._is_number(space, other.as_python())
        if same is None:
            raise GraphBreak("FJ0159", "an address is compared with a number")
        return ConstantValue(same is (op == "=="))

    def _is_number(self, space: Space, number: Any) -> bool | None:
        """Is it this number, for an object that lasts?"""
        obj, source = (self.target.obj, self.target.source) if self.target else (None, None)
        if source is None or not isinstance(obj, (torch.nn.Module, type, types.FunctionType)):
            return None
        space.guard(source.child("call", id), "EQUALS_MATCH", id(obj))
        return bool(number == id(obj))

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        raise GraphBreak("FJ0159", "calculating with an address")

    def hash_key(self, space: Space) -> Any:
        """Its key in dicts and sets."""
        target: Any = self.function if self.target is None else self.target
        target = target.as_key(space) if isinstance(target, TensorValue) else target
        real = real_object(target) if isinstance(target, Value) else None
        if real is None:
            return IdentityKey(target)
        tell_apart(space, target)
        return IdentityKey(real, target)


@builtin(id, 1)
def _id(space: Space, value: Value) -> Value:
    value = value.realize()
    if value.is_constant:
        raise GraphBreak("FJ0159", "id() of a constant")
    if value.source is not None and search_what_is_seen(value.obj, None):  # the number outlives it
        raise GraphBreak("FJ0159", "id() of an object whose end the program sees")
    return IdentityValue(id, value)


builtin(_thread.get_ident, 0)(lambda space: IdentityValue(_thread.get_ident, None))


@builtin(hash, 1)
def _hash(space: Space, value: Value) -> Result:
    value = value.realize()
    cls = value.python_type()
    if cls.__hash__ is None:
        return space.raise_error(TypeError, f"unhashable type: {type_name(cls)!r}")
    if isinstance(value, TupleValue):
        parts = [space.now(_hash(space, item)) for item in value.items]
        numbers = tuple(part.realize().as_python() for part in parts)
        return space.constant(hash(tuple(map(_Hashed, numbers))))
    if value.is_constant:
        obj = value.as_python()
        hash_known_here(space, obj)
        return space.constant(space.run_real(hash, obj))
    found = space.class_attribute(cls, "__hash__")
    if found is not None and found.owner is not object:
        answer = space.now(space.call_special(value, "__hash__", [], "is not hashable")).realize()
        if not answer.is_constant and answer.python_type() is int:
            return answer  # an address
        return space.constant(as_returned(space, value, "__hash__", answer, hash))
    raise GraphBreak("FJ0159", "hash() depends on the address of an object")


class _Hashed:
    """Hashes to ``number``."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number


# -- the exception being handled -------------------------------------------------------------------


@builtin(sys.exc_info, 0)
def _exc_info(space: Space) -> Value:
    error = (space.running.handled or handled_by_caller(space)).realize()
    if error.is_none():
        return TupleValue([ConstantValue(None)] * 3)
    trace = space.getattr_now(error, "__traceback__")
    return TupleValue([space.class_value(error.python_type()), error, trace])


builtin(sys.exception, 0)(lambda space: space.running.handled or handled_by_caller(space))


@builtin(sys.intern, 1)
def _intern(space: Space, text: Value) -> Value:
    if text.realize().python_type() is not str:
        raise GraphBreak("FJ0136", "sys.intern() of something that is not a string")
    return text


# -- context variables -----------------------------------------------------------------------------


class _Unset:
    """What `read_context` gives for a variable that has no value."""


def read_context(variable: contextvars.ContextVar[Any]) -> Any:
    """The variable's value in the current context, else its default."""
    try:
        return variable.get()
    except LookupError:
        return _Unset


def read_assigned(variable: contextvars.ContextVar[Any]) -> Any:
    """The variable's value in the current context."""
    return variable.get(_Unset)


class ContextVarValue(Declared):
    """An existing ``contextvars.ContextVar``. ``pending``: the assignments that are still in force,
    which are replayed after the graph."""

    obj: Any
    source: Source
    pending: list[ContextTokenValue] = []
    kind = contextvars.ContextVar

    def current(self, space: Space, read: Callable[[Any], Any]) -> Value | None:
        """The value now; None when there is none."""
        if self.pending:
            return self.pending[-1].value
        return self.at_start(space, read)

    def at_start(self, space: Space, read: Callable[[Any], Any]) -> Value | None:
        """The value before the capture changes it; None when there is none."""
        obj, source = read(self.obj), self.source.child("call", read)
        if obj is _Unset:
            space.guard(source, "ID_MATCH", _Unset)
            return None
        return space.load(source, obj)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if name == "get" and not kwargs and len(args) <= 1:
            value = self.current(space, read_assigned if args else read_context)
            if value is not None:
                return value
            return args[0] if args else space.raise_error(LookupError, self.obj)
        if name == "set" and not kwargs and len(args) == 1:
            before = self.pending[-1] if self.pending else None
            made = ContextTokenValue(self, args[0], before, space.step)
            self.pending.append(made)
            space.changed(self)
            return made
        if name == "reset" and not kwargs and len(args) == 1:
            token = args[0].realize()
            if not self.pending or self.pending[-1] is not token:
                raise GraphBreak(
                    "FJ0163", "resetting a context variable to what it was before the capture"
                )
            self.pending.pop()
            space.changed(self)
            return ConstantValue(None)
        raise GraphBreak("FJ0163", f"ContextVar.{name}() with these arguments")


class ContextTokenValue(Declared):
    """What ``ContextVar.set`` returns. ``before``: the assignment that was in force."""

    variable: ContextVarValue
    value: Value
    before: ContextTokenValue | None
    step: int
    kind = contextvars.Token

    def getattr(self, space: Space, name: str) -> Result:
        if name == "var":
            return self.variable
        if name == "old_value":
            variable, before = self.variable, self.before
            old = variable.at_start(space, read_assigned) if before is None else before.value
            if old is not None:
                return old
        raise GraphBreak("FJ0163", f"attribute {name!r} of a contextvars.Token")


wraps(contextvars.ContextVar)(by_identity(ContextVarValue))
