"""Inductor compiles a region once, for all of its calls, and training steps stay what they are."""

import copy
import re

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor.utils import fresh_cache, run_and_get_code

import framejit
from checking import Comparison
from framejit import config
from framejit.audit.comparison import Tolerance
from framejit.report import events
from repeating import ALL, Regions

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Block(nn.Module):
    """What backward needs of it are arguments, views of them, and views of its result."""

    def __init__(self, width=8, dropout=0.0):
        super().__init__()
        self.norm, self.dropout = nn.LayerNorm(width), nn.Dropout(dropout)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        a, b = self.up(self.norm(x)).chunk(2, -1)
        y = self.down(torch.cat([torch.sigmoid(a) * b, b.tanh()], -1))
        return self.dropout(x + y) * 1.5


class Stack(nn.Module):
    def __init__(self, count=4, **options):
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.blocks = nn.ModuleList([Block(**options) for _ in range(count)])

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x.sin()


def step(model, run, x, train):
    for parameter in model.parameters():
        parameter.grad = None
    x = x.clone().requires_grad_(train)
    with torch.set_grad_enabled(train):
        result = run(x)
    if train:
        result.square().mean().backward()
    return result, [x.grad, *[p.grad for p in model.parameters()]]


def codes_of(function):
    """What Inductor writes while ``function`` runs."""
    return run_and_get_code(function)[1]


def first_step(model, backend, x, train):
    """The compiled model after a step, what Inductor wrote for it, and refused regions."""
    with (
        fresh_cache(),
        config.patch(raise_internal_errors=True),
        events.recording(events.RegionsRefused) as refused,
    ):
        compiled = framejit.compile(model, backend=backend, options=ALL)
        return compiled, codes_of(lambda: step(model, compiled, x, train)), refused


@pytest.mark.parametrize("train", [False, True])
def test_a_region_is_compiled_once(train):
    model, counted, x = Stack(), Regions("inductor"), torch.randn(2, 3, 8)
    compiled, codes, refused = first_step(model, counted, x, train)
    assert counted.calls == [{"region_Block": 4}]
    for code in codes[: 2 if train else 1]:
        (name,) = re.findall(r"^def (\w+)\(args\)", code, re.M)
        assert code.count(f"= {name}({name}_args)") == 4
        region = code[code.index(f"def {name}(args)") : code.index("class Runner")]
        assert "'input')" not in region  # the graph has asserted the sizes of its inputs
        assert code.count("'input')") > 4
    for _ in range(3):
        x = torch.randn(2, 3, 8)
        expected = step(twin := copy.deepcopy(model), twin, x, train)
        Comparison(Tolerance(1e-5, 1e-5)).compare(expected, step(model, compiled, x, train), "step")
    assert not refused


def test_backward_computes_masks_of_results_itself():
    """A mask takes less memory than the result that it is made of, which is there anyway."""

    class Rectified(Block):
        def forward(self, x, scale):
            y = torch.relu(super().forward(x))
            return y, (y * scale).tanh(), torch.relu(y - scale)

    class Chain(Stack):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Rectified() for _ in range(4)])

        def forward(self, x):
            x, total = self.first(x), 0
            for i, block in enumerate(self.blocks):
                x, y, z = block(x, torch.full((), 1.0 + i))
                total = total + y + z
            return total * x

    torch.manual_seed(0)
    model, counted, x = Chain(), Regions("inductor"), torch.randn(2, 3, 8)
    compiled, (forward, _), refused = first_step(model, counted, x, True)
    assert counted.calls == [{"region_Rectified": 4}]
    assert "def partitioned_fw" in forward
    assert "torch.bool" not in forward
    for _ in range(2):
        x = torch.randn(2, 3, 8)
        expected = step(twin := copy.deepcopy(model), twin, x, True)
        Comparison(Tolerance(1e-4, 1e-4)).compare(expected, step(model, compiled, x, True), "step")
    assert not refused


def test_every_call_drops_elements_of_its_own_and_backward_the_same_ones():
    class Dropping(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4000))

        def forward(self, x):
            kept = torch.nn.functional.dropout(self.weight, 0.5)
            return x * 1 + (kept.cos() + kept.sin() + kept * kept + kept + 1 - 1) * 0 + kept

    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Dropping() for _ in range(3)])

        def forward(self, x):
            found = []
            for block in self.blocks:
                x = block(x)
                found.append(x)
            return found

    model, counted = Sums(), Regions("inductor")
    compiled = framejit.compile(model, backend=counted, options=ALL)
    for turn in range(2):
        for parameter in model.parameters():
            parameter.grad = None
        found = compiled(torch.zeros(4000, requires_grad=True))
        found[-1].sum().backward()
        masks = [b - a for a, b in zip([0, *found], found, strict=False)]
        for mask, block in zip(masks, model.blocks, strict=True):
            assert torch.equal(mask, block.weight.grad), turn
            assert 0.4 < (mask != 0).float().mean() < 0.6
        assert 0.4 < (masks[0] == masks[1]).float().mean() < 0.6
        assert 0.4 < (masks[1] == masks[2]).float().mean() < 0.6
    assert list(counted.calls[0].values()) == [3]


def test_numbers_of_plain_python_where_they_are_asked_for():
    model, x = Stack(dropout=0.4), torch.randn(2, 3, 8)
    options = {"fallback_random": True}
    compiled = framejit.compile(model, options=options)
    torch.manual_seed(5)
    got = step(model, compiled, x, True)
    torch.manual_seed(5)
    expected = step(twin := copy.deepcopy(model), twin, x, True)
    Comparison(Tolerance(1e-4, 1e-4)).compare(expected, got, "step")


@pytest.mark.parametrize("train", [False, True])
def test_a_package_runs_what_was_compiled_with_regions(train, tmp_path):
    model, x = Stack(), torch.randn(2, 3, 8)
    compiled = framejit.compile(model)
    expected = step(model, compiled, x, train)
    compiled.save_package(tmp_path / "stack.fjp")
    again = framejit.compile(model)
    again.load_package(tmp_path / "stack.fjp")
    with events.recording(events.BackendStart) as started:
        got = step(model, again, x, train)
    assert not started
    Comparison(Tolerance(1e-6, 1e-6)).compare(expected, got, "step")


def test_what_is_compiled_is_found_in_caches(caplog):
    model, x = Stack(), torch.randn(2, 8)
    with fresh_cache():
        for hits in (0, 1):
            framejit.reset()
            before = counters["aot_autograd"]["autograd_cache_hit"]
            step(model, framejit.compile(model, options=ALL), x, True)
            assert counters["aot_autograd"]["autograd_cache_hit"] - before == hits
    assert not [record for record in caplog.records if "cache" in record.getMessage()]
