"""Graphs that set what kernels ask for when they run give what eager mode gives."""

import pytest
import torch

import framejit
from framejit.report import events


def results_of_integers(x):
    return x + torch.ones(3) / 3, torch.arange(3) / 3, torch.tensor([1, 2, 3]) / 7 + torch.zeros(3)


def in_double_precision(x):
    torch.set_default_dtype(torch.float64)
    try:
        return results_of_integers(x)
    finally:
        torch.set_default_dtype(torch.float32)


def in_both_precisions(x):
    before = results_of_integers(x)
    return before, in_double_precision(x), results_of_integers(x * 2)


def with_deterministic_algorithms(x):
    torch._C._set_deterministic_algorithms(True)
    try:
        return torch.empty(3).isnan(), x.cumsum(0)
    finally:
        torch._C._set_deterministic_algorithms(False)


PROGRAMS = [in_double_precision, in_both_precisions, with_deterministic_algorithms]


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_state_is_set_when_the_graph_runs(program, backend):
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for dtype in (torch.float32, torch.float64):
        x = torch.linspace(0, 1, 3, dtype=dtype)
        with events.recording(events.GraphCompiled) as graphs:
            got = compiled(x)
        torch.testing.assert_close(got, program(x), rtol=0, atol=0, equal_nan=True)
        assert len(graphs) == 1
