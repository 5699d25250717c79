"""The frame hook: which frames are seen, what runs instead, and that nothing stays behind."""

import asyncio
import contextlib
import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
import torch
from native_helpers import GuardTree, compiled_of, resident_kib

from framejit.native import (
    CompiledFunction,
    Entry,
    HookContext,
    current_context,
    hook_state,
    set_context,
    set_dispatch_enabled,
    set_run_only,
    tail,
)
from threads import in_threads


@contextlib.contextmanager
def active(context):
    previous = set_context(context)
    try:
        yield context
    finally:
        assert set_context(previous) is context


@pytest.fixture(autouse=True)
def at_rest():
    """Whose hook there is without ours: torch leaves its own behind after some errors."""
    before = hook_state()
    yield before
    assert before != "ours" and current_context() is None and hook_state() == before


def open_entry(slots, function):
    return Entry(GuardTree([(-1, "slot", i, [], -1) for i in range(slots)]), function)


def replacing(**replacements):
    """A context that replaces functions by name, and a list of the names it was asked about."""
    seen = []

    def callback(function):
        if function.__name__ == "__exit__":  # of `active`
            return None
        seen.append(function.__name__)
        assert current_context() is None
        replacement = replacements.get(function.__name__)
        if replacement is None:
            return None
        if isinstance(replacement, CompiledFunction):
            return replacement
        code = function.__code__
        slots = (
            code.co_argcount
            + code.co_kwonlyargcount
            + bool(code.co_flags & 4)
            + bool(code.co_flags & 8)
            + len(code.co_freevars)
        )
        return compiled_of(function, replacement, slots=slots)

    return HookContext(callback), seen


def test_slots_of_a_frame():
    cell = "cell"

    def f(a, /, b, c=3, *args, d, e=5, **kwargs):
        return cell

    context, seen = replacing(f=lambda *slots: slots)
    with active(context):
        result = f(1, 2, 7, 8, d=4, z=0)
    assert result == (1, 2, 7, 4, 5, (8,), {"z": 0}, f.__closure__[0])
    assert seen == ["f"]


def test_deep_recursion_ends_as_in_python():
    """Nested C calls of ours cost nothing of CPython's budget of them, and fit the stack."""

    def down(n):
        return down(n - 1) if n else 0

    down_compiled = CompiledFunction(lambda n: down_compiled(n - 1) if n else 0, None)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200_000)
    try:
        with active(replacing()[0]):
            for function in (down, down_compiled):
                assert function(1_500) == 0
                with pytest.raises(RecursionError):
                    function(150_000)
                assert function(10) == 0
    finally:
        sys.setrecursionlimit(limit)


def boom(n):
    if n:
        boom(n - 1)
    raise ValueError(n)


def generates(n):
    for i in range(n):
        try:
            yield i
        finally:
            i += 1


async def awaited(n):
    return n + 1


class Managed:
    def __enter__(self):
        return self

    def __exit__(self, *raised):
        return True


def watched():
    with Managed():
        boom(2)
    running = generates(3)
    next(running)
    with contextlib.suppress(KeyError):
        running.throw(KeyError(1))
    found = [max([1, 2], key=lambda v: -v), *generates(2), *map(repr, [running])][:3]
    coroutine = awaited(1)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        found.append(stop.value)
    return found


def traced(run):
    """What `sys.settrace` shows of each instruction."""
    seen = []

    def trace(frame, event, argument):
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name not in ("run", "active"):
            frame.f_trace_opcodes = True
            seen.append((frame.f_code.co_name, frame.f_lineno, event))
            return trace

    sys.settrace(trace)
    run(lambda: sys.settrace(None))
    return seen


def profiled(run):
    seen = []

    def profile(frame, event, argument):
        if frame.f_code.co_filename == __file__ and frame.f_code.co_name != "<lambda>":
            called = getattr(argument, "__name__", None) if event.startswith("c_") else None
            seen.append((frame.f_code.co_name, frame.f_lineno, event, called))

    sys.setprofile(profile)
    run(lambda: sys.setprofile(None))
    return seen


