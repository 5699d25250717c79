"""Questions about functions: ``inspect.signature`` and its relatives.

In: function values. Out: real signature objects, held by the entry; the code and the defaults that
they describe are guarded. Next room: interpreter.
"""

from __future__ import annotations

import inspect
from typing import Any

from framejit.exc import GraphBreak
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import Handler, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import FunctionValue, MethodValue
from framejit.values.objects.instances import ObjectValue


def _described(space: Space, value: Value) -> Any:
    """The real function behind a value, with what its signature depends on guarded."""
    value = value.realize()
    if isinstance(value, FunctionValue) and value.function is not None:
        source = value.source
        assert source is not None
        for name in ("__defaults__", "__kwdefaults__"):
            space.guard(source.child("attr", name), "ID_MATCH", getattr(value.function, name))
        wrapped = value.function.__dict__.get("__wrapped__")
        if wrapped is not None:
            _described(space, space.getattr_now(value, "__wrapped__"))
        return value.function
    if isinstance(value, ClassValue):
        for name in ("__init__", "__new__", "__signature__"):
            space.class_attribute(value.cls, name)
        space.class_attribute(type(value.cls), "__call__")
        return value.cls
    raise GraphBreak("FJ0162", f"the signature of a {value.describe()}")


@lookaside(inspect.signature)
def _signature(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) != 1 or kwargs:
        raise GraphBreak("FJ0162", "inspect.signature() with options")
    value = args[0].realize()
    skip_first = False
    if isinstance(value, MethodValue):
        value, skip_first = value.function.realize(), True
    elif isinstance(value, ObjectValue):
        method = space.special_method(value, "__call__")
        if not isinstance(method, MethodValue):
            raise GraphBreak("FJ0162", f"the signature of a {value.describe()}")
        value, skip_first = method.function.realize(), True
    signature = space.run_real(inspect.signature, _described(space, value))
    if skip_first:
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    return space.constant(signature)


def _stands_for(kind: type[Value]) -> Handler:
    return lambda space, args, kwargs: ConstantValue(isinstance(args[0].realize(), kind))


lookaside(inspect.isfunction)(_stands_for(FunctionValue))
lookaside(inspect.ismethod)(_stands_for(MethodValue))
lookaside(inspect.isclass)(_stands_for(ClassValue))
