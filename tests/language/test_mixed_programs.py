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


def p001_module_vars(x):
    return x + len(vars(math)) * 0 + math.__dict__["pi"]


def p002_flag_ops(x):
    f = Perm.R | Perm.W
    return x + f.value, Perm.R in f, list(Color)


def p003_lru_user(x):
    @functools.lru_cache(None)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    return x + fib(10)


def p004_lru_tensor(x):
    @functools.cache
    def g(n):
        return x * n

    return g(2) + g(2) + g(3), g(2) is g(2)


def p005_dir(x):
    return x + 1, [n for n in dir(Color) if n == "RED"]


def p006_bytearray(x):
    b = bytearray(b"abc")
    b[0] = 65
    return x + len(b), bytes(b)


def p007_format_tensor(x):
    y = x + 1
    s = f"{y.shape} {tuple(y.shape)} {y.dtype} {y.dim()}"
    return y * 2, s


def p008_str_methods(x):
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


def p009_matchcls(x):
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


def p010_walrus(x):
    return [y for n in range(4) if (y := n * 2) > 2], (z := x + 1) * z


def p011_nonlocal(x):
    c = 0

    def inc():
        nonlocal c
        c += 1
        return c

    return x + inc() + inc(), c


G = 1


def p012_global(x):
    global G
    G = G + 1
    try:
        return x + G
    finally:
        G = 1


def p013_starred(x):
    a, *b, c = range(5)
    d = {**{"a": 1}, "b": 2}
    return x + a + c, [*b, *"xy"], d


def p014_setdefault(x):
    d = {}
    d.setdefault("a", []).append(x)
    d.update(b=2)
    d.pop("b")
    return d, list(d.items())


def p015_chain(x):
    return x + (1 < 2 < 3) + (3 > 2 > 5)


def p016_slices(x):
    l = list(range(10))
    l[2:5] = [0]
    del l[::2]
    return x + len(l), l, l[::-1]


def p017_abstract_property(x):
    class A(abc.ABC):
        @property
        @abc.abstractmethod
        def v(self): ...

    class B(A):
        @property
        def v(self):
            return 3

    return x + B().v


def p018_generic(x):
    T = typing.TypeVar("T")

    class Box(typing.Generic[T]):
        def __init__(self, v):
            self.v = v

    return Box[int](x + 1).v, Box(2).v


def p019_protocol(x):
    class HasV(typing.Protocol):
        v: int

    class B:
        v = 3

    return x + B().v


def p020_metaclass_registry(x):
    reg = {}

    class M(type):
        def __new__(m, name, bases, ns):
            c = super().__new__(m, name, bases, ns)
            reg[name] = c
            return c

    class A(metaclass=M):
        k = 2

    return x + reg["A"].k


def p021_super_multi(x):
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


def p022_getattr_hooks(x):
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


def p023_getattribute(x):
    class A:
        v = 1

        def __getattribute__(self, n):
            return object.__getattribute__(self, n) if n != "w" else 9

    return x + A().v + A().w


def p024_class_getitem(x):
    class A:
        def __class_getitem__(cls, k):
            return k * 2

    return x + A[3]


def p025_iter_protocol(x):
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


def p026_new_singleton(x):
    class S:
        inst = None

        def __new__(cls):
            if cls.inst is None:
                cls.inst = super().__new__(cls)
            return cls.inst

    return x + (S() is S())


def p027_call_kw(x):
    def f(a, /, b, *c, d=1, **e):
        return a + b + sum(c) + d + sum(e.values())

    return f(x, 1, 2, 3, d=4, z=5), functools.partial(f, x, b=2)(q=1)


def p028_try_all(x):
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


def p029_raise_from(x):
    try:
        try:
            {}["k"]
        except KeyError as e:
            raise ValueError("v") from e
    except ValueError as e:
        return x + 1, repr(e.__cause__), e.__context__ is e.__cause__


#: (program, graphs, operations captured)
PROGRAMS = [
    (p001_module_vars, 1, 2), (p002_flag_ops, 1, 1), (p003_lru_user, 1, 1),
    (p004_lru_tensor, 1, 4), (p005_dir, 1, 1), (p006_bytearray, 1, 1), (p007_format_tensor, 1, 2),
    (p008_str_methods, 1, 1), (p009_matchcls, 1, 1), (p010_walrus, 1, 2), (p011_nonlocal, 1, 2),
    (p012_global, 1, 1), (p013_starred, 1, 2), (p014_setdefault, 0, 0), (p015_chain, 1, 2),
    (p016_slices, 1, 1), (p017_abstract_property, 1, 1), (p018_generic, 1, 1),
    (p019_protocol, 1, 1), (p020_metaclass_registry, 1, 1), (p021_super_multi, 1, 4),
    (p022_getattr_hooks, 1, 2), (p023_getattribute, 1, 2), (p024_class_getitem, 1, 1),
    (p025_iter_protocol, 1, 9), (p026_new_singleton, 1, 1), (p027_call_kw, 1, 8),
    (p028_try_all, 1, 1), (p029_raise_from, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)
