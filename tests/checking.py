"""Compares a function run eagerly with the same function compiled by framejit.

`check` runs both on deep copies of the same arguments and compares results (types, structure,
aliasing), changed arguments, what was printed and what was raised. The compiled function is called
twice: while capturing, and again through its guards, when nothing may be captured anew.
"""

from __future__ import annotations

import contextlib
import copy
import io
import os
import pickle
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import torch

import framejit
import framejit.api
from framejit import config
from framejit.audit import comparison
from framejit.audit.comparison import Tolerance
from framejit.backends.registry import lookup_backend
from framejit.compiler import Compiler
from framejit.exc import InternalError

#: What backends promise that run graphs as they are.
EXACT = Tolerance(0, 0)
#: Called with every program that was found to do the same: its function, arguments and ``make``.
checked: Callable[..., None] | None = None


#: Where frames come from that only one of both calls may have.
_NOT_THE_USERS = tuple(
    [os.path.dirname(module.__file__) for module in (framejit, torch)] + [__file__]
)


class CountingBackend:
    """Runs graphs as they are; ``graphs`` holds all that were captured."""

    def __init__(self) -> None:
        self.graphs: list[torch.fx.GraphModule] = []

    def __call__(self, module: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        self.graphs.append(module)
        return module

    @property
    def ops(self) -> int:
        """Operations in all graphs together."""
        calls = ("call_function", "call_method", "call_module")
        return sum(node.op in calls for graph in self.graphs for node in graph.graph.nodes)


class CountingAround(CountingBackend):
    """The same around the backend of a name."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.compile = lookup_backend(name)

    def __call__(self, module: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        self.graphs.append(module)
        return self.compile(module, example_inputs)


class Outcome:
    """What one call did."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self.result: Any = None
        self.error: BaseException | None = None
        out, handled = io.StringIO(), sys.exc_info()
        with contextlib.redirect_stdout(out):
            try:
                self.result = function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - compared below
                self.error = error
        assert sys.exc_info() == handled, "an error is handled that was not before the call"
        self.printed = out.getvalue()


def check(
    function: Callable[..., Any],
    *args: Any,
    graphs: int | None = None,
    ops: int | None = None,
    fullgraph: bool = False,
    calls: int = 2,
    make: Callable[[], Callable[..., Any]] | None = None,
    **kwargs: Any,
) -> CountingBackend:
    """Assert that ``function`` does the same compiled; ``graphs`` and ``ops`` if given.

    ``make`` makes a new function for each side, for functions that change their closure or globals.
    ``fullgraph`` makes any graph break an error.
    """
    backend = CountingBackend()
    eager = make() if make is not None else function
    traced = make() if make is not None else function
    with config.patch(raise_internal_errors=True):
        compiled = framejit.api.compile(traced, backend=backend, fullgraph=fullgraph)
        for call in range(calls):
            captured = len(backend.graphs)
            expected = Outcome(eager, *copy.deepcopy((args, kwargs)))
            got = Outcome(compiled, *copy.deepcopy((args, kwargs)))
            compare_outcomes(expected, got)
            if call:
                assert len(backend.graphs) == captured, "captured again for the same arguments"
    if checked is not None:
        checked(function, args, kwargs, make)
    if graphs is not None:
        assert len(backend.graphs) == graphs, f"{len(backend.graphs)} graphs, not {graphs}"
    if ops is not None:
        assert backend.ops == ops, f"{backend.ops} operations, not {ops}"
    return backend


def check_between(
    program: Callable[..., Any], *args: Any, graphs: int | None = None, ops: int | None = None
) -> CountingBackend:
    """`check` a program between two operations of a tensor, which stay in graphs."""

    def run(x: torch.Tensor, *args: Any) -> Any:
        y = x + 1
        return program(*args), y * 2

    return check(run, torch.ones(2), *args, graphs=graphs, ops=ops)


def compare_outcomes(expected: Outcome, got: Outcome, tolerance: Tolerance = EXACT) -> None:
    """Assert that two calls did the same."""
    if got.error is not None and expected.error is None:
        raise got.error
    compare_errors(expected.error, got.error)
    same = Comparison(tolerance)
    same.compare_sequences(list(expected.args), list(got.args), "args")
    same.compare_dicts(expected.kwargs, got.kwargs, "kwargs")
    same.compare(expected.result, got.result, "result")
    assert got.printed == expected.printed


def compare_errors(expected: BaseException | None, got: BaseException | None) -> None:
    """Assert that two exceptions are alike: texts, the lines that they went through, and the chain
    of their causes and contexts."""
    assert type(got) is type(expected), f"raised {got!r}, not {expected!r}"
    Comparison().compare(expected, got, "the exception")


def said(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a call returns, or the class and text of what it raises."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - compared
        return type(error).__name__, str(error)


def lines_of(error: BaseException) -> list[tuple[str, str, int]]:
    """The user's frames of a traceback: file, function, line."""
    return [
        (os.path.basename(frame.f_code.co_filename), frame.f_code.co_name, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_NOT_THE_USERS)
    ]


def calls_made(function: Callable[..., Any], *args: Any) -> int:
    """How many functions a call calls, of Python and of C: what it costs, on any machine."""
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function(*args)
    finally:
        sys.setprofile(before)
    return made


#: The ways in which `copied` copies.
COPIES = ["deepcopy", "pickle", "torch.save"]


def copied(obj: Any, how: str) -> Any:
    """A copy of ``obj``, made in one of `COPIES`."""
    if how == "deepcopy":
        return copy.deepcopy(obj)
    if how == "pickle":
        return pickle.loads(pickle.dumps(obj))
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


class Ctx:
    """A plain context manager of the user's."""

    def __enter__(self) -> Ctx:
        return self

    def __exit__(self, *details: object) -> bool:
        return False


class Comparison(comparison.Comparison):
    """The comparison of audits, for two object graphs that have nothing in common; iterators are
    used up."""

    def __init__(self, tolerance: Tolerance | None = None) -> None:
        super().__init__(tolerance, consume=True)

    def compare_error(self, expected: BaseException, got: BaseException, path: str) -> None:
        """Also the lines that exceptions went through, and which of them is the cause."""
        super().compare_error(expected, got, path)
        assert lines_of(got) == lines_of(expected), path
        ours, theirs = (error.__cause__ is error.__context__ for error in (expected, got))
        assert theirs == ours, f"{path}: the cause is the context in one of both"


@contextlib.contextmanager
def captured_again() -> Iterator[None]:
    """Every capture comes to nothing once: a guard fails at once, as if another thread had run."""
    failed = False

    def guards_of(self: Compiler, made: Any, slots: Any) -> Any:
        nonlocal failed
        failed = not failed
        return InternalError("another thread ran") if failed else plain(self, made, slots)

    plain, Compiler._guards_of = Compiler._guards_of, guards_of  # type: ignore[method-assign]
    try:
        yield
    finally:
        Compiler._guards_of = plain  # type: ignore[method-assign]


@contextlib.contextmanager
def own_modules() -> Iterator[None]:
    """Modules that are loaded inside from temporary files are not loaded any more afterwards."""
    before = set(sys.modules)
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(tempfile.gettempdir() + os.sep):
                del sys.modules[name]
