"""collections.deque.

In: existing deques with their sources, or new ones. Out: their operations. When one is mutated,
codegen clears the real deque and extends it with ``items``, unless it only assigned some of them.
Next: codegen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.iterators import DequeIterator
from framejit.values.containers.sequences import ListValue
from framejit.values.containers.slices import SliceValue
from framejit.values.core.base import Value, element_as_python, type_name
from framejit.values.core.methods import check_own_iteration, container_of, index_of, method
from framejit.values.core.registry import Result, wraps
from framejit.values.core.space import Space


def _elements(obj: Any) -> tuple[Any, ...]:
    """The elements of an instance of a subclass, which may have an ``__iter__`` of its own."""
    return tuple(deque.__iter__(obj))


class DequeValue(ListValue):
    """A deque: a list that forgets at the other end when longer than ``maxlen``."""

    __slots__ = ("maxlen", "version")

    def __init__(
        self,
        items: list[Value] | None,
        maxlen: int | None = None,
        source: Source | None = None,
        obj: Any = None,
    ) -> None:
        super().__init__(items, source, obj)
        self.maxlen = maxlen
        #: Counts changes that iterators notice.
        self.version = 0

    def python_type(self) -> type:
        return deque

    def as_python(self) -> Any:
        return deque([element_as_python(item) for item in self.items], self.maxlen)

    def load_items(self, space: Space) -> list[Value]:
        obj = self.obj
        assert self.source is not None and obj is not None
        source = self.source.child("call", tuple if type(obj) is deque else _elements)
        items = _elements(obj)
        space.guard(source, "LEN_MATCH", len(items))
        self._items = [space.load(source.child("index", i), item) for i, item in enumerate(items)]
        return self._items

    def changed(self, space: Space) -> None:
        self.version += 1
        self.replaced(space)

    def replaced(self, space: Space) -> None:
        """Elements are others; iterators go on."""
        super().changed(space)

    def truth(self, space: Space) -> bool:
        return bool(self.items)

    def len(self, space: Space) -> Value:
        return space.constant(len(self.items))

    def getattr(self, space: Space, name: str) -> Result:
        if name == "maxlen":
            return space.constant(self.maxlen)
        return super().getattr(space, name)

    def getitem(self, space: Space, key: Value) -> Value:
        return self.items[self._position(space, key)]

    def setitem(self, space: Space, key: Value, value: Value) -> None:
        self.items[self._position(space, key)] = value
        self.replaced(space)

    def delitem(self, space: Space, key: Value) -> None:
        del self.items[self._position(space, key)]
        self.changed(space)

    def _position(self, space: Space, key: Value) -> int:
        key = key.realize()
        name = type_name(key.python_type())
        if type(key) is SliceValue:
            space.raise_error(TypeError, "sequence index must be integer, not 'slice'")
        index = index_of(space, key, f"sequence index must be integer, not {name!r}")
        if not -len(self.items) <= index < len(self.items):
            space.raise_error(IndexError, "deque index out of range")
        return index

    def iter(self, space: Space) -> Value:
        return DequeIterator(self, space.step)

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        if op == "+":
            if inplace:
                self.do_extend(space, other)
                return self
            plain = container_of(other, DequeValue)
            if reflected or plain is None:
                return None
            check_own_iteration(space, other)
            return self._fresh(self.items + plain.items)
        if op == "*":
            repeated = self.repeat(space, other)
            if repeated is None:
                return None
            if inplace:
                self._items = self._cut(repeated)
                self.changed(space)
                return self
            return self._fresh(repeated)
        return None

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        if self._alike(other) is not None:
            check_own_iteration(space, other)
        return super().compare_op(space, op, other)

    def _fresh(self, items: list[Value]) -> DequeValue:
        return DequeValue(self._cut(items), self.maxlen)

    def _cut(self, items: list[Value]) -> list[Value]:
        if self.maxlen is None:
            return items
        return items[len(items) - self.maxlen :] if len(items) > self.maxlen else items

    # -- methods -----------------------------------------------------------------------------------

    def added(self, space: Space, iterable: Value) -> Iterable[Value]:
        return list(self.items) if iterable.realize() is self else space.each(iterable)

    @method(1)
    def do_append(self, space: Space, item: Value) -> None:
        self._items = self._cut([*self.items, item])
        self.changed(space)

    @method(1)
    def do_appendleft(self, space: Space, item: Value) -> None:
        self._items = [item, *self.items][: self.maxlen]
        self.changed(space)

    @method(1)
    def do_extendleft(self, space: Space, iterable: Value) -> None:
        for item in self.added(space, iterable):
            self.do_appendleft(space, item)

    def _take(self, space: Space, position: int) -> Value:
        if not self.items:
            space.raise_error(IndexError, "pop from an empty deque")
        self.changed(space)
        return self.items.pop(position)

    @method()
    def do_pop(self, space: Space) -> Value:  # type: ignore[override]
        return self._take(space, -1)

    @method()
    def do_popleft(self, space: Space) -> Value:
        return self._take(space, 0)

    @method(0, 1)
    def do_rotate(self, space: Space, steps: Value | None = None) -> None:
        items = self.items
        if items:
            count = (1 if steps is None else index_of(space, steps)) % len(items)
            self._items = items[len(items) - count :] + items[: len(items) - count]
        if len(items) > 1:
            self.changed(space)

    @method(2)
    def do_insert(self, space: Space, index: Value, item: Value) -> None:
        if self.maxlen is not None and len(self.items) >= self.maxlen:
            space.raise_error(IndexError, "deque already at its maximum size")
        super().do_insert(space, index, item)

    @method(0, 2)
    def do___init__(
        self, space: Space, iterable: Value | None = None, maxlen: Value | None = None
    ) -> None:
        raise GraphBreak("FJ0133", "calling deque.__init__()")

    @method(1)
    def do_remove(self, space: Space, item: Value) -> None:
        for position, element in enumerate(self.items):
            if space.equal(element, item):
                del self.items[position]
                self.changed(space)
                return
        if not item.realize().is_constant:
            raise GraphBreak("FJ0136", "deque.remove() of an object that is not in the deque")
        space.raise_error(ValueError, f"{item.realize().as_python()!r} is not in deque")

    @method()
    def do_clear(self, space: Space) -> None:
        if self.items:
            super().do_clear(space)

    @method()
    def do_reverse(self, space: Space) -> None:
        self.items.reverse()
        self.replaced(space)

    @method()
    def do_copy(self, space: Space) -> Value:
        return self._fresh(list(self.items))

    do___copy__ = do_copy


@wraps(deque)
def wrap_deque(space: Space, source: Source, obj: Any) -> Value:
    """An existing deque: its class and ``maxlen`` are guarded."""
    space.guard(source, "TYPE_MATCH", deque)
    return space.remember(obj, existing_deque(space, source, obj))


def existing_deque(space: Space, source: Source, obj: Any) -> DequeValue:
    """The content of an existing deque (or of an object of a subclass)."""
    space.guard(source.child("attr", "maxlen"), "EQUALS_MATCH", obj.maxlen)
    value = DequeValue(None, obj.maxlen, source, obj)
    value.space = space
    return value
