"""Operations whose derivative may be infinite, and which results they reach.

In: a recorded graph, and which operations hang together. Out: the same, divided such that where
some results get no gradient, no zero meets an infinite derivative. AOTAutograd makes one node of
autograd's graph of what it compiles, and gives zeros to its results that nobody differentiates:
0 times the derivative of ``sqrt(0)`` is not a number, and is added to the gradients of the other
results. Eager mode does not come to such operations at all. Next: parts.
"""

from __future__ import annotations

import collections
import math
import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from .builder import GraphBuilder
from .functions import is_applied
from .gradients import changed_by, owners
from .metadata import Example
from .operation import Operation

_Node = torch.fx.Node


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DIVISIONS = ("div", "truediv", "true_divide", "divide")
#: Unbounded where an operand is zero: which operand, and by which name.
_AT_ZERO = {
    **dict.fromkeys(("sqrt", "rsqrt", "reciprocal", "log", "log2", "log10"), (0, "input")),
    **dict.fromkeys(_DIVISIONS, (1, "other")),
    "addcdiv": (2, "tensor2"),
}
_POWERS = ("pow", "float_power")
_ANYWHERE = _names(
    """acos arccos asin arcsin acosh arccosh atanh arctanh atan2 arctan2 hypot erfinv logit ndtri
    lgamma gammaln digamma psi polygamma mvlgamma multigammaln xlogy xlog1py entr log_ndtr ctc_loss
    inverse det logdet slogdet cholesky cholesky_inverse cholesky_solve triangular_solve pinverse
    svd qr lu lu_solve"""
)
_BOUNDED_IN_LINALG = _names(
    """norm vector_norm cross diagonal matmul multi_dot vecdot vander matrix_power matrix_exp
    householder_product"""
)
#: What gives nothing below zero, whatever it is given.
_NOT_NEGATIVE = _names(
    """square exp exp2 relu6 sigmoid softmax softplus cosh norm linalg_norm linalg_vector_norm var
    std"""
)
#: What gives nothing below the least that its first operand has, or all of a list.
_KEEPING = _names(
    """view reshape expand expand_as view_as reshape_as unsqueeze squeeze flatten unflatten
    transpose t permute movedim swapaxes getitem to float double half bfloat16 type type_as
    contiguous clone detach mean amax amin select narrow index_select gather chunk split
    unbind repeat tile broadcast_to flip roll cat stack"""
)
#: Nothing below zero if that has nothing below zero.
_SUMMING = ("sum", "nansum", "cumsum", "dropout")


def divided_by_results(
    builder: GraphBuilder, component: dict[_Node, _Node]
) -> tuple[dict[_Node, _Node], list[list[int]]] | None:
    """``component`` (one node that represents all it hangs together with), divided by which results
    are reached, and for each group that has to be apart the positions of these; None if there is no
    need.

    Operations that reach the same results form a group of their own if one of them is unbounded and
    these are not all: either all of them have a gradient, or none has. The others stay together:
    what is zero there stays zero.
    """
    if not component or builder.differentiated:
        return None
    least = _Least(builder)
    unbounded = [
        one.node for one in builder.recorded if one.node in component and least.exceeds(one.node)
    ]
    if not unbounded:
        return None
    reached = _results_reached(builder)
    every: dict[_Node, set[_Node]] = collections.defaultdict(set)
    for node, top in component.items():
        every[top] |= reached[node]
    apart = {
        (component[node], frozenset(reached[node])): node
        for node in unbounded if reached[node] and reached[node] != every[component[node]]
    }  # fmt: skip
    if not apart:
        return None
    rest: dict[_Node, _Node] = {}
    found: dict[_Node, _Node] = {}
    for node, top in component.items():
        group = apart.get((top, frozenset(reached[node])))
        found[node] = rest.setdefault(top, node) if group is None else group
    results = list(builder.outputs)
    return found, [[i for i, one in enumerate(results) if one in own] for _, own in apart]


