"""Which repeated calls of a recorded graph become calls of one subgraph.

In: a finished graph, and which of its nodes each call of a repeated function recorded. Out:
`Region`s, as positions of nodes: calls that do the same, operation by operation, on tensors that
look the same, so that what is compiled for one of them serves them all. What cannot be said so
(writes to tensors from outside, another grad mode, ...) is no region. Next: outlining.
"""

from __future__ import annotations

import collections
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
import torch.fx

from .builder import GraphBuilder
from .global_state import SETTERS
from .metadata import Example, TensorMeta, in_order, memory_of_all
from .operation import Operation

_Node = torch.fx.Node

#: Where a graph's `meta` has what finds its regions, for backends that take them.
REGIONS = "regions"

#: With fewer operations, or fewer calls, what surrounds a call costs more than compiling it again;
#: other limits hold where the user has asked for it.
LEAST_OPERATIONS, LEAST_OPERATIONS_MARKED = 6, 1
LEAST_CALLS, LEAST_CALLS_MARKED = 3, 2
#: What compiling a call of a region costs, in operations compiled. (CPU seconds: one more layer
#: of BERT 0.05, flat 0.44 for 40 operations; one more residual block 0.035, flat 0.21 for 7.)
PRICE_OF_CALL = 3
#: A call of a subgraph costs time whenever it runs, and what is around it is not fused with what is
#: inside. Where a call touches fewer elements of tensors than this, that is more than 2 % of its
#: time (measured on a CPU), which is worth it where so many operations less are compiled.
SMALL_CALL = 400_000
MUCH_SAVED = 100
#: The same in training on a GPU, which is so much faster that the 0.06 to 0.1 ms of a call, forward
#: and backward, count for longer. (24 blocks: on an H200, where each touches 16 million elements, a
#: step takes 10 % longer than without regions, and a call without gradients 1 %; on an H100, where
#: each touches 29, 65, 220 and 260 million, a step takes 9, 5, 1.4 and 0 % longer.)
GPUS = ("cuda", "xpu", "mps")
SMALL_STEP_ON_GPU = 160_000_000
MUCH_SAVED_ON_GPU = 1_000
#: A region costs AOTAutograd and Inductor more than fewer operations do. (Training's first call in
#: CPU time: three regions of a resnet34, 28 operations spared, cost a third more than no regions;
#: one of 12 residual blocks, 51 operations spared, a third less.)
LEAST_SAVED = 30
#: What a call writes to is copied twice; of all that it touches, this part may be.
COPIED = 1 / 50

#: Inductor lays out what comes of them, and all that is between them, with channels last. Where
#: sizes vary, regions return the strides that eager gives, so each would convert there and back: a
#: call of 8 bottleneck blocks takes 1.3 times as long as flat, a training step 1.5 (on a CPU).
_LAID_OUT = (torch.conv2d, torch.conv_transpose2d, torch.convolution)

#: They set nothing that an operation depends on.
_NO_STATE = (torch.clear_autocast_cache, torch._check)

#: They name elements of memory, not of the tensor that they are given.
_ABSOLUTE = ("as_strided", "as_strided_")


class Repeat(NamedTuple):
    """Calls of one function that are expected to have recorded the same: per call its nodes, in
    order."""

    name: str
    calls: list[list[_Node]]
    #: Did the user say that the calls repeat?
    marked: bool = False


class Region(NamedTuple):
    """Calls of one subgraph: positions of nodes among all of the graph."""

    name: str
    #: Per call: what it consists of, and what it takes from outside, in the order of first use.
    calls: list[list[list[int]]]
    #: Which of that it writes to.
    written: list[int]
    #: What is given to the outside: positions within a call.
    outputs: list[int]
    #: Views of that, and of what a call takes, which are made outside, in this order.
    views: list[int]
    #: Per call a number, equal where the same of its tensors need gradients, as all calls of one
    #: subgraph get the same backward. 0 is the most frequent.
    kinds: list[int]


class _Call(NamedTuple):
    """One call of a repeated function."""

    nodes: list[_Node]
    inputs: list[_Node]
    #: Which inputs it writes to, and which nodes are used outside of it: their positions.
    written: list[int]
    outputs: set[int]
    #: Which of the tensors that it takes and makes need gradients.
    gradients: tuple[bool, ...]

    @property
    def operations(self) -> int:
        return sum(node.target is not operator.getitem for node in self.nodes)


