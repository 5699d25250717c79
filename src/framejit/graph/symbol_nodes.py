"""Symbols as inputs and nodes of a graph, as AOTAutograd and Inductor expect them.

In: expressions that operations take as arguments, inputs with symbolic sizes. Out: one placeholder
per symbol in front of the tensors, nodes that compute the expressions, and for backends that trace
again fake inputs with these very symbols (`fake_inputs`). Used by builder. Next room: backends.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensorMode

from .expressions import OPERATIONS, Tree, symbols_of
from .fakes import FakeWorld, isolated
from .metadata import Composition, Example, TensorMeta
from .operation import Operation
from .ragged import is_ragged_size

if TYPE_CHECKING:
    from .symbols import Symbols

_Node = torch.fx.Node
_META = "symbolic_inputs"


class SymbolNodes:
    """The symbols of one graph. ``operations`` are the builder's; ``record`` records a function's
    call, of which it knows the example."""

    def __init__(
        self,
        graph: torch.fx.Graph,
        operations: dict[_Node, Operation],
        record: Callable[[Any, tuple[Any, ...], Any], _Node],
    ) -> None:
        self.graph = graph
        self.operations = operations
        self.record = record
        #: Placeholders by symbol, in order.
        self.placeholders: dict[str, _Node] = {}
        #: Symbols that an operation of the graph made (their values depend on data).
        self.made: dict[str, _Node] = {}
        #: Symbols that are a size of an operation's result: the node, the dimension, the size.
        self.sizes: dict[str, tuple[_Node, int, Any]] = {}
        #: What is computed of symbols, by its text: zeros have signs.
        self.computed: dict[str, tuple[Tree, _Node]] = {}

    @property
    def last(self) -> _Node:
        """The node that tensors' placeholders come after."""
        return next(reversed(self.placeholders.values()), self.graph._root)

    def placeholder(self, name: str, example: Any) -> _Node:
        """The node of a symbol."""
        node = self.placeholders.get(name)
        if node is None:
            with self.graph.inserting_after(self.last):
                node = self.graph.create_node("placeholder", name, (), {})
            self.placeholders[name] = node
            self.operations[node] = Operation(node, example)
        return node

    def argument(self, tree: Tree, symbols: Symbols) -> Any:
        """The node, or the number, for an expression."""
        kind = tree[0]
        if kind in ("int", "float"):
            return tree[1]
        if kind == "load":
            return self.result(tree[1]) or self.placeholder(tree[1], symbols.example(tree[1]))
        text = repr(tree)
        _, node = self.computed.get(text, (tree, None))
        if node is None:
            operands = tuple(self.argument(operand, symbols) for operand in tree[1:])
            target = OPERATIONS[kind].record
            known = [self.operations[o].example if isinstance(o, _Node) else o for o in operands]
            node = self.record(target, operands, target(*known))
            self.computed[text] = tree, node
        return node

    @property
    def data_dependent(self) -> bool:
        """Whether there are symbols that do not come from outside."""
        return bool(self.made or self.sizes)

    def result(self, name: str) -> _Node | None:
        """The node whose result a symbol is, if it does not come from outside."""
        node = self.made.get(name)
        if node is None and name in self.sizes:
            tensor, dim, example = self.sizes[name]
            target = torch.ops.aten.sym_size.int
            node = self.made[name] = self.record(target, (tensor, dim), example)
        return node

    def in_sizes(self, node: _Node, example: Example, symbols: Symbols) -> None:
        """A node's result may have sizes that depend on data: those symbols come from there."""
        for dim, size in enumerate(example.meta.shape):
            if not isinstance(size, torch.SymInt) or is_ragged_size(size):
                continue
            if size.node.expr.is_Symbol:
                name = str(size.node.expr)
                if not symbols.are_inputs(("load", name)) and name not in self.made:
                    self.sizes.setdefault(name, (node, dim, size))

    def settle(self, symbols: Symbols, needed: set[str]) -> list[str]:
        """Drop the placeholders that nothing needs; write symbols that turned out to have one
        value as that value. Returns the rest, in order."""
        kept = []
        for name, node in list(self.placeholders.items()):
            value = symbols.fixed(name)
            if value is not None:
                node.replace_all_uses_with(value)  # type: ignore[arg-type]
            elif node.users or name in needed:
                kept.append(name)
                continue
            self.graph.erase_node(node)
            del self.placeholders[name]
        return kept


def free_symbols(meta: TensorMeta | Composition, symbols: Symbols) -> list[str]:
    """The names of the symbols in a tensor's sizes and strides."""
    if isinstance(meta, Composition):
        parts = meta.parts.values()
        inner = [free_symbols(part.composition or part.born, symbols) for part in parts]
        return list(dict.fromkeys(itertools.chain(*inner)))
    if not meta.symbolic:
        return []
    names: dict[str, None] = {}
    for part in (*meta.shape, *meta.stride):
        if isinstance(part, torch.SymInt) and not is_ragged_size(part):
            names.update(dict.fromkeys(symbols_of(symbols.tree(part))))
    return list(names)


class SymbolicInputs(NamedTuple):
    """What `fake_inputs` needs to know of a graph: its symbols, and the tensors that it takes."""

    symbols: Symbols
    metas: list[TensorMeta | Composition]

    def __deepcopy__(self, memo: dict[int, Any]) -> SymbolicInputs:
        """Itself, for backends that copy the graph module: the copy has the same symbols."""
        return self


def remember_inputs(
    module: torch.fx.GraphModule, symbols: Symbols, metas: list[TensorMeta | Composition]
) -> None:
    """Note the inputs' symbolic sizes on a finished graph."""
    module.meta[_META] = SymbolicInputs(symbols, metas)


def symbolic_inputs(module: torch.fx.GraphModule) -> SymbolicInputs | None:
    """What `remember_inputs` noted; None for a graph without symbols."""
    known: SymbolicInputs | None = module.meta.get(_META)
    return known


def fake_inputs(
    module: torch.fx.GraphModule, examples: Sequence[Any]
) -> tuple[FakeTensorMode, list[Any]] | None:
    """A new fake mode and the graph's inputs as fakes of it; None for a graph without symbols.

    For backends that trace the graph again: fakes that the capture changed in place must not be met
    again, but the symbols must be the same.
    """
    known = symbolic_inputs(module)
    if known is None:
        return None
    world = FakeWorld(known.symbols)
    world.mode.traced_again = True  # type: ignore[attr-defined]
    made: list[Any] = []
    built: dict[int, torch.Tensor] = {}
    with isolated():
        metas = iter(known.metas)
        for example in examples:
            if not isinstance(example, torch.Tensor):
                made.append(example)
                continue
            meta = next(metas)
            if isinstance(meta, Composition):
                made.append(_composed(world, meta, example, built))
            else:
                made.append(world.build(meta) if meta.symbolic else world.convert(example))
    return world.mode, made


def _composed(
    world: FakeWorld, how: Composition, example: torch.Tensor, built: dict[int, torch.Tensor]
) -> torch.Tensor:
    """A new fake of a tensor made of others; ``built``: parts by their examples, once each."""
    inner: dict[str, torch.Tensor] = {}
    for name, part in how.parts.items():
        if id(part) not in built:
            real = getattr(example, name)
            if part.composition is not None:
                built[id(part)] = _composed(world, part.composition, real, built)
            else:
                varies = part.born.symbolic
                built[id(part)] = world.build(part.born) if varies else world.convert(real)
        inner[name] = built[id(part)]
    with world.running():
        return world.compose(how, inner)
