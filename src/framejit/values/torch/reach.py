"""What the code of a tensor's class reaches, of what exists outside.

In: a class of tensors made of tensors; one that an operation is about to get. Out: guards on data
that the class's own code may look at, since backends build it in; a graph break where the program
has changed something there, since changes are written after the graph, and that code would see the
state before them. It is not traced but looked over: the globals that its functions name, what those
hold, and the attributes of the class and of the tensor. Next: wrappers.
"""

from __future__ import annotations

import collections
import enum
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from framejit.graph.opaque import is_handle_class
from framejit.source import Source
from framejit.values.core.base import is_user_class
from framejit.values.core.inline_policy import is_library, names_in
from framejit.values.core.namespaces import real_namespace
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.torch.tensors import TensorValue

#: From so many objects on, what is reached counts as changed.
_MOST_OBJECTS = 20_000
#: Larger dicts are not guarded.
_MOST_ENTRIES = 64
_SINGLE = (bool, type(None), enum.Enum, torch.dtype)
_DATA = (*_SINGLE, int, float, str)
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_WITHOUT_PARTS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


class Reach:
    """What functions name and objects consist of."""

    def __init__(self) -> None:
        self.classes: dict[type, None] = {}
        #: The dicts that hold globals, by their identities and the globals' names.
        self.named: dict[tuple[int, str], dict[str, Any]] = {}
        #: All names in functions, of globals and attributes.
        self.names: set[str] = set()
        self.roots: list[Any] = []
        self._looked_over: set[int] = set()

    def add_class(self, cls: type) -> None:
        """A class with those that it inherits from, as far as they are of the program."""
        for base in cls.__mro__:
            if base not in self.classes and not is_library(base.__module__):
                self.classes[base] = None
                for raw in list(vars(base).values()):
                    self._add(raw)

    def _add(self, value: Any) -> None:
        if isinstance(value, property):
            for function in (value.fget, value.fset, value.fdel):
                self._add(function)
            return
        value = getattr(value, "__func__", value)  # of methods, and of what makes them
        if isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, type):
            self.add_class(value)
        else:
            self.roots.append(value)

    def _add_function(self, function: types.FunctionType) -> None:
        if is_library(function.__module__ or "") or id(function) in self._looked_over:
            return
        self._looked_over.add(id(function))
        names = names_in(function.__code__)
        self._add_named(function.__globals__, names)
        for value in (*(function.__defaults__ or ()), *(function.__closure__ or ())):
            if isinstance(value, types.CellType):
                value = _content(value)
            self._add(value)

    def _add_named(self, namespace: dict[str, Any], names: frozenset[str]) -> None:
        self.names |= names
        self.named.update({(id(namespace), name): namespace for name in names})
        for name in sorted(names & namespace.keys()):
            value = namespace[name]
            if not isinstance(value, types.ModuleType):
                self._add(value)
            elif not is_library(value.__name__) and value.__dict__ is not namespace:
                own = value.__dict__
                for_module = sorted(names & own.keys())
                self.named.update({(id(own), one): own for one in for_module})
                self.roots += [own[one] for one in for_module]

    def objects(self) -> Iterator[Any]:
        """Everything that the roots consist of."""
        todo, seen = list(self.roots), set()
        while todo:
            one = todo.pop()
            if id(one) not in seen:
                seen.add(id(one))
                yield one
                todo.extend(_inside(one))


class Datum(NamedTuple):
    """A number, a text or the like that functions may look at."""

    source: Source
    value: Any
    read: Callable[[], Any]


def look_over(space: Space, cls: type) -> None:
    """Note the data that the code of a class may look at; `guard_seen` guards it."""
    if cls not in space.seen_by_classes:
        reach = Reach()
        reach.add_class(cls)
        space.seen_by_classes[cls] = [
            *_data_of_globals(space, reach),
            *_data_of_classes(space, reach),
        ]


