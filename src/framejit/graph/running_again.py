"""Which recorded graphs can run once more where backward comes, unnoticed and to the same effect.

In: a recorded graph. Out: an answer; and the autocast that a graph was called under, to be entered
again. Used by what computes gradients that the compiled graph does not.
"""

from __future__ import annotations

import collections
import contextlib
import types
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .builder import ONCE, GraphBuilder
from .differentiation import TARGETS
from .lazy import targets_in
from .metadata import memory_key

_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia")


def runs_again(builder: GraphBuilder, module: torch.fx.GraphModule) -> bool:
    """Does the recorded graph compute the same, without code of the program's, and from results
    that the compiled graph has, too? (It may return one tensor that several results are views of.)
    """
    if module.meta.get(ONCE) or any(map(is_user_code, targets_in(module))):
        return False
    given = {id(one.example) for one in builder.placeholders}
    views: dict[int, list[bool]] = collections.defaultdict(list)
    for operation in {builder.operation(node) for node in builder.outputs}:
        for example in operation.examples if operation.differentiable else ():
            if given.isdisjoint(map(id, example.sharing)):
                views[memory_key(example)].append(example.fake._is_view())
    return all(len(found) == 1 or not all(found) for found in views.values())


def is_user_code(function: Any) -> bool:
    """Is what a node calls Python code of the user's (allowed in the graph, or an
    autograd.Function)?"""
    return type(function) is types.FunctionType and not (
        function in TARGETS or (function.__module__ or "").startswith("torch")
    )


def autocast_now() -> tuple[tuple[str, torch.dtype], ...]:
    """The kinds of devices with autocast, and to what."""
    if not torch._C._is_any_autocast_enabled():
        return ()
    devices = (*_DEVICES, torch._C._get_privateuse1_backend_name())
    return tuple([
        (one, torch.get_autocast_dtype(one)) for one in devices if torch.is_autocast_enabled(one)
    ])  # fmt: skip


@contextlib.contextmanager
def under_autocast(devices: Sequence[tuple[str, torch.dtype]]) -> Iterator[None]:
    """This autocast and no other in the block."""
    with torch._C._DisableAutocast(), contextlib.ExitStack() as stack:
        for device, dtype in devices:
            stack.enter_context(torch.autocast(device, dtype))
        yield
