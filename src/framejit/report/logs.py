"""Logs: the event stream as text, through the standard library's `logging`.

In: events. Out: records of the loggers ``framejit.graph``, ``framejit.breaks``, ... for what
``config.logs`` names (or the logger's own level asks for), on standard error unless the program
gave the logger ``framejit`` a handler. Next: progress.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator

from framejit import config
from framejit.report import events, printouts
from framejit.report.messages import remedy

LOGGER = logging.getLogger("framejit")
if LOGGER.level == logging.NOTSET:
    LOGGER.setLevel(logging.WARNING)
#: What ``config.debug`` turns on: what a capture made.
_MADE = frozenset(["graph", "bytecode", "code", "guards"])


class _Stderr(logging.Handler):
    """Writes to what ``sys.stderr`` is now; each record at once, so that threads do not mix."""

    def emit(self, record: logging.LogRecord) -> None:
        text = f"[framejit] {record.getMessage()}\n"
        if "\n" in text.rstrip("\n"):
            text += "\n"
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()


_stderr = _Stderr()
#: Where records go; None until the first one, and if the program gave the logger a handler before.
_target: logging.Handler | None = None


def _direct(handler: logging.Handler) -> None:
    global _target
    if _target is not None:
        LOGGER.removeHandler(_target)
    LOGGER.addHandler(handler)
    LOGGER.propagate = False
    _target = handler


def wanted(kind: str) -> bool:
    """Does anybody want records of this kind (a name of `config.LOGS`)?"""
    if kind in config.logs or (config.debug and kind in _MADE):
        return True
    return LOGGER.getChild(kind).isEnabledFor(logging.DEBUG)


def write(kind: str, title: str, body: str = "") -> None:
    """One record: a headline, and text below it."""
    logger = LOGGER.getChild(kind)
    if not LOGGER.handlers:
        _direct(_stderr)
    text = "\n".join([title, *(f"  {line}" for line in body.splitlines())])
    logger.handle(logger.makeRecord(logger.name, logging.DEBUG, __file__, 0, "%s", (text,), None))


def set_logs(*names: str, handler: logging.Handler | None = None) -> None:
    """Turn logs on: ``set_logs("breaks", "recompiles")``; without names: off.

    Names are those of the environment variable ``FRAMEJIT_LOGS``: graph, guards, breaks,
    recompiles, code, bytecode, times; "all" is all of them. ``handler`` gets the records (of the
    logger ``framejit`` and those below it) instead of standard error, until the next call without
    one. Raises ValueError for an unknown name.
    """
    if handler is not None and not isinstance(handler, logging.Handler):
        raise TypeError(f"handler must be a logging.Handler or None, not {handler!r} [FJ0211]")
    if odd := [name for name in names if not isinstance(name, str)]:
        raise TypeError(
            f"the names of logs must be strings, as in set_logs('breaks', 'graph'), not {odd[0]!r}"
            " [FJ0211]"
        )
    config.logs = frozenset(name for part in names for name in part.split(","))
    if handler is not None or _target is not None:
        _direct(handler or _stderr)


def _log(event: events.Event) -> None:
    if not config.logs and not config.debug and LOGGER.manager.disable >= logging.DEBUG:
        return
    for kind, title, body in _records(event):
        write(kind, title, body)


def _records(event: events.Event) -> Iterator[tuple[str, str, str]]:
    match event:
        case events.EntryAdded():
            yield from _made(event)
        case events.GraphBreak() if wanted("breaks"):
            title = f"graph break [{event.identifier}] {event.place}: {event.reason}"
            advice = event.hint or remedy(event.identifier)
            yield "breaks", title, f"{event.code}\n{advice}".lstrip()
        case events.StepAround() if wanted("breaks"):
            yield "breaks", f"left to Python [{event.identifier}]: {event.reason}", event.name
        case events.FrameSkipped() if wanted("breaks"):
            title = f"runs as plain Python [{event.identifier}]: {event.name} ({event.place})"
            yield "breaks", title, event.reason
        case events.Recompile() if wanted("recompiles"):
            title = f"compilation {event.count + 1} of {event.name} ({event.place})"
            reasons = [f"[{i}] {r}" for i, r in zip(event.identifiers, event.reasons, strict=False)]
            yield "recompiles", title, "\n".join(reasons if config.verbose else reasons[-1:])
        case events.RecompileLimit() if wanted("recompiles"):
            title = f"no further compilation [{event.identifier}] of {event.name} ({event.place})"
            yield "recompiles", title, event.reason
        case events.CaptureEnd() if wanted("times"):
            traced = event.seconds - event.backend_seconds
            yield (
                "times",
                f"{event.name} ({event.place}) {event.outcome}: traced {traced * 1000:.1f} ms, "
                f"backend {event.backend_seconds * 1000:.1f} ms, {event.steps} instructions",
                "",
            )
        case _:
            pass


def _made(event: events.EntryAdded) -> Iterator[tuple[str, str, str]]:
    kinds = [kind for kind in ("bytecode", "graph", "code", "guards") if wanted(kind)]
    detail = event.detail() if kinds else None
    if detail is None:
        return
    for kind in kinds:
        if kind == "bytecode":
            code = detail.bytecode
            title = f"bytecode of {code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
            yield kind, title, printouts.bytecode_text(code)
        elif kind == "graph" and detail.graph is not None:
            yield kind, f"graph of {event.name}", printouts.graph_table(detail.graph.graph)
        elif kind == "code":
            yield kind, f"code that replaces {event.name}", detail.code
        elif kind == "guards":
            lines = [str(guard) for guard in detail.guards]
            yield kind, f"{len(lines)} guards of {event.name}", "\n".join(lines)


events.subscribe(_log)
