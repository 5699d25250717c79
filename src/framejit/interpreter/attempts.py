"""Calls that the program has not asked for, and that may turn out not to be captured.

In: a call on values, made in the middle of an operation. Out: its result, or None, with the
interpreter where it was. Next: loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from framejit.exc import GraphBreak
from framejit.interpreter.outcomes import Restart
from framejit.values.core.base import Raised, Value
from framejit.values.core.running import Running


class Attempts(Running):
    """The part of the interpreter that makes them."""

    level: int
    depth: int
    #: What is known of calls that are repeated; nothing is learnt from an attempt.
    recordings: Any
    #: How many instructions have been executed; those at which a break is planned.
    steps: int
    break_at: dict[int, GraphBreak]

    def attempt(self, call: Callable[[], Value]) -> Value | None:
        """Make a call that the program has not asked for; None where it cannot be captured.

        A break that is planned within it is meant for the operation that it is part of: what that
        does afterwards has the same step."""
        before, started = (self.level, self.depth, self.handled), self.steps
        self.recordings, recordings = None, self.recordings
        try:
            return call()
        except (GraphBreak, Restart, Raised):
            self.level, self.depth, self.handled = before
            if any(started < step <= self.steps for step in self.break_at):
                raise
            return None
        finally:
            self.recordings = recordings
