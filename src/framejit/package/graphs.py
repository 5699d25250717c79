"""Captured graphs as JSON, and back as graph modules.

In: an `fx.GraphModule`. Out: its nodes with targets by name, its constants and the sizes of its
inputs that vary; a module made from them runs, and can be compiled, without anything being traced.
Next: entries.
"""

from __future__ import annotations

import contextlib
from typing import Any

import torch
import torch.fx

from framejit import tensor_file
from framejit.capture.graphs import Care
from framejit.exc import PackageError
from framejit.graph.aliasing import Watch
from framejit.graph.bounds import Assumption
from framejit.graph.builder import ONCE, WRITES
from framejit.graph.expressions import Tree, evaluate, replaced, symbols_of
from framejit.graph.fakes import plain_keys
from framejit.graph.inner_results import Inner
from framejit.graph.lazy import CapturedGraph, LazyGraphModule
from framejit.graph.metadata import Composition, TensorMeta, describe
from framejit.graph.nested import HeldHook, open_hooks
from framejit.graph.parts import PARTS, Part
from framejit.graph.symbol_nodes import remember_inputs, symbolic_inputs
from framejit.guards.shapes import ShapePlan
from framejit.package.data import Decoder, Encoder
from framejit.package.descriptions import Json, Unsaveable


def encode_care(care: Care, encoder: Encoder) -> Json:
    """What is done around a graph. Raises Unsaveable."""
    watch = care.watch and [
        encoder.value(sorted(part) if isinstance(part, frozenset) else part) for part in care.watch
    ]
    return {
        "watch": watch, "unseen": care.unseen,
        "reached": care.reached and [sorted(inputs) for inputs in care.reached],
        "saved": list(care.saved), "in_parts": care.in_parts,
        "plain": None if care.plain is None else list(care.plain),
        "spent": [[position, list(arguments)] for position, arguments in care.spent],
        "unreached": list(care.unreached), "checkpointed": list(care.checkpointed),
        "hooked": list(care.hooked), "uneven": [list(group) for group in care.uneven],
        "clears_casts": care.clears_casts, "uncounted": list(care.uncounted),
        "inner": care.inner.as_lists(),
    }  # fmt: skip


def decode_care(saved: Json, decoder: Decoder) -> Care:
    """The same again."""
    watch = None
    if saved["watch"] is not None:
        watched, written, *rest = decoder.values(saved["watch"])
        watch = Watch(watched, frozenset(written), *rest)
    return Care(
        watch=watch,
        unseen=saved["unseen"],
        reached=saved["reached"] and [frozenset(inputs) for inputs in saved["reached"]],
        saved=tuple(saved["saved"]),
        in_parts=saved["in_parts"],
        plain=None if saved["plain"] is None else tuple(saved["plain"]),
        spent=tuple([(position, tuple(reached)) for position, reached in saved["spent"]]),
        unreached=tuple(saved["unreached"]),
        checkpointed=tuple(saved["checkpointed"]),
        uneven=tuple(map(tuple, saved["uneven"])),
        hooked=tuple(saved["hooked"]),
        clears_casts=saved["clears_casts"],
        uncounted=tuple(saved["uncounted"]),
        inner=Inner.of_lists(saved["inner"]),
    )


def encode_graph(module: torch.fx.GraphModule, encoder: Encoder) -> Json:
    """The nodes and attributes of ``module``. Raises Unsaveable."""
    rows = []
    attributes: dict[str, Json] = {}
    outer, encoder.nodes = encoder.nodes, {}
    for number, node in enumerate(module.graph.nodes):
        encoder.nodes[node] = number
        target: Json = str(node.target)
        if node.op == "call_function":
            if node.target is open_hooks:
                raise Unsaveable("saved-tensor hooks that a graph opens")
            target = encoder.value(node.target)
        elif node.op == "get_attr":
            attributes[target] = _encode_attribute(module, target, encoder)
        elif node.op == "call_module":
            raise Unsaveable(f"a module called in a graph ({target})")
        args = [encoder.value(arg) for arg in node.args]
        named = {name: encoder.value(arg) for name, arg in node.kwargs.items()}
        rows.append([node.op, node.name, target, args, named])
    encoder.nodes = outer
    parts = module.meta.get(PARTS)
    return {
        "nodes": rows, "attributes": attributes, "parts": parts and [list(p) for p in parts],
        "writes": module.meta.get(WRITES), "once": module.meta.get(ONCE, False),
    }  # fmt: skip


def _encode_attribute(module: torch.fx.GraphModule, name: str, encoder: Encoder) -> Json:
    value = getattr(module, name)
    if isinstance(value, torch.fx.GraphModule):
        return ["graph", encode_graph(value, encoder)]
    if isinstance(value, HeldHook):
        return ["hook", encoder.value(value.held[0])]
    if isinstance(value, torch.Tensor) and tensor_file.saveable(value):
        return encoder.tensor(value)
    raise Unsaveable(f"a constant of class {type(value).__qualname__} in a graph")


