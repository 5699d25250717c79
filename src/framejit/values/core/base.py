"""What every value of the symbolic execution is: the base class and the control-flow signals.

In: nothing. Out: `Value` (one subclass per kind of value), `Raised` (the program raised an
exception while it was executed symbolically), `CallRequest` (the interpreter is to push a frame)
and `NULL`.
The operations on values are methods of `space.Space`, written down as a table in
`operations.OPERATIONS`. Next room: interpreter.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

from framejit.classes import asked_once
from framejit.exc import GraphBreak
from framejit.source import Source

if TYPE_CHECKING:
    from framejit.values.core.space import Space
    from framejit.values.objects.functions import FunctionValue


class Value:
    """A value on the symbolic stack.

    ``source`` says where it can be loaded from again (None: made while capturing). Subclasses
    override the operations that they know; what they do not know is a graph break.
    """

    __slots__ = ("source",)
    source: Source | None

    #: The class of the objects that are represented, where it is always the same.
    kind: Any = None

    # What some values have besides; None where a value has nothing of the kind.
    #: The existing object.
    obj: Any = None
    #: Of an instance of a subclass of a builtin class: the value of its builtin part.
    container: Any = None
    #: What the program assigned to attributes, by name (None: deleted).
    attributes: dict[str, Any] | None = None
    #: Of a traceback: the exception raised while capturing that has it.
    exception: Any = None
    #: Of a class: what it is being made of.
    making: Any = None
    #: ``binary_op(space, op, other, reflected, inplace)`` and ``compare_op(space, op, other)`` of
    #: builtin classes; None: the other operand decides.
    binary_op: Callable[..., Any] | None = None
    compare_op: Callable[..., Value | None] | None = None
    #: ``call_method(space, name, args, kwargs)`` of methods in C.
    call_method: Callable[..., Value | CallRequest] | None = None
    #: ``hash_key(space)``: what stands for it among keys.
    hash_key: Callable[..., Any] | None = None
    #: ``to_fx(space)``: the argument of a graph node.
    to_fx: Callable[..., Any] | None = None

    #: True for values that represent one known immutable Python object (`ConstantValue`).
    is_constant = False
    #: True for numbers that vary (`SymbolicValue`).
    is_symbolic = False
    #: True for numbers that are read out of tensors (`ReadNumber`).
    is_read = False

    #: Do ``binary_op`` and ``compare_op`` say all, though its class is written in Python?
    own_operators = False

    #: True for tensors (`TensorValue`).
    is_tensor = False

    #: True for iterators that ask ``target[index]`` (`ByIndex`).
    is_by_index = False

    #: Has the program changed it?
    mutated = False

    #: True for dicts of variables and attributes.
    is_live = False

    #: True while nobody has asked for the content, though the class is known.
    is_open = False

    def realize(self) -> Value:
        """The value itself; lazy values find out what they are (and guard it)."""
        return self

    def python_type(self) -> type:
        """The exact class of the object this value represents."""
        if self.kind is None:
            raise NotImplementedError(type(self).__name__)
        return self.kind  # type: ignore[no-any-return]

    def is_none(self) -> bool:
        """Is it known to be None?"""
        value = self if self.is_open else self.realize()
        return value.is_constant and not value.is_open and value.as_python() is None

    def as_python(self) -> Any:
        """The Python object, if it consists of constants only; else GraphBreak."""
        raise GraphBreak("FJ0136", f"the value of a {self.describe()} is not known while capturing")

    def is_as_before(self) -> bool:
        """Of an existing object that the program has changed: is it known to be in the end what it
        was at the start?"""
        return False

    def describe(self) -> str:
        """A few words for messages."""
        try:
            name = self.python_type().__qualname__
        except NotImplementedError:
            name = type(self).__name__
        return f"{name} object"

    # -- operations; `space` dispatches to them, see operations.py --------------------------------

    def getattr(self, space: Space, name: str) -> Value | CallRequest:
        return space.generic_getattr(self, name)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        raise GraphBreak("FJ0152", f"setting attribute {name!r} on a {self.describe()}")

    def delattr(self, space: Space, name: str) -> None:
        raise GraphBreak("FJ0152", f"deleting attribute {name!r} of a {self.describe()}")

    def call(
        self, space: Space, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | CallRequest:
        raise GraphBreak("FJ0133", f"calling a {self.describe()}")

    def getitem(self, space: Space, key: Value) -> Value | CallRequest:
        return space.call_special(self, "__getitem__", [key], "is not subscriptable")

    def setitem(self, space: Space, key: Value, value: Value) -> None:
        complaint = "does not support item assignment"
        space.now(space.call_special(self, "__setitem__", [key, value], complaint))

    def delitem(self, space: Space, key: Value) -> None:
        complaint = "does not support item deletion"
        space.now(space.call_special(self, "__delitem__", [key], complaint))

    def contains(self, space: Space, item: Value) -> Value:
        raise GraphBreak("FJ0155", f"`in` on a {self.describe()}")

    def iter(self, space: Space) -> Value:
        raise GraphBreak("FJ0155", f"iterating over a {self.describe()}")

    def next(self, space: Space) -> Value | None:
        """The next element, or None when the iterator is exhausted."""
        raise GraphBreak("FJ0155", f"next() of a {self.describe()}")

    def len(self, space: Space) -> Value:
        raise GraphBreak("FJ0155", f"len() of a {self.describe()}")

    def truth(self, space: Space) -> bool:
        cls = self.python_type()
        if space.class_attribute(cls, "__bool__") or space.class_attribute(cls, "__len__"):
            raise GraphBreak("FJ0155", f"the truth value of a {self.describe()}")
        return True

    def expect(self, space: Space, truth: bool) -> bool:
        """May the truth value, which depends on data, be taken to be this one? It is checked after
        the graph; if it differs, the segment runs again as plain Python."""
        return False

    def items_now(self, space: Space) -> list[Value] | None:
        """All elements, if that is known without running user code; None if it is not."""
        return None


#: The arguments of a call.
Args = list[Value]
Kwargs = dict[str, Value]


class _Declaring(type):
    """Makes ``__slots__`` and ``__init__`` of what the body of a class annotates, in its order."""

    def __new__(mcs, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> Any:
        if "__slots__" not in body:
            annotated = body.get("__annotations__", {}).items()
            own = {
                n: body.pop(n, _GIVEN) for n, kind in annotated if not kind.startswith("ClassVar")
            }
            body["__slots__"] = tuple([n for n in own if n != "source"])
            body["declared"] = {**getattr(bases[0], "declared", {}), **own}
            if own:
                completes = "__post_init__" in body or hasattr(bases[0], "__post_init__")
                body.setdefault("__init__", _initialiser(body["declared"], completes))
        return super().__new__(mcs, name, bases, body)


#: The default of a field that has none.
_GIVEN = object()


def _initialiser(fields: dict[str, Any], completes: bool) -> Any:
    """``__init__`` of these fields. Those that are an empty dict or list are made, not given."""
    own = {n: f"{default!r}" for n, default in fields.items() if default in ([], {})}
    named = ((n, default) for n, default in fields.items() if n not in own)
    given = ", ".join(n if default is _GIVEN else f"{n}=fields[{n!r}]" for n, default in named)
    lines = [f"self.{n} = {own.get(n, n)}" for n in fields]
    lines += ["self.source = None"] if "source" not in fields else []
    lines += ["self.__post_init__()"] if completes else []
    namespace: dict[str, Any] = {"fields": fields}
    exec(f"def __init__(self, {given}):\n    " + "; ".join(lines), namespace)
    return namespace["__init__"]


@dataclass_transform(eq_default=False)
class Declared(Value, metaclass=_Declaring):
    """A value that consists of the fields that its class annotates."""

    __slots__ = ()
    declared: ClassVar[dict[str, Any]] = {}


def element_as_python(value: Value) -> Any:
    """A container's element as a Python object. One of a number's or text's subclass is more than
    its content: the container's methods ask for its own."""
    value = value.realize()
    if value.container is not None:
        return Value.as_python(value)
    return value.as_python()


