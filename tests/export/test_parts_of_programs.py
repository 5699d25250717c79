"""Modules that torch makes of the parts of an exported program, and stages of a pipeline."""

import pytest
import torch
from torch import nn
from torch.distributed.pipelining import SplitPoint, pipeline

import framejit
from checking import CountingAround, check

X = torch.linspace(-1, 1, 12).reshape(3, 4)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(4, 8), nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, scale):
        self.calls.add_(1)
        return self.two(torch.relu(self.one(x))) * scale


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([Layer() for _ in range(2)])

    def forward(self, x, scale=2.0):
        for layer in self.layers:
            x = x + layer(x, scale=scale)
        return x


def part(number=1):
    """A layer as a module of its own, called with what it was called with."""
    program = torch.export.export(
        Model(), (X,), preserve_module_call_signature=("layers.0", "layers.1")
    )
    return getattr(torch.export.unflatten(program).layers, str(number))


def test_a_part_of_a_program_is_one_graph():
    check(None, X, make=part, scale=2.0, graphs=1, ops=5)


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
def test_gradients_and_buffers_of_a_part(name):
    plain, traced, backend = part(), part(), CountingAround(name)
    compiled = framejit.compile(traced, backend=backend)
    for _ in range(2):
        for module in (plain, compiled):
            module(X, scale=2.0).square().mean().backward()
    torch.testing.assert_close(dict(traced.named_buffers()), dict(plain.named_buffers()))
    for one, other in zip(traced.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)
    assert traced.calls == 2 and len(backend.graphs) == 1


def test_an_operation_that_is_added_to_the_graph_is_noticed():
    module = part()
    compiled = framejit.compile(module, backend="eager")
    before = compiled(X, scale=2.0)
    (output,) = module.graph.find_nodes(op="output")
    with module.graph.inserting_before(output):
        output.args = (module.graph.call_function(torch.neg, (output.args[0],)),)
    for _ in range(2):
        torch.testing.assert_close(module(X, scale=2.0), -before)
        torch.testing.assert_close(compiled(X, scale=2.0), -before)


def test_errors_of_a_part_are_eagers():
    check(part(), torch.ones(3, 5), scale=2.0, graphs=0)
    check(part(), X, graphs=0)
    check(part(), X, scale=2.0, other=1, graphs=0)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(4)])

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


def test_stages_of_a_pipeline_are_one_graph_each():
    model = Deep()
    stages = pipeline(model, mb_args=(X,), split_spec={"layers.2": SplitPoint.BEGINNING})
    assert stages.num_stages == 2
    x = X
    for number in range(2):
        stage = stages.get_stage_module(number)
        check(stage, x, graphs=1, ops=6)
        x = stage(x).detach()
    torch.testing.assert_close(x, model(X), rtol=0, atol=0)
