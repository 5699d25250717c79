"""Containers to expressions: tuples, lists, deques, dicts and their views, sets.

In: values. Out: AST expressions, registered with `codegen.emit`; the statements that give existing
containers, and objects of their subclasses, their content. Only the builtin classes' own methods
are used. Keys with a ``__hash__`` of the program's are stored with the hashes that the capture saw:
neither that nor their ``__eq__`` runs again. Next: emit_objects, codegen.effects.
"""

from __future__ import annotations

import ast
import itertools
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from typing import Any

from framejit.codegen.emit import Emitter, builds, call, emits
from framejit.values.containers.deques import DequeValue
from framejit.values.containers.live_dicts import ClassDictValue, GlobalsValue, ProxyValue
from framejit.values.containers.mapping_views import DictViewValue
from framejit.values.containers.mappings import DictValue, InstanceDictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.sets import SetValue
from framejit.values.containers.slices import SliceValue
from framejit.values.core.base import Value
from framejit.values.core.keys import asked, settled, user_keys
from framejit.values.core.namespaces import entries
from framejit.values.objects.instances import solid_base


def call_of_base(out: Emitter, value: Value, method: str) -> ast.expr:
    """A call of the builtin class's own method on a container: a subclass may have another one."""
    base = solid_base(value.python_type())
    return call(out.constant(getattr(base, method, reversed)), out.value(value))


def hashing(
    out: Emitter, keys: Iterable[Any], function: ast.expr, *arguments: ast.expr
) -> ast.Call:
    """A call that hashes these keys."""
    known: list[ast.expr] = []
    if out.space.user_keys:
        found = {key.target: key.number for key in itertools.chain(*map(user_keys, keys))}
        for target, number in found.items():
            known += [out.value(target), ast.Constant(int(number))]
    if not known:
        return call(function, *arguments)
    return call(out.helper("with_hashes"), ast.Tuple(known, ast.Load()), function, *arguments)


@builds(TupleValue)
def _tuple(out: Emitter, value: TupleValue) -> ast.expr:
    display = ast.Tuple(out.values(value.items), ast.Load())
    if not any(isinstance(part, ast.Name) for part in ast.walk(display)):
        # CPython would make one object of it, for all calls and all equal tuples.
        fresh = ast.Starred(ast.List(display.elts, ast.Load()), ast.Load())
        display = ast.Tuple([fresh], ast.Load())
    if value.cls is not tuple:
        return out.keep(value, "tuple", call(out.cls(value.cls), display))
    if not value.items:
        return display
    return out.keep(value, "tuple", display)


@builds(SliceValue)
def _slice(out: Emitter, value: SliceValue) -> ast.expr:
    parts = out.values(value.parts())
    return out.keep(value, "slice", call(out.constant(slice), *parts))


@builds(ListValue)
def _list(out: Emitter, value: ListValue) -> ast.expr:
    holder = out.space.holders.get(value)
    if holder is not None:
        return out.value(holder)
    return out.build(
        value, "list",
        lambda: ast.List(out.values(value.items), ast.Load()),
        lambda: ast.List([], ast.Load()),
        lambda made: _fill_list(out, made, value, value.items),
    )  # fmt: skip


@builds(DequeValue)
def _deque(out: Emitter, value: DequeValue) -> ast.expr:
    maxlen, factory = out.constant(value.maxlen), out.constant(value.python_type())
    return out.build(
        value, "deque",
        lambda: call(factory, ast.List(out.values(value.items), ast.Load()), maxlen),
        lambda: call(factory, ast.Tuple([], ast.Load()), maxlen),
        lambda made: _fill_list(out, made, value, value.items),
    )  # fmt: skip


def _fill_list(out: Emitter, target: ast.expr, container: ListValue, items: list[Value]) -> None:
    """Append to a list or deque."""
    if not items:
        return
    base = deque if isinstance(container, DequeValue) else list

    def assign(position: int, expression: ast.expr) -> None:
        setter = out.constant(base.__setitem__)
        out.statement(call(setter, target, ast.Constant(position), expression))

    elements = ast.List(out.parts(container, items, assign), ast.Load())
    out.statement(call(out.constant(base.extend), target, elements))