def hides_own_attribute(raw: Any) -> bool:
    """Is what a class has read, and not the instance's ``__dict__``?"""
    kind = type(raw)
    return hasattr(kind, "__get__") and (hasattr(kind, "__set__") or hasattr(kind, "__delete__"))


def is_heap_class(cls: type) -> bool:
    """Can its attributes be replaced? Those of classes that are built into CPython cannot."""
    return cls.__flags__ & 0x300 == 0x200  # Py_TPFLAGS_HEAPTYPE, not Py_TPFLAGS_IMMUTABLETYPE


@asked_once
def is_user_class(cls: type) -> bool:
    """A class made by a ``class`` statement (its special methods are found by lookup)."""
    if not is_heap_class(cls):
        return False
    # C types may live on the heap too; theirs bring a C-level __new__ along
    new = type.__getattribute__(cls, "__dict__").get("__new__")
    return type(new) is not types.BuiltinFunctionType


def type_name(cls: type) -> str:
    """The class's name in CPython's messages: those of classes in C say which module's they are."""
    by_statement = is_user_class(cls) and not cls.__flags__ & 0x80  # ..._DISALLOW_INSTANTIATION
    module = "builtins" if by_statement else cls.__module__
    return cls.__name__ if module == "builtins" else f"{module}.{cls.__name__}"


