"""What a capture knows of existing objects.

In: Python objects with their sources. Out: one value for each object, facts on the sources.
Next: class_lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from framejit.source import Source
from framejit.values.core.base import Value
from framejit.values.core.inline_policy import is_library
from framejit.values.core.running import Running


class Known:
    """The sources of one capture, and the values at them."""

    def __init__(self, home: dict[str, Any] | None) -> None:
        #: The globals of the function that is being compiled.
        self.home = home
        #: What leads the capture: an interpreter, while there is one.
        self.running = Running()
        self.slot_roots: list[Source] = []
        self.const_roots: dict[int, Source] = {}
        #: Classes known by their structure: where they are.
        self.local_classes: dict[type, Source] = {}
        self._loaded: dict[Source, Value] = {}
        self._known: dict[int, tuple[Any, Value]] = {}
        #: Objects that calls which were repeated have looked at, and where they met them first.
        self.noted: dict[int, tuple[Any, Source]] = {}
        #: Of calls that are captured alone: numbers of which it was asked whether they vary.
        self.numbers_asked: dict[Source, Any] = {}
        #: What code of classes of tensors may look at: `torch.outside`, `torch.reach`.
        self.seen_by_classes: dict[type, dict[Any, Any]] = {}
        self.reaches: dict[type, Any] = {}
        #: Tensors made of tensors, existing and made here, and what they hold: `shared_state`.
        self.wrappers: list[Any] = []
        self.shared: Any = None
        #: Of calls that are captured alone: how many facts a source had when its object was first
        #: looked at, and which facts that look has added: (source, kind) -> the object's source.
        self.facts_before: dict[Source, int] = {}
        self.facts_of_looking: dict[tuple[Source, str], Source] = {}
        self._looking: Source | None = None

    def forget(self) -> None:
        """The capture is over: let go of the user's objects now, not at the next collection. Values
        may be part of a cycle."""
        for value in (*self._loaded.values(), *[value for _, value in self._known.values()]):
            if value.obj is not None:
                try:
                    value.obj = None  # type: ignore[attr-defined]
                except AttributeError:
                    pass
        self.slot_roots = []
        self.const_roots.clear()
        self.local_classes.clear()
        self._loaded.clear()
        self._known.clear()
        self.noted.clear()
        self.seen_by_classes.clear()
        self.reaches.clear()
        self.wrappers, self.shared = [], None
        for table in (self.numbers_asked, self.facts_before, self.facts_of_looking):
            table.clear()
        self.running = Running()

    def slot_source(self, index: int, name: str) -> Source:
        """The root source of one argument slot or closure cell of the captured frame."""
        source = Source(None, "slot", index, f"L[{name!r}]")
        self.slot_roots.append(source)
        return source

    def given(self) -> list[Value]:
        """What the captured frame was given in its slots."""
        return [self._loaded[root] for root in self.slot_roots if root in self._loaded]

    def const_source(self, obj: Any, label: str) -> Source:
        """The root source of an object that the entry itself holds (a class, a globals dict)."""
        source = self.const_roots.get(id(obj))
        if source is None:
            source = self.const_roots[id(obj)] = Source(None, "const", obj, label)
        return source

    def globals_source(self, namespace: dict[str, Any]) -> Source:
        """The root source of a module's globals; it says which module's, unless they are those of
        the user's function that is being compiled."""
        module = str(namespace.get("__name__"))
        own = namespace is self.home and not is_library(module)
        return self.const_source(namespace, "globals" if own else f"globals of {module}")

    def is_globals(self, obj: Any) -> bool:
        """Are these the globals of code that was looked at?"""
        source = self.const_roots.get(id(obj))
        return source is not None and source.label.startswith("globals")

    def class_source(self, cls: type) -> Source:
        """The source of a class that a type guard has already pinned down."""
        local = self.local_classes.get(cls)
        if local is not None:
            return local
        return self.const_source(cls, f"class {cls.__module__}.{cls.__qualname__}")

    def guard(self, source: Source | None, kind: str, payload: Any = None) -> None:
        """Note an assumption about ``source`` together with the user's line."""
        if source is not None:
            source.add_fact(kind, payload, self.running.user_line())
            if self._looking is not None:
                self.facts_of_looking[source, kind] = self._looking

    def look(self, source: Source, maker: Callable[..., Value], obj: Any) -> Value:
        """Have the value of an object made, and remember which facts that takes."""
        outer, self._looking = self._looking, source
        try:
            return maker(self, source, obj)
        finally:
            self._looking = outer

    def preload(self, source: Source, value: Value) -> None:
        """What is at ``source`` is known to be ``value``."""
        self._loaded[source] = value

    def preloaded(self, source: Source) -> Value | None:
        """What is known to be at ``source``, if anything."""
        return self._loaded.get(source)

    def is_pinned(self, cls: type) -> bool:
        """Has the capture relied on the identity of this class?"""
        return id(cls) in self.const_roots

    def makes_class(self, cls: type) -> bool:
        """Does each call of the program make this class anew, as far as is known?"""
        return (
            cls in self.local_classes or getattr(self.known_value(cls), "making", None) is not None
        )

    def in_local_class(self, source: Source) -> bool:
        """Is it reached through a class that is known by its structure?"""
        if not self.local_classes:
            return False
        roots = set(self.local_classes.values())
        step: Source | None = source
        while step is not None and step not in roots:
            step = step.base
        return step is not None

    def remember(self, obj: Any, value: Value) -> Value:
        """From now on ``obj`` is ``value``, whatever path it is reached by."""
        self._known[id(obj)] = (obj, value)
        return value

    def known_value(self, obj: Any) -> Value | None:
        """The value already made for this very object, if any."""
        known = self._known.get(id(obj))
        return None if known is None else known[1]

    def first_source(self, obj: Any) -> Source | None:
        """Where an existing object that was looked at is known from."""
        known = self._known.get(id(obj))
        if known is not None:
            return known[1].source
        noted = self.noted.get(id(obj))
        return None if noted is None else noted[1]

    def where_known(self) -> dict[Source, Value | None]:
        """The sources that objects are known from, with their values; None where only a call that
        was repeated has looked at the object."""
        found: dict[Source, Value | None] = {source: None for _, source in self.noted.values()}
        for _, value in self._known.values():
            if value.source is not None:
                found[value.source] = value
        return found

    def has_met(self, names: Iterable[tuple[int, str]]) -> bool:
        """Has one of these globals (by the id of their dict) been looked for?"""
        roots = self.const_roots
        return any(
            scope in roots and ("item", name) in roots[scope].children for scope, name in names
        )

    def objects_met(self) -> Iterator[Any]:
        """Every existing object that was come across, looked at or not."""
        for value in self._loaded.values():
            yield value.obj
        for obj, _ in self._known.values():
            yield obj

    def looked_at(self) -> Iterator[tuple[Any, Source | None, Value | None]]:
        """Every existing object that was looked at, where it is known from, and its value; None
        where only a call that was repeated has looked at it."""
        for obj, value in self._known.values():
            yield obj, value.source, value
        for key, (obj, source) in self.noted.items():
            if key not in self._known:
                yield obj, source, None
