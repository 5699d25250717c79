"""Generators that are closed, thrown into and sent to; and started ones over a break."""

from __future__ import annotations

import pytest
import torch

from checking import check_between, said

X = torch.arange(3.0)


def generate():
    yield 1
    yield 2
    return 3


def thrown_in_many_ways(x):
    made = [generate() for _ in range(8)]
    return (
        said(made[0].throw, ValueError("x"), 3),
        said(made[3].throw, ValueError, ValueError("given")),
        said(made[4].throw, ValueError, (1, 2)),
        said(made[5].throw, KeyError, KeyError),
        next(made[7]), next(made[7]), said(made[7].send, None), said(made[7].send, None),
    )  # fmt: skip


def thrown_what_is_no_error(x):
    return said(generate().throw, 3), said(generate().throw, int), said(generate().throw, "text")


def raises_at_close():
    try:
        yield 1
    except GeneratorExit:
        raise ValueError("other")


def returns_at_close():
    try:
        yield 1
    except GeneratorExit:
        return


def closed_generators(x):
    raising, returning = raises_at_close(), returns_at_close()
    out = [raising.__iter__() is raising, next(raising), next(returning)]
    try:
        raising.close()
    except ValueError as error:
        out += [error.args, type(error.__context__)]
    return out, returning.close(), next(raising, "end"), next(returning, "end"), raising.close()


def thrown_into_a_generator(x):
    def numbers():
        try:
            yield 1
        except ValueError:
            yield 2

    one, other = numbers(), numbers()
    return (
        said(one.throw, ValueError("x")), next(one, "end"), next(other),
        other.throw(ValueError("q")), next(other, "end"), said(other.throw, ValueError("r")),
    )  # fmt: skip


def thrown_into_an_inner_generator(x):
    def inner():
        try:
            yield 1
        except ValueError:
            return 5

    def outer():
        yield (yield from inner())
        yield from [1, 2, 3]

    one = outer()
    return next(one), one.throw(ValueError("q")), next(one), said(one.send, 5)


def many_keywords(first, *rest, k=1, **named):
    yield first
    yield sorted(named.items()), rest, k


def generators_over_a_break(x):
    one, other = many_keywords(1, 2, k=3, z=4), many_keywords(5, y=1)
    print(end="")
    return list(one), list(other)


#: (program, graphs, operations captured)
PROGRAMS = [
    (closed_generators, 1, 2), (thrown_into_a_generator, 1, 2),
    (thrown_into_an_inner_generator, 2, 2), (generators_over_a_break, 2, 2),
    (thrown_in_many_ways, 1, 2), (thrown_what_is_no_error, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
