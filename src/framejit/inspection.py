"""What can be read off a compiled object: the guards of its entries.

In: what `compile` returned. Out: plain data with a readable text; nothing is captured or changed.
Next room: api.
"""

from __future__ import annotations

import functools
import types
from typing import Any, NamedTuple

import torch

from framejit.callables import CompiledFrame
from framejit.guards.plan import Guard


class EntryGuards(NamedTuple):
    """The guards of one entry: what has to hold for its code to be used."""

    frame: str  # the function's qualified name; continuations end in __resume_at_<offset>
    place: str  # file.py:12
    number: int  # of the entry within its frame, from 0
    hits: int  # how often its code was run
    guards: list[Guard]

    def __str__(self) -> str:
        head = f"{self.frame} ({self.place}), entry {self.number}, used {self.hits} times"
        return "\n".join([f"{head}, {len(self.guards)} guards", *(f"  {g}" for g in self.guards)])


class GuardList(list[EntryGuards]):
    """One element per entry, functions before their continuations; prints all guards."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self)) or "nothing is compiled yet"

    __repr__ = __str__


def guards(compiled: Any) -> GuardList:
    """The guards of everything compiled for ``compiled``, with the user's line behind each.

    ``compiled``: what `framejit.compile` returned, or a function decorated with ``optimize``.
    ``print(framejit.guards(f))`` shows one guard a line: ``local 'x' TENSOR_MATCH Tensor float32[4]
    on cpu  # model.py:12: y = x + 1``. Raises TypeError for anything else.
    """
    frame = compiled_frame(compiled)
    if frame is None:
        raise TypeError(
            "guards() needs what framejit.compile returned, not "
            f"{'a module' if isinstance(compiled, torch.nn.Module) else repr(compiled)} [FJ0214]"
        )
    found = GuardList()
    for one in frame.compiler.frames():
        target = one.target
        place = f"{target.code.co_filename.rpartition('/')[2]}:{target.line}"
        for number, entry in enumerate(one.entries):
            plan = one.plans.get(id(entry))
            lines = [] if plan is None else plan.guards()
            found.append(EntryGuards(target.name, place, number, entry.hits, lines))
    return found


def compiled_frame(compiled: Any) -> CompiledFrame | None:
    """The compiled function behind a compiled function, method, partial, callable or module."""
    if isinstance(compiled, torch.nn.Module):
        compiled = type(compiled).__call__
    while isinstance(compiled, (types.MethodType, functools.partial)):
        inner: Any = compiled
        compiled = inner.__func__ if isinstance(inner, types.MethodType) else inner.func
    return compiled if isinstance(compiled, CompiledFrame) else None
