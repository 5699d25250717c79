"""Functions, methods, cells and signatures as objects: attributes, comparisons and defaults."""

from __future__ import annotations

import functools
import inspect
import operator
import types

import pytest
import torch

import framejit
from checking import check, check_between, said

X = torch.arange(3.0)


def attributes_of_cells(x):
    def inner():
        return x

    cell = inner.__closure__[0]
    return cell.__class__, said(getattr, cell, "other"), cell.cell_contents


def deleted_attributes_of_functions(x):
    def inner():
        return x

    inner.a = 1
    del inner.a
    return said(delattr, inner, "a"), said(delattr, said, "zz")


class TwoMethods:
    def m(self):
        return 1

    def n(self):
        return 2


def compared_methods(x):
    plain, items = TwoMethods(), [1]
    return (
        said(operator.lt, plain.m, plain.n), plain.m == plain.m, plain.m == plain.n, plain.m != 1,
        said(operator.lt, items.append, items.pop), items.append == items.append,
        items.append == [1].append, items.append != items.pop, items.append == 3,
    )  # fmt: skip


def made_methods(x):
    make = types.MethodType
    return (
        said(make, 1), said(make), said(make, len, None), said(make, 3, 4), said(make, 3, None),
        said(make, len, 1, 2), said(make, len, instance=1), make(lambda one: one, 4)(),
        make(len, [1])(),
    )  # fmt: skip


class Callable:
    def __call__(self, a, b=2):
        pass


def signature_of_a_callable(x):
    return str(inspect.signature(Callable())), torch.cond(True, torch.sin, torch.cos, (x,))


class PlainA:
    a = 3


@framejit.compile(backend="eager")
def compiled(a, b=2):
    return a * b


def compiled_functions(x):
    return (
        compiled.__call__(x), compiled.__wrapped__(x), compiled.__name__, compiled.__defaults__,
        compiled.__get__(x)(), said(lambda: compiled + 1),
        said(lambda: compiled[0]), said(len, compiled),
    )  # fmt: skip


def methods_of_functions(x):
    def f(a=1):
        return a

    f.__defaults__ = (4,)
    out = f()
    del f.__defaults__
    return out, f.__defaults__, f.__get__(3)(), f.__get__(None, int) is f, said(f.__get__)


def filled_and_emptied():
    value = 1

    def read():
        return value

    def delete():
        nonlocal value
        del value

    return read, delete


class PartialCall:
    __call__ = functools.partial(lambda a, b: 3, 1)


def signatures_of_callables(x):
    return str(inspect.signature(PartialCall())), said(
        inspect.signature, PlainA, follow_wrapped=True
    )


def test_cells_are_emptied():
    def make():
        read, delete = filled_and_emptied()
        return lambda x: (delete(), said(read), said(delete), x + 1)

    check(make(), torch.ones(3), make=make, graphs=1, ops=1)


#: (program, graphs, operations captured)
PROGRAMS = [
    (attributes_of_cells, 1, 2), (deleted_attributes_of_functions, 1, 2),
    (compared_methods, 2, 2), (made_methods, 1, 2), (signature_of_a_callable, 1, 3),
    (methods_of_functions, 2, 2), (compiled_functions, 2, 5),
    (signatures_of_callables, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
