"""Captures that calls lend time to: the program goes on, and changes what it likes, in between."""

import contextlib
import contextvars
import gc
import subprocess
import sys
import textwrap
import threading
import time
import types
import weakref

import pytest
import torch
from torch import nn

import framejit
from calling import MINUTES, until
from framejit.background import captures
from framejit.callables import compiled_function_of
from framejit.graph import instalments
from framejit.interpreter import limits
from framejit.report import events
from threads import in_threads

pytestmark = pytest.mark.timeout(2 * MINUTES)
#: More calls than there are pauses in the captures of these programs.
MANY = 200


@pytest.fixture(autouse=True)
def one_instruction_for_each_call(monkeypatch):
    lend = instalments.Instalments.lend
    monkeypatch.setattr(limits, "_PAUSED_EVERY", 1)
    monkeypatch.setattr(instalments, "_OVERTIME", MINUTES)  # the machine may be busy
    monkeypatch.setattr(instalments, "_PATIENCE", MINUTES)
    monkeypatch.setattr(captures, "_MOST_LENT", 100.0)
    monkeypatch.setattr(captures.captures(), "_left", 100.0)
    monkeypatch.setattr(
        instalments.Instalments, "lend", lambda self, seconds, adopt: lend(self, 0.0, adopt)
    )
    yield
    assert framejit.wait(timeout=MINUTES)


def compile_(function, **settings):
    return framejit.compile(function, background=True, backend="eager", **settings)


def imports_are_over():
    """Sizes that vary need modules that are imported in the background."""
    compile_(torch.sin, dynamic=True)(torch.ones(3))
    assert framejit.wait(timeout=MINUTES)


def entries_of(compiled):
    return compiled_function_of(compiled).entries


def is_going_on():
    return not captures.captures().is_done()


def same(one, two):
    assert type(one) is type(two)
    assert one.dtype is two.dtype and one.shape == two.shape
    assert one.requires_grad == two.requires_grad
    assert torch.equal(one, two)


class Model(nn.Module):
    factor = 2

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(4, 4))
        self.register_buffer("offset", torch.ones(4))
        self.steps, self.scales = [1.0, 2.0], {"a": 0.5}
        self.bias = 1.0

    def forward(self, x):
        y = x @ self.weight + self.offset
        for step in self.steps:
            y = self.helper(y) * step
        if self.training:
            y = y + self.bias
        for name in self.scales:
            y = y * self.scales[name]
        return y * self.factor * SCALE

    def helper(self, y):
        return y.sin() + len(self.steps)


SCALE = 3


def test_calls_run_as_plain_python_until_the_capture_is_ready():
    model = Model()
    compiled, x = compile_(model), torch.randn(3, 4)
    calls = 0
    with events.recording(events.CaptureStart, events.CaptureEnd, events.EntryAdded) as seen:
        while not entries_of(compiled):
            same(compiled(x), model(x))
            calls += 1
    assert calls > 30
    assert [type(event).__name__ for event in seen] == ["CaptureStart", "CaptureEnd", "EntryAdded"]
    assert seen[-1].operations == 12
    same(compiled(x), model(x))
    assert [entry.hits for entry in entries_of(compiled)] == [2]
    assert len(compiled_function_of(compiled).compiler.frames()) == 1


def replaced_code(model):
    function = types.FunctionType(Model.forward.__code__, globals())
    Model.forward.__code__ = (lambda self, x: x - self.weight).__code__
    return lambda: setattr(Model.forward, "__code__", function.__code__)


def set_attribute(owner, name, value):
    def change(model):
        obj = owner(model)
        before = getattr(obj, name)
        setattr(obj, name, value(before) if callable(value) else value)
        return lambda: setattr(obj, name, before)

    return change


def set_item(owner, key, value):
    def change(model):
        container = owner(model)
        before = container.copy()
        container[key] = value

        def restore():
            container.clear()
            container.update(before) if type(container) is dict else container.extend(before)

        return restore

    return change


