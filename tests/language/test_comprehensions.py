"""Comprehensions, which are part of the function's code in newer releases: their variables, breaks
inside them, errors that leave them."""

from __future__ import annotations

import pytest
import torch

from checking import check

X = torch.arange(4.0)


def one_name_in_several(x):
    first = [i + x for i in range(2)]
    makers = [lambda: i * x for i in range(3)]
    return first, [maker() for maker in makers], [[i for i in range(i)] for i in range(3)]


def names_of_the_function_stay(x):
    i, y = x + 1, "kept"
    a = [i * 2 for i in range(2)]
    b = {y: lambda: y for y in range(2)}
    return i, y, a, [f() for f in b.values()]


def argument_as_variable(x, n=3):
    return [n * x for n in range(n)], n, {n for n in (n, n)}


def captured_outside_and_inside(x):
    n = 2

    def outer():
        return n * x

    made = [lambda: (n, x) for n in range(2)]
    n += 1
    return outer(), [f()[0] for f in made], n


def error_leaves_one(x):
    kept = "before"
    try:
        found = [(x / kept, lambda: kept) for kept in (1.0, "none")]
    except TypeError:
        found = [kept]
    return found, kept


def unbound_after_one(x):
    try:
        made = [value for value in range(3)]
        return made, value  # noqa: F821
    except NameError as error:
        return x + 1, type(error).__name__


def conditions_and_nesting(x):
    return {
        (a, b): [c + x for c in range(b) if c != a] for a in range(3) if a for b in range(a + 1)
    }


@pytest.mark.parametrize("function", [
    one_name_in_several, names_of_the_function_stay, argument_as_variable,
    captured_outside_and_inside, error_leaves_one, conditions_and_nesting,
])  # fmt: skip
def test_variables(function):
    check(function, X, graphs=1)


def test_no_variable_is_left():
    check(unbound_after_one, X, graphs=1)


def breaks_in_the_first(x):
    i = "kept"
    made = [(i, print(end=""), x * i) for i in range(3)]
    return i, [part[2] for part in made]


def breaks_in_one_with_a_cell(x):
    made = [(lambda: x * i, print(end="")) for i in range(3)]
    plain = [(i, print(end="")) for i in range(2)]
    return [f() for f, _ in made], plain


def breaks_in_an_inner_one(x):
    return [[print(end="") or x * i + j for i in range(j)] for j in range(3)], x + 1


def breaks_before_an_error(x):
    i = 5
    try:
        return [x / (print(end="") or i) if i != 2 else [][i] for i in range(1, 4)]
    except IndexError:
        return x + i


def breaks_on_data(x):
    return [i * x for i in range(3) if x.sum() > i], [i for i in (x.max() > 2, 3)]


@pytest.mark.parametrize("function", [
    breaks_in_the_first, breaks_in_one_with_a_cell, breaks_in_an_inner_one, breaks_before_an_error,
    breaks_on_data,
])  # fmt: skip
def test_breaks(function):
    counted = check(function, X)
    assert len(counted.graphs) >= 1
