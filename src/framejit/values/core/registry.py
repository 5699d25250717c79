"""The registries: which values represent which objects, what runs instead of which callables.

In: the makers and handlers of all rooms, registered when their modules are imported. Out: the
tables that the space and function values look into; the names of operators. Next: methods.
"""

from __future__ import annotations

import bisect
import enum
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.core.base import CallRequest, Value

if TYPE_CHECKING:
    from framejit.values.core.space import Space

Result = Value | CallRequest
#: What handles a call in place of the callable: handler(space, args, kwargs).
Handler = Callable[["Space", list[Value], dict[str, Value]], Result]

#: The special methods of each operator: plain, reflected, in place.
BINARY_METHODS = {
    "+": ("__add__", "__radd__", "__iadd__"),
    "-": ("__sub__", "__rsub__", "__isub__"),
    "*": ("__mul__", "__rmul__", "__imul__"),
    "/": ("__truediv__", "__rtruediv__", "__itruediv__"),
    "//": ("__floordiv__", "__rfloordiv__", "__ifloordiv__"),
    "%": ("__mod__", "__rmod__", "__imod__"),
    "**": ("__pow__", "__rpow__", "__ipow__"),
    "@": ("__matmul__", "__rmatmul__", "__imatmul__"),
    "&": ("__and__", "__rand__", "__iand__"),
    "|": ("__or__", "__ror__", "__ior__"),
    "^": ("__xor__", "__rxor__", "__ixor__"),
    "<<": ("__lshift__", "__rlshift__", "__ilshift__"),
    ">>": ("__rshift__", "__rrshift__", "__irshift__"),
}
#: The method of each comparison, and the one of its mirror image.
COMPARE_METHODS = {
    "<": ("__lt__", "__gt__"),
    ">": ("__gt__", "__lt__"),
    "<=": ("__le__", "__ge__"),
    ">=": ("__ge__", "__le__"),
    "==": ("__eq__", "__eq__"),
    "!=": ("__ne__", "__ne__"),
}
UNARY_METHODS = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}
#: The functions of `operator` by the text of the operator.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    op: getattr(operator, names[0]) for op, names in BINARY_METHODS.items()
}
INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    op: getattr(operator, names[2]) for op, names in BINARY_METHODS.items()
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    op: getattr(operator, names[0]) for op, names in COMPARE_METHODS.items()
}
UNARY: dict[str, Callable[[Any], Any]] = {
    op: getattr(operator, name) for op, name in UNARY_METHODS.items()
}

#: exact type -> maker(space, source, obj); filled by the modules of this room (`wraps`).
WRAPPERS: dict[type, Callable[[Space, Source, Any], Value]] = {}


class Rank(enum.IntEnum):
    """In which order the rules for other types are tried."""

    CONSTANT = 0  # objects that only ever compute, whatever their class derives from
    KIND = 1  # families of classes, no two of which share a class
    INSTANCE = 2  # classes of the program
    ANYTHING = 3


#: (rank, predicate of the class, maker). The object itself is not asked: its own `__class__` may be
#: the user's code.
WRAP_RULES: list[tuple[Rank, Callable[[Any], bool], Callable[[Space, Source, Any], Value]]] = []
#: Python callables that framejit handles itself: callable -> handler(space, args, kwargs).
LOOKASIDES: dict[Any, Handler] = {}
#: The same for kinds of callables: (predicate, what makes the handler of one).
LOOKASIDE_RULES: list[tuple[Callable[[Any], bool], Callable[[Any], Handler]]] = []
#: The same by (module, qualified name), for functions of modules that are not imported for this.
NAMED_LOOKASIDES: dict[tuple[str, str], Handler] = {}
#: The same by the id of the code, for functions that another one makes; they get the function, too.
CODE_LOOKASIDES: dict[int, Handler] = {}
#: Those that become nodes of the graph: predicates of the callable.
NODE_RULES: list[Callable[[Any], bool]] = []

#: builtin container class -> maker(space, source, object, class) of the value of the content.
CONTENTS: dict[type, Callable[[Space, Source, Any, type], Value]] = {}
#: (class, name) -> handler(space, object, args, kwargs) of a method of constants.
METHODS: dict[tuple[type, str], Callable[..., Result]] = {}
#: exact type -> maker(space, object) of the value of an object that is known while capturing.
MAKERS: dict[type, Callable[[Space, Any], Value]] = {}


def _registers(table: dict[Any, Any]) -> Callable[..., Callable[[Any], Any]]:
    def keys(*keys: Any) -> Callable[[Any], Any]:
        def register(maker: Any) -> Any:
            table.update(dict.fromkeys(keys, maker))
            return maker

        return register

    return keys


#: Register the maker of the values that represent existing objects of exactly these types ...
wraps = _registers(WRAPPERS)
#: ... those that are known while capturing, and need no guard of their own.
makes = _registers(MAKERS)
#: Register a handler that runs instead of these functions when captured code calls them.
lookaside = _registers(LOOKASIDES)


def refuses(identifier: str, reasons: dict[Any, str]) -> None:
    """Calls of these functions are graph breaks, for these reasons."""

    def refusal(reason: str) -> Handler:
        def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
            raise GraphBreak(identifier, reason)

        return handler

    LOOKASIDES.update({function: refusal(reason) for function, reason in reasons.items()})


def by_identity(make: Callable[[Any, Source], Value]) -> Callable[[Space, Source, Any], Value]:
    """The maker of values of existing objects that are known by identity."""

    def maker(space: Space, source: Source, obj: Any) -> Value:
        space.guard(source, "ID_MATCH", obj)
        return space.remember(obj, make(obj, source))

    return maker


def contents(*types: type) -> Callable[[Any], Any]:
    """Register the maker of the content of existing containers of these classes, and of objects of
    their subclasses; of the former nothing but the class is guarded."""

    def register(maker: Any) -> Any:
        def wrap(space: Space, source: Source, obj: Any) -> Value:
            space.guard(source, "TYPE_MATCH", type(obj))
            return space.remember(obj, maker(space, source, obj, type(obj)))

        WRAPPERS.update(dict.fromkeys(types, wrap))
        CONTENTS.update(dict.fromkeys(types, maker))
        return maker

    return register


def wraps_classes(applies: Callable[[Any], bool], rank: Rank = Rank.KIND) -> Callable[[Any], Any]:
    """Register the maker of the values of objects of other types, if the rule applies to these."""

    def register(maker: Any) -> Any:
        bisect.insort(WRAP_RULES, (rank, applies, maker), key=lambda rule: rule[0])
        return maker

    return register
