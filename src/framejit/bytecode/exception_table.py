"""The exception table of a code object (CPython 3.11 and later) as plain tuples, and back.

In: ``co_exceptiontable``. Out: `Entry` tuples; positions are in code units of two bytes. The format
is a sequence of big-endian numbers of six-bit groups; bit 6 says that more groups follow, bit 7
marks the start of an entry. Next room: decode, continuations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Entry(NamedTuple):
    """Code units ``start`` up to ``start + length`` are covered by the handler at ``target``.

    ``depth`` and ``push_lasti`` as in `framejit.bytecode.model.Handler`. Entries are sorted and do
    not overlap: each is the innermost handler of its range.
    """

    start: int
    length: int
    target: int
    depth: int
    push_lasti: bool

    def moved(self, units: int) -> Entry:
        """The same entry after ``units`` code units were put in front of the code."""
        return Entry(
            self.start + units, self.length, self.target + units, self.depth, self.push_lasti
        )


def parse(table: bytes) -> list[Entry]:
    """Decode ``co_exceptiontable``."""
    entries: list[Entry] = []
    fields: list[int] = []
    number = 0
    for byte in table:
        number = number << 6 | byte & 0x3F
        if byte & 0x40:
            continue
        fields.append(number)
        number = 0
        if len(fields) == 4:
            start, length, target, depth_and_lasti = fields
            entries.append(
                Entry(start, length, target, depth_and_lasti >> 1, bool(depth_and_lasti & 1))
            )
            fields = []
    return entries


def covering(entries: Iterable[Entry], unit: int) -> Entry | None:
    """The entry of this code unit."""
    return next((e for e in entries if e.start <= unit < e.start + e.length), None)


def encode(entries: Iterable[Entry]) -> bytes:
    """Encode sorted entries to a ``co_exceptiontable``."""
    table = bytearray()
    for start, length, target, depth, push_lasti in entries:
        _append_number(table, start, 0x80)
        _append_number(table, length, 0)
        _append_number(table, target, 0)
        _append_number(table, depth << 1 | push_lasti, 0)
    return bytes(table)


def _append_number(table: bytearray, number: int, marker: int) -> None:
    """Append ``number`` in six-bit groups; ``marker`` is or-ed into the first byte."""
    shift = 0
    while number >> shift > 0x3F:
        shift += 6
    while shift:
        table.append(number >> shift & 0x3F | 0x40 | marker)
        marker = 0
        shift -= 6
    table.append(number & 0x3F | marker)
