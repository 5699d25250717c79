"""What the program drops, where it sees the end: who still holds it, and when nobody does.

In: the frames being executed, the generators that are suspended inside a ``with`` or ``try``, and
existing objects whose end is seen (`values.ends`). Out: those whose last reference is gone; CPython
closes them at that very instruction, which runs their ``finally`` blocks and leaves their ``with``
blocks.
Next: interpreter.loop.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import types
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

from framejit.exc import FrameKept
from framejit.interpreter.frame import Frame
from framejit.values.containers.dict_contents import DictContent
from framejit.values.containers.mappings import DictValue, InstanceDictValue
from framejit.values.containers.sequences import ListValue
from framejit.values.containers.sets import SetValue
from framejit.values.containers.started_iterators import OVER_SEQUENCES, StartedIterator
from framejit.values.core.base import CallRequest, Value
from framejit.values.core.ends import function_of, is_divided, search_what_is_seen
from framejit.values.core.keys import ReferenceKey, key_of_real
from framejit.values.core.namespaces import instance_namespace
from framejit.values.core.space import Space
from framejit.values.objects.cells import CellValue
from framejit.values.objects.exceptions import UNSEEN, ExceptionValue
from framejit.values.objects.instances import ObjectValue
from framejit.values.torch.torch_library import WeakReferenceValue

#: One step from an object to something that it holds: (how, where, key, what is found there);
#: a step that cannot be looked at again is a "root".
_Hop = tuple[str, Any, Any, Any]
_SEQUENCES = (list, tuple, deque)
_WALKED = {Frame, CallRequest, dict, *_SEQUENCES, set, frozenset, types.FunctionType}
_WEAK = (WeakReferenceValue, ReferenceKey, InstanceDictValue)
#: Where objects note what was done to them; what they hold is elsewhere.
_HISTORY: dict[type, tuple[str, ...]] = {
    DictContent: ("moved", "removed", "written"), SetValue: ("log", "start"),
    ExceptionValue: ("parts",),
}  # fmt: skip
_slot_names: dict[type, tuple[str, ...]] = {}


class Existing:
    """An existing object whose end is seen, or that keeps such an object: in a slot of the frame,
    or at ``key`` in ``parent``, which the program has changed."""

    __slots__ = ("key", "obj", "parent")

    def __init__(self, obj: Any, parent: Value | None = None, key: Any = None) -> None:
        self.obj = obj.__self__ if type(obj) is types.MethodType else obj
        self.parent = parent
        self.key = key


def seen_parts(parent: Value) -> list[Existing]:
    """What an existing object has held so far whose end is seen."""
    obj = getattr(parent, "obj", None)
    if obj is None or search_what_is_seen(obj, None, inside=True) is False:
        return []
    return [
        Existing(item, parent, key) for key, item in _parts(obj) if search_what_is_seen(item, None)
    ]


def _parts(obj: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(obj, dict):
        yield from dict.items(obj)
    elif isinstance(obj, (list, set, deque, types.CellType, *OVER_SEQUENCES)):
        yield from ((None, item) for item in gc.get_referents(obj))
    yield from (instance_namespace(obj) or {}).items()
    for base in type.__getattribute__(type(obj), "__mro__"):
        for name, member in type.__getattribute__(base, "__dict__").items():
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):
                    yield name, member.__get__(obj)


class Roots:
    """What holds values while a program is executed symbolically."""

    def __init__(self, space: Space) -> None:
        self.space = space
        #: Is the captured frame the only one that surely holds what is in its slots?
        self.owns_slots = False
        #: The frames that `Interpreter.run` was entered with, and that have not returned.
        self.bases: list[Frame] = []
        #: Frames of generators that are being resumed.
        self.resumed: list[Frame] = []
        #: An exception's traceback holds the frames that it has left.
        self.left: dict[Value, list[tuple[int, Frame]]] = {}
        #: That of an error that was there before: positions where a part of a frame is kept that
        #: has ended.
        self.left_before: list[tuple[Value, int, Frame]] = []
        #: How many effects there were when changed objects were last looked at, which ones were.
        self.noted = 0
        self.watched: set[Any] = set()

    def leaves(self, error: Value, frame: Frame) -> None:
        """``error`` leaves a frame, or is caught in it: its traceback keeps the frame."""
        if frame.info.code.co_filename in UNSEEN:
            return
        if isinstance(error, ExceptionValue):
            error.left.append((len(error.trace), frame))
            self.left[error] = error.left
        else:
            self.left.setdefault(error, []).append((0, frame))

    def left_parts(self, error: Value, real: BaseException, frames: list[Frame]) -> None:
        """Note the parts of frames that broke and go on in ``frames`` in an error's traceback."""
        going_on = {function_of(frame.info.code): frame for frame in frames}
        trace, position = BaseException.__getattribute__(real, "__traceback__"), 0
        while trace is not None:
            code = trace.tb_frame.f_code
            if is_divided(code) and (frame := going_on.get(function_of(code))) is not None:
                self.left_before.append((error, position, frame))
            trace, position = trace.tb_next, position + 1

    def kept_frame(
        self, frames: list[Frame], keeps: Callable[[Frame], bool], raised_at: dict[Value, int],
        watched: Container[Any],
    ) -> tuple[int, FrameKept] | None:  # fmt: skip
        """A frame that an error keeps cannot be divided: the variables of its last part would end
        without the error. ``keeps``: is there something in them whose end is seen? ``watched``:
        all such that not only callers may hold. Returns where to break instead."""
        last = frames[-1]
        if last.instruction.op == "RAISE_VARARGS" and last.instruction.arg:
            keeping = [keeps(frame) for frame in frames]
            if any(keeping) and any(frame.may_catch for frame in frames):
                for frame in frames[keeping.index(True) :]:
                    frame.seen = True
        for error, left in self.left.items() if watched else ():
            passed = {one for _, frame in left for one in frame.chain()}  # it keeps callers, too
            kept = [frame for frame in frames if frame in passed and keeps(frame)]
            if kept and self.holder(error, last, (last.before,)) is not None:
                step = max(raised_at.get(error, 0), kept[0].first_step)  # raised before?
                return step, FrameKept(frames.index(kept[0]))
        return None

    def changed_parts(self) -> dict[Existing, None]:
        """The program has changed existing objects: what they held may be dropped."""
        effects, watched = self.space.effects, self.watched
        self.noted = effects.count
        found = []
        for value in [v for v in effects.changed if v not in watched]:
            watched.add(value)
            found += seen_parts(value)
        for place, change in effects.globals.items():
            if place not in watched:
                watched.add(place)
                old = change.namespace.get(place[1])
                found += [Existing(old)] if search_what_is_seen(old, None) else []
        for cls, names in self.space.class_writes.items():
            for name in [name for name in names if (cls, name) not in watched]:
                watched.add((cls, name))
                old = type.__getattribute__(cls, "__dict__").get(name)
                found += [Existing(old)] if search_what_is_seen(old, None) else []
        return dict.fromkeys(found)

    def hops(self, frame: Frame | None, extra: tuple[Any, ...], surely: bool) -> Iterator[_Hop]:
        """The first step to everything that is held: by ``frame`` and its callers, by ``extra``, by
        objects outside that the program has changed (``surely``: and that something else holds)."""
        for item in extra:
            yield "root", None, None, item
        child: Frame | None = None
        while frame is not None:
            yield "frame", None, None, frame
            # In the middle of an operation: its operands are still held.
            if any(child is base for base in self.bases):
                yield "root", None, None, frame.before
            child, frame = frame, frame.parent
        for resumed in self.resumed:
            yield "root", None, None, resumed
        effects = self.space.effects
        for value in effects.changed:
            source = value.source if surely and self.owns_slots else None
            if source is None or source.root.accessor != "slot":
                yield "root", None, None, value
        for change in effects.globals.values():
            yield "root", None, None, change.value
        for names in self.space.class_writes.values():
            yield "root", None, None, names

    def children(self, obj: Any) -> Iterator[_Hop]:
        """The steps from one object to what it holds."""
        yield from _children(obj)
        if isinstance(obj, Value):
            source = obj.source
            if source is not None and source.accessor == "attr" and source.key == "__traceback__":
                source = source.base
            left = [frame for _, frame in self.left.get(obj, ())]
            left += [frame for error, _, frame in self.left_before if error.source is source]
            for frame in dict.fromkeys([one for inner in left for one in inner.chain()]):
                yield "root", None, None, frame

    def holder(
        self, wanted: Any, frame: Frame | None, extra: tuple[Any, ...] = (), surely: bool = False
    ) -> list[_Hop] | None:
        """A way from something that is held to ``wanted``; None if there is none, or (``surely``,
        or for existing objects) perhaps none."""
        real = None
        if isinstance(wanted, Existing):
            if wanted.parent is not None and not _has_lost(wanted.parent, wanted.key, wanted.obj):
                return [("kept", None, self.space.effects.count, None)]
            real = wanted.obj
        seen: dict[int, tuple[_Hop, int]] = {}
        todo: list[Any] = []
        for hop in self.hops(frame, extra, surely or real is not None):
            if _is_walked(hop[3]) and id(hop[3]) not in seen:
                seen[id(hop[3])] = hop, 0
                todo.append(hop[3])
        while todo:
            obj = todo.pop()
            if obj is wanted or (real is not None and _stands_for(obj, real)):
                found = obj
                break
            for hop in self.children(obj):
                item = hop[3]
                if _is_walked(item) and id(item) not in seen:
                    seen[id(item)] = hop, id(obj)
                    todo.append(item)
        else:
            return None
        way: list[_Hop] = []
        at = id(found)
        while at:
            hop, at = seen[at]
            way.append(hop)
        way.reverse()
        return way

    def keep_to_the_end(self, value: Existing, frame: Frame) -> None:
        """The generated function gets what only its variables hold."""
        found = (self.holder(value, frame) or [("kept", None, None, None)])[-1][3]
        if found is not None and found.source is not None:
            found.source.captured = True

    def still_holds(self, way: list[_Hop] | None, frame: Frame | None) -> bool:
        """Is a way that was found before still there?"""
        if way is not None and way[0][0] == "kept":
            return way[0][2] == self.space.effects.count  # type: ignore[no-any-return]
        if way is None or way[0][0] != "frame" or any(hop[0] == "root" for hop in way):
            return False
        held = way[0][3]
        if held.left:
            return False
        if held.info.code.co_flags & inspect.CO_GENERATOR:  # it may be suspended
            while frame is not held:
                if frame is None:
                    return False
                frame = frame.parent
        for how, where, key, item in way[1:]:
            if how == "slot":
                if getattr(where, key, None) is not item:
                    return False
            elif how == "index":
                if key >= len(where) or where[key] is not item:
                    return False
            elif where.get(key) is not item:
                return False
        return True


