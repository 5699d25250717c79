"""The profile: what varied in earlier runs, so that the next process compiles for it at once.

In: what captures met (`policy.Seen`), files of other processes. Out: a text file per user's choice,
and what a frame starts from. A frame is known by its module, its name and a hash of its code, which
is the same wherever its file lies and whatever else is in it. Files are written whole or not at
all, under a lock, merged with what is there; one that cannot be understood is ignored with one
warning. Next: values.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
import types
from typing import Any

from framejit import config
from framejit.exc import FramejitWarning, warn
from framejit.files import locked, replacing
from framejit.forks import Lock
from framejit.report.messages import checked_path
from framejit.shapes.policy import Seen

VERSION = 1
#: How every profile of this version begins, whatever became of the rest.
_START = f'{{\n "framejit profile": {VERSION},'.encode()
#: What varied in one frame: "L['x'] 2" (name, dimensions) -> {"sizes": [0], "strides": [],
#: "groups": [17 * _DIMENSIONS + 0]}; "L['n'] int" -> {}. Sizes that were equal in each call of a
#: run are a group; sizes that were in the same groups in all runs are expected to be equal.
Facts = dict[str, dict[str, list[int]]]

#: Tensors have no more dimensions than this.
_DIMENSIONS = 64


class ProfileWarning(FramejitWarning):
    """A profile file was ignored."""


class Profile:
    """What varied, by frame."""

    def __init__(self) -> None:
        self.frames: dict[str, Facts] = {}

    def merge(self, other: Profile) -> bool:
        """Add what ``other`` knows; whether that was anything new."""
        new = [self.add(key, facts) for key, facts in other.frames.items()]
        return any(new)

    def add(self, key: str, facts: Facts) -> bool:
        """Add what varied in one frame, at a cost that does not depend on what else is known;
        whether that was anything new."""
        if self.knows(key, facts):
            return False
        mine = self.frames.setdefault(key, {})
        for name, parts in facts.items():
            known = mine.setdefault(name, {})
            for part, dims in parts.items():
                known[part] = sorted({*known.get(part, ()), *dims})
        return True

    def knows(self, key: str, facts: Facts) -> bool:
        """Would adding these change nothing?"""
        mine = self.frames.get(key)
        return mine is not None and all(
            name in mine
            and all(p in mine[name] and {*dims} <= {*mine[name][p]} for p, dims in parts.items())
            for name, parts in facts.items()
        )

    @property
    def data(self) -> dict[str, Any]:
        """For JSON."""
        return {"framejit profile": VERSION, "frames": self.frames}

    def text(self) -> str:
        """The file's content: the same for the same facts, whatever order they came in."""
        return json.dumps(self.data, indent=1, sort_keys=True) + "\n"

    @classmethod
    def parse(cls, text: str) -> Profile:
        """The profile in a file's content. Raises ValueError for anything else."""
        return cls.of(json.loads(text))

    @classmethod
    def of(cls, data: Any) -> Profile:
        """The way back from `data`. Raises ValueError for anything else."""
        if not isinstance(data, dict) or "framejit profile" not in data:
            raise ValueError("it is no framejit profile")
        if data["framejit profile"] != VERSION:
            raise ValueError(
                f"it has version {data['framejit profile']}, this framejit reads {VERSION}"
            )
        made = cls()
        frames = data.get("frames")
        if not isinstance(frames, dict):
            raise ValueError("it lists no frames")
        for key, facts in frames.items():
            mine = made.frames[key] = {}
            if not isinstance(facts, dict):
                raise ValueError(f"the frame {key!r} is damaged")
            for name, parts in facts.items():
                if not isinstance(parts, dict) or not all(map(_is_dims, parts.values())):
                    raise ValueError(f"{name!r} of the frame {key!r} is damaged")
                mine[name] = {part: list(dims) for part, dims in parts.items()}
        return made


def _is_dims(value: Any) -> bool:
    return isinstance(value, list) and all(type(v) is int and v >= 0 for v in value)


# -- frames ----------------------------------------------------------------------------------------


def frame_key(code: types.CodeType, module: str, place: str) -> str:
    """The name of a frame in profiles; ``place`` says which continuation it is, if it is one."""
    from framejit.bytecode.model import code_hash  # not on a release without bytecode.release

    return f"{module}:{code.co_qualname}{place} {code_hash(code)[:16]}"


def facts_of(seen: Seen) -> Facts:
    """What varied, of all that was seen."""
    facts: Facts = {}
    for (name, ndim), tensor in seen.tensors.items():
        sizes = [dim for dim, size in enumerate(tensor.sizes) if size is None]
        strides = [dim for dim, stride in enumerate(tensor.strides) if stride is None]
        if sizes or strides:
            facts[f"{name} {ndim}"] = {"sizes": sizes, "strides": strides}
    for (name, kind), number in seen.numbers.items():
        if number.varied:
            facts[f"{name} {kind}"] = {}
    for group in seen.together():
        members = sorted(f"{name} {ndim} {dim}" for (name, ndim), dim in group)
        digest = int(hashlib.sha256("\n".join(members).encode()).hexdigest()[:8], 16)
        for (name, ndim), dim in group:
            groups = facts[f"{name} {ndim}"].setdefault("groups", [])
            groups.append(digest * _DIMENSIONS + dim)
    return facts


