"""``__torch_function__``: modes, classes of tensors and other objects that override torch.

In: calls of torch's functions, methods and attributes. Out: calls of the overrides, whose code is
traced; nothing where none applies. Which function an override is told, with which arguments, torch
itself says: it is called on stand-ins, under a mode that only listens. Next: subclasses.
"""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._device import DeviceContext

from framejit.exc import GraphBreak
from framejit.graph.global_state import (
    ENABLED,
    OFF,
    WITHOUT_CLASSES,
    ask_functions,
    asked_functions,
    default_devices,
)
from framejit.graph.ragged import is_ragged_class
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.slices import SliceValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Declared, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.operations import LazyValue
from framejit.values.core.registry import LOOKASIDE_RULES, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.functions import call_polyfill
from framejit.values.objects.instances import ObjectValue
from framejit.values.torch.devices import device_block
from framejit.values.torch.tensors import TensorValue
from framejit.values.torch.torch_functions import is_of_torch

_C = torch._C
# Every override asks for it; only its first call computes something.
torch.overrides.get_default_nowrap_functions()


def _operands(values: Any) -> Iterator[Value]:
    """The arguments that torch looks at for overrides: also those in lists."""
    for value in values:
        if type(value) is LazyValue and value.source.accessor == "const":
            if not hasattr(type(value.obj), "__torch_function__"):
                continue  # made for this capture: nothing about it can change
        value = value.realize()
        if type(value) in (ListValue, TupleValue):
            yield from (item.realize() for item in value.items)
        else:
            yield value


def overrides(space: Space, value: Value) -> bool:
    """Has the class of an operand a ``__torch_function__`` of its own?"""
    if type(value) is TensorValue or not isinstance(value, (TensorValue, ObjectValue)):
        return False
    cls, known = value.cls, space.torch_function.classes
    if cls not in known:
        found = space.class_attribute(cls, "__torch_function__")
        plain = found is None or found.raw is _C._disabled_torch_function_impl
        if not plain and is_ragged_class(cls):
            plain = True  # what it does is part of the operation, in the graph and on fakes
        known[cls] = not plain
    return known[cls]


def is_overridden(space: Space, values: Any) -> bool:
    """May a call of torch's with these arguments be that of an override?"""
    over = space.torch_function
    if over.state == ENABLED and any(overrides(space, value) for value in _operands(values)):
        return True
    return over.asks_modes


def is_handed_on(space: Space, namespace: dict[str, Any], args: Args, kwargs: Kwargs) -> bool:
    """Does torch's function in Python, with these globals, hand such a call to an override?"""
    of_torch = str(namespace.get("__name__", "")).startswith("torch.")
    return of_torch and is_overridden(space, [*args, *kwargs.values()])


def intercept(space: Space, function: Any, args: Args, kwargs: Kwargs) -> Result | None:
    """What a call of torch's function becomes where something overrides it; None: nothing does."""
    if not is_of_torch(function) or not is_overridden(space, [*args, *kwargs.values()]):
        return None
    question = _Question(space)
    if not question.ask(function, args, kwargs):
        return None
    known: dict[type, Value] = {}
    for value in _operands([*args, *kwargs.values()]):
        known.setdefault(value.python_type(), value)
    asked = [known[cls] for cls in question.classes if cls in known]
    overriding = [value for value in asked if overrides(space, value)]
    by_mode = ConstantValue(space.torch_function.asks_modes)
    told = [TupleValue(question.told), by_mode, TupleValue(overriding)]
    way = polyfills.call_operator_override if question.declines else polyfills.call_override
    return call_polyfill(space, way, [ConstantValue(question.name), *told])


def intercept_method(
    space: Space, receiver: Value, name: str, raw: Any, args: Args, kwargs: Kwargs
) -> Result | None:
    """The same for a method that is called on a tensor; ``raw``: if not what its class has."""
    receiver = receiver.realize()
    given = [receiver, *args]
    if not receiver.is_tensor or not is_overridden(space, [*given, *kwargs.values()]):
        return None
    if raw is None:
        found = space.class_attribute(receiver.python_type(), name)
        if found is None:
            return None
        if type(found.raw) is types.FunctionType:
            return space.call(space.load(found.source, found.raw), given, kwargs)
        raw = found.raw
    return intercept(space, raw, given, kwargs)


class _Answered(Exception):
    """torch has said what it would call."""


class _Listener:
    """Stands on torch's stack of modes, and is told of the first call."""

    given: tuple[Any, ...] = ()

    def __torch_function__(self, *given: Any) -> Any:
        self.given = given
        raise _Answered


