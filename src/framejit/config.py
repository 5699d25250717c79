"""Options, read from the environment once and patchable at run time.

In: environment variables. ``FRAMEJIT_RECOMPILE_LIMIT=64`` sets `recompile_limit`, and so on for
every option; options that are True or False take 1, true, yes, on or 0, false, no, off. Out: plain
module attributes, and `patch`, which works as a context manager and as a decorator. Unknown names
are errors; in the environment they are warnings. Next room: exc.
"""

from __future__ import annotations

import contextlib
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from framejit.exc import warn

#: What `logs` may name.
LOGS = ("graph", "bytecode", "code", "guards", "breaks", "recompiles", "times")

#: Print the graph, the original bytecode, the replacing code and the guards of every capture.
debug: bool = False
#: Which logs are on, without `debug`: a set out of `LOGS`, or names separated by commas, or "all".
logs: frozenset[str] = frozenset()
#: A folder for the generated functions, so that debuggers step through them; "" for none. When a
#: debugger is attached, they are written to the system's folder for temporary files without it.
code_folder: str = ""
#: Show a line in the terminal while a compilation takes longer than two seconds.
progress: bool = True
#: Raise bugs of framejit instead of running the frame as plain Python with one warning.
raise_internal_errors: bool = False
#: How many entries one compiled frame may hold before other inputs run as plain Python.
recompile_limit: int = 16
#: The first call of each compiled frame is plain Python; what is compiled at the second one knows
#: which sizes and numbers differ already.
eager_first: bool = False
#: Two ``compile`` calls of one function with equal settings give one object, which has one limit
#: and one set of entries.
share_entries: bool = False
#: Raise exc.RecompileRefused where something would be compiled again, with the reason; and where
#: `recompile_limit` is reached.
error_on_recompile: bool = False
error_on_recompile_limit: bool = False
#: Where a backend fails, run plain Python with one warning instead of raising.
suppress_errors: bool = False
#: Capture nothing at all: every compiled object runs its original function.
disable: bool = False
#: How many instructions one capture may execute symbolically; beyond, plain Python goes on.
step_limit: int = 20_000_000
#: The same for instructions in a row that record no operation: a loop over Python's own numbers.
idle_step_limit: int = 1_000_000
#: How many seconds one capture may take, compiling aside.
capture_seconds: int = 600
#: How many elements a container may have that a capture makes, looks through or copies; texts and
#: whole numbers may have 16 bytes for each. What is larger, Python makes between two graphs.
size_limit: int = 100_000
#: How deep calls are inlined before a graph break.
inline_depth_limit: int = 400
#: Repeat what a call has recorded where an equal call is made with another object, such as a
#: model's layers, instead of executing it again. ``verify_recordings`` executes it as well, and
#: compares: for tests.
recordings: bool = True
verify_recordings: bool = False
#: Take sizes and numbers for constants until they are seen to differ; False: as if ``dynamic=True``
#: were given everywhere.
assume_static: bool = True
#: Let sizes and numbers vary once they were seen to differ; False: only those that are marked.
automatic_dynamic: bool = True
#: Whole numbers, or floats, are constants always.
specialize_int: bool = False
specialize_float: bool = False
#: With ``dynamic=True``, whole numbers that are attributes of modules vary from the first call on,
#: as those of other objects do.
vary_module_numbers: bool = False
#: The sizes of parameters are constants.
fixed_parameter_sizes: bool = True
#: Capture ``tensor.item()`` and the like as symbols whose value is known when the graph runs.
capture_scalar_outputs: bool = False
#: Capture operations whose result's size depends on data (``nonzero``, boolean masks, ``unique``).
capture_dynamic_output_shape_ops: bool = False
#: Where processes form a group, compile what all of them come to: the same in the same order, with
#: sizes that differ between them as sizes that vary; else raise exc.RanksDisagree. Who comes first
#: waits for the others ``ranks_agree_seconds``.
ranks_agree: bool = False
ranks_agree_seconds: int = 300
#: A file that remembers which sizes and numbers varied, for the next process; "" for none.
profile: str = ""
#: The file of the fastest backends that ``backend="autotuned"`` reads; "": one in the user's cache.
winners: str = ""
#: A file with the secret that every package must be signed with to be loaded, and is signed with
#: when it is saved, unless ``key=`` names another one; "": none is needed.
package_key_file: str = ""
#: The share of calls of compiled objects that are also run as plain Python, in all threads, and
#: compared (see `framejit.audit`); 0 for none.
audit: float = 0.0
#: Where audits write scripts that show a mismatch; "": ``framejit_audit`` in the current folder.
audit_folder: str = ""
#: Longer messages: every frame between the compiled function and a graph break, also of libraries.
verbose: bool = False

