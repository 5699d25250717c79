"""Handles that AOTAutograd holds in a graph: device meshes of the distributed tensors it returns.

In: a graph of ATen operations, in which such an object is a stand-in for tracing. Out: the same,
with the object itself, which results of the graph then have. Next room: a compiler of graphs.
"""

from __future__ import annotations

import torch
from torch._library.fake_class_registry import FakeScriptObject

from ..graph.opaque import is_handle_class


def with_handles(gm: torch.fx.GraphModule) -> bool:
    """Let the graph, and those that it calls, hold what its stand-ins are for. Were there any?"""
    found = False
    for part in gm.modules():
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for node in part.graph.find_nodes(op="get_attr"):
            held = getattr(part, node.target, None)
            if isinstance(held, FakeScriptObject) and is_handle_class(type(held.real_obj)):
                setattr(part, node.target, held.real_obj)
                found = True
    return found
