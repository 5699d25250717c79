"""Classes as keys of tables: a metaclass may have its own ``__eq__`` and ``__hash__``, or none.

In: classes. Out: whether one may be a key, functions that remember what they said about one, and
which module the only object of a class was compiled from.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any


def is_known_by_identity(cls: type) -> bool:
    """Can the class be the key of a table? Else that runs code of its metaclass, or fails."""
    kind = type(cls)
    if kind is type:
        return True
    own = kind.__eq__ is not type.__eq__ or kind.__hash__ is not type.__hash__
    return not own and is_known_by_identity(kind)


def asked_once(ask: Callable[[type], bool]) -> Callable[[type], bool]:
    """The same function, which remembers what it returned for a class as long as the class lives.
    Its table is by identity: any class may be asked about, whatever its metaclass makes it equal
    to."""
    known: dict[int, tuple[weakref.ref[type], bool]] = {}

    @functools.wraps(ask)
    def asked(cls: type) -> bool:
        found = known.get(id(cls))
        if found is None:
            place = id(cls)
            gone = weakref.ref(cls, lambda _: known.pop(place, None))
            found = known[place] = (gone, ask(cls))
        return found[1]

    return asked


def compiled_from(cls: type) -> Any:
    """The module that an object of the class was compiled from: it is equal to this one. None where
    the class is not that of a compiled module, or made from one."""
    link = getattr(cls, "_framejit_link", None)
    return None if link is None else link.original


def is_compiled_from(module: Any, other: object) -> Any:
    """What compiled modules are compared with: is the other one ``module``, or compiled from it?"""
    return other is module or compiled_from(type(other)) is module or NotImplemented
