"""Exceptions of the captured program: made, raised and caught while capturing.

In: exception classes and arguments. Out: `ExceptionValue`. What the C classes keep of the arguments
(``args``, ``value``, ``errno``, ...) is asked of a real exception, the model, which is made in the
same way, of the same constants and of stand-ins for everything else. Next room: interpreter.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import sys
import types
from typing import TYPE_CHECKING, Any, NamedTuple

from framejit.exc import GraphBreak
from framejit.native import c_attribute
from framejit.source import Source
from framejit.values.containers.sequences import TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Declared, Kwargs, Value, is_heap_class
from framejit.values.core.carried import with_known_class
from framejit.values.core.constants import ConstantValue, constant_value
from framejit.values.core.methods import container_of
from framejit.values.core.operations import LazyValue
from framejit.values.core.registry import Result, wraps_classes
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue, initialise
from framejit.values.objects.descriptors import C_DATA
from framejit.values.objects.instances import ObjectValue

if TYPE_CHECKING:
    from framejit.bytecode.model import Place

#: Files whose frames users do not see: C functions, which are traced as Python, have none.
UNSEEN = frozenset([polyfills.__file__])


class Made(NamedTuple):
    """A call that made the C-level state of an exception: ``__new__`` or ``__init__``."""

    args: list[Value]
    kwargs: dict[str, Value]


def _handled(_: Any) -> BaseException | None:
    return sys.exception()


def handled_by_caller(space: Space) -> Value:
    """The error that is being handled around the compiled code; None if there is none."""
    asked = space.const_source(sys, "sys").child("call", _handled)
    return space.load(asked, space.handled_around)


def _blank(base: Any) -> BaseException:
    """Some exception of a class of CPython's: groups are the only ones that need arguments."""
    group = issubclass(base, BaseExceptionGroup)
    made: BaseException = base.__new__(base, *(("", [Exception()]) if group else ()))
    return made


