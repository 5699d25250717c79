"""Errors: the traceback shows the user's lines, a graph that raises runs again as plain Python, and
an interrupted capture leaves no trace."""

from __future__ import annotations

import sys
import traceback

import pytest
import torch

import framejit
from checking import CountingBackend, check
from framejit import config
from framejit.bytecode.decode import decode
from framejit.interpreter import forced
from framejit.report import events
from threads import in_threads

X = torch.arange(6.0).reshape(2, 3)


def user_lines(function, *args):
    """The lines of this file in the traceback of what ``function`` raises, and the error."""
    try:
        function(*args)
    except Exception as error:  # noqa: BLE001
        frames = traceback.extract_tb(error.__traceback__)
        return [f.line for f in frames if f.filename == __file__][1:], error
    raise AssertionError("nothing was raised")


def same_lines(function, *args):
    """Eager and compiled tracebacks name the same lines, on the first and on the second call."""
    expected, error = user_lines(function, *args)
    compiled = framejit.compile(function, backend="eager")
    for _ in range(2):
        got, ours = user_lines(compiled, *args)
        assert type(ours) is type(error) and str(ours) == str(error)
        assert got == expected
    return expected


# -- 1 lines ---------------------------------------------------------------------------------------


def shape_mismatch(x):
    y = x + 1
    z = y @ torch.ones(7, 7)
    return z * 2


def raise_in_helper(x):
    def helper(y):
        y = y * 2
        raise ValueError("from the helper")

    return helper(x + 1)


def raise_after_break(x):
    y = x + 1
    print(end="")
    y = y * 2
    raise KeyError("later")


def mismatch_after_break(x):
    y = x + 1
    print(end="")
    return y + torch.ones(5)


def error_of_broken_operation(x):
    y = x + 1
    return y * int("abc")


def error_three_deep(x):
    def third(y):
        return y + int(print(end="") or "abc")

    def second(y):
        return third(y * 2)

    return second(x + 1)


def reraised(x):
    try:
        x = x + 1
        raise ValueError("first")
    except ValueError:
        print(end="")
        raise


def index_out_of_range(x):
    y = x * 2
    i = y.long() + 100
    z = torch.arange(10)[i]
    return z + y


def index_in_helper(x):
    def pick(table, i):
        return table[i]

    return pick(torch.arange(10), x.long() + 100) * 2


def attribute_error(x):
    y = x + 1
    return y.no_such_attribute


def unbound_local(x):
    if x.shape[0] > 100:
        y = x
    return y + x


def key_error(x):
    d = {"a": x + 1}
    return d["b"] * 2


def failed_assert(x):
    y = x + 1
    assert y.shape[0] == 7, "seven"
    return y


LINES = [
    shape_mismatch, raise_in_helper, raise_after_break, mismatch_after_break,
    error_of_broken_operation, error_three_deep, reraised, index_out_of_range, index_in_helper,
    attribute_error, unbound_local, key_error, failed_assert,
]  # fmt: skip


@pytest.mark.parametrize("function", LINES, ids=lambda f: f.__name__)
def test_same_lines_as_eager(function):
    assert same_lines(function, X)


@pytest.mark.parametrize("function", LINES, ids=lambda f: f.__name__)
def test_users_own_error_under_fullgraph(function):
    """Errors of the user's code are the user's; breaks on the way to them are errors of ours."""
    _, expected = user_lines(function, X)
    _, error = user_lines(framejit.compile(function, backend="eager", fullgraph=True), X)
    if isinstance(error, framejit.exc.Unsupported):
        assert "print" in str(error)
        assert function in (
            raise_after_break, mismatch_after_break, reraised, error_three_deep
        )  # fmt: skip
    else:
        assert type(error) is type(expected) and str(error) == str(expected)


# -- 2 fullgraph -----------------------------------------------------------------------------------


def breaks_in_helper(x):
    def helper(y):
        print("a break")
        return y

    return helper(x + 1)


def breaks_on_data(x):
    if x.sum() > 0:
        return x + 1
    return x


@pytest.mark.parametrize(
    "function, code", [(breaks_in_helper, 'print("a break")'), (breaks_on_data, "if x.sum() > 0:")]
)
def test_break_under_fullgraph(function, code):
    compiled = framejit.compile(function, backend="eager", fullgraph=True)
    for _ in range(2):
        with pytest.raises(framejit.exc.Unsupported) as caught:
            compiled(X)
        lines = str(caught.value).splitlines()
        assert len(lines) <= 6
        assert any(__file__ in line and "line" in line for line in lines)
        assert any(code in line for line in lines)
        assert lines[-1].endswith((".", ")"))  # says what to do


