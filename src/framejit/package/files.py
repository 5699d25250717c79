"""Saving what compiled objects hold, and loading it: the functions behind the public methods.

In: a compiled function or module and a path. Out: a package file, or a compiled object whose
entries come from one. Next room: callables.
"""

from __future__ import annotations

import os
import types
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from framejit.compiled_frame import CompiledFrame, Origin
from framejit.compiler import Compiler
from framejit.exc import PackageError
from framejit.guards.plan import value_at
from framejit.guards.texts import TensorText
from framejit.package import container, naming
from framejit.package.container import Reader
from framejit.package.data import Codes
from framejit.package.descriptions import Home, Json, Unsaveable
from framejit.package.entries import WaitingEntry, copied_entry, encode_entry
from framejit.package.identity import (
    changed_sources,
    check_environment,
    check_signature,
    environment,
    identity_of,
    is_made_for,
    shown,
)
from framejit.package.library import LoadedPackage, codes_named, frame_key
from framejit.report import messages
from framejit.shapes import profile
from framejit.source import Source

Path = str | os.PathLike[str]


class Member(NamedTuple):
    """A compiled object: what is saved, or loaded into."""

    root: CompiledFrame
    module: torch.nn.Module | None
    settings: Json

    @property
    def function(self) -> Any:
        """The Python function that is compiled."""
        if self.root.function is None:
            raise PackageError("only a compiled function or module can be saved or loaded")
        return self.root.function

    @property
    def identity(self) -> Json:
        """What the package says about it."""
        return identity_of(self.function, self.module)


def save(
    path: Path,
    members: Iterable[Member],
    key: bytes | None = None,
    others: Iterable[tuple[Reader, Json]] = (),
) -> None:
    """Write every entry of the compilers of ``members`` into one file, at once or not at all.

    ``others`` are objects of an opened package that stay in it. Entries that no other process could
    use are left out with a warning that says why. Raises PackageError when nothing is left to be
    saved, the file cannot be written, or one is there that was signed with another key.
    """
    path = check_arguments(path, key)
    out = _Output()
    rows = [out.member(member) for member in members]
    rows += [out.copied(reader, row) for reader, row in others]
    if out.refused:
        messages.warn_not_saved(str(path), out.refused)
    if not out.count:
        why = f": {out.refused[0]}" if out.refused else "; call the compiled object first"
        if out.postponed:
            why = ": nothing of it is compiled in the background yet (framejit.wait)"
        raise PackageError(f"there is nothing to save in {path}{why}")
    manifest = {"format": container.FORMAT, "environment": environment(), "objects": rows}
    try:
        container.write(path, manifest, out.parts, key)
    except OSError as error:
        raise PackageError(f"{path} cannot be written: {error.strerror or error}") from error


class _Output:
    """The parts of a package that is being made; ``count`` numbers its entries."""

    def __init__(self) -> None:
        self.parts: dict[str, bytes] = {}
        self.refused: list[str] = []
        self.count = 0
        self.postponed = 0

    def entry(self, row: Json, made: dict[str, bytes]) -> Json:
        self.parts.update(made)
        self.count += 1
        return row

    def member(self, member: Member) -> Json:
        """A row of the manifest: one compiled object."""
        compiler = member.root.compiler
        home = _home(member)
        loaded = compiler.library
        codes = loaded.codes() if loaded is not None else Codes()
        frames: dict[str, dict[str, Any]] = {}
        sources: dict[tuple[str, str, str], Json] = {}
        varied = profile.Profile()
        if loaded is not None:
            varied.merge(loaded.profile)
        held = loaded.held() if loaded is not None else set()
        for compiled in compiler.frames():
            target = compiled.target
            frame_row: dict[str, Any] = {
                "key": frame_key(target, home), "name": target.name, "line": target.line,
                "file": os.path.basename(target.code.co_filename), "entries": [], "skipped": "",
            }  # fmt: skip
            if compiled.skipped is not None and compiled.skipped.identifier == "FJ0302":
                reason = compiled.skipped.reason
                frames.setdefault(frame_row["key"], frame_row | {"skipped": reason})
            facts = profile.facts_of(compiled.policy.seen)
            if facts and compiled.profile_key:
                varied.add(compiled.profile_key, facts)
            for entry in compiled.entries:
                origin = compiled.origins.get(id(entry))
                if isinstance(origin, Origin) and origin.postponed:
                    self.postponed += 1  # who loads it would have to compile it in a call
                    continue
                if held and loaded is not None:
                    foreign = isinstance(origin, WaitingEntry) and origin.reader != loaded.reader
                    guards = tuple(compiled.plans[id(entry)].describe())
                    if (foreign or loaded.joining) and (frame_row["key"], guards) in held:
                        continue
                try:
                    if isinstance(origin, WaitingEntry):
                        made = origin.copied(str(self.count), codes)
                    else:
                        made = encode_entry(compiled, entry, str(self.count), home, codes)
                except Unsaveable as error:
                    self.refused.append(f"{target.name}: it refers to {error}")
                    continue
                frames.setdefault(frame_row["key"], frame_row)["entries"].append(self.entry(*made))
                if not isinstance(origin, WaitingEntry) and origin is not None:
                    _note_sources(origin.executed, sources, member, home)
        if loaded is not None:
            for row in loaded.sources:
                sources.setdefault((row["module"], row["name"], row["hash"]), row)
            for _, frame, waiting in loaded.unused():
                found = frames.setdefault(frame["key"], frame | {"entries": []})
                found["entries"].append(self.entry(*waiting.copied(str(self.count), codes)))
        return {
            "object": member.identity,
            "settings": member.settings,
            "devices": _devices(compiler, loaded),
            "frames": list(frames.values()),
            "sources": list(sources.values()),
            "codes": codes.rows,
            "profile": varied.data,
        }

    def copied(self, reader: Reader, row: Json) -> Json:
        """The row of an object that another package holds."""
        frames = [
            frame
            | {
                "entries": [
                    self.entry(*copied_entry(reader, entry, str(self.count)))
                    for entry in frame["entries"]
                ]
            }
            for frame in row["frames"]
        ]
        return row | {"frames": frames}