# -- this process ----------------------------------------------------------------------------------

_lock = Lock()
#: What this process has learned, and what it was told by files.
_learned, _told = Profile(), Profile()
_read: set[str] = set()
_problems: set[str] = set()


def start(key: str, seen: Seen, package: Profile | None = None) -> None:
    """Fill in what earlier runs learned about a frame; ``package`` came with what they compiled."""
    path = config.profile
    with _lock:
        if path and path not in _read:
            _read.add(path)
            known = _load(path, missing_is_fine=True)
            if known is not None:
                _told.merge(known)
        facts = list(_told.frames.get(key, {}).items())
    if package is not None:
        facts += package.frames.get(key, {}).items()
    for name, parts in facts:
        source, _, kind = name.rpartition(" ")
        if kind.isdigit():
            sizes, strides = parts.get("sizes", []), parts.get("strides", [])
            groups = [divmod(code, _DIMENSIONS)[::-1] for code in parts.get("groups", [])]
            seen.tell_tensor(source, int(kind), sizes, strides, groups)
        else:
            seen.tell_number(source, kind)


def learn(key: str, seen: Seen) -> None:
    """Remember what a frame's captures have learned; write it when there is a profile."""
    facts = facts_of(seen)
    if not facts:
        return
    with _lock:
        if _learned.add(key, facts) and config.profile and not _told.knows(key, facts):
            try:
                save_profile(config.profile)
            except OSError as error:
                _warn_once(config.profile, f"it cannot be written ({error})")


def forget() -> None:
    """As in a new process."""
    with _lock:
        _learned.frames.clear()
        _told.frames.clear()
        _read.clear()
        _problems.clear()


# -- files -----------------------------------------------------------------------------------------


def save_profile(path: str | os.PathLike[str]) -> None:
    """Write what varied in this process to ``path``, together with what the file says already.

    Safe when many processes write at once, and when one is killed meanwhile. Raises OSError.
    """
    with _lock:
        mine = Profile()
        mine.merge(_told)
        mine.merge(_learned)
    merge_into(checked_path(path), mine)


def load_profile(path: str | os.PathLike[str]) -> None:
    """Use the profile in ``path`` for everything that is compiled from now on.

    A file that is missing, damaged or of another version is ignored with one warning.
    """
    known = _load(checked_path(path), missing_is_fine=False)
    if known is not None:
        with _lock:
            _told.merge(known)


def merge_into(path: str, profile: Profile) -> None:
    """Add ``profile`` to the file at ``path``. Raises OSError, also for a file that is something
    else or newer, which is left as it is; a damaged profile is replaced."""
    path = os.path.abspath(path)
    with locked(path):
        try:
            merged = _parsed(path)
        except FileNotFoundError:
            merged = Profile()
        except ValueError as error:
            with open(path, "rb") as file:
                start = file.read(len(_START))
            if not _START.startswith(start):
                raise FileExistsError(errno.EEXIST, f"It is left as it is: {error}", path) from None
            merged = Profile()
        if not merged.merge(profile) and os.path.exists(path):
            return
        with replacing(path) as file:
            file.write(merged.text().encode())


def _parsed(path: str) -> Profile:
    """What a file says. Raises OSError, or ValueError for what is no profile."""
    with open(path, encoding="utf-8") as file:
        try:
            return Profile.parse(file.read())
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError("it is damaged, or something else") from error


def _load(path: str, missing_is_fine: bool) -> Profile | None:
    try:
        return _parsed(path)
    except FileNotFoundError:
        if missing_is_fine:
            return None
        reason = "there is no such file"
    except (OSError, ValueError) as error:
        reason = str(error) or type(error).__name__
    _warn_once(path, reason)
    return None


def _warn_once(path: str, reason: str) -> None:
    with _lock:
        if path in _problems:
            return
        _problems.add(path)
    warn(f"the profile {path} is ignored: {reason}", ProfileWarning)


def show(profile: Profile) -> str:
    """A profile for people: one frame per paragraph."""
    lines = []
    for key, facts in sorted(profile.frames.items()):
        name, _, digest = key.rpartition(" ")
        lines.append(f"{name}  ({digest})")
        for what, parts in sorted(facts.items()):
            source, _, kind = what.rpartition(" ")
            if not kind.isdigit():
                lines.append(f"  {source}: {kind}")
                continue
            sizes = ", ".join(map(str, parts.get("sizes", [])))
            strides = ", ".join(map(str, parts.get("strides", [])))
            text = [f"sizes {sizes}"] * bool(sizes) + [f"strides {strides}"] * bool(strides)
            lines.append(f"  {source} ({kind} dimensions): {'; '.join(text)}")
    return "\n".join(lines)


def command(arguments: list[str]) -> int:
    """``profile show FILE...`` and ``profile merge OUT FILE...``; the exit status."""
    if len(arguments) < 2 or arguments[0] not in ("show", "merge"):
        print("usage: profile show FILE... | profile merge OUT FILE...")
        return 2
    action, *paths = arguments
    merged = Profile()
    for path in paths if action == "show" else paths[1:]:
        try:
            merged.merge(_parsed(path))
        except ValueError as error:
            print(f"framejit: {path} is no profile: {error}", file=sys.stderr)
            return 2
    if action == "show":
        print(show(merged))
    else:
        merge_into(paths[0], merged)
    return 0
