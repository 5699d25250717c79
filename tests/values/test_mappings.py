"""Dicts and their views against CPython's own."""

from __future__ import annotations

import operator
import types
from collections import OrderedDict, defaultdict

import pytest
from values_helpers import compare_call, compare_method, existing, new_space, plain, symbolic

from framejit.values.core.base import Raised

CALLS = [
    ("__getitem__", "a"), ("__getitem__", "z"), ("__getitem__", 1.0), ("__getitem__", True),
    ("__getitem__", []), ("__setitem__", "a", 9), ("__setitem__", "n", 9),
    ("__setitem__", True, 9), ("__delitem__", "a"), ("__delitem__", "z"), ("get", "a"),
    ("get", "z"), ("get", "z", 5), ("get",), ("setdefault", "a", 4), ("setdefault", "n", 4),
    ("setdefault", "n"), ("pop", "a"), ("pop", "z"), ("pop", "z", 3), ("pop",), ("popitem",),
    ("update", {"a": 7, "q": 8}), ("update", [("a", 7), ("q", 8)]), ("update", [(1, 2, 3)]),
    ("update", [5]), ("update", 5), ("update",), ("clear",), ("copy",), ("keys",), ("values",),
    ("items",), ("__len__",), ("__contains__", "a"), ("__contains__", []), ("__iter__",),
    ("__reversed__",), ("__eq__", {"a": 1, 1: 2, "c": 3}), ("__eq__", {"a": 1}), ("__eq__", 4),
    ("__or__", {"a": 5, "z": 6}), ("__ior__", {"z": 6}), ("__or__", 4), ("__ror__", {"z": 6}),
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("kind", [dict, OrderedDict], ids=lambda k: k.__name__)
def test_dict_method(call: tuple, kind: type) -> None:
    compare_method(kind({"a": 1, 1: 2, "c": 3}), *call)


def test_keywords() -> None:
    compare_method({"a": 1}, "update", b=2, a=3)
    compare_method({"a": 1}, "update", {"c": 3}, b=2)
    compare_call(dict, a=1, b=2)
    compare_call(dict, {"a": 1}, b=2)
    compare_call(dict, [("x", 1)])
    compare_call(dict, 5)
    compare_call(OrderedDict, [("x", 1), ("y", 2)])


def test_ordered_dict_only() -> None:
    base = OrderedDict(a=1, b=2, c=3)
    compare_method(base, "move_to_end", "a")
    compare_method(base, "move_to_end", "c", last=False)
    compare_method(base, "move_to_end", "z")
    compare_method(base, "popitem", last=False)
    compare_method(base, "popitem")
    compare_method(OrderedDict(), "popitem")
    compare_method(base, "__eq__", OrderedDict(b=2, a=1, c=3))
    compare_method(base, "__eq__", {"b": 2, "a": 1, "c": 3})


def test_defaultdict() -> None:
    compare_method(defaultdict(list, a=1), "__getitem__", "b")
    compare_method(defaultdict(int, a=1), "__getitem__", "b")
    compare_method(defaultdict(int, a=1), "get", "b")
    compare_method(defaultdict(None, a=1), "__getitem__", "b")
    compare_method(defaultdict(list, a=1), "copy")


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.sub, operator.xor])
@pytest.mark.parametrize(
    "other", [{"a", 5}, ["c", "a"], {"c": 1, "x": 2}], ids=["set", "list", "dict"]
)
def test_key_views_are_sets(function: object, other: object) -> None:
    from framejit.values.core.registry import LOOKASIDES

    real = {"b": 1, "a": 2, "c": 3}
    space = new_space()
    view = symbolic(space, real).call_method(space, "keys", [], {})
    second, real_second = (
        symbolic(space, other),
        set(list(other)) if isinstance(other, set) else other,
    )
    if isinstance(other, dict):
        second = second.call_method(space, "keys", [], {})
        real_second = other.keys()
    result = LOOKASIDES[function](space, [view, second], {})
    assert plain(space, result) == ("set", list(function(real.keys(), real_second)))
    if isinstance(other, set):
        result = LOOKASIDES[function](space, [second, view], {})
        assert plain(space, result) == ("set", list(function(real_second, real.keys())))


