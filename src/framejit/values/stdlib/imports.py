"""Modules that are loaded already: ``import``, `importlib.import_module` and ``__import__``.

In: names of modules. Out: the modules, guarded as items of `sys.modules`; importing others runs
code, which is a graph break. Next room: interpreter.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import sys
from typing import Any

from framejit.exc import GraphBreak
from framejit.values.core.base import Value
from framejit.values.core.methods import builtin
from framejit.values.core.space import Space


def loaded_module(space: Space, full: str, names: Any = (), shown: str | None = None) -> Value:
    """The module ``full``, or its package ``shown``, where the module has these ``names``."""
    found = sys.modules.get(full)
    if found is None:  # as an entry, None means that importing it fails
        space.task.may_happen_first(f"{full} is imported")
        raise GraphBreak("FJ0140", f"importing {full}, which is not loaded yet")
    if getattr(space.known_value(sys.modules), "mutated", False):
        raise GraphBreak("FJ0140", f"importing {full} after sys.modules was written to")
    shown = shown or full
    module = sys.modules[shown]
    if hasattr(module, "__path__"):
        for missing in [part for part in names or () if not hasattr(module, part)]:
            space.task.may_happen_first(f"{full}.{missing} is imported")
            raise GraphBreak("FJ0140", f"importing {full}.{missing}, which is not loaded yet")
    source = space.const_source(sys.modules, "sys.modules").child("item", shown)
    return space.load(source, module)


def _text(value: Value, function: str) -> str:
    value = value.realize()
    if not value.is_constant or type(value.as_python()) is not str:
        raise GraphBreak("FJ0140", f"{function}() of {value.describe()}")
    return str(value.as_python())


@builtin(importlib.import_module, 1, 2, "name", "package")
def _import_module(space: Space, name: Value, package: Value | None = None) -> Value:
    text = _text(name, "import_module")
    if text.startswith("."):
        if package is None or not package.realize().is_constant or not package.as_python():
            raise GraphBreak("FJ0140", "import_module() of a relative name without its package")
        try:
            text = importlib.util.resolve_name(text, _text(package, "import_module"))
        except ImportError as error:
            raise GraphBreak("FJ0140", "import_module() beyond the outermost package") from error
    return loaded_module(space, text)


@builtin(builtins.__import__, 1)
def _import(space: Space, name: Value) -> Value:
    text = _text(name, "__import__")
    return loaded_module(space, text, (), text.partition(".")[0])
