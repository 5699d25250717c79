"""Cuts a graph into what AOTAutograd has to get one by one.

In: a recorded graph. Out: which operations belong together, in an order in which they can run, or
nothing, which is usual. AOTAutograd makes one node of autograd's graph of what it compiles:
``backward()`` of one result would use up that of another with which it shares no operation. And
there are operations that it cannot take at all. Next: capture, which notes it on the graph, for
backends that use AOTAutograd.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.fx

from .aliasing import share_parts
from .builder import GraphBuilder
from .differentiation import ancestors, used_up
from .global_state import set_determinism
from .gradients import changed_by, owners, reached_within
from .inner_results import NO_INNER, inner_results
from .lazy import outer_graph
from .metadata import Example, memory_key
from .nested import open_hooks
from .observer import memory_of
from .operation import Operation
from .resampling import is_traced_otherwise
from .running_again import runs_again

_Node = torch.fx.Node
#: Where a graph's `meta` has its parts; none at all: it is run as it is, in eager mode.
PARTS = "parts"

#: Kernels of optimizers that write to lists of tensors, some of them empty: AOTAutograd takes an
#: empty list for one that it does not know, and two of them have no meta kernel.
_AS_THEY_ARE = frozenset(
    [torch._fused_adam_, torch._fused_adamw_, torch._fused_sgd_, torch._fused_adagrad_]
)
_SET_GRAD = torch._C._set_grad_enabled
#: State that kernels ask for when they run; AOTAutograd sets it while it traces, and then no more.
_ASKED_BY_KERNELS = (
    torch._C._set_default_dtype, torch.set_deterministic_debug_mode, set_determinism
)  # fmt: skip


class Part(NamedTuple):
    """A part of a graph: positions of nodes among all of the graph."""

    nodes: list[int]
    inputs: list[int]
    outputs: list[int]
    #: `gradients.Reached`, with lists.
    reached: list[list[int]] | None
    #: Is it compiled, or an operation to be run as it is?
    compiled: bool
    #: `inner_results.Inner`, with lists.
    inner: list[Any] | tuple[()] = ()


def independent_parts(builder: GraphBuilder, module: torch.fx.GraphModule) -> list[Part] | None:
    """The parts of a finished graph; None if there is one, an empty list if AOTAutograd cannot have
    any of it."""
    if any(outer_graph(module).find_nodes(op="call_function", target=t) for t in _ASKED_BY_KERNELS):
        return []
    if is_traced_otherwise(builder):
        return []
    if builder.only_computes:
        return None
    if builder.mutated_inputs and (
        _inseparable(builder) or _leaves_inputs(builder, module) or _returns_views_of_made(builder)
    ):
        return []
    if _overwrites_lists(builder) or _returns_pending(builder):
        return []
    several = len(builder.outputs) > 1
    results, switches = set(builder.outputs), _switches(module)
    if switches and _views_late(builder, results, of_inputs=False):
        return []
    # Several results may become parts, and any view of an input the result of one.
    if switches and several and _views_late(builder, {*builder.operations}, of_inputs=True):
        return []
    as_is = any(one.effect and one.node.target in _AS_THEY_ARE for one in builder.recorded)
    hanging, apart = components(builder) if several else ({}, False)
    component = hanging if apart else {}
    calls = calls_of(builder, module) if component or as_is else None
    whole: list[Part] | None = [] if as_is else None
    if calls is None:
        return whole
    found = in_order(builder, calls, component)
    if views_late_between(builder, module, found):
        return []
    if not _separable(builder, found) or not _exchange_in_order(builder, found):
        return whole
    if not all(_in_one_part(within, found) for within in _differentiated(builder)):
        return []
    return completed(builder, module, found)


def parted(
    builder: GraphBuilder, module: torch.fx.GraphModule, found: list[list[_Node]]
) -> list[Part] | None:
    """The parts, if there are several and these operations can be parts."""
    if len(found) < 2 or views_late_between(builder, module, found):
        return None
    if not _separable(builder, found) or not _exchange_in_order(builder, found):
        return None
    return completed(builder, module, found)


def calls_of(builder: GraphBuilder, module: torch.fx.GraphModule) -> list[_Node] | None:
    """The operations of a finished graph that belong to one part each; None if it cannot be
    divided."""
    transformed = any(one.transform is not None for one in builder.recorded)
    if builder.symbol_nodes.data_dependent or transformed:
        return None
    if module.graph.find_nodes(op="call_function", target=open_hooks):
        return None
    copied = _copied(builder, module)
    return [n for n in module.graph.nodes if n.op.startswith("call") and n not in copied]


def views_late_between(
    builder: GraphBuilder, module: torch.fx.GraphModule, parts: list[list[_Node]]
) -> bool:
    """Does a part hand on a view that `_views_late` is about?"""
    return _switches(module) and _views_late(builder, _crossing(parts), of_inputs=False)


def completed(
    builder: GraphBuilder, module: torch.fx.GraphModule, parts: list[list[_Node]]
) -> list[Part]:
    """Parts, each of these operations, with all that belongs to them."""
    nodes, copied = list(module.graph.nodes), _copied(builder, module)
    again = runs_again(module)
    return [_complete(builder, nodes, part, copied, again) for part in parts]


def _copied(builder: GraphBuilder, module: torch.fx.GraphModule) -> set[_Node]:
    """What every part that needs it makes for itself."""
    held = module.graph.find_nodes(op="get_attr")
    return {*held, *[node for _, node in builder.symbol_nodes.computed.values()]}


def _switches(module: torch.fx.GraphModule) -> bool:
    """Does it set the grad mode?"""
    return bool(module.graph.find_nodes(op="call_function", target=_SET_GRAD))


def _exchange_in_order(builder: GraphBuilder, parts: list[list[_Node]]) -> bool:
    """Do collective operations come in the program's order? Other processes have it, too."""
    exchanging = [one.node for one in builder.recorded if one.exchanges and not one.aside]
    return [node for part in parts for node in part if node in exchanging] == exchanging


