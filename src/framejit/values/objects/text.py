"""Text: ``str()``, ``repr()``, f-strings, ``%``, ``format()``, ``join()`` and ``+``.

In: values, conversions and format specs. Out: a constant string; where a number or text that nobody
has looked at or that varies is part of it, a `TextValue`, which generated code makes. User-defined
``__repr__`` and friends are inlined. Next room: interpreter.
"""

from __future__ import annotations

import decimal
import itertools
import operator
import re
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch

from framejit.exc import GraphBreak
from framejit.values.containers.folding import fold
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.amounts import check_size
from framejit.values.core.base import Args, Kwargs, Value, is_heap_class, type_name
from framejit.values.core.carried import CarriedSum, with_known_class
from framejit.values.core.constants import ConstantValue, guard_decimal_context
from framejit.values.core.methods import as_returned, listed
from framejit.values.core.operations import LazyValue
from framejit.values.core.registry import METHODS
from framejit.values.core.space import Space
from framejit.values.core.symbolic import SymbolicValue
from framejit.values.objects.exceptions import text_is_of_args

_CONVERSIONS: dict[str, Callable[[Any], str]] = {"s": str, "r": repr, "a": ascii}


class Field(NamedTuple):
    """A number or text in a text. ``form``: None, "s", "r" or "a" as in an f-string; "%" when
    ``spec`` is a directive of ``%`` formatting."""

    value: Value
    form: str | None
    spec: str

    def text(self, obj: Any) -> str:
        """What CPython makes of the object."""
        if self.form == "%":
            return str(self.spec % (obj,))
        return format(obj if self.form is None else _CONVERSIONS[self.form](obj), self.spec)


class TextValue(ConstantValue):
    """A text with fields whose content nobody has asked for. Asked for, it is what it is now
    (``now``), with all that means for guards: then it is a constant like any other."""

    __slots__ = ("is_open", "now", "parts")

    def __init__(self, parts: list[str | Field], now: str) -> None:
        self.parts = parts
        self.now = now
        self.is_open = True
        self.source = None

    @property
    def value(self) -> str:  # type: ignore[override]
        if self.is_open:
            self.is_open = False
            for part in self.parts:
                if type(part) is Field:
                    part.value.realize().as_python()
        return self.now

    def python_type(self) -> type:
        return str

    def truth(self, space: Space) -> bool:
        return any(type(part) is str and part for part in self.parts) or bool(self.value)


def _open_kind(value: Value) -> type | None:
    """The class of a number or text whose content is left open; None for other values."""
    kind = type(value)
    if kind is LazyValue and value.value is None:  # type: ignore[attr-defined]
        return type(value.obj)  # type: ignore[attr-defined]
    if kind is CarriedSum:
        return int
    if kind is SymbolicValue:
        return value.python_type()
    return value.python_type() if value.is_open else None


def _now(value: Any) -> Any:
    """What a number or text that is left open is at capture; None if that is not known."""
    if type(value) is SymbolicValue:
        return None if value.python_type() is bool else value.now()
    if type(value) is CarriedSum:
        return value.base.obj + value.step
    return value.obj if type(value) is LazyValue else value.now


def _field(value: Value, form: str | None, spec: str) -> Value | None:
    """A field for a number or text that is left open; None for another value, or when CPython
    would complain."""
    kind = _open_kind(value)
    now = None if kind is None else _now(value)
    if now is None:
        return None
    if kind is str and not spec and form in (None, "s"):
        return value
    field = Field(value, form, spec)
    try:
        return TextValue([field], field.text(now))
    except Exception:
        return None


def _is_known(value: Value) -> bool:
    """Is it a constant, or should it be one? Tuples have a text for each element."""
    return value.is_symbolic or (type(value) is not TupleValue and value.is_constant)


def joined(values: Iterable[Value]) -> Value:
    """Strings one after the other."""
    parts: list[str | Field] = []
    contents: list[str] = []
    last = None
    for value in values:
        content = _now(value) if _open_kind(value) is str else value.realize().as_python()
        if not content and type(value) is ConstantValue:
            continue
        contents.append(content)
        last = value
        if _open_kind(value) is None:
            parts.append(content)
        elif type(value) is TextValue:
            parts += value.parts
        else:
            parts.append(Field(value, None, ""))
    if len(contents) == 1 and last is not None:
        return last
    now = "".join(contents)
    check_size(now)
    return TextValue(parts, now) if any(type(p) is Field for p in parts) else ConstantValue(now)