def _children(obj: Any) -> Iterator[_Hop]:
    if isinstance(obj, dict):
        for key, item in obj.items():
            yield "root", None, None, key
            yield "item", obj, key, item
    elif isinstance(obj, _SEQUENCES):
        for index, item in enumerate(obj):
            yield "index", obj, index, item
    elif isinstance(obj, (set, frozenset)):
        for item in obj:
            yield "root", None, None, item
    elif isinstance(obj, types.FunctionType):
        for item in gc.get_referents(*obj.__closure__ or ()):  # cells may be empty
            yield "root", None, None, item
    else:
        for name in _names(type(obj)):
            item = getattr(obj, name, None)
            if _is_walked(item):
                yield "slot", obj, name, item


def reached(values: list[Value], errors: bool = True) -> Iterator[Any]:
    """The values and all that they hold, ``errors`` and what these hold included."""
    todo: list[Any] = list(values)
    seen = set(map(id, todo))
    while todo:
        obj = todo.pop()
        if isinstance(obj, ExceptionValue) and not errors:
            continue
        yield obj
        for hop in _children(obj):
            if _is_walked(hop[3]) and id(hop[3]) not in seen:
                seen.add(id(hop[3]))
                todo.append(hop[3])


def _stands_for(value: Any, real: Any) -> bool:
    obj = getattr(value, "obj", None) if isinstance(value, Value) else None
    return obj is real or (type(obj) is types.MethodType and obj.__self__ is real)


