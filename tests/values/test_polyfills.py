"""The polyfills as plain Python, against the originals."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import random

import pytest

from framejit.values import polyfills


def test_sorting_is_stable() -> None:
    rng = random.Random(0)
    for _ in range(200):
        keys = [rng.randrange(5) for _ in range(rng.randrange(12))]
        for reverse in (False, True):
            expected = sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
            assert polyfills.sort_new(list(range(len(keys))), keys.__getitem__, reverse) == expected


def test_heaps() -> None:
    rng = random.Random(1)
    for _ in range(200):
        ours = [rng.randrange(20) for _ in range(rng.randrange(1, 12))]
        theirs = list(ours)
        polyfills.heapify(ours), heapq.heapify(theirs)
        assert ours == theirs
        for name in ("heappush", "heappushpop", "heapreplace"):
            item = rng.randrange(20)
            assert getattr(polyfills, name)(ours, item) == getattr(heapq, name)(theirs, item)
            assert ours == theirs
        assert polyfills.heappop(ours) == heapq.heappop(theirs)
        polyfills.heapify(ours, True), heapq._heapify_max(theirs)
        assert ours == theirs
        assert polyfills.heappop(ours, True) == heapq._heappop_max(theirs)
        assert ours == theirs


@pytest.mark.parametrize(
    "name, args",
    [
        ("accumulate", ([1, 2, 3],)), ("compress", ("abcd", [1, 0, 1])), ("pairwise", ([1, 2, 3],)),
        ("dropwhile", (lambda v: v < 2, [1, 2, 1])), ("takewhile", (lambda v: v < 2, [1, 2, 1])),
        ("starmap", (pow, [(2, 3)])), ("zip_longest", ([1, 2], "a")), ("zip_longest", ()),
        ("cycle", ([],)), ("accumulate", ([],)), ("pairwise", ([1],)),
    ],
)  # fmt: skip
def test_itertools(name: str, args: tuple) -> None:
    assert list(getattr(polyfills, name)(*args)) == list(getattr(itertools, name)(*args))


def test_groupby() -> None:
    for data in ("aabbbc", "", "aba"):
        ours = [(k, list(g)) for k, g in polyfills.groupby(data)]
        assert ours == [(k, list(g)) for k, g in itertools.groupby(data)]
        assert [k for k, _ in polyfills.groupby(data)] == [k for k, _ in itertools.groupby(data)]
    late = list(polyfills.groupby("aab"))
    assert [list(g) for _, g in late] == [list(g) for _, g in list(itertools.groupby("aab"))]


def test_the_rest() -> None:
    assert polyfills.reduce(lambda a, b: a - b, [1, 2, 3]) == -4
    with pytest.raises(TypeError):
        polyfills.reduce(max, [])
    key = polyfills.cmp_to_key(lambda a, b: b - a)
    assert sorted([1, 3, 2], key=key) == sorted(
        [1, 3, 2], key=functools.cmp_to_key(lambda a, b: b - a)
    )
    items = [1, 3, 3, 5]
    for x in range(7):
        assert polyfills.bisect_left(items, x) == bisect.bisect_left(items, x)
        assert polyfills.bisect_right(items, x) == bisect.bisect_right(items, x)
    assert list(itertools.islice(polyfills.cycle("ab"), 5)) == list("ababa")
