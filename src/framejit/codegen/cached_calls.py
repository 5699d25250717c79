"""Calls of cached functions whose arguments vary: what the caches must hold, and the real calls.

In: the effects of a capture. Out: checks that run before the graph; calls, made after it and before
anything else is changed. What the program got from them are the parts of what the real calls
return. Next: codegen.function.
"""

from __future__ import annotations

import ast
from typing import Any

from framejit.codegen.emit import Emitter, call
from framejit.values.containers.mappings import DictValue
from framejit.values.core.base import Value
from framejit.values.stdlib.varying_calls import (
    CacheHit,
    VaryingCall,
    is_container,
    is_known_by_content,
    parts_of,
)


def checks(out: Emitter) -> list[ast.stmt]:
    """Statements that raise if a cache holds something else than what was computed."""
    outer, out.statements = out.statements, []
    try:
        for one in out.space.effects.expected_in_caches:
            _check(out, one)
        return out.statements
    finally:
        out.statements = outer


def _check(out: Emitter, one: VaryingCall) -> None:
    found: list[ast.expr] = []
    pattern = _pattern(out, one.result, found)
    arguments = out.values([*one.args, *one.kwargs.values()])
    names = ast.Tuple([ast.Constant(name) for name in one.kwargs], ast.Load())
    out.statement(call(
        out.helper("expect_cached"), out.value(one.function), ast.Tuple(arguments, ast.Load()),
        names, ast.Constant(one.typed), ast.Constant(pattern), ast.Tuple(found, ast.Load()),
    ))  # fmt: skip


def _pattern(out: Emitter, value: Value, found: list[ast.expr]) -> Any:
    """See `runtime.Pattern`."""
    value = value.realize()
    if is_container(value):
        parts = [_pattern(out, part, found) for part in parts_of(value)]
        return value.python_type().__name__, *parts
    place = len(found)
    found.append(out.value(value))
    return place if is_known_by_content(value) else ~place


def make(out: Emitter) -> None:
    """The real calls, up to the last one that varies: caches know the order of their calls."""
    calls = [value for value in out.space.effects.changed if isinstance(value, CacheHit)]
    while calls and not isinstance(calls[-1], VaryingCall):
        calls.pop()
    for one in calls:
        arguments, keywords = out.values(one.args), out.keywords(one.kwargs)
        made = ast.Call(out.value(one.function), arguments, keywords)
        if isinstance(one, VaryingCall):
            _place(out, one.result, out.keep(one, "cached", made))
        else:
            out.keep(one, "cached", made)


def _place(out: Emitter, value: Value, expression: ast.expr) -> None:
    """Where the parts of a result are."""
    value = value.realize()
    if not is_container(value):
        return
    out.made.setdefault(value, expression)
    if type(value) is DictValue:
        keyed = [(key.realize().as_python(), part) for key, part in value.items.values()]
    else:
        keyed = list(enumerate(parts_of(value)))
    for key, part in keyed:
        _place(out, part, ast.Subscript(expression, ast.Constant(key), ast.Load()))
