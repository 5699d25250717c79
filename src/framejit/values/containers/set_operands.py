"""Operands of set operations, and sets made of other containers.

In: values of any iterables. Out: their keys, in the kind of container that CPython would walk, as
that decides the order of the result; the same as an argument for calls that are replayed.
Next: sets.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import TupleValue
from framejit.values.containers.sets import SetValue
from framejit.values.core.base import Value
from framejit.values.core.complaints import SET_ELEMENT
from framejit.values.core.keys import is_plain, key_for, key_of_real, settled
from framejit.values.core.methods import container_of
from framejit.values.core.space import Space


def set_of(space: Space, items: list[Value], cls: type = set) -> SetValue:
    """``set(items)``."""
    made = SetValue((), None, None, cls)
    for item in items:
        made._add(space, made.key(space, item), item)
    return made


def as_set(space: Space, value: Value) -> SetValue | None:
    """A set operand: a set, a frozenset (also a constant one), or None."""
    plain = container_of(value, SetValue)
    if plain is not None:
        return plain
    if value.is_constant and value.python_type() is frozenset:
        real = value.as_python()
        made = SetValue((), None, None, frozenset)
        keys = real if is_plain(real) else frozenset(map(key_of_real, real))
        made._keys = keys  # type: ignore[assignment]  # it is never changed
        made.values = {key_of_real(item): space.constant(item) for item in real}
        made.start = frozenset, [value]
        return made
    return None


class Operand(NamedTuple):
    """Keys in the kind of container that CPython would walk, and their values."""

    keys: Any
    values: dict[Any, Value]
    ordered: bool
    value: Value

    def snapshot(self, space: Space) -> Value:
        """The argument again, to be replayed; what it holds cannot change any more."""
        plain = container_of(self.value, SetValue)
        if plain is not None and plain.source is not None and not plain.mutated:
            return self.value
        if plain is not None:
            return plain.snapshot(space)
        if isinstance(self.keys, frozenset):
            return self.value
        if isinstance(self.keys, dict):
            none = space.constant(None)
            return DictValue({key: (self.values[key], none) for key in self.keys})
        return TupleValue([self.values[key] for key in self.keys])


def operand_of(space: Space, value: Value, use: type | None = SET_ELEMENT) -> Operand:
    """Any iterable as the argument of a set operation."""
    value = value.realize()
    plain = container_of(value, SetValue)
    if plain is None and value.is_constant and value.python_type() is frozenset:
        plain = as_set(space, value)
    if plain is not None:
        return Operand(plain.keys(space), plain.values, plain.order_known(), value)
    if value.python_type() is dict:  # it knows the hashes of its keys
        mapping: Any = value
        with settled(space):
            found = {k: mapping.entry(space, k, "keys") for k in mapping.keys_in_order(space)}
        return Operand(found, found, True, value)
    values: dict[Any, Value] = {}
    keys = []
    for item in space.items(value):
        keys.append(key_for(space, item, use))
        with settled(space):
            values.setdefault(keys[-1], item)
    return Operand(keys, values, True, value)


def copy_as(space: Space, value: Value | None, cls: type) -> SetValue:
    """``cls(value)`` for set and frozenset."""
    if value is None:
        return SetValue((), None, None, cls)
    value = value.realize()
    plain = container_of(value, SetValue)
    if plain is not None and cls is frozenset and plain.cls is frozenset and value is plain:
        return plain
    operand = operand_of(space, value)
    result = SetValue((), None, None, cls)
    if space.user_keys and not isinstance(operand.keys, (set, frozenset, dict)):
        result.apply_one_by_one(space, "union", operand)
        return result
    with settled(space):
        result._keys = set(operand.keys)
        result.values = dict(operand.values)
    result.ordered = operand.ordered
    if type(operand.keys) is not list:
        result.not_grown(space, (cls, [operand.snapshot(space)]))
    return result
