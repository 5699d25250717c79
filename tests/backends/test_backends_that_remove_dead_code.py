"""Backends that have fx remove dead code keep what a graph does beside computing."""

import pytest
import torch

import framejit
from checking import Comparison


class Removing:
    """Removes what nothing uses, runs the rest; ``graphs`` has what is left."""

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, example_inputs):
        gm.graph.eliminate_dead_code()
        gm.recompile()
        self.graphs.append(gm)
        return gm.forward


def autocast(x):
    with torch.autocast("cpu", torch.float16):
        y = x @ x
        with torch.autocast("cpu", enabled=False):
            z = x @ x
    return y, z, x @ x, [t.dtype for t in (y, z)]


def autocast_that_breaks(x):
    with torch.autocast("cpu", torch.float16, cache_enabled=False):
        y = x @ x
        torch._dynamo.graph_break()
        z = x @ x
    return y, z, x @ x


def no_gradients(x):
    with torch.no_grad():
        y = x @ x
    with torch.set_grad_enabled(False), torch.enable_grad():
        z = x @ x
    return y, z, x @ x


def vmapped(x):
    return torch.vmap(lambda row: row * row.sum(), randomness="same")(x)


def gradients(x):
    return torch.func.grad(lambda t: (t @ t).sum())(x.detach())


def default_dtype(x):
    torch.set_default_dtype(torch.float64)
    try:
        return x @ x, torch.ones(2)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(
    "program",
    [autocast, autocast_that_breaks, no_gradients, vmapped, gradients, default_dtype],
)
def test_state_is_set(program):
    x, backend = torch.eye(3, requires_grad=True), Removing()
    compiled = framejit.compile(program, backend=backend)
    for _ in range(2):
        expected, got = program(x), compiled(x)
        Comparison().compare(expected, got, "result")
    graphs = 2 if program is autocast_that_breaks else 1
    assert len(backend.graphs) == graphs
