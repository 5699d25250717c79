"""The state that a call can see and change, noted before it, and put back after it.

In: a function with its arguments. Out: a `Snapshot` of everything that is reachable from them: the
content of each object, the bytes of each tensor's memory, the globals and class attributes that
code names, torch's settings, generators of random numbers. A `Moment` is what has changed since;
any moment can be put back, in place, so every object stays the same object. Next: printed.
"""

from __future__ import annotations

import random
import sys
import types
from typing import Any

import numpy
import torch
from torch.utils.hooks import RemovableHandle

from framejit import native
from framejit.audit.comparison import ATOMS, MISSING, Comparison
from framejit.audit.contents import Aspect, NotSaveable, State, TensorContent, aspects_of
from framejit.audit.reach import Reach
from framejit.graph import global_state

_ATOMS = frozenset([*ATOMS, type(MISSING)])
#: What is looked into in ways of their own.
_SPECIAL = (native.CompiledFunction, types.ModuleType, types.FunctionType, type)
#: The state at one time: by key, the contents of what differs from when the snapshot was taken.
Moment = dict[int, list[Any]]


class _Memory(State):
    """The bytes of tensors. What of them differs is said by `Snapshot.difference`."""

    def unchanged(self, obj: Any, content: Any) -> bool:
        return _same_bytes(obj, content)


def _write_memory(storage: torch.UntypedStorage, content: torch.UntypedStorage) -> None:
    if storage.nbytes() != content.nbytes():
        storage.resize_(content.nbytes())
    storage.copy_(content)


class _Settings(State):
    """Torch's settings, as one object and by name, and how many hooks were registered so far."""

    def difference(self, path: str, one: Any, two: Any, comparison: Comparison) -> str | None:
        for name, value in one[1].items():
            if two[1].get(name) != value:
                return f"torch's setting {name}: {two[1].get(name)}, not {value}"
        return None


def _read_settings(_: object) -> Any:
    return global_state.current(), native.GlobalState().export()[0], RemovableHandle.next_id


def _write_settings(_: object, content: Any) -> None:
    if global_state.current() is not content[0]:
        content[0].set()
    RemovableHandle.next_id = content[2]


class _Random(State):
    """Default generators of random numbers."""

    def difference(self, path: str, one: Any, two: Any, comparison: Comparison) -> str | None:
        whose = f"{path}'s generator of random numbers"
        return None if self.same(one, two) else f"the state of {whose} differs"


_TORCH_RANDOM = _Random(torch.Generator.get_state, torch.Generator.set_state)
_NUMPY = numpy.random.RandomState
#: (whose, the generator, its state)
GENERATORS: list[tuple[str, Any, State]] = [
    ("torch", torch.default_generator, _TORCH_RANDOM),
    ("Python", random._inst, _Random(random.Random.getstate, random.Random.setstate)),  # type: ignore
    ("numpy", numpy.random.mtrand._rand, _Random(_NUMPY.get_state, _NUMPY.set_state)),  # type: ignore
]
_MEMORY = _Memory(torch.UntypedStorage.clone, _write_memory)
_SETTINGS = _Settings(_read_settings, _write_settings)


