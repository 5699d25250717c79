"""What the classes of tensors, and others that torch's own code works with, had when framejit was
imported.

In: nothing. Out: torch's own methods and attributes, told apart from those that a program puts in
their place. Operators, indexing and attributes in C (``shape``) are watched: what a capture and
torch's own Python code compute with them would go wrong, so the global state says whether one of
them is replaced, and nothing is captured meanwhile. Other methods are guarded where they are
called. Next room: values.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import torch

from framejit.native import type_version, watch_attributes

#: Special methods that nothing computes with: for printing, copying and pickling.
_ONLY_SEEN = frozenset([
    "__annotations__", "__deepcopy__", "__dict__", "__dir__", "__doc__", "__format__",
    "__getstate__", "__init_subclass__", "__module__", "__new__", "__reduce__", "__reduce_ex__",
    "__repr__", "__setstate__", "__sizeof__", "__str__", "__subclasshook__", "__weakref__",
])  # fmt: skip
#: Special methods that Python asks for and torch does not have.
_MISSING = (
    "__aenter__", "__aexit__", "__aiter__", "__anext__", "__array_function__", "__array_ufunc__",
    "__await__", "__bytes__", "__call__", "__ceil__", "__copy__", "__delete__", "__divmod__",
    "__enter__", "__exit__", "__floor__", "__fspath__", "__get__", "__getattr__", "__imatmul__",
    "__instancecheck__", "__length_hint__", "__next__", "__rdivmod__", "__round__", "__set__",
    "__set_name__", "__trunc__",
)  # fmt: skip
#: What captures and AOTAutograd do their own work with: graphs are modules, and look for their
#: members; gradients are switched off for what is found out.
_WORKED_WITH: dict[type, tuple[str, ...]] = {
    torch.nn.Module: ("__getattr__", "__setattr__", "__delattr__"),
    torch.no_grad: ("__new__", "__init__", "__enter__", "__exit__"),
}


def is_written_in_torch(function: types.FunctionType) -> bool:
    """Is it torch's code? `functools.wraps` gives a program's function the name and the module of
    the one that it replaces, but not its globals."""
    return str(function.__globals__.get("__name__")).partition(".")[0] == "torch"


def _is_foreign(raw: Any) -> bool:
    """Python code from outside torch."""
    return type(raw) is types.FunctionType and not is_written_in_torch(raw)


def _own_attributes(cls: type) -> dict[str, tuple[Any, ...]]:
    """What looking up each name finds, as a tuple: empty where only a program's own is there."""
    found: dict[str, tuple[Any, ...]] = {}
    for owner in reversed(cls.__mro__):
        for name, raw in vars(owner).items():
            if not _is_foreign(raw):
                found[name] = (raw,)
    return found


_TENSOR = _own_attributes(torch.Tensor)


def _watch() -> None:
    for cls in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
        own = _own_attributes(cls)
        watched = {name: found for name, found in own.items() if _is_watched(name, *found)}
        missing = [name for name in _MISSING if name not in own]
        watch_attributes(cls, {**watched, **dict.fromkeys(missing, ())})
    for used, names in _WORKED_WITH.items():
        own = _own_attributes(used)
        watch_attributes(used, {name: own.get(name, ()) for name in names})


def _is_watched(name: str, raw: Any) -> bool:
    if name.startswith("__") and name.endswith("__"):
        return name not in _ONLY_SEEN
    return not callable(raw)


_watch()


#: The methods that are guarded where they are called.
_METHODS = {
    name: raw for name, (raw,) in _TENSOR.items()
    if not _is_watched(name, raw) and name not in _ONLY_SEEN
}  # fmt: skip


def is_replaced(name: str, owner: type, raw: Any) -> bool:
    """Is ``raw``, which ``owner`` has, a method that a program put there?"""
    if owner is torch.Tensor and name in _TENSOR:
        return raw is not _TENSOR[name][0]
    return _is_foreign(raw)


def is_method_replaced(name: str) -> bool:
    """Finds a call by name another method of tensors than torch's own?"""
    own = vars(torch.Tensor)
    return name in own and is_replaced(name, torch.Tensor, own[name])


#: The version of the class when it had all of these: what runs an operation asks each time.
_complete = [0]


def _replaced_methods() -> list[tuple[str, Any]]:
    """Those that a program has replaced, and by what."""
    version = type_version(torch.Tensor)
    if version and version == _complete[0]:
        return []
    present = vars(torch.Tensor).items()
    replaced = [(n, raw) for n, raw in present if n in _METHODS and raw is not _METHODS[n]]
    if not replaced:
        _complete[0] = type_version(torch.Tensor)
    return replaced


@contextlib.contextmanager
def own_methods() -> Iterator[None]:
    """A block in which tensors have torch's own methods: what an operation is made of, and what a
    backend makes of it, calls them by their names. Other threads see them meanwhile as well."""
    replaced = _replaced_methods()
    for name, _ in replaced:
        setattr(torch.Tensor, name, _METHODS[name])
    try:
        yield
    finally:
        for name, raw in replaced:
            setattr(torch.Tensor, name, raw)
