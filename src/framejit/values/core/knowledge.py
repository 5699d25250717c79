"""What framejit knows about a callable: the one place that decides what a call of it becomes.

In: a function, a C function, a method of a C class, or a class. Out: a `Known`: the way a call
takes, and what that way needs (a handler, a mark, a reason). The rules stand in the order in which
they count. Next: the values of callables, which go that way; ``framejit doctor --knows``.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from framejit import directives
from framejit.values.core import inline_policy
from framejit.values.core.base import is_user_class
from framejit.values.core.constants import PURE_TYPES
from framejit.values.core.registry import (
    CODE_LOOKASIDES,
    LOOKASIDE_RULES,
    LOOKASIDES,
    NAMED_LOOKASIDES,
    NODE_RULES,
)
from framejit.values.core.space import Space


class Way(enum.Enum):
    """What a call becomes."""

    REPLACED = "replaced"  # a handler of framejit runs instead
    REPLACED_CODE = "replaced with what it closes over"  # the handler gets the function, too
    MARKED = "marked"
    NODE = "a node of the graph"
    UNWRAPPED = "passed by, what it wraps is called"
    TRACED = "traced through"
    METHOD = "a method, decided by what it is called on"
    FOLDED = "computed while capturing, from known arguments"
    REFUSED = "a graph break"


class Known(NamedTuple):
    """What a call becomes, and the handler, the mark, the cell or the reason for that."""

    way: Way
    detail: Any = None

    def __str__(self) -> str:
        """For people: the way, and the reason, the mark, or the handler's place."""
        detail = self.detail
        code = getattr(detail, "__code__", None)
        if code is not None:
            return f"{self.way.value} ({detail.__module__}, line {code.co_firstlineno})"
        return f"{self.way.value} ({detail})" if isinstance(detail, str) else self.way.value


class Asked(NamedTuple):
    """A callable; functions that the captured program makes are only code and globals."""

    function: Any
    code: types.CodeType | None = None
    namespace: dict[str, Any] = {}


def known(asked: Asked) -> Known:
    """The first rule that knows the callable."""
    for rule in _RULES:
        found = rule(asked)
        if found is not None:
            return found
    return Known(Way.REFUSED, "no rule knows what it does")


def known_once(
    space: Space, function: Any, code: types.CodeType | None = None,
    namespace: dict[str, Any] | None = None,
) -> Known:  # fmt: skip
    """`known`, asked once in a capture about each object."""
    found = space.ways.get(id(function))
    if found is None or function is None:
        found = known(Asked(function, code, namespace or {})), function
        space.ways[id(function)] = found
    return found[0]


def known_callable(function: Any) -> Known:
    """`known` for any callable object; bound methods stand for their functions."""
    function = getattr(function, "__func__", function)
    if isinstance(function, types.FunctionType):
        return known(Asked(function, function.__code__, function.__globals__))
    found = known(Asked(function))
    call = type(function).__call__
    if found.way is Way.REFUSED and type(call) is types.FunctionType:
        return known_callable(call)
    return found


def handler_of(function: Any) -> Any:
    """What runs instead of this very object, if anything does."""
    try:
        found = LOOKASIDES.get(function)
    except TypeError:  # not hashable
        return None
    if found is None:
        for applies, handler in LOOKASIDE_RULES:
            if applies(function):
                return handler(function)
    return found


def _replaced(asked: Asked) -> Known | None:
    handler = None if asked.function is None else handler_of(asked.function)
    return None if handler is None else Known(Way.REPLACED, handler)


def _marked(asked: Asked) -> Known | None:
    if asked.function is None or isinstance(asked.function, type):
        return None
    mark = directives.mark_of(asked.function)
    if mark == "skip" and asked.code is not None:  # `run` compiles nothing new; captured code does
        cell = inline_policy.wrapped_cell(asked.code)
        if cell is not None:
            return Known(Way.UNWRAPPED, (cell, "it is marked"))
    return None if mark is None else Known(Way.MARKED, mark)


def _node(asked: Asked) -> Known | None:
    if asked.function is None or not any(rule(asked.function) for rule in NODE_RULES):
        return None
    return Known(Way.NODE)


def _replaced_code(asked: Asked) -> Known | None:
    handler = None if asked.code is None else CODE_LOOKASIDES.get(id(asked.code))
    return None if handler is None else Known(Way.REPLACED_CODE, handler)


def _outside(asked: Asked) -> Known | None:
    """Code that is not traced through: of the outside world, of frames, of compilers."""
    if asked.code is None:
        return None
    reason = inline_policy.refuses(asked.code, asked.namespace)
    if reason is None:
        return Known(Way.TRACED)
    name = str(asked.namespace.get("__name__")), asked.code.co_qualname
    if name in NAMED_LOOKASIDES:
        return Known(Way.REPLACED, NAMED_LOOKASIDES[name])
    cell = inline_policy.wrapped_cell(asked.code)
    return Known(Way.REFUSED, reason) if cell is None else Known(Way.UNWRAPPED, (cell, reason))


def _class(asked: Asked) -> Known | None:
    cls = asked.function
    if not isinstance(cls, type):
        return None
    if cls in PURE_TYPES:
        return Known(Way.FOLDED)
    plain = issubclass(cls, BaseException) or cls is object
    tensors = cls.__module__.partition(".")[0] == "torch" and issubclass(cls, torch.Tensor)
    if not plain and (tensors or not is_user_class(cls)):
        return Known(Way.REFUSED, f"making a {cls.__module__}.{cls.__qualname__}")
    return Known(Way.TRACED)


def _c_function(asked: Asked) -> Known | None:
    if getattr(asked.function, "__objclass__", None) is not None:
        return Known(Way.METHOD)
    return Known(Way.FOLDED) if inline_policy.is_pure_builtin(asked.function) else None


_RULES: tuple[Callable[[Asked], Known | None], ...] = (
    _replaced, _marked, _node, _replaced_code, _outside, _class, _c_function,
)  # fmt: skip
