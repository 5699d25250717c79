"""What built-in classes and functions refuse, and operands that they seldom get."""

from __future__ import annotations

import collections
import functools
import itertools
import operator
import types
from collections import defaultdict

import pytest
import torch

from checking import check
from framejit import config


def said(function, *args, **kwargs):
    """What it returns, or the exception's class and text."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__, str(error)


def check_inside(program, *args, graphs=1, ops=2):
    """Check a program between two operations."""

    def run(x, *rest):
        y = x + 1
        return program(*rest), y * 2

    check(run, torch.ones(2), *args, graphs=graphs, ops=ops)


class Plain:
    known = 1


class Key:
    """Equals a text."""

    def __init__(self, text):
        self.text = text

    def __hash__(self):
        return hash(self.text)

    def __eq__(self, other):
        return isinstance(other, str) and other == self.text


class Groups(defaultdict):
    def __init__(self, factory):
        super().__init__(factory)


def generate():
    yield 1
    yield 2
    return 3


def sets_of_views():
    few, many = {"a": 1}, {"a": 1, "b": [2]}
    hashable = {"a": 1, "b": 2}
    return (
        few.items() ^ hashable.items(), hashable.items() ^ few.items(),
        said(operator.xor, few.items(), many.items()),
        few.items() ^ few.keys(), few.keys().isdisjoint(many.keys()),
        many.keys().isdisjoint(few.keys()),
        few.keys().isdisjoint({"x", "y"}), few.keys().isdisjoint(frozenset()),
        few.keys().isdisjoint(["a"]),
        few.items().isdisjoint(many.items()), few.keys().isdisjoint(few.values()),
        said(operator.and_, few.values(), few.keys()), said(few.keys().isdisjoint, [[]]),
    )  # fmt: skip


def proxies():
    proxy = types.MappingProxyType({"a": 1})
    return (
        said(lambda: proxy.items(1)), said(lambda: proxy.get()), said(lambda: proxy.copy(a=1)),
        said(operator.ior, proxy, {"b": 2}), said(operator.ior, proxy, 3),
        said(lambda: proxy.__ior__({})),
        operator.ior({"b": 2}, proxy), proxy | {"b": 2}, {"c": 3} | proxy,
    )  # fmt: skip


def keys_of_namespaces():
    namespace = vars(Plain)
    return (
        namespace.get(Key("known")), Key("known") in namespace, Key("unknown") in namespace,
        namespace[Key("known")], Key("Key") in globals(),
        types.MappingProxyType({"q": 1})[Key("q")],
    )  # fmt: skip


def default_factories():
    texts = [said(defaultdict, factory) for factory in (3, "a", Plain(), [])]
    texts += [said(Groups, 3), said(defaultdict, None), said(defaultdict, 3, {})]
    return texts, Groups(list)["a"], defaultdict(Plain().__eq__)


def cached_objects():
    made = functools.lru_cache(2)
    return said(functools.cache, 3), said(made, []), said(functools.lru_cache, Plain())


def counted():
    return (
        said(sorted, [3, 1], zz=2), said(sorted), said(sorted, [1], 2),
        said(sorted, {1: 2}, key=None, zz=1),
        said(sum, [1], zz=1), said(map), said(min, [1], zz=3), said([1].sort, zz=1),
        said(enumerate, [1], zz=1), said(reversed, [1], 2), said(itertools.islice, [1]),
    )  # fmt: skip


def thrown():
    made = [generate() for _ in range(8)]
    return (
        said(made[0].throw, ValueError("x"), 3),
        said(made[3].throw, ValueError, ValueError("given")),
        said(made[4].throw, ValueError, (1, 2)),
        said(made[5].throw, KeyError, KeyError),
        next(made[7]), next(made[7]), said(made[7].send, None), said(made[7].send, None),
    )  # fmt: skip


def thrown_otherwise():
    return said(generate().throw, 3), said(generate().throw, int), said(generate().throw, "text")


def other_receivers():
    return (
        said(lambda: list.append(3, 4)), said(lambda: list.__len__({})),
        said(lambda: str.__add__(1, "a")),
        said(lambda: str.upper()), said(lambda: set.add({}, 1)),
        said(lambda: collections.OrderedDict.move_to_end({}, 1)),
    )  # fmt: skip


def caught():
    found = []
    for classes in (
        [ValueError], (KeyError, (ValueError,)), (ValueError, 3), (int, ValueError), (), 3, "a",
        (KeyError, ValueError), int, {ValueError: 1}, torch.ones(1),
    ):  # fmt: skip
        try:
            try:
                raise ValueError("raised")
            except classes:
                found.append("caught")
        except (TypeError, ValueError) as error:
            found.append((type(error), str(error)))
    return found


@pytest.mark.parametrize("program", [
    sets_of_views, proxies, keys_of_namespaces, default_factories, cached_objects, counted, thrown,
    thrown_otherwise,
], ids=lambda program: program.__name__)  # fmt: skip
def test_in_one_graph(program):
    check_inside(program)


@pytest.mark.parametrize("program", [other_receivers])
def test_around_a_break(program):
    check_inside(program, graphs=2)


def test_only_classes_of_errors_are_caught():
    check_inside(caught, ops=3)


def test_all_globals_are_deleted():
    def make():
        namespace = {"name": 1, "other": 2}
        lines = ("names = globals()", "names.clear()", "names['q'] = 3", "return x + 1, names")
        source = "def run(x):\n" + "".join(f"    {line}\n" for line in lines)
        exec(source, namespace)
        return namespace["run"]

    check(make(), torch.ones(2), make=make, graphs=1, ops=1, calls=1)


def test_groups_of_tensors_come_in_the_order_of_a_hash_table():
    def run(x, tensors):
        grouped = torch._C._group_tensors_by_device_and_dtype([tensors, tensors], True)
        return x + 1, list(grouped.items())

    kinds = (torch.float32, torch.float64, torch.float32, torch.int32, torch.bool, torch.float64)
    check(run, torch.ones(2), [torch.ones(2, dtype=kind) for kind in kinds], graphs=1, ops=1)


def test_what_was_checked_of_data_is_known():
    def run(x, count):
        number = count.item()
        torch._check(number >= 3)
        return (x + 1 if number >= 3 else x), number

    with config.patch(capture_scalar_outputs=True):
        check(run, torch.ones(2), torch.tensor(4), graphs=1)
