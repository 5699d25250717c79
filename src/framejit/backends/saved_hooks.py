"""Saved-tensor hooks that are active while a graph is compiled.

In: the hooks that ``torch.autograd.graph.saved_tensors_hooks`` has put in place. Out: the same
hooks as graph modules, which AOTAutograd makes part of the forward and the backward graph. Hooks
that do more than compute cannot be: `UntraceableHook`; their graph runs operation by operation, so
that they are called as often as in eager mode. Next: capture.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.fx

from ..exc import GraphBreak

Hook = Callable[[Any], Any]
Hooks = tuple[Hook, Hook]
#: Says whether ``unpack(pack(x))`` only computes, for a tensor like the one given.
Judge = Callable[[Hook, Hook, torch.Tensor], bool]


class UntraceableHook(GraphBreak):
    """A hook has an effect beside its result, or cannot be traced."""


def active_hooks() -> Hooks | None:
    """The innermost pack and unpack hooks of this thread; None where graphs need not know them.

    Those of ``torch.utils.checkpoint`` only count what is saved and compute it again; they work on
    whatever a compiled graph saves.
    """
    hooks: Hooks | None = torch._C._autograd._top_saved_tensors_default_hooks(True)
    if hooks is None or getattr(hooks[0], "__module__", None) == "torch.utils.checkpoint":
        return None
    return hooks


def as_modules(hooks: Hooks | None) -> tuple[torch.fx.GraphModule, torch.fx.GraphModule] | None:
    """The hooks, if both are graph modules."""
    if hooks is None or not all(isinstance(hook, torch.fx.GraphModule) for hook in hooks):
        return None
    return hooks  # type: ignore[return-value]


@contextlib.contextmanager
def inlineable(hooks: Hooks, judge: Judge, examples: Sequence[Any]) -> Iterator[None]:
    """Compile in this block: the hooks are in place as graph modules.

    Ordinary functions are asked for each saved tensor anew, so they may decide by its size and
    dtype. Raises UntraceableHook when ``judge`` says no.
    """
    if as_modules(hooks) is not None:
        yield
        return
    pack, unpack = hooks
    seen = set()
    for example in examples:  # a compiled graph saves its inputs without calling any hook
        if isinstance(example, torch.Tensor) and example.is_floating_point():
            kind = (example.dtype, example.device, example.shape, example.stride())
            if kind not in seen and not judge(pack, unpack, example):
                raise UntraceableHook("FJ0118", "a saved-tensor hook does more than compute")
            seen.add(kind)

    def checked_pack(tensor: torch.Tensor) -> Any:
        if not judge(pack, unpack, tensor):
            raise UntraceableHook("FJ0118", "a saved-tensor hook does more than compute")
        return pack(tensor)

    def plain_unpack(packed: Any) -> Any:  # generated code would look for torch's own by name
        return unpack(packed)

    modules = _calls(checked_pack), _calls(plain_unpack)
    with torch.autograd.graph.saved_tensors_hooks(*modules):
        yield


def _calls(function: Hook) -> torch.fx.GraphModule:
    """A graph module that calls a function. The call keeps AOTAutograd's cache away, which could
    not tell one function from another."""
    graph = torch.fx.Graph()
    argument = graph.placeholder("saved")
    graph.output(graph.call_function(function, (argument,)))
    return torch.fx.GraphModule(torch.nn.Module(), graph)
