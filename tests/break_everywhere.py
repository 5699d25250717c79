"""Forces a graph break before each instruction of the programs that tests check (D19).

A plugin for pytest: every call of `checking.check` that passes is run again, once for each
instruction of the program that is captured, with a break forced before it, and compared with
plain Python in the same way. ``python tests/break_everywhere.py tests/language --breaks 0.1`` runs
a random tenth; ``--breaks-shard 3/16`` the third sixteenth of the tests; ``--breaks-log FILE``
writes a line of JSON for each failure.

``python tests/break_everywhere.py --cases FILE --breaks 0.1`` does the same with a file of programs
that registers them in the dict ``CASES`` of a module ``zoo`` beside it; ``build(4)`` of each makes
function, arguments and keyword arguments.

Left out, by rule: tests that fail at something else than a forced break (their programs ran more
often than they know; they are listed at the end); instructions that are part of the start of a
frame or of handling an exception (`forced.Noted`); programs in which somebody looks at a running
frame: variables that nothing reads any more are not handed over a break, which can be seen there.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import functools
import importlib
import json
import random
import signal
import site
import sys
import sysconfig
import time
import traceback
import zlib
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
#: Code with one of these names looks at frames, or at the variables of one.
LOOKS_AT_FRAMES = {"_getframe", "currentframe", "tb_frame", "f_locals", "f_back"}
SECONDS = 20
CALLS = 2

Pair = tuple[CodeType, int]


class Differs(AssertionError):
    """Forced breaks change a program."""


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


def traced_by(function: Any) -> Any:
    """The compiled function; a case may know which part of it is to be compiled."""
    compile_one = functools.partial(framejit.compile, backend=lambda module, _: module)
    if not hasattr(function, "apply_compile"):
        return compile_one(function)
    function.apply_compile(compile_one)
    return function


class Program:
    """What one call of `checking.check` runs."""

    def __init__(
        self, function: Callable[..., Any] | None, args: Any, kwargs: Any,
        make: Callable[[], Callable[..., Any]] | None = None,
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
                compiled = traced_by(traced)
                for call in range(CALLS):
                    expected = self.outcome(eager, call)
                    state = torch_state()
                    got = self.outcome(compiled, call)
                    checking.compare_outcomes(expected, got)
                    assert torch_state() == state
        finally:
            stop()
        return [event for event in met if isinstance(event, events.GraphBreak)]

    def outcome(self, function: Callable[..., Any], seed: int) -> checking.Outcome:
        """What the function does with a copy of the arguments."""
        torch.default_generator.manual_seed(seed)  # manual_seed writes down who asks, for devices
        random.seed(seed)
        return checking.Outcome(function, *copy.deepcopy((self.args, self.kwargs)))

    def pairs(self) -> list[Pair]:
        """The instructions that are captured when nothing is forced."""
        with forced.noted() as noted:
            self.compare()
        if any(LOOKS_AT_FRAMES.intersection(code.co_names) for code in noted.executed):
            return []
        return [
            (code, index)
            for code, found in noted.executed.items()
            if not code.co_filename.startswith(_LIBRARIES)
            for index in found
        ]


class Everywhere:
    """Runs programs with breaks before a share of their instructions."""

    def __init__(self, share: float, seed: int = 0, log: str = "") -> None:
        self.share = share
        self.seed = seed
        self.log = log
        self.programs = self.pairs = self.unbroken = self.failed = 0
        #: Programs that cannot be run repeatedly in one process.
        self.left_out: list[str] = []
        self.started = time.perf_counter()

    def check(self, program: Program, name: str) -> None:
        """Raise `Differs` with all instructions at which a break changes the program."""
        self.programs += 1
        try:
            with alone():
                program.compare()
                pairs = program.pairs()
        except (Exception, TooSlow) as error:
            self.left_out.append(f"{name}: {describe(error)}")
            return
        chance = random.Random(f"{self.seed} {name} {len(pairs)}")  # the same for the same program
        count = len(pairs) * self.share
        whole = int(count) + (chance.random() < count - int(count))
        failures = []
        for pair in pairs if whole >= len(pairs) else chance.sample(pairs, whole):
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
        if failures:
            raise Differs(f"{len(failures)} of {whole} forced breaks\n" + "\n".join(failures))

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
    parser.addoption("--breaks-shard", default="0/1", help="only these tests")
    parser.addoption("--breaks-log", default="")


def pytest_configure(config: Any) -> None:
    """Follow all that tests check."""
    global _everywhere
    _everywhere = everywhere = Everywhere(
        config.getoption("--breaks"), config.getoption("--breaks-seed"),
        config.getoption("--breaks-log"),
    )  # fmt: skip

    def checked(
        function: Callable[..., Any], args: Any, kwargs: Any,
        make: Callable[[], Callable[..., Any]] | None,
    ) -> None:  # fmt: skip
        everywhere.check(Program(function, args, kwargs, make), _test)

    checking.checked = checked


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """A share of the tests, the same whatever tests there are beside them."""
    number, _, count = config.getoption("--breaks-shard").partition("/")
    items[:] = [
        item for item in items if zlib.crc32(item.nodeid.encode()) % int(count) == int(number)
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """Which test is it?"""
    global _test
    _test = item.nodeid


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """What else a test asserts is not for this run: the programs ran more often than it knows."""
    outcome = yield
    found = outcome.excinfo
    if found is not None and not issubclass(found[0], (Differs, pytest.skip.Exception)):
        assert _everywhere is not None
        _everywhere.left_out.append(f"{item.nodeid}: {describe(found[1])}")
        outcome.force_exception(pytest.skip.Exception("asserts on what more runs change"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says what was run."""
    assert _everywhere is not None
    for line in (*_everywhere.left_out, _everywhere.summary()):
        terminalreporter.write_line(line)


def run_cases(path: Path, share: float, log: str) -> int:
    """Run the programs of a file; the number of failures."""
    sys.path.insert(0, str(path.parent))
    importlib.import_module(path.stem)
    everywhere = Everywhere(share, log=log)
    for name, case in importlib.import_module("zoo").CASES.items():
        if Path(case.fn.__code__.co_filename) != path:
            continue
        _, args, kwargs = case.build(4)
        program = Program(None, args, kwargs, lambda case=case: case.build(4)[0])
        try:
            everywhere.check(program, name)
        except AssertionError as error:
            print(name, error)
    print(*everywhere.left_out, everywhere.summary(), sep="\n")
    return everywhere.failed


if __name__ == "__main__":
    if "--cases" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--cases", type=Path)
        parser.add_argument("--breaks", type=float, default=1.0)
        parser.add_argument("--breaks-log", default="")
        given = parser.parse_args()
        sys.exit(run_cases(given.cases, given.breaks, given.breaks_log) > 0)
    sys.exit(pytest.main([*sys.argv[1:], "--timeout=1800"], plugins=[sys.modules[__name__]]))
