"""The facts of CPython 3.13's bytecode, in the shape of `python311`.

In: `dis` of the running interpreter. Out: tables for decoding and for continuations. What differs
from `python312`: NULL lies above what is called, two loads or stores may be one unit, tests require
bools, the names of keywords are on the stack, and functions get their parts one by one.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from framejit.bytecode.model import Instruction
from framejit.bytecode.python312 import (
    CALL_SEQUENCE,
    FORWARD_JUMPS,
    HAS_OPERAND,
    RENAMED,
    binary_slice,
    intrinsic,
    return_const,
    store_slice,
)
from framejit.bytecode.python312 import MADE as _MADE
from framejit.bytecode.python312 import SPECIAL_OPERANDS as _SPECIAL_OPERANDS
from framejit.bytecode.python312 import join as _join_names
from framejit.bytecode.units import (
    DROPPED,
    Piece,
    Reader,
    Units,
    canonical_names,
    operand_kinds,
    produced,
)

_NULL = Piece("PUSH_NULL", alone=(("PUSH_NULL", 0),))


def _load_global(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    load = Piece("LOAD_GLOBAL", 0, code.co_names[operand >> 1], (("LOAD_GLOBAL", operand & ~1),))
    return (load, _NULL) if operand & 1 else (load,)


def _load_attr(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    op = "LOAD_ATTR_TO_CALL" if operand & 1 else "LOAD_ATTR"
    alone = (("LOAD_ATTR", operand & ~1),)
    load = Piece(op, operand >> 1, code.co_names[operand >> 1], alone)
    return (load, _NULL) if operand & 1 else (load,)


def _load_super_attr(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    call: Units
    if operand & 2:
        call = ("PUSH_NULL", 0), ("SWAP", 3), ("SWAP", 2), ("CALL", 2)
    else:
        call = ("POP_TOP", 0), ("POP_TOP", 0), ("PUSH_NULL", 0), ("CALL", 0)
    attribute = _load_attr((operand >> 2) << 1 | operand & 1, code, slots)
    return Piece("CALL_SUPER", operand >> 1 & 1, None, call), *attribute


def pair(first: str, second: str) -> Reader:
    """For two units in one: each gets half of the operand."""

    def read(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
        one, two = operand >> 4, operand & 15
        return (
            Piece(first, one, slots[one], ((first, one),)),
            Piece(second, two, slots[two], ((second, two),)),
        )

    return read


def _convert_value(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    return (Piece("FORMAT_VALUE", operand & 3),)


def _format_simple(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    return (Piece("FORMAT_VALUE"),)


def _format_with_spec(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    return (Piece("FORMAT_VALUE", 4),)


READERS: dict[str, Reader] = {
    "LOAD_GLOBAL": _load_global,
    "LOAD_ATTR": _load_attr,
    "LOAD_SUPER_ATTR": _load_super_attr,
    "LOAD_FAST_LOAD_FAST": pair("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": pair("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": pair("STORE_FAST", "STORE_FAST"),
    "CONVERT_VALUE": _convert_value,
    "FORMAT_SIMPLE": _format_simple,
    "FORMAT_WITH_SPEC": _format_with_spec,
    "RETURN_CONST": return_const,
    "BINARY_SLICE": binary_slice,
    "STORE_SLICE": store_slice,
    "CALL_INTRINSIC_1": intrinsic("CALL_INTRINSIC_1", dis._intrinsic_1_descs),  # type: ignore[attr-defined]
    "CALL_INTRINSIC_2": intrinsic("CALL_INTRINSIC_2", dis._intrinsic_2_descs),  # type: ignore[attr-defined]
}
SPECIAL_OPERANDS = {**_SPECIAL_OPERANDS, "ENTER_EXECUTOR": DROPPED, "EXIT_INIT_CHECK": DROPPED}
JOINED_ONLY = frozenset({"CALL_KW", "SET_FUNCTION_ATTRIBUTE"})

CANONICAL_NAME: list[str] = canonical_names(RENAMED)
OPERAND_KIND: list[int] = operand_kinds(SPECIAL_OPERANDS, READERS, HAS_OPERAND)
CACHE_UNITS: list[int] = [
    dis._inline_cache_entries.get(name, 0)  # type: ignore[attr-defined]
    for name in dis.opname[:256]
]

COMPARISONS: tuple[str, ...] = tuple(name for name in dis.cmp_op for _ in range(1 << 5))

ON_BOOLS: frozenset[str] = frozenset({"POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT"})
JOINED: frozenset[str] = ON_BOOLS | JOINED_ONLY | {"LOAD_FROM_DICT_OR_DEREF"}


def join(earlier: Instruction, op: str, arg: int, value: Any) -> tuple[str, int, Any] | None:
    """The one instruction that ``earlier`` and the unit after it are; None if they are two."""
    if op in ON_BOOLS:
        return (op, arg, value) if earlier.op == "TO_BOOL" else None
    if op == "CALL_KW":
        if earlier.op != "LOAD_CONST":
            raise ValueError("the names of keywords are no constant")
        return "CALL", arg, earlier.value
    if op == "SET_FUNCTION_ATTRIBUTE":
        if earlier.op != "MAKE_FUNCTION":
            raise ValueError("a function gets a part when it has been made")
        return "MAKE_FUNCTION", earlier.arg | arg, None
    return _join_names(earlier, op, arg, value)


SKIPPED: dict[str, int] = {"FOR_ITER": 2, "SEND": 1}
LOOP_END: Units = ("END_FOR", 0), ("POP_TOP", 0)
NULL_ABOVE = True
GENERATORS_KEEP_CALLERS = True
ONE_DICT_OF_LOCALS = False

MADE = (_MADE - {"LOAD_METHOD"}) | {"LOAD_ATTR_TO_CALL", "FORMAT_VALUE", "LOAD_GLOBAL"}
OPCODES: frozenset[str] = produced(CANONICAL_NAME, OPERAND_KIND, MADE) - JOINED_ONLY

__all__ = ["CALL_SEQUENCE", "FORWARD_JUMPS", "RENAMED"]
