"""``super()`` in methods, functions and class bodies, and around breaks."""

from __future__ import annotations

import pytest
import torch

from checking import check, check_between, said

X = torch.arange(3.0)


def super_without_arguments(x):
    def plain(a):
        return super().foo

    def nothing():
        return super().foo

    class Some:
        def deleted(self):
            del self
            return super().foo

        @staticmethod
        def static():
            return super().foo

        @staticmethod
        def other(a):
            return super().foo

    seen = [said(plain, 1), said(nothing), said(Some().deleted), said(Some.static)]
    return x + 1, [*seen, said(Some.other, 1), said(super, Some, 1)]


def super_without_arguments_after_a_break(x):
    def nothing():
        print(end="")
        return super().foo

    class Some:
        @staticmethod
        def static():
            print(end="")
            return super().foo

    return x + 1, said(nothing), said(Some.static)


def test_super_without_arguments_after_a_break() -> None:
    assert check(super_without_arguments_after_a_break, X, graphs=1, ops=1).ops == 1


class PlainA:
    a = 3


class Superior(PlainA):
    def assign(self):
        super().a = 3

    def made(self):
        return said(super, 3, self), said(getattr, super(), "other"), said(super, PlainA, 3)


def super_objects(x):
    one = Superior()
    return said(one.assign), one.made()


def new_of_super(x):
    make = super(Superior, Superior).__new__
    return type(make), make.__class__, type(make(Superior)), said(make), said(make, 3)


def super_in_the_body(x):
    class Made:
        def method(self):
            return super().__repr__

        text = said(method, 3)

    return Made.text


class Step:
    def step(self, x):
        return x + self.n


class Stepping(Step):
    n = 2

    def step(self, x):
        kinds = {self.n for _ in (1, 2)}  # makes a cell of self
        print("between")
        return super().step(x) * len(kinds)


def test_super_after_a_break_where_self_is_a_cell():
    def program(x):
        return Stepping().step(x)

    check(program, torch.ones(2), graphs=1, ops=2)


def super_along_two_bases(x):
    class A:
        def f(self, v):
            return v + 1

    class B(A):
        def f(self, v):
            return super().f(v) * 2

    class C(A):
        def f(self, v):
            return super().f(v) * 3

    class D(B, C):
        def f(self, v):
            return super(D, self).f(v) - 1

    return D().f(x), [c.__name__ for c in D.__mro__]


class Numbers(int):
    @classmethod
    def from_bytes(cls, given):
        found = super().from_bytes
        return found(given, "little") + 1


class Tables(dict):
    @classmethod
    def fromkeys(cls, keys, value=None):
        found = super().fromkeys
        return found([*keys, "more"], value)


def class_methods_in_c_that_super_finds(x):
    n = Numbers.from_bytes(bytes([1, 2]))
    made = Tables.fromkeys("ab", n)
    return x * n, made, type(made) is Tables


#: (program, graphs, operations captured)
PROGRAMS = [
    (super_without_arguments, 1, 1), (super_along_two_bases, 1, 4),
    (class_methods_in_c_that_super_finds, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
BETWEEN = [
    (super_objects, 2, 2), (new_of_super, 1, 2), (super_in_the_body, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
