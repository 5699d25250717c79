"""A graph as a picture: layers from top to bottom, one box per node.

In: the nodes of an `Entry`. Out: a `Picture`, which the page draws as SVG. A node lies one layer
below the lowest of its inputs; inputs of the graph lie right above what first uses them. What is
compiled once is one box per call, and a picture of its own. Next: page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from framejit.report.explanation import Entry, Node, Repeated

WIDTH, HEIGHT = 132, 30
_GAP, _LAYER = 14, 56
_CHARACTERS = 21


class Box(NamedTuple):
    """A node and its upper left corner."""

    x: int
    y: int
    kind: str
    label: str
    shape: str
    title: str
    line: tuple[str, int]


class Picture(NamedTuple):
    """Boxes in the order of the nodes; ``arrows`` are pairs of their positions in it."""

    width: int
    height: int
    boxes: list[Box]
    arrows: list[tuple[int, int]]


def picture(nodes: Sequence[Node]) -> Picture:
    """Where everything lies."""
    layers = _layers(nodes)
    places = _places(nodes, layers)
    width = max((x for x, _ in places), default=0) + WIDTH + _GAP
    height = (max(layers, default=0) + 1) * _LAYER + _GAP
    boxes = [_box(node, round(x), y) for node, (x, y) in zip(nodes, places, strict=True)]
    arrows = [(source, i) for i, node in enumerate(nodes) for source in node.inputs]
    return Picture(round(width), height, boxes, arrows)


def folded(entry: Entry) -> list[Node]:
    """The nodes of an entry's graph with one node for each call of its regions."""
    calls = {
        call[-1]: (f"{region.name} {number}", region.name, call)
        for region in entry.regions
        for number, call in enumerate(region.calls, 1)
    }
    last = {i: end for end, (_, _, call) in calls.items() for i in call}
    kept = [i for i in range(len(entry.nodes)) if last.get(i, i) == i]
    position = {i: at for at, i in enumerate(kept)}
    made = []
    for i in kept:
        node, parts = entry.nodes[i], [i]
        if i in calls:
            name, region, parts = calls[i]
            node = node._replace(name=name, op="region", target=region)
        inputs = [position[last.get(k, k)] for k in _outside(entry, parts)]
        made.append(node._replace(inputs=tuple(dict.fromkeys(inputs))))
    return made


def once(entry: Entry, region: Repeated) -> list[Node]:
    """The nodes of a region's first call, and what it is given."""
    call = region.calls[0]
    outside = _outside(entry, call)
    position = {i: at for at, i in enumerate([*outside, *call])}
    given = [entry.nodes[i]._replace(op="placeholder", inputs=()) for i in outside]
    parts = [entry.nodes[i] for i in call]
    return given + [n._replace(inputs=tuple([position[k] for k in n.inputs])) for n in parts]


def _outside(entry: Entry, nodes: list[int]) -> list[int]:
    """What some of a graph's nodes take from others."""
    inside = set(nodes)
    return [
        k for k in dict.fromkeys(k for i in nodes for k in entry.nodes[i].inputs) if k not in inside
    ]


def _box(node: Node, x: int, y: int) -> Box:
    kind = node.op if node.op in ("placeholder", "output", "get_attr", "region") else "call"
    label = node.name if kind != "call" else node.target.rpartition(".")[2]
    where = f"{node.filename.rpartition('/')[2]}:{node.line}" if node.line else ""
    title = f"{node.name} = {node.op} {node.target} {node.shape} {where}".rstrip()
    return Box(x, y, kind, _cut(label), _cut(node.shape), title, (node.filename, node.line))


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


def _layers(nodes: Sequence[Node]) -> list[int]:
    layers = [0] * len(nodes)
    for i, node in enumerate(nodes):
        if node.inputs:
            layers[i] = max(layers[source] for source in node.inputs) + 1
    first_use: dict[int, int] = {}
    for i, node in enumerate(nodes):
        for source in node.inputs:
            first_use[source] = min(first_use.get(source, layers[i]), layers[i])
    lowest = max(layers, default=0)
    for i, node in enumerate(nodes):
        if node.op in ("placeholder", "get_attr"):
            layers[i] = max(first_use.get(i, 1) - 1, 0)
        elif node.op == "output":
            layers[i] = lowest
    return layers


def _places(nodes: Sequence[Node], layers: list[int]) -> list[tuple[float, int]]:
    """Left to right in each layer: operations first, under the middle of what they use."""
    step = WIDTH + _GAP
    rows: list[list[int]] = [[] for _ in range(max(layers, default=0) + 1)]
    for i, layer in enumerate(layers):
        rows[layer].append(i)
    place: list[tuple[float, int]] = [(0.0, 0)] * len(nodes)
    for layer, row in enumerate(rows):

        def wish(i: int) -> float:
            known = [place[source][0] for source in nodes[i].inputs]
            return sum(known) / len(known) if known else float("inf")

        taken = float(_GAP)
        for i in sorted(row, key=lambda i: (not nodes[i].inputs, wish(i), i)):
            wanted = wish(i)
            taken = taken if wanted == float("inf") else max(taken, wanted)
            place[i] = (taken, layer * _LAYER + _GAP)
            taken += step
    return place