def decode_graph(data: Json, decoder: Decoder) -> torch.fx.GraphModule:
    """A module that runs the saved nodes. Raises PackageError."""
    graph = CapturedGraph()
    outer, decoder.nodes = decoder.nodes, []
    for op, name, target, args, kwargs in data["nodes"]:
        if op == "call_function":
            saved, target = target, decoder.value(target)
            if not callable(target):
                raise PackageError(f"a graph of a package calls {saved!r}, which is not callable")
        decoded = tuple(decoder.values(args))
        named = {key: decoder.value(arg) for key, arg in kwargs.items()}
        decoder.nodes.append(graph.create_node(op, target, decoded, named, name=name))
    decoder.nodes = outer
    root = {name: _decode_attribute(value, decoder) for name, value in data["attributes"].items()}
    module = LazyGraphModule(root, graph, "GraphModule")
    module.meta[PARTS] = data["parts"] and [Part(*part) for part in data["parts"]]
    if data["once"]:
        module.meta[ONCE] = True
    if data["writes"] is not None:
        module.meta[WRITES] = data["writes"]
    return module


def _decode_attribute(data: Json, decoder: Decoder) -> Any:
    if data[0] == "graph":
        return decode_graph(data[1], decoder)
    if data[0] == "hook":
        return HeldHook(decoder.value(data[1]))
    return decoder.value(data)


# -- sizes that vary -------------------------------------------------------------------------------


def encode_sizes(module: torch.fx.GraphModule, encoder: Encoder) -> Json:
    """The symbols that a graph takes, and the sizes of its tensors; None if none of them vary."""
    known = symbolic_inputs(module)
    if known is None:
        return None
    symbols = known.symbols

    def tree(part: Any) -> Json:
        return symbols.tree(part) if isinstance(part, torch.SymInt) else part

    def layout(meta: TensorMeta | Composition) -> Json:
        if isinstance(meta, Composition):
            raise Unsaveable("sizes that vary of a tensor that is made of others")
        sizes = [list(map(tree, meta.shape)), list(map(tree, meta.stride))]
        return sizes if meta.symbolic else None

    taken = [str(node.target) for node in module.graph.find_nodes(op="placeholder")]
    return {
        "taken": taken[: len(taken) - len(known.metas)],
        "values": {name: encoder.value(value) for name, value in symbols.values.items()},
        "derived": symbols.derived,
        "tensors": list(map(layout, known.metas)),
    }


class Sizes:
    """Inputs with symbols in place of sizes that vary, for a backend that compiles a graph again.

    ``plan`` says what the symbols represent and what the saved entry assumes of them; the values
    are those of the capture, so the backend sees what it saw then.
    """

    def __init__(self, saved: Json, plan: ShapePlan, decoder: Decoder) -> None:
        from framejit.graph.symbols import Symbols  # imports sympy

        self._saved = saved
        self._assumed = {check.tree for check in plan.checks}
        self._symbols = Symbols()
        self._numbers: dict[str, Any] = {
            symbol.name: self._symbols.again(symbol, decoder.value(saved["values"][symbol.name]))
            for symbol in plan.inputs
            if symbol.name in saved["values"]
        }
        for name, tree in saved["derived"].items():
            tree = replaced(as_tuples(tree), self._renamed())
            self._numbers[name] = self._symbols.derive(tree)
        for check in plan.checks:
            if self._numbers.keys() >= set(symbols_of(check.tree)):
                with contextlib.suppress(Exception):  # the native guards check it in any case
                    bool(evaluate(check.tree, self._numbers))
        try:
            self._taken = [self._numbers[name] for name in saved["taken"]]
        except KeyError as error:
            raise PackageError(f"a graph takes the number {error}, which no guard loads") from error

    def inputs(self, module: torch.fx.GraphModule, tensors: list[torch.Tensor]) -> list[Any]:
        """What a backend is called with for ``module``."""
        metas: list[TensorMeta | Composition] = []
        for tensor, layout in zip(tensors, self._saved["tensors"], strict=True):
            meta = describe(tensor, type(tensor), plain_keys(tensor.device))
            if layout is not None:
                shape, stride = (tuple(map(self._size, sizes)) for sizes in layout)
                meta = meta.resized(shape, stride)
            metas.append(meta)
        remember_inputs(module, self._symbols, metas)
        return [*self._taken, *tensors]

    def _size(self, part: Json) -> Any:
        return evaluate(as_tuples(part), self._numbers) if type(part) is list else part

    def news(self) -> list[Assumption]:
        """What was assumed since beyond what the saved entry assumes."""
        names = {now[1]: ("load", name) for name, now in self._renamed().items()}
        now = [Assumption(replaced(a.tree, names), a.line) for a in self._symbols.assumptions()]
        return [assumption for assumption in now if assumption.tree not in self._assumed]

    def _renamed(self) -> dict[str, Tree]:
        """The saved symbols' names, and the symbols that represent them now."""
        return {
            name: ("load", number.node._expr.name)
            for name, number in self._numbers.items()
            if not isinstance(number, (int, float))
        }


def as_tuples(data: Json) -> Any:
    """Lists of JSON as the tuples that they were."""
    return tuple([as_tuples(part) for part in data]) if type(data) is list else data
