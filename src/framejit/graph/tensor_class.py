"""What the classes of tensors had when framejit was imported.

In: nothing. Out: torch's own methods and attributes, told apart from those that a program puts in
their place. Operators, indexing and attributes in C (``shape``) are watched: what a capture and
torch's own Python code compute with them would go wrong, so the global state says whether one of
them is replaced, and nothing is captured meanwhile. Other methods are guarded where they are
called. Next room: values.
"""

from __future__ import annotations

import types
from typing import Any

import torch

from framejit.native import watch_attributes

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


def _is_foreign(raw: Any) -> bool:
    """Python code from outside torch."""
    if type(raw) is not types.FunctionType:
        return False
    module = raw.__module__ or ""
    return module != "torch" and not module.startswith("torch.")


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


def _is_watched(name: str, raw: Any) -> bool:
    if name.startswith("__") and name.endswith("__"):
        return name not in _ONLY_SEEN
    return not callable(raw)


_watch()


def is_replaced(name: str, owner: type, raw: Any) -> bool:
    """Is ``raw``, which ``owner`` has, a method that a program put there?"""
    if owner is torch.Tensor and name in _TENSOR:
        return raw is not _TENSOR[name][0]
    return _is_foreign(raw)


def is_method_replaced(name: str) -> bool:
    """Finds a call by name another method of tensors than torch's own?"""
    own = vars(torch.Tensor)
    return name in own and is_replaced(name, torch.Tensor, own[name])