class ExceptionValue(ObjectValue):
    """An exception instance. ``trace``: where it has been raised, the outermost place first."""

    #: Of each frame that it has passed: file, function, line, last line and columns.
    trace: tuple[Place, ...] = ()
    #: The frames that its traceback keeps, innermost first, where that makes a difference, each
    #: with how many places it had passed when it left them.
    left: list[tuple[int, Any]] = []
    #: Of one made here: its class in C, and what was given to its ``__new__`` and ``__init__``.
    base: Any = None
    made: Any = None
    inits: list[Made] = []
    model: BaseException | None = None
    #: What the model was made of, by identity; is all of it what the program's is made of?
    parts: dict[int, tuple[Any, Value]] = {}
    exact: bool = True
    #: The attributes that only say what the model has.
    read: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.base = _base(self.cls)

    def getattr(self, space: Space, name: str) -> Result:
        if name == "__traceback__" and self.trace:
            if self.source is not None:
                raise GraphBreak("FJ0146", "looking at the traceback of an error raised once more")
            return TracebackValue(self)
        return super().getattr(space, name)

    def find_attribute(self, space: Space, name: str) -> Result | None:
        if name == "__context__" and self.trace and not (self.source or name in self.attributes):
            return handled_by_caller(space)
        if self.model is not None and name not in self.attributes:
            found = space.class_attribute(self.cls, name)
            kept = found is not None and type(found.raw) in C_DATA and name != "__dict__"
            if kept and issubclass(self.base, found.owner) and found.owner is not object:  # type: ignore[union-attr]
                value = self._part(space, space.run_real(c_attribute, self.model, name))
                self.attributes[name] = value
                self.read = self.read | {name}
                return value
        return super().find_attribute(space, name)

    def _part(self, space: Space, real: Any) -> Value:
        """What something that the model keeps represents."""
        known = self.parts.get(id(real))
        if known is not None:
            return known[1]
        if type(real) is tuple:
            return TupleValue([self._part(space, item) for item in real])
        return constant_value(space, real)

    def _stand_in(self, space: Space, value: Value) -> Any:
        """What the model gets in place of a value."""
        carried = self.base is KeyError or text_is_of_args(self.base)  # type: ignore[arg-type]
        value = with_known_class(space, value) if carried else value.realize()
        real: Any
        if type(value) is LazyValue:  # nobody has looked at it yet
            self.exact, real = False, object()
        elif isinstance(value, ExceptionValue):
            if not value.exact or value.model is None:
                self.exact = False
            real = value.model if value.model is not None else _blank(value.base)
        elif value.is_constant and not value.is_open:
            real = value.as_python()
        elif value.python_type() in (list, tuple) and hasattr(value, "items"):
            real = value.python_type()([self._stand_in(space, item) for item in value.items])
        else:
            self.exact, real = False, object()
        self.parts[id(real)] = (real, value)
        return real

    def _run(self, space: Space, function: Any, made: Made, *model: Any) -> Any:
        """Call the C class's ``__new__`` or ``__init__`` for the model."""
        args = [self._stand_in(space, arg) for arg in made.args]
        kwargs = {name: self._stand_in(space, arg) for name, arg in made.kwargs.items()}
        if self.exact:
            return space.run_real(function, *model, *args, **kwargs)
        if issubclass(self.base, OSError):  # the number decides about the class
            raise GraphBreak("FJ0145", f"making a {self.cls.__name__} of what is not known")
        try:
            return function(*model, *args, **kwargs)
        except Exception as error:  # perhaps not for the real ones
            raise GraphBreak("FJ0145", f"making a {self.cls.__name__}: {error}")

    def create(self, space: Space, args: Args, kwargs: Kwargs) -> None:
        """``cls.__new__(cls, *args, **kwargs)``."""
        self.made = Made(list(args), dict(kwargs))
        cls = _model_class(self.cls)
        self.model = self._run(space, self.base.__new__, self.made, cls)
        if cls is self.cls:
            self.cls = self.base = type(self.model)

    def initialise(self, space: Space, args: Args, kwargs: Kwargs) -> None:
        """The C class's ``__init__``."""
        self.inits.append(Made(list(args), dict(kwargs)))
        self._run(space, self.base.__init__, self.inits[-1], self.model)
        for name in self.read:
            self.attributes.pop(name, None)
        self.read = frozenset()

    def store(self, space: Space, name: str, value: Value | None) -> None:
        if self.model is not None and hasattr(type(self.model), name):
            real = self._stand_in(space, value or ConstantValue(None))
            try:
                self.model.__setattr__(name, real)
            except (TypeError, AttributeError, ValueError, OverflowError) as error:
                raise GraphBreak("FJ0145", f"{name} of a {self.cls.__name__}: {error}")
        elif self.model is None and not self._takes(name, value):
            raise GraphBreak("FJ0145", f"{name} of an existing {self.cls.__name__}")
        super().store(space, name, value)
        self.read = self.read - {name}

    def _takes(self, name: str, value: Value | None) -> bool:
        """Does an existing one take this for an attribute? Setters in C refuse or convert much."""
        setter = type(getattr(self.base, name, None))
        if setter not in C_DATA or name == "__traceback__":
            return True
        if value is None:
            return False
        if name == "args":
            return value.python_type() is tuple
        if name in ("__cause__", "__context__"):
            return isinstance(value, ExceptionValue) or value.is_none()
        if name == "__suppress_context__":
            return value.python_type() is bool
        try:
            setattr(self.base.__new__(self.base), name, object())  # type: ignore[union-attr]
        except (TypeError, AttributeError):
            return False
        return True

    def args(self, space: Space) -> list[Value]:
        """``exception.args``, as C code reads them."""
        found = space.class_attribute(self.cls, "args")
        if found is None or found.owner is not BaseException:
            raise GraphBreak("FJ0160", f"the text of a {self.describe()} with args of its own")
        return space.items(space.now(self.plain_getattr(space, "args")))

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if name == "__init__":
            if self.model is not None:
                self.initialise(space, args, kwargs)
            elif not kwargs and not _has_state(self.base):  # type: ignore[arg-type]
                self.store(space, "args", TupleValue(list(args)))
            else:
                raise GraphBreak("FJ0145", f"__init__() of an existing {self.cls.__name__}")
            self.note(space)
            return ConstantValue(None)
        if name == "with_traceback":
            self._set_traceback(space, args[0])
            return self
        if name == "__str__":
            return space.exception_text(self)
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
        super().plain_setattr(space, name, value)
        if name == "__cause__":
            self.attributes["__suppress_context__"] = ConstantValue(True)
            self.read = self.read - {"__suppress_context__"}

    def _set_traceback(self, space: Space, value: Value) -> None:
        value = value.realize()
        if self.source is not None or not (value.is_none() or isinstance(value, TracebackValue)):
            raise GraphBreak("FJ0146", f"setting the traceback of a {self.describe()}")
        known = value.exception if isinstance(value, TracebackValue) else None
        self.trace, self.left[:] = (known.trace, known.left) if known is not None else ((), [])
        space.changed(self)

    def passes(self, space: Space, place: Place) -> None:
        """It is raised in a frame, or leaves it."""
        if place[0] in UNSEEN:
            return
        self.trace = (place, *self.trace)
        if self.source is not None:
            space.effects.note(self)


