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
from framejit.audit.comparison import MISSING, Comparison, differences, storage_key
from framejit.audit.contents import Aspect, NotSaveable, aspects_of
from framejit.audit.reach import Reach
from framejit.audit.tensors import TensorContent
from framejit.graph import global_state

_ATOMS = frozenset([int, float, str, bool, type(None), bytes, complex, torch.dtype, torch.device,
                    type(MISSING)])  # fmt: skip
#: What is looked into in ways of their own.
_SPECIAL = (native.CompiledFunction, types.ModuleType, types.FunctionType, type)


class Moment:
    """The state at one time: what differs from when the snapshot was taken."""

    def __init__(self) -> None:
        self.objects: dict[int, list[Any]] = {}
        self.memory: dict[int, torch.UntypedStorage] = {}
        self.spaces: dict[int, dict[str, Any]] = {}
        self.settings: Settings = Settings()


class Settings:
    """What belongs to no object: torch's settings and the default generators of random numbers."""

    def __init__(self) -> None:
        self.torch = global_state.current()
        self.flags = native.GlobalState().export()[0]
        self.random = [torch.random.get_rng_state(), random.getstate(), numpy.random.get_state()]
        if torch.cuda.is_initialized():
            self.random += torch.cuda.get_rng_state_all()
        self.handles = RemovableHandle.next_id

    def put(self, now: Settings) -> None:
        """Go back to these; ``now`` are those in force."""
        if now.torch is not self.torch:
            self.torch.set()
        for position, state in enumerate(self.random):
            if not _same_state(state, now.random[position]):
                if position > 2:
                    torch.cuda.set_rng_state(state, position - 3)  # type: ignore[arg-type]
                else:
                    _SETTERS[position](state)
        RemovableHandle.next_id = self.handles

    def drew(self, other: Settings) -> bool:
        """Were random numbers of torch drawn between the two?"""
        return any(
            isinstance(one, torch.Tensor) and not torch.equal(one, two)  # type: ignore[arg-type]
            for one, two in zip(self.random, other.random, strict=True)
        )

    def difference(self, other: Settings) -> str | None:
        """How ``other`` differs, for users."""
        for name, value in self.flags.items():
            if other.flags.get(name) != value:
                return f"torch's setting {name}: {other.flags.get(name)}, not {value}"
        for position, state in enumerate(self.random):
            if not _same_state(state, other.random[position]):
                whose = _GENERATORS[min(position, 3)]
                return f"the state of {whose}'s generator of random numbers differs"
        return None


_SETTERS: list[Any] = [torch.random.set_rng_state, random.setstate, numpy.random.set_state]
_GENERATORS = ("torch", "Python", "numpy", "torch.cuda")


def _same_state(one: Any, two: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, two)
    if isinstance(one[1], numpy.ndarray):
        return bool((one[1] == two[1]).all() and one[2:] == two[2:])
    return bool(one == two)


