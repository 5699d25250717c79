"""A file that compiled objects come from and go to: ``compile(package=...)`` and `packaged`.

In: compiled objects, as they are made, and the path of a package. Out: each has what the file holds
for it; what was compiled besides is written, for all of them at once, when a block or the process
ends. There is one `PackageFile` per path and process. Next room: callables.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import weakref
from typing import Any, NamedTuple

from framejit.backends.exclusive import exclusive
from framejit.exc import PackageError, warn
from framejit.files import locked
from framejit.forks import Lock
from framejit.package.container import Reader, is_foreign
from framejit.package.descriptions import Json
from framejit.package.files import Path, check_arguments, load, opened, save
from framejit.package.identity import check_environment, is_made_for
from framejit.package.turns import Turn


class _Place(NamedTuple):
    """What a file holds for one object, and who has it."""

    reader: Reader
    row: Json
    owner: weakref.ref[Any] | None

    @property
    def is_free(self) -> bool:
        return self.owner is None or self.owner() is None

    def is_for(self, identity: Json) -> bool:
        return is_made_for(self.row["object"], identity)


class PackageFile:
    """The compiled objects of one path; those that nobody else uses any more are let go."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.key: bytes | None = None
        #: Compiled objects, each with the number of its entries that the file holds.
        self._members: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        #: What the file holds.
        self._places: list[_Place] = []
        #: Which file that is: somebody may have put another one in its place.
        self._stamp: tuple[int, ...] = ()
        self._turn = Turn(path, self._save_in_turn, self._is_busy)
        #: Objects for which something was compiled in this turn: they stay until it is written.
        self._kept: list[Any] = []

    # -- taking turns with other processes

    def begin(self, wait: bool) -> bool:
        """It is this process's turn to compile what the file lacks, and what others have compiled
        is there to be used. False if that is another one's, and this one is not to ``wait``."""
        if self._turn.is_held:
            return True
        if not self._turn.begin(wait):
            return False
        self._take_over([*self._members])
        return True

    def leave(self, used: bool) -> None:
        """What a call needed is there; ``used``: it was compiled."""
        if used and self._turn.is_held:
            self._kept = [(root, root.module and root.module()) for root in self._members]
        self._turn.leave(used)

    def _save_in_turn(self) -> None:
        try:
            self.save_news()
        finally:
            self._kept.clear()

    def _is_busy(self) -> bool:
        compilers = [root.compiler for root in self._members]
        return not all(one.later is None or one.later.is_done(one) for one in compilers)

    def _refresh(self) -> None:
        """Open the file, if it is not the one that is open."""
        try:
            status = os.stat(self.path)
            stamp: tuple[int, ...] = (
                status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns,
            )  # fmt: skip
        except OSError:
            stamp = ()
        if stamp == self._stamp:
            return
        self._places, self._stamp = [], stamp
        if not stamp:
            return
        try:
            reader = opened(self.path, self.key)
            rows = reader.manifest["objects"]
            devices = {device for row in rows for device in row["devices"]}
            check_environment(reader.path, reader.manifest["environment"], devices)
        except PackageError as error:
            warn(f"framejit: {error}")
        except (KeyError, TypeError) as error:
            warn(f"framejit: the manifest of {self.path} is not right ({error})")
        else:
            alive = [(root, root.member().identity) for root in self._members]
            for row in rows:
                mine = [pair for pair in alive if is_made_for(row["object"], pair[1])]
                if mine:
                    alive.remove(mine[0])
                owner = weakref.ref(mine[0][0]) if mine else None
                self._places.append(_Place(reader, row, owner))

    def use_key(self, key: bytes | None) -> None:
        """From now on the file is signed with ``key``, if one is given, and read only if it is."""
        if key is not None and key != self.key:
            self.key, self._stamp = key, ()

    def add(self, root: Any, skip_source_check: bool = False, takes_turns: bool = False) -> None:
        """Give a compiled object what the file holds for it; of several of one name the first that
        fits, if possible one that nobody has. What does not fit is compiled anew, with a warning.
        ``takes_turns``: by one process, and the others have it as well.
        """
        with exclusive():
            root.compiler.turns = self if takes_turns else None
            self._refresh()
            self._members[root] = 0
            root.file = self
            identity = root.member().identity
            places = [place for place in self._places if place.is_for(identity)]
            if not places:
                return
            places.sort(key=lambda place: not place.is_free)
            try:
                self._give(root, places, skip_source_check)
            except PackageError as error:
                warn(f"framejit: {error}")
                gone = {id(place.row) for place in places if place.is_free}  # of use to nobody
                self._places = [place for place in self._places if id(place.row) not in gone]

    def forget(self, root: Any) -> None:
        """What a compiled object compiles is not written."""
        with exclusive():
            self._members.pop(root, None)

    def _give(
        self, root: Any, places: list[_Place], skip_source_check: bool, joining: bool = False
    ) -> None:
        rows = [place.row for place in places]
        taken = load(places[0].reader, rows, root.member(), skip_source_check, joining)
        self._places = [
            place._replace(owner=weakref.ref(root)) if place.row is taken and place.is_free
            else place
            for place in self._places
        ]  # fmt: skip

    def save_news(self) -> None:
        """Write the file if there is anything that it does not hold; what other processes have put
        there meanwhile stays. Raises PackageError.
        """
        with exclusive():
            counts = {root: root.compiler.compiled_anew for root in self._members}
            if all(count <= self._members[root] for root, count in counts.items()):
                return
            try:
                os.makedirs(os.path.dirname(self.path), exist_ok=True)
                with contextlib.nullcontext() if self._turn.is_held else locked(self.path):
                    self._save(counts)
            except OSError as error:
                why = error.strerror or error
                raise PackageError(f"{self.path} cannot be written: {why}") from error

    def _save(self, counts: dict[Any, int]) -> None:
        self._take_over(list(counts))
        # Those that only have what another one has, too, would make the file grow.
        owners = {id(place.owner()) for place in self._places if place.owner is not None}
        written = {
            id(root): root.member()
            for root, count in counts.items()
            if count or (id(root) in owners and root.compiler.library is not None)
        }
        others = [
            (place.reader, place.row)
            for place in self._places
            if place.owner is None or id(place.owner()) not in written
        ]
        if is_foreign(self.path):
            raise PackageError(f"{self.path} is not a framejit package: it is not replaced")
        save(self.path, written.values(), self.key, others)
        self._refresh()
        self._members.update(counts)

    def _take_over(self, roots: list[Any]) -> None:
        """Have what other processes have written since the file was opened."""
        known, stamp = self._places, self._stamp
        self._refresh()
        if self._stamp != stamp:
            self._join(known, roots)

    def _join(self, known: list[_Place], roots: list[Any]) -> None:
        """Somebody has put another file there: the compiled objects get what it holds for them;
        objects that only the old one held stay."""
        self._places = [place._replace(owner=None) for place in self._places]
        for root in roots:
            identity = root.member().identity
            free = [place for place in self._places if place.is_free and place.is_for(identity)]
            if free:
                with contextlib.suppress(PackageError):  # made for another object of that name
                    self._give(root, free, False, joining=True)
        here = [place.row["object"] for place in self._places]
        self._places += [place for place in known if not any(map(place.is_for, here))]


_files: dict[str, PackageFile] = {}
_lock = Lock()


def package_file(path: Path, key: bytes | None = None) -> PackageFile:
    """The file of that path. Raises TypeError for a bad argument, PackageError for a folder."""
    absolute = os.path.abspath(check_arguments(path, key))
    if os.path.exists(absolute) and not os.path.isfile(absolute):
        raise PackageError(f"{absolute} is not a regular file")
    with _lock:
        found = _files.get(absolute)
        if found is None:
            found = _files[absolute] = PackageFile(absolute)
    with exclusive():
        found.use_key(key)
    return found


@atexit.register
def _save_all() -> None:
    for file in _files.values():
        try:
            file.save_news()
        except PackageError as error:
            warn(f"framejit: {error}")
