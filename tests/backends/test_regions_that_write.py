"""What every call of a region writes to is written by the region, compiled once."""

import copy
import re

import pytest
import torch
from torch import nn
from torch._inductor import ir
from torch._inductor.utils import fresh_cache, run_and_get_code

import framejit
from checking import Comparison
from framejit.audit.comparison import Tolerance
from framejit.report import events
from repeating import ALL, Regions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Normed(nn.Module):
    """Writes to its statistics, to what counts its calls, and to a buffer of its own."""

    def __init__(self, width=8):
        super().__init__()
        self.linear, self.norm = nn.Linear(width, width), nn.BatchNorm1d(width)
        self.register_buffer("seen", torch.zeros(width))

    def forward(self, x):
        y = torch.relu(self.norm(self.linear(x)))
        self.seen.add_(y.detach().mean(0))
        return x + y.tanh() * 2


class Cached(nn.Module):
    """Writes a part of a buffer, and reads all of it."""

    def __init__(self, width=8):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.register_buffer("kept", torch.zeros(6, width))

    def forward(self, x):
        y = self.linear(x).tanh().sin()
        self.kept.index_copy_(0, (x[:, 0] > 0).long().cumsum(0), y)
        return x + (self.kept * 2).sum(0).sigmoid() * y


def chain(blocks, x):
    for block in blocks:
        x = block(x)
    return x


def read_afterwards(blocks, x):
    x = chain(blocks, x)
    return x, sum(block.seen for block in blocks) * 2


def read_before(blocks, x):
    total = sum(block.seen for block in blocks) * 2
    return chain(blocks, x), total


def written_again(blocks, x):
    x = chain(blocks, x)
    for block in blocks:
        block.seen.mul_(0.5)
    return x


def step(run, blocks, x, train):
    x = x.clone().requires_grad_(train)
    with torch.set_grad_enabled(train):
        results = run(blocks, x)
    if train:
        torch.utils._pytree.tree_leaves(results)[0].square().mean().backward()
    gradients = [x.grad, *[parameter.grad for parameter in blocks.parameters()]]
    noticed = [buffer._version > 0 for buffer in blocks.buffers()]
    return results, gradients, dict(blocks.named_buffers()), noticed


def compare_steps(run, blocks, train, steps=3):
    """Assert that steps do the same as in plain Python; what Inductor wrote for the first one, and
    refused regions."""
    twin, counted = copy.deepcopy(blocks), Regions("inductor")
    compiled = framejit.compile(run, backend=counted, options=ALL)
    codes = None
    with fresh_cache(), events.recording(events.RegionsRefused) as refused:
        for number in range(steps):
            x = torch.randn(4, 8)
            expected = step(run, twin, x, train)
            got, made = run_and_get_code(lambda x=x: step(compiled, blocks, x, train))
            Comparison(Tolerance(1e-5, 1e-5)).compare(expected, got, f"step {number}")
            codes = codes or made
    assert sum(counted.calls[0].values()) == len(list(blocks))
    return codes, refused


def around_regions(code):
    """How many kernels the graph around the regions has."""
    return len(re.findall(r"^ +cpp_fused_\w+\(", code[code.index("class Runner") :], re.M))


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize(("kind", "train"), [(Normed, True), (Normed, False), (Cached, False)])
def test_the_graph_around_it_writes_nothing(kind, train):
    codes, refused = compare_steps(chain, nn.ModuleList([kind() for _ in range(5)]), train)
    assert around_regions(codes[0]) <= 1
    assert not refused


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("run", [read_afterwards, read_before, written_again])
def test_who_else_uses_what_is_written_gets_the_same(run, train):
    compare_steps(run, nn.ModuleList([Normed() for _ in range(4)]), train)


@pytest.mark.parametrize("train", [True, False])
def test_one_layer_called_again_and_again(train):
    compare_steps(chain, nn.ModuleList([Normed()] * 4), train)


def test_one_buffer_of_all_layers():
    blocks = nn.ModuleList([Normed() for _ in range(4)])
    for block in blocks:
        block.seen = blocks[0].seen
    compare_steps(chain, blocks, True)


def test_where_the_region_would_get_a_copy_the_graph_stays_flat(monkeypatch):
    def refuse(*arguments):
        raise RuntimeError("written to")

    monkeypatch.setattr(ir, "MutationOutput", refuse)
    codes, _ = compare_steps(chain, nn.ModuleList([Normed() for _ in range(4)]), True)
    assert "region" not in codes[0]


def test_packages_write_as_well(tmp_path):
    blocks = nn.ModuleList([Normed() for _ in range(4)])
    twin = copy.deepcopy(blocks)
    compiled = framejit.compile(chain, backend="inductor", options=ALL)
    x = torch.randn(4, 8)
    with fresh_cache():
        step(compiled, copy.deepcopy(blocks), x, True)
        compiled.save_package(tmp_path / "package")
    loaded = framejit.compile(chain, backend="inductor", options=ALL)
    loaded.load_package(tmp_path / "package")
    with events.recording(events.CaptureStart, events.GraphCompiled) as seen:
        got = step(loaded, blocks, x, True)
    Comparison(Tolerance(1e-5, 1e-5)).compare(step(chain, twin, x, True), got, "loaded")
    assert not seen
