"""Objects by name: where another process finds the same class, function, operator or module.

In: an object. Out: a name that leads to this very object and nothing else, and the way back; and
content hashes of code and of classes, for what has no name or may have changed. Next: data.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import importlib
import sys
import types
from typing import Any

import torch

from framejit.bytecode.model import code_hash
from framejit.exc import PackageError

#: Modules whose members often do not say where they belong.
_SEARCHED = (
    "torch", "torch.nn.functional", "torch._C", "torch._C._nn", "torch._C._linalg",
    "torch._C._fft", "torch._C._special", "torch._C._functorch", "torch._C._autograd", "operator",
    "math", "itertools", "functools", "builtins", "types", "collections", "framejit.native",
)  # fmt: skip
#: The classes of iterators and views have no name anywhere.
_ANONYMOUS: dict[str, type] = {
    "list_iterator": type(iter([])), "tuple_iterator": type(iter(())),
    "dict_keys": type({}.keys()), "dict_values": type({}.values()), "dict_items": type({}.items()),
    "range_iterator": type(iter(range(0))), "set_iterator": type(iter(set())),
    "str_iterator": type(iter("")), "dict_keyiterator": type(iter({})),
    "list_reverseiterator": type(reversed([])),
}  # fmt: skip


@functools.cache
def _index() -> dict[int, tuple[str, str]]:
    """Names of C functions and types that do not know their own."""
    found: dict[int, tuple[str, str]] = {}
    for module_name in _SEARCHED:
        owner: Any = _module_or_member(module_name)
        for name in dir(owner):
            try:
                member = getattr(owner, name)
            except Exception:  # a lazy attribute whose module is missing
                continue
            if callable(member):
                found.setdefault(id(member), (module_name, name))
    return found


def _module_or_member(dotted: str) -> Any:
    module = sys.modules.get(dotted)
    if module is not None:
        return module
    owner, _, member = dotted.rpartition(".")
    return getattr(_module_or_member(owner), member) if owner else importlib.import_module(dotted)


def attribute(obj: Any, name: str) -> Any:
    """An attribute, or None; no code of the user's runs for it."""
    try:
        if isinstance(obj, type):
            return type.__getattribute__(obj, name)
        return object.__getattribute__(obj, name)
    except Exception:  # there is none, or the object is of a kind that has its own lookup
        return None


def name_of(obj: Any) -> tuple[str, str] | None:
    """(module, qualified name) under which any process finds ``obj``; None if there is none."""
    module = attribute(obj, "__module__")
    qualified = attribute(obj, "__qualname__")
    if isinstance(module, str) and isinstance(qualified, str) and _leads_to(module, qualified, obj):
        return module, qualified
    owner = attribute(obj, "__objclass__")  # method and slot descriptors of C classes
    if isinstance(owner, type) and isinstance(attribute(obj, "__name__"), str):
        name = f"{owner.__qualname__}.{obj.__name__}"
        if _leads_to(owner.__module__, name, obj):
            return owner.__module__, name
    known = _index().get(id(obj))
    if known is not None and _leads_to(*known, obj):
        return known
    for name, cls in _ANONYMOUS.items():
        if cls is obj:
            return "", name
    return None


def _leads_to(module: str, qualified: str, obj: Any) -> bool:
    if "<" in qualified or (module not in sys.modules and not module.startswith("torch._C")):
        return False
    try:
        return find(module, qualified) is obj
    except Exception:  # whatever the attributes on the way raise
        return False


def find(module: str, qualified: str) -> Any:
    """The object of that name. Raises PackageError when there is none."""
    try:
        if not module:
            return _ANONYMOUS[qualified]
        found: Any = _module_or_member(module)
        for part in qualified.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, KeyError) as error:
        raise PackageError(f"there is no {module}.{qualified} in this process") from error
    return found


def operator_of(obj: Any) -> list[str] | None:
    """How an operator of ``torch.ops`` is spelled, or None for anything else."""
    if isinstance(obj, torch._ops.OpOverload):
        namespace, _, name = obj._schema.name.partition("::")
        return ["overload", namespace, name, obj._overloadname]
    if isinstance(obj, torch._ops.OpOverloadPacket):
        namespace, _, name = obj._qualified_op_name.partition("::")
        return ["packet", namespace, name]
    if isinstance(obj, torch._ops.HigherOrderOperator):
        return ["higher", obj.namespace or "higher_order", obj.name()]
    return None


def find_operator(spelling: list[str]) -> Any:
    """The way back from `operator_of`."""
    kind, namespace, name, *overload = spelling
    try:
        packet = getattr(getattr(torch.ops, namespace), name)
        return getattr(packet, overload[0]) if kind == "overload" else packet
    except (AttributeError, RuntimeError) as error:
        raise PackageError(f"there is no operator {namespace}::{name} in this process") from error


# -- content ---------------------------------------------------------------------------------------

#: Members of a class that differ from process to process, or say nothing about what it does.
_IGNORED = frozenset(
    {"__dict__", "__weakref__", "__doc__", "__annotations__", "__abstractmethods__", "_abc_impl"}
)


def class_hash(cls: type) -> str:
    """A hash of a class statement's content: bases, methods, plain attributes."""
    content: list[Any] = [cls.__module__, cls.__qualname__]
    content += [(base.__module__, base.__qualname__) for base in cls.__bases__]
    for name, member in sorted(vars(cls).items()):
        if name not in _IGNORED:
            content.append((name, _member_content(member)))
    return hashlib.sha256(repr(content).encode()).hexdigest()[:32]


def _member_content(member: Any) -> Any:
    if isinstance(member, types.FunctionType):
        return code_hash(member.__code__)
    if isinstance(member, (staticmethod, classmethod)):
        return type(member).__name__, _member_content(member.__func__)
    if isinstance(member, property):
        return [None if f is None else _member_content(f) for f in (member.fget, member.fset)]
    if isinstance(member, (int, float, str, bytes, bool, type(None))):
        return type(member).__name__, repr(member)
    if isinstance(member, enum.Enum):
        return member._name_, _member_content(member._value_)
    return type(member).__qualname__
