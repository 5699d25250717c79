"""How the units of a release's bytecode are read: what the tables of every release are made of.

In: `dis` of the running interpreter. Out: the ways to read an operand, and lists by opcode number.
A release's module says which unit is read in which way; `decode` has a branch for each. Next: the
modules of the releases.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Container, Iterable, Mapping
from types import CodeType
from typing import Any, NamedTuple

# How an operand is read. One number per way.
NO_OPERAND, RAW, CONSTANT, NAME, SLOT, GLOBAL, COMPARISON, BINARY, CALL, PIECES = range(10)
JUMP_FORWARD, JUMP_BACKWARD, WITH_KEYWORDS = range(10, 13)
KEYWORD_NAMES, CALL_PREFIX, EXTENSION, DROPPED = range(13, 17)

#: They leave no instruction of their own.
_FOLDED = frozenset((KEYWORD_NAMES, CALL_PREFIX, EXTENSION, DROPPED))

#: Units by name and operand.
Units = tuple[tuple[str, int], ...]


class Piece(NamedTuple):
    """A canonical instruction that stands for a unit, or for a part of one.

    ``alone`` are units that do just this; empty where the unit itself does.
    """

    op: str
    arg: int = 0
    value: Any = None
    alone: Units = ()


#: From the operand, the code object and the names of its slots.
Reader = Callable[[int, CodeType, tuple[str, ...]], tuple[Piece, ...]]

NUMBERS: dict[str, int] = {
    name: number
    for name, number in dis.opmap.items()
    if number < 256 and not name.startswith(("INSTRUMENTED_", "<"))
}
"""The opcodes that a code object may have."""

# Operand of BINARY_OP -> (operator, 1 when in-place).
BINARY_OPERATORS: tuple[tuple[str, int], ...] = tuple(
    (text.removesuffix("="), int(name.startswith("NB_INPLACE")))
    for name, text in dis._nb_ops  # type: ignore[attr-defined]
)


def canonical_names(renamed: Mapping[str, str]) -> list[str]:
    """Per opcode number: its canonical name."""
    return [renamed.get(name, name) for name in dis.opname[:256]]


def operand_kinds(
    special: Mapping[str, int], pieces: Mapping[str, Reader], has_operand: Container[int]
) -> list[int]:
    """Per opcode number: how to read its operand."""

    def kind(name: str, opcode: int) -> int:
        if name in pieces:
            return PIECES
        if name in special:
            return special[name]
        if opcode in dis.hasjrel:
            return JUMP_BACKWARD if "BACKWARD" in name else JUMP_FORWARD
        if opcode in dis.hasconst:
            return CONSTANT
        if opcode in dis.hasname:
            return NAME
        if opcode in dis.haslocal or opcode in dis.hasfree:
            return SLOT
        return RAW if opcode in has_operand else NO_OPERAND

    return [kind(name, number) for number, name in enumerate(dis.opname[:256])]


def produced(names: list[str], kinds: list[int], made: Iterable[str]) -> frozenset[str]:
    """The canonical opcodes of a release; ``made`` are those of pieces and joined units."""
    plain = {
        names[number]
        for number in NUMBERS.values()
        if kinds[number] not in _FOLDED and kinds[number] != PIECES
    }
    return frozenset(plain).union(made)