def _differentiated(builder: GraphBuilder) -> list[set[_Node]]:
    """The nodes that each gradient in the graph goes through, its own included: autograd knows
    nothing of what another part has computed."""
    return [
        {call} | {n for n in ancestors(call.args[0]) if builder.operations[n].differentiable  # type: ignore[arg-type]
                  and n.op.startswith("call")}
        for call in builder.differentiated
    ]  # fmt: skip


def _in_one_part(within: set[_Node], parts: list[list[_Node]]) -> bool:
    """Do these belong to one part, which hands out none that has a gradient?"""
    part = next((set(part) for part in parts if not within.isdisjoint(part)), set())
    return within <= part and all(
        user in part or user.op == "output" for node in within for user in node.users
    )


def _inseparable(builder: GraphBuilder) -> bool:
    """Does an input that is written to lie in the memory of another one that autograd, or its
    dtype, keeps apart from it? AOTAutograd has no tensor that it could take both for views of.
    Nor can it make a result that is a view of one which overlaps another in part, nor does it know
    of parts of tensors that share memory."""
    used, mutated = builder.used_inputs, set(builder.mutated_inputs)
    tensors = [builder.inputs[index] for index in used]
    if share_parts(tensors, frozenset(i for i, index in enumerate(used) if index in mutated)):
        return True
    training = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    memories = [memory_of(tensor) for tensor in tensors]
    for index, one, memory in zip(used, tensors, memories, strict=True):
        if index not in mutated or memories.count(memory) == 1:
            continue
        others = [t for t, where in zip(tensors, memories, strict=True) if where == memory]
        bases = {id(t if t._base is None else t._base) for t in others}
        apart = training or any(t._base is not None for t in others)
        if any(t.dtype != one.dtype for t in others) or (apart and len(bases) > 1):
            return True
        places = {(t.storage_offset(), t.shape, t.stride()) for t in others}
        if len(places) > 1 and _returns_views(builder):
            return True
    return False


def _returns_views(builder: GraphBuilder) -> bool:
    """Is a result a view of an input?"""
    inputs = [one.node for one in builder.placeholders]
    return any(
        builder.origin(node) not in inputs and builder.share(node, inputs)
        for node in builder.outputs
    )


def _returns_views_of_made(builder: GraphBuilder) -> bool:
    """Is a result a view of an input that is made of other tensors? In a graph that writes to
    inputs, AOTAutograd makes it anew from sizes and strides (`as_strided`), of which the class
    may know nothing, or which are not those of the parts."""
    inputs = {one.node: one.examples for one in builder.placeholders}
    made = {memory_of(one.fake) for some in inputs.values() for one in some if one.meta.wraps}
    results = [builder.operations[n] for n in builder.outputs if builder.origin(n) not in inputs]
    return bool(made) and any(
        one.meta.wraps and memory_of(one.fake) in made
        for result in results
        for one in result.examples
    )


