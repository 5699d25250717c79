"""What results of operations share with their operands: parts, and objects in attributes.

In: tensors made of tensors that a capture has, existing and made, and what is known of a result.
Out: where the class's code took a part or an object (a dict of options) from an operand, the value
of that very thing, so that the result has it too, whatever a backend puts there. It is found by
comparing what the fakes hold. Next: wrappers, codegen.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from framejit.exc import GraphBreak
from framejit.graph.holding import described
from framejit.graph.opaque import is_handle_class, is_value_class
from framejit.source import Source
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Value, is_user_class
from framejit.values.core.constants import PURE_TYPES, constant_value
from framejit.values.core.inline_policy import is_library
from framejit.values.core.namespaces import entries, real_namespace
from framejit.values.core.space import Space
from framejit.values.torch.opaque import Held
from framejit.values.torch.reach import is_in_reach
from framejit.values.torch.tensors import TensorValue

#: So deep, and so many, are containers and objects looked into.
_MOST_NESTED = 8
_MOST_OBJECTS = 2_000
_CONTAINERS = (dict, list, tuple)
_ALONE = (type, types.ModuleType, types.FunctionType, enum.Enum)


class Origin(NamedTuple):
    """What a fake holds, and how to get the values that it stands for: more than one where several
    tensors hold it. ``is_made``: the program has made it, in this capture."""

    obj: Any
    values: list[Callable[[], Value]]
    is_made: bool


class PartOf(NamedTuple):
    """How to get a part of an existing tensor."""

    space: Space
    whole: Callable[[], Value]
    name: str

    def __call__(self) -> Value:
        """The part as graphs take it."""
        return self.space.getattr_now(self.whole(), self.name).realize()

    def existing(self) -> Value:
        """The same as it is found outside."""
        get: Any = getattr(self.whole, "existing", self.whole)
        return get().part(self.space, self.name)  # type: ignore[no-any-return]


def has_identity(obj: Any) -> bool:
    """Can a program tell an object from an equal one, and does it matter to it?"""
    kind = type(obj)
    if kind in PURE_TYPES or isinstance(obj, _ALONE) or is_value_class(kind):
        return False
    if kind is tuple or kind is torch.Size:
        return any(map(has_identity, obj))
    return True


def state_of(fake: Any) -> dict[str, Any]:
    """The attributes of a tensor, its parts among them."""
    found = dict(vars(fake))
    for base in type(fake).__mro__:
        for name, member in vars(base).items():
            if type(member) is types.MemberDescriptorType and not is_library(base.__module__):
                found.setdefault(name, getattr(fake, name, None))
    return found


def _inside(obj: Any) -> list[tuple[str, Any, Any]]:
    """What a container or an object consists of: accessor and key of a source, and the content."""
    kind = type(obj)
    if kind is dict:
        return [("item", key, part) for key, part in obj.items() if type(key) in (str, int, bool)]
    if kind is list or kind is tuple:
        return [("index", place, part) for place, part in enumerate(obj)]
    if isinstance(obj, torch.Tensor) or not is_user_class(kind) or is_library(kind.__module__):
        return []
    own = None if is_handle_class(kind) else real_namespace(obj)
    return [("item", key, part) for key, part in own.items()] if type(own) is dict else []


class Shared:
    """What the tensors of a capture hold, by the identities of what their fakes do."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.origins: dict[int, Origin] = {}
        #: Has the program made anything of it?
        self.any_made = False
        #: How parts of results that no operand has are taken out of them.
        self.untaken: dict[int, tuple[Any, Callable[[], Value]]] = {}
        self._noted: set[Any] = set()
        self._left = 0

    def note_all(self, wrappers: Iterable[Any]) -> None:
        """Note what these hold, as far as operations have run on them."""
        for value in wrappers:
            if value not in self._noted and value.example is not None:
                fake = value.example._fake
                if fake is not None:
                    self._noted.add(value)
                    if value.is_made:
                        self._note_made(value, fake)
                    else:
                        self._left = _MOST_OBJECTS
                        whole = functools.partial(_itself, value)
                        self._note_existing(whole, fake, value.obj, value.source)

    def _add(self, obj: Any, origin: Callable[[], Value], is_made: bool = False) -> None:
        known = self.origins.get(id(obj))
        if known is None:
            self.origins[id(obj)] = Origin(obj, [origin], is_made)
        else:
            known.values.append(origin)
        self.any_made = self.any_made or is_made

    # -- existing tensors --------------------------------------------------------------------------

    def _note_existing(
        self, whole: Callable[[], Value], fake: Any, real: Any, source: Source
    ) -> None:
        """What a tensor or a part of one holds, of which ``whole`` gives the value."""
        for name in fake.__tensor_flatten__()[0]:
            part = getattr(fake, name)
            get: Any = PartOf(self.space, whole, name)
            self._add(part, get)
            if is_traceable_wrapper_subclass(part) and name in vars(real):
                child = source.child("dict").child("item", name)
                self._note_existing(get, part, vars(real)[name], child)
        for name, obj in state_of(fake).items():
            if name in vars(fake) and name in vars(real):
                child = source.child("dict").child("item", name)
                self._note_state(obj, vars(real)[name], child, ())
            elif name not in vars(fake) and hasattr(real, name):
                self._note_state(obj, getattr(real, name), source.child("attr", name), ())

    def _note_state(self, obj: Any, real: Any, source: Source, outer: tuple[int, ...]) -> None:
        """An object that a fake holds where the existing tensor holds another, or the same."""
        kind = type(obj)
        if kind is not type(real) or isinstance(obj, torch.Tensor) or not has_identity(obj):
            return
        if id(obj) in outer or len(outer) > _MOST_NESTED or self._left == 0:
            return
        self._left -= 1
        self._add(obj, functools.partial(self.space.load, source, real))
        base = source if kind in _CONTAINERS else source.child("dict")
        theirs = {key: part for _, key, part in _inside(real)}
        for accessor, key, part in _inside(obj):
            if key in theirs:
                child = base.child(accessor, key)
                self._note_state(part, theirs[key], child, (*outer, id(obj)))

    # -- tensors that the program makes ------------------------------------------------------------

    def _note_made(self, value: Any, fake: Any) -> None:
        for key, (_, content) in entries(value).items():
            if key in vars(fake):
                self._note_value(vars(fake)[key], content.realize())

    def _note_value(self, obj: Any, value: Value) -> None:
        """An object that a node holds for a value."""
        if not has_identity(obj):
            return
        self._add(obj, functools.partial(_itself, value), is_made=type(obj) in (dict, list))
        if type(value) in (ListValue, TupleValue):
            for part, one in zip(obj, value.items, strict=True):  # type: ignore[attr-defined]
                self._note_value(part, one.realize())
        elif type(value) is DictValue:
            for key, (_, one) in value.pairs.items():
                self._note_value(obj[key], one.realize())

    # -- results -----------------------------------------------------------------------------------

    def note_result(
        self, fake: Any, operands: Iterable[Value], take: Callable[[str], Value]
    ) -> None:
        """An operation has made a tensor of others: plain operands may be parts of it, and of other
        parts it says how they are taken out of it."""
        given = {
            id(value.example._fake): value
            for value in operands
            if isinstance(value, TensorValue) and value.example is not None
        }
        for name in fake.__tensor_flatten__()[0]:
            part = getattr(fake, name)
            if id(part) in given and id(part) not in self.origins:
                self._add(part, functools.partial(_itself, given[id(part)]))
            elif id(part) not in self.origins:
                self.untaken.setdefault(id(part), (part, functools.partial(take, name)))

    def part(self, part: torch.Tensor) -> Value | None:
        """The value of a part of some tensor that the capture has, if it is one."""
        _, take = self.untaken.pop(id(part), (None, None))
        if take is not None:
            self._add(part, functools.partial(_itself, take()))
        return self.known(part)

    def part_outside(self, part: torch.Tensor) -> Value | None:
        """The same where generated code may have it; None if nobody has asked for it."""
        origin = self.origins.get(id(part))
        first = None if origin is None else origin.values[0]
        return first.existing() if isinstance(first, PartOf) else first and first()

    def known(self, obj: Any) -> Value | None:
        """The value that something in a fake stands for, if that is known."""
        origin = self.origins.get(id(obj))
        if origin is None:
            return None
        first, *others = [get().realize() for get in origin.values]
        return first if all(one is first for one in others) else None

    def value(self, cls: type, obj: Any) -> Value:
        """The value of what an attribute of a result of that class holds."""
        known = self.known(obj) if has_identity(obj) else None
        if known is not None:
            return known
        if not has_identity(obj):
            return constant_value(self.space, obj)
        kind = type(obj)
        is_plain = kind in _CONTAINERS or is_library(kind.__module__) or _is_frozen(kind)
        if not is_plain or (kind in _CONTAINERS and is_in_reach(self.space, cls, obj)):
            raise GraphBreak("FJ0113", f"a {kind.__name__} that a {cls.__name__} has got")
        if kind not in _CONTAINERS:
            return constant_value(self.space, obj)
        made: Value
        if type(obj) is dict:
            made = DictValue({
                key: (self.space.constant(key), self.value(cls, part)) for key, part in obj.items()
            })  # fmt: skip
        else:
            items = [self.value(cls, part) for part in obj]
            made = ListValue(items) if type(obj) is list else TupleValue(items)
        self._add(obj, functools.partial(_itself, made), is_made=type(obj) is not tuple)
        return made

    def shares(self, obj: Any, depth: int = 0) -> bool:
        """Is there anything of an operand's in what a result holds?"""
        if depth > _MOST_NESTED or not has_identity(obj):
            return False
        inside = _inside(obj) if type(obj) in _CONTAINERS else []
        return id(obj) in self.origins or any(self.shares(part, depth + 1) for _, _, part in inside)

    def is_unchanged(self, fake: Any) -> bool:
        """Does what a result holds, and the program has made or made up, still say the same?"""
        if not self.any_made:
            return True
        return all(map(self._as_noted, self._made_in(state_of(fake).values(), 0)))

    def _made_in(self, objects: Iterable[Any], depth: int) -> Iterator[Origin]:
        for obj in objects:
            origin = self.origins.get(id(obj))
            if origin is not None and origin.is_made:
                yield origin
            elif depth <= _MOST_NESTED and type(obj) in _CONTAINERS:
                yield from self._made_in([part for _, _, part in _inside(obj)], depth + 1)

    def _as_noted(self, origin: Origin) -> bool:
        value = origin.values[0]()
        return described(Held(self.space).template(value)) == described(origin.obj)


def _is_frozen(cls: type) -> bool:
    parameters = getattr(cls, "__dataclass_params__", None)
    return parameters is not None and parameters.frozen


def _itself(value: Value) -> Value:
    return value


def shared(space: Space) -> Shared:
    """What is known of it in a capture."""
    if space.shared is None:
        space.shared = Shared(space)
    space.shared.note_all(space.wrappers)
    return space.shared  # type: ignore[no-any-return]
