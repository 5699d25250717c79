"""Attributes of classes: what a lookup along the bases finds, and what the program has written.

In: classes and names. Out: raw attributes with their sources, guarded. Next: space.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from framejit.graph.changes import Changes
from framejit.source import Source
from framejit.values.core.base import Value, is_heap_class, is_user_class
from framejit.values.core.known import Known
from framejit.values.core.namespaces import codes
from framejit.values.core.operations import ClassAttribute


class ClassLookup(Known):
    """The classes of one capture."""

    # What later rooms do; `object_space.ObjectSpace` says who.
    written_attribute: Callable[..., ClassAttribute]
    guard_class: Callable[..., None]

    def __init__(self, home: dict[str, Any] | None, changes: Changes) -> None:
        super().__init__(home)
        self.changes = changes
        #: What the program assigned to (or, None, deleted from) classes.
        self.class_writes: dict[type, dict[str, Value | None]] = {}
        self._class_attributes: dict[tuple[type, str], ClassAttribute | None] = {}

    def forget(self) -> None:
        super().forget()
        self.class_writes.clear()
        self._class_attributes.clear()

    def class_attribute(self, cls: type, name: str) -> ClassAttribute | None:
        """Raw lookup of ``name`` along the MRO of ``cls``; found or not, it is guarded."""
        key = (cls, name)
        if key in self._class_attributes:
            return self._class_attributes[key]
        found = self._find_class_attribute(cls, name, type.__getattribute__(cls, "__mro__"))
        self._class_attributes[key] = found
        return found

    def super_attribute(self, start: type, after: type, name: str) -> ClassAttribute | None:
        """Raw lookup of ``name`` along the MRO of ``start``, after the class ``after``."""
        self.guard_order(start)
        return self._first_own(start.__mro__[start.__mro__.index(after) + 1 :], name)

    def guard_order(self, cls: type) -> None:
        """The bases of a class can be replaced."""
        if is_user_class(cls) and cls not in self.local_classes:
            self.guard(self.class_source(cls).child("attr", "__mro__"), "ID_MATCH", cls.__mro__)

    def _find_class_attribute(
        self, cls: type, name: str, mro: tuple[type, ...]
    ) -> ClassAttribute | None:
        if self.class_writes and any(name in self.class_writes.get(c, ()) for c in mro):
            return self._first_own(mro, name)  # the program has changed what a lookup finds
        source = self.class_source(cls).child("type_attr", name)
        for owner in mro:
            namespace = type.__getattribute__(owner, "__dict__")
            if name in namespace:
                if is_heap_class(cls):
                    self._guard_class_attribute(owner, source, namespace[name])
                return ClassAttribute(namespace[name], source, owner)
        if is_heap_class(cls):
            self.guard(source, "ABSENT")
        return None

    def _first_own(self, mro: tuple[type, ...], name: str) -> ClassAttribute | None:
        found = (self._own_attribute(owner, name) for owner in mro)
        return next((one for one in found if one is not None), None)

    def _own_attribute(self, owner: type, name: str) -> ClassAttribute | None:
        """The entry of the class's own ``__dict__``."""
        written = self.class_writes.get(owner)
        if written is not None and name in written:
            value = written[name]
            if value is None:
                return None
            return self.written_attribute(owner, name, value)
        namespace = type.__getattribute__(owner, "__dict__")
        source = self.class_source(owner).child("dict").child("item", name)
        if name not in namespace:
            if is_heap_class(owner):
                self.guard(source, "ABSENT")
            return None
        if is_heap_class(owner):
            self._guard_class_attribute(owner, source, namespace[name])
        return ClassAttribute(namespace[name], source, owner)

    def _guard_class_attribute(self, owner: type, source: Source, raw: Any) -> None:
        if owner in self.local_classes:  # another object each time; what is read of it is guarded
            self.guard_class(source, type(raw))
            self.guard(source.child("call", codes), "EQUALS_MATCH", codes(raw))
        elif type(raw) in (int, float, str):  # no descriptor; its value matters when looked at
            self.guard(source, "TYPE_MATCH", type(raw))
        else:
            self.guard(source, "ID_MATCH", raw)

    def add_class(self, template: type, value: Value) -> None:
        """The program has made a class, which ``template`` stands for."""
        self.remember(template, value)
        self.preload(self.class_source(template), value)
        self.changes.note()

    def forget_class(self, cls: type) -> None:
        """The template of a class has changed: look again."""
        for known in [k for k in self._class_attributes if cls in k[0].__mro__]:
            del self._class_attributes[known]
        self.changes.note()

    def write_class_attribute(self, cls: type, name: str, value: Value | None) -> None:
        """The program assigns (or, None, deletes) an attribute of a class."""
        written = self.class_writes.setdefault(cls, {})
        if value is None and name not in type.__getattribute__(cls, "__dict__"):
            written.pop(name, None)
        else:
            written[name] = value
        for known in [k for k in self._class_attributes if k[1] == name and cls in k[0].__mro__]:
            del self._class_attributes[known]
        self.changes.note()
