"""Compares a function run eagerly with the same function compiled by framejit.

`check` runs both on deep copies of the same arguments and compares results (types, structure,
aliasing), changed arguments, what was printed and what was raised. The compiled function is called
twice: while capturing, and again through its guards, when nothing may be captured anew.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import enum
import io
import math
import os
import pickle
import traceback
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy
import torch

import framejit
import framejit.api
from framejit import config

_ATOMS = (
    int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented), range,
    slice, torch.dtype, torch.device, torch.layout, torch.memory_format, enum.Enum,
)  # fmt: skip
_BY_NAME = (type, types.ModuleType, types.BuiltinFunctionType)


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


class Outcome:
    """What one call did."""

    def __init__(self, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        self.args, self.kwargs = args, kwargs
        self.result: Any = None
        self.error: BaseException | None = None
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                self.result = function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - compared below
                self.error = error
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


def compare_outcomes(expected: Outcome, got: Outcome) -> None:
    """Assert that two calls did the same."""
    if got.error is not None and expected.error is None:
        raise got.error
    compare_errors(expected.error, got.error)
    same = Comparison()
    same.compare(expected.result, got.result, "result")
    same.compare(list(expected.args), list(got.args), "args")
    same.compare(expected.kwargs, got.kwargs, "kwargs")
    assert got.printed == expected.printed


def compare_errors(expected: BaseException | None, got: BaseException | None) -> None:
    """Assert that two exceptions are alike: texts, the lines that they went through, and the chain
    of their causes and contexts."""
    assert type(got) is type(expected), f"raised {got!r}, not {expected!r}"
    if expected is None or got is None:
        return
    if isinstance(expected, RuntimeError) and not isinstance(expected, RecursionError):
        assert str(got).splitlines()[:1] == str(expected).splitlines()[:1]
    else:
        assert str(got) == str(expected)
    assert lines_of(got) == lines_of(expected)
    assert got.__suppress_context__ == expected.__suppress_context__
    assert (got.__cause__ is got.__context__) == (expected.__cause__ is expected.__context__)
    compare_errors(expected.__cause__, got.__cause__)
    if expected.__cause__ is not expected.__context__:
        compare_errors(expected.__context__, got.__context__)


def lines_of(error: BaseException) -> list[tuple[str, str, int]]:
    """The user's frames of a traceback: file, function, line."""
    return [
        (os.path.basename(frame.f_code.co_filename), frame.f_code.co_name, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith(_NOT_THE_USERS)
    ]


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


class Comparison:
    """Compares two object graphs, including which parts are the same object."""

    def __init__(self) -> None:
        self.pairs: dict[int, tuple[Any, Any]] = {}
        self.back: dict[int, Any] = {}

    def compare(self, expected: Any, got: Any, path: str) -> None:
        """Assert that both are alike; ``path`` says where we are."""
        assert type(got) is type(expected), f"{path}: {type(got)}, not {type(expected)}"
        if isinstance(expected, _ATOMS) and not isinstance(expected, numpy.generic):
            nan = isinstance(expected, float) and math.isnan(expected)
            assert got == expected or (nan and math.isnan(got)), (
                f"{path}: {got!r}, not {expected!r}"
            )
            return
        if isinstance(expected, _BY_NAME) or expected is got:
            assert got is expected or got == expected, f"{path}: {got!r}, not {expected!r}"
            return
        known = self.pairs.get(id(expected))
        if known is not None or id(got) in self.back:
            same = known is not None and known[1] is got
            if same or type(expected) not in (tuple, frozenset, torch.Size):
                assert same, f"{path}: shared with another object in only one of both"
                return
        self.pairs[id(expected)] = (expected, got)
        self.back[id(got)] = got
        self.compare_content(expected, got, path)

    def compare_content(self, expected: Any, got: Any, path: str) -> None:
        """`compare` for objects with parts."""
        if isinstance(expected, torch.Tensor):
            compare_tensors(expected, got, path)
        elif isinstance(expected, (numpy.ndarray, numpy.generic)):
            compare_arrays(expected, got, path)
        elif isinstance(expected, (list, tuple, deque)):
            assert len(got) == len(expected), f"{path}: {len(got)} elements, not {len(expected)}"
            for i, (one, two) in enumerate(zip(expected, got)):
                self.compare(one, two, f"{path}[{i}]")
        elif isinstance(expected, dict):
            assert len(got) == len(expected), f"{path}: keys {list(got)}, not {list(expected)}"
            for i, (one, two) in enumerate(zip(expected, got)):
                self.compare(one, two, f"{path} key {i}")
                self.compare(expected[one], got[two], f"{path}[{one!r}]")
        elif isinstance(expected, (set, frozenset)):
            ours, theirs = map(simple_keys, (expected, got))
            assert theirs == ours, f"{path}: {theirs}, not {ours}"
        elif isinstance(expected, types.FunctionType):
            assert got.__qualname__ == expected.__qualname__, path
        elif hasattr(expected, "__next__") and not hasattr(expected, "__dict__"):
            self.compare(list(expected), list(got), f"{path} (rest)")
        elif isinstance(expected, BaseException):
            compare_errors(expected, got)
        if hasattr(expected, "__dict__") and not isinstance(
            expected, (types.FunctionType, torch.Tensor)
        ):
            self.compare(vars(expected), vars(got), f"{path}.__dict__")
        elif dataclasses.is_dataclass(expected):
            for field in dataclasses.fields(expected):
                name = field.name
                self.compare(getattr(expected, name), getattr(got, name), f"{path}.{name}")


def simple_keys(elements: Any) -> list[Any]:
    """The elements of a set as something that can be compared; the order counts for numbers."""
    if all(isinstance(element, (int, float)) for element in elements):
        return list(elements)
    if all(isinstance(element, (int, str, float, type(None), tuple)) for element in elements):
        return sorted(elements, key=repr)
    return sorted(type(element).__qualname__ for element in elements)


def compare_arrays(expected: Any, got: Any, path: str) -> None:
    """Assert that arrays or scalars of numpy agree; the numbers are torch's, so nearly equal."""
    assert type(got) is type(expected), f"{path}: {type(got)}, not {type(expected)}"
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape), path
    if isinstance(expected, numpy.ndarray):
        steps = [
            [step for size, step in zip(array.shape, array.strides, strict=True) if size > 1]
            for array in (expected, got)
        ]
        assert steps[0] == steps[1], f"{path}: strides"
        assert got.flags.writeable == expected.flags.writeable, path
    tolerance = 2e-3 if expected.dtype == numpy.float16 else 1e-5
    numpy.testing.assert_allclose(got, expected, tolerance, tolerance, err_msg=path)


def compare_tensors(expected: torch.Tensor, got: torch.Tensor, path: str) -> None:
    """Assert that tensors agree in everything that a program can see."""
    for name in ("dtype", "device", "shape", "requires_grad", "is_leaf", "layout"):
        one, two = getattr(expected, name), getattr(got, name)
        assert two == one, f"{path}.{name}: {two}, not {one}"
    if expected.layout is torch.strided:
        assert got.stride() == expected.stride(), f"{path}: strides"
    torch.testing.assert_close(got, expected, equal_nan=True, msg=lambda text: f"{path}: {text}")
    if expected.grad is not None or got.grad is not None:
        assert expected.grad is not None and got.grad is not None, f"{path}.grad"
        torch.testing.assert_close(got.grad, expected.grad, equal_nan=True)
