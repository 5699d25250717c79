"""Saved-tensor hooks that are active while a graph is compiled, or that a graph opens itself.

In: the hooks that ``torch.autograd.graph.saved_tensors_hooks`` has put in place. Out: the same
hooks as graph modules, which AOTAutograd makes part of the forward and the backward graph. Hooks
that do more than compute cannot be: `UntraceableHook`; their graph runs operation by operation, so
that they are called as often as in eager mode. A graph that opens hooks for some of its operations
runs them itself in that way; compiled with AOTAutograd, its hooks get what is saved for the
operations between opening and closing. Next: capture.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.fx

from ..exc import GraphBreak
from ..graph.nested import CLOSE_HOOKS, OPEN_HOOKS, calls

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
    _judge_examples([hooks], judge, examples)

    def checked_pack(tensor: torch.Tensor) -> Any:
        return _checked(hooks, judge, tensor)

    def plain_unpack(packed: Any) -> Any:  # generated code would look for torch's own by name
        return hooks[1](packed)

    with torch.autograd.graph.saved_tensors_hooks(calls(checked_pack), calls(plain_unpack)):
        yield


def _checked(hooks: Hooks, judge: Judge, tensor: torch.Tensor) -> Any:
    if as_modules(hooks) is None and not judge(*hooks, tensor):
        raise UntraceableHook("FJ0118", "a saved-tensor hook does more than compute")
    return hooks[0](tensor)


def _judge_examples(pairs: Sequence[Hooks], judge: Judge, examples: Sequence[Any]) -> None:
    """A compiled graph saves its inputs without calling any hook."""
    pairs = [hooks for hooks in pairs if as_modules(hooks) is None]
    seen = set()
    for example in examples:
        if isinstance(example, torch.Tensor) and example.is_floating_point():
            kind = (example.dtype, example.device, example.shape, example.stride())
            if kind not in seen and not all(judge(*hooks, example) for hooks in pairs):
                raise UntraceableHook("FJ0118", "a saved-tensor hook does more than compute")
            seen.add(kind)


# -- hooks that a graph opens ----------------------------------------------------------------------

#: In ``node.meta["custom"]``, which AOTAutograd hands on to the nodes of backward graphs: the
#: number of the pair of hooks that a node is under.
_MARK = "framejit_saved_tensor_hooks"


def opened_hooks(module: torch.fx.GraphModule, training: bool) -> list[Hooks]:
    """The pairs of hooks that a graph opens; the nodes under them are marked. Without training the
    graph is rid of them."""
    pairs: list[Hooks] = []
    opening: torch.fx.Node | None = None
    for node in list(module.graph.nodes):
        if node.target is OPEN_HOOKS or node.target is CLOSE_HOOKS:
            opening = node if node.target is OPEN_HOOKS else None
            if opening is not None:
                modules: list[Any] = [getattr(module, arg.target) for arg in node.args]
                pack, unpack = [m.meta.get("hook", m) for m in modules]
                pairs.append((pack, unpack))
            if not training:
                attributes = node.args
                module.graph.erase_node(node)
                for attribute in attributes:
                    module.graph.erase_node(attribute)
        elif opening is not None and node.op.startswith("call"):
            node.meta["custom"] = {**node.meta.get("custom", {}), _MARK: len(pairs) - 1}
    if pairs and not training:
        module.recompile()
    return pairs if training else []


@contextlib.contextmanager
def opened(pairs: Sequence[Hooks], judge: Judge, examples: Sequence[Any]) -> Iterator[None]:
    """Compile a graph in this block that opens these hooks."""
    _judge_examples(pairs, judge, examples)

    def pack(tensor: torch.Tensor) -> Any:
        number = _pair_of_saved()
        return tensor if number is None else _checked(pairs[number], judge, tensor)

    def unpack(packed: Any) -> Any:
        number = _pair_of_saved()
        return packed if number is None else pairs[number][1](packed)

    modules = calls(pack), calls(unpack)
    with torch.autograd.graph.saved_tensors_hooks(*modules):
        try:
            yield
        finally:
            close_hooks(modules[0])


def close_hooks(wanted: Hook | None) -> None:
    """Close what a graph opened that did not come to its end; ``wanted`` is the pack hook below."""
    while (hooks := active_hooks()) is not None and hooks[0] is not wanted:
        CLOSE_HOOKS()


def _pair_of_saved() -> int | None:
    """Of the tensor that AOTAutograd asks hooks for: which hooks all are under that use it in the
    backward graph."""
    # Slow optional dependency: whoever asks has imported it.
    from torch._functorch._aot_autograd.graph_compile import _get_saved_tensor_hook_context

    context = _get_saved_tensor_hook_context() or {}
    saved = context["_node"].name
    placeholders = context["_bw_graph"].find_nodes(op="placeholder")
    users = next(node.users for node in placeholders if node.name == saved)
    numbers = {(user.meta.get("custom") or {}).get(_MARK) for user in users}
    return numbers.pop() if len(numbers) == 1 else None
