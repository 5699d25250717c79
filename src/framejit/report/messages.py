"""Messages to the user: short, the user's file and line first, and what to do about it.

In: what went wrong and where. Out: exceptions ready to be raised, and warnings that appear once.
A message of a graph break has at most six lines. Next room: api.
"""

from __future__ import annotations

import linecache
import os
import platform
import textwrap
import traceback
from collections.abc import Sequence
from typing import Any

import torch

from framejit import config, exc
from framejit.exc import warn
from framejit.forks import Lock
from framejit.report.problems import find
from framejit.version import __version__

_WIDTH = 160
_REPORT_FRAMES = 12

_warned: set[tuple[Any, ...]] = set()
_lock = Lock()


def source_line(filename: str, line: int) -> str:
    """The user's source line without its indentation; empty if the file cannot be read."""
    return linecache.getline(filename, line).strip()


def remedy(identifier: str) -> str:
    """What the registry says to do about a problem of this kind."""
    problem = find(identifier)
    return problem.fix if problem is not None else ""


def graph_break_error(
    identifier: str, reason: str, hint: str, place: tuple[str, int, str],
    chain: Sequence[tuple[str, int, str]] = (),
) -> exc.Unsupported:  # fmt: skip
    """The error for a graph break under ``fullgraph=True``: at most six lines.

    Places are (file, line, function). With ``config.verbose``: all of ``chain``, those of every
    frame, torch's and the standard library's included, from the compiled function to the break.
    """
    lines = ["graph break under fullgraph=True"]
    for one in chain if config.verbose and chain else [place]:
        lines += _place(*one)
    lines.append(f"framejit cannot capture this, because: {_cut(reason)}")
    lines.append(_cut(hint or remedy(identifier)))
    return exc.Unsupported("\n".join(lines), identifier)


def _place(filename: str, line: int, function: str) -> list[str]:
    where = f", in {function}" if function else ""
    code = source_line(filename, line)
    lines = [f'  File "{filename}", line {line}{where}']
    return [*lines, f"    {_cut(code)}"] if code else lines


def warn_internal_error(error: BaseException, name: str, filename: str, line: int) -> None:
    """Say once per kind of bug that a frame runs as plain Python, with a report ready to file."""
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1] if frames else None
    key = ("internal", type(error).__name__, last and (last.filename, last.lineno))
    _warn_once(
        key,
        f"framejit has a bug and runs {name} ({filename}:{line}) as plain Python. Results are "
        "not affected. Please file this report [FJ0206]:\n"
        + textwrap.indent(internal_report(error, name, filename, line), "  | "),
    )


def internal_report(error: BaseException, name: str, filename: str, line: int) -> str:
    """What a bug report needs: versions, the user's place, the end of our traceback."""
    frames = traceback.extract_tb(error.__traceback__)[-_REPORT_FRAMES:]
    stack = "".join(traceback.format_list(frames)).rstrip()
    return "\n".join(
        [
            f"framejit {__version__}, torch {torch.__version__}, "
            f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
            f"while capturing {name} ({filename}:{line}): {source_line(filename, line)}",
            f"{type(error).__name__}: {_cut(str(error))}",
            stack,
        ]
    )


def warn_recompile_limit(name: str, filename: str, line: int, limit: int, reason: str) -> None:
    """Say once per frame that other inputs run as plain Python from now on, and why."""
    _warn_once(
        ("limit", name, filename, line),
        f"framejit compiled {name} ({filename}:{line}) {limit} times, which is the limit. What "
        "was compiled stays in use; other inputs run as plain Python. "
        f"The last guard that failed: {reason or 'unknown'}. The limit is "
        "framejit.config.recompile_limit. [FJ0305]",
    )


def recompile_error(
    name: str, filename: str, line: int, reasons: Sequence[str], limit: int = 0
) -> exc.RecompileRefused:
    """The error where something would be compiled again: the reasons, the best fit last."""
    said = f"more than {limit} times, which is the limit" if limit else "again"
    listed = "".join(f"\n  {_cut(reason)}" for reason in reasons[-4:])
    return exc.RecompileRefused(
        f"{name} ({filename}:{line}) would be compiled {said}, which is an error here:{listed}"
    )


def warn_switch(switch: str, does: str) -> None:
    """Say once what happens instead of what a switch of ``torch.compile`` asks for."""
    _warn_once(("switch", switch), f"{switch} has no effect with framejit: {_cut(does)} [FJ0311]")


def warn_backend(backend: str, name: str, filename: str, line: int, reason: str) -> None:
    """Say once per frame that what a backend compiled does not work, though plain Python does."""
    _warn_once(
        ("backend", backend, name, filename, line),
        f"the backend {backend!r} is at fault in {name} ({filename}:{line}): {reason}. Plain "
        "Python does not raise; it runs instead, on every call. [FJ0207]",
    )


def warn_background(backend: str, name: str, filename: str, line: int, reason: str) -> None:
    """Say once per frame that a graph cannot be compiled in the background."""
    _warn_once(
        ("background", backend, name, filename, line),
        f"a graph of {name} ({filename}:{line}) could not be compiled with {backend!r} in the "
        f"background: {_cut(reason)}. Its operations run as they are; without background=True it "
        "would be compiled. [FJ0228]",
    )


