"""The program of a seed, whichever writer wrote it."""

from __future__ import annotations

from alias_programs import alias_program
from computing_programs import computing_program
from operator_programs import operator_program
from program_writer import FIRST_WITH_IDIOMS, PRELUDE, Program, random_program
from repeated_programs import repeated_program
from replacing_programs import replacing_program
from state_programs import state_program
from training_programs import training_program
from transforms import with_break_places, with_other_names

#: Seeds from here on are programs about state.
FIRST_STATE_PROGRAM = 1_000_000
#: Seeds from here on are those of `random_program` with other names and breaks at any place.
FIRST_CHANGED_PROGRAM = 2_000_000
#: Seeds from here on are programs about state that call everything there is.
FIRST_PROGRAM_OF_CALLS = 3_000_000
#: Seeds from here on use functions of functions of tensors, autograd, modules, arrays, ... as well.
FIRST_PROGRAM_OF_FEATURES = 4_000_000
#: Seeds from here on make classes with random special methods, and ask them.
FIRST_PROGRAM_OF_OBJECTS = 5_000_000
#: Seeds from here on call one function many times, with other objects.
FIRST_PROGRAM_OF_REPEATS = 6_000_000
#: Seeds from here on do so without gradients.
FIRST_PROGRAM_OF_COMPUTING_REPEATS = 6_500_000
#: Seeds from here on compute gradients.
FIRST_PROGRAM_OF_TRAINING = 7_000_000
#: Seeds from here on are about memory that tensors share.
FIRST_PROGRAM_OF_ALIASES = 8_000_000
#: Seeds from here on call operators with numbers that vary.
FIRST_PROGRAM_OF_OPERATORS = 9_000_000
#: Seeds from here on replace functions, methods and operators for some of their calls.
FIRST_PROGRAM_OF_REPLACING = 10_000_000


def program_of(seed: int) -> Program:
    """The program of a seed; the same in every process."""
    if seed >= FIRST_PROGRAM_OF_REPLACING:
        return replacing_program(seed)
    if seed >= FIRST_PROGRAM_OF_OPERATORS:
        return operator_program(seed)
    if seed >= FIRST_PROGRAM_OF_ALIASES:
        return alias_program(seed)
    if seed >= FIRST_PROGRAM_OF_TRAINING:
        return training_program(seed)
    if seed >= FIRST_PROGRAM_OF_REPEATS:
        if seed >= FIRST_PROGRAM_OF_COMPUTING_REPEATS and seed % 2:
            return computing_program(seed)
        return repeated_program(seed, seed < FIRST_PROGRAM_OF_COMPUTING_REPEATS)
    if seed >= FIRST_PROGRAM_OF_OBJECTS:
        return state_program(seed, "objects")
    if seed >= FIRST_PROGRAM_OF_FEATURES:
        return state_program(seed, "features")
    if seed >= FIRST_PROGRAM_OF_CALLS:
        return state_program(seed, "calls")
    if seed >= FIRST_CHANGED_PROGRAM:
        program = random_program(FIRST_WITH_IDIOMS + seed - FIRST_CHANGED_PROGRAM)
        source = with_other_names(program.source, PRELUDE, seed)
        return Program(with_break_places(source, PRELUDE, seed), program.calls)
    if seed >= FIRST_STATE_PROGRAM:
        return state_program(seed)
    return random_program(seed)