_TYPES: dict[str, type] = {
    name: type(value)
    for name, value in list(globals().items())
    if not name.startswith("_") and isinstance(value, (bool, int, float, frozenset, str))
}


class patch(contextlib.ContextDecorator):
    """Set options for a block or a decorated function, and put them back after it.

    One object may be entered any number of times. Raises AttributeError for a name that is not an
    option, and TypeError or ValueError for a value that does not fit.
    """

    def __init__(self, **changes: Any) -> None:
        self._changes = {name: checked(name, value) for name, value in changes.items()}
        self._previous: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._previous.append({name: globals()[name] for name in self._changes})
        _update(self._changes)

    def __exit__(self, *error: object) -> None:
        _update(self._previous.pop())


#: Who says what options are during a capture, whatever this module says: the program, in the words
#: of another compiler.
_advisers: list[Callable[[], dict[str, Any]]] = []


def follow(adviser: Callable[[], dict[str, Any]]) -> Callable[[], None]:
    """Ask ``adviser`` before each capture for options and their values. Call the result to stop."""
    _advisers.append(adviser)
    return lambda: _advisers.remove(adviser)


def advice() -> dict[str, Any]:
    """What advisers say now."""
    changes: dict[str, Any] = {}
    for adviser in _advisers:
        changes.update(adviser())
    return changes


def options() -> dict[str, Any]:
    """All options, as they are now."""
    return {name: globals()[name] for name in _TYPES}


@contextlib.contextmanager
def advised() -> Iterator[None]:
    """In this block options are what advisers say."""
    changes = advice()
    if not changes:
        yield
        return
    with patch(**changes):
        yield


#: Who wants to know when an option changes.
_watchers: dict[str, Callable[[Any], Any]] = {}


def watch(name: str, watcher: Callable[[Any], Any]) -> None:
    """Call ``watcher`` with every new value of an option, and now if it is not the default."""
    _watchers[name] = watcher
    if globals()[name]:
        watcher(globals()[name])


def _update(changes: dict[str, Any]) -> None:
    for name, value in changes.items():
        if globals()[name] != value and name in _watchers:
            _watchers[name](value)
    globals().update(changes)


def checked(name: str, value: Any) -> Any:
    """The value that the option ``name`` gets for ``value``."""
    kind: Any = _TYPES.get(name)
    if kind is None:
        from difflib import get_close_matches  # seldom needed

        near = ", ".join(get_close_matches(name, _TYPES, 3, 0.0))
        raise AttributeError(
            f"framejit.config has no option {name!r}; the closest are {near} [FJ0211]"
        )
    if kind is frozenset:
        return _log_names(name, value)
    if kind is str and isinstance(value, os.PathLike):
        value = os.fspath(value)
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        names = {bool: "True or False", int: "an integer", float: "a number"}
        wanted = names.get(kind, f"a {kind.__name__}")
        raise TypeError(f"framejit.config.{name} must be {wanted}, not {value!r} [FJ0211]")
    if kind is int and value < 1:
        raise ValueError(f"framejit.config.{name} must be at least 1, not {value} [FJ0211]")
    if kind is float and not 0 <= value <= 1:
        raise ValueError(f"framejit.config.{name} must be from 0 to 1, not {value} [FJ0211]")
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
            _update({name: checked(name, value)})
            return
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"framejit.config.{name} cannot be deleted; set it instead [FJ0211]")


sys.modules[__name__].__class__ = _ConfigModule


# -- the environment -------------------------------------------------------------------------------

_PREFIX = "FRAMEJIT_"
_WORDS = dict.fromkeys(("1", "true", "yes", "on"), True) | dict.fromkeys(
    ("", "0", "false", "no", "off"), False
)


def _read_environment() -> None:
    for variable, text in sorted(os.environ.items()):
        if not variable.startswith(_PREFIX):
            continue
        name = variable.removeprefix(_PREFIX).lower()
        if name.upper() == variable.removeprefix(_PREFIX) and name in _TYPES:
            try:
                globals()[name] = checked(name, _parsed(_TYPES[name], text))
                continue
            except (TypeError, ValueError) as error:
                reason = str(error).replace(f"framejit.config.{name}", "it")
        else:
            from difflib import get_close_matches  # seldom needed

            known = [_PREFIX + option.upper() for option in _TYPES]
            near = get_close_matches(variable.upper(), known, 1, 0.0)[0]
            reason = f"there is no such option; the closest is {near} [FJ0211]"
        warn(f"{variable}={text} is ignored: {reason}")


def _parsed(kind: type, text: str) -> Any:
    if kind is bool and text.strip().lower() in _WORDS:
        return _WORDS[text.strip().lower()]
    if kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


_read_environment()
