"""The ``__dict__`` of objects: one value, whichever way it is reached.

In: the value of an object that can have attributes of its own. Out: the value of its ``__dict__``,
which holds them. It is found by the identity of the dict, so an object and a dict that came in
beside it, or two objects that share one dict, see each other's changes. Next: objects, functions.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
import types
from typing import TYPE_CHECKING, Any

from framejit.exc import GraphBreak
from framejit.values.core.base import Value

if TYPE_CHECKING:
    from framejit.values.containers.mappings import DictValue
    from framejit.values.core.space import Space


def instance_namespace(obj: Any) -> dict[str, Any] | None:
    """The instance's ``__dict__`` without running user code."""
    namespace = real_namespace(obj)
    return namespace if type(namespace) is dict else None


def real_namespace(obj: Any) -> Any:
    """The instance's ``__dict__``, of any class, without running user code."""
    if issubclass(type(obj), threading.local):
        return threading.local.__getattribute__(obj, "__dict__")  # this thread's
    try:
        return object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None


def own_attribute(space: Space, value: Any, name: str) -> Value | None:
    """What the object's own ``__dict__`` has under ``name``; absence is guarded."""
    namespace: DictValue | None = value.namespace
    if namespace is None:
        namespace = space.namespace_of(value)
        if namespace is None:
            return None
    pair = namespace.lookup(space, name)
    return None if pair is None else pair[1]


def store_own(space: Space, value: Value, name: str, content: Value | None) -> None:
    """Write an attribute to the object's own ``__dict__``, or delete one that is there."""
    namespace = space.namespace_of(value)
    if namespace is None:
        raise GraphBreak("FJ0152", f"assigning attribute {name!r} of a {value.describe()}")
    if content is None:
        namespace.remove(space, name)
    else:
        namespace.store(space, name, space.constant(name), content)


def entries(value: Any) -> dict[Any, tuple[Value, Value]]:
    """What the program has put into the ``__dict__`` of an object, if the object has one."""
    namespace: DictValue | None = getattr(value, "namespace", None)
    return {} if namespace is None else namespace.items


def instance_dict(space: Space, value: Value) -> Value:
    """``obj.__dict__`` as a mapping value."""
    namespace = space.namespace_of(value) if hasattr(value, "namespace") else None
    if namespace is None:
        raise GraphBreak("FJ0156", f"__dict__ of a {value.describe()}")
    return namespace


_FIELD = type(inspect.Attribute.name)  # the descriptor of a named tuple's field


def codes(raw: Any) -> Any:
    """What a class attribute is, as far as it can be compared without looking into objects."""
    if isinstance(raw, types.FunctionType):
        return raw.__code__
    if isinstance(raw, (staticmethod, classmethod)):
        return codes(raw.__func__)
    if isinstance(raw, property):
        return codes(raw.fget), codes(raw.fset), codes(raw.fdel)
    if isinstance(raw, functools.cached_property):
        return codes(raw.func)
    if type(raw) is _FIELD:
        return raw.__reduce__()[1]
    return raw is None


def own_globals(function: types.FunctionType) -> dict[str, Any] | None:
    """A copy of a small namespace that was made for this function; None for a module's."""
    namespace = function.__globals__
    module = sys.modules.get(namespace.get("__name__", ""))
    if len(namespace) > 16 or namespace is getattr(module, "__dict__", None):
        return None
    return dict(namespace)
