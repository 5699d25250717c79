"""Many threads call while graphs are compiled: results are right, nothing is compiled twice."""

import itertools
import random
import sys
import threading

import pytest
import torch
from torch import nn

import framejit
from framejit.callables import compiled_function_of
from framejit.report import events

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


class Caller(threading.Thread):
    """Calls with random shapes, and compares with plain Python."""

    def __init__(self, compiled, model, seed, count):
        super().__init__(daemon=True)
        self.compiled, self.model, self.count = compiled, model, count
        self.random = random.Random(seed)
        self.wrong = []

    def run(self):
        numbers = torch.Generator().manual_seed(self.random.randint(0, 1000))
        for _ in range(self.count):
            one, grad, dtype = variant = self.random.choice(VARIANTS)
            size = 1 if one else self.random.randint(2, 20)
            x = torch.randn(size, 8, generator=numbers).to(dtype)
            try:
                with torch.set_grad_enabled(grad):
                    got, expected = self.compiled(x), self.model(x)
                same = torch.allclose(got, expected, atol=1e-5)
                if not same or got.requires_grad != grad or got.dtype != expected.dtype:
                    self.wrong.append((*variant, size))
            except Exception as error:  # told by the test, not by the thread
                self.wrong.append(repr(error))


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
    threads = [Caller(compiled, model, seed, count // THREADS) for seed in range(THREADS)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        with events.recording(
            events.CaptureEnd, events.GraphPostponed, events.GraphCompiled, events.GraphReused
        ) as seen:
            for one in threads:
                one.start()
            for one in threads:
                one.join()
            assert framejit.wait(compiled)
            for variant in VARIANTS:  # calls that came while another one captured
                call(compiled, *variant)
                assert framejit.wait(compiled)
    finally:
        sys.setswitchinterval(interval)
    assert [one.wrong for one in threads] == [[]] * THREADS
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
