"""Attributes that a program puts on tensors made of tensors, existing ones, results and new ones:
part of the graph's program where the class's own code does not look at them."""

from __future__ import annotations

import pytest
import torch
from comparing import described, same_when_broken
from wrapping import Pair, pair

import framejit
from checking import CountingAround


def on_results(t):
    u = t * 2
    u.note = [1]
    v = u + 1
    u.note.append(2)
    return v, u, u.note, hasattr(v, "note")


def on_existing(t):
    t.note = "seen"
    u = t + 1
    t.count = len(t.note)
    return u * 2, t


def in_a_loop(t):
    for i in range(3):
        t = t + 1
        t.step = i
    return t, t.step


def a_tensor(t):
    u = t * 2
    u.extra = t.a + 1
    return u.extra * 2, u, u + 1


def on_made(t):
    u = Pair(t.a, t.b + 1)
    v = u * 2
    u.note = v
    return u * 3, u, u.note is v


def taken_away(t):
    u = t * 2
    u.note = 1
    v = u + 1
    del u.note
    return v, u, hasattr(u, "note")


def replaced(t):
    u = t * 2
    u.note, first = 1, u
    u.note = {"a": t}
    return u * 2, first, u.note["a"] is t


def looked_at(t):
    """The class's code sees this one."""
    u = t * 2
    u.tag = "new"
    v = u + 1
    return v, u, v.tag


def looked_at_by_others(t):
    u = t * 2
    t.tag = "new"
    return u + 1, t


class Property(Pair):
    @property
    def level(self):
        return self._level * 2

    @level.setter
    def level(self, value):
        self._level = value

    @classmethod
    def __tensor_unflatten__(cls, inner, told, size, stride):
        return cls(inner["a"], inner["b"], told)


def by_a_property(t):
    u = Property(t.a, t.b) * 2
    u.level = 4
    return (u * 3).a, u.level, u


PROGRAMS = {
    on_results: (1, 2),
    on_existing: (1, 2),
    in_a_loop: (1, 3),
    a_tensor: (1, 5),
    on_made: (1, 6),
    taken_away: (1, 2),
    replaced: (1, 2),
    looked_at: (1, 1),
    looked_at_by_others: (1, 1),
    by_a_property: (1, 4),
}


def attributes(value):
    """What there is to see in results: attributes included."""
    if isinstance(value, torch.Tensor):
        own = {name: attributes(one) for name, one in vars(value).items()}
        return described(value), own if hasattr(value, "__tensor_flatten__") else None
    if isinstance(value, (tuple, list)):
        return [attributes(one) for one in value]
    return value if not isinstance(value, dict) else list(value)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_attributes_are_put_on(program, backend):
    counting = CountingAround(backend)
    compiled = framejit.compile(program, backend=counting)
    for _ in range(3):
        one, other = pair(tag="m"), pair(tag="m")
        assert attributes([compiled(one), one]) == attributes([program(other), other])
    assert (len(counting.graphs), counting.ops) == PROGRAMS[program]


@pytest.mark.parametrize("program", [on_results, on_existing, on_made, taken_away, looked_at],
                         ids=lambda program: program.__name__)  # fmt: skip
def test_a_break_anywhere_changes_nothing(program):
    assert same_when_broken(program, lambda: (pair(tag="m"),)) > 9
