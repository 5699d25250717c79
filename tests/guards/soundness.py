"""The way a row of the soundness table is run: compile, call, change one thing, call again.

A row makes a small world: a function, its arguments and one change. It is run twice, eagerly and
compiled, in two worlds of their own; results and final states must be equal call by call.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.utils.hooks import RemovableHandle

import framejit
from checking import Comparison, CountingBackend

NEEDED = "needed"  # what was captured is wrong after the change
ALLOWED = "allowed"  # it is still right, but that is hard to know
FREE = "free"  # it is still right, and recompiling would be a waste


class World(NamedTuple):
    """What a row gets to make its world with; everything is undone at the end."""

    stack: contextlib.ExitStack

    def enter(self, manager: Any) -> Any:
        """Enter a context manager until the end of the row."""
        return self.stack.enter_context(manager)

    def undo(self, function: Callable[..., Any], *args: Any) -> None:
        """Call this at the end of the row."""
        self.stack.callback(function, *args)


#: (function, arguments, change); ``change()`` may return other arguments, a tuple.
Made = tuple[Callable[..., Any], tuple[Any, ...], Callable[[], Any]]


class Row(NamedTuple):
    name: str
    make: Callable[[World], Made]
    expected: str
    after: int  # captures that are fine after the change: a change in a broken frame takes more
    packaged: bool  # can a package refer to what it uses?


ROWS: list[Row] = []
#: Those in which the module that changes is one of many whose calls are repeated.
REPEATED: list[Row] = []


def row(expected: str, after: int = 1, packaged: bool = True) -> Callable[[Any], Any]:
    """Add the decorated maker of a world to the table."""

    def register(make: Any) -> Any:
        add(make.__name__, expected, make, after, packaged)
        return make

    return register


def add(
    name: str,
    expected: str,
    make: Callable[[World], Made],
    after: int = 1,
    packaged: bool = True,
    table: list[Row] = ROWS,
) -> None:
    """Add a row to the table."""
    assert all(known.name != name for known in table), name
    table.append(Row(name, make, expected, after, packaged))


class Run(NamedTuple):
    results: list[Any]
    captures: list[int]  # frames captured by each call


def _call(function: Any, args: tuple[Any, ...]) -> Any:
    try:
        result = function(*args)
    except Exception as error:  # noqa: BLE001 - compared
        return (type(error), str(error).splitlines()[:1])
    if isinstance(result, torch.Tensor):
        return result.detach().clone(), result.requires_grad
    return result


def run(row: Row, compile: Callable[[Any], Any] = lambda function: function) -> Run:
    """Two calls, the change, two calls."""
    torch.manual_seed(0)
    with contextlib.ExitStack() as stack:
        function, args, change = row.make(World(stack))
        function = compile(function)
        results, captures = [], []
        for step in range(4):
            if step == 2:
                changed = change()
                args = changed if isinstance(changed, tuple) else args
            before = framejit.counters["frames"]["total"]
            results.append(_call(function, args))
            captures.append(framejit.counters["frames"]["total"] - before)
        return Run(results, captures)


def check_row(row: Row) -> None:
    """Results as in eager, and captures only where they were needed or allowed."""
    backend = CountingBackend()
    ours = run(row, lambda function: framejit.compile(function, backend=backend))
    assert ours.captures[0] >= 1, "nothing was captured"
    _compare(row, run(row), ours)


def check_loaded_row(row: Row, path: Path) -> None:
    """The same for entries that come from a package: they are saved in one world and loaded in
    another, where every object of the program is a new one."""
    torch.manual_seed(0)
    number = RemovableHandle.next_id  # hooks have numbers, which start anew in a process
    with contextlib.ExitStack() as stack:
        function, args, _ = row.make(World(stack))
        saved = framejit.compile(function, backend="eager")
        _call(saved, args)
        saved.save_package(path)
    RemovableHandle.next_id = number
    ours = run(row, lambda f: framejit.compile(f, backend="eager").load_package(path))
    assert ours.captures[0] == 0, "the package was not used"
    _compare(row, run(row), ours)


def _compare(row: Row, eager: Run, ours: Run) -> None:
    for step, (expected, got) in enumerate(zip(eager.results, ours.results, strict=True)):
        Comparison().compare(expected, got, f"call {step}")
    _, second, third, fourth = ours.captures
    assert second == 0 and fourth == 0, f"captured again for the same state: {ours.captures}"
    if row.expected == FREE:
        assert third == 0, "recompiled needlessly"
    else:
        assert third <= row.after, f"{third} captures after one change"
    if row.expected == NEEDED:
        assert third >= 1, "not recompiled"
