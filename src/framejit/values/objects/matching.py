"""The structural pattern matching of ``match`` statements.

In: a subject and a pattern's parts. Out: what the MATCH_* instructions push. Next room:
interpreter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from framejit.exc import GraphBreak
from framejit.values.core.base import Raised, Value
from framejit.values.core.registry import LOOKASIDES
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue

_NOT_SEQUENCES = (str, bytes, bytearray)
_SELF_MATCHING = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


def _fits(space: Space, subject: Value, cls: Value) -> bool:
    """``isinstance(subject, cls)``: classes can be registered with abstract ones later."""
    return space.truth(space.now(LOOKASIDES[isinstance](space, [subject, cls], {})))


def _is_of(space: Space, subject: Value, cls: type) -> bool:
    """The same for patterns that look at the class alone, whatever the subject says of it."""
    pair = [space.class_value(subject.python_type()), space.class_value(cls)]
    return space.truth(space.now(LOOKASIDES[issubclass](space, pair, {})))


def match_sequence(space: Space, value: Value) -> bool:
    """Does a sequence pattern look into this value?"""
    if issubclass(value.python_type(), _NOT_SEQUENCES):
        return False
    return _is_of(space, value, Sequence)


def match_mapping(space: Space, value: Value) -> bool:
    """Does a mapping pattern look into this value?"""
    return _is_of(space, value, Mapping)


def match_keys(space: Space, subject: Value, keys: Value) -> list[Value] | None:
    """The values under ``keys``, or None if one is missing: only ``get`` is asked."""
    found: list[Value] = []
    names = space.items(keys)
    if not names:
        return found
    get = space.getattr_now(subject, "get")
    seen, missing = (space.call_now(space.constant(cls), []) for cls in (set, object))
    for key in names:
        if space.contains(seen, key):
            text = f"mapping pattern checks duplicate key ({key.realize().as_python()!r})"
            space.raise_error(ValueError, text)
        space.call_now(space.getattr_now(seen, "add"), [key])
        value = space.call_now(get, [key, missing])
        if space.is_(value, missing):
            return None
        found.append(value)
    return found


def match_class(
    space: Space, subject: Value, cls: Value, positional: int, names: Value
) -> list[Value] | None:
    """The attributes that a class pattern binds, or None if the subject does not match."""
    subject, cls = subject.realize(), cls.realize()
    if not isinstance(cls, ClassValue):
        raise GraphBreak("FJ0146", "a class pattern with something that is not a class")
    if not _fits(space, subject, cls):
        return None
    found: list[Value] = []
    wanted = [str(n.realize().as_python()) for n in space.items(names)]
    if positional:
        args = space.class_attribute(cls.cls, "__match_args__")
        if args is None:
            if positional == 1 and cls.cls in _SELF_MATCHING:
                found.append(subject)
            else:
                raise GraphBreak(
                    "FJ0146", f"{cls.cls.__qualname__}() accepts no positional sub-patterns"
                )
        else:
            if type(args.raw) is not tuple or not all(type(name) is str for name in args.raw):
                raise GraphBreak("FJ0146", "__match_args__ is no tuple of strings")
            if len(args.raw) < positional:
                raise GraphBreak("FJ0146", f"{cls.cls.__qualname__}() accepts fewer sub-patterns")
            wanted = [*args.raw[:positional], *wanted]
    for number, name in enumerate(wanted):
        if name in wanted[:number]:
            complaint = f"{cls.cls.__name__}() got multiple sub-patterns for attribute {name!r}"
            space.raise_error(TypeError, complaint)
        try:
            found.append(space.getattr_now(subject, name))
        except Raised as error:
            if error.is_a(AttributeError):
                return None
            raise
    return found
