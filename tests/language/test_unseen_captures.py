"""Hooks on saved tensors and modes of the user's are called exactly as often as in eager mode: what
captures and backends find out on the side is none of their business."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend
from framejit.report import events


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.operators = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operators.append(str(func))
        return func(*args, **kwargs or {})


class FunctionLog(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.functions = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.functions.append(func)
        return func(*args, **kwargs or {})


def powers(x):
    return (x**2).sin().sum()


def layers(x):
    y = torch.nn.functional.dropout(x @ x.T, 0.5)
    return (y**2).exp().sum() + torch.zeros(1) + x[0, 0].detach()


def writes(x):
    counter = torch.zeros(2)
    counter.add_(1)
    return (x * counter[0]).tanh().sum()


PROGRAMS = [(powers, 3), (layers, 11), (writes, 6)]


def compiled(function, backend):
    counting = CountingBackend()

    def run(module, examples):
        counting(module, examples)
        return lookup_backend(backend)(module, examples)

    return framejit.compile(function, backend=run), counting


def calls_of_hooks(function):
    calls = []

    def pack(tensor):
        calls.append(("pack", tuple(tensor.shape)))
        return tensor

    def unpack(tensor):
        calls.append(("unpack", tuple(tensor.shape)))
        return tensor

    results = []
    for _ in range(2):
        x = (torch.arange(4.0).reshape(2, 2) / 3).requires_grad_()
        torch.manual_seed(0)
        with saved_tensors_hooks(pack, unpack):
            result = function(x)
        result.sum().backward()
        calls.append("backward")
        results.append((result.detach(), x.grad))
    return calls, results


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(("function", "ops"), PROGRAMS)
def test_hooks_with_effects(function, ops, backend) -> None:
    mine, counting = compiled(function, backend)
    expected, results = calls_of_hooks(function)
    with events.recording(events.GraphBreak, events.CaptureEnd) as seen:
        got, ours = calls_of_hooks(mine)
    assert got == expected
    torch.testing.assert_close(ours, results)
    assert [event.outcome for event in seen] == ["compiled"]
    assert not counting.graphs  # what is captured runs operation by operation
    mine(torch.ones(2, 2))
    assert (len(counting.graphs), counting.ops) == (1, ops)


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize(("function", "ops"), PROGRAMS)
def test_dispatch_mode(function, ops, dynamic) -> None:
    counting = CountingBackend()
    mine = framejit.compile(function, backend=counting, dynamic=dynamic)
    x = torch.ones(2, 2, requires_grad=True)
    logs = []
    for call in (function, mine):
        for _ in range(2):
            with Log() as log:
                call(x)
            logs.append(log.operators)
    assert logs[0] and logs[1:] == logs[:1] * 3
    assert (len(counting.graphs), counting.ops) == (1, ops)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_flop_counter(backend) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    mine, counting = compiled(module, backend)
    x = torch.ones(2, 3)
    counts = []
    for call in (module, mine):
        for _ in range(2):
            with FlopCounterMode(display=False) as counter:
                call(x).sum().backward()
            counts.append(counter.get_total_flops())
    assert counts == counts[:1] * 4 and counts[0] > 0
    # The counter's hooks are new ones each time.
    assert (len(counting.graphs), counting.ops) == (6, 6)


def test_function_mode() -> None:
    mine, counting = compiled(powers, "eager")
    x = torch.ones(2, 2)
    logs = []
    for call in (powers, mine, mine):
        with FunctionLog() as log:
            call(x)
        logs.append(log.functions)
        call(x)
    assert logs[0] and logs[1:] == logs[:1] * 2
    assert (len(counting.graphs), counting.ops) == (1, 3)
