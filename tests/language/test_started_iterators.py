"""Iterators that exist already when a capture begins: loops with breaks, iterators as arguments.

Elements are looked at ahead, so what follows a break in a loop is one graph up to the next break.
"""

from __future__ import annotations

import collections
import itertools

import pytest
import torch

import framejit.api
from checking import CountingBackend, check

X = torch.arange(6.0).reshape(2, 3)


def enumerate_and_zip(x):
    out = []
    for i, (name, y) in enumerate(zip("abcd", [x, x + 1, x + 2, x + 3], strict=True)):
        print(i, name)
        out.append(y * 2)
    return out


def items_of_a_dict(x):
    table = {"a": x, "b": x + 1, "c": x * 3}
    total = 0
    for key, value in table.items():
        print(key)
        total = total + value * 2
    return total


def list_that_grows(x):
    xs, n = [x], 0
    for y in xs:
        print("turn")
        n += 1
        if n < 4:
            xs.append(y + 1)
    return xs


def one_iterator_twice_in_a_zip(x):
    numbers, out = iter([1, 2, 3, 4]), []
    for p, q in zip(numbers, numbers):
        print(p, q)
        out.append(x * p + q)
    return out, list(numbers)


def partly_consumed_before_and_after(x):
    tensors = iter([x, x + 1, x + 2, x + 3, x + 4])
    print("before")
    first = next(tensors) * 2
    pairs = list(zip(tensors, range(2)))
    print("behind")
    return first, pairs, next(tensors, None), next(tensors, None)


def dict_changes_its_size(x):
    table = {"a": 1, "b": 2}
    try:
        for key in table:
            print(key)
            x = x + 1
            table["c"] = 3
    except RuntimeError as error:
        return x * 2, str(error)


def values_replaced_ahead(x):
    table = {"a": x, "b": x, "c": x}
    seen = []
    for key, value in table.items():
        print(key)
        table["c"] = table["c"] + 1
        seen.append(value * 2)
    return seen


def reversed_list(x):
    out = 0
    for y in reversed([x, x + 1, x + 2]):
        print("turn")
        out = out * 2 + y
    return out


def attributes_of_an_object(x):
    class Box:
        def __init__(self):
            self.a, self.b, self.c = x, x, x

    box, out = Box(), []
    for key, value in vars(box).items():
        print(key)
        box.c = box.c + 1
        out.append(value * 2)
    return out


def rest_of_a_long_loop(x):
    for i in range(100):
        if i == 0:
            print("once")
        x = x + i
    return x


def iterator_kept_by_an_object(x):
    class Stream:
        def __init__(self):
            self.items = iter([x, x + 1, x + 2])

        def __next__(self):
            return next(self.items)

        def __iter__(self):
            return self

    stream = Stream()
    out = []
    for y in stream:
        print("turn")
        out.append(y * 2)
    return out, next(stream.items, None)


def generator_in_a_zip(x):
    def numbers():
        yield 1
        print("between")
        yield 2

    out = []
    for number, y in zip(numbers(), [x, x + 1]):
        print(number)
        out.append(y * number)
    return out


#: (program, graphs, operations captured)
NUMBERS = {3, 5, 7}
ORDERED = collections.OrderedDict(a=1.0, bc=2.0, d=3.0)


def numbers_in_a_set(x):
    out = []
    for i, number in enumerate(NUMBERS):
        print(number)
        out.append(x * (number + i))
    return out


def set_that_grows(x):
    numbers = {1, 2, 3}
    for number in numbers:
        print(number)
        x = x + number
        if number == 2:
            numbers.add(9)
    return x


def numbers_in_a_frozen_set(x):
    for number in frozenset([2, 3]):
        print(number)
        x = x * number
    return x


def ordered_names(x):
    out = []
    for name in reversed(ORDERED):
        print(name)
        out.append((name, x * ORDERED[name]))
    for name, value in ORDERED.items():
        print(name)
        out.append((name, x + value))
    return out


def moved_while_it_is_gone_over(x):
    table = collections.OrderedDict(a=x, b=x + 1, c=x * 3)
    for name, value in table.items():
        print(name)
        table[name] = value * 2
    return list(table.items())