def added_step(model):
    model.steps.append(0.5)
    return model.steps.pop


def hooked(model):
    return model.register_forward_hook(lambda module, args, result: result + 1).remove


def set_data(model):
    before = model.offset.data
    model.offset.data = torch.full((1,), 5.0, dtype=torch.float64)

    def restore():
        model.offset.data = before

    return restore


def frozen(model):
    model.weight.requires_grad_(False)
    return model.weight.requires_grad_


def default_dtype(model):
    torch.set_default_dtype(torch.float64)
    return lambda: torch.set_default_dtype(torch.float32)


CHANGES = {
    "attribute": set_attribute(lambda model: model, "bias", 7.0),
    "class": set_attribute(lambda model: Model, "factor", 5),
    "global": set_attribute(lambda model: sys.modules[__name__], "SCALE", 4),
    "method": set_attribute(lambda model: Model, "helper", lambda _: lambda self, y: y.cos()),
    "list": set_item(lambda model: model.steps, 0, 9.0),
    "longer list": added_step,
    "dict": set_item(lambda model: model.scales, "a", 0.25),
    "longer dict": set_item(lambda model: model.scales, "b", 0.75),
    "another list": set_attribute(lambda model: model, "steps", lambda _: [3.0]),
    "mode": set_attribute(lambda model: model, "training", False),
    "parameter": set_attribute(
        lambda model: model, "weight", lambda _: nn.Parameter(torch.ones(4, 2))
    ),
    "buffer": set_attribute(lambda model: model, "offset", lambda _: torch.ones(3, 1).double()),
    "data": set_data,
    "gradients": frozen,
    "hook": hooked,
    "code": replaced_code,
    "default dtype": default_dtype,
}  # fmt: skip


def call_both(compiled, model, x):
    try:
        expected = model(x)
    except RuntimeError as error:
        with pytest.raises(RuntimeError) as raised:
            compiled(x)
        assert str(raised.value) == str(error)
    else:
        same(compiled(x), expected)


#: After each so many calls something changes: one for each pause, or a few of them.
DISTANCES = [41, pytest.param(2, marks=pytest.mark.slow)]


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_during_a_capture(name, distance):
    change, x, late = CHANGES[name], torch.randn(3, 4), 0
    for calls in range(0, MANY, distance):
        model = Model()
        compiled = compile_(model)
        with contextlib.ExitStack() as stack:
            for _ in range(calls):
                call_both(compiled, model, x)
            late += bool(entries_of(compiled))
            stack.callback(change(model))
            for _ in range(8):
                call_both(compiled, model, x)
            assert framejit.wait(compiled, timeout=MINUTES)
            call_both(compiled, model, x)
            assert framejit.wait(compiled, timeout=MINUTES)
            call_both(compiled, model, x)
        call_both(compiled, model, x)
        assert framejit.wait(compiled, timeout=MINUTES)
        call_both(compiled, model, x)
        assert entries_of(compiled)
        if late:  # it was captured before
            break
    assert late


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_for_a_while_during_a_capture(name, distance):
    change, x, done = CHANGES[name], torch.randn(3, 4), False
    for calls in range(1, MANY, distance):
        model = Model()
        compiled = compile_(model)
        for _ in range(calls):
            call_both(compiled, model, x)
        done = done or bool(entries_of(compiled))
        restore = change(model)
        for _ in range(3):
            call_both(compiled, model, x)
        restore()
        for _ in range(3):
            call_both(compiled, model, x)
        assert framejit.wait(compiled, timeout=MINUTES)
        for _ in range(4):
            call_both(compiled, model, x)
            assert framejit.wait(compiled, timeout=MINUTES)
        restore = change(model)
        call_both(compiled, model, x)
        restore()
        call_both(compiled, model, x)
        if done:
            break
    assert done


