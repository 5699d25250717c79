"""Many threads call one compiled function: a variant is captured once, every result is right."""

import sys
import threading

import pytest
import torch

import framejit
from checking import CountingBackend

THREADS = 8
SIZES = (1, 2, 3, 5)


def program(x, flag):
    y = x * 2 if flag else x + 3
    if torch.is_grad_enabled():
        y = y + 1
    return y.sum(0)


def run_threads(work):
    """Run ``work(index)`` in THREADS threads at once; their exceptions are raised here."""
    errors, barrier = [], threading.Barrier(THREADS)

    def body(index):
        barrier.wait()
        try:
            work(index)
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=body, args=(i,), daemon=True) for i in range(THREADS)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=100)
            assert not thread.is_alive(), "deadlock"
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("calls", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_each_variant_is_captured_once(calls):
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend, dynamic=False)
    variants = [
        (torch.full((size, 3), float(size)), flag, grad)
        for size in SIZES for flag in (True, False) for grad in (True, False)
    ]  # fmt: skip
    expected = []
    for x, flag, grad in variants:
        with torch.set_grad_enabled(grad):
            expected.append(program(x, flag))

    def work(index):
        for call in range(calls // THREADS):
            # neighbours meet the same variant at the same time, and go different ways later
            which = (call * (1 + index % 3)) % len(variants)
            x, flag, grad = variants[which]
            with torch.set_grad_enabled(grad):
                assert torch.equal(compiled(x, flag), expected[which])

    run_threads(work)
    assert len(backend.graphs) == len(compiled.entries) == len(variants)
    assert framejit.counters["frames"]["ok"] == len(variants)


def broken(x):
    y = x + 1
    if y.sum() > 10:  # a graph break
        return y * 2
    return y - 2


def test_continuations_are_captured_once():
    backend = CountingBackend()
    compiled = framejit.compile(broken, backend=backend)
    inputs = [torch.zeros(3), torch.full((3,), 5.0)]
    expected = [broken(x) for x in inputs]

    def work(index):
        for call in range(100):
            which = (call + index) % 2
            assert torch.equal(compiled(inputs[which]), expected[which])

    run_threads(work)
    assert len(backend.graphs) == 3


def test_a_module_that_changes_while_it_is_called():
    """Whatever a call sees, it is one of the states that the module was in."""
    model = torch.nn.Linear(2, 2, bias=False)
    weights = [torch.nn.Parameter(torch.full((2, 2), float(i))) for i in range(4)]
    model.weight = weights[0]
    compiled = framejit.compile(model, backend="eager")
    allowed = {float(2 * i) for i in range(4)}
    x = torch.ones(1, 2)

    def work(index):
        for call in range(200):
            if index == 0:
                model.weight = weights[call % 4]
            else:
                assert set(compiled(x).detach().flatten().tolist()) <= allowed

    run_threads(work)


def test_compiling_and_clearing_at_once():
    compiled = framejit.compile(program, backend="eager")
    x = torch.ones(2, 3)
    expected = program(x, True)

    def work(index):
        for call in range(40):
            if index == 0:
                compiled.clear_entries()
            assert torch.equal(compiled(x, True), expected)

    with framejit.config.patch(recompile_limit=1000):
        run_threads(work)
