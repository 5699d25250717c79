"""Guards on what the code of a tensor's class may look at outside: it is not traced, and backends
build in what it does.

In: a class of tensors made of tensors. Out: facts about globals, about attributes of classes and of
objects, about entries of containers and variables of closures, wherever `reach` finds that the
class's functions may look: data by value, the others by identity, containers by what is in them.
Next: wrappers.
"""

from __future__ import annotations

import builtins
import collections
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from framejit.classes import is_known_by_identity
from framejit.graph.opaque import is_handle_class
from framejit.source import Source
from framejit.values.core.constants import BY_IDENTITY, PURE_TYPES
from framejit.values.core.inline_policy import is_library
from framejit.values.core.namespaces import real_namespace
from framejit.values.core.space import Space
from framejit.values.torch.reach import Reach, reach_of

#: So many facts are noted for a class.
_MOST_FACTS = 4_000
#: Objects with more attributes may get others unseen.
_MOST_ATTRIBUTES = 64
_DICTS = (dict, collections.OrderedDict, collections.defaultdict)
_LISTS = (list, tuple)
_SETS = (set, frozenset)
_CONTAINERS = (*_DICTS, *_LISTS, *_SETS)
_WITHOUT_PARTS = (type, types.ModuleType, types.BuiltinFunctionType)
_CALLED = (types.FunctionType, staticmethod, classmethod, property)
#: Containers that grow while the classes' own code runs, as caches do, by the names of sources.
_growing: set[str] = set()


class Seen(NamedTuple):
    """A fact about a source. ``token``: what is equal as long as it holds."""

    payload: Any
    token: Any


Facts = dict[tuple[Source, str], Seen]


def look_over(space: Space, cls: type) -> None:
    """Note what the code of a class may look at; `guard_seen` guards it."""
    if cls not in space.seen_by_classes:
        space.seen_by_classes[cls] = {}  # not again, if a class cannot be looked over
        space.seen_by_classes[cls] = Survey(space, reach_of(space, cls)).facts


def guard_seen(space: Space) -> None:
    """Guard what the code of classes may have looked at in this capture; not what has changed
    since, which that code itself did, as a counter of its calls or a cache."""
    for cls, before in space.seen_by_classes.items():
        now = Survey(space, reach_of(space, cls)).facts
        for (source, kind), fact in before.items():
            known = now.get((source, kind))
            if known is not None and known.token == fact.token:
                space.guard(source, kind, fact.payload)
            elif kind in ("LEN_MATCH", "DICT_KEYS"):
                _growing.add(source.name)


