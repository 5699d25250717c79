"""Inputs whose gradient stays None when only some outputs are differentiated.

In: a recorded graph and its compiled form. Out: a callable whose backward leaves gradients out as
eager mode does. AOTAutograd makes one node of the whole graph and returns zeros for inputs that
only reach outputs nobody differentiates; an optimizer treats zero and None differently.
Next: parts.
"""

from __future__ import annotations

import collections
import dataclasses
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
import torch.fx

from .builder import GraphBuilder
from .metadata import is_leaf
from .operation import Operation

_Node = torch.fx.Node
_COMPILED = "CompiledFunctionBackward"  # what AOTAutograd calls its node
BETWEEN = "BetweenResults"  # what `native.link_results` calls those that it puts after it
_MAX_VIEWS = 4  # how many nodes of views AOTAutograd puts after its own


#: Per output of a graph: the positions among its arguments that its gradient reaches.
Reached = Sequence[frozenset[int]]


def reached_inputs(builder: GraphBuilder) -> Reached | None:
    """What each output's gradient reaches; None when all that have a gradient reach the same, and
    all that there is: `unreached_inputs` sees to the rest, unless the graph computes gradients."""
    results = [builder.operation(node) for node in builder.outputs]
    if len(results) < 2 and not builder.differentiated:
        return None
    if not any(one.differentiable for one in results):
        return None
    inputs = [builder.placeholders[index].node for index in builder.used_inputs]
    nodes = [operation.node for operation in builder.recorded]
    offset = len(builder.used_symbols)
    found = _reach_of_all(builder, inputs, nodes, builder.outputs, offset)
    given = {i for i, node in enumerate(inputs, offset) if builder.operations[node].differentiable}
    if builder.differentiated and any(found) and given.difference(*found):
        return found
    return found if _differ(found) else None


def unreached_inputs(builder: GraphBuilder) -> tuple[int, ...]:
    """The arguments that have a gradient and that no result's gradient reaches, though there is a
    result with one; what is written to is a result, too.

    AOTAutograd's node would come to them, without a gradient; eager mode's nodes do not, so that
    hooks there are not called. Arguments that share memory with results are not among them: those
    must be the tensors that they are. A leaf is written to without gradients only, so it is none.
    """
    inputs = [builder.placeholders[index] for index in builder.used_inputs]
    real = builder.inputs
    leaves = {at for at, one in enumerate(real) if one.requires_grad and is_leaf(one)}
    changed = set(builder.mutated_inputs) - leaves
    written = {at for at, index in enumerate(builder.used_inputs) if index in changed}
    results = [*builder.outputs, *[inputs[i].node for i in written]]
    operations = [builder.operation(node) for node in results]
    if builder.differentiated or not any(one.differentiable for one in operations):
        return ()
    starts = {one.node: {i} for i, one in enumerate(inputs) if one.differentiable}
    nodes = [operation.node for operation in builder.recorded]
    reach = differentiable_reach(builder, starts, nodes)
    nothing: set[int] = set()
    reached = nothing.union(*[reach.get(node, nothing) for node in results])
    used = nothing.union(*[one.memory for one in operations])
    found = nothing.union(*starts.values()) - reached - written
    offset = len(builder.used_symbols)
    return tuple(sorted(i + offset for i in found if used.isdisjoint(inputs[i].memory)))


def with_detached(graph: Callable[..., Any], positions: tuple[int, ...]) -> Callable[..., Any]:
    """The graph, called with tensors at these positions that have no gradient."""

    def run(*args: Any) -> Any:
        given = list(args)
        for position in positions:
            given[position] = given[position].detach()
        return graph(*given)

    return run


def reached_within(
    builder: GraphBuilder, inputs: Sequence[_Node], nodes: Iterable[_Node],
    outputs: Sequence[_Node], offset: int = 0,
) -> Reached | None:  # fmt: skip
    """The same for some nodes of the graph, with ``offset`` arguments in front of the inputs."""
    found = _reach_of_all(builder, inputs, nodes, outputs, offset)
    return found if _differ(found) else None


def _differ(found: Reached) -> bool:
    return len({reached for reached in found if reached}) > 1


def _reach_of_all(
    builder: GraphBuilder, inputs: Sequence[_Node], nodes: Iterable[_Node],
    outputs: Sequence[_Node], offset: int,
) -> Reached:  # fmt: skip
    starts = {
        node: {number} if builder.operations[node].differentiable else set()
        for number, node in enumerate(inputs, offset)
    }
    reach = differentiable_reach(builder, starts, nodes)
    nothing: set[int] = set()
    return [frozenset(reach.get(node, nothing)) for node in outputs]


def differentiable_reach(
    builder: GraphBuilder, starts: Mapping[_Node, set[Any]], nodes: Iterable[_Node]
) -> dict[_Node, set[Any]]:
    """What of the ``starts`` (each with its marks), which no gradient goes on from, the other nodes
    are computed from as far as autograd knows: what is not differentiable passes nothing on, nor
    what has begun to require a gradient when it was there."""
    owner = owners(builder)
    reach = dict(starts)
    nothing: set[Any] = set()
    for node in nodes:
        found = set().union(*[reach.get(used, nothing) for used in node.all_input_nodes])
        operation = builder.operations[node]
        if node not in starts:
            cut = not operation.differentiable or node in builder.new_leaves
            reach[node] = nothing if cut else found
        for changed in changed_by(operation, owner):
            reach[changed] = reach.get(changed, nothing) | found
    return reach


