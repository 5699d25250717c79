"""``__new__`` and ``__init__``: which arguments and classes they take."""

from __future__ import annotations

import functools
import warnings

import pytest
import torch

from checking import check, check_between, said

X = torch.arange(3.0)


def objects_made_by_the_wrong_class(x):
    class Names(dict):
        pass

    seen = [
        said(object.__new__, cls) for cls in (int, list, str, Names, Exception, torch.Tensor, 3)
    ]
    seen += [said(tuple.__new__, list), said(int.__new__, bool), said(list.__new__, list)]
    seen.append(said(object.__new__))
    return x + 1, seen, type(dict.__new__(Names)).__name__, int.__new__(int, 3)


class TwoMethods:
    def m(self):
        return 1

    def n(self):
        return 2


class OwnNew:
    def __new__(cls, *args, **kwargs):
        return super().__new__(cls)


class OwnInit:
    def __init__(self, *args):
        super().__init__()


class Passing:
    def __init__(self, *args):
        super().__init__(*args)


class PassingNew:
    def __new__(cls, *args):
        return object.__new__(cls, *args)


class Both:
    def __new__(cls, *args):
        return object.__new__(cls)

    def __init__(self, *args):
        object.__init__(self, *args)


def arguments_of_object(x):
    out = []
    for cls in (TwoMethods, OwnNew, OwnInit, Passing, PassingNew, Both, object):
        for args in ((), (1,), (1, 2)):
            for call in (
                lambda cls=cls, args=args: type(object.__new__(cls, *args)).__name__,
                lambda cls=cls, args=args: type(cls(*args)).__name__,
                lambda cls=cls, args=args: object.__init__(object.__new__(cls), *args),
            ):
                out.append(said(call))
    return out, said(lambda: TwoMethods(a=1)), said(lambda: object.__new__(OwnNew, a=1))


class InitIsClass:
    __init__ = TwoMethods


class InitIsPartial:
    __init__ = functools.partial(len, [1, 2])


class InitIsProperty:
    @property
    def __init__(self):
        return lambda *args: args or None


def returned_by_init(x):
    return (
        said(InitIsClass), said(InitIsPartial), type(InitIsProperty()).__name__,
        said(InitIsProperty, 1), type(TwoMethods.__new__).__name__, TwoMethods.__class__,
    )  # fmt: skip


class PlainA:
    a = 3


def news_of_values(x):
    return (
        said(lambda: list.__new__(PlainA)), said(lambda: object.__new__(dict)),
        said(lambda: object.__new__(3)), said(lambda: object.__new__()),
        said(lambda: object.__new__([x])),
    )  # fmt: skip


def classes_of_parts(x):
    return (
        said(type, "A", (), {}, 3), said(type, "A"), type("B", (PlainA,), {"z": 1}).z,
        said(type, "C", (), [("a", 1)]), said(type),
    )  # fmt: skip


def a_partial_warns():
    """In CPython 3.13 one in a class warns that it will be a method: between two graphs."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        getattr(object.__new__(InitIsPartial), "__init__", None)
    return bool(seen)


PARTIALS = 1 + a_partial_warns()
#: (program, graphs, operations captured)
BETWEEN = [
    (arguments_of_object, 1, 2), (returned_by_init, PARTIALS, 2), (news_of_values, 2, 2),
    (classes_of_parts, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
PROGRAMS = [
    (objects_made_by_the_wrong_class, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)
