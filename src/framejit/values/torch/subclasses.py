"""Tensors of classes of the program's own that only look at operations: no ``__torch_dispatch__``.

In: existing tensors of such classes, and plain ones that become one (``as_subclass``). Out: values
that are tensors for the graph, which never sees the class, and objects with attributes, methods and
overrides (`overrides`) for the program. Next room: graph.
"""

from __future__ import annotations

import types
from typing import Any

import torch

from framejit.exc import GraphBreak
from framejit.graph.plain_inputs import PLAIN
from framejit.source import Source
from framejit.values.core.base import Args, Kwargs, Value, hides_own_attribute, real_class
from framejit.values.core.constants import ConstantValue
from framejit.values.core.namespaces import instance_dict, own_attribute, store_own
from framejit.values.core.registry import Rank, Result, lookaside, wraps_classes
from framejit.values.core.space import Space
from framejit.values.core.symbolic import wrap_sizes
from framejit.values.torch.overrides import accessed
from framejit.values.torch.tensors import TensorValue, tensor_call

parameter: Any = torch.nn.parameter


class SubclassValue(TensorValue):
    """A tensor of such a class. It may share its node with the tensor that it was made of, and is
    another object all the same."""

    #: The tensor that it was made of, if it was made here, and whether nothing else is that one.
    origin: Any = None
    has_own_origin: bool = False
    namespace: Any = None
    own_identity = True
    is_plain = False

    def describe(self) -> str:
        return f"{self.cls.__qualname__} object"

    def original(self, space: Space) -> TensorValue:
        return self

    def proxy(self, space: Space) -> Any:
        if space.transforms:
            raise GraphBreak("FJ0113", f"a {self.describe()} in a transform of torch.func")
        return super().proxy(space)

    def asked(self, space: Space, question: Any) -> Value:
        raise GraphBreak("FJ0113", f"what only a {self.describe()} itself can say is asked")

    # -- attributes --------------------------------------------------------------------------------

    def getattr(self, space: Space, name: str) -> Result:
        custom = space.class_attribute(self.cls, "__getattribute__")
        if custom is not None and type(custom.raw) is types.FunctionType:
            raise GraphBreak("FJ0151", f"attribute {name!r} of a {self.describe()}")
        found = space.class_attribute(self.cls, name)
        if name == "__dict__":
            return instance_dict(space, self)
        if name == "__class__":
            return space.class_value(self.cls)
        if found is not None and type(found.raw) is types.GetSetDescriptorType:
            return accessed(space, self, name) or self._plain_attribute(space, name)
        if found is not None and hides_own_attribute(found.raw):
            return space.bind_class_attribute(found, self, self.cls, name)
        own = own_attribute(space, self, name)
        if own is not None:
            return own
        if found is not None:
            return space.bind_class_attribute(found, self, self.cls, name)
        hook = space.special_method(self, "__getattr__")
        if hook is not None:
            return space.call(hook, [ConstantValue(name)], {})
        return space.generic_getattr(self, name)

    def _plain_attribute(self, space: Space, name: str) -> Result:
        if name == "_grad" or (name == "grad" and not self.has_gradient()):
            raise GraphBreak("FJ0113", f"the gradient of a {self.describe()}")
        return super().getattr(space, name)

    def has_gradient(self) -> bool:
        """Is its gradient the object that it has, and not one that its class makes of that?"""
        return self.leaves_functions_alone()

    def leaves_functions_alone(self) -> bool:
        """Is ``__torch_function__`` of its class disabled, or that of `torch.Tensor`?"""
        cls: Any = self.cls
        usual: Any = torch.Tensor.__torch_function__
        override = cls.__torch_function__
        is_usual = getattr(override, "__func__", None) is usual.__func__
        return is_usual or override is torch._C._disabled_torch_function_impl

    def setattr(self, space: Space, name: str, value: Value) -> None:
        self._check_plain(space, name, "__setattr__")
        found = space.class_attribute(self.cls, name)
        if found is None or not hides_own_attribute(found.raw):
            store_own(space, self, name, value)
            return
        if type(found.raw) is property and found.raw.fset is not None:
            setter = space.load(found.source.child("attr", "fset"), found.raw.fset)
            space.call_now(setter, [self, value])
            return
        result = accessed(space, self, name, value)
        if result is None and name == "grad" and self.has_gradient():
            space.assign_gradient(self, value.realize())
            return
        if result is None:
            raise GraphBreak("FJ0112", f"assigning attribute {name!r} of a {self.describe()}")
        space.now(result)

    def delattr(self, space: Space, name: str) -> None:
        self._check_plain(space, name, "__delattr__")
        if own_attribute(space, self, name) is None:
            raise GraphBreak("FJ0152", f"deleting attribute {name!r} of a {self.describe()}")
        store_own(space, self, name, None)

    def _check_plain(self, space: Space, name: str, method: str) -> None:
        found = space.class_attribute(self.cls, method)
        if found is not None and type(found.raw) is types.FunctionType:
            raise GraphBreak("FJ0112", f"{method}() of a {self.describe()}")