def find_regions(
    builder: GraphBuilder,
    module: torch.fx.GraphModule,
    repeats: Iterable[Repeat],
    everywhere: bool = False,
) -> list[Region]:
    """The regions of a finished graph; of repeats inside of each other those that spare most.
    Without ``everywhere`` only where that pays."""
    there = dict.fromkeys(module.graph.nodes)
    reader = _Reader(builder, module)
    groups: list[_Group] = []
    for repeat in repeats:
        alike: dict[Any, list[_Call]] = {}
        least = LEAST_OPERATIONS_MARKED if repeat.marked else LEAST_OPERATIONS
        for call in repeat.calls:
            parts = [part for node in call for part in builder.expanded.get(node, [node])]
            nodes = [node for node in dict.fromkeys(parts) if node in there]
            if sum(node.target is not operator.getitem for node in nodes) < least:
                continue
            found = reader.read(nodes)
            if found is not None:
                alike.setdefault(found[0], []).append(found[1])
        groups += [_Group(repeat.name, calls, repeat.marked) for calls in alike.values()]
    position = {node: i for i, node in enumerate(module.graph.nodes)}
    regions: list[Region] = []
    for group in _profitable(groups):
        if not (everywhere or group.marked or reader.is_worth_it(group)):
            continue
        wanted = set().union(*[call.outputs for call in group.calls])
        results = reader.results(group.calls, wanted)
        if results is not None:
            places = [[[position[n] for n in some] for some in call[:2]] for call in group.calls]
            written = group.calls[0].written
            regions.append(Region(group.name, places, written, *results, group.kinds))
    return regions


class _Group(NamedTuple):
    """Calls that do the same."""

    name: str
    calls: list[_Call]
    marked: bool

    @property
    def kinds(self) -> list[int]:
        """Per call which tensors need gradients, as a number (see `Region`)."""
        frequent = collections.Counter([call.gradients for call in self.calls]).most_common()
        numbers = {gradients: number for number, (gradients, _) in enumerate(frequent)}
        return [numbers[call.gradients] for call in self.calls]

    @property
    def repeated(self) -> int:
        """How many calls are not the first of their kind."""
        return len(self.calls) - len({call.gradients for call in self.calls})

    @property
    def saved(self) -> int:
        """How many operations less are compiled."""
        calls = self.calls
        return self.repeated * calls[0].operations - len(calls) * PRICE_OF_CALL

    def without(self, taken: set[_Node]) -> _Group:
        """The calls that have none of these nodes."""
        free = [call for call in self.calls if taken.isdisjoint(call.nodes)]
        return self._replace(calls=free)

    @property
    def enough(self) -> bool:
        """Are they enough calls for a region?"""
        return self.repeated >= (LEAST_CALLS_MARKED if self.marked else LEAST_CALLS) - 1


def _profitable(groups: list[_Group]) -> list[_Group]:
    """Groups that share no node, those first that save the most operations."""
    taken: set[_Node] = set()
    chosen = []
    left = list(groups)
    while left:
        left = [group for group in [group.without(taken) for group in left] if group.enough]
        if left:
            best = max(left, key=lambda group: group.saved)
            left.remove(best)
            chosen.append(best)
            taken.update(*[call.nodes for call in best.calls])
    return chosen


