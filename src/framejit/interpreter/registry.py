"""The opcode table: one handler per canonical opcode, or a reason why there is none.

In: handlers registered by the ``opcodes_*`` modules. Out: `HANDLERS`, checked for completeness when
the package is imported (`check_complete`). Next: interpreter.loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from framejit.bytecode.instruction_set import INSTRUCTIONS
from framejit.bytecode.model import Instruction
from framejit.exc import GraphBreak

Handler = Callable[[Any, Any, Instruction], Any]

HANDLERS: dict[str, Handler] = {}


def opcode(*names: str) -> Callable[[Handler], Handler]:
    """Register the handler of these opcodes: ``handler(interpreter, frame, instruction)``."""

    def register(handler: Handler) -> Handler:
        for name in names:
            if name in HANDLERS:
                raise AssertionError(f"two handlers for {name}")
            HANDLERS[name] = handler
        return handler

    return register


def unsupported(identifier: str, reason: str, *names: str) -> None:
    """These opcodes are graph breaks."""

    def handler(interpreter: Any, frame: Any, instruction: Instruction) -> Any:
        raise GraphBreak(identifier, reason)

    opcode(*names)(handler)


def check_complete(produced: frozenset[str]) -> None:
    """This release has only what is in the table of instructions, and all of that is handled."""
    problems = {
        "without a row in bytecode/instruction_set.py": (produced | HANDLERS.keys())
        - set(INSTRUCTIONS),
        "without a handler in interpreter/opcodes_*.py": INSTRUCTIONS.keys() - HANDLERS.keys(),
    }
    texts = [f"{what}: {', '.join(sorted(names))}" for what, names in problems.items() if names]
    if texts:
        raise AssertionError(f"opcodes {'; '.join(texts)}")