def monitored(run):
    """What `sys.monitoring` shows, but for the ends of calls, which are seen where a hook is."""
    monitoring = sys.monitoring
    seen = []
    names = [name for name in vars(monitoring.events) if name.isupper() and "C_R" not in name]
    names = [name for name in names if name not in ("NO_EVENTS", "INSTRUCTION")]
    monitoring.use_tool_id(3, "test")

    def listen(name):
        def heard(code, *arguments):
            if code.co_filename == __file__ and code.co_name not in ("run", "<lambda>", "stop"):
                line = arguments[:1] if name == "LINE" else ()
                seen.append((name, code.co_name, *line))

        monitoring.register_callback(3, getattr(monitoring.events, name), heard)

    def stop():
        monitoring.set_events(3, 0)

    for name in names:
        listen(name)
    try:
        monitoring.set_events(3, sum(getattr(monitoring.events, name) for name in names))
        run(stop)
    finally:
        monitoring.free_tool_id(3)
    return seen


@pytest.mark.parametrize("tool", [traced, profiled, monitored])
def test_tools_see_the_same_program(tool):
    if tool is monitored and not hasattr(sys, "monitoring"):
        pytest.skip("this release has no monitoring")

    def run(end):
        try:
            results.append(watched())
        finally:
            end()

    results = []
    tool(run)  # CPython 3.12 shows single instructions from the second time on
    expected = tool(run)
    for _ in range(2):
        context = HookContext({}.get)  # which wants no function to be replaced
        with active(context):
            seen = tool(run)
        assert [event for event in seen if "__exit__" not in event] == [
            event for event in expected if "__exit__" not in event
        ]
    assert results[0][1:] == results[-1][1:] and len(expected) > 30


def test_what_watches_the_program_is_no_part_of_it():
    def f(x):
        return x + 1

    def trace(frame, event, argument):
        watched.append(frame.f_code.co_name)
        return trace

    watched = []
    context, seen = replacing(f=lambda x: 100, trace=lambda *slots: 1 / 0)
    with active(context):
        sys.settrace(trace)
        result = f(1)
        sys.settrace(None)
    assert result == 100 and seen == ["f"]


def test_arguments_that_are_cells():
    def f(a, b):
        def inner():
            return a, b

        return inner

    context, seen = replacing(f=lambda a, b: (a, b))
    with active(context):
        assert f(1, 2) == (1, 2)


def test_nested_calls_are_seen_once():
    def inner(x):
        return x + 1

    def middle(x):
        return inner(x) * 2

    def outer(x):
        return middle(x) + middle(x) + max([x], key=inner)

    context, seen = replacing(inner=lambda x: 100)
    expected = 200 + 200 + 3
    with active(context):
        for _ in range(5):
            assert outer(3) == expected
    assert seen == ["outer", "middle", "inner"]
    assert outer(3) == 8 + 8 + 3
    with active(context):
        assert outer(3) == expected  # decisions stay with the context
    assert seen == ["outer", "middle", "inner"]
    assert len(context.compiled()) == 1
    assert context.forget(inner.__code__) is True and context.forget(inner.__code__) is False
    with active(context):
        outer(3)
    assert seen[3:] == ["inner"]
    context.clear()
    assert context.compiled() == []


def test_same_code_with_other_globals():
    code = compile("def f(): return g", "x", "exec").co_consts[0]
    from types import FunctionType

    first, second = FunctionType(code, {"g": 1}), FunctionType(code, {"g": 2})
    seen = []
    context = HookContext(lambda f: seen.append(f.__globals__.get("g")))
    with active(context):
        assert (first(), second(), first()) == (1, 2, 1)
    assert seen[:2] == [1, 2] and seen.count(1) == 1