def test_arguments_that_change():
    def function(x, items, table):
        y = x * items[0]
        for item in items:
            y = y + item
        return y * table["scale"] + len(items)

    for changed in range(0, 40, 2):
        compiled, x = compile_(function), torch.randn(3)
        items, table = [2.0, 3.0], {"scale": 2}
        for call in range(90):
            if call == changed:
                items.append(4.0)
                table["scale"] = 5
                x.resize_(2).fill_(1.5)
            same(compiled(x, items, table), function(x, items, table))
        assert framejit.wait(compiled, timeout=MINUTES)
        same(compiled(x, items, table), function(x, items, table))
        assert entries_of(compiled)


def test_what_changes_all_the_time_is_captured_in_a_call():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.names = []

        def forward(self, x):
            self.names.append(f"call {len(self.names)}")
            if self.names[-1].endswith("7"):
                return x + 2
            return x * 2

    imports_are_over()
    model, other, x = Counter(), Counter(), torch.randn(3)
    compiled = compile_(model)
    for _ in range(10):
        while True:
            same(compiled(x), other(x))
            assert model.names == other.names
            if not is_going_on():
                break
    assert compiled_function_of(compiled).compiler.compiled_anew


def test_states_of_the_calling_thread():
    linear = nn.Linear(4, 4)
    variable = contextvars.ContextVar("variable", default=1)

    def function(x):
        y = linear(x) * variable.get()
        return y + torch.ones(4)

    def blocks():
        yield torch.no_grad()
        yield torch.inference_mode()
        yield torch.autocast("cpu", torch.bfloat16)
        yield contextlib.nullcontext()

    variable.set(3)
    compiled, x = compile_(function), torch.randn(2, 4)
    for number, block in enumerate(blocks(), 1):
        with block:
            until(
                lambda number=number: len(entries_of(compiled)) == number,
                lambda: same(compiled(x), function(x)),
            )
            same(compiled(x), function(x))
        assert len(entries_of(compiled)) == number
        assert not is_going_on()
    variable.set(4)
    same(compiled(x), function(x))


def test_calls_in_another_state_lend_time():
    linear, x = nn.Linear(4, 4), torch.randn(2, 4)
    compiled = compile_(lambda x: linear(x) + 1)

    def call():
        for enabled in (True, False):
            with torch.set_grad_enabled(enabled):
                same(compiled(x), linear(x) + 1)

    until(lambda: len(entries_of(compiled)) == 2, call)
    before = [entry.hits for entry in entries_of(compiled)]
    call()
    assert [entry.hits for entry in entries_of(compiled)] == [hits + 1 for hits in before]


def test_a_default_device():
    def function(x):
        return x + torch.arange(3, dtype=torch.float32)

    compiled, x = compile_(function), torch.randn(3)
    with torch.device("cpu"):
        for _ in range(50):
            same(compiled(x), function(x))
    assert len(entries_of(compiled)) == 1


LOCAL = threading.local()


def dtype_set(x):
    torch.set_default_dtype(torch.float64)
    y = x * 2 + torch.ones(3).sum().to(x.dtype)
    torch.set_default_dtype(torch.float32)
    return y.sin()


def reads_local(x):
    return x * LOCAL.factor + 1


def compiles_time(x):
    framejit.comptime(lambda context: SEEN.append(threading.get_ident()))
    return x.sin() * 2


SEEN = []


@contextlib.contextmanager
def first_calls_are_plain():
    with framejit.config.patch(eager_first=True):
        yield


@contextlib.contextmanager
def stance():
    with framejit.install(), torch.compiler.set_stance("eager_then_compile"):
        yield


@contextlib.contextmanager
def option_of_torch():
    """What says this holds in the calls, and while somebody waits."""
    import torch._dynamo  # noqa: F401 - a program may have done so

    with stance(), torch._dynamo.config.patch(specialize_int=True):
        yield


