"""What an object is called in every process, and what one without a name consists of.

In: an object that a guard compares with. Out: JSON: its name, which leads to this very object, or a
description, which is equal for the object to be used in its place. Next: data.
"""

from __future__ import annotations

import base64
import contextlib
import copyreg
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import operator
import re
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import torch

from framejit.graph.opaque import is_value_class
from framejit.native import CompiledFunction
from framejit.package import forms, naming

Json = Any


class Unsaveable(Exception):
    """Something that no other process can find or make again; the message completes
    "cannot be saved: it refers to ..."."""


class Home(NamedTuple):
    """The module of the function that a package is for; the script that loads may be another."""

    namespace: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.namespace.get("__name__"))


#: Python limits the length of decimal numbers.
_DECIMAL_BITS = 2000
_TORCH_NAMES = (torch.dtype, torch.layout, torch.memory_format, torch.qscheme)
#: What a subclass adds to these can change, but not what they are; no code of its runs.
_FROZEN: dict[type, Callable[[Any], Any]] = {
    int: int.__int__, float: float.__float__, complex: complex.__complex__, str: str.__str__,
    bytes: bytes.__bytes__,
}  # fmt: skip
#: Values that are made of texts, numbers and each other.
PLAIN_OBJECTS = frozenset({
    decimal.Decimal, fractions.Fraction, datetime.date, datetime.time, datetime.datetime,
    datetime.timedelta, datetime.timezone,
})  # fmt: skip
_GETTERS = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


def literal(obj: Any) -> Json:
    """JSON for what needs no name; None for everything else (and for None)."""
    kind = type(obj)
    if kind is int and obj.bit_length() > _DECIMAL_BITS:
        return ["int", hex(obj)]
    if kind is bool or kind is int or kind is str:
        return obj
    if kind is float:
        return obj if obj - obj == 0 else ["f", obj.hex()]
    if kind is bytes:
        return ["b", base64.b64encode(obj).decode()]
    if kind is complex:
        return ["c", obj.real.hex(), obj.imag.hex()]
    if kind is range:
        return ["range", obj.start, obj.stop, obj.step]
    if obj is Ellipsis:
        return ["..."]
    if obj is NotImplemented:
        return ["o", "builtins", "NotImplemented"]
    if isinstance(obj, _TORCH_NAMES):
        return ["torch", str(obj).removeprefix("torch.")]
    if kind is torch.device:
        return ["device", str(obj)]
    if isinstance(obj, numpy.dtype) and obj.kind in "biufc":
        return ["numpy", obj.str]
    if isinstance(obj, numpy.generic) and obj.dtype.kind in "biufc":
        return ["numpy", obj.dtype.str, base64.b64encode(obj.tobytes()).decode()]
    if kind is torch.finfo or kind is torch.iinfo:
        return ["info", kind.__name__, obj.dtype]
    return None


def identity(obj: Any, home: Home) -> Json | None:
    """A name that leads to this very object in any process."""
    if isinstance(obj, _TORCH_NAMES) or (isinstance(obj, numpy.dtype) and obj.isbuiltin):
        return literal(obj)
    if isinstance(obj, torch._ops._OpNamespace):
        return ["operators", obj.name, None] if getattr(torch.ops, obj.name) is obj else None
    if isinstance(obj, types.ModuleType):
        if vars(obj) is home.namespace:
            return ["m", "@"]
        name = vars(obj).get("__name__")
        return ["m", name] if isinstance(name, str) and sys.modules.get(name) is obj else None
    spelling = naming.operator_of(obj)
    if spelling is not None:
        return ["op", *spelling]
    if type(obj) is dict:
        return _namespace_name(obj, home)
    if isinstance(obj, (bool, int, float, str, bytes, tuple, list, dict, set, frozenset)):
        return None
    named = naming.name_of(obj)
    if named is not None:
        module, qualified = named
        return ["o", "@" if module == home.name else module, qualified]
    if isinstance(obj, type) and issubclass(obj, types.ModuleType):
        for known, loaded in list(sys.modules.items()):  # a module in place of its own file
            if type(loaded) is obj:
                return ["class of", ["m", known]]
    receiver = naming.attribute(obj, "__self__")  # object.__new__ and the like
    if isinstance(obj, types.BuiltinMethodType) and isinstance(receiver, type):
        owner = identity(receiver, home)
        return None if owner is None else ["bound", owner, obj.__name__]
    for cls, *path in naming.slots_of(obj):
        owner = identity(cls, home)
        if owner is not None:
            return ["slot", owner, *path]
    return None


def _namespace_name(obj: dict[str, Any], home: Home) -> Json | None:
    """The globals of a module."""
    if obj is sys.modules:
        return ["modules"]
    if obj is home.namespace:
        return ["g", "@"]
    name = obj.get("__name__")
    if not isinstance(name, str):
        return None
    operators = getattr(torch.ops, name.removeprefix("torch.ops."), None)
    if name.startswith("torch.ops.") and vars(operators) is obj:
        packets = [k for k, v in obj.items() if isinstance(v, torch._ops.OpOverloadPacket)]
        return ["operators", name.removeprefix("torch.ops."), sorted(packets)]
    module = sys.modules.get(name)
    if module is not None and getattr(module, "__dict__", None) is obj:
        return ["g", name]
    for known, module in list(sys.modules.items()):  # registered under another name
        if getattr(module, "__dict__", None) is obj:
            return ["g", known]
    return None