def test_what_is_not_looked_at():
    def generator():
        yield 1
        yield 2

    async def coroutine():
        return 3

    async def async_generator():
        yield 4

    async def gather():
        return [x async for x in async_generator()]

    context, seen = replacing(generator=lambda: 0, coroutine=lambda: 0)
    with active(context):
        assert list(generator()) == [1, 2]
        with contextlib.closing(generator()) as g:
            next(g)
            with pytest.raises(KeyError):
                g.throw(KeyError)
        assert asyncio.run(coroutine()) == 3 and asyncio.run(gather()) == [4]

        class C:
            x = [i for i in range(2)]

        exec("y = 1", {})
    assert (
        "generator" not in seen
        and "coroutine" not in seen
        and "C" not in seen
        and "<module>" not in seen
    )
    assert "<listcomp>" in seen or sys.version_info >= (3, 12)


def test_fallback_runs_the_frame_itself():
    log = []

    def inner(x):
        return x + 1

    def f(x, k=2):
        log.append((x, k))
        return inner(x) * k

    misses = []

    def miss(self, slots):
        assert current_context() is None
        misses.append(slots)

    compiled = CompiledFunction(f, miss)
    context, seen = replacing(f=compiled, inner=lambda x: 10)
    with active(context):
        assert f(1) == 20 and f(2, k=3) == 30
        assert current_context() is context
    assert (
        [m[:2] for m in misses] == [(1, 2), (2, 3)]
        and log == [(1, 2), (2, 3)]
        and seen == ["f", "inner"]
    )


def test_miss_makes_an_entry_for_a_frame():
    def f(x):
        return "original"

    def miss(self, slots):
        entry = Entry(
            GuardTree([(-1, "slot", 0, [("equals", slots[0])], -1)]), lambda x: ("entry", x)
        )
        self.add_entry(entry)
        return entry

    context, _ = replacing(f=CompiledFunction(f, miss))
    with active(context):
        assert [f(1), f(2), f(1)] == [("entry", 1), ("entry", 2), ("entry", 1)]
    assert f(1) == "original"


def test_compiled_function_runs_its_original_with_its_context():
    def inner(x):
        return x + 1

    def f(n):
        seen_contexts.append(current_context())
        return inner(n) if n == 0 else f(n - 1)

    seen_contexts = []
    context, seen = replacing(inner=lambda x: 100)
    compiled = CompiledFunction(f, lambda self, slots: None, context=context)
    assert compiled(0) == 100
    assert seen == ["inner"]  # its own frame is not looked at
    assert compiled(2) == 100
    assert seen == ["inner", "f"]  # but a recursive one is, once
    assert set(seen_contexts) == {context} and current_context() is None


def test_recursion_through_the_hook():
    def f(n):
        return 0 if n == 0 else 1 + f(n - 1)

    compiled = CompiledFunction(f, lambda self, slots: None)
    context, seen = replacing(f=compiled)
    with active(context):
        assert f(200) == 200
        with pytest.raises(RecursionError):
            f(10**6)
        assert f(200) == 200
        assert current_context() is context


def test_skip_mark_is_dropped_if_no_frame_comes():
    def f(a):
        return "original"

    context, seen = replacing(f=lambda a: "replaced")
    compiled = CompiledFunction(f, None, context=context)
    with pytest.raises(TypeError):
        compiled()
    with active(context):
        assert f(1) == "replaced"
    assert compiled(1) == "original"


def test_generator_function_as_original():
    def f(n):
        yield from range(n)

    context, seen = replacing(f=lambda n: "replaced")
    compiled = CompiledFunction(f, None, context=context)
    assert list(compiled(3)) == [0, 1, 2]
    assert seen == []


