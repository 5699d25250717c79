"""How long one capture may go on: in instructions, in instructions without an operation, in time.

In: the steps of a capture, from time to time. Out: nothing, or where plain Python is to go on
instead. A stretch that records no operation is taken back as a whole: what it made of Python's own
objects would have to be built again by the generated function. Next: interpreter.loop.
"""

from __future__ import annotations

from framejit import config
from framejit.exc import CaptureTooLong
from framejit.graph import instalments
from framejit.graph.builder import GraphBuilder

_CHECKED_EVERY = 8192
#: The same where the program goes on between two instructions.
_PAUSED_EVERY = 16


class Limits:
    """The limits of one capture, as they are set when it begins."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder
        self._steps, self._idle_steps = config.step_limit, config.idle_step_limit
        self._seconds = config.capture_seconds
        self._end = instalments.clock() + self._seconds
        #: How many steps there are from one check to the next.
        most = _CHECKED_EVERY if instalments.going_on() is None else _PAUSED_EVERY
        self.every = max(1, min(most, self._steps // 4, self._idle_steps // 4))
        self._operations = -1
        self._since, self._since_root = 0, 0

    def check(self, step: int) -> None:
        """Raises CaptureTooLong: the capture ends here."""
        if step >= self._steps:
            raise CaptureTooLong(f"the capture took more than {self._steps} instructions")
        if instalments.clock() > self._end:
            raise CaptureTooLong(f"the capture took more than {self._seconds} seconds")

    def idle_since(self, step: int, root_step: int) -> int | None:
        """The step from which on too many have recorded no operation: where the capture should
        have ended. ``root_step``: that of the instruction which this one is part of."""
        operations = self._builder.op_count
        if operations != self._operations:
            self._operations = operations
            self._since, self._since_root = step, root_step
        return self._since_root if step - self._since >= self._idle_steps else None

    def idle(self) -> CaptureTooLong:
        """Why it should."""
        return CaptureTooLong(
            f"more than {self._idle_steps} instructions in a row recorded no operation"
        )
