"""The debug printouts: the graph as a table, the bytecode, the code that replaces it, the guards.

In: what a capture produced. Out: text on stderr when ``config.debug`` is on or ``config.logs``
names the printout ("graph", "bytecode", "code", "guards"); the program's own stdout is never
touched. Next room: api.
"""

from __future__ import annotations

import dis
import io
import sys
import types
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from framejit import config

if TYPE_CHECKING:
    import torch.fx

_COLUMNS = ("opcode", "name", "target", "args", "kwargs")
_CELL_LIMIT = 100


def wanted(printout: str) -> bool:
    """Is "graph", "bytecode", "code" or "guards" to be printed?"""
    return config.debug or printout in config.logs


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


def show_graph(name: str, module: torch.fx.GraphModule) -> None:
    """Print the graph of one capture, if graphs are wanted."""
    if wanted("graph"):
        show(f"graph of {name}", graph_table(module.graph))


def show_bytecode(code: types.CodeType) -> None:
    """Print the original bytecode, if bytecode is wanted."""
    if wanted("bytecode"):
        title = f"bytecode of {code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"
        show(title, bytecode_text(code))


def show_code(name: str, source: str) -> None:
    """Print the generated function that replaces a frame, if code is wanted."""
    if wanted("code"):
        show(f"code that replaces {name}", source)


def show_guards(name: str, guards: Iterable[Any]) -> None:
    """Print guards (`guards.Plan.describe`), one a line, if guards are wanted."""
    if wanted("guards"):
        lines = [str(guard) for guard in guards]
        show(f"{len(lines)} guards of {name}", "\n".join(lines))


def show(title: str, text: str) -> None:
    """One printout: a headline and indented text, written at once so that threads do not mix."""
    body = "\n".join(f"  {line}" for line in text.splitlines())
    sys.stderr.write(f"[framejit] {title}\n{body}\n\n")
    sys.stderr.flush()
