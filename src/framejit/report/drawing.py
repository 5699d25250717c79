"""A graph as an SVG picture: layers from top to bottom, one box per node.

In: the nodes of an `Entry`. Out: SVG text; boxes link to the user's lines on the page. A node lies
one layer below the lowest of its inputs; inputs of the graph lie right above what first uses them.
Next: page.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from framejit.report.explanation import Node

_WIDTH, _HEIGHT = 132, 30
_GAP, _LAYER = 14, 56
_CHARACTERS = 21


def svg(nodes: Sequence[Node], anchors: dict[tuple[str, int], str]) -> str:
    """The picture. ``anchors``: where on the page the user's lines are."""
    layers = _layers(nodes)
    place = _places(nodes, layers)
    width = max((x for x, _ in place), default=0) + _WIDTH + _GAP
    height = (max(layers, default=0) + 1) * _LAYER + _GAP
    out = [f'<svg width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}">']
    for i, node in enumerate(nodes):
        x, y = place[i]
        for source in node.inputs:
            x0, y0 = place[source]
            x0, y0, x1 = x0 + _WIDTH / 2, y0 + _HEIGHT, x + _WIDTH / 2
            middle = (y0 + y) / 2
            out.append(
                f'<path d="M{x0:.0f} {y0} C{x0:.0f} {middle:.0f} {x1:.0f} {middle:.0f} '
                f'{x1:.0f} {y}"/>'
            )
    for i, node in enumerate(nodes):
        out.append(_box(node, *place[i], anchors.get((node.filename, node.line), "")))
    out.append("</svg>")
    return "\n".join(out)


def _box(node: Node, x: float, y: int, anchor: str) -> str:
    kind = node.op if node.op in ("placeholder", "output", "get_attr") else "call"
    label = node.name if kind != "call" else node.target.rpartition(".")[2]
    where = f"{node.filename.rpartition('/')[2]}:{node.line}" if node.line else ""
    title = html.escape(f"{node.name} = {node.op} {node.target} {node.shape} {where}".rstrip())
    box = (
        f'<g class="{kind}" transform="translate({x:.0f},{y})"><title>{title}</title>'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="4"/>'
        f'<text x="{_WIDTH // 2}" y="13">{html.escape(_cut(label))}</text>'
        f'<text x="{_WIDTH // 2}" y="25" class="shape">{html.escape(_cut(node.shape))}</text></g>'
    )
    return f'<a href="#{anchor}">{box}</a>' if anchor else box


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
    step = _WIDTH + _GAP
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
