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
import weakref
from collections.abc import Iterator
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
    if isinstance(module, str):
        for known in (qualified, attribute(obj, "__name__"), attribute(obj, "_name")):
            if isinstance(known, str) and _leads_to(module, known, obj):
                return module, known
    owner = attribute(obj, "__objclass__")  # method and slot descriptors of C classes
    if isinstance(owner, type) and isinstance(attribute(obj, "__name__"), str):
        name = f"{owner.__qualname__}.{obj.__name__}"
        if _leads_to(owner.__module__, name, obj):
            return owner.__module__, name
    listed = _index().get(id(obj))
    if listed is not None and _leads_to(*listed, obj):
        return listed
    for name, cls in _ANONYMOUS.items():
        if cls is obj:
            return "", name
    if isinstance(obj, type) and module in sys.modules:  # ``_thread.lock`` is called LockType
        for name, member in list(vars(sys.modules[module]).items()):
            if member is obj:
                return module, name
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


# -- members of classes ----------------------------------------------------------------------------

_InstanceMethod: Any = type(vars(torch._C.DispatchKeySet)["has"])
#: A class, the name of one of its own members, and attributes of that.
Slot = tuple[Any, ...]


def slots_of(obj: Any) -> Iterator[Slot]:
    """Where classes have ``obj``, if it is written in C and does not know its own name: what
    pybind11 makes of methods and properties, and the members of its enumerations."""
    if isinstance(obj, enum.Enum):  # a member is what it is by its value, too
        return
    for name, member in list(type.__getattribute__(type(obj), "__dict__").items()):
        if member is obj:
            yield type(obj), name
    owner, known = attribute(obj, "__objclass__"), attribute(obj, "__name__")
    if isinstance(owner, type) and type.__getattribute__(owner, "__dict__").get(known) is obj:
        yield owner, known
    if not isinstance(obj, (property, _InstanceMethod, types.BuiltinFunctionType)):
        return
    if isinstance(obj, property) and not any(map(is_nameless, _functions_of(obj).values())):
        return
    if isinstance(obj, types.BuiltinFunctionType) and not is_nameless(obj):
        return
    found = _slots().get(id(obj), ())
    if not any(_is_at(slot, obj) for slot in found):  # the class is younger than the index
        _slots.cache_clear()
        found = _slots().get(id(obj), ())
    for reference, *path in found:
        if _is_at((reference, *path), obj):
            yield reference(), *path


def find_slot(cls: Any, name: str, *attributes: str) -> Any:
    """The way back. Raises KeyError, AttributeError or TypeError when there is none."""
    found = type.__getattribute__(cls, "__dict__")[name]
    for attribute_name in attributes:
        found = getattr(found, attribute_name)
    return found


def _is_at(slot: Slot, obj: Any) -> bool:
    reference, *path = slot
    try:
        return find_slot(reference(), *path) is obj
    except (KeyError, AttributeError, TypeError):  # the class is gone, or the member
        return False


def is_function_record(receiver: Any) -> bool:
    """Is it what pybind11 binds its functions to?"""
    kind = type(receiver)
    return kind.__name__ == "PyCapsule" or kind.__module__ == "pybind11_builtins"


def is_nameless(function: Any) -> bool:
    """Is it a function that pybind11 has made?"""
    return isinstance(function, types.BuiltinFunctionType) and is_function_record(function.__self__)


def _functions_of(member: Any) -> dict[str, Any]:
    """The functions that a class calls through one of its members."""
    if isinstance(member, property):
        return {"fget": member.fget, "fset": member.fset, "fdel": member.fdel}
    if isinstance(member, (_InstanceMethod, staticmethod)):
        return {"__func__": member.__func__}
    return {}


@functools.cache
def _slots() -> dict[int, list[Slot]]:
    """The members of all classes that pybind11 has made, and the functions in them."""
    found: dict[int, list[Slot]] = {}
    todo: list[type] = [object]
    known = set()
    while todo:
        cls = todo.pop()
        if cls in known:
            continue
        known.add(cls)
        todo += type.__subclasses__(cls)
        for name, member in list(type.__getattribute__(cls, "__dict__").items()):
            if is_nameless(member):
                found.setdefault(id(member), []).append((weakref.ref(cls), name))
            for inside, function in _functions_of(member).items():
                if is_nameless(function):
                    found.setdefault(id(member), []).append((weakref.ref(cls), name))
                    found.setdefault(id(function), []).append((weakref.ref(cls), name, inside))
    return found


# -- content ---------------------------------------------------------------------------------------


def is_made_in_c(cls: type) -> bool:
    """Is it a class without code of a program's, which objects of C types have?"""
    flags = cls.__flags__ & 0x300  # Py_TPFLAGS_IMMUTABLETYPE, Py_TPFLAGS_HEAPTYPE
    new = type.__getattribute__(cls, "__dict__").get("__new__")
    return flags != 0x200 or type(new) is types.BuiltinFunctionType


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
