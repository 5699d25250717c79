"""Slices, and the comparison item by item that they share with lists and tuples.

In: existing slices with their sources, or bounds. Out: their operations. Next: sequences.
"""

from __future__ import annotations

from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.core.base import Value
from framejit.values.core.methods import ContainerValue, Element, index_of, method
from framejit.values.core.registry import COMPARE, Result, makes, wraps
from framejit.values.core.space import Space

_BOUNDS = ("start", "stop", "step")


class SliceValue(ContainerValue):
    """A slice; its bounds may be any values (tensors and objects are allowed in indexing)."""

    __slots__ = ("obj", "start", "step", "stop")

    def __init__(
        self, start: Value, stop: Value, step: Value, *, source: Source | None = None,
        obj: Any = None,
    ) -> None:  # fmt: skip
        self.start = start
        self.stop = stop
        self.step = step
        self.source = source
        self.obj = obj

    @property
    def is_constant(self) -> bool:  # type: ignore[override]
        return all(part.realize().is_constant for part in self.parts())

    def parts(self) -> list[Value]:
        """Start, stop, step."""
        return [self.start, self.stop, self.step]

    def python_type(self) -> type:
        return slice

    def as_python(self) -> slice:
        return slice(*[part.realize().as_python() for part in self.parts()])

    def getattr(self, space: Space, name: str) -> Result:
        if name in _BOUNDS:
            part = getattr(self, name)
            assert isinstance(part, Value)
            return part
        return space.generic_getattr(self, name)

    def sample(self) -> Any:
        return slice(None)

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        if not isinstance(other, SliceValue):
            return None
        return compare_items(space, op, tuple, self.parts(), other.parts())

    @method(1)
    def do_indices(self, space: Space, length: Value) -> Value:
        bounds = to_slice(space, self)
        return space.constant(space.run_real(bounds.indices, index_of(space, length)))


def to_slice(space: Space, value: SliceValue) -> slice:
    """A real slice whose bounds are ints or None."""
    complaint = "slice indices must be integers or None or have an __index__ method"
    bounds = [
        None if part.is_none() else index_of(space, part, complaint) for part in value.parts()
    ]
    return slice(*bounds)


def compare_items(
    space: Space, op: str, kind: type, left: list[Value], right: list[Value]
) -> Value:
    """How CPython compares lists, tuples or deques of these elements."""
    before = list(left), list(right)
    operands = [kind([Element(space, item) for item in items]) for items in before]
    answer = COMPARE[op](*operands)
    if (left, right) != before:
        raise GraphBreak("FJ0166", f"a {kind.__name__} changes while it is compared")
    return answer.value if type(answer) is Element else space.constant(answer)


@wraps(slice)
def _wrap_slice(space: Space, source: Source, obj: slice) -> Value:
    """An existing slice: its bounds are guarded where they are used."""
    space.guard(source, "TYPE_MATCH", slice)
    parts = [space.load(source.child("attr", name), getattr(obj, name)) for name in _BOUNDS]
    return space.remember(obj, SliceValue(*parts, source=source, obj=obj))


@makes(slice)
def _constant_slice(space: Space, obj: slice) -> Value:
    return SliceValue(*(space.constant(part) for part in (obj.start, obj.stop, obj.step)))
