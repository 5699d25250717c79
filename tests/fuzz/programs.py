"""The program of a seed, whichever writer wrote it."""

from __future__ import annotations

from program_writer import Program, random_program
from state_programs import state_program

#: Seeds from here on are programs about state.
FIRST_STATE_PROGRAM = 1_000_000


def program_of(seed: int) -> Program:
    """The program of a seed; the same in every process."""
    if seed >= FIRST_STATE_PROGRAM:
        return state_program(seed)
    return random_program(seed)