class _Reader:
    """What calls do, in words that are equal where they do the same."""

    def __init__(self, builder: GraphBuilder, module: torch.fx.GraphModule) -> None:
        self.builder = builder
        self.order = {node: i for i, node in enumerate(module.graph.nodes)}
        self.nodes = list(module.graph.nodes)
        self.writers = [one for one in builder.writers if one.node in self.order]
        #: Per node what of torch's state is not as where the graph begins; None where a subgraph
        #: does not get to know it.
        self.states: dict[_Node, Any] = {}
        #: Those that a gradient flows to when all outputs are differentiated, or in the graph.
        self.needed: set[_Node] = set(builder.differentiated)
        self._follow_state()
        self._follow_gradients()

    def _follow_state(self) -> None:
        """The graph is compiled under the state that it begins in."""
        set_so_far: dict[Any, Any] = {}
        known = True
        state: frozenset[Any] | None = frozenset()
        for node in self.nodes:
            self.states[node] = state
            operation = self.builder.operations.get(node)
            if operation is None or not operation.sets_state or node.target in _NO_STATE:
                continue
            if node.target in SETTERS:
                *selectors, value = node.args
                place = (node.target, *selectors)
                set_so_far[place] = value
                if SETTERS[node.target][0](*selectors) == value:
                    del set_so_far[place]
            else:
                known = False
            other_dtype = any(setter is torch.set_autocast_dtype for setter, *_ in set_so_far)
            state = frozenset(set_so_far.items()) if known and not other_dtype else None

    def _follow_gradients(self) -> None:
        """A result that is only looked at has no gradient, and a subgraph would be given zeros."""
        outputs = set(self.builder.outputs)
        for node in reversed(self.nodes):
            operation = self.builder.operations.get(node)
            if operation is None or not operation.differentiable:
                continue
            users = [self.builder.operations.get(user) for user in node.users]
            written = operation.writes or any(
                user is not None and user.differentiable and user.writes for user in users
            )
            if node in outputs or written or not self.needed.isdisjoint(node.users):
                self.needed.add(node)

    def read(self, nodes: list[_Node]) -> tuple[Any, _Call] | None:
        """What the call of these nodes is equal to other calls by, and the call; None for what is
        no region."""
        first, last = self.order[nodes[0]], self.order[nodes[-1]]
        between = [n for n in self.nodes[first : last + 1] if n.op.startswith("call")]
        if between != nodes or not all(map(self._movable, nodes)):
            return None
        if self.states[nodes[0]] is None:
            return None
        inside = {node: i for i, node in enumerate(nodes)}
        inputs = list(
            dict.fromkeys(used for n in nodes for used in n.all_input_nodes if used not in inside)
        )
        outputs = {i for node, i in inside.items() if not inside.keys() >= node.users.keys()}
        if any(self._is_only_looked_at(nodes[i]) for i in outputs):
            return None
        written = self._written(nodes, inputs)
        if written is None:
            return None
        if not all(self._steady(node, inside) for node in inputs):
            return None
        places = inside | {node: -1 - i for i, node in enumerate(inputs)}
        key = (
            self.states[nodes[0]],
            tuple([(n.op, n.target, in_words((n.args, n.kwargs), places)) for n in nodes]),
            tuple([_look(self._operation(node).example) for node in (*inputs, *nodes)]),
            tuple(written),
        )
        examples = self._examples([*inputs, *nodes])
        gradients = [one.requires_grad for e in examples for one in (e.meta, e.born)]
        return key, _Call(nodes, inputs, written, outputs, tuple(gradients))

    def _written(self, nodes: list[_Node], inputs: list[_Node]) -> list[int] | None:
        """The positions of the inputs that these nodes write to. None where that is more than to
        put other numbers into tensors of their own: a subgraph is given copies of them."""
        writing = [self._operation(node) for node in nodes]
        memory = set().union(*[one.written for one in writing])
        found = [
            i
            for i, node in enumerate(inputs)
            if not memory.isdisjoint(self._operation(node).memory)
        ]
        if not found:
            return found
        if any(one.writes and not one.content for one in writing):
            return None
        for position in found:
            example = self._operation(inputs[position]).example
            if not isinstance(example, Example):
                return None
            others = self._examples([*inputs[:position], *inputs[position + 1 :]])
            look = example.meta
            if look.requires_grad or not in_order(look.shape, look.stride):
                return None
            if not memory_of_all([example]).isdisjoint(memory_of_all(others)):
                return None
        return found

    def _operation(self, node: _Node) -> Operation:
        return self.builder.operations[node]

    def _is_only_looked_at(self, node: _Node) -> bool:
        """Has it a gradient, and are all results of it outside without?"""
        return self._operation(node).differentiable and node not in self.needed

    def _movable(self, node: _Node) -> bool:
        """May the operation be part of a subgraph?"""
        one = self._operation(node)
        name = getattr(node.target, "__name__", node.target)
        return not (
            one.sets_state or one.transform is not None or one.aside
            or name in _ABSOLUTE
            or isinstance(node.target, torch._ops.HigherOrderOperator)
        )  # fmt: skip

    def _steady(self, node: _Node, inside: dict[_Node, int]) -> bool:
        """Is it a plain tensor, or a size, that looks at the end as it does to the call?"""
        example = self._operation(node).example
        if node.op == "get_attr":
            return False
        if not isinstance(example, Example):
            return isinstance(example, (int, torch.SymInt)) and not isinstance(example, bool)
        if not _is_plain(example.meta):
            return False
        if example.meta is example.born:
            return True
        start = self.order[next(iter(inside))]
        memory = memory_of_all([example])
        return all(
            self.order[one.node] < start or memory.isdisjoint(one.written) for one in self.writers
        )

    def is_worth_it(self, group: _Group) -> bool:
        """Does a call take so long that what surrounds it does not count, or are so many operations
        less compiled?"""
        call = group.calls[0]
        metas = self._metas([*call.inputs, *call.nodes])
        convolves = any(node.target in _LAID_OUT for node in call.nodes)
        if convolves and any(meta.symbolic for meta in metas):
            return False
        touched = _elements(metas)
        if _elements(self._metas([call.inputs[i] for i in call.written])) > COPIED * touched:
            return False
        small, much = SMALL_CALL, MUCH_SAVED
        made = self._metas(max(group.calls, key=lambda one: sum(one.gradients)).nodes)
        if any(meta.requires_grad and meta.device.type in GPUS for meta in made):
            small, much = SMALL_STEP_ON_GPU, MUCH_SAVED_ON_GPU
        return group.saved >= (LEAST_SAVED if touched >= small else much)

    def _metas(self, nodes: Iterable[_Node]) -> list[TensorMeta]:
        return [example.meta for example in self._examples(nodes)]

    def _examples(self, nodes: Iterable[_Node]) -> list[Example]:
        return [example for node in nodes for example in self._operation(node).examples]

    def results(
        self, calls: Sequence[_Call], wanted: set[int]
    ) -> tuple[list[int], list[int]] | None:
        """What a subgraph of these calls returns, so that those ``wanted`` can be had outside, and
        the views that have to be made there: a subgraph returns tensors of their own. None if that
        cannot be."""
        outputs, views = set(wanted), set[int]()
        while True:
            shared = set().union(*[self._shared(call, sorted(outputs)) for call in calls])
            if not shared:
                break
            outputs -= shared
            views |= shared
            for call in calls:
                places = {node: i for i, node in enumerate(call.nodes)}
                for position in shared:
                    if not self._is_view(call, position):
                        return None
                    used = call.nodes[position].all_input_nodes
                    outputs.update({places[n] for n in used if n in places} - views)
        if any(self._is_only_looked_at(call.nodes[i]) for call in calls for i in outputs):
            return None
        return sorted(outputs), sorted(views)

    def _shared(self, call: _Call, outputs: Sequence[int]) -> set[int]:
        """The results that are no plain tensors, or share memory with those before them or with
        what the call is given."""
        taken = memory_of_all(self._examples(call.inputs))
        found = set()
        for position in outputs:
            example = self._operation(call.nodes[position]).example
            memory = memory_of_all([example]) if isinstance(example, Example) else set()
            plain = isinstance(example, Example) and _is_plain(example.meta)
            if not plain or example.meta.storage_offset or not taken.isdisjoint(memory):
                found.add(position)
            else:
                taken |= memory
        return found

    def _is_view(self, call: _Call, position: int) -> bool:
        """Does the operation read nothing, and return only what shares memory with what it is
        given, to which the call does not write?"""
        node = call.nodes[position]
        one = self._operation(node)
        if one.effect or one.raises or one.exchanges or not one.examples:
            return False
        memory = memory_of_all(self._examples(node.all_input_nodes))
        if any(not memory.isdisjoint(self._operation(n).written) for n in call.nodes):
            return False
        return all(not memory.isdisjoint(memory_of_all([example])) for example in one.examples)


