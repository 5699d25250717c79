"""Graphs compiled in another process: calls never wait, and what they compute stays the same."""

import gc
import os
import re
import subprocess
import sys
import textwrap
import threading
import weakref

import pytest
import torch
from torch import nn

import framejit
from calling import MINUTES, until
from framejit.background import captures
from framejit.background import crew as crews
from framejit.callables import compiled_function_of
from framejit.codegen.function import GRAPH
from framejit.report import events
from threads import in_threads

pytestmark = pytest.mark.timeout(2 * MINUTES)  # they wait for another process, on a busy machine


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4))


def graphs_of(compiled):
    """What the entries call."""
    frames = compiled_function_of(compiled).compiler.frames()
    return [
        entry.function.__globals__[GRAPH]
        for frame in frames
        for entry in frame.entries
        if GRAPH in entry.function.__globals__
    ]


def is_recorded(graph):
    """Does it run the recorded operations?"""
    return isinstance(getattr(graph, "__self__", None), torch.fx.GraphModule)


@pytest.fixture(autouse=True)
def nothing_is_left_to_do(monkeypatch):
    """Calls lend captures all the time that they need; `test_captures` is about others."""
    monkeypatch.setattr(captures, "_MOST_LENT", 100.0)
    monkeypatch.setattr(captures.captures(), "_left", 100.0)
    yield
    assert framejit.wait(timeout=MINUTES)


def assert_equal(got, expected):
    assert torch.equal(got, expected)


def finished(compiled):
    assert framejit.wait(compiled, timeout=MINUTES)


def test_calls_do_not_wait_and_the_compiled_graph_takes_over():
    model = network()
    compiled = framejit.compile(model, background=True)
    x = torch.randn(3, 8)
    with events.recording(events.GraphPostponed, events.GraphCompiled) as seen:
        assert torch.equal(compiled(x), model(x))
        finished(compiled)
    assert [type(event).__name__ for event in seen] == ["GraphPostponed", "GraphCompiled"]
    (graph,) = graphs_of(compiled)
    assert not is_recorded(graph)
    result, expected = compiled(x), model(x)
    torch.testing.assert_close(result, expected)
    result.sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    expected.sum().backward()
    torch.testing.assert_close(gradients, [p.grad for p in model.parameters()])
    assert len(compiled_function_of(compiled).entries) == 1


def test_sizes_that_were_assumed_have_an_entry_of_their_own():
    model = network()
    compiled = framejit.compile(model, background=True, dynamic=True)
    for size in (4, 3, 7):
        x = torch.randn(size, 8)
        torch.testing.assert_close(compiled(x), model(x))
        finished(compiled)
    for size in (1, 2, 3, 64):
        x = torch.randn(size, 8)
        torch.testing.assert_close(compiled(x), model(x))
    assert not all(map(is_recorded, graphs_of(compiled)))


def test_every_segment_of_a_function_with_breaks_is_compiled():
    def function(x):
        y = x * 2 + 1
        framejit.graph_break()
        return y.sin() * 3

    compiled = framejit.compile(function, background=True, backend="eager")
    x = torch.randn(5)

    with events.recording(events.GraphCompiled) as seen:
        until(
            lambda: len(graphs_of(compiled)) == 2,
            lambda: assert_equal(compiled(x), function(x)),
        )
        finished(compiled)
    assert len(seen) == 2
    assert torch.equal(compiled(x), function(x))


