"""What the code of a tensor's class reaches, of what exists outside.

In: a class of tensors made of tensors; one that an operation is about to get. Out: what the class's
own code may look at, for `outside`, which guards it; a graph break where the program has changed
something there, since changes are written after the graph, and that code would see the state before
them. It is not traced but looked over: the globals that its functions name, what those hold, other
functions among it, and the attributes of the class and of the tensor. Next: wrappers.
"""

from __future__ import annotations

import collections
import functools
import itertools
import types
from collections.abc import Iterator
from typing import Any

from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from framejit.graph.opaque import is_handle_class
from framejit.values.core.base import is_user_class
from framejit.values.core.inline_policy import is_library, names_in, texts_in
from framejit.values.core.namespaces import real_namespace
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.torch.tensors import TensorValue

#: From so many objects on, what is reached counts as changed.
_MOST_OBJECTS = 20_000
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_WITHOUT_PARTS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)
_METHODS = (types.MethodType, staticmethod, classmethod)


#: What looks at all attributes.
_ALL_ATTRIBUTES = frozenset(["__dict__", "vars", "dir", "__getattribute__", "__getattr__"])


class Reach:
    """What the code of a class names, what that consists of, and so on."""

    def __init__(self, cls: type) -> None:
        self.classes: dict[type, None] = {}
        self.functions: dict[types.FunctionType, None] = {}
        #: The dicts that hold globals, by their identities and the globals' names.
        self.named: dict[tuple[int, str], dict[str, Any]] = {}
        #: All names in functions, of globals and attributes, and texts that may be such.
        self.names: set[str] = set()
        self.texts: set[str] = set()
        #: Everything, once.
        self.objects: list[Any] = []
        self._roots: list[Any] = []
        self._add_class(cls)
        for one in consists_of(self._roots):
            self.objects.append(one)
            self._add(one)

    def may_read(self, name: str) -> bool:
        """May code of the class look at an attribute of this name? It may put names together."""
        if not _ALL_ATTRIBUTES.isdisjoint(self.names) or name in self.names:
            return True
        texts = {one for one in self.objects if type(one) is str} | self.texts
        return any(text and text in name for text in texts)

    @property
    def is_vast(self) -> bool:
        """Was not all of it looked at?"""
        return len(self.objects) > _MOST_OBJECTS

    def _add(self, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            self._add_function(value)
        elif isinstance(value, type):
            self._add_class(value)
        elif is_user_class(type(value)):
            self._add_class(type(value))

    def _add_class(self, cls: type) -> None:
        """A class with those that it inherits from, as far as they are of the program."""
        for base in cls.__mro__:
            if base not in self.classes and is_user_class(base) and not is_library(base.__module__):
                self.classes[base] = None
                self._roots += vars(base).values()

    def _add_function(self, function: types.FunctionType) -> None:
        if is_library(function.__module__ or "") or function in self.functions:
            return
        self.functions[function] = None
        texts = texts_in(function.__code__)
        names = names_in(function.__code__) | texts
        self.texts |= texts
        self.names |= names
        modules, known = [function.__globals__], set()
        while modules:
            namespace = modules.pop()
            if id(namespace) not in known:
                known.add(id(namespace))
                self.named.update({(id(namespace), name): namespace for name in names})
                found = [namespace[name] for name in sorted(names & namespace.keys())]
                modules += [vars(one) for one in found if is_own_module(one)]
                self._roots += found


def is_own_module(value: Any) -> bool:
    """A module of the program's."""
    return isinstance(value, types.ModuleType) and not is_library(value.__name__)


def consists_of(roots: list[Any]) -> Iterator[Any]:
    """Everything that some objects consist of, once; more may be added to them meanwhile."""
    seen: dict[int, Any] = {}
    while roots and len(seen) <= _MOST_OBJECTS:
        one = roots.pop()
        if id(one) not in seen:
            seen[id(one)] = one
            yield one
            roots += _inside(one)


def is_in_reach(space: Space, cls: type, obj: Any) -> bool:
    """May an object be one that functions of the class name, or that is in what these hold?"""
    reach = reach_of(space, cls)
    return reach.is_vast or any(one is obj for one in reach.objects)


def reach_of(space: Space, cls: type) -> Reach:
    """That of a class; the capture has it looked over once."""
    if cls not in space.reaches:
        space.reaches[cls] = Reach(cls)
    return space.reaches[cls]  # type: ignore[no-any-return]


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty
        return None


def _inside(obj: Any) -> Iterator[Any]:
    """What an object consists of, without running code of the program."""
    if isinstance(obj, types.FunctionType):
        if not is_library(obj.__module__ or ""):
            yield from obj.__defaults__ or ()
            yield from (obj.__kwdefaults__ or {}).values()
            yield from map(_content, obj.__closure__ or ())
    elif isinstance(obj, _METHODS):
        yield from (obj.__func__, getattr(obj, "__self__", None))
    elif isinstance(obj, property):
        yield from (obj.fget, obj.fset, obj.fdel)
    elif isinstance(obj, functools.partial):
        yield from (obj.func, obj.args, obj.keywords)
    elif isinstance(obj, dict):
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


def _written(space: Space, namespace: dict[str, Any]) -> list[str]:
    """Which attributes of an existing tensor the program has changed."""
    known: Any = space.known_value(namespace)
    if known not in space.effects.changed:
        return []
    return list({**known.pairs, **known.written} if known.rewritten else known.written)


def change_in_reach(space: Space, cls: type, tensor: Any) -> str | None:
    """Which change of the program, in words, the code of a class may see when it gets a tensor; one
    that does not exist yet (None) may have anything of those that do."""
    effects = space.effects
    changed = [value for value in effects.changed if not isinstance(value, TensorValue)]
    if not (changed or effects.globals):
        return None
    reach = reach_of(space, cls)
    for key in effects.globals:
        if key in reach.named:
            return f"global {key[1]!r}"
    for value in changed:
        if isinstance(value, ClassValue) and value.cls in reach.classes:
            return value.describe()
    if not changed:
        return None
    existing = [obj for obj, _, _ in space.looked_at()] if tensor is None else [tensor]
    own = [vars(obj) for obj in existing if is_traceable_wrapper_subclass(obj)]
    if any(reach.may_read(name) for one in own for name in _written(space, one)):
        return "an attribute"
    inside = [part for one in own for part in one.values()]
    for count, one in enumerate(itertools.chain(reach.objects, consists_of(inside))):
        if space.known_value(one) in effects.changed or count > _MOST_OBJECTS:
            return f"a {type(one).__name__}"
    return None
