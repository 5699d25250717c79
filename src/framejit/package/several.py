"""A file that compiled objects come from and go to: ``compile(package=...)`` and `packaged`.

In: compiled objects, as they are made, and the path of a package. Out: each has what the file holds
for it; what was compiled besides is written, for all of them at once, when a block or the process
ends. There is one `PackageFile` per path and process. Next room: callables.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import Any

from framejit.exc import PackageError
from framejit.package.container import Reader, is_foreign
from framejit.package.data import Json
from framejit.package.files import Path, check_arguments, load, opened, save
from framejit.package.identity import check_environment, is_made_for
from framejit.report import messages


class PackageFile:
    """The compiled objects of one path; those that nobody else uses any more are let go."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.key: bytes | None = None
        self.lock = threading.RLock()
        #: Compiled objects, each with the number of its entries that the file holds.
        self._members: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._reader: Reader | None = None
        #: What the file holds, and who has it.
        self._rows: list[tuple[Json, weakref.ref[Any] | None]] = []
        #: Which file that is: somebody may have put another one in its place.
        self._stamp: tuple[int, ...] = ()

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
        self._reader, self._rows, self._stamp = None, [], stamp
        if not stamp:
            return
        try:
            reader = opened(self.path, self.key)
            rows = reader.manifest["objects"]
            devices = {device for row in rows for device in row["devices"]}
            check_environment(reader.path, reader.manifest["environment"], devices)
        except PackageError as error:
            messages.warn_package_refused(str(error))
        except (KeyError, TypeError) as error:
            messages.warn_package_refused(f"the manifest of {self.path} is not right ({error})")
        else:
            self._reader = reader
            alive = [(root, root.member().identity) for root in self._members]
            for row in rows:
                mine = [pair for pair in alive if is_made_for(row["object"], pair[1])]
                if mine:
                    alive.remove(mine[0])
                self._rows.append((row, weakref.ref(mine[0][0]) if mine else None))

    def use_key(self, key: bytes | None) -> None:
        """From now on the file is signed with ``key``, if one is given, and read only if it is."""
        if key is not None and key != self.key:
            self.key, self._stamp = key, ()

    def add(self, root: Any, skip_source_check: bool = False) -> None:
        """Give a compiled object what the file holds for it; of several of one name the first that
        fits, if possible one that nobody has. What does not fit is compiled anew, with a warning.
        """
        with self.lock:
            self._refresh()
            self._members[root] = 0
            member = root.member()
            now = member.identity
            places = [place for place in self._rows if is_made_for(place[0]["object"], now)]
            if self._reader is None or not places:
                return
            places.sort(key=lambda place: not _is_free(place[1]))
            try:
                taken = load(self._reader, [row for row, _ in places], member, skip_source_check)
            except PackageError as error:
                messages.warn_package_refused(str(error))
                gone = {id(row) for row, owner in places if _is_free(owner)}  # of use to nobody
                self._rows = [place for place in self._rows if id(place[0]) not in gone]
                return
            self._rows = [
                (row, weakref.ref(root) if row is taken and _is_free(owner) else owner)
                for row, owner in self._rows
            ]

    def save_news(self) -> None:
        """Write the file if there is anything that it does not hold. Raises PackageError."""
        with self.lock:
            counts = {root: root.compiler.compiled_anew for root in self._members}
            if all(count <= self._members[root] for root, count in counts.items()):
                return
            # Those that only have what another one has, too, would make the file grow.
            owners = {id(owner()) for _, owner in self._rows if owner is not None}
            written = {
                id(root): root.member()
                for root, count in counts.items()
                if count or (id(root) in owners and root.compiler.library is not None)
            }
            others = [
                (self._reader, row)
                for row, owner in self._rows
                if self._reader is not None and (owner is None or id(owner()) not in written)
            ]
            if is_foreign(self.path):
                raise PackageError(f"{self.path} is not a framejit package: it is not replaced")
            save(self.path, written.values(), self.key, others)
            self._refresh()
            self._members.update(counts)


def _is_free(owner: weakref.ref[Any] | None) -> bool:
    return owner is None or owner() is None


_files: dict[str, PackageFile] = {}
_lock = threading.Lock()


def package_file(path: Path, key: bytes | None = None) -> PackageFile:
    """The file of that path. Raises TypeError for a bad argument, PackageError for a folder."""
    absolute = os.path.abspath(check_arguments(path, key))
    if os.path.exists(absolute) and not os.path.isfile(absolute):
        raise PackageError(f"{absolute} is not a regular file")
    with _lock:
        found = _files.get(absolute)
        if found is None:
            found = _files[absolute] = PackageFile(absolute)
    with found.lock:
        found.use_key(key)
    return found


@atexit.register
def _save_all() -> None:
    for file in _files.values():
        try:
            file.save_news()
        except PackageError as error:
            messages.warn_package_refused(str(error))
