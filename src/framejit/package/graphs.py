"""Captured graphs as JSON, and back as graph modules.

In: an `fx.GraphModule`. Out: its nodes with targets by name and its constants; a module made from
them runs, and can be compiled, without anything being traced. Next: entries.
"""

from __future__ import annotations

import types
from typing import Any

import torch
import torch.fx

from framejit.exc import PackageError
from framejit.graph.lazy import CapturedGraph, LazyGraphModule
from framejit.graph.nested import applied
from framejit.package import tensors
from framejit.package.data import Decoder, Encoder, Json, Unsaveable


def encode_graph(module: torch.fx.GraphModule, encoder: Encoder) -> Json:
    """The nodes and attributes of ``module``. Raises Unsaveable."""
    numbers: dict[torch.fx.Node, int] = {}
    rows = []
    attributes: dict[str, Json] = {}
    for number, node in enumerate(module.graph.nodes):
        numbers[node] = number
        target: Json = str(node.target)
        if node.op == "call_function":
            target = _encode_target(node.target, encoder)
        elif node.op == "get_attr":
            attributes[target] = _encode_attribute(module, target, encoder)
        elif node.op == "call_module":
            raise Unsaveable(f"a module called in a graph ({target})")
        rows.append(
            [
                node.op, node.name, target,
                [_encode(arg, numbers, encoder) for arg in node.args],
                {name: _encode(arg, numbers, encoder) for name, arg in node.kwargs.items()},
            ]
        )  # fmt: skip
    return {"nodes": rows, "attributes": attributes}


def _encode_target(target: Any, encoder: Encoder) -> Json:
    closure = getattr(target, "__closure__", None)
    if isinstance(target, types.FunctionType) and target.__code__ in applied.__code__.co_consts:
        assert closure is not None
        return ["applied", encoder.value(closure[0].cell_contents)]
    return encoder.value(target)


def _encode_attribute(module: torch.fx.GraphModule, name: str, encoder: Encoder) -> Json:
    value = getattr(module, name)
    if isinstance(value, torch.fx.GraphModule):
        return ["graph", encode_graph(value, encoder)]
    if isinstance(value, torch.Tensor) and tensors.saveable(value):
        return encoder.tensor(value)
    raise Unsaveable(f"a constant of class {type(value).__qualname__} in a graph")


def _encode(arg: Any, numbers: dict[torch.fx.Node, int], encoder: Encoder) -> Json:
    if isinstance(arg, torch.fx.Node):
        return ["n", numbers[arg]]
    kind = type(arg)
    if isinstance(arg, (tuple, list)) and not hasattr(kind, "_fields") and kind is not torch.Size:
        tag = "t" if isinstance(arg, tuple) else "l"
        return [tag, *[_encode(item, numbers, encoder) for item in arg]]
    if isinstance(arg, dict):
        return ["d", *[[key, _encode(item, numbers, encoder)] for key, item in arg.items()]]
    if kind is slice:
        ends = (arg.start, arg.stop, arg.step)
        return ["slice", *[_encode(end, numbers, encoder) for end in ends]]
    return encoder.value(arg)


def decode_graph(data: Json, decoder: Decoder) -> torch.fx.GraphModule:
    """A module that runs the saved nodes. Raises PackageError."""
    graph = CapturedGraph()
    nodes: list[torch.fx.Node] = []
    for op, name, target, args, kwargs in data["nodes"]:
        if op == "call_function":
            target = _decode_target(target, decoder)
        decoded = tuple([_decode(arg, nodes, decoder) for arg in args])
        named = {key: _decode(arg, nodes, decoder) for key, arg in kwargs.items()}
        node = graph.create_node(op, target, decoded, named, name=name)
        nodes.append(node)
    root = {
        name: decode_graph(value[1], decoder) if value[0] == "graph" else decoder.value(value)
        for name, value in data["attributes"].items()
    }
    return LazyGraphModule(root, graph, "GraphModule")


def _decode_target(data: Json, decoder: Decoder) -> Any:
    if type(data) is list and data[0] == "applied":
        return applied(decoder.value(data[1]))
    target = decoder.value(data)
    if not callable(target):
        raise PackageError(f"a graph of a package calls {data!r}, which is not callable")
    return target


def _decode(data: Json, nodes: list[torch.fx.Node], decoder: Decoder) -> Any:
    if type(data) is not list:
        return data
    tag = data[0]
    if tag == "n":
        return nodes[data[1]]
    if tag == "t" or tag == "l":
        items = [_decode(item, nodes, decoder) for item in data[1:]]
        return tuple(items) if tag == "t" else items
    if tag == "d":
        return {
            (decoder.value(key) if type(key) is list else key): _decode(item, nodes, decoder)
            for key, item in data[1:]
        }
    if tag == "slice":
        return slice(*[_decode(end, nodes, decoder) for end in data[1:]])
    return decoder.value(data)
