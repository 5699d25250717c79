"""Calls under functools.cache and lru_cache give the object that the cache holds, also where the
argument varies; classes whose ``__new__`` is such a callable; extremes of nothing."""

from __future__ import annotations

import functools
from functools import cache, lru_cache

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, captured_again, check, compare_outcomes
from framejit import config
from framejit.interpreter.forced import forced_break, noted

X = torch.ones(2)


def fresh_caches():
    """New cached functions for each side."""

    @cache
    def eye(n):
        return torch.eye(2)

    @lru_cache(maxsize=4)
    def pair(n):
        return torch.ones(n), n

    return eye, pair


def number(eye, pair):
    def program(x, n):
        return x + 1, eye(n), eye(n) is eye(n)

    return program


def computed(eye, pair):
    def program(x, n):
        return x + 1, eye(n + 1), pair(n)[0]

    return program


def changed(eye, pair):
    def program(x, n):
        first = eye(n)
        print("between")
        eye(n).add_(1)
        return x + 1, first, eye.cache_info().hits

    return program


@pytest.mark.parametrize("make", [number, computed, changed])
def test_tensors_in_caches(make):
    sides = [fresh_caches(), fresh_caches()]
    for eye, pair in sides:
        eye(3).mul_(7)
        pair(3)[0].mul_(7)
    backend = CountingBackend()
    eager, traced = [make(*side) for side in sides]
    compiled = framejit.compile(traced, backend=backend)
    with config.patch(raise_internal_errors=True):
        for n in (2, 3, 4, 3, 2):
            compare_outcomes(Outcome(eager, (X, n), {}), Outcome(compiled, (X, n), {}))
    assert backend.graphs and backend.ops


def made(x):
    class Interned:
        @lru_cache(None)
        def __new__(cls, n):
            self = super().__new__(cls)
            self.n = n
            return self

    return x * Interned(3).n, Interned(3) is Interned(3)


class Callable:
    def __call__(self, cls, n):
        return object.__new__(cls)


def made_by_an_object(x):
    class Made:
        __new__ = staticmethod(Callable())

        def __init__(self, n):
            self.n = n

    return x * Made(2).n


class Existing:
    @cache
    def __new__(cls, n):
        return super().__new__(cls)

    def __init__(self, n):
        self.n = n


def existing(x):
    return x * Existing(4).n, Existing(4) is Existing(4)


@pytest.mark.parametrize("program", [made, made_by_an_object, existing])
def test_new_that_is_no_plain_function(program):
    assert check(program, X, graphs=1, ops=1).ops


def extremes(x, items):
    try:
        return x + 1, min(items, key=lambda v: -v), max(items, key=abs)
    except ValueError as error:
        return x + 1, repr(error), repr(error.__context__)


@pytest.mark.parametrize("items", [[], [1, 2], {}, {3: 1}])
def test_extremes_by_a_key(items):
    assert check(extremes, X, items, graphs=1).ops


raw = functools._lru_cache_wrapper(lambda n: n + 1, None, False, functools._CacheInfo)


def test_a_cache_without_the_decorator():
    raw.cache_clear()
    check(lambda x: x + raw(3), X, graphs=1, ops=1)


def little_room():
    @lru_cache(maxsize=1)
    def scale(k):
        return k * 2

    def program(x, n):
        return x + scale(1) + scale(2), scale(n), scale.cache_info()

    return program


def room_for_two():
    @lru_cache(maxsize=2)
    def kernel(k):
        return torch.full((2,), float(k))

    def program(x, n):
        return x + kernel(1) + kernel(2) + kernel(1) + kernel(n) + kernel(2), kernel.cache_info()

    return program


def recursive_with_little_room():
    @lru_cache(maxsize=3)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    @lru_cache(maxsize=2)
    def outer(n):
        return fib(n) + fib(1)

    def program(x, n):
        return x + fib(1) + outer(n) + fib(n + 1) + fib(1), fib.cache_info(), outer.cache_info()

    return program


def reads_what_changed():
    seen = [1]

    @cache
    def count(n):
        return n + len(seen)

    def program(x, n):
        seen.append(2)
        return x + count(n) + count(n), count.cache_info()

    return program


