"""The methods of ``object``, when nothing overrides them, and methods in C bound by hand.

In: a method's name and its arguments. Out: what the C function does with them. Next: torch.
"""

from __future__ import annotations

import types
from typing import Any

from framejit.exc import GraphBreak
from framejit.values.core import complaints
from framejit.values.core.base import NULL, Args, Kwargs
from framejit.values.core.constants import ConstantValue
from framejit.values.core.methods import count_error
from framejit.values.core.operations import ClassAttribute
from framejit.values.core.registry import Result
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue, new_instance, refuse_surplus
from framejit.values.objects.functions import BoundBuiltin, BuiltinValue
from framejit.values.objects.instances import ObjectValue
from framejit.values.objects.text import format_object

#: The number of arguments that methods of ``object`` take.
_PARAMETERS = {
    "__getattribute__": 1, "__setattr__": 2, "__delattr__": 1, "__eq__": 1, "__ne__": 1,
    "__hash__": 0, "__str__": 0, "__format__": 1,
}  # fmt: skip


def object_method(space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
    """``object.<name>(*args)``."""
    value = args[0].realize()
    rest = args[1:]
    if name in _PARAMETERS and (kwargs or len(rest) != _PARAMETERS[name]):
        count_error(space, lambda: getattr(object(), name), rest, kwargs)
    if name in ("__init__", "__new__"):
        cls = value.cls if isinstance(value, ClassValue) else value.python_type()
        if rest or kwargs:
            refuse_surplus(space, cls if name == "__new__" else value.python_type(), name)
        if name == "__init__":
            return ConstantValue(None)
        return new_instance(space, cls, rest, kwargs)
    if name in ("__getattribute__", "__setattr__", "__delattr__"):
        text = rest[0].realize().as_python()
        if not isinstance(text, str):
            space.run_real(getattr(object(), name), text, *rest[1:])
        if not isinstance(value, ObjectValue):
            searched = issubclass(value.python_type(), (type, types.ModuleType, super))
            if name == "__getattribute__" and not searched:  # these look elsewhere, too
                return space.getattr(value, text)
            raise GraphBreak("FJ0133", f"object.{name} on a {value.describe()}")
        if name == "__getattribute__":
            return value.plain_getattr(space, text)
        if name == "__setattr__":
            value.plain_setattr(space, text, rest[1])
        else:
            value.plain_delattr(space, text)
        return ConstantValue(None)
    if name == "__ne__":  # what the object's own class has for ==, turned round
        equal = space.call_now(space.special_method(value, "__eq__") or NULL, [rest[0]])
        answered = not space.is_(equal, ConstantValue(NotImplemented))
        return ConstantValue(not space.truth(equal)) if answered else equal
    if name == "__eq__":
        return ConstantValue(True if space.is_(value, rest[0]) else NotImplemented)
    if name == "__init_subclass__" and kwargs:
        text = f"{value.cls.__name__}.{name}() takes no keyword arguments"  # type: ignore[attr-defined]
        return space.raise_error(TypeError, text)
    if name in ("__init_subclass__", "__subclasshook__"):
        return ConstantValue(None if name == "__init_subclass__" else NotImplemented)
    if name == "__str__":
        return space.call(space.special_method(value, "__repr__") or NULL, [], {})
    if name == "__format__":
        text = rest[0].realize().as_python()
        if not isinstance(text, str):
            space.run_real(object().__format__, text)
        return format_object(space, value, text)
    raise GraphBreak("FJ0133", f"object.{name} of a {value.describe()}")


def bound_by_hand(
    space: Space, method: BuiltinValue, name: str, args: Args, kwargs: Kwargs
) -> Result:
    """``object.__setattr__.__get__(obj)``: a method in C of the class it is taken from, whatever
    the class of ``obj`` has under its name."""
    raw: Any = method.function
    binds = type(raw) in (types.MethodDescriptorType, types.WrapperDescriptorType)
    receiver = args[0].realize() if args else NULL
    if name != "__get__" or not binds or kwargs or len(args) > 2 or not args or receiver.is_none():
        raise GraphBreak("FJ0132", f"calling {name}() of a {method.describe()}")
    cls, named = receiver.python_type(), raw.__name__
    if not issubclass(cls, raw.__objclass__):
        return space.raise_error(TypeError, complaints.method_of_another(raw, cls, bound=True))
    found = ClassAttribute(raw, method.source, raw.__objclass__)  # type: ignore[arg-type]
    made = space.now(space.bind_class_attribute(found, receiver, cls, named))
    if isinstance(made, BoundBuiltin):
        usual = space.class_attribute(cls, named)
        made.raw = None if usual is not None and usual.raw is raw else raw
    return made
