"""What a compiled object captures: a function from its start, or a continuation.

In: code, its globals, the point to go on at. Out: names and places for reports and packages.
Next: tracing.
"""

from __future__ import annotations

import types
from typing import Any, NamedTuple

from framejit.bytecode.continuations import FramePoint
from framejit.bytecode.decode import decode


class Caller:
    """A frame that waits in a continuation for the result of the frame below it.

    ``point`` is at its call, the operands consumed. Without a point: the call below was that of
    a constructor, and its result is the new object, which comes as an argument of its own.
    """

    __slots__ = ("namespace", "point")

    def __init__(self, point: FramePoint | None, namespace: dict[str, Any]) -> None:
        self.point = point
        self.namespace = namespace

    @property
    def arity(self) -> int:
        """How many of the continuation's arguments are its state."""
        return 1 if self.point is None else self.point.arity

    @property
    def key(self) -> tuple[FramePoint | None, int]:
        """Equal for callers that wait at the same place."""
        return self.point, id(self.namespace)


class Target(NamedTuple):
    """What a compiled object captures: a function from its start, or a continuation."""

    code: types.CodeType
    namespace: dict[str, Any]
    point: FramePoint | None  # None: from the start
    #: Continuations: the inlined calls they are in, from the inside out.
    callers: tuple[Caller, ...] = ()
    #: What users call it, if that is not the code's name.
    label: str = ""

    def is_start_of(self, function: types.FunctionType) -> bool:
        """Is this where ``function`` starts? Its code may have been replaced."""
        return self.code is function.__code__ and self.namespace is function.__globals__

    @property
    def name(self) -> str:
        """For reports: the function, or the continuation in it."""
        if self.point is None:
            return self.label or self.code.co_qualname
        return f"{self.code.co_qualname}.__resume_at_{self.point.offset}"

    @property
    def place(self) -> str:
        """Which continuation it is: the same in every process."""
        if self.point is None:
            return ""
        points = [self.point, *[caller.point for caller in self.callers]]
        return "".join(
            "@new" if point is None else f"@{point.code.co_name}+{point.offset}" for point in points
        )

    @property
    def line(self) -> int:
        """The user's line where it starts."""
        if self.point is None:
            return self.code.co_firstlineno
        return decode(self.code).instructions[self.point.index].line

    @property
    def shown(self) -> dict[str, Any]:
        """What every event says of it: name, file and line."""
        return {"name": self.name, "filename": self.code.co_filename, "line": self.line}
