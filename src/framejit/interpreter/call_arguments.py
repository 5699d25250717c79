"""What a call is given: how that is put together, and the same in a world of its own.

In: the slots of a call. Out: `Arguments`: a key, equal for calls whose arguments are put together
in the same way of tensors with the same metadata, equal constants and existing objects of the same
classes, and what stands in each of these places. What cannot be described so is refused. Next:
call_recordings.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from framejit.graph.fragment import repr_of
from framejit.graph.metadata import Example
from framejit.source import Source
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.slices import SliceValue
from framejit.values.core.base import NULL, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.operations import LazyValue
from framejit.values.core.space import Space
from framejit.values.core.symbolic import SymbolicValue
from framejit.values.identity import is_shared
from framejit.values.objects.cells import CellValue
from framejit.values.objects.functions import FunctionValue, MethodValue
from framejit.values.torch.tensors import TensorValue

#: Constants whose class and value say everything.
_PLAIN = (
    type(None), bool, int, float, complex, str, bytes, type(Ellipsis), torch.dtype, torch.device,
    torch.layout, torch.memory_format,
)  # fmt: skip


class Undescribed(Exception):
    """An argument of a kind that a recording cannot be given."""


class Root:
    """An existing object among the arguments, and where it comes from."""

    __slots__ = ("obj", "source")

    def __init__(self, source: Source, obj: Any) -> None:
        self.source = source
        self.obj = obj


class _Same:
    """Equal to what stands for the same object, which it keeps."""

    __slots__ = ("obj",)

    def __init__(self, obj: Any) -> None:
        self.obj = obj

    def __eq__(self, other: object) -> bool:
        return type(other) is _Same and other.obj is self.obj

    def __hash__(self) -> int:
        return id(self.obj)


class Arguments:
    """The arguments of one call. ``places`` are the values that are no constants, in the order in
    which they are met; ``roots`` the existing objects among them, by place."""

    def __init__(self, space: Space, slots: Sequence[Value | None]) -> None:
        self._space = space
        self._numbers: dict[Any, int] = {}
        self._shared: dict[int, int] = {}
        self.places: list[Value] = []
        self.roots: dict[int, Root] = {}
        #: Places of tensors that the program has computed.
        self.tensors: list[int] = []
        self.slots = slots
        self.key = tuple([self._key(slot) for slot in slots])

    @property
    def objects(self) -> tuple[Any, ...]:
        """The existing objects, as the slots of a guard tree."""
        return tuple([root.obj for root in self.roots.values()])

    def _key(self, value: Value | None) -> Any:
        if value is None or value is NULL:
            return value is None
        if type(value) is LazyValue and value.value is not None:
            value = value.value
        number = self._numbers.get(value)
        if number is not None:
            return "again", number
        if value.source is not None:
            return self._existing(value, value.source)
        if type(value) is ConstantValue:
            known = value.value
            if type(known) not in _PLAIN:
                raise Undescribed
            return type(known), known if is_shared(known) else _Same(known)
        number = self._numbers[value] = len(self.places)
        self.places.append(value)
        describe = _DESCRIBED.get(type(value))
        if describe is None:
            raise Undescribed
        return describe(self, value, number)

    def _existing(self, value: Value, source: Source) -> Any:
        loaded = value if type(value) is LazyValue else self._space.preloaded(source)
        if type(loaded) is not LazyValue:
            raise Undescribed
        example = value.example if isinstance(value, TensorValue) else None
        if example is not None and example.meta is not example.born:
            raise Undescribed
        number = self._numbers[value] = len(self.places)
        self.places.append(value)
        self.roots[number] = Root(source, loaded.obj)
        return "existing", number, type(loaded.obj)

    def _tensor(self, value: TensorValue, number: int) -> Any:
        meta = value.example.meta
        unusual = value.cls is not torch.Tensor or value.assigned_grad is not None
        unusual = unusual or value.namespace is not None or bool(value.hook_dicts)
        if unusual or not meta.is_plain or value.obj is not None:
            raise Undescribed
        if self._shared.setdefault(id(value.example), number) != number:
            raise Undescribed  # two values of one tensor
        self.tensors.append(number)
        return "tensor", number, repr_of(meta) if meta.symbolic else meta

    def _sequence(self, value: ListValue | TupleValue, number: int) -> Any:
        return type(value), value.python_type(), tuple([self._key(item) for item in value.items])

    def _dict(self, value: DictValue, number: int) -> Any:
        plain = value.cls is dict and value.complete and not value.history
        if not plain or any(type(key) is not str for key in value.pairs):
            raise Undescribed
        return dict, tuple([(key, self._key(pair[1])) for key, pair in value.pairs.items()])

    def _slice(self, value: SliceValue, number: int) -> Any:
        return slice, tuple([self._key(part) for part in value.parts()])

    def _cell(self, value: CellValue, number: int) -> Any:
        return types.CellType, self._key(value.contents)

    def _function(self, value: FunctionValue, number: int) -> Any:
        if value.attributes or value.namespace is not None or value.function is not None:
            raise Undescribed
        made_of = (value.defaults, value.kwdefaults, *(value.closure or ()))
        parts = tuple([self._key(part) for part in made_of])
        return types.FunctionType, id(value.code), id(value.globals), value.name, parts

    def _method(self, value: MethodValue, number: int) -> Any:
        return types.MethodType, self._key(value.function), self._key(value.receiver)

    def _number(self, value: SymbolicValue, number: int) -> Any:
        return "number", str(value.sym), value.exact


_Describe = Callable[[Arguments, Any, int], Any]
_DESCRIBED: dict[type, _Describe] = {
    TensorValue: Arguments._tensor, TupleValue: Arguments._sequence, ListValue: Arguments._sequence,
    DictValue: Arguments._dict, SliceValue: Arguments._slice, CellValue: Arguments._cell,
    FunctionValue: Arguments._function, MethodValue: Arguments._method,
    SymbolicValue: Arguments._number,
}  # fmt: skip


class Copies:
    """The same arguments in a space of their own; ``values`` by place."""

    def __init__(self, space: Space, arguments: Arguments) -> None:
        self._space = space
        self._arguments = arguments
        self._made: dict[Value, Value] = {}
        self.roots: list[Source] = []
        self.slots = [None if slot is None else self._copy(slot) for slot in arguments.slots]
        self.values = [self._made[value] for value in arguments.places]
        self._content = [(value, _content(value)) for value in self.values]

    def unchanged(self) -> bool:
        """Has nothing been done to what the program had made?"""
        return all(
            same(content, _content(value))
            for value, content in self._content if value.source is None
        )  # fmt: skip

    def _copy(self, value: Value) -> Value:
        if type(value) is LazyValue and value.value is not None:
            value = value.value
        known = self._made.get(value)
        if known is not None:
            return known
        if value is NULL or (type(value) is ConstantValue and value.source is None):
            return value
        if value.source is not None:
            return self._existing(value, value.source)
        made = self._made[value] = self._new(value)
        return made

    def _existing(self, value: Value, source: Source) -> Value:
        obj = next(r.obj for r in self._arguments.roots.values() if r.source is source)
        root = self._space.slot_source(len(self.roots), source.name)
        root.label = source.name
        self.roots.append(root)
        made = self._made[value] = self._space.load(root, obj)
        return made

    def _new(self, value: Any) -> Value:
        kind = type(value)
        if kind is TensorValue:
            builder = self._space.builder
            example = Example(builder.world, value.example.meta)
            imagined = torch.empty(0, device="meta")
            return TensorValue(*builder.add_input("given", imagined, example))
        if kind is SymbolicValue:
            return SymbolicValue(value.sym, value.exact)
        if kind is ListValue:
            return ListValue([self._copy(item) for item in value.items])
        if kind is TupleValue:
            return TupleValue([self._copy(item) for item in value.items], None, value.python_type())
        if kind is DictValue:
            pairs = value.pairs.items()
            return DictValue({key: (pair[0], self._copy(pair[1])) for key, pair in pairs})
        if kind is SliceValue:
            return SliceValue(*[self._copy(part) for part in value.parts()])
        if kind is MethodValue:
            return MethodValue(self._copy(value.function), self._copy(value.receiver))
        return self._cell(value) if kind is CellValue else self._function(value)

    def _cell(self, value: CellValue) -> Value:
        made = self._made[value] = CellValue(None)  # a function may be in its own closure
        made.contents = value.contents and self._copy(value.contents)
        return made

    def _function(self, value: FunctionValue) -> Value:
        made = self._made[value] = FunctionValue(value.code, value.globals, name=value.name)
        made.defaults = value.defaults and self._copy(value.defaults)
        made.kwdefaults = value.kwdefaults and self._copy(value.kwdefaults)
        made.closure = [self._copy(cell) for cell in value.closure or ()]  # type: ignore[misc]
        return made


def _content(value: Value) -> list[Any]:
    """What a value that the program made consists of."""
    if isinstance(value, (ListValue, TupleValue)):
        return list(value.items)
    if isinstance(value, DictValue):
        return [*value.pairs, *[pair[1] for pair in value.pairs.values()]]
    if isinstance(value, CellValue):
        return [value.contents]
    if isinstance(value, FunctionValue):
        return [*value.attributes, value.namespace, value.name, value.code]
    if isinstance(value, TensorValue):
        return [value.example.meta, value.assigned_grad, value.hook_dicts, value.namespace]
    return []


def same(one: list[Any], two: list[Any]) -> bool:
    """The same objects, in the same order."""
    return len(one) == len(two) and all(a is b for a, b in zip(one, two, strict=True))
