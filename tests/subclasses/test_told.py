"""What a tensor tells of itself (``__tensor_flatten__``) is guarded, whatever it consists of, and
without running that method where it can be traced."""

from __future__ import annotations

import collections
import dataclasses
import random

import pytest
import torch
from comparing import same
from wrapping import Scaled, scaled, x

import framejit
from framejit.backends.registry import lookup_backend

Limits = collections.namedtuple("Limits", "low high")


@dataclasses.dataclass
class Settings:
    factor: float
    limits: Limits
    names: list


class Slotted:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        return type(other) is Slotted and other.factor == self.factor

    __hash__ = None


class Told(Scaled):
    """How it is used is an object."""

    def __tensor_flatten__(self):
        return ["numbers", "scale"], self.how

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            one = args[0]
            return cls(func(one.numbers), func(one.scale), one.how)
        full = [
            a.numbers.to(a.scale.dtype) * a.scale * factor(a.how) if isinstance(a, cls) else a
            for a in args
        ]
        return func(*full, **(kwargs or {}))


def factor(how):
    if isinstance(how, dict):
        return factor(how["inner"])
    if isinstance(how, (list, tuple)) and not isinstance(how, Limits):
        return factor(how[0])
    if isinstance(how, Limits):
        return how.high
    if isinstance(how, Settings):
        return how.factor + how.limits.high + len(how.names)
    if isinstance(how, Slotted):
        return how.factor
    return how


class Shuffling(Told):
    """Its method is not looked into: it asks what is outside."""

    def __tensor_flatten__(self):
        random.getstate()
        return ["numbers", "scale"], self.how


class Loading(Told):
    """Its method calls others, and a property."""

    @property
    def names(self):
        return [name for name in ("numbers", "scale") if hasattr(self, name)]

    def __tensor_flatten__(self):
        return self.names, {"inner": getattr(self, "how"), "kind": type(self).__name__}  # noqa: B009

    @classmethod
    def __tensor_unflatten__(cls, inner, how, size, stride):
        return cls(inner["numbers"], inner["scale"], how["inner"])


def settings():
    return Settings(1.0, Limits(0, 2.0), ["a"])


def _names(how):
    how.names.append("b")


CHANGES = {
    "a dict": (lambda: {"inner": 1.0}, lambda how: how.update(inner=3.0)),
    "a list": (lambda: [1.0, {"a": 2}], lambda how: how.__setitem__(0, 3.0)),
    "a dict in a list": (lambda: [{"inner": 1.0}], lambda how: how[0].update(inner=3.0)),
    "an object": (settings, lambda how: setattr(how, "factor", 5.0)),
    "a part of an object": (settings, lambda how: setattr(how, "limits", Limits(0, 9.0))),
    "a list of an object": (settings, _names),
    "slots": (lambda: Slotted(1.0), lambda how: setattr(how, "factor", 4.0)),
}


@pytest.mark.parametrize("cls", [Told, Shuffling, Loading])
@pytest.mark.parametrize("name", CHANGES)
def test_changes_in_place_are_seen(name, cls):
    make, change = CHANGES[name]
    how = make()
    weight = cls(torch.ones(4, 3, dtype=torch.int8), torch.tensor(0.5), how)
    graphs = []
    compiled = framejit.compile(
        torch.nn.functional.linear, backend=lambda m, _: graphs.append(m) or m, fullgraph=True
    )
    for expected in (1, 1, 2, 2):
        if expected == 2 and len(graphs) == 1:
            change(how)
        wanted = torch.nn.functional.linear(x(), weight)
        assert torch.equal(compiled(x(), weight), wanted)
        assert len(graphs) == expected


def test_equal_ones_are_interchangeable():
    graphs = []
    compiled = framejit.compile(
        torch.nn.functional.linear, backend=lambda m, _: graphs.append(m) or m, fullgraph=True
    )
    for make, _ in (*[CHANGES["an object"]] * 2, *[CHANGES["a dict in a list"]] * 2):
        weight = Told(torch.ones(4, 3, dtype=torch.int8), torch.tensor(0.5), make())
        wanted = torch.nn.functional.linear(x(), weight)
        assert torch.equal(compiled(x(), weight), wanted)
    assert len(graphs) == 2


def test_guards_do_not_run_the_method():
    weight = Told(torch.ones(4, 3, dtype=torch.int8), torch.tensor(0.5), (1.0, "a"))
    compiled = framejit.compile(torch.nn.functional.linear, backend="eager", fullgraph=True)
    compiled(x(), weight)
    assert not [one for one in framejit.guards(compiled)[0].guards if "flattened" in str(one)]


@pytest.mark.parametrize("how", [lambda n: n, lambda n: [n, "a"], lambda n: {"inner": n}])
@pytest.mark.parametrize("numbers", [(1.5, 2.5, 3.5, 4.5), (2, 3, 4, 5)])
def test_numbers_that_vary_are_seen_by_backends(numbers, how):
    graphs, inner = [], lookup_backend("aot_eager")
    compiled = framejit.compile(
        torch.nn.functional.linear, backend=lambda m, e: inner(graphs.append(m) or m, e),
        fullgraph=True,
    )  # fmt: skip
    for number in numbers * 2:
        weight = Told(torch.ones(4, 3, dtype=torch.int8), torch.tensor(0.5), how(number))
        wanted = torch.nn.functional.linear(x(), weight)
        assert torch.equal(compiled(x(), weight), wanted)
    assert len(graphs) == len(numbers)


def changes_what_is_told(y, w, how):
    first = torch.nn.functional.linear(y, w)
    how["factor"] = 3.0
    return first, torch.nn.functional.linear(y, w), how


def changes_it_first(y, w, how):
    how["factor"] = 3.0
    return torch.nn.functional.linear(y, w)


@pytest.mark.parametrize("program", [changes_what_is_told, changes_it_first])
def test_the_program_changes_what_is_told(program):
    def make():
        w = scaled(2.0)
        return x(), w, w.how

    same(program, make, graphs=int(program is changes_what_is_told), fullgraph=False)
