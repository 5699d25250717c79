"""Records captured operations as `torch.fx` nodes.

In: targets with arguments in which tensors are nodes. Out: per operation a node and its `Example`
(what is known of the result); at the end an `fx.GraphModule` and the real input tensors. A call
that fails leaves no node behind.
Next room: backends.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from ..exc import GraphBreak
from ..forks import Lock
from . import global_state
from .changes import Changes
from .fakes import FakeWorld, describe_fake, isolated
from .lazy import LazyGraphModule, expand_with
from .leader import Leader
from .metadata import Composition, Example, TensorMeta, examples_in, in_order, join, memory_of_all
from .names import placeholder_name
from .node_meta import NodeMeta
from .operation import Operation
from .propagation import lower, propagate
from .recording import Recording
from .refusals import may_be_refused
from .symbol_nodes import SymbolNodes, free_symbols, remember_inputs

_Node = torch.fx.Node

#: Types of constants that generated code can spell.
_CONSTANTS = (
    (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device)
    + (torch.layout, torch.memory_format, torch.qscheme, enum.Enum, range, torch.SymInt)
    + (torch.SymFloat, torch.SymBool, torch._ops.OpOverload, torch._ops.HigherOrderOperator)
)


#: In a finished graph's `meta`: it writes to tensors; the positions of the nodes that do so to
#: those whose elements do not lie in order.
WRITES = "writes"
#: Whether to run it again would do something else: it draws random numbers, or writes to inputs.
ONCE = "once"
#: Whether it exchanges data with other processes.
EXCHANGES = "exchanges"


class GraphBuilder(Recording):
    """One graph being recorded."""

    def __init__(self, symbols: Any = None) -> None:
        super().__init__()
        #: Who leads the capture, and whose stack trace an operation has that is not the program's.
        self.leader = Leader()
        self.changes = Changes()
        self._trace: str | Callable[[], str] | None = None
        self.begun = global_state.current()
        self.symbol_nodes = SymbolNodes(self.graph, self.outer, self.record)
        self.world = FakeWorld(symbols)
        #: Is there an operation that may raise inside a ``try``?
        self.tried = False
        #: If gradients are exchanged with other processes: after how many bytes (`buckets`).
        self.bucket_limits: tuple[int, ...] = ()
        #: Is a result tested, and the program run again as plain Python if it is not as expected?
        self.checked = False

    def begin(self, leader: Leader) -> None:
        """From now on ``leader`` leads the capture."""
        self.leader = leader

    # -- what is there

    @property
    def symbols(self) -> Any:
        """The symbols for sizes that vary (`symbols.Symbols`); asking makes them possible."""
        symbols = self.world.symbols
        symbols.line = self.leader.user_line
        return symbols

    # -- recording

    def add_input(
        self, name: str, tensor: torch.Tensor, example: Example | None = None
    ) -> tuple[_Node, Example]:
        """A placeholder for a real tensor that comes from the source called ``name``.

        ``example`` is what the world made of it if some of its sizes vary.
        Raises GraphBreak for tensors that cannot be traced (subclasses, ...).
        """
        if example is None:
            example = self.world.example_of(tensor)
        last = self.placeholders[-1].node if self.placeholders else self.symbol_nodes.last
        target = placeholder_name(name)
        with self.graph.inserting_after(last):  # names of nodes are in small letters
            wanted = target if target.islower() else None
            node = self.graph.create_node("placeholder", target, (), {}, wanted)
        if node.target != node.name:  # unique, and the generated function's parameter
            node.target = node.name
        self._add(node, example, self.placeholders)
        self.inputs.append(tensor)
        return node, example

    def changed_inputs(self) -> list[torch.Tensor]:
        """The real tensors that look otherwise by now than they did when the graph begins."""
        if not self.writers:
            return []
        known = zip(self.placeholders, self.inputs, strict=True)
        return [real for one, real in known if one.example.meta is not one.example.born]

    def add_module(self, name_hint: str, module: torch.nn.Module) -> _Node:
        """A nested graph, for higher-order operators that take one as an argument."""
        name = unique = placeholder_name(name_hint)
        number = 0
        while unique in self.modules:
            number += 1
            unique = f"{name}_{number}"
        self.modules[unique] = module
        node = self.graph.create_node("get_attr", unique, (), {})
        return self._add(node, module, self.sequence).node

    def call_function(
        self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[_Node, Any]:
        """Record ``target(*args, **kwargs)``; returns the node and its example.

        Raises GraphBreak (`PropagationError` if the operation itself would raise).
        """
        return self._call("call_function", target, args, kwargs)

    def call_method(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[_Node, Any]:
        """Record ``args[0].name(*args[1:], **kwargs)``."""
        return self._call("call_method", name, args, kwargs)

    def call_effect(
        self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> _Node:
        """Record a call that sets state, such as ``torch._C._set_grad_enabled(False)``.

        It is not run, returns nothing known, and is never removed as dead code, by fx neither.
        """
        torch.fx.node.has_side_effect(target)
        operation = self._create("call_function", target, args, kwargs, None)
        operation.sets_state = True
        self.changes.note()
        return operation.node

    def imagine(self, target: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """The example of ``target(*args)``, which is not recorded."""
        return self._propagate(target, self._lookup(args), {})[0]

    def _propagate(self, target: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """What an operation returns and does; raising, it leaves the transforms it enters."""
        before = global_state.transform_depth(), global_state.refused_hooks()
        try:
            return propagate(self.world, target, args, kwargs, global_state.current())
        except Exception as error:
            global_state.let_go(error)
            raise
        finally:
            global_state.leave_transforms(*before)

    def differentiate(
        self, target: Callable[..., Any], args: tuple[Any, ...], example: Any
    ) -> _Node:
        """Record a call of autograd whose result is known already."""
        node = self.record(target, args, example)
        self.differentiated.append(node)
        self.changes.note()
        return node

    def make_leaf(self, node: _Node) -> Operation:
        """Record ``requires_grad_()`` of a tensor that the graph has made.

        Raises GraphBreak if torch refuses.
        """
        example: Example = self.example(node)
        try:
            with isolated():
                example.fake.requires_grad_(True)
        except RuntimeError as error:
            raise GraphBreak("FJ0111", f"Tensor.requires_grad_() raises {error}") from error
        example.meta = describe_fake(example.fake)
        operation = self._create("call_method", "requires_grad_", (node,), {}, example)
        operation.sets_state = True
        self.new_leaves |= {node, operation.node}
        self.changes.note()
        return operation

    def record(
        self, target: Callable[..., Any], args: tuple[Any, ...], example: Any, **kwargs: Any
    ) -> _Node:
        """Record a call whose result is known already, and which makes sense only where it is."""
        return self._create("call_function", target, args, kwargs, example).node

    def repeat(self, then: Operation, args: Any, kwargs: Any, example: Any) -> _Node:
        """Record an operation that is `Operation.fresh` once more; ``example``: its result."""
        operation = self._create(then.node.op, then.node.target, args, kwargs, example)
        operation.called = operation.fresh = True
        self.changes.note()
        return operation.node

    def unpack(self, node: _Node, example: Any, index: Any) -> tuple[_Node, Any]:
        """Record ``node[index]`` for an operation that returned a sequence or a dict."""
        item = example[index]
        return self.record(operator.getitem, (node, index), item), item

    def part_of(self, node: _Node, name: str) -> tuple[_Node, Example]:
        """Record taking a tensor out of one that is made of others."""
        whole: Example = self.example(node)
        part = getattr(whole.fake, name)
        known = Example(self.world, describe_fake(part))
        known._fake = part
        join([whole, known])
        return self.record(getattr, (node, name), known), known

    def _call(
        self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[_Node, Any]:
        known_args, known_kwargs = self._lookup((args, kwargs))
        symbolic = self.world.symbols_if_any is not None
        sizes = [e.meta.shape for e in examples_in([known_args, known_kwargs])] if symbolic else ()
        example, effects = self._propagate(target, known_args, known_kwargs)
        if self.leader.before_saving is not None:
            if any(e.meta.requires_grad for e in examples_in([known_args, known_kwargs])):
                self.leader.before_saving()
        if symbolic:
            self.world.symbols.poll()
        tried = effects.raises and self.leader.in_try()
        if tried and self.writers and self.savable_writes(self.written) is None:
            raise GraphBreak("FJ0116", "what may raise in a try follows a write to an input")
        if (tried and self.exchanges) or (effects.exchanges and self.tried):
            raise GraphBreak("FJ0116", "a collective operation beside what may raise in a try")
        writes: list[Example] = []
        if effects.writes:
            tensors = examples_in([known_args, known_kwargs])
            writes = [tensors[position] for position in effects.writes]
            if self.tried and self.savable_writes([*self.written, *writes]) is None:
                raise GraphBreak("FJ0116", "a write to an input follows what may raise in a try")
            if effects.content and symbolic and any(
                str(tensors[i].meta.shape) != str(sizes[i]) for i in effects.writes
            ):  # fmt: skip
                raise GraphBreak("FJ0116", "an operation resizes what it writes to")
            self._check_reshaped(writes if effects.content else ())
            if self.checked and self._inputs_among(writes):
                why = "a write to an input follows a check that may end in an error"
                raise GraphBreak("FJ0101", why)
        operation = self._create(op, target, args, kwargs, example)
        self.changes.note()
        operation.called, operation.raises, operation.random = True, effects.raises, effects.random
        operation.exchanges = effects.exchanges
        operation.fresh = not (symbolic or any(effects)) and all(
            one.group is None and one.recipe is None and not one.meta.wraps
            for one in examples_in(example)
        )
        self.tried = self.tried or tried
        if writes:
            self.writers.append(operation)
            operation.writes, operation.content = writes, effects.content
            operation.uncounted = effects.uncounted
            looks = [(one.meta.shape, one.meta.stride) for one in writes]
            operation.strided = effects.content and not all(in_order(*look) for look in looks)
        return operation.node, example

    def _check_reshaped(self, written: Iterable[Example]) -> None:
        """GraphBreak where an input gets both another content, that of ``written`` included, and
        another shape or strides, which AOTAutograd mixes up."""
        looks = [one.example for one in self.placeholders if one.example.reshaped]
        if any(one.meta.requires_grad for one in looks):
            raise GraphBreak("FJ0116", "an input that takes part in autograd gets another shape")
        if not looks:
            return
        memory = memory_of_all(written).union(*[w.written for w in self.writers if w.content])
        if not memory.isdisjoint(map(id, looks)):
            raise GraphBreak("FJ0116", "an input that gets another shape is written to as well")

    def _lookup(self, args: Any) -> Any:
        """The arguments with examples in place of nodes; checks that the rest can be spelled."""
        return map_aggregate(args, self._example_of)

    def _example_of(self, arg: Any) -> Any:
        if type(arg) is _Node:
            return self.outer[arg].example
        if isinstance(arg, _CONSTANTS):
            return arg
        if isinstance(arg, torch.Tensor):
            raise GraphBreak("FJ0121", "a tensor is passed to an operation without being an input")
        raise GraphBreak(
            "FJ0121", f"an object of type {type(arg).__name__} cannot be an argument in a graph"
        )

    def _create(
        self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], example: Any
    ) -> Operation:
        if target is operator.pow and isinstance(args[0], (int, float)):
            # The code of an fx graph would say `-2 ** x`, which is `-(2 ** x)`.
            exponent = self.example(args[1]) if type(args[1]) is _Node else None
            target = torch.pow if isinstance(exponent, Example) else pow
        node = self.graph.create_node(op, target)
        node.args = args  # given to create_node, all of them would be searched for symbols
        if kwargs:
            node.kwargs = kwargs
        trace = self._trace or self.leader.stack_trace()
        if trace is not None:
            node.meta["stack_trace"] = trace
        return self._add(node, example, self.sequence)

    def _add(self, node: _Node, example: Any, among: list[Operation]) -> Operation:
        operation = self.outer[node] = Operation(node, example)
        among.append(operation)
        return operation

    # -- finishing

    def unused_effects(self, outputs: list[_Node]) -> list[_Node]:
        """What keeps alive the operations that nothing in the graph or outside needs, but that draw
        random numbers, may raise, or are waited for: backends remove what is not needed.

        Results that nobody wants are given without their history, so that they take no part in
        backward.
        """
        live: set[_Node] = set()
        lasting = [one.node for one in self.sequence if one.effect and not one.random]
        stack = [*outputs, *lasting]
        while stack:
            node = stack.pop()
            if node not in live:
                live.add(node)
                stack.extend(node.all_input_nodes)
        if not live.issuperset(self.composites):
            self.flatten()
            return self.unused_effects(outputs)
        unused = []
        for operation in list(self.sequence):
            node = operation.node
            if node in live or operation.aside or operation.transform is not None:
                continue
            wanted = operation.random or operation.raises or operation.exchanges
            if not wanted and operation.called:
                wanted = may_be_refused(node, self.example)
            if not wanted:
                continue
            example, self._trace = operation.example, node.meta.get("stack_trace")
            if isinstance(example, (tuple, list)):
                tensors = [i for i, item in enumerate(example) if isinstance(item, Example)]
                if tensors:
                    node, example = self.unpack(node, example, tensors[0])
            if isinstance(example, Example):
                if example.meta.requires_grad:
                    node, _ = self.call_method("detach", (node,), {})
                unused.append(node)
        self._trace = None
        return unused

    def finish(self, outputs: list[_Node]) -> tuple[torch.fx.GraphModule, list[Any]]:
        """The recorded graph, which returns ``outputs``, and what it is called with: `used_symbols`
        (as `torch.SymInt`s), then the real tensors.

        Operations whose results nobody needs stay: they may raise, as they do in eager mode.
        """
        self.graph.create_node("output", "output", (tuple(outputs),), {})
        self.outputs = list(outputs)
        self._remove_unused()
        self._settle_symbols()
        for node in self.graph.nodes:
            if node.op != "output":
                self._give_meta(node)
        self.world.forget_inputs()
        nodes = list(self.graph.nodes)
        wanted = {node.target for node in nodes if node.op == "get_attr"}
        root = {name: value for name, value in self.modules.items() if name in wanted}
        module = LazyGraphModule(root, self.graph, "GraphModule")
        if self.composites:
            expand_with(module, self.flatten, self.composites)
        self.give_meta = self._give_meta
        if self.exchanges:
            module.meta[EXCHANGES] = True
        if self.exchanges or self.draws_random or self.mutated_inputs:
            module.meta[ONCE] = True
        if self.writers:
            strided = {one.node for one in self.writers if one.strided}
            module.meta[WRITES] = [i for i, node in enumerate(nodes) if node in strided]
        examples: list[Any] = [self.inputs[index] for index in self.used_inputs]
        symbols = self.world.symbols_if_any
        if symbols is not None:
            born = [self._shape_of_input(index) for index in self.used_inputs]
            varying = any(self.varying_inputs()) or any(isinstance(b, Composition) for b in born)
            if self.used_symbols or self.symbol_nodes.data_dependent or varying:
                remember_inputs(module, symbols, born)
            examples = [symbols.example(name) for name in self.used_symbols] + examples
        return module, examples

    def _shape_of_input(self, index: int) -> TensorMeta | Composition:
        example: Example = self.placeholders[index].example
        return example.composition or example.born

    def _settle_symbols(self) -> None:
        symbols = self.world.symbols_if_any
        if symbols is None:
            return
        needed: set[str] = set()
        for index in self.used_inputs:
            for name in free_symbols(self._shape_of_input(index), symbols):
                needed.add(name)
                self.symbol_nodes.placeholder(name, symbols.example(name))
        self.used_symbols = self.symbol_nodes.settle(symbols, needed)

    def _remove_unused(self) -> None:
        """Erase what no operation of the program made (nested graphs, inputs, items of results,
        arithmetic with sizes) and what was set aside, where nothing uses it."""
        for one in reversed(self.sequence):
            if not one.node.users and (one.aside or not (one.called or one.effect)):
                self.graph.erase_node(one.node)
        kept = set(self.graph.nodes)
        self.differentiated = [node for node in self.differentiated if node in kept]
        self.used_inputs = []
        for index, one in enumerate(self.placeholders):
            if one.node.users:
                self.used_inputs.append(index)
            else:
                self.graph.erase_node(one.node)

    def _give_meta(self, node: _Node) -> None:
        example = self.example(node)
        pending: dict[str, Callable[[], Any]] = {}
        meta = NodeMeta(pending)
        trace = node.meta.get("stack_trace")
        if callable(trace):
            pending["stack_trace"] = trace
        elif trace is not None:
            dict.__setitem__(meta, "stack_trace", trace)
        is_input = node.op == "placeholder" and isinstance(example, Example)
        if is_input and example.meta is not example.born:
            # Mutated in place by the graph; a caller passes it as it was before.
            example = Example(self.world, example.born)
        if node.op != "get_attr":
            pending["example_value"] = _Reader(self.world, example)
        object.__setattr__(node, "meta", meta)  # a node's own looks itself up in tables of fx

    def close(self) -> None:
        """Nothing more is recorded: let go of the user's tensors and of who recorded."""
        self.inputs, self.leader = [], Leader()
        if (symbols := self.world.symbols_if_any) is not None:
            symbols.line = self.leader.user_line
        self.world.forget_inputs()


#: A mode for fake tensors is no two threads' at once.
_reading = Lock()


class _Reader:
    """Makes ``example_value`` when it is read."""

    __slots__ = ("example", "world")

    def __init__(self, world: FakeWorld, example: Any) -> None:
        self.world = world
        self.example = example

    def __call__(self) -> Any:
        with _reading:
            for example in examples_in(self.example):
                self.world.materialize_for_reader(example)
        return lower(self.example)
