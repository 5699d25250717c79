"""Exceptions of the captured program: made, raised and caught while capturing.

In: exception classes and arguments. Out: `ExceptionValue`, an object whose C-level state (``args``,
``__cause__``, ...) lives in its attributes. Next room: interpreter.
"""

from __future__ import annotations

import types
from typing import Any

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.base import Value, is_heap_class
from framejit.values.constants import ConstantValue, constant_value
from framejit.values.objects import ObjectValue, guard_class
from framejit.values.space import WRAP_RULES, Result, Space

#: Classes that keep more than their arguments.
STATEFUL = (OSError, SyntaxError, UnicodeError, UnicodeDecodeError, UnicodeEncodeError,
            UnicodeTranslateError, BaseExceptionGroup)  # fmt: skip
#: C-level attributes that are None on a new exception.
_STATE = ("__cause__", "__context__", "__traceback__")


class ExceptionValue(ObjectValue):
    """An exception instance. ``trace``: where it has been raised, the outermost place first.
    ``model``: a real one made of the same arguments, for classes with more C-level state."""

    __slots__ = ("given", "model", "trace")

    def __init__(
        self, cls: type, obj: Any = None, source: Source | None = None, step: int = 0
    ) -> None:
        super().__init__(cls, obj, source, step)
        self.trace: tuple[tuple[str, str, int], ...] = ()
        self.model: BaseException | None = None
        #: The arguments that it was made with, where ``args`` is not the same.
        self.given: list[Value] | None = None

    def getattr(self, space: Space, name: str) -> Result:
        if name == "__traceback__" and self.trace:
            if self.source is not None:
                raise GraphBreak("FJ0146", "looking at the traceback of an error raised once more")
            return TracebackValue(self)
        if self.model is not None and name not in self.attributes:
            descriptor = vars(BaseException).get(name)
            for cls in STATEFUL:
                descriptor = vars(cls).get(name, descriptor)
            if type(descriptor) in (types.MemberDescriptorType, types.GetSetDescriptorType):
                return constant_value(space, getattr(self.model, name))
        return super().getattr(space, name)

    def set_args(self, args: list[Value]) -> None:
        """What ``BaseException.__new__`` and ``__init__`` store."""
        from framejit.values.sequences import TupleValue  # room-internal cycle

        self.attributes["args"] = TupleValue(list(args))
        if issubclass(self.cls, StopIteration):
            self.attributes["value"] = args[0] if args else ConstantValue(None)
        if issubclass(self.cls, (AttributeError, NameError, ImportError)):
            self.attributes.setdefault("name", ConstantValue(None))
        if issubclass(self.cls, AttributeError):
            self.attributes.setdefault("obj", ConstantValue(None))

    def args(self, space: Space) -> list[Value]:
        """``exception.args``."""
        return space.items(space.now(self.getattr(space, "args")))

    def call_method(
        self, space: Space, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Result:
        if name == "__init__":
            if kwargs:
                raise GraphBreak("FJ0145", f"keyword arguments of {self.cls.__name__}()")
            self.set_args(args)
            self.note(space)
            return ConstantValue(None)
        if name == "with_traceback":
            self._set_traceback(space, args[0])
            return self
        if name == "__str__":
            from framejit.values.text import exception_text  # room-internal cycle

            return exception_text(space, self)
        if name == "add_note":
            raise GraphBreak("FJ0146", "BaseException.add_note()")
        raise GraphBreak("FJ0146", f"calling {self.cls.__qualname__}.{name}()")

    def raised_while(self, space: Space, handled: Value) -> None:
        """It is raised while ``handled`` is being handled, which becomes its ``__context__``."""
        if handled is self:
            return
        link: Value = handled
        seen = set()
        while isinstance(link, ExceptionValue) and link not in seen:
            seen.add(link)
            if self.source is None and "__context__" not in link.attributes:
                break  # an existing one, which knows no new one
            before = space.now(link.plain_getattr(space, "__context__")).realize()
            if before is self:  # no cycles
                link.set_context(space, ConstantValue(None))
            link = before
        self.set_context(space, handled)

    def set_context(self, space: Space, context: Value) -> None:
        """Assign ``__context__``."""
        if self.source is None:
            self.attributes["__context__"] = context
        else:
            self.store(space, "__context__", context)

    def plain_setattr(self, space: Space, name: str, value: Value) -> None:
        if name == "__traceback__":
            self._set_traceback(space, value)
            return
        if name == "__cause__":
            self.attributes["__suppress_context__"] = ConstantValue(True)
        super().plain_setattr(space, name, value)

    def _set_traceback(self, space: Space, value: Value) -> None:
        value = value.realize()
        if self.source is not None or not (value.is_none() or isinstance(value, TracebackValue)):
            raise GraphBreak("FJ0146", f"setting the traceback of a {self.describe()}")
        self.trace = value.exception.trace if isinstance(value, TracebackValue) else ()
        space.changes += 1

    def passes(self, space: Space, place: tuple[str, str, int]) -> None:
        """It is raised in a frame, or leaves it."""
        self.trace = (place, *self.trace)
        if self.source is not None:
            space.effects.note(self)


class TracebackValue(Value):
    """The traceback of an exception raised while capturing: passed on, never looked into."""

    __slots__ = ("exception",)

    def __init__(self, exception: ExceptionValue) -> None:
        self.exception = exception
        self.source = None

    def python_type(self) -> type:
        return types.TracebackType


def new_exception(space: Space, cls: type[BaseException], args: list[Value]) -> ExceptionValue:
    """An instance straight from ``BaseException.__new__``, without ``__init__``."""
    value = ExceptionValue(cls, step=space.step)
    value.set_args(args)
    for name in _STATE:
        value.attributes[name] = ConstantValue(None)
    value.attributes["__suppress_context__"] = ConstantValue(False)
    return value


def note_read(space: Space, error: Value, value: Value, name: str) -> None:
    """An AttributeError that leaves the read of an attribute names it and its object, unless it
    names others already."""
    if not isinstance(error, ExceptionValue) or not issubclass(error.cls, AttributeError):
        return
    for field in ("name", "obj"):
        known = space.now(error.plain_getattr(space, field)).realize()
        if not known.is_constant or known.as_python() is not None:
            return
    new = {"name": ConstantValue(name), "obj": value}
    if error.source is None:
        error.attributes.update(new)
    else:
        for field, content in new.items():
            error.store(space, field, content)


def make_exception(
    space: Space, cls: type[BaseException], args: list[Value], kwargs: dict[str, Value]
) -> Result:
    """``cls(*args)``; a Python ``__init__`` is inlined."""
    from framejit.values.classes import initialise  # room-internal cycle

    found = space.class_attribute(cls, "__new__")
    assert found is not None
    if type(found.raw) in (staticmethod, types.FunctionType):
        raise GraphBreak("FJ0145", f"making a {cls.__qualname__}, which has its own __new__")
    init = space.class_attribute(cls, "__init__")
    assert init is not None
    stateful = issubclass(cls, STATEFUL)
    if type(init.raw) is types.FunctionType:
        if stateful:
            raise GraphBreak("FJ0145", f"making a {cls.__qualname__}, which has its own __init__")
        return initialise(space, new_exception(space, cls, args), cls, args, kwargs)
    if kwargs:
        raise GraphBreak("FJ0145", f"making a {cls.__qualname__} with keyword arguments")
    space.changes += 1
    return _stateful(space, cls, args) if stateful else new_exception(space, cls, args)


def _stateful(space: Space, cls: type[BaseException], args: list[Value]) -> Value:
    """An exception whose class keeps more than ``args``: a real one is made as the model."""
    if issubclass(cls, BaseExceptionGroup):
        real: list[Any] = [args[0].realize().as_python()] if args else []
        for value in args[1:]:
            members = [item.realize() for item in space.items(value)]
            if not all(isinstance(item, ExceptionValue) for item in members):
                raise GraphBreak("FJ0145", "an exception group of other things than exceptions")
            real.append([_sample(space, item) for item in members])
    else:
        real = [arg.realize().as_python() for arg in args]
    model = space.run_real(cls, *real)
    made = new_exception(space, type(model), args[: len(model.args)])
    made.given, made.model = args, model
    if issubclass(cls, BaseExceptionGroup):
        from framejit.values.sequences import TupleValue  # room-internal cycle

        made.attributes["exceptions"] = TupleValue(space.items(args[1]))
    return made


def _sample(space: Space, value: Any) -> BaseException:
    """A real exception with the same text."""
    if value.model is not None:
        return value.model  # type: ignore[no-any-return]
    if not is_heap_class(value.cls) and value.source is None:
        return value.cls(*[arg.realize().as_python() for arg in value.args(space)])  # type: ignore[no-any-return]
    raise GraphBreak("FJ0145", f"an exception group with a {value.describe()}")


def _wrap_exception(space: Space, source: Source, obj: BaseException) -> Value:
    guard_class(space, source, type(obj))
    return space.remember(obj, ExceptionValue(type(obj), obj, source))


def matches(space: Space, value: Value, classes: Value) -> bool:
    """``except classes:`` for the exception ``value``."""
    from framejit.values.classes import ClassValue  # room-internal cycle

    classes = classes.realize()
    if isinstance(classes, ClassValue):
        if not issubclass(classes.cls, BaseException):
            space.raise_error(
                TypeError,
                "catching classes that do not inherit from BaseException is not allowed",
            )
        return issubclass(value.python_type(), classes.cls)
    items = classes.items_now(space)
    if items is None:
        raise GraphBreak("FJ0146", f"catching a {classes.describe()}")
    return any(matches(space, value, item) for item in items)


WRAP_RULES.insert(0, (lambda cls: issubclass(cls, BaseException), _wrap_exception))