def opened(path: Path, key: bytes | None = None) -> Reader:
    """A package whose every checksum, and whose signature, is right. Raises PackageError."""
    reader = Reader(check_arguments(path, key), key)
    reader.verify()
    if type(reader.manifest.get("objects")) is not list:
        raise reader.damaged("its manifest lists no objects")
    return reader


def rows_for(reader: Reader, member: Member) -> list[Json]:
    """The objects in a package that ``member`` may be. PackageError when there is none."""
    rows, now = reader.manifest["objects"], member.identity
    try:
        found = [row for row in rows if is_made_for(row["object"], now)]
        if not found:
            made_for = _some([shown(row["object"]) for row in rows], ", the ")
            raise PackageError(
                f"the package {reader.path} was made for the {made_for}, not for the {shown(now)}"
            )
    except (KeyError, TypeError) as error:
        raise reader.damaged(f"its manifest is not right ({error})") from error
    return found


def load(
    reader: Reader,
    rows: Iterable[Json],
    member: Member,
    skip_source_check: bool = False,
    joining: bool = False,
) -> Json:
    """Let ``member`` use the entries of the first of ``rows`` that fits; returns that one.

    ``joining``: what the member has and those entries have, too, is saved once. Raises
    PackageError; then nothing has changed.
    """
    refusal: PackageError | None = None
    for row in rows:
        try:
            _load(reader, row, member, skip_source_check, joining)
        except PackageError as error:
            refusal = refusal or error
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise reader.damaged(f"its manifest is not right ({error})") from error
        else:
            return row
    assert refusal is not None
    raise refusal


def _load(
    reader: Reader, row: Json, member: Member, skip_source_check: bool, joining: bool
) -> None:
    root, function = member.root, member.function
    check_environment(reader.path, reader.manifest["environment"], row["devices"])
    check_signature(reader.path, row["object"], member.identity)
    _check_settings(reader.path, row["settings"], member.settings)
    home = _home(member)
    changed = changed_sources(row, function, home)
    if changed:
        _source_changed(reader.path, changed, skip_source_check)
    compiler = root.compiler
    joining = joining or any(compiled.entries for compiled in compiler.frames())
    package = LoadedPackage(reader, row, home, function.__code__, joining)
    _check_state(package, member)
    if compiler.library is not None:
        package.add(compiler.library)
    compiler.library = package
    compiler.hook_context.ask_always = True
    for compiled in compiler.frames():
        package.attach(compiled)


def check_arguments(path: Path, key: bytes | None) -> str:
    """The path as text. Raises TypeError, which names the argument."""
    checked = messages.checked_path(path)
    if key is not None and (not isinstance(key, bytes) or not key):
        given = "empty" if key == b"" else f"a {type(key).__name__}"
        raise TypeError(f"key must be a secret of type bytes; it is {given} [FJ0210]")
    return checked


def _home(member: Member) -> Home:
    if member.module is not None:
        forward = getattr(type(member.module).forward, "__globals__", None)
        if forward is not None:
            return Home(forward)
    return Home(member.function.__globals__)


