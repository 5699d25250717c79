"""Nested graphs: a stretch of a recording as a module of its own, for higher-order operators.

In: a builder, where the stretch begins, its inputs and outputs. Out: a `GraphModule`, and the nodes
from outside that it uses. The recorded nodes are set aside; they leave the graph around them.
Used by the value layer. Next room: backends.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils.checkpoint import noop_context_fn

from ..exc import GraphBreak
from . import global_state
from .builder import GraphBuilder
from .lazy import CapturedGraph, LazyGraphModule
from .metadata import examples_in, memory_of_all
from .operation import Operation

_Node = torch.fx.Node


class HeldHook(torch.nn.Module):
    """An attribute of a graph that holds a saved-tensor hook, or what makes one with tensors, or an
    object that an ``autograd.Function`` is applied to."""

    def __init__(self, hook: Any) -> None:
        super().__init__()
        self.held = (hook,)  # not a member, should it be a module

    def __deepcopy__(self, memo: Any) -> HeldHook:
        return self


#: Functions, methods and partials that captures have made for hooks: no name leads to them.
_made_callables: weakref.WeakSet[Any] = weakref.WeakSet()


def note_made(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A capture has made this as a hook, or as a part of one."""
    _made_callables.add(hook)
    return hook


def was_made(hook: Any) -> bool:
    """Is it such a one?"""
    kinds = (types.FunctionType, types.MethodType, functools.partial)
    return type(hook) in kinds and hook in _made_callables


class _Opened(threading.local):
    """What graphs have opened in this thread: the first module of each node, innermost last."""

    def __init__(self) -> None:
        self.packs: list[torch.nn.Module] = []
        #: Whether AOTAutograd had switched hooks off before.
        self.off: list[bool] = []
        #: What is put in place of a pair of hooks while AOTAutograd traces.
        self.traced: Callable[[Any, Any], tuple[Any, Any]] | None = None
        #: The pair that is in place around the graph which is being compiled.
        self.around: tuple[Any, Any] | None = None


_opened = _Opened()
_set_off = torch._C._autograd._saved_tensors_hooks_set_tracing


def open_hooks(pack: HeldHook, unpack: HeldHook, *tensors: Any) -> None:
    """Put a pair of saved-tensor hooks in place; those that use tensors are made with them."""
    hooks = [module.held[0] for module in (pack, unpack)]
    if tensors:
        hooks = [make(tensors) for make in hooks]
    if _opened.traced is not None:
        hooks = list(_opened.traced(*hooks))
    torch._C._autograd._push_saved_tensors_default_hooks(*hooks)
    _opened.packs.append(pack)
    _opened.off.append(_set_off(False))


def close_hooks() -> None:
    """Take back what was opened last."""
    torch._C._autograd._pop_saved_tensors_default_hooks()
    _opened.packs.pop()
    _set_off(_opened.off.pop())


@contextlib.contextmanager
def hooks_traced_as(
    traced: Callable[[Any, Any], tuple[Any, Any]], around: tuple[Any, Any] | None
) -> Iterator[None]:
    """In this block graphs put ``traced(pack, unpack)`` in place of hooks that they open, and
    are compiled for the hooks ``around`` them."""
    before, _opened.traced, _opened.around = (_opened.traced, _opened.around), traced, around
    try:
        yield
    finally:
        _opened.traced, _opened.around = before


def hooks_around() -> tuple[Any, Any] | None:
    """The hooks that are in place around what this thread compiles."""
    return _opened.around


def with_hooks(module: torch.fx.GraphModule, hooks: tuple[Any, Any]) -> None:
    """Let a graph open these hooks for all of its operations."""
    graph = module.graph
    first = next(node for node in graph.nodes if node.op != "placeholder")
    modules = []
    with graph.inserting_before(first):
        for name, hook in zip(("pack_around", "unpack_around"), hooks, strict=True):
            setattr(module, name, HeldHook(hook))
            modules.append(graph.get_attr(name))
        graph.call_function(open_hooks, tuple(modules))
    with graph.inserting_before(graph.output_node()):
        graph.call_function(close_hooks)
    module.recompile()


