"""Decodes a code object to canonical instructions; the result is cached as long as the code lives.

In: a code object of the running Python release. Out: `CodeInfo`. Prefixes, caches and operations
without effect disappear; a call is one instruction; jumps point to instruction indices. Only
``co_code`` is read, so specialised and instrumented opcodes never show up. Next room: interpreter.
"""

from __future__ import annotations

import inspect
import weakref
from types import CodeType
from typing import Any

from framejit.bytecode import exception_table
from framejit.bytecode.analysis import analyse
from framejit.bytecode.instruction_set import ENDS_FLOW, Trait, having, stack_effect
from framejit.bytecode.model import CodeInfo, Handler, Instruction, Part
from framejit.bytecode.release import tables
from framejit.bytecode.units import (
    BINARY,
    BINARY_OPERATORS,
    CALL,
    COMPARISON,
    CONSTANT,
    DROPPED,
    EXTENSION,
    GLOBAL,
    JUMP_BACKWARD,
    JUMP_FORWARD,
    KEYWORD_NAMES,
    NAME,
    NUMBERS,
    PIECES,
    RAW,
    SLOT,
    WITH_KEYWORDS,
)

OPCODES: frozenset[str] = tables.OPCODES
"""Every canonical opcode that `decode` can produce on this Python release."""

_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_PROLOGUE = having(Trait.PROLOGUE)
#: With them start handlers that CPython adds to generators on its own account: they do what it does
#: elsewhere in releases without them, so an exception goes on to the program's.
_OF_GENERATORS = frozenset({"CLEANUP_THROW", "STOPITERATION_ERROR"})

_readers = {NUMBERS[name]: reader for name, reader in tables.READERS.items()}

# Keyed by identity: code objects that compare equal may still differ in what we derive from them.
_cache: dict[int, CodeInfo] = {}


def decode(code: CodeType) -> CodeInfo:
    """Decode ``code``; the same `CodeInfo` is returned as long as ``code`` lives."""
    info = _cache.get(id(code))
    if info is not None and info.code_ref() is code:
        return info
    key = id(code)
    info = _decode(code, weakref.ref(code, lambda _: _cache.pop(key, None)))
    _cache[key] = info
    return info


def _decode(code: CodeType, code_ref: weakref.ref[CodeType]) -> CodeInfo:
    locals_and_cells = dict.fromkeys((*code.co_varnames, *code.co_cellvars))
    slot_names = (*locals_and_cells, *code.co_freevars)
    free_start = len(locals_and_cells)
    cells = frozenset(code.co_cellvars)
    cell_slots = frozenset(
        slot for slot, name in enumerate(slot_names) if slot >= free_start or name in cells
    )
    units = _Units(code, slot_names)
    instructions, index_of = units.instructions, units.index_of
    entries = exception_table.parse(code.co_exceptiontable)
    handlers = _handlers(entries, instructions, index_of, units.tests)
    depth, exc_slots = analyse(instructions, units.effects, handlers)
    body_start = 0
    while instructions[body_start].op in _PROLOGUE:
        body_start += 2 if instructions[body_start].op == "RETURN_GENERATOR" else 1
    flags = code.co_flags
    return CodeInfo(
        code_ref=code_ref,
        instructions=instructions,
        index_of=index_of,
        slot_names=slot_names,
        n_args=code.co_argcount
        + code.co_kwonlyargcount
        + bool(flags & inspect.CO_VARARGS)
        + bool(flags & inspect.CO_VARKEYWORDS),
        cell_slots=cell_slots,
        free_start=free_start,
        handlers=handlers,
        depth=depth,
        exc_slots=exc_slots,
        is_generator=bool(flags & _SUSPENDS),
        body_start=body_start,
        exception_entries=entries,
        parts=units.parts,
    )


