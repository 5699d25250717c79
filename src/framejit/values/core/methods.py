"""What lists, tuples, dicts, sets and deques have in common: tables of C-level methods.

In: a call of a method of a builtin type on a symbolic container. Out: the handler's result. The
number of arguments is checked against the table; when it does not fit, the real method is called on
an empty object with as many ``None``s, so that the complaint is CPython's own. Also here: the
conversions that every container needs (an index, a length, the elements, a container inside an
object of a subclass) and the same check of arguments for functions (`builtin`).
Next: sequences, mappings, sets.
"""

from __future__ import annotations

import enum
import functools
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar

import torch

from framejit.exc import GraphBreak
from framejit.values.core import complaints
from framejit.values.core.base import CallRequest, Raised, Value, is_user_class, type_name
from framejit.values.core.registry import BINARY_METHODS, COMPARE_METHODS, LOOKASIDES, Result
from framejit.values.core.space import Space

Container = TypeVar("Container", bound=Value)
Marked = TypeVar("Marked", bound=Callable[..., Any])

#: special method -> (operator, reflected, in place)
_BINARY = {
    name: (op, position == 1, position == 2)
    for op, names in BINARY_METHODS.items() for position, name in enumerate(names)
}  # fmt: skip
_COMPARE = {names[0]: op for op, names in COMPARE_METHODS.items()}


#: The operations behind special methods, and how many arguments these take.
_OPERATIONS = {
    "__len__": ("len", 0), "__iter__": ("iter", 0), "__contains__": ("contains", 1),
    "__getitem__": ("getitem", 1), "__setitem__": ("setitem", 2), "__delitem__": ("delitem", 1),
}  # fmt: skip
_IN_C = (types.MethodDescriptorType, types.WrapperDescriptorType)


def check_found(cls: type, raw: Any) -> None:
    """GraphBreak where a class in C before that of the method ``raw`` has another of this name:
    ``dict.keys(ordered_dict)``. What values know is what a lookup in their class finds."""
    owner, mro = getattr(raw, "__objclass__", None), cls.__mro__
    if owner in mro and raw.__name__ != "__init__":  # C classes often have their base's as theirs
        own = (base.__dict__.get(raw.__name__) for base in mro[: mro.index(owner)])
        kinds = (*_IN_C, types.FunctionType) if issubclass(cls, enum.Enum) else _IN_C
        found = next((one for one in own if type(one) in kinds), raw)
        if found is not raw:
            text = f"calling {raw.__qualname__}() of a {type_name(cls)} object"
            raise GraphBreak("FJ0132", text)


def check_bound(space: Space, receiver: Value, raw: Any) -> None:
    """The same of a bound method. A class method in C that ``super()`` has found is not what a
    lookup in the class finds, which calls methods by name; an `__init_subclass__` other than that
    of ``object`` changes the class.
    """
    if type(raw) is not types.ClassMethodDescriptorType:
        check_found(receiver.python_type(), raw)
        return
    cls = receiver.realize().obj
    found = space.class_attribute(cls, raw.__name__)
    changes = raw.__name__ == "__init_subclass__" and raw is not vars(object)[raw.__name__]
    if found is None or found.raw is not raw or changes:
        raise GraphBreak("FJ0132", f"calling {raw.__qualname__}() of the class {type_name(cls)}")


class Method(NamedTuple):
    """A C-level method or function: the handler, its range of positional arguments (``high`` -1: no
    limit), its keywords; the names that it has besides, of which the handler is told one."""

    run: Callable[..., Any]
    low: int
    high: int
    keywords: frozenset[str]
    names: tuple[str, ...] = ()

    def fits(self, args: list[Value], kwargs: dict[str, Value], first: int) -> bool:
        """Does it take these arguments? The first of them is its parameter of this number."""
        count = len(args)
        if kwargs and "**" not in self.keywords:
            code = self.run.__code__
            names = code.co_varnames[first : code.co_argcount][: max(count, self.low)]
            if not self.keywords.issuperset(kwargs) or not kwargs.keys().isdisjoint(names[:count]):
                return False
            count += sum(name in kwargs for name in names[count:])
        return self.low <= count and (count <= self.high or self.high < 0)


