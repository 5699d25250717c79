"""From the source tree to the native guard tree, to printed guards, and to reasons.

In: the root sources of a capture. Out: a `Plan`: the node list that `native.GuardTree` executes,
the captured sources in the order in which the compiled function gets them, one printed line per
guard, and a sentence that says which guard failed. Argument slots are checked before everything
else: they are the cheapest to load and the likeliest to differ. Next room: interpreter.
"""

from __future__ import annotations

import functools
import itertools
import linecache
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from framejit.exc import InternalError
from framejit.graph.expressions import Tree as Expression
from framejit.graph.expressions import postfix
from framejit.guards.kinds import (
    KINDS,
    RELATIONS,
    differences,
    shown_kind,
    weakly,
)
from framejit.guards.shapes import Program, ShapePlan
from framejit.guards.texts import State as TorchState
from framejit.guards.texts import recall, shown_name, shown_place, state_difference, state_text
from framejit.native import GlobalState, c_attribute
from framejit.source import Fact, Source, let_go


class Node(NamedTuple):
    """A source, as `native.GuardTree` takes it."""

    parent: int  # -1: a root
    accessor: str
    key: Any
    checks: list[tuple[Any, ...]]
    capture: int  # -1: the function does not get it


class Tree(Protocol):
    """What the plan needs of the native guard tree."""

    def explain(self, slots: tuple[Any, ...], /) -> tuple[int, int] | None: ...


class State(Protocol):
    """What the plan needs of the native snapshot of torch's global state."""

    def export(self) -> TorchState: ...


class Guard(NamedTuple):
    """One printed guard."""

    name: str  # local 'self'.encoder.layer[0].training
    kind: str  # EQUALS_MATCH
    payload: str  # True
    line: tuple[str, int] | None  # the user's file and line

    def __str__(self) -> str:
        payload = f" {self.payload}" if self.payload else ""
        return f"{self.name} {self.kind}{payload}{_at(self.line, '  # ')}"


class Failure(NamedTuple):
    """A guard that failed."""

    identifier: str  # FJ0401
    sentence: str
    checked: float = 0.0  # how far the checks came before


