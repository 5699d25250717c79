"""Graphs and bytecode as text.

In: what a capture started from and produced. Out: tables for logs and for `comptime`. Next: logs.
"""

from __future__ import annotations

import dis
import io
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch.fx

_COLUMNS = ("opcode", "name", "target", "args", "kwargs")
_CELL_LIMIT = 100


def graph_table(graph: torch.fx.Graph) -> str:
    """The nodes of an fx graph as a table; columns as in ``Graph.print_tabular``."""
    rows = [_COLUMNS]
    for node in graph.nodes:
        row = (node.op, node.name, node._pretty_print_target(node.target), node.args, node.kwargs)
        rows.append(tuple(_shorten(str(cell)) for cell in row))  # type: ignore[arg-type]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    rows.insert(1, tuple("-" * width for width in widths))  # type: ignore[arg-type]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _shorten(text: str) -> str:
    return text if len(text) <= _CELL_LIMIT else text[: _CELL_LIMIT - 3] + "..."


def bytecode_text(code: types.CodeType) -> str:
    """The disassembly of one code object, without the functions inside it."""
    stream = io.StringIO()
    dis.dis(code, file=stream, depth=0)
    return stream.getvalue().rstrip()
