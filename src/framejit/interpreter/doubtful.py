"""Errors that would be made up: C code asks the program's objects for more than is modelled here.

In: the frame whose instruction raises a TypeError of ours. Out: does one of its operands, or
something in it, have special methods written in Python (``__index__``, ``__len__``, ...)? Then C
code has to run, which knows which of them count. Next: loop.
"""

from __future__ import annotations

import types

from framejit.interpreter.frame import Frame
from framejit.values.core.base import NULL, Raised, is_user_class, parts_held
from framejit.values.core.operations import LazyValue

#: No C code asks for these in place of a number, a text, a container, ...
_PLAIN = frozenset(
    ("__init__", "__new__", "__repr__", "__str__", "__eq__", "__init_subclass__", "__set_name__",
     "__post_init__", "__setattr__", "__delattr__")
)  # fmt: skip
REASON = "C code is given an object whose class has special methods, which it may ask for"
#: How many values are looked at.
_LIMIT = 100


def is_doubtful(error: Raised, frame: Frame) -> bool:
    """Has an operand of the current instruction special methods of the program?"""
    if not error.is_a(TypeError):
        return False
    count = frame.instruction.arg + 2 if frame.instruction.op == "CALL" else 4
    todo = [(value, 0) for value in frame.before[-count:]]
    seen: set[int] = set()
    for value, depth in todo:
        if value is NULL or id(value) in seen or len(seen) > _LIMIT:
            continue
        seen.add(id(value))
        if isinstance(value, LazyValue):
            if value.value is None:  # nobody has looked at it: nor at what is in it
                if _has_special_methods(type(value.obj)):
                    return True
                continue
            value = value.value
        if _has_special_methods(value.python_type()):
            return True
        if depth < 3:
            todo += [(part, depth + 1) for part in parts_held(value)]
    return False


def _has_special_methods(cls: type) -> bool:
    for base in type.__getattribute__(cls, "__mro__"):
        if is_user_class(base) and base.__module__.partition(".")[0] != "torch":
            for name, member in type.__getattribute__(base, "__dict__").items():
                if name.startswith("__") and name.endswith("__") and name not in _PLAIN:
                    if isinstance(member, (types.FunctionType, property)):
                        return True
    return False
