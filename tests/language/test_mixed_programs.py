"""Programs that found a bug, and programs with several features at once."""

from __future__ import annotations

import abc
import dataclasses
import enum
import functools
import math
import typing

import pytest
import torch

from checking import check

X = torch.arange(6.0).reshape(2, 3)


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Perm(enum.Flag):
    R = 1
    W = 2


def vars_of_a_module(x):
    return x + len(vars(math)) * 0 + math.__dict__["pi"]


def operators_of_flags(x):
    f = Perm.R | Perm.W
    return x + f.value, Perm.R in f, list(Color)


def recursive_lru_cache(x):
    @functools.lru_cache(None)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return x + fib(10)


def cached_tensors(x):
    @functools.cache
    def g(n):
        return x * n

    return g(2) + g(2) + g(3), g(2) is g(2)


def dir_of_an_enum(x):
    return x + 1, [n for n in dir(Color) if n == "RED"]


def bytearray_is_written(x):
    b = bytearray(b"abc")
    b[0] = 65
    return x + len(b), bytes(b)


def shape_and_dtype_in_an_f_string(x):
    y = x + 1
    s = f"{y.shape} {tuple(y.shape)} {y.dtype} {y.dim()}"
    return y * 2, s


def methods_of_text(x):
    return (
        x + len("a,b".split(",")),
        "ab".center(6, "*"),
        "%s-%d" % ("a", 3),
        "{:>5}".format("x"),
        "a".zfill(3),
        "Ab".swapcase(),
        "abc".translate(str.maketrans("a", "b")),
        "x".encode().decode(),
    )


def match_of_a_dataclass_and_a_list(x):
    @dataclasses.dataclass
    class P:
        a: int
        b: int

    match P(1, 2):
        case P(a=1, b=q):
            r = q
        case _:
            r = 0
    match [1, 2, 3, {"k": 5}]:
        case [a, *rest, {"k": v}]:
            r += a + v
    return x + r


def assignment_expressions(x):
    return [y for n in range(4) if (y := n * 2) > 2], (z := x + 1) * z


def nonlocal_counter(x):
    c = 0

    def inc():
        nonlocal c
        c += 1
        return c

    return x + inc() + inc(), c


G = 1


def global_is_rebound(x):
    global G
    G = G + 1
    try:
        return x + G
    finally:
        G = 1


def starred_assignment(x):
    a, *b, c = range(5)
    d = {**{"a": 1}, "b": 2}
    return x + a + c, [*b, *"xy"], d


def setdefault_of_a_dict(x):
    d = {}
    d.setdefault("a", []).append(x)
    d.update(b=2)
    d.pop("b")
    return d, list(d.items())


def chained_comparisons_as_numbers(x):
    return x + (1 < 2 < 3) + (3 > 2 > 5)


def slices_of_a_list(x):
    l = list(range(10))
    l[2:5] = [0]
    del l[::2]
    return x + len(l), l, l[::-1]


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


def getattr_setattr_and_delattr(x):
    class A:
        def __getattr__(self, n):
            return len(n)

        def __setattr__(self, n, v):
            object.__setattr__(self, n, v * 2)

        def __delattr__(self, n):
            object.__delattr__(self, n)

    a = A()
    a.q = x
    r = a.q + a.hello
    del a.q
    return r, a.q


def own_getattribute(x):
    class A:
        v = 1

        def __getattribute__(self, n):
            return object.__getattribute__(self, n) if n != "w" else 9

    return x + A().v + A().w


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


def all_kinds_of_parameters(x):
    def f(a, /, b, *c, d=1, **e):
        return a + b + sum(c) + d + sum(e.values())

    return f(x, 1, 2, 3, d=4, z=5), functools.partial(f, x, b=2)(q=1)


def all_clauses_of_try(x):
    out = []
    for v in ("1", "q", None):
        try:
            out.append(int(v))
        except ValueError:
            out.append("v")
        except TypeError as e:
            out.append(type(e).__name__)
        else:
            out.append("ok")
        finally:
            out.append("f")
    return x + 1, out


def cause_and_context_of_an_error(x):
    try:
        try:
            {}["k"]
        except KeyError as e:
            raise ValueError("v") from e
    except ValueError as e:
        return x + 1, repr(e.__cause__), e.__context__ is e.__cause__


#: (program, graphs, operations captured)
PROGRAMS = [
    (vars_of_a_module, 1, 2), (operators_of_flags, 1, 1), (recursive_lru_cache, 1, 1),
    (cached_tensors, 1, 4), (dir_of_an_enum, 1, 1), (bytearray_is_written, 1, 1),
    (shape_and_dtype_in_an_f_string, 1, 2), (methods_of_text, 1, 1),
    (match_of_a_dataclass_and_a_list, 1, 1), (assignment_expressions, 1, 2),
    (nonlocal_counter, 1, 2), (global_is_rebound, 1, 1), (starred_assignment, 1, 2),
    (setdefault_of_a_dict, 0, 0), (chained_comparisons_as_numbers, 1, 2), (slices_of_a_list, 1, 1),
    (abstract_property, 1, 1), (generic_class, 1, 1), (protocol_class, 1, 1),
    (metaclass_that_registers, 1, 1), (super_along_two_bases, 1, 4),
    (getattr_setattr_and_delattr, 1, 2), (own_getattribute, 1, 2), (own_class_getitem, 1, 1),
    (own_iter_and_next, 1, 9), (new_that_returns_one_object, 1, 1), (all_kinds_of_parameters, 1, 8),
    (all_clauses_of_try, 1, 1), (cause_and_context_of_an_error, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)
