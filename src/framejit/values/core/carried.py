"""Integers that are only carried through: a counter that grows with each call is no constant.

In: ``count + 1`` where ``count`` is an existing integer that nobody has looked at. Out: a value
that generated code computes from the integer it finds; only its class is guarded. Looked at, it is
what the integers add up to now, with all that means for guards. Next room: interpreter.
"""

from __future__ import annotations

from framejit.values.core.base import Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.keys import ObjectKey
from framejit.values.core.operations import LazyValue
from framejit.values.core.space import Space


class CarriedSum(Value):
    """An existing integer plus a constant."""

    __slots__ = ("base", "space", "step", "value")

    def __init__(self, space: Space, base: LazyValue, step: int) -> None:
        self.space = space
        self.base = base
        self.step = step
        self.value: Value | None = None
        self.source = None

    @property
    def is_open(self) -> bool:  # type: ignore[override]
        return self.value is None

    def realize(self) -> Value:
        if self.value is None:
            step = ConstantValue(self.step)
            self.value = self.space.now(self.space.binary("+", self.base.realize(), step))
        return self.value

    def python_type(self) -> type:
        return int


class NewNumber(Value):
    """An integer that is in no container yet, such as the next number of a counter."""

    __slots__ = ("base", "step")

    def __init__(self, base: LazyValue, step: int) -> None:
        self.base = base
        self.step = step
        self.source = None

    def python_type(self) -> type:
        return int

    def hash_key(self, space: Space) -> ObjectKey:
        """Equal to itself only."""
        return ObjectKey(self)


#: Classes whose instances are numbers or texts, and immutable through and through.
LITERALS: set[type] = {int, float, str, bytes}


def with_known_class(space: Space, value: Value) -> Value:
    """``value`` where only its class matters: a number or text is carried through."""
    if type(value) is CarriedSum:
        return value
    if type(value) is LazyValue and value.value is None and type(value.obj) in LITERALS:
        space.guard(value.source, "TYPE_MATCH", type(value.obj))
        return value
    return value.realize()


def carried_sum(space: Space, op: str, left: Value, right: Value) -> CarriedSum | None:
    """``left op right`` as a value to be carried through; None if it is something else."""
    if op == "+" and type(left) is ConstantValue:
        left, right = right, left
    if type(right) is not ConstantValue or type(right.value) is not int or op not in ("+", "-"):
        return None
    step = right.value if op == "+" else -right.value
    if type(left) is CarriedSum and left.value is None:
        return CarriedSum(space, left.base, left.step + step)
    if type(left) is not LazyValue or left.value is not None or type(left.obj) is not int:
        return None
    if left.source.base is None:  # an argument itself: nothing is written back to it
        return None
    space.guard(left.source, "TYPE_MATCH", int)
    return CarriedSum(space, left, step)
