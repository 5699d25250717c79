"""Expressions and assignments: texts, slices, stars, comparisons, names and parameters."""

from __future__ import annotations

import functools

import pytest
import torch

from checking import check, said

X = torch.arange(3.0)


class Bare:
    """No attributes of its own."""


def attributes_in_a_format(x):
    one = Bare()
    one.space, one.value = 3, [1, "b"]
    classes = "{c.__class__.__name__} {c.__doc__} {1.__class__} {0[0].__class__}", ([x], 1)
    texts = classes[0].format(*classes[1], c=one), "{0.space:>4} {0.value[1]!r}".format(one)
    return x + 1, texts, said("{0.nothing}".format, one), "{0.__dict__}".format(one)


def bytearray_is_written(x):
    b = bytearray(b"abc")
    b[0] = 65
    return x + len(b), bytes(b)


def shape_and_dtype_in_an_f_string(x):
    y = x + 1
    s = f"{y.shape} {tuple(y.shape)} {y.dtype} {y.dim()}"
    return y * 2, s


def texts_by_methods(x):
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


def assignment_expressions(x):
    return [y for n in range(4) if (y := n * 2) > 2], (z := x + 1) * z


def nonlocal_counter(x):
    c = 0

    def inc():
        nonlocal c
        c += 1
        return c

    return x + inc() + inc(), c


def starred_assignment(x):
    a, *b, c = range(5)
    d = {**{"a": 1}, "b": 2}
    return x + a + c, [*b, *"xy"], d


def chained_comparisons_as_numbers(x):
    return x + (1 < 2 < 3) + (3 > 2 > 5)


def slices_of_a_list(x):
    l = list(range(10))
    l[2:5] = [0]
    del l[::2]
    return x + len(l), l, l[::-1]


def all_kinds_of_parameters(x):
    def f(a, /, b, *c, d=1, **e):
        return a + b + sum(c) + d + sum(e.values())

    return f(x, 1, 2, 3, d=4, z=5), functools.partial(f, x, b=2)(q=1)


#: (program, graphs, operations captured)
PROGRAMS = [
    (attributes_in_a_format, 1, 1), (bytearray_is_written, 1, 1),
    (shape_and_dtype_in_an_f_string, 1, 2), (texts_by_methods, 1, 1),
    (assignment_expressions, 1, 2), (starred_assignment, 1, 2),
    (chained_comparisons_as_numbers, 1, 2), (slices_of_a_list, 1, 1),
    (all_kinds_of_parameters, 1, 8), (nonlocal_counter, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)
