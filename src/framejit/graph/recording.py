"""What has been recorded of a graph, and what it does.

In: operations as they are made. Out: which inputs it writes to, whether it may raise or draws
random numbers, what is known of a node. Next: builder.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container, Iterable
from typing import Any

import torch
import torch.fx

from .composites import Composite, computes, expand
from .fakes import FakeWorld
from .global_state import GlobalState
from .lazy import CapturedGraph
from .metadata import Example, memory_of_all
from .operation import Operation
from .propagation import lower
from .undo import LIMIT, can_be_saved

_Node = torch.fx.Node


class Recording:
    """The operations of one graph, and questions about them."""

    world: FakeWorld
    #: Torch's state where the graph begins.
    begun: GlobalState

    def __init__(self) -> None:
        self.graph = CapturedGraph()
        #: What is known of every node, in the order in which they were made; a repeated call may be
        #: one of them.
        self.outer: dict[_Node, Operation] = {}
        #: Those that are no inputs, in order.
        self.sequence: list[Operation] = []
        #: The nodes that stand for a repeated call; what was put in the place of such nodes, and
        #: how often somebody has looked inside.
        self.composites: dict[_Node, Composite] = {}
        self.expanded: dict[_Node, list[_Node]] = {}
        self.looked_inside = 0
        #: After `finish`: what gives a node its `meta`.
        self.give_meta: Callable[[_Node], None] | None = None
        #: The placeholders of tensors in order, and the real tensors.
        self.placeholders: list[Operation] = []
        self.inputs: list[torch.Tensor] = []
        #: After `finish`: what the graph returns, and which of `inputs`, by position, it needs.
        self.outputs: list[_Node] = []
        self.used_inputs: list[int] = []
        #: After `finish`: the symbols that the graph takes in front of its tensors.
        self.used_symbols: list[str] = []
        self.modules: dict[str, torch.nn.Module] = {}
        #: The operations that write to something.
        self.writers: list[Operation] = []
        #: The nodes that call autograd.
        self.differentiated: list[_Node] = []
        #: What the graph has made that has begun to require a gradient.
        self.new_leaves: set[_Node] = set()

    @property
    def operations(self) -> dict[_Node, Operation]:
        """What is known of every node, in the order in which they were made. Asking for all of them
        puts operations in the place of repeated calls; `operation` does not."""
        self.flatten()
        return self.outer

    @property
    def recorded(self) -> list[Operation]:
        """Those of `operations` that are no inputs, in order."""
        self.flatten()
        return self.sequence

    def operation(self, node: _Node) -> Operation:
        """What is known of a node."""
        return self.outer[node]

    def flatten(self) -> None:
        """Put operations in the place of repeated calls."""
        if self.composites:
            composites = dict(self.composites)
            self.composites.clear()
            self.looked_inside += 1
            parts = expand(self, composites)
            self.expanded.update(parts)
            if self.give_meta is not None:
                for node in [node for nodes in parts.values() for node in reversed(nodes)]:
                    if node.users or self.outer[node].called:
                        self.give_meta(node)
                    else:
                        self.graph.erase_node(node)

    def since(self, last: Operation | None) -> list[Operation]:
        """What was recorded after an operation."""
        found: list[Operation] = []
        for operation in reversed(self.sequence):
            if operation is last:
                break
            found.append(operation)
        return found[::-1]

    @property
    def only_computes(self) -> bool:
        """Do the operations nothing but compute tensors, without a history?"""
        acts = self.writers or self.differentiated or self.new_leaves or self.modules
        gradients = self.begun.grad
        return not acts and all(computes(one, gradients) for one in self.sequence)

    @property
    def op_count(self) -> int:
        """How many operations were recorded (inputs and nested graphs are none)."""
        inside = sum(
            one.template.recorded_count - one.template.width for one in self.composites.values()
        )
        return len(self.sequence) - len(self.modules) + inside

    @property
    def draws_random(self) -> bool:
        """Whether running the graph advances a random number generator."""
        return any(operation.random for operation in self.sequence)

    @property
    def exchanges(self) -> bool:
        """Whether running the graph exchanges data with other processes: it cannot run twice."""
        return any(operation.exchanges for operation in self.sequence)

    @property
    def mutated_inputs(self) -> list[int]:
        """Which of `inputs` the graph may write to, directly or through a view."""
        return self._inputs_among(self.written)

    @property
    def written(self) -> list[Example]:
        """What it writes to."""
        return [example for operation in self.writers for example in operation.writes]

    def set_aside_idle_settings(self, before: dict[tuple[Any, tuple[Any, ...]], Any]) -> None:
        """Leave out what sets a state that is set already, or that no operation runs under.
        ``before``: what each setter and what it selects have found at the start; what is still in
        force at the end is set again after the graph, if there is an operation or not, and the
        cache of autocast is cleared after it where the graph would do so last."""
        for one in self.last_clearings():
            one.sets_state, one.aside = False, True
        now, pending = dict(before), {}
        computing = False
        for one in self.sequence:
            key = next((k for k in before if one.sets_state and _sets(one, k)), None)
            if key is not None:
                one.sets_state, one.aside = False, True
                pending[key] = one
            elif self._computes(one):
                computing = True
                _settle(pending, now)
        if computing:
            _settle(pending, now)

    def last_clearings(self) -> list[Operation]:
        """The operations that clear autocast's cache of casts after all that compute."""
        found = []
        for one in reversed(self.sequence):
            if one.node.target is torch.clear_autocast_cache:
                found.append(one)
            elif self._computes(one) and not one.sets_state:
                break
        return found

    def _computes(self, one: Operation) -> bool:
        """Is it called, and no choice of one of several results? (An index into a tensor is an
        operation.)"""
        if one.aside or not one.node.op.startswith("call"):
            return False
        whole = one.node.args[0] if one.node.target is operator.getitem else None
        return not (isinstance(whole, _Node) and isinstance(self.example(whole), (tuple, list)))

    def reads_what_it_writes(self) -> bool:
        """Is there an operation that reads an input, or a view of it, which another one writes?"""
        memory = memory_of_all([self.placeholders[i].example for i in self.mutated_inputs])
        readers = [one.node for one in self.recorded if one.called and not one.writes]
        read = {used for node in readers for used in node.all_input_nodes}
        return any(id(one) in memory for node in read for one in self.operations[node].examples)

    def is_written(self, node: _Node) -> bool:
        """Does an operation write to this tensor, or to one that shares its memory?"""
        return id(self.example(node)) in memory_of_all(self.written)

    def _inputs_among(self, written: list[Example]) -> list[int]:
        memory = memory_of_all(written)
        return [i for i, one in enumerate(self.placeholders) if id(one.example) in memory]

    def savable_writes(self, written: list[Example]) -> list[int] | None:
        """Which of `inputs` are written to, if copies of all of them are cheap and enough to undo
        the writes; else None."""
        found = self._inputs_among(written)
        size = 0
        for index in found:
            tensor, example = self.inputs[index], self.placeholders[index].example
            shapes = [(meta.shape, meta.stride) for meta in (example.meta, example.born)]
            if not can_be_saved(tensor) or str(shapes[0]) != str(shapes[1]):
                return None
            size += tensor.nbytes
        return found if size <= LIMIT else None

    def may_raise(self) -> bool:
        """Whether the finished graph has operations that raise for some data."""
        raising = [one.node for one in self.sequence if one.raises]
        return bool(raising) and not set(self.graph.nodes).isdisjoint(raising)

    def arguments_among(self, indices: Container[int]) -> list[int]:
        """Positions of those of `inputs` among what the finished graph is called with."""
        offset = len(self.used_symbols)
        return [offset + i for i, index in enumerate(self.used_inputs) if index in indices]

    def saved_inputs(self) -> tuple[int, ...]:
        """Positions, among what the finished graph is called with, of the inputs to put back when
        it raises, so that the program can run again; empty if there are none, or it cannot."""
        if not self.writers or not self.may_raise():
            return ()
        return tuple(self.arguments_among(self.savable_writes(self.written) or ()))

    def first_effect(self) -> _Node | None:
        """The first node that writes to an input, draws random numbers or exchanges data."""
        inputs = {id(one.example) for one in self.placeholders}
        for operation in self.sequence:
            once = operation.random or operation.exchanges
            if once or not inputs.isdisjoint(operation.written):
                return operation.node
        return None

    def example(self, node: _Node) -> Any:
        """What is known of a node's value now: an `Example`, a container of them, a constant."""
        return self.outer[node].example

    def fake(self, node: _Node) -> Any:
        """The node's value with fake tensors in place of examples."""
        return lower(self.example(node))

    def replace_module(self, node: _Node, module: torch.nn.Module) -> None:
        """A nested graph that was not known yet when its node was made."""
        self.modules[str(node.target)] = self.outer[node].example = module

    def origin(self, node: _Node) -> _Node:
        """The first node whose value is this very tensor: operations may return an operand, such as
        a copy that is not needed, or what is given as ``out=``."""
        example = self.example(node)
        return next(one.node for one in self.outer.values() if one.example is example)

    def share(self, node: _Node, others: Iterable[_Node]) -> bool:
        """May a tensor share memory with one of the others? Numbers do not."""
        memory = self.outer[node].memory
        return any(id(self.example(other)) in memory for other in others)

    def has_views(self, tensors: Iterable[_Node]) -> bool:
        """Have operations made views of these that autograd knows as such?"""
        known = set(tensors)
        own = {id(self.example(node)) for node in known}
        memory = memory_of_all(self.example(node) for node in known)
        for operation in self.recorded:
            node = operation.node
            if known.isdisjoint(node.all_input_nodes) or _detaches(node):
                continue
            found = {id(example) for example in operation.examples}
            if not found <= own and not memory.isdisjoint(found):
                return True
        return False

    def varying_inputs(self) -> list[bool]:
        """Of each of the inputs in `used_inputs`: did its sizes or strides begin as symbols?"""
        return [self.placeholders[index].example.born.symbolic for index in self.used_inputs]


def _detaches(node: _Node) -> bool:
    return node.target == "detach" or (node.target is getattr and node.args[1] == "data")


def _sets(one: Operation, key: tuple[Any, tuple[Any, ...]]) -> bool:
    setter, selector = key
    return (
        one.sets_state and one.node.target is setter and one.node.args[: len(selector)] == selector
    )


def _settle(pending: dict[Any, Operation], now: dict[Any, Any]) -> None:
    """What is set before an operation stays, if that changes anything."""
    for key, one in pending.items():
        value = one.node.args[len(key[1])]
        if value != now[key]:
            now[key], one.sets_state, one.aside = value, True, False
    pending.clear()
