"""Lists and tuples (also torch.Size and struct sequences).

In: existing sequences with their sources, or elements put together by the captured program. Out:
their operations and methods. A sourced list is read lazily: an index guards the presence of that
element, an append nothing at all; what needs the whole list guards its length.
Next: iterators, codegen.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from framejit.source import Source
from framejit.values.containers.slices import SliceValue, compare_items, to_slice
from framejit.values.core import complaints
from framejit.values.core.amounts import check_count
from framejit.values.core.base import Value, element_as_python, type_name
from framejit.values.core.constants import new_number
from framejit.values.core.keys import key_of
from framejit.values.core.methods import (
    ContainerValue,
    Element,
    container_of,
    elements,
    index_of,
    listed,
    method,
)
from framejit.values.core.operations import LazyValue
from framejit.values.core.registry import (
    CONTENTS,
    Result,
    contents,
    makes,
    wraps,
    wraps_classes,
)
from framejit.values.core.space import Space
from framejit.values.core.symbolic import fix_length, wrap_length

#: Methods whose first argument is a position, or a number of steps.
_BY_INDEX = frozenset({"insert", "pop", "rotate"})
_PLAIN = (int, str, bool, float, complex, bytes, type(None))


class SequenceValue(ContainerValue):
    """What lists and tuples share. ``items`` is a plain Python list of values."""

    __slots__ = ()
    items: list[Value]
    #: The builtin class of the real container.
    kind: type

    def items_now(self, space: Space) -> list[Value] | None:
        return self.items

    def len(self, space: Space) -> Value:
        return space.constant(len(self.items))

    def iter(self, space: Space) -> Value:
        return space.iter_sequence(self)

    def contains(self, space: Space, item: Value) -> Value:
        item = item.realize()
        return space.constant(any(space.equal(element, item) for element in self.items))

    def pick(self, space: Space, index: slice) -> Value:
        """A new sequence of the same kind with the sliced elements."""
        raise NotImplementedError

    def getitem(self, space: Space, key: Value) -> Value:
        index = self._index(space, key)
        if type(index) is slice:
            return self.pick(space, index)
        try:
            return self.items[index]
        except IndexError:
            return space.raise_error(IndexError, f"{self.kind.__name__} index out of range")

    def _index(self, space: Space, key: Value) -> Any:
        """An index or a slice."""
        key = key.realize()
        if type(key) is SliceValue:
            return to_slice(space, key)
        if key.is_constant:
            index = key.as_python()
            if type(index) is int:
                return index
        own, kind = self.kind.__name__, type_name(key.python_type())
        return index_of(space, key, f"{own} indices must be integers or slices, not {kind}")

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        plain = self._alike(other)
        if plain is None:
            return None
        return compare_items(space, op, self.kind, self.items, plain.items)

    def _alike(self, other: Value) -> SequenceValue | None:
        """The content of another one whose builtin class is the same."""
        plain = container_of(other, type(self))
        return plain if type(plain) is type(self) else None

    def concatenated(self, other: Value) -> list[Value] | None:
        """The elements of ``self + other``; None when ``other`` may compute it itself."""
        plain = self._alike(other)
        return None if plain is None else self.items + plain.items

    def repeat(self, space: Space, other: Value) -> list[Value] | None:
        """The elements of ``self * other``; None when ``other`` is not a number of times."""
        kind = other.python_type()
        if hasattr(kind, "__index__") and not issubclass(kind, torch.Tensor):
            times = index_of(space, other)
            check_count(len(self.items) * times)
            return self.items * times
        return None

    @method(1, 3)
    def do_index(
        self, space: Space, item: Value, start: Value | None = None, stop: Value | None = None
    ) -> Value:
        first = 0 if start is None else index_of(space, start)
        last = len(self.items) if stop is None else index_of(space, stop)
        return space.constant(self._find(space, "index", item, slice(first, last)))

    def _find(self, space: Space, method: str, item: Value, part: slice = slice(None)) -> int:
        """Where an element is that equals ``item``; if nowhere, the complaint of the method."""
        items, item = self.items, item.realize()
        for position in range(*part.indices(len(items))):
            if space.equal(items[position], item):
                return position
        space.run_real(getattr(self.kind(), method), Element(space, item))
        raise AssertionError

    @method(1)
    def do_count(self, space: Space, item: Value) -> Value:
        item = item.realize()
        return space.constant(sum(space.equal(element, item) for element in self.items))


class ListValue(SequenceValue):
    """A list. For an existing one that was not looked at, ``tail`` holds what was appended.

    ``loaded`` is False while the existing elements are unknown; then ``tail`` is all that changed.
    """

    __slots__ = ("_items", "obj", "space", "tail")
    kind: type = list
    #: The methods that `act` leaves to the real container.
    acts = frozenset({"insert", "pop", "reverse"})

    def __init__(
        self, items: list[Value] | None, source: Source | None = None, obj: list[Any] | None = None
    ) -> None:
        self._items = items
        self.source = source
        self.obj = obj
        self.mutated = False
        self.tail: list[Value] = []
        #: Set for an existing list: loading its elements adds guards.
        self.space: Space | None = None

    def python_type(self) -> type:
        return self.kind

    def act(self, space: Space, method: str, *args: Any, **kwargs: Any) -> Any:
        """Do to the elements what a method of the real container does."""
        result = space.run_real(getattr(self.items, method), *args, **kwargs)
        self.changed(space)
        return result

    def as_python(self) -> list[Any]:
        return [element_as_python(item) for item in self.items]

    @property
    def loaded(self) -> bool:
        """Whether all elements are known (in ``items``)."""
        return self._items is not None

    def load_items(self, space: Space) -> list[Value]:
        """Look at the whole list: its length is guarded, its elements are not yet."""
        source, obj = self.source, self.obj
        assert source is not None and obj is not None
        values = load_elements(space, source, list.__getitem__(obj, slice(None)))
        fix_length(space, source, list)
        self._items, self.tail = values + self.tail, []
        return self._items

    @property
    def items(self) -> list[Value]:  # type: ignore[override]
        """The elements, in a list that may be changed by whoever then calls `changed`."""
        items = self._items
        if items is None:
            assert self.space is not None
            items = self.load_items(self.space)
        return items

    def truth(self, space: Space) -> bool:
        if self._items is not None:
            return bool(self._items)
        if self.tail:
            return True
        assert self.obj is not None
        answer = list.__len__(self.obj) > 0
        space.guard(self.source, "BOOL_MATCH", answer)
        return answer

    def len(self, space: Space) -> Value:
        if self._items is None:
            assert self.obj is not None and self.source is not None
            before = wrap_length(space, self.source, list, self.obj)
            return space.now(space.binary("+", before, space.constant(len(self.tail))))
        return space.constant(len(self._items))

    def getitem(self, space: Space, key: Value) -> Value:
        key = key.realize()
        if self._items is None and key.is_constant:
            index = key.as_python()
            assert self.obj is not None and self.source is not None
            if type(index) is int and 0 <= index < list.__len__(self.obj):
                child = self.source.child("index", index)
                space.guard(child, "PRESENT")
                return space.load(child, list.__getitem__(self.obj, index))
        return super().getitem(space, key)

    def pick(self, space: Space, index: slice) -> Value:
        return ListValue(space.run_real(operator.getitem, self.items, index))

    def setitem(self, space: Space, key: Value, value: Value) -> None:
        index = self._index(space, key)
        if type(index) is slice:
            if index.step == 0:
                space.run_real(index.indices, 0)
            new: Any = listed(space, value, complaints.no_iterable_for_slice(index.step))
        else:
            new = value
        self.act(space, "__setitem__", index, new)

    def delitem(self, space: Space, key: Value) -> None:
        self.act(space, "__delitem__", self._index(space, key))

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        if op == "+":
            if inplace:
                self.do_extend(space, other)
                return self
            joined = None if reflected else self.concatenated(other)
            return None if joined is None else ListValue(joined)
        if op == "*":
            repeated = self.repeat(space, other)
            if repeated is None:
                return None
            if inplace:
                self.items[:] = repeated
                self.changed(space)
                return self
            return ListValue(repeated)
        return None

    # -- methods -----------------------------------------------------------------------------------

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        if name not in self.acts:
            return super().call_method(space, name, args, kwargs)
        given: list[Any] = [*args]
        if given and name in _BY_INDEX:
            given[0] = Element(space, args[0])
        result = self.act(space, name, *given, **kwargs)
        return space.constant(None) if result is None else result

    @method(1)
    def do_append(self, space: Space, item: Value) -> None:
        (self.tail if self._items is None else self._items).append(item)
        self.changed(space)

    @method(1)
    def do_extend(self, space: Space, iterable: Value) -> None:
        for item in self.added(space, iterable):
            self.do_append(space, item)

    def added(self, space: Space, iterable: Value) -> Iterable[Value]:
        """The elements to add; of the list itself only those that are there now."""
        return list(self.items) if iterable.realize() is self else elements(space, iterable)

    @method(1)
    def do_remove(self, space: Space, item: Value) -> None:
        self.act(space, "__delitem__", self._find(space, "remove", item))

    @method()
    def do_clear(self, space: Space) -> None:
        self._items = []
        self.changed(space)

    @method()
    def do_copy(self, space: Space) -> Value:
        return ListValue(list(self.items))

    @method(0, 0, "key", "reverse")
    def do_sort(
        self, space: Space, key: Value | None = None, reverse: Value | None = None
    ) -> Result:
        return space.sort_in_place(self, key, reverse)

    @method()
    def do___reversed__(self, space: Space) -> Value:
        return space.reversed_sequence(self)

    @method(0, 1)
    def do___init__(self, space: Space, iterable: Value | None = None) -> None:
        self.do_clear(space)
        if iterable is not None:
            self.do_extend(space, iterable)


class TupleValue(SequenceValue):
    """A tuple, a ``torch.Size`` or a struct sequence (``cls``).

    It counts as constant when all elements are. To find that out, elements nobody has looked at
    are looked at (and so guarded) only when every one of them is a plain number, string or None.
    """

    __slots__ = ("cls", "items", "obj")
    kind: type = tuple

    def __init__(
        self,
        items: list[Value],
        source: Source | None = None,
        cls: type = tuple,
        obj: Any = None,
    ) -> None:
        self.items = items
        self.source = source
        self.cls = cls
        self.obj = obj

    @property
    def is_constant(self) -> bool:  # type: ignore[override]
        for item in self.items:
            if item.is_open:
                return False
            if type(item) is LazyValue and item.value is None:
                if not _plain(item.obj):
                    return False
            elif not item.realize().is_constant:
                return False
        if self.cls is not tuple and self.cls is not torch.Size:
            return False
        return all(item.realize().is_constant for item in self.items)

    def python_type(self) -> type:
        return self.cls

    def sample(self) -> Any:
        return self.cls() if self.cls is torch.Size else ()

    def as_python(self) -> Any:
        return self.cls([element_as_python(item) for item in self.items])

    def hash_key(self, space: Space) -> Any:
        """The key that this tuple is in a dict or set."""
        return tuple(key_of(space, item) for item in self.items)

    def truth(self, space: Space) -> bool:
        return bool(self.items)

    def getattr(self, space: Space, name: str) -> Result:
        if self.cls is not tuple and self.cls is not torch.Size:
            fields = field_names(self.cls)
            if name in fields:
                return self.items[fields.index(name)]
        return super().getattr(space, name)

    def pick(self, space: Space, index: slice) -> Value:
        picked = space.run_real(operator.getitem, self.items, index)
        if self.cls is tuple and len(picked) == len(self.items) and index.step in (None, 1):
            return self
        return TupleValue(picked, None, torch.Size if self.cls is torch.Size else tuple)

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        kind = torch.Size if self.cls is torch.Size else tuple
        if op == "+" and reflected:  # only torch.Size has __radd__
            plain = container_of(other, TupleValue)
            return None if plain is None else TupleValue(plain.items + self.items, None, kind)
        made: list[Value] | None = None
        if op == "+":
            made = self.concatenated(other)
        elif op == "*":
            made = self.repeat(space, other)
        if made is None:
            return None
        for operand in (self, other):  # CPython makes no copy of a tuple
            if type(operand) is TupleValue and operand.cls is kind is tuple:
                if len(made) == len(operand.items):
                    return operand
        return TupleValue(made, None, kind)

    @method()
    def do___getnewargs__(self, space: Space) -> Value:
        return TupleValue([TupleValue(self.items)])

    @method()
    def do_numel(self, space: Space) -> Value:
        total = space.constant(1)
        for item in self.items:
            total = space.now(space.binary("*", total, item))
        return total

    @method(0)
    def do___hash__(self, space: Space) -> Value:
        return space.constant(hash(self.as_python()))


def constant_tuple(space: Space, obj: tuple[Any, ...], source: Source) -> TupleValue:
    """A tuple of constants whose content needs no guard of its own."""
    known = space.preloaded(source)
    if known is None:
        items = [
            constant_tuple(space, item, source.child("index", i)) if type(item) is tuple
            else space.constant(item)
            for i, item in enumerate(obj)
        ]  # fmt: skip
        known = TupleValue(items, source, tuple, obj)
        space.preload(source, known)
    assert isinstance(known, TupleValue)
    return known


def code_constant(space: Space, obj: tuple[Any, ...]) -> Value:
    """A tuple among the constants of code, which is one object in all calls."""
    return constant_tuple(space, obj, space.const_source(obj, "const tuple"))


def _plain(obj: Any) -> bool:
    return type(obj) in _PLAIN or (type(obj) in (tuple, torch.Size) and all(map(_plain, obj)))


@functools.cache
def field_names(cls: type) -> tuple[str, ...]:
    """The names of a struct sequence's fields, in order."""
    return tuple(getattr(cls, "__match_args__", ()))


