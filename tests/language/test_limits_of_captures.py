"""A capture is bounded in steps, time and size; beyond, Python goes on, which is said once."""

import concurrent.futures
import contextlib
import ctypes
import functools
import inspect
import itertools
import sys
import time

import pytest
import torch

import framejit
from checking import calls_made, check
from framejit import config
from framejit.report import events

X = torch.ones(2)


def breaks(function, *args):
    """The breaks of the first call, which must be like eager, as the second one."""
    compiled = framejit.compile(function, backend="eager")
    with config.patch(raise_internal_errors=True):
        with events.recording(events.GraphBreak) as met:
            first = compiled(*args)
        second = compiled(*args)
    expected = function(*args)
    for got in (first, second):
        assert str(got) == str(expected)
    return met


def counts_for_ever(x):
    y = x.sin()
    n = 0
    while True:
        n += 1
        if n > 30_000:
            return y + n


def counts_in_calls(x):
    def step(n):
        return n + 1

    n = 0
    for _ in range(20_000):
        n = step(n)
    return x.cos() + n


def counts_in_an_operation(x):
    y = x.sin()
    return y + sum(k for k in range(50_000)) + max(map(abs, range(40_000)))


def counts_in_a_generator(x):
    def numbers():
        n = 0
        while n < 30_000:
            n += 1
            yield n

    return x + sum(numbers())


def counts_among_handlers(x):
    total = 0
    y = x + 1
    for k in range(30_000):
        try:
            if k % 2:
                raise ValueError(k)
        except ValueError:
            total += 1
    return y + total


@pytest.mark.parametrize(
    "function",
    [counts_for_ever, counts_in_calls, counts_in_an_operation, counts_in_a_generator,
     counts_among_handlers],
)  # fmt: skip
def test_a_loop_without_operations_is_left_to_python(function):
    with config.patch(idle_step_limit=5_000):
        (met,) = breaks(function, X)
    assert met.identifier == "FJ0139"
    assert "more than 5000 instructions in a row recorded no operation" in met.reason


def test_what_stands_before_such_a_loop_is_a_graph_and_what_it_calls_is_captured():
    def layer(x):
        return x.relu() + 1

    def function(x):
        x = x.sin() * 2
        n = 0
        while n < 30_000:
            n += 1
        return layer(x) + n

    with config.patch(idle_step_limit=5_000):
        check(function, X, graphs=2, ops=4)


def test_operations_keep_a_long_capture_going():
    def function(x):
        for _ in range(60):
            n = 0
            while n < 100:
                n += 1
            x = x + n
        return x

    with config.patch(idle_step_limit=2_000):
        check(function, X, graphs=1, ops=60, fullgraph=True)


def test_steps_and_seconds():
    def function(x):
        for _ in range(500):
            x = x + 1
        return x

    with config.patch(step_limit=2_000):
        (met,) = breaks(function, X)
    assert "more than 2000 instructions" in met.reason

    def slow(x):
        framejit.comptime(lambda context: time.sleep(1.1))
        for _ in range(500):
            x = x + 1
        return x

    with config.patch(capture_seconds=1, idle_step_limit=1_000):
        (met,) = breaks(slow, X)
    assert "more than 1 seconds" in met.reason


def test_a_limit_is_an_error_under_fullgraph():
    with config.patch(idle_step_limit=5_000), pytest.raises(framejit.exc.Unsupported, match="FJ01"):
        framejit.compile(counts_for_ever, backend="eager", fullgraph=True)(X)


# -- sizes -----------------------------------------------------------------------------------------

MADE = {
    "list": lambda x: (x + 1, len([0] * 10**6)),
    "tuple": lambda x: (x + 1, len((1, 2) * 10**6)),
    "list in place": lambda x: (x + 1, len([*range(200_000)])),
    "range": lambda x: (x + 1, len(list(range(200_000))), sum(range(200_000))),
    "text": lambda x: (x + 1, len("ab" * 10**7)),
    "bytes": lambda x: (x + 1, len(5_000_000 * b"a")),
    "padded": lambda x: (x + 1, len("a".ljust(5_000_000)), len("%9000000d" % 3)),
    "joined": lambda x: (x + 1, len(",".join(["a" * 10**6] * 5))),
    "replaced": lambda x: (x + 1, len("aaaa".replace("a", "b" * 10**6))),
    "power": lambda x: (x + 1, 2**10**8 % 1000, pow(2, 10**8) % 7),
    "shifted": lambda x: (x + 1, (1 << 10**8) % 7, 1 << 10**8 > 5),
    "product": lambda x: (x + 1, sum(1 for _ in itertools.product(range(60), repeat=3))),
    "doubled": lambda x: (x + 1, len(doubled(24))),
}


def doubled(times):
    text = "a"
    for _ in range(times):
        text = text + text
    return text


@pytest.mark.parametrize("name", MADE)
def test_large_objects_are_made_by_python(name):
    with config.patch(idle_step_limit=100_000):
        met = breaks(MADE[name], X)
    assert met and {event.identifier for event in met} <= {"FJ0139", "FJ0153"}