@pytest.mark.parametrize("said", [first_calls_are_plain, stance, option_of_torch])
@pytest.mark.parametrize("waits", [False, True])
def test_captures_that_begin_in_the_second_call(said, waits):
    def function(x, n):
        return x.sin() * n

    def call(size):
        same(compiled(torch.ones(size), 2), function(torch.ones(size), 2))

    def note(event):
        if isinstance(event, (events.CaptureStart, events.EntryAdded)):
            seen.append((type(event).__name__, threading.current_thread().name))

    imports_are_over()
    compiled, seen = compile_(function), []
    with said(), contextlib.ExitStack() as stack:
        stack.callback(events.subscribe(note))
        call(3)
        assert not seen and not is_going_on()
        call(5)
        assert is_going_on()
        if waits:
            assert framejit.wait(compiled, timeout=MINUTES)
        until(lambda: entries_of(compiled), lambda: call(5))
        call(7)  # both sizes are known to the one capture
    thread = "framejit capture"
    assert seen == [("CaptureStart", thread), ("EntryAdded", thread)]
    assert len(entries_of(compiled)) == 1


@pytest.mark.parametrize("function", [dtype_set, reads_local, compiles_time])
def test_what_concerns_all_threads_or_one_is_captured_in_a_call(function):
    LOCAL.factor = 3
    SEEN.clear()
    compiled, x = compile_(function), torch.randn(3)
    for _ in range(40):
        same(compiled(x), function(x))
        assert torch.get_default_dtype() is torch.float32
    assert len(entries_of(compiled)) == 1
    assert not is_going_on()
    assert set(SEEN) <= {threading.get_ident()}


def test_errors_that_are_refused_reach_the_caller():
    def function(x):
        y = x.sin() + 1
        print(y.sum().item())
        return y

    compiled, x = compile_(function, fullgraph=True), torch.randn(3)
    with pytest.raises(framejit.exc.Unsupported, match="FJ0"):
        for _ in range(60):
            compiled(x)
    with pytest.raises(framejit.exc.Unsupported, match="FJ0"):
        compiled(x)


def test_errors_of_the_program():
    def function(x, index):
        y = x.sin() + 1
        try:
            return y + x[index]
        except IndexError as error:
            return y - len(str(error))

    def raising(x):
        y = x.sin()
        raise KeyError(f"{y.shape[0]} rows")

    compiled, x = compile_(function), torch.randn(3)
    for _ in range(80):
        same(compiled(x, 1), function(x, 1))
        same(compiled(x, 7), function(x, 7))
    assert entries_of(compiled)
    compiled = compile_(raising)
    for _ in range(60):
        with pytest.raises(KeyError, match="3 rows") as raised:
            compiled(x)
        assert raised.traceback[-1].name == "raising"


def test_graph_breaks():
    def function(x, items):
        y = x.sin() + 1
        framejit.graph_break()
        for item in items:
            y = y * item
            framejit.graph_break()
        return y.cos() + len(items)

    compiled, x = compile_(function), torch.randn(3)

    def call():
        same(compiled(x, [2.0, 3.0]), function(x, [2.0, 3.0]))

    def all_is_captured():
        with events.recording(events.CaptureStart, events.CallSkipped) as seen, events.following():
            call()
        return not seen and not is_going_on()

    until(all_is_captured, call)
    compiler = compiled_function_of(compiled).compiler
    assert sum(len(frame.entries) for frame in compiler.frames()) >= 3


def test_training():
    torch.manual_seed(0)
    first = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    second = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 2))
    second.load_state_dict(first.state_dict())
    compiled = compile_(first)
    optimizers = [torch.optim.SGD(model.parameters(), 0.1, 0.9) for model in (first, second)]
    for step in range(400):
        x, losses = torch.randn(3, 4), []
        for model, optimizer in zip((compiled, second), optimizers, strict=True):
            torch.manual_seed(step)
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        same(*losses)
    assert entries_of(compiled)[0].hits > 5
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(one, two)


def test_sizes_that_vary():
    def function(x):
        return (x * x.shape[0]).sum(-1) + 1

    imports_are_over()

    def call():
        for size in range(2, 7):
            x = torch.randn(size, 3)
            same(compiled(x), function(x))

    compiled = compile_(function)
    until(lambda: len(entries_of(compiled)) == 2, call)
    call()
    assert framejit.wait(compiled, timeout=MINUTES)
    call()
    assert len(entries_of(compiled)) == 2