def text_operator(space: Space, op: str, left: Value, right: Value) -> Value | None:
    """``template % values``, or ``left + right`` for strings one of which is left open; None if it
    is something else."""
    if op == "%":
        template = left.realize()
        if not isinstance(template, ConstantValue) or template.python_type() is not str:
            return None
        return percent_format(space, template.value, right)
    if _open_kind(left) is not str and _open_kind(right) is not str:
        return None
    if all(_is_string(value) for value in (left, right)):
        return joined([with_known_class(space, left), with_known_class(space, right)])
    return None


def _is_string(value: Value) -> bool:
    return _open_kind(value) is str or (
        type(value) in (ConstantValue, TextValue) and value.python_type() is str
    )


def _join(space: Space, separator: str, args: Args, kwargs: Kwargs) -> Value:
    """``separator.join(*args)``."""
    if len(args) != 1 or kwargs:
        return fold(space, separator.join, args, kwargs)
    return join(space, separator, args[0])


def join(space: Space, separator: str, items: Value) -> Value:
    """``separator.join(items)``."""
    items = items.realize()
    if not isinstance(items, ConstantValue) and not items.is_symbolic:
        complaint = "can only join an iterable"
        parts = [with_known_class(space, item) for item in listed(space, items, complaint)]
        if all(map(_is_string, parts)):
            return joined(_spaced(separator, parts))
        items = TupleValue(parts)
    return fold(space, separator.join, [items], {})


def format_value(space: Space, value: Value, conversion: str | None, spec: str) -> Value:
    """What an f-string field gives: ``conversion`` is None, "s", "r" or "a"."""
    value = with_known_class(space, value)
    made = _field(value, conversion, spec)
    if made is not None:
        return made
    value = value.realize()
    if _is_known(value):
        obj = value.as_python()
        if type(obj) is decimal.Decimal:
            guard_decimal_context(space)
        return ConstantValue(space.run_real(Field(value, conversion, spec).text, obj))
    if conversion is None:
        cls = value.python_type()
        found = space.class_attribute(cls, "__format__")
        if not spec and found is not None and not is_heap_class(found.owner):
            return text_of(space, value, "__str__")
        if found is not None and found.owner is not object and is_heap_class(cls):
            method = space.special_method(value, "__format__")
            assert method is not None
            made = space.call_now(method, [ConstantValue(spec)])
            if not issubclass(made.python_type(), str):
                as_returned(space, value, "__format__", made, format, spec)
            return made
        if found is not None and found.owner is not object:  # C code, of what is not known yet
            raise GraphBreak("FJ0160", f"the text of a {value.describe()}")
        return format_object(space, value, spec)
    text = text_of(space, value, "__repr__" if conversion in ("r", "a") else "__str__")
    if conversion == "a":
        text = ConstantValue(text.as_python().encode("ascii", "backslashreplace").decode("ascii"))
    return text if not spec else format_value(space, text, None, spec)


def format_object(space: Space, value: Value, spec: str) -> Value:
    """``object.__format__(value, spec)``."""
    if spec:
        kind = type_name(value.python_type())
        complaint = f"unsupported format string passed to {kind}.__format__"
        return space.raise_error(TypeError, complaint)  # type: ignore[no-any-return]
    return text_of(space, value, "__str__")


