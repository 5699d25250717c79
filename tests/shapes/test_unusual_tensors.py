"""Tensors whose sizes and strides cannot be symbols, met after others of other strides."""

import types

import torch

import framejit
from checking import CountingBackend
from framejit import config
from framejit.guards.plan import Plan
from framejit.report import events


def negated_view(*sizes):
    """An imaginary part: its strides are twice as long."""
    return torch.complex(torch.zeros(sizes), torch.ones(sizes)).conj().imag


def test_what_breaks_at_them_assumes_nothing_of_strides():
    """Later arguments have other numbers of dimensions, or are no tensors."""
    backend = CountingBackend()
    compiled = framejit.compile(lambda x: x.sum(), backend=backend)
    compiled(torch.complex(torch.zeros(2, 3, 2, 2), torch.ones(2, 3, 2, 2)).conj())
    for x in (negated_view(2, 3, 2, 2), torch.arange(24.0).as_strided((2, 2), (1, 1), 3)):
        with config.patch(raise_internal_errors=True):
            assert torch.equal(compiled(x), x.sum())
    assert compiled(types.SimpleNamespace(sum=lambda: 3)) == 3
    assert len(backend.graphs) == 3 and backend.ops == 3
    guards = [str(guard) for plan in compiled.plans.values() for guard in plan.guards()]
    assert not any("SHAPE_MATCH" in guard for guard in guards)


def test_a_reason_that_cannot_be_said_is_no_error_of_the_program(monkeypatch):
    def fails(*args):
        raise IndexError("no such dimension")

    compiled = framejit.compile(lambda x: x.sum(), backend="eager")
    compiled(torch.ones(2))
    monkeypatch.setattr(Plan, "failure", fails)
    with events.recording(events.Recompile) as told, config.patch(raise_internal_errors=False):
        assert compiled(torch.ones(2, dtype=torch.int64)) == 2
    (event,) = told
    assert "IndexError" in event.reasons[0]
