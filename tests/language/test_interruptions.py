"""Handlers of signals that raise in the middle of what is compiled: the program gets the error."""

import signal
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
