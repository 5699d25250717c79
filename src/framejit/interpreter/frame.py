"""One symbolic frame: slots, stack, position. Plain data, so that a break can take it as it is.

In: decoded code and initial slots. Out: the state that codegen materialises at a graph break.
Next: interpreter.loop.
"""

from __future__ import annotations

import linecache
from typing import Any

from framejit.bytecode.analysis import handler_of_program
from framejit.bytecode.liveness import shares_locals
from framejit.bytecode.model import CodeInfo, Instruction
from framejit.values.core.base import Value
from framejit.values.core.constants import ConstantValue

_PUSH_TWO = frozenset(("LOAD_METHOD", "BEFORE_WITH", "LOAD_SPECIAL"))


class Frame:
    """``index`` is the instruction being executed, ``pc`` the next one; ``before`` is the stack as
    it was before the instruction (a break needs its operands back)."""

    __slots__ = (
        "before", "entry_handled", "first_step", "generator", "globals", "handed", "index", "info",
        "kind", "left", "live", "missing", "missing_step", "names", "operator_step", "parent", "pc",
        "program", "raises", "reads", "result", "seen", "slots", "stack", "subject",
    )  # fmt: skip

    def __init__(
        self,
        info: CodeInfo,
        program: list[tuple[Any, Instruction]],
        slots: list[Value | None],
        namespace: dict[str, Any],
        parent: Frame | None,
    ) -> None:
        self.info = info
        self.program = program
        self.slots = slots
        self.globals = namespace
        self.parent = parent
        self.stack: list[Value] = []
        self.before: list[Value] = []
        self.pc = 0
        self.index = 0
        #: The result of the frame instead of what it returns (a constructor's new object).
        self.result: Value | None = None
        #: The step to break at should the frame return NotImplemented (0: it may).
        self.operator_step = 0
        #: It reads this attribute of this object; on AttributeError ``__getattr__`` is asked.
        self.missing: tuple[Any, str] | None = None
        self.missing_step = 0
        #: It reads this attribute of this object, which its AttributeErrors name.
        self.reads: tuple[Value, str] | None = None
        #: The exception being handled when the frame was entered.
        self.entry_handled: Value | None = None
        #: The namespace of a class body, for names that are looked up dynamically.
        self.names: dict[str, Value] | None = None
        #: It has returned, or an exception has left it.
        self.left = False
        #: The number of the instruction that made it.
        self.first_step = 0
        #: Somebody looks at the real frame: it goes on as plain Python from the break on.
        self.seen = False
        #: It is left by an error, whose traceback shows its variables.
        self.raises = False
        #: The operands of the operation at which it, or a frame that it called, has broken.
        self.handed: list[Value] = []
        #: The slots that a continuation gets (`codegen.function.live_slots_of`).
        self.live: frozenset[int] | None = None
        #: Where the object comes from whose method it, or a frame that it is part of, runs; and
        #: among which calls it is looked at, if it is (`call_recordings`).
        self.subject: Any = None
        self.kind: Any = None
        #: The generator this frame belongs to, while it runs.
        self.generator: Any = None

    @property
    def instruction(self) -> Instruction:
        """The instruction being executed."""
        return self.info.instructions[self.index]

    @property
    def line(self) -> tuple[str, int]:
        """The user's file and line."""
        return self.info.code.co_filename, self.instruction.line

    @property
    def may_catch(self) -> bool:
        """Is it inside a ``try``?"""
        start, code = handler_of_program(self.info, self.index), self.info.instructions
        if start < 0 or code[start].op != "PUSH_EXC_INFO":
            return False
        return code[start + 1].op != "WITH_EXCEPT_START"

    def shares_locals(self) -> bool:
        """May the code see that the variables it is given now are given as one dict?"""
        return shares_locals(self.info, self.index)

    def operands(self) -> list[Value]:
        """What code of others gets that the instruction runs: tests and loops run none."""
        op, depths = self.instruction.op, self.info.depth
        if self.instruction.target >= 0 or self.index + 1 == len(depths):
            return []
        pushes = 0 if op.startswith("STORE") else 2 if op in _PUSH_TWO else 1
        return self.before[max(0, depths[self.index + 1] - pushes) :]

    def chain(self) -> list[Frame]:
        """The frames from the outermost to this one."""
        frames: list[Frame] = []
        frame: Frame | None = self
        while frame is not None:
            frames.append(frame)
            frame = frame.parent
        frames.reverse()
        return frames


class CallChain:
    """Where an operation was recorded, from the outermost call on; a text when it is called.
    ``around``: the chain that a repeated call was made in."""

    __slots__ = ("around", "places")

    def __init__(
        self, places: list[tuple[Any, int, CodeInfo]], around: CallChain | None = None
    ) -> None:
        self.places = places
        self.around = around

    def all_places(self) -> list[tuple[Any, int, CodeInfo]]:
        """Those of the chain around it as well."""
        return self.places if self.around is None else self.around.all_places() + self.places

    def __call__(self) -> str:
        lines = []
        for code, index, info in self.all_places():
            line = info.instructions[index].line
            lines.append(f'  File "{code.co_filename}", line {line}, in {code.co_name}')
            text = linecache.getline(code.co_filename, line).strip()
            if text:
                lines.append(f"    {text}")
        return "\n".join(lines) + "\n"


class HandledValue(Value):
    """The slot in which CPython saves the previously handled exception while a handler runs.

    ``handled`` is the exception of this handler level, ``previous`` the one of the level below."""

    __slots__ = ("handled", "previous")

    def __init__(self, handled: Value, previous: Value | None) -> None:
        self.handled = handled
        self.previous = previous
        self.source = None

    def python_type(self) -> type:
        return type(None) if self.previous is None else self.previous.python_type()


NONE = ConstantValue(None)