def _results_reached(builder: GraphBuilder) -> dict[_Node, set[_Node]]:
    """Which results autograd computes from each node; an input that is written to is a result."""
    reached: dict[_Node, set[_Node]] = collections.defaultdict(set)
    written = [builder.placeholders[index].node for index in builder.mutated_inputs]
    for node in (*builder.outputs, *written):
        if builder.operations[node].differentiable:
            reached[node].add(node)
    owner = owners(builder)
    for operation in reversed(builder.recorded):
        node, found = operation.node, reached[operation.node]
        for changed in changed_by(operation, owner):
            found |= reached[changed]
        if operation.differentiable and node not in builder.new_leaves:
            for used in node.all_input_nodes:
                reached[used] |= found
    return reached


class _Least:
    """The least that elements of tensors can be, as far as the operations tell, and which
    derivatives are unbounded nevertheless."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.written = {one for writer in builder.writers for one in writer.written}
        self.known: dict[_Node, float] = {}

    def exceeds(self, node: _Node) -> bool:
        """May the derivative be infinite? (Not: because a value is too large for its dtype.)"""
        if node.op not in ("call_function", "call_method"):
            return False
        name = _name(node)
        if name in _ANYWHERE or is_applied(node.target):
            return True
        if name.startswith("linalg_"):
            return name.removeprefix("linalg_") not in _BOUNDED_IN_LINALG
        if name in _AT_ZERO:
            return self._of(_operand(node, *_AT_ZERO[name])) <= 0
        if name == "log1p":
            return self._of(_operand(node, 0, "input")) <= -1
        if name in _POWERS:
            return self._power_exceeds(node)
        if name == "kl_div":
            target = _operand(node, 1, "target")
            return isinstance(target, _Node) and self._is_differentiable(target)
        return any(map(self._exceeds_inside, node.all_input_nodes))

    def _exceeds_inside(self, node: _Node) -> bool:
        """The same of a graph that an operation calls."""
        body = self.builder.modules.get(str(node.target)) if node.op == "get_attr" else None
        return isinstance(body, torch.fx.GraphModule) and any(map(self.exceeds, body.graph.nodes))

    def _is_differentiable(self, node: _Node) -> bool:
        operation = self.builder.operations.get(node)
        return operation is None or operation.differentiable

    def _power_exceeds(self, node: _Node) -> bool:
        base, exponent = _operand(node, 0, "input"), _operand(node, 1, "exponent")
        if isinstance(exponent, (int, float)) and (exponent >= 1 or exponent == 0):
            return False
        return self._of(base) <= 0

    def _of(self, value: Any) -> float:
        """The least of an operand."""
        if isinstance(value, (list, tuple)):
            return min(map(self._of, value), default=-math.inf)
        if not isinstance(value, _Node):
            return float(value) if isinstance(value, (int, float)) else -math.inf
        if not self.known:
            for operation in self.builder.operations.values():
                self.known[operation.node] = self._least(operation)
        return self.known.get(value, -math.inf)

    def _least(self, operation: Operation) -> float:
        if not isinstance(operation.example, Example):
            # Several tensors; or a number, which is taken for what is meant to be divided by.
            return self._by_rule(operation.node) if operation.examples else 1.0
        dtype = operation.example.meta.dtype
        if dtype.is_complex or not self.written.isdisjoint(operation.memory):
            return -math.inf
        found = self._by_rule(operation.node)
        if not math.isfinite(found):
            return found
        if not dtype.is_floating_point:
            return math.floor(found)
        return 0.0 if 0 < found < torch.finfo(dtype).smallest_normal else found

    def _by_rule(self, node: _Node) -> float:
        if node.op not in ("call_function", "call_method"):
            return -math.inf
        name = _name(node)
        if name in _NOT_NEGATIVE:
            return 0.0
        if name in _RULES:
            return _RULES[name](self._of, node)
        first = self._of(_operand(node, 0, "input", "tensors"))
        if name in _SUMMING:
            return 0.0 if first >= 0 else -math.inf
        return first if name in _KEEPING else -math.inf


def _name(node: _Node) -> str:
    """The operation's name, whether or not it is in place."""
    name = getattr(node.target, "__name__", node.target)
    if getattr(operator, str(name), None) is node.target and str(name) in _IN_PLACE:
        return str(name)[1:]
    return str(name).partition(".")[0].rstrip("_").removeprefix("special_")


