"""Imports that take long, where a call must not wait for them.

In: a block in which they are refused. Out: `NotLoaded` in place of the import; whoever catches it
has the modules loaded elsewhere, and tries again later. Used by static_mode and fakes.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextvars import ContextVar

#: What sizes that vary need, and what whole modes of fake tensors do: a second or more each.
MODULES = ("torch.fx.experimental.symbolic_shapes", "torch._dynamo")

#: What the code in them imports when it first runs.
LATER = ("framejit.graph.symbols", "sympy.tensor.tensor", "torch.fx.experimental.validator")

_refused: ContextVar[bool] = ContextVar("framejit refuses slow imports", default=False)


class NotLoaded(BaseException):
    """A module would have to be imported. No error of the program's: no handler may see it."""


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """A block that imports none of `MODULES`. Raises NotLoaded."""
    token = _refused.set(True)
    try:
        yield
    finally:
        _refused.reset(token)


def about_to_import(name: str) -> None:
    """One of `MODULES` is needed now. Raises NotLoaded."""
    if _refused.get() and name not in sys.modules:
        raise NotLoaded(name)
