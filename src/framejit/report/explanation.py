"""What happened, as one object: graphs, breaks, guards, recompiles, times, lines.

In: a list of events. Out: an `Explanation` of plain data, which prints itself (`terminal`) and
writes itself as a page (`page`). It keeps no tensor and no compiled object alive.
Next room: api.
"""

from __future__ import annotations

import collections
import linecache
import os
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from framejit.report import events
from framejit.report.messages import checked_path, remedy, source_line

_TRACE_LINE = re.compile(r'File "(.+)", line (\d+)')


class Node(NamedTuple):
    """One node of a graph. ``inputs`` are positions in the graph's list of nodes."""

    name: str
    op: str
    target: str
    shape: str  # float32[2, 3], or "" for what is no tensor
    inputs: tuple[int, ...]
    filename: str  # the user's file and line, "" and 0 where there is none
    line: int


class Repeated(NamedTuple):
    """What a graph calls several times and is compiled once. ``calls``: per call the positions of
    its nodes in the graph's list."""

    name: str
    operations: int
    calls: list[list[int]]

    @property
    def saved(self) -> int:
        """How many operations were not compiled."""
        return self.operations * (len(self.calls) - 1)


class Entry(NamedTuple):
    """Something that was captured: a graph with its code and its guards."""

    frame: str
    filename: str
    line: int
    operations: int
    nodes: list[Node]
    code: str
    guards: list[Any]
    input_bytes: int
    output_bytes: int
    #: It was there before the call that is explained.
    reused: bool = False
    regions: tuple[Repeated, ...] = ()

    @property
    def place(self) -> str:
        """``model.py:12``"""
        return _place(self.filename, self.line)


class Break(NamedTuple):
    """A place where a graph ended. ``times``: in how many captures."""

    identifier: str
    reason: str
    fix: str
    filename: str
    line: int
    code: str
    times: int

    @property
    def place(self) -> str:
        """``model.py:12``"""
        return _place(self.filename, self.line)


class Recompile(NamedTuple):
    """A frame that was captured again: one sentence for each entry that did not fit."""

    frame: str
    filename: str
    line: int
    number: int  # of entries before this one
    reasons: tuple[str, ...]
    identifiers: tuple[str, ...]


class Skip(NamedTuple):
    """A frame that runs as plain Python, or something else that went another way than usual."""

    frame: str
    filename: str
    line: int
    identifier: str
    reason: str


class Mismatch(NamedTuple):
    """An audited call that did something other than plain Python."""

    frame: str
    filename: str
    line: int
    identifier: str
    difference: str
    script: str

    @property
    def place(self) -> str:
        """``model.py:12``"""
        return _place(self.filename, self.line)


class Phase(NamedTuple):
    """A capture on the time line, in seconds."""

    frame: str
    start: float
    trace: float
    backend: float
    outcome: str