@emits(DictValue)
def _dict(out: Emitter, value: DictValue) -> ast.expr:
    if value.source is not None:
        return out.load(value.source)
    holder = out.space.holders.get(value)
    if holder is not None:
        return out.value(holder)
    cls, prefix = value.cls, []
    if cls is defaultdict:
        prefix = [out.value(value.default_factory) if value.default_factory else ast.Constant(None)]

    def empty() -> ast.expr:
        return ast.Dict([], []) if cls is dict else call(out.constant(cls), *prefix)

    def with_gaps(made: ast.expr) -> ast.expr:
        return _with_gaps(out, made, value) if _has_gaps(value) else made

    def display() -> ast.expr:
        pairs = value.items
        if asked(out.space, pairs):
            parts = [out.value(v) for v in itertools.chain(*pairs.values())]
            items = ast.Tuple(parts, ast.Load())
            return hashing(out, pairs, out.helper("write_dict"), with_gaps(empty()), items)
        keys: list[ast.expr | None] = []
        values: list[ast.expr] = []
        for key, item in pairs.values():
            keys.append(out.value(key))
            values.append(out.value(item))
        entries = ast.Dict(keys, values)
        return entries if cls is dict else call(out.constant(cls), *prefix, entries)

    def fill(made: ast.expr) -> None:
        if _has_gaps(value):
            out.statement(with_gaps(made))
        _fill_dict(out, made, value, value.items)

    made = out.build(value, "dict", display, empty, fill)
    fill_namespace(out, made, value)
    return made


def _has_gaps(container: DictValue) -> bool:
    return bool(container.history) and any(any(user_keys(key)) for key in container.pairs)


def _with_gaps(out: Emitter, target: ast.expr, container: DictValue) -> ast.expr:
    """A dict whose keys with methods of their own came and went as in the program."""
    parts: list[ast.expr] = []
    for _, key, stored in container.history:
        parts += [out.value(key), ast.Constant(None) if stored else out.helper("DELETED")]
    changes = ast.Tuple(parts, ast.Load())
    keys = [key for key, *_ in container.history]
    return hashing(out, keys, out.helper("write_dict"), target, changes)


def _fill_dict(out: Emitter, target: ast.expr, container: DictValue, pairs: dict[Any, Any]) -> None:
    """Store (or, for None, delete) entries."""
    if not pairs:
        return
    keys = out.values([key for key, _ in pairs.values()])

    def write(entries: Iterable[Any], items: list[ast.expr]) -> None:
        function = out.helper("write_dict")
        out.statement(hashing(out, entries, function, target, ast.Tuple(items, ast.Load())))

    def assign(position: int, expression: ast.expr) -> None:
        key = next(itertools.islice(pairs, position, None))
        write([key], [keys[position], expression])

    values = out.parts(container, [item for _, item in pairs.values()], assign)
    write(pairs, [part for pair in zip(keys, values, strict=True) for part in pair])


@emits(InstanceDictValue)
def _instance_dict(out: Emitter, value: InstanceDictValue) -> ast.expr:
    if not value.is_current():
        return _dict(out, value)
    owner = out.value(value.owner)
    known = out.made.get(value)
    if known is not None:
        return known
    return out.keep(value, "attributes", ast.Attribute(owner, "__dict__", ast.Load()))


def fill_namespace(out: Emitter, made: ast.expr, value: Any) -> None:
    """Give an object that the program has made what its ``__dict__`` holds, later."""
    namespace, own = value.namespace, entries(value)
    if own and isinstance(namespace, InstanceDictValue) and namespace.owner is value:
        target = ast.Attribute(made, "__dict__", ast.Load())
        out.later(namespace, lambda: _fill_dict(out, target, namespace, own))


@builds(ProxyValue)
def _proxy(out: Emitter, value: ProxyValue) -> ast.expr:
    return out.keep(value, "proxy", call(out.constant(value.cls), out.value(value.shown)))


@emits(ClassDictValue, GlobalsValue)
def _live_dict(out: Emitter, value: DictValue) -> ast.expr:
    assert value.source is not None
    return out.load(value.source)


