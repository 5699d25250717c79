"""Forces a graph break in front of each instruction of the programs that tests check (D19).

A plugin for pytest: every call of `checking.check` that passes is run again, once for each
instruction of the program that is captured, with a break forced in front of it, and compared with
plain Python in the same way. ``python tests/break_everywhere.py tests/language --breaks 0.1`` runs
a random tenth; ``--breaks-shard 3/16`` each sixteenth program from the third on; ``--breaks-log
FILE`` writes a line of JSON for each failure.
"""

from __future__ import annotations

import contextlib
import copy
import json
import random
import signal
import site
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch

import checking
import framejit
from framejit import config
from framejit.bytecode.decode import decode
from framejit.interpreter import forced
from framejit.report import events

#: Code of libraries: only the program's own instructions are broken at.
_LIBRARIES = (
    *site.getsitepackages(), sysconfig.get_path("stdlib"), str(Path(torch.__file__).parent),
    str(Path(framejit.__file__).parent), checking.__file__, "<frozen", "<string>",
)  # fmt: skip
SECONDS = 20
CALLS = 2

Pair = tuple[CodeType, int]


class TooSlow(BaseException):
    """A program with a forced break takes far too long."""


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise `TooSlow` after a while."""

    def alarm(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, alarm)
    left = signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(left)
        signal.signal(signal.SIGALRM, before)


def torch_state() -> dict[str, Any]:
    """What a program may leave otherwise than it found it."""
    return {
        "grad": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "autocast": torch.is_autocast_enabled("cpu"),
        "warn": torch.is_warn_always_enabled(),
    }


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """What happens in this block is not seen by the test that it belongs to."""
    subscribers, events._subscribers = events._subscribers, ()
    history = list(events._history)
    state = torch_state()
    try:
        yield
    finally:
        events._subscribers = subscribers
        events._history.clear()
        events._history.extend(history)
        torch.set_grad_enabled(state["grad"])
        torch.set_default_dtype(state["dtype"])
        torch.set_autocast_enabled("cpu", state["autocast"])
        torch.set_warn_always(state["warn"])


class Program:
    """What one call of `checking.check` runs."""

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any,
        make: Callable[[], Callable[..., Any]] | None,
    ) -> None:  # fmt: skip
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.make = make

    def compare(self) -> list[events.GraphBreak]:
        """Run it eagerly and compiled, compare, return the breaks that were met."""
        eager, traced = (self.make() if self.make else self.function for _ in range(2))
        met: list[Any] = []
        stop = events.subscribe(met.append)
        try:
            with config.patch(raise_internal_errors=True), limited(SECONDS):
                compiled = framejit.compile(traced, backend=lambda module, _: module)
                for _ in range(CALLS):
                    expected = checking.Outcome(eager, *copy.deepcopy((self.args, self.kwargs)))
                    state = torch_state()
                    got = checking.Outcome(compiled, *copy.deepcopy((self.args, self.kwargs)))
                    checking.compare_outcomes(expected, got)
                    assert torch_state() == state
        finally:
            stop()
        return [event for event in met if isinstance(event, events.GraphBreak)]

    def pairs(self) -> list[Pair]:
        """The instructions that are captured when nothing is forced."""
        with forced.noted() as noted:
            self.compare()
        return [
            (code, index)
            for code, found in noted.executed.items()
            if not code.co_filename.startswith(_LIBRARIES)
            for index in found
        ]


class Everywhere:
    """Runs programs with breaks in front of a share of their instructions."""

    def __init__(self, share: float, seed: int, shard: tuple[int, int], log: str) -> None:
        self.share = share
        self.random = random.Random(seed)
        self.shard = shard
        self.log = log
        self.programs = self.pairs = self.unbroken = self.failed = 0
        #: Programs that cannot be run repeatedly in one process.
        self.left_out: list[str] = []
        self.started = time.perf_counter()

    def check(self, program: Program, name: str) -> None:
        """Raise AssertionError with all instructions at which a break changes the program."""
        self.programs += 1
        if self.programs % self.shard[1] != self.shard[0]:
            return
        try:
            with alone():
                program.compare()
                pairs = program.pairs()
        except (Exception, TooSlow) as error:
            self.left_out.append(f"{name}: {describe(error)}")
            return
        count = len(pairs) * self.share
        whole = int(count) + (self.random.random() < count - int(count))
        failures = []
        for pair in pairs if whole >= len(pairs) else self.random.sample(pairs, whole):
            problem = self.try_pair(program, pair)
            if problem is None:
                continue
            try:
                with alone():
                    program.compare()
            except (Exception, TooSlow) as error:
                self.left_out.append(f"{name}: {describe(error)}")
                break
            failures.append(self.shown(pair, problem, name))
        self.failed += len(failures)
        assert not failures, f"{len(failures)} of {whole} forced breaks\n" + "\n".join(failures)

    def try_pair(self, program: Program, pair: Pair) -> BaseException | None:
        """What goes wrong with a break there."""
        self.pairs += 1
        with alone(), forced.forced_break(*pair) as force:
            try:
                met = program.compare()
            except (Exception, TooSlow) as error:
                return error
        if not any(event.reason == forced.REASON for event in met):
            if not force.hits:
                return AssertionError("the instruction is not executed again")
            self.unbroken += 1
        return None

    def shown(self, pair: Pair, error: BaseException, name: str) -> str:
        """One failure in a line; all that is known of it in the log."""
        code, index = pair
        instruction = decode(code).instructions[index]
        where = f"{code.co_qualname}:{instruction.line} before {instruction}"
        if self.log:
            lines = traceback.format_exception(error)
            known = {"test": name, "where": where, "op": instruction.op,
                     "file": code.co_filename, "line": instruction.line,
                     "error": describe(error), "traceback": "".join(lines)[-6000:]}  # fmt: skip
            with Path(self.log).open("a") as file:
                file.write(json.dumps(known) + "\n")
        return f"  {where}: {describe(error)}"

    def summary(self) -> str:
        """The figures of the run."""
        seconds = time.perf_counter() - self.started
        return (
            f"{self.pairs} forced breaks in {self.programs} programs, {self.failed} failed, "
            f"{self.unbroken} without a break of their own, {len(self.left_out)} programs left "
            f"out, {seconds:.0f} seconds"
        )


def describe(error: BaseException) -> str:
    """An error in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


