"""Calls under functools.cache and lru_cache give the object that the cache holds, also where the
argument varies; classes whose ``__new__`` is such a callable; extremes of nothing."""

from __future__ import annotations

import functools
from functools import cache, lru_cache

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, check, compare_outcomes
from framejit import config

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
    assert check(program, X).ops


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
