"""Functions of torch that only ask, and settings that are changed for a while."""

from __future__ import annotations

import pytest
import torch
from torch.fx import _symbolic_trace
from torch.utils._python_dispatch import TorchDispatchMode

import framejit
from checking import CountingBackend, check, said

X = torch.ones(2)


def asked(x):
    count = torch._C._len_torch_dispatch_stack() + torch._C._len_torch_function_stack()
    warns = torch._C._get_warnAlways(), torch._C._get_cpu_capability()
    return x + count, warns, torch._C._is_any_autocast_enabled()


def whether_it_is_traced(x):
    return x if _symbolic_trace.is_fx_tracing() or _symbolic_trace.is_fx_symbolic_tracing() else -x


@torch.jit.script_if_tracing
def shifted(x, by: int):
    return x + by


def scripted_if_it_is_traced(x):
    return shifted(x, by=2) * shifted(x, 3)


def deterministic_for_a_while(x):
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    within = torch.are_deterministic_algorithms_enabled(), torch.get_deterministic_debug_mode()
    y = x * 2
    torch.use_deterministic_algorithms(mode=before)
    return y, before, within, torch.get_deterministic_debug_mode()


def deterministic_by_a_level(x):
    torch.set_deterministic_debug_mode("error")
    y = x * 2
    level = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode(0)
    return y, level


def without_hooks(x):
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        with torch.autograd.graph.disable_saved_tensors_hooks("nor here"):
            y = x.sin()
        return y * x


@pytest.mark.parametrize(
    "program, ops",
    [
        (asked, 1), (whether_it_is_traced, 1), (scripted_if_it_is_traced, 3),
        (deterministic_for_a_while, 3), (deterministic_by_a_level, 3), (without_hooks, 5),
    ],
)  # fmt: skip
def test_one_graph(program, ops):
    check(program, X, graphs=1, ops=ops, fullgraph=True)
    check(program, X.clone().requires_grad_(), graphs=1, ops=ops, fullgraph=True)


def test_hooks_are_refused_where_they_are_disabled():
    def run(x):
        with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
            y = x.sin()
            return y, said(torch.autograd.graph.save_on_cpu().__enter__)

    check(run, X, graphs=1)


def test_a_setting_that_stays():
    def run(x):
        torch.use_deterministic_algorithms(True)
        return x * 2

    compiled = framejit.compile(run, backend="eager", fullgraph=True)
    states = []
    for function in (run, compiled, compiled):
        try:
            function(X)
            states.append(
                (torch.get_deterministic_debug_mode(), torch._inductor.config.deterministic)
            )
        finally:
            torch.use_deterministic_algorithms(False)
    assert states == [(2, True)] * 3


class Seen(TorchDispatchMode):
    """Does nothing."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def test_an_answer_that_changes():
    backend = CountingBackend()
    compiled = framejit.compile(asked, backend=backend, fullgraph=True)
    for always in (False, True, False, True):
        torch._C._set_warnAlways(always)
        try:
            assert compiled(X)[1] == asked(X)[1]
        finally:
            torch._C._set_warnAlways(False)
    assert len(backend.graphs) == 2
    with Seen():
        assert compiled(X)[0].tolist() == asked(X)[0].tolist() == [2.0, 2.0]


def test_tracing_that_begins(monkeypatch):
    compiled = framejit.compile(whether_it_is_traced, backend="eager", fullgraph=True)
    for flag in (False, True, False):
        if hasattr(_symbolic_trace, "_is_fx_tracing_tls"):  # of a thread, since torch 2.15
            monkeypatch.setattr(_symbolic_trace._is_fx_tracing_tls, "flag", flag, raising=False)
        else:
            monkeypatch.setattr(_symbolic_trace, "_is_fx_tracing_flag", flag)
        assert torch.equal(compiled(X), whether_it_is_traced(X))


def test_attention_in_eval_mode_is_one_graph():
    attention = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()

    def run(x):
        with torch.no_grad():
            return attention(x, x, x, need_weights=True)

    check(run, torch.ones(2, 3, 4), graphs=1, fullgraph=True)


def settings_without_operations(x):
    with torch.no_grad():
        with torch.enable_grad():
            pass
        torch.set_default_dtype(torch.float64)
    torch.set_default_dtype(torch.float32)
    return x + 1


def set_as_it_is(x):
    torch.set_grad_enabled(True)
    with torch.enable_grad():
        return x + 1


def settings_in_a_row(x):
    with torch.no_grad():
        y = x * 2
    with torch.no_grad():
        z = x * 3
    return y, z, y.requires_grad


@pytest.mark.parametrize(
    "program, ops",
    [(settings_without_operations, 1), (set_as_it_is, 1), (settings_in_a_row, 4)],
)
def test_graphs_set_what_operations_see(program, ops):
    check(program, X.clone().requires_grad_(), graphs=1, ops=ops, fullgraph=True)


def test_settings_alone_are_no_graph():
    def run(x):
        with torch.no_grad():
            pass
        torch.set_grad_enabled(False)
        return len(x), torch.is_grad_enabled()

    def around(function):
        try:
            return function(X), torch.is_grad_enabled()
        finally:
            torch.set_grad_enabled(True)

    backend = CountingBackend()
    compiled = framejit.compile(run, backend=backend, fullgraph=True)
    assert around(compiled) == around(run) == around(compiled) == ((2, False), False)
    assert not backend.graphs