# -- 3 a graph that raises -------------------------------------------------------------------------


def index_error_that_is_caught(x, i):
    y = x * 2
    try:
        z = y[i]
    except IndexError as error:
        print(type(error).__name__)
        return y - 1
    return z + 1


def writes_before_the_error(x, i, log):
    log.append("before")
    y = x[i]
    log.append("after")
    return y * 2


def error_before_finally(x, i, log):
    try:
        log.append("body")
        y = x[i] * 2
        log.append("done")
        return y
    except IndexError:
        log.append("handler")
        return x
    finally:
        log.append("finally")


def error_after_a_break(x, i, log):
    y = x + 1
    print("break")
    log.append(1)
    try:
        y = y[i]
        log.append(2)
    except IndexError:
        print("caught")
    return y * 2


def error_of_embedding(x, i):
    table = torch.nn.functional.embedding(i, x)
    return table * 2


def error_in_no_grad(x, i):
    try:
        with torch.no_grad():
            y = x[i] * 2
    except IndexError:
        y = x
    return y * 2, torch.is_grad_enabled()


def error_in_a_callee(x, i, log):
    def pick(k):
        print("pick")
        log.append("pick")
        return x[k]

    def outer(k):
        try:
            return pick(k)
        except IndexError:
            log.append("caught outside")
            return x

    return outer(i) * 2


def error_beside_cells_and_stars(x, i, *args, k=1, **kwargs):
    total = x * k

    def add(y):
        nonlocal total
        total = total + y
        return total

    for a in args:
        add(a)
    return add(kwargs["z"])[i], total


def error_in_a_loop_with_a_break(x, i):
    out = []
    for n in range(3):
        print(n)
        try:
            out.append(x[i + (n - 1) * 100 if n else i])
        except IndexError:
            out.append(None)
    return out


def error_that_with_swallows(x, i):
    import contextlib

    y = x
    with contextlib.suppress(IndexError):
        y = x + 1
        y = x[i]
    return y * 2


def error_in_a_constructor(x, i):
    box = Picked(x, i)
    return box.failed, x + 1


class Picked:
    def __init__(self, x, i):
        self.failed = False
        print("init")
        try:
            self.value = x[i]
        except IndexError:
            self.failed = True


GOOD, BAD = torch.tensor([0, 1]), torch.tensor([0, 50])
DEOPTIMISED = [
    (index_error_that_is_caught, ()), (writes_before_the_error, ([],)),
    (error_before_finally, ([],)), (error_after_a_break, ([],)), (error_of_embedding, ()),
    (error_in_no_grad, ()), (error_in_a_callee, ([],)), (error_beside_cells_and_stars, (X, X + 1)),
    (error_in_a_loop_with_a_break, ()), (error_that_with_swallows, ()),
    (error_in_a_constructor, ()),
]  # fmt: skip


@pytest.mark.parametrize("function, args", DEOPTIMISED, ids=lambda f: getattr(f, "__name__", ""))
@pytest.mark.parametrize("index", [GOOD, BAD], ids=["good", "bad"])
def test_graph_that_raises(function, args, index):
    kwargs = {"z": X * 3, "k": 2} if function is error_beside_cells_and_stars else {}
    with events.recording(events.Deoptimised) as seen:
        check(function, X, index, *args, **kwargs)
    assert bool(seen) == (index is BAD or function is error_in_a_loop_with_a_break)
    if seen:
        assert seen[0].filename == __file__


def test_good_and_bad_calls_share_one_entry():
    backend = CountingBackend()
    compiled = framejit.compile(index_error_that_is_caught, backend=backend)
    for index in (GOOD, BAD, GOOD, BAD):
        expected = index_error_that_is_caught(X, index)
        torch.testing.assert_close(compiled(X, index), expected)
    assert len(backend.graphs) == 1


def test_mutated_input_is_not_run_again():
    def function(x, i):
        x.add_(1)
        return x[i]

    x = X.clone()
    with pytest.raises(IndexError):
        framejit.compile(function, backend="eager")(x, BAD)
    torch.testing.assert_close(x, X + 1)


def test_state_is_restored_when_the_graph_cannot_run_again():
    def function(x, i):
        with torch.no_grad():
            x.add_(1)
            return x[i]

    compiled = framejit.compile(function, backend="eager")
    with pytest.raises(IndexError):
        compiled(X.clone(), BAD)
    assert torch.is_grad_enabled()