def raises():
    @cache
    def refuse(n):
        raise ValueError(n)

    def program(x, n):
        own, answers = cache(refuse.__wrapped__), []
        for function in (refuse, own, own):
            try:
                function(n)
            except ValueError as error:
                answers.append(error.args)
        return x + 1, answers, refuse.cache_info().misses, own.cache_info().misses

    return program


def many_words():
    @lru_cache(maxsize=9)
    def stem(word):
        return word.removesuffix("s")

    def program(x, n):
        words = [" ".join(stem(w) for w in part.split()) for part in ("the cats", "a dogs the")]
        return x + len(words), words, [*map(stem, "cats a bees".split())], stem.cache_info()

    return program


FRAMES = [
    (little_room, 5), (room_for_two, 10), (recursive_with_little_room, 9), (reads_what_changed, 4),
    (raises, 1), (many_words, 1),
]  # fmt: skip


@pytest.mark.parametrize(("make", "graphs"), FRAMES)
def test_caches_change_within_a_frame(make, graphs):
    """Guards hold before what the frame itself does to the cache."""
    eager, compiled = make(), make()
    assert_same(eager, compiled, graphs)


@pytest.mark.parametrize("make", [make for make, _ in FRAMES])
def test_calls_are_counted_once_wherever_the_frame_is_cut(make):
    eager, compiled = make(), make()
    with noted() as where:
        assert_same(eager, compiled)
    for index in list(where.executed[compiled.__code__])[::4]:
        eager, compiled = make(), make()
        with forced_break(compiled.__code__, index):
            assert_same(eager, compiled)


@pytest.mark.parametrize("make", [make for make, _ in FRAMES])
def test_calls_are_counted_once_where_a_capture_comes_to_nothing(make):
    with captured_again():
        assert_same(make(), make())


def assert_same(eager, program, graphs=None):
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend, dynamic=False)
    with config.patch(raise_internal_errors=True):
        for n in (3, 4, 3, 1):
            compare_outcomes(Outcome(eager, (X, n), {}), Outcome(compiled, (X, n), {}))
    assert graphs is None or len(backend.graphs) == graphs


def test_first_calls_in_frames_without_operations():
    def make():
        @cache
        def increased(n):
            return n + 1

        def inner(n):
            return increased(n)

        def program(x, n):
            return x + 1, eval("inner(n), inner(n)", {"inner": inner, "n": n})

        return program, increased

    (eager, one), (traced, other) = make(), make()
    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend)
    for n in (1, 1, 2, 1):
        compare_outcomes(Outcome(eager, (X, n), {}), Outcome(compiled, (X, n), {}))
        assert one.cache_info() == other.cache_info()
    assert backend.ops


def test_what_lru_cache_returns_without_a_function():
    def program(x):
        decorate = functools.lru_cache(maxsize=2)
        one, other = decorate(lambda v: v + 1), decorate(lambda v: -v)
        names = decorate.__name__, decorate.__qualname__, type(decorate).__name__
        try:
            functools.lru_cache("x")
        except TypeError as error:
            return x + 1, names, one(1), other(1), one(1), str(error)

    check(program, torch.ones(2), graphs=1, ops=1)


def test_state_of_torch_set_in_a_cached_function_that_prints():
    def make():
        @cache
        def computed(k):
            with torch.no_grad():
                print("computed", k)
            return 3

        return lambda x: (x * 2 * computed(5), torch.is_grad_enabled())

    check(make(), torch.ones(2, requires_grad=True), make=make, calls=1, graphs=2, ops=2)
    assert torch.is_grad_enabled()


def test_an_attribute_given_to_the_function_after_the_decorator():
    def program(x):
        def function(a):
            return a + 1

        cached = lru_cache(function)
        function.mark = 2
        print("between")
        return x + 1, cached.__wrapped__.mark, hasattr(cached, "mark"), cached(3)

    check(program, torch.ones(2), calls=1, graphs=1)


class Adder:
    def __init__(self, k=0):
        self.k = k

    def __call__(self, a):
        return a + self.k


ADDER = Adder(3)


