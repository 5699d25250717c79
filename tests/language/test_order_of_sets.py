"""The order in which sets show their elements: arguments, results of operations, sets that are
handed over a break or returned."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, compare_outcomes
from framejit import config

X = torch.arange(3.0)


def thinned():
    """A set with a large table and few elements."""
    made = set(range(100))
    for i in range(98):
        made.discard(i)
    return made | {0, 33}


#: Sets with equal elements in different orders, and others.
MAKE = [lambda: {0, 8}, lambda: {8, 0}, lambda: {16, 0, 8}, lambda: {8, 16, 0}, thinned]
ORDERED = {
    "minus": lambda s, u: s - {1},
    "minus the other": lambda s, u: u - s,
    "union": lambda s, u: s | u,
    "union of frozensets": lambda s, u: (
        frozenset({1, 2, 8}).union({1, 16}, [9, 0]), frozenset(s).union(u, {24: 1}),
        frozenset(s).union(), frozenset(u).intersection(s, {0, 8}), frozenset(u).difference([0], s),
    ),
    "union with new": lambda s, u: {17, 25} | s,
    "intersection": lambda s, u: s & {0, 8, 16, 24},
    "intersection of new": lambda s, u: {0, 8, 16, 24} & s,
    "symmetric difference": lambda s, u: s ^ {1},
    "copy": lambda s, u: (s.copy(), s.add(99), s.copy()),
    "set": lambda s, u: set(s),
    "frozenset": lambda s, u: (frozenset(s), frozenset(s) | u, frozenset(u) & s),
    "comprehension": lambda s, u: {x for x in s if x != 16},
    "display": lambda s, u: {*s, *u},
    "list": lambda s, u: (list(s), tuple(u), [*s], next(iter(u))),
    "dict": lambda s, u: dict.fromkeys(s),
    "update": lambda s, u: (s.update(u), s)[1],
    "update in place": lambda s, u: (s.__ior__(u), s)[1],
    "away and back": lambda s, u: (s.discard(0), s.add(0), u.discard(8), u.add(8)),
    "away, back and copied": lambda s, u: (s.discard(0), s.add(0), set(s), s),
    "there and away": lambda s, u: (s.add(24), s.discard(24), s),
    "cleared": lambda s, u: (s - u, s.clear(), s.add(8), s.add(0), s),
    "laid out again": lambda s, u: (
        s.update([1, 17, 3, 35, 20]), u.update([1, 17, 3, 35, 20]), s.intersection_update(),
        u.difference_update(), s, u, u.intersection(), u.union(), u.difference(),
    ),
    "pop": lambda s, u: (s.pop(), s),
    "pop of a result": lambda s, u: (lambda made: (made.pop(), made))(s | u),
    "views": lambda s, u: ({0: 1, 8: 2}.keys() & s, {16: 1, 8: 2}.keys() | s, s - {8: 1}.keys()),
    "sorted by a key": lambda s, u: sorted(s, key=lambda x: 0),
    "extremes": lambda s, u: (max(s, key=lambda x: 0), min(u), sum(s), sorted(u)),
    "text": lambda s, u: (repr(s), f"{u}", str(s | u)),
    "nested": lambda s, u: {frozenset(s): 1, frozenset(u): 2},
    "in a dict": lambda s, u: {"a": s | {1}, "b": [s - {8}, s]},
}  # fmt: skip


def ordered(value):
    """Sets as lists."""
    if isinstance(value, (set, frozenset)):
        return [type(value).__name__, *value]
    if isinstance(value, (list, tuple)):
        return [ordered(item) for item in value]
    if isinstance(value, dict):
        return [(ordered(key), ordered(item)) for key, item in value.items()]
    return value


def same(program, makers):
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    with config.patch(raise_internal_errors=True):
        for one in makers:
            for other in makers[::-1]:
                outcomes = [Outcome(f, (X, one(), other()), {}) for f in (program, compiled)]
                compare_outcomes(*outcomes)
                results = [ordered([o.result[1:], *o.args[1:]]) for o in outcomes]
                assert results[1] == results[0]
    assert backend.ops


@pytest.mark.parametrize("name", ORDERED)
def test_of_arguments(name):
    operation = ORDERED[name]
    same(lambda x, s, u: (x + 1, operation(s, u), s, u), MAKE)


@pytest.mark.parametrize("name", ORDERED)
def test_after_a_break(name):
    operation = ORDERED[name]

    def f(x, s, u):
        made = operation(s, u)
        print(end="")
        later = (list(made), made.pop()) if type(made) is set and made else ()
        return x + 1, made, later, list(s)

    same(f, MAKE[1:])


def test_of_new_sets():
    def f(x, s, u):
        a, b, c = {8, 0}, {0, 8}, {1, 2, 3, 4, 5, 33, 65}
        a.discard(8)
        a.add(8)
        b.add(16)
        b.remove(0)
        b.add(0)
        c -= {1, 2}
        c |= {1}
        first = c.pop(), list(a), list(frozenset(b)), list(a ^ c), repr(b | c)
        print(end="")
        return x + 1, first, a, b, c, a | b, b.pop(), list(b - a), frozenset(c)

    same(f, MAKE[:1])


def test_of_texts_and_objects():
    things = [object() for _ in range(9)]

    def f(x, s, u):
        texts = {"a", "b", "c", "dd", "ee", "ff"} - {"c"}
        texts.add("c")
        some = set(things[:5])
        some.discard(things[1])
        some |= {things[7], things[1]}
        rest = {things[6], things[2]} & some
        first = list(texts)
        print(end="")
        return x + 1, first, texts, list(texts), some, rest, list(some - rest), some.pop()

    same(f, MAKE[:1])


class SetOf(set):
    def __init__(self, *content):
        super().__init__(*content)
        self.first = 1


class Named:
    def __init__(self, name):
        self.name = name

    def __hash__(self):
        return len(self.name) % 2

    def __eq__(self, other):
        return isinstance(other, Named) and self.name == other.name


def test_of_new_objects_of_subclasses():
    def f(x, s, u):
        one = SetOf({8, 0})
        one.discard(8)
        one.add(8)
        two = SetOf(one | {24})
        two.remove(0)
        two.update({0, 40})
        print(end="")
        return x + 1, list(one), list(two), one, two, one.first

    same(f, MAKE[:1])


@pytest.mark.parametrize("name", ["a", "ab"])  # the latter has the hash of a number in the set
def test_of_keys_of_the_program_among_others(name):
    def f(x, s, u):
        made = {8, 0}
        made.discard(8)
        made.add(8)
        one, other = Named(name), Named(name)
        made.add(one)
        made.add(other)
        print(end="")
        made.discard(other)
        return x + 1, len(made), one in made, made

    same(f, MAKE[:1])


def test_of_many_changes():
    def f(x, s, u):
        made = set(range(200))
        for i in range(150):
            made.discard(i * 3 % 200)
            made.add(i + 500)
        print(end="")
        return x + 1, made, list(made), made.pop()

    same(f, MAKE[:1])


def test_of_classes_and_members():
    kinds = frozenset({int, str})

    def f(x, s, u):
        return x + 1, int in kinds, kinds & {int, float}, len(kinds | {float}), {int} <= kinds

    same(f, MAKE[:1])


def test_that_are_joined_after_a_key_of_the_program_was_met():
    def f(x, s, u):
        one = {32, 37, 25, 11, 35, 5} | {Named("a")}.intersection()
        one.discard(next(iter({Named("b")} & one), None))
        two = {32, 37, 25, 11, 35, 5}
        two ^= {10, 23, 1}
        three = {1: 0, 9: 1}.keys() | {17, 25, 33}
        return x + 1, list(two), two, list(three), three

    same(f, MAKE[:1])


@pytest.mark.parametrize("op", ["|", "^", "&", "-"])
def test_that_are_joined_with_keys_of_the_program(op):
    change = {"|": set.update, "&": set.intersection_update, "-": set.difference_update}
    change = change.get(op, set.symmetric_difference_update)

    def f(x, s, u):
        one, two = {16, 3, 40, 24}, {Named("a"), 8, Named("bb"), 32, 56, 24}
        change(one, two)
        return x + 1, [str(v) for v in one if isinstance(v, int)], len(one)

    same(f, MAKE[:1])


@dataclasses.dataclass(frozen=True)
class Numbered:
    number: int


def copied_and_updated(x, numbers):
    seen, bag = set(), {x.shape[0], 3}
    for number in numbers:
        seen.add(Numbered(number))
        bag = set(bag)
        bag.update([number])
    return x + 1, list(bag), bag


def made_of_a_display(x, numbers):
    seen, bag = {Numbered(x.shape[0])}, {*numbers}
    bag |= dict.fromkeys([7, 8]).keys()
    bag.update(number + 1 for number in numbers)
    bag.update([x.shape[0]], (9,), {3})
    return x + 1, list(bag), Numbered(2) in seen


@pytest.mark.parametrize("program", [copied_and_updated, made_of_a_display])
def test_updates_beside_keys_of_the_program(program):
    compiled = framejit.compile(program, backend="eager")
    for n in (2, 3, 4):
        for numbers in ([1, 2], [3, 3, 1], [5]):
            expected, found = program(torch.ones(n), numbers), compiled(torch.ones(n), numbers)
            assert found[1:] == expected[1:]
    assert framejit.report().graphs


@pytest.mark.parametrize("elements", [(0, 8), (8, 0), (0, 8, 16), (16, 8, 0), (1,), ()])
def test_equal_frozensets_of_another_order(elements):
    def program(x, given):
        return x + 1, list(given)

    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend)
    for order in (elements, elements[::-1]):
        given = frozenset(order)
        assert compiled(torch.ones(1), given)[1] == list(given)
    assert len(backend.graphs) == 1 + (list(frozenset(elements)) != list(given))
