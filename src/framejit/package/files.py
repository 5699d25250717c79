"""Saving what compiled objects hold, and loading it: the functions behind the public methods.

In: a compiled function or module and a path. Out: a package file, or a compiled object whose
entries come from one. Next room: callables.
"""

from __future__ import annotations

import os
import types
from typing import Any

import torch

from framejit.compiler import NO_OPERATION, CompiledFrame, Compiler
from framejit.exc import PackageError
from framejit.guards.plan import value_at
from framejit.guards.texts import TensorText
from framejit.package import container, naming
from framejit.package.container import Reader
from framejit.package.data import Codes, Home, Json, Unsaveable
from framejit.package.entries import WaitingEntry, encode_entry
from framejit.package.identity import (
    changed_sources,
    check_environment,
    check_identity,
    environment,
    identity_of,
)
from framejit.package.library import LoadedPackage, frame_key
from framejit.report import messages
from framejit.source import Source

Path = str | os.PathLike[str]


def save(
    path: Path,
    root: CompiledFrame,
    module: torch.nn.Module | None,
    settings: Json,
    key: bytes | None = None,
) -> None:
    """Write every entry of ``root``'s compiler into one file, at once or not at all.

    Entries that no other process could use are left out with a warning that says why. Raises
    PackageError when nothing is left to be saved or the file cannot be written.
    """
    function = _function_of(root)
    compiler = root.compiler
    home = _home(function, module)
    library = compiler.library
    loaded = library if isinstance(library, LoadedPackage) else None
    codes = loaded.codes() if loaded is not None else Codes()
    frames: dict[str, dict[str, Any]] = {}
    parts: dict[str, bytes] = {}
    sources: dict[tuple[str, str, str], Json] = {}
    refused: list[str] = []
    count = 0

    def add(frame_row: dict[str, Any], row: Json, made: dict[str, bytes]) -> None:
        frames.setdefault(frame_row["key"], frame_row)["entries"].append(row)
        parts.update(made)

    for compiled in compiler.frames():
        target = compiled.target
        frame_row: dict[str, Any] = {
            "key": frame_key(target, home), "name": target.name, "line": target.line,
            "file": os.path.basename(target.code.co_filename), "entries": [], "skipped": "",
        }  # fmt: skip
        if compiled.skipped == NO_OPERATION:
            frames.setdefault(frame_row["key"], frame_row | {"skipped": compiled.skipped})
        for entry in compiled.entries:
            try:
                row, made = encode_entry(compiled, entry, str(count), home, codes)
            except Unsaveable as error:
                refused.append(f"{target.name}: it refers to {error}")
                continue
            count += 1
            add(frame_row, row, made)
            origin = compiled.origins.get(id(entry))
            if not isinstance(origin, WaitingEntry) and origin is not None:
                _note_sources(origin.executed, sources)
    if loaded is not None:
        for row in loaded.reader.manifest["sources"]:
            sources.setdefault((row["module"], row["name"], row["hash"]), row)
        for _, frame, waiting in loaded.unused():
            row, made = waiting.copied(str(count))
            count += 1
            add(frame | {"entries": []}, row, made)
    if refused:
        messages.warn_not_saved(str(path), refused)
    if not count:
        why = f": {refused[0]}" if refused else "; call the compiled object first"
        raise PackageError(f"there is nothing to save in {path}{why}")
    manifest = {
        "format": container.FORMAT,
        "environment": environment(),
        "devices": _devices(compiler, loaded),
        "object": identity_of(function, module),
        "settings": settings,
        "frames": list(frames.values()),
        "sources": list(sources.values()),
        "codes": codes.rows,
    }
    try:
        container.write(path, manifest, parts, key)
    except OSError as error:
        raise PackageError(f"{path} cannot be written: {error.strerror or error}") from error


def load(
    path: Path,
    root: CompiledFrame,
    module: torch.nn.Module | None,
    settings: Json,
    key: bytes | None = None,
    skip_source_check: bool = False,
) -> None:
    """Let ``root`` use the entries of a package. Raises PackageError; then nothing has changed."""
    function = _function_of(root)
    reader = Reader(path, key)
    reader.verify()
    manifest = reader.manifest
    try:
        check_environment(reader.path, manifest["environment"], manifest["devices"])
        check_identity(reader.path, manifest["object"], identity_of(function, module))
        _check_settings(reader.path, manifest["settings"], settings)
        home = _home(function, module)
        changed = changed_sources(manifest, function, home)
        if changed:
            _source_changed(reader.path, changed, skip_source_check)
        package = LoadedPackage(reader, home, function.__code__)
        if not skip_source_check:
            _check_state(package, root, module)
    except PackageError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise reader.damaged(f"its manifest is not right ({error})") from error
    compiler = root.compiler
    compiler.library = package
    for compiled in compiler.frames():
        package.attach(compiled)


def _function_of(root: CompiledFrame) -> types.FunctionType:
    function: Any = root.function
    if function is None:
        raise PackageError("only a compiled function or module can be saved or loaded")
    assert isinstance(function, types.FunctionType)
    return function


def _home(function: types.FunctionType, module: torch.nn.Module | None) -> Home:
    if module is not None:
        forward = getattr(type(module).forward, "__globals__", None)
        if forward is not None:
            return Home(forward)
    return Home(function.__globals__)


def _note_sources(
    executed: dict[types.CodeType, str], sources: dict[tuple[str, str, str], Json]
) -> None:
    for code, module in executed.items():
        if module.startswith(("torch.", "framejit.")):  # their versions are compared
            continue
        digest = naming.code_hash(code)
        place = f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"
        row = {"module": module, "name": code.co_qualname, "hash": digest, "place": place}
        sources[module, code.co_qualname, digest] = row


def _devices(compiler: Compiler, loaded: LoadedPackage | None) -> list[str]:
    found = set(loaded.reader.manifest["devices"]) if loaded is not None else set()
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


def _source_changed(path: str, changed: list[str], skip: bool) -> None:
    more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
    listed = ", ".join(changed[:3]) + more
    if skip:
        messages.warn_source_changed(path, listed)
        return
    raise PackageError(
        f"the package {path} was made from another source: {listed} changed since. "
        "Make it again, or load it with skip_source_check=True if the change does not matter"
    )


# -- what can be said before the first call --------------------------------------------------------


def _check_state(
    package: LoadedPackage, root: CompiledFrame, module: torch.nn.Module | None
) -> None:
    """Refuse a package none of whose entries could ever fit: a closure holds something else, or a
    parameter has another dtype or shape."""
    entries = package.frames.get(frame_key(root.target, package.home), [])
    if not entries:
        return
    function = _function_of(root)
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
    _, dtype, _, shape, _, _ = text
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