def is_seen_by_class_only(cls: Any) -> bool:
    """A class of tensors whose objects are plain tensors, but for what Python does with them."""
    if not issubclass(cls, torch.Tensor) or cls in PLAIN:
        return False
    lazy = issubclass(cls, parameter.UninitializedTensorMixin)
    return cls.__torch_dispatch__ is torch.Tensor.__torch_dispatch__ and not lazy


@wraps_classes(is_seen_by_class_only, Rank.KIND)
def _wrap_subclass(space: Space, source: Source, obj: torch.Tensor) -> Value:
    if obj.layout is not torch.strided or obj.is_quantized or obj.is_nested:
        raise GraphBreak("FJ0114", f"a {type(obj).__name__} that is not dense")
    example = wrap_sizes(space, source, obj)
    if example is None:
        space.guard(source, "TENSOR_MATCH", obj)
    return space.remember(obj, SubclassValue(None, example, type(obj), obj, source))


def as_subclass(space: Space, value: TensorValue, cls: Any) -> TensorValue:
    """A new object for a tensor, of this class."""
    known = real_class(cls)
    if known is None or not issubclass(known, torch.Tensor) or space.transforms:
        raise GraphBreak("FJ0111", "Tensor.as_subclass()")
    value.proxy(space)
    # Gradients come to the new object, too: what is computed of it has passed through it.
    other = value.example.meta.requires_grad or known is torch.Tensor
    if other:
        value = tensor_call(space, torch.ops.aten.alias.default, value)
    if known is torch.Tensor:
        return value
    if not is_seen_by_class_only(known):
        raise GraphBreak("FJ0113", f"a tensor becomes a {known.__name__}")
    return SubclassValue(
        value.node, value.example, known, step=space.step, origin=value, has_own_origin=other
    )


@lookaside(torch.Tensor._make_subclass)
def _make_subclass(space: Space, args: Args, kwargs: Kwargs) -> Result:
    cls, data = (value.realize() for value in args[:2])
    given = [*args[2:], *kwargs.values()]
    if not isinstance(data, TensorValue) or any(space.truth(value) for value in given):
        raise GraphBreak("FJ0153", "Tensor._make_subclass() with more than a class and a tensor")
    return as_subclass(space, tensor_call(space, "detach", data), cls)


def new_tensor(space: Space, cls: type, args: Args, kwargs: Kwargs) -> Value:
    """``torch.Tensor.__new__`` for a class of the program's."""
    data = args[0].realize() if len(args) == 1 and not kwargs else None
    if not isinstance(data, TensorValue):
        raise GraphBreak("FJ0153", f"making a {cls.__qualname__} of something else than a tensor")
    return as_subclass(space, data, space.class_value(cls))
