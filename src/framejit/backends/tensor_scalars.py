"""Numbers that vary as tensors, where an operator takes a number that compilers build in.

In: a graph in which numbers come out of tensors, and which tensor each is. Out: the same graph, in
which ``x.add_(y, alpha=-lr)`` and the like multiply by a tensor without dimensions: what optimizers
do with a learning rate that a scheduler changes. Used by dividing. Next: AOTAutograd.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from ..graph.lazy import outer_graph

_Node = torch.fx.Node

#: The same of numbers and of tensors of double precision.
_ARITHMETIC = frozenset(
    (operator.neg, operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, pow)
)


class _Rewriter:
    """Changes one graph. ``twins``: numbers, and the tensors that hold the same."""

    def __init__(self, graph: torch.fx.Graph, twins: dict[_Node, _Node]) -> None:
        self.graph = graph
        self.twins = twins

    def visit(self, node: _Node) -> None:
        if node.target in _ARITHMETIC:
            self._twin_of_result(node)
            return
        name = node.target if node.op == "call_method" else getattr(node.target, "__name__", "")
        rule = _RULES.get(str(name).removesuffix("_"))
        if rule is not None and node.op in ("call_function", "call_method"):
            rule(self, node)

    def _twin_of_result(self, node: _Node) -> None:
        numbers = [arg for arg in node.args if isinstance(arg, _Node)]
        if numbers and not node.kwargs and all(number in self.twins for number in numbers):
            args = torch.fx.node.map_arg(node.args, self.twins.__getitem__)
            with self.graph.inserting_before(node):
                self.twins[node] = self._call(node, node.target, args)

    def _call(self, like: _Node, target: Any, args: Any) -> _Node:
        made = self.graph.call_function(target, args)
        if "stack_trace" in like.meta:
            made.meta["stack_trace"] = like.meta["stack_trace"]
        return made

    def tensor(self, value: Any) -> Any:
        """The tensor that is the number, or a list of them; None for what does not vary."""
        if isinstance(value, _Node):
            return self.twins.get(value)
        if isinstance(value, (list, tuple)) and any(self.tensor(part) for part in value):
            twins = [self.tensor(part) for part in value]
            return None if None in twins else twins
        return None

    def product(self, like: _Node, number: _Node, factor: Any) -> _Node:
        """A number, multiplied."""
        made = self._call(like, operator.mul, (number, factor))
        self._twin_of_result(made)
        return made

    def scaled(self, node: _Node, position: int, factor: Any) -> None:
        """Multiply a tensor, or each of a list, before the operator gets it."""
        several = isinstance(node.args[position], (list, tuple)) or "_foreach" in str(node.target)
        multiply = torch._foreach_mul if several else torch.mul
        with self.graph.inserting_before(node):
            made = self._call(node, multiply, (node.args[position], factor))
        node.update_arg(position, made)


def _without_alpha(rewriter: _Rewriter, node: _Node) -> None:
    """``x + alpha * y`` and ``x - alpha * y``."""
    factor = rewriter.tensor(node.kwargs.get("alpha"))
    if _has_scaled_number(node):
        with rewriter.graph.inserting_before(node):
            made = rewriter.product(node, _second(node), node.kwargs["alpha"])
        node.args = (node.args[0], made)
        dropped = ("alpha", "other")
        node.kwargs = {name: value for name, value in node.kwargs.items() if name not in dropped}
        return
    if factor is None or len(node.args) < 2 or isinstance(node.args[1], (int, float)):
        return
    rewriter.scaled(node, 1, factor)
    node.kwargs = {name: value for name, value in node.kwargs.items() if name != "alpha"}


def _without_value(rewriter: _Rewriter, node: _Node) -> None:
    """``x + value * a * b`` and ``x + value * a / b``; of lists, the numbers may be a tensor."""
    given = node.kwargs.get("value", node.args[3] if len(node.args) > 3 else None)
    factor = rewriter.tensor(given)
    if factor is None and _has_tensor_of_numbers(node):
        with rewriter.graph.inserting_before(node):
            factor = rewriter.graph.call_method("unbind", (given,))
    if factor is None:
        return
    rewriter.scaled(node, 1, factor)
    node.args = node.args[:3]
    node.kwargs = {name: value for name, value in node.kwargs.items() if name != "value"}


def _with_tensor(rewriter: _Rewriter, node: _Node) -> None:
    """An operation of a list of tensors and one number."""
    if len(node.args) == 2 and not node.kwargs:
        factor = rewriter.tensor(node.args[1])
        if factor is not None:
            node.update_arg(1, factor)


def _with_tensor_or_alpha(rewriter: _Rewriter, node: _Node) -> None:
    rule = _without_alpha if "alpha" in node.kwargs else _with_tensor
    rule(rewriter, node)


#: By the name of the operator, without the underscore of in-place forms.
_RULES: dict[str, Callable[[_Rewriter, _Node], None]] = {
    "add": _without_alpha, "sub": _without_alpha, "addcmul": _without_value,
    "addcdiv": _without_value, "_foreach_addcmul": _without_value,
    "_foreach_addcdiv": _without_value, "_foreach_add": _with_tensor_or_alpha,
    "_foreach_sub": _without_alpha, "_foreach_mul": _with_tensor, "_foreach_div": _with_tensor,
}  # fmt: skip


def _has_tensor_of_numbers(node: _Node) -> bool:
    """Does an operation of lists get its numbers in one tensor? AOTAutograd of some releases of
    torch refuses that."""
    name = getattr(node.target, "__name__", "")
    if not name.startswith(("_foreach_addcdiv", "_foreach_addcmul")) or len(node.args) < 4:
        return False
    given = node.args[3]
    value = given.meta.get("example_value") if isinstance(given, _Node) else None
    return isinstance(value, torch.Tensor) and value.dim() == 1


def _has_scaled_number(node: _Node) -> bool:
    """Does it add a number that varies, times another? AOTAutograd forgets the other one."""
    if "alpha" not in node.kwargs:
        return False
    name = str(node.target if node.op == "call_method" else getattr(node.target, "__name__", ""))
    number = _second(node)
    if name.removesuffix("_") not in ("add", "sub") or not isinstance(number, _Node):
        return False
    known = number.meta.get("example_value")
    return isinstance(known, (torch.SymFloat, torch.SymInt, int, float))


def _second(node: _Node) -> Any:
    return node.args[1] if len(node.args) > 1 else node.kwargs.get("other")


def has_numbers_to_change(gm: torch.fx.GraphModule) -> bool:
    """Has the graph operations that `use_tensors` changes even if no float varies?"""
    nodes = gm.graph.nodes
    return any(map(_has_tensor_of_numbers, nodes)) or has_scaled_numbers(gm)


def has_scaled_numbers(gm: torch.fx.GraphModule) -> bool:
    """Of them, those that AOTAutograd takes as they are, and gets wrong?"""
    return any(map(_has_scaled_number, outer_graph(gm).nodes))


def use_tensors(gm: torch.fx.GraphModule, tensors: dict[_Node, _Node]) -> None:
    """Change ``gm``; ``tensors``: nodes that are numbers -> the nodes of tensors that hold them."""
    rewriter = _Rewriter(gm.graph, dict(tensors))
    for node in list(gm.graph.nodes):
        rewriter.visit(node)
    for node in reversed([*rewriter.twins, *rewriter.twins.values()]):
        if not node.users and node.op != "placeholder":  # a number that nobody reads is built in
            gm.graph.erase_node(node)
