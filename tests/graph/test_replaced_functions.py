"""Functions and methods of torch that the program replaces, before a capture or after it: a graph
calls those that were captured, whatever their names mean when it runs or is traced by a backend.
"""

from __future__ import annotations

import copy
import functools
import pickle

import pytest
import torch
import torch.nn.functional as F

import framejit
from checking import CountingAround, Outcome, Tolerance, compare_outcomes

X = torch.tensor([[1.0, -2.0], [0.5, 3.0]])
BACKENDS = ["eager", "aot_eager"]
CLOSE = Tolerance(1e-5, 1e-5)
relu, softmax, cos, layer_norm = F.relu, F.softmax, torch.cos, F.layer_norm
total, add_in_place = torch.Tensor.sum, torch.Tensor.add_


def compared(program, backend, graphs, calls=2):
    """The compiled program, which does as plain Python in each of the calls."""
    counting = CountingAround(backend)
    compiled = framejit.compile(program, backend=counting, fullgraph=True)
    again(program, compiled, calls)
    assert len(counting.graphs) == graphs
    return compiled


def again(program, compiled, calls=2):
    for _ in range(calls):
        args = (X.clone(),)
        compare_outcomes(Outcome(program, args, {}), Outcome(compiled, args, {}), CLOSE)


REPLACED = {
    "relu": (F, "relu", lambda x, inplace=False: relu(x) * 2 + 1, lambda x: F.relu(x)),
    "softmax": (F, "softmax", lambda x, dim: softmax(x, dim) * 3, lambda x: F.softmax(x, 0)),
    "cos": (torch, "cos", lambda x: cos(cos(x)) + 10, lambda x: (torch.cos(x), cos(x), x.cos())),
    "layer norm": (
        F, "layer_norm", lambda x, *a: layer_norm(x, *a) * 7,
        torch.nn.LayerNorm(2, elementwise_affine=False),
    ),
    "sum": (torch.Tensor, "sum", lambda x, *a: total(x, *a) * 100, lambda x: (x.sum(), x.sum(0))),
    "add_": (
        torch.Tensor, "add_", lambda x, other: add_in_place(x, other).mul_(5), lambda x: x.add_(1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", REPLACED)
def test_functions_that_call_what_they_replace(name, backend, monkeypatch):
    where, attribute, other, program = REPLACED[name]
    with monkeypatch.context() as patch:
        patch.setattr(where, attribute, other)
        compiled = compared(program, backend, 1)
    again(program, compiled)  # captured anew, with torch's own
    with monkeypatch.context() as patch:
        patch.setattr(where, attribute, other)
        again(program, compiled)


@pytest.mark.parametrize("backend", BACKENDS)
def test_functions_that_the_program_holds(backend, monkeypatch):
    def program(x, held=(F.relu, torch.sin, F.gelu, torch.cat, torch.stft, F.dropout)):
        one, sine, gelu, joined, _, drop = held
        return one(x), sine(x), gelu(x), joined([x, x]), drop(x, 0.0), x + F.silu(x)

    compiled = compared(program, backend, 1)
    for module, name in ((F, "relu"), (torch, "sin"), (F, "gelu"), (torch, "cat"), (F, "dropout")):
        monkeypatch.setattr(module, name, lambda *args, **kwargs: "another")
    again(program, compiled)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("where, name", [(F, "relu"), (F, "layer_norm"), (torch.Tensor, "split")])
def test_functions_with_the_names_of_what_they_replace(where, name, backend, monkeypatch):
    original = getattr(where, name)
    seen = []

    @functools.wraps(original)  # its module is torch's, too
    def other(*args, **kwargs):
        seen.append(name)
        return original(*args, **kwargs)

    program = {
        "relu": lambda x: F.relu(x) + 1, "layer_norm": lambda x: F.layer_norm(x, (2,)) + 1,
        "split": lambda x: x.split(1)[0] + 1,
    }[name]  # fmt: skip
    monkeypatch.setattr(where, name, other)
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for call in range(1, 4):
        assert torch.equal(compiled(X), program(X))
        assert len(seen) == 2 * call


@pytest.mark.parametrize("backend", BACKENDS)
def test_backends_call_the_methods_of_torch(backend, monkeypatch):
    original = torch.Tensor.mul
    monkeypatch.setattr(torch.Tensor, "mul", lambda x, y: original(x, y) + 1)
    program = lambda x: (x * 2.0, x.mul(3))  # noqa: E731
    compiled = compared(program, backend, 1)
    assert torch.Tensor.mul is not original
    monkeypatch.undo()
    again(program, compiled)


def test_repeated_calls_hold_theirs(monkeypatch):
    def layer(x, function=F.relu):
        return function(x) + torch.sin(x)

    def program(x):
        for _ in range(5):
            x = layer(x)
        return x

    compiled = compared(program, "eager", 1)
    monkeypatch.setattr(F, "relu", lambda *args, **kwargs: "another")
    again(program, compiled)


def test_graphs_are_copied_and_pickled(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "sum", lambda x: total(x) * 100)
    backend = CountingAround("eager")
    program = lambda x: F.relu(x).sum()  # noqa: E731
    expected = framejit.compile(program, backend=backend)(X)
    (graph,) = backend.graphs
    assert "torch.nn.functional.relu(" in graph.code
    for other in (copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert torch.equal(other(X)[0], expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_overloads_that_no_code_can_name(backend):
    def program(x):
        return x.random_(3, 9), torch.empty(4).random_(5), torch.empty(4).random_(), x + 1

    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for seed in range(3):
        outcomes = []
        for function in (program, compiled):
            torch.manual_seed(seed)
            outcomes.append(Outcome(function, (X.clone(),), {}))
        compare_outcomes(*outcomes)
