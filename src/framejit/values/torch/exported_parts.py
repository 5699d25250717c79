"""Modules that ``torch.export.unflatten`` and pipelines make of the parts of an exported program.

In: a call of such a module, which has `torch.fx.Interpreter` run its graph node by node. Out: a
call of a function with the code of that graph, which does the same and can be traced through.
"""

from __future__ import annotations

import torch

from framejit.exc import GraphBreak
from framejit.graph.bound_names import written
from framejit.values.core.base import Args, Kwargs, Raised
from framejit.values.core.registry import NAMED_LOOKASIDES, Result
from framejit.values.core.space import Space


def _interpreted(space: Space, args: Args, kwargs: Kwargs) -> Result:
    module = args[0].realize()
    attributes = getattr(module.obj, "__dict__", {})
    graph, code = attributes.get("graph"), attributes.get("graph_module")
    if module.source is None or type(graph) is not torch.fx.Graph or code is None:
        raise GraphBreak("FJ0131", "a part of an exported program that is not finished")
    if not attributes["_run_with_interpreter"] or not _fits(graph, len(args) - 1, kwargs):
        raise GraphBreak("FJ0131", "a part of an exported program runs code that it had before")
    for name in ("graph", "graph_module", "_run_with_interpreter"):
        held = module.source.child("dict").child("item", name)
        space.guard(held, "ID_MATCH", attributes[name])
        if name == "graph":
            space.guard(held.child("call", _length), "EQUALS_MATCH", _length(graph))
    # The code that the module has may be that of the graph before torch has changed it.
    function, _ = written(graph)
    try:
        return space.now(space.call(space.constant(function), list(args), dict(kwargs)))
    except Raised as raised:  # to errors, the interpreter adds where it has come to
        raise GraphBreak("FJ0131", "a part of an exported program raises") from raised


def _length(graph: torch.fx.Graph) -> int:
    return len(graph.nodes)


def _fits(graph: torch.fx.Graph, count: int, kwargs: Kwargs) -> bool:
    """Is there one argument for each input? Others are an error, which is the interpreter's."""
    names = [node.target for node in graph.find_nodes(op="placeholder")]
    return len(names) == count + len(kwargs) and set(names[count:]) == set(kwargs)


# The module is slow to import.
NAMED_LOOKASIDES["torch.export.unflatten", "InterpreterModule.forward"] = _interpreted