def method(
    low: int = 0, high: int | None = None, *keywords: str, names: tuple[str, ...] = ()
) -> Callable[[Marked], Marked]:
    """Mark ``do_NAME(self, space, *args)`` as the method ``NAME``; ``high`` -1 means any number.

    A handler returns None for Python's None. Keyword arguments are passed under their own names;
    with "**" among ``keywords`` any are accepted. With ``names``, it stands for these methods, and
    is told which one is called: ``do_any(self, space, *args, name=name)``.
    """

    def mark(handler: Marked) -> Marked:
        handler.__dict__["method"] = Method(
            handler, low, low if high is None else high, frozenset(keywords), names
        )
        return handler

    return mark


class Element:
    """A value for methods of real containers: what CPython asks of it, the space is asked."""

    __slots__ = ("space", "value")

    def __init__(self, space: Space, value: Value) -> None:
        self.space, self.value = space, value

    def __eq__(self, other: Any) -> bool:
        return self.space.equal(self.value, other.value)

    def __bool__(self) -> bool:
        return self.space.truth(self.value)

    def __index__(self) -> int:
        return index_of(self.space, self.value)

    def __repr__(self) -> str:
        value = self.value.realize()
        if not value.is_constant:
            raise GraphBreak("FJ0136", f"the text of a {value.describe()}")
        return repr(value.as_python())


def _ordered(op: str) -> Callable[[Element, Element], Element]:
    def compare(self: Element, other: Element) -> Element:
        space = self.space
        return Element(space, space.now(space.compare(op, self.value, other.value)))

    return compare


for _op in ("<", "<=", ">", ">="):
    setattr(Element, COMPARE_METHODS[_op][0], _ordered(_op))