PROGRAMS = [
    (enumerate_and_zip, 3, 5), (items_of_a_dict, 4, 8), (list_that_grows, 2, 2),
    (one_iterator_twice_in_a_zip, 2, 4), (partly_consumed_before_and_after, 2, 5),
    (dict_changes_its_size, 2, 2), (values_replaced_ahead, 2, 4), (reversed_list, 4, 7),
    (attributes_of_an_object, 2, 4), (rest_of_a_long_loop, 1, 100),
    (iterator_kept_by_an_object, 3, 4), (generator_in_a_zip, 3, 3), (numbers_in_a_set, 3, 5),
    (set_that_grows, 2, 2), (numbers_in_a_frozen_set, 2, 2), (ordered_names, 6, 6),
    (moved_while_it_is_gone_over, 4, 5),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


def test_iterators_as_arguments():
    """One entry serves every place that an iterator may be at."""

    def take(x, numbers):
        first = next(numbers)
        return x + 1, first, next(numbers, "end")

    backend = CountingBackend()
    compiled = framejit.api.compile(take, backend=backend)
    for numbers in ([1, 2, 3, 4, 5], [6]):
        plain, ours = iter(numbers), iter(numbers)
        for _ in range(3 if len(numbers) > 1 else 1):
            try:
                want = take(X, plain)
            except StopIteration:
                with pytest.raises(StopIteration):
                    compiled(X, ours)
            else:
                assert compiled(X, ours)[1:] == want[1:]
            assert plain.__length_hint__() == ours.__length_hint__()
    assert len(backend.graphs) == 2


def test_aliases_of_what_is_iterated_over():
    """The list that an iterator goes over may be another object today and the same tomorrow."""

    def grow(x, numbers, into):
        into.append(7)
        return x * 2, next(numbers), next(numbers, "end")

    compiled = framejit.api.compile(grow, backend="eager")
    for alias in (False, True, False):
        results = []
        for function in (grow, compiled):
            items = [1]
            into = items if alias else [2]
            results.append((*function(X, iter(items), into)[1:], items, into))
        assert results[0] == results[1]


def test_iterators_that_share_one():
    def both(x, pairs, numbers):
        return x + 1, next(pairs), next(numbers)

    compiled = framejit.api.compile(both, backend="eager")
    for shared in (False, True, False):
        results = []
        for function in (both, compiled):
            numbers = iter(range(10))
            pairs = zip(numbers if shared else iter(range(10)), "abc")
            results.append((*function(X, pairs, numbers)[1:], next(pairs), next(numbers)))
        assert results[0] == results[1]


def test_nothing_is_taken_when_the_graph_raises():
    def index(x, numbers):
        return x[torch.tensor(next(numbers))]

    compiled = framejit.api.compile(index, backend="eager")
    numbers = iter([0, 1, 5, 0])
    assert torch.equal(compiled(X, numbers), X[0])
    assert torch.equal(compiled(X, numbers), X[1])
    with pytest.raises(IndexError):
        compiled(X, numbers)
    assert next(numbers) == 0


def test_reasons_name_the_elements():
    compiled = framejit.api.compile(lambda x, it: x + next(it, 0), backend="eager")
    compiled(X, iter([1]))
    compiled(X, iter([]))
    (reason,) = framejit.counters["recompile_reasons"]
    assert "upcoming[0:1](local 'it')[0] PRESENT: it was there, now it is gone" in reason


def _raises_at_two(v):
    if v == 2:
        raise ValueError(v)
    return v


#: Iterators that call functions or count: what is taken is taken from what they wrap.
COMPOSED = [
    lambda: map(lambda v: v * 10, [1, 2, 3, 4]),
    lambda: map(lambda a, b: a * b, [1, 2, 3, 4], iter((3, 4, 5, 6))),
    lambda: map(_raises_at_two, [1, 3, 4, 5, 2]),
    lambda: filter(None, [0, 1, 2, 0, 3, 4]),
    lambda: filter(lambda v: v % 2, [0, 1, 3, 5, 6, 7]),
]
COUNTING = [lambda: itertools.islice([1, 2, 3, 4, 5, 6], 1, 6)]
#: Since CPython 3.14 there is no copy of an islice, and so no look ahead.
COPIED = hasattr(itertools.islice, "__setstate__")


def _take_some(x, iterator):
    first, second = next(iterator), next(iterator, None)
    return x * first + second, iterator, [next(iterator)]


def _loop(x, iterator):
    for v in iterator:
        x = x + v
        framejit.graph_break()
    return x, list(iterator)


@pytest.mark.parametrize("make", COMPOSED + COUNTING * COPIED)
def test_iterators_made_of_others(make):
    def outcome(function):
        iterator = make()
        y, same, more = function(X, iterator)
        rest = []
        try:
            rest += iterator
        except ValueError as error:
            rest.append(str(error))
        return y, same is iterator, more, rest

    backend = CountingBackend()
    compiled = framejit.api.compile(_take_some, backend=backend, fullgraph=True)
    for _ in range(3):
        (y, *rest), (expected, *others) = outcome(compiled), outcome(_take_some)
        assert torch.equal(y, expected) and rest == others
    assert (len(backend.graphs), backend.ops) == (1, 2)


@pytest.mark.parametrize("make", [COMPOSED[0], COMPOSED[1], COMPOSED[3], *COUNTING])
def test_loops_over_iterators_made_of_others(make):
    backend = CountingBackend()
    compiled = framejit.api.compile(_loop, backend=backend)
    for _ in range(2):
        (y, rest), (expected, others) = compiled(X, make()), _loop(X, make())
        assert torch.equal(y, expected) and rest == others == []
    breaks = 5 if make not in COUNTING or COPIED else 8
    assert sum(framejit.counters["graph_break"].values()) <= breaks and backend.ops <= 6


def test_a_map_and_what_it_takes_from():
    def f(x, iterator, mapped):
        a, b, c = next(mapped), next(iterator), next(mapped, None)
        return x * a + b, c, list(iterator), list(mapped)

    def outcome(function):
        iterator = iter([1, 2, 3, 4, 5])
        return function(X, iterator, map(lambda v: v * 10, iterator))

    compiled = framejit.api.compile(f, backend="eager", fullgraph=True)
    for _ in range(2):
        (y, *rest), (expected, *others) = outcome(compiled), outcome(f)
        assert torch.equal(y, expected) and rest == others
