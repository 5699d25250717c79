"""How often autograd counts that a graph's inputs are written to: as in eager mode."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framejit

BACKENDS = ["aot_eager", "inductor"]


class Statistics(nn.Module):
    """Calls batch normalisation as a function, on statistics of its own."""

    def __init__(self, momentum=0.1):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("spread", torch.ones(4))
        self.momentum = momentum

    def forward(self, x):
        return F.batch_norm(x, self.mean, self.spread, training=True, momentum=self.momentum).tanh()


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.norm(x) * 2 + x)


def blocks():
    return nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)) for _ in range(6)])


MODELS = {
    "a layer": lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)),
    "without parameters": lambda: nn.BatchNorm1d(4, affine=False),
    "a function": Statistics,
    "twice": Twice,
    "equal layers": blocks,
}


def versions(model):
    return {name: buffer._version for name, buffer in model.named_buffers() if buffer.dim()}


def gradients(model, x):
    return [x.grad, *[parameter.grad for parameter in model.parameters()]]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MODELS)
def test_calls_in_eager_mode_before_and_after(name, backend):
    """A discriminator that sees real images in eager mode and others compiled, before one
    backward."""
    torch.manual_seed(0)
    model = MODELS[name]()
    other = copy.deepcopy(model)
    batches = [torch.randn(8, 4) for _ in range(3)]
    found = []
    counted = framejit.counters["stats"]["unique_graphs"]
    for one, call in ((model, model), (other, framejit.compile(other, backend=backend))):
        inputs = [batch.clone().requires_grad_() for batch in batches]
        before = versions(one)
        results = [one(inputs[0]), call(inputs[1]), one(inputs[2])]
        written = {key: count - before[key] for key, count in versions(one).items()}
        sum(result.square().sum() for result in results).backward()
        grads = [grad for x in inputs for grad in gradients(one, x)]
        found.append((results, grads, list(one.buffers()), written))
    assert framejit.counters["stats"]["unique_graphs"] == counted + 1
    (results, grads, buffers, written), (*ours, ours_written) = found
    torch.testing.assert_close(ours, [results, grads, buffers])
    assert ours_written == written and not any(written.values())


@pytest.mark.parametrize("backend", BACKENDS)
def test_writes_that_count(backend):
    """What is written in a usual way, too, counts: backward of an earlier call raises."""

    def both(x, mean, spread):
        mean.add_(1)
        return F.batch_norm(x, mean, spread, training=True)

    x, mean, spread = torch.randn(8, 4), torch.zeros(4), torch.ones(4)
    weight = torch.ones(4, requires_grad=True)
    earlier = [(weight * mean).sum(), (weight * spread).sum()]
    compiled = framejit.compile(both, backend=backend, fullgraph=True)
    compiled(x, mean, spread)
    assert (mean._version > 0, spread._version) == (True, 0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        earlier[0].backward()
    earlier[1].backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_in_inference_mode(backend):
    """Nothing is counted of tensors that are made there."""

    def normed(x, mean, spread):
        return F.batch_norm(x, mean, spread, training=True)

    found = []
    for call in (normed, framejit.compile(normed, backend=backend, fullgraph=True)):
        torch.manual_seed(0)
        with torch.inference_mode():
            state = torch.randn(8, 4), torch.zeros(4), torch.ones(4)
            found.append((call(*state), *state))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("backend", BACKENDS)
def test_from_a_package(tmp_path, backend):
    torch.manual_seed(0)
    model = MODELS["a layer"]()
    x = torch.randn(8, 4)
    saving = framejit.compile(model, backend=backend)
    saving(x)
    saving.save_package(tmp_path / "saved")
    counted = framejit.counters["stats"]["unique_graphs"]
    other = copy.deepcopy(model)
    loaded = framejit.compile(other, backend=backend)
    loaded.load_package(tmp_path / "saved")
    earlier, before = other(x), versions(other)
    loaded(x)
    earlier.square().sum().backward()
    assert versions(other) == before
    assert framejit.counters["stats"]["unique_graphs"] == counted
