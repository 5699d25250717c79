"""Graph breaks that a test forces before one instruction (D19), and where they can be forced.

In: a code object and the index of an instruction in it. Out: other handlers for that instruction,
in every frame of the code that the interpreter makes; everything after a forced break is what
comes after any other. Without `forced_break` and `noted` nothing of this is asked. Next: loop.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import CodeType
from typing import Any

from framejit.bytecode.instruction_set import PART_OF_FRAME
from framejit.bytecode.model import CodeInfo, Instruction
from framejit.exc import FrameSeen, GraphBreak

#: Where a break says so.
REASON = "a break is forced in front of this instruction"

Program = list[tuple[Any, Instruction]]


class Forced:
    """A break before one instruction, wherever it is executed."""

    def __init__(self, code: CodeType, index: int) -> None:
        self.code = code
        self.index = index
        #: How often it was asked for, and whether it still is.
        self.hits = 0
        self.on = True

    def program(self, info: CodeInfo, program: Program) -> Program:
        """The handlers for a frame of ``info``."""
        if info.code != self.code:
            return program
        handler, instruction = program[self.index]

        def breaks(vm: Any, frame: Any, instruction: Instruction) -> Any:
            if not self.on:
                return handler(vm, frame, instruction)
            self.hits += 1
            raise GraphBreak("FJ0135", REASON)

        changed = list(program)
        changed[self.index] = (breaks, instruction)
        return changed


class Noted:
    """Notes which instructions are executed, without those that no break can come before:
    they belong to the start of a frame, or to what exceptions do to it, and are not executed apart
    from it (continuations do start before the latter), or they show the frame to the program,
    which then runs in plain Python from its start."""

    def __init__(self) -> None:
        self.executed: dict[CodeType, dict[int, None]] = {}

    def program(self, info: CodeInfo, program: Program) -> Program:
        """The handlers for a frame of ``info``."""
        seen = self.executed.setdefault(info.code, {})

        def noting(handler: Any) -> Any:
            def note(vm: Any, frame: Any, instruction: Instruction) -> Any:
                seen[instruction.index] = None
                try:
                    return handler(vm, frame, instruction)
                except FrameSeen:
                    del seen[instruction.index]
                    raise

            return note

        return [
            (handler, i) if i.index < info.body_start or i.op in PART_OF_FRAME
            else (noting(handler), i)
            for handler, i in program
        ]  # fmt: skip


#: What the frames of the next captures are changed by.
active: Forced | Noted | None = None


@contextlib.contextmanager
def _activated(wanted: Any) -> Iterator[Any]:
    global active
    before, active = active, wanted
    try:
        yield wanted
    finally:
        active = before


def forced_break(code: CodeType, index: int) -> contextlib.AbstractContextManager[Forced]:
    """Break before this instruction of every frame of ``code`` that is captured."""
    return _activated(Forced(code, index))


def noted() -> contextlib.AbstractContextManager[Noted]:
    """Note the instructions of what is captured."""
    return _activated(Noted())