def _has_lost(parent: Value, key: Any, real: Any) -> bool:
    """Has the program taken ``real`` out of an existing object or container?"""
    items: Iterable[Any]
    container = getattr(parent, "container", None)
    if isinstance(parent, ObjectValue):
        if container is not None and _has_lost(container, key, real):
            return True
        if key not in parent.attributes:
            return False
        items = (parent.attributes[key],)
    elif isinstance(parent, DictValue):
        if not parent.rewritten and key_of_real(key) not in parent.written:
            return False
        items = [pair[1] for pair in parent.pairs.values()]
    elif isinstance(parent, ListValue):
        if not parent.loaded:
            return False
        items = parent.items
    elif isinstance(parent, SetValue):
        items = parent.values.values()
    elif isinstance(parent, StartedIterator):
        return parent.ended
    elif isinstance(parent, CellValue):
        items = (parent.contents,)
    else:
        return False
    return not any(_stands_for(item, real) for item in items)


def _is_walked(obj: Any) -> bool:
    kind = type(obj)  # isinstance() would ask objects of the program
    if kind in _WALKED or issubclass(kind, Value):
        return True
    return kind.__module__ == "framejit.values.core.keys"


def _names(kind: type) -> tuple[str, ...]:
    names = _slot_names.get(kind)
    if names is None:
        if kind is Frame:
            names = ("slots", "stack", "names", "result", "entry_handled")
        else:
            found = [
                (cls, getattr(cls, "__slots__", ())) for cls in kind.__mro__ if cls not in _WEAK
            ]
            names = tuple(
                name
                for cls, part in found
                for name in ((part,) if isinstance(part, str) else part)
                if name != "obj"
                and name not in _HISTORY.get(cls, ())
                and isinstance(getattr(kind, name), types.MemberDescriptorType)  # computes nothing
            )
        _slot_names[kind] = names
    return names
