"""Class statements in the program: bodies, bases, metaclasses, slots and special methods."""

from __future__ import annotations

import abc
import typing

import pytest
import torch

from checking import check, check_between, said

X = torch.arange(3.0)


class PlainA:
    a = 3


def subclasses_told(x):
    return (
        said(object.__init_subclass__, a=3), said(PlainA.__init_subclass__, a=3),
        PlainA.__init_subclass__(), PlainA.__subclasshook__(int),
    )  # fmt: skip


def descriptors_in_the_body(x):
    class Made:
        def get(self):
            return 1

        one, empty = property(get), property()
        alone, bound = staticmethod(get), classmethod(get)
        called = alone(3)
        parts = one.fget is get, one.fset, one.fdel, empty.fget, alone.__func__ is get
        wrapped = alone.__wrapped__ is get, bound.__wrapped__ is get
        refused = said(bound, 3), said(one), said(property, 1, 2, 3, 4, 5), said(staticmethod)
        texts = one.__doc__, alone.__name__, said(getattr, one, "other")

    return Made.called, Made.parts, Made.wrapped, Made.refused, Made.texts, Made().one


def names_in_the_body(x):
    v = 3

    class Made:
        if x.dim() == 1:
            v = 4
        w = v
        try:
            del missing
        except NameError as error:
            text = str(error)

    def inner():
        class Inner:
            z = v

        return Inner.z

    return Made.w, Made.text, inner()


class FirstMeta(type):
    pass


class SecondMeta(type):
    pass


class OfFirst(metaclass=FirstMeta):
    pass


class OfSecond(metaclass=SecondMeta):
    pass


def bases_refused(x):
    out = []
    try:

        class Mixed(typing.NamedTuple, PlainA):
            a: int
    except TypeError as error:
        out.append(str(error))
    try:

        class OfLength(PlainA, metaclass=len):
            pass
    except TypeError as error:
        out.append(str(error))
    try:

        class Both(OfFirst, OfSecond):
            pass
    except TypeError as error:
        out.append(str(error))

    class One(PlainA, OfFirst):
        pass

    return out, type(One).__name__


def computed_slots(x):
    names = ["a", "b"]

    class Made:
        __slots__ = names

    one = Made()
    one.a = 1
    return one.a, said(getattr, one, "other")


def names_that_are_numbers(x):
    return vars(type("C", (), {1: 2}))[1]


def abstract_property(x):
    class A(abc.ABC):
        @property
        @abc.abstractmethod
        def v(self): ...

    class B(A):
        @property
        def v(self):
            return 3

    return x + B().v


def generic_class(x):
    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        def __init__(self, v):
            self.v = v

    return Box[int](x + 1).v, Box(2).v


def protocol_class(x):
    class HasV(typing.Protocol):
        v: int

    class B:
        v = 3

    return x + B().v


def metaclass_that_registers(x):
    reg = {}

    class M(type):
        def __new__(m, name, bases, ns):
            c = super().__new__(m, name, bases, ns)
            reg[name] = c
            return c

    class A(metaclass=M):
        k = 2

    return x + reg["A"].k


def own_class_getitem(x):
    class A:
        def __class_getitem__(cls, k):
            return k * 2

    return x + A[3]


def own_iter_and_next(x):
    class It:
        def __init__(self):
            self.n = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.n += 1
            if self.n > 3:
                raise StopIteration
            return x * self.n

    return sum(It()), list(It())


def new_that_returns_one_object(x):
    class S:
        inst = None

        def __new__(cls):
            if cls.inst is None:
                cls.inst = super().__new__(cls)
            return cls.inst

    return x + (S() is S())


#: (program, graphs, operations captured)
BETWEEN = [
    (descriptors_in_the_body, 2, 2), (names_in_the_body, 1, 2), (bases_refused, 2, 2),
    (computed_slots, 1, 2), (names_that_are_numbers, 2, 2), (subclasses_told, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
PROGRAMS = [
    (abstract_property, 1, 1), (generic_class, 1, 1), (protocol_class, 1, 1),
    (metaclass_that_registers, 1, 1), (own_class_getitem, 1, 1), (own_iter_and_next, 1, 9),
    (new_that_returns_one_object, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)
