"""Captures in which calls were repeated, against captures in which every call was executed.

In: both captures of one call. Out: nothing, or an internal error that says where they differ: in
the graph, the guards or the generated function. For tests: ``config.verify_recordings``.
Next: the package itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from framejit.exc import InternalError
from framejit.graph.fragment import repr_of
from framejit.graph.metadata import Example, examples_in

if TYPE_CHECKING:
    from framejit.capture import Capture
    from framejit.graph.builder import GraphBuilder


def described_nodes(builder: GraphBuilder) -> list[str]:
    """The recorded operations with their results; for captures that are compared."""
    lines = []
    for node, operation in builder.operations.items():
        results = [repr_of(one.meta) for one in examples_in(operation.example)]
        kept = operation.example if not isinstance(operation.example, Example) else None
        shown = "" if examples_in(kept) else f" {kept}"
        lines.append(f"{node.format_node()} -> {results}{shown}")
        trace: Any = node.meta.get("stack_trace")
        lines += (trace() if callable(trace) else trace or "").splitlines()
    return lines


def compare(repeated: Capture, executed: Capture) -> None:
    """Raises InternalError if they differ. An object that a capture makes itself for a call, such
    as a signature, it makes once for all calls that are repeated: equal guards count once. A call
    that is captured alone may ask for the class of what is a known constant to its caller."""
    for what, one, two in (
        ("the graph", repeated.described, executed.described),
        ("the guards", _guards(repeated), _guards(executed)),
        ("the function", repeated.generated.text, executed.generated.text),
    ):
        if one != two:
            raise InternalError(f"repeated calls change {what}:\n{_difference(one, two)}")


def _guards(captured: Capture) -> list[str]:
    guards = captured.plan.guards()
    constants = {guard.name for guard in guards if guard.kind == "EQUALS_MATCH"}
    told = [g for g in guards if not (g.kind == "TYPE_MATCH" and g.name in constants)]
    # No line of the program's: a backend has assumed it, and compiles one of both graphs only.
    told = [g for g in told if g.kind != "SHAPE_MATCH" or g.line is not None]
    return list(dict.fromkeys(map(str, told)))


def _difference(one: Iterable[str] | str, two: Iterable[str] | str) -> str:
    then, now = [part.splitlines() if isinstance(part, str) else list(part) for part in (two, one)]
    return "\n".join(difflib.unified_diff(then, now, "executed", "repeated", lineterm="", n=2))
