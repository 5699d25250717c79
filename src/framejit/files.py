"""Files that are written whole or not at all, and by one writer at a time.

In: a path and what shall stand there. Out: the file, as anybody's new file may be read; whatever
goes wrong, what was there before stays. Imports nothing of framejit. Next room: report.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file beside ``path`` that takes its place at the end. Raises OSError."""
    folder, name = os.path.split(os.path.abspath(path))
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(OSError):
            os.chmod(temporary, 0o644 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def locked(path: str) -> Iterator[None]:
    """One writer at a time, among all processes; a lock of a dead process is free."""
    try:
        import fcntl  # not on every platform
    except ImportError:
        yield
        return
    if not os.path.isdir(folder := os.path.dirname(path) or os.curdir):
        raise FileNotFoundError(errno.ENOENT, f"There is no folder {folder}", path)
    with open(f"{path}.lock", "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
