"""Many threads call one compiled function: a variant is captured once, every result is right."""

import contextvars
import os
import threading

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit.backends.exclusive import exclusive
from threads import in_thread, in_threads

THREADS = 8
SIZES = (1, 2, 3, 5)


def program(x, flag):
    y = x * 2 if flag else x + 3
    if torch.is_grad_enabled():
        y = y + 1
    return y.sum(0)


def run_threads(work, count=THREADS):
    """Run ``work(index)`` in ``count`` threads at once."""
    in_threads(work, range(count), switching=1e-5)


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


def make_model(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4))


def gradients(model, result):
    return torch.autograd.grad(result.pow(2).sum(), list(model.parameters()))


@pytest.mark.parametrize("rounds", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_different_models_are_compiled_by_several_threads(rounds):
    """AOTAutograd's tracing replaces ``Module.__call__`` for the whole process meanwhile."""
    inputs = [torch.randn(size, 4) for size in (2, 3, 4, 5)]
    framejit.compile(torch.sin, backend="aot_eager")(inputs[0])  # imports, in peace
    for _ in range(rounds):
        models = [make_model(seed) for seed in range(3)]
        expected = [[(m(x), gradients(m, m(x))) for x in inputs] for m in models]
        compiled = [framejit.compile(model, backend="aot_eager") for model in models]

        def work(index, models=models, compiled=compiled, expected=expected):
            for x, (result, grads) in zip(inputs, expected[index], strict=True):
                got = compiled[index](x)
                torch.testing.assert_close(got, result)
                torch.testing.assert_close(gradients(models[index], got), grads)

        framejit.counters.clear()
        run_threads(work, len(models))
        assert framejit.counters["frames"]["ok"] == 2 * len(models)  # each model's second: any size


def test_one_model_is_trained_by_several_threads():
    """Whoever comes first compiles; so it is with the backward graph, which is compiled lazily."""
    from functorch.compile import make_boxed_func

    model, inputs = make_model(0), [torch.randn(size, 4) for size in (2, 3, 4, 5)]
    expected = [(model(x), gradients(model, model(x))) for x in inputs]
    forwards, backwards = [], []

    def recorded(graphs):
        def compile_graph(gm, examples):
            graphs.append(gm)
            return make_boxed_func(gm.forward)

        return compile_graph

    backend = framejit.backends.aot_autograd(recorded(forwards), recorded(backwards))
    compiled = framejit.compile(model, backend=backend, dynamic=True)

    def work(index):
        for x, (result, grads) in zip(inputs, expected, strict=True):
            got = compiled(x)
            torch.testing.assert_close(got, result)
            torch.testing.assert_close(gradients(model, got), grads)

    run_threads(work)
    assert (len(forwards), len(backwards)) == (1, 1)


def test_a_backend_may_run_compiled_code_in_threads_and_compile_in_its_own():
    x = torch.ones(3)
    known = framejit.compile(lambda x: x + 1, backend="eager")
    known(x)
    fresh = framejit.compile(lambda x: x * 3, backend="eager")

    def backend(gm, examples):
        assert torch.equal(in_thread(known, x), x + 1)
        assert torch.equal(fresh(x), x * 3)
        return gm.forward

    compiled = framejit.compile(lambda x: x.sin(), backend=backend)
    assert torch.equal(compiled(x), x.sin())
    assert [len(one.entries) for one in (known, fresh, compiled)] == [1, 1, 1]


def test_a_backward_is_compiled_in_another_thread():
    """Also in a thread of autograd that the compiling thread waits for: it has its context."""
    model, x = make_model(0), torch.randn(2, 4)
    expected = gradients(model, model(x))
    first, second = [framejit.compile(model, backend="aot_eager")(x) for _ in range(2)]
    torch.testing.assert_close(in_thread(gradients, model, first), expected)

    with exclusive():
        context = contextvars.copy_context()
        got = in_thread(context.run, gradients, model, second)
    torch.testing.assert_close(got, expected)


def test_a_child_of_a_process_that_compiles_can_compile():
    inside, done = threading.Event(), threading.Event()

    def backend(gm, examples):
        inside.set()
        done.wait(60)
        return gm.forward

    x = torch.ones(3)
    slow = framejit.compile(lambda x: x.sin(), backend=backend)
    thread = threading.Thread(target=slow, args=(x,), daemon=True)
    thread.start()
    inside.wait(60)
    child = os.fork()
    if child == 0:
        other = framejit.compile(lambda x: x.cos(), backend="eager")
        os._exit(0 if torch.equal(other(x), x.cos()) and len(other.entries) == 1 else 1)
    done.set()
    thread.join(timeout=30)
    assert os.waitpid(child, 0)[1] == 0
