"""An explanation as one HTML page that needs nothing else: no network, no script, no other file.

In: an `Explanation`. Out: HTML. The user's source is marked as a coverage report does it; beside
each graph is the code that replaces the frame; guards by cause; a time line; recompiles.
Next room: api.
"""

from __future__ import annotations

import collections
import html
import inspect
import linecache
import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from framejit.report.drawing import svg
from framejit.report.terminal import count, seconds, size

if TYPE_CHECKING:
    from framejit.report.explanation import Entry, Explanation

#: Pictures of larger graphs are not drawn; their text is shown.
_DRAWN_LIMIT = 1500
#: How many lines around what is known of a file are shown.
_MARGIN = 3

_STYLE = """
.fj { --ink: #1c1e21; --paper: #fff; --quiet: #6a7380; --line: #d8dce2; --soft: #f2f4f7;
  --good: #e9f8ec; --good-edge: #35a853; --bad: #fdeaea; --bad-edge: #d93025; --bad-ink: #b3261e;
  --warn: #fff6dd; --warn-edge: #e8a600; --call: #e8f0fe; --call-edge: #5b8def; --wait: #f29900;
  font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 1200px; margin: auto; padding: 8px }
@media (prefers-color-scheme: dark) {
.fj-page, .fj { --ink: #dfe3e8; --paper: #16181c; --quiet: #8d97a5; --line: #3a4049;
  --soft: #23272e;
  --good: #14301c; --good-edge: #2f9e4c; --bad: #3d1a19; --bad-edge: #e5534b; --bad-ink: #ff9c95;
  --warn: #382c0b; --warn-edge: #c69026; --call: #1b2a47; --call-edge: #5b8def; --wait: #c77d00;
  color-scheme: dark } }
.fj-page { margin: 0; background: var(--paper, #fff) }
.fj h1 { font-size: 22px } .fj h2 { font-size: 17px; margin: 28px 0 8px }
.fj a { color: var(--call-edge) }
.fj code, .fj pre, .fj .source { font: 12.5px/1.5 ui-monospace, Menlo, Consolas, monospace }
.fj table { border-collapse: collapse }
.fj td, .fj th { padding: 3px 12px 3px 0; text-align: left; vertical-align: top }
.fj .figures { display: flex; flex-wrap: wrap; gap: 10px }
.fj .figures div { background: var(--soft); border-radius: 6px; padding: 8px 14px }
.fj .figures b { display: block; font-size: 19px }
.fj .source { border: 1px solid var(--line); border-radius: 6px; overflow-x: auto; padding: 6px 0;
  margin: 6px 0 }
.fj .source div { white-space: pre; padding-right: 12px; border-left: 5px solid transparent }
.fj .source div i { display: inline-block; width: 46px; text-align: right; color: var(--quiet);
  font-style: normal; margin-right: 14px; user-select: none }
.fj .source .captured { background: var(--good); border-color: var(--good-edge) }
.fj .source .break { background: var(--bad); border-color: var(--bad-edge) }
.fj .source .skipped { background: var(--warn); border-color: var(--warn-edge) }
.fj .source .note { color: var(--bad-ink); white-space: normal; padding-left: 66px;
  font: 13px system-ui, sans-serif; background: var(--bad); border-color: var(--bad-edge) }
.fj .source .gap { color: var(--quiet); padding-left: 60px }
.fj .legend span { padding: 1px 8px; border-radius: 4px; margin-right: 8px }
.fj details { margin: 6px 0; border: 1px solid var(--line); border-radius: 6px; padding: 6px 10px }
.fj summary { cursor: pointer }
.fj .graph { display: flex; flex-wrap: wrap; gap: 16px }
.fj .graph > div { flex: 1 1 460px; min-width: 0; overflow: auto; max-height: 640px }
.fj pre { white-space: pre-wrap; margin: 4px 0 }
.fj svg path { fill: none; stroke: var(--quiet); stroke-width: 1 }
.fj svg rect { fill: var(--call); stroke: var(--call-edge) }
.fj svg text { font: 11px ui-monospace, monospace; text-anchor: middle; fill: var(--ink) }
.fj svg .shape { font-size: 9px; fill: var(--quiet) }
.fj svg .placeholder rect, .fj svg .get_attr rect { fill: var(--soft); stroke: var(--quiet) }
.fj svg .output rect { fill: var(--good); stroke: var(--good-edge) }
.fj .bar { position: relative; height: 20px; background: var(--soft); border-radius: 3px }
.fj .bar span { position: absolute; top: 2px; bottom: 2px; min-width: 2px; border-radius: 2px }
.fj .trace { background: var(--call-edge) } .fj .backend { background: var(--wait) }
"""


