"""Partial functions, caches and single dispatch: made, changed and asked."""

from __future__ import annotations

import copy
import functools
import operator

import pytest
import torch

import framejit
from checking import check, check_between, said

X = torch.arange(3.0)


def dispatcher_made_and_filled(x):
    @functools.singledispatch
    def kind(value):
        return 0

    before = kind(1)

    @kind.register
    def _(value: int):
        return 1

    kind.register(str, lambda value: 2)
    return x + kind(1) + kind("a") + before


def filled_meanwhile():
    """A program that registers a case between two calls."""

    @functools.singledispatch
    def kind(value):
        return "other"

    def program(x):
        before = kind("a"), kind(1)
        kind.register(int, lambda value: "int")
        return x + 1, before, kind(1), kind(True), kind(2.5)

    return program


def methods_filled_meanwhile():
    """The same for a method."""

    class Kinds:
        @functools.singledispatchmethod
        def kind(self, value):
            return "other"

    def program(x):
        kinds = Kinds()
        before = kinds.kind(1)
        Kinds.kind.register(int, lambda self, value: "int")
        return x + 1, before, kinds.kind(1), kinds.kind("a")

    return program


def test_dispatcher_made_in_the_program() -> None:
    check(dispatcher_made_and_filled, X, graphs=1, ops=3)


@pytest.mark.parametrize("make", [filled_meanwhile, methods_filled_meanwhile])
def test_dispatcher_filled_meanwhile(make) -> None:
    check(make(), X, make=make, graphs=1, ops=1)


def keywords_of_a_partial(x):
    made = functools.partial(dict, 1, a=1)
    named, positional = made.keywords, made.args
    named["b"] = x
    nested = functools.partial(made, c=3)
    copied = copy.copy(nested)
    named["a"] = 2
    return x + 1, made, named, positional, nested, copied


def keywords_of_a_partial_are_called(x):
    made = functools.partial(dict, a=1)
    made.keywords["b"] = 2
    first = made()
    del made.keywords["a"]
    print(first)
    made.keywords["c"] = 3
    return x + 1, made, first, made(d=4)


def test_keywords_of_a_partial_are_one_object() -> None:
    compiled = framejit.compile(keywords_of_a_partial, backend="eager", fullgraph=True)
    _, made, named, positional, nested, copied = compiled(X)
    assert made.keywords is named and made.args is positional
    assert named == {"a": 2, "b": X} and list(named) == ["a", "b"]
    for other in (nested, copied):
        assert other.keywords == {"a": 1, "b": X, "c": 3} and other.args == (1,)


def reduce_and_join(x):
    return (
        said(functools.reduce), said(functools.reduce, max), said(functools.reduce, max, [1], 2, 3),
        said(operator.methodcaller), functools.reduce(max, [1, 2], 5), said("".join),
        said(",".join, ["a"], 1),
    )  # fmt: skip


@functools.singledispatch
def dispatched(a):
    return "any"


@dispatched.register(int)
def _of_int(a):
    return "int"


def dispatched_on_new_classes(x):
    class Local:
        pass

    return dispatched(3), dispatched("a"), dispatched(Local())


@functools.lru_cache
def cached(a):
    return a * 2


cached.mark = 1


def marks_of_caches(x):
    cached.mark = 5
    out = cached.mark
    cached.mark = 1
    made = functools.lru_cache(lambda a: a + 1)
    made.mark = 3
    return out, said(getattr, cached, "other"), made(1), made.mark, said(lambda: made.other)


PART = functools.partial(dict, a=1)


def attributes_of_partials(x):
    new = functools.partial(len)
    return said(setattr, new, "func", max), said(setattr, PART, "args", ()), PART()


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


#: (program, graphs, operations captured)
PROGRAMS = [
    (keywords_of_a_partial_are_called, 1, 1), (recursive_lru_cache, 1, 1),
    (cached_tensors, 1, 4),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
BETWEEN = [
    (dispatched_on_new_classes, 2, 2), (marks_of_caches, 1, 2),
    (attributes_of_partials, 2, 2), (reduce_and_join, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
