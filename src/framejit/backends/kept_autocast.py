"""Graphs that leave autocast as they find it.

AOTAutograd refuses a graph that ends under another autocast than it begins with, as one before a
graph break inside of ``with torch.autocast(...)`` does, and leaves out of what it compiles whatever
sets it, so the next part of a graph would not find it set. The code around a graph sets what is in
force at its end (`codegen.effects`). In: a graph, or its parts, in order. Out: graphs that set at
their beginning what was set before, and at their end what was set before the first. Next: dividing.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.fx

from ..graph.global_state import SETTERS
from ..graph.lazy import outer_graph

_AUTOCAST = (
    torch.set_autocast_enabled, torch.set_autocast_dtype, torch.set_autocast_cache_enabled
)  # fmt: skip


def changes_autocast(gm: torch.fx.GraphModule) -> bool:
    """Does this graph end under another autocast than it begins with?"""
    return bool(KeptAutocast().after(gm))


class KeptAutocast:
    """Follows what parts of a graph set, from the autocast on that there is now."""

    def __init__(self) -> None:
        self._begun: dict[tuple[Any, ...], Any] = {}
        self._now: dict[tuple[Any, ...], Any] = {}

    def enclose(self, gm: torch.fx.GraphModule) -> None:
        """Have the next part begin and end under the autocast that the first one begins with."""
        before = {key: value for key, value in self._now.items() if value != self._begun[key]}
        after = self.after(gm)
        first = next(node for node in gm.graph.nodes if node.op != "placeholder")
        for place, settings in ((first, before), (gm.graph.output_node(), after)):
            with gm.graph.inserting_before(place):
                for (setter, *which), value in settings.items():
                    gm.graph.call_function(setter, (*which, value))
        if before or after:
            gm.recompile()

    def after(self, gm: torch.fx.GraphModule) -> dict[tuple[Any, ...], Any]:
        """What the next part has to put back at its end: for setters, and what of the arguments of
        each selects what is set, the values."""
        for node in outer_graph(gm).nodes:
            if node.target in _AUTOCAST:
                *which, value = node.args
                key = (node.target, *which)
                if key not in self._begun:
                    self._begun[key] = SETTERS[node.target][0](*which)
                self._now[key] = value
        return {key: self._begun[key] for key, value in self._now.items()
                if value != self._begun[key]}  # fmt: skip
