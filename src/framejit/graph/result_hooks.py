"""Hooks of a graph's results, which autograd calls with None where backward comes to others.

In: a compiled graph with several results that have a gradient, which AOTAutograd makes one node of
autograd's graph. Out: a callable whose results' hooks are called if a gradient arrives: eager mode
does not come to a result at all that nothing was differentiated through. Used by capture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import native
from .builder import GraphBuilder
from .metadata import Example


def results_with_hooks(builder: GraphBuilder) -> tuple[int, ...]:
    """The positions of results that backward may leave out when it comes to others. Items of what
    one operation returns it leaves out in eager mode, too, and calls their hooks with None."""
    found = [
        place for place, node in enumerate(builder.outputs)
        if builder.operation(node).differentiable and node.op != "placeholder"
    ]  # fmt: skip
    if len(found) < 2:
        return ()
    return tuple([
        place for place in found if all(
            isinstance(builder.operation(used).example, Example)
            for used in builder.outputs[place].all_input_nodes
        )
    ])  # fmt: skip


def with_quiet_hooks(graph: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
    """``graph``, with hooks of the results at these positions that are not called with None."""
    quiet = native.quiet_hooks

    def run(*arguments: Any) -> Any:
        results = graph(*arguments)
        quiet(_quieted, results, positions)
        return results

    return run


def _quieted(hooks: dict[Any, Any]) -> None:
    for key, hook in list(hooks.items()):
        if type(hook) is not _IfThere:
            hooks[key] = _IfThere(hook)


class _IfThere:
    """A hook that is called with gradients only."""

    def __init__(self, hook: Any) -> None:
        self.hook = hook

    def __call__(self, gradient: Any) -> Any:
        return None if gradient is None else self.hook(gradient)
