"""Text of values that are not constants: ``str()``, ``repr()``, formatting.

In: a value, a conversion and a format spec. Out: a constant string, when every part's text is
known; user-defined ``__repr__`` and friends are inlined. Next room: interpreter.
"""

from __future__ import annotations

from typing import Any

from framejit.exc import GraphBreak
from framejit.values.base import Value
from framejit.values.constants import ConstantValue, constant_value
from framejit.values.exceptions import STATEFUL
from framejit.values.space import Space


def text_of(space: Space, value: Value, method: str) -> str:
    """``str(value)`` (method ``__str__``) or ``repr(value)`` (``__repr__``)."""
    value = value.realize()
    if value.is_constant or value.is_symbolic:
        obj = value.as_python()
        return str(obj) if method == "__str__" else repr(obj)
    cls = value.python_type()
    if cls in (list, tuple):
        items = [text_of(space, item, "__repr__") for item in space.items(value)]
        if cls is list:
            return "[" + ", ".join(items) + "]"
        return "(" + ", ".join(items) + ("," if len(items) == 1 else "") + ")"
    if cls is dict:
        pairs = space.items(space.call_now(space.getattr_now(value, "items"), []))
        texts = []
        for pair in pairs:
            key, item = space.items(pair)
            texts.append(f"{text_of(space, key, '__repr__')}: {text_of(space, item, '__repr__')}")
        return "{" + ", ".join(texts) + "}"
    if issubclass(cls, BaseException) and method == "__repr__":
        found = space.class_attribute(cls, method)
        if value.model is not None and found is not None:  # type: ignore[attr-defined]
            if found.owner is BaseException:
                return repr(value.model)  # type: ignore[attr-defined]
        if found is not None and found.owner is BaseException:
            parts = [text_of(space, a, "__repr__") for a in value.args(space)]  # type: ignore[attr-defined]
            return f"{cls.__name__}({', '.join(parts)})"
    if cls.__flags__ & 0x200:
        found = space.class_attribute(cls, method)
        if found is not None and found.owner is object and method == "__str__":
            return text_of(space, value, "__repr__")
        bound = space.special_method(value, method)
        if bound is not None:
            return str(space.call_now(bound, []).realize().as_python())
    if isinstance(value.python_type(), type) and issubclass(cls, BaseException):
        if method == "__str__":
            return str(exception_text(space, value).as_python())
    if issubclass(cls, type) and hasattr(value, "cls"):
        return str(value.cls)
    raise GraphBreak("FJ0160", f"the text of a {value.describe()}")


def render(space: Space, value: Value, conversion: str | None, spec: str) -> Value:
    """One field of an f-string."""
    if conversion is None:
        cls = value.python_type()
        found = space.class_attribute(cls, "__format__")
        if found is not None and found.owner is not object and cls.__flags__ & 0x200:
            method = space.special_method(value, "__format__")
            assert method is not None
            return space.call_now(method, [ConstantValue(spec)])
        text = text_of(space, value, "__str__")
    elif conversion == "s":
        text = text_of(space, value, "__str__")
    else:
        text = text_of(space, value, "__repr__")
        if conversion == "a":
            text = text.encode("ascii", "backslashreplace").decode("ascii")
    try:
        return ConstantValue(format(text, spec))
    except ValueError as error:
        return space.raise_real(error)


class _Text:
    """Stands in ``%`` formatting for a value whose text is computed symbolically."""

    def __init__(self, space: Space, value: Value) -> None:
        self.space, self.value = space, value

    def __str__(self) -> str:
        return text_of(self.space, self.value, "__str__")

    def __repr__(self) -> str:
        return text_of(self.space, self.value, "__repr__")


def _field(space: Space, value: Value) -> Any:
    value = value.realize()
    return value.as_python() if value.is_constant or value.is_symbolic else _Text(space, value)


def percent_format(space: Space, template: Value, argument: Value) -> Value:
    """``template % argument``."""
    if argument.python_type() is tuple:
        fields: Any = tuple(_field(space, item) for item in space.items(argument))
    elif argument.python_type() is dict:
        fields = {}
        for pair in space.items(space.call_now(space.getattr_now(argument, "items"), [])):
            key, item = space.items(pair)
            fields[key.realize().as_python()] = _field(space, item)
    else:
        fields = _field(space, argument)
    try:
        return constant_value(space, template.as_python() % fields)
    except (TypeError, ValueError, KeyError) as error:
        return space.raise_real(error)


def exception_text(space: Space, value: Any) -> Value:
    """``str(exception)`` as the C classes make it."""
    found = space.class_attribute(value.cls, "__str__")
    if found is not None and found.owner in STATEFUL:
        if value.model is None:
            raise GraphBreak("FJ0160", f"the text of a {value.describe()}")
        return ConstantValue(str(value.model))
    args = value.args(space)
    if not args:
        return ConstantValue("")
    if len(args) == 1:
        method = "__repr__" if issubclass(value.cls, KeyError) else "__str__"
        return ConstantValue(text_of(space, args[0], method))
    return ConstantValue("(" + ", ".join(text_of(space, a, "__repr__") for a in args) + ")")