def describe(obj: Any, home: Home) -> Json:
    """The content of an object without a name; equal for the one to be used in its place.

    Raises Unsaveable for objects whose identity promises more than can be compared.
    """
    named = identity(obj, home)
    if named is not None:
        return named
    plain = literal(obj)
    if plain is not None or obj is None:
        return ["literal", plain]
    if isinstance(obj, type):
        return ["class", obj.__module__, obj.__qualname__, naming.class_hash(obj)]
    if isinstance(obj, types.FunctionType):
        return ["function", obj.__qualname__, naming.code_hash(obj.__code__)]
    if isinstance(obj, types.CodeType):
        return ["codeof", naming.code_hash(obj)]
    if isinstance(obj, enum.Enum):
        return ["member", describe(type(obj), home), obj._name_, describe(obj._value_, home)]
    if isinstance(obj, types.ModuleType):
        return ["module", str(vars(obj).get("__name__"))]
    if isinstance(obj, CompiledFunction) and obj.function is not None:
        return ["compiled", describe(obj.function, home)]
    if isinstance(obj, (tuple, frozenset)):
        items = [describe(item, home) for item in obj]
        if isinstance(obj, frozenset):
            items.sort(key=repr)
        return ["content", type(obj).__qualname__, *items]
    if isinstance(obj, (staticmethod, classmethod)):
        return [type(obj).__name__, describe(obj.__func__, home)]
    if isinstance(obj, property):
        return ["property", *[describe(f, home) for f in (obj.fget, obj.fset, obj.fdel)]]
    if isinstance(obj, types.MethodType):
        return ["method", describe(obj.__func__, home), describe(obj.__self__, home)]
    form = forms.parts_of(obj)
    if form is not None:
        return ["form", form[0], *[describe(part, home) for part in form[1]]]
    owner = naming.attribute(obj, "__objclass__")
    if isinstance(owner, type):
        name = naming.attribute(obj, "__name__")
        return ["descriptor", type(obj).__name__, name, describe(owner, home)]
    if type(obj) is dict and "__name__" in obj and "__builtins__" in obj:
        return ["globals", obj["__name__"]]
    content = _content(obj)
    if content is None:
        raise Unsaveable(f"an object of class {type(obj).__module__}.{type(obj).__qualname__}")
    return ["instance", describe(type(obj), home), *[describe(part, home) for part in content]]


def _content(obj: Any) -> tuple[Any, ...] | None:
    """What an object consists of that it cannot change; None if that is not known.

    What can change is guarded wherever it is looked at: an object of a class of the program's, a
    tensor or a list promises no content by being the same one. A pattern or an `itemgetter` does.
    """
    kind = type(obj)
    for base, plain in _FROZEN.items():
        if issubclass(kind, base):
            return (plain(obj),)
    parts = parts_of(obj)
    if parts is not None:
        return parts[1:]
    hashed = naming.attribute(kind, "__hash__")
    if isinstance(obj, torch.Tensor) or hashed is None or not naming.is_made_in_c(kind):
        return ()
    if isinstance(obj, (types.BuiltinMethodType, types.MethodWrapperType)):
        return None if naming.is_function_record(obj.__self__) else (obj.__name__, obj.__self__)
    if kind is super:
        return obj.__thisclass__, obj.__self__
    compared = kind.__eq__ is not object.__eq__
    reduce = copyreg.dispatch_table.get(kind)
    try:
        made = obj.__reduce_ex__(2) if reduce is None else reduce(obj)
    except Exception:  # no pickle: if each is equal to itself only, it is a handle of something
        return None if compared else ()
    if isinstance(made, str):
        return (made,)
    make, args, *state = made
    # What can be set later is no content, unless objects are equal by it.
    return (make, *args, *(state if compared else ()))


def parts_of(obj: Any) -> tuple[Any, ...] | None:
    """A tag, and what makes an equal object, for one that stays as it is: of a class in C, or that
    is registered with torch as constants are."""
    kind = type(obj)
    if kind is functools.partial:
        return "partial", obj.func, obj.args, tuple(obj.keywords.items())
    if kind is re.Pattern:
        return "pattern", obj.pattern, obj.flags
    if kind is re.Match:
        return "match", obj.re, obj.string, obj.pos, obj.endpos, obj.regs
    if kind in _GETTERS:
        make, args = obj.__reduce__()[:2]
        keywords: dict[str, Any] = {}
        if make is not kind:  # partial(methodcaller, name, **keywords)
            keywords, args = make.keywords, (*make.args, *args)
        return "getter", kind, args, tuple(keywords.items())
    if kind in PLAIN_OBJECTS:
        make, args = obj.__reduce__()[:2]
        return "plain", make, *args
    if is_value_class(kind):
        with contextlib.suppress(Exception):
            make, args, state, *rest = obj.__reduce_ex__(2)
            if make is copyreg.__newobj__ and not any(rest):  # type: ignore[attr-defined]
                return "constant", args[0], args[1:], state
    return None


def is_record_class(cls: type) -> bool:
    """Is it a class of torch's with fields, whose objects are equal by these, as the layouts of
    distributed tensors are? Those that captures make are known to nobody else."""
    own = naming.attribute(cls, "__module__")
    compared = naming.attribute(cls, "__hash__") is not None and cls.__eq__ is not object.__eq__
    return str(own).startswith("torch.") and dataclasses.is_dataclass(cls) and compared


def words_of(description: Json) -> str:
    """A description for messages: "instance of ..."."""
    if type(description) is not list:
        return str(description)
    if description[0] in ("o", "class"):
        return ".".join(map(str, description[1:3]))
    return " ".join(words_of(part) for part in description)