class Plan:
    """The guards of one entry. ``sources`` and ``checked`` belong to ``nodes`` by index."""

    def __init__(
        self,
        nodes: list[Node],
        sources: list[Source],
        checked: list[list[Fact]],
        captures: list[Source],
        shapes: ShapePlan | None = None,
        program: Program | None = None,
    ) -> None:
        self.shapes = shapes
        #: The shape checks in native form, or None.
        self.program = program
        self.nodes = nodes
        self.sources = sources
        self.checked = checked
        self.captures = captures
        #: What the entry as a whole was made for; set by the compiler.
        self.state: State | None = None
        self.backend = ""
        self.line: tuple[str, int] | None = None

    def assuming(self, trees: Sequence[Expression]) -> Plan:
        """The same guards, and assumptions about the numbers that vary that came later."""
        assert self.shapes is not None and self.program is not None
        shapes, (inputs, checks, captured) = self.shapes, self.program
        made = Plan([], self.sources, self.checked, [], shapes.assuming(trees))
        position = {symbol.name: number for number, symbol in enumerate(shapes.inputs)}
        more = [postfix(tree, position) for tree in trees]
        made.program = inputs, [*checks, *more], captured
        made.state, made.backend, made.line = self.state, self.backend, self.line
        return made

    def settle(self) -> None:
        """Let go of the user's objects; for when the native tree exists and tracing is over.

        Printing and explaining still work. ``nodes`` and ``captures`` are gone.
        """
        self.nodes = []
        self.captures = []
        for facts in dict(zip(map(id, self.checked), self.checked, strict=True)).values():
            for i, (kind, payload, line) in enumerate(facts):
                kept = KINDS[kind].remember(payload)
                if kept is not payload:
                    facts[i] = Fact(kind, kept, line)
        let_go(self.sources)
        for source in self.sources:
            if type(source.key) is not str and source.accessor == "item":
                source.key = weakly(source.key)

    def guards(self) -> list[Guard]:
        """Every guard, in the order in which it is checked."""
        out = []
        if self.backend:
            out.append(Guard("backend", "BACKEND_MATCH", self.backend, None))
        if self.state is not None:
            out.append(Guard("torch", "GLOBAL_STATE", state_text(self.state.export()), None))
        for source, facts in zip(self.sources, self.checked, strict=True):
            out += _printed(source, facts)
        if self.shapes is not None:
            for tree, line in self.shapes.checks:
                out.append(Guard(self.shapes.text(tree), "SHAPE_MATCH", "", line))
        return out

    def describe(self) -> list[str]:
        """The guards as text: ``local 'a' TENSOR_MATCH float32[4]  # model.py:12: x = a / 2``."""
        return [str(guard) for guard in self.guards()]

    def explain(self, tree: Tree, slots: tuple[Any, ...]) -> str:
        """One sentence: which guard fails for ``slots``, the old value, the new one, the line, and
        what to write to avoid that. Returns "" when no guard fails.
        """
        return self.failure(tree, slots).sentence

    def values_in(self, slots: Sequence[Any]) -> Callable[[int], Any]:
        """What is at a node for ``slots``; None if nothing is."""
        return lambda number: value_at(self.sources[number], slots)[1]

    def failure(
        self, tree: Tree, slots: tuple[Any, ...], seen_as: Callable[[Any], Any] | None = None
    ) -> Failure:
        """Which guard fails for ``slots``: what kind of problem that is, and `explain`'s words.
        ``seen_as``: what a value is taken for."""
        failure = tree.explain(slots)
        if failure is None:
            return Failure("", "")
        node, check = failure
        if check == -2 or node < 0:
            assert self.state is not None
            then, now = state_difference(self.state.export(), GlobalState().export())
            difference = then, now, "make every call under the same modes"
            return _failure("FJ0406", "torch GLOBAL_STATE", difference, self.line, -1.0)
        if check <= -3:
            assert self.shapes is not None
            reason = self.shapes.failure(-3 - check, lambda source: value_at(source, slots))
            line = self.shapes.line(-3 - check) or self.line
            place = _at(line, " (assumed at ", ")")
            remedy = "keep to numbers for which it holds (pad sizes, for instance)"
            sentence = f"{reason}{place}; to avoid it, {remedy}"
            return Failure("FJ0407", sentence, float("inf"))
        source = self.sources[node]
        name = shown_name(source)
        found, value = value_at(source, slots)
        if seen_as is not None:
            value = seen_as(value)
        if check == -1:
            line = next((fact.line for fact in self.checked[node] if fact.line), self.line)
            return _failure("FJ0405", name, ("there", "gone", "leave it in place"), line, node)
        kind, kept, line = self.checked[node][check]
        payload = recall(kept)
        shown = shown_kind(kind, payload)
        if kind == "ABSENT":
            name = shown_place(source)
        if not found and kind != "ABSENT":
            difference = KINDS[kind].expected(payload), "gone", "leave it in place"
        else:
            difference = differences(kind, payload, value)
        identifier = KINDS["EQUALS_MATCH" if shown == "EQUALS_MATCH" else kind].identifier
        name = f"{name} {shown}"
        return _failure(identifier, name, difference, line or self.line, node)


def _failure(
    identifier: str,
    name: str,
    difference: tuple[str, str, str],
    line: tuple[str, int] | None,
    checked: float,
) -> Failure:
    then, now, remedy = difference
    place = _at(line, " (assumed at ", ")")
    sentence = f"{name}: it was {then}, now it is {now}{place}; to avoid it, {remedy}"
    return Failure(identifier, sentence, checked)


#: Kinds whose name and subject say everything.
_SELF_EVIDENT = frozenset({"ABSENT", "PRESENT", "MODULE_MATCH", "FUNCTION_MATCH"})


def _printed(source: Source, facts: Sequence[Fact]) -> Iterator[Guard]:
    name = shown_name(source) if facts else ""
    for kind, kept, line in facts:
        payload = recall(kept)
        shown = shown_kind(kind, payload)
        text = "" if shown in _SELF_EVIDENT else KINDS[kind].expected(payload)
        yield Guard(shown_place(source) if kind == "ABSENT" else name, shown, text, line)


def guards_of(roots: list[Source]) -> list[Guard]:
    """The guards on everything below ``roots`` so far, while a capture is going on."""
    return [guard for source in preorder(roots)[0] for guard in _printed(source, source.facts)]


