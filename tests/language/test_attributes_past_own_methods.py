"""C code reads slots and fields of objects past their `__getattribute__`; so do captures.

Each class says something else, or notes that it is asked; values that only C code reads are
compared with eager.
"""

from __future__ import annotations

import collections

import torch

import framejit
from checking import CountingBackend, check

X = torch.ones(2)


class Slots:
    """`__getattribute__` counts, and says something else of ``seen``."""

    __slots__ = ("asked", "seen", "unset")

    def __init__(self) -> None:
        self.asked = 0
        self.seen = 3

    def __getattribute__(self, name):
        if name == "asked":
            return object.__getattribute__(self, name)
        self.asked += 1
        return ("own", object.__getattribute__(self, name))

    def __getattr__(self, name):
        return f"no {name}"


class Other:
    __slots__ = ("held",)

    def __getattribute__(self, name):
        return object.__getattribute__(self, "held").__class__


class Factory(collections.defaultdict):
    def __getattribute__(self, name):
        return int if name == "default_factory" else super().__getattribute__(name)

    def __setattr__(self, name, value):
        raise AssertionError(name)


class Bounded(collections.deque):
    def __getattribute__(self, name):
        return 1 if name == "maxlen" else super().__getattribute__(name)


class Failure(Exception):
    def __getattribute__(self, name):
        return "own" if name == "args" else super().__getattribute__(name)


class Renamed(Exception):
    args = property(lambda self: ("own",))


def test_slots_are_read_as_the_descriptor_does():
    def make():
        o = Slots()

        def program(x):
            plain = object.__getattribute__(o, "seen")
            return x + 1, plain, o.seen, o.unset, o.asked

        return program

    check(make(), X, make=make, calls=1, graphs=1, ops=1, fullgraph=True)


def test_guards_do_not_ask():
    def program(o, x):
        return x + object.__getattribute__(o, "seen")

    backend, slots = CountingBackend(), Slots()
    compiled = framejit.compile(program, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(slots, X), X + 3)
    assert slots.asked == 0
    slots.seen = 5
    assert torch.equal(compiled(slots, X), X + 5)
    assert slots.asked == 0 and len(backend.graphs) == 2


def test_class_of_a_proxy():
    proxy = Other()
    proxy.held = 3

    def program(x):
        return x + 1, proxy.anything is int, proxy.__class__

    check(program, X, graphs=1, ops=1, fullgraph=True)


def test_fields_of_containers():
    def program(table, queue, x):
        table["a"].append(1)
        collections.deque.append(queue, 3)
        return x + 1, len(queue), table["a"], queue.maxlen, table.default_factory

    check(program, Factory(list), Bounded([1, 2], 3), X, graphs=1, ops=1, fullgraph=True)


def test_made_containers_are_built_without_the_program():
    def program(x):
        table = Factory(list)
        table["a"].append(x + 1)
        return table, table["b"]

    check(program, X, graphs=1, ops=1, fullgraph=True)


def test_texts_of_errors():
    def program(error, x):
        made = Failure(4, "a")
        return x + 1, str(error), repr(error), error.args, str(made), repr(made), made.args

    check(program, Failure(1, 2), X, graphs=1, ops=1, fullgraph=True)


def test_arguments_of_an_own_name():
    def program(error, x):
        made = Renamed(4)
        return x + 1, str(error), error.args, str(made), repr(made)

    check(program, Renamed(1, 2), X, graphs=1, ops=1)
