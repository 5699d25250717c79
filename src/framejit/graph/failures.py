"""Where a graph raised: which node, and the user's line that it comes from.

In: a graph module that ran operation by operation, and its error. Out: the node, and the user's
place that it was recorded from. Graphs that a backend compiled tell nothing. Next room: codegen.
"""

from __future__ import annotations

import re
from types import TracebackType
from typing import TYPE_CHECKING

import torch.fx

if TYPE_CHECKING:
    from ..bytecode.model import Place

_PLACE = re.compile(r'File "([^"]+)", line (\d+), in (.+)')


def failing_node(
    module: torch.fx.GraphModule, error: BaseException
) -> tuple[torch.fx.Node | None, TracebackType | None]:
    """The node of ``module`` that raised ``error`` and the traceback from there on; twice None when
    the module's own code did not run."""
    forward = type(module).__dict__.get("forward")
    code, lines = getattr(forward, "__code__", None), getattr(module, "_lineno_map", None)
    start = getattr(module, "_prologue_start", None)
    trace = error.__traceback__
    while trace is not None and code is not None and lines and start is not None:
        if trace.tb_frame.f_code is code:
            index = lines.get(trace.tb_lineno - start)
            nodes = list(module.graph.nodes)
            known = index is not None and index < len(nodes)
            return (nodes[index], trace) if known else (None, None)
        trace = trace.tb_next
    return None, None


def place_of(node: torch.fx.Node) -> Place | None:
    """File, function and line of the user's operation that ``node`` was recorded from."""
    found = _PLACE.findall(str(node.meta.get("stack_trace") or ""))
    if not found:
        return None
    filename, line, name = found[-1]
    return filename, name, (int(line), None, None, None)