def build_plan(roots: list[Source], shapes: ShapePlan | None = None) -> Plan:
    """Number the nodes that carry facts or captured values, parents first, arguments first."""
    order, parents = preorder(roots)
    relations = _relations(order)
    position: dict[int, int] = {}
    if relations or shapes is not None:
        position = {id(source): i for i, source in enumerate(order)}
    if relations:
        count = len(order)
        _add_references(relations, order, parents, position)
        relations += [(count + i, fact) for i, fact in _relations(order[count:])]
    needed = [source.captured or len(source.facts) > 0 for source in order]
    for _, fact in relations:
        for other in _related(fact):
            needed[position[id(other)]] = True
    for symbol in shapes.inputs if shapes is not None else ():
        if symbol.kind in ("size", "stride"):  # the native check reads them without asking
            if all(fact.kind != "TENSOR_MATCH" for fact in symbol.source.facts):
                raise InternalError(f"no guard says that {symbol.source.name} is a tensor")
        needed[position[id(symbol.source)]] = True
    needed.append(True)  # what roots are below
    for i in range(len(order) - 1, -1, -1):
        if needed[i]:
            needed[parents[i]] = True
        elif _only_seen(order[i]):
            order[i].add_fact("PRESENT")
            needed[i] = needed[parents[i]] = True
    del needed[-1]

    counter = itertools.count()
    number = [next(counter) if is_needed else -1 for is_needed in needed]
    rows = _Rows(
        [source for source, is_needed in zip(order, needed, strict=True) if is_needed],
        [number[parent] if parent >= 0 else -1
         for parent, is_needed in zip(parents, needed, strict=True) if is_needed],
    )  # fmt: skip
    for i, fact in relations:
        related = [number[position[id(other)]] for other in _related(fact)]
        if fact.kind == "APART":
            rows.relate_all(fact, sorted({number[i], *related}))
            continue
        for index in related:
            rows.relate(fact, number[i], index)
    program = None
    if shapes is not None:
        program = shapes.program(lambda source: number[position[id(source)]])
    return Plan(rows.nodes, rows.sources, rows.checked, rows.captures, shapes, program)


class _Rows:
    """The nodes of a plan while it is built. What sources share, nodes share, until a relation is
    added to one of them."""

    def __init__(self, sources: list[Source], parents: list[int]) -> None:
        self.sources = sources
        shared: dict[int, tuple[list[tuple[Any, ...]], list[Fact]]] = {}
        rows = [
            shared.get(id(one.facts)) or shared.setdefault(id(one.facts), _checks_of(one.facts))
            for one in sources
        ]
        self.checked = [row[1] for row in rows]
        self.captures = [source for source in sources if source.captured]
        counter = itertools.count()
        capture = [next(counter) if source.captured else -1 for source in sources]
        self.nodes = [
            _new_node((parent, one.accessor, one.key, row[0], number))
            for one, parent, row, number in zip(sources, parents, rows, capture, strict=True)
        ]
        #: The numbers of nodes that share nothing.
        self._own: set[int] = set()

    def relate(self, fact: Fact, index: int, other: int) -> None:
        """Put a check on the later of the two nodes: a check may only look back."""
        if index == other:
            return
        later, earlier = max(index, other), min(index, other)
        native = KINDS[fact.kind].native
        check = (native, earlier) if native == "same" else (native, (earlier,))
        if check in self.nodes[later].checks:
            return
        target: Any = self.sources[earlier] if native == "same" else (self.sources[earlier],)
        self._put(later, check, Fact(fact.kind, target, fact.line))

    def relate_all(self, fact: Fact, members: list[int]) -> None:
        """The same for a relation among many."""
        *earlier, last = members
        if earlier:
            others = tuple([self.sources[number] for number in earlier])
            check = KINDS[fact.kind].native, tuple(earlier)
            self._put(last, check, Fact(fact.kind, others, fact.line))

    def _put(self, number: int, check: tuple[Any, ...], fact: Fact) -> None:
        if number not in self._own:
            self._own.add(number)
            node = self.nodes[number]
            self.nodes[number] = node._replace(checks=list(node.checks))
            self.checked[number] = list(self.checked[number])
        self.nodes[number].checks.append(check)
        self.checked[number].append(fact)


#: A `Node` of a tuple; there are hundreds in each layer of a model.
_new_node: Callable[[tuple[Any, ...]], Node] = functools.partial(tuple.__new__, Node)


def _checks_of(facts: Sequence[Fact]) -> tuple[list[tuple[Any, ...]], list[Fact]]:
    """The native checks of facts that are no relations, and these facts."""
    checks: list[tuple[Any, ...]] = []
    checked: list[Fact] = []
    for fact in facts:
        make = KINDS[fact.kind].check
        if make is not None:
            checks.append(make(fact.payload))
            checked.append(fact)
    return checks, checked


def _relations(order: Iterable[Source]) -> list[tuple[int, Fact]]:
    """All facts that relate one of the sources, by its position, to others."""
    return [
        (i, fact)
        for i, source in enumerate(order) if type(source.facts) is list
        for fact in source.facts if fact.kind in RELATIONS
    ]  # fmt: skip


