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
    put = SETTER(made)
    return (
        type(put), type(list.append.__get__(items)), put == made.__setattr__,
        list.append.__get__(items) == items.append, list.append.__get__(items) == [].append,
    )  # fmt: skip


def refused():
    put = SETTER(Frozen(1))
    return said(list.append.__get__, 3), said(list.__len__.__get__, 3), said(put, "a")


@pytest.mark.parametrize(
    "program", [frozen_objects, methods_of_containers, what_is_bound, refused]
)  # fmt: skip
def test_program(program):
    check_between(program, graphs=1, ops=2)