class _RefusingMode:
    """The same, for what torch says if nobody handles a call."""

    def __torch_function__(self, *given: Any) -> Any:
        return NotImplemented


class _Refuser:
    """An argument that does so."""

    @classmethod
    def __torch_function__(cls, *given: Any) -> Any:
        return NotImplemented


class _RefusingTensor(_Refuser, torch.Tensor):
    """The same as a tensor."""


class _Int(int):
    """In place of a number that varies."""


class _Float(float):
    """In place of a number that varies."""


class _Question:
    """Asks torch what overrides are told of a call."""

    def __init__(self, space: Space) -> None:
        self.space = space
        #: What stands for which value, by id.
        self.values: dict[int, tuple[Any, Value]] = {}
        #: The classes of operands that are asked, in this order.
        self.classes: tuple[type, ...] = ()
        #: The function, the classes, the arguments, and perhaps the keyword arguments.
        self.told: list[Value] = []
        #: The function's name in messages. Is it an operator that another operand may have as well?
        self.name, self.declines = "", False
        #: Are stand-ins to refuse, and not to be told?
        self.refuses = False

    def ask(self, function: Any, args: Args, kwargs: Kwargs) -> bool:
        """False: torch asks nobody."""
        listener = _Listener()
        self._call(listener, self.space.torch_function.state, function, args, kwargs)
        if not listener.given:
            return False
        told, self.classes, *_ = listener.given
        self.told = [torch_function(self.space, told), *map(self._value, listener.given[1:])]
        self.refuses = True
        refusal = self._call(_RefusingMode(), ENABLED, function, args, kwargs)
        self.declines = refusal is NotImplemented
        self.name = str(refusal).partition("'")[2].partition("'")[0]
        return True

    def _call(self, mode: Any, state: Any, function: Any, args: Args, kwargs: Kwargs) -> Any:
        """What is returned or raised under this mode."""
        given = [self._stand_in(arg) for arg in args]
        named = {name: self._stand_in(value) for name, value in kwargs.items()}
        before = asked_functions()
        ask_functions(state)
        _C._push_on_torch_function_stack(mode)
        try:
            if named or self.space.running.passes_keywords():
                return function(*given, **named)
            return function(*given)
        except Exception as error:  # if torch does not ask, the operation itself will say it
            return error
        finally:
            _C._pop_torch_function_stack()
            ask_functions(before)

    def _stand_in(self, value: Value) -> Any:
        """Something of the same class for torch's own code to look at."""
        value = value.realize()
        made: Any
        if isinstance(value, TensorValue):
            known = value.metadata()
            made = torch.empty((0,) * len(known.shape), dtype=known.dtype)
            cls = _RefusingTensor if self.refuses else value.cls
            if cls is not torch.Tensor:
                made = torch.Tensor._make_subclass(cls, made)
        elif isinstance(value, ObjectValue) and value.container is None:
            refuses = self.refuses and overrides(self.space, value)
            made = object.__new__(_Refuser if refuses else value.cls)
        elif type(value) in (ListValue, TupleValue):
            items = [self._stand_in(item) for item in value.items]  # type: ignore[attr-defined]
            made = value.python_type()(items)
        elif isinstance(value, SliceValue):
            made = slice(*map(self._stand_in, (value.start, value.stop, value.step)))
        elif value.is_symbolic or value.is_read:
            made = (_Int if value.python_type() is int else _Float)(1)
        else:
            made = value.as_python()
        self.values[id(made)] = made, value
        return made

    def _value(self, told: Any) -> Value:
        known = self.values.get(id(told))
        if known is not None:
            return known[1]
        if type(told) in (tuple, list):
            items = [self._value(item) for item in told]
            return TupleValue(items) if type(told) is tuple else ListValue(items)
        if type(told) is dict:
            made = self.space.call_now(self.space.class_value(dict), [])
            for name, item in told.items():
                self.space.setitem(made, ConstantValue(name), self._value(item))
            return made
        return self.space.constant(told)


# -- what overrides are told -----------------------------------------------------------------------


def torch_function(space: Space, function: Any) -> Value:
    """The value of a function of torch's that an override is told."""
    name = getattr(function, "__qualname__", "function")
    return space.load(space.const_source(function, f"torch {name}"), function)


def _accesses(function: Any) -> bool:
    """Is it ``torch.Tensor.shape.__get__``, or the ``__set__`` of such an attribute?"""
    raw = getattr(function, "__self__", None)
    return type(raw) is types.GetSetDescriptorType and raw.__objclass__ is _C.TensorBase


