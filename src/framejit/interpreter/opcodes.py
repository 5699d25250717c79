"""Loads every opcode handler and checks that none is missing. Next: interpreter.loop."""

from __future__ import annotations

from framejit.bytecode.decode import OPCODES
from framejit.interpreter import opcodes_data, opcodes_flow
from framejit.interpreter.registry import check_complete

check_complete(OPCODES)

__all__ = ["opcodes_data", "opcodes_flow"]
