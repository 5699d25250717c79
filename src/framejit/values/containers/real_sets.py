"""Existing sets, read without running the program's code.

In: a set or frozenset, or an object of a subclass. Out: its elements. Next: sets.
"""

from __future__ import annotations

from typing import Any

from framejit.values.core.keys import (
    ObjectKey,
    real_key,
)


def has_address(key: Any) -> bool:
    if type(key) in (tuple, frozenset):
        return any(map(has_address, key))
    return type(key) is ObjectKey or not real_key(key)[0]


def content_of(obj: Any) -> frozenset[Any]:
    """The elements of an instance of a subclass, for guards."""
    return frozenset(iterate(obj))


def in_order(obj: Any) -> tuple[Any, ...]:
    """The same in order."""
    return tuple(iterate(obj))


def iterate(obj: Any) -> Any:
    return set.__iter__(obj) if isinstance(obj, set) else frozenset.__iter__(obj)


def size_of(obj: Any) -> int:
    return set.__len__(obj) if isinstance(obj, set) else frozenset.__len__(obj)
