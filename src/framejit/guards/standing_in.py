"""Guards for tensors that are still to come, and guards as they are for what is there now.

In: a plan made with tensors on meta or fake ones, and what stands in for them. Out: the plan for
tensors with content. The other way: the nodes of an entry for those, such that they tell whether it
will do for a call with tensors that have none yet. Next room: values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from framejit import native
from framejit.graph.stand_ins import StandIns
from framejit.guards.plan import Node, Plan
from framejit.source import Fact

#: Places in what `native.GuardTree.export` tells of a tensor: dispatch keys, type and index of the
#: device, whether sizes are read as they are. Tensors without content differ in these alone.
_OWN = (0, 2, 3, 6)
#: What no tensor is.
_NEVER = "type", type(None)


def expect(plan: Plan, stand_ins: StandIns) -> None:
    """Change ``plan``: its guards hold for the tensors that stand in for what was captured."""

    def checked(check: tuple[Any, ...]) -> tuple[Any, ...]:
        return (check[0], stand_ins.of(check[1]), *check[2:]) if check[0] == "tensor" else check

    def noted(fact: Fact) -> Fact:
        if fact.kind != "TENSOR_MATCH":
            return fact
        payload = fact.payload
        if type(payload) is tuple:
            payload = (stand_ins.of(payload[0]), *payload[1:])
        else:
            payload = stand_ins.of(payload)
        return Fact(fact.kind, payload, fact.line)

    plan.nodes = [node._replace(checks=list(map(checked, node.checks))) for node in plan.nodes]
    plan.checked = [list(map(noted, facts)) for facts in plan.checked]


def as_given(
    nodes: Sequence[Any], value_at: Callable[[int], Any], stand_ins: StandIns
) -> list[Any]:
    """The nodes of an entry, such that they hold now if the entry's own will hold once content has
    come. ``value_at``: what is at a node now, None if nothing is."""
    made = []
    for number, (parent, accessor, key, checks, capture) in enumerate(nodes):
        if any(check[0] == "metadata" for check in checks):
            value = value_at(number)
            expected = stand_ins.of(value)
            if expected is not value:
                checks = [_for(check, value, expected) for check in checks]
        made.append(Node(parent, accessor, key, list(checks), capture))
    return made


def _for(check: tuple[Any, ...], value: torch.Tensor, expected: torch.Tensor) -> tuple[Any, ...]:
    """A check of a tensor with content, for one without."""
    if check[0] != "metadata":
        return check
    _, cls, numbers = check
    now, then = _numbers(value), _numbers(expected)
    if cls is not type(expected) or any(numbers[place] != then[place] for place in _OWN):
        return _NEVER
    mixed = [now[i] if i in _OWN else number for i, number in enumerate(numbers)]
    return "metadata", type(value), tuple(mixed)


def _numbers(tensor: torch.Tensor) -> Any:
    tree = native.GuardTree([(-1, "slot", 0, [("tensor", tensor, 0)], -1)])
    return tree.export()[0][3][0][2]
