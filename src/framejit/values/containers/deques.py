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
from framejit.native import c_attribute
from framejit.source import Source
from framejit.values.containers.iterators import DequeIterator
from framejit.values.containers.sequences import ListValue, SequenceValue, load_elements
from framejit.values.core.base import Value, element_as_python, type_name
from framejit.values.core.methods import check_own_iteration, container_of, index_of, method
from framejit.values.core.registry import Result, contents
from framejit.values.core.space import Space


def _elements(obj: Any) -> tuple[Any, ...]:
    """The elements of an instance of a subclass, which may have an ``__iter__`` of its own."""
    return tuple(deque.__iter__(obj))


class DequeValue(ListValue):
    """A deque: a list that forgets at the other end when longer than ``maxlen``."""

    __slots__ = ("maxlen", "version")
    kind: type = deque
    acts = ListValue.acts | {"append", "appendleft", "clear", "popleft", "rotate"}

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

    def as_python(self) -> Any:
        return deque([element_as_python(item) for item in self.items], self.maxlen)

    def load_items(self, space: Space) -> list[Value]:
        obj = self.obj
        assert self.source is not None and obj is not None
        source = self.source.child("call", tuple if type(obj) is deque else _elements)
        self._items = load_elements(space, source, _elements(obj))
        return self._items

    def act(self, space: Space, method: str, *args: Any, **kwargs: Any) -> Any:
        before = self.items
        real = deque(before, self.maxlen)
        iterator = iter(real)
        result = space.run_real(getattr(real, method), *args, **kwargs)
        if self._items is not before:  # by an ``__index__``
            raise GraphBreak("FJ0166", f"a deque changes while {method}() runs")
        self._items = list(real)
        try:
            next(iterator, None)
        except RuntimeError:
            self.version += 1
        self.changed(space)
        return result

    def truth(self, space: Space) -> bool:
        return bool(self.items)

    def len(self, space: Space) -> Value:
        return space.constant(len(self.items))

    def getattr(self, space: Space, name: str) -> Result:
        if name == "maxlen":
            return space.constant(self.maxlen)
        return super().getattr(space, name)

    def getitem(self, space: Space, key: Value) -> Value:
        return SequenceValue.getitem(self, space, key)

    def _index(self, space: Space, key: Value) -> int:
        name = type_name(key.python_type())
        return index_of(space, key, f"sequence index must be integer, not {name!r}")

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
                self.act(space, "__imul__", index_of(space, other))
                return self
            return self._fresh(repeated)
        return None

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        if self._alike(other) is not None:
            check_own_iteration(space, other)
        return super().compare_op(space, op, other)

    def _fresh(self, items: list[Value]) -> DequeValue:
        return DequeValue(list(deque(items, self.maxlen)), self.maxlen)

    # -- methods -----------------------------------------------------------------------------------

    def added(self, space: Space, iterable: Value) -> Iterable[Value]:
        return list(self.items) if iterable.realize() is self else space.each(iterable)

    def do_append(self, space: Space, item: Value) -> None:
        self.act(space, "append", item)

    @method(1)
    def do_extendleft(self, space: Space, iterable: Value) -> None:
        for item in self.added(space, iterable):
            self.act(space, "appendleft", item)

    @method(0, 2)
    def do___init__(
        self, space: Space, iterable: Value | None = None, maxlen: Value | None = None
    ) -> None:
        raise GraphBreak("FJ0133", "calling deque.__init__()")

    @method()
    def do___reversed__(self, space: Space) -> Value:
        return DequeIterator(self, space.step, reverse=True)

    @method()
    def do_copy(self, space: Space) -> Value:
        return self._fresh(list(self.items))

    do___copy__ = do_copy


@contents(deque)
def existing_deque(space: Space, source: Source, obj: Any, cls: type) -> DequeValue:
    """Its ``maxlen`` is guarded."""
    maxlen = c_attribute(obj, "maxlen")
    space.guard(source.child("attr", "maxlen"), "EQUALS_MATCH", maxlen)
    value = DequeValue(None, maxlen, source, obj)
    value.space = space
    return value
