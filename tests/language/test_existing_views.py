"""Views of dicts that the program made before, and holds: they show what the dict has now."""

from __future__ import annotations

import gc
from collections import OrderedDict, defaultdict

import pytest
import torch

import framejit
from checking import Comparison, CountingBackend, check, said


class Tagged(dict):
    """A class whose own methods views do not ask."""

    def __len__(self):
        return 99

    def __iter__(self):
        return iter("xyz")

    def __getitem__(self, key):
        return "other"


class Ordered(OrderedDict):
    """Its views are those of OrderedDict."""


KINDS = [dict, OrderedDict, Tagged, Ordered, lambda pairs: defaultdict(list, pairs)]


def views_of(made):
    return made.keys(), made.values(), made.items()


def asks(held):
    keys, values, items = held

    def program(x):
        y = x * len(keys)
        return (
            y, len(values), len(items), list(keys), list(values), list(items), "a" in keys,
            2 in values, ("b", 2) in items, ("b", 3) in items, sorted(keys & {"a", "z"}),
            sorted(keys | ["z"]), sorted(keys - {"a"}), sorted({"q"} ^ keys), keys <= {"a", "b"},
            keys == {"a", "b"}, keys.isdisjoint(["y"]), bool(keys), bool(values), bool(items),
            list(reversed(keys)), list(reversed(items)), keys.mapping == dict(items),
            type(keys).__name__, type(values), keys is keys, dict(zip(keys, values, strict=True)),
            said(hash, keys), said(len, reversed(keys)), isinstance(items, type({}.items())),
        )  # fmt: skip

    return program


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("content", [[("a", 1), ("b", 2)], []])
def test_views_are_asked(kind, content):
    check(
        lambda x: x, torch.ones(2), graphs=1, ops=1,
        make=lambda: asks(views_of(kind(content))),
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_dict_changes_between_calls_and_inside(kind):
    def run(compile):
        made = kind([("a", 1), ("b", 2)])
        keys, values, items = views_of(made)

        @compile
        def f(x, name):
            seen = len(keys), list(values)
            made[name] = len(items)
            y = x * len(keys)
            made.pop("a", None)
            return y, seen, list(keys), list(items), len(values)

        out = [f(torch.ones(2), "c")]
        made["d"] = 5
        out.append(f(torch.ones(2), "e"))
        made.clear()
        out.append(f(torch.ones(2), "f"))
        return out, list(items)

    backend = CountingBackend()
    expected, got = run(lambda f: f), run(lambda f: framejit.compile(f, backend=backend))
    Comparison().compare(expected, got, "result")
    assert backend.ops == len(backend.graphs) > 0
    assert not framejit.counters.get("graph_break")


def test_views_of_attributes_and_arguments():
    class Holder:
        def __init__(self):
            self.a, self.b = 1, 2

    def run(compile):
        holder = Holder()
        names = vars(holder).keys()

        @compile
        def f(x, names, values):
            holder.c = 3
            return x * len(names), list(names), list(values)

        return [f(torch.ones(2), names, vars(holder).values()) for _ in range(2)]

    backend = CountingBackend()
    expected, got = run(lambda f: f), run(lambda f: framejit.compile(f, backend=backend))
    Comparison().compare(expected, got, "result")
    assert not framejit.counters.get("graph_break")


def test_a_view_of_another_dict_is_another_view():
    def run(compile):
        views = [{"a": 1}.keys(), {"a": 1, "b": 2}.keys(), OrderedDict(a=1).keys(), {1, 2}]
        f = compile(lambda x, view: (x * len(view), view, type(view)))
        out = [f(torch.ones(2), view) for view in views + views]
        return [one[::2] for one in out], [one[1] is v for one, v in zip(out, views * 2)]

    backend = CountingBackend()
    expected, got = run(lambda f: f), run(lambda f: framejit.compile(f, backend=backend))
    Comparison().compare(expected, got, "result")
    assert not framejit.counters.get("graph_break")


def test_a_view_does_not_keep_its_dict():
    class Value:
        pass

    made = {"a": Value()}
    f = framejit.compile(lambda x, view: x * len(view), backend="eager")
    f(torch.ones(2), made.values())
    gone = made["a"]
    made.clear()
    del made
    gc.collect()
    assert not [one for one in gc.get_referrers(gone) if isinstance(one, dict) and "a" in one]
