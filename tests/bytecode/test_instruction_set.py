"""The table of instructions agrees with this release of Python, and with what reads it."""

import dis

import pytest

from framejit.bytecode.decode import OPCODES
from framejit.bytecode.instruction_set import INSTRUCTIONS, stack_effect
from framejit.bytecode.release import tables
from framejit.interpreter.registry import HANDLERS

#: What takes the place of several units, or is counted at another moment than by `dis`.
OTHERWISE = {"CALL", "RETURN_GENERATOR"}


def test_every_instruction_is_in_the_table_and_has_a_handler():
    assert set(INSTRUCTIONS) == set(HANDLERS) and set(INSTRUCTIONS) >= OPCODES


@pytest.mark.parametrize("op", sorted(OPCODES - OTHERWISE))
def test_effect_on_the_stack(op):
    numbers = [n for n in dis.opmap.values() if tables.CANONICAL_NAME[n] == op]
    compared = 0
    for number in numbers:
        kind = tables.OPERAND_KIND[number]
        operands = (2, 3) if op == "BUILD_SLICE" else range(6)
        for operand in operands if number >= dis.HAVE_ARGUMENT else (0,):
            given = operand if number >= dis.HAVE_ARGUMENT else None
            expected = tuple(dis.stack_effect(number, given, jump=jump) for jump in (False, True))
            arg = operand & 1 if kind == tables.GLOBAL else operand
            assert stack_effect(op, arg) == expected, (op, operand)
            compared += 1
    assert compared


def test_effect_of_a_call():
    assert stack_effect("CALL", 3) == (-4, -4)
    assert stack_effect("RETURN_GENERATOR", 0) == (1, 1)