@pytest.mark.parametrize("make", [
    lambda x: abs, lambda x: int, lambda x: Adder, lambda x: ADDER.__call__, lambda x: ADDER,
    lambda x: x.add, lambda x: functools.partial(ADDER), lambda x: Adder(2), lambda x: cache(len),
    lambda x: type("Local", (), {"m": 3, "__init__": lambda self, n: None}),
])  # fmt: skip
def test_caches_of_callables_that_are_no_functions_outlive_a_break(make):
    def program(x):
        cached = lru_cache(make(x))
        print("between")
        names = getattr(cached, "__name__", None), sorted(vars(cached)), hasattr(cached, "k")
        return x + 1, names, cached.__wrapped__ is ADDER

    check(program, torch.ones(2), calls=1, graphs=1)


class Recipe:
    """What a library computes once for a pattern, and keeps."""

    def __init__(self, pattern):
        self.pattern, self.order = pattern, [int(part) for part in pattern.split()]


def made_objects(maxsize=8):
    """A cached function that makes objects, and one that is called with them."""

    @lru_cache(maxsize)
    def recipe(pattern):
        return Recipe(pattern)

    @lru_cache(maxsize)
    def lengths(of, shape):
        return [shape[place] for place in of.order], of

    return recipe, lengths


def by_recipe(recipe, lengths):
    def program(x, pattern):
        found = recipe(pattern)
        sizes, of = lengths(found, tuple(x.shape))
        return x.permute(found.order) * sizes[0], of is found, recipe(pattern) is found, sizes

    return program


def by_several(recipe, lengths):
    def program(x, pattern):
        old = recipe("0 1")
        sizes, _ = lengths(recipe(pattern), tuple(x.shape))
        return x * sizes[0], old.order, recipe("1 0").order

    return program


@pytest.mark.parametrize("make", [by_recipe, by_several])
@pytest.mark.parametrize("maxsize", [8, None])
def test_objects_that_a_cache_does_not_hold_yet(make, maxsize):
    sides = [made_objects(maxsize), made_objects(maxsize)]
    eager, traced = (make(*side) for side in sides)
    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend, fullgraph=True)
    x = torch.arange(6.0).reshape(2, 3)
    for count, pattern in enumerate(("0 1", "1 0", "0 1", "1 0")):
        compare_outcomes(Outcome(eager, (x, pattern), {}), Outcome(compiled, (x, pattern), {}))
        for one, other in zip(*sides, strict=True):
            assert one.cache_info() == other.cache_info()
        assert len(backend.graphs) == min(count + 1, 2)
    assert backend.ops == 2 * (2 if make is by_recipe else 1)


def test_objects_in_caches_are_the_program_s_own():
    def make():
        recipe, _ = made_objects()

        def program(x, pattern):
            return x + 1, recipe(pattern)

        return program, recipe

    (eager, _), (traced, recipe) = make(), make()
    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend)
    found = [compiled(X, "1 0")[1] for _ in range(3)]
    assert all(one is recipe("1 0") for one in found)
    assert vars(found[0]) == vars(eager(X, "1 0")[1])
    recipe.cache_clear()
    assert compiled(X, "1 0")[1] is recipe("1 0") is not found[0]
    assert len(backend.graphs) <= 2


def test_objects_that_a_full_cache_has_no_room_for():
    sides = [made_objects(1), made_objects(1)]
    eager, traced = (by_several(*side) for side in sides)
    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend)
    x = torch.ones(2, 3)
    for pattern in ("0 1", "1 0", "0 1"):
        compare_outcomes(Outcome(eager, (x, pattern), {}), Outcome(compiled, (x, pattern), {}))
        for one, other in zip(*sides, strict=True):
            assert one.cache_info() == other.cache_info()
    assert backend.ops


def test_captures_that_start_again_after_an_object_was_made():
    def make():
        recipe, lengths = made_objects()

        def program(x, pattern):
            found = recipe(pattern)
            y = x * len(found.order)
            print("between")
            return y + lengths(found, (5, 6))[0][0]

        return program, recipe, lengths

    (eager, *one), (traced, *other) = make(), make()
    backend = CountingBackend()
    compiled = framejit.compile(traced, backend=backend)
    for pattern in ("0 1", "1 0", "0 1"):
        compare_outcomes(Outcome(eager, (X, pattern), {}), Outcome(compiled, (X, pattern), {}))
    assert [f.cache_info() for f in one] == [f.cache_info() for f in other]
    assert backend.ops
