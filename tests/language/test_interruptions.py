"""Handlers of signals that raise in the middle of what is compiled: the program gets the error."""

import ctypes
import os
import signal
import threading
import time
import warnings

import pytest
import torch

import framejit


class Alarm(Exception):
    """What the handler raises."""


@pytest.fixture
def interrupted():
    """A backend whose graphs are interrupted when they run, while a flag is set."""

    def handler(number, frame):
        raise Alarm

    before = signal.signal(signal.SIGUSR1, handler)
    switch = []

    def backend(gm, inputs):
        def run(*args):
            if switch:
                signal.raise_signal(signal.SIGUSR1)
            return gm(*args)

        return run

    yield backend, switch
    signal.signal(signal.SIGUSR1, before)


def calls_of(program, backend, switch):
    """What three calls give, of which the second is interrupted."""
    compiled, x, results = framejit.compile(program, backend=backend), torch.ones(2), []
    with warnings.catch_warnings():
        warnings.simplefilter("error", framejit.exc.FramejitWarning)
        for on in (False, True, False):
            switch[:] = [True] * on
            try:
                results.append(compiled(x))
            except Alarm:
                results.append("interrupted")
    return results


def test_the_call_raises(interrupted):
    first, second, third = calls_of(lambda x: x.sin() + 1, *interrupted)
    assert second == "interrupted" and torch.equal(first, third)
    assert framejit.counters["stats"]["unique_graphs"] == 1


def test_blocks_that_an_earlier_break_is_in_meet_it(interrupted):
    def program(x):
        y = x + 1
        try:
            print(end="")
            return y * 2
        except Alarm:
            return "met"

    backend, switch = interrupted

    def from_the_second(gm, inputs):
        return backend(gm, inputs) if "mul" in gm.code else gm.forward

    first, second, third = calls_of(program, from_the_second, switch)
    assert second == "met" and torch.equal(first, third)
    assert framejit.counters["stats"]["unique_graphs"] == 2


def test_a_capture_is_interrupted(interrupted):
    """It is made anew by the next call."""
    _, switch = interrupted

    def backend(gm, inputs):
        if switch:
            switch.clear()
            signal.raise_signal(signal.SIGUSR1)
        return gm.forward

    compiled = framejit.compile(lambda x: x.sin() + 1, backend=backend)
    switch.append(True)
    with pytest.raises(Alarm):
        compiled(torch.ones(2))
    assert torch.equal(compiled(torch.ones(2)), torch.ones(2).sin() + 1)
    assert framejit.counters["stats"]["unique_graphs"] == 1


@torch.library.custom_op("interruptions::slow", mutates_args=())
def slow(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@slow.register_fake
def _(x):
    if during:
        signal.raise_signal(during.pop())
    return torch.empty_like(x)


#: Which signal arrives when the operator's shapes are worked out: once for each size, so every
#: test has its own.
during = []


@pytest.fixture
def alarmed():
    """The handler of SIGUSR1, which raises and is there again afterwards."""

    def handler(number, frame):
        raise Alarm(number)

    before = signal.signal(signal.SIGUSR1, handler)
    during.append(signal.SIGUSR1)
    yield handler
    assert signal.getsignal(signal.SIGUSR1) is handler
    signal.signal(signal.SIGUSR1, before)
    during.clear()


def graphs():
    return framejit.counters["stats"]["unique_graphs"]


def test_no_capture_takes_the_error_for_a_break(alarmed):
    compiled, x = framejit.compile(lambda x: slow(x) * 2, backend="eager"), torch.ones(2)
    with pytest.raises(Alarm) as met:
        compiled(x)
    assert met.value.args == (signal.SIGUSR1,)
    assert met.value.__context__ is None and met.value.__cause__ is None
    assert torch.equal(compiled(x), torch.full((2,), 4.0))
    assert graphs() == 1
    assert "framejit" not in str(signal.getsignal(signal.SIGUSR1))


def test_blocks_meet_what_interrupts_the_capture_of_what_follows(alarmed):
    @framejit.compile(backend="eager")
    def program(x):
        y = x + 1
        try:
            print(end="")
            return slow(y)
        except Alarm:
            return "met"

    assert program(torch.ones(5)) == "met"
    assert torch.equal(program(torch.ones(5)), torch.full((5,), 3.0))
    assert graphs() == 2


def test_handlers_that_do_not_raise_leave_the_capture_alone():
    arrived = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: arrived.append(number))
    signal.siginterrupt(signal.SIGUSR1, False)
    during.append(signal.SIGUSR1)
    compiled = framejit.compile(lambda x: slow(x) * 2, backend="eager", fullgraph=True)
    try:
        assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 4.0))
        assert arrived == [signal.SIGUSR1] and graphs() == 1
        assert restarts(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def restarts(number):
    """Is a read that the signal meets made anew by the operating system?"""
    reading, writing = os.pipe()
    reader = threading.main_thread().ident

    def interrupt():
        time.sleep(0.05)
        signal.pthread_kill(reader, number)
        time.sleep(0.05)
        os.write(writing, b"x")

    thread = threading.Thread(target=interrupt)
    thread.start()
    count = ctypes.CDLL(None).read(reading, ctypes.create_string_buffer(1), 1)
    thread.join()
    os.close(reading)
    os.close(writing)
    return count == 1


def test_a_handler_that_puts_another_in_its_place():
    def second(number, frame):
        raise Alarm

    def first(number, frame):
        signal.signal(number, second)

    before = signal.signal(signal.SIGUSR1, first)
    during.append(signal.SIGUSR1)
    try:
        framejit.compile(lambda x: slow(x) * 2, backend="eager", fullgraph=True)(torch.ones(4))
        assert signal.getsignal(signal.SIGUSR1) is second and graphs() == 1
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_other_threads_leave_handlers_alone(alarmed):
    """The main thread's handler raises there, whatever another thread captures."""
    during.clear()
    seen = []

    def backend(gm, inputs):
        seen.append(signal.getsignal(signal.SIGUSR1))
        return gm.forward

    compiled = framejit.compile(lambda x: x.sin() + 1, backend=backend)
    thread = threading.Thread(target=compiled, args=(torch.ones(2),))
    thread.start()
    thread.join()
    assert seen == [alarmed] and graphs() == 1