def _access(function: Any) -> Any:
    name, sets = function.__self__.__name__, function.__name__ == "__set__"

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        if kwargs or len(args) != (2 if sets else 1):
            raise GraphBreak("FJ0132", f"calling {name}.{function.__name__}()")
        if not sets:
            return space.getattr(args[0], name)
        space.setattr(args[0], name, args[1])
        return ConstantValue(None)

    return handler


LOOKASIDE_RULES.append((_accesses, _access))


def accessed(space: Space, value: Value, name: str, *new: Value) -> Result | None:
    """An attribute in C of a tensor is read or, with ``new``, written where that is overridden."""
    raw = getattr(_C.TensorBase, name, None)
    if type(raw) is not types.GetSetDescriptorType:
        return None
    access = raw.__set__ if new else raw.__get__
    return intercept(space, access, [value, *new], {})


# -- torch's state ---------------------------------------------------------------------------------


def _any_overrides(space: Space, values: list[Value]) -> Value:
    """A mode handles every call. Code that would hand its own call to it goes on instead where the
    modes only choose devices: that is part of operations here."""
    if space.torch_function.asks_modes:
        return ConstantValue(True)
    place = space.running.executing()
    goes_on = place is not None and "handle_torch_function" in place[0].co_names
    if values and not goes_on and default_devices() and space.torch_function.state != OFF:
        return ConstantValue(True)
    return ConstantValue(is_overridden(space, values))


@lookaside(torch.overrides.has_torch_function, _C._has_torch_function)
def _has_torch_function(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return _any_overrides(space, space.items(args[0] if args else kwargs["relevant_args"]))


@lookaside(
    torch.overrides.has_torch_function_unary, torch.overrides.has_torch_function_variadic,
    _C._has_torch_function_unary, _C._has_torch_function_variadic,
)  # fmt: skip
def _any_torch_function(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return _any_overrides(space, [*args, *kwargs.values()])


@lookaside(_C._is_torch_function_enabled)
def _classes_are_asked(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return ConstantValue(space.torch_function.state == ENABLED)


@lookaside(_C._is_torch_function_all_disabled)
def _nobody_is_asked(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return ConstantValue(space.torch_function.state == OFF)


def _stack(space: Space) -> list[Any]:
    return [*default_devices(), *space.torch_function.modes]


@lookaside(_C._len_torch_function_stack)
def _how_many_modes(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return ConstantValue(len(_stack(space)))


@lookaside(_C._is_torch_function_mode_enabled)
def _modes_are_asked(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return ConstantValue(bool(_stack(space)) and space.torch_function.state != OFF)


@lookaside(_C._get_function_stack_at)
def _mode_at(space: Space, args: Args, kwargs: Kwargs) -> Result:
    (index,) = [arg.realize().as_python() for arg in args]
    modes = _stack(space)
    if type(index) is not int or not 0 <= index < len(modes):
        raise GraphBreak("FJ0124", "a torch function mode that is not being executed")
    return modes[index] if isinstance(modes[index], Value) else device_block(space, index)


@lookaside(_C._push_on_torch_function_stack)
def _enter_mode(space: Space, args: Args, kwargs: Kwargs) -> Value:
    mode = args[0].realize()
    if issubclass(mode.python_type(), DeviceContext):
        raise GraphBreak("FJ0124", "a mode that chooses a device is entered")
    space.effects.enter_mode(mode)
    return ConstantValue(None)


@lookaside(_C._pop_torch_function_stack)
def _leave_mode(space: Space, args: Args, kwargs: Kwargs) -> Value:
    if not space.torch_function.modes:
        raise GraphBreak("FJ0124", "a mode is left that was entered elsewhere")
    return space.effects.leave_mode()


class Block(Declared):
    """``DisableTorchFunctionSubclass()``: while it is open, fewer are asked."""

    cls: type
    #: What was asked before it was entered, and the step in which that was.
    before: Any = None
    entered: int = -1

    def python_type(self) -> type:
        return self.cls

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        now = space.torch_function.state
        if name == "__enter__" and self.before is None:
            self.before, self.entered = now, space.step
            least = WITHOUT_CLASSES if self.cls is _C.DisableTorchFunctionSubclass else OFF
            space.effects.ask(OFF if OFF in (now, least) else least)
            space.torch_function.blocks.append(space.step)
        elif name == "__exit__" and self.before is not None:
            space.effects.ask(self.before)
            self.before = None
            space.torch_function.blocks.pop()
        else:
            raise GraphBreak("FJ0132", f"calling {name}() of a {self.describe()}")
        return ConstantValue(None)


def _opens(cls: Any) -> None:
    @lookaside(cls)
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Value:
        return Block(cls)


_opens(_C.DisableTorchFunctionSubclass)
_opens(_C.DisableTorchFunction)