# -- 4 interrupted ---------------------------------------------------------------------------------


def add_and_print(x):
    y = x + 1
    print(end="")
    return y * 2


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_error_in_the_backend_then_fine(kind):
    calls = []

    def backend(module, inputs):
        calls.append(1)
        if len(calls) in (1, 3):
            raise kind("in the backend")
        return module

    compiled = framejit.compile(add_and_print, backend=backend)
    wanted = framejit.exc.BackendCompilerFailed if kind is RuntimeError else kind
    with pytest.raises(wanted):
        compiled(X)
    with pytest.raises(wanted):  # now the one after the break
        compiled(X)
    for _ in range(2):
        torch.testing.assert_close(compiled(X), (X + 1) * 2)
    assert len(calls) == 4


def test_interrupt_while_the_graph_runs():
    state = {"raise": True}

    def backend(module, inputs):
        def run(*args):
            if state["raise"]:
                raise KeyboardInterrupt
            return module(*args)

        return run

    compiled = framejit.compile(add_and_print, backend=backend)
    with pytest.raises(KeyboardInterrupt):
        compiled(X)
    state["raise"] = False
    torch.testing.assert_close(compiled(X), (X + 1) * 2)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_error_in_the_middle_of_tracing(kind, monkeypatch):
    from framejit.graph.builder import GraphBuilder

    original = GraphBuilder._create
    left = [1]

    def create(self, *args):
        if left:
            left.pop()
            raise kind("tracing")
        return original(self, *args)

    def function(x):
        with torch.no_grad():
            return x * 2 + 1

    monkeypatch.setattr(GraphBuilder, "_create", create)
    compiled = framejit.compile(function, backend="eager")
    if kind is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            compiled(X)
    else:
        with config.patch(raise_internal_errors=False), pytest.warns(UserWarning, match="bug"):
            torch.testing.assert_close(compiled(X), X * 2 + 1)
    assert torch.is_grad_enabled()
    torch.testing.assert_close(compiled(X), X * 2 + 1)


def deep(x, n):
    if n == 0:
        return x + 1
    print(end="")
    return deep(x, n - 1) + 1


def test_recursion_past_the_limit():
    def endless(x):
        return endless(x + 1) * 2

    compiled = framejit.compile(endless, backend="eager")
    limit = sys.getrecursionlimit()
    for _ in range(2):
        with pytest.raises(RecursionError):
            compiled(X)
    assert sys.getrecursionlimit() == limit
    again = framejit.compile(deep, backend="eager")
    torch.testing.assert_close(again(X, 5), deep(X, 5))


def test_two_threads():
    backend = CountingBackend()
    compiled = framejit.compile(deep, backend=backend)
    wrong = []

    def work(k):
        for i in range(20):
            x = X + i
            if not torch.equal(compiled(x, k % 3), deep(x, k % 3)):
                wrong.append((k, i))

    in_threads(work, range(4))
    assert not wrong


# -- what the frames in a traceback keep -----------------------------------------------------------


def closing(log, tag="closed"):
    try:
        yield 1
        yield 2
    finally:
        log.append(tag)


def suspended(log, tag="inner"):
    items = closing(log, tag)
    next(items)
    raise ValueError(tag)


def suspended_twice(log):
    items = closing(log, "outer")
    next(items)
    suspended(log)


def raised_with(log, items):
    raise ValueError(len(items))


def kept_in_a_handler(x, log):
    try:
        suspended(log)
    except ValueError:
        log.append("except")
        print(end="")
        log.append("still")
    log.append("behind")
    return x + 1


def kept_by_a_variable(x, log):
    saved = None
    try:
        suspended(log)
    except ValueError as error:
        saved = error
        print(end="")
    log.append("behind")
    print(end="")
    log.append("more")
    saved = None  # noqa: F841
    log.append("end")
    return x + 1


def kept_by_two_frames(x, log):
    try:
        suspended_twice(log)
    except ValueError:
        print(end="")
        log.append("still")
    log.append("behind")
    return x + 1


def kept_as_an_argument(x, log):
    try:
        items = closing(log)
        next(items)
        raised_with(log, [items])
    except ValueError:
        items = None
        print(end="")
        log.append("still")
    log.append("behind")
    return x + 1


def raised_after_a_break(items):
    print(end="")
    raise ValueError("after")


def kept_by_an_argument_nobody_reads(x, log):
    try:
        items = closing(log)
        next(items)
        raised_after_a_break([items])
    except ValueError:
        items = None
        print(end="")
        log.append("still")
    log.append("behind")
    return x + 1


