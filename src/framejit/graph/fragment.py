"""Operations that one graph has recorded, recorded again in another one with other inputs.

In: the builder that a call was recorded with on its own, what its inputs are in the graph of the
caller. Out: the same operations there, as if the call had been executed: each is propagated with
its own arguments, and must turn out to be what it was. Next room: guards.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import torch.fx
from torch.fx.node import map_aggregate

from .builder import GraphBuilder
from .composites import Template, call_composite
from .leader import Leader
from .metadata import Example, TensorMeta
from .operation import Operation

_Node = torch.fx.Node


class Differs(Exception):
    """An operation is not what it was when it was recorded."""


def can_be_repeated(builder: GraphBuilder) -> bool:
    """Does a recording consist of operations that mean the same wherever they stand?"""
    if builder.modules or builder.symbol_nodes.data_dependent:
        return False
    if builder.tried:
        return False
    if any(one.example.reshaped for one in builder.placeholders):
        return False
    computed = {node for _, node in builder.symbol_nodes.computed.values()}
    return all(
        one.called or one.node in computed or one.node.target is operator.getitem
        for one in builder.recorded
    )


class Repeat:
    """One repetition. ``nodes`` and ``examples`` say what corresponds to what was recorded."""

    def __init__(self, into: GraphBuilder, recorded: GraphBuilder) -> None:
        self.into = into
        self.recorded = recorded
        self.nodes: dict[_Node, Any] = {}
        self._examples: dict[int, Example] = {}
        self._taken: dict[int, Example] = {}
        #: Are there writes, after which tensors may look otherwise?
        self._writes = bool(recorded.writers)
        symbol_nodes = recorded.symbol_nodes
        self._symbols = {node: ("load", name) for name, node in symbol_nodes.placeholders.items()}
        self._symbols.update({node: tree for tree, node in symbol_nodes.computed.values()})

    def give(self, node: _Node, here: _Node) -> None:
        """``here`` is what the recorded input ``node`` is now."""
        self.nodes[node] = here
        self._agree(self.recorded.example(node), self.into.example(here))

    def run(self, placed: Callable[[_Node], _Node], trace: Callable[[Any], Any]) -> list[_Node]:
        """Record all operations; ``placed`` finds the inputs that were not given, ``trace`` makes
        the stack trace of an operation out of the recorded one. Returns the new nodes, in order."""
        leader = self.into.leader
        standing = self.into.leader = _Standing(leader, trace)
        try:
            return self._run(placed, standing)
        finally:
            self.into.leader = leader

    def run_as_one(
        self, template: Template, placed: Callable[[_Node], _Node], trace: Callable[[Any], Any]
    ) -> list[_Node]:
        """Record all operations as one. Returns its nodes."""
        new = []
        for one in self.recorded.placeholders:
            if one.node not in self.nodes:
                count = len(self.into.outer)
                here = placed(one.node)
                if len(self.into.outer) > count:
                    new.append(here)
                self.give(one.node, here)
        results = [self._again(self.recorded.example(node)) for node in template.outputs]
        given = {one.node: self.nodes[one.node] for one in self.recorded.placeholders}
        made = call_composite(self.into, template, given, new, trace, results)
        self.nodes.update(made.outputs)
        return list(dict.fromkeys([made.node, *made.outputs.values()]))

    def _run(self, placed: Callable[[_Node], _Node], standing: _Standing) -> list[_Node]:
        made = []
        for node, operation in self.recorded.operations.items():
            if node in self.nodes:
                continue
            tree = self._symbols.get(node)
            if tree is not None:
                self.nodes[node] = self.into.symbol_nodes.argument(tree, self.into.symbols)
            elif node.op == "placeholder":
                self.give(node, placed(node))
            else:
                standing.inner = node.meta.get("stack_trace")
                self.nodes[node] = here = self._record(node, operation)
                made.append(here)
        return made

    def _record(self, node: _Node, operation: Operation) -> _Node:
        args: Any
        kwargs: Any
        args, kwargs = map_aggregate((node.args, node.kwargs), self._here)
        into, target = self.into, node.target
        example: Any
        if operation.fresh and not self._writes and self._is_new(operation.example):
            return into.repeat(operation, args, kwargs, self._again(operation.example))
        if not operation.called:
            here, example = into.unpack(args[0], into.example(args[0]), args[1])
        elif isinstance(target, str):
            here, example = into.call_method(target, args, kwargs)
        else:
            here, example = into.call_function(target, args, kwargs)
        self._agree(operation.example, example)
        return here

    def _is_new(self, example: Any) -> bool:
        """Is it a tensor, or several, that no operand is?"""
        if type(example) is Example:
            return id(example) not in self._examples
        return type(example) in (tuple, list) and all(map(self._is_new, example))

    def _again(self, example: Any) -> Any:
        """Other tensors with the same metadata."""
        if type(example) is not Example:
            return type(example)([self._again(part) for part in example])
        made = self._examples[id(example)] = Example(self.into.world, example.born)
        self._taken[id(made)] = example
        return made

    def _here(self, part: Any) -> Any:
        return self.nodes[part] if type(part) is _Node else part

    def _agree(self, then: Any, now: Any) -> None:
        """The result must be what it was: metadata, and which tensors are one object."""
        if type(then) is not type(now):
            raise Differs
        if type(then) is Example:
            first = self._examples.setdefault(id(then), now)
            back = self._taken.setdefault(id(now), then)
            if first is not now or back is not then or not _alike(then.meta, now.meta):
                raise Differs
        elif isinstance(then, (tuple, list)):
            if len(then) != len(now):
                raise Differs
            for one, two in zip(then, now, strict=True):
                self._agree(one, two)
        elif then is not now and str(then) != str(now):  # comparing symbols would add guards
            raise Differs


def _alike(one: TensorMeta, two: TensorMeta) -> bool:
    """Equal metadata is one object, except where it has symbols."""
    return one is two or (one.symbolic and two.symbolic and repr_of(one) == repr_of(two))


def repr_of(meta: TensorMeta) -> str:
    """All of a tensor's metadata as text."""
    return " ".join(str(getattr(meta, name)) for name in TensorMeta.__slots__)


class _Standing(Leader):
    """Leads while operations are repeated: the program stands at the call. ``inner``: the recorded
    stack trace of the operation."""

    def __init__(self, leader: Leader, trace: Callable[[Any], Any]) -> None:
        self._leader = leader
        self._trace = trace
        self.inner: Any = None

    def stack_trace(self) -> Any:
        return self._trace(self.inner)

    def executing(self) -> tuple[types.CodeType, int] | None:
        return self._leader.executing()

    def in_try(self) -> bool:
        return self._leader.in_try()
