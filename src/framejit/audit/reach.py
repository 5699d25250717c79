"""Which globals, modules and classes a function may use, found by the names in its code.

In: functions, classes and modules that a walk over objects meets. Out: the values that their code
names, to be walked over as well, and the `Names` of each namespace that may be written to. A method
counts when its name appears in some code that was met; code of the standard library and of
installed packages is not looked into. Next: snapshot.
"""

from __future__ import annotations

import dis
import functools
import os
import sys
import sysconfig
import types
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from framejit.audit.comparison import MISSING, Comparison, differences
from framejit.audit.contents import Named
from framejit.values.core.inline_policy import is_library_of_python, names_in

_STORES = {dis.opmap[name] for name in ("STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR",
                                        "DELETE_ATTR")}  # fmt: skip
_INSTALLED = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("purelib", "platlib"))

Found = Iterator[tuple[str, Any]]


class Used(NamedTuple):
    """The globals and attributes that code names, and those that it assigns."""

    names: frozenset[str]
    stored: frozenset[str]


@functools.lru_cache(maxsize=8192)
def used_in(code: types.CodeType) -> Used:
    """What a code object uses, with the ones inside it."""
    stored: set[str] = set()
    if not _STORES.isdisjoint(code.co_code[::2]):
        stored = {i.argval for i in dis.get_instructions(code) if i.opcode in _STORES}
    inner = [used_in(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return Used(names_in(code), frozenset(stored).union(*[used.stored for used in inner]))


@functools.lru_cache(maxsize=8192)
def is_foreign(module: str) -> bool:
    """Code of an installed library: it is looked into only for the objects that it is given."""
    top = module.partition(".")[0]
    if is_library_of_python(module) or top in ("torch", "numpy", "framejit", "sympy"):
        return True
    file = getattr(sys.modules.get(module), "__file__", None) or ""
    return file.startswith(_INSTALLED)


class Names(Named):
    """Some names of a namespace (a module's globals, or a class), and their values."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.values: dict[str, Any] = {}

    @property
    def shown(self) -> str:
        """What names are preceded by, for users."""
        return "global " if isinstance(self.owner, dict) else f"{self.owner.__name__}."

    def take(self, obj: Any) -> Any:
        space = obj if isinstance(obj, dict) else vars(obj)
        return {name: space.get(name, MISSING) for name in self.values}

    def put(self, obj: Any, content: Any) -> None:
        write: Any = dict.__setitem__ if isinstance(obj, dict) else type.__setattr__
        delete: Any = dict.__delitem__ if isinstance(obj, dict) else type.__delattr__
        now = self.take(obj)
        for name, value in content.items():
            if value is not now[name]:
                delete(obj, name) if value is MISSING else write(obj, name, value)

    def difference(self, path: str, one: Any, two: Any, comparison: Comparison) -> str | None:
        return differences([(path + name, one[name], two[name]) for name in one], comparison)


class Reach:
    """Everything that the code met so far may name."""

    def __init__(self) -> None:
        self.spaces: dict[int, Names] = {}
        self._names: set[str] = set()
        self._stored: set[str] = set()
        self._codes: set[types.CodeType] = set()
        self._waiting: defaultdict[str, list[tuple[str, Any]]] = defaultdict(list)
        #: Those that were looked at, with their bases.
        self.classes: set[type] = set()
        self._modules: dict[int, tuple[str, Any]] = {}

    def function(self, function: types.FunctionType) -> Found:
        """What a function's code may use."""
        code, space = function.__code__, function.__globals__
        if code in self._codes or is_foreign(str(space.get("__name__"))):
            return
        self._codes.add(code)
        names, stored = used_in(code)
        self._stored |= stored
        yield from self._named(space, names, "")
        new = names - self._names
        self._names |= new
        for name in new:
            yield from self._waiting.pop(name, ())
            for label, module in list(self._modules.values()):
                yield from self._named(vars(module), (name,), f"{label}.")

    def module(self, label: str, module: types.ModuleType) -> Found:
        """The attributes of a module that some code names."""
        if id(module) in self._modules or is_foreign(module.__name__):
            return
        self._modules[id(module)] = label, module
        yield from self._named(vars(module), tuple(self._names), f"{label}.")

    def cls(self, cls: type) -> Found:
        """The attributes of a class, of its bases and of its metaclass; methods when their names
        are met."""
        metaclass: type = type(cls)
        for base in (*cls.__mro__, *metaclass.__mro__):
            if base in self.classes:
                continue
            self.classes.add(base)
            if is_foreign(base.__module__):
                continue
            names = self._space(base)
            for name, value in list(vars(base).items()):
                if name in ("__dict__", "__weakref__", "__module__", "__doc__", "_abc_impl",
                            "_framejit_link", "__annotations__"):  # fmt: skip
                    continue
                names.values[name] = value
                if isinstance(value, types.MemberDescriptorType):
                    continue
                called = callable(value) or isinstance(value, (staticmethod, classmethod, property))
                if called and name not in self._names and not _is_special(name):
                    self._waiting[name].append((f"{base.__qualname__}.{name}", value))
                else:
                    yield f"{base.__qualname__}.{name}", value

    def new_names(self) -> None:
        """Code that was met may give classes attributes that they do not have yet."""
        for names in self.spaces.values():
            if isinstance(names.owner, type):
                for name in self._stored.difference(names.values):
                    names.values[name] = vars(names.owner).get(name, MISSING)

    def _space(self, owner: Any) -> Names:
        return self.spaces.setdefault(id(owner), Names(owner))

    def _named(self, space: dict[str, Any], names: Any, prefix: str) -> Found:
        known = self._space(space).values
        for name in names:
            if name not in known:
                value = space.get(name, MISSING)
                if value is not MISSING or name in self._stored:
                    known[name] = value
                    yield prefix + name, value


def _is_special(name: str) -> bool:
    """Called without being named."""
    return (name.startswith("__") and name.endswith("__")) or name == "forward"
