"""What built-in classes and functions refuse, and operands that they seldom get."""

from __future__ import annotations

import collections
import functools
import itertools
import operator
import types
from collections import defaultdict

import pytest
import torch

from checking import check, check_between, said

X = torch.arange(3.0)


class Undecided:
    def __divmod__(self, other):
        return NotImplemented

    def __rdivmod__(self, other):
        return NotImplemented


class Decided(Undecided):
    def __rdivmod__(self, other):
        return "reflected"


class Whole(int):
    def __rdivmod__(self, other):
        return "number"


def divmod_of_all_kinds(x):
    objects = [Undecided(), Decided(), Whole(7), 2, 1.5, 1j, "a", None, [1], {1}]
    return x + 1, [said(divmod, a, b) for a in objects for b in objects]


def arguments_that_vars_and_format_refuse(x):
    seen = []
    for value in (1, 1j, "a", [1], (1, 2), None, len, range(3), object()):
        seen.append(said(vars, value))
        for wrong in (None, 2, 1j, [1], int):
            seen.append(said(format, value, wrong))
    return x + 1, seen


@pytest.mark.parametrize("expression", [
    "[1].__rmul__({})", "[1].__mul__(2.5)", "(1,).__rmul__('a')", "[1].__imul__({})",
    "[1].__add__({})", "(1,).__add__([])", "[x].__mul__(None)", "[x].__add__(x)",
    "collections.deque([1]).__add__([])", "collections.deque([1]).__mul__([])",
    "OfList([1]).__rmul__([])", "OfList([1]).__add__({})", "OfList([1]) + {}", "{} + OfList([1])",
    "None * OfList([1])", "{1}.__or__([])", "{}.__or__([])", "[1].__add__(OfList([2]))",
])  # fmt: skip
def test_operators_of_sequences_as_methods(expression):
    """They raise where the operator would ask the other operand."""
    namespace = {"collections": collections, "OfList": OfList}
    text = f"""def program(x):
    try:
        return {expression}, x + 1
    except TypeError as error:
        return str(error), x + 1
"""
    exec(text, namespace)
    check(namespace["program"], torch.ones(2), graphs=1, ops=1)


class OfList(list):
    pass


class Known:
    known = 1


class Groups(defaultdict):
    def __init__(self, factory):
        super().__init__(factory)


def sets_of_views(x):
    few, many = {"a": 1}, {"a": 1, "b": [2]}
    hashable = {"a": 1, "b": 2}
    return (
        few.items() ^ hashable.items(), hashable.items() ^ few.items(),
        said(operator.xor, few.items(), many.items()),
        few.items() ^ few.keys(), few.keys().isdisjoint(many.keys()),
        many.keys().isdisjoint(few.keys()),
        few.keys().isdisjoint({"x", "y"}), few.keys().isdisjoint(frozenset()),
        few.keys().isdisjoint(["a"]),
        few.items().isdisjoint(many.items()), few.keys().isdisjoint(few.values()),
        said(operator.and_, few.values(), few.keys()), said(few.keys().isdisjoint, [[]]),
    )  # fmt: skip


def read_only_proxies(x):
    proxy = types.MappingProxyType({"a": 1})
    return (
        said(lambda: proxy.items(1)), said(lambda: proxy.get()), said(lambda: proxy.copy(a=1)),
        said(operator.ior, proxy, {"b": 2}), said(operator.ior, proxy, 3),
        said(lambda: proxy.__ior__({})),
        operator.ior({"b": 2}, proxy), proxy | {"b": 2}, {"c": 3} | proxy,
    )  # fmt: skip


def default_factories(x):
    texts = [said(defaultdict, factory) for factory in (3, "a", Known(), [])]
    texts += [said(Groups, 3), said(defaultdict, None), said(defaultdict, 3, {})]
    return texts, Groups(list)["a"], defaultdict(Known().__eq__)


def cached_objects(x):
    made = functools.lru_cache(2)
    return said(functools.cache, 3), said(made, []), said(functools.lru_cache, Known())


def miscounted_arguments(x):
    return (
        said(sorted, [3, 1], zz=2), said(sorted), said(sorted, [1], 2),
        said(sorted, {1: 2}, key=None, zz=1),
        said(sum, [1], zz=1), said(map), said(min, [1], zz=3), said([1].sort, zz=1),
        said(enumerate, [1], zz=1), said(reversed, [1], 2), said(itertools.islice, [1]),
    )  # fmt: skip


def other_receivers(x):
    return (
        said(lambda: list.append(3, 4)), said(lambda: list.__len__({})),
        said(lambda: str.__add__(1, "a")),
        said(lambda: str.upper()), said(lambda: set.add({}, 1)),
        said(lambda: collections.OrderedDict.move_to_end({}, 1)),
    )  # fmt: skip


#: (program, graphs, operations captured)
BETWEEN = [
    (sets_of_views, 1, 2), (read_only_proxies, 1, 2), (default_factories, 1, 2),
    (cached_objects, 1, 2), (miscounted_arguments, 1, 2), (other_receivers, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
PROGRAMS = [
    (divmod_of_all_kinds, 1, 1), (arguments_that_vars_and_format_refuse, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)
