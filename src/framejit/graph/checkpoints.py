"""Checkpoints in compiled graphs, whose operands begin or cease to require gradients later.

In: a compiled graph, and the recorded one. Out: a callable whose backward raises what
`torch.utils.checkpoint` raises where computing again would not save the same tensors: AOTAutograd
has decided what is computed again when it compiled the graph, and would return gradients. Next:
capture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch.utils.checkpoint import CheckpointError

from .gradients import compiled_node
from .nested import checkpointed
from .running_again import under_autocast

_Graph = Callable[..., Any]


def operands_of_checkpoints(module: torch.fx.GraphModule) -> tuple[int, ...]:
    """The positions of the arguments of a graph that checkpoints in it use."""
    nodes = module.graph.find_nodes(op="call_function", target=checkpointed)
    if not nodes:
        return ()
    used = {operand for node in nodes for operand in node.all_input_nodes}
    placeholders = module.graph.find_nodes(op="placeholder")
    return tuple([i for i, node in enumerate(placeholders) if node in used])


def with_checked_operands(graph: _Graph, recorded: _Graph, positions: tuple[int, ...]) -> _Graph:
    """``graph``, whose backward looks whether the arguments at these positions still require
    gradients, or still do not."""

    def run(*arguments: Any) -> Any:
        before = [_requires_gradient(arguments[at]) for at in positions]
        results = graph(*arguments)
        places: dict[Any, dict[int, int]] = {}
        for i, result in enumerate(results):
            node, number = compiled_node(result)
            if node is not None:
                places.setdefault(node, {})[number] = i
        for node, outputs in places.items():
            node.register_prehook(_Check(recorded, arguments, positions, before, outputs))
        return results

    return run


def _requires_gradient(argument: Any) -> bool:
    return isinstance(argument, torch.Tensor) and argument.requires_grad


class _Check:
    """Called before the compiled backward."""

    def __init__(
        self, recorded: _Graph, arguments: Sequence[Any], positions: tuple[int, ...],
        before: list[bool], outputs: dict[int, int],
    ) -> None:  # fmt: skip
        self.recorded = recorded
        self.arguments = arguments
        self.positions = positions
        #: Did those require gradients when the graph ran?
        self.before = before
        #: Outputs of the node, and which results of the graph these are.
        self.outputs = outputs

    def __call__(self, given: tuple[Any, ...]) -> None:
        arguments = self.arguments
        if not arguments:
            return
        now = [_requires_gradient(arguments[at]) for at in self.positions]
        if now != self.before:
            wanted = [at for n, at in self.outputs.items() if given[n] is not None]
            self._compute_again(wanted, now)
        if not torch._C._autograd._get_current_graph_task_keep_graph():  # type: ignore[attr-defined]
            self.arguments = ()

    def _compute_again(self, wanted: list[int], now: list[bool]) -> None:
        """Differentiate these results of the recorded graph, as plain Python would: it raises if
        that does. The numbers do not matter."""
        flags = dict(zip(self.positions, self.before, strict=True))
        with torch.random.fork_rng(), torch.enable_grad(), under_autocast(None):
            copies = [
                argument.detach().clone().requires_grad_(flags.get(at, argument.requires_grad))
                if isinstance(argument, torch.Tensor) else argument
                for at, argument in enumerate(self.arguments)
            ]  # fmt: skip
            results = self.recorded(*copies)
            for at, flag in zip(self.positions, now, strict=True):
                if isinstance(copies[at], torch.Tensor):
                    copies[at].requires_grad_(flag)
            leaves = [copy for copy in copies if _requires_gradient(copy)]
            for result in [results[at] for at in wanted]:
                try:
                    torch.autograd.grad(
                        result, leaves, torch.ones_like(result), True, allow_unused=True
                    )
                except CheckpointError:
                    raise
                except RuntimeError:
                    continue  # whatever it is, the compiled backward says it
