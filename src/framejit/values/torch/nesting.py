"""Calls a function of the program on the side and makes a nested graph of what it recorded.

In: function values and operands of higher-order operators. Out: a `Nested`: the graph module, the
nodes from outside that it needs, and the structure of the result. Next: higher_order, autograd.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from framejit.exc import GraphBreak
from framejit.graph.nested import Stretch
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Raised, Value, parts_held
from framejit.values.core.effects import Effects
from framejit.values.core.space import Space
from framejit.values.torch.tensors import TensorValue, tensor_call


class Terms(NamedTuple):
    """What a function that is traced on the side is called, and what it may do."""

    what: str
    random: bool = False
    state: bool = False
    writes: bool = False
    #: Tensors that it may write to although it is given them.
    given: Iterable[Any] = ()


def trial(
    space: Space, function: Value, args: list[Value], terms: Terms, kwargs: Any = None
) -> tuple[Value, Stretch]:
    """Call ``function`` and say what it recorded; it may do nothing else."""
    what = terms.what
    stretch = Stretch(space.builder)
    effects = space.effects
    before, own = _counts(effects), len(space.new_namespaces)
    try:
        result = space.now(space.call(function, args, dict(kwargs or {})))
    except Raised as error:
        raise GraphBreak("FJ0122", f"{what} raises {error.value.python_type().__name__}")
    if before != _counts(effects):
        raise GraphBreak("FJ0122", f"{what} changes something outside")
    owners = [made.owner for made in space.new_namespaces[own:]]
    if any(isinstance(owner, TensorValue) and not owner.is_made for owner in owners):
        raise GraphBreak("FJ0122", f"{what} gives a tensor an attribute")
    stretch.close(*terms)
    return result, stretch


def trial_of_function(
    space: Space, function: Value, args: list[Value], terms: Terms, context: Value | None,
    kwargs: Any = None,
) -> tuple[Value, Stretch]:  # fmt: skip
    """A `trial` of what autograd calls as often as it likes: it may not write to objects that the
    program has made, either, but for the ``context`` of the call."""
    made: dict[Value, list[int]] = {}
    todo = [function, *args, *(kwargs or {}).values()]
    while todo:
        value = todo.pop()
        if value.source is None and value is not context and value not in made:
            made[value] = _parts_of(value)
            todo += parts_held(value)
    result, stretch = trial(space, function, args, terms, kwargs)
    if any(parts != _parts_of(value) for value, parts in made.items()):
        raise GraphBreak("FJ0122", f"{terms.what} changes something outside")
    return result, stretch


def _parts_of(value: Value) -> list[int]:
    return [id(part) for part in parts_held(value)]


def _counts(effects: Effects) -> tuple[int, ...]:
    return (
        effects.writes,
        len(effects.changed),
        effects.nesting,
        len(effects.expected),
        len(effects.unfinished),
    )


def tensors_in(value: Value) -> list[TensorValue]:
    """The tensors in tuples, lists and dicts, in order; constants may be among them."""
    value = value.realize()
    if isinstance(value, TensorValue):
        return [value]
    if value.is_constant:
        return []
    return [tensor for item in parts_of(value) for tensor in tensors_in(item)]


def parts_of(value: Value) -> list[Value]:
    """What a tuple, list or dict consists of; GraphBreak for anything else."""
    if type(value) in (TupleValue, ListValue):
        return list(value.items)  # type: ignore[attr-defined]
    if type(value) is DictValue and value.cls in (dict, OrderedDict, defaultdict):
        return [item for _, item in value.items.values()]
    raise GraphBreak(
        "FJ0122", f"a {value.describe()} is passed to, or answered by, a traced function"
    )


def leaves(value: Value) -> int:
    """How many parts that are no containers ``value`` has."""
    value = value.realize()
    if isinstance(value, TensorValue) or value.is_constant:
        return 1
    return sum(map(leaves, parts_of(value)))


def rebuild(like: Value, replace: Callable[[TensorValue], Value]) -> Value:
    """``like`` with other tensors."""
    like = like.realize()
    if isinstance(like, TensorValue):
        return replace(like)
    if like.is_constant:
        return like
    items = [rebuild(item, replace) for item in parts_of(like)]
    if type(like) is DictValue:
        return like.with_values(items)
    if isinstance(like, ListValue):
        return ListValue(items)
    return TupleValue(items, None, like.python_type())


def refilled(like: Value, tensors: list[Value]) -> Value:
    """``like`` with these tensors, in order."""
    rest = list(tensors)
    return rebuild(like, lambda _: rest.pop(0))


def structure(value: Value) -> Any:
    """Equal for values of the same structure and constants."""
    value = value.realize()
    if isinstance(value, TensorValue):
        return "tensor"
    if value.is_constant:
        return "constant", value.as_python()
    keys = list(value.items) if type(value) is DictValue else None
    return value.python_type(), keys, [structure(item) for item in parts_of(value)]


def stand_in(space: Space, tensor: TensorValue) -> TensorValue:
    """A tensor of the same metadata and of its own memory; its node remains unused."""
    return tensor_call(space, "clone", tensor)


class Nested:
    """A traced function: its result, its outputs as nodes, and what it uses from outside."""

    def __init__(self, space: Space, result: Value, stretch: Stretch) -> None:
        self.space = space
        self.result = result
        self.stretch = stretch
        self.outputs = [value.proxy(space) for value in tensors_in(result)]
        #: Whether the graph returns its one output itself instead of a tuple.
        self.unpacked = False

    def lifted(self, operands: list[Any]) -> list[Any]:
        """The nodes from outside that it uses beside its operands."""
        used = self.stretch.used_from_outside(self.outputs)
        return [node for node in used if node not in operands]

    def node(self, name: str, inputs: list[Any]) -> Any:
        """A node for the graph module with these inputs."""
        module = self.stretch.module(inputs, self.outputs, self.unpacked)
        return self.space.builder.add_module(name, module)
