"""What values ask of the interpreter that leads a capture.

In: frames that an operation has to run, questions about where the program is. Out: their results.
The `Running` here runs nothing: it stands there before and after the capture. Next: space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from framejit.exc import GraphBreak
from framejit.graph.leader import Leader
from framejit.values.core.base import CallRequest, Value


class Running(Leader):
    """The interface; `interpreter.loop.Interpreter` fills it."""

    #: The frame being executed.
    frame: Any = None
    #: The exception that the program is handling.
    handled: Value | None = None
    #: The number of the instruction being executed.
    steps: int = 0

    @property
    def namespace(self) -> dict[str, Any]:
        """The globals of the code being executed."""
        return self.frame.globals if self.frame is not None else {}

    def passes_keywords(self) -> bool:
        """Is the call that is being executed given a dict of keyword arguments, if an empty one?"""
        now = None if self.frame is None else self.frame.instruction
        return now is not None and now.op == "CALL_FUNCTION_EX" and bool(now.arg & 1)

    def shares_locals(self) -> bool:
        """May the program see that the variables it is given now are given as one dict?"""
        return self.frame is not None and self.frame.shares_locals()

    def run_request(self, request: CallRequest) -> Value:
        """Run a frame to its end."""
        raise GraphBreak("FJ0160", "a Python function must run and no interpreter is attached")

    def attempt(self, call: Callable[[], Value]) -> Value | None:
        """What this call of ours gives; None where it cannot be captured, or raises."""
        return call()

    def resume_generator(self, generator: Any, sent: Value, thrown: Value | None) -> Value | None:
        """Run a suspended generator's frame; returns what it yields, None at its end."""
        raise GraphBreak("FJ0160", "a generator must run and no interpreter is attached")

    def holds(self, value: Value) -> bool:
        """Does anything that the program can reach hold this value?"""
        return True
