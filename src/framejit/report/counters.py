"""`framejit.counters`: how often things happened, as a dict of counters derived from the events.

In: the event stream. Out: ``counters["graph_break"][reason]`` and the like; unknown groups are
empty counters, and ``counters.clear()`` starts over. Next room: api.

Groups: ``frames`` (total, ok, failed), ``graph_break`` (by reason), ``stats``
(unique_graphs, calls_captured), ``recompiles`` (by frame), ``recompile_reasons`` (by sentence),
``skipped`` and ``internal_error`` (by reason), ``backend`` (graphs by backend), ``deoptimised``
(by reason), ``mismatch`` (by frame) and ``not_audited`` (by reason) of `framejit.audit`.
"""

from __future__ import annotations

import collections
from typing import Any

from framejit.report import events


class Counters(collections.defaultdict[str, "collections.Counter[str]"]):
    """A dict of `collections.Counter`; reading a group that does not exist makes an empty one."""

    def __init__(self) -> None:
        super().__init__(collections.Counter)

    def __repr__(self) -> str:
        return repr({group: dict(counter) for group, counter in self.items() if counter})

    def __reduce__(self) -> Any:
        return (dict, ({group: dict(counter) for group, counter in self.items()},))


counters = Counters()

#: The groups that count an event by one of its fields.
_BY_FIELD: dict[type[events.Event], tuple[str, str]] = {
    events.GraphBreak: ("graph_break", "reason"),
    events.RecompileLimit: ("recompile_limit", "name"),
    events.FrameSkipped: ("skipped", "reason"),
    events.Deoptimised: ("deoptimised", "reason"),
    events.BackendFailed: ("backend_failed", "backend"),
    events.RegionsRefused: ("regions_refused", "backend"),
    events.GraphRefused: ("graphs_refused", "backend"),
    events.InternalFailure: ("internal_error", "reason"),
    events.Mismatch: ("mismatch", "name"),
    events.AuditSkipped: ("not_audited", "reason"),
}


def _count(event: events.Event) -> None:
    match event:
        case events.CaptureStart():
            counters["frames"]["total"] += 1
        case events.CaptureEnd():
            counters["frames"]["ok" if event.outcome == "compiled" else event.outcome] += 1
        case events.GraphCompiled():
            counters["stats"]["unique_graphs"] += 1
            counters["stats"]["calls_captured"] += event.operations
            counters["backend"][event.backend] += 1
        case events.GraphReused():
            counters["stats"]["graphs_reused"] += 1
            counters["stats"]["calls_captured"] += event.operations
        case events.Recompile():
            counters["recompiles"][event.name] += 1
            if event.reasons:
                counters["recompile_reasons"][event.reasons[-1]] += 1
        case _ if type(event) in _BY_FIELD:
            group, field = _BY_FIELD[type(event)]
            counters[group][getattr(event, field)] += 1


events.subscribe(_count)