class Explanation:
    """What framejit did: see `framejit.explain` and `framejit.report`.

    Attributes: ``entries`` (each with its graph's ``nodes``, generated ``code`` and ``guards``),
    ``breaks``, ``recompiles``, ``skips`` (what ran as plain Python and why), ``no_graph``,
    ``mismatches`` (what `framejit.audit` found), ``repeated`` (by class, how many calls were
    repeated instead of executed), ``regions`` (how often graphs call what was compiled once; more
    of it is in the ``regions`` of entries),
    ``phases``, ``lines`` (captured lines per file), ``functions`` ((file, first line, name) of the
    user's code that was captured), ``result`` (what
    the call returned, for `explain`) and ``memory`` (bytes by which the process grew).
    """

    def __init__(self, happened: Sequence[events.Event] = ()) -> None:
        self.result: Any = None
        self.memory = 0
        self.entries: list[Entry] = []
        self.recompiles: list[Recompile] = []
        self.mismatches: list[Mismatch] = []
        self.lines: dict[str, set[int]] = collections.defaultdict(set)
        self.steps = 0
        self.repeated: collections.Counter[str] = collections.Counter()
        self.regions: collections.Counter[str] = collections.Counter()
        self._regions: dict[tuple[str, str, int], events.RegionsCompiled] = {}
        self._functions: dict[tuple[str, int, str], None] = {}
        self._phases: list[Phase] = []
        self._skips: dict[Skip, None] = {}
        self._broken: dict[tuple[str, str, str, int], list[events.GraphBreak]] = {}
        for event in happened:
            self.add(event)

    def add(self, event: events.Event, reused: bool = False) -> None:
        """Take in one event; good as a subscriber. ``reused``: it is of an earlier call."""
        where = (event.name, event.filename, event.line)
        match event:
            case events.GraphBreak():
                key = (event.identifier, event.reason, event.filename, event.line)
                self._broken.setdefault(key, []).append(event)
            case events.EntryAdded():
                self._add_entry(event, reused)
            case events.Recompile():
                self.recompiles.append(
                    Recompile(*where, event.count, event.reasons, event.identifiers)
                )
            case events.CaptureEnd():
                self.steps += event.steps
                self.repeated.update(dict(event.repeated))
                trace = event.seconds - event.backend_seconds
                self._phases.append(
                    Phase(event.name, event.time - event.seconds, trace, event.backend_seconds,
                          event.outcome)
                )  # fmt: skip
            case (events.FrameSkipped() | events.CallSkipped() | events.Deoptimised()
                  | events.InternalFailure()):  # fmt: skip
                self._skips[Skip(*where, event.identifier, event.reason)] = None
            case events.RecompileLimit():
                self._skips[Skip(*where, event.identifier, event.sentence())] = None
            case events.RegionsCompiled():
                self.regions.update(dict(event.regions))
                self._regions[where] = event
            case events.RegionsRefused():
                self._skips[
                    Skip(*where, "FJ0207", f"layers are not compiled once: {event.reason}")
                ] = None
            case events.GraphRefused():
                why = f"AOTAutograd cannot trace the graph, which runs as it is: {event.reason}"
                self._skips[Skip(*where, "FJ0234", why)] = None
            case events.BackendFailed():
                self._skips[Skip(*where, "FJ0207", event.reason)] = None
            case events.AuditSkipped():
                self._skips[Skip(*where, event.identifier, f"not audited: {event.reason}")] = None
            case events.Mismatch():
                self.mismatches.append(
                    Mismatch(*where, event.identifier, event.difference, event.script)
                )
            case _:
                pass

    @property
    def breaks(self) -> list[Break]:
        """The graph breaks, one per place and reason."""
        return [_break(several[0], len(several)) for several in self._broken.values()]

    @property
    def skips(self) -> list[Skip]:
        """What ran as plain Python, with the reason."""
        return list(self._skips)

    @property
    def no_graph(self) -> str:
        """Why there is no graph, where nothing was skipped; "" if there is one."""
        if self.graphs or self.skips or not self.entries:
            return ""
        return "no graph [FJ0302]: no PyTorch operation was met that can be captured"

    @property
    def phases(self) -> list[Phase]:
        """The captures in the order in which they began; the first begins at 0."""
        phases = sorted(self._phases, key=lambda phase: phase.start)
        return [phase._replace(start=phase.start - phases[0].start) for phase in phases]

    @property
    def functions(self) -> list[tuple[str, int, str]]:
        """(file, first line, name) of the user's functions that were captured."""
        return list(self._functions)

    def _add_entry(self, event: events.EntryAdded, reused: bool) -> None:
        detail = event.detail()
        where = (event.name, event.filename, event.line, event.operations)
        if detail is None:
            self.entries.append(Entry(*where, [], "", [], 0, 0, reused))
            return
        nodes, read, written = graph_nodes(detail.graph)
        regions = _repeated(self._regions.pop(where[:3], None), nodes)
        self.entries.append(
            Entry(*where, nodes, detail.code, detail.guards, read, written, reused, regions)
        )
        self._functions.update(dict.fromkeys(detail.functions))
        for filename, lines in detail.lines.items():
            self.lines[filename] |= lines
        if not detail.lines:  # nobody asked before: the lines with operations are known
            for node in nodes:
                if node.line:
                    self.lines[node.filename].add(node.line)

    # -- figures

    @property
    def graphs(self) -> list[Entry]:
        """The entries that have a graph with operations."""
        return [entry for entry in self.entries if entry.operations]

    @property
    def graph_count(self) -> int:
        """How many graphs were compiled, or used by the call that is explained."""
        return len(self.graphs)

    @property
    def break_count(self) -> int:
        """How many captures ended in a graph break."""
        return sum(one.times for one in self.breaks)

    @property
    def op_count(self) -> int:
        """Operations in all graphs together."""
        return sum(entry.operations for entry in self.entries)

    @property
    def guards(self) -> list[Any]:
        """The guards of all entries."""
        return [guard for entry in self.entries for guard in entry.guards]

    @property
    def times(self) -> dict[str, float]:
        """Seconds by phase: "trace" (symbolic execution, guards, code) and "backend"."""
        return {
            "trace": sum(phase.trace for phase in self.phases),
            "backend": sum(phase.backend for phase in self.phases),
        }

    # -- showing it

    def __str__(self) -> str:
        from framejit.report.terminal import text

        return text(self)

    __repr__ = __str__

    def __rich__(self) -> Any:
        from framejit.report.terminal import renderable

        return renderable(self)

    def _repr_html_(self) -> str:
        from framejit.report.page import page

        return page(self, whole=False)

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write one page that needs nothing else: no network, no other file.

        Raises OSError if it cannot be written.
        """
        from framejit.report.page import page

        with open(checked_path(path), "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(page(self))

    # -- lines

    def marks(self, filename: str) -> dict[int, str]:
        """What became of the lines of a file: "break", "captured" or "skipped"."""
        from framejit.report.page import function_length

        marks = dict.fromkeys(self.lines.get(filename, ()), "captured")
        for skip in self.skips:
            if skip.filename == filename and "__resume_at" not in skip.frame:
                for line in range(skip.line, skip.line + function_length(filename, skip.line)):
                    marks.setdefault(line, "skipped")
        for one in self.breaks:
            if one.filename == filename:
                marks[one.line] = "break"
        return marks

    def sources(self) -> list[str]:
        """The user's files that something is known about."""
        found = dict.fromkeys(filename for filename, _, _ in self.functions)
        found.update(dict.fromkeys(one.filename for one in self.breaks))
        found.update(dict.fromkeys(skip.filename for skip in self.skips))
        return [filename for filename in found if linecache.getlines(filename)]


