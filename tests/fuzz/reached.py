"""Lets a tracer see captures: which lines of framejit does the fuzzer reach?

Tracing rests while a miss is handled, because nobody wants to step through that; here it goes on.
``coverage run --source=src/framejit tests/fuzz FIRST LAST --coverage``, then ``coverage report``.
"""

from __future__ import annotations

import sys
from typing import Any

from framejit import compiler, native


def trace_captures() -> None:
    """From now on, captures are traced by the tracer that rests while they are made."""
    plain = compiler.capture

    def traced(*args: Any, **kwargs: Any) -> Any:
        before = sys.gettrace()
        sys.settrace(native.resting_tracer())
        try:
            return plain(*args, **kwargs)
        finally:
            sys.settrace(before)

    compiler.capture = traced
