"""Results that lie as in eager mode, where AOTAutograd's trace has them otherwise.

In: a recorded graph, and what AOTAutograd makes of it. Out: a graph whose results have the strides
that were recorded. What operations are composed of may lay out a dimension of one element in
another way, which then decides on the layout of what comes after (a convolution of one picture);
Inductor keeps to the layout of the trace. Used by inductor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from ..graph.observer import memory_of

_Node = torch.fx.Node
#: The sizes and strides of each result that is a tensor; None for those that may lie as they do.
Layouts = list[tuple[tuple[int, ...], tuple[int, ...]] | None]


class OtherStrides(BaseException):
    """A result would not lie as recorded. No backend takes this for an error of its own."""


def recorded_layouts(gm: torch.fx.GraphModule) -> Layouts:
    """How the results lie whose memory the graph makes and whose sizes do not vary."""
    return [
        _layout(node) if _maker(node) is not None and _is_plain(_value(node)) else None
        for node in _results(gm)
    ]


def check_layouts(gm: torch.fx.GraphModule, recorded: Layouts) -> None:
    """Raises OtherStrides where the program would see results of a traced graph that lie otherwise.

    What they are is known by their order, if there are as many as were recorded.
    """
    output = gm.graph.output_node()
    results: Any = output.args[0]
    seen = output.meta.get("user_visible_output_idxs", ())
    values = [results[i].meta.get("val") for i in seen]
    if len(values) != len(recorded):
        return
    for value, layout in zip(values, recorded, strict=True):
        if layout is None or not _is_plain(value) or tuple(value.shape) != layout[0]:
            continue
        if value.stride() != layout[1]:
            raise OtherStrides


def lay_out_results(gm: torch.fx.GraphModule) -> None:
    """Let the results lie as recorded: what makes their memory is copied to some that does."""
    for node in dict.fromkeys(map(_maker, _results(gm))):
        if node is None or not _is_plain(_value(node)):
            continue
        users, layout = list(node.users), _layout(node)
        with gm.graph.inserting_after(node):
            made = gm.graph.call_method("new_empty_strided", (node, *layout))
        with gm.graph.inserting_after(made):
            copied = gm.graph.call_method("copy_", (made, node))
        for user in users:
            user.replace_input_with(node, copied)
    gm.recompile()


def _results(gm: torch.fx.GraphModule) -> list[_Node]:
    found: Any = gm.graph.output_node().args[0]
    return [one for one in found if isinstance(one, _Node)] if isinstance(found, Sequence) else []


def _value(node: _Node) -> Any:
    return node.meta.get("example_value")


def _layout(node: _Node) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(_value(node).shape), _value(node).stride()


def _is_plain(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_nested
        and all(type(one) is int for one in (*value.shape, *value.stride()))
    )  # fmt: skip


def _maker(node: _Node) -> _Node | None:
    """The operation that makes the memory that a result lies in, unless that is an input's."""
    memory = _memory(node)
    if memory is None:
        return None
    while (
        before := next((n for n in node.all_input_nodes if _memory(n) == memory), None)
    ) is not None:
        node = before
    return node if node.op.startswith("call") and not _value(node)._is_view() else None


def _memory(node: _Node) -> int | None:
    """Identifies the memory of a tensor."""
    value = _value(node)
    return memory_of(value) if isinstance(value, torch.Tensor) else None
