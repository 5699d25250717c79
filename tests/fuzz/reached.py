"""Lets a tracer see captures: which lines of framejit does the fuzzer reach?

Tracing rests while a miss is handled, because nobody wants to step through that; here it goes on.
Lines of framejit that captures execute symbolically (`polyfills`) count as well.
``coverage run --source=src/framejit tests/fuzz FIRST LAST --coverage``, then ``coverage report``;
`measure` does it for a mixture of all programs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import coverage

import framejit
from framejit import compiler, native
from framejit.interpreter import forced

_OWN = str(Path(framejit.__file__).parent)


class Traced:
    """Notes the lines of framejit's own that are executed symbolically."""

    def __init__(self) -> None:
        self.lines: dict[str, set[int]] = {}

    def program(self, info: Any, program: forced.Program) -> forced.Program:
        """The handlers for a frame of ``info``."""
        if not info.code.co_filename.startswith(_OWN):
            return program
        seen = self.lines.setdefault(info.code.co_filename, set())

        def noting(handler: Any) -> Any:
            def note(vm: Any, frame: Any, instruction: Any) -> Any:
                seen.add(instruction.line)
                return handler(vm, frame, instruction)

            return note

        return [(noting(handler), instruction) for handler, instruction in program]


def trace_captures() -> Traced:
    """From now on, captures are traced by the tracer that rests while they are made."""
    plain, symbolic = compiler.capture, Traced()

    def traced(*args: Any, **kwargs: Any) -> Any:
        before, active = sys.gettrace(), forced.active
        sys.settrace(native.resting_tracer())
        forced.active = active or symbolic  # type: ignore[assignment]
        try:
            return plain(*args, **kwargs)
        finally:
            sys.settrace(before)
            forced.active = active

    compiler.capture = traced
    return symbolic


def report_symbolic(traced: Traced) -> None:
    """Add the lines that were executed symbolically to what is measured."""
    measured = coverage.Coverage.current()
    if measured is not None:
        lines = {name: sorted(seen) for name, seen in traced.lines.items()}
        measured.get_data().add_lines(lines)