class _Units:
    """The units of a code object, and the instructions that have been made of them."""

    def __init__(self, code: CodeType, slot_names: tuple[str, ...]) -> None:
        self.code = code
        self.slot_names = slot_names
        self.positions = list(code.co_positions())
        self.line = code.co_firstlineno
        self.keywords: tuple[str, ...] = ()
        self.instructions: list[Instruction] = []
        #: The index of the instruction at each byte offset.
        self.index_of: dict[int, int] = {}
        #: The stack effects per index: of going on, and of jumping.
        self.effects: list[tuple[int, int]] = []
        self.parts: dict[int, Part] = {}
        #: The indices of tests of what is a bool for CPython.
        self.tests: list[int] = []
        self._read()

    def _read(self) -> None:
        raw, instructions, index_of = self.code.co_code, self.instructions, self.index_of
        operand_kind, cache_units, skipped = (
            tables.OPERAND_KIND,
            tables.CACHE_UNITS,
            tables.SKIPPED,
        )
        jumps: list[tuple[Instruction, int]] = []
        operand = 0
        unit_start = cursor = 0
        size = len(raw)
        while cursor < size:
            opcode = raw[cursor]
            operand |= raw[cursor + 1]
            kind = operand_kind[opcode]
            if kind == EXTENSION:
                operand <<= 8
                cursor += 2
                continue
            end = cursor + 2 + 2 * cache_units[opcode]
            # A jump to any part of a unit, or to a unit that is dropped, goes to what comes next.
            index_of[unit_start] = len(instructions)
            if kind >= KEYWORD_NAMES:
                if kind == KEYWORD_NAMES:
                    self.keywords = self.code.co_consts[operand]
                # The parts of a call become one instruction that starts at the first part.
                if kind == DROPPED:
                    unit_start = end
            elif kind == PIECES:
                self._take_apart(opcode, operand, unit_start, end, cursor >> 1)
                unit_start = end
            else:
                made = self._add(opcode, kind, operand, unit_start, end, cursor >> 1)
                if kind == JUMP_FORWARD:
                    jumps.append((made, end + 2 * (operand + skipped.get(made.op, 0))))
                elif kind == JUMP_BACKWARD:
                    jumps.append((made, end - 2 * operand))
                unit_start = end
            cursor = end
            operand = 0
        for instruction, offset in jumps:
            instruction.target = index_of[offset]

    def _add(
        self, opcode: int, kind: int, operand: int, start: int, end: int, unit: int
    ) -> Instruction:
        """The instruction that a unit stands for, maybe with that before it."""
        op = tables.CANONICAL_NAME[opcode]
        arg = 0
        value: Any = None
        if kind == SLOT:
            arg, value = operand, self.slot_names[operand]
        elif kind == RAW:
            arg = operand
        elif kind == CONSTANT:
            arg, value = operand, self.code.co_consts[operand]
        elif kind == NAME:
            arg, value = operand, self.code.co_names[operand]
        elif kind == GLOBAL:
            arg, value = operand & 1, self.code.co_names[operand >> 1]
        elif kind == CALL:
            arg, value = operand, self.keywords
            self.keywords = ()
        elif kind == BINARY:
            value, arg = BINARY_OPERATORS[operand]
        elif kind == COMPARISON:
            value = tables.COMPARISONS[operand]
        elif kind == WITH_KEYWORDS:
            arg = 1
        if op in tables.JOINED:
            joined = tables.join(self.instructions[-1], op, arg, value)
            if joined is not None:
                op, arg, value = joined
                self.effects.pop()
                unit_start, start = start, self.instructions.pop().offset
                self.index_of[unit_start] = len(self.instructions)
            elif op in tables.ON_BOOLS:
                # What is there need not be a bool for us: a continuation makes it one.
                truth = ("TO_BOOL", 0)
                self.parts[len(self.instructions)] = Part((truth, (op, 0)), (truth,), start)
                self.tests.append(len(self.instructions))
        return self._put(op, arg, value, start, end, unit)

    def _take_apart(self, opcode: int, operand: int, start: int, end: int, unit: int) -> None:
        """The instructions that one unit stands for."""
        pieces = _readers[opcode](operand, self.code, self.slot_names)
        after = start if pieces[-1].op in ENDS_FLOW else end
        for number, (op, arg, value, alone) in enumerate(pieces):
            if number:
                rest = tuple([one for piece in pieces[number:] for one in piece.alone])
                self.parts[len(self.instructions)] = Part(alone, rest, after)
            elif alone:
                self.parts[len(self.instructions)] = Part(alone, (), start)
            self._put(op, arg, value, start, end, unit)

    def _put(self, op: str, arg: int, value: Any, start: int, end: int, unit: int) -> Instruction:
        positions = self.positions[unit]
        if positions[0] is not None:
            self.line = positions[0]
        index = len(self.instructions)
        made = Instruction(op, arg, value, -1, start, end, self.line, positions, index)
        self.instructions.append(made)
        self.effects.append(stack_effect(op, arg))
        return made


def _handlers(
    entries: list[exception_table.Entry],
    instructions: list[Instruction],
    index_of: dict[int, int],
    tests: list[int],
) -> list[Handler | None]:
    """The innermost handler per instruction index."""
    handlers: list[Handler | None] = [None] * len(instructions)
    for start, length, target, depth, push_lasti in entries:
        handler = Handler(index_of[2 * target], depth, push_lasti)
        index = index_of[2 * start]
        end = 2 * (start + length)
        while index < len(instructions) and instructions[index].offset < end:
            handlers[index] = handler
            index += 1
    for index in tests:  # compiled as if they could not raise; their bool is made before
        handlers[index] = handlers[index - 1]
    if any(instruction.op in _OF_GENERATORS for instruction in instructions):
        for index, found in enumerate(handlers):
            while found is not None and instructions[found.target].op in _OF_GENERATORS:
                found = handlers[found.target]
            handlers[index] = found
    return handlers