def without_hooks(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """What calls ``compiled`` so that the hooks around the call see nothing of it."""

    def run(*arguments: Any) -> Any:
        before = _set_off(True)
        try:
            return compiled(*arguments)
        finally:
            _set_off(before)

    return run


def close_all_hooks(module: torch.fx.GraphModule) -> None:
    """Close what a graph opened that did not come to its end."""
    opened = module.graph.find_nodes(op="call_function", target=open_hooks)
    packs = {getattr(module, node.args[0].target) for node in opened}
    closed = False
    while _opened.packs and _opened.packs[-1] in packs:
        close_hooks()
        closed = True
    if closed:  # AOTAutograd, should it have raised, does not trace any more
        _set_off(False)


def hook_gradient(hook: HeldHook, tensor: torch.Tensor) -> Any:
    """Register a hook on the gradient of a tensor; AOTAutograd makes it part of backward. How many
    handles the program has made is counted, and written, by the code around the graph."""
    return tensor.register_hook(hook.held[0]) if tensor.requires_grad else None


def remove_hook(handle: Any) -> None:
    """Take back what `hook_gradient` did."""
    if handle is not None:
        handle.remove()


for _function in (open_hooks, close_hooks, hook_gradient, remove_hook):
    torch.fx.node.has_side_effect(_function)


#: What switches gradients on and off.
_SET_GRADIENTS = torch._C._set_grad_enabled


class Stretch:
    """What was recorded since this object was made."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder
        self.start = len(builder.recorded)
        self.nodes: list[_Node] = []
        #: Does it write to what it was given, or to parts of that?
        self.writes_given = self.writes_parts = False
        self._state = global_state.current()
        self._kept: list[_Node] = []

    def close(
        self, what: str, random: bool = False, state: bool = False, writes: bool = False,
        given: Iterable[_Node] = (),
    ) -> None:  # fmt: skip
        """The stretch ends here. GraphBreak if it does something that must happen exactly once.

        ``random``: it may draw random numbers; ``state``: it may change torch's global state and
        put it back; ``writes``: it may write to tensors of its own, and to the memory of those that
        it is ``given``. These operations then belong to the nested graph alone.
        """
        recorded = self._end()
        whole = examples_in([self.builder.example(node) for node in given])
        lent = memory_of_all(whole)
        if not set(self.builder.differentiated).isdisjoint(self.nodes):
            raise GraphBreak("FJ0117", f"{what} computes a gradient")
        for operation in recorded:
            if operation.writes and not (writes and self._is_own(operation, lent)):
                raise GraphBreak("FJ0122", f"{what} writes to a tensor")
            if operation.writes:
                for one in operation.writes:
                    self.writes_given |= id(one) in lent
                    self.writes_parts |= id(one) in lent and one not in whole
                continue
            if operation.effect and not (random if operation.random else state):
                does = "draws random numbers" if operation.random else "sets torch's state"
                raise GraphBreak("FJ0122", f"{what} {does}")
        if state and global_state.current() is not self._state:
            raise GraphBreak("FJ0122", f"{what} changes torch's global state")
        for operation in recorded:
            operation.sets_state, operation.random, operation.aside = False, False, True
            if operation.writes:
                self.builder.writers.remove(operation)
                operation.writes = ()

    def _is_own(self, operation: Operation, lent: set[int]) -> bool:
        """Is what it writes to ``lent``, or nothing that was there before the stretch?"""
        inside, written = set(self.nodes), operation.written - lent
        others = [one for node, one in self.builder.operations.items() if node not in inside]
        return all(written.isdisjoint(one.memory) for one in others)

    def stay(self, what: str) -> None:
        """The stretch ends here, and its nodes stay in the graph as well. GraphBreak if they do
        something that must not happen twice."""
        for operation in self._end():
            settings = operation.sets_state and operation.node.target is not _SET_GRADIENTS
            if operation.random or operation.writes or operation.exchanges or settings:
                raise GraphBreak("FJ0122", f"{what} does more than compute")
        self._kept = []

    def note(self, step: int) -> None:
        """The stretch ends here, and its nodes stay in the graph as well, inside of a transform
        that was entered in this step."""
        for operation in self._end():
            if operation.transform is None:
                operation.transform = step

    def _end(self) -> list[Operation]:
        recorded = self.builder.recorded[self.start :]
        self.nodes = [operation.node for operation in recorded]
        self._kept = [one.node for one in recorded if one.effect or one.exchanges]
        return recorded

    def used_from_outside(self, outputs: list[_Node]) -> list[_Node]:
        """Nodes from before the stretch that its outputs depend on, in order of their first use."""
        inside = set(self.nodes)
        needed = self._needed(outputs)
        used = [one for node in self.nodes if node in needed for one in node.all_input_nodes]
        return list(dict.fromkeys(node for node in (*used, *outputs) if node not in inside))

    def _needed(self, outputs: list[_Node]) -> set[_Node]:
        inside = set(self.nodes)
        needed: set[_Node] = set()
        stack = [node for node in outputs if node in inside] + self._kept
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack.extend(used for used in node.all_input_nodes if used in inside)
        return needed

    def module(
        self, inputs: list[_Node], outputs: list[_Node], unpacked: bool = False
    ) -> torch.fx.GraphModule:
        """The stretch as a function of ``inputs``, which returns a tuple of ``outputs`` (or the
        only one, ``unpacked``)."""
        graph = CapturedGraph()
        copies: dict[_Node, _Node] = {}
        for number, node in enumerate(inputs):
            copies[node] = graph.create_node("placeholder", f"arg{number}", (), {})
        needed = self._needed(outputs) - set(inputs)
        attributes: dict[str, Any] = {}
        for node in self.nodes:
            if node in needed:
                made = copies[node] = graph.node_copy(node, copies.__getitem__)
                trace = made.meta.get("stack_trace")
                if callable(trace):
                    made.meta["stack_trace"] = trace()
                if node.op == "get_attr":
                    attributes[str(node.target)] = self.builder.example(node)
        answers = tuple(copies[node] for node in outputs)
        graph.create_node("output", "output", (answers[0] if unpacked else answers,), {})
        return LazyGraphModule(attributes, graph, "GraphModule")


def batched(
    in_dims: tuple[int, ...], out_dims: tuple[int, ...], randomness: str,
    body: Callable[..., Any], *operands: torch.Tensor,
) -> Any:  # fmt: skip
    """``torch.vmap`` of a nested graph; what comes after ``in_dims`` is used whole."""
    whole = (None,) * (len(operands) - len(in_dims))
    return torch.vmap(body, in_dims + whole, out_dims, randomness)(*operands)


def differentiated(count: int, body: Callable[..., Any], *operands: torch.Tensor) -> Any:
    """The gradients of the nested graph's first output by the first operands, then its outputs."""

    def function(*inputs: torch.Tensor) -> Any:
        first, *others = body(*inputs)
        return first, tuple(others)

    run = torch.func.grad_and_value(function, tuple(range(count)), has_aux=True)
    gradients, (value, others) = run(*operands)
    return *gradients, value, *others


def inside(levels: int, target: str, *arguments: Any) -> Any:
    """What a function of this module returns inside of so many transforms: nested graphs count."""
    for _ in range(levels):
        torch._C._functorch._vmap_increment_nesting(1, "same")
    try:
        return globals()[target](*arguments)
    finally:
        for _ in range(levels):
            torch._C._functorch._vmap_decrement_nesting()


def jacobians(count: int, body: Callable[..., Any], *operands: torch.Tensor) -> Any:
    """The Jacobians of the nested graph's first output by the first operands, then its others."""

    def function(*inputs: torch.Tensor) -> Any:
        first, *others = body(*inputs)
        return first, tuple(others)

    run = torch.func.jacrev(function, tuple(range(count)), has_aux=True)
    found, others = run(*operands)
    return *found, *others


def one_slice(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """What a function under vmap sees of a tensor."""
    if tensor.shape[dim] == 0:
        return tensor.new_empty(tensor.shape[:dim] + tensor.shape[dim + 1 :])
    return tensor.select(dim, 0)


def repeated(tensor: torch.Tensor, count: int) -> torch.Tensor:
    """As many of them, stacked."""
    return tensor.expand(count, *tensor.shape).clone()


def transformed(
    name: str, options: dict[str, Any], body: Callable[..., Any], *arguments: torch.Tensor
) -> Any:
    """``torch.func.<name>`` of a nested graph, applied: ``grad``, ``jacrev``, ...

    ``arguments``: the operands, then what ``vjp`` pulls back (if nothing, the function's result is
    wanted) or ``jvp`` pushes forward, then what else the body uses, which is not differentiated.
    """
    options = dict(options)
    first = options.pop("operands")
    second = first + options.pop("vectors")
    operands, vectors, rest = arguments[:first], arguments[first:second], arguments[second:]

    def function(*inputs: torch.Tensor) -> Any:
        return body(*inputs, *rest)

    if name == "vjp":
        answer: Any = torch.func.vjp(function, *operands)
        return answer[1](vectors) if vectors else answer[0]
    if name == "jvp":
        return torch.func.jvp(function, operands, vectors)
    return getattr(torch.func, name)(function, **options)(*operands)


def while_loop(
    condition: Callable[..., Any], body: Callable[..., Any], carried: tuple[Any, ...],
    lifted: tuple[Any, ...],
) -> Any:  # fmt: skip
    """The operator; its rule for fake tensors wants symbols even where nothing is symbolic."""
    if traced_by("FAKE") and not traced_by("FUNCTIONAL") and not traced_by("PROXY"):
        return tuple(tensor.clone() for tensor in carried)
    return torch.ops.higher_order.while_loop(condition, body, carried, lifted)


def traced_by(mode: str) -> bool:
    """Is this mode of torch's in place, by which graphs are traced or run on fake tensors?"""
    return torch._C._get_dispatch_mode(getattr(torch._C._TorchDispatchModeKey, mode)) is not None


def checkpointed(
    body: torch.fx.GraphModule, preserve_rng_state: bool, given: tuple[int, ...] | None,
    *operands: torch.Tensor, contexts: HeldHook | None = None, differentiated: bool = False,
) -> Any:  # fmt: skip
    """``torch.utils.checkpoint`` of a nested graph; ``contexts`` has its ``context_fn``, ``given``
    are the operands that the program's function is called with, beside what it finds by itself, as
    it is whenever it runs. None: the reentrant form, which gets all of them.

    Run as it is, it keeps nothing for backward but its operands. AOTAutograd, when it traces it,
    sees the operator that marks what is inside for being computed again; random numbers are kept
    where the graph has the gradient in it, ``differentiated``, since they would be others.
    """
    if traced_by("FUNCTIONAL") or traced_by("PROXY"):
        if contexts is not None:
            make = contexts.held[0]
        elif differentiated:
            make = _contexts_for_all
        else:
            return torch.ops.higher_order.tag_activation_checkpoint(body, *operands)
        if differentiated:
            make = functools.partial(_keeping_random_numbers, make)
        body.meta["_checkpoint_context_fn"] = make
        with _without_advice():
            return torch.ops.higher_order.tag_activation_checkpoint(body, *operands)
    if traced_by("FAKE"):
        return body(*operands)

    def function(*arguments: torch.Tensor) -> Any:
        everything = list(operands)
        for position, argument in zip(positions, arguments, strict=True):
            everything[position] = argument
        return body.forward(*everything)

    positions = range(len(operands)) if given is None else given
    return torch.utils.checkpoint.checkpoint(
        function,
        *[operands[position] for position in positions],
        preserve_rng_state=preserve_rng_state,
        use_reentrant=given is None and not differentiated,  # it knows `backward` only
        context_fn=noop_context_fn if contexts is None else contexts.held[0],
    )


@contextlib.contextmanager
def _without_advice() -> Iterator[None]:
    """The operator advises against writes in what is computed again; there are none."""
    log = logging.getLogger("torch._higher_order_ops.wrap")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _contexts_for_all() -> Any:
    """Everything is computed again."""
    return torch.utils.checkpoint.create_selective_checkpoint_contexts([])


def _keeping_random_numbers(make: Callable[[], Any]) -> Any:
    """The contexts that ``make`` makes, which keep random numbers, too."""
    keeping, using = make()

    def policy(
        context: Any, operator: Any, *args: Any, inner: Callable[..., Any], **kwargs: Any
    ) -> Any:
        if torch.Tag.nondeterministic_seeded in getattr(operator, "tags", ()):
            return torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE
        return inner(context, operator, *args, **kwargs)

    keeping.policy_fn = functools.partial(policy, inner=keeping.policy_fn)
    return keeping, using
