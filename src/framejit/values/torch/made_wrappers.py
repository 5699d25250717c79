"""Traceable wrapper subclasses whose objects the program makes.

In: ``Tensor._make_wrapper_subclass``, called by a ``__new__`` that is traced like any Python. Out:
values whose attributes the program sets and reads as those of other new objects. The graph gets a
node when an operation first needs the tensor; generated code makes the object itself, of what the
graph returns. Next room: graph.
"""

from __future__ import annotations

from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.graph.holding import Holding, Place, described
from framejit.graph.metadata import join
from framejit.graph.wrapping import make_wrapper
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Args, Kwargs, Unmaterialisable, Value
from framejit.values.core.namespaces import entries
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.core.symbolic import SymbolicValue
from framejit.values.objects.classes import ClassValue
from framejit.values.torch.opaque import Held, holding_node
from framejit.values.torch.outside import look_over
from framejit.values.torch.subclasses import SubclassValue
from framejit.values.torch.tensors import TensorValue
from framejit.values.torch.wrappers import WrapperValue, is_traceable

#: What may be said about a new one; the others change what autograd or the class's code is asked.
_OPTIONS = frozenset({"strides", "storage_offset", "memory_format", "dtype", "layout", "device"})


class MadeWrapper(WrapperValue):
    """A tensor that was made in the program."""

    __slots__ = ("fresh", "noted", "options", "size")
    own_identity = True
    is_made = True

    def __init__(self, cls: type, size: Value, options: dict[str, Value], step: int):
        super().__init__(None, None, cls, step=step)
        self.size = size
        self.options = options
        #: An object on fakes, for questions about its metadata: it has no attributes.
        self.fresh: Any = None
        #: What its attributes were when the graph got it.
        self.noted: dict[Any, Any] = {}

    def original(self, space: Space) -> TensorValue:
        return self

    def metadata(self) -> Any:
        return self.fresh if self.example is None else self.example.meta

    def fake(self, space: Space) -> torch.Tensor:
        return self.fresh if self.node is None else super().fake(space)  # type: ignore[no-any-return]

    def getattr(self, space: Space, name: str) -> Result:
        self._check_unchanged()
        return SubclassValue.getattr(self, space, name)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        (SubclassValue if self.node is None else WrapperValue).setattr(self, space, name, value)

    def delattr(self, space: Space, name: str) -> None:
        (SubclassValue if self.node is None else WrapperValue).delattr(self, space, name)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if name in ("requires_grad_", "register_hook", "retain_grad"):
            raise GraphBreak("FJ0111", f"Tensor.{name}() of a {self.describe()} that is made here")
        return super().call_method(space, name, args, kwargs)

    # -- the node ----------------------------------------------------------------------------------

    def proxy(self, space: Space) -> Any:
        if self.node is None:
            self._become_node(space)
        elif described(self._template(Held(space))) != described(self.noted):
            raise GraphBreak("FJ0113", f"an attribute of a {self.describe()} has changed")
        return super().proxy(space)

    def _become_node(self, space: Space) -> None:
        held = Held(space)
        attributes = self._template(held)
        size = held.template(self.size)
        options = {name: held.template(value) for name, value in self.options.items()}
        target = Holding(make_wrapper, (self.cls, size, options, attributes), {})
        self.node, self.example = holding_node(space, target, held)
        join([*[part.example for part in self._parts().values()], self.example])
        space.wrappers.append(self)
        self.noted = attributes

    def _parts(self) -> dict[Any, TensorValue]:
        """The attributes that are tensors."""
        own = {key: pair[1].realize() for key, pair in self._state()}
        return {key: part for key, part in own.items() if isinstance(part, TensorValue)}

    def _state(self) -> list[tuple[Any, tuple[Value, Value]]]:
        """Its attributes, but for those that the program has added and its class does not read."""
        return [pair for pair in entries(self).items() if pair[0] not in self.unread]

    def _template(self, held: Held) -> dict[Any, Any]:
        """The attributes, as a graph takes and holds them."""
        parts, template = self._parts(), {}
        for key, pair in self._state():
            taken = len(held.given)
            template[key] = held.template(pair[1], varies=False)
            if key not in parts and len(held.given) > taken:
                raise GraphBreak("FJ0113", f"{key} of a {self.describe()} has tensors in it")
        for part in parts.values():
            usual = type(part) in (TensorValue, MadeWrapper, WrapperValue)
            if not usual or (type(part) is TensorValue and part.namespace is not None):
                raise GraphBreak("FJ0113", f"a {part.describe()} is a part of another tensor")
        return template

    def is_unchanged(self) -> bool:
        """Do its attributes still say all, and has nothing but the content of its parts changed?"""
        if self.node is None:
            return True
        there, parts = vars(self.example.fake), self._parts()
        shown = {key: Place(0) if key in parts else one for key, one in there.items()}
        noted = {key: Place(0) if key in parts else one for key, one in self.noted.items()}
        same = all(there.get(key) is part.example.fake for key, part in parts.items())
        alike = described(shown) == described(noted)
        return same and alike and self.example.meta is self.example.born

    def _check_unchanged(self) -> None:
        if not self.is_unchanged():
            raise GraphBreak("FJ0113", f"a {self.describe()} whose parts an operation has replaced")

    def check_buildable(self) -> None:
        """`Unmaterialisable` if the object cannot be made of its attributes any more."""
        if not self.is_unchanged():
            what = f"a {self.describe()} whose parts an operation has replaced"
            raise Unmaterialisable(self.step, what)


@lookaside(torch.Tensor._make_wrapper_subclass)
def _make(space: Space, args: Args, kwargs: Kwargs) -> Result:
    cls = args[0].realize() if args else None
    known = cls.cls if isinstance(cls, ClassValue) and cls.making is None else None
    if known is None or len(args) != 2 or not is_traceable(known) or space.transforms:
        raise GraphBreak("FJ0153", "Tensor._make_wrapper_subclass() in another way than usual")
    options: dict[str, Value] = {}
    for name, value in kwargs.items():
        if value.realize().is_constant and not value.realize().as_python():
            wanted = name in _OPTIONS  # what is switched off need not be said
        else:
            wanted = True
        if wanted and name not in _OPTIONS:
            raise GraphBreak("FJ0153", f"Tensor._make_wrapper_subclass() with {name}=")
        if wanted:
            options[name] = _kept(space, value.realize())
    look_over(space, known)
    made = MadeWrapper(known, _kept(space, args[1].realize()), options, space.step)
    with space.builder.world.running():
        now = {name: number_of(value) for name, value in options.items()}
        made.fresh = space.run_real(make_wrapper, known, number_of(made.size), now, {})
    return made


def _kept(space: Space, value: Value) -> Value:
    """A size or an option as it is now: a sequence of numbers, some of which may vary, or a
    constant."""
    if type(value) in (ListValue, TupleValue):
        items = [item.realize() for item in value.items]  # type: ignore[attr-defined]
        if any(item.is_symbolic for item in items):
            return TupleValue(items)
    return space.constant(value.as_python())


def number_of(value: Value) -> Any:
    """The same for fakes."""
    if type(value) is TupleValue:
        return tuple([number_of(item) for item in value.items])
    return value.sym if isinstance(value, SymbolicValue) else value.as_python()
