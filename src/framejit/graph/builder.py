"""Records captured operations as `torch.fx` nodes.

In: targets with arguments in which tensors are nodes. Out: per operation a node and its `Example`
(what is known of the result); at the end an `fx.GraphModule` and the real input tensors. A call
that fails leaves no node behind.
Next room: backends.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.fx
from torch.fx.node import map_aggregate

from ..exc import GraphBreak
from . import global_state
from .expressions import Tree
from .fakes import FakeWorld
from .lazy import CapturedGraph, LazyGraphModule
from .metadata import Example
from .names import placeholder_name
from .node_meta import NodeMeta
from .propagation import lower, propagate
from .refusals import may_be_refused
from .symbol_nodes import SymbolNodes, free_symbols, remember_inputs
from .undo import LIMIT, can_be_saved

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


class GraphBuilder:
    """One graph being recorded.

    ``stack_trace`` is what new nodes carry as ``meta["stack_trace"]``: a string, or a function
    called once per node that returns the string or a function making it when it is read.
    """

    def __init__(self) -> None:
        self.graph = CapturedGraph()
        self.stack_trace: str | Callable[[], str | Callable[[], str]] | None = None
        #: The user's (file, line) being executed, for what is assumed about sizes.
        self.line: Callable[[], tuple[str, int] | None] = lambda: None
        #: Is the program inside a ``try`` of its own?
        self.in_try: Callable[[], bool] = lambda: False
        #: Asked before an operation that saves tensors, which runs hooks of the program.
        self.before_saving: Callable[[], None] | None = None
        #: The real input tensors, one per placeholder, in order.
        self.inputs: list[torch.Tensor] = []
        #: After `finish`: which of `inputs`, by position, the graph needs.
        self.used_inputs: list[int] = []
        #: After `finish`: the symbols that the graph takes in front of its tensors.
        self.used_symbols: list[str] = []
        self._world = FakeWorld()
        self._placeholders: list[_Node] = []
        self._attributes: dict[str, Any] = {}
        self._nodes: list[_Node] = []  # all but placeholders
        self._examples: dict[_Node, Any] = {}
        self._symbol_nodes = SymbolNodes(self.graph, self._examples, self._create_symbolic)
        self._operations: set[_Node] = set()  # of the program
        self._effects: set[_Node] = set()
        self._random: set[_Node] = set()
        self._raising: set[_Node] = set()
        self._tried: set[_Node] = set()  # those of them inside a ``try``
        self._mutations: dict[_Node, list[Example]] = {}
        self._content: list[Example] = []  # what operations write content to
        self._strided: set[_Node] = set()  # those of them that write to tensors with gaps, turned
        self._aside: set[_Node] = set()
        #: Operations inside of transforms (`torch.func`), whose results are of no use outside, and
        #: the step in which the program entered the transform.
        self.inside: dict[_Node, int] = {}
        self._outputs: list[_Node] = []

    # -- what is there

    @property
    def symbols(self) -> Any:
        """The symbols for sizes that vary (`symbols.Symbols`); asking makes them possible."""
        symbols = self._world.symbols
        symbols.line = self.line
        return symbols

    @property
    def symbols_if_any(self) -> Any:
        """The same, or None while nothing varies."""
        return self._world.symbols_if_any

    @property
    def op_count(self) -> int:
        """How many operations were recorded (inputs and nested graphs are none)."""
        return len(self._nodes) - len(self._attributes)

    @property
    def draws_random(self) -> bool:
        """Whether running the graph advances a random number generator."""
        return bool(self._random)

    @property
    def mutated_inputs(self) -> list[int]:
        """Which of `inputs` the graph may write to, directly or through a view."""
        return self._inputs_among(self._mutations.values())

    def reads_what_it_writes(self) -> bool:
        """Is there an operation that reads an input, or a view of it, which another one writes?"""
        written = [self._examples[self._placeholders[index]] for index in self.mutated_inputs]
        memory = _with_aliases(written)
        read = {used for node in self._operations - self._mutations.keys()
                for used in node.all_input_nodes}  # fmt: skip
        return any(id(one) in memory for node in read for one in examples_in(self._examples[node]))

    def is_written(self, node: _Node) -> bool:
        """Does an operation write to this tensor, or to one that shares its memory?"""
        written = set().union(*map(_with_aliases, self._mutations.values()))
        return id(self._examples[node]) in written

    def _inputs_among(self, mutations: Iterable[list[Example]]) -> list[int]:
        written = set().union(*map(_with_aliases, mutations))
        return [
            index
            for index, node in enumerate(self._placeholders)
            if id(self._examples[node]) in written
        ]

    def _savable_writes(self, mutations: Iterable[list[Example]]) -> list[int] | None:
        """Which of `inputs` are written to, if copies of all of them are cheap and enough to undo
        the writes; else None."""
        written = self._inputs_among(mutations)
        size = 0
        for index in written:
            tensor, example = self.inputs[index], self._examples[self._placeholders[index]]
            shapes = [(meta.shape, meta.stride) for meta in (example.meta, example.born)]
            if not can_be_saved(tensor) or str(shapes[0]) != str(shapes[1]):
                return None
            size += tensor.nbytes
        return written if size <= LIMIT else None

    def may_raise(self) -> bool:
        """Whether the finished graph has operations that raise for some data."""
        return any(node in self._raising for node in self.graph.nodes)

    def saved_inputs(self) -> tuple[int, ...]:
        """Positions, among what the finished graph is called with, of the inputs to put back when
        it raises, so that the program can run again; empty if there are none, or it cannot."""
        if not self._mutations or not self.may_raise():
            return ()
        saved = self._savable_writes(self._mutations.values()) or ()
        return tuple([len(self.used_symbols) + self.used_inputs.index(index) for index in saved])

    def first_effect(self) -> _Node | None:
        """The first node that writes to an input or draws random numbers."""
        inputs = {id(self._examples[node]) for node in self._placeholders}
        for node in self._nodes:
            written = _with_aliases(self._mutations.get(node, ()))
            if node in self._random or not inputs.isdisjoint(written):
                return node
        return None

    def example(self, node: _Node) -> Any:
        """What is known of a node's value now: an `Example`, a container of them, a constant."""
        return self._examples[node]

    def fake(self, node: _Node) -> Any:
        """The node's value with fake tensors in place of examples."""
        return lower(self._examples[node])

    def origin(self, node: _Node) -> _Node:
        """The first node whose value is this very tensor: operations may return an operand, such as
        a copy that is not needed, or what is given as ``out=``."""
        example = self._examples[node]
        return next(one for one, known in self._examples.items() if known is example)

    def share(self, node: _Node, others: Iterable[_Node]) -> bool:
        """May a tensor share memory with one of the others? Numbers do not."""
        memory = _with_aliases(examples_in(self._examples[node]))
        return any(id(self._examples[other]) in memory for other in others)

    # -- recording

    def add_input(
        self, name: str, tensor: torch.Tensor, example: Example | None = None
    ) -> tuple[_Node, Example]:
        """A placeholder for a real tensor that comes from the source called ``name``.

        ``example`` is what `symbolic_example` made of it if some of its sizes vary.
        Raises GraphBreak for tensors that cannot be traced (subclasses, ...).
        """
        if example is None:
            example = self._world.example_of(tensor)
        last = self._placeholders[-1] if self._placeholders else self._symbol_nodes.last
        with self.graph.inserting_after(last):
            node = self.graph.create_node("placeholder", placeholder_name(name), (), {})
        node.target = node.name  # unique, and the name of the generated function's parameter
        self._placeholders.append(node)
        self.inputs.append(tensor)
        self._examples[node] = example
        return node, example

    def symbolic_example(
        self, tensor: torch.Tensor, shape: tuple[Any, ...], stride: tuple[Any, ...]
    ) -> Example:
        """What is known of an input some of whose sizes and strides are symbols."""
        return self._world.symbolic_example(tensor, shape, stride)

    def imagined_example(self, shape: list[int], stride: list[int], like: torch.Tensor) -> Example:
        """What would be known of an input of these sizes, otherwise like another."""
        return self._world.imagined(shape, stride, like)

    def symbolic_argument(self, tree: Tree) -> Any:
        """The node (or number) that computes an expression over symbols."""
        return self._symbol_nodes.argument(tree, self.symbols)

    def symbol_made_by(self, name: str) -> _Node | None:
        """The node whose result a symbol is, if it does not come from outside."""
        return self._symbol_nodes.result(name)

    def symbol_is(self, name: str, node: _Node) -> None:
        """A node's result is this symbol."""
        self._symbol_nodes.made.setdefault(name, node)

    def symbols_in_sizes(self, node: _Node, example: Example) -> None:
        """A node's result may have sizes that depend on data: those symbols come from there."""
        for dim, size in enumerate(example.meta.shape):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                name = str(size.node.expr)
                outside = self.symbols.are_inputs(("load", name))
                if not outside and name not in self._symbol_nodes.made:
                    self._symbol_nodes.sizes.setdefault(name, (node, dim, size))

    def _create_symbolic(self, target: Any, args: tuple[Any, ...], example: Any) -> _Node:
        return self._create("call_function", target, args, {}, example)

    def add_module(self, name_hint: str, module: torch.nn.Module) -> _Node:
        """A nested graph, for higher-order operators that take one as an argument."""
        name = unique = placeholder_name(name_hint)
        number = 0
        while unique in self._attributes:
            number += 1
            unique = f"{name}_{number}"
        self._attributes[unique] = module
        node = self.graph.create_node("get_attr", unique, (), {})
        self._nodes.append(node)
        self._examples[node] = module
        return node

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

        It is not run, returns nothing known, and is never removed as dead code.
        """
        node = self._create("call_function", target, args, kwargs, None)
        self._effects.add(node)
        return node

    def imagine(self, target: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """The example of ``target(*args)``, which is not recorded."""
        return self._propagate(target, self._lookup(args), {})[0]

    def _propagate(self, target: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """What an operation returns and does; raising, it leaves the transforms it enters."""
        depth = global_state.transform_depth()
        try:
            return propagate(self._world, target, args, kwargs, global_state.current())
        except Exception as error:
            global_state.let_go(error)
            raise
        finally:
            global_state.leave_transforms(depth)

    def record(
        self, target: Callable[..., Any], args: tuple[Any, ...], example: Any, **kwargs: Any
    ) -> _Node:
        """Record a call whose result is known already, and which makes sense only where it is."""
        return self._create("call_function", target, args, kwargs, example)

    def unpack(self, node: _Node, example: Any, index: Any) -> tuple[_Node, Any]:
        """Record ``node[index]`` for an operation that returned a sequence or a dict."""
        item = example[index]
        return self._create("call_function", operator.getitem, (node, index), {}, item), item

    def _call(
        self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[_Node, Any]:
        known_args, known_kwargs = self._lookup((args, kwargs))
        symbolic = self._world.symbols_if_any is not None
        sizes = [e.meta.shape for e in examples_in([known_args, known_kwargs])] if symbolic else ()
        example, effects = self._propagate(target, known_args, known_kwargs)
        if self.before_saving is not None:
            if any(e.meta.requires_grad for e in examples_in([known_args, known_kwargs])):
                self.before_saving()
        if symbolic:
            self._world.symbols.poll()
        written = self._mutations
        tried = effects.raises and self.in_try()
        if tried and written and self._savable_writes(written.values()) is None:
            raise GraphBreak("FJ0116", "what may raise in a try follows a write to an input")
        if effects.writes:
            tensors = examples_in([known_args, known_kwargs])
            writes = [tensors[position] for position in effects.writes]
            if self._tried and self._savable_writes([*written.values(), writes]) is None:
                raise GraphBreak("FJ0116", "a write to an input follows what may raise in a try")
            if effects.content:
                if symbolic and any(
                    str(tensors[i].meta.shape) != str(sizes[i]) for i in effects.writes
                ):
                    raise GraphBreak("FJ0116", "an operation resizes what it writes to")
                self._content += writes
            self._check_reshaped()
        node = self._create(op, target, args, kwargs, example)
        self._operations.add(node)
        if effects.raises:
            self._raising.add(node)
        if tried:
            self._tried.add(node)
        if effects.random:
            self._effects.add(node)
            self._random.add(node)
        if effects.writes:
            self._effects.add(node)
            self._mutations[node] = writes
            if effects.content and not all(in_order(e.meta.shape, e.meta.stride) for e in writes):
                self._strided.add(node)
        return node, example

    def _check_reshaped(self) -> None:
        """GraphBreak where an input gets both another content and another shape or strides, which
        AOTAutograd mixes up."""
        looks = [e for node in self._placeholders if reshaped(e := self._examples[node])]
        if any(one.meta.requires_grad for one in looks):
            raise GraphBreak("FJ0116", "an input that takes part in autograd gets another shape")
        if looks and not _with_aliases(self._content).isdisjoint(map(id, looks)):
            raise GraphBreak("FJ0116", "an input that gets another shape is written to as well")

    def _lookup(self, args: Any) -> Any:
        """The arguments with examples in place of nodes; checks that the rest can be spelled."""
        return map_aggregate(args, self._example_of)

    def _example_of(self, arg: Any) -> Any:
        if type(arg) is _Node:
            return self._examples[arg]
        if isinstance(arg, _CONSTANTS):
            return arg
        if isinstance(arg, torch.Tensor):
            raise GraphBreak("FJ0121", "a tensor is passed to an operation without being an input")
        raise GraphBreak(
            "FJ0121", f"an object of type {type(arg).__name__} cannot be an argument in a graph"
        )

    def _create(
        self, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any], example: Any
    ) -> _Node:
        if target is operator.pow and isinstance(args[0], (int, float)):
            # The code of an fx graph would say `-2 ** x`, which is `-(2 ** x)`.
            exponent = self._examples[args[1]] if type(args[1]) is _Node else None
            target = torch.pow if isinstance(exponent, Example) else pow
        node = self.graph.create_node(op, target, args, kwargs)
        trace = self.stack_trace
        if trace is not None:
            if not isinstance(trace, str):
                trace = trace()
            node.meta["stack_trace"] = trace
        self._nodes.append(node)
        self._examples[node] = example
        return node

    # -- finishing

    def unused_effects(self, outputs: list[_Node]) -> list[_Node]:
        """What keeps alive the operations that nothing in the graph or outside needs, but that draw
        random numbers or may raise: backends remove what is not needed.

        Results that nobody wants are given without their history, so that they take no part in
        backward.
        """
        live: set[_Node] = set()
        stack = [*outputs, *(node for node in self._effects if node not in self._random)]
        while stack:
            node = stack.pop()
            if node not in live:
                live.add(node)
                stack.extend(node.all_input_nodes)
        unused = []
        for node in list(self._nodes):
            if node in live or node in self._aside or node in self.inside:
                continue
            wanted = node in self._random or node in self._raising
            if not wanted and node in self._operations:
                wanted = may_be_refused(node, self._examples.__getitem__)
            if not wanted:
                continue
            example, trace = self._examples[node], node.meta.get("stack_trace")
            self.stack_trace = lambda trace=trace: trace  # type: ignore[misc]
            if isinstance(example, (tuple, list)):
                tensors = [i for i, item in enumerate(example) if isinstance(item, Example)]
                if tensors:
                    node, example = self.unpack(node, example, tensors[0])
            if isinstance(example, Example):
                if example.meta.requires_grad:
                    node, _ = self.call_method("detach", (node,), {})
                unused.append(node)
        return unused

    def set_aside(self, nodes: list[_Node]) -> None:
        """These nodes were copied into another graph: unless something uses them, they go."""
        self._aside.update(nodes)

    def outputs(self, nodes: list[_Node]) -> None:
        """Say what the graph returns, in order."""
        self._outputs = list(nodes)

    def finish(self) -> tuple[torch.fx.GraphModule, list[Any]]:
        """The recorded graph, and what it is called with: `used_symbols` (as `torch.SymInt`s), then
        the real tensors.

        Operations whose results nobody needs stay: they may raise, as they do in eager mode.
        """
        self.graph.create_node("output", "output", (tuple(self._outputs),), {})
        self._remove_unused()
        self._settle_symbols()
        for node in self.graph.nodes:
            if node.op != "output":
                self._give_meta(node)
        self._world.forget_inputs()
        wanted = {node.target for node in self.graph.nodes if node.op == "get_attr"}
        root = {name: value for name, value in self._attributes.items() if name in wanted}
        module = LazyGraphModule(root, self.graph, "GraphModule")
        if self._mutations:
            nodes = enumerate(self.graph.nodes)
            module.meta[WRITES] = [i for i, node in nodes if node in self._strided]
        examples: list[Any] = [self.inputs[index] for index in self.used_inputs]
        symbols = self._world.symbols_if_any
        if symbols is not None:
            inputs = [self._examples[self._placeholders[index]] for index in self.used_inputs]
            varying = any(self.varying_inputs())
            if self.used_symbols or self._symbol_nodes.data_dependent or varying:
                remember_inputs(module, symbols, [example.born for example in inputs])
            examples = [symbols.example(name) for name in self.used_symbols] + examples
        return module, examples

    def varying_inputs(self) -> list[bool]:
        """Of each of the inputs in `used_inputs`: did its sizes or strides begin as symbols?"""
        inputs = [self._examples[self._placeholders[index]] for index in self.used_inputs]
        return [example.born.symbolic for example in inputs]

    def _settle_symbols(self) -> None:
        symbols = self._world.symbols_if_any
        if symbols is None:
            return
        needed: set[str] = set()
        for index in self.used_inputs:
            for name in free_symbols(self._examples[self._placeholders[index]].born, symbols):
                needed.add(name)
                self._symbol_nodes.placeholder(name, symbols.example(name))
        self.used_symbols = self._symbol_nodes.settle(symbols, needed)

    def _remove_unused(self) -> None:
        """Erase what no operation of the program made (nested graphs, inputs, items of results,
        arithmetic with sizes) and what was set aside, where nothing uses it."""
        for node in reversed(self._nodes):
            recorded = node in self._operations or node in self._effects
            if not node.users and (node in self._aside or not recorded):
                self.graph.erase_node(node)
        self.used_inputs = []
        for index, node in enumerate(self._placeholders):
            if node.users:
                self.used_inputs.append(index)
            else:
                self.graph.erase_node(node)

    def _give_meta(self, node: _Node) -> None:
        example: Any = self._examples.get(node)
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
            example = Example(self._world, example.born)
        if node.op != "get_attr":
            pending["example_value"] = _Reader(self._world, example)
        node.meta = meta

    def close(self) -> None:
        """Nothing more is recorded: let go of the user's tensors and of who recorded."""
        self.inputs, self.stack_trace, self.line = [], None, lambda: None
        self.in_try, self.before_saving = lambda: False, None
        if (symbols := self.symbols_if_any) is not None:
            symbols.line = self.line
        self._world.forget_inputs()


