"""Python values as JSON and back, without pickle: literals, containers, and objects by name.

In: what guards compare with and what generated functions refer to. Out: JSON. An object that has no
name (a local class, a lambda) becomes a *late* reference: a description of its content, and later
the places (guard nodes) where the loading process has such an object. Next: graphs, entries.
"""

from __future__ import annotations

import base64
import collections
import contextlib
import enum
import functools
import inspect
import marshal
import sys
import types
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy
import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list

from framejit.exc import PackageError
from framejit.graph.functions import applied, is_applied
from framejit.graph.nested import note_made, was_made
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


class Codes:
    """The code objects that a package refers to, each once."""

    def __init__(self) -> None:
        self.rows: list[Json] = []
        self._known: dict[int, tuple[types.CodeType, int]] = {}
        self._appended: dict[int, tuple[list[Json], int]] = {}

    def append(self, rows: list[Json]) -> int:
        """The number that the first row of another package's table has in this one."""
        known = self._appended.get(id(rows))
        if known is None:
            known = self._appended[id(rows)] = (rows, len(self.rows))
            self.rows += rows
        return known[1]

    def add(self, code: types.CodeType, module: str) -> int:
        """The number of ``code``; ``module`` says where its function may be found."""
        known = self._known.get(id(code))
        if known is None:
            row = {
                "module": module, "name": code.co_qualname, "hash": naming.code_hash(code),
                "code": base64.b64encode(marshal.dumps(code)).decode(),
            }  # fmt: skip
            known = self._known[id(code)] = (code, len(self.rows))
            self.rows.append(row)
        return known[1]


#: Python limits the length of decimal numbers.
_DECIMAL_BITS = 2000
#: What a variable of a closure holds that has no value yet.
_NOTHING = types.CellType()


def _function_parts(function: types.FunctionType) -> tuple[Any, ...]:
    cells = function.__closure__ or ()
    held = tuple([() if cell == _NOTHING else (cell.cell_contents,) for cell in cells])
    parts = function.__code__, function.__globals__, function.__defaults__, function.__kwdefaults__
    return *parts, held


_TORCH_NAMES = (torch.dtype, torch.layout, torch.memory_format, torch.qscheme)
#: The descriptor of a named tuple's field.
_TUPLE_GETTER = type(collections.namedtuple("_Point", "x").x)  # type: ignore[attr-defined]
_CONTAINERS: dict[type, str] = {tuple: "t", list: "l", set: "s", frozenset: "fs", torch.Size: "z"}
#: What graphs make of the containers among the arguments of a node.
_IN_GRAPHS: dict[type, type] = {immutable_list: list, immutable_dict: dict}


def _parts(obj: Any) -> tuple[Any, ...] | None:
    """A tag of `_MAKERS` and what it takes, for an object of which only the content matters."""
    kind = type(obj)
    if kind is slice:
        return "slice", obj.start, obj.stop, obj.step
    if kind is functools.partial:
        return "partial", obj.func, obj.args, dict(obj.keywords)
    if kind is types.FunctionType and is_applied(obj):
        return "applied", obj.__closure__[0].cell_contents
    if kind is types.FunctionType and was_made(obj):
        return "function", *_function_parts(obj)
    if kind is types.MethodType and was_made(obj):
        return "method", obj.__func__, obj.__self__
    if isinstance(obj, tuple) and hasattr(kind, "_fields"):
        return "nt", kind, *obj
    return None


