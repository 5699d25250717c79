"""Which recorded graphs can run once more where backward comes, unnoticed and to the same effect.

In: a recorded graph. Out: an answer; and the autocast that a graph was called under, to be entered
again. Used by what computes gradients that the compiled graph does not.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import torch

from .builder import ONCE
from .differentiation import TARGETS
from .global_state import Autocast
from .lazy import targets_in


def runs_again(module: torch.fx.GraphModule) -> bool:
    """Does the recorded graph compute the same, and without code of the program's?"""
    return not (module.meta.get(ONCE) or any(map(is_user_code, targets_in(module))))


def is_user_code(function: Any) -> bool:
    """Is what a node calls Python code of the user's (allowed in the graph, or an
    autograd.Function)?"""
    return type(function) is types.FunctionType and not (
        function in TARGETS or (function.__module__ or "").startswith("torch")
    )


def autocast_now() -> Autocast | None:
    """The autocast that a graph is called under; None: there is none."""
    return Autocast.now() if torch._C._is_any_autocast_enabled() else None


@contextlib.contextmanager
def under_autocast(wanted: Autocast | None) -> Iterator[None]:
    """This autocast in the block, whatever the block ends under; none for None. Casts that it has
    kept go, unless the program is inside of autocast itself."""
    before = Autocast.now()
    torch.autocast_increment_nesting()
    try:
        (before.off() if wanted is None else wanted).set()
        yield
    finally:
        before.set()
        if torch.autocast_decrement_nesting() == 0:
            torch.clear_autocast_cache()
