"""A package that was loaded: its entries by frame, waiting for the calls they were made for.

In: an opened package and the compiler it is loaded into. Out: what the compiler asks:
which frames it has entries for, and the entry that fits a call. Next: identity, api.
"""

from __future__ import annotations

import base64
import json
import marshal
import sys
import types
import weakref
from collections.abc import Iterator
from typing import Any

from framejit.capture.target import Target
from framejit.collection import no_collection
from framejit.compiled_frame import CompiledFrame
from framejit.graph.stand_ins import StandIns
from framejit.package import naming
from framejit.package.container import Reader
from framejit.package.data import Codes
from framejit.package.descriptions import Home, Json
from framejit.package.entries import WaitingEntry
from framejit.report import messages
from framejit.shapes.profile import Profile
from framejit.values.stdlib.cached_functions import FILLING


def frame_key(target: Target, home: Home) -> str:
    """What a frame is called in every process: its code's content and where in it it starts."""

    def place(namespace: dict[str, Any]) -> str:
        return "@" if namespace is home.namespace else str(namespace.get("__name__"))

    def layout(point: Any) -> Json:
        if point is None:
            return None
        return [
            point.code.co_qualname, naming.code_hash(point.code), point.index,
            sorted(point.bound), sorted(point.nulls), point.explicit_depth,
        ]  # fmt: skip

    start = [target.code.co_qualname, naming.code_hash(target.code), place(target.namespace)]
    callers = [[layout(c.point), place(c.namespace) if c.point else ""] for c in target.callers]
    return json.dumps([*start, layout(target.point), callers])


