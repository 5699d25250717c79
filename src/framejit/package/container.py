"""The file: a manifest and named parts, written at once, and checked before a byte of it is used.

In: a JSON manifest and the bytes of every part. Out: one file, replaced atomically; and a `Reader`
that hands out parts whose checksum was right: constants as they are mapped, everything else from
memory, so that nobody changes it after the check. Layout: magic, format, length of the manifest,
SHA-256 of header and manifest, optional signature, manifest, parts at
multiples of 64 bytes with zeros between them: no byte is without a check. There are no paths and
no compression inside, so neither can be abused. Next: naming.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import json
import mmap
import os
import re
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from framejit import config
from framejit.exc import PackageError
from framejit.files import replacing

MAGIC = b"framejit"
FORMAT = 13
_HEADER = struct.Struct("<8sIIQ32s32s")  # magic, format, signed, length, checksum, signature
_ALIGNMENT = 64
_MANIFEST_LIMIT = 1 << 28
_NAME = re.compile(r"[a-z0-9_.\- ]{1,80}")
_CONSTANTS = re.compile(r"constants \d+|artifact \d+ .*constants")


def write(
    path: str | os.PathLike[str],
    manifest: dict[str, Any],
    parts: Mapping[str, bytes],
    key: bytes | None = None,
) -> int:
    """Write a package next to ``path`` and move it there; returns its size in bytes."""
    key = required_key(key)
    listed: list[dict[str, Any]] = []
    position = 0
    for name, data in parts.items():
        assert _NAME.fullmatch(name), name
        position += -position % _ALIGNMENT
        checksum = hashlib.sha256(data).hexdigest()
        listed.append({"name": name, "offset": position, "size": len(data), "sha256": checksum})
        position += len(data)
    text = json.dumps(manifest | {"parts": listed, "size": position}).encode()
    signature = bytes(32) if key is None else _signature(key, text)
    header = _header(text, int(key is not None), signature)
    target = Path(os.path.realpath(path))
    if target.exists():  # a device would be replaced, too
        with _regular(target) as file:
            _check_key(file, key)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file:
        file.write(header + text)
        file.write(bytes(-file.tell() % _ALIGNMENT))
        start = file.tell()
        for entry, data in zip(listed, parts.values(), strict=True):
            file.write(bytes(start + entry["offset"] - file.tell()))
            file.write(data)
        return file.tell()


def required_key(key: bytes | None) -> bytes | None:
    """``key``, or else the one that the process requires of every package; None if it requires
    none. PackageError if that one cannot be read: nothing is loaded without it."""
    path = config.package_key_file
    if key is not None or not path:
        return key
    try:
        with _regular(path) as file:
            key = file.read()
    except OSError as error:
        reason = error.strerror or error
        raise PackageError(f"config.package_key_file {path} cannot be read: {reason}") from error
    if not key:
        raise PackageError(f"config.package_key_file {path} is empty: it must hold a secret")
    return key


def is_foreign(path: str) -> bool:
    """Is there a file that nobody would call a package? One that is damaged still begins as one."""
    try:
        with _regular(path) as file:
            start = file.read(len(MAGIC))
    except OSError:
        return False
    return bool(start) and start != MAGIC


def _regular(path: str | os.PathLike[str]) -> BinaryIO:
    """An opened file; nobody waits for what may come out of a pipe. Raises OSError."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return open(path, "rb")


def _check_key(file: BinaryIO, key: bytes | None) -> None:
    """PackageError if it is a whole package that was signed with another key than ``key``."""
    header = file.read(_HEADER.size)
    if len(header) == _HEADER.size:
        _, _, signed, length, _, signature = _HEADER.unpack(header)
        text = file.read(min(length, _MANIFEST_LIMIT))
        mine = key is not None and hmac.compare_digest(_signature(key, text), signature)
        if signed and not mine and header == _header(text, signed, signature):
            raise PackageError(f"{file.name} is signed with a key that was not given: not replaced")


def _header(manifest: bytes, signed: int, signature: bytes) -> bytes:
    """The first bytes of a package; the checksum is that of all of them and of the manifest."""
    fields = (MAGIC, FORMAT, signed, len(manifest))
    checksum = hashlib.sha256(_HEADER.pack(*fields, bytes(32), signature) + manifest)
    return _HEADER.pack(*fields, checksum.digest(), signature)


def _signature(key: bytes, manifest: bytes) -> bytes:
    return hmac.new(key, MAGIC + manifest, hashlib.sha256).digest()


