"""Compiled objects take what belongs to them along when they die, and keep nothing else alive."""

import contextvars
import gc
import linecache
import os
import weakref

import pytest
import torch
from torch import nn

import framejit
from framejit.report import events


def make_model():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.BatchNorm1d(4), nn.Linear(4, 2))


def live_tensors():
    gc.collect()
    return sum(issubclass(type(thing), torch.Tensor) for thing in gc.get_objects())


class Backend:
    """Keeps weak references to the graph modules and to what it returned."""

    def __init__(self):
        self.alive = []

    def __call__(self, module, inputs):
        def run(*args):
            return module(*args)

        self.alive += [weakref.ref(module), weakref.ref(run)]
        return run

    def dead(self):
        gc.collect()
        return bool(self.alive) and all(reference() is None for reference in self.alive)


def test_a_compiled_module_dies_with_everything():
    before = None
    for _ in range(2):  # the first round fills caches of the process
        model, backend = make_model(), Backend()
        compiled = framejit.compile(model, backend=backend)
        for train in (True, False, True):
            model.train(train)
            compiled(torch.ones(3, 4)).sum().backward()
        references = [weakref.ref(thing) for thing in (*model.modules(), *model.parameters())]
        call = weakref.ref(type(compiled).__call__.__func__)
        del model, compiled
        assert backend.dead()
        assert call() is None and [r() for r in references] == [None] * len(references)
        assert before is None or live_tensors() <= before
        before = live_tensors()


def test_a_compiled_function_does_not_keep_its_arguments_alive():
    """A module that was only passed in dies as in eager, and so do its parameters."""

    def program(model, x):
        return model(x) * 2

    compiled = framejit.compile(program, backend="eager")
    model = make_model().eval()
    for _ in range(3):
        compiled(model, torch.ones(3, 4))
    references = [weakref.ref(thing) for thing in (*model.modules(), *model.parameters())]
    del model
    gc.collect()
    assert [r() for r in references] == [None] * len(references)
    compiled(make_model().eval(), torch.ones(3, 4))  # an entry whose world is gone does no harm


def test_a_closure_dies_with_its_function():
    def make(big):
        return lambda x: x + big

    big = torch.ones(5)
    reference, backend = weakref.ref(big), Backend()
    compiled = framejit.compile(make(big), backend=backend)
    assert torch.equal(compiled(torch.ones(5)), torch.full((5,), 2.0))
    del big, compiled
    assert backend.dead() and reference() is None


def test_continuations_die():
    def program(x):
        y = x + 1
        if y.sum() > 0:
            y = y * 2
        print(end="")
        return y + 1

    backend = Backend()
    compiled = framejit.compile(program, backend=backend)
    compiled(torch.ones(2))
    assert len(backend.alive) == 6
    frames = [weakref.ref(frame) for frame in compiled.compiler.frames()]
    del compiled, program
    assert backend.dead() and [r() for r in frames] == [None] * len(frames)


def test_replaced_parameters_are_let_go():
    model = nn.Linear(4, 4)
    compiled = framejit.compile(model, backend="eager")
    compiled(torch.ones(1, 4))
    old = weakref.ref(model.weight)
    model.weight = nn.Parameter(torch.zeros(4, 4))
    gc.collect()
    assert old() is None
    assert not compiled(torch.ones(1, 4))[0, 0].isnan()


def test_reset_frees_the_entries():
    backend = Backend()
    compiled = framejit.compile(lambda x: x + 1, backend=backend)
    compiled(torch.ones(2))
    framejit.reset()
    assert backend.dead()
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))


def resident_kib():
    gc.collect()
    with open(f"/proc/{os.getpid()}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def compile_and_discard(rounds, backend):
    for i in range(rounds):
        model = nn.Linear(4, 4)

        def program(x, k=float(i % 3)):
            y = model(x) + k
            if y.sum() > 1e9:
                return y
            return y * 2

        framejit.compile(program, backend=backend)(torch.ones(1, 4))
        framejit.compile(model, backend=backend)(torch.ones(1, 4))


@pytest.mark.parametrize(
    "rounds", [60, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
def test_compile_and_discard_does_not_grow(rounds):
    """Memory, tracked objects, context variables and `linecache`, where fx keeps its code."""

    def run(module, inputs):
        module.code  # noqa: B018 - makes fx generate the code
        return module.forward

    def tracked():
        events.clear()
        gc.collect()
        return len(gc.get_objects())

    compile_and_discard(rounds // 2, run)
    counts = [tracked()]
    lines, memory = len(linecache.cache), resident_kib()
    variables = len(contextvars.copy_context())
    for _ in range(2):
        compile_and_discard(rounds, run)
        counts.append(tracked())
    assert len(linecache.cache) <= lines + 3
    assert len(contextvars.copy_context()) == variables  # a context never lets one go
    # What the process makes once, at some round, is no growth: that is in both halves.
    assert min(counts[1] - counts[0], counts[2] - counts[1]) < rounds, counts
    assert resident_kib() <= memory * 1.05


class Cyclic:
    def __init__(self):
        self.itself = self


def test_an_object_ends_while_a_backend_compiles():
    """What was seen of it does not hold any more: the call is captured once more."""

    def backend(module, inputs):
        gc.collect()
        return module

    alive = weakref.WeakSet()
    compiled = framejit.compile(lambda x: (x * 2, len(alive)), backend=backend)
    gc.collect()
    gc.disable()
    try:
        with framejit.config.patch(raise_internal_errors=True):
            for _ in range(2):
                alive.add(Cyclic())
                assert compiled(torch.ones(2))[1] == len(alive)
    finally:
        gc.enable()


def test_a_result_ends_where_sizes_begin_to_vary():
    """The capture that a break ends and that starts again keeps nothing of what it has seen."""

    def program(x):
        y = x * 2
        reference = weakref.ref(y)
        same = reference() is y
        del y
        return same, reference() is None

    compiled = framejit.compile(program, backend="eager")
    gc.collect()
    gc.disable()
    try:
        assert [compiled(torch.ones(size)) for size in (2, 2, 3, 4)] == [(True, True)] * 4
    finally:
        gc.enable()