_IN_PLACE = frozenset(["iadd", "isub", "imul", "itruediv", "ipow"])


def _operand(node: _Node, place: int, *names: str) -> Any:
    if len(node.args) > place:
        return node.args[place]
    return next((node.kwargs[name] for name in names if name in node.kwargs), None)


# -- the least of results, by operation ------------------------------------------------------------

_Of = Callable[[Any], float]


def _pair(node: _Node) -> tuple[Any, Any]:
    return _operand(node, 0, "input"), _operand(node, 1, "other", "exponent")


def _of_product(of: _Of, node: _Node) -> float:
    one, other = _pair(node)
    if one is other:
        return 0.0
    found = of(one), of(other)
    return found[0] * found[1] if min(found) >= 0 else -math.inf


def _of_quotient(of: _Of, node: _Node) -> float:
    one, other = _pair(node)
    if of(one) < 0 or of(other) <= 0:
        return -math.inf
    return 0.0 if isinstance(other, _Node) else of(one) / of(other)


def _of_sum(of: _Of, node: _Node) -> float:
    one, other = _pair(node)
    return -math.inf if node.kwargs.get("alpha", 1) != 1 else of(one) + of(other)


def _of_difference(of: _Of, node: _Node) -> float:
    one, other = _pair(node)
    return -math.inf if isinstance(other, _Node) or node.kwargs else of(one) - of(other)


def _of_power(of: _Of, node: _Node) -> float:
    base, exponent = _pair(node)
    even = isinstance(exponent, (int, float)) and exponent % 2 == 0
    return 0.0 if even or of(base) >= 0 else -math.inf


def _of_limited(of: _Of, node: _Node) -> float:
    limit = _operand(node, 1, "min")
    return max(of(_operand(node, 0, "input")), -math.inf if limit is None else of(limit))


def _of_larger(of: _Of, node: _Node) -> float:
    one, other = _pair(node)
    return max(of(one), of(other)) if isinstance(other, _Node) else of(one)


def _of_smaller(of: _Of, node: _Node) -> float:
    one, other = _pair(node)
    return min(of(one), of(other)) if isinstance(other, _Node) else of(one)


def _of_root(of: _Of, node: _Node) -> float:
    return math.sqrt(max(of(_operand(node, 0, "input")), 0.0))


def _of_magnitude(of: _Of, node: _Node) -> float:
    return max(of(_operand(node, 0, "input")), 0.0)


def _of_choice(of: _Of, node: _Node) -> float:
    return min(of(_operand(node, 1, "input")), of(_operand(node, 2, "other")))


_RULES: dict[str, Callable[[_Of, _Node], float]] = {
    **dict.fromkeys(("mul", "multiply"), _of_product),
    **dict.fromkeys(_DIVISIONS, _of_quotient),
    **dict.fromkeys(("add",), _of_sum),
    **dict.fromkeys(("sub", "subtract"), _of_difference),
    **dict.fromkeys(_POWERS, _of_power),
    **dict.fromkeys(("clamp", "clip", "clamp_min"), _of_limited),
    **dict.fromkeys(("max", "maximum", "fmax"), _of_larger),
    **dict.fromkeys(("min", "minimum", "fmin"), _of_smaller),
    **dict.fromkeys(("abs", "absolute", "relu"), _of_magnitude),
    "sqrt": _of_root,
    "where": _of_choice,
}
