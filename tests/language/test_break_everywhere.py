"""A graph break in front of any single instruction changes nothing (D19)."""

from __future__ import annotations

import pytest
import torch

import break_everywhere
import framejit
from checking import CountingBackend, check
from framejit.bytecode.liveness import live_slots
from framejit.codegen import function
from framejit.interpreter import forced

X = torch.arange(4.0)


def loop_and_call(x):
    def double(y):
        return y * 2

    total = x
    for i in range(2):
        total = total + double(x) + i
    return total


def test_a_forced_break_is_one_break_each_time():
    backend = CountingBackend()
    double = loop_and_call.__code__.co_consts[1]
    compiled = framejit.compile(loop_and_call, backend=backend)
    with forced.forced_break(double, 1) as force:
        torch.testing.assert_close(compiled(X), loop_and_call(X))
    assert len(backend.graphs) == 2 and force.hits == 2
    assert framejit.counters["graph_break"] == {forced.REASON: 2}
    assert len(check(loop_and_call, X).graphs) == 1  # nothing of it stays


def test_every_instruction_is_found_and_broken_at():
    program = break_everywhere.Program(loop_and_call, (X,), {}, None)
    pairs = program.pairs()
    assert {code.co_name for code, _ in pairs} == {"loop_and_call", "double"}
    assert len(pairs) > 20
    everywhere = break_everywhere.Everywhere(1.0, 0, (0, 1), "")
    everywhere.check(program, "loop_and_call")
    assert (everywhere.pairs, everywhere.unbroken) == (len(pairs), 0)


def test_a_difference_is_found(monkeypatch):
    def forgets_the_first(info, index):
        return live_slots(info, index) - {0}

    program = break_everywhere.Program(loop_and_call, (X,), {}, None)
    everywhere = break_everywhere.Everywhere(1.0, 0, (0, 1), "")
    monkeypatch.setattr(function, "live_slots", forgets_the_first)
    with pytest.raises(AssertionError, match="before .* UnboundLocalError"):
        everywhere.check(program, "loop_and_call")
    assert everywhere.failed > 5 and not everywhere.left_out
