"""Generators that the program drops half-way: who still holds them, and when nobody does.

In: the frames being executed, and the generators that are suspended inside a ``with`` or ``try``
(and objects that have a ``__del__``). Out: those whose last reference is gone; CPython closes them
at that very instruction, which runs their ``finally`` blocks and leaves their ``with`` blocks.
Next: interpreter.loop.
"""

from __future__ import annotations

import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from framejit.interpreter.frame import Frame
from framejit.values.base import CallRequest, Value
from framejit.values.keys import ReferenceKey
from framejit.values.space import Space
from framejit.values.torch_library import WeakReferenceValue

#: One step from an object to something that it holds: (how, where, key, what is found there);
#: a step that cannot be looked at again is a "root".
_Hop = tuple[str, Any, Any, Any]
_SEQUENCES = (list, tuple, deque)
_WEAK = (WeakReferenceValue, ReferenceKey)
_slot_names: dict[type, tuple[str, ...]] = {}


class Roots:
    """What holds values while a program is executed symbolically."""

    def __init__(self, space: Space) -> None:
        self.space = space
        #: The frames that `Interpreter.run` was entered with, and that have not returned.
        self.bases: list[Frame] = []
        #: Frames of generators that are being resumed.
        self.resumed: list[Frame] = []
        #: An exception's traceback holds the frames that it has left.
        self.left: dict[Value, list[Frame]] = {}

    def hops(self, frame: Frame | None, extra: tuple[Any, ...]) -> Iterator[_Hop]:
        """The first step to everything that is held: by ``frame`` and its callers, by ``extra``, by
        objects outside that the program has changed."""
        for item in extra:
            yield "root", None, None, item
        child: Frame | None = None
        while frame is not None:
            yield "frame", None, None, frame
            # In the middle of an operation: its operands are still held.
            if any(child is base for base in self.bases):
                yield "root", None, None, frame.before
            child, frame = frame, frame.parent
        for resumed in self.resumed:
            yield "root", None, None, resumed
        effects = self.space.effects
        for value in effects.changed:
            yield "root", None, None, value
        for change in effects.globals.values():
            yield "root", None, None, change.value
        for names in self.space.class_writes.values():
            yield "root", None, None, names

    def children(self, obj: Any) -> Iterator[_Hop]:
        """The steps from one object to what it holds."""
        if isinstance(obj, dict):
            for key, item in obj.items():
                yield "root", None, None, key
                yield "item", obj, key, item
        elif isinstance(obj, _SEQUENCES):
            for index, item in enumerate(obj):
                yield "index", obj, index, item
        elif isinstance(obj, (set, frozenset)):
            for item in obj:
                yield "root", None, None, item
        elif isinstance(obj, types.FunctionType):
            for cell in obj.__closure__ or ():
                yield "root", None, None, cell.cell_contents
        else:
            for name in _names(type(obj)):
                item = getattr(obj, name, None)
                if _is_walked(item):
                    yield "slot", obj, name, item
            if isinstance(obj, Value) and obj in self.left:
                yield "item", self.left, obj, self.left[obj]

    def holder(
        self, wanted: Any, frame: Frame | None, extra: tuple[Any, ...] = ()
    ) -> list[_Hop] | None:
        """A way from something that is held to ``wanted``; None if there is none."""
        seen: dict[int, tuple[_Hop, int]] = {}
        todo: list[Any] = []
        for hop in self.hops(frame, extra):
            if _is_walked(hop[3]) and id(hop[3]) not in seen:
                seen[id(hop[3])] = hop, 0
                todo.append(hop[3])
        while todo:
            obj = todo.pop()
            if obj is wanted:
                break
            for hop in self.children(obj):
                item = hop[3]
                if _is_walked(item) and id(item) not in seen:
                    seen[id(item)] = hop, id(obj)
                    todo.append(item)
        else:
            return None
        way: list[_Hop] = []
        at = id(wanted)
        while at:
            hop, at = seen[at]
            way.append(hop)
        way.reverse()
        return way

    def still_holds(self, way: list[_Hop] | None, frame: Frame | None) -> bool:
        """Is a way that was found before still there?"""
        if way is None or way[0][0] != "frame" or any(hop[0] == "root" for hop in way):
            return False
        held = way[0][3]
        if held.left:
            return False
        if held.generator is not None:  # it may be suspended
            while frame is not held:
                if frame is None:
                    return False
                frame = frame.parent
        for how, where, key, item in way[1:]:
            if how == "slot":
                if getattr(where, key, None) is not item:
                    return False
            elif how == "index":
                if key >= len(where) or where[key] is not item:
                    return False
            elif where.get(key) is not item:
                return False
        return True


def _is_walked(obj: Any) -> bool:
    if isinstance(obj, (Value, Frame, CallRequest, dict, *_SEQUENCES, set, frozenset)):
        return True
    return isinstance(obj, types.FunctionType) or type(obj).__module__ == "framejit.values.keys"


def _names(kind: type) -> tuple[str, ...]:
    names = _slot_names.get(kind)
    if names is None:
        if kind is Frame:
            names = ("slots", "stack", "names", "result", "entry_handled")
        else:
            found = [
                getattr(cls, "__slots__", ()) for cls in kind.__mro__ if cls not in _WEAK
            ]
            names = tuple(
                name for part in found for name in ((part,) if isinstance(part, str) else part)
            )
        _slot_names[kind] = names
    return names