class NullValue(Value):
    """The NULL that CPython's calling convention puts on the stack."""

    __slots__ = ()

    def __init__(self) -> None:
        self.source = None

    def describe(self) -> str:
        return "NULL"


NULL = NullValue()


class Raised(Exception):
    """The captured program raised ``value``; unwinds the symbolic frames."""

    def __init__(self, value: Value) -> None:
        super().__init__(value)
        self.value = value

    def is_a(self, *classes: type[BaseException]) -> bool:
        """Is it an exception of one of these classes?"""
        return issubclass(self.value.python_type(), classes)


class Unmaterialisable(Exception):
    """A value is needed for real and cannot be built; it must not be captured at ``step``."""

    def __init__(self, step: int, reason: str) -> None:
        super().__init__(reason)
        self.step = step
        self.reason = reason


class CallRequest:
    """The result of a call that needs a new frame: ``function`` runs with these bound ``slots``.

    ``result``, when given, replaces what the frame returns (``__init__`` returns the new object).
    """

    __slots__ = ("function", "missing", "names", "operator", "reads", "result", "slots")

    def __init__(
        self, function: FunctionValue, slots: list[Value | None], result: Value | None = None
    ) -> None:
        #: It implements an operator, which goes on elsewhere should it return NotImplemented.
        self.operator = False
        #: It reads this attribute of this object; on AttributeError ``__getattr__`` is asked.
        self.missing: tuple[Any, str] | None = None
        #: It reads this attribute of this object, which its AttributeErrors name.
        self.reads: tuple[Value, str] | None = None
        #: The namespace of a class body.
        self.names: dict[str, Value] | None = None
        self.function = function
        self.slots = slots
        self.result = result


def parts_held(value: Value) -> Iterator[Any]:
    """The values that ``value`` consists of."""
    for kind in type(value).__mro__[:-1]:
        for name in kind.__dict__.get("__slots__", ()):
            part = getattr(value, name, None)
            inside = part if isinstance(part, (list, tuple)) else [part]
            if isinstance(part, dict):
                inside = [*part, *part.values()]
            for one in inside:
                if isinstance(one, Value):
                    yield one
                elif type(one) is tuple:  # an item of a dict
                    yield from (item for item in one if isinstance(item, Value))


def real_class(value: Value) -> type | None:
    """The class that a class value represents, or None."""
    cls = value.realize().obj
    return cls if issubclass(type(cls), type) else None


def is_nan(value: Value) -> bool:
    """Is it a number that is not equal to itself, so that containers find it by its identity?"""
    if not value.is_constant or value.python_type() not in (float, complex):
        return False
    number = value.as_python()
    return bool(number != number)
