"""Generators that have been started live across graph breaks: they go on where they were."""

from __future__ import annotations

import contextlib

import pytest
import torch

import framejit
from checking import check

X = torch.arange(6.0).reshape(2, 3)
LEFT: list[str] = []


def step_after_a_break(x):
    def g():
        yield x + 1
        yield x + 2
        yield x + 3

    it = g()
    a = next(it)
    print("hi")
    b = next(it)
    return a * b + next(it)


def for_over_a_generator_with_breaks(x):
    def g(n):
        for i in range(n):
            yield x + i

    t = x
    for v in g(4):
        t = t * v
        print("v")
    return t


def error_thrown_after_a_break(x):
    def g():
        y = 1
        try:
            while True:
                got = yield x + y
                y = got or y
        except ValueError as e:
            yield x * 100
        finally:
            print("fin")

    it = g()
    a = next(it)
    b = it.send(5)
    print("break")
    c = it.send(7)
    d = it.throw(ValueError("v"))
    it.close()
    return a, b, c, d


def yield_from_over_a_break(x):
    def inner():
        a = yield x + 1
        b = yield x + (a or 0)
        return 7

    def outer():
        r = yield from inner()
        yield x * r

    it = outer()
    a = next(it)
    print("b")
    b = it.send(3)
    c = next(it)
    return a, b, c, list(it)


def suspended_in_a_handler(x):
    def g():
        try:
            raise KeyError("k")
        except KeyError as e:
            yield x + 1
            yield str(e)
            try:
                raise
            except KeyError:
                yield 5

    it = g()
    a = next(it)
    print("b")
    return a, list(it)


def finished_before_a_break(x):
    def g():
        yield x + 1

    it = g()
    a = list(it)
    print("b")
    return a, list(it), next(it, None)


def contextmanager_over_a_break(x):
    @contextlib.contextmanager
    def cm(v):
        print("in")
        try:
            yield v * 2
        finally:
            print("out")

    with cm(x) as y:
        z = y + 1
        print("mid")
        w = z * 2
    return w


@contextlib.contextmanager
def quiet(v):
    try:
        yield v * 2
    except ValueError:
        pass


def quiet_contextmanager_over_a_break(x):
    with quiet(x) as y:
        z = y + 1
        print("mid")
        w = z * 2
        raise ValueError
    return w


def contextmanager_without_a_break(x):
    with quiet(x) as y:
        z = y + 1
        print("mid")
        w = z * 2
    return w


def cells_of_a_generator(x):
    n = 0

    def g():
        nonlocal n
        while n < 4:
            n += 1
            yield x + n

    it = g()
    a = next(it)
    print(n)
    n = 2
    b = next(it)
    return a, b, n, [v.sum() for v in it]


def generator_is_returned(x):
    def g(a, *r, k=3):
        yield a + 1
        yield a * k, r

    it = g(x, 1, 2)
    next(it)
    return it, x * 2


def generator_expression_over_a_break(x):
    it = (x + i for i in range(3))
    a = next(it)
    print("p")
    return a + sum(it)


def name_of_a_generator(x):
    def named():
        yield 1
        yield 2

    it = named()
    next(it)
    print(it.__name__, it.gi_code.co_name)
    return x + next(it)


def generator_method(x):
    class A:
        k = 2

        def items(self):
            yield x * self.k
            yield super().__repr__ is not None

    it = A().items()
    a = next(it)
    print("q")
    return a, next(it)


def inner(log):
    try:
        log.append((yield 1))
        yield 2
    except KeyError:
        log.append("key")
        return "caught"
    finally:
        log.append("inner")


def relay(log, wrapped=inner):
    try:
        got = yield from wrapped(log)
        log.append(got)
        yield got
    except ValueError as error:
        log.append(str(error))
        yield "in"
    finally:
        log.append("outer")


def throw_into_yield_from(x):
    log, seen = [], []
    for error in (KeyError, ValueError("v"), TypeError("t"), GeneratorExit, StopIteration(5)):
        for wrapped in (inner, lambda log: relay(log)):
            items = relay(log, wrapped)
            seen.append(next(items))
            print(end="")
            try:
                seen.append(items.throw(error))
                seen.append(next(items, "end"))
            except BaseException as raised:
                seen.append((type(raised), str(raised), type(raised.__context__)))
            log.append("next")
    return log, seen, x + 1


def far_from_its_end(x):
    log = []

    def far():
        got = yield from inner(log)
        return got, [
            log + [1], log + [2], log + [3], log + [4], log + [5], log + [6], log + [7], log + [8],
            log.index("inner") + log.count("key") + len(log) * 2 + log.index("inner") + len(log),
            log.index("inner") + log.count("key") + len(log) * 2 + log.index("inner") + len(log),
            log.index("inner") + log.count("key") + len(log) * 2 + log.index("inner") + len(log),
        ]  # fmt: skip

    items = far()
    next(items)
    print(end="")
    try:
        items.throw(KeyError)
    except StopIteration as stop:
        return stop.value, x + 1


def times(log, number):
    try:
        yield from range(number)
    finally:
        log.append(number)


def finished_in_one_round_only(x):
    log = []
    for number in (1, 3):
        items = times(log, number)
        print(end="")
        next(items)
        next(items, None)
        print(end="")
        log.append("next")
    return log, x + 1


def printing():
    for number in range(6):
        print(number)
        yield number


def many_names_at_once(x):
    a, b, c, d, e, f = printing()
    first, *rest, g, h, i, j = [*printing(), a, b]
    return x + a, b, c, d, e, f, first, rest, g, h, i, j


#: (program, graphs, operations captured)
PROGRAMS = [
    (step_after_a_break, 3, 3), (for_over_a_generator_with_breaks, 2, 3),
    (error_thrown_after_a_break, 1, 2), (yield_from_over_a_break, 1, 1),
    (suspended_in_a_handler, 1, 1), (finished_before_a_break, 1, 1),
    (contextmanager_over_a_break, 2, 2), (quiet_contextmanager_over_a_break, 2, 3),
    (contextmanager_without_a_break, 2, 3), (cells_of_a_generator, 2, 2),
    (generator_is_returned, 1, 2), (generator_expression_over_a_break, 2, 2),
    (name_of_a_generator, 1, 1), (generator_method, 1, 1), (many_names_at_once, 1, 1),
    (throw_into_yield_from, 1, 1), (far_from_its_end, 1, 1), (finished_in_one_round_only, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


def test_a_generator_that_stands_in_a_handler_ends_with_its_frame():
    def program(x):
        def g():
            try:
                raise ValueError
            except ValueError:
                yield x + 1
            finally:
                LEFT.append("left")

        it = g()
        a = next(it)
        print("hi")
        return a * 2

    def run(function):
        LEFT.clear()
        return function(X).tolist(), list(LEFT)

    assert run(framejit.compile(program, backend="eager")) == run(program)
    assert run(program)[1] == ["left"]