def _leaves_inputs(builder: GraphBuilder, module: torch.fx.GraphModule) -> bool:
    """May a tensor lie in the memory of an input, but not in what the input shows of it?
    AOTAutograd takes that for all there is."""
    known = {id(one.example) for one in builder.placeholders}
    for node in module.graph.nodes:
        if getattr(node.target, "__name__", node.target) in ("as_strided", "as_strided_"):
            if not known.isdisjoint(builder.operations[node].memory):
                return True
    return False


def _returns_pending(builder: GraphBuilder) -> bool:
    """Is a result that has a gradient to be conjugated or negated by whoever reads it?
    AOTAutograd traces backward with tangents that are not."""
    operations = [builder.operations[node] for node in builder.outputs]
    return any(
        one.differentiable and not all(example.meta.is_plain for example in one.examples)
        for one in operations
    )


def _overwrites_lists(builder: GraphBuilder) -> bool:
    """Does an operation write to a list of tensors that may have been saved for backward? It is an
    error in backward, of which AOTAutograd learns only from writes to single tensors."""
    writers = {one.node for one in builder.recorded if one.writes and _of_lists(one.node)}
    saving: dict[_Node, set[int]] = {}
    for operation in builder.recorded if writers else ():
        node = operation.node
        if node in writers and any(not m.isdisjoint(operation.written) for m in saving.values()):
            return True
        if node in builder.differentiated:
            for used in used_up(node):
                saving.pop(used, None)
        elif operation.differentiable:
            nodes = (node, *node.all_input_nodes)
            saving[node] = set().union(*[builder.operations[one].memory for one in nodes])
    return False


def _of_lists(node: _Node) -> bool:
    name = getattr(node.target, "__name__", "")
    return node.op == "call_function" and name.startswith("_foreach")


def _views_late(builder: GraphBuilder, handed_on: set[_Node], *, of_inputs: bool) -> bool:
    """Is something that has a gradient viewed in another grad mode than the graph begins with, and
    the view handed on? AOTAutograd makes such results anew when all else has run, in the mode of
    the beginning."""
    leaves = {id(one.example) for one in builder.placeholders if one.differentiable}
    begun = mode = torch.is_grad_enabled()
    late: set[int] = set()
    for operation in builder.recorded:
        if operation.node.target is _SET_GRAD:
            mode = operation.node.args[0]  # type: ignore[assignment]
        new = [one for one in operation.examples if id(one) not in leaves]
        if mode is not begun:
            late.update(id(one) for one in new if not leaves.isdisjoint(map(id, one.sharing)))
        if operation.node in handed_on and not late.isdisjoint(map(id, operation.examples)):
            return True
        if not of_inputs and operation.differentiable:
            leaves.update(map(id, new))
    return False


def _crossing(parts: list[list[_Node]]) -> set[_Node]:
    """The nodes that another part uses."""
    return {
        used for part in map(dict.fromkeys, parts) for node in part for used in node.all_input_nodes
        if used not in part
    }  # fmt: skip


def components(builder: GraphBuilder) -> tuple[dict[_Node, _Node], bool]:
    """One node that represents all it hangs together with, for those that have a gradient and that
    a result needs; are there several?"""
    above: dict[_Node, _Node] = {}
    owner = owners(builder)

    def top(node: _Node) -> _Node:
        while above[node] is not node:
            above[node] = above[above[node]]  # shorter the next time: layers make long chains
            node = above[node]
        return node

    leaves = {id(one.example) for one in builder.placeholders}
    gradients = set(builder.differentiated)
    for operation in builder.recorded:
        node = operation.node
        if node not in gradients and not operation.differentiable:
            continue
        joined = [used for used in node.all_input_nodes if used in above]
        new = leaves.isdisjoint(operation.memory) or _shares_only_parts(operation)
        if node not in gradients and not (new or joined or operation.writes):
            continue  # a view of an input: autograd has it as a node of its own
        above.setdefault(node, node)
        for changed in changed_by(operation, owner):
            joined.append(changed)
            above.setdefault(changed, changed)
        for one in joined:
            above[top(one)] = top(node)
    needed = {top(node) for node in builder.outputs if node in above}
    several = len(needed) > 1
    needed.update([top(node) for node in gradients if node in above])
    return {node: top(node) for node in above if top(node) in needed}, several


