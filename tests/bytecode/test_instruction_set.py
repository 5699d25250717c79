"""The table of instructions agrees with this release of Python, and with what reads it."""

import dis

import pytest

from framejit.bytecode.decode import OPCODES
from framejit.bytecode.instruction_set import INSTRUCTIONS, stack_effect
from framejit.bytecode.release import tables
from framejit.bytecode.units import NO_OPERAND, NUMBERS, PIECES, WITH_KEYWORDS
from framejit.interpreter.registry import HANDLERS

#: What takes the place of several units, or is counted at another moment than by `dis`.
OTHERWISE = {"CALL", "RETURN_GENERATOR", "RETURN_VALUE", *tables.SKIPPED}


def test_every_instruction_is_in_the_table_and_has_a_handler():
    assert set(INSTRUCTIONS) == set(HANDLERS) and set(INSTRUCTIONS) >= OPCODES


def units_of(op):
    """The opcodes that stand for just this instruction."""
    return [
        number
        for number in NUMBERS.values()
        if tables.CANONICAL_NAME[number] == op and tables.OPERAND_KIND[number] != PIECES
    ]


@pytest.mark.parametrize("op", sorted(op for op in OPCODES - OTHERWISE if units_of(op)))
def test_effect_on_the_stack(op):
    for number in units_of(op):
        has_operand = tables.OPERAND_KIND[number] != NO_OPERAND
        operands = (2, 3) if op == "BUILD_SLICE" else range(6)
        for operand in operands if has_operand else (0,):
            given = operand if number in HAS_OPERAND else None
            expected = tuple(dis.stack_effect(number, given, jump=jump) for jump in (False, True))
            arg = operand & 1 if op == "LOAD_GLOBAL" else operand
            arg = 1 if tables.OPERAND_KIND[number] == WITH_KEYWORDS else arg
            assert stack_effect(op, arg) == expected, (op, operand)


@pytest.mark.parametrize("unit", sorted(tables.READERS))
def test_units_that_are_several_instructions_have_the_effect_of_all(unit):
    code, slots = test_effect_on_the_stack.__code__, tuple("abcdef")
    number = NUMBERS[unit]
    for operand in range(6):
        try:
            expected = dis.stack_effect(number, operand)
        except ValueError:
            expected = dis.stack_effect(number)
        try:
            pieces = tables.READERS[unit](operand, code, slots)
        except IndexError:
            assert "INTRINSIC" in unit or unit in ("LOAD_COMMON_CONSTANT", "LOAD_SPECIAL")
            continue
        assert sum(stack_effect(piece.op, piece.arg)[0] for piece in pieces) == expected
        for piece in pieces:
            alone = sum(
                dis.stack_effect(NUMBERS[name], arg if NUMBERS[name] in HAS_OPERAND else None)
                for name, arg in piece.alone
                if name != "RETURN_VALUE"
            )
            if piece.alone and piece.op not in ("RETURN_VALUE",):
                assert alone == stack_effect(piece.op, piece.arg)[0], piece


HAS_OPERAND = frozenset(
    getattr(dis, "hasarg", [n for n in NUMBERS.values() if n >= dis.HAVE_ARGUMENT])
)


def test_effect_of_a_call():
    assert stack_effect("CALL", 3) == (-4, -4)
    assert stack_effect("RETURN_GENERATOR", 0) == (1, 1)