def _elements(metas: Iterable[TensorMeta]) -> int:
    return sum(math.prod(map(_hint, meta.shape)) for meta in metas)


def _hint(size: Any) -> int:
    """A size, or what it was at the capture."""
    known = size if isinstance(size, int) else size.node.hint
    return 1 if known is None else int(known)


def _is_plain(meta: TensorMeta) -> bool:
    return meta.keys is None and meta.layout is torch.strided


def _look(value: Any) -> Any:
    """What of a value has to be equal in all calls."""
    if isinstance(value, Example):
        return (_look_of(value.meta), value.meta is value.born or _look_of(value.born))
    if isinstance(value, (tuple, list)):
        return (type(value), *map(_look, value))
    return in_words(value, {})


def _look_of(meta: TensorMeta) -> Any:
    sizes: Any = (meta.shape, meta.stride, meta.storage_offset)
    if meta.symbolic:
        sizes = str(sizes)
    else:  # vectorised code may want its operands where aligned addresses are
        sizes = (*sizes[:2], meta.storage_offset * meta.dtype.itemsize % 64)
    return sizes, meta.dtype, meta.device, meta.layout, meta.keys


def in_words(value: Any, places: dict[_Node, int]) -> Any:
    """Arguments of an operation with ``places`` instead of nodes, as something that can be
    compared: ``1``, ``1.0`` and ``True`` differ, as do ``0.0`` and ``-0.0``."""
    if type(value) is _Node:
        return ("node", places[value])
    if isinstance(value, (tuple, list)):
        return (type(value), *[in_words(part, places) for part in value])
    if isinstance(value, dict):
        return (dict, *[(name, in_words(part, places)) for name, part in value.items()])
    if isinstance(value, slice):
        return (slice, *[in_words(p, places) for p in (value.start, value.stop, value.step)])
    if isinstance(value, (float, complex, torch.SymInt, torch.SymFloat, torch.SymBool)):
        return (type(value), repr(value))
    return (type(value), value)
