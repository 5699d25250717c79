"""The ``__dict__`` of objects: one value, whichever way it is reached.

In: the value of an object that can have attributes of its own. Out: the value of its ``__dict__``,
which holds them. It is found by the identity of the dict, so an object and a dict that came in
beside it, or two objects that share one dict, see each other's changes. Next: objects, functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framejit import values as room
from framejit.exc import GraphBreak
from framejit.values.core.base import Value

if TYPE_CHECKING:
    from framejit.values.containers.mappings import DictValue
    from framejit.values.core.space import Space


def instance_namespace(obj: Any) -> dict[str, Any] | None:
    """The instance's ``__dict__`` without running user code."""
    namespace = _namespace(obj)
    return namespace if type(namespace) is dict else None


def _namespace(obj: Any) -> Any:
    try:
        return object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None


def namespace_of(space: Space, value: Any) -> DictValue | None:
    """The value of ``value.__dict__``; None if the object has none. ``value`` keeps it in a slot
    ``namespace``, and its ``obj`` is the real object, if there is one."""
    namespace: DictValue | None = value.namespace
    if namespace is not None:
        return namespace
    obj, source = value.obj, value.source
    if obj is None or source is None:
        if value.python_type().__dictoffset__ == 0:
            return None
        namespace = room.containers.mappings.InstanceDictValue(value)
        space.new_namespaces.append(namespace)
    else:
        real = _namespace(obj)
        if type(real) is not dict:
            if isinstance(real, dict):
                raise GraphBreak("FJ0156", f"the __dict__ of a {value.describe()} is no plain dict")
            return None
        child = source.child("dict")
        known = space.known_value(real)
        if isinstance(known, room.containers.mappings.DictValue):
            if known.source is not child:
                space.guard(child, "SAME_OBJECT", known.source)
            namespace = known
        else:
            namespace = room.containers.mappings.InstanceDictValue(None, child, real)
            namespace.space = space
            space.remember(real, namespace)
    value.namespace = namespace
    return namespace


def own_attribute(space: Space, value: Any, name: str) -> Value | None:
    """What the object's own ``__dict__`` has under ``name``; absence is guarded."""
    namespace: DictValue | None = value.namespace
    if namespace is None:
        namespace = namespace_of(space, value)
        if namespace is None:
            return None
    pair = namespace.lookup(space, name)
    return None if pair is None else pair[1]


def store_own(space: Space, value: Value, name: str, content: Value | None) -> None:
    """Write an attribute to the object's own ``__dict__``, or delete one that is there."""
    namespace = namespace_of(space, value)
    if namespace is None:
        raise GraphBreak("FJ0152", f"assigning attribute {name!r} of a {value.describe()}")
    if content is None:
        namespace.remove(space, name)
    else:
        namespace.store(space, name, space.constant(name), content)


def entries(value: Any) -> dict[Any, tuple[Value, Value]]:
    """What the ``__dict__`` of an object made by the program holds."""
    return {} if value.namespace is None else value.namespace.items
