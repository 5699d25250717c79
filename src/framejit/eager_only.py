"""The public names where framejit cannot work with the torch that is installed: all runs eagerly.

In: why the package could not be imported. Out: one warning, and objects that are called like those
of `api` and its like and give back what they were given. What asks for something compiled
(`explain`, `guards`, `report`) raises, with the reason. Modules that programs import by name are
stood in for, too: what they hold is what the package holds, or raises when it is called. Next:
nothing.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import torch

from framejit.exc import FramejitError
from framejit.report.messages import eager_only_text, warn_eager_only
from framejit.torchcompat.releases import OtherBuild, is_tested

#: Modules that need the native part and that programs import by name, with their public names.
MODULES = {
    "audit": ("audit", "audit_everywhere", "audit_summary", "checked_rate"),
    "autotune": (
        "Candidate", "Outcome", "Recording", "Result", "command", "load", "record", "tune",
    ),
    "comptime": ("ComptimeContext", "ComptimeValue", "comptime"),
    "inspection": (
        "EntryGuards", "Explainer", "GuardList", "explain", "following", "guards", "report",
    ),
}  # fmt: skip


class _Block:
    """A ``with`` block or decorator that changes nothing."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        self.given = args

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __call__(self, model: Any) -> Any:
        return model


def _given(model: Any = None, *args: Any, **settings: Any) -> Any:
    """The callable it is called with, or a decorator that gives back what it decorates."""
    return _given if model is None else model


def _given_or_block(model: Any = None, *args: Any, **settings: Any) -> Any:
    return _Block() if model is None else model


def _registered(first: Any = None, *args: Any, **settings: Any) -> Any:
    """``register_backend(f)``, ``register_backend("name", f)`` and the decorators."""
    found = [one for one in (first, *args) if callable(one)]
    return found[0] if found else _given


def _loaded(path: Any, model: Any, **settings: Any) -> Any:
    return model


def _nothing(*args: Any, **settings: Any) -> None:
    return None


class _Comptime:
    def __call__(self, function: Any) -> Any:
        return _nothing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _nothing


def why(error: Exception) -> str:
    """What a warning and errors say. An error that no release of torch explains is raised."""
    if isinstance(error, OtherBuild):
        return str(error)
    if is_tested():
        raise error
    return f"{type(error).__name__}: {error}"


def names(reason: str) -> dict[str, Any]:
    """The public names."""

    def refuse(*args: Any, **settings: Any) -> Any:
        raise FramejitError(eager_only_text(reason), "FJ0310")

    found: dict[str, Any] = dict.fromkeys(
        ("compile", "skip", "allow_in_graph", "disallow_in_graph", "assume_constant_result",
         "region"), _given
    )  # fmt: skip
    found.update(dict.fromkeys(("optimize", "audit", "packaged", "record", "install"), _Block))
    found.update(dict.fromkeys(("run", "disable"), _given_or_block))
    found.update(dict.fromkeys(("explain", "export", "guards", "report"), refuse))
    found.update(dict.fromkeys(("graph_break", "reset", "uninstall", "set_logs"), _nothing))
    found.update(dict.fromkeys(("mark_dynamic", "mark_static", "maybe_mark_dynamic"), _nothing))
    found.update(dict.fromkeys(("load_profile", "save_profile"), _nothing))
    found.update(register_backend=_registered, load_package=_loaded, comptime=_Comptime())
    found.update(wait=lambda *args, **settings: True)
    found.update(piecewise=lambda backend="inductor", **settings: backend)
    found.update(list_backends=lambda *args, **settings: [], is_compiling=_is_compiling)
    return found


def modules(reason: str, public: dict[str, Any]) -> dict[str, types.ModuleType]:
    """The modules of `MODULES`, by full name. What is not public in the package is a class, so that
    annotations and ``isinstance`` can name it; making one raises."""

    class Refused:
        def __init__(self, *args: Any, **settings: Any) -> None:
            raise FramejitError(eager_only_text(reason), "FJ0310")

    found = {}
    for room, held in MODULES.items():
        module = types.ModuleType(f"framejit.{room}", eager_only_text(reason))
        for name in held:
            setattr(module, name, public.get(name) or type(name, (Refused,), {}))
        found[module.__name__] = module
    return found


def stand_in(error: Exception) -> dict[str, Any]:
    """The public names, after a warning; their modules can be imported from now on."""
    reason = why(error)
    warn_eager_only(reason)
    public = names(reason)
    made = modules(reason, public)
    sys.modules.update(made)
    return {name: made[f"framejit.{name}"] for name in MODULES} | public


def _is_compiling() -> bool:
    return torch.compiler.is_compiling()