@emits(DictViewValue)
def _dict_view(out: Emitter, value: DictViewValue) -> ast.expr:
    if value.source is not None:
        return out.load(value.source)
    return out.keep(value, "view", call_of_base(out, value.mapping, value.what))


@builds(SetValue)
def _set(out: Emitter, value: SetValue) -> ast.expr:
    holder = out.space.holders.get(value)
    if holder is not None:
        return out.value(holder)
    factory = out.constant(value.cls)

    def display() -> ast.expr:
        if value.is_replayed:
            return _replayed(out, value)
        return hashing(out, value.keys(out.space), factory, elements(out, value))

    if value.cls is frozenset:
        return out.keep(value, "set", display())
    return out.build(
        value, "set", display, lambda: call(factory), lambda made: _fill_set(out, made, value)
    )


def _replayed(out: Emitter, value: SetValue, target: ast.expr | None = None) -> ast.expr:
    """A new set (or the empty ``target``) whose order depends on how it came to be what it is."""
    assert value.start is not None
    function, operands = value.start
    made: ast.expr = call(out.constant(function), *out.values(operands))
    changes: list[ast.expr] = [
        ast.Tuple([out.constant(getattr(set, name)), *out.values(arguments)], ast.Load())
        for name, arguments, _ in value.log
    ]
    if target is not None:  # a constructor fills an empty set in the same way
        argument = out.values(operands) if function is set else [made]
        changes.insert(0, ast.Tuple([out.constant(set.update), *argument], ast.Load()))
        made = target
    if not changes:
        return made
    keys = itertools.chain.from_iterable(keys for _, _, keys in value.log)
    return hashing(out, keys, out.helper("changed_set"), made, ast.Tuple(changes, ast.Load()))


def elements(out: Emitter, value: SetValue) -> ast.expr:
    """The elements of a set, in an order that gives the order in which it is iterated over."""
    with settled(out.space):
        items = value.items
    return ast.List(out.values(items), ast.Load())


def _fill_set(out: Emitter, target: ast.expr, container: SetValue) -> None:
    update = out.constant(set.update)
    if container.is_replayed:
        out.statement(_replayed(out, container, target))
        return
    out.statement(hashing(out, container.keys(out.space), update, target, elements(out, container)))


def write_container(out: Emitter, target: ast.expr, container: Any, new: bool) -> None:
    """Give an object of a container subclass its content, through the base class only."""
    if isinstance(container, DictValue):
        replaced = container.rewritten and not new
        changes: dict[Any, Any] = container.items if new or replaced else container.written
        if replaced:
            base = OrderedDict if container.cls is OrderedDict else dict
            out.statement(call(out.constant(base.clear), target))
        if _has_gaps(container):
            out.statement(_with_gaps(out, target, container))
            changes = {key: pair for key, pair in changes.items() if pair[1] is not None}
        elif not replaced:
            _fill_dict(out, target, container, container.moved)
        _fill_dict(out, target, container, changes)
        if new and container.default_factory is not None:
            name, factory = ast.Constant("default_factory"), out.value(container.default_factory)
            out.statement(call(out.constant(object.__setattr__), target, name, factory))
    elif isinstance(container, DequeValue):
        if not new and not container.version:  # iterators over it go on
            setter = out.constant(deque.__setitem__)
            for i, item in enumerate(container.items):
                out.statement(call(setter, target, ast.Constant(i), out.value(item)))
            return
        if not new:
            out.statement(call(out.constant(deque.clear), target))
        _fill_list(out, target, container, container.items)
    elif isinstance(container, ListValue):
        if not container.loaded:  # what was there has not been looked at: only append
            _fill_list(out, target, container, container.tail)
        elif not new:
            items = ast.List(out.values(container.items), ast.Load())
            out.statement(call(out.helper("assign_list"), target, items))
        else:
            _fill_list(out, target, container, container.items)
    elif isinstance(container, SetValue) and container.log and not new:
        for method, arguments, keys in container.log:
            function = out.constant(getattr(set, method))
            out.statement(hashing(out, keys, function, target, *out.values(arguments)))
    elif isinstance(container, SetValue):
        if not new:
            out.statement(call(out.constant(set.clear), target))
        _fill_set(out, target, container)