def _break(event: events.GraphBreak, times: int) -> Break:
    return Break(
        event.identifier, event.reason, event.hint or remedy(event.identifier),
        event.filename, event.line,
        event.code or source_line(event.filename, event.line), times,
    )  # fmt: skip


def _repeated(event: events.RegionsCompiled | None, nodes: Sequence[Node]) -> tuple[Repeated, ...]:
    if event is None:
        return ()
    return tuple(
        Repeated(name, sum(nodes[i].target != "operator.getitem" for i in calls[0]), calls)
        for (name, _), calls in zip(event.regions, event.places, strict=True)
    )


def graph_nodes(module: Any) -> tuple[list[Node], int, int]:
    """The nodes of a graph module as plain data, and the bytes of its inputs and outputs."""
    if module is None:
        return [], 0, 0
    nodes: list[Node] = []
    position: dict[Any, int] = {}
    read = written = 0
    for node in module.graph.nodes:
        example = node.meta.get("example_value")
        filename, line = _line_of(node)
        position[node] = len(nodes)
        nodes.append(
            Node(
                node.name, node.op, node._pretty_print_target(node.target), _shape(example),
                tuple(position[n] for n in node.all_input_nodes), filename, line,
            )
        )  # fmt: skip
        if node.op == "placeholder":
            read += _bytes(example)
        elif node.op == "output":
            written = sum(_bytes(n.meta.get("example_value")) for n in node.all_input_nodes)
    return nodes, read, written


def _line_of(node: Any) -> tuple[str, int]:
    found = _TRACE_LINE.findall(node.meta.get("stack_trace") or "")
    for filename, line in reversed(found):  # the innermost line that the user wrote
        if f"{os.sep}site-packages{os.sep}torch{os.sep}" not in filename:
            return filename, int(line)
    return ("", 0) if not found else (found[0][0], int(found[0][1]))


def _shape(example: Any) -> str:
    if isinstance(example, torch.Tensor):
        sizes = ", ".join(map(str, example.shape))
        return f"{str(example.dtype).removeprefix('torch.')}[{sizes}]"
    return ""


def _bytes(example: Any) -> int:
    if isinstance(example, torch.Tensor) and all(isinstance(s, int) for s in example.shape):
        return example.numel() * example.element_size()
    return 0


def _place(filename: str, line: int) -> str:
    return f"{filename.rpartition('/')[2]}:{line}"
