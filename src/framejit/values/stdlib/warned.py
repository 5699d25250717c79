"""Warnings that the program issues: ``warnings.warn`` in captured code.

In: calls of ``warnings.warn``. Out: effects that issue the warning for the line and the module that
it is about, whose registry remembers what was shown. A warning that may become an error, or that
somebody else looks at, is a graph break: where it is issued matters. Next room: interpreter.
"""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any, NamedTuple

from framejit.exc import GraphBreak
from framejit.values.core.base import Args, Declared, Kwargs, Value, is_user_class
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import FunctionValue, MethodValue

_PARAMETERS = ("message", "category", "stacklevel", "source")


#: Where the functions of the standard library come from, also from CPython 3.14 on.
_MODULES = ("warnings", "_py_warnings")


class Place(NamedTuple):
    """Where a warning says that it was issued."""

    filename: str
    line: int
    namespace: dict[str, Any]


class IssuedWarning(Declared):
    """A warning to be issued after the graph."""

    message: Value
    category: Value
    place: Place
    kind = object


def _only_shown(module: Any) -> bool:
    """Are warnings shown or collected, and nothing else?"""
    if getattr(sys.flags, "context_aware_warnings", False):  # then filters are elsewhere, too
        return False
    if any(action == "error" for action, *_ in module.filters) or module.defaultaction == "error":
        return False
    if module.showwarning is not module._showwarning_orig:
        return False
    shown = module._showwarnmsg, module._showwarnmsg_impl
    return all(
        one.__name__ == "append" if isinstance(one, types.BuiltinMethodType)  # a list of them
        else getattr(one, "__module__", "") in _MODULES for one in shown
    )  # fmt: skip


@lookaside(warnings.warn)
def _warn(space: Space, args: Args, kwargs: Kwargs) -> Result:
    given = dict(zip(_PARAMETERS, args, strict=False)) | kwargs
    if len(args) + len(kwargs) != len(given) or not given.keys() <= set(_PARAMETERS):
        raise GraphBreak("FJ0168", "warnings.warn() with these arguments")
    if not given.pop("source", ConstantValue(None)).is_none() or "message" not in given:
        raise GraphBreak("FJ0168", "warnings.warn() of the end of an object")
    level = given.pop("stacklevel", ConstantValue(1)).realize()
    if not level.is_constant or type(level.as_python()) is not int:
        raise GraphBreak("FJ0168", "warnings.warn() with a stacklevel that varies")
    place = _place(space, level.as_python())
    message, category = _checked(space, given["message"].realize(), given.get("category"))
    if not _only_shown(warnings):
        raise GraphBreak("FJ0168", "warnings.warn() where warnings are errors, or looked at")
    if any(
        value.obj is warnings or value.obj is warnings.filters for value in space.effects.changed
    ):
        raise GraphBreak("FJ0168", "warnings.warn() where the program has changed the filters")
    asked = space.const_source(warnings, "warnings").child("call", _only_shown)
    space.guard(asked, "EQUALS_MATCH", True)
    space.effects.note(IssuedWarning(message, category, place))
    return ConstantValue(None)


def _checked(space: Space, message: Value, category: Value | None) -> tuple[Value, Value]:
    """The message and the class of the warning, if making it runs nothing of the program's."""
    kind = message.python_type()
    if issubclass(kind, Warning):
        category = space.class_value(kind)
    elif kind is not str:
        raise GraphBreak("FJ0168", f"warnings.warn() of a {message.describe()}")
    elif category is None or category.is_none():
        category = space.class_value(UserWarning)
    found = category.realize()
    if not isinstance(found, ClassValue) or found.making is not None:
        raise GraphBreak("FJ0168", "warnings.warn() with a category that the program makes")
    if not issubclass(found.cls, Warning) or type(found.cls) is not type:
        raise GraphBreak("FJ0168", f"warnings.warn() with the category {found.cls.__qualname__}")
    for name in ("__new__", "__init__", "__str__"):
        special = space.class_attribute(found.cls, name)
        if special is not None and is_user_class(special.owner):
            raise GraphBreak("FJ0168", f"{found.cls.__qualname__} has a {name} of its own")
    return message, found


def _place(space: Space, level: int) -> Place:
    """The frame that a warning with this ``stacklevel`` is about."""
    frame = space.running.frame
    chain = [] if frame is None else frame.chain()[::-1]
    for inner, outer in zip(chain, [*chain[1:], None], strict=True):
        if "importlib" in inner.line[0]:
            raise GraphBreak("FJ0168", "warnings.warn() from an import")
        if level <= 1:
            filename, line = inner.line
            return Place(filename, line, inner.globals)
        if outer is None or not _calls_directly(outer, inner):
            break
        level -= 1
    raise GraphBreak("FJ0168", "warnings.warn() about a caller that is not captured")


def _calls_directly(outer: Any, inner: Any) -> bool:
    """Is the inner frame that of the very function that the outer one calls? Else there are others
    between them in plain Python, perhaps."""
    called = [value.realize() for value in outer.operands()[:2]]
    functions = [value.function if isinstance(value, MethodValue) else value for value in called]
    return any(
        isinstance(function, FunctionValue) and function.code is inner.info.code
        for function in (value.realize() for value in functions)
    )
