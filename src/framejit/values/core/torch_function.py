"""What torch keeps of a thread for ``__torch_function__``: the modes, and who is asked at all.

In: the state at the start of a capture, then what the program changes (`effects`). Out: the state
at any time. It is modelled: what a capture itself computes must not be seen by the program's modes.
Next: effects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framejit.graph.global_state import ENABLED, OFF

if TYPE_CHECKING:
    from framejit.values.core.base import Value


class TorchFunction:
    """The state that the captured program is in."""

    def __init__(self) -> None:
        #: Are classes and modes asked, only modes, or neither?
        self.state: Any = ENABLED
        #: The modes that the program has entered, the innermost last.
        self.modes: list[Value] = []
        #: In which steps blocks were entered that are still open.
        self.blocks: list[int] = []
        #: Those classes of operands that are known to override torch's functions, or not to.
        self.classes: dict[type, bool] = {}

    def begin(self, state: Any) -> None:
        """The state where the program begins."""
        self.state = state

    @property
    def is_usual(self) -> bool:
        """Is it the state in which most programs run?"""
        return self.state == ENABLED and not self.modes

    @property
    def asks_modes(self) -> bool:
        return bool(self.modes) and self.state != OFF
