"""Operations that Python does by special methods, on tensors: overrides come first.

In: indexing, iterating, ... Out: calls of what a mode or the tensor's class has for it, else what
torch does, which `tensors` knows. Next: tensors.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, ClassVar

from framejit.exc import GraphBreak
from framejit.graph.bound_names import own_method
from framejit.graph.tensor_class import is_method_replaced, is_replaced
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Declared, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Result
from framejit.values.core.space import Space


class Overridable(Declared):
    """A tensor, as far as its class, or a mode, may have a say."""

    __slots__ = ()
    is_tensor = True
    #: Is its class one of torch's own?
    is_plain: ClassVar[bool] = True
    plain_getitem: ClassVar[Any]
    plain_setitem: ClassVar[Any]
    plain_len: ClassVar[Any]
    plain_items: ClassVar[Any]

    def special(self, space: Space, name: str, *args: Value) -> Result | None:
        """A special method that is not, or not only, torch's own; None: it is."""
        if self.is_plain and not space.torch_function.asks_modes:
            return None
        found = space.class_attribute(self.python_type(), name)
        if found is None:
            return None
        if type(found.raw) is types.FunctionType and (
            is_replaced(name, found.owner, found.raw) or space.is_overridden([self, *args])
        ):
            method = space.bind_class_attribute(found, self, self.python_type(), name)
            return space.call(space.now(method), list(args), {})
        return space.intercept(found.raw, [self, *args], {})

    def getitem(self, space: Space, key: Value) -> Result:
        return self.special(space, "__getitem__", key) or self.plain_getitem(space, key)

    def setitem(self, space: Space, key: Value, value: Value) -> None:
        override = self.special(space, "__setitem__", key, value)
        if override is None:
            self.plain_setitem(space, key, value)
        else:
            space.now(override)

    def len(self, space: Space) -> Value:
        override = self.special(space, "__len__")
        return self.plain_len(space) if override is None else space.now(override)

    def items_now(self, space: Space) -> list[Value] | None:
        overridden = not self.is_plain or space.torch_function.asks_modes
        return None if overridden else self.plain_items(space)

    def iter(self, space: Space) -> Value:
        override = self.special(space, "__iter__")
        if override is None:
            return space.iter(TupleValue(self.plain_items(space)))
        return space.now(override)

    def contains(self, space: Space, item: Value) -> Value:
        override = self.special(space, "__contains__", item)
        if override is not None:
            return ConstantValue(space.truth(space.now(override)))
        raise GraphBreak("FJ0102", "`in` on a tensor needs its data")


def replaced_method(name: str) -> Callable[..., Any] | None:
    """torch's method of this name, if the program has put another one in its place: calls by name
    would find that."""
    return own_method(name) if is_method_replaced(name) else None
