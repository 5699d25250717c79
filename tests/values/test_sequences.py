"""Lists, tuples and slices against CPython's own."""

from __future__ import annotations

import operator
from collections import deque

import pytest
import torch
from values_helpers import compare_call, compare_method, existing, new_space, plain, symbolic

import framejit
from checking import check
from framejit.exc import GraphBreak
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.operations import LazyValue

LIST_CALLS = [
    ("append", 4), ("append",), ("append", 1, 2), ("extend", (4, 5)), ("extend", "ab"),
    ("extend", 3), ("insert", 1, 9), ("insert", -1, 9), ("insert", 99, 9), ("insert", "a", 9),
    ("pop",), ("pop", 0), ("pop", 7), ("pop", -2), ("pop", "x"), ("remove", 2), ("remove", 9),
    ("clear",), ("copy",), ("reverse",), ("index", 3), ("index", 9), ("index", 1, 1),
    ("index", 3, -1), ("count", 1), ("sort",), ("__len__",), ("__contains__", 2),
    ("__getitem__", 0), ("__getitem__", -1), ("__getitem__", 5), ("__getitem__", "a"),
    ("__getitem__", slice(None, None, -1)), ("__getitem__", slice(1, None)),
    ("__getitem__", slice(None, None, 0)), ("__getitem__", slice("a", 2)),
    ("__getitem__", True), ("__getitem__", 1.5), ("__setitem__", 1, 5), ("__setitem__", 9, 5),
    ("__setitem__", slice(0, 2), [7]), ("__setitem__", slice(0, 3, 2), [7]),
    ("__setitem__", slice(0, 3, 2), [7, 8]), ("__setitem__", slice(0, 1), 5),
    ("__setitem__", slice(0, 3, 2), 5), ("__delitem__", 0), ("__delitem__", 9),
    ("__delitem__", slice(0, 2)), ("__add__", [4]), ("__mul__", 2), ("__rmul__", 2),
    ("__imul__", 2), ("__iadd__", (4,)), ("__mul__", 0), ("__eq__", [3, 1, 2]),
    ("__eq__", (3, 1, 2)), ("__lt__", [3, 2]), ("__ge__", [3, 1]), ("__ne__", [3]),
    ("__lt__", 4), ("__iter__",), ("__reversed__",), ("__init__", (8, 9)), ("sort", 1),
]  # fmt: skip


@pytest.mark.parametrize("call", LIST_CALLS, ids=str)
def test_list_method(call: tuple) -> None:
    compare_method([3, 1, 2], *call)


def test_sort_of_constants_and_mixed_types() -> None:
    compare_method([3, 1, 2], "sort", reverse=True)
    compare_method(["b", "A", "c"], "sort")
    compare_method([1, "a"], "sort")
    compare_method([(2, "x"), (1, "z"), (1, "a")], "sort")


@pytest.mark.parametrize(
    "call",
    [
        ("index", 2), ("index", 9), ("count", 1), ("__getitem__", 1), ("__getitem__", 9),
        ("__getitem__", slice(1, 3)), ("__getitem__", "x"), ("__add__", (4,)), ("__mul__", 2),
        ("__eq__", (1, 2, 3)), ("__lt__", (1, 3)), ("__gt__", ()), ("__contains__", 3),
        ("__len__",), ("__iter__",), ("__hash__",), ("append", 1) if False else ("count",),
        ("__repr__",), ("__eq__", [1, 2, 3]),
    ],
    ids=str,
)  # fmt: skip
def test_tuple_method(call: tuple) -> None:
    compare_method((1, 2, 3), *call)


