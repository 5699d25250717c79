"""Numbers that are attributes of classes and of Python modules vary like any others."""

from __future__ import annotations

import sys
import types

import pytest
import torch

import framejit
from checking import CountingBackend


def counter_written():
    class C:
        total = 0

    def f(x):
        C.total += 1
        return x + 1

    return f, C


def counter_used():
    class C:
        total = 0

    def f(x):
        C.total += 1
        C.total *= 2
        return x * C.total, C.total, vars(C)["total"], getattr(C, "total"), C().total  # noqa: B009

    return f, C


def counter_of_the_class_of_an_object():
    class C:
        total = 0

    given = C()

    def f(x):
        type(given).total += 1
        given.__class__.total += 1
        return x * given.total

    return f, C


def shadowed_in_a_subclass():
    class C:
        total = 0

    class S(C):
        pass

    def f(x):
        S.total += 1
        return x + 1, C.total, "total" in vars(S), super(S, S()).total

    return f, S


def compared_with_another():
    class C:
        n = 0
        limit = 2

    def f(x):
        C.n += 1
        if C.n > C.limit:
            C.n = 0
            return x - 1
        return x + C.n

    return f, C


def of_a_metaclass():
    class Meta(type):
        count = 0

        def __call__(cls, *args):
            Meta.count += 1
            return super().__call__(*args)

    class C(metaclass=Meta):
        pass

    def f(x):
        C()
        return x + Meta.count

    return f, Meta


def numbers_of_objects():
    class C:
        ids = 0

        def __init__(self):
            self.id = C.ids
            C.ids += 1

    def f(x):
        a, b = C(), C()
        return x * b.id, a.id, b.id, C.ids

    return f, C


def float_over_a_break():
    class C:
        rate = 1.5

    def f(x):
        C.rate += 0.5
        print(end="")
        C.rate -= 0.25
        return x * C.rate, C.rate

    return f, C


def of_a_python_module():
    module = types.ModuleType("counting")
    sys.modules["counting"] = module
    module.calls = 0

    def f(x):
        module.calls += 1
        return x * module.calls, vars(module)["calls"]

    return f, module


@pytest.mark.parametrize(
    "make, graphs",
    [
        (counter_written, 1), (counter_used, 2), (counter_of_the_class_of_an_object, 2),
        (shadowed_in_a_subclass, 1), (compared_with_another, 3), (of_a_metaclass, 2),
        (numbers_of_objects, 2), (float_over_a_break, 2), (of_a_python_module, 2),
    ],
)  # fmt: skip
def test_number(make, graphs):
    eager, owner = make()
    traced, other = make()
    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend)
    for _ in range(10):
        assert str(compiled(torch.ones(2))) == str(eager(torch.ones(2)))
        assert numbers(other) == numbers(owner)
    assert len(backend.graphs) == graphs


def numbers(owner):
    return {name: value for name, value in vars(owner).items() if type(value) in (int, float)}
