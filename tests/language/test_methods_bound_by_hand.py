"""Methods of C classes that are bound by hand: ``object.__setattr__.__get__(obj)``.

The classes that `attrs` makes set their attributes so.
"""

from __future__ import annotations

import pytest

from checking import check_between, said

SETTER, GETTER = object.__setattr__.__get__, dict.__getitem__.__get__


class Frozen:
    def __setattr__(self, name, value):
        raise TypeError("frozen")

    def __init__(self, held):
        put = SETTER(self)
        put("held", held)
        self.__dict__["other"] = 2


class Upper(dict):
    def __getitem__(self, key):
        return "upper"


class Number(int):
    def __add__(self, other):
        return "other"


def frozen_objects():
    made = Frozen([3])
    SETTER(made, Frozen)("more", 4)
    return made, vars(made), said(setattr, made, "held", 1)


def methods_of_containers():
    items, upper = [], Upper(a=1)
    list.append.__get__(items)(1)
    list.append.__get__(items, list)(2)
    return items, GETTER(upper)("a"), upper["a"], int.__add__.__get__(3)(4)


def what_is_bound():
    made, items = Frozen(1), []
    put, add = SETTER(made), int.__add__.__get__(Number(3))
    return (
        type(put), type(add), add(4), Number(3) + 4,
        type(list.append.__get__(items)), put == made.__setattr__,
        list.append.__get__(items) == items.append, list.append.__get__(items) == [].append,
    )  # fmt: skip


class Near:
    """Equality of its own; ``!=`` asks for it by way of object's."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        if not isinstance(other, Near):
            return NotImplemented
        return [1] if abs(self.number - other.number) < 2 else []

    def __ne__(self, other):
        return super().__ne__(other)


def objects_own_where_the_class_has_another():
    one, two, far = Near(1), Near(2), Near(9)
    items = [1]
    equal, unequal = object.__eq__.__get__(items), object.__ne__.__get__({3})
    return (
        equal([1]), equal == items.__eq__, unequal({3}), unequal({4}), unequal(4),
        one != two, one != far, one != 1, object.__ne__(one, two), object.__ne__(one, 1),
        object.__ne__(3, 3), object.__ne__(Frozen, Frozen),
    )  # fmt: skip


def refused():
    put = SETTER(Frozen(1))
    return said(list.append.__get__, 3), said(list.__len__.__get__, 3), said(put, "a")


@pytest.mark.parametrize(
    "program",
    [
        frozen_objects,
        methods_of_containers,
        what_is_bound,
        objects_own_where_the_class_has_another,
        refused,
    ],
)
def test_program(program):
    check_between(program, graphs=1, ops=2)