class LoadedPackage:
    """The saved entries of one compiled object."""

    def __init__(
        self, reader: Reader, row: Json, home: Home, root: types.CodeType, joining: bool = False
    ) -> None:
        self.reader = reader
        #: Others have saved this file since entries were compiled here: some may be the same.
        self.joining = joining
        self.row = row
        self.home = home
        self._code_rows: list[Json] = [*row["codes"]]
        #: What a second package adds to that of the first.
        self.sources: list[Json] = list(row["sources"])
        self.devices = set(row["devices"])
        self.profile = Profile.of(row["profile"])
        self._root = root
        self._codes: dict[int, types.CodeType] = {}
        self._waiting: weakref.WeakKeyDictionary[CompiledFrame, list[WaitingEntry]] = (
            weakref.WeakKeyDictionary()
        )
        self.frames: dict[str, list[WaitingEntry]] = {}
        self._skipped: dict[str, str] = {}
        self._asked: dict[types.CodeType, bool] = {}
        self._frame_rows = {frame["key"]: frame for frame in row["frames"]}
        for key, frame in self._frame_rows.items():
            if frame["skipped"]:
                self._skipped[key] = frame["skipped"]
            self.frames[key] = [
                WaitingEntry(reader, row, home, self.code_at, self._code_rows)
                for row in frame["entries"]
            ]

    def add(self, earlier: LoadedPackage) -> None:
        """Take over what waits in a package that was loaded before, and that this one lacks."""
        held = self.held()
        for key, frame, waiting in earlier.unused():
            if (key, waiting.guards) not in held:
                self.frames.setdefault(key, []).append(waiting)
                self._frame_rows.setdefault(key, frame)
        self._skipped = earlier._skipped | self._skipped
        self.sources += earlier.sources
        self.devices |= earlier.devices
        self.profile.merge(earlier.profile)

    # -- what the compiler asks

    def attach(self, compiled: CompiledFrame) -> None:
        """Remember the entries for a new frame, if there are any."""
        key = frame_key(compiled.target, self.home)
        if key in self._skipped and compiled.hooked:
            compiled.skip("FJ0302", self._skipped[key])
            return
        entries = self.frames.get(key)
        if entries:
            self._waiting[compiled] = list(entries)
            compiled.ask_always = True

    def entry_for(self, compiled: CompiledFrame, slots: tuple[Any, ...]) -> Any:
        """The first waiting entry whose guards hold; it waits no longer."""
        waiting = self._waiting.get(compiled)
        if not waiting:
            return None
        for entry in list(waiting):
            FILLING.append(True)
            try:
                with no_collection():
                    made = entry.bind(compiled, slots)
            except Exception as error:  # whatever an edited file, or the backend, may raise
                waiting.remove(entry)
                messages.warn_package_entry(compiled.target.name, self.reader.path, error)
                continue
            finally:
                FILLING.clear()
            if made is not None:
                waiting.remove(entry)
                compiled.add_entry(made)
                return made
        return None

    def has(self, target: Target) -> bool:
        """Is there anything about this frame?"""
        known = self._asked.get(target.code)
        if known is None:
            known = self._asked[target.code] = frame_key(target, self.home) in self.frames
        return known

    def will_fit(
        self, compiled: CompiledFrame, slots: tuple[Any, ...], stand_ins: StandIns
    ) -> bool:
        """Is there an entry for this call, as it is once its tensors have content?"""
        FILLING.append(True)
        try:
            with no_collection():
                waiting = self._waiting.get(compiled, ())
                return any(not entry.explain(compiled, slots, stand_ins) for entry in waiting)
        finally:
            FILLING.clear()

    def explain(self, compiled: CompiledFrame, slots: tuple[Any, ...]) -> list[str]:
        """Why the waiting entries do not fit."""
        return [entry.explain(compiled, slots) for entry in self._waiting.get(compiled, ())]

    # -- for saving again

    def unused(self) -> Iterator[tuple[str, Json, WaitingEntry]]:
        """Entries that no call has asked for yet: key of the frame, its row, the entry."""
        attached = {
            frame_key(compiled.target, self.home): waiting
            for compiled, waiting in self._waiting.items()
        }
        for key, entries in self.frames.items():
            for entry in attached.get(key, entries):
                yield key, self._frame_rows[key], entry

    def held(self) -> set[tuple[str, tuple[str, ...]]]:
        """Frames and guards of the unused entries."""
        return {(key, waiting.guards) for key, _, waiting in self.unused()}

    def codes(self) -> Codes:
        """A table that goes on where this package's ends."""
        table = Codes()
        table.append(self._code_rows)
        return table

    def code_at(self, number: int) -> types.CodeType:
        """A code object: that of this process where it does the same, else the saved one."""
        known = self._codes.get(number)
        if known is None:
            try:
                row = self._code_rows[number]
            except IndexError:
                raise self.reader.damaged(f"there is no code {number}") from None
            for found in codes_named(row["module"], row["name"], self._root, self.home):
                if naming.code_hash(found) == row["hash"]:
                    known = found
                    break
            else:
                known = marshal.loads(base64.b64decode(row["code"]))
                assert isinstance(known, types.CodeType)
            self._codes[number] = known
        return known


def codes_named(
    module: str, name: str, root: types.CodeType, home: Home
) -> Iterator[types.CodeType]:
    """Code objects of this process with that qualified name; imports nothing."""
    first, *nested = name.split(".<locals>.")
    if root.co_qualname == name:
        yield root
    outer = _function_named(module, first, home)
    starts = [root] if outer is None else [root, outer]
    for start in starts:
        if start.co_qualname == name and start is not root:
            yield start
        if nested or "<" in name:
            yield from _inside(start, name)


def _function_named(module: str, name: str, home: Home) -> types.CodeType | None:
    holder = sys.modules.get(module)
    namespace = home.namespace if module == home.name or holder is None else vars(holder)
    if holder is None and module not in (home.name, "__main__"):
        return None
    first, *rest = name.split(".")
    found: Any = namespace.get(first)
    for part in rest:
        found = next(
            (vars(c)[part] for c in getattr(found, "__mro__", ()) if part in vars(c)), None
        )
    for _ in range(20):  # decorators
        if isinstance(found, (staticmethod, classmethod, types.MethodType)):
            found = found.__func__
        elif isinstance(found, property):
            found = found.fget
        elif isinstance(found, types.FunctionType) and found.__code__.co_qualname == name:
            return found.__code__
        else:
            found = getattr(found, "__wrapped__", None)
    return None


def _inside(code: types.CodeType, name: str) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_qualname == name:
                yield constant
            yield from _inside(constant, name)
