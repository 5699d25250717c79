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
from framejit.bytecode.instruction_set import Trait, having, stack_effect
from framejit.bytecode.model import CodeInfo, Handler, Instruction
from framejit.bytecode.release import tables

OPCODES: frozenset[str] = tables.OPCODES
"""Every canonical opcode that `decode` can produce on this Python release."""

_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_PROLOGUE = having(Trait.PROLOGUE)

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
    instructions, index_of, effects = _instructions(code, slot_names)
    entries = exception_table.parse(code.co_exceptiontable)
    handlers = _handlers(entries, instructions, index_of)
    depth, exc_slots = analyse(instructions, effects, handlers)
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
    )


def _instructions(
    code: CodeType, slot_names: tuple[str, ...]
) -> tuple[list[Instruction], dict[int, int], list[tuple[int, int]]]:
    """The canonical instructions, the index at each byte offset, and the stack effects."""
    raw = code.co_code
    all_positions = list(code.co_positions())
    names, constants = code.co_names, code.co_consts
    canonical_name, operand_kind, cache_units = (
        tables.CANONICAL_NAME,
        tables.OPERAND_KIND,
        tables.CACHE_UNITS,
    )
    instructions: list[Instruction] = []
    index_of: dict[int, int] = {}
    effects: list[tuple[int, int]] = []
    jumps: list[tuple[Instruction, int]] = []
    keywords: tuple[str, ...] = ()
    line = code.co_firstlineno
    operand = 0
    unit_start = cursor = 0
    size = len(raw)
    while cursor < size:
        opcode = raw[cursor]
        operand |= raw[cursor + 1]
        kind = operand_kind[opcode]
        if kind == tables.EXTENSION:
            operand <<= 8
            cursor += 2
            continue
        end = cursor + 2 + 2 * cache_units[opcode]
        # A jump to any part of a unit, or to a unit that is dropped, goes to what comes next.
        index_of[unit_start] = len(instructions)
        if kind >= tables.KEYWORD_NAMES:
            if kind == tables.KEYWORD_NAMES:
                keywords = constants[operand]
            # The parts of a call become one instruction that starts at the first part.
            if kind == tables.DROPPED:
                unit_start = end
            cursor = end
            operand = 0
            continue
        arg = 0
        value: Any = None
        if kind == tables.SLOT:
            arg, value = operand, slot_names[operand]
        elif kind == tables.RAW:
            arg = operand
        elif kind == tables.CONSTANT:
            arg, value = operand, constants[operand]
        elif kind == tables.NAME:
            arg, value = operand, names[operand]
        elif kind == tables.GLOBAL:
            arg, value = operand & 1, names[operand >> 1]
        elif kind == tables.CALL:
            arg, value = operand, keywords
            keywords = ()
        elif kind == tables.BINARY:
            value, arg = tables.BINARY_OPERATORS[operand]
        elif kind == tables.COMPARISON:
            arg, value = operand, tables.COMPARISONS[operand]
        positions = all_positions[cursor >> 1]
        if positions[0] is not None:
            line = positions[0]
        instruction = Instruction(
            canonical_name[opcode],
            arg,
            value,
            -1,
            unit_start,
            end,
            line,
            positions,
            len(instructions),
        )
        if kind == tables.JUMP_FORWARD:
            jumps.append((instruction, end + 2 * operand))
        elif kind == tables.JUMP_BACKWARD:
            jumps.append((instruction, end - 2 * operand))
        instructions.append(instruction)
        effects.append(stack_effect(instruction.op, arg))
        unit_start = cursor = end
        operand = 0
    for instruction, offset in jumps:
        instruction.target = index_of[offset]
    return instructions, index_of, effects


def _handlers(
    entries: list[exception_table.Entry], instructions: list[Instruction], index_of: dict[int, int]
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
    return handlers
