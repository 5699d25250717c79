"""The facts of CPython 3.11's bytecode: what each opcode is called and what its operand means.

In: `dis` of the running interpreter. Out: tables that `decode`, `assemble` and `continuations`
read. A module of this shape per Python release is all that differs; `release` picks the one for
the running release.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from framejit.bytecode.model import Instruction
from framejit.bytecode.units import (
    BINARY,
    BINARY_OPERATORS,
    CALL,
    CALL_PREFIX,
    COMPARISON,
    DROPPED,
    EXTENSION,
    GLOBAL,
    KEYWORD_NAMES,
    Piece,
    Reader,
    Units,
    canonical_names,
    operand_kinds,
    produced,
)

_RENAMED = {
    "JUMP_FORWARD": "JUMP",
    "JUMP_BACKWARD": "JUMP",
    "JUMP_BACKWARD_NO_INTERRUPT": "JUMP",
    **{
        f"POP_JUMP_{direction}_IF_{condition}": f"POP_JUMP_IF_{condition}"
        for direction in ("FORWARD", "BACKWARD")
        for condition in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}

_SPECIAL_OPERANDS = {
    "LOAD_GLOBAL": GLOBAL,
    "COMPARE_OP": COMPARISON,
    "BINARY_OP": BINARY,
    "CALL": CALL,
    "KW_NAMES": KEYWORD_NAMES,
    "PRECALL": CALL_PREFIX,
    "EXTENDED_ARG": EXTENSION,
    "CACHE": DROPPED,
    "NOP": DROPPED,
    "RESUME": DROPPED,
}


def _load_method(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    # Executed as LOAD_ATTR, so that the layout is known: NULL, value.
    alone = ("LOAD_ATTR", operand), ("PUSH_NULL", 0), ("SWAP", 2)
    return (Piece("LOAD_METHOD", operand, code.co_names[operand], alone),)


#: Units that become other instructions than one of the same name.
READERS: dict[str, Reader] = {"LOAD_METHOD": _load_method}

# Per opcode number: its canonical name, how to read its operand, how many caches follow it.
CANONICAL_NAME: list[str] = canonical_names(_RENAMED)
OPERAND_KIND: list[int] = operand_kinds(_SPECIAL_OPERANDS, READERS, range(dis.HAVE_ARGUMENT, 256))
CACHE_UNITS: list[int] = list(dis._inline_cache_entries)  # type: ignore[attr-defined]

COMPARISONS: tuple[str, ...] = tuple(dis.cmp_op)

#: Units that are one instruction with that before them, if `join` says so: canonical names.
JOINED: frozenset[str] = frozenset()


def join(earlier: Instruction, op: str, arg: int, value: Any) -> tuple[str, int, Any] | None:
    """The one instruction that ``earlier`` and the unit after it are; None if they are two."""
    return None


#: Where a jump goes on when it is taken: so many units after what the operand says.
SKIPPED: dict[str, int] = {}
#: The units that are skipped: what a FOR_ITER must find at its target.
LOOP_END: Units = ()
#: They require a bool, which a TO_BOOL before them makes of what there is.
ON_BOOLS: frozenset[str] = frozenset()
#: For a call NULL lies above the callable, not below it.
NULL_ABOVE = False
#: A generator's frame that has ended keeps the frame that it was resumed from, if it is kept.
GENERATORS_KEEP_CALLERS = False
#: Each `locals()` of a function's frame gives the same dict, not another copy.
ONE_DICT_OF_LOCALS = True
# A call with every argument on the stack, the callable and NULL below them.
CALL_SEQUENCE: tuple[str, ...] = ("PRECALL", "CALL")
# Canonical name of a jump -> the opcode that jumps forward.
FORWARD_JUMPS: dict[str, str] = {
    "JUMP": "JUMP_FORWARD",
    "FOR_ITER": "FOR_ITER",
    "JUMP_IF_FALSE_OR_POP": "JUMP_IF_FALSE_OR_POP",
    "JUMP_IF_TRUE_OR_POP": "JUMP_IF_TRUE_OR_POP",
    **{
        f"POP_JUMP_IF_{condition}": f"POP_JUMP_FORWARD_IF_{condition}"
        for condition in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}

OPCODES: frozenset[str] = produced(CANONICAL_NAME, OPERAND_KIND, READERS)

__all__ = ["BINARY_OPERATORS"]
