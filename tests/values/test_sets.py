"""Sets against CPython's own, order included."""

from __future__ import annotations

import operator
import random

import pytest
from values_helpers import compare_call, compare_method, existing, new_space, plain, symbolic

from framejit.exc import GraphBreak
from framejit.values.core.registry import LOOKASIDES


@pytest.mark.parametrize(
    "call",
    [
        ("add", 4), ("add", 1), ("add", []), ("discard", 1), ("discard", 9), ("remove", 1),
        ("remove", 9), ("clear",), ("copy",), ("union", [4, 5]), ("union", {9: 1}, "ab"),
        ("update", [7]), ("intersection", {1, 2}), ("difference", [1]), ("union",),
        ("symmetric_difference", [1, 9]), ("issubset", [1, 2, 3, 17, 4]), ("issuperset", [1]),
        ("isdisjoint", [5]), ("__contains__", 1), ("__contains__", True), ("__len__",),
        ("__eq__", {1, 2, 3, 17}), ("__lt__", {1, 2, 3, 4, 17}), ("__le__", {1}),
        ("__or__", {8}), ("__or__", [8]), ("__and__", {1, 3}), ("__sub__", {1}),
        ("__xor__", {1, 99}), ("__ior__", {8}), ("__iand__", {1}), ("difference_update", [1]),
        ("intersection_update", [1, 2]), ("symmetric_difference_update", [1, 5]),
        ("union", 5), ("add",), ("difference_update", [1], [2]),
    ],
    ids=str,
)  # fmt: skip
def test_set_method(call: tuple) -> None:
    space = new_space()
    # Results made from an existing set have no known order: only the made set is compared.
    real, value = {1, 2, 3, 17}, symbolic(space, {1, 2, 3, 17})
    from values_helpers import outcome, plain_real

    args = [symbolic(space, arg) for arg in call[1:]]
    expected = outcome(lambda: plain_real(getattr(real, call[0])(*call[1:])))
    got = outcome(lambda: plain(space, value.call_method(space, call[0], args, {})))
    assert got == expected
    assert plain(space, value) == plain_real(real)


def test_order_of_random_programs() -> None:
    rng = random.Random(0)
    for _ in range(300):
        space = new_space()
        real, value = set(), symbolic(space, set())
        for _ in range(rng.randrange(30)):
            name = rng.choice(["add", "discard", "union", "update", "difference", "__or__", "pop"])
            if name == "pop":
                if real:
                    expected = real.pop()
                    assert plain(space, value.call_method(space, "pop", [], {})) == expected
                continue
            if name in ("add", "discard"):
                arg = rng.choice([rng.randrange(100), str(rng.randrange(50)), rng.randrange(10**9)])
            else:
                arg = [rng.randrange(200) for _ in range(rng.randrange(12))]
            real_arg, other = arg, symbolic(space, arg)
            if name == "__or__" or type(arg) is list and rng.random() < 0.5:
                real_arg, other = set(arg), LOOKASIDES[set](space, [other], {})
            result = getattr(real, name)(real_arg)
            made = value.call_method(space, name, [other], {})
            if result is not None:
                real, value = result, made
            assert plain(space, value) == ("set", list(real))


def test_constructors() -> None:
    compare_call(set, [3, 1, 2])
    compare_call(set, "hello")
    compare_call(frozenset, [3, 1, 2])
    compare_call(set)
    compare_call(set, 5)
    compare_call(sorted, {3, 1, 2})
    compare_call(operator.or_, frozenset({1}), frozenset({2}))


def test_existing_set() -> None:
    space = new_space()
    value = existing(space, {5, 3, 1}).realize()
    assert value.truth(space)
    assert [f.kind for f in value.source.facts] == ["TYPE_MATCH", "BOOL_MATCH"]
    assert plain(space, value.contains(space, space.constant(3))) is True
    assert [f.kind for f in value.source.facts][-1] == "EQUALS_MATCH"
    assert plain(space, value) == ("set", list({5, 3, 1}))
    value.call_method(space, "add", [space.constant(9)], {})
    assert value.mutated
    with pytest.raises(GraphBreak):
        space.iter(value)


def test_sets_of_objects_have_no_order() -> None:
    space = new_space()
    value = symbolic(space, {int, str})
    assert space.truth(value.contains(space, existing(space, int)))
    with pytest.raises(GraphBreak):
        space.iter(value)


def test_method_of_existing_set_without_order() -> None:
    compare_method({1}, "add", 1)
    compare_method(frozenset({1, 2}), "__contains__", 1)
