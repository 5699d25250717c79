"""How large the Python objects may be that a capture makes.

In: a pure function with its arguments, what it gave, a number of elements. Out: nothing, or a graph
break: Python makes the object between two graphs, once, and the capture neither looks at every
element nor keeps it. Next: space.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator
from typing import Any

from framejit import config
from framejit.exc import GraphBreak

_SEQUENCES = (str, bytes, tuple, list)
#: Functions whose result may be much larger than the operands, by their ids.
_GROWING = frozenset(map(id, (operator.mul, operator.imul, operator.pow, operator.lshift)))
#: Kinds of results that have no size.
_SMALL = frozenset((bool, type(None), float, type))
_WORD = 1 << 64
#: Bytes of a text or a whole number for each element of a container.
_BYTES = 16


def check_count(count: int) -> None:
    """GraphBreak for a container of more elements than a capture handles."""
    if count > config.size_limit:
        raise GraphBreak("FJ0139", f"a container has more than {config.size_limit} elements")


def check_size(obj: Any) -> None:
    """GraphBreak for a text or a whole number that a capture does not keep."""
    kind = type(obj)
    if kind is str or kind is bytes:
        size = len(obj)
    else:
        size = obj.bit_length() // 8 if kind is int else 0
    _check_bytes(size)


def limited_items(items: Iterator[Any]) -> list[Any]:
    """The elements of an iterator; GraphBreak if there are too many."""
    found = list(itertools.islice(items, config.size_limit + 1))
    check_count(len(found))
    return found


def run_limited(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a pure function makes of real objects; GraphBreak if that is too large."""
    if id(function) in _GROWING and len(args) == 2:
        _check_operands(function, *args)
    result = function(*args, **kwargs)
    kind = type(result)
    if kind in _SMALL or (kind is int and -_WORD < result < _WORD):
        return result
    if kind is tuple or kind is list or kind is frozenset:
        check_count(len(result))
    else:
        check_size(result)
    return result


def _check_operands(function: Any, left: Any, right: Any) -> None:
    """GraphBreak if the result would be much larger than the operands, and too large: it would take
    long to make it twice."""
    size: float = 0
    if function is operator.mul or function is operator.imul:
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, _SEQUENCES) and isinstance(times, int):
                kind_size = 1 if isinstance(sequence, (str, bytes)) else _BYTES
                size = len(sequence) * kind_size * max(times, 0)
    elif isinstance(left, int) and isinstance(right, int) and right > 0:
        if function is operator.pow:
            size = max(left.bit_length() - 1, 0) * right / 8
        elif function is operator.lshift:
            size = (left.bit_length() + right) / 8
    _check_bytes(size)


def _check_bytes(size: float) -> None:
    if size > config.size_limit * _BYTES:
        most = config.size_limit * _BYTES
        raise GraphBreak("FJ0139", f"a text or a number has more than {most} bytes")
