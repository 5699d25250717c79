"""Tensors made of tensors whose parts share memory with others, and that are written to."""

import pytest
import torch
from comparing import described
from wrapping import Pair, x

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend


def writes_to_both(t, a):
    a.add_(1)
    u = t * 2
    t.mul_(3)
    return u, a * 1, t


def writes_to_one(t, u):
    t.add_(5)
    return u * 2, t * 1


def writes_through_a_view(t, v):
    v.mul_(2)
    u = t + 1
    t.zero_()
    return u, v * 1


def writes_alone(t):
    t.add_(1)
    return t * 2, t.a


def apart(program):
    if program is writes_alone:
        return (Pair(x(), x() + 1),)
    if program is writes_to_one:
        return Pair(x(), x() + 1), Pair(x(), x() + 2)
    return Pair(x(), x() * 2), x() if program is writes_to_both else x().view(-1)


def shared(program):
    a = x()
    if program is writes_alone:
        return (Pair(a, a),)
    if program is writes_to_one:
        return Pair(a, a + 1), Pair(a, a + 2)
    return Pair(a, a * 2), a if program is writes_to_both else a.view(-1)


def shared_within(program):
    """As before, where the parts of one are views of each other."""
    memory = torch.arange(9.0)
    t = Pair(memory[:6].view(2, 3), memory[3:].view(2, 3))
    return {writes_alone: (t,), writes_to_one: (t, Pair(x(), x() + 2))}.get(
        program, (t, x() if program is writes_to_both else x().view(-1))
    )


BACKENDS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)]
PROGRAMS = [writes_to_both, writes_to_one, writes_through_a_view, writes_alone]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", [apart, shared, shared_within], ids=lambda one: one.__name__)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_writes_reach_all_that_share_memory(program, first, backend):
    """Whichever way they share it when the program is captured, and on later calls."""
    counting, inner = CountingBackend(), lookup_backend(backend)
    compiled = framejit.compile(
        program, backend=lambda m, e: inner(counting(m, e), e), fullgraph=True
    )
    for make in (first, apart, shared, shared_within, first):
        plain, given = make(program), make(program)
        assert described(compiled(*given)) == described(program(*plain))
        assert described(given) == described(plain)
    assert 1 <= len(counting.graphs) <= 3