class Encoder:
    """Encodes the values of one entry; ``late`` are its objects without a name."""

    def __init__(self, home: Home, codes: Codes) -> None:
        self.home = home
        self.codes = codes
        self.late: list[Json] = []
        self.tensors: list[torch.Tensor] = []
        #: While a graph is encoded: its nodes by now, with their positions.
        self.nodes: dict[torch.fx.Node, int] = {}
        self._late_objects: list[Any] = []

    def value(self, obj: Any) -> Json:
        """JSON for ``obj``. Raises Unsaveable."""
        plain = literal(obj)
        if plain is not None or obj is None:
            return plain
        kind = type(obj)
        if self.nodes:
            if kind is torch.fx.Node:
                return ["n", self.nodes[obj]]
            kind = _IN_GRAPHS.get(kind, kind)
        tag = _CONTAINERS.get(kind)
        if tag is not None:
            items = [self.value(item) for item in obj]
            return [tag, *(sorted(items, key=repr) if tag in ("s", "fs") else items)]
        if kind is dict:
            return self.dictionary(obj)
        if isinstance(obj, enum.Enum) and identity(kind, self.home) is not None:
            return ["enum", self.value(kind), self.value(obj.value)]
        if isinstance(obj, types.CodeType):
            return ["code", self.codes.add(obj, self.home.name)]
        parts = _parts(obj)
        if parts is not None:
            return [parts[0], *map(self.value, parts[1:])]
        named = identity(obj, self.home)
        if named is not None:
            return named
        form = forms.parts_of(obj)
        if form is not None:
            return ["form", form[0], *map(self.value, form[1])]
        return self._late(obj)

    def dictionary(self, obj: dict[Any, Any]) -> Json:
        """A dict by content, or the namespace of a module by name."""
        named = identity(obj, self.home)
        if named is not None:
            return named
        if "__name__" in obj and "__builtins__" in obj:
            return self._late(obj)
        return ["d", *[[self.value(key), self.value(item)] for key, item in obj.items()]]

    def _late(self, obj: Any) -> Json:
        for number, known in enumerate(self._late_objects):
            if known is obj:
                return ["late", number]
        self.late.append({"is": describe(obj, self.home), "at": []})
        self._late_objects.append(obj)
        return ["late", len(self.late) - 1]

    def seen(self, encoded: Json, node: int, how: str) -> None:
        """A late object is found at a guard node: it is the "value" there or its "type"."""
        if type(encoded) is list and encoded[0] == "late":
            self.late[encoded[1]]["at"].append([node, how])

    def pinned(self, obj: Any) -> Json:
        """What an identity check compares with: found by name, else by its place and content."""
        if obj is None or obj is True or obj is False or obj is Ellipsis:
            return self.value(obj)
        if identity(obj, self.home) is not None:
            return self.value(obj)
        if isinstance(obj, enum.Enum) and identity(type(obj), self.home) is not None:
            return self.value(obj)
        if type(obj) in (inspect.Signature, inspect.Parameter):  # made by the capture itself
            return self.value(obj)
        return self._late(obj)

    def start(self, obj: Any) -> Json:
        """Where a path of guards starts: attributes of a text are those of any equal one."""
        plain = self.value(obj) if was_made(obj) else literal(obj)
        return self.pinned(obj) if plain is None else plain

    def place(self, tree: list[Any]) -> None:
        """Late objects that no check compares with: perhaps they are the class or the dict of one
        that a check leads to; or a guard compares what they consist of, which is the case for
        classes and functions that the program makes as it runs."""
        for late, obj in zip(self.late, self._late_objects, strict=True):
            for number, other in enumerate(self._late_objects):
                if not late["at"] and other is not obj:
                    if type(other) is obj:
                        late["at"].append([["late", number], "type"])
                    elif naming.attribute(other, "__dict__") is obj:
                        late["at"].append([["late", number], "dict"])
            for parent, accessor, key, checks, _ in tree:
                expected = [check[1] for check in checks if check[0] == "equals"]
                if not late["at"] and accessor == "call" and parent >= 0 and expected:
                    with contextlib.suppress(Exception):  # it is made for objects of another kind
                        if key(obj) == expected[0]:
                            late["at"].append([parent, "value"])

    def tensor(self, obj: torch.Tensor) -> Json:
        """A constant of a graph: one that a guard leads to, or its data go into a part of their
        own."""
        for number, known in enumerate(self._late_objects):
            if known is obj:
                return ["late", number]
        for number, known in enumerate(self.tensors):
            if known is obj:
                return ["tensor", number]
        self.tensors.append(obj)
        return ["tensor", len(self.tensors) - 1]


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
    if named is None and isinstance(obj, type) and issubclass(obj, types.ModuleType):
        for known, loaded in list(sys.modules.items()):  # a module in place of its own file
            if type(loaded) is obj:
                return ["class of", ["m", known]]
    if named is None:
        receiver = naming.attribute(obj, "__self__")  # object.__new__ and the like
        if isinstance(obj, types.BuiltinMethodType) and isinstance(receiver, type):
            owner = identity(receiver, home)
            return None if owner is None else ["bound", owner, obj.__name__]
        return None
    module, qualified = named
    return ["o", "@" if module == home.name else module, qualified]


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
    if type(obj) is _TUPLE_GETTER:
        return ["field", list(obj.__reduce__()[1])]
    owner = naming.attribute(obj, "__objclass__")
    if isinstance(owner, type):
        name = naming.attribute(obj, "__name__")
        return ["descriptor", type(obj).__name__, name, describe(owner, home)]
    if type(obj) is dict and "__name__" in obj and "__builtins__" in obj:
        return ["globals", obj["__name__"]]
    # The identity of an object that can change promises nothing of its content.
    mutable = isinstance(obj, torch.Tensor) or type(obj) in (dict, list, set)
    if mutable or type(obj).__flags__ & 0x200:
        return ["instance", describe(type(obj), home)]
    raise Unsaveable(f"an object of class {type(obj).__module__}.{type(obj).__qualname__}")


