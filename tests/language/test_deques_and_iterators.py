"""Deques and iterators: what their methods do and refuse, how long they say they are, and what they
look like after a break."""

from __future__ import annotations

import itertools
import operator
from collections import deque

import pytest
import torch

from checking import check_between, said

X = torch.arange(3.0)


class Two:
    def __index__(self):
        return 2


def multiplied_deques(x):
    many, none = deque([x, 1, 2], 4), deque([x, 1])
    first = many
    many *= 2
    none *= 0
    return list(many), many is first, none


def refused_by_deques(x):
    empty, full = deque(), deque([x, 2], 2)
    return (
        said(empty.pop), said(empty.popleft), said(full.insert, 0, 3), list(full),
        said(deque, [1], Two()), said(deque, [1], 2.0), deque([1, 2, 3], True),
    )  # fmt: skip


def iterators_of_iterators(x):
    iterators = [
        iter([1, 2]), iter("ab"), iter({1: 2}), iter({3}), reversed([1, 2]), iter(range(3)),
        zip([1], [2], strict=True), map(abs, [1]), enumerate([5]), iter(BySize()),
    ]  # fmt: skip
    return [(one.__iter__() is one, list(one)) for one in iterators]


def lengths_of_iterators(x):
    table, line = {1: 2, 3: 4}, deque([1, x, 3])
    out = []
    for one in (
        iter([1, 2, 3]), iter((1, 2, 3)), iter("abc"), iter(range(4)), iter(table),
        iter(table.items()), reversed([1, 2]), iter(line), reversed(line), iter(b"ab"),
    ):  # fmt: skip
        out += [one.__length_hint__(), next(one) is x, operator.length_hint(one, 9)]
        out += [len(list(one)), one.__length_hint__()]
    return out


def changed_under_their_iterators(x):
    table, some, items = {1: 2, 3: 4}, {1, 2}, [1, 2]
    over_table, over_set, over_list = iter(table), iter(some), iter(items)
    next(over_set)
    table[5] = 6
    some.add(3)
    items.append(3)
    return (
        over_list.__length_hint__(), said(next, over_table), said(next, over_set),
        said(next, over_set), operator.length_hint(over_list),
    )  # fmt: skip


def ended_iterators(x):
    items, some = [1, 2, 3], {1, 2}
    called, over_set = iter(items.pop, 1), iter(some)
    chained, numbers = itertools.chain.from_iterable([[1], [2]]), iter([1, 2, 3, 4, 5])
    part = itertools.islice(numbers, 1, 3)
    out = [list(called), list(over_set), list(chained), list(part)]
    items.append(7)
    some.add(9)
    return out, [next(one, "end") for one in (called, over_set, chained, part)], list(numbers)


class ByIndex:
    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return index * 2


class BySize(ByIndex):
    def __len__(self):
        return 3


def iterators_by_index(x):
    plain, sized = iter(ByIndex()), iter(BySize())
    out = [next(plain), next(sized), plain.__length_hint__(), sized.__length_hint__()]
    return out, list(sized), sized.__length_hint__(), operator.length_hint(sized)


class Hinting:
    def __init__(self, answer):
        self.answer = answer

    def __iter__(self):
        return iter([1, 2])

    def __length_hint__(self):
        print("asked")
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class HintingAfter(Hinting):
    def __len__(self):
        raise TypeError("no length")


class NeverHinting(Hinting):
    def __len__(self):
        raise KeyError("no length")


def length_hints(x):
    answers = [TypeError("a"), ValueError("b"), 5, -1, "a", NotImplemented, True]
    return [
        said(function, cls(answer)) for function in (list, operator.length_hint)
        for cls in (Hinting, HintingAfter, NeverHinting) for answer in answers
    ]  # fmt: skip


def length_hints_with_defaults(x):
    return (
        said(operator.length_hint, Hinting(TypeError("t")), 4), said(operator.length_hint, 3, 7),
        said(operator.length_hint, 3, "7"), said(operator.length_hint, [1], "7"),
        said(operator.length_hint, 3, True), operator.length_hint(zip([1], strict=True), 9),
    )  # fmt: skip


class PlainA:
    a = 3


class FoundByLength:
    __getattribute__ = len

    def __len__(self):
        return 3


class NextRaises:
    def __iter__(self):
        return self

    def __next__(self):
        raise KeyError("next")


def what_has_no_next(x):
    return (
        said(lambda: FoundByLength().other), said(next, NextRaises()), said(next, PlainA()),
        said(lambda: [1 for _ in NextRaises()]), said(list, zip(NextRaises())),
    )  # fmt: skip


class Numbered:
    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return index


class Sized(Numbered):
    def __len__(self):
        return 3


def iterators_over_a_break(x):
    started, ended, back = iter(Numbered()), iter(Numbered()), reversed(Sized())
    ended_back, part = reversed(Sized()), itertools.islice([1, 2, 3], 1)
    next(started), list(ended), next(back), list(ended_back), list(part)
    many = itertools.repeat(3, 2)
    print(end="")
    return [list(one) for one in (started, ended, back, ended_back, part, many)]


def reversed_by_the_method(x):
    line = deque([1, x, 3])
    return list(line.__reversed__()), type(line.__reversed__()).__name__, [1, 2].__reversed__()


def removed_from_a_deque(x):
    line = deque([1, x])
    return said(line.remove, [1]), said(line.remove, 7), len(line)


class Copyable:
    def __iter__(self):
        return self

    def __next__(self):
        return 1

    def __copy__(self):
        return Copyable()


def tee_of_copyable_iterators(x):
    one, other = itertools.tee(Copyable(), 2)
    return next(one), next(other), said(isinstance, [1], list[int])


#: (program, graphs, operations captured)
PROGRAMS = [
    (multiplied_deques, 1, 2), (refused_by_deques, 1, 2), (iterators_of_iterators, 1, 2),
    (lengths_of_iterators, 2, 2), (changed_under_their_iterators, 1, 2),
    (ended_iterators, 1, 2), (iterators_by_index, 1, 2), (length_hints, 2, 2),
    (length_hints_with_defaults, 2, 2), (iterators_over_a_break, 2, 2),
    (what_has_no_next, 2, 2), (tee_of_copyable_iterators, 2, 2),
    (removed_from_a_deque, 2, 2), (reversed_by_the_method, 1, 2),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