@pytest.mark.parametrize("call", [
    ("append", 4), ("appendleft", 0), ("extend", [8, 9]), ("extendleft", [8, 9]), ("pop",),
    ("popleft",), ("rotate",), ("rotate", -1), ("rotate", 5), ("insert", 1, 7), ("remove", 2),
    ("remove", 9), ("clear",), ("copy",), ("reverse",), ("count", 1), ("index", 3),
    ("__getitem__", 1), ("__getitem__", -9), ("__setitem__", 0, 5), ("__delitem__", 0),
    ("__len__",), ("__contains__", 2), ("__iter__",), ("__eq__", deque([1, 2, 3])),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("maxlen", [None, 3, 4])
def test_deque_method(call: tuple, maxlen: int | None) -> None:
    if maxlen == 3 and call[0] == "insert":
        pytest.skip("the same exception")
    compare_method(deque([1, 2, 3], maxlen), *call)


@pytest.mark.parametrize("left", [[1, 2], (1, 2), [], ()], ids=str)
@pytest.mark.parametrize("right", [[1, 3], (1, 3), 2, "ab", None, 1.5], ids=str)
@pytest.mark.parametrize("function", [
    operator.add, operator.mul, operator.lt, operator.eq, operator.ne, operator.iadd,
    operator.contains,
], ids=lambda f: f.__name__)  # fmt: skip
def test_operators(left: object, right: object, function: object) -> None:
    compare_call(function, left, right)


def test_existing_list_guards_only_what_is_looked_at() -> None:
    space = new_space()
    value = existing(space, [1, 2, 3]).realize()
    assert [f.kind for f in value.source.facts] == ["TYPE_MATCH"]
    value.do_append(space, space.constant(4))
    assert [f.kind for f in value.source.facts] == ["TYPE_MATCH"]
    assert value.mutated and not value.loaded and len(value.tail) == 1
    assert list(space.effects.changed) == [value]
    item = value.getitem(space, space.constant(1))
    assert isinstance(item, LazyValue)
    assert [f.kind for f in value.source.child("index", 1).facts] == ["PRESENT"]
    assert not value.loaded
    assert plain(space, value.len(space)) == 4
    assert [f.kind for f in value.source.facts] == ["TYPE_MATCH", "LEN_MATCH"]
    assert plain(space, value) == [1, 2, 3, 4]
    assert value.items[1] is item


def test_truth_of_existing_list() -> None:
    space = new_space()
    value = existing(space, [1]).realize()
    assert value.truth(space) is True
    assert [f.kind for f in value.source.facts] == ["TYPE_MATCH", "BOOL_MATCH"]


def test_tuple_is_constant_does_not_look_at_objects() -> None:
    space = new_space()
    first = existing(space, (1, "a", (2, None))).realize()
    assert first.is_constant and first.as_python() == (1, "a", (2, None))
    second = existing(space, (1, object()), "y").realize()
    assert not second.is_constant
    assert all(item.value is None for item in second.items)


def test_size_keeps_its_class() -> None:
    space = new_space()
    size = existing(space, torch.Size([2, 3])).realize()
    part = size.getitem(space, symbolic(space, slice(1, None)))
    assert part.python_type() is torch.Size and part.as_python() == torch.Size([3])
    assert plain(space, size.call_method(space, "numel", [], {})) == 6


def test_struct_sequence_fields() -> None:
    space = new_space()
    value = existing(space, torch.max(torch.tensor([[1, 2]]), 1)).realize()
    assert isinstance(value, TupleValue)
    assert value.getattr(space, "indices") is value.items[1]


def test_unknown_method_is_a_break() -> None:
    space = new_space()
    with pytest.raises(GraphBreak):
        ListValue([]).call_method(space, "__reduce__", [], {})


def test_the_bounds_of_an_existing_slice_are_values_of_their_own() -> None:
    def f(x, s):
        s.start.append(x.shape[0])
        return x + 1, s.start, s

    check(f, torch.ones(2), slice([], 1), graphs=1, ops=1, fullgraph=True)


def test_bounds_of_slices_vary() -> None:
    def f(x, s):
        return x[s] * 2

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    x = torch.arange(10.0)
    for stop in range(1, 9):
        assert torch.equal(compiled(x, slice(0, stop)), f(x, slice(0, stop)))
    assert len(compiled.entries) == 2
