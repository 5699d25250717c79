"""Blocks in which graph breaks are errors, or are not: ``torch._dynamo.error_on_graph_break``.

In: `with` blocks and decorated calls, also in captured code, which enters them as the plain Python
that they are. Out: whether breaks are errors here. Next room: compiler.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

#: What the blocks around this point say, the innermost last.
strictness: ContextVar[tuple[bool, ...]] = ContextVar("framejit strictness", default=())


class ErrorOnBreak:
    """Graph breaks in what is captured meanwhile are errors (`exc.Unsupported`), or are not;
    ``fullgraph`` is stronger. A ``with`` block, or a decorator."""

    def __init__(self, error_on_graph_break: bool) -> None:
        self.error_on_graph_break = bool(error_on_graph_break)

    def __enter__(self) -> ErrorOnBreak:
        strictness.set((*strictness.get(), self.error_on_graph_break))
        return self

    def __exit__(self, *error: object) -> None:
        strictness.set(strictness.get()[:-1])

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call


def is_strict(blocks: tuple[bool, ...]) -> bool:
    """Are breaks errors inside of these blocks?"""
    return bool(blocks and blocks[-1])
