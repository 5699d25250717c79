"""What was found out about one call's arguments, noted of another one's.

In: the world that a call was recorded in, the arguments of another call. Out: do all facts hold for
these; then the same facts on the sources where executing the call would have noted them. Objects
that are known already keep the source that they are known by, as ever (`Space.wrap`).
Next: repeating.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Sequence
from typing import Any

from framejit import native
from framejit.guards.kinds import RELATIONS
from framejit.guards.plan import build_plan, preorder
from framejit.interpreter.call_arguments import Arguments
from framejit.source import Fact, Source
from framejit.values.core.base import Value
from framejit.values.core.space import Space
from framejit.values.core.symbolic import number_varies
from framejit.values.torch.tensors import TensorValue

#: Facts about a place, whichever object is there.
_OF_PLACES = frozenset({"PRESENT", "ABSENT"})


class Spoiled(Exception):
    """A recording that seemed to fit does not: the capture must start again without it."""


@dataclasses.dataclass(slots=True, eq=False)  # the fields of a named tuple cost more to read
class Step:
    """One source of a recording, parents first."""

    source: Source
    parent: int  # -1: a root
    facts: tuple[Fact, ...]
    #: Which of the objects that the check returns is there; -1: it is not needed.
    object: int
    #: Is it an object that was looked at and is known by its identity, and is that a tensor?
    looked_at: bool
    is_tensor: bool
    #: How many of the facts were there before anybody looked at the object.
    before: int
    #: The number there, if it was asked whether it varies.
    number: Any
    #: Are the facts about nothing else, but perhaps one object that was looked at there? Then they
    #: are copied, those of others than tensors with what tells them apart.
    is_copied: bool
    keys: frozenset[Any]
    #: How it is reached from its parent; is it looked up from there, wherever else the parent is
    #: known from?
    slot: tuple[str, Any]
    is_raw: bool
    #: Was it found to be there, whatever it is?
    read: bool
    #: Is it a tensor of which no more is assumed than whoever looks at one does, and of which no
    #: size varies?
    of_looking: bool


class Facts:
    """All that a recording relies on, as a guard tree of its own; ``wanted``: the sources of what
    the call returns."""

    def __init__(self, space: Space, wanted: Container[Source]) -> None:
        roots = [*space.slot_roots, *space.const_roots.values()]
        order, parents = preorder(roots)
        facts = [tuple(source.facts) for source in order]
        keys = [frozenset(source.fact_keys) for source in order]
        found = space.where_known()
        first = [_first(found, source) for source in order]
        for source, other in zip(order, first, strict=True):
            source.captured = other is not None or source in wanted
        plan = build_plan(roots)
        self._tree = native.GuardTree(list(plan.nodes))
        numbers = {source: number for number, source in enumerate(plan.captures)}
        #: Those that looking at an object has added to it or its parts -> the object's source.
        self.of_looking = {
            noted: looked_at
            for noted, looked_at in space.facts_of_looking.items()
            if _is_in(noted[0], looked_at)
        }
        by_looking = {noted[0] for noted in self.of_looking}
        known_as = {other: isinstance(found.get(other), TensorValue) for other in {*first}}  # type: ignore[arg-type]
        self.steps = []
        for i, source in enumerate(order):
            number = space.numbers_asked.get(source)
            related = any(fact.kind in RELATIONS for fact in facts[i])
            looked_at, is_tensor = first[i] is not None, known_as[first[i]]
            if source in by_looking:
                others = {self.of_looking.get((source, fact.kind)) for fact in facts[i]}
                related = related or not others <= {None, source}
            # What classes and modules have is looked up from them.
            raw = source.base is not None and source.base.accessor == "const"
            self.steps.append(
                Step(
                    source, parents[i], facts[i], numbers.get(source, -1), looked_at, is_tensor,
                    space.facts_before.get(source, 0), number,
                    parents[i] >= 0 and not (related or source.label), keys[i],
                    (source.accessor, source.key), raw, source.read,
                    is_tensor and self._is_of_looking(space, source, facts[i]),
                )
            )  # fmt: skip
        self._tensors = [
            step.object for step, other in zip(self.steps, first, strict=True)
            if step.is_tensor and other is step.source
        ]  # fmt: skip
        self._position = {source: i for i, source in enumerate(order)}
        self._below: dict[int, list[int]] | None = None
        self._globals = [root.key for root in space.const_roots.values()]
        #: Some hold whatever the arguments are.
        fixed = [source.root.accessor == "const" for source in order]
        self._varying = [i for i, is_so in enumerate(fixed) if not is_so]
        #: What relates them to others, which may be the arguments.
        self._fixed_relations = [
            (i, fact)
            for i, step in enumerate(self.steps) if fixed[i]
            for fact in step.facts if fact.kind in RELATIONS
        ]  # fmt: skip
        #: By the space: where the fixed ones are; the others are not known.
        self._noted: dict[Space, tuple[list[Source | None], list[Source | None]]] = {}

    def _is_of_looking(self, space: Space, source: Source, facts: Sequence[Fact]) -> bool:
        """Have all facts come from looking at a tensor, of which no size varies?"""
        return not space.facts_before.get(source, 0) and all(
            kind == "TENSOR_MATCH" and type(payload) is not tuple
            and (source, kind) in self.of_looking
            for kind, payload, _ in facts
        )  # fmt: skip

    def position(self, source: Source) -> int:
        """Which of the steps is about one of the sources."""
        return self._position[source]

    def below(self, i: int) -> list[int]:
        """The steps right below a step, in order."""
        if self._below is None:
            self._below = {}
            for number, step in enumerate(self.steps):
                self._below.setdefault(step.parent, []).append(number)
        return self._below[i]

    def graft(self, space: Space, arguments: Arguments, objects: Sequence[Any]) -> Graft:
        """Note them of arguments for which they hold."""
        graft = Graft(space, self, arguments, objects)
        if space in self._noted:
            known, places = self._noted[space]
            graft.known, graft.places = known[:], places[:]
            graft.note(self._varying, self._fixed_relations)
        else:
            graft.note(range(len(self.steps)))
            known, places = graft.known[:], graft.places[:]
            for i in self._varying:
                known[i] = places[i] = None
            self._noted[space] = known, places
        return graft

    def hold(self, space: Space, arguments: tuple[Any, ...]) -> Sequence[Any] | None:
        """The objects at the steps, if all facts hold for these arguments, tensors are as many
        objects as they were, and the program has changed nothing that the recording looked at as it
        was before the capture."""
        objects = self._tree.check(arguments)
        if objects is None or len({id(objects[i]) for i in self._tensors}) < len(self._tensors):
            return None
        effects = space.effects
        changed = {id(value.obj) for value in effects.changed if value.obj is not None}
        changed.update(map(id, space.builder.changed_inputs()))
        if not changed.isdisjoint(map(id, objects)):
            return None
        if effects.globals:
            written = {namespace for namespace, _ in effects.globals}
            if not written.isdisjoint(map(id, self._globals)):
                return None
        return objects


def _first(found: dict[Source, Value | None], source: Source) -> Source | None:
    """Where the object there is known from, if it was looked at and is known by its identity."""
    for fact in source.facts:
        if fact.kind == "SAME_OBJECT" and fact.payload in found:
            return fact.payload  # type: ignore[no-any-return]
    return source if source in found else None


def _is_in(source: Source | None, whole: Source) -> bool:
    while source is not None and source is not whole:
        source = source.base
    return source is whole


def _add(source: Source, fact: Fact) -> None:
    """Note a fact, unless it is the class of a constant that is known here already."""
    if fact.kind == "TYPE_MATCH" and any(known.kind == "EQUALS_MATCH" for known in source.facts):
        return
    source.add_fact(*fact)


class Graft:
    """The facts of a recording, noted of the arguments of a call for which they hold.

    ``places``: where it was executed, each source of the recording would be; ``known``: where what
    is there is known from; both by the number of the step.
    """

    def __init__(
        self, space: Space, facts: Facts, arguments: Arguments, objects: Sequence[Any]
    ) -> None:
        self._space = space
        self._facts = facts
        self._roots = [root.source for root in arguments.roots.values()]
        self._objects = objects
        self._relations: list[tuple[int, Fact]] = []
        self._tensors: dict[int, TensorValue] = {}
        self.places: list[Source | None] = [None] * len(facts.steps)
        self.known = self.places[:]

    def note(self, numbers: Iterable[int], relations: Iterable[tuple[int, Fact]] = ()) -> None:
        """Note the facts of these steps, and of those that they are related to; ``relations`` of
        others that are noted already."""
        steps, alone, space = self._facts.steps, self._space.task.alone, self._space
        known, places = self.known, self.places
        for i in numbers:
            if known[i] is not None:
                continue
            step = steps[i]
            parent = (places if step.is_raw else known)[step.parent]
            if alone or not step.is_copied or parent is None:
                self._visit(i)
                continue
            # Hundreds of steps per call come here: what `_visit` does, of these, without calls.
            place = parent.children.get(step.slot) or parent.first_child(step.slot)
            places[i] = known[i] = place
            if step.number is not None:
                self._check_number(step, place)
            if step.read:
                place.read = True
            if step.looked_at:
                obj = self._objects[step.object]
                if step.is_tensor or space.first_source(obj) is not None:
                    self._copy_of_object(i, step, place)
                    continue
                space.noted[id(obj)] = obj, place
            if step.facts and not place.facts:
                place.facts, place.fact_keys = step.facts, step.keys
            elif place.facts is not step.facts:
                for fact in step.facts:
                    _add(place, fact)
        for number, fact in (*self._relations, *relations):
            self._relate(number, fact)

    def known_from(self, source: Source) -> Source:
        """Where that is known from now which the recording found at a source."""
        return _there(self.known[self._facts.position(source)])

    def tensor_at(self, source: Source) -> TensorValue:
        """The tensor that is there now."""
        known = self._tensors.get(self._facts.position(source))
        if known is not None:
            return known
        value = self._space.load(self.known_from(source), self.object_at(source)).realize()
        assert isinstance(value, TensorValue)
        return value

    def object_at(self, source: Source) -> Any:
        """What is there now, of the sources that are looked at or wanted."""
        return self._objects[self._facts.steps[self._facts.position(source)].object]

    def _visit(self, i: int) -> None:
        if self.known[i] is not None:
            return
        step, space = self._facts.steps[i], self._space
        source = step.source
        place = self.places[i] = self._place(step)
        if step.number is not None:
            self._check_number(step, place)
        place.read = place.read or step.read
        known = self.known[i] = place
        for fact in step.facts if step.looked_at else ():
            if fact.kind == "SAME_OBJECT":
                self._visit_before_others(self._facts.position(fact.payload))
        if space.task.alone:
            space.facts_before.setdefault(place, step.before)
        if step.looked_at:
            known = self.known[i] = self._settle(i, step, place)
        for number, fact in enumerate(step.facts):
            if fact.kind in RELATIONS:
                self._relations.append((i, fact))
            elif number < step.before or fact.kind in _OF_PLACES:
                _add(place, fact)
            elif not self._is_known(source, fact.kind):
                _add(known, fact)
        if space.task.alone:
            self._remember(step, place)

    def _visit_before_others(self, i: int) -> None:
        """Visit a step before its turn. What comes before it keeps its place among the sources."""
        if self.known[i] is not None:
            return
        steps, step = self._facts.steps, self._facts.steps[i]
        if step.parent >= 0:
            self._visit_before_others(step.parent)
            parent = _there((self.places if step.is_raw else self.known)[step.parent])
            for other in self._facts.below(step.parent):
                if other < i:
                    parent.child(*steps[other].slot)
        self._visit(i)

    def _check_number(self, step: Step, place: Source) -> None:
        """Is the number one of those that do not vary?"""
        if not place.read and number_varies(self._space, place, step.number):
            raise Spoiled("a number varies from layer to layer")

    def _remember(self, step: Step, place: Source) -> None:
        """Which facts come from looking at objects, for a call around this one."""
        space, of_looking = self._space, self._facts.of_looking
        for fact in step.facts:
            looked_at = of_looking.get((step.source, fact.kind))
            if looked_at is not None:
                other = _there(self.places[self._facts.position(looked_at)])
                space.facts_of_looking.setdefault((place, fact.kind), other)

    def _copy_of_object(self, i: int, step: Step, place: Source) -> None:
        """Note facts that are about one object, a tensor or one that was met before."""
        known = self.known[i] = self._settle(i, step, place)
        if step.of_looking:
            return  # these are noted when the tensor is looked at
        for number, fact in enumerate(step.facts):
            if number < step.before or fact.kind in _OF_PLACES:
                _add(place, fact)
            elif not self._is_known(step.source, fact.kind):
                _add(known, fact)

    def _is_known(self, source: Source, kind: str) -> bool:
        """Was the fact noted when an object was looked at that is known here already?"""
        looked_at = self._facts.of_looking.get((source, kind))
        if looked_at is None:
            return False
        i = self._facts.position(looked_at)
        return kind == "TENSOR_MATCH" or self.known[i] is not self.places[i]

    def _place(self, step: Step) -> Source:
        source = step.source
        if step.parent < 0:
            if source.accessor == "slot":
                return self._roots[source.key]
            return self._space.const_source(source.key, source.label)
        self._visit(step.parent)
        parent = _there((self.places if step.is_raw else self.known)[step.parent])
        return parent.child(*step.slot)

    def _settle(self, i: int, step: Step, place: Source) -> Source:
        """Where an object is known: here from now on, or where it was met before."""
        space, obj = self._space, self._objects[step.object]
        first = space.first_source(obj)
        if first is None and not step.is_tensor:
            space.noted[id(obj)] = obj, place
            return place
        if first is not None and first is not place:
            line = step.facts[0].line if step.facts else space.running.user_line()
            place.add_fact("SAME_OBJECT", first, line)
        if not step.is_tensor:
            return first or place
        if first is None and step.of_looking and not place.facts:
            place.facts, place.fact_keys = step.facts, step.keys  # of any tensor that looks like it
        elif first is None:
            for kind, payload, line in step.facts:
                if kind == "TENSOR_MATCH" and type(payload) is not tuple:
                    place.add_fact(kind, obj, line)
        value = space.load(place, obj).realize()
        if not isinstance(value, TensorValue) or value.source is None:
            raise Spoiled("a tensor is known as something else")
        self._tensors[i] = value
        return value.source

    def _relate(self, i: int, fact: Fact) -> None:
        place, one = _there(self.places[i]), isinstance(fact.payload, Source)
        others = [self.known_from(other) for other in ((fact.payload,) if one else fact.payload)]
        if fact.kind == "DISTINCT":
            _there(self.known[i]).add_fact(fact.kind, tuple(others), fact.line)
        elif others[0] is not place:
            place.add_fact(fact.kind, others[0], fact.line)


def _there(source: Source | None) -> Source:
    assert source is not None
    return source