def warn_refused(backend: str, begins_at: str, reason: str) -> None:
    """Say once per place where graphs begin that they run as they are, untraced by AOTAutograd."""
    _warn_once(
        ("refused", backend, begins_at),
        f"the graph that begins at {begins_at} runs as it is, one operation after the other: "
        f"{backend} cannot have it traced ({_cut(reason)}). Results are those of eager mode, and "
        "so is its speed. [FJ0234]",
    )


def warn_inner_gradient(begins_at: str) -> None:
    """Say once per place where graphs begin that a gradient inside one cannot be told."""
    _warn_once(
        ("inner", begins_at),
        f"a gradient of a result of the graph that begins at {begins_at} is asked for, and the "
        "graph computes others from this result. It was compiled without that gradient and cannot "
        "run again: what the others add to it is missing, for this call. [FJ0235]",
    )


def warn_not_split(backend: str, operation: str, place: str, reason: str) -> None:
    """Say once per place that a backend gets an operation that it was not to have."""
    _warn_once(
        ("split", backend, operation, place),
        f"the graph that begins at {place} is not split at {operation}: {_cut(reason)}. "
        f"{backend} compiles it with what is around it. [FJ0232]",
    )


def warn_prepared_in_part(name: str, filename: str, line: int, reason: str) -> None:
    """Say once per place that what comes after a graph break cannot be compiled ahead."""
    _warn_once(
        ("prepared", name, filename, line),
        f"{name} is prepared up to a graph break ({filename}:{line}): {_cut(reason)}. What comes "
        "after it is compiled in the first call that gets there. [FJ0231]",
    )


def mismatch_text(event: Any) -> str:
    """An `events.Mismatch` in words."""
    script = f". {event.script} shows it" if event.script else ""
    if event.unwritten:
        script = f". No script could be written that shows it ({_cut(event.unwritten)})"
    return (
        f"{event.name} ({event.filename}:{event.line}), compiled with {event.backend!r}, does "
        f"something else than plain Python: {_cut(event.difference)}{script}"
    )


def warn_mismatch(event: Any) -> None:
    """Say once per frame that an audit found something."""
    key = ("mismatch", event.name, event.filename, event.line)
    _warn_once(key, f"{mismatch_text(event)} [FJ0216]")


def warn_unsupported_release() -> None:
    """Say once that this Python release is not known and everything runs eagerly."""
    _warn_once(
        ("release",),
        f"framejit does not support Python {platform.python_version()}: everything runs eagerly. "
        "[FJ0304]",
    )


def warn_untested_torch() -> None:
    """Say once that this torch is newer (or older) than those that framejit is tested with."""
    _warn_once(
        ("torch",),
        f"framejit is not tested with torch {torch.__version__}: what it cannot capture there runs "
        "as plain Python. [FJ0310]",
    )


def eager_only_text(reason: str) -> str:
    """Why nothing is compiled in this process, as one line."""
    return f"framejit cannot work here, so everything runs eagerly: {' '.join(reason.split())}"


def warn_eager_only(reason: str) -> None:
    """Say once that nothing is compiled in this process."""
    _warn_once(("eager only",), f"{eager_only_text(reason)} [FJ0310]")


def warn_not_saved(path: str, reasons: list[str]) -> None:
    """Say which entries a package does not hold."""
    listed = "\n  ".join(_cut(reason) for reason in reasons[:5])
    more = f"\n  and {len(reasons) - 5} more" if len(reasons) > 5 else ""
    warn(
        f"framejit left {len(reasons)} compiled pieces out of {path}; they will be compiled "
        f"again [FJ0308]:\n  {listed}{more}"
    )


def warn_source_changed(path: str, listed: str) -> None:
    """Say what differs when a package is used although the source has changed."""
    warn(f"framejit uses {path} although its source changed: {_cut(listed)} [FJ0308]")


def warn_package_entry(function: str, path: str, error: Exception) -> None:
    """Say once why an entry of a package is not used."""
    _warn_once(
        ("package", function, path, str(error)),
        f"framejit cannot use what {path} holds for {function}: {_cut(str(error))}. "
        "It is compiled again. [FJ0308]",
    )


def checked_path(path: Any, name: str = "path") -> str:
    """``path`` as text, with ``~`` expanded. Raises TypeError for what cannot be a path."""
    if not isinstance(path, (str, os.PathLike)) or not str(path) or "\0" in str(path):
        kind = "folder" if name == "folder" else "file"
        raise TypeError(f"{name} must be the path of a {kind}, not {path!r} [FJ0210]")
    return os.path.expanduser(str(os.fspath(path)))


def forget_warnings() -> None:
    """Let every warning appear again."""
    with _lock:
        _warned.clear()


def _warn_once(key: tuple[Any, ...], text: str) -> None:
    with _lock:
        known = key in _warned
        _warned.add(key)
    if not known:
        warn(text)


def _cut(text: str) -> str:
    """One line of at most `_WIDTH` characters."""
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
