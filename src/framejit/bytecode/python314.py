"""The facts of CPython 3.14's bytecode, in the shape of `python311`.

In: `dis` of the running interpreter. Out: tables for decoding and for continuations. What differs
from `python313`: loads may borrow, items are a binary operator, `with` asks for its methods one by
one, `f(*args)` always has keywords or NULL, and the end of a loop is a unit of its own.
"""

from __future__ import annotations

import dis
from types import CodeType

from framejit.bytecode.model import Instruction
from framejit.bytecode.python313 import (
    CACHE_UNITS,
    CALL_SEQUENCE,
    COMPARISONS,
    FORWARD_JUMPS,
    NULL_ABOVE,
    ON_BOOLS,
    ONE_DICT_OF_LOCALS,
    pair,
)
from framejit.bytecode.python313 import JOINED as _JOINED
from framejit.bytecode.python313 import JOINED_ONLY as _JOINED_ONLY
from framejit.bytecode.python313 import MADE as _MADE
from framejit.bytecode.python313 import READERS as _READERS
from framejit.bytecode.python313 import RENAMED as _RENAMED
from framejit.bytecode.python313 import SPECIAL_OPERANDS as _SPECIAL_OPERANDS
from framejit.bytecode.python313 import join as _join
from framejit.bytecode.units import (
    BINARY_OPERATORS,
    DROPPED,
    NO_OPERAND,
    WITH_KEYWORDS,
    Piece,
    Reader,
    Units,
    canonical_names,
    operand_kinds,
    produced,
)

_SUBSCRIPTION = BINARY_OPERATORS.index(("[]", 0))
_ITEM = Piece("BINARY_SUBSCR", alone=(("BINARY_OP", _SUBSCRIPTION),))
_SLICE = Piece("BUILD_SLICE", 2, alone=(("BUILD_SLICE", 2),))


def _load_fast(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    # Alone it must not borrow: what is on the stack may outlive the variable.
    return (Piece("LOAD_FAST", operand, slots[operand], (("LOAD_FAST", operand),)),)


def _load_small_int(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    return (Piece("LOAD_CONST", -1, operand),)


def _load_common_constant(
    operand: int, code: CodeType, slots: tuple[str, ...]
) -> tuple[Piece, ...]:
    value = dis._common_constants[operand]  # type: ignore[attr-defined]
    if value is AssertionError:
        return (Piece("LOAD_ASSERTION_ERROR"),)
    return (Piece("LOAD_COMMON_CONSTANT", operand, value),)


def _load_special(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    name = dis._special_method_names[operand]  # type: ignore[attr-defined]
    return (Piece("LOAD_SPECIAL", operand, name),)


def _binary_op(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    if operand == _SUBSCRIPTION:
        return (_ITEM,)
    value, in_place = BINARY_OPERATORS[operand]
    return (Piece("BINARY_OP", in_place, value),)


def _binary_slice(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    return _SLICE, _ITEM


def _with_except_start(operand: int, code: CodeType, slots: tuple[str, ...]) -> tuple[Piece, ...]:
    return (Piece("WITH_EXCEPT_START", 1),)


READERS: dict[str, Reader] = {
    **{name: reader for name, reader in _READERS.items() if name != "RETURN_CONST"},
    "LOAD_FAST_BORROW": _load_fast,
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": pair("LOAD_FAST", "LOAD_FAST"),
    "LOAD_SMALL_INT": _load_small_int,
    "LOAD_COMMON_CONSTANT": _load_common_constant,
    "LOAD_SPECIAL": _load_special,
    "BINARY_OP": _binary_op,
    "BINARY_SLICE": _binary_slice,
    "WITH_EXCEPT_START": _with_except_start,
}

_SPECIAL = {
    **_SPECIAL_OPERANDS,
    "CALL_FUNCTION_EX": WITH_KEYWORDS,
    "NOT_TAKEN": DROPPED,
    "END_ASYNC_FOR": NO_OPERAND,  # it says where the loop is, to whoever monitors branches
}

CANONICAL_NAME: list[str] = canonical_names({**_RENAMED, "POP_ITER": "POP_TOP"})
OPERAND_KIND: list[int] = operand_kinds(_SPECIAL, READERS, frozenset(dis.hasarg))  # type: ignore[attr-defined]

JOINED: frozenset[str] = _JOINED | {"CALL_FUNCTION_EX"}


def join(earlier: Instruction, op: str, arg: int, value: object) -> tuple[str, int, object] | None:
    """The one instruction that ``earlier`` and the unit after it are; None if they are two."""
    if op == "CALL_FUNCTION_EX":
        return (op, 0, None) if earlier.op == "PUSH_NULL" else None
    return _join(earlier, op, arg, value)


SKIPPED: dict[str, int] = {"FOR_ITER": 2, "SEND": 1}
LOOP_END: Units = ("END_FOR", 0), ("POP_ITER", 0)

_MADE_HERE = _MADE | {
    "LOAD_FAST", "LOAD_COMMON_CONSTANT", "LOAD_ASSERTION_ERROR", "LOAD_SPECIAL", "BINARY_OP",
    "WITH_EXCEPT_START",
}  # fmt: skip
OPCODES: frozenset[str] = produced(CANONICAL_NAME, OPERAND_KIND, _MADE_HERE) - _JOINED_ONLY

#: An ended generator of 3.12 and 3.13 keeps the frame that ran it.
GENERATORS_KEEP_CALLERS = False

__all__ = [
    "CACHE_UNITS",
    "CALL_SEQUENCE",
    "COMPARISONS",
    "FORWARD_JUMPS",
    "GENERATORS_KEEP_CALLERS",
    "NULL_ABOVE",
    "ONE_DICT_OF_LOCALS",
    "ON_BOOLS",
]
