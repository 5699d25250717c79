"""Dicts whose content is known elsewhere: the globals of a module, the attributes of a class.

In: an existing dict or mapping proxy with its source. Out: a dict value that asks those who know,
so that what is written through one of the ways is seen through the others. Next: codegen.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
import types
from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.dict_contents import Pair
from framejit.values.containers.mappings import DictValue, InstanceDictValue
from framejit.values.core.base import Value
from framejit.values.core.keys import asked, find
from framejit.values.core.methods import builtin
from framejit.values.core.namespaces import real_namespace
from framejit.values.core.registry import WRAPPERS, Result, wraps
from framejit.values.core.space import Space


class LiveDictValue(DictValue):
    """A dict that keeps no entries of its own: all are looked up one by one."""

    __slots__ = ()
    is_live = True

    def __init__(self, space: Space, source: Source | None, obj: Any, cls: type = dict) -> None:
        super().__init__({}, source, obj, cls)
        self.complete = False
        self.space = space

    @property
    def items(self) -> dict[Any, Pair]:
        assert self.space is not None
        found = {key: self.lookup(self.space, key) for key in self.keys_in_order(self.space)}
        return {key: pair for key, pair in found.items() if pair is not None}

    def _held(self, space: Space, key: Any) -> Any:
        if not asked(space, (key,)):
            return key
        return find(space, dict.fromkeys(self.keys_in_order(space)), key)

    def size(self, space: Space) -> int:
        return len(self.keys_in_order(space))

    def truth(self, space: Space) -> bool:
        return self.size(space) > 0

    def len(self, space: Space) -> Value:
        return space.constant(self.size(space))

    def replace(self, space: Space, pairs: dict[Any, Pair]) -> None:
        for key in self.keys_in_order(space):
            if key not in pairs:
                self.remove(space, key)
        for key, pair in pairs.items():
            self.store(space, key, *pair)


class ProxyValue(LiveDictValue):
    """A mapping proxy: it has nothing but the dict that it shows."""

    __slots__ = ("shown",)

    def __init__(
        self, space: Space, shown: DictValue, source: Source | None = None, obj: Any = None
    ) -> None:
        super().__init__(space, source, obj, types.MappingProxyType)
        self.shown = shown

    def sample(self) -> Any:
        return types.MappingProxyType({})

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        """Only the methods that a proxy has get here; all of them only read."""
        if name == "__ior__":
            return super().call_method(space, name, args, kwargs)
        if name in self.methods:
            self.check_counts(space, name, args, kwargs)
        return self.shown.call_method(space, name, args, kwargs)

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        if inplace:
            text = "'|=' is not supported by mappingproxy; use '|' instead"
            return space.raise_error(TypeError, text) if op == "|" else None
        return super().binary_op(space, op, other, reflected, inplace)

    def setitem(self, space: Space, key: Value, value: Value) -> None:
        space.raise_error(TypeError, "'mappingproxy' object does not support item assignment")

    def delitem(self, space: Space, key: Value) -> None:
        space.raise_error(TypeError, "'mappingproxy' object does not support item deletion")


def _of_shown(name: str) -> Any:
    @functools.wraps(getattr(DictValue, name))
    def ask(self: ProxyValue, space: Space, *args: Any) -> Any:
        return getattr(self.shown, name)(space, *args)

    return ask


for _name in ("lookup", "keys_in_order", "size", "truth", "len", "fresh_copy", "iter"):
    setattr(ProxyValue, _name, _of_shown(_name))


class WrittenDictValue(LiveDictValue):
    """A dict of names of which somebody else knows what the program assigned."""

    __slots__ = ()

    def written_names(self, space: Space) -> dict[str, Value | None]:
        """What the program assigned; None: it was deleted."""
        raise NotImplementedError

    def keys_in_order(self, space: Space) -> list[Any]:
        space.guard(self.source, "DICT_KEYS", tuple(self.obj))
        names = dict.fromkeys(self.obj)
        for name, value in self.written_names(space).items():
            if value is None:
                names.pop(name, None)
            else:
                names.setdefault(name)
        return list(names)


class GlobalsValue(WrittenDictValue):
    """The globals of a module: `Effects.globals` has what the program assigned."""

    __slots__ = ()

    def lookup(self, space: Space, key: Any) -> Pair | None:
        if type(key) is not str:
            raise GraphBreak("FJ0156", "a key that is not a string is looked up in globals")
        value = space.own_global(self.obj, key)
        return None if value is None else (space.constant(key), value)

    def store(self, space: Space, key: Any, key_value: Value, value: Value) -> None:
        if self.lookup(space, key) is None:
            self.version += 1
        space.store_global(self.obj, key, value)

    def remove(self, space: Space, key: Any) -> None:
        self.version += 1
        space.store_global(self.obj, key, None)

    def written_names(self, space: Space) -> dict[str, Value | None]:
        changes = space.effects.globals.items()
        return {name: change.value for (at, name), change in changes if at == id(self.obj)}


class ClassDictValue(WrittenDictValue):
    """What the proxy of a class's ``__dict__`` shows: `Space.class_writes` has what the program
    assigned. A proxy does not say whose it is, so it is compared with the classes written."""

    __slots__ = ()

    def written_names(self, space: Space) -> dict[str, Value | None]:
        found: dict[str, Value | None] = {}
        for cls, written in space.class_writes.items():
            if getattr(space.known_value(cls), "making", None) is not None:
                continue
            behind = space.class_source(cls).child("attr", "__dict__").child("proxied")
            if self.source is behind:
                found = written
            elif proxied(type.__getattribute__(cls, "__dict__")) is self.obj:
                space.guard(behind, "SAME_OBJECT", self.source)
                found = written
            else:
                space.guard(behind, "DISTINCT", (self.source,))
        return found

    def lookup(self, space: Space, key: Any) -> Pair | None:
        written = self.written_names(space)
        if key not in written:
            return super().lookup(space, key)
        value = written[key]
        return None if value is None else (space.constant(key), value)


def proxied(proxy: Any) -> Any:
    """The mapping behind a mapping proxy: the accessor through which its content is guarded."""
    return gc.get_referents(proxy)[0]


@wraps(types.MappingProxyType)
def _wrap_mapping_proxy(space: Space, source: Source, obj: Any) -> Value:
    """A mapping proxy over a dict; what is read of it is guarded in the dict."""
    space.guard(source, "TYPE_MATCH", types.MappingProxyType)
    content, behind = proxied(obj), source.child("proxied")
    if type(content) is dict and "__module__" in content:
        shown = space.known_value(content)
        if shown is None:
            shown = space.remember(content, ClassDictValue(space, behind, content))
        elif shown.source is not behind:
            space.guard(behind, "SAME_OBJECT", shown.source)
    else:
        shown = space.load(behind, content).realize()
    if not isinstance(shown, DictValue):
        raise GraphBreak("FJ0156", "a mapping proxy over something that is not a dict")
    return space.remember(obj, ProxyValue(space, shown, source, obj))


@builtin(types.MappingProxyType, 1)
def _make_proxy(space: Space, mapping: Value) -> Value:
    shown = mapping.realize()
    if not isinstance(shown, DictValue):
        raise GraphBreak("FJ0156", "a mapping proxy of something that is not a dict")
    return ProxyValue(space, shown)


def _is_globals(space: Space, obj: dict[Any, Any]) -> bool:
    if obj is space.home or space.is_globals(obj) or "__builtins__" in obj:
        return True
    name = obj.get("__name__") if "__name__" in obj else None
    return type(name) is str and getattr(sys.modules.get(name), "__dict__", None) is obj


_wrap_dict = WRAPPERS[dict]


@wraps(dict)
def wrap_plain_dict(space: Space, source: Source, obj: Any) -> Value:
    """An existing dict, unless it is the globals of some code."""
    if not _is_globals(space, obj):
        return _wrap_dict(space, source, obj)
    space.guard(source, "ID_MATCH", obj)
    return globals_value(space, obj)


def globals_value(space: Space, namespace: dict[str, Any]) -> Value:
    """The value of the globals of some code."""
    known = space.known_value(namespace)
    if known is None:
        root = space.globals_source(namespace)
        known = space.remember(namespace, GlobalsValue(space, root, namespace))
    return known


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
        namespace = InstanceDictValue(value)
        space.new_namespaces.append(namespace)
    else:
        real = real_namespace(obj)
        if type(real) is not dict:
            if isinstance(real, dict):
                raise GraphBreak("FJ0156", f"the __dict__ of a {value.describe()} is no plain dict")
            return None
        of_thread = issubclass(type(obj), threading.local)
        child = source.child("attr", "__dict__") if of_thread else source.child("dict")
        known = space.known_value(real)
        if isinstance(known, DictValue):
            if known.source is not child:
                space.guard(child, "SAME_OBJECT", known.source)
            namespace = known
        else:
            namespace = InstanceDictValue(None, child, real)
            namespace.space = space
            space.remember(real, namespace)
    value.namespace = namespace
    return namespace
