"""Derivatives of the gradients that a compiled graph returns.

In: a compiled graph, whose backward can only run, and the recorded one. Out: a callable whose
gradients, where they are to be differentiated (``create_graph=True``), autograd computes once more
through the recorded graph. Where that would not be the same, their derivative is an error. Next:
backends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from .builder import ONCE
from .gradients import compiled_node
from .running_again import under_autocast

#: The recorded graph; None if it writes to its inputs or draws random numbers.
Recorded = Callable[[], Callable[..., Any] | None]


def recorded(module: torch.fx.GraphModule) -> Callable[..., Any] | None:
    """See `Recorded`."""
    return None if module.meta.get(ONCE) else module.forward


def no_second_derivative(place: str) -> str:
    """What autograd says of the graph that begins at ``place``."""
    return (
        f"no double backward: the graph that begins at {place} is compiled with its first "
        "derivative only. Use backend='eager' for it, or framejit.disable() [FJ0215]"
    )


def differentiable_twice(
    compiled: Callable[..., Any], recorded: Recorded, place: str
) -> Callable[..., Any]:
    """``compiled``, which is one node of autograd's."""

    def run(*arguments: Any) -> Any:
        results = compiled(*arguments)
        node, places = None, {}
        for i, result in enumerate(results):
            found, number = compiled_node(result)
            node = node or found
            if found is not None and result.grad_fn is node:
                places[number] = i
        if node is not None:
            node.register_hook(_Again(recorded, arguments, places, place))
        return results

    run.inner_graph = compiled  # type: ignore[attr-defined]
    return run


def inner_graph(run: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled graph itself, of one that may have been made `differentiable_twice`."""
    return getattr(run, "inner_graph", run)


def alias(tensor: torch.Tensor) -> torch.Tensor:
    """The same values and history by another node. Autograd stops there where it is asked for its
    gradient: it neither goes on to other arguments, of which this one may have been computed, nor
    calls anybody's hooks."""
    found: torch.Tensor = _Alias.apply(tensor)
    return found


class _Alias(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:  # type: ignore[override]
        return gradient


class _Again:
    """Called after the compiled backward."""

    def __init__(
        self, recorded: Recorded, arguments: Sequence[Any], places: dict[int, int], place: str
    ) -> None:
        self.recorded = recorded
        self.arguments: Sequence[Any] = arguments
        self.versions = [tensor._version for tensor in self._counted()]
        self.flags = [tensor.requires_grad for tensor in self._tensors()]
        #: Outputs of the node that are results of the graph as they are, and which.
        self.places = places
        self.place = place
        self.under_autocast = torch._C._is_any_autocast_enabled()

    def _tensors(self) -> list[torch.Tensor]:
        return [a for a in self.arguments if isinstance(a, torch.Tensor)]

    def _counted(self) -> list[torch.Tensor]:
        """The tensors that know how often they were written to."""
        return [tensor for tensor in self._tensors() if not tensor.is_inference()]

    def __call__(self, gradients: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
        if not torch.is_grad_enabled():
            kept = torch._C._autograd._get_current_graph_task_keep_graph()  # type: ignore[attr-defined]
            if not kept:  # what autograd has saved is gone as well
                self.arguments = ()
            return None
        tensors = self._tensors()
        wanted = [number for number, gradient in enumerate(given) if gradient is not None]
        known = len(gradients) == len(tensors) and self.places.keys() >= set(wanted)
        unchanged = self.versions == [tensor._version for tensor in self._counted()]
        unchanged = unchanged and self.flags == [tensor.requires_grad for tensor in tensors]
        recorded = self.recorded() if known and unchanged and not self.under_autocast else None
        inputs = [tensor for tensor in tensors if tensor.requires_grad]
        if recorded is None:
            return self._once(gradients, inputs)
        copies = {id(one): alias(one) for one in inputs}
        with under_autocast(None):
            results = recorded(*[copies.get(id(one), one) for one in self.arguments])
        outputs = [results[self.places[number]] for number in wanted]
        grads = [given[number] for number in wanted]
        stops = [copies[id(one)] for one in inputs]
        found = iter(
            torch.autograd.grad(outputs, stops, grads, create_graph=True, allow_unused=True)
        )
        return tuple([next(found) if tensor.requires_grad else None for tensor in tensors])

    def _once(self, gradients: tuple[Any, ...], inputs: list[torch.Tensor]) -> tuple[Any, ...]:
        """The gradients, to differentiate which raises, whatever with respect to."""
        if not inputs:  # they have left autograd's graph since
            return gradients
        error = torch._C._functions.DelayedError  # type: ignore[attr-defined]
        attach = error(no_second_derivative(self.place), 1 + len(inputs))
        return tuple([
            attach(one.detach(), *inputs)[0] if isinstance(one, torch.Tensor) else one
            for one in gradients
        ])  # fmt: skip