def _shares_only_parts(operation: Operation) -> bool:
    """Is what it returns made of tensors, some of them those of an operand, and yet no view?"""
    return all(one.meta.wraps and not one.fake._is_view() for one in operation.examples)


def in_order(
    builder: GraphBuilder, calls: list[_Node], component: dict[_Node, _Node]
) -> list[list[_Node]]:
    """As few parts as possible: an operation may run earlier or later than it does in the program
    as long as that cannot be told."""
    before = _dependencies(builder, calls)
    parts: list[list[_Node]] = []
    while calls:
        current: _Node | None = None
        taken: list[_Node] = []
        left: dict[_Node, None] = {}
        full = False
        for node in calls:
            own, alone = component.get(node), node.target in _AS_THEY_ARE
            other = own is not None and current is not None and own is not current
            if full or other or (alone and taken) or not left.keys().isdisjoint(before[node]):
                left[node] = None
                continue
            current = current or own
            taken.append(node)
            full = alone
        parts.append(taken)
        calls = list(left)
    return parts


def _dependencies(builder: GraphBuilder, calls: list[_Node]) -> dict[_Node, set[_Node]]:
    """What has to run before a node: what it uses, draws of random numbers before its own, what
    set the state that it runs in, what wrote to or (if it writes) read the memory it touches."""
    before: dict[_Node, set[_Node]] = {}
    draw: _Node | None = None
    state: list[_Node] = []  # what set a state last, and what ran in it
    writer: dict[int, _Node] = {}
    readers: dict[int, list[_Node]] = {}
    for node in calls:
        found = before[node] = set(node.all_input_nodes) | set(state[:1])
        operation = builder.operations[node]
        plain = operation.called or node.target is operator.getitem
        if not plain and node not in builder.differentiated:
            found.update(state)
            state = []
        state.append(node)
        if operation.random:
            found.update([draw] if draw is not None else ())
            draw = node
        written = {memory_key(example) for example in operation.writes}
        used = [builder.operations[one] for one in (*node.all_input_nodes, node)]
        for memory in written.union(memory_key(e) for one in used for e in one.examples):
            if memory in writer:
                found.add(writer[memory])
            if memory in written:
                found.update(readers.pop(memory, ()))
                writer[memory] = node
            else:
                readers.setdefault(memory, []).append(node)
    return before


def _separable(builder: GraphBuilder, parts: list[list[_Node]]) -> bool:
    """Do the parts pass each other tensors only, and none whose memory others write to?"""
    number = {node: i for i, part in enumerate(parts) for node in part}
    writers: dict[int, set[int]] = {}
    for node, own in number.items():
        for one in () if node.target in _AS_THEY_ARE else builder.operations[node].writes:
            writers.setdefault(memory_key(one), set()).add(own)
    for node, own in number.items():
        if any(number.get(user, own) != own for user in node.users):
            example = builder.example(node)
            if not isinstance(example, Example) or writers.get(memory_key(example), {own}) != {own}:
                return False
    return True


def _complete(
    builder: GraphBuilder, nodes: list[_Node], part: Sequence[_Node], copied: set[_Node],
    again: bool,
) -> Part:  # fmt: skip
    inside = set(part)
    stack = list(part)
    while stack:  # what it needs of what is copied
        for used in stack.pop().all_input_nodes:
            if used in copied and used not in inside:
                inside.add(used)
                stack.append(used)
    needed = {used for node in inside for used in node.all_input_nodes} - inside
    symbols = {*builder.symbol_nodes.placeholders.values()}
    within = [n for n in nodes if n in inside]
    inputs = [n for n in nodes if n in needed or n in symbols]
    outputs = [n for n in part if any(user not in inside for user in n.users)]
    reached = reached_within(builder, inputs, within, outputs)
    position = {node: i for i, node in enumerate(nodes)}
    numbers, given, made = [[position[n] for n in some] for some in (within, inputs, outputs)]
    compiled = not any(node.target in _AS_THEY_ARE for node in part)
    lists = None if reached is None else [sorted(found) for found in reached]
    inner = inner_results(builder, outputs, within, again) if compiled else NO_INNER
    return Part(numbers, given, made, lists, compiled, inner.as_lists())