def guard_seen(space: Space) -> None:
    """Guard the data that the code of classes may have looked at in this capture; not what has
    changed since, which that code itself did, as a counter of its calls."""
    for data in space.seen_by_classes.values():
        for source, value, read in data:
            try:
                now = read()
            except (KeyError, AttributeError):
                continue
            if type(now) is type(value) and (now is value or now == value):
                kind = "ID_MATCH" if isinstance(value, _SINGLE) else "EQUALS_MATCH"
                space.guard(source, kind, value)


def _data_of_globals(space: Space, reach: Reach) -> Iterator[Datum]:
    for (_, name), namespace in reach.named.items():
        if name not in namespace:
            continue
        value = namespace[name]
        source = space.globals_source(namespace).child("item", name)
        if isinstance(value, _DATA):
            yield Datum(source, value, functools.partial(namespace.__getitem__, name))
        elif type(value) is dict:
            yield from _data_of_dict(source, value, value.keys())
        elif is_user_class(type(value)) and not is_library(type(value).__module__):
            own = real_namespace(value)
            if type(own) is dict:
                yield from _data_of_dict(source.child("dict"), own, reach.names & own.keys())


def _data_of_dict(source: Source, content: dict[Any, Any], keys: Any) -> Iterator[Datum]:
    if len(keys) <= _MOST_ENTRIES and all(isinstance(key, (str, int, bool)) for key in keys):
        for key in sorted(keys, key=str):
            if isinstance(content[key], _DATA):
                read = functools.partial(content.__getitem__, key)
                yield Datum(source.child("item", key), content[key], read)


def _data_of_classes(space: Space, reach: Reach) -> Iterator[Datum]:
    for cls in reach.classes:
        for name in sorted(reach.names & vars(cls).keys()):
            value = vars(cls)[name]
            if isinstance(value, _DATA) and not name.startswith("__"):
                source = space.class_source(cls).child("type_attr", name)
                yield Datum(source, value, functools.partial(vars(cls).__getitem__, name))


def is_in_reach(cls: type, obj: Any) -> bool:
    """May an object be one that functions of the class name, or that is in what these hold?"""
    reach = Reach()
    reach.add_class(cls)
    return any(one is obj or count > _MOST_OBJECTS for count, one in enumerate(reach.objects()))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _inside(obj: Any) -> Iterator[Any]:
    """What an object consists of, without running code of the program."""
    if isinstance(obj, dict):
        yield from dict.values(obj)
    elif isinstance(obj, _SEQUENCES):
        builtin: Any = next(base for base in _SEQUENCES if isinstance(obj, base))
        yield from builtin.__iter__(obj)
    if isinstance(obj, _WITHOUT_PARTS) or is_handle_class(type(obj)):
        return
    namespace = real_namespace(obj)
    if type(namespace) is dict:
        yield namespace
    for base in type(obj).__mro__:
        for member in vars(base).values():
            if type(member) is types.MemberDescriptorType and not is_library(base.__module__):
                yield getattr(obj, member.__name__, None)


def change_in_reach(space: Space, cls: type, tensor: Any) -> str | None:
    """Which change of the program, in words, the code of a class may see when it gets a tensor; one
    that does not exist yet (None) may have anything of those that do."""
    effects = space.effects
    changed = [value for value in effects.changed if not isinstance(value, TensorValue)]
    if not (changed or effects.globals):
        return None
    reach = Reach()
    reach.add_class(cls)
    for key in effects.globals:
        if key in reach.named:
            return f"global {key[1]!r}"
    for value in changed:
        if isinstance(value, ClassValue) and value.cls in reach.classes:
            return value.describe()
    if not changed:
        return None
    existing = [obj for obj, _, _ in space.looked_at()] if tensor is None else [tensor]
    reach.roots += [vars(obj) for obj in existing if is_traceable_wrapper_subclass(obj)]
    for count, one in enumerate(reach.objects()):
        if space.known_value(one) in effects.changed or count > _MOST_OBJECTS:
            return f"a {type(one).__name__}"
    return None
