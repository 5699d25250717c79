"""Graphs that are alike are compiled once; others are not taken for them."""

import gc

import pytest
import torch
from torch import nn

import framejit
from framejit.backends.registry import lookup_backend
from repeating import Block


class Counting:
    """aot_eager, which takes graphs with regions, counted."""

    regions = True

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, inputs):
        self.graphs.append(gm)
        return lookup_backend("aot_eager")(gm, inputs)


class Branching(nn.Module):
    """A block whose branch depends on data."""

    def __init__(self, number):
        super().__init__()
        self.number, self.one, self.two = number, nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, seen):
        y = self.one(x)
        seen[self.number] = y
        y = torch.relu(y) if y.sum() > 0 else torch.tanh(y)
        return x + self.two(y)


class Branches(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.blocks = nn.ModuleList(map(Branching, range(count)))

    def forward(self, x):
        seen = {}
        for block in self.blocks:
            x = block(x, seen)
        return x, seen


def check_steps(model, run, x):
    """Two steps: results and gradients are those of plain Python."""
    for _ in range(2):
        found = []
        for call in (model, run):
            model.zero_grad()
            result = call(x)
            first = result[0] if isinstance(result, tuple) else result
            first.square().sum().backward()
            found.append((result, [p.grad for p in model.parameters()]))
        torch.testing.assert_close(found[1], found[0])


def test_layers_between_breaks():
    backend, model = Counting(), Branches(6)
    with framejit.config.patch(recompile_limit=30), torch.no_grad():
        run = framejit.compile(model, backend=backend)
        x = torch.randn(3, 8)
        assert torch.equal(run(x)[0], model(x)[0])
    assert len(backend.graphs) <= 4 and framejit.counters["stats"]["graphs_reused"] >= 2


def test_training_of_layers_between_breaks():
    backend, model = Counting(), Branches(6)
    with framejit.config.patch(recompile_limit=30):
        check_steps(model, framejit.compile(model, backend=backend), torch.randn(3, 8))
    assert len(backend.graphs) <= 6 and framejit.counters["stats"]["graphs_reused"] >= 2


def test_blocks_that_are_compiled_one_by_one():
    backend, model = Counting(), nn.Sequential(*[Block() for _ in range(5)])
    compiled = [framejit.compile(block, backend=backend, fullgraph=True) for block in model]

    def run(x):
        for block in compiled:
            x = block(x)
        return x

    check_steps(model, run, torch.randn(2, 3, 8))
    assert len(backend.graphs) == 2  # only the first block's input requires no gradient


def pairs():
    def times(number):
        return lambda x: x * number + 1

    def angle(zero):
        return lambda x: torch.atan2(x * 0, x * zero)

    x = torch.ones(2, 3)
    yield "numbers", times(2), times(3), x, x
    yield "classes of numbers", times(1), times(True), x, x
    yield "signs", angle(-0.0), angle(0.0), x, x
    yield "operations", torch.sin, torch.cos, x, x
    yield "sizes", times(2), times(2), x, torch.ones(3, 2)
    yield "strides", times(2), times(2), x, torch.ones(3, 2).t()
    yield "dtypes", times(2), times(2), x, x.double()
    yield "gradients", times(2), times(2), x, torch.ones(2, 3, requires_grad=True)
    yield "classes", times(2), times(2), x, nn.Parameter(x, requires_grad=False)
    yield "views", times(2), times(2), x, torch.ones(4, 3)[:2]


@pytest.mark.parametrize("name, one, two, x, y", [pytest.param(*p, id=p[0]) for p in pairs()])
def test_graphs_that_differ(name, one, two, x, y):
    backend = Counting()
    for function, value in ((one, x), (two, y)):
        kept = framejit.compile(lambda v, f=function: f(v), backend=backend, dynamic=False)
        got, expected = kept(value), function(value)
        assert torch.equal(got, expected) and torch.equal(got.signbit(), expected.signbit())
        assert got.stride() == expected.stride() and got.requires_grad == expected.requires_grad
        globals()["_kept"] = (globals().get("_kept"), kept)
    assert len(backend.graphs) == 2


@pytest.mark.parametrize("state", [
    lambda: torch.no_grad(), lambda: torch.autocast("cpu"), lambda: torch.device("cpu"),
    lambda: torch.autograd.set_detect_anomaly(True),
])  # fmt: skip
def test_settings_that_differ(state):
    backend, w = Counting(), torch.ones(3, 3, requires_grad=True)
    compiled = [framejit.compile(lambda x: x @ w + 1, backend=backend) for _ in range(2)]
    x = torch.ones(3, 3)
    plain = compiled[0](x)
    with state():
        expected, got = x @ w + 1, compiled[1](x)
    assert got.dtype == expected.dtype and got.requires_grad == expected.requires_grad
    assert len(backend.graphs) == 2


def test_shared_memory_and_sizes_that_vary_are_left_out():
    backend, base = Counting(), torch.zeros(8)
    for _ in range(2):
        compiled = framejit.compile(lambda a, b: a.add_(1) + b, backend=backend)
        compiled(base[:4], base[2:6])
    assert len(backend.graphs) == 2
    kept = []
    for _ in range(2):
        kept.append(framejit.compile(lambda x: x * x.shape[0], backend=backend, dynamic=True))
        assert torch.equal(kept[-1](torch.ones(5)), torch.full((5,), 5.0))
    assert len(backend.graphs) == 4


def test_what_nobody_uses_is_let_go():
    backend, x = Counting(), torch.ones(3)
    for calls in (1, 2):
        compiled = framejit.compile(lambda x: x * 7, backend=backend)
        compiled(x)
        del compiled
        gc.collect()
        assert len(backend.graphs) == calls


def test_a_write_to_one_blocks_buffer_is_to_that_block():
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.mean.mul_(0.5).add_(x.mean(0))
            return x - self.mean

    backend, blocks = Counting(), [Mean(), Mean()]
    compiled = [framejit.compile(block, backend=backend) for block in blocks]
    compiled[0](torch.ones(2, 4))
    compiled[1](torch.full((2, 4), 3.0))
    assert [block.mean[0].item() for block in blocks] == [1.0, 3.0]
    assert len(backend.graphs) == 1


def test_a_graph_with_regions_is_compiled_for_itself():
    """So that it is said for each model which of its layers were compiled once."""
    models, x = [nn.Sequential(*[Block() for _ in range(4)]) for _ in range(2)], torch.ones(2, 3, 8)
    kept = []
    for model in models:
        kept.append(framejit.compile(model, backend="aot_eager", options={"regions": True}))
        with torch.no_grad():
            assert framejit.explain(kept[-1])(x).regions