def test_settings_of_torch_are_those_of_the_call():
    linear = nn.Linear(8, 8)
    compiled = framejit.compile(lambda x: linear(x) + 1, background=True)
    x = torch.randn(2, 8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        before = compiled(x)
        finished(compiled)
        after = compiled(x)
    assert before.dtype is after.dtype is torch.bfloat16
    assert not after.requires_grad
    torch.testing.assert_close(before, after)


def test_autocast_that_is_switched_off_inside():
    inner, outer = nn.Conv1d(4, 8, 3), nn.Linear(8, 8)

    def function(x):
        with torch.autocast("cpu", enabled=False):
            y = inner(x.float())
        return y, outer(x)

    compiled, x = framejit.compile(function, background=True), torch.randn(2, 4, 8)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        expected = function(x)
        for _ in range(2):
            made = compiled(x)
            finished(compiled)
            assert [y.dtype for y in made] == [torch.float32, torch.bfloat16]
            torch.testing.assert_close(made, expected)
    assert not any(map(is_recorded, graphs_of(compiled)))


def test_running_statistics_are_written():
    model, other = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    compiled = framejit.compile(model, background=True)
    for _ in range(3):
        x = torch.randn(6, 4)
        torch.testing.assert_close(compiled(x), other(x))
        finished(compiled)
    torch.testing.assert_close(model.state_dict(), other.state_dict())
    assert not any(map(is_recorded, graphs_of(compiled)))


def test_inputs_that_share_memory():
    def function(x, y):
        x.mul_(2)
        return x + y

    def call():
        data, expected = torch.arange(8.0), torch.arange(8.0)
        result = compiled(data[:6], data[2:])
        assert torch.equal(result, function(expected[:6], expected[2:]))
        assert torch.equal(data, expected)
        finished(compiled)

    compiled = framejit.compile(function, background=True)
    with pytest.warns(framejit.exc.FramejitWarning, match="cannot be given to another process"):
        call()
    call()


def test_what_has_no_name_runs_as_it_is():
    def function(x):
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        return Double.apply(x).sin()

    compiled = framejit.compile(function, background=True, backend="eager")
    x = torch.randn(3, requires_grad=True)
    with pytest.warns(framejit.exc.FramejitWarning, match="in the background.*FJ0228"):
        assert torch.equal(compiled(x), function(x))
        finished(compiled)
    assert torch.equal(compiled(x), function(x))


def test_equal_graphs_are_compiled_once():
    blocks = [nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(3)]
    compiled = [framejit.compile(block, background=True) for block in blocks]
    x = torch.randn(2, 4)
    with events.recording(events.GraphCompiled, events.GraphReused) as seen:
        for one, block in zip(compiled, blocks, strict=True):
            until(lambda: graphs_of(one), lambda: assert_equal(one(x), block(x)))
        assert framejit.wait(timeout=MINUTES)
    assert [type(event).__name__ for event in seen] == ["GraphCompiled", *["GraphReused"] * 2]
    for one, block in zip(compiled, blocks, strict=True):
        torch.testing.assert_close(one(x), block(x))


class Died:
    """A crew whose process dies over the first jobs."""

    def __init__(self, crew, deaths):
        self.crew, self.deaths, self.begun = crew, deaths, 0
        self.connected = crew._connected

    def __call__(self):
        pipe = self.connected()
        self.begun += 1
        if self.begun <= self.deaths:
            self.crew._process.kill()
            self.crew._process.wait()
        return pipe


@pytest.mark.parametrize("deaths", [1, 2])
def test_the_other_process_may_die(monkeypatch, deaths):
    crew = crews.Crew()
    monkeypatch.setattr(crews, "_crew", crew)
    monkeypatch.setattr(crew, "_connected", Died(crew, deaths))
    compiled = framejit.compile(lambda x: x.sin() + 1, background=True, backend="eager")
    x = torch.randn(3)
    with events.recording(events.GraphCompiled, events.BackendFailed) as seen:
        if deaths == 1:
            assert torch.equal(compiled(x), x.sin() + 1)
            finished(compiled)
        else:
            with pytest.warns(framejit.exc.FramejitWarning, match="has died"):
                assert torch.equal(compiled(x), x.sin() + 1)
                finished(compiled)
    assert type(seen[-1]) is (events.GraphCompiled if deaths == 1 else events.BackendFailed)
    assert torch.equal(compiled(x), x.sin() + 1)
    crew.dismiss()


def test_calls_from_threads():
    model = network()
    compiled = framejit.compile(model, background=True, backend="eager")
    wrong = []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for size in (2, 3, 4, 5) * 5:
            x = torch.randn(size, 8, generator=generator)
            if not torch.allclose(compiled(x), model(x)):
                wrong.append(size)

    in_threads(work, range(4))
    finished(compiled)
    assert not wrong
    assert 1 <= len(compiled_function_of(compiled).entries) <= 4


def test_what_nobody_has_any_more_is_not_compiled():
    compiled = framejit.compile(lambda x: x.cos() - 1, background=True, backend="eager")
    compiled(torch.randn(3))
    alive = weakref.ref(compiled)
    del compiled
    assert framejit.wait(timeout=MINUTES)
    gc.collect()
    assert alive() is None


def test_waiting_may_end_before():
    assert framejit.wait(timeout=MINUTES)
    release = threading.Event()

    class Task:
        owner = None

        def run(self, crew):
            release.wait(60)

    crews.crew().add(Task())
    assert framejit.wait(timeout=0.01) is False
    release.set()
    assert framejit.wait(timeout=60)


def test_a_backend_that_is_forced_is_asked_in_the_call():
    compiled = framejit.compile(lambda x: x.sin() + 3, background=True)
    x, graphs = torch.randn(3), []

    def forced(gm, inputs):
        graphs.append(gm)
        return gm.forward

    restore = compiled.compiler.use_backend(forced, "forced")
    with events.recording(events.GraphPostponed) as seen:
        assert torch.equal(compiled(x), x.sin() + 3)
    restore()
    assert len(graphs) == 1 and not seen


def test_bad_arguments():
    with pytest.raises(TypeError, match="background must be True or False"):
        framejit.compile(torch.sin, background=1)
    with pytest.raises(ValueError, match="background=True needs the name of a backend"):
        framejit.compile(torch.sin, backend=lambda gm, inputs: gm, background=True)
    with pytest.raises(ValueError, match="'ts'"):
        framejit.compile(torch.sin, backend="ts", background=True)
    with pytest.raises(TypeError, match=r"must be what framejit\.compile returned"):
        framejit.wait(torch.sin)


PROGRAM = """
import os, sys, torch, framejit

def function(x):
    return (x @ x).relu().sum(-1)

compiled = framejit.compile(function, background=True)
x = torch.arange(16.0).reshape(4, 4) / 16
assert torch.equal(compiled(x), function(x))
if {fork}:
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    else:
        other = framejit.compile(lambda x: x.tan() + 2, background=True, backend="eager")
        assert torch.equal(other(x), x.tan() + 2)
        assert framejit.wait(timeout=300)
        os._exit(0)
compiled(x)  # the child may have taken longer than a capture waits
assert framejit.wait(timeout=300)
torch.testing.assert_close(compiled(x), function(x))
assert "torch._inductor.compile_fx" not in sys.modules
compiled.save_package({path!r})
"""

LOADS = """
import sys, torch, framejit

def function(x):
    return (x @ x).relu().sum(-1)

compiled = framejit.compile(function)
compiled.load_package({path!r})
x = torch.arange(16.0).reshape(4, 4) / 16
torch.testing.assert_close(compiled(x), function(x))
assert framejit.counters["stats"]["unique_graphs"] == 0, framejit.counters["stats"]
assert "torch._inductor.compile_fx" not in sys.modules
"""


def run(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=MINUTES)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("fork", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_package_holds_what_the_other_process_compiled(tmp_path, fork):
    package = os.fspath(tmp_path / "package")
    assert run(tmp_path, PROGRAM.format(path=package, fork=fork)) == ""
    run(tmp_path, LOADS.format(path=package))


def test_what_is_not_compiled_yet_is_in_no_package(tmp_path):
    going, go = threading.Event(), threading.Event()
    model, x, path = network(), torch.randn(3, 8), tmp_path / "model.package"
    compiled = framejit.compile(model, background=True)

    class Blocked:
        owner = None

        def run(self, crew):
            going.set()
            assert go.wait(MINUTES)

    crews.crew().add(Blocked())
    assert going.wait(MINUTES)
    compiled(x)
    with pytest.raises(framejit.exc.PackageError, match="in the background yet"):
        compiled.save_package(path)
    go.set()
    finished(compiled)
    compiled.save_package(path)
    with events.recording(events.CaptureStart, events.BackendStart) as seen:
        loaded = framejit.compile(model).load_package(path)
        torch.testing.assert_close(loaded(x), model(x))
    assert seen == []


def views_of_one(x):
    """AOTAutograd does not trace it."""
    y = x.exp()
    v, w = y[0], y[1]
    v.mul_(2)
    w.add_(1)
    return v, w


def test_what_the_other_process_cannot_trace_is_said_here():
    compiled = framejit.compile(views_of_one, background=True)
    x = torch.randn(2, 3, requires_grad=True)
    seen_kinds = events.GraphRefused, events.BackendFailed
    words = "in views_of_one runs as it is.*modified by an inplace.*FJ0234"
    with events.recording(*seen_kinds) as seen, pytest.warns(framejit.exc.FramejitWarning) as said:
        for _ in range(3):
            for got, expected in zip(compiled(x), views_of_one(x), strict=True):
                assert torch.equal(got, expected)
            finished(compiled)
    assert [type(event) for event in seen] == [events.GraphRefused]
    (told,) = [one for one in said if issubclass(one.category, framejit.exc.FramejitWarning)]
    assert re.search(words, str(told.message))
    assert framejit.counters["graphs_refused"] == {"inductor": 1}
