"""Runs a program with tensors of classes of its own as plain Python and compiled, and compares.

What is compared is what the program can see: classes, values, attributes, what was noted in `seen`,
and the arguments after the call. Looking at a tensor here calls none of its overrides.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import torch

import framejit
from checking import CountingBackend
from framejit.interpreter import forced

_LIBRARIES = (os.path.dirname(torch.__file__), os.path.dirname(framejit.__file__), __file__)
#: What the overrides of the programs note.
seen: list[Any] = []


def described(value: Any) -> Any:
    """A value as plain data."""
    if isinstance(value, torch.Tensor):
        with torch._C.DisableTorchFunction():
            if hasattr(value, "__tensor_flatten__"):
                names, context = value.__tensor_flatten__()
                data = [(name, described(getattr(value, name))) for name in names]
                own: Any = repr(context)
            else:
                data = value.detach().as_subclass(torch.Tensor).tolist()
                # AOTAutograd notes there which sizes vary
                noted = vars(value).items()
                own = described({k: v for k, v in noted if not k.startswith("_dynamo_")})
            looks = value.dtype, tuple(value.shape), value.requires_grad, value.is_leaf
            return type(value).__name__, looks, data, own
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [described(item) for item in value]
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if type(value).__module__ in sys.modules and hasattr(value, "__dict__"):
        if not isinstance(value, type) and not callable(value):
            return type(value).__name__, described(vars(value))
    return value


def outcome(function: Any, make: Any) -> Any:
    """What one call did."""
    seen.clear()
    args = make()
    try:
        result = described(function(*args))
    except Exception as error:  # noqa: BLE001 - compared
        result = type(error).__name__, str(error)
    return result, list(seen), described(list(args))


def same(
    program: Any, make: Any, graphs: int = 1, ops: int | None = None, **options: Any
) -> CountingBackend:
    """Assert that ``program`` does the same compiled, in one graph (or so many), which the second
    call uses again; ``make`` makes its arguments."""
    backend = CountingBackend()
    options.setdefault("fullgraph", graphs <= 1)
    compiled = framejit.compile(program, backend=backend, **options)
    for _ in range(2):
        expected = outcome(program, make)
        got = outcome(compiled, make)
        for there, here in zip(expected, got, strict=True):
            assert here == there
    assert len(backend.graphs) == graphs, f"{len(backend.graphs)} graphs, not {graphs}"
    if ops is not None:
        assert backend.ops == ops, f"{backend.ops} operations, not {ops}"
    return backend


def same_when_broken(program: Any, make: Any) -> int:
    """Assert that a graph break before any single instruction changes nothing; returns how many
    instructions there are."""

    def run() -> None:
        compiled = framejit.compile(program, backend=lambda module, _: module)
        for _ in range(2):
            state = torch._C._get_torch_function_state(), torch._C._len_torch_function_stack()
            expected = outcome(program, make)
            for there, here in zip(expected, outcome(compiled, make), strict=True):
                assert here == there
            now = torch._C._get_torch_function_state(), torch._C._len_torch_function_stack()
            assert now == state

    with forced.noted() as noted:
        run()
    own = [(code, i) for code, found in noted.executed.items() for i in found
           if not code.co_filename.startswith(_LIBRARIES)]  # fmt: skip
    for pair in own:
        with forced.forced_break(*pair):
            run()
    return len(own)