def _only_seen(source: Source) -> bool:
    """Was it found to be there and then not looked at? It must be there the next time."""
    base = source.base
    if not source.read or source.accessor not in _MAY_BE_ABSENT:
        return False
    return base is None or all(fact.kind != "DICT_KEYS" for fact in base.facts)


#: Accessors that may find nothing where a value used to be.
_MAY_BE_ABSENT = frozenset({"item", "cell", "attr"})


def preorder(roots: list[Source]) -> tuple[list[Source], list[int]]:
    """All sources below ``roots`` with the positions of their parents."""
    order: list[Source] = []
    parents: list[int] = []
    # Arguments first; each group in the order in which the capture met it.
    stack = [(root, -1) for root in sorted(roots, key=lambda r: r.accessor != "slot")]
    stack.reverse()
    while stack:
        source, parent = stack.pop()
        here = len(order)
        order.append(source)
        parents.append(parent)
        children = source.children
        if children:
            stack.extend([(child, here) for child in reversed(children.values())])
    return order, parents


def _add_references(
    relations: Iterable[tuple[int, Fact]], order: list[Source], parents: list[int],
    position: dict[int, int],
) -> None:  # fmt: skip
    """Add the sources that relations point at and no root leads to."""
    for _, fact in relations:
        for other in _related(fact):
            path = []
            step: Source | None = other
            while step is not None and id(step) not in position:
                path.append(step)
                step = step.base
            for missing in reversed(path):
                parents.append(-1 if missing.base is None else position[id(missing.base)])
                position[id(missing)] = len(order)
                order.append(missing)


def _related(fact: Fact) -> tuple[Source, ...]:
    payload = fact.payload
    return (payload,) if isinstance(payload, Source) else tuple(payload)


# -- words ---------------------------------------------------------------------------------------


def _at(line: tuple[str, int] | None, before: str, after: str = "") -> str:
    if line is None:
        return ""
    filename, number = line
    code = linecache.getline(filename, number).strip()
    short = filename.rpartition("/")[2]
    return f"{before}{short}:{number}{': ' + code if code else ''}{after}"


# -- loading a value again -----------------------------------------------------------------------

_ABSENT = object()


def value_at(source: Source, slots: Sequence[Any]) -> tuple[bool, Any]:
    """(True, the value at ``source`` now), or (False, None) when there is none."""
    base = source.base
    if base is None:
        if source.accessor == "const":
            return True, source.key
        index = source.key
        if 0 <= index < len(slots) and slots[index] is not None:
            return True, slots[index]
        return index < len(slots), None
    found, parent = value_at(base, slots)
    if not found:
        return False, None
    try:
        return True, _ACCESS[source.accessor](parent, source.key)
    except Exception:  # the path has changed: whatever its objects raise, there is no value
        return False, None


def _item(parent: Any, key: Any) -> Any:
    """Without ``__missing__``: looking must not add a key to the user's ``defaultdict``."""
    found = dict.get(parent, recall(key), _ABSENT)
    if found is _ABSENT:
        raise KeyError(key)
    return found


def _index(parent: Any, key: int) -> Any:
    if issubclass(type(parent), tuple):
        return tuple.__getitem__(parent, key)
    return list.__getitem__(parent, key)


def _type_attr(parent: type, name: str) -> Any:
    for cls in type.__getattribute__(parent, "__mro__"):
        namespace = type.__getattribute__(cls, "__dict__")
        if name in namespace:
            return namespace[name]
    raise AttributeError(name)


def _dict_of(parent: Any, _: Any) -> Any:
    cls = type(parent)  # isinstance() would ask the user's `__class__`
    if issubclass(cls, type):
        return type.__getattribute__(parent, "__dict__") | {}  # not a proxy
    if issubclass(cls, types.ModuleType):
        return types.ModuleType.__getattribute__(parent, "__dict__")
    return object.__getattribute__(parent, "__dict__")


_ACCESS: dict[str, Callable[[Any, Any], Any]] = {
    "cell": lambda parent, key: parent.cell_contents,
    "dict": _dict_of,
    "item": _item,
    "index": _index,
    "type": lambda parent, key: type(parent),
    "type_attr": _type_attr,
    "attr": c_attribute,
    "call": lambda parent, key: key(parent),
    "key_at": lambda parent, key: list(parent)[key],
    "value_at": lambda parent, key: list(parent.values())[key],
    "proxied": lambda parent, key: parent | {},
}
