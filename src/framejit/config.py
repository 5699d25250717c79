"""Options, read from the environment once and patchable at run time.

In: environment variables ``FRAMEJIT_*``. Out: plain module attributes, and `patch`, which works as
a context manager and as a decorator. Unknown names are errors. Imports nothing of framejit.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

#: Print the graph, the original bytecode, the replacing code and the guards of every capture.
debug: bool = os.environ.get("FRAMEJIT_DEBUG", "") not in ("", "0")
#: Which printouts are on, without `debug`: a set out of {"graph", "bytecode", "code", "guards"}.
logs: frozenset[str] = frozenset(filter(None, os.environ.get("FRAMEJIT_LOGS", "").split(",")))
#: Raise bugs of framejit instead of running the frame as plain Python with one warning.
raise_internal_errors: bool = os.environ.get("FRAMEJIT_RAISE_INTERNAL_ERRORS", "") not in ("", "0")
#: How many entries one compiled frame may hold before other inputs run as plain Python.
recompile_limit: int = 16
#: Capture nothing at all: every compiled object runs its original function.
disable: bool = os.environ.get("FRAMEJIT_DISABLE", "") not in ("", "0")
#: How many instructions one capture may execute symbolically before it stops with a graph break.
step_limit: int = 20_000_000
#: How deep calls are inlined before a graph break.
inline_depth_limit: int = 400
#: Capture ``tensor.item()`` and the like as symbols whose value is known when the graph runs.
capture_scalar_outputs: bool = False
#: Capture operations whose result's size depends on data (``nonzero``, boolean masks, ``unique``).
capture_dynamic_output_shape_ops: bool = False
#: Show framejit's own frames in tracebacks and longer messages.
verbose: bool = os.environ.get("FRAMEJIT_VERBOSE", "") not in ("", "0")

_NAMES = frozenset(
    name
    for name, value in list(globals().items())
    if not name.startswith("_") and isinstance(value, (bool, int, frozenset, str))
)


@contextlib.contextmanager
def patch(**changes: Any) -> Iterator[None]:
    """Set options for a block or a decorated function, and put them back behind it.

    Raises AttributeError for a name that is not an option.
    """
    for name in changes:
        _check_name(name)
    previous = {name: globals()[name] for name in changes}
    globals().update(changes)
    try:
        yield
    finally:
        globals().update(previous)


def _check_name(name: str) -> None:
    if name not in _NAMES:
        raise AttributeError(f"framejit.config has no option {name!r}; options: {sorted(_NAMES)}")


class _ConfigModule(types.ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            _check_name(name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _ConfigModule
