"""Symbolic execution of bytecode: frames, the loop, and one handler per opcode.

In: decoded code with the values of its slots. Out: an `Outcome` (returned a value, or broke at an
instruction, with every frame's state). It knows no types: all meaning is asked of `values.space`.
Next room: codegen.
"""