_everywhere: Everywhere | None = None
_test = ""


def pytest_addoption(parser: Any) -> None:
    """The options of this plugin."""
    parser.addoption("--breaks", type=float, default=1.0, help="the share of instructions")
    parser.addoption("--breaks-seed", type=int, default=0)
    parser.addoption("--breaks-shard", default="0/1", help="only these programs")
    parser.addoption("--breaks-log", default="")


def pytest_configure(config: Any) -> None:
    """Follow all that tests check."""
    global _everywhere
    first, _, count = config.getoption("--breaks-shard").partition("/")
    _everywhere = everywhere = Everywhere(
        config.getoption("--breaks"), config.getoption("--breaks-seed"), (int(first), int(count)),
        config.getoption("--breaks-log"),
    )  # fmt: skip

    def checked(
        function: Callable[..., Any], args: Any, kwargs: Any,
        make: Callable[[], Callable[..., Any]] | None,
    ) -> None:  # fmt: skip
        everywhere.check(Program(function, args, kwargs, make), _test)

    checking.checked = checked


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """Which test is it?"""
    global _test
    _test = item.nodeid


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says what was run."""
    assert _everywhere is not None
    for line in (*_everywhere.left_out, _everywhere.summary()):
        terminalreporter.write_line(line)


if __name__ == "__main__":
    sys.exit(pytest.main([*sys.argv[1:], "--timeout=1800"], plugins=[sys.modules[__name__]]))
