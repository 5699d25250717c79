"""Objects of classes that torch takes for opaque, and nodes that hold such objects.

In: existing objects of these classes, calls of the classes, calls of functions with such arguments.
Out: constants, guarded by equality; nodes whose target holds what a graph cannot spell, which is
guarded by equality or identity. Next room: graph.
"""

from __future__ import annotations

from typing import Any

from framejit.exc import GraphBreak
from framejit.graph.holding import Holding, Place
from framejit.graph.opaque import is_handle_class, is_value_class
from framejit.source import Source
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue, fold
from framejit.values.core.registry import LOOKASIDE_RULES, Rank, Result, wraps_classes
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.torch.tensors import TensorValue, from_fx


@wraps_classes(is_value_class, Rank.CONSTANT)
def _wrap_value(space: Space, source: Source, obj: Any) -> Value:
    space.guard(source, "EQUALS_MATCH", obj)
    return ConstantValue(obj, source)


def _makes_value(function: Any) -> bool:
    return isinstance(function, type) and is_value_class(function)


def _maker(cls: Any) -> Any:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        return fold(space, cls, args, kwargs, cls.__name__)

    return handler


LOOKASIDE_RULES.append((_makes_value, _maker))


class Held:
    """What a node is called with: the nodes among it, and the others as a template."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.given: list[Any] = []

    def template(self, value: Value, varies: bool = True) -> Any:
        """A value as a part of a template; unless it ``varies``, numbers are built in.

        GraphBreak if a graph can neither take nor hold it.
        """
        value, space = value.realize(), self._space
        if value.is_symbolic and not varies:
            return value.as_python()
        if isinstance(value, TensorValue):
            return self._place(value.proxy(space))
        if value.to_fx is not None and not isinstance(value, ClassValue):
            return self._place(value.to_fx(space))
        if type(value) in (ListValue, TupleValue):
            parts = [self.template(item, varies) for item in value.items]  # type: ignore[attr-defined]
            return value.python_type()(parts)
        if type(value) is DictValue and value.cls is dict:
            return {key: self.template(pair[1], varies) for key, pair in value.items.items()}
        if value.is_constant:
            return value.as_python()
        known = getattr(value, "obj", None)
        if value.source is not None and is_handle_class(value.python_type()):
            space.guard(value.source, "ID_MATCH", known)
            return known
        if isinstance(value, ClassValue) and value.making is None:
            return value.cls
        raise GraphBreak("FJ0121", f"a {value.describe()} is passed to a torch operation")

    def _place(self, given: Any) -> Place:
        self.given.append(given)
        return Place(len(self.given) - 1)


def holding_call(space: Space, function: Any, args: Args, kwargs: Kwargs) -> Value:
    """A node for a call of ``function``, whose arguments are tensors and objects."""
    held = Held(space)
    positional = tuple([held.template(arg) for arg in args])
    named = {name: held.template(value) for name, value in kwargs.items()}
    return from_fx(space, *holding_node(space, Holding(function, positional, named), held))


def holding_node(space: Space, target: Holding, held: Held) -> tuple[Any, Any]:
    """A node, and the example of its result."""
    return space.builder.call_function(target, tuple(held.given), {})