def test_what_is_called_is_not_captured_meanwhile():
    inner = nn.Sequential(nn.Linear(4, 4), nn.ReLU())

    def function(x):
        return inner(x) + helper(x)

    def helper(x):
        return x.sin() * 2

    compiled, x = compile_(function), torch.randn(2, 4)
    while not entries_of(compiled):
        same(compiled(x), function(x))
    assert len(compiled_function_of(compiled).compiler.frames()) == 1


def test_a_capture_holds_its_objects_no_longer_than_it_lasts(monkeypatch):
    compiled, x = compile_(lambda x: x.sin() + 1), torch.randn(3)
    storage = weakref.ref(x.untyped_storage())
    compiled(x)
    assert is_going_on()
    assert framejit.wait(compiled, timeout=MINUTES)
    del x
    gc.collect()
    assert storage() is None
    monkeypatch.setattr(instalments, "_PATIENCE", 0.05)
    compiled, x = compile_(lambda x: x.cos() + 1), torch.randn(3)
    storage = weakref.ref(x.untyped_storage())
    compiled(x)
    del x
    (capture,) = captures.captures()._going
    capture.thread.join(MINUTES)
    assert capture.time.over
    compiled(torch.randn(3))
    del capture
    gc.collect()
    assert storage() is None


def test_objects_whose_end_is_seen_are_not_held():
    class Closed:
        factor = 2

        def __del__(self):
            ended.append(threading.get_ident())

    ended = []
    compiled, x = compile_(lambda x, closed: x * closed.factor), torch.randn(3)
    for _ in range(5):
        closed = Closed()
        same(compiled(x, closed), x * 2)
        del closed
        assert ended.pop() == threading.get_ident()
    assert len(entries_of(compiled)) == 1


def test_waiting_may_end_before(monkeypatch):
    compiled, x = compile_(lambda x: x.sin() + 3), torch.randn(3)
    compiled(x)
    assert framejit.wait(compiled, timeout=0) is False
    assert framejit.wait(compiled, timeout=MINUTES)
    assert len(entries_of(compiled)) == 1


def test_resetting_and_other_code_end_a_capture():
    compiled, x = compile_(Model()), torch.randn(3, 4)
    for _ in range(20):
        compiled(x)
    framejit.reset()
    assert framejit.wait(timeout=MINUTES)
    assert not entries_of(compiled)
    for _ in range(MANY):
        compiled(x)
    assert len(entries_of(compiled)) == 1


def test_calls_from_many_threads():
    model = Model()
    compiled, wrong = compile_(model, recompile_limit=40), []

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        for _ in range(60):
            x = torch.randn(3, 4, generator=generator)
            if not torch.equal(compiled(x), model(x)):
                wrong.append(seed)

    in_threads(work, range(6))
    assert not wrong
    assert framejit.wait(timeout=MINUTES)
    assert len(entries_of(compiled)) == 1


def test_another_thread_that_captures_is_not_waited_for():
    from framejit.backends.exclusive import exclusive

    compiled, x = compile_(lambda x: x.sin() + 4), torch.randn(3)
    begun, over = threading.Event(), threading.Event()

    def hold():
        with exclusive():
            begun.set()
            over.wait(MINUTES)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(MINUTES)
    same(compiled(x), x.sin() + 4)
    over.set()
    thread.join()
    assert not entries_of(compiled)
    compiled(x)
    assert framejit.wait(timeout=MINUTES)
    assert len(entries_of(compiled)) == 1


class InterruptedLock:
    """A lock around whose one method a handler of signals raises, once."""

    def __init__(self, lock, method, before):
        self.lock, self.method, self.before = lock, method, before

    def _call(self, method, *args, **options):
        interrupts, method = method == self.method, getattr(self.lock, method)
        if interrupts:
            self.method = ""
            if self.before:
                raise KeyboardInterrupt
        done = method(*args, **options)
        if interrupts:
            raise KeyboardInterrupt
        return done

    def acquire(self, *args, **options):
        return self._call("acquire", *args, **options)

    def release(self):
        return self._call("release")


