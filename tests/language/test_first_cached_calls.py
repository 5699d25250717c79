"""The first call of a function under functools.cache or lru_cache: what it makes is what the
program gets; where a graph break would be an error, it may come before the capture."""

from __future__ import annotations

from functools import cache, lru_cache

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, compare_outcomes
from framejit import config

X = torch.ones(2)


class Recipe:
    """What a cached function makes of a text, as libraries do that parse patterns."""

    def __init__(self, text):
        self.names = text.split()
        self.count = len(set(self.names))


def parsers():
    """New cached functions for each side; one calls the other."""

    @lru_cache(2)
    def recipe(text, times):
        return Recipe(text * times)

    @lru_cache(8)
    def length(text):
        return len(text)

    @lru_cache(8)
    def measured(text):
        return Recipe(text), length(text)

    return recipe, length, measured


def one_recipe(recipe, length, measured):
    def program(x):
        made = recipe("a b", 2)
        return x * made.count, made.names, recipe("a b", 2) is made

    return program


def in_order(recipe, length, measured):
    """The third call takes the place of the first one, the fourth is a miss again."""

    def program(x):
        counts = [recipe(text, 1).count for text in ("a", "a b", "c d e")]
        return x * sum(counts), recipe("a b", 1) is recipe("a b", 1)

    return program


def one_in_another(recipe, length, measured):
    def program(x):
        made, size = measured("a b")
        return x * made.count + size, length("a b"), recipe("a b", 1) is made

    return program


def before_a_break(recipe, length, measured):
    def program(x):
        y = x * recipe("a b", 3).count
        print("between")
        return y + recipe("b c d", 1).count, recipe("a b", 3).names

    return program


RECIPES = [(one_recipe, 1), (one_in_another, 1), (before_a_break, 2), (in_order, 1)]


@pytest.mark.parametrize(
    ("make", "graphs"), RECIPES, ids=lambda given: getattr(given, "__name__", "")
)
def test_new_objects_that_caches_hold(make, graphs):
    """The program gets the object that the cache holds, in the first call, too."""
    sides = [parsers(), parsers()]
    backend = CountingBackend()
    eager, traced = [make(*side) for side in sides]
    compiled = framejit.compile(traced, backend=backend)
    with config.patch(raise_internal_errors=True):
        for _ in range(3):
            compare_outcomes(Outcome(eager, (X,), {}), Outcome(compiled, (X,), {}))
            ours, plain = [[one.cache_info() for one in side] for side in reversed(sides)]
            assert ours == plain
    if make is not in_order:
        assert len(backend.graphs) == graphs


def test_what_happens_in_the_first_call_only():
    """Where a break would be an error, the call that fills a cache or imports something runs as
    plain Python."""
    seen = []

    @cache
    def noted(n):
        seen.append(n)
        return n + 1

    def program(x):
        return x * noted(3)

    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(X), X * 4)
    assert seen == [3] and len(backend.graphs) == 1
    assert noted.cache_info()[:2] == (2, 1)


def test_a_module_that_the_first_call_imports(tmp_path, monkeypatch):
    (tmp_path / "imported_in_a_call.py").write_text("FACTOR = 3\nprint('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)

    def program(x):
        import imported_in_a_call

        return x * imported_in_a_call.FACTOR

    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for _ in range(3):
        assert torch.equal(compiled(X), X * 3)
    assert len(backend.graphs) == 1


def with_a_registry():
    """A library that notes at its first call what it works for, and then parses a pattern."""
    known, loaded = {}, {}

    class Backend:
        def __init__(self, count):
            self.count = count

    @lru_cache(8)
    def recipe(text):
        return Recipe(text)

    @lru_cache(8)
    def counted(text):
        return len(text), len(known)

    def backend_of(x):
        kind = type(x)
        if kind not in known:
            loaded[kind.__name__] = known[kind] = Backend(len(loaded))
        return known[kind]

    return backend_of, recipe, counted


def parses_after_it_noted(backend_of, recipe, counted):
    def program(x):
        backend = backend_of(x)
        with torch.no_grad():
            count = recipe("a b").count
        return x * count + backend.count, recipe("a b").names

    return program


def reads_what_it_noted(backend_of, recipe, counted):
    def program(x):
        backend = backend_of(x)
        return x * recipe("a b").count + backend.count, counted("a b")

    return program


@pytest.mark.parametrize("make", [parses_after_it_noted, reads_what_it_noted])
def test_first_calls_after_something_else_was_noted(make):
    sides = [with_a_registry(), with_a_registry()]
    backend = CountingBackend()
    eager, traced = [make(*side) for side in sides]
    whole = make is parses_after_it_noted
    compiled = framejit.compile(traced, backend=backend, fullgraph=whole)
    with config.patch(raise_internal_errors=True):
        for count in range(3):
            compare_outcomes(Outcome(eager, (X,), {}), Outcome(compiled, (X,), {}))
            infos = [[one.cache_info() for one in side[1:]] for side in sides]
            assert infos[0] == infos[1]
            assert len(backend.graphs) == min(count + 1, 2) or not whole
    assert backend.ops