def caught_beside(log, errors):
    items = closing(log)
    next(items)
    try:
        raise ValueError(len(log))
    except ValueError as error:
        errors.append(error)


def kept_where_it_was_caught(x, log):
    errors = []
    caught_beside(log, errors)
    print(end="")
    log.append("still")
    errors.clear()
    log.append("behind")
    return x + 1


def caught_before_a_break(log, errors):
    items = closing(log)
    next(items)
    try:
        raise ValueError(len(log))
    except ValueError as error:
        errors.append(error)
    print(end="")


def kept_by_a_frame_that_breaks(x, log):
    errors = []
    y = x * 2
    caught_before_a_break(log, errors)
    log.append("still")
    errors.clear()
    log.append("behind")
    return y + 1


def kept_in_a_handler_that_breaks(x, log):
    def catch():
        items = closing(log)
        next(items)
        try:
            raise ValueError(len(log))
        except ValueError as error:
            print(end="")
            errors.append(error)

    errors = []
    y = x * 2
    catch()
    log.append("still")
    errors.clear()
    log.append("behind")
    return y + 1


def kept_by_the_caller_of_a_kept_frame(x, log):
    def catch():
        try:
            raise ValueError(len(log))
        except ValueError as error:
            errors.append(error)

    def outer():
        items = closing(log)
        next(items)
        catch()
        print(end="")

    errors = []
    y = x * 2
    outer()
    log.append("still")
    errors.clear()
    log.append("behind")
    return y + 1


def kept_while_raised_again(x, log):
    try:
        try:
            suspended(log)
        except ValueError:
            print(end="")
            raise
    except ValueError as error:
        log.append("outer")
        print(end="")
        log.append(str(error))
    log.append("behind")
    return x + 1


@pytest.mark.parametrize("program", [
    kept_in_a_handler, kept_by_a_variable, kept_by_two_frames, kept_as_an_argument,
    kept_while_raised_again, kept_by_an_argument_nobody_reads, kept_where_it_was_caught,
])  # fmt: skip
def test_what_a_traceback_keeps_ends_with_it(program):
    check(program, torch.ones(2), [], graphs=1, ops=1)


@pytest.mark.parametrize("program", [
    kept_by_a_frame_that_breaks, kept_in_a_handler_that_breaks, kept_by_the_caller_of_a_kept_frame,
])  # fmt: skip
def test_a_frame_that_a_traceback_keeps_is_not_divided(program):
    check(program, torch.ones(2), [], graphs=2, ops=2)


def test_a_frame_that_breaks_where_it_raises_is_not_divided():
    code = caught_beside.__code__
    raises = next(one for one in decode(code).instructions if one.op == "RAISE_VARARGS")
    with forced.forced_break(code, raises.index):
        check(kept_where_it_was_caught, torch.ones(2), [], graphs=1, ops=1)


def test_a_frame_whose_callee_breaks_where_it_raises_is_not_divided():
    function = kept_by_the_caller_of_a_kept_frame
    code = next(one for one in function.__code__.co_consts if "catch" in repr(one))
    raises = next(one for one in decode(code).instructions if one.op == "RAISE_VARARGS")
    with forced.forced_break(code, raises.index):
        check(function, torch.ones(2), [], graphs=2, ops=2)


def test_a_handler_that_breaks_divides_frames_whose_end_nobody_sees():
    def program(x):
        kept = []
        try:
            raise ValueError(1)
        except ValueError as error:
            kept.append(error)
            print(end="")
        return x * 2

    check(program, X, graphs=1, ops=1)


def refuse(x, what):
    if what:
        raise LookupError(what)  # noqa: E701
    return x


def printed_in_a_handler(x):
    try:
        return refuse(x, "no")
    except LookupError:
        return x + 1, traceback.format_exc()


def printed_after_a_break(x):
    try:
        x = [x + 1][len(x.shape) + 5]  # noqa: E701
    except IndexError as error:
        held = error  # noqa: E701
    print(end="")
    return x + 1, traceback.format_exception(held)


@pytest.mark.parametrize("program", [printed_in_a_handler, printed_after_a_break])
def test_tracebacks_show_the_columns(program):
    expected = program(X)
    with config.patch(raise_internal_errors=True):
        result = framejit.compile(program, backend="eager")(X)
    assert torch.equal(result[0], expected[0]) and result[1] == expected[1]
    assert "^^^" in "".join(expected[1])
