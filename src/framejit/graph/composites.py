"""Repeated calls as one operation each, until somebody looks inside.

In: what a call recorded on its own, and the tensors that it gets where it is repeated. Out: one
node, which calls a function that is made once for all repetitions; or in its place the operations
that it stands for, as if they had been recorded there. Only calls that do nothing but compute new
tensors, without gradients and of static sizes, are one operation: nothing that is asked about a
graph depends on what is inside of these. Next: builder.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch.fx
from torch.fx.graph import _Namespace
from torch.fx.node import map_aggregate

from .fakes import FakeWorld
from .lazy import CapturedGraph, LazyGraphModule
from .metadata import Example, examples_in, join
from .operation import Operation
from .propagation import like
from .refusals import may_be_refused
from .resampling import is_traced_otherwise

if TYPE_CHECKING:
    from .builder import GraphBuilder
    from .recording import Recording

_Node = torch.fx.Node


class Template:
    """What a recorded call computes: of ``inputs``, the placeholders that it needs, ``outputs``.

    As the target of a node it stands for the call; `function` is what runs.
    """

    __name__ = "repeated_call"

    def __init__(self, recorded: GraphBuilder, outputs: Sequence[_Node]) -> None:
        self.recorded = recorded
        self.inputs = [one.node for one in recorded.placeholders if one.node.users]
        self.outputs = list(outputs)
        used = {one.node for one in recorded.recorded if one.called or one.node.users}
        used.update(outputs)
        #: How many operations a graph has for it; how many nodes it is as one.
        self.width = 1 if len(self.outputs) == 1 else 1 + len(self.outputs)
        self.count = sum(node.op.startswith("call") for node in used)
        examples = [one for known in recorded.operations.values() for one in known.examples]
        there = set(map(id, examples))
        groups = {id(one.group): one.group for one in examples if one.group is not None}
        #: Which of its tensors may share memory.
        self.groups = [[one for one in some if id(one) in there] for some in groups.values()]
        spelled = CapturedGraph()._target_to_str
        #: What its operations are named after.
        self.names = [spelled(one.node.target) for one in recorded.recorded]
        self.position = {one.node: i for i, one in enumerate(recorded.recorded)}
        self.recorded_count = len(recorded.recorded)
        self.raises = any(one.raises for one in recorded.recorded)
        self._function: Callable[..., Any] | None = None

    def __call__(self, *tensors: Any) -> Any:
        return self.function(*tensors)

    def name_in(self, graph: torch.fx.Graph) -> list[str]:
        """The names that its operations get there: those of operations that come later follow."""
        create = graph._graph_namespace.create_name
        return [create(name, None) for name in self.names]

    @property
    def targets(self) -> set[Any]:
        """What its operations call."""
        return {one.node.target for one in self.recorded.recorded}

    @property
    def function(self) -> Callable[..., Any]:
        """Runs the call operation by operation."""
        if self._function is None:
            run = LazyGraphModule({}, self._graph(), "GraphModule").forward

            def repeated_call(*tensors: Any) -> Any:
                return run(*tensors)

            self._function = repeated_call
        return self._function

    def _graph(self) -> torch.fx.Graph:
        graph = CapturedGraph()
        copies = {node: graph.placeholder(node.name) for node in self.inputs}
        for one in self.recorded.recorded:
            if one.called or one.node.users or one.node in self.outputs:
                copies[one.node] = graph.node_copy(one.node, copies.__getitem__)
        results = tuple([copies[node] for node in self.outputs])
        graph.output(results[0] if len(results) == 1 else results)
        return graph


def template_of(recorded: GraphBuilder, outputs: Sequence[_Node]) -> Template | None:
    """What a call has recorded, if it can be one operation where it is repeated; ``outputs``: what
    it returns of that."""
    if not outputs or recorded.world.symbols_if_any is not None or is_traced_otherwise(recorded):
        return None
    if not recorded.only_computes or not all(one.examples for one in recorded.recorded):
        return None  # or an operation gives a number, of which some backends make something else
    given = [one.example for one in recorded.placeholders]
    if not all(type(example) is Example and example.meta.is_plain for example in given):
        return None
    if not _are_new([recorded.example(node) for node in outputs], given):
        return None
    live = set(outputs)
    for one in reversed(recorded.recorded):
        if one.node in live:
            live.update(one.node.all_input_nodes)
        elif one.called and (one.raises or may_be_refused(one.node, recorded.example)):
            return None  # nothing that a graph needs, but it must run
    return Template(recorded, outputs)


def computes(one: Operation, gradients: bool) -> bool:
    """Does it nothing but compute plain tensors or constants, or raise? With ``gradients`` on, they
    have none. What was set aside goes."""
    acts = one.effect or one.exchanges or one.transform is not None
    if acts or (one.aside and one.node.users):
        return False
    metas = [example.meta for example in one.examples]
    return not any(m.wraps or not m.is_plain or (gradients and m.requires_grad) for m in metas)


def _are_new(results: list[Any], given: list[Example]) -> bool:
    """Are they tensors that share memory with nothing outside, nor with each other?"""
    if not all(type(one) is Example and one.meta is one.born for one in results):
        return False
    if any(one.meta.requires_grad for one in results):
        return False
    taken = set(map(id, given))
    for one in results:
        memory = set(map(id, one.sharing))
        if not taken.isdisjoint(memory):
            return False
        taken |= memory
    return True


def call_composite(
    builder: GraphBuilder, template: Template, given: dict[_Node, _Node], new: list[_Node],
    trace: Callable[[Any], Any], results: list[Example],
) -> Composite:  # fmt: skip
    """Record a repeated call as one operation, see `Composite`; ``results``: what it gives."""
    args = tuple([given[node] for node in template.inputs])
    names = template.name_in(builder.graph)
    whole = results[0] if template.width == 1 else tuple(results)
    node = builder.record(template, args, whole)
    operation, nodes = builder.operation(node), [node]
    operation.called, operation.raises = True, template.raises
    if template.width > 1:
        with unnamed(builder.graph):
            nodes = [builder.unpack(node, whole, i)[0] for i in range(len(results))]
    for one, then in zip(nodes, template.outputs, strict=True):
        rename(one, names[template.position[then]])
    outputs = dict(zip(template.outputs, nodes, strict=True))
    made = builder.composites[node] = Composite(template, node, given, new, outputs, trace, names)
    return made


@dataclasses.dataclass(slots=True, eq=False)
class Composite:
    """One repetition: ``node`` stands for the call."""

    template: Template
    node: _Node
    #: The template's placeholders -> nodes here; of these the inputs that were made for it.
    given: dict[_Node, _Node]
    new: list[_Node]
    #: The template's outputs -> nodes here.
    outputs: dict[_Node, _Node]
    #: Makes the stack trace of an operation out of the recorded one.
    trace: Callable[[Any], Any]
    #: The names of its operations.
    names: list[str]

    def expand(self, builder: Recording, before: dict[_Node, Operation]) -> list[_Node]:
        """Put the operations in place of the node; ``before``: what was known of the nodes.
        Returns those of the operations."""
        nodes, graph = dict(self.given), builder.graph
        twins = {
            id(self.template.recorded.example(then)): before[here].example
            for then, here in (*self.given.items(), *self.outputs.items())
        }
        made, new, cursor = [], set(self.new), self.node.prev
        names = iter(self.names)
        for node, one in self.template.recorded.operations.items():
            if node.op == "placeholder":
                if nodes[node] in new:
                    builder.outer[nodes[node]] = before[nodes[node]]
                continue
            here = self.outputs.get(node)
            if here is not None and here._erased:  # a result that nobody needs is none of several
                here = None
            args, kwargs = map_aggregate((node.args, node.kwargs), lambda a: _at(nodes, a))  # type: ignore[misc]
            if here is None:
                with graph.inserting_after(cursor):
                    here = graph.create_node(node.op, node.target)
            else:
                if here is not self.node:
                    cursor.append(here)
                here.op, here.target = node.op, node.target
            rename(here, next(names))
            here.args, here.kwargs = args, kwargs
            trace = node.meta.get("stack_trace")
            if trace is not None:
                here.meta["stack_trace"] = self.trace(trace)
            nodes[node], cursor = here, here
            made.append(here)
            self._note(builder, one, here, before.get(here), twins)
        for group in self.template.groups:
            join([twins[id(member)] for member in group])
        if len(self.outputs) > 1:
            graph.erase_node(self.node)
        return made

    def _note(
        self, builder: Recording, one: Operation, here: _Node, known: Operation | None,
        twins: dict[int, Example],
    ) -> None:  # fmt: skip
        """What is known of one of the operations; ``twins``: what corresponds to the examples of
        the recording."""
        example = _twin(builder.world, one.example, twins)
        if known is None:
            known = Operation(here, example)
        known.example, known.called, known.fresh = example, one.called, one.fresh
        known.raises = one.raises
        builder.outer[here] = known


@contextlib.contextmanager
def unnamed(graph: torch.fx.Graph) -> Iterator[None]:
    """A block in which nodes are made that get their names after it."""
    names, graph._graph_namespace = graph._graph_namespace, _Namespace()
    try:
        yield
    finally:
        graph._graph_namespace = names


def rename(node: _Node, name: str) -> None:
    """Give a node a name that `Template.name_in` has made."""
    node.name = name
    node.graph._graph_namespace._obj_to_name[node] = name


def _at(nodes: dict[_Node, _Node], part: Any) -> Any:
    return nodes[part] if isinstance(part, _Node) else part


def _twin(world: FakeWorld, then: Any, twins: dict[int, Example]) -> Any:
    """The result here that corresponds to ``then``."""
    if type(then) is Example:
        twin = twins.get(id(then))
        if twin is None:
            twin = twins[id(then)] = Example(world, then.born)
        return twin
    if not isinstance(then, (tuple, list)) or not examples_in(then):
        return then
    return like(then, [_twin(world, part, twins) for part in then])


def expand(builder: Recording, composites: dict[_Node, Composite]) -> dict[_Node, list[_Node]]:
    """Put the operations of repeated calls in place of their nodes. Returns which these are."""
    before, computed = dict(builder.outer), {id(one) for one in builder.sequence}
    moved = {
        node for one in composites.values() for node in (*one.new, *one.outputs.values())
        if node is not one.node
    }  # fmt: skip
    builder.outer.clear()
    parts: dict[_Node, list[_Node]] = {}
    for node, operation in before.items():
        composite = composites.get(node)
        if composite is not None:
            with unnamed(builder.graph):
                parts[node] = composite.expand(builder, before)
            computed.update(id(builder.outer[one]) for one in parts[node])
        elif node not in moved:
            builder.outer[node] = operation
    for node in [node for some in parts.values() for node in some]:
        rename(node, node.name)
    builder.sequence[:] = [one for one in builder.outer.values() if id(one) in computed]
    return parts