def _note_sources(
    executed: dict[types.CodeType, str],
    sources: dict[tuple[str, str, str], Json],
    member: Member,
    home: Home,
) -> None:
    root = member.function.__code__
    for code, module in executed.items():
        if module.startswith(("torch.", "framejit.")):  # their versions are compared
            continue
        digest = naming.code_hash(code)
        named = [naming.code_hash(c) for c in codes_named(module, code.co_qualname, root, home)]
        if named and digest not in named:  # the name leads to another function here, too
            continue
        place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        row = {"module": module, "name": code.co_qualname, "hash": digest, "place": place}
        sources[module, code.co_qualname, digest] = row


def _devices(compiler: Compiler, loaded: LoadedPackage | None) -> list[str]:
    found = set(loaded.devices) if loaded is not None else set()
    for compiled in compiler.frames():
        for plan in compiled.plans.values():
            for facts in plan.checked:
                found |= {
                    fact.payload.device.partition(":")[0]
                    for fact in facts
                    if isinstance(fact.payload, TensorText)
                }
    return sorted(found)


def _check_settings(path: str, saved: Json, now: Json) -> None:
    for name, value in now.items():
        if saved[name] != value:
            raise PackageError(
                f"the package {path} was made with {name}={saved[name]!r}, not {value!r}"
            )


def _some(names: list[str], between: str) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return between.join(names[:3]) + more


def _source_changed(path: str, changed: list[str], skip: bool) -> None:
    listed = _some(changed, ", ")
    if skip:
        messages.warn_source_changed(path, listed)
        return
    raise PackageError(
        f"the package {path} was made from another source: {listed} changed since. "
        "Make it again, or load it with skip_source_check=True if the change does not matter"
    )


# -- what can be said before the first call --------------------------------------------------------


def _check_state(package: LoadedPackage, member: Member) -> None:
    """Refuse a package none of whose entries could ever fit: a closure holds something else, or a
    parameter has another dtype or shape."""
    entries = package.frames.get(frame_key(member.root.target, package.home), [])
    if not entries:
        return
    function, module = member.function, member.module
    code = function.__code__
    n_arguments = code.co_argcount + code.co_kwonlyargcount
    n_arguments += bool(code.co_flags & 4) + bool(code.co_flags & 8)
    slots: list[Any] = [None] * n_arguments + list(function.__closure__ or ())
    if module is not None:
        slots[0] = module
    reasons = []
    for entry in entries:
        reason = _static_reason(entry, slots, n_arguments, module is not None)
        if not reason:
            return
        reasons.append(reason)
    raise PackageError(f"the package {package.reader.path} does not fit: {reasons[0]}")


def _static_reason(
    entry: WaitingEntry, slots: list[Any], first_cell: int, with_module: bool
) -> str:
    """What keeps an entry from ever fitting, in words; empty if nothing is known to."""
    data = entry.data
    roots: list[int] = []
    for number, (parent, accessor, key, checks, _) in enumerate(data["nodes"]):
        roots.append(roots[parent] if parent >= 0 else key if accessor == "slot" else -1)
        in_module = with_module and roots[number] == 0
        in_closure = roots[number] >= first_cell
        if not checks or not (in_module or in_closure):
            continue
        kinds = {check[0] for check in checks}
        if not kinds & {"metadata", "equals"} or (in_module and "metadata" not in kinds):
            continue
        source = _plain_source(data, number)
        if source is None:
            continue
        exists, value = value_at(source, slots)
        for check, (_, _, text) in zip(checks, data["facts"][number], strict=True):
            if check[0] == "metadata" and text is not None:
                reason = _tensor_reason(source.name, text, value if exists else None)
            elif check[0] == "equals" and in_closure:
                reason = _value_reason(source.name, check[1], value, exists)
            else:
                continue
            if reason:
                return reason
    return ""


def _plain_source(data: Json, number: int) -> Source | None:
    parent, accessor, key, _, _ = data["nodes"][number]
    if type(key) is list or accessor == "const":
        return None
    base = None
    if parent >= 0:
        base = _plain_source(data, parent)
        if base is None:
            return None
    return Source(base, accessor, key, data["labels"][number])


def _tensor_reason(name: str, text: Json, value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return f"{name} was a tensor"
    now = TensorText.of(value)
    _, dtype, _, shape, *_ = text
    if now.dtype != dtype:
        return f"{name} had dtype {dtype}, now it has {now.dtype}"
    if list(now.shape) != shape and "self" in name:
        return f"{name} had the shape {shape}, now it has {list(now.shape)}"
    return ""


def _value_reason(name: str, saved: Json, value: Any, exists: bool) -> str:
    if type(saved) not in (int, float, str, bool):
        return ""
    if not exists or type(value) is not type(saved) or value != saved:
        return f"{name} was {saved!r}, now it is {value!r}"
    return ""
