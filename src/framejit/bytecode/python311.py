"""The facts of CPython 3.11's bytecode: what each opcode is called and what its operand means.

In: `dis` of the running interpreter. Out: tables that `decode` and `assemble` read. A module of
this shape per Python release is all that differs; `release` picks the one for the running release.
"""

from __future__ import annotations

import dis

# How an operand is read. One number per way; `decode` has a branch for each.
NO_OPERAND, RAW, CONSTANT, NAME, SLOT, GLOBAL, COMPARISON, BINARY, CALL = range(9)
JUMP_FORWARD, JUMP_BACKWARD, KEYWORD_NAMES, CALL_PREFIX, EXTENSION, DROPPED = range(9, 15)

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


def _operand_kind(name: str, opcode: int) -> int:
    if name in _SPECIAL_OPERANDS:
        return _SPECIAL_OPERANDS[name]
    if opcode in dis.hasjrel:
        return JUMP_BACKWARD if "BACKWARD" in name else JUMP_FORWARD
    if opcode in dis.hasconst:
        return CONSTANT
    if opcode in dis.hasname:
        return NAME
    if opcode in dis.haslocal or opcode in dis.hasfree:
        return SLOT
    return RAW if opcode >= dis.HAVE_ARGUMENT else NO_OPERAND


# Per opcode number: its canonical name, how to read its operand, how many caches follow it.
CANONICAL_NAME: list[str] = [_RENAMED.get(name, name) for name in dis.opname]
OPERAND_KIND: list[int] = [_operand_kind(name, number) for number, name in enumerate(dis.opname)]
CACHE_UNITS: list[int] = list(dis._inline_cache_entries)  # type: ignore[attr-defined]

COMPARISONS: tuple[str, ...] = tuple(dis.cmp_op)
# Operand of BINARY_OP -> (operator, 1 when in-place).
BINARY_OPERATORS: tuple[tuple[str, int], ...] = tuple(
    (text.removesuffix("="), int(name.startswith("NB_INPLACE")))
    for name, text in dis._nb_ops  # type: ignore[attr-defined]
)

# A call with every argument on the stack, the callable below them and NULL below the callable.
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

OPCODES: frozenset[str] = frozenset(
    CANONICAL_NAME[number]
    for number in dis.opmap.values()
    if OPERAND_KIND[number] not in (KEYWORD_NAMES, CALL_PREFIX, EXTENSION, DROPPED)
)
