"""Counters that a program only counts up are not looked at: they cost no recompile."""

import copy

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend

X = torch.ones(2, 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.calls = 0
        self.last = 7
        self.label = "a"
        self.table = {"n": 0}
        self.row = [0, 5]


class Attribute(Net):
    def forward(self, x):
        self.calls += 1
        return self.layer(x)


class Several(Net):
    def forward(self, x):
        for _ in range(4):
            self.calls += 1
        self.calls = 3 + self.calls - 1
        return self.layer(x), self.calls, (self.calls,), {"n": self.calls}


class Containers(Net):
    def forward(self, x):
        self.table["n"] += 1
        self.row[0] -= 2
        self.row[1] = 1 + self.row[1]
        return self.layer(x)


class Copied(Net):
    def forward(self, x):
        self.last = self.calls  # carried from one attribute to another
        self.label, self.calls = self.label, self.calls + 1
        return self.layer(x)


class InAnInlinedCall(Net):
    def count(self, by):
        self.calls = self.calls + by

    def forward(self, x):
        self.count(2)
        x = self.layer(x)
        self.count(-1)
        return x


class AroundABreak(Net):
    def forward(self, x):
        self.calls += 1
        before = self.calls
        print(end="")
        torch.rand(1).item()
        self.calls += 1
        return self.layer(x), before


@pytest.mark.parametrize(
    "kind", [Attribute, Several, Containers, Copied, InAnInlinedCall, AroundABreak]
)
def test_modules(kind):
    eager = kind()
    model = copy.deepcopy(eager)
    backend = CountingBackend()
    compiled = framejit.compile(model, backend=backend)
    for call in range(12):
        if call == 1:
            graphs = len(backend.graphs)
        torch.testing.assert_close(compiled(X), eager(X))
        for name in ("calls", "last", "label", "table", "row"):
            assert getattr(model, name) == getattr(eager, name)
    assert len(backend.graphs) == graphs


calls = 0


def test_globals_and_cells():
    kept = 0

    def count(x):
        global calls
        nonlocal kept
        calls += 1
        kept -= 1
        return x + 1

    backend = CountingBackend()
    compiled = framejit.compile(count, backend=backend)
    for call in range(1, 13):
        assert torch.equal(compiled(X), X + 1)
        assert (calls, kept) == (call, -call)
    assert len(backend.graphs) == 1


class Own(int):
    def __add__(self, other):
        return Own(int(self) + 100 * other)


@pytest.mark.parametrize("value", [2**62, 2**63 - 1, -(2**70), 1.5, True, Own(3)])
def test_what_stands_there_may_be_anything(value):
    """Only integers were seen; the others are, with one more entry, what they are."""
    eager, model = Attribute(), Attribute()
    compiled = framejit.compile(model, backend="eager")
    for _ in range(3):
        compiled(X), eager(X)
    eager.calls = model.calls = value
    for _ in range(3):
        compiled(X), eager(X)
        assert model.calls == eager.calls and type(model.calls) is type(eager.calls)
    eager.calls = model.calls = "text"
    for run in (compiled, eager):
        with pytest.raises(TypeError):
            run(X)


class Looked(Net):
    def forward(self, x):
        self.calls += 1
        if self.calls % 3 == 0:
            x = x * 2
        return x + self.calls


def test_one_that_is_looked_at_is_guarded():
    torch.manual_seed(0)
    eager, model = Looked(), Looked()
    backend = CountingBackend()
    compiled = framejit.compile(model, backend=backend)
    for _ in range(12):
        assert torch.equal(compiled(X), eager(X)) and model.calls == eager.calls
    assert 1 < len(backend.graphs) <= 4


def test_a_graph_that_raises_counts_once():
    class Raising(Net):
        def forward(self, x, index):
            self.calls += 1
            return x[index]

    model = Raising()
    compiled = framejit.compile(model, backend="eager")
    index = torch.tensor([0])
    for call in range(1, 4):
        compiled(X, index)
        assert model.calls == call
    with pytest.raises(IndexError):
        compiled(X, torch.tensor([9]))
    assert model.calls == 4