def page(explanation: Explanation) -> str:
    """The whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>framejit report</title></head>'
        f'<body class="fj-page">{fragment(explanation)}</body></html>\n'
    )


def fragment(explanation: Explanation) -> str:
    """The same for a notebook's cell."""
    anchors: dict[tuple[str, int], str] = {}
    source = _sources(explanation, anchors)
    parts = [
        f"<style>{_STYLE}</style>",
        '<div class="fj"><h1>framejit report</h1>',
        _figures(explanation),
        f"<p>{_text(explanation.no_graph)}</p>" if explanation.no_graph else "",
        _mismatches(explanation),
        _breaks(explanation, anchors),
        source,
        _graphs(explanation, anchors),
        _guards(explanation),
        _recompiles(explanation),
        _skips(explanation),
        _time_line(explanation),
        "</div>",
    ]
    return "\n".join(part for part in parts if part)


def _text(value: Any) -> str:
    return html.escape(str(value))


def _prose(text: str) -> str:
    """With code between `backticks`."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", _text(text))


def _figures(explanation: Explanation) -> str:
    times = explanation.times
    figures = [
        *(
            count(number, noun).split(" ", 1)
            for number, noun in (
                (explanation.graph_count, "graph"), (explanation.break_count, "graph break"),
                (explanation.op_count, "operation"), (len(explanation.guards), "guard"),
                (len(explanation.recompiles), "recompile"),
            )
        ),
        [seconds(times["trace"]), "to trace"],
        [seconds(times["backend"]), "in the backend"],
    ]
    if explanation.memory:
        figures.append([size(explanation.memory), "more memory"])
    boxes = "".join(f"<div><b>{_text(number)}</b>{name}</div>" for number, name in figures)
    return f'<div class="figures">{boxes}</div>'


def _breaks(explanation: Explanation, anchors: dict[tuple[str, int], str]) -> str:
    if not explanation.breaks:
        return ""
    rows = []
    for one in explanation.breaks:
        anchor = anchors.get((one.filename, one.line), "")
        place = f'<a href="#{anchor}">{_text(one.place)}</a>' if anchor else _text(one.place)
        rows.append(
            f"<tr><td>{place}</td><td><b>{_text(one.identifier)}</b></td>"
            f"<td><code>{_text(one.code)}</code><br>{_prose(one.reason)}<br>"
            f"<i>{_prose(one.fix)}</i></td></tr>"
        )
    return f'<h2>Graph breaks</h2><table class="breaks">{"".join(rows)}</table>'


def _sources(explanation: Explanation, anchors: dict[tuple[str, int], str]) -> str:
    out = []
    for number, filename in enumerate(sorted(explanation.sources(), key=is_installed)):
        marks = explanation.marks(filename)
        shown = _shown_lines(explanation, filename, marks)
        notes = collections.defaultdict(list)
        for one in explanation.breaks:
            if one.filename == filename:
                notes[one.line].append(f"[{one.identifier}] {one.reason}")
        rows = []
        previous = 0
        for line in shown:
            if previous and line != previous + 1:
                rows.append('<div class="gap">⋮</div>')
            previous = line
            anchor = anchors[filename, line] = f"f{number}l{line}"
            kind = marks.get(line, "")
            code = _text(linecache.getline(filename, line).rstrip("\n"))
            rows.append(f'<div id="{anchor}" class="{kind}"><i>{line}</i>{code}</div>')
            rows += [f'<div class="note">{_text(note)}</div>' for note in notes[line]]
        kinds = collections.Counter(marks.values())
        summary = ", ".join(
            f"{count(kinds[kind], 'line')} {words}"
            for kind, words in (("captured", "captured"), ("break", "with a graph break"),
                                ("skipped", "run as plain Python"))
            if kinds[kind]
        )  # fmt: skip
        opened = "" if is_installed(filename) and not any(notes.values()) else " open"
        out.append(
            f'<details{opened}><summary><code>{_text(filename)}</code>: {summary}</summary>'
            f'<div class="source" data-file="{_text(filename)}">{"".join(rows)}</div></details>'
        )
    if not out:
        return ""
    legend = (
        '<p class="legend source" style="border:0"><span class="captured">captured</span>'
        '<span class="break">graph break</span><span class="skipped">plain Python</span></p>'
    )
    return f"<h2>Your code</h2>{legend}{''.join(out)}"


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


def _graphs(explanation: Explanation, anchors: dict[tuple[str, int], str]) -> str:
    out = []
    for number, entry in enumerate(explanation.entries):
        if not (entry.operations or entry.code):
            continue
        out.append(_graph(number, entry, anchors))
    return f"<h2>Graphs and the code that calls them</h2>{''.join(out)}" if out else ""


def _graph(number: int, entry: Entry, anchors: dict[tuple[str, int], str]) -> str:
    picture = ""
    if entry.operations and len(entry.nodes) <= _DRAWN_LIMIT:
        picture = svg(entry.nodes, anchors)
    names = [node.name for node in entry.nodes]
    rows = "\n".join(
        f"{n.name} = {n.op} {n.target} ({', '.join(names[i] for i in n.inputs)}) {n.shape}"
        for n in entry.nodes
    )
    listing = f"<details><summary>as text</summary><pre>{_text(rows)}</pre></details>"
    code = f"<pre>{_text(entry.code)}</pre>" if entry.code else ""
    return (
        f'<details{" open" if number == 0 else ""}><summary><b>{_text(entry.frame)}</b> '
        f"({_text(entry.place)}): {count(entry.operations, 'operation')}, "
        f"{count(len(entry.guards), 'guard')}, reads {size(entry.input_bytes)}, "
        f"returns {size(entry.output_bytes)}{', compiled by an earlier call' * entry.reused}"
        "</summary>"
        f'<div class="graph"><div>{picture}{listing if entry.operations else ""}</div>'
        f"<div>{code}</div></div></details>"
    )


def _guards(explanation: Explanation) -> str:
    out = []
    for kind, guards in by_kind(explanation.guards).items():
        lines = "\n".join(dict.fromkeys(map(str, guards)))
        out.append(
            f"<details><summary>{_text(kind)}: {len(guards)}</summary>"
            f"<pre>{_text(lines)}</pre></details>"
        )
    return f"<h2>Guards by cause</h2>{''.join(out)}" if out else ""


def _recompiles(explanation: Explanation) -> str:
    if not explanation.recompiles:
        return ""
    rows = []
    for one in explanation.recompiles:
        *others, nearest = map(_prose, one.reasons or ("no reason is known",))
        if others:
            listed = "<br>".join(dict.fromkeys(others))
            summary = f"<summary>{len(others)} that fit less</summary>"
            nearest += f"<details>{summary}{listed}</details>"
        rows.append(
            f"<tr><td>{_text(one.frame)}<br>compilation {one.number + 1}</td>"
            f"<td><b>{''.join(one.identifiers[-1:])}</b></td><td>{nearest}</td></tr>"
        )
    return f'<h2>Recompiles</h2><table class="recompiles">{"".join(rows)}</table>'


def _mismatches(explanation: Explanation) -> str:
    rows = "".join(
        f"<tr><td>{_text(one.frame)}<br>{_text(one.place)}</td><td><b>{one.identifier}</b></td>"
        f"<td>{_text(one.difference)}<br>{_text(one.script)}</td></tr>"
        for one in explanation.mismatches
    )
    return f"<h2>What differs from plain Python</h2><table>{rows}</table>" if rows else ""


def _skips(explanation: Explanation) -> str:
    rows = "".join(
        f"<tr><td>{_text(skip.frame)}</td><td><b>{skip.identifier}</b></td>"
        f"<td>{_prose(skip.reason)}</td></tr>"
        for skip in explanation.skips
    )
    return f"<h2>What runs as plain Python</h2><table>{rows}</table>" if rows else ""


def _time_line(explanation: Explanation) -> str:
    phases = explanation.phases
    whole = max((p.start + p.trace + p.backend for p in phases), default=0.0)
    if not whole:
        return ""
    rows = []
    for p in phases:
        bars = "".join(
            f'<span class="{kind}" style="left:{start / whole:.2%};width:{length / whole:.2%}" '
            f'title="{kind} {seconds(length)}"></span>'
            for kind, start, length in (("trace", p.start, p.trace),
                                        ("backend", p.start + p.trace, p.backend))
        )  # fmt: skip
        rows.append(
            f"<tr><td>{_text(p.frame)}</td>"
            f'<td style="white-space:nowrap">{seconds(p.trace + p.backend)}</td>'
            f'<td style="width:70%"><div class="bar">{bars}</div></td></tr>'
        )
    return (
        '<h2>Time line</h2><p class="legend"><span class="trace">trace</span>'
        f'<span class="backend">backend</span></p><table style="width:100%">{"".join(rows)}</table>'
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
