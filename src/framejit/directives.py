"""What users said about single functions: ``disable``, ``allow_in_graph`` and their like.

In: calls of the public decorators in `api`. Out: a mark per function, read by the value layer when
captured code calls that function. Imports nothing of framejit. Next room: values.
"""

from __future__ import annotations

import contextlib
import sys
import types
import weakref
from typing import Any

#: "disable" | "skip" | "allow_in_graph" | "disallow_in_graph" | "assume_constant_result" |
#: "graph_break"
Mark = str


_marks: dict[int, tuple[Any, Mark]] = {}
_regions: weakref.WeakSet[types.FunctionType] = weakref.WeakSet()
_NESTED = "__marked_compile_region_"


def mark(function: Any, kind: Mark) -> None:
    """Mark ``function``; the mark goes away with the function."""
    key = id(function)
    try:
        reference: Any = weakref.ref(function, lambda _: _marks.pop(key, None))
    except TypeError:  # C functions live as long as their module
        reference = lambda: function
    _marks[key] = (reference, kind)


def unmark(function: Any) -> None:
    """Take the mark off again."""
    _marks.pop(id(function), None)


def mark_region(function: Any) -> None:
    """Calls of the Python function ``function`` are to be compiled once."""
    _regions.add(function)


def is_region(function: Any) -> bool:
    """Are calls of it to be compiled once? ``torch.compiler.nested_compile_region`` says so, too:
    it leaves attributes on the function and on the one that it returns."""
    if not isinstance(function, types.FunctionType):
        return False
    return function in _regions or any(name.startswith(_NESTED) for name in function.__dict__)


def mark_of(function: Any) -> Mark | None:
    """The function's mark, if it has one."""
    found = _marks.get(id(function))
    if found is not None and found[0]() is function:
        return found[1]
    # Marks that users of torch.compile already wrote (torch.compiler.disable sets this attribute).
    if getattr(function, "_torchdynamo_disable", False):
        return "disable"
    rules = sys.modules.get("torch._dynamo.trace_rules")
    if rules is not None and (found_there := _mark_among(rules, function)):
        return found_there
    with contextlib.suppress(AttributeError, TypeError):
        if function.__dict__.get("_dynamo_marked_constant", False):
            return "assume_constant_result"
        if function.__dict__.get("_dynamo_forbidden", False):
            return "disallow_in_graph"
    return None


def _mark_among(rules: Any, function: Any) -> Mark | None:
    """What ``torch.compiler.allow_in_graph`` and its like have noted. What torch._dynamo says of
    its own functions, such as the ``graph_break`` in torch's optimizers, is about itself."""
    key = id(function)
    if key in (rules._allowed_callable_ids.function_ids or ()):
        traced = rules._nonstrict_trace_callable_ids.function_ids or ()  # it is traced through
        return None if key in traced else "allow_in_graph"
    disallowed = key in (rules._disallowed_callable_ids.function_ids or ())
    if disallowed and str(getattr(function, "__module__", "")).startswith("torch._dynamo."):
        return None
    return "disallow_in_graph" if disallowed else None
