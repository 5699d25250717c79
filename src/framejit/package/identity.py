"""Whose package is it, and may it be used here? Every refusal says which side has what.

In: a manifest and the object it is loaded for. Out: nothing, or one PackageError: another function,
another source, another Python, torch, framejit, backend or machine. Next: files.
"""

from __future__ import annotations

import importlib.util
import inspect
import platform
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

from framejit.exc import PackageError
from framejit.package import naming
from framejit.package.descriptions import Home, Json
from framejit.package.library import codes_named
from framejit.version import __version__

#: Names of the environment's rows in messages.
_WORDS = {
    "python": "Python", "bytecode": "Python's bytecode", "torch": "torch", "framejit": "framejit",
    "machine": "the machine", "cpu": "the CPU's instruction set", "gpu": "the GPU",
}  # fmt: skip


def environment() -> dict[str, str]:
    """What a package depends on besides the program."""
    gpu = ""
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability()
        gpu = f"compute capability {major}.{minor}"
    return {
        "python": f"{sys.implementation.name} {sys.version.split()[0].rpartition('.')[0]}",
        "bytecode": importlib.util.MAGIC_NUMBER.hex(),
        "torch": torch.__version__,
        "framejit": __version__,
        "machine": f"{sys.platform} {platform.machine()}",
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "gpu": gpu,
    }


def check_environment(path: str, saved: dict[str, str], devices: Iterable[str]) -> None:
    """PackageError when this process differs in something that matters."""
    now = environment()
    for name, words in _WORDS.items():
        if name == "gpu" and "cuda" not in devices:
            continue
        if saved.get(name) != now[name]:
            raise PackageError(
                f"the package {path} was made with {words} {saved.get(name)!r}; "
                f"this process has {now[name]!r}"
            )


def identity_of(root: Any, module: torch.nn.Module | None) -> Json:
    """What a package says about the object that it was made for."""
    kind, named, function = "function", root, root
    if module is not None:
        kind, named, function = "module", type(module), type(module).forward
    code = getattr(function, "__code__", None)
    return {
        "kind": kind, "module": named.__module__, "name": named.__qualname__,
        "signature": _signature(function), "hash": "" if code is None else naming.code_hash(code),
    }  # fmt: skip


def _signature(function: Callable[..., Any]) -> str:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return "(...)"
    kind = inspect.Parameter
    marks: dict[Any, str] = {kind.VAR_POSITIONAL: "*", kind.VAR_KEYWORD: "**"}
    return f"({', '.join(marks.get(p.kind, '') + p.name for p in parameters)})"


def check_signature(path: str, saved: Json, now: Json) -> None:
    """PackageError when the object of this name takes other arguments now."""
    if saved["signature"] != now["signature"]:
        raise PackageError(
            f"the package {path} was made for {saved['name']}{saved['signature']}, "
            f"which is {now['name']}{now['signature']} now"
        )


def is_made_for(saved: Json, now: Json) -> bool:
    """Is it an object of the same kind and name?"""
    same_module = saved["module"] == now["module"] or "__main__" in (saved["module"], now["module"])
    return saved["kind"] == now["kind"] and saved["name"] == now["name"] and same_module


def shown(identity: Json) -> str:
    """For messages: the kind of an object, and its name."""
    return f"{identity['kind']} {identity['module']}.{identity['name']}"


def changed_sources(saved: Json, root: types.FunctionType, home: Home) -> list[str]:
    """The functions that a package inlined and that do something else in this process.

    Functions that cannot be found by name are checked by the guards when they are called.
    """
    wanted: dict[tuple[str, str], set[str]] = {}
    lines: dict[tuple[str, str], str] = {}
    for row in saved["sources"]:
        key = (row["module"], row["name"])
        wanted.setdefault(key, set()).add(row["hash"])
        lines[key] = row["place"]
    changed = []
    for (module, name), hashes in wanted.items():
        found = [naming.code_hash(c) for c in codes_named(module, name, root.__code__, home)]
        if found and hashes.isdisjoint(found):
            changed.append(f"{name} ({lines[module, name]})")
    return changed