def test_reading_an_existing_dict_guards_only_that_key() -> None:
    space = new_space()
    value = existing(space, {"a": 1, "b": 2, "c": 3}).realize()
    value.getitem(space, space.constant("b"))
    assert not space.truth(value.contains(space, space.constant("q")))
    assert [f.kind for f in value.source.facts] == ["TYPE_MATCH"]
    assert value.source.child("item", "b").read  # which has it guarded to be there
    assert [f.kind for f in value.source.child("item", "q").facts] == ["ABSENT"]
    assert not value.complete
    value.setitem(space, space.constant("n"), space.constant(5))
    assert value.written.keys() == {"n"} and not value.rewritten
    assert not value.source.child("item", "n").facts
    value.delitem(space, space.constant("a"))
    assert value.written["a"][1] is None
    assert plain(space, value) == ("dict", [("b", 2), ("c", 3), ("n", 5)])
    assert [f.kind for f in value.source.facts] == ["TYPE_MATCH", "DICT_KEYS"]
    assert value.complete and not value.rewritten


def test_deleting_and_storing_again_moves_to_the_end() -> None:
    space = new_space()
    value = existing(space, {"a": 1, "b": 2}).realize()
    value.delitem(space, space.constant("a"))
    value.setitem(space, space.constant("a"), space.constant(3))
    assert plain(space, value) == ("dict", [("b", 2), ("a", 3)])
    assert list(value.moved) == ["a"] and list(value.written) == ["a"]


def test_blind_store_over_an_existing_key() -> None:
    space = new_space()
    value = existing(space, {"a": 1, "b": 2}).realize()
    value.setitem(space, space.constant("a"), space.constant(3))
    assert plain(space, value.len(space)) == 2
    assert plain(space, value) == ("dict", [("a", 3), ("b", 2)])
    value = existing(space, {"a": 1, "b": 2}, "y").realize()
    value.setitem(space, space.constant("a"), space.constant(3))
    value.delitem(space, space.constant("a"))
    assert plain(space, value.len(space)) == 1
    assert [item for _, item in value.written.values()] == [None]


def test_clear_looks_at_nothing() -> None:
    space = new_space()
    value = existing(space, {"a": 1}).realize()
    value.call_method(space, "clear", [], {})
    assert [f.kind for f in value.source.facts] == ["TYPE_MATCH"]
    assert value.rewritten and plain(space, value) == ("dict", [])


def test_changed_during_iteration() -> None:
    space = new_space()
    value = symbolic(space, {"a": 1, "b": 2})
    iterator = space.iter(value)
    space.next(iterator)
    value.setitem(space, space.constant("c"), space.constant(1))
    with pytest.raises(Raised) as caught:
        space.next(iterator)
    assert caught.value.value.python_type() is RuntimeError


def test_views_are_live() -> None:
    space = new_space()
    value = symbolic(space, {"a": 1})
    view = value.call_method(space, "items", [], {})
    value.setitem(space, space.constant("b"), space.constant(2))
    assert plain(space, view) == ("items", [("a", 1), ("b", 2)])


def test_object_keys() -> None:
    class Thing:
        pass

    thing = Thing()
    space = new_space()
    value = existing(space, {int: "int", thing: "thing", "k": 1}).realize()
    key = existing(space, thing, "t")
    assert plain(space, space.getitem(value, key)) == "thing"
    assert plain(space, space.getitem(value, existing(space, int, "i"))) == "int"
    assert not value.complete
    assert len(value.items) == 3


def test_mapping_proxy() -> None:
    space = new_space()
    value = existing(space, types.MappingProxyType({"a": 1})).realize()
    assert plain(space, space.getitem(value, space.constant("a"))) == 1
    with pytest.raises(Raised):
        space.setitem(value, space.constant("a"), space.constant(1))
