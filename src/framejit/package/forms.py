"""Signatures and type annotations as data: values that many programs ask about and none changes.

In: `inspect.Signature` objects, ``X | None``, ``list[int]``, ``typing`` forms. Out: lists that
`data` encodes, and the objects made again from them. Next: data.
"""

from __future__ import annotations

import functools
import inspect
import operator
import types
import typing
from typing import Any

_KINDS = {str(int(kind)): kind for kind in inspect._ParameterKind}


def parts_of(obj: Any) -> tuple[str, list[Any]] | None:
    """A tag and the parts that `make` takes; None for an object of another kind."""
    if type(obj) is inspect.Signature:
        return "signature", [obj.return_annotation, *obj.parameters.values()]
    if type(obj) is inspect.Parameter:
        return "parameter", [obj.name, str(int(obj.kind)), obj.default, obj.annotation]
    if isinstance(obj, types.UnionType):
        return "union", list(obj.__args__)
    if isinstance(obj, types.GenericAlias):
        return "alias", [obj.__origin__, *obj.__args__]
    if type(obj).__module__ != "typing" or not hasattr(obj, "__args__"):
        return None
    if typing.get_origin(obj) is typing.Union:
        return "typing", ["Union", *obj.__args__]
    name = getattr(obj, "_name", None)
    if isinstance(name, str) and hasattr(typing, name):
        return "typing", [name, *obj.__args__]
    origin = typing.get_origin(obj)
    name = getattr(origin, "_name", None)
    if isinstance(name, str) and getattr(typing, name, None) is origin:
        return "typing", [name, *obj.__args__]
    if isinstance(origin, type) and issubclass(origin, typing.Generic):  # type: ignore[arg-type]
        return "generic", [origin, *obj.__args__]
    return None


def make(tag: str, parts: list[Any]) -> Any:
    """The way back from `parts_of`."""
    first, *rest = parts
    if tag == "signature":
        return inspect.Signature(rest, return_annotation=first)
    if tag == "parameter":
        kind, default, annotation = rest
        return inspect.Parameter(first, _KINDS[kind], default=default, annotation=annotation)
    if tag == "union":
        return functools.reduce(operator.or_, parts)
    if tag == "alias":
        return types.GenericAlias(first, tuple(rest))
    if tag == "generic":
        return first[tuple(rest)]
    form: Any = getattr(typing, first)
    if first == "Callable":
        *args, result = rest
        return form[args, result]
    return form[tuple(rest) if len(rest) != 1 else rest[0]]
