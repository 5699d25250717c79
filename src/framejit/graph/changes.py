"""How much has happened in a capture: an instruction that did not raise the count left no trace.

In: notes from the doors that effects pass: an operation is recorded (`builder`), a change is logged
(`values.core.effects`), a class is changed (`class_lookup`), a value is written or an iterator
advanced (`space`), a frame is run (`interpreter.loop`). Out: the count. Next: builder.
"""

from __future__ import annotations


class Changes:
    """The count."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def note(self) -> None:
        """Something has happened."""
        self.count += 1
