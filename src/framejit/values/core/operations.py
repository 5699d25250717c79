"""The operations that the interpreter asks of values, and what of them needs no space.

In: nothing. Out: the table of operations, values that nobody has looked at yet, what a lookup in a
class found. Next: space.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from framejit.source import Source
from framejit.values.core.base import Value

if TYPE_CHECKING:
    from framejit.values.core.space import Space

#: The operations the interpreter asks for: name -> (operands, what it may return).
OPERATIONS: dict[str, tuple[int, str]] = {
    "getattr": (2, "Result; raises AttributeError"),
    "setattr": (3, "None; raises AttributeError"),
    "delattr": (2, "None; raises AttributeError"),
    "binary": (3, "Result; raises TypeError and what the operation raises"),
    "unary": (2, "Result; raises TypeError"),
    "compare": (3, "Result; raises TypeError"),
    "is_": (2, "bool"),
    "contains": (2, "bool; raises TypeError"),
    "truth": (1, "bool; a graph break for tensors"),
    "expect": (2, "bool: may the truth value be taken to be this one?"),
    "getitem": (2, "Result; raises IndexError, KeyError, TypeError"),
    "setitem": (3, "None; raises IndexError, KeyError, TypeError"),
    "delitem": (2, "None; raises IndexError, KeyError, TypeError"),
    "len": (1, "Value; raises TypeError"),
    "iter": (1, "Value; raises TypeError"),
    "next": (1, "Value, or None when exhausted"),
    "unpack": (2, "list of values; raises ValueError, TypeError"),
    "call": (3, "Result; raises what the callee raises"),
}


class ClassAttribute(NamedTuple):
    """What a raw lookup along the MRO found: the object in the class's ``__dict__``."""

    raw: Any
    source: Source
    owner: type


class LazyValue(Value):
    """A value that nobody has looked at yet: carried through, it costs no guard."""

    __slots__ = ("obj", "space", "value")

    def __init__(self, space: Space, source: Source, obj: Any) -> None:
        self.space = space
        self.source: Source = source
        self.obj = obj
        self.value: Value | None = None

    def realize(self) -> Value:
        if self.value is None:
            self.value = self.space.wrap(self.source, self.obj)
        return self.value

    @property
    def is_unknown_key(self) -> bool:
        """Is it a key of a dict, found by where it is, whichever it is?"""
        return self.value is None and self.source.accessor == "key_at"

    def python_type(self) -> type:
        return self.realize().python_type()
