"""The fourth stage of a capture: what guards check and load.

In: a `Trace` and its finished graph. Out: an `EntryPlan`. Next: generating.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

from framejit.capture.graphs import Graph, is_member
from framejit.capture.tracing import Trace
from framejit.codegen.emit import Emitter, computed
from framejit.collection import no_collection
from framejit.guards.plan import Plan, build_plan
from framejit.guards.shapes import make_shape_plan
from framejit.source import Source
from framejit.values.containers.mappings import DictValue
from framejit.values.core.base import Value
from framejit.values.core.space import Space
from framejit.values.torch.tensors import TensorValue


@dataclasses.dataclass(slots=True, frozen=True)
class EntryPlan:
    """The guards of an entry, and what its function gets."""

    plan: Plan
    #: What the function calls the graph with.
    arguments: list[ast.expr]
    #: The names of its parameters after the slots.
    captures: list[str]


class LookedAt(NamedTuple):
    """An existing object that was looked at, as its value if it has one."""

    source: Source
    value: Value | None

    def names(self, among: Iterable[str]) -> list[str] | None:
        """Of a dict of which some keys were looked at or written, all texts: those among these."""
        children, value = self.source.children, self.value
        if self.source.facts and any(fact.kind in _WHOLE for fact in self.source.facts):
            return None
        texts = [key for accessor, key in children if accessor == "item" and type(key) is str]
        if len(texts) < len(children):
            return None
        if value is None:
            return [key for key in among if ("item", key) in children]
        if not isinstance(value, DictValue) or value.complete or not _is_named(value.written):
            return None
        return [key for key in among if ("item", key) in children or key in value.written]


def plan_guards(trace: Trace, graph: Graph, hook_roots: Sequence[Source] = ()) -> EntryPlan:
    """Numbers all that was assumed. ``hook_roots``: beside what the trace knows."""
    space, out = trace.space, trace.draft.out
    builder = space.builder
    used = {id(value) for value in graph.inputs}
    written = {builder.placeholders[index].node for index in builder.mutated_inputs}
    for value in space.graph_inputs:
        if id(value) not in used and value not in out.made:
            _release(out, value)
    arguments = [computed(out, ("load", symbol)) for symbol in builder.used_symbols]
    arguments += [out.load(value.source) for value in graph.inputs]  # type: ignore[arg-type]
    with no_collection():
        _guard_aliases(space)
        _guard_apart([value for value in graph.inputs if is_member(value)], written)
        shapes = make_shape_plan(builder.world.symbols_if_any, list(out.symbols))
        roots = [*space.slot_roots, *space.const_roots.values()]
        plan = build_plan([*roots, *trace.hook_roots, *hook_roots], shapes)
    captures = [out.capture_name(source) for source in plan.captures]
    return EntryPlan(plan, arguments, [*captures, *out.symbols.values()])


def _release(out: Emitter, value: TensorValue) -> None:
    """An input that the finished graph does not need and the function does not load."""
    source = value.source
    if source is not None and not out.is_loaded(source):
        source.captured = False


def _guard_aliases(space: Space) -> None:
    """What the program changed must stay another object than everything else it looked at."""
    turned = [value for value in space.graph_inputs if _is_turned(value)]
    if not (space.effects.changed or space.effects.given_gradient or turned):
        return
    # With gradients, tensors of other classes matter, too.
    everything_matters = space.effects.given_gradient or space.effects.switched
    kinds = {changed.python_type() for changed in space.effects.changed}
    kinds.update(type(tensor.obj) for tensor in turned)
    by_kind: dict[type, list[LookedAt]] = {}
    for obj, source, value in space.looked_at():
        if source is not None and (everything_matters or type(obj) in kinds):
            by_kind.setdefault(type(obj), []).append(LookedAt(source, value))
    named: dict[type, list[DictValue]] = {}
    with_gradient = _whose_gradient_stays(space, by_kind)
    if space.effects.switched:  # whether others require gradients is known, too
        everything = [one.value for some in by_kind.values() for one in some]
        _keep_apart([value for value in everything if isinstance(value, TensorValue)])
    for changed in space.effects.changed:
        kind, obj = changed.python_type(), changed.obj
        if obj is None or changed.source is None:
            continue
        if isinstance(changed, TensorValue):
            _guard_distinct(space, changed, with_gradient.get(kind, ()))
            continue
        if isinstance(changed, DictValue) and not changed.rewritten and _is_named(changed.written):
            named.setdefault(kind, []).append(changed)
            continue
        _guard_distinct(space, changed, by_kind.get(kind, ()))
    for tensor in turned:
        _guard_distinct(space, tensor, by_kind.get(type(tensor.obj), ()))
    for kind, dicts in named.items():
        _guard_named(space, dicts, by_kind.get(kind, ()))


def _guard_apart(members: list[TensorValue], written: Container[Any]) -> None:
    """Tensors of modules, where some of them are written to, must stay different objects. (Others
    are looked at when the graph is called.)"""
    if any(value.node in written for value in members):
        _keep_apart(members)


def _keep_apart(values: Iterable[TensorValue]) -> None:
    *others, last = dict.fromkeys(v.source for v in values if v.source is not None)
    if others:
        last.add_fact("APART", tuple(others))


def _whose_gradient_stays(
    space: Space, by_kind: dict[type, list[LookedAt]]
) -> dict[type, list[LookedAt]]:
    """Tensors whose gradient was read, by class, where others lose theirs: that may be done twice,
    so tensors that lose theirs as well need not be told apart. Those that get one must all be."""
    given = space.effects.given_gradient
    changed = [one for one in (*given, *space.effects.changed) if isinstance(one, TensorValue)]
    if not changed:
        return {}
    read = {
        kind: [one for one in tensors if ("attr", "grad") in one.source.children]
        for kind, tensors in by_kind.items()
    }
    if given:
        readers = [one.value for tensors in read.values() for one in tensors]
        _keep_apart([*changed, *[one for one in readers if isinstance(one, TensorValue)]])
        return {}
    losing = set(map(id, changed))
    return {k: [one for one in some if id(one.value) not in losing] for k, some in read.items()}


def _is_turned(value: TensorValue) -> bool:
    """Has an operation changed the sizes, strides or the like of an existing tensor? (What writes
    to the elements that tensors share is seen to when the graph is called.)"""
    return value.source is not None and value.example.changed


def _guard_distinct(space: Space, changed: Value, others: Iterable[LookedAt]) -> None:
    assert changed.source is not None
    for other in others:
        if other.value is not changed:
            space.guard(other.source, "DISTINCT", (changed.source,))


def _guard_named(space: Space, dicts: list[DictValue], others: Iterable[LookedAt]) -> None:
    """The same for dicts of which some keys, all texts, were written. Two dicts of which the
    program uses different keys, such as the attributes of objects, may be one."""
    users: dict[str, list[LookedAt]] = {key: [] for changed in dicts for key in changed.written}
    whole = []
    for other in others:
        keys = other.names(users)
        if keys is None:
            whole.append(other)
            continue
        for key in keys:
            users[key].append(other)
    for changed in dicts:
        assert changed.source is not None
        found = list(whole)
        for key in changed.written:
            there = _is_there(changed.source, key)
            for other in users[key]:
                if None in (there, _is_there(other.source, key)) or (
                    _is_there(other.source, key) is there
                ):
                    found.append(other)
        _guard_distinct(space, changed, dict.fromkeys(found))


def _is_there(source: Source, key: str) -> bool | None:
    """Is it guarded that the dict has the key, or that it has not?"""
    child = source.children.get(("item", key))
    if child is None or child.read:
        return None if child is None else True
    return False if any(fact.kind == "ABSENT" for fact in child.facts) else None


def _is_named(keys: Iterable[Any]) -> bool:
    return all(type(key) is str for key in keys)


#: Facts about a whole dict.
_WHOLE = ("LEN_MATCH", "BOOL_MATCH", "DICT_KEYS", "EQUALS_MATCH")