def test_powers_are_not_computed_twice():
    def function(x, n):
        return x + 1, len("a" * n), 3 ** (n // 100) % 7

    assert breaks(function, X, 10**8)


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, dict.fromkeys, bytes, str])
def test_the_work_on_a_large_object_grows_with_its_size_at_most(kind):
    text = {bytes: b"ab", str: "ab"}.get(kind)
    small, large = (kind(range(n)) if text is None else text * n for n in (1, 300_000))

    def function(x, large, probe):
        return x * 2, len(large), probe in large, sorted(set(large))[:3], large

    probe = {bytes: 97, str: "b"}.get(kind, 5)
    framejit.compile(function, backend="eager")(X, small, probe)  # loads modules
    with config.patch(raise_internal_errors=True):
        compiled = framejit.compile(function, backend="eager")
        assert calls_made(compiled, X, large, probe) < 50 * 300_000
        got, expected = compiled(X, large, probe), function(X, large, probe)
        assert got[1:4] == expected[1:4] and got[4] is large and got[0].equal(expected[0])


def test_whole_numbers_of_many_digits():
    """Longer than Python writes them, but shorter than what is left to it."""

    def function(x, n):
        m = 10**6000
        return x + 1, m, len({n + 1: "key"}), n == m, [n, m]

    check(function, X, 10**6000, graphs=1, ops=1)


def test_a_number_that_python_does_not_write():
    def function(x):
        try:
            return x + len(str(10**6000))
        except ValueError as error:
            return str(error)

    check(function, X, graphs=0, ops=0)


def test_without_memory_python_runs(monkeypatch):
    def function(x):
        return x + 1

    compiled = framejit.compile(function, backend="eager")
    monkeypatch.setattr("framejit.compiler.capture", lambda *_: (_ for _ in ()).throw(MemoryError))
    with events.recording(events.FrameSkipped) as skipped:
        assert compiled(X).equal(X + 1)
        assert compiled(X).equal(X + 1)
    (event,) = skipped
    assert event.identifier == "FJ0139"


# -- near the limit of recursion -------------------------------------------------------------------


@contextlib.contextmanager
def without_hooks():
    """torch leaves its frame hook in place when ``torch.cond`` raises outside of graphs. On CPython
    3.12 plain Python cannot recurse as deep below any hook."""
    python = ctypes.PyDLL(None)
    names = ("PyInterpreterState_Get", "_PyInterpreterState_GetEvalFrameFunc")
    now, hook_of = (getattr(python, name) for name in names)
    now.restype = hook_of.restype = ctypes.c_void_p
    hook_of.argtypes = [ctypes.c_void_p]
    set_hook = python._PyInterpreterState_SetEvalFrameFunc
    set_hook.argtypes, set_hook.restype = [ctypes.c_void_p, ctypes.c_void_p], None
    before = hook_of(now())
    set_hook(now(), ctypes.cast(python._PyEval_EvalFrameDefault, ctypes.c_void_p))
    try:
        yield
    finally:
        set_hook(now(), before)


def in_a_new_thread(test):
    """Has a budget of recursion of its own: on CPython 3.12 torch's compiler, which
    ``torch.cond`` asks outside of graphs, loses some of the calling thread's when it raises."""

    @functools.wraps(test)
    def run(*args, **kwargs):
        with without_hooks(), concurrent.futures.ThreadPoolExecutor(1) as pool:
            pool.submit(test, *args, **kwargs).result()

    return run


def at_depth(depth, function, *args):
    return function(*args) if depth == 0 else at_depth(depth - 1, function, *args)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("left", [30, 60, 120])
@in_a_new_thread
def test_a_first_call_near_the_limit_of_recursion(backend, left):
    def function(x):
        return (x * 2).sin().relu() + 1

    limit = sys.getrecursionlimit()
    depth = limit - left - len(inspect.stack(0))
    compiled = framejit.compile(function, backend=backend)
    with config.patch(raise_internal_errors=True):
        for _ in range(2):
            assert at_depth(depth, compiled, X).equal(function(X))
    assert sys.getrecursionlimit() == limit


def down(x, n):
    return x if n == 0 else down(x + 1, n - 1)


def counted(n):
    return 0 if n == 0 else 1 + counted(n - 1)


@pytest.mark.parametrize("function", [lambda x: x + counted(800), lambda x: down(x, 800)])
@in_a_new_thread
def test_recursion_that_is_too_deep_to_be_inlined(function):
    met = breaks(function, X)
    assert "FJ0139" in {event.identifier for event in met}


def test_recursion_without_an_end_ends_as_in_python():
    def function(x):
        try:
            return down(x, -1)
        except RecursionError as error:
            return type(error).__name__

    assert framejit.compile(function, backend="eager")(X) == "RecursionError"


def test_breaks_in_a_deep_recursion():
    def down(x, n):
        if n == 0:
            return x
        framejit.graph_break()
        return down(x + 1, n - 1) * 1

    with framejit.config.patch(recompile_limit=100):
        backend = check(down, torch.ones(1), 60, graphs=28, ops=53)
    assert 24 < len(backend.graphs) < 62


def test_breaks_in_an_endless_recursion():
    def endless(x):
        framejit.graph_break()
        return endless(x + 1)

    compiled = framejit.compile(endless, backend="eager")
    for _ in range(2):
        with pytest.raises(RecursionError):
            compiled(torch.ones(1))