def is_struct_sequence(cls: type) -> bool:
    """Whether ``cls`` is a C-level named tuple, such as what ``torch.max(x, 0)`` returns."""
    return tuple in cls.__bases__ and hasattr(cls, "n_sequence_fields")


def load_elements(space: Space, source: Source, items: Sequence[Any]) -> list[Value]:
    """The elements of an existing sequence; their number is guarded."""
    check_count(len(items))
    space.guard(source, "LEN_MATCH", len(items))
    return [space.load(source.child("index", i), item) for i, item in enumerate(items)]


@contents(list)
def existing_list(space: Space, source: Source, obj: list[Any], cls: type) -> ListValue:
    value = ListValue(None, source, obj)
    value.space = space
    return value


@wraps(tuple, torch.Size)
def wrap_tuple(space: Space, source: Source, obj: tuple[Any, ...]) -> Value:
    """An existing tuple: class and length are guarded."""
    space.guard(source, "TYPE_MATCH", type(obj))
    return existing_tuple(space, source, obj, type(obj))


def existing_tuple(
    space: Space, source: Source, obj: tuple[Any, ...], cls: type = tuple
) -> TupleValue:
    """The content of an existing tuple (or of an object of a subclass)."""
    values = load_elements(space, source, tuple.__getitem__(obj, slice(None)))
    return TupleValue(values, source, cls, obj)


wraps_classes(is_struct_sequence)(wrap_tuple)
CONTENTS[tuple] = existing_tuple


@makes(tuple, torch.Size)
def _constant_tuple(space: Space, obj: tuple[Any, ...]) -> Value:
    return TupleValue([space.constant(item) for item in obj], None, type(obj))


@makes(list)
def _constant_list(space: Space, obj: list[Any]) -> Value:
    return ListValue([space.constant(item) for item in obj])


def shape_value(space: Space, shape: Any) -> Value:
    """``tensor.shape``, made anew with its sizes."""
    return TupleValue([new_number(space, size) for size in shape], None, torch.Size)