def test_exceptions_restore_the_context():
    def raising(x):
        raise ValueError(x)

    def f(x):
        try:
            return raising(x)
        finally:
            assert current_context() is context

    context, seen = replacing()
    with active(context):
        with pytest.raises(ValueError):
            f(1)
    context, seen = replacing(raising=lambda x: 1 / 0)
    with active(context):
        with pytest.raises(ZeroDivisionError):
            f(1)
        with pytest.raises(ZeroDivisionError):
            f(1)


def test_callback_that_raises_or_answers_nonsense():
    def f():
        return 1

    def bad(function):
        if function.__name__ == "f":
            raise KeyError("callback")

    with active(HookContext(bad)):
        for _ in range(3):
            try:
                f()
            except KeyError:
                pass
            else:
                raise AssertionError
        assert current_context() is not None
    with active(HookContext(lambda f: 3 if f.__name__ == "f" else None)):
        with pytest.raises(TypeError, match="CompiledFunction or None"):
            f()
    assert f() == 1


def test_entries_run_without_the_hook(at_rest):
    def helper():
        return current_context()

    def f():
        return None

    context, seen = replacing(f=lambda: (helper(), hook_state()))
    with active(context):
        result = f()
        assert hook_state() == "ours"
    assert result == (None, at_rest) and "helper" not in seen


def test_break_functions_run_with_the_context():
    def inner():
        return current_context()

    def break_function():
        return inner()

    def f():
        return None

    context, seen = replacing(inner=None)
    compiled = CompiledFunction(f, None, context=context)
    compiled.add_entry(open_entry(0, lambda: tail(break_function)))
    assert compiled() is context
    assert seen == ["inner"]  # the break function's own frame runs as it is

    outer_context, outer_seen = replacing(f=compiled)
    with active(outer_context):
        assert f() is context
        assert current_context() is outer_context
    assert seen == ["inner"] and outer_seen == ["f"]


def test_run_only_and_disabled_dispatch():
    def f():
        return "original"

    context, seen = replacing(f=lambda: "replaced")
    with active(context):
        previous = set_run_only(True)
        assert f() == "original" and seen == []
        context.ask_always = True
        assert f() == "replaced" and seen == ["f"]
        context.clear()
        set_run_only(previous)
        assert f() == "replaced"
        set_run_only(True)
        assert f() == "replaced"
        set_run_only(False)
        set_dispatch_enabled(False)
        assert f() == "original"
        set_dispatch_enabled(True)
        assert f() == "replaced"


def test_two_threads():
    def f(x):
        return "original"

    results = {}
    barrier = threading.Barrier(2)

    def with_context(name):
        context, seen = replacing(f=lambda x: name)
        barrier.wait()
        with active(context):
            results[name] = {f(i) for i in range(2000)}

    def without():
        barrier.wait()
        results["plain"] = {f(i) for i in range(2000)}

    for functions in (
        [lambda: with_context("a"), lambda: with_context("b")],
        [lambda: with_context("c"), without],
    ):
        in_threads(lambda function: function(), functions)
    assert results == {"a": {"a"}, "b": {"b"}, "c": {"c"}, "plain": {"original"}}


def test_set_context_form(at_rest):
    with pytest.raises(TypeError):
        set_context(3)
    with pytest.raises(TypeError):
        HookContext(3)
    context = HookContext(lambda f: None)
    context.name = "x"
    assert set_context(context) is None and set_context(context) is context
    assert hook_state() == "ours" and set_context(None) is context and hook_state() == at_rest


def test_context_dies():
    def f():
        return 1

    class Owner:
        pass

    owner = Owner()
    owner.context = HookContext(lambda function, owner=owner: None)
    owner.context.owner = owner
    with active(owner.context):
        f()
    reference = weakref.ref(owner)
    del owner
    gc.collect()
    assert reference() is None


