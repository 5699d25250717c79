"""Bytes of single instructions and of line table entries, for the code put in front of a splice.

In: opcode names of the running release and operands. Out: code units with their prefixes and
caches, and line table entries (CPython 3.11 format, ``Objects/locations.md``). Next room:
continuations.
"""

from __future__ import annotations

import dis
from functools import lru_cache

from framejit.bytecode.model import Positions
from framejit.bytecode.release import tables
from framejit.bytecode.units import Units

_ENTRY_UNITS = 8  # the most code units that one line table entry covers
_NO_LOCATION, _LONG_FORM, _NO_COLUMNS = 15, 14, 13


@lru_cache(maxsize=8192)
def emit(name: str, operand: int = 0) -> bytes:
    """The code units of one instruction: prefixes for a long operand, the opcode, its caches."""
    opcode = dis.opmap[name]
    units = bytes((opcode, operand & 0xFF)) + bytes(2 * tables.CACHE_UNITS[opcode])
    operand >>= 8
    while operand:
        units = bytes((dis.EXTENDED_ARG, operand & 0xFF)) + units
        operand >>= 8
    return units


def emit_all(units: Units) -> bytes:
    """Several instructions."""
    return b"".join([emit(name, operand) for name, operand in units])


def emit_callable(load: bytes) -> bytes:
    """Put on the stack what ``load`` loads, to be called."""
    null = emit("PUSH_NULL")
    return load + null if tables.NULL_ABOVE else null + load


@lru_cache(maxsize=1024)
def emit_call(count: int) -> bytes:
    """Call with ``count`` positional arguments; below them lies what `emit_callable` puts there."""
    return b"".join([emit(name, count) for name in tables.CALL_SEQUENCE])


def emit_jump(op: str, distance: int) -> bytes:
    """A jump forward, over ``distance`` units, by its canonical name; tests may find any value."""
    truth = emit("TO_BOOL") if op in tables.ON_BOOLS else b""
    return truth + emit(tables.FORWARD_JUMPS[op], distance)


def without_location(units: int) -> bytes:
    """Line table entries for ``units`` code units that belong to no source line."""
    whole, rest = divmod(units, _ENTRY_UNITS)
    entries = bytes((_head(_NO_LOCATION, _ENTRY_UNITS),)) * whole
    return entries + bytes((_head(_NO_LOCATION, rest),)) if rest else entries


def with_location(units: int, positions: Positions, previous_line: int) -> bytes:
    """Line table entries for ``units`` code units at ``positions``.

    ``previous_line`` is the line that the table has reached before; afterwards it has reached
    ``positions[0]``, or is where it was when that is None.
    """
    line, end_line, column, end_column = positions
    if line is None:
        return without_location(units)
    table = bytearray()
    delta = line - previous_line
    while units:
        count = min(units, _ENTRY_UNITS)
        if end_line is None or column is None or end_column is None:
            table.append(_head(_NO_COLUMNS, count))
            _append_signed(table, delta)
        else:
            table.append(_head(_LONG_FORM, count))
            _append_signed(table, delta)
            _append_number(table, end_line - line)
            _append_number(table, column + 1)
            _append_number(table, end_column + 1)
        units -= count
        delta = 0
    return bytes(table)


def _head(form: int, units: int) -> int:
    return 0x80 | form << 3 | units - 1


def _append_signed(table: bytearray, number: int) -> None:
    _append_number(table, number << 1 if number >= 0 else -number << 1 | 1)


def _append_number(table: bytearray, number: int) -> None:
    """Append six-bit groups, the lowest first; bit 6 says that more follow."""
    while number > 0x3F:
        table.append(number & 0x3F | 0x40)
        number >>= 6
    table.append(number)
