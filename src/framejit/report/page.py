"""An explanation as one HTML page that needs nothing else: no network, no script, no other file.

In: an `Explanation`. Out: HTML, from the template ``page.html.jinja``. The user's source is marked
as a coverage report does it; beside each graph is the code that replaces the frame; guards by
cause; a time line; recompiles. Next room: api.
"""

from __future__ import annotations

import collections
import functools
import inspect
import linecache
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from framejit.report.drawing import HEIGHT, WIDTH, folded, once, picture
from framejit.report.terminal import count, counts, seconds, size

if TYPE_CHECKING:
    from framejit.report.explanation import Entry, Explanation

#: Pictures of larger graphs are not drawn; their text is shown.
_DRAWN_LIMIT = 1500
#: How many lines around what is known of a file are shown.
_MARGIN = 3


def page(explanation: Explanation, whole: bool = True) -> str:
    """The whole page, or the same for a notebook's cell."""
    files = _files(explanation)
    anchors = {
        (file.name, line.number): f"f{i}l{line.number}"
        for i, file in enumerate(files)
        for line in file.lines
    }
    phases = explanation.phases
    return _template().render(  # type: ignore[no-any-return]
        explanation=explanation,
        whole=whole,
        figures=_figures(explanation),
        files=files,
        anchors=anchors,
        guards=by_kind(explanation.guards),
        duration=max((p.start + p.trace + p.backend for p in phases), default=0.0),
    )


@functools.cache
def _template() -> Any:
    import jinja2  # seldom needed

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
    )  # fmt: skip
    environment.filters.update(
        count=count, size=size, seconds=seconds, percent="{:.2%}".format,
        prose=_prose, listing=_listing,
    )  # fmt: skip
    environment.globals.update(
        picture=picture, folded=folded, once=once, limit=_DRAWN_LIMIT, WIDTH=WIDTH, HEIGHT=HEIGHT
    )
    return environment.get_template("page.html.jinja")


def _prose(text: str) -> Any:
    """With code between `backticks`."""
    from markupsafe import Markup, escape

    return Markup(re.sub("`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _figures(explanation: Explanation) -> list[Any]:
    times = explanation.times
    figures: list[Any] = [
        *[counted.split(" ", 1) for counted in counts(explanation)],
        [seconds(times["trace"]), "to trace"],
        [seconds(times["backend"]), "in the backend"],
    ]
    if explanation.memory:
        figures.append([size(explanation.memory), "more memory"])
    return figures


class _Line(NamedTuple):
    number: int
    kind: str
    code: str
    notes: list[str]


class _File(NamedTuple):
    name: str
    summary: str
    opened: bool
    lines: list[_Line]


def _files(explanation: Explanation) -> list[_File]:
    """What is shown of the user's source."""
    return [_file(explanation, name) for name in sorted(explanation.sources(), key=is_installed)]


def _file(explanation: Explanation, filename: str) -> _File:
    marks = explanation.marks(filename)
    notes = collections.defaultdict(list)
    for one in explanation.breaks:
        if one.filename == filename:
            notes[one.line].append(f"[{one.identifier}] {one.reason}")
    lines = [
        _Line(n, marks.get(n, ""), linecache.getline(filename, n).rstrip("\n"), notes.get(n, []))
        for n in _shown_lines(explanation, filename, marks)
    ]
    kinds = collections.Counter(marks.values())
    summary = ", ".join(
        f"{count(kinds[kind], 'line')} {words}"
        for kind, words in (("captured", "captured"), ("break", "with a graph break"),
                            ("skipped", "run as plain Python"))
        if kinds[kind]
    )  # fmt: skip
    return _File(filename, summary, bool(notes) or not is_installed(filename), lines)


def is_installed(filename: str) -> bool:
    """A file of an installed package, which the user has not written."""
    return f"{os.sep}site-packages{os.sep}" in filename


def _shown_lines(explanation: Explanation, filename: str, marks: dict[int, str]) -> list[int]:
    """The functions that were captured, and some lines around everything that is marked."""
    last = len(linecache.getlines(filename))
    shown: set[int] = set()
    for name, first, _ in explanation.functions:
        if name == filename:
            shown.update(range(first, first + function_length(filename, first)))
    for line in marks:
        shown.update(range(line - _MARGIN, line + _MARGIN + 1))
    return sorted(line for line in shown if 1 <= line <= last)


def _listing(entry: Entry) -> str:
    names = [node.name for node in entry.nodes]
    return "\n".join(
        f"{n.name} = {n.op} {n.target} ({', '.join(names[i] for i in n.inputs)}) {n.shape}"
        for n in entry.nodes
    )


def by_kind(guards: Iterable[Any]) -> dict[str, list[Any]]:
    """Guards by their kind, the most frequent first."""
    groups: dict[str, list[Any]] = collections.defaultdict(list)
    for guard in guards:
        groups[guard.kind].append(guard)
    return dict(sorted(groups.items(), key=lambda item: -len(item[1])))


def function_length(filename: str, line: int) -> int:
    """How many lines the function that starts at ``line`` has."""
    return len(inspect.getblock(linecache.getlines(filename)[line - 1 :]) or ())