class Survey:
    """Everything that the code of a class may look at, once."""

    def __init__(self, space: Space, reach: Reach) -> None:
        self.facts: Facts = {}
        self._space, self._names = space, reach.names
        #: Those whose identity is guarded, and that are looked into once.
        self._known: set[int] = set()
        self._todo: collections.deque[Callable[[], None]] = collections.deque()
        self._add_globals(reach)
        self._add_classes(reach)
        while self._todo and len(self.facts) < _MOST_FACTS:  # what is near comes first
            self._todo.popleft()()

    def _add_globals(self, reach: Reach) -> None:
        for (_, name), namespace in reach.named.items():
            source = self._space.globals_source(namespace)
            if name in namespace:
                self._look(source.child("item", name), namespace[name])
            elif name in reach.texts or hasattr(builtins, name):
                self._note(source.child("item", name), "ABSENT", None, None)

    def _add_classes(self, reach: Reach) -> None:
        for cls in reach.classes:
            source = self._space.class_source(cls)
            own = [base for base in cls.__mro__ if not is_library(base.__module__)]
            for name in sorted({name for base in own for name in self._read_of(base)}):
                raw = next(vars(base)[name] for base in cls.__mro__ if name in vars(base))
                self._look(source.child("type_attr", name), raw)
            for name in sorted(reach.texts):
                if not any(name in vars(base) for base in cls.__mro__):
                    self._note(source.child("type_attr", name), "ABSENT", None, None)

    def _read_of(self, cls: type) -> list[str]:
        """Attributes of a class that are named, or called without that."""
        pairs = vars(cls).items()
        return [name for name, raw in pairs if name in self._names or type(raw) in _CALLED]

    def _note(self, source: Source, kind: str, payload: Any, token: Any) -> None:
        self.facts[source, kind] = Seen(payload, token)

    def _look(self, source: Source, value: Any, outer: tuple[int, ...] = ()) -> None:
        """Note what is at a source, and have what it consists of looked at afterwards."""
        kind = type(value)
        if not is_known_by_identity(value if isinstance(value, type) else kind):
            return
        if kind in PURE_TYPES and kind not in BY_IDENTITY:
            self._note(source, "EQUALS_MATCH", value, (kind, repr(value)))
            return
        if kind in _CONTAINERS:
            self._note(source, "TYPE_MATCH", kind, kind)
        else:
            self._note(source, "ID_MATCH", value, id(value))
            if id(value) in self._known:
                return
            self._known.add(id(value))
        inside = self._inside(source, value)
        if inside is not None and id(value) not in outer:
            self._todo.append(functools.partial(self._look_at_all, inside, (*outer, id(value))))

    def _look_at_all(self, inside: Iterator[tuple[Source, Any]], outer: tuple[int, ...]) -> None:
        for source, value in inside:
            self._look(source, value, outer)

    def _inside(self, source: Source, value: Any) -> Iterator[tuple[Source, Any]] | None:
        kind = type(value)
        if kind in _DICTS:
            return self._of_dict(source, value)
        if kind in _LISTS:
            return self._of_list(source, value)
        if kind in _SETS:
            return self._of_set(source, value)
        if kind is types.FunctionType:
            return self._of_function(source, value)
        if kind in (staticmethod, classmethod, types.MethodType):
            return iter([(source.child("attr", "__func__"), value.__func__)])
        if kind is property:
            return iter([(source.child("attr", "fget"), value.fget)])
        if kind is functools.partial:
            return iter([(source.child("attr", name), getattr(value, name))
                         for name in ("func", "args", "keywords")])  # fmt: skip
        if isinstance(value, (*_WITHOUT_PARTS, torch.Tensor)) or is_handle_class(kind):
            return None
        return self._of_object(source, value)

    def _of_dict(self, source: Source, value: Any) -> Iterator[tuple[Source, Any]]:
        count = dict.__len__(value)
        if source.name not in _growing:
            keys = tuple([key if is_plain_key(key) else id(key) for key in dict.__iter__(value)])
            self._note(source, "LEN_MATCH", count, frozenset(keys))
        for key, part in list(dict.items(value)):
            if is_plain_key(key) or _is_object_key(key):
                yield source.child("item", key), part

    def _of_list(self, source: Source, value: Any) -> Iterator[tuple[Source, Any]]:
        if source.name not in _growing:
            self._note(source, "LEN_MATCH", len(value), len(value))
        for position, part in enumerate(value):
            yield source.child("index", position), part

    def _of_set(self, source: Source, value: Any) -> Iterator[tuple[Source, Any]]:
        if source.name not in _growing:
            self._note(source, "LEN_MATCH", len(value), len(value))
        if all(map(is_plain_key, value)):
            content = frozenset(value)
            self._note(source.child("call", frozenset), "EQUALS_MATCH", content, content)
        yield from ()

    def _of_function(self, source: Source, value: Any) -> Iterator[tuple[Source, Any]]:
        if is_library(value.__module__ or ""):
            return
        self._note(source, "FUNCTION_MATCH", value.__code__, id(value.__code__))
        for name in ("__defaults__", "__kwdefaults__"):
            if getattr(value, name):
                yield source.child("attr", name), getattr(value, name)
        cells = source.child("attr", "__closure__")
        for position, cell in enumerate(value.__closure__ or ()):
            place = cells.child("index", position).child("cell")
            try:
                yield place, cell.cell_contents
            except ValueError:  # it is empty
                self._note(place, "ABSENT", None, None)

    def _of_object(self, source: Source, value: Any) -> Iterator[tuple[Source, Any]]:
        own = real_namespace(value)
        if type(own) is dict:
            base = source.child("dict")
            if len(own) <= _MOST_ATTRIBUTES and base.name not in _growing:
                self._note(base, "DICT_KEYS", tuple(own), tuple(own))
            for name in sorted(self._names):
                if name in own:
                    yield base.child("item", name), own[name]
        for owner in type(value).__mro__:
            members = () if is_library(owner.__module__) else vars(owner).items()
            for name, member in members:
                if type(member) is types.MemberDescriptorType and hasattr(value, name):
                    yield source.child("attr", name), getattr(value, name)


def is_plain_key(key: Any) -> bool:
    """A number, a text or the like."""
    return type(key) in PURE_TYPES


def _is_object_key(key: Any) -> bool:
    """An object that is a key by its identity: looking for it runs no code of the program."""
    kind = type(key)
    if isinstance(key, type):
        return is_known_by_identity(key)
    known = (types.FunctionType, types.BuiltinFunctionType, torch._ops.OpOverload)
    return kind in (*known, torch._ops.OpOverloadPacket) or kind.__hash__ is object.__hash__
