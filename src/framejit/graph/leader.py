"""What recording asks of whoever leads a capture.

In: questions about where the program is. Out: lines, stack traces, whether errors are met.
The `Leader` here knows nothing: it stands there before and after the capture. Next: builder.
"""

from __future__ import annotations

import types
from collections.abc import Callable


class Leader:
    """The interface; `values.core.running.Running` extends it, the interpreter fills it."""

    #: Called before an operation that saves tensors, which runs hooks of the program.
    before_saving: Callable[[], None] | None = None

    def stack_trace(self) -> str | Callable[[], str] | None:
        """What a new node carries as ``meta["stack_trace"]``, or a function that makes it when it
        is read."""
        return None

    def executing(self) -> tuple[types.CodeType, int] | None:
        """The code being executed, and the line."""
        return None

    def user_line(self) -> tuple[str, int] | None:
        """The user's (file, line) being executed, for what is assumed."""
        place = self.executing()
        return None if place is None else (place[0].co_filename, place[1])

    def in_try(self) -> bool:
        """Is the program inside a ``try`` of its own?"""
        return False
