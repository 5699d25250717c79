"""Gradients that captured code computes: nodes of the graph, and what they use up.

In: a recording, and what of it is differentiated. Out: a node that calls autograd, which a backend
runs or AOTAutograd traces. What it returns is found out by running all of the recording on fake
tensors, with autograd: strides, which gradients are None, and from which results a second gradient
could not be had. Next: builder.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.fx.node import map_aggregate
from torch.fx.traceback import _set_autograd_backward
from torch.nn.modules._functions import BackwardHookFunction
from torch.utils.hooks import RemovableHandle

from ..exc import GraphBreak
from .builder import GraphBuilder
from .errors import first_line
from .fakes import describe_fake, isolated
from .metadata import Example, is_leaf, join
from .observer import memory_of
from .propagation import invoke

_Node = torch.fx.Node

#: What autograd says.
TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)


# -- targets of nodes ------------------------------------------------------------------------------


def gradients(
    outputs: Sequence[torch.Tensor], given: Sequence[torch.Tensor | None] | None,
    inputs: Sequence[torch.Tensor], retain_graph: bool, create_graph: bool, *how: bool,
) -> Any:  # fmt: skip
    """``torch.autograd.grad``, without what the inputs' own hooks do: that is in the graph.
    ``how``: may inputs be unused, are there several gradients of each output?"""
    unused, batched = (*how, False)[:2]
    with _set_autograd_backward(), _without_hooks(inputs):
        return torch.autograd.grad(
            outputs, inputs, given, retain_graph, create_graph, allow_unused=unused,
            is_grads_batched=batched,
        )  # fmt: skip


@contextlib.contextmanager
def _without_hooks(tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """In this block these have no hooks, where they are the program's own tensors."""
    hooked = [(one, one._backward_hooks) for one in tensors if one.is_leaf and one._backward_hooks]
    for tensor, _ in hooked:
        tensor._backward_hooks = None
    try:
        yield
    finally:
        for tensor, hooks in hooked:
            tensor._backward_hooks = hooks


def leaf_gradients(
    outputs: Sequence[torch.Tensor], given: Sequence[torch.Tensor | None] | None,
    leaves: Sequence[torch.Tensor], retain_graph: bool, watched: Sequence[torch.Tensor] = (),
    changes: Sequence[tuple[Any, ...]] = (),
) -> Any:  # fmt: skip
    """What ``backward`` stores in leaves that have no gradient yet: tensors of their own, laid out
    as the leaves are. Then the gradients that arrive at results that are ``watched``; ``changes``:
    what becomes of each, if it changes, as a function and what it uses beside that."""
    # AOTAutograd computes again what checkpoints have not kept.
    with _set_autograd_backward(), _without_hooks(leaves), _watching(watched, changes) as seen:
        found = torch.autograd.grad(outputs, leaves, given, retain_graph, allow_unused=True)
    others = [gradient for gradient in given or () if gradient is not None]
    taken = {memory_of(gradient) for gradient in seen if gradient is not None}
    stored: list[torch.Tensor | None] = []
    with torch.no_grad():
        for leaf, gradient in zip(leaves, found, strict=True):
            if gradient is None:
                stored.append(None)
                continue
            shared = memory_of(gradient) in taken or any(gradient is other for other in others)
            if shared or not _is_laid_out_as(leaf, gradient):
                gradient = _copy(leaf, gradient)
            taken.add(memory_of(gradient))
            stored.append(gradient.detach())
    return [*stored, *seen]


@contextlib.contextmanager
def _watching(
    tensors: Sequence[torch.Tensor], changes: Sequence[tuple[Any, ...]]
) -> Iterator[list[torch.Tensor | None]]:
    """The gradients that arrive at these in the block."""
    seen: list[torch.Tensor | None] = [None] * len(tensors)

    def watch(place: int, gradient: torch.Tensor) -> Any:
        seen[place] = gradient
        change, *used = changes[place]
        return None if change is None else change(gradient, *used)

    number = RemovableHandle.next_id
    handles = [
        tensor.register_hook(functools.partial(watch, place))
        for place, tensor in enumerate(tensors)
    ]
    RemovableHandle.next_id = number  # the program sees numbers of handles
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def is_dense(tensor: torch.Tensor) -> bool:
    """Does it have every element of its memory, and each once?"""
    step: Any = 1
    sizes = zip(tensor.stride(), tensor.shape, strict=True)
    for stride, size in sorted([(stride, size) for stride, size in sizes if size > 1]):
        if stride != step:
            return False
        step = step * size
    return True


