"""The facts of CPython 3.12's bytecode, in the shape of `python311`.

In: `dis` of the running interpreter. Out: tables for decoding and for continuations. Methods are
attributes with a bit, slices have units of their own, `super().name` is one unit, and a loop skips
the units at its end.
"""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

from framejit.bytecode.model import Instruction
from framejit.bytecode.units import (
    BINARY,
    CALL,
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

RENAMED = {
    "JUMP_FORWARD": "JUMP",
    "JUMP_BACKWARD": "JUMP",
    "JUMP_BACKWARD_NO_INTERRUPT": "JUMP",
    "LOAD_FAST_CHECK": "LOAD_FAST",
}

SPECIAL_OPERANDS = {
    "LOAD_GLOBAL": GLOBAL,
    "COMPARE_OP": COMPARISON,
    "BINARY_OP": BINARY,
    "CALL": CALL,
    "KW_NAMES": KEYWORD_NAMES,
    "EXTENDED_ARG": EXTENSION,
    "CACHE": DROPPED,
    "NOP": DROPPED,
    "RESUME": DROPPED,
    "END_FOR": DROPPED,
    "RESERVED": DROPPED,
    "INTERPRETER_EXIT": DROPPED,
}

_CALLED_WITH_NULL = ("PUSH_NULL", 0), ("SWAP", 2)


def _load_attr(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    index = operand >> 1
    name = code.co_names[index]
    if operand & 1:
        # Without that bit, so that the layout is known: NULL, value.
        alone = ("LOAD_ATTR", index << 1), *_CALLED_WITH_NULL
        return (Piece("LOAD_METHOD", index, name, alone),)
    return (Piece("LOAD_ATTR", index, name, (("LOAD_ATTR", operand),)),)


def _load_super_attr(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    call: Units
    if operand & 2:
        call = ("PUSH_NULL", 0), ("SWAP", 4), ("SWAP", 3), ("SWAP", 2), ("CALL", 2)
    else:
        call = ("POP_TOP", 0), ("POP_TOP", 0), *_CALLED_WITH_NULL, ("CALL", 0)
    attribute = _load_attr((operand >> 2) << 1 | operand & 1, code, slots)
    return Piece("CALL_SUPER", operand >> 1 & 1, None, call), *attribute


def return_const(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    load = Piece("LOAD_CONST", operand, code.co_consts[operand], (("LOAD_CONST", operand),))
    return load, Piece("RETURN_VALUE", alone=(("RETURN_VALUE", 0),))


_SLICE = Piece("BUILD_SLICE", 2, alone=(("BUILD_SLICE", 2),))


def binary_slice(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    return _SLICE, Piece("BINARY_SUBSCR", alone=(("BINARY_SUBSCR", 0),))


def store_slice(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    return _SLICE, Piece("STORE_SUBSCR", alone=(("STORE_SUBSCR", 0),))


_INTRINSICS = {
    "INTRINSIC_STOPITERATION_ERROR": "STOPITERATION_ERROR",
    "INTRINSIC_ASYNC_GEN_WRAP": "ASYNC_GEN_WRAP",
    "INTRINSIC_UNARY_POSITIVE": "UNARY_POSITIVE",
    "INTRINSIC_LIST_TO_TUPLE": "LIST_TO_TUPLE",
    "INTRINSIC_PREP_RERAISE_STAR": "PREP_RERAISE_STAR",
}


def intrinsic(unit: str, functions: list[str]) -> Reader:
    """For a unit whose operand says which function is called."""

    def read(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
        found = _INTRINSICS.get(functions[operand])
        return (Piece(unit, operand) if found is None else Piece(found),)

    return read


#: Units that become other instructions than one of the same name.
READERS: dict[str, Reader] = {
    "LOAD_ATTR": _load_attr,
    "LOAD_SUPER_ATTR": _load_super_attr,
    "RETURN_CONST": return_const,
    "BINARY_SLICE": binary_slice,
    "STORE_SLICE": store_slice,
    "CALL_INTRINSIC_1": intrinsic("CALL_INTRINSIC_1", dis._intrinsic_1_descs),  # type: ignore[attr-defined]
    "CALL_INTRINSIC_2": intrinsic("CALL_INTRINSIC_2", dis._intrinsic_2_descs),  # type: ignore[attr-defined]
}
#: What they and `join` make.
MADE = frozenset(
    ("LOAD_ATTR", "LOAD_METHOD", "CALL_SUPER", "LOAD_CONST", "RETURN_VALUE", "BUILD_SLICE",
     "BINARY_SUBSCR", "STORE_SUBSCR", "LOAD_CLASSDEREF", "CALL_INTRINSIC_1", "CALL_INTRINSIC_2",
     *_INTRINSICS.values())
)  # fmt: skip

HAS_OPERAND = frozenset(dis.hasarg)  # type: ignore[attr-defined]

CANONICAL_NAME: list[str] = canonical_names(RENAMED)
OPERAND_KIND: list[int] = operand_kinds(SPECIAL_OPERANDS, READERS, HAS_OPERAND)
CACHE_UNITS: list[int] = list(dis._inline_cache_entries)  # type: ignore[attr-defined]

COMPARISONS: tuple[str, ...] = tuple(name for name in dis.cmp_op for _ in range(1 << 4))

JOINED: frozenset[str] = frozenset({"LOAD_FROM_DICT_OR_DEREF"})


def join(earlier: Instruction, op: str, arg: int, value: Any) -> tuple[str, int, Any] | None:
    """The one instruction that ``earlier`` and the unit after it are; None if they are two."""
    return ("LOAD_CLASSDEREF", arg, value) if earlier.op == "LOAD_LOCALS" else None


SKIPPED: dict[str, int] = {"FOR_ITER": 1, "SEND": 1}
LOOP_END: Units = (("END_FOR", 0),)
ON_BOOLS: frozenset[str] = frozenset()
NULL_ABOVE = False
GENERATORS_KEEP_CALLERS = True
ONE_DICT_OF_LOCALS = True
CALL_SEQUENCE: tuple[str, ...] = ("CALL",)
FORWARD_JUMPS: dict[str, str] = {
    "JUMP": "JUMP_FORWARD",
    "FOR_ITER": "FOR_ITER",
    **{
        f"POP_JUMP_IF_{condition}": f"POP_JUMP_IF_{condition}"
        for condition in ("TRUE", "FALSE", "NONE", "NOT_NONE")
    },
}

OPCODES: frozenset[str] = produced(CANONICAL_NAME, OPERAND_KIND, MADE)