class TracebackValue(Declared):
    """The traceback of an exception raised while capturing: passed on, never looked into."""

    exception: ExceptionValue
    kind = types.TracebackType


def _base(cls: type) -> type[BaseException]:
    """The class in C that keeps the state of ``cls``."""
    return next(base for base in cls.__mro__ if not is_heap_class(base))


@functools.cache
def _has_state(base: Any) -> bool:
    """Does a class in C keep more of what it is called with than ``args``?"""
    own = base.__mro__[: base.__mro__.index(BaseException)]
    return any(isinstance(member, C_DATA) for cls in own for member in vars(cls).values())


@functools.cache
def _like(name: str, bases: tuple[Any, ...], own_init: bool) -> type[BaseException]:
    """A class of the program's with these bases: some look whether it has its own ``__init__``."""
    return type(name, bases, {"__init__": object.__init__} if own_init else {})


def _model_class(cls: type) -> type[BaseException]:
    """The class of the model; asking it anything runs no code of the program."""
    base: Any = _base(cls)
    if cls is base or cls is ExceptionGroup:  # a class on the heap, but not the program's
        return cls  # type: ignore[return-value]
    # groups of exceptions refuse what is none
    refuses = issubclass(cls, Exception) and not issubclass(base, Exception)
    bases = (base, Exception) if refuses else (base,)
    return _like(cls.__name__, bases, cls.__init__ is not base.__init__)  # type: ignore[misc]


@functools.cache
def text_is_of_args(base: Any) -> bool:
    """Does a class in C make the text of an exception of its ``args`` alone?"""
    try:
        sample = base.__new__(base)
        for name, member in itertools.chain(*[vars(cls).items() for cls in base.__mro__]):
            if isinstance(member, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError, TypeError):
                    setattr(sample, name, "other")
        sample.args = ("text",)
        return str(sample) == "text"
    except TypeError:  # it needs arguments
        return False


def new_exception(
    space: Space,
    cls: type[BaseException],
    args: Args,
    kwargs: Kwargs | None = None,
) -> ExceptionValue:
    """An instance as the C classes make it; an ``__init__`` of the program's does not run."""
    value = ExceptionValue(cls, step=space.step)
    value.create(space, args, kwargs or {})
    value.initialise(space, args, kwargs or {})
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
        error.read = error.read - new.keys()
    else:
        for field, content in new.items():
            error.store(space, field, content)


def make_exception(space: Space, cls: type[BaseException], args: Args, kwargs: Kwargs) -> Result:
    """``cls(*args)``; a Python ``__init__`` is inlined."""
    found = space.class_attribute(cls, "__new__")
    assert found is not None
    if type(found.raw) in (staticmethod, types.FunctionType):
        raise GraphBreak("FJ0145", f"making a {cls.__qualname__}, which has its own __new__")
    init = space.class_attribute(cls, "__init__")
    assert init is not None
    if type(init.raw) is types.FunctionType:
        made = ExceptionValue(cls, step=space.step)
        made.create(space, args, kwargs)
        return initialise(space, made, cls, args, kwargs)
    return new_exception(space, cls, args, kwargs)


@wraps_classes(lambda cls: issubclass(cls, BaseException))
def _wrap_exception(space: Space, source: Source, obj: BaseException) -> Value:
    space.guard_class(source, type(obj))
    return space.remember(obj, ExceptionValue(type(obj), obj, source))


def matches(space: Space, value: Value, classes: Value) -> bool:
    """``except classes:`` for the exception ``value``; a tuple holds nothing but classes."""
    classes = classes.realize()
    group = container_of(classes, TupleValue)
    known = [item.realize() for item in ([classes] if group is None else group.items)]
    if not all(isinstance(one, ClassValue) and issubclass(one.cls, BaseException) for one in known):
        space.raise_error(
            TypeError, "catching classes that do not inherit from BaseException is not allowed"
        )
    return any(one.cls in value.python_type().__mro__ for one in known)  # type: ignore[attr-defined]