def owners(builder: GraphBuilder) -> dict[int, list[_Node]]:
    """The nodes by the ids of their examples: what writes to a tensor has its example as well."""
    found: dict[int, list[_Node]] = collections.defaultdict(list)
    for one in builder.operations.values():
        for example in one.examples:
            found[id(example)].append(one.node)
    return found


def changed_by(operation: Operation, owner: dict[int, list[_Node]]) -> list[_Node]:
    """The nodes with a gradient whose values an operation writes to, also through views."""
    members = [member for written in operation.writes for member in written.sharing]
    return [node for m in members if m.meta.requires_grad for node in owner.get(id(m), ())]


def exact_gradients(
    compiled: Callable[..., Any], reached: Reached, in_parts: bool = False
) -> Callable[..., Any]:
    """``compiled``, with None for the gradients that no differentiated output depends on.

    ``in_parts``: outputs with nodes of their own come from parts that see to it themselves.
    """
    wanted = [(i, inputs) for i, inputs in enumerate(reached) if inputs]
    found = [inputs for _, inputs in wanted]
    left_out = frozenset().union(*found) - frozenset.intersection(*found)

    def run(*arguments: Any) -> Any:
        results = compiled(*arguments)
        outputs: dict[int, frozenset[int]] = {}
        owner = None
        for index, inputs in wanted:
            node, number = compiled_node(results[index])
            if in_parts and node is not None and owner is not None and node is not owner:
                return results
            if node is not None and (owner is None or node is owner):
                owner = node
                outputs[number] = outputs.get(number, frozenset()) | inputs
        if owner is not None:
            tensors = [i for i, a in enumerate(arguments) if isinstance(a, torch.Tensor)]
            watched = {i: weakref.ref(arguments[i]) for i in left_out}
            owner.register_hook(_Mask(outputs, tensors, watched))
        return results

    return run


def compiled_node(output: Any) -> tuple[Any, int]:
    """AOTAutograd's node behind an output (perhaps behind views) and which of its outputs it is."""
    if not isinstance(output, torch.Tensor) or output.grad_fn is None:
        return None, 0
    node: Any = output.grad_fn
    number = output.output_nr
    for _ in range(_MAX_VIEWS):
        if type(node).__name__ == _COMPILED:
            return node, number
        operands = node.next_functions
        if len(operands) != 1 and node.name() != BETWEEN:
            break
        node, number = operands[0]
    return None, 0


@dataclasses.dataclass(slots=True, eq=False)
class _Mask:
    """Called after the compiled backward: takes the zeros out that eager would not compute."""

    outputs: dict[int, frozenset[int]]
    inputs: list[int]  # which of the graph's arguments are tensors
    watched: dict[int, weakref.ref[torch.Tensor]]  # those that some outputs do not depend on

    def __call__(self, gradients: tuple[Any, ...], given: tuple[Any, ...]) -> Any:
        needed: set[int] = set()
        for number, gradient in enumerate(given):
            if gradient is not None:
                inputs = self.outputs.get(number)
                if inputs is None:  # an input that was written to: it may reach everything
                    return None
                needed |= inputs
        if len(gradients) != len(self.inputs):  # inputs in another order than ours
            return None
        for index, reference in self.watched.items():
            tensor = None if index in needed else reference()
            if tensor is not None:
                _leave_hooks_out(tensor)
        pairs = zip(self.inputs, gradients, strict=True)
        return tuple([g if i in needed else None for i, g in pairs])


def _leave_hooks_out(tensor: torch.Tensor) -> None:
    """Let the tensor's hooks not be called in this run of autograd, which comes to the tensor with
    no gradient, unless one comes from elsewhere. Eager mode would not come to it at all."""
    kinds = [tensor._backward_hooks, getattr(tensor, "_post_accumulate_grad_hooks", None)]
    for hooks, accumulated in zip(kinds, (False, True), strict=True):
        if not hooks:
            continue
        known = {key: getattr(hook, "hook", hook) if type(hook) is _Hook else hook
                 for key, hook in hooks.items()}  # fmt: skip
        hooks.update((key, _Hook(hook, accumulated, tensor)) for key, hook in known.items())

        def put_back(hooks: dict[int, Any] = hooks, known: dict[int, Any] = known) -> None:
            hooks.update((key, hook) for key, hook in known.items() if key in hooks)

        torch.autograd.Variable._execution_engine.queue_callback(put_back)


class _Hook:
    """Calls a tensor's hook if there is a gradient, or if one was added to the tensor's own."""

    def __init__(self, hook: Callable[[Any], Any], accumulated: bool, tensor: torch.Tensor) -> None:
        self.hook = hook
        self.accumulated = accumulated
        self.before = tensor.grad if accumulated else None
        self.version = None if self.before is None else self.before._version

    def __call__(self, given: Any) -> Any:
        found = given.grad if self.accumulated else given
        if found is self.before and (found is None or found._version == self.version):
            return None
        return self.hook(given)
