"""What the variables of a frame hold that an error has left ends with the error, not before."""

from __future__ import annotations

import gc
import traceback

import pytest
import torch

import framejit
from checking import CountingBackend

EVENTS: list[str] = []


def ticks(n):
    try:
        yield from range(n)
    finally:
        EVENTS.append("closed")


class Loud:
    def __del__(self):
        EVENTS.append("deleted")


def finally_that_breaks(x):
    g = ticks(3)
    next(g)
    try:
        int(x * 2)
    finally:
        print(end="")
    return g


def block_of_torch(x):
    g = ticks(3)
    next(g)
    y = x * 2
    with torch.no_grad():
        print(end="")
        len(5)
    return g, y


def error_in_a_handler(x):
    g = ticks(3)
    next(g)
    y = x * 2
    try:
        raise KeyError(1)
    except LookupError:
        try:
            raise KeyError(_unknown)  # noqa: F821 - that is the error
        except LookupError:
            pass
    return g, y


def raised_again(x):
    g = Loud()
    try:
        int(x * 2)
    except ValueError:
        print(end="")
        raise
    return g


def two_frames(x):
    def inner():
        g = ticks(3)
        next(g)
        try:
            int(x * 2)
        finally:
            print(end="")
        return g

    try:
        inner()
    finally:
        print(end="")


def dropped_by_the_outer_handler(x):
    g = ticks(3)
    next(g)
    try:
        try:
            int(x * 2)
        finally:
            print(end="")
    except ValueError:
        g = None
        EVENTS.append("dropped")
        raise
    return g


def without_a_traceback(x):
    g = Loud()
    try:
        int(x * 2)
    except ValueError as error:
        kept = error
    EVENTS.append("caught inside")
    g = None
    EVENTS.append("dropped")
    print(end="")
    raise kept.with_traceback(None)
    return g


def events(function, cleared):
    EVENTS.clear()
    try:
        function(torch.ones(3))
    except Exception as error:  # noqa: BLE001 - it is looked at
        EVENTS.append(f"caught {type(error).__name__}")
        if cleared:
            traceback.clear_frames(error.__traceback__)
            EVENTS.append("cleared")
    EVENTS.append("gone")
    return list(EVENTS)


@pytest.mark.parametrize("cleared", [False, True])
@pytest.mark.parametrize(
    "function",
    [finally_that_breaks, block_of_torch, error_in_a_handler, raised_again, two_frames,
     dropped_by_the_outer_handler, without_a_traceback],
)  # fmt: skip
def test_variables_end_with_the_error(function, cleared):
    gc.disable()
    try:
        expected = events(function, cleared)
        backend = CountingBackend()
        compiled = framejit.compile(function, backend=backend)
        for _ in range(3):
            assert events(compiled, cleared) == expected
        assert backend.ops >= 1
    finally:
        gc.enable()


# -- callers of frames in the traceback ------------------------------------------------------------


def kept_here(kept):
    try:
        raise ValueError(1)
    except ValueError as error:
        kept.append(error)


def started():
    g = ticks(3)
    next(g)
    return g


def of_the_function(x, kept):
    g = started()  # noqa: F841
    kept_here(kept)
    EVENTS.append("goes on")
    return x + 1


def of_a_real_error(x, kept):
    g = started()  # noqa: F841
    y = x * 2
    try:
        int(x)
    except ValueError as error:
        kept.append(error)
    EVENTS.append("goes on")
    return y + 1


def of_a_real_error_over_a_break(x, kept):
    g = started()  # noqa: F841
    y = x * 2
    try:
        int(x)
    except ValueError as error:
        kept.append(error)
    print(end="")
    EVENTS.append("goes on")
    return y + 1


def of_a_traceback_alone(x, kept):
    try:
        int(x)
    except ValueError as error:
        kept.append(error.__traceback__)
    g = started()  # noqa: F841
    return x + 1


def of_what_a_generator_calls(x, kept):
    def items():
        g = started()  # noqa: F841
        kept_here(kept)
        yield x + 1

    h = started()  # noqa: F841
    total = sum(items())
    EVENTS.append("goes on")
    return total


def called(function, x):
    """When what ends, if the caller holds something, too, and keeps the error for a while."""
    EVENTS.clear()
    kept = []

    def caller():
        h = Loud()  # noqa: F841
        function(x, kept)
        EVENTS.append("returned")

    caller()
    EVENTS.append("left")
    kept.clear()
    EVENTS.append("gone")
    return list(EVENTS)


@pytest.mark.parametrize(
    "function, graphs",
    [(of_the_function, 1), (of_a_real_error, 2), (of_a_real_error_over_a_break, 2),
     (of_a_traceback_alone, 1), (of_what_a_generator_calls, 1)],
)  # fmt: skip
def test_errors_keep_what_callers_hold(function, graphs):
    gc.disable()
    try:
        expected = called(function, torch.ones(3))
        backend = CountingBackend()
        compiled = framejit.compile(function, backend=backend)
        for _ in range(3):
            assert called(compiled, torch.ones(3)) == expected
        assert len(backend.graphs) == graphs
    finally:
        gc.enable()
