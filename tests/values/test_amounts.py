"""How large the objects may be that captures make: the largest, and one that is too large."""

from __future__ import annotations

import operator

import pytest

from framejit import config
from framejit.exc import GraphBreak
from framejit.values.core.amounts import limited_items, run_limited

LIMIT, BYTES = 10, 160


@pytest.mark.parametrize(
    ("function", "fitting", "too_large"),
    [
        (operator.mul, ("a", BYTES), ("a", BYTES + 1)),
        (operator.mul, (BYTES, b"a"), (BYTES + 1, b"a")),
        (operator.imul, ([1], LIMIT), ([1], LIMIT + 1)),
        (operator.mul, ("ab", -1), (10**13, "ab")),
        (operator.mul, ((), 10**13), ((1,), 10**13)),
        (operator.mul, (3, 4), (1 << 700, 1 << 700)),
        (operator.lshift, (1, BYTES * 8 - 1), (1, BYTES * 8)),
        (operator.lshift, (0, 8), (1, 10**13)),
        (operator.pow, (2, BYTES * 8), (2, BYTES * 8 + 1)),
        (operator.pow, (1, 10**13), (2, 10**13)),
        (operator.pow, (2, -1), (-4, BYTES * 8)),
        (operator.add, ("a" * BYTES, ""), ("a" * BYTES, "b")),
        (operator.add, ((1,) * LIMIT, ()), ((1,) * LIMIT, (1,))),
        (operator.add, ([1] * LIMIT, []), ([1] * LIMIT, [1])),
        (operator.add, (1 << (BYTES * 8), 1), (1 << (BYTES * 8 + 7), 1)),
        (operator.neg, (1 << 64,), (1 << 1300,)),
        (frozenset, (range(LIMIT),), (range(LIMIT + 1),)),
    ],
)
def test_results(function, fitting, too_large):
    with config.patch(size_limit=LIMIT):
        assert run_limited(function, fitting, {}) == function(*fitting)
        with pytest.raises(GraphBreak):
            run_limited(function, too_large, {})


def test_elements():
    with config.patch(size_limit=LIMIT):
        assert limited_items(iter(range(LIMIT))) == list(range(LIMIT))
        with pytest.raises(GraphBreak):
            limited_items(iter(range(LIMIT + 1)))
