"""Attributes of modules that are other ones for a while, and modules that are not imported yet.

In: who, which attribute, what instead. Out: the change, wherever the program has taken the object
by name, and the way back; a call when a module has been imported. Next: switches.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from typing import Any

#: Modules that go on with the objects that they have: those of torch and our own.
_NOT_THE_PROGRAM = ("torch", "framejit")


class Replacements:
    """What was replaced, to be put back in the opposite order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def put(self, owner: Any, new: Mapping[str, Any]) -> None:
        """Attributes of ``owner`` are ``new`` from now on, and so are globals of the program that
        hold one of these objects (``from torch import compile``)."""
        changed = []
        for name, made in new.items():
            old = getattr(owner, name, None)
            if old is not None and old is not made:
                setattr(owner, name, made)
                changed.append((name, old, made))
        renamed = _rename([(old, made) for _, old, made in changed])
        ours = [(made, old) for _, old, made in changed if _is_for_this(made)]

        def back() -> None:
            for name, old, made in reversed(changed):
                if getattr(owner, name, None) is made:  # else somebody has replaced it since
                    setattr(owner, name, old)
            for module, name, old, made in renamed:
                if module.__dict__.get(name) is made:
                    setattr(module, name, old)
            _rename(ours)  # what was taken by name meanwhile

        self.later(back)

    def later(self, undo: Callable[[], object]) -> None:
        """Call ``undo`` when all is put back."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Put everything back."""
        while self._undo:
            self._undo.pop()()


def _is_for_this(made: Any) -> bool:
    """Is it there to stand in for something? The program may have the others, such as
    `framejit.register_backend`, from framejit itself."""
    return str(getattr(made, "__module__", "")).startswith("framejit.dropin.")


def _rename(pairs: list[tuple[Any, Any]]) -> list[tuple[types.ModuleType, str, Any, Any]]:
    """Globals of the program that hold the first of a pair hold the second one instead. Returns
    which: module and name, and the pair."""
    renamed = []
    wanted = {id(held): pair for pair in pairs for held in pair[:1]}
    for module in list(sys.modules.values()):
        if not wanted or not isinstance(module, types.ModuleType) or _belongs_to_torch(module):
            continue
        for name, held in list(module.__dict__.items()):
            old, made = wanted.get(id(held), (None, None))
            if old is not None and old is held:
                setattr(module, name, made)
                renamed.append((module, name, old, made))
    return renamed


def _belongs_to_torch(module: types.ModuleType) -> bool:
    return module.__name__.partition(".")[0] in _NOT_THE_PROGRAM


class _Follower(MetaPathFinder):
    """Finds one module as it is found without us, and tells when it has been executed."""

    def __init__(self, name: str, told: Callable[[types.ModuleType], None]) -> None:
        self.name = name
        self.told = told

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            _tell(spec.loader, self.told)
        return spec


def _tell(loader: Loader, told: Callable[[types.ModuleType], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: types.ModuleType) -> None:
        execute(module)
        told(module)

    loader.exec_module = exec_module  # type: ignore[method-assign]  # of this one loader


def when_imported(name: str, told: Callable[[types.ModuleType], None]) -> Callable[[], object]:
    """Call ``told`` with a module: now if it is there, else when the program imports it. The
    result ends that."""
    module = sys.modules.get(name)
    if module is not None:
        told(module)
        return lambda: None
    follower = _Follower(name, told)
    sys.meta_path.insert(0, follower)

    def forget() -> None:
        follower.told = lambda module: None  # its loader may be at work
        if follower in sys.meta_path:
            sys.meta_path.remove(follower)

    return forget
