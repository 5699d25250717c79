"""Files that are written whole or not at all, and by one writer at a time.

In: a path and the new content. Out: the file, readable by those who could read the one before, or
by those who can read any new file; whatever goes wrong, what was there before stays. Imports
nothing of framejit. Next room: report.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from typing import IO, BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file beside ``path`` that takes its place, owner and mode at the end. Raises OSError."""
    path = os.path.realpath(path)  # a link stays one
    folder, name = os.path.split(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _permit(temporary, path)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _permit(temporary: str, path: str | os.PathLike[str]) -> None:
    """Give a new file the owner and the mode of the one at ``path``. What cannot be given is not:
    nobody may read it who could not before."""
    try:
        before = os.stat(path)
    except OSError:
        with contextlib.suppress(OSError):
            os.chmod(temporary, 0o666 & ~_umask())
        return
    mode = stat.S_IMODE(before.st_mode) & 0o777
    now = os.stat(temporary)
    if (before.st_uid, before.st_gid) != (now.st_uid, now.st_gid):
        try:
            os.chown(temporary, before.st_uid, before.st_gid)
        except OSError:  # what the other group was allowed to do, this one is not
            mode &= 0o707
    with contextlib.suppress(OSError):
        os.chmod(temporary, mode)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """One writer at a time, among all processes; a lock of a dead process is free."""
    file = lock_file(path, wait=True)
    try:
        yield
    finally:
        unlock(file)


def lock_file(path: str, wait: bool) -> IO[str] | None:
    """The lock of ``path``, until `unlock`; None if another process has it, unless this one is to
    ``wait``."""
    if not os.path.isdir(folder := os.path.dirname(path) or os.curdir):
        raise FileNotFoundError(errno.ENOENT, f"There is no folder {folder}", path)
    file = open(f"{path}.lock", "a", encoding="utf-8")  # noqa: SIM115 - until `unlock`
    try:
        import fcntl  # not on every platform: elsewhere each has its own way

        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except ImportError:
        pass
    except BlockingIOError:
        file.close()
        return None
    except BaseException:
        file.close()
        raise
    return file


def unlock(file: IO[str] | None) -> None:
    """Let go of a lock, also of one that a child of this process has inherited."""
    if file is None:
        return
    with contextlib.suppress(ImportError, OSError):
        import fcntl  # not on every platform

        fcntl.flock(file, fcntl.LOCK_UN)
    file.close()
