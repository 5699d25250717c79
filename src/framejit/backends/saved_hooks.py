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
from ..graph.nested import calls, close_hooks, open_hooks

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
    """Compile a graph in this block: the hooks around it and those that it opens are in place as
    graph modules.

    Ordinary functions are asked for each saved tensor anew, so they may decide by its size and
    dtype. Raises UntraceableHook when ``judge`` says no, and for hooks that use tensors (None).
    """
    if not pairs and as_modules(active) is not None:
        yield
        return
    known = [hooks for hooks in (*pairs, active) if hooks is not None]
    if None in pairs:
        raise UntraceableHook("FJ0118", "a saved-tensor hook uses a tensor")
    _judge_examples(known, judge, examples)

    def hooks_of_saved() -> Hooks | None:
        number = _pair_of_saved() if pairs else None
        return active if number is None else pairs[number]

    def pack(tensor: torch.Tensor) -> Any:
        hooks = hooks_of_saved()
        return tensor if hooks is None else _checked(hooks, judge, tensor)

    def unpack(packed: Any) -> Any:  # generated code would look for torch's own by name
        hooks = hooks_of_saved()
        return packed if hooks is None else hooks[1](packed)

    with torch.autograd.graph.saved_tensors_hooks(calls(pack), calls(unpack)):
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


def opened_hooks(module: torch.fx.GraphModule, training: bool) -> list[Hooks | None]:
    """The pairs of hooks that a graph opens, None for those that use tensors; the nodes under them
    are marked. Without training the graph is rid of them."""
    pairs: list[Hooks | None] = []
    opening: list[int] = []
    for node in list(module.graph.nodes):
        if node.target is open_hooks or node.target is close_hooks:
            if node.target is open_hooks:
                modules: list[Any] = [getattr(module, arg.target) for arg in node.args[:2]]
                pack, unpack = [m.held[0] for m in modules]
                opening.append(len(pairs))
                pairs.append(None if node.args[2:] else (pack, unpack))
            else:
                opening.pop()
            if not training:
                attributes = node.args[:2]
                module.graph.erase_node(node)
                for attribute in attributes:
                    module.graph.erase_node(attribute)
        elif opening and node.op.startswith("call"):
            node.meta["custom"] = {**node.meta.get("custom", {}), _MARK: opening[-1]}
    if pairs and not training:
        module.recompile()
    return pairs if training else []


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