def text_of(space: Space, value: Value, method: str) -> Value:
    """``str(value)`` (method ``__str__``) or ``repr(value)`` (``__repr__``)."""
    value = with_known_class(space, value)
    made = _field(value, method[2], "")
    if made is not None:
        return made
    value = value.realize()
    if _is_known(value):
        obj = value.as_python()
        return ConstantValue(str(obj) if method == "__str__" else repr(obj))
    cls = value.python_type()
    if cls in (list, tuple, torch.Size):
        return _listed(space, space.items(value), _BRACKETS[cls])
    if cls is dict:
        texts: list[Value] = []
        for pair in space.items(space.call_now(space.getattr_now(value, "items"), [])):
            key, item = [text_of(space, part, "__repr__") for part in space.items(pair)]
            texts.append(joined([key, ConstantValue(": "), item]))
        return _enclosed(texts, ("{", "}"))
    if issubclass(cls, BaseException) and method == "__repr__":
        found = space.class_attribute(cls, method)
        if found is not None and found.owner is BaseException:
            return _listed(space, value.args(space), (f"{cls.__name__}(", ")"))  # type: ignore[attr-defined]
        if found is not None and found.owner is BaseExceptionGroup:
            return _text_of_group(space, value)
    if cls in _SAY_NAMES and value.obj is not None:
        if value.source is not None:
            space.guard(value.source, "ID_MATCH", value.obj)
        return ConstantValue(str(value.obj) if method == "__str__" else repr(value.obj))
    if is_heap_class(cls):
        found = space.class_attribute(cls, method)
        if found is not None and found.owner is object and method == "__str__":
            return text_of(space, value, "__repr__")
        bound = space.special_method(value, method)
        if bound is not None:
            answer = with_known_class(space, space.call_now(bound, []))
            if not _is_string(answer):
                if issubclass(answer.python_type(), str):
                    raise GraphBreak("FJ0160", f"the text of a {value.describe()} is none of str's")
                as_returned(space, value, method, answer, str if method == "__str__" else repr)
            return answer
    if issubclass(cls, BaseException) and method == "__str__":
        return exception_text(space, value)
    if issubclass(cls, type) and hasattr(value, "cls"):
        return ConstantValue(str(value.cls))
    raise GraphBreak("FJ0160", f"the text of a {value.describe()}")


#: Functions written in C whose texts consist of names, without an address.
_SAY_NAMES = (
    types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType,
    types.MemberDescriptorType, torch._ops.OpOverload, torch._ops.OpOverloadPacket,
)  # fmt: skip
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"), tuple: ("(", ")"), torch.Size: ("torch.Size([", "])")
}  # fmt: skip


def _text_of_group(space: Space, group: Value) -> Value:
    """The representation of an exception group, since CPython 3.14: not that of its ``args``."""
    given = space.items(space.getattr_now(group, "args"))[1].realize().python_type()
    if given not in (list, tuple):
        raise GraphBreak("FJ0160", f"the text of a group of a {given.__name__}")
    errors: Value = space.getattr_now(group, "exceptions")
    if given is list:
        errors = ListValue(space.items(errors))
    brackets = f"{group.python_type().__name__}(", ")"
    return _listed(space, [space.getattr_now(group, "message"), errors], brackets)


def _listed(space: Space, items: list[Value], brackets: tuple[str, str]) -> Value:
    texts = [text_of(space, item, "__repr__") for item in items]
    if brackets == ("(", ")") and len(texts) == 1:
        brackets = ("(", ",)")
    return _enclosed(texts, brackets)


def _enclosed(texts: list[Value], brackets: tuple[str, str]) -> Value:
    opening, closing = map(ConstantValue, brackets)
    return joined([opening, *_spaced(", ", texts), closing])


def _spaced(separator: str, texts: list[Value]) -> list[Value]:
    between = ConstantValue(separator)
    return [part for text in texts for part in (between, text)][1:]


def exception_text(space: Space, value: Any) -> Value:
    """``str(exception)`` as the C classes make it."""
    found = space.class_attribute(value.cls, "__str__")
    if found is not None and found.owner is not KeyError and not text_is_of_args(value.base):
        if value.model is None or not value.exact:
            raise GraphBreak("FJ0160", f"the text of a {value.describe()}")
        return ConstantValue(str(value.model))
    args = value.args(space)
    if not args:
        return ConstantValue("")
    if len(args) == 1:
        return text_of(space, args[0], "__repr__" if issubclass(value.cls, KeyError) else "__str__")
    return _listed(space, args, ("(", ")"))


# -- templates -------------------------------------------------------------------------------------

_DIRECTIVE = re.compile(r"%%|%(\(([^()]*)\))?[-#0 +]*\d*(?:\.\d*)?[hlL]?([diouxXeEfFgGcrsa])")


def percent_format(space: Space, template: str, argument: Value) -> Value:
    """``template % argument``."""
    argument = with_known_class(space, argument)
    pieces: list[str] = []
    directives: list[re.Match[str]] = []
    start = end = 0
    while (start := template.find("%", end)) >= 0:
        found = _DIRECTIVE.match(template, start)
        if found is None:
            break
        pieces.append(template[end:start])
        directives.append(found)
        end = found.end()
    fields = [directive for directive in directives if directive[3]]
    values = None if start >= 0 else _given(space, argument, fields)
    if values is None:  # it is wrong, or a width comes from the arguments
        return fold(space, operator.mod, [ConstantValue(template), argument], {})
    made: list[Value] = []
    for piece, directive in zip(pieces, directives, strict=True):
        made.append(ConstantValue(piece if directive[3] else piece + "%"))
        if directive[3]:
            made.append(_percent_field(space, next(values), directive))
    return joined([*made, ConstantValue(template[end:])])


