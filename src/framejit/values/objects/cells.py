"""The cells of closures.

In: existing cells with their sources, or new ones. Out: what they hold. Next: functions.
"""

from __future__ import annotations

import types
from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.core.base import Declared, Value
from framejit.values.core.registry import Result, wraps
from framejit.values.core.space import Space


class CellValue(Declared):
    """A closure cell; ``contents`` is None while it is empty."""

    contents: Value | None
    source: Source | None = None
    obj: Any = None
    mutated: bool = False
    kind = types.CellType

    def store(self, space: Space, value: Value | None) -> None:
        """Assign (or empty) the cell."""
        self.contents = value
        self.mutated = True
        space.changed(self)

    def getattr(self, space: Space, name: str) -> Result:
        if name == "cell_contents":
            if self.contents is None:
                return space.raise_error(ValueError, "Cell is empty")
            return self.contents
        return space.generic_getattr(self, name)

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        if isinstance(other, CellValue):
            raise GraphBreak("FJ0155", f"`{op}` of two closure cells")
        return None


@wraps(types.CellType)
def wrap_cell(space: Space, source: Source, obj: Any) -> CellValue:
    """The value of an existing cell; what it holds is guarded when it is looked at."""
    try:
        contents = obj.cell_contents
    except ValueError:
        space.guard(source.child("cell"), "ABSENT")
        cell = CellValue(None, source, obj)
    else:
        cell = CellValue(space.load(source.child("cell"), contents), source, obj)
    space.remember(obj, cell)
    return cell
