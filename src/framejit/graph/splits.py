"""Cuts a graph around operations that a backend is not to have.

In: a recorded graph, and which of its operations run as they are. Out: parts in the program's
order, for the backend and not, or why an operation stays where it is. Between two parts nothing
goes over but tensors, under the settings of torch's that the graph begins with. Next: capture.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.fx

from .builder import GraphBuilder
from .metadata import Example, memory_key
from .parts import Part, calls_of, completed

_Node = torch.fx.Node
#: Where a graph's `meta` has `divide_around` for it, until it is compiled.
DIVIDE = "divide"

#: What sets a value of torch's that `_Settings` follows, and what asks for it.
_ASKED: dict[Any, Callable[..., Any]] = {
    torch._C._set_grad_enabled: torch.is_grad_enabled,
    torch.set_autocast_enabled: torch.is_autocast_enabled,
    torch.set_autocast_dtype: torch.get_autocast_dtype,
    torch.set_autocast_cache_enabled: torch.is_autocast_cache_enabled,
}


class Division(NamedTuple):
    """The parts, or none; and the operations that could not be cut out, each with the reason."""

    parts: list[Part] | None
    kept: list[tuple[str, str]]


def divide_around(
    builder: GraphBuilder, module: torch.fx.GraphModule, chosen: Callable[[_Node], bool]
) -> Division:
    """The parts of a finished graph, such that each operation that is ``chosen`` is one that is not
    compiled."""
    wanted = [n for n in module.graph.nodes if n.op == "call_function" and chosen(n)]
    if not wanted:
        return Division(None, [])
    calls = calls_of(builder, module)
    why = ""
    if calls is None:
        why = "the graph has sizes or results that depend on data"
    elif torch.is_grad_enabled() and _has_gradients(builder):
        why = "gradients are computed: use torch.no_grad() or torch.inference_mode()"
    if calls is None or why:
        return Division(None, [(str(node.target), why) for node in wanted])
    ordered, groups = _grouped(calls, wanted)
    borders = _Borders(builder, ordered)
    kept, bounds, alone = [], {0, len(ordered)}, set()
    for start, end in groups:
        why = borders.problem(start) or borders.problem(end)
        if why:
            kept.append((str(ordered[start].target), why))
        else:
            bounds |= {start, end}
            alone.add(start)
    if not alone:
        return Division(None, kept)
    places = sorted(bounds)
    found = [ordered[a:b] for a, b in itertools.pairwise(places)]
    parts = [
        part._replace(compiled=part.compiled and start not in alone)
        for part, start in zip(completed(builder, module, found), places, strict=False)
    ]
    return Division(parts, kept)


def _has_gradients(builder: GraphBuilder) -> bool:
    return bool(builder.differentiated) or any(one.differentiable for one in builder.placeholders)


def _grouped(calls: list[_Node], wanted: list[_Node]) -> tuple[list[_Node], list[tuple[int, int]]]:
    """The operations, with the items of a chosen one's result right after it; and where each chosen
    one begins and ends."""
    items = {
        user: node for node in wanted for user in node.users if user.target is operator.getitem
    }
    ordered: list[_Node] = []
    groups = []
    for node in calls:
        if node in items:
            continue
        ordered.append(node)
        if node in wanted:
            ordered += [one for one in calls if items.get(one) is node]
            groups.append((len(ordered) - 1 - sum(v is node for v in items.values()), len(ordered)))
    return ordered, groups


class _Borders:
    """Where a part may begin."""

    def __init__(self, builder: GraphBuilder, calls: list[_Node]) -> None:
        self.builder = builder
        self.calls = calls
        place = {node: index for index, node in enumerate(calls)}
        self.last_use = [max([place.get(u, len(calls)) for u in n.users], default=0) for n in calls]
        self.last_write = {
            memory_key(written): index
            for index, node in enumerate(calls) for written in builder.operations[node].writes
        }  # fmt: skip
        self.of_inputs = {
            memory_key(one.example) for one in builder.placeholders
            if isinstance(one.example, Example)
        }  # fmt: skip
        settings = _Settings()
        self.as_begun = [True]
        for node in calls:
            settings.follow(builder, node)
            self.as_begun.append(settings.as_begun)

    def problem(self, index: int) -> str:
        """Why none may begin at this operation; empty if it may."""
        if not self.as_begun[index]:
            return "it stands in a block with other settings of torch's"
        over: dict[int, int] = {}
        for node in (n for i, n in enumerate(self.calls[:index]) if self.last_use[i] >= index):
            example = self.builder.example(node)
            if not isinstance(example, Example):
                return f"{node.name} goes over to a later part and is no tensor"
            key = memory_key(example)
            over[key] = over.get(key, 0) + 1
        # Backends may return two tensors that shared memory as two that do not; views of inputs
        # they make of the inputs.
        for key, count in over.items():
            if count > 1 and key not in self.of_inputs and self.last_write.get(key, -1) >= index:
                return "several views of a tensor go over to a later part, which writes to it"
        return ""


class _Settings:
    """What the operations so far have set torch to."""

    def __init__(self) -> None:
        self._changed: set[Any] = set()

    def follow(self, builder: GraphBuilder, node: _Node) -> None:
        """``node`` runs."""
        target: Any = node.target
        if target in _ASKED:
            *which, value = node.args
            now = _ASKED[target](*which)
            (self._changed.discard if value == now else self._changed.add)((target, *which))
        elif builder.operations[node].sets_state and target is not torch.clear_autocast_cache:
            self._changed.add(node)

    @property
    def as_begun(self) -> bool:
        """Is it all as it was?"""
        return not self._changed