def _given(space: Space, argument: Value, fields: list[re.Match[str]]) -> Any:
    """The values for the fields of a template, one by one; None if there are others."""
    cls = _open_kind(argument) or argument.python_type()
    if cls is dict and fields and all(field[1] for field in fields):
        keys = [ConstantValue(field[2]) for field in fields]
        return (space.now(space.getitem(argument, key)) for key in keys)
    if any(field[1] for field in fields):
        return None
    if cls in (tuple, torch.Size):
        items = space.items(argument)
    else:
        items = [] if issubclass(cls, tuple) else [argument]
    return iter(items) if items and len(items) == len(fields) else None


def _percent_field(space: Space, value: Value, directive: re.Match[str]) -> Value:
    text, kind = directive[0].replace(directive[1] or "", "", 1), directive[3]
    value = with_known_class(space, value)
    made = _field(value, "%", text)
    if made is not None:
        return made
    value = value.realize()
    if _is_known(value):
        return ConstantValue(space.run_real(Field(value, "%", text).text, value.as_python()))
    if kind not in "sra":
        raise GraphBreak("FJ0160", f"a {value.describe()} is formatted as a number")
    content = format_value(space, value, kind, "")
    return _percent_field(space, content, _DIRECTIVE.match(text[:-1] + "s"))  # type: ignore[arg-type]


class _Rendering:
    """One call of ``str.format``: CPython goes through the template, leaving a mark in its result
    for the text of each field."""

    def __init__(self, space: Space, template: str) -> None:
        self.space = space
        self.mark = next(c for c in map(chr, itertools.count(0xE000)) if c not in template)
        self.made: list[Value] = []
        #: ``!a`` goes through the characters of a ``__repr__``.
        self.exact = "!a" in template

    def add(self, value: Value, conversion: str | None, spec: str) -> str:
        """The mark for the text of a field."""
        if self.mark in spec:
            spec = self.text(spec).as_python()
        self.made.append(format_value(self.space, value, conversion, spec))
        return f"{self.mark}{len(self.made) - 1}{self.mark}"

    def text(self, marked: str) -> Value:
        """A text, with what the marks in it represent."""
        pieces = enumerate(marked.split(self.mark))
        return joined([self.made[int(p)] if i % 2 else ConstantValue(p) for i, p in pieces])


class _Converted(str):
    """What ``str()`` and ``repr()`` give of a field: the spec that follows is known only then."""

    held: tuple[_Rendering, Value, str]

    def __format__(self, spec: str) -> str:
        rendering, value, conversion = self.held
        return rendering.add(value, conversion, spec)


class _Rendered:
    """A field; every attribute that is read of it is the value's."""

    __slots__ = ("_held",)

    def __init__(self, rendering: _Rendering, value: Value) -> None:
        object.__setattr__(self, "_held", (rendering, value))

    def __format__(self, spec: str) -> str:
        rendering, value = _HELD(self)
        return str(rendering.add(value, None, spec))

    def __str__(self) -> str:
        made = _Converted()
        made.held = (*_HELD(self), "s")
        return made

    def __repr__(self) -> str:
        rendering, value = _HELD(self)
        if rendering.exact:
            return str(format_value(rendering.space, value, "r", "").as_python())
        made = _Converted()
        made.held = (rendering, value, "r")
        return made

    def __getattribute__(self, name: str) -> Any:
        rendering, value = _HELD(self)
        return _Rendered(rendering, rendering.space.getattr_now(value, name))

    def __getitem__(self, key: Any) -> Any:
        rendering, value = _HELD(self)
        space = rendering.space
        return _Rendered(rendering, space.now(space.getitem(value, space.constant(key))))


_HELD = _Rendered.__dict__["_held"].__get__


def format_template(space: Space, template: str, args: Args, kwargs: Kwargs) -> Value:
    """``template.format(*args, **kwargs)``."""
    rendering = _Rendering(space, template)
    try:
        marked = template.format(
            *[_Rendered(rendering, arg) for arg in args],
            **{key: _Rendered(rendering, value) for key, value in kwargs.items()},
        )
    except (ValueError, IndexError, KeyError) as error:
        return space.raise_real(error)
    return rendering.text(marked)


METHODS[str, "join"] = _join
METHODS[str, "format"] = format_template
