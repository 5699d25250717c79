"""Sorting and extremes: the order of comparisons, and lists that change meanwhile."""

from __future__ import annotations

import random
import typing

import pytest
import torch

from checking import check, said

X = torch.arange(3.0)


class Ordered:
    """Notes what it is compared with."""

    log: typing.ClassVar[list] = []

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        Ordered.log.append((self.value, other.value))
        return self.value < other.value


def order_of_comparisons(x):
    Ordered.log.clear()
    draw = random.Random(0)
    for count in (0, 1, 2, 5, 12, 70):
        numbers = [draw.randrange(20) for _ in range(count)]
        sorted([Ordered(n) for n in numbers])
        sorted(numbers, key=Ordered, reverse=True)
    return x + 1, list(Ordered.log)


def list_is_empty_while_it_is_sorted(x):
    numbers, seen = [3, 1, 2], []

    def key(value):
        seen.append(list(numbers))
        return value

    numbers.sort(key=key)
    return x + 1, numbers, seen


def list_changes_while_it_is_sorted(x):
    numbers = [3, 1, 2]

    def key(value):
        numbers.append(value)
        return value

    return x + 1, said(lambda: numbers.sort(key=key)), numbers


def list_is_left_half_sorted(x):
    mixed, halves = [3, 1, 2, "a", 5], [3, 1, 2]

    def key(value):
        return 1 / (value - 2)

    return x + 1, said(mixed.sort), mixed, said(lambda: halves.sort(key=key)), halves


class Growing:
    def __init__(self, number, among):
        self.number, self.among = number, among

    def __lt__(self, other):
        if len(self.among) < 6:
            self.among.append(Growing(self.number - 1, self.among))
        return self.number < other.number

    def __radd__(self, other):
        return other + self.number


def test_lists_that_change_while_the_least_is_looked_for():
    def program(x, numbers):
        seen = []
        popped = max(numbers, key=lambda v: (seen.append(v), numbers.pop())[1])
        among = []
        among += [Growing(v, among) for v in (3, 1)]
        least = min(among).number
        numbers.extend(numbers)
        return x + 1, popped, seen, least, sum(among), len(among), numbers

    check(program, torch.ones(2), [3, 1, 2, 5], graphs=1, ops=1)


def test_the_least_and_the_greatest_of_anything():
    def program(x):
        said = []
        for wrong in (lambda: max([]), lambda: min((), key=abs), lambda: max(v for v in ())):
            try:
                wrong()
            except ValueError as error:
                said.append(str(error))
        first = max((said.append(v), v)[1] for v in (1, 3, 2))
        rest = min([], default=4), max((), key=abs, default=x), max({3, 1}, key=lambda v: -v)
        return said, first, rest, max(x), sum(x), max(x, key=lambda row: -row.dim())

    check(program, torch.tensor([1.0, 3.0]), graphs=1, ops=7)


#: (program, graphs, operations captured)
PROGRAMS = [
    (order_of_comparisons, 1, 1), (list_is_empty_while_it_is_sorted, 1, 1),
    (list_changes_while_it_is_sorted, 1, 1), (list_is_left_half_sorted, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)