class Decoder:
    """Decodes the values of one entry. ``late`` holds the objects that were found by now."""

    def __init__(self, home: Home, code_at: Callable[[int], types.CodeType]) -> None:
        self.home = home
        self.code_at = code_at
        self.late: dict[int, Any] = {}
        self.tensors: list[torch.Tensor] = []
        #: While a graph is decoded: its nodes by now.
        self.nodes: list[torch.fx.Node] = []

    def value(self, data: Json) -> Any:
        """The way back from `Encoder.value`. LookupError: a late object is not known yet."""
        if type(data) is not list:
            return data
        tag, *parts = data
        make = _MAKERS.get(tag)
        if make is not None:
            return make(*self.values(parts))
        find = _FINDERS.get(tag)
        if find is None:
            raise PackageError(f"a package holds a value of unknown kind {tag!r}")
        return find(self, *parts)

    def values(self, data: Json) -> list[Any]:
        return [self.value(item) for item in data]


def _object(decoder: Decoder, module: str, qualified: str) -> Any:
    if module != "@":
        return naming.find(module, qualified)
    first, *rest = qualified.split(".")
    try:
        found = decoder.home.namespace[first]
        for part in rest:
            found = getattr(found, part)
    except (KeyError, AttributeError) as error:
        raise PackageError(f"there is no {decoder.home.name}.{qualified}") from error
    return found


def _module(decoder: Decoder, name: str) -> Any:
    if name == "@":
        return sys.modules[decoder.home.name]
    return naming._module_or_member(name)


def _namespace(decoder: Decoder, name: str) -> Any:
    return decoder.home.namespace if name == "@" else vars(naming._module_or_member(name))


def _operators(decoder: Decoder, name: str, packets: list[str] | None) -> Any:
    """A namespace of ``torch.ops``, or its dict, in which an operator appears when it is used."""
    namespace = getattr(torch.ops, name)
    if packets is None:
        return namespace
    for packet in packets:
        if not hasattr(namespace, packet):
            raise PackageError(f"there is no operator {name}::{packet} in this process")
    return vars(namespace)


def _late(decoder: Decoder, number: int) -> Any:
    if number not in decoder.late:
        raise LookupError(number)
    return decoder.late[number]


def _partial(function: Any, args: Any, keywords: Any) -> Any:
    return functools.partial(function, *args, **keywords)


def _function(
    code: types.CodeType, namespace: dict[str, Any], defaults: Any, keywords: Any, held: Any
) -> Any:
    cells = tuple([types.CellType(*contents) for contents in held])
    function = types.FunctionType(code, namespace, None, defaults, cells)
    function.__kwdefaults__ = keywords
    return note_made(function)


def _numpy(dtype: str, content: str | None = None) -> Any:
    made = numpy.dtype(dtype)
    return made if content is None else numpy.frombuffer(base64.b64decode(content), made)[0]


def _form(tag: str, *parts: Any) -> Any:
    try:
        return forms.make(tag, list(parts))
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise PackageError(f"a package holds a {tag} that cannot be made: {error}") from error


#: What makes an object again from its parts, which are decoded.
_MAKERS: dict[str, Callable[..., Any]] = {
    "t": lambda *items: items,
    "l": lambda *items: list(items),
    "s": lambda *items: set(items),
    "fs": lambda *items: frozenset(items),
    "z": lambda *items: torch.Size(items),
    "class of": type,
    "int": lambda text: int(text, 16),
    "f": float.fromhex,
    "b": base64.b64decode,
    "c": lambda real, imag: complex(float.fromhex(real), float.fromhex(imag)),
    "range": range,
    "slice": slice,
    "...": lambda: Ellipsis,
    "torch": lambda name: getattr(torch, name),
    "device": torch.device,
    "info": lambda kind, name: getattr(torch, kind)(getattr(torch, name)),
    "op": lambda *spelling: naming.find_operator(list(spelling)),
    "modules": lambda: sys.modules,
    "bound": getattr,
    "enum": lambda cls, value: cls(value),
    "nt": lambda cls, *items: cls(*items),
    "partial": _partial,
    "applied": applied,
    "function": _function,
    "method": lambda *parts: note_made(types.MethodType(*parts)),
    "numpy": _numpy,
    "form": _form,
}
#: What finds an object: with the decoder, and the rest as it is written.
_FINDERS: dict[str, Callable[..., Any]] = {
    "d": lambda decoder, *items: {decoder.value(k): decoder.value(v) for k, v in items},
    "o": _object,
    "m": _module,
    "g": _namespace,
    "operators": _operators,
    "code": lambda decoder, number: decoder.code_at(number),
    "tensor": lambda decoder, number: decoder.tensors[number],
    "n": lambda decoder, number: decoder.nodes[number],
    "late": _late,
}
