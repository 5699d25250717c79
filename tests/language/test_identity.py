"""``is`` and ``id()``: which object a value stands for, while capturing and across graph breaks."""

from __future__ import annotations

import collections

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, check, compare_outcomes
from framejit import config

X = torch.arange(3.0)


class Thing:
    pass


ONE, OTHER = Thing(), Thing()
NUMBERED = {id(ONE): 1, "a": 2}
PAIRED = {(id(ONE), "k"): 3}
SEEN = {id(ONE), 5}

BY_ID = {
    "get": lambda x: (x + 1, NUMBERED.get(id(ONE)), NUMBERED.get(id(OTHER))),
    "in": lambda x: (x + 1, id(ONE) in NUMBERED, id(OTHER) in NUMBERED, id(ONE) in SEEN),
    "item": lambda x: (x + 1, NUMBERED[id(ONE)]),
    "tuple": lambda x: (x + 1, PAIRED.get((id(ONE), "k")), PAIRED.get((id(OTHER), "k"))),
    "set operations": lambda x: (
        x + 1, SEEN & {id(ONE), id(OTHER)} == {id(ONE)}, {id(ONE)} <= SEEN,
        SEEN.isdisjoint({id(ONE)}), frozenset(SEEN) >= {id(ONE)},
    ),
    "views": lambda x: (
        x + 1, NUMBERED.keys() & {id(ONE)} == {id(ONE)}, NUMBERED.keys().isdisjoint([id(ONE)]),
        NUMBERED.keys() == {id(ONE), "a"},
    ),
    "dicts": lambda x: (x + 1, NUMBERED == {id(ONE): 1, "a": 2}, len(NUMBERED | {id(ONE): 3})),
    "numbers that are none": lambda x: (x + 1, {1: 1}.get(id(ONE), 5), {id(ONE): 1}.get(2, 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_ID)
def test_an_address_as_a_key(name):
    check(BY_ID[name], X, ops=1)


def both(make, *calls, ops=None):
    """Calls what ``make`` makes eagerly and compiled, with the very same arguments."""
    backend = CountingBackend()
    eager = make()
    with config.patch(raise_internal_errors=True):
        compiled = framejit.compile(make(), backend=backend)
        for args in calls:
            compare_outcomes(Outcome(eager, args, {}), Outcome(compiled, args, {}))
    if ops is not None:
        assert backend.ops == ops


def test_an_address_stored_in_an_existing_dict():
    def make():
        known = {id(ONE): 7}

        def f(x):
            known[id(ONE)] = 8
            first = len(known)
            known.setdefault(id(OTHER), 9)
            return x + 1, first, list(known.values()), known.pop(id(x), None)

        return f

    both(make, (X,), (X,), ops=1)


def test_addresses_remembered_from_call_to_call():
    def make():
        memo = collections.defaultdict(list)

        def f(x, one):
            known = id(one) in memo
            memo[id(one)].append(known)
            return x + 1, len(memo[id(one)]), known, list(memo.values())

        return f

    both(make, (X, ONE), (X, OTHER), (X, ONE), (X, ONE), (X, OTHER))
