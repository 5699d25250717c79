"""The polyfills as plain Python, against the originals."""

from __future__ import annotations

import bisect
import functools
import heapq
import random

import pytest

from framejit.values.core import polyfills


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
        polyfills._heapify_max(ours), heapq._heapify_max(theirs)
        assert ours == theirs
        assert polyfills._heappop_max(ours) == heapq._heappop_max(theirs)
        assert ours == theirs


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