class Reader:
    """An opened package. ``manifest`` is checked; a part is checked when it is read first."""

    def __init__(self, path: str | os.PathLike[str], key: bytes | None = None) -> None:
        self.path = str(path)
        key = required_key(key)
        #: Somebody who has the key has made it; otherwise anybody may have, checksums and all.
        self.is_authentic = key is not None
        with self._problems(), _regular(path) as file:
            try:
                # Private: who writes to a constant does not write to the file.
                self._data: Any = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            except ValueError:  # an empty file cannot be mapped
                self._data = b""
        text = self._manifest_text(key)
        with self._problems():
            manifest = json.loads(text)
            if type(manifest) is not dict:
                raise ValueError("the manifest is no object")
            self._parts: dict[str, tuple[int, int, str]] = {}
            end = _HEADER.size + len(text)
            start = self._next_part(end)
            end = start
            for part in manifest["parts"]:
                name, size = part["name"], part["size"]
                if not _NAME.fullmatch(name) or name in self._parts:
                    raise ValueError(f"a part is called {name!r}")
                begin = self._next_part(end)
                if type(size) is not int or size < 0 or start + part["offset"] != begin:
                    raise ValueError(f"part {name!r} is not where it should be")
                self._parts[name] = (begin, size, part["sha256"])
                end = begin + size
            if not start + manifest["size"] == end == len(self._data):
                raise ValueError("its size is wrong")
        self.manifest: dict[str, Any] = manifest
        self._checked: dict[str, memoryview] = {}

    def _next_part(self, end: int) -> int:
        """Where a part starts after one that ends at ``end``; between them there are zeros."""
        start = end + -end % _ALIGNMENT
        if any(self._data[end:start]):
            raise ValueError("there is something between its parts")
        return start

    @contextlib.contextmanager
    def _problems(self) -> Iterator[None]:
        """Whatever goes wrong with what the file says is a PackageError."""
        try:
            yield
        except PackageError:
            raise
        except OSError as error:
            raise PackageError(f"{self.path} cannot be read: {error.strerror or error}") from error
        except Exception as error:
            raise self.damaged(str(error) or type(error).__name__) from error

    def damaged(self, what: str) -> PackageError:
        """The error for a file that is not what was once written."""
        return PackageError(f"the package {self.path} is damaged: {what}")

    def _manifest_text(self, key: bytes | None) -> bytes:
        data = self._data
        if data[:8] != MAGIC:
            raise PackageError(f"{self.path} is not a framejit package")
        if len(data) < _HEADER.size:
            raise self.damaged("the header is cut off")
        _, version, signed, length, _, signature = _HEADER.unpack(data[: _HEADER.size])
        if version != FORMAT:
            raise PackageError(
                f"the package {self.path} has format {version}; this framejit reads {FORMAT}"
            )
        if length > _MANIFEST_LIMIT or _HEADER.size + length > len(data):
            raise self.damaged("the manifest is cut off")
        text = bytes(data[_HEADER.size : _HEADER.size + length])
        if _header(text, signed, signature) != data[: _HEADER.size]:
            raise self.damaged("the checksum of the manifest is wrong")
        if signed != 1 and (signed or any(signature)):
            raise self.damaged("the header is wrong")
        if key is not None:
            if not signed:
                raise PackageError(f"the package {self.path} is not signed, but a key was given")
            if not hmac.compare_digest(_signature(key, text), signature):
                raise PackageError(f"the package {self.path} was not signed with this key")
        return text

    @property
    def part_sizes(self) -> dict[str, int]:
        """Every part with its size in bytes."""
        return {name: size for name, (_, size, _) in self._parts.items()}

    def part(self, name: str) -> memoryview:
        """The bytes of a part. PackageError unless its checksum is right."""
        known = self._checked.get(name)
        if known is not None:
            return known
        if name not in self._parts:
            raise self.damaged(f"there is no part {name!r}")
        start, size, checksum = self._parts[name]
        view = memoryview(self._data)[start : start + size]
        if not _CONSTANTS.fullmatch(name):
            view = memoryview(bytes(view))
        if hashlib.sha256(view).hexdigest() != checksum:
            raise self.damaged(f"the checksum of part {name!r} is wrong")
        self._checked[name] = view
        return view

    def json(self, name: str) -> Any:
        """A part that holds JSON."""
        view = self.part(name)
        with self._problems():
            return json.loads(bytes(view))

    def verify(self) -> None:
        """Check every part. PackageError at the first one that is wrong."""
        for name in self._parts:
            self.part(name)
