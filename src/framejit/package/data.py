"""Python values as JSON and back, without pickle: literals, containers, and objects by name.

In: what guards compare with and what generated functions refer to. Out: JSON. An object that has no
name (a local class, a lambda) becomes a *late* reference: a description of its content, and later
the places (guard nodes) where the loading process has such an object. Next: graphs, entries.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import enum
import functools
import inspect
import marshal
import operator
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy
import torch
from torch.fx.immutable_collections import immutable_dict, immutable_list

from framejit.exc import PackageError
from framejit.graph.functions import applied, is_applied
from framejit.graph.holding import Holding
from framejit.graph.nested import note_made, was_made
from framejit.graph.opaque import is_value_class
from framejit.guards.texts import shown_name
from framejit.package import forms, naming
from framejit.package.descriptions import (
    PLAIN_OBJECTS,
    Home,
    Json,
    Unsaveable,
    describe,
    identity,
    is_record_class,
    literal,
    parts_of,
    words_of,
)
from framejit.source import Source


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


#: What a variable of a closure holds that has no value yet.
_NOTHING = types.CellType()


def _function_parts(function: types.FunctionType) -> tuple[Any, ...]:
    cells = function.__closure__ or ()
    held = tuple([() if cell == _NOTHING else (cell.cell_contents,) for cell in cells])
    parts = function.__code__, function.__globals__, function.__defaults__, function.__kwdefaults__
    return *parts, held


_CONTAINERS: dict[type, str] = {tuple: "t", list: "l", set: "s", frozenset: "fs", torch.Size: "z"}
#: What graphs make of the containers among the arguments of a node.
_IN_GRAPHS: dict[type, type] = {immutable_list: list, immutable_dict: dict}


def _parts(obj: Any) -> tuple[Any, ...] | None:
    """A tag of `_MAKERS` and what it takes, for an object of which only the content matters."""
    kind = type(obj)
    if kind is slice:
        return "slice", obj.start, obj.stop, obj.step
    if kind is Holding:
        return "holding", *obj.parts
    if kind is types.FunctionType and is_applied(obj):
        return "applied", obj.__closure__[0].cell_contents
    if kind is types.FunctionType and was_made(obj):
        return "function", *_function_parts(obj)
    if kind is types.MethodType and was_made(obj):
        return "method", obj.__func__, obj.__self__
    if isinstance(obj, tuple) and hasattr(kind, "_fields"):
        return "nt", kind, *obj
    return parts_of(obj)


class Encoder:
    """Encodes the values of one entry; ``late`` are its objects without a name."""

    def __init__(self, home: Home, codes: Codes) -> None:
        self.home = home
        self.codes = codes
        self.late: list[Json] = []
        self.tensors: list[torch.Tensor] = []
        #: While a graph is encoded: its nodes by now, with their positions.
        self.nodes: dict[torch.fx.Node, int] = {}
        #: While guards are encoded: where the one that is encoded now looks.
        self.source: Source | None = None
        self._late_objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._where: list[str] = []

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
            return self._member(obj)
        if isinstance(obj, types.CodeType):
            return ["code", self.codes.add(obj, self.home.name)]
        if id(obj) in self._numbers and not was_made(obj):
            return self._late(obj)
        parts = _parts(obj)
        if parts is not None:
            return [parts[0], *map(self.value, parts[1:])]
        named = identity(obj, self.home)
        if named is not None:
            return named
        form = forms.parts_of(obj)
        if form is not None:
            return ["form", form[0], *map(self.value, form[1])]
        for cls, *path in naming.slots_of(obj):
            if id(cls) in self._numbers:
                return ["slot", self._late(cls), *path]
        return self._late(obj)

    def dictionary(self, obj: dict[Any, Any]) -> Json:
        """A dict by content, or the namespace of a module by name."""
        named = identity(obj, self.home)
        if named is not None:
            return named
        if "__name__" in obj and "__builtins__" in obj:
            return self._late(obj)
        return ["d", *[[self.value(key), self.value(item)] for key, item in obj.items()]]

    def _member(self, obj: enum.Enum) -> Json:
        """A member of an enumeration, or several flags in one, which have no name."""
        kind = type(obj)
        if kind.__members__.get(obj._name_) is not obj:
            return ["flags", self.value(kind), self.value(obj._value_)]
        return ["enum", self.value(kind), obj._name_, describe(obj._value_, self.home)]

    def _late(self, obj: Any) -> Json:
        number = self._numbers.get(id(obj))
        if number is None:
            where = "" if self.source is None else f" ({shown_name(self.source)})"
            try:
                self.late.append({"is": describe(obj, self.home), "at": []})
            except Unsaveable as error:
                raise Unsaveable(f"{error}{where}") from error
            number = self._numbers[id(obj)] = len(self._late_objects)
            self._late_objects.append(obj)
            self._where.append(where)
        return ["late", number]

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
        if is_record_class(type(obj)):
            fields = [field.name for field in dataclasses.fields(obj) if field.init]
            content = {name: getattr(obj, name) for name in fields}
            return ["record", self.value(type(obj)), self.dictionary(content)]
        again = was_made(obj) or forms.parts_of(obj) is not None or parts_of(obj) is not None
        plain = self.value(obj) if again else literal(obj)
        return self.pinned(obj) if plain is None else plain

    def settle(self, tree: list[Any], rows: list[Json]) -> None:
        """Make sure that the loading process finds each late object; ``rows`` are the guard nodes
        of ``tree`` as they are saved. Raises Unsaveable."""
        if not all(late["at"] for late in self.late):
            self._place(tree)
        found: set[int] = set()
        needed: list[set[int]] = []  # by each node's path
        for parent, _, key, _, _ in rows:
            needed.append(_late_in(key) | (needed[parent] if parent >= 0 else set()))
        news = True
        while news:
            news = False
            for number, late in enumerate(self.late):
                places = [_late_in(at) if type(at) is list else needed[at] for at, _ in late["at"]]
                if number not in found and any(place <= found for place in places):
                    found.add(number)
                    news = True
        for number, late in enumerate(self.late):
            if number not in found:
                where = self._where[number]
                raise Unsaveable(f"{words_of(late['is'])}, which no guard leads to{where}")

    def _place(self, tree: list[Any]) -> None:
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
        if id(obj) in self._numbers:
            return self._late(obj)
        for number, known in enumerate(self.tensors):
            if known is obj:
                return ["tensor", number]
        self.tensors.append(obj)
        return ["tensor", len(self.tensors) - 1]


def _late_in(data: Json) -> set[int]:
    """The late objects that a value needs."""
    if type(data) is not list:
        return set()
    if data[:1] == ["late"]:
        return {data[1]}
    return set().union(*map(_late_in, data))


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
    """A namespace of ``torch.ops``, or its dict, in which an operator appears when it is used.

    The process that saved may have had more of them than the program uses; what guards and graphs
    name is looked for there.
    """
    namespace = getattr(torch.ops, name)
    if packets is None:
        return namespace
    for packet in packets:
        getattr(namespace, packet, None)
    return vars(namespace)


def _late(decoder: Decoder, number: int) -> Any:
    if number not in decoder.late:
        raise LookupError(number)
    return decoder.late[number]


def _slot(decoder: Decoder, cls: Json, name: str, *attributes: str) -> Any:
    """A member of a class itself, or an attribute of that."""
    owner = decoder.value(cls)
    try:
        return naming.find_slot(owner, name, *attributes)
    except (KeyError, AttributeError, TypeError) as error:
        raise PackageError(f"there is no {owner!r}.{name} as it was in this process") from error


def _member(decoder: Decoder, cls: Json, name: str, content: Json) -> Any:
    """A member of an enumeration that has the value which it had."""
    kind = decoder.value(cls)
    member = kind.__members__.get(name)
    if member is None or describe(member._value_, decoder.home) != content:
        raise PackageError(f"{kind.__qualname__}.{name} is not what it was")
    return member


def _partial(function: Any, args: Any, keywords: Any) -> Any:
    return functools.partial(function, *args, **dict(keywords))


def _getter(kind: Any, args: Any, keywords: Any) -> Any:
    if kind not in (operator.itemgetter, operator.attrgetter, operator.methodcaller):
        raise PackageError(f"a package holds a getter of kind {kind!r}")
    return kind(*args, **dict(keywords))


def _match(pattern: Any, *told: Any) -> Any:
    """The match that looks like that one, whatever found it."""
    text, start, end, _ = told
    for find in (pattern.match, pattern.fullmatch, pattern.search):
        made = find(text, start, end)
        if made is not None and (made.string, made.pos, made.endpos, made.regs) == told:
            return made
    for made in pattern.finditer(text, start, end):
        if made.regs == told[-1]:
            return made
    raise PackageError(f"a package holds a match of {pattern.pattern!r} that is not found again")


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


def _constant(kind: Any, args: Any, state: Any) -> Any:
    """An object of a class that is registered with torch as constants are."""
    if not is_value_class(kind):
        raise PackageError(f"a package holds a constant of {kind!r}, which is no such class")
    made = kind.__new__(kind, *args)
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    elif state is not None:
        vars(made).update(state)
    return made


def _record(kind: Any, fields: Any) -> Any:
    if not is_record_class(kind):
        raise PackageError(f"a package holds a record of {kind!r}")
    return kind(**fields)


def _plain_object(kind: Any, *args: Any) -> Any:
    if kind not in PLAIN_OBJECTS:
        raise PackageError(f"a package holds an object of {kind!r}")
    return kind(*args)


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
    "flags": lambda cls, value: cls(value),
    "nt": lambda cls, *items: cls(*items),
    "partial": _partial,
    "getter": _getter,
    "plain": _plain_object,
    "holding": Holding,
    "constant": _constant,
    "record": _record,
    "pattern": re.compile,
    "match": _match,
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
    "slot": _slot,
    "enum": _member,
}