def _is_laid_out_as(leaf: torch.Tensor, gradient: torch.Tensor) -> bool:
    if not is_dense(leaf):
        return gradient.is_contiguous()
    strides = zip(leaf.shape, leaf.stride(), gradient.stride(), strict=True)
    return all(size == 1 or wanted == found for size, wanted, found in strides)


def _copy(leaf: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    if not is_dense(leaf):
        return gradient.clone(memory_format=torch.contiguous_format)
    return gradient.new_empty_strided(leaf.shape, leaf.stride()).copy_(gradient)


def passed_through(tensor: torch.Tensor) -> torch.Tensor:
    """What torch puts in front of and after a module whose gradients hooks are called with."""
    (passed,) = BackwardHookFunction.apply(tensor)
    return passed


TARGETS = frozenset((gradients, leaf_gradients))


def as_stored(leaf: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
    """What ``backward`` stores in a leaf of a gradient that somebody else may have, too."""
    return _copy(leaf, gradient)


# -- the recording on fake tensors -----------------------------------------------------------------


@contextlib.contextmanager
def _replaying(builder: GraphBuilder) -> Iterator[dict[_Node, Any]]:
    """What has been recorded runs, on new fake tensors; then the block, in the same state."""
    values: dict[_Node, Any] = {}
    if any(one.transform is not None for one in builder.recorded):
        raise GraphBreak("FJ0117", "a gradient of what a transform of torch.func has computed")

    def known(part: Any) -> Any:
        return values[part] if type(part) is _Node else part

    handle = RemovableHandle.next_id
    try:
        with isolated(), builder.begun.applied(), builder.world.running():
            for node, operation in list(builder.operations.items()):
                example = operation.example
                if node.op == "placeholder" and isinstance(example, Example):
                    values[node] = _begun(builder, node, example)
                elif node.op in ("placeholder", "get_attr"):
                    values[node] = example
                else:
                    args, kwargs = map_aggregate((node.args, node.kwargs), known)  # type: ignore[misc, arg-type]
                    values[node] = invoke(node.target, args, kwargs)
            yield values
    finally:
        RemovableHandle.next_id = handle  # the program sees numbers of handles


def _begun(builder: GraphBuilder, node: _Node, example: Example) -> torch.Tensor:
    """A fake of an input as it was at first. One that is made of others cannot be made again."""
    born = example.born
    if not born.wraps:
        return builder.world.build(born)
    if example.meta is not born or builder.is_written(node):
        raise GraphBreak("FJ0117", "a gradient goes through a changed tensor made of others")
    if born.requires_grad and not born.is_leaf:
        raise GraphBreak("FJ0117", "a gradient goes on in what was computed before")
    return example.fake


def _autograd_nodes(tensors: Iterable[Any]) -> dict[Any, None]:
    """Those that a gradient of these tensors may come to, in some order."""
    found: dict[Any, None] = {}
    waiting = [t.grad_fn for t in tensors if isinstance(t, torch.Tensor) and t.grad_fn is not None]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += [following for following, _ in node.next_functions if following is not None]
    return found


def _variable(node: Any) -> Any:
    """The leaf whose gradient a node of autograd adds to, if it does."""
    return getattr(node, "variable", None) if type(node).__name__ == "AccumulateGrad" else None


def _leads_out(node: Any) -> bool:
    """Has an input been computed by what is not part of the recording?"""
    return type(node).__name__ == "_WithGradientFunctionBackward"


def leaves_of(
    builder: GraphBuilder, outputs: Sequence[_Node], made: Iterable[_Node]
) -> list[_Node]:
    """The leaves that ``backward`` of these comes to: inputs, and those that the graph has
    ``made``. GraphBreak if it comes to anything that is not part of the recording."""
    with _refusing(), _replaying(builder) as values:
        wanted = [values[node] for node in outputs]
        nodes = [*[one.node for one in builder.placeholders], *made]
        known = {id(values[node]): node for node in nodes}
        reached = [value for value in wanted if value.grad_fn is None and value.requires_grad]
        for node in _autograd_nodes(wanted):
            if _leads_out(node):
                raise GraphBreak("FJ0117", "backward() goes on in what was computed before")
            if (variable := _variable(node)) is not None:
                reached.append(variable)
        if any(id(leaf) not in known for leaf in reached):
            raise GraphBreak("FJ0117", "backward() comes to a leaf that is no input")
        return list(dict.fromkeys(known[id(leaf)] for leaf in reached))


def order_of_arrival(
    builder: GraphBuilder, outputs: Sequence[_Node], given: Any, leaves: Sequence[_Node]
) -> list[_Node]:
    """The leaves in the order in which autograd comes to them."""
    found: list[_Node] = []
    with _refusing(), _replaying(builder) as values:
        for leaf in leaves:
            values[leaf].register_hook(lambda gradient, leaf=leaf: found.append(leaf))
        starts, ends = [[values[node] for node in nodes] for nodes in (outputs, leaves)]
        grads = [None if node is None else values[node] for node in given or ()]
        torch.autograd.grad(starts, ends, grads or None, allow_unused=True)
    return found


def held_for_backward(
    builder: GraphBuilder, outputs: Iterable[_Node], tensors: Iterable[_Node]
) -> set[_Node]:
    """Those of ``tensors`` that autograd holds itself, not what is in them, for the gradients of
    ``outputs``: it finds no history any more where they let go of theirs."""
    with _refusing(), _replaying(builder) as values:
        nodes = _autograd_nodes(values[node] for node in outputs)
        held = {id(tensor) for node in nodes for tensor in _saved_by(node)}
        return {node for node in tensors if id(values[node]) in held}


def _saved_by(node: Any) -> Iterator[Any]:
    """What a node of autograd has saved and not let go of yet."""
    for name in dir(node):
        if name == "saved_tensors" or name.startswith("_saved_"):
            with contextlib.suppress(RuntimeError):  # it has let go of all
                found = getattr(node, name)
                yield from found if isinstance(found, (list, tuple)) else [found]


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    """What autograd refuses is a graph break: then Python asks it, and it says why."""
    try:
        yield
    except GraphBreak:
        raise
    except Exception as error:
        reason = f"autograd refuses: {first_line(error)}"
        raise GraphBreak("FJ0117", reason) from error


def record(builder: GraphBuilder, target: Any, args: tuple[Any, ...]) -> tuple[_Node, Any]:
    """Record ``target(*args)``, one of `TARGETS`; returns the node and its example.

    Raises GraphBreak if autograd would raise.
    """
    with _refusing(), _replaying(builder) as values:
        given = map_aggregate(args, lambda part: values[part] if type(part) is _Node else part)
        if any(node.op == "placeholder" for node in args[2]):
            if any(map(_leads_out, _autograd_nodes(given[0]))):  # and perhaps to these
                raise GraphBreak("FJ0117", "a gradient goes on in what was computed before")
        result = target(*given)  # type: ignore[misc]
        example = _Examples(builder, values).of(result)
    return builder.differentiate(target, args, example), example


def check_example(builder: GraphBuilder, call: _Node) -> None:
    """GraphBreak unless this call, whose arguments are others than when it was recorded, returns
    what looks the same."""
    with _refusing(), _replaying(builder) as values:
        found = [None if one is None else describe_fake(one) for one in values[call]]
    known = [getattr(one, "born", None) for one in builder.example(call)]
    if found != known:
        raise GraphBreak("FJ0117", "a hook changes what a gradient looks like")


class _Examples:
    """The examples of fake tensors that a recording on them has led to."""

    def __init__(self, builder: GraphBuilder, values: dict[_Node, Any]) -> None:
        self._world = builder.world
        self._known: dict[int, Example] = {}
        self._memory: dict[int, list[Example]] = {}
        self._made: dict[Example, torch.Tensor] = {}
        for node, value in values.items():
            example = builder.operations[node].example
            if isinstance(value, torch.Tensor) and isinstance(example, Example):
                self._note(value, example)

    def _note(self, tensor: torch.Tensor, example: Example) -> None:
        self._known[id(tensor)] = example
        self._memory.setdefault(memory_of(tensor), []).append(example)

    def of(self, result: Any) -> Any:
        if isinstance(result, (tuple, list)):
            return type(result)([self.of(part) for part in result])
        if not isinstance(result, torch.Tensor):
            return result
        known = self._known.get(id(result))
        if known is None:
            known = Example(self._world, describe_fake(result))
            self._place(known, result)
            self._note(result, known)
        return known

    def _place(self, known: Example, result: torch.Tensor) -> None:
        """A new example, beside those with which it shares memory: their fakes must, too."""
        beside = self._memory.get(memory_of(result), ())
        if not all(
            other in self._made for other in beside
        ):  # only a replay could make one of these
            raise GraphBreak("FJ0117", "a gradient that is a view of another tensor")
        self._made[known] = result
        if beside:
            join([*beside, known])
        for example in (*beside, known) if beside or known.meta.wraps else ():
            example._fake = self._made[example]


# -- what cannot be differentiated again -----------------------------------------------------------


def used_up(call: _Node) -> set[_Node]:
    """The nodes that a gradient in the graph has been through, if autograd has let go of what they
    had saved."""
    outputs, _, _, retained, *_ = call.args
    return set() if retained else ancestors(outputs)  # type: ignore[arg-type]


def ancestors(nodes: Iterable[_Node]) -> set[_Node]:
    """These nodes and all that they are computed from."""
    found: set[_Node] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found


class Spent:
    """What of a recording is used up once all of it has run."""

    def __init__(
        self, builder: GraphBuilder, nodes: Iterable[_Node], watched: Iterable[_Node] = ()
    ) -> None:
        #: Results whose gradients come to none of those that are ``watched``, before it fails.
        self.unseen: set[_Node] = set()
        with _replaying(builder) as values:
            self._values = values
            ends = [values[node] for node in builder.operations if _may_end_at(node, values[node])]
            come: list[Any] = []
            for node in watched:
                values[node].register_hook(come.append)
            self._used: set[_Node] = set()
            for node in nodes:
                come.clear()
                if _is_used_up(values[node], ends):
                    self._used.add(node)
                    if not come:
                        self.unseen.add(node)
        outputs = [node for call in builder.differentiated for node in call.args[0]]  # type: ignore[union-attr]
        differentiated = [values[node] for node in outputs]  # type: ignore[index]
        #: What a gradient of those has come to.
        self._passed = _autograd_nodes(differentiated)

    def of(self, node: _Node, others: Iterable[_Node]) -> bool | None:
        """Does ``backward`` of this result fail? None: some of it can still be had, perhaps by
        other results that it is computed from."""
        if node not in self._used:
            return False
        before = ancestors([node]) - {node}
        ends = [self._values[other] for other in others if other in before]
        if not _is_used_up(self._values[node], ends) and ends:
            return None
        nodes = _autograd_nodes([self._values[node]])
        leads_elsewhere = any(_variable(n) is not None and n not in self._passed for n in nodes)
        return None if leads_elsewhere else True


def _may_end_at(node: _Node, value: Any) -> bool:
    """Is it an input, or a leaf that the graph has made, which gradients come to?"""
    differentiable = isinstance(value, torch.Tensor) and value.requires_grad
    return differentiable and (node.op == "placeholder" or is_leaf(value))


def _is_used_up(result: Any, ends: list[torch.Tensor]) -> bool:
    """Has autograd let go of what it needs for the gradient of this tensor by these?"""
    if not ends:
        return False
    try:
        torch.autograd.grad(
            result, ends, torch.ones_like(result), retain_graph=True, allow_unused=True
        )
    except RuntimeError as error:  # others say that of themselves
        return TWICE.split(" (")[0] in str(error)
    return False


#: Positions of results, each with the arguments that its gradient would come to.
UsedUp = tuple[tuple[int, tuple[int, ...]], ...]


def with_spent(compiled: Any, spent: UsedUp) -> Any:
    """``compiled``, whose results at these positions say what autograd says when they are
    differentiated: they are handed out detached from what is used up."""
    error = torch._C._functions.DelayedError  # type: ignore[attr-defined]
    # Where it comes to leaves of the graph's own alone, these are gone.
    raising = [(at, reached, error(TWICE, 1 + (len(reached) or 1))) for at, reached in spent]

    def run(*arguments: Any) -> Any:
        results = list(compiled(*arguments))
        with torch.enable_grad():
            for position, reached, attach in raising:
                leaves = [arguments[index] for index in reached]
                leaves = leaves or [torch.empty(0, requires_grad=True)]
                results[position], *_ = attach(results[position].detach(), *leaves)
        return results

    return run
