"""How running a frame or a capture ends, and what unwinds it on the way.

In: frames. Out: the outcomes that `loop` gives to `capture`, and the exceptions that unwind to
them. Next: loop.
"""

from __future__ import annotations

from typing import NamedTuple

from framejit.exc import GraphBreak
from framejit.interpreter.frame import Frame
from framejit.values.core import inline_policy
from framejit.values.core.base import Value


class Returned(NamedTuple):
    """A frame returned ``value``; as the outcome of a capture, the root frame."""

    value: Value


class Broken:
    """The capture ends before an instruction; ``frames`` go from the root to the innermost."""

    __slots__ = (
        "as_it_is", "frames", "hint", "identifier", "leaves", "raises", "reason", "splits",
    )  # fmt: skip

    def __init__(self, frames: list[Frame], cause: GraphBreak) -> None:
        self.frames = frames
        self.identifier = cause.identifier
        self.reason = cause.reason
        self.hint = cause.hint
        self.raises = cause.raises
        #: Is there something to capture on both sides?
        self.splits = True
        #: Has the capture itself found out what an operation raises?
        raised = frames[-1].instruction.op in ("RAISE_VARARGS", "RERAISE")
        self.leaves = isinstance(cause, LeavingError) and not raised
        self.as_it_is = cause.as_it_is
        handed = frames[-1].operands()
        for depth, frame in enumerate(frames):
            frame.seen = cause.seen and depth >= cause.unseen
            frame.raises, frame.handed = cause.raises, handed

    @property
    def blamed(self) -> Frame:
        """The frame whose line it is reported at: the innermost one of the user's own code."""
        for frame in reversed(self.frames):
            if not inline_policy.is_library(str(frame.globals.get("__name__") or "")):
                return frame
        return self.frames[-1]


class Again(NamedTuple):
    """The capture has to start again: it breaks before ``step``. Without a cause: truth values that
    were taken for granted must not be, as the graph cannot run twice."""

    step: int = -1
    cause: GraphBreak | None = None


class Restart(Exception):
    """Capture again, and break before step ``step``: unwinds to the outcome."""

    def __init__(self, step: int, cause: GraphBreak) -> None:
        super().__init__(step, cause.reason)
        self.outcome = Again(step, cause)


class LeavingError(GraphBreak):
    """The captured program raises an exception that nothing in it catches."""

    raises = True

    def __init__(self, value: Value) -> None:
        name = value.python_type().__name__
        super().__init__("FJ0109", f"{name} is raised and leaves the compiled function")


class LookedAtError(GraphBreak):
    """Code that may look at the frames which an exception has passed catches it."""

    raises = seen = True

    def __init__(self, value: Value) -> None:
        name = value.python_type().__name__
        super().__init__("FJ0146", f"{name} is caught where the variables of frames are looked at")


class Yielded(NamedTuple):
    """A generator frame is suspended with this value."""

    value: Value


class BreakHere(Exception):
    """Carries the outcome out of the loop."""

    def __init__(self, outcome: Broken) -> None:
        super().__init__()
        self.outcome = outcome
