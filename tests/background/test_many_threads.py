"""Many threads call while graphs are compiled: results are right, nothing is compiled twice."""

import itertools
import random

import pytest
import torch
from torch import nn

import framejit
from calling import MINUTES
from framejit.callables import compiled_function_of
from framejit.report import events
from threads import in_threads

THREADS = 8
#: One entry each: a batch of one or of any other size, with and without gradients, by dtype.
VARIANTS = [*itertools.product((False, True), (False, True), (torch.float32, torch.float64))]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        x = torch.nn.functional.gelu(self.first(x.float()))
        return self.second(x).softmax(-1)


def calls(compiled, model, seed, count):
    """Calls with random shapes; those that differ from plain Python."""
    chosen, wrong = random.Random(seed), []
    numbers = torch.Generator().manual_seed(chosen.randint(0, 1000))
    for _ in range(count):
        one, grad, dtype = variant = chosen.choice(VARIANTS)
        size = 1 if one else chosen.randint(2, 20)
        x = torch.randn(size, 8, generator=numbers).to(dtype)
        with torch.set_grad_enabled(grad):
            got, expected = compiled(x), model(x)
        same = torch.allclose(got, expected, atol=1e-5)
        if not same or got.requires_grad != grad or got.dtype != expected.dtype:
            wrong.append((*variant, size))
    return wrong


def call(compiled, one, grad, dtype):
    with torch.set_grad_enabled(grad):
        compiled(torch.ones(1 if one else 5, 8, dtype=dtype))


def imports_are_over():
    """Sizes that vary need modules that are imported in the background."""
    framejit.compile(torch.sin, background=True, dynamic=True, backend="eager")(torch.ones(3))
    assert framejit.wait()


def check(backend, count):
    """``count`` calls in all threads together."""
    imports_are_over()
    model = Net()
    compiled = framejit.compile(
        model, background=True, dynamic=True, backend=backend, recompile_limit=3 * len(VARIANTS)
    )
    with events.recording(
        events.CaptureEnd, events.GraphPostponed, events.GraphCompiled, events.GraphReused
    ) as seen:
        wrong = in_threads(
            lambda seed: calls(compiled, model, seed, count // THREADS), range(THREADS),
            switching=1e-4, seconds=MINUTES,
        )  # fmt: skip
        assert framejit.wait(compiled)
        for variant in VARIANTS:  # calls that came while another one captured
            call(compiled, *variant)
            assert framejit.wait(compiled)
    assert wrong == [[]] * THREADS
    captured = [e for e in seen if isinstance(e, events.CaptureEnd) and e.outcome == "compiled"]
    done = [e for e in seen if isinstance(e, (events.GraphCompiled, events.GraphReused))]
    postponed = [e for e in seen if isinstance(e, events.GraphPostponed)]
    assert len(captured) == len(postponed) == len(done) == len(VARIANTS)
    frame = compiled_function_of(compiled)
    guards = [tuple(frame.plans[id(entry)].describe()) for entry in frame.entries]
    assert len(set(guards)) == len(guards) >= len(VARIANTS)


@pytest.mark.timeout(300)
def test_threads_with_random_shapes():
    check("eager", 400)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_calls():
    check("inductor", 10_000)