class _Reader:
    """Makes ``example_value`` when it is read."""

    __slots__ = ("example", "world")

    def __init__(self, world: FakeWorld, example: Any) -> None:
        self.world = world
        self.example = example

    def __call__(self) -> Any:
        for example in examples_in(self.example):
            self.world.materialize_for_reader(example)
        return lower(self.example)


def in_order(shape: Sequence[Any], stride: Sequence[Any]) -> bool:
    """Do the elements of such a tensor lie one after the other?"""
    step: Any = 1
    for size, found in zip(reversed(shape), reversed(stride), strict=True):
        if str(size) != "1" and str(found) != str(step):  # comparing symbols would add guards
            return False
        step = step * size
    return True


def reshaped(example: Example) -> bool:
    """Has an operation changed the sizes or strides of an existing tensor?"""
    now, born = example.meta, example.born
    return now is not born and any(
        str(getattr(now, name)) != str(getattr(born, name))  # comparing symbols would add guards
        for name in ("shape", "stride", "storage_offset")
    )


def _with_aliases(written: Iterable[Example]) -> set[int]:
    """The ids of all examples that may share memory with these."""
    return {id(member) for example in written for member in example.group or (example,)}


def examples_in(value: Any) -> list[Example]:
    """The examples inside a result, in order."""
    found: list[Example] = []

    def note(part: Any) -> Any:
        if isinstance(part, Example):
            found.append(part)
        return part

    map_aggregate(value, note)
    return found