class ContainerValue(Value):
    """A value of a builtin type with C-level methods, given as ``do_NAME`` handlers."""

    __slots__ = ("mutated",)
    #: For those that can be changed and exist already: is the real one to be changed?
    mutated: bool
    methods: ClassVar[dict[str, Method]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        table = dict(cls.methods)
        for name, handler in vars(cls).items():
            entry = getattr(handler, "method", None)
            if isinstance(entry, Method):
                table.update(dict.fromkeys(entry.names or [name.removeprefix("do_")], entry))
        cls.methods = table

    def changed(self, space: Space) -> None:
        """The content has been changed."""
        if self.source is not None:
            self.mutated = True
        space.changed(self)

    def sample(self) -> Any:
        """An empty real object of this type, to get CPython's complaints from."""
        return self.python_type()()

    def _sample_method(self, name: str) -> Callable[..., Any]:
        """A method of the `sample`, called as instructions do, which messages tell."""
        return functools.partial(getattr(self.python_type(), name), self.sample())

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        """The C-level method ``name`` of this builtin type, called on this value."""
        entry = self.methods.get(name)
        if entry is None:
            return self.call_special_method(space, name, args, kwargs)
        self.check_counts(space, name, args, kwargs)
        run, keywords = entry.run, entry.keywords
        if entry.names:
            result = run(self, space, *args, name=name)
        elif not kwargs:
            result = run(self, space, *args)
        elif "**" in keywords:
            result = run(self, space, *args, kwargs=kwargs)
        else:
            result = run(self, space, *args, **kwargs)
        return space.constant(None) if result is None else result

    def check_counts(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> None:
        """Raise what CPython says if the method does not take these arguments."""
        if not self.methods[name].fits(args, kwargs, 2):
            count_error(space, lambda: self._sample_method(name), args, kwargs)

    def call_special_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        """``x.__add__(y)`` and the like, written out or reached through ``super()``."""
        if name in _BINARY and len(args) == 1:
            op, reflected, inplace = _BINARY[name]
            other = args[0].realize()
            result = self.binary_op(space, op, other, reflected, inplace)
            return self._decline(space, name, other) if result is None else result
        if name in _COMPARE and len(args) == 1:
            answer = self.compare_op(space, _COMPARE[name], args[0].realize())
            return space.constant(NotImplemented) if answer is None else answer
        operation, count = _OPERATIONS.get(name, ("", -1))
        if len(args) == count:
            done: Result | None = getattr(self, operation)(space, *args)
            return space.constant(None) if done is None else done
        if name in ("__repr__", "__str__") and not args:
            if self.python_type() in (list, tuple, dict):
                return space.text_of(self, "__repr__")
            return space.constant(repr(self.as_python()))
        if name == "__format__" and len(args) == 1:
            return space.format_value(self, None, args[0].realize().as_python())
        raise GraphBreak(
            "FJ0133", f"{self.python_type().__name__}.{name}() is not known to framejit"
        )

    def _decline(self, space: Space, name: str, other: Value) -> Value:
        """What a method of an operator does with an operand of another kind: sequences raise."""
        declines = getattr(self.sample(), name, None)
        if declines is not None:
            if hasattr(other.python_type(), "__index__") and not other.is_constant:
                raise GraphBreak("FJ0133", f"{name}() of a sequence with a {other.describe()}")
            space.run_real(declines, stand_in(other))
        return space.constant(NotImplemented)

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Result | None:
        """``self op other`` (or ``other op self``); None is NotImplemented."""
        return None

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        """``self op other``; None is NotImplemented."""
        return None


def stand_in(value: Value) -> Any:
    """An object of a class of the same name and builtin base, to get CPython's complaints from."""
    cls = value.python_type()
    if not is_user_class(cls):
        if value.is_constant:
            return value.as_python()
        if isinstance(value, ContainerValue):
            return value.sample()
    inner = value.container
    content = () if inner is None else (stand_in(inner),)
    return type(type_name(cls), tuple(map(type, content)), {})(*content)


#: Of these there are values that are no constants, and yet numbers or texts.
_SCALARS = (int, float, complex, str)


def as_returned(
    space: Space, owner: Value, name: str, answer: Value, function: Any, *args: Any
) -> Any:
    """What a C function makes of what the special method ``name`` of ``owner`` has returned."""
    answer = answer.realize()
    if answer.is_symbolic or (not answer.is_constant and answer.python_type() in _SCALARS):
        real = answer.as_python()
    elif name in ("__len__", "__trunc__") and hasattr(answer.python_type(), "__index__"):
        real = index_of(space, answer)
    else:
        real = stand_in(answer)
    probe = type(type_name(owner.python_type()), (), {name: lambda *_: real})()
    return space.run_real(function, probe, *args)


def count_error(
    space: Space, find: Callable[[], Any], args: list[Value], kwargs: dict[str, Value]
) -> NoReturn:
    """The arguments do not fit: raise what CPython says to as many of them."""
    given = [stand_in(value.realize()) for value in args]
    named = {name: stand_in(value.realize()) for name, value in kwargs.items()}
    try:
        space.run_real(find(), *given, **named)
    except Raised as error:
        if error.is_a(TypeError):  # others are about the arguments' values
            raise
    raise GraphBreak("FJ0137", "arguments in a form that framejit does not know for this method")


def container_of(value: Value, kind: type[Container]) -> Container | None:
    """``value`` as a container of this kind: itself, or the one inside an object of a subclass."""
    if isinstance(value, kind):
        return value
    inner = value.container
    return inner if isinstance(inner, kind) else None


def check_own_iteration(space: Space, value: Value) -> None:
    """A graph break where C code would ask a method of the program's for the content."""
    asked = [space.class_attribute(value.python_type(), name) for name in ("__iter__", "__len__")]
    if any(found is not None and is_user_class(found.owner) for found in asked):
        raise GraphBreak("FJ0160", f"C code iterates over a {value.describe()}")


def returns_self(name: str) -> bool:
    """Does the method of this name return the object itself?"""
    return name in ("__enter__", "__iter__") or name in (n[2] for n in BINARY_METHODS.values())


@functools.cache
def gives_own_class(base: type, name: str) -> bool:
    """Does the C-level method, called on an object of a subclass, make another object of the
    subclass? Asked of CPython: those of deque, OrderedDict and defaultdict do, list's do not."""
    probe = type("Probe", (base,), {})
    for args in ((), (probe(),), (1,)):
        try:
            return type(getattr(probe(), name)(*args)) is probe
        except Exception:  # TypeError, or an item that is not there
            continue
    return False


def is_tensor(value: Value) -> bool:
    """Whether ``value`` represents a tensor."""
    return issubclass(value.python_type(), torch.Tensor)


def iterator_by(space: Space, method: Value) -> Value:
    """What ``__iter__`` of the program gives. (FOR_ITER trusts that it is an iterator.)"""
    made: Value = space.call_now(method, []).realize()
    kind = made.python_type()
    user = is_user_class(kind)
    if not (space.class_attribute(kind, "__next__") if user else hasattr(kind, "__next__")):
        space.raise_error(TypeError, f"iter() returned non-iterator of type {type_name(kind)!r}")
    return made


def index_of(space: Space, value: Value, complaint: str = "") -> int:
    """``operator.index(value)``; TypeError in the program with ``complaint``."""
    value = value.realize()
    if value.is_constant:
        constant = value.as_python()
        if hasattr(type(constant), "__index__"):
            return operator.index(constant)
    elif issubclass(value.python_type(), int):
        return value.as_python()
    elif is_tensor(value):
        raise GraphBreak(
            "FJ0102",
            "a tensor is used as an index, which depends on its data",
            "index with a Python number, or use tensor indexing",
        )
    else:
        special = space.special_method(value, "__index__")
        if special is not None:
            answer = space.call_now(special, [])
            return int(as_returned(space, value, "__index__", answer, operator.index))
    name = type_name(value.python_type())
    space.raise_error(
        TypeError, complaint or f"{name!r} object cannot be interpreted as an integer"
    )
    raise AssertionError


def builtin(function: Any, low: int, high: int | None = None, *keywords: str) -> Any:
    """Register a handler ``(space, *args)`` that takes ``low`` to ``high`` arguments.

    A call that does not fit raises CPython's complaint (the real function is called with as many
    stand-ins). Keyword arguments are passed on under their own names. A handler may return a
    constant itself in place of its value.
    """

    def register(handler: Marked) -> Marked:
        takes = Method(handler, low, low if high is None else high, frozenset(keywords))

        def checked(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
            if not takes.fits(args, kwargs, 1):
                count_error(space, lambda: function, args, kwargs)
            result = handler(space, *args, **kwargs) if kwargs else handler(space, *args)
            known = not isinstance(result, (Value, CallRequest))
            return space.constant(result) if known else result  # type: ignore[return-value]

        LOOKASIDES[function] = checked
        return handler

    return register


def scalar_of(value: Value) -> Value | None:
    """The number or text inside an instance of a subclass of ``int``, ``float``, ``str``, ..."""
    inner = value.container
    return inner if inner is not None and inner.is_constant else None


def elements(space: Space, iterable: Value) -> Iterator[Value]:
    """The elements, as ``list()`` asks for them: when it has the iterator, it asks how many there
    will be, which may run the program's code."""
    iterable = iterable.realize()
    known = iterable.items_now(space)
    if known is not None:
        return iter(known)
    iterator = space.iter(iterable)
    if iterable.is_by_index or is_user_class(iterable.python_type()):
        length_hint(space, iterable)
    return iter(lambda: space.next(iterator), None)


def elements_for_tuple(space: Space, iterable: Value) -> Iterator[Value]:
    """The elements, as ``tuple()`` asks for them."""
    asks = complaints.tuples_ask_for_length()
    return elements(space, iterable) if asks else space.each(iterable)


def listed(
    space: Space, iterable: Value, complaint: str | Callable[[], Any] | None = None
) -> list[Value]:
    """The elements, as C functions ask for them that need a sequence: its iterator for a list.
    The complaint (or what fails with it) takes the place of any TypeError of ``__iter__``."""
    try:
        known = iterable.realize().items_now(space)
        iterator = space.iter(iterable) if known is None else iterable
    except Raised as error:
        if complaint is None or not error.is_a(TypeError):
            raise
        if callable(complaint):
            try:
                space.run_real(complaint)
            except Raised as made:
                space.made_up = made.value  # Python may know better
                raise
        space.raise_error(TypeError, complaint)
    return known if known is not None else list(elements(space, iterator))


def length_hint(space: Space, value: Value) -> Value | None:
    """What ``value`` says of its length, if anything."""
    cls = value.python_type()
    if space.class_attribute(cls, "__len__") is not None:
        size = _unless_type_error(space, lambda: space.len(value))
        if size is not None:
            return size
    hint = space.special_method(value, "__length_hint__")
    if hint is None:
        return None
    answer = _unless_type_error(space, lambda: space.call_now(hint, []))
    if answer is None or space.is_(answer, space.constant(NotImplemented)):
        return None
    name, function = "__length_hint__", operator.length_hint
    return space.constant(as_returned(space, value, name, answer, function))


def _unless_type_error(space: Space, ask: Callable[[], Value]) -> Value | None:
    try:
        return ask()
    except Raised as error:
        if not error.is_a(TypeError):
            raise
        return None