def test_no_reference_is_lost_or_kept():
    token = ["x"]

    def replaced(a, b):
        return a

    def skipped(a, b):
        return a

    def falling(a, b):
        return a

    def raising(a, b):
        return a

    def bad(a, b):
        raise ValueError

    context, _ = replacing(
        replaced=lambda a, b: b, falling=CompiledFunction(falling, lambda s, t: None), raising=bad
    )

    def work():
        replaced(token, token)
        skipped(token, b=token)
        falling(token, token)
        try:
            raising(token, token)
        except ValueError:
            pass

    with active(context):
        for _ in range(10):
            work()
        gc.collect()
        before = (
            sys.getrefcount(token),
            sys.getrefcount(falling),
            sys.getrefcount(falling.__code__),
            sys.getrefcount(context),
        )
        memory = resident_kib()
        for _ in range(100_000):
            work()
        gc.collect()
        assert before == (
            sys.getrefcount(token),
            sys.getrefcount(falling),
            sys.getrefcount(falling.__code__),
            sys.getrefcount(context),
        )
        assert resident_kib() - memory < 2_000


# ---- together with torch.compile's hook ----


def test_inside_and_around_torch_compile():
    def inner(x):
        return x + 1

    @torch.compile(backend="eager")
    def dynamo(x):
        return inner(x) * 2

    def plain(x):
        return "original"

    x = torch.ones(2)
    context, seen = replacing(plain=lambda x: "replaced")
    with active(context):  # ours first, then torch's on top
        assert plain(x) == "replaced"
        assert torch.equal(dynamo(x), torch.full((2,), 4.0))
        assert plain(x) == "replaced"
        assert torch.equal(dynamo(x), torch.full((2,), 4.0))

    @torch._dynamo.disable
    def ours_inside(x):
        with active(context):
            return plain(x)

    @torch.compile(backend="eager")
    def breaking(x):
        y = x + 1
        result = ours_inside(y)
        return y, result

    for _ in range(3):  # torch's first, then ours on top
        assert breaking(x)[1] == "replaced"
    assert plain(x) == "original"
    torch._dynamo.reset()


#: torch leaves its hook installed for good after an operator that it compiles and then refuses.
LEFT_INSTALLED = """
import torch
from framejit.native import CompiledFunction, HookContext, hook_state, set_context
from native_helpers import compiled_of

def plain():
    return "original"

def noting(x):
    noted.append(1)
    return x + 1

try:
    torch.cond(torch.ones(()) > 0, noting, lambda x: x - 1, (torch.ones(2),))
except RuntimeError:
    print(hook_state())
dynamo = torch.compile(lambda x: x + 1, backend="eager")
replaced = compiled_of(plain, lambda: "replaced", slots=0)
context = HookContext(lambda function: replaced if function is plain else None)
for _ in range(2):
    set_context(context)
    print(plain(), dynamo(torch.ones(1)).item(), plain())
    set_context(None)
    print(plain())
"""


def test_torchs_hook_is_below_ours_and_above_it():
    command = [sys.executable, "-c", LEFT_INSTALLED]
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path}
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    told = ["replaced 2.0 replaced", "original"] * 2
    assert run.stdout.splitlines() == ["other", *told], run.stderr[-1000:]


def test_contexts_that_do_not_nest_with_torch():
    """Ours is taken away while torch's hook sits on top, and put back, and torch's goes."""

    def plain():
        return "original"

    context, seen = replacing(plain=lambda: "replaced")

    @torch.compile(backend="eager")
    def dynamo(x):
        return x + 1

    box = []

    @torch._dynamo.disable
    def leave():
        box.append(plain())
        set_context(None)
        box.append(plain())
        set_context(context)
        box.append(plain())
        set_context(None)
        return 1

    @torch.compile(backend="eager")
    def breaking(x):
        return x + leave()

    set_context(context)
    breaking(torch.ones(1))
    assert box == ["replaced", "original", "replaced"]
    assert plain() == "original"
    assert hook_state() != "ours"  # the first frame after torch's hook had gone took ours away
    dynamo(torch.ones(1))
    with active(context):
        assert plain() == "replaced"
    assert plain() == "original"
    torch._dynamo.reset()
