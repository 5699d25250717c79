"""Who looks at the running frames (a debugger, the program) finds the user's lines and locals."""

from __future__ import annotations

import inspect
import io
import pdb
import sys
import traceback

import pytest
import torch

import framejit
from checking import CountingBackend, check


def variables(depth=1):
    frame = sys._getframe(depth)
    return frame.f_code.co_name, frame.f_lineno, sorted(frame.f_locals)


def name_of_the_caller(x):
    y = x * 2
    n = variables()
    return y + 1, n


def caller_seen_from_blocks(x):
    z, found = x + 1, []
    for i in range(2):
        try:
            y = z * 2
            found.append(variables())
        finally:
            z = y + i
    return z.sin(), found


def middle(x, k):
    u = x * k
    found = variables(2), variables()
    return u + 1, found


def seen_two_calls_up(x):
    unused = x - 1
    y, found = middle(x + 1, 3)
    return y * 2, found


def seen_in_a_condition(x):
    unused = x - 1
    if variables()[1] and middle(x, 2):
        return x + 1
    return x


def own_frame_is_seen(x):
    unused = x - 1
    frame = inspect.currentframe()
    y = x + 1
    names = sorted(frame.f_locals)
    return y * 2, names, frame.f_code.co_name


def error_in_a_caller(x):
    def inner(t):
        seen = variables(2)
        raise ValueError(str(seen))

    try:
        y = x + 1
        inner(y)
    except ValueError as error:
        return y * 2, str(error)


class Made:
    def __init__(self, x):
        self.x = x * 2
        self.found = variables()


def caller_seen_by_a_constructor(x):
    made = Made(x + 1)
    return made.x + 1, made.found


def seen_many_calls_deep(x):
    def down(x, n):
        here = x + n
        if n:
            return down(here, n - 1)
        frame, names = sys._getframe(), []
        while frame.f_code.co_name == "down":
            names.append((frame.f_lineno, sorted(frame.f_locals)))
            frame = frame.f_back
        return here, names

    return down(x, 3)


class Looker:
    def __call__(self):
        return variables(2)


LOOKER = Looker()


def seen_after_a_break(x):
    unused = x + 1
    y = unused * 2
    print("break")
    return y, variables()


def seen_from_two_calls_below_after_a_break(x):
    unused = x + 1
    y = unused * 2
    print("break")
    return middle(y, 2), LOOKER()


def seen_by_an_inner_function(x):
    unused = x + 1
    y = unused * 2
    print("break")
    return [(lambda: variables(3))() for _ in range(2)], y


@pytest.mark.parametrize(
    ("program", "graphs", "ops"),
    # After the first look the frames go on as plain Python.
    [(name_of_the_caller, 1, 1), (caller_seen_from_blocks, 1, 2), (seen_two_calls_up, 1, 3),
     (seen_in_a_condition, 2, 2), (own_frame_is_seen, 1, 1),
     (error_in_a_caller, 1, 1), (caller_seen_by_a_constructor, 1, 2),
     (seen_many_calls_deep, 1, 4), (seen_after_a_break, 1, 2),
     (seen_from_two_calls_below_after_a_break, 2, 3), (seen_by_an_inner_function, 1, 2)],
)  # fmt: skip
def test_frames_that_are_seen(program, graphs, ops) -> None:
    check(program, torch.ones(2), graphs=graphs, ops=ops)


def stops(t):
    u = t * 3
    breakpoint()
    return u + 1


def session(x, scale):
    y = x + 1
    w = y * scale
    z = stops(w)
    return z * 3


@pytest.mark.parametrize("last", ["c", "d\nn\nn\nw\np sorted(locals())\nn\nc"])
def test_frames_in_a_debugger(last, monkeypatch) -> None:
    """The same session at the prompt, compiled or not."""
    commands = f"w\np sorted(locals())\nu\np sorted(locals())\np w\n{last}\n"
    counting = CountingBackend()
    compiled = framejit.compile(session, backend=counting)
    transcripts = []
    for call in (session, compiled, compiled):
        out = io.StringIO()

        def stop(out=out):
            debugger = pdb.Pdb(stdin=io.StringIO(commands), stdout=out, nosigint=True, readrc=False)
            debugger.prompt = ""
            debugger.set_trace(sys._getframe(1))

        monkeypatch.setattr(sys, "breakpointhook", stop)
        assert torch.equal(call(torch.ones(2), 2), torch.full((2,), 39.0))
        sys.settrace(None)
        lines = out.getvalue().splitlines()
        transcripts.append([line for line in lines if "->" not in line or "__file__" in line])
    assert transcripts[0] and transcripts[1:] == transcripts[:1] * 2
    assert (len(counting.graphs), counting.ops) == (1, 3)


def fails(x, k):
    a = x + 1
    b = 7
    return [a, b][k]


def calls(x, k):
    doubled = k * 2
    return fails(x * 2, doubled)


def variables_of(error):
    found, trace = [], error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        found.append((frame.f_code.co_name, trace.tb_lineno, sorted(frame.f_locals)))
        trace = trace.tb_next
    return found


def seen_where_it_is_caught(x):
    y = x + 1
    try:
        return calls(y, 5)
    except IndexError as error:
        found, trace = [], error.__traceback__
        while trace is not None:
            found.append((trace.tb_frame.f_code.co_name, sorted(trace.tb_frame.f_locals)))
            trace = trace.tb_next
        return y * 2, found


def seen_by_what_gets_the_error(x):
    total, found = x * 2, []
    for k in range(3):
        try:
            total = total + fails(total, k)
        except IndexError as error:
            found.append(variables_of(error))
    return total, found


def seen_by_a_caller_of_what_catches(x):
    kept = []

    def keeps(k):
        doubled = k * 2
        try:
            return calls(x, doubled)
        except IndexError as error:
            kept.append(error)
            return x + 1

    y = keeps(3)
    found = variables_of(kept.pop())
    return y + 1, found


def shown_by_the_traceback_module(x):
    y = x - 1
    try:
        return calls(y, 3)
    except IndexError as error:
        shown = traceback.TracebackException.from_exception(error, capture_locals=True)
        return y * 2, [(one.name, sorted(one.locals)) for one in shown.stack]


@pytest.mark.parametrize(
    ("program", "graphs", "ops"),
    # From the error on the frames go on as plain Python.
    [(seen_where_it_is_caught, 1, 3), (seen_by_what_gets_the_error, 1, 6),
     (seen_by_a_caller_of_what_catches, 1, 2), (shown_by_the_traceback_module, 1, 3)],
)  # fmt: skip
def test_variables_of_errors_that_are_caught(program, graphs, ops) -> None:
    check(program, torch.ones(2), graphs=graphs, ops=ops)


def test_variables_in_tracebacks() -> None:
    found = []
    compiled = framejit.compile(calls, backend="eager")
    for call in (calls, compiled, compiled):
        with pytest.raises(IndexError) as caught:
            call(torch.ones(2), 5)
        frames, trace = [], caught.tb
        while trace is not None:
            frame = trace.tb_frame
            frames.append((frame.f_code.co_name, trace.tb_lineno, sorted(frame.f_locals)))
            trace = trace.tb_next
        found.append(frames[1:])
    assert found[1:] == found[:1] * 2
    assert found[0][-1] == ("fails", fails.__code__.co_firstlineno + 3, ["a", "b", "k", "x"])
