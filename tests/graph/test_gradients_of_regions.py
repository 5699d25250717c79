"""Regions in training, where a call of a subgraph could differ from its operations: state that is
set around it, results that nobody differentiates, tensors and transforms of unusual kinds."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

import framejit
from checking import Comparison
from framejit.audit.comparison import Tolerance
from repeating import ALL, Block, Regions, Stack, step

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

X = torch.linspace(-1, 1, 48).reshape(2, 3, 8)


def same(model, *arguments, calls, tolerance=1e-4):
    """Compare a training step; ``calls`` of the subgraphs."""
    regions = Regions()
    compiled = framejit.compile(model, backend=regions, options=ALL)
    for _ in range(2):
        twin = copy.deepcopy(model)
        expected = step(twin, twin, copy.deepcopy(arguments), True)
        got = step(model, compiled, copy.deepcopy(arguments), True)
        Comparison(Tolerance(tolerance, tolerance)).compare(expected, got, "step")
    assert regions.calls[0] == calls


class Looked(Block):
    """Its second result depends on parameters of its own."""

    def __init__(self):
        super().__init__()
        self.aux = nn.Linear(8, 2)

    def forward(self, x):
        y = super().forward(x)
        return y, self.aux(y).square()


class Looking(Stack):
    """``look`` is what becomes of the second results."""

    def __init__(self, look):
        super().__init__(4, Looked)
        self.look = look

    def forward(self, x):
        x, seen = self.first(x), 0.0
        for block in self.blocks:
            x, aux = block(x)
            seen = seen + self.look(aux)
        return x.tanh(), seen


def without_grad(aux):
    with torch.no_grad():
        return aux.sum()


LOOKS = {
    "detach": lambda aux: aux.detach().sum(),
    "no_grad": without_grad,
    "argmax": lambda aux: aux.argmax(-1).float(),
    "greater": lambda aux: (aux > 0.5).float(),
    "cast": lambda aux: aux.long().sum(),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_results_that_are_only_looked_at_have_no_gradient(look):
    model = Looking(look)
    same(model, X, calls={})
    assert all(block.aux.weight.grad is None for block in model.blocks)


def test_results_that_are_differentiated_as_well():
    same(Looking(lambda aux: aux.sum() + aux.detach().max()), X, calls={"region_Looked": 4})


class UnderAutocast(nn.Module):
    def __init__(self, dtype):
        super().__init__()
        self.stack, self.dtype = Stack(), dtype

    def forward(self, x):
        with torch.autocast("cpu", dtype=self.dtype):
            return self.stack(x).float()


@pytest.mark.parametrize(
    "dtype, calls", [(torch.float16, {}), (torch.bfloat16, {"region_Block": 4})], ids=str
)
def test_the_dtype_of_autocast_is_the_one_inside(dtype, calls):
    same(UnderAutocast(dtype), X, calls=calls, tolerance=6e-2)


class AroundEach(Stack):
    """State is set around each call, and between them."""

    def forward(self, x):
        x, seen = self.first(x), 0.0
        for block in self.blocks:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                x = block(x)
            x = x.float()
            with torch.no_grad():
                seen = seen + x.mean()
        return x.tanh(), seen


def test_calls_under_the_same_state_are_equal():
    same(AroundEach(), X, calls={"region_Block": 4}, tolerance=6e-2)


class Rotating(Block):
    """Rotary embeddings by multiplication of complex numbers."""

    def forward(self, x):
        y = torch.view_as_complex(super().forward(x).unflatten(-1, (4, 2)))
        turn = torch.polar(torch.ones(4), torch.arange(4.0))
        return torch.view_as_real(y * turn).flatten(2)


class Spectral(Block):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, dtype=torch.complex64) / 4)

    def forward(self, x):
        x = super().forward(x)
        return x + torch.fft.irfft(torch.fft.rfft(x) * self.weight, n=8)


@pytest.mark.parametrize("block", [Rotating, Spectral])
def test_complex_numbers_inside(block):
    same(Stack(4, block), X, calls={f"region_{block.__name__}": 4})


def test_gradients_in_batches():
    """The operator that calls subgraphs has no rule for that: it is not in what is executed."""
    model = Stack()

    def gradients(run):
        weight, batch = model.first.weight, torch.linspace(-1, 1, 240).reshape(5, 2, 3, 8)
        return torch.autograd.grad(run(X), weight, batch, is_grads_batched=True)

    got = gradients(framejit.compile(model, backend=Regions(), options=ALL))
    torch.testing.assert_close(got, gradients(model))


def test_gradients_in_batches_within_the_graph():
    model, batch = Stack(), torch.linspace(-1, 1, 240).reshape(5, 2, 3, 8)

    def gradients(x):
        return torch.autograd.grad(model(x), model.first.weight, batch, is_grads_batched=True)

    got = framejit.compile(gradients, backend=Regions(), options=ALL)(X)
    torch.testing.assert_close(got, gradients(X))


class Counting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.products = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.products += function in (torch.ops.aten.addmm.default, torch.ops.aten.mm.default)
        return function(*args, **(kwargs or {}))


def test_a_mode_sees_the_operations_of_backward():
    model, counted = Stack(), []
    for run in (model, framejit.compile(model, backend=Regions(), options=ALL)):
        loss = run(X).sum()
        with Counting() as counting:
            loss.backward()
        counted.append(counting.products)
    assert counted[0] == counted[1] > 0


class Normal(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8)
        self.gate = nn.Conv2d(8, 8, 1)

    def forward(self, x):
        y = F.silu(self.norm(self.conv(x)))
        return x + y * self.gate(y).sigmoid() * 0.5


@pytest.mark.parametrize("size", [1, 3])
def test_inductor_compiles_flat_what_it_cannot_compile_as_regions(size):
    """It gives results of convolutions other strides: the backward graph then has calls of one
    subgraph with different ones, which it refuses, after forward has run."""
    stem = nn.Conv2d(3, 8, size, padding=size // 2)
    model, x = nn.Sequential(stem, *[Normal() for _ in range(3)]), torch.randn(2, 3, 6, 6)
    twin = copy.deepcopy(model)
    expected = step(twin, twin, (x,), True)
    got = step(model, framejit.compile(model, options=ALL), (x,), True)
    Comparison(Tolerance(1e-4, 1e-4)).compare(expected, got, "step")