class Snapshot:
    """Everything reachable from ``roots``, a list of (name, object).

    Raises NotSaveable, with the way to an object that cannot be put back.
    """

    def __init__(self, roots: list[tuple[str, Any]]) -> None:
        self.reach = Reach()
        #: By id: the object, its contents, the object that it was found in, what it is called
        #: there ("": what the other one's contents say).
        self.objects: dict[int, tuple[Any, list[tuple[Aspect, Any]], int, str]] = {}
        self.memory: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}
        self.tensors: list[int] = []
        self.streams = {id(stream) for stream in (sys.stdout, sys.stderr, sys.stdin,
                        sys.__stdout__, sys.__stderr__, sys.__stdin__)}  # fmt: skip
        #: Those that may change.
        self.changing: list[tuple[int, Any, list[tuple[Aspect, Any]]]] = []
        self._kinds: dict[type, tuple[tuple[Aspect, ...], bool, bool]] = {}
        self._todo = [(*root, 0) for root in reversed(roots) if type(root[1]) not in _ATOMS]
        while self._todo:
            label, obj, parent = self._todo.pop()
            if id(obj) not in self.objects:
                self._visit(label, obj, parent)
        self.reach.new_names()
        self.settings = Settings()

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
        self.objects[key] = (obj, contents, parent, label)
        if special:
            self._code(label, obj)
        for aspect in aspects:
            try:
                content = aspect.take(obj)
            except NotSaveable as error:
                raise NotSaveable(f"{self.path(key)}: {error}") from None
            if type(content) is TensorContent:
                self._remember(obj, content, key)
            contents.append((aspect, content))
            for part in aspect.inside(content):
                if type(part) not in _ATOMS:
                    self._todo.append(("", part, key))
        if changes:
            self.changing.append((key, obj, contents))

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

    def _remember(self, tensor: torch.Tensor, content: TensorContent, key: int) -> None:
        """The memory of a tensor."""
        self.tensors.append(key)
        if content.key is not None and content.key not in self.memory:
            storage = tensor.untyped_storage()
            if storage.device.type != "meta":
                self.memory[content.key] = storage, storage.clone()

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
        moment = Moment()
        for key, obj, contents in self.changing:
            for aspect, before in contents:
                if not aspect.fixed and not aspect.unchanged(obj, before):
                    moment.objects[key] = [aspect.take(obj) for aspect, _ in contents]
                    break
        for key, (storage, before) in self.memory.items():
            if not _same_bytes(storage, before):
                moment.memory[key] = storage.clone()
        for key, names in self.reach.spaces.items():
            values = names.read()
            if any(values[name] is not old for name, old in names.values.items()):
                moment.spaces[key] = values
        return moment

    def put(self, then: Moment | None, now: Moment) -> None:
        """Go to the state of ``then`` (None: of the snapshot); ``now`` is the state at present.

        Raises NotSaveable where that is not possible; some of it may be put back already.
        """
        for key in {**now.memory, **(then.memory if then else {})}:
            storage, before = self.memory[key]
            wanted = then.memory.get(key, before) if then else before
            if storage.nbytes() != wanted.nbytes():
                storage.resize_(wanted.nbytes())
            storage.copy_(wanted)
        for key in {**now.objects, **(then.objects if then else {})}:
            obj, contents, _, _ = self.objects[key]
            values = then.objects.get(key) if then else None
            for position, (aspect, before) in enumerate(contents):
                content = before if values is None else values[position]
                if not aspect.unchanged(obj, content):
                    aspect.put(obj, content)
        for key in {**now.spaces, **(then.spaces if then else {})}:
            names = self.reach.spaces[key]
            names.put(then.spaces.get(key, names.values) if then else names.values)
        (then.settings if then else self.settings).put(now.settings)

    # -- comparing ---------------------------------------------------------------------------------

    def comparison(self, tolerance: Any) -> Comparison:
        return Comparison(tolerance, self.objects, self.memory)

    def difference(self, right: Moment, other: Moment, comparison: Comparison) -> str | None:
        """The first difference between the states at two moments, in the order of the walk."""
        for key in self.objects:
            if key in right.objects or key in other.objects:
                _, contents, _, _ = self.objects[key]
                for position, (aspect, before) in enumerate(contents):
                    pair = [
                        aspect.seen(moment.objects[key][position] if key in moment.objects
                                    else before)
                        for moment in (right, other)
                    ]  # fmt: skip
                    found = differences([(self.path(key), *pair)], comparison)
                    if found is not None:
                        return found
        for key, names in self.reach.spaces.items():
            if key in right.spaces or key in other.spaces:
                ours, theirs = (m.spaces.get(key, names.values) for m in (right, other))
                where = "global " if isinstance(names.owner, dict) else f"{names.owner.__name__}."
                pairs = [(where + name, ours[name], theirs[name]) for name in ours]
                found = differences(pairs, comparison)
                if found is not None:
                    return found
        return self._memory_difference(right, other, comparison) or right.settings.difference(
            other.settings
        )

    def _memory_difference(self, right: Moment, other: Moment, comparison: Any) -> str | None:
        keys = {
            key for key in {*right.memory, *other.memory}
            if not _same_bytes(*(m.memory.get(key, self.memory[key][1]) for m in (right, other)))
        }  # fmt: skip
        if not keys:
            return None
        plain = Comparison(comparison.tolerance)
        for key in self.tensors:
            _, contents, _, _ = self.objects[key]
            content = contents[0][1]
            if content.key in keys:
                before = self.memory[content.key][1]
                ours, theirs = (
                    content.on(moment.memory.get(content.key, before)) for moment in (right, other)
                )
                try:
                    plain.compare_values(ours, theirs, self.path(key))
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


__all__ = ["Moment", "NotSaveable", "Snapshot", "storage_key"]