@pytest.mark.parametrize(
    ("lock", "method", "before"),
    [
        ("_go", "release", True), ("_go", "release", False),
        ("_back", "acquire", True), ("_back", "acquire", False),
    ],
)  # fmt: skip
def test_calls_go_on_after_one_that_was_interrupted(lock, method, before):
    model = Model()
    compiled, x = compile_(model), torch.randn(3, 4)
    same(compiled(x), model(x))
    (capture,) = captures.captures()._going
    instalment = capture.time
    setattr(instalment, lock, InterruptedLock(getattr(instalment, lock), method, before))
    with pytest.raises(KeyboardInterrupt):
        compiled(x)
    for _ in range(3):
        same(compiled(x), model(x))
    capture.thread.join(MINUTES)
    assert instalment.over and capture.entry is None
    until(lambda: entries_of(compiled), lambda: same(compiled(x), model(x)))
    assert len(entries_of(compiled)) == 1


def test_an_interrupted_call_ends_the_capture(monkeypatch):
    compiled, x = compile_(lambda x: x.sin() + 5), torch.randn(3)
    compiled(x)
    (capture,) = captures.captures()._going

    class Interrupted:
        def __init__(self, lock):
            self.lock = lock

        def acquire(self, **_):
            raise KeyboardInterrupt

        def release(self):
            self.lock.release()

    capture.time._back = Interrupted(capture.time._back)
    with pytest.raises(KeyboardInterrupt):
        compiled(x)
    capture.thread.join(MINUTES)
    assert capture.time.over
    same(compiled(x), x.sin() + 5)
    assert framejit.wait(timeout=MINUTES)
    assert len(entries_of(compiled)) == 1


def test_a_call_goes_on_if_the_capture_does_not_pause(monkeypatch):
    monkeypatch.setattr(instalments, "_OVERTIME", 0.05)
    go, pause = threading.Event(), instalments.Instalments.pause

    def late(self):
        assert go.wait(MINUTES)
        pause(self)

    monkeypatch.setattr(instalments.Instalments, "pause", late)
    compiled, x = compile_(lambda x: x.sin() + 6), torch.randn(3)
    same(compiled(x), x.sin() + 6)
    go.set()
    start = time.monotonic()
    while is_going_on() and time.monotonic() < start + 60:
        same(compiled(x), x.sin() + 6)
    assert framejit.wait(timeout=MINUTES)
    same(compiled(x), x.sin() + 6)


PROGRAM = """
import os, sys, torch, framejit
from framejit.background import captures
from framejit.graph import instalments
from framejit.interpreter import limits

limits._PAUSED_EVERY = 1
captures.captures()._left = captures._MOST_LENT = 100.0
lend = instalments.Instalments.lend
instalments.Instalments.lend = lambda self, seconds, adopt: lend(self, 0.0, adopt)

def function(x):
    return (x @ x).relu().sum(-1)

compiled = framejit.compile(function, background=True, backend="eager")
x = torch.arange(16.0).reshape(4, 4) / 16
for _ in range(5):
    assert torch.equal(compiled(x), function(x))
assert not captures.captures().is_done()
if {fork}:
    child = os.fork()
    if child:
        assert os.waitpid(child, 0)[1] == 0
    else:
        assert captures.captures().is_done()
    captures.captures()._left = 100.0
    for _ in range(40):
        assert torch.equal(compiled(x), function(x))
    assert framejit.wait(timeout=300)
    assert len(compiled.entries) == 1
    assert compiled.context is compiled.compiler.hook_context
    if not child:
        os._exit(0)
print("over")
"""


@pytest.mark.parametrize("fork", [False, True])
def test_ends_and_forks(tmp_path, fork):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM.format(fork=fork)))
    # CPython 3.12 and later warn of any fork beside threads.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=MINUTES)
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
