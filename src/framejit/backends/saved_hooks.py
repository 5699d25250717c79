"""Saved-tensor hooks that are active while a graph is compiled, or that a graph opens itself.

In: the hooks that ``torch.autograd.graph.saved_tensors_hooks`` has put in place. Out: a block in
which the graph's operations are traced by AOTAutograd under these hooks, as if it opened them
itself: each differentiates with what its own hooks return, also where they do not give back what
they were given. Hooks that do more than compute cannot be traced: `UntraceableHook`; their graph
runs operation by operation, so that they are called as often as in eager mode. Next: capture.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.fx
from torch.autograd.graph import saved_tensors_hooks

from ..exc import GraphBreak
from ..graph.lazy import outer_graph
from ..graph.nested import close_hooks, hooks_traced_as, open_hooks

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
def hooks_in_place(
    active: Hooks | None, pairs: Sequence[Hooks | None], judge: Judge, examples: Sequence[Any]
) -> Iterator[None]:
    """Compile a graph in this block: AOTAutograd traces the hooks around it, and those it opens.

    Ordinary functions are asked for each saved tensor anew, so they may decide by its size and
    dtype. Raises UntraceableHook when ``judge`` says no, and for hooks that use tensors (None).
    """
    if None in pairs:
        raise UntraceableHook("FJ0118", "a saved-tensor hook uses a tensor")
    known = [hooks for hooks in (*pairs, active) if hooks is not None]
    _judge_examples(known, judge, examples)
    with contextlib.ExitStack() as stack:
        stack.enter_context(hooks_traced_as(functools.partial(_traced, judge), active))
        if as_modules(active) is not None:  # AOTAutograd would put them around all that is saved
            stack.enter_context(saved_tensors_hooks(torch.detach, torch.detach))
        yield


def _traced(judge: Judge, pack: Hook, unpack: Hook) -> Hooks:
    """Hooks that AOTAutograd traces: each operation between opening and closing differentiates with
    what comes back from the hooks, as in eager mode, and no other does."""

    def checked(tensor: torch.Tensor) -> Any:
        _check((pack, unpack), judge, tensor)
        return pack(tensor)

    return checked, unpack


def _check(hooks: Hooks, judge: Judge, tensor: torch.Tensor) -> None:
    if as_modules(hooks) is None and not judge(*hooks, tensor):
        raise UntraceableHook("FJ0118", "a saved-tensor hook does more than compute")


def _judge_examples(pairs: Sequence[Hooks], judge: Judge, examples: Sequence[Any]) -> None:
    """A compiled graph saves its inputs without calling any hook."""
    seen = set()
    for example in examples:
        if isinstance(example, torch.Tensor) and example.is_floating_point():
            kind = (example.dtype, example.device, example.shape, example.stride())
            for hooks in pairs if kind not in seen else ():
                _check(hooks, judge, example)
            seen.add(kind)


# -- hooks that a graph opens ----------------------------------------------------------------------


def opened_hooks(module: torch.fx.GraphModule, training: bool) -> list[Hooks | None]:
    """The pairs of hooks that a graph opens, None for those that use tensors. Without training the
    graph is rid of them."""
    pairs: list[Hooks | None] = []
    for node in list(outer_graph(module).nodes):
        if node.target is open_hooks:
            modules: list[Any] = [getattr(module, arg.target) for arg in node.args[:2]]
            pack, unpack = [m.held[0] for m in modules]
            pairs.append(None if node.args[2:] else (pack, unpack))
        elif node.target is not close_hooks:
            continue
        if not training:
            attributes = node.args[:2]
            module.graph.erase_node(node)
            for attribute in attributes:
                module.graph.erase_node(attribute)
    if pairs and not training:
        module.recompile()
    return pairs if training else []
