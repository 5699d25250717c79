"""The operations and the result of a recorded call, for other arguments.

In: a recording whose facts hold, and where its sources are now (`grafting`). Out: the operations in
the graph, and the value that the call returns. Next: call_recordings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from framejit.graph.composites import Template
from framejit.graph.fragment import Differs, Repeat
from framejit.interpreter.call_arguments import Arguments, Copies
from framejit.interpreter.grafting import Graft, Spoiled
from framejit.source import Source
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.operations import LazyValue
from framejit.values.core.space import Space
from framejit.values.torch.tensors import TensorValue
from framejit.values.torch.wrappers import WrapperValue


class Unreturnable(Exception):
    """A call returned something that cannot be made again of other parts."""


def returned(value: Value, given: set[Value]) -> Iterator[Source]:
    """The sources of what a call returned, which consists of what it was ``given``, of existing
    objects, computed tensors, constants and new containers. Raises Unreturnable for others."""
    value = _plain(value)
    if value in given:
        return
    if value.source is not None:
        yield value.source
    elif isinstance(value, TensorValue):
        known = value.assigned_grad is None and not value.hook_dicts
        known = known and value.namespace is None
        if not known or type(value) not in (TensorValue, WrapperValue):
            raise Unreturnable
    elif type(value) in (ListValue, TupleValue):
        for item in value.items:  # type: ignore[attr-defined]
            yield from returned(item, given)
    elif type(value) is DictValue:
        if value.cls is not dict or value.history or any(type(k) is not str for k in value.pairs):
            raise Unreturnable
        for _, item in value.pairs.values():
            yield from returned(item, given)
    elif type(value) is not ConstantValue:
        raise Unreturnable


def computed_nodes(value: Value, given: set[Value]) -> list[Any]:
    """The nodes of the computed tensors that a call returned."""
    value = _plain(value)
    if value in given or value.source is not None:
        return []
    if isinstance(value, TensorValue):
        return [value.node]
    parts: list[Value] = []
    if type(value) in (ListValue, TupleValue):
        parts = list(value.items)  # type: ignore[attr-defined]
    elif type(value) is DictValue:
        parts = [item for _, item in value.pairs.values()]
    found = [node for part in parts for node in computed_nodes(part, given)]
    return list(dict.fromkeys(found))


def _plain(value: Value) -> Value:
    """The value that is known by now, if somebody has looked at it."""
    return value.value if type(value) is LazyValue and value.value is not None else value


class Repetition:
    """One call that is repeated."""

    def __init__(
        self, space: Space, recorded: Space, copies: Copies, arguments: Arguments, graft: Graft
    ) -> None:
        self._space = space
        self._recorded = recorded
        self._graft = graft
        self._arguments = arguments
        self._copies = copies
        self._made: dict[Value, Value] = dict(zip(copies.values, arguments.places, strict=True))
        self._nodes: dict[Any, Any] = {}

    def operations(self, trace: Any, template: Template | None) -> list[Any]:
        """Record the operations, or a ``template`` as one; ``trace(inner)`` is the stack trace of
        one. Returns the nodes."""
        space, recorded = self._space, self._recorded
        again = Repeat(space.builder, recorded.builder)
        inputs = {value.node: value for value in recorded.graph_inputs}

        def placed(node: Any) -> Any:
            return self._graft.tensor_at(inputs[node].source).proxy(space)

        try:
            for number in self._arguments.tensors:
                there, here = self._copies.values[number], self._arguments.places[number]
                assert isinstance(there, TensorValue) and isinstance(here, TensorValue)
                again.give(there.node, here.proxy(space))
            if template is not None:
                made = again.run_as_one(template, placed, trace)
            else:
                made = again.run(placed, trace)
        except Differs:
            raise Spoiled("an operation is not what it was") from None
        self._nodes = again.nodes
        return made

    def result(self, value: Value) -> Value:
        """What ``value`` of the recording is here."""
        value = _plain(value)
        known = self._made.get(value)
        if known is None:
            known = self._made[value] = self._new(value)
        return known

    def _new(self, value: Any) -> Value:
        space = self._space
        if value.source is not None:
            source = self._graft.known_from(value.source)
            if type(value) is ConstantValue and self._recorded.preloaded(value.source) is None:
                return ConstantValue(value.value, source)  # a fact about its container says it
            loaded = space.load(source, self._graft.object_at(value.source))
            if type(value) is not LazyValue:  # it was looked at: a constant is not loaded
                loaded.realize()
            return loaded
        if isinstance(value, TensorValue):
            node = self._nodes[value.node]
            example = space.builder.example(node)
            wraps = example.meta.wraps
            made = space.wrapper(node, example) if wraps else TensorValue(node, example)
            made.step = space.step
            return made
        if type(value) is ListValue:
            return ListValue([self.result(item) for item in value.items])
        if type(value) is TupleValue:
            items = [self.result(item) for item in value.items]
            return TupleValue(items, None, value.python_type())
        if type(value) is DictValue:
            pairs = value.pairs.items()
            return DictValue({key: (pair[0], self.result(pair[1])) for key, pair in pairs})
        return value  # type: ignore[no-any-return]
