"""What the code of a tensor's class reaches, of what exists outside.

In: a tensor made of tensors that an operation is about to get. Out: a graph break where the program
has changed something that the class's own code may look at: changes are written after the graph, so
that code would see the state before them. It is not traced but looked over: the globals that its
functions name, what those hold, and the attributes of the class and of the tensor. Next: wrappers.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Iterator
from typing import Any

from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from framejit.graph.opaque import is_handle_class
from framejit.values.core.inline_policy import is_library, names_in
from framejit.values.core.namespaces import real_namespace
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.torch.tensors import TensorValue

#: From so many objects on, what is reached counts as changed.
_MOST_OBJECTS = 20_000
_SEQUENCES = (list, tuple, set, frozenset, collections.deque)
_WITHOUT_PARTS = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType)


class Reach:
    """What functions name and objects consist of."""

    def __init__(self) -> None:
        self.classes: dict[type, None] = {}
        #: Globals by the identity of the dict that holds them.
        self.named: set[tuple[int, str]] = set()
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
        self.named.update([(id(namespace), name) for name in names])
        for name in names & namespace.keys():
            value = namespace[name]
            if not isinstance(value, types.ModuleType):
                self._add(value)
            elif not is_library(value.__name__) and value.__dict__ is not namespace:
                for_module = names & value.__dict__.keys()
                self.named.update([(id(value.__dict__), one) for one in for_module])
                self.roots += [value.__dict__[one] for one in for_module]

    def objects(self) -> Iterator[Any]:
        """Everything that the roots consist of."""
        todo, seen = list(self.roots), set()
        while todo:
            one = todo.pop()
            if id(one) not in seen:
                seen.add(id(one))
                yield one
                todo.extend(_inside(one))


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
        yield from next(base for base in _SEQUENCES if isinstance(obj, base)).__iter__(obj)  # type: ignore[attr-defined]
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
