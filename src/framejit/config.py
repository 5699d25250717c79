"""Options, read from the environment once and patchable at run time.

In: environment variables ``FRAMEJIT_*``. Out: plain module attributes, and `patch`, which works as
a context manager and as a decorator. Unknown names are errors. Imports nothing of framejit.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
import warnings
from collections.abc import Iterable
from typing import Any

#: What `logs` may name.
LOGS = ("graph", "bytecode", "code", "guards", "breaks", "recompiles", "times")

#: Print the graph, the original bytecode, the replacing code and the guards of every capture.
debug: bool = os.environ.get("FRAMEJIT_DEBUG", "") not in ("", "0")
#: Which logs are on, without `debug`: a set out of `LOGS`, or names separated by commas, or "all".
logs: frozenset[str] = frozenset()
#: A folder for the generated functions, so that debuggers step through them; "" for none. When a
#: debugger is attached, they are written to the system's folder for temporary files without it.
code_folder: str = os.environ.get("FRAMEJIT_CODE_FOLDER", "")
#: Show a line in the terminal while a compilation takes longer than two seconds.
progress: bool = os.environ.get("FRAMEJIT_PROGRESS", "1") not in ("", "0")
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
#: A file that remembers which sizes and numbers varied, for the next process; "" for none.
profile: str = os.environ.get("FRAMEJIT_PROFILE", "")
#: The file of the fastest backends that ``backend="autotuned"`` reads; "": one in the user's cache.
winners: str = os.environ.get("FRAMEJIT_WINNERS", "")
#: Longer messages: every frame between the compiled function and a graph break, also of libraries.
verbose: bool = os.environ.get("FRAMEJIT_VERBOSE", "") not in ("", "0")

_TYPES: dict[str, type] = {
    name: type(value)
    for name, value in list(globals().items())
    if not name.startswith("_") and isinstance(value, (bool, int, frozenset, str))
}


class patch(contextlib.ContextDecorator):
    """Set options for a block or a decorated function, and put them back behind it.

    One object may be entered any number of times. Raises AttributeError for a name that is not an
    option, and TypeError or ValueError for a value that does not fit.
    """

    def __init__(self, **changes: Any) -> None:
        self._changes = {name: checked(name, value) for name, value in changes.items()}
        self._previous: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._previous.append({name: globals()[name] for name in self._changes})
        globals().update(self._changes)

    def __exit__(self, *error: object) -> None:
        globals().update(self._previous.pop())


def checked(name: str, value: Any) -> Any:
    """The value that the option ``name`` gets for ``value``."""
    kind: Any = _TYPES.get(name)
    if kind is None:
        raise AttributeError(
            f"framejit.config has no option {name!r}; options: {sorted(_TYPES)} [FJ0211]"
        )
    if kind is frozenset:
        return _log_names(name, value)
    if type(value) is not kind:
        wanted = {bool: "True or False", int: "an int"}.get(kind, f"a {kind.__name__}")
        raise TypeError(f"framejit.config.{name} must be {wanted}, not {value!r} [FJ0211]")
    if kind is int and value < 1:
        raise ValueError(f"framejit.config.{name} must be at least 1, not {value} [FJ0211]")
    return value


def _log_names(name: str, value: Any) -> frozenset[str]:
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, Iterable):
        raise TypeError(f"framejit.config.{name} must be a set of names, not {value!r} [FJ0211]")
    names = frozenset(str(part).strip().lower() for part in value) - {""}
    if "all" in names:
        return frozenset(LOGS)
    if not names <= set(LOGS):
        unknown = ", ".join(sorted(names - set(LOGS)))
        raise ValueError(
            f"framejit.config.{name} may name {', '.join(LOGS)}; not {unknown} [FJ0211]"
        )
    return names


class _ConfigModule(types.ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("__"):
            value = checked(name, value)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"framejit.config.{name} cannot be deleted; set it instead [FJ0211]")


sys.modules[__name__].__class__ = _ConfigModule

try:
    logs = _log_names("logs", os.environ.get("FRAMEJIT_LOGS", ""))
except ValueError as _error:
    warnings.warn(f"FRAMEJIT_LOGS is ignored: {_error}", stacklevel=2)