class Snapshot:
    """Everything reachable from ``roots``, a list of (name, object).

    Raises NotSaveable, with the way to an object that cannot be put back.
    """

    def __init__(self, roots: list[tuple[str, Any]]) -> None:
        self.reach = Reach()
        #: By key (the id of an object or of a namespace's `Names`, the address of memory): the
        #: object, its contents, the key of what it was found in, what it is called there ("": what
        #: the contents of that say).
        self.objects: dict[int, tuple[Any, list[tuple[Aspect, Any]], int, str]] = {}
        self.tensors: list[int] = []
        self.memory: dict[int, torch.UntypedStorage] = {}
        self.streams = {id(stream) for stream in (sys.stdout, sys.stderr, sys.stdin,
                        sys.__stdout__, sys.__stderr__, sys.__stdin__)}  # fmt: skip
        #: Those that may change.
        self.changing: list[int] = []
        self._kinds: dict[type, tuple[tuple[Aspect, ...], bool, bool]] = {}
        self._todo = [(*root, 0) for root in reversed(roots) if type(root[1]) not in _ATOMS]
        while self._todo:
            label, obj, parent = self._todo.pop()
            if id(obj) not in self.objects:
                self._visit(label, obj, parent)
        self.reach.new_names()
        for names in self.reach.spaces.values():
            self._hold(id(names), names.owner, names, names.shown)
        for key, storage in self.memory.items():
            self._hold(key, storage, _MEMORY, "memory")
        #: What belongs to no object of the program's.
        self.settings = [id(_SETTINGS)]
        self._hold(id(_SETTINGS), None, _SETTINGS, "torch's settings")
        on_gpus = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
        for whose, generator, state in (
            *GENERATORS, *[("torch.cuda", generator, _TORCH_RANDOM) for generator in on_gpus]
        ):  # fmt: skip
            self.settings.append(id(generator))
            if id(generator) not in self.objects:
                self._hold(id(generator), generator, state, whose)

    def _hold(self, key: int, obj: Any, aspect: Aspect, label: str) -> None:
        """Note one kind of content of what the walk does not lead to."""
        self.objects[key] = obj, [(aspect, aspect.take(obj))], 0, label
        self.changing.append(key)

    # -- the walk ----------------------------------------------------------------------------------

    def _visit(self, label: str, obj: Any, parent: int) -> None:
        cls, key = type(obj), id(obj)
        aspects, changes, special = self._kinds.get(cls) or self._kind(cls)
        if special and isinstance(obj, native.CompiledFunction):
            self._todo.append((label, obj.function, parent))
            return
        if key in self.streams:
            return
        contents: list[tuple[Aspect, Any]] = []
        self.objects[key] = obj, contents, parent, label
        if special:
            self._code(label, obj)
        for aspect in aspects:
            try:
                content = aspect.take(obj)
            except NotSaveable as error:
                raise NotSaveable(f"{self.path(key)}: {error}") from None
            if type(content) is TensorContent:
                self.tensors.append(key)
                if content.key is not None and obj.device.type != "meta":
                    self.memory.setdefault(content.key, obj.untyped_storage())
            contents.append((aspect, content))
            for part in aspect.inside(content):
                if type(part) not in _ATOMS:
                    self._todo.append(("", part, key))
        if changes:
            self.changing.append(key)

    def _kind(self, cls: type) -> tuple[tuple[Aspect, ...], bool, bool]:
        """Of the instances of a class: what may change, whether there is such, and whether they are
        looked into in a way of their own."""
        aspects = aspects_of(cls)  # type: ignore[arg-type]
        special = issubclass(cls, _SPECIAL)
        found = aspects, any(not aspect.fixed for aspect in aspects), special
        self._kinds[cls] = found
        if not special:
            self._found(self.reach.cls(cls))
        return found

    def _code(self, label: str, obj: Any) -> None:
        """Functions, classes and modules."""
        if isinstance(obj, types.ModuleType):
            self._found(self.reach.module(label, obj))
            return
        self._found(self.reach.cls(obj if isinstance(obj, type) else type(obj)))
        if isinstance(obj, types.FunctionType):
            self._found(self.reach.function(obj))

    def _found(self, found: Any) -> None:
        for label, value in found:
            if type(value) not in _ATOMS:
                self._todo.append((label, value, 0))

    def path(self, key: int) -> str:
        """How a program would write it, about."""
        text = ""
        while key in self.objects:
            obj, _, key, label = self.objects[key]
            text = (label or self._label(obj, key)) + text
        return text.replace(".__dict__['", ".").replace("']", "") if "__dict__" in text else text

    def _label(self, obj: Any, parent: int) -> str:
        """What an object is called in another one."""
        _, contents, _, _ = self.objects[parent]
        parts = [part for aspect, content in contents for part in aspect.parts(content)]
        return next((name for name, part in parts if part is obj), "")

    # -- what happened since -----------------------------------------------------------------------

    def now(self) -> Moment:
        """The state now, as far as it differs."""
        moment: Moment = {}
        for key in self.changing:
            obj, contents, _, _ = self.objects[key]
            for aspect, before in contents:
                if not aspect.fixed and not aspect.unchanged(obj, before):
                    moment[key] = [aspect.take(obj) for aspect, _ in contents]
                    break
        return moment

    def at(self, moment: Moment, key: int) -> list[Any]:
        """The contents of one of `objects` at a moment."""
        return moment.get(key) or [before for _, before in self.objects[key][1]]

    def put(self, then: Moment, now: Moment) -> None:
        """Go to the state of ``then``; ``now`` is the state at present.

        Raises NotSaveable where that is not possible; some of it may be put back already.
        """
        keys = {**now, **then}
        for key in sorted(keys, key=lambda key: key not in self.memory):  # tensors need theirs
            self._put(key, self.at(then, key))

    def put_settings(self) -> None:
        """Go to the settings that were in force when the snapshot was taken."""
        for key in self.settings:
            self._put(key, self.at({}, key))

    def _put(self, key: int, wanted: list[Any]) -> None:
        obj, contents, _, _ = self.objects[key]
        for (aspect, _), content in zip(contents, wanted, strict=True):
            if not aspect.unchanged(obj, content):
                aspect.put(obj, content)

    # -- comparing ---------------------------------------------------------------------------------

    def drew(self, moment: Moment) -> bool:
        """Were random numbers of torch drawn until then?"""
        drawn = [self.objects[key][0] for key in self.settings if key in moment]
        return any(isinstance(obj, torch.Generator) for obj in drawn)

    def comparison(self, tolerance: Any) -> Comparison:
        return Comparison(tolerance, self.objects, self.memory)

    def difference(self, right: Moment, other: Moment, comparison: Comparison) -> str | None:
        """The first difference between the states at two moments, in the order of the walk."""
        for key, (_, contents, _, _) in self.objects.items():
            if key in right or key in other:
                states = zip(contents, self.at(right, key), self.at(other, key), strict=True)
                for (aspect, _), one, two in states:
                    if key in self.memory:
                        found = self._memory_difference(key, one, two, comparison.tolerance)
                    else:
                        found = aspect.difference(self.path(key), one, two, comparison)
                    if found is not None:
                        return found
        return None

    def _memory_difference(self, memory: int, one: Any, two: Any, tolerance: Any) -> str | None:
        if _same_bytes(one, two):
            return None
        plain = Comparison(tolerance)
        for key in self.tensors:
            content = self.objects[key][1][0][1]
            if content.key == memory:
                try:
                    plain.compare_values(content.on(one), content.on(two), self.path(key))
                except AssertionError as error:
                    return str(error)
        return None


def _same_bytes(one: torch.UntypedStorage, two: torch.UntypedStorage) -> bool:
    size = one.nbytes()
    if size != two.nbytes():
        return False
    words, rest = divmod(size, 8)
    parts = [(torch.int64, 0, words), (torch.uint8, size - rest, rest)]
    return all(torch.equal(_part(one, *p), _part(two, *p)) for p in parts if p[-1])


def _part(storage: torch.UntypedStorage, dtype: torch.dtype, start: int, count: int) -> Any:
    """Some of the memory. Whole words are faster to compare than bytes."""
    empty = torch.empty(0, dtype=dtype, device=storage.device)
    return empty.set_(storage, start, (count,), (1,))  # type: ignore[call-overload]
