"""Tensors: every operation on one becomes a node of the graph.

In: existing tensors with their sources, or results of graph nodes. Out: graph nodes through
``space.builder``; metadata (shape, dtype, ...) comes as constants. What depends on the data
is a graph break. An existing tensor becomes a graph input when an operation first needs it.
Next room: graph.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy
import torch
from torch.utils._device import _device_constructors

from framejit import config
from framejit.exc import GraphBreak
from framejit.graph.global_state import default_devices, set_default_devices
from framejit.graph.metadata import Example
from framejit.graph.tensor_class import is_replaced
from framejit.source import Source
from framejit.values.containers.sequences import ListValue, TupleValue, shape_value
from framejit.values.containers.slices import SliceValue
from framejit.values.core.base import Args, Kwargs, Value, is_user_class
from framejit.values.core.constants import ConstantValue, new_number, wrap_opaque
from framejit.values.core.keys import key_of_object
from framejit.values.core.namespaces import own_attribute, store_own
from framejit.values.core.registry import BINARY_METHODS, Result, wraps
from framejit.values.core.space import Space
from framejit.values.core.symbolic import wrap_sizes
from framejit.values.objects.functions import BoundBuiltin
from framejit.values.objects.instances import named_tuple
from framejit.values.torch.overridable import Overridable, replaced_method

#: Methods and attributes whose result follows from the metadata alone.
_METADATA_ATTRIBUTES = frozenset([
    "dtype", "device", "layout", "ndim", "is_cuda", "is_cpu", "is_mps", "is_meta", "is_sparse",
    "is_sparse_csr", "is_quantized", "is_mkldnn", "is_nested", "is_xpu", "is_vulkan", "is_mtia",
    "is_maia", "is_ipu", "is_xla", "itemsize", "nbytes", "is_sparse_csc",
])  # fmt: skip
_METADATA_METHODS = frozenset([
    "size", "stride", "dim", "ndimension", "numel", "nelement", "is_floating_point",
    "is_complex", "is_signed", "is_contiguous", "is_inference", "element_size",
    "storage_offset", "get_device", "type_as_name", "is_same_size", "is_conj", "is_neg",
    "has_names", "is_shared", "dim_order",
])  # fmt: skip
#: Those of them that differ among tensors that `TENSOR_MATCH` takes for equal.
_UNGUARDED_METHODS = frozenset(["storage_offset", "is_shared"])
_VIEW_ATTRIBUTES = frozenset(["T", "mT", "H", "mH", "real", "imag", "data"])
_DATA_DEPENDENT = frozenset([
    "item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__",
    "__nonzero__", "__contains__", "__array__", "equal", "allclose",
])  # fmt: skip
_EAGER_ONLY = frozenset([
    "register_hook", "retain_grad", "register_post_accumulate_grad_hook", "share_memory_",
    "pin_memory", "untyped_storage", "storage", "data_ptr", "set_", "__setstate__", "__reduce_ex__",
    "__deepcopy__", "__dlpack__", "__repr__", "__str__", "__format__", "_make_subclass",
    "as_subclass", "apply_", "map_", "map2_", "resize_", "resize_as_", "rename", "rename_",
    "__hash__", "numpy", "_is_view", "record_stream", "module_load",
])  # fmt: skip


#: The dicts of a leaf that hold its hooks, and what puts hooks there.
HOOK_DICTS = {"_backward_hooks": "register_hook",
              "_post_accumulate_grad_hooks": "register_post_accumulate_grad_hook"}  # fmt: skip
#: Methods with a number of this name, which eager mode reads out of a tensor if it is given one.
_SCALED = {"addcdiv": "value", "addcdiv_": "value", "addcmul": "value", "addcmul_": "value",
           "add": "alpha", "add_": "alpha", "sub": "alpha", "sub_": "alpha"}  # fmt: skip


class TensorValue(Overridable):
    """A tensor. ``node`` is its graph node (None for an existing tensor not yet used);
    ``example`` its metadata; ``obj`` the existing tensor."""

    node: Any
    example: Any
    cls: type = torch.Tensor
    obj: Any = None
    source: Source | None = None
    #: The step in which the graph made it, if it did.
    step: int = 0
    #: What the program assigned to ``grad`` of an existing tensor.
    assigned_grad: Value | None = None
    #: The dicts of hooks that the program gave to a leaf, by the names of `HOOK_DICTS`.
    hook_dicts: dict[str, Value] | None = None
    #: Node and example of an existing tensor with the other value of ``requires_grad``, if the
    #: program has switched it.
    switched: tuple[Any, Any] | None = None
    #: Has an existing tensor let go of its history?
    let_go: bool = False
    #: Has the program assigned to ``data`` of an existing tensor?
    replaced: bool = False
    #: The value of its ``__dict__``.
    namespace: Any = None
    #: Is it another object than any other value with its node?
    own_identity: ClassVar[bool] = False
    #: Was it made in the program, of its attributes?
    is_made: ClassVar[bool] = False

    def python_type(self) -> type:
        return self.cls

    def original(self, space: Space) -> TensorValue:
        """The tensor that this one is: operations that have nothing to do return their operand."""
        origin = None if self.obj is not None else space.builder.origin(self.node)
        if origin is None or origin is self.node:
            return self
        if space.transforms:  # what is passed there is wrapped, perhaps anew
            raise GraphBreak("FJ0159", "whether an operation in a transform returns its operand")
        for value in space.graph_inputs:
            if value.node is origin:
                return value  # type: ignore[no-any-return]
        return TensorValue(origin, self.example)

    def as_key(self, space: Space) -> TensorValue:
        """The same, where it is looked for among others."""
        first = self.original(space)
        if first is not self and first.obj is None:
            raise GraphBreak("FJ0159", "what an operation returns is a key, and is its operand")
        return first

    def hash_key(self, space: Space) -> Any:
        return key_of_object(space, self.as_key(space))

    def describe(self) -> str:
        return "tensor"

    def proxy(self, space: Space) -> Any:
        """The graph node; an existing tensor becomes an input now."""
        if self.node is None:
            assert self.source is not None
            source = self.source
            shown = source.base if source.accessor == "call" and source.base else source
            self.node, self.example = space.builder.add_input(shown.name, self.obj, self.example)
            self.source.captured = self.source.base is not None
            space.graph_inputs.append(self)
        return self.node

    def metadata(self) -> Any:
        """An object with shape, dtype, device, requires_grad: the real tensor or what is known."""
        return self.obj if self.example is None else self.example.meta

    def fake(self, space: Space) -> torch.Tensor:
        """A fake tensor with exactly this metadata."""
        return space.builder.fake(self.proxy(space))

    # -- attributes --------------------------------------------------------------------------------

    def getattr(self, space: Space, name: str) -> Result:
        if space.torch_function.asks_modes and self.is_plain:
            override = space.accessed(self, name)
            if override is not None:
                return override
        if name == "shape":
            return shape_value(space, self.metadata().shape)
        if name == "requires_grad":
            return ConstantValue(bool(self.metadata().requires_grad))
        if name in _METADATA_ATTRIBUTES:
            if name in ("dtype", "device"):
                return ConstantValue(getattr(self.metadata(), name))
            if name == "ndim":
                return ConstantValue(len(self.metadata().shape))
            fake = self.fake(space)  # which knows no `nbytes` of sizes that vary
            found = fake.numel() * fake.itemsize if name == "nbytes" else getattr(fake, name)
            return new_number(space, found)
        if name in _VIEW_ATTRIBUTES:
            return graph_call(space, getattr, [self, ConstantValue(name)], {})
        if name == "is_leaf":
            return self._is_leaf(space)
        if name == "grad_fn" and self._is_leaf(space).as_python():
            return ConstantValue(None)
        if name == "grad":
            if self.assigned_grad is not None:
                return self.assigned_grad
            if self.obj is not None and self.source is not None:
                if not (self.obj.is_leaf or self.obj.retains_grad):
                    raise GraphBreak("FJ0111", "the gradient of a result of an operation")
                return space.load(self.source.child("attr", "grad"), self.obj.grad)
            if self.keeps_gradients(space) or bool(self.fake(space).is_leaf):
                return ConstantValue(None)
        if name in HOOK_DICTS and space.is_leaf(self):
            return space.hook_dict(self, name)
        if name in ("grad_fn", "_version", "_base", "output_nr", *HOOK_DICTS, "retains_grad"):
            raise GraphBreak("FJ0111", f"attribute {name!r} of a tensor")
        if name == "__class__":
            return space.class_value(self.cls)
        attribute = getattr(torch.Tensor, name, None)
        exists = self.obj is not None and self.source is not None
        if self.namespace is not None or (
            exists and (name in self.obj.__dict__ or not hasattr(self.cls, name))
        ):
            own = own_attribute(space, self, name)
            if own is not None:
                return own
        if attribute is None:
            return space.generic_getattr(self, name)
        if callable(attribute):
            found = space.class_attribute(self.cls, name)  # guarded: it can be patched
            if found is not None and is_replaced(name, found.owner, found.raw):
                return space.bind_class_attribute(found, self, self.cls, name)
            return BoundBuiltin(self, name)
        raise GraphBreak("FJ0111", f"attribute {name!r} of a tensor")

    def _is_leaf(self, space: Space) -> Value:
        asked = None if self.obj is None else self.asked(space, _is_leaf)
        if asked is not None and self.node is None:
            return asked
        return ConstantValue(bool(self.fake(space).is_leaf))

    def asked(self, space: Space, question: Any) -> Value:
        """What ``question`` returns for the existing tensor; not part of what is always guarded."""
        answer = question(self.obj)
        if self.source is not None:
            space.guard(self.source.child("call", question), "EQUALS_MATCH", answer)
        return ConstantValue(answer)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        value = value.realize()
        if space.torch_function.asks_modes and (override := space.accessed(self, name, value)):
            space.now(override)
            return
        if name == "requires_grad" and value.is_constant:
            space.require_gradient(self, value.as_python())
        elif name == "data":
            space.replace_data(self, value)
        elif not hasattr(self.cls, name):
            if self.obj is None and self.original(space) is not self:
                raise GraphBreak("FJ0112", "assigning an attribute of what an operation returns")
            store_own(space, self, name, value)
        elif name in HOOK_DICTS and space.is_leaf(self):
            space.assign_hook_dict(self, name, value)
        elif name == "grad":
            space.assign_gradient(self, value)
        else:
            raise GraphBreak("FJ0112", f"assigning attribute {name!r} of a tensor")

    def delattr(self, space: Space, name: str) -> None:
        if hasattr(self.cls, name):
            raise GraphBreak("FJ0112", f"deleting attribute {name!r} of a tensor")
        if own_attribute(space, self, name) is None:
            text = f"{self.cls.__name__!r} object has no attribute {name!r}"
            space.raise_error(AttributeError, text)
        store_own(space, self, name, None)

    def keeps_gradients(self, space: Space) -> bool:
        """Is it a result that ``backward`` gives a gradient?"""
        return self.node in space.effects.made_leaves or self.node in space.effects.retaining

    # -- operations --------------------------------------------------------------------------------

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if name in _METADATA_METHODS:
            return self._metadata_method(space, name, args, kwargs)
        if name in _DATA_DEPENDENT:
            known = space.number_for_optimizer(self) if name == "item" and not args else None
            if known is None and not args and not kwargs:
                known = space.of_data(self, name)
            if known is not None:
                return known
            raise GraphBreak(
                "FJ0102",
                f"Tensor.{name}() needs the tensor's data",
                "Keep the value a tensor, or move this line out of the compiled function.",
            )
        if name == "numpy" and not args and kwargs.keys() <= {"force"}:
            return space.array_of(self, **kwargs)
        if name in ("__format__", "__repr__", "__str__"):
            raise GraphBreak("FJ0160", f"Tensor.{name}()")
        if name == "requires_grad_":
            return space.require_gradient(self, _is_wanted(args, kwargs))
        if name == "detach_" and space.let_go_of_history(self):
            return self
        if name in HOOK_DICTS.values() and space.is_leaf(self):
            return space.hook_leaf(self, name, args, kwargs)
        if name in ("register_hook", "retain_grad") and self.obj is None:
            return space.watch_gradient(self, name, args)
        if name == "backward":
            return _backward(space, self, args, kwargs)
        if name == "as_subclass" and len(args) == 1 and not kwargs:
            return space.as_subclass(self, args[0])
        if name in _EAGER_ONLY:
            raise GraphBreak("FJ0111", f"Tensor.{name}()")
        if name == "__len__":
            return self.plain_len(space)
        if name == "__iter__":
            return space.iter(TupleValue(self.plain_items(space)))
        if name == "__getitem__":
            return self.plain_getitem(space, args[0])
        if name == "__setitem__":
            self.plain_setitem(space, args[0], args[1])
            return ConstantValue(None)
        if name == "type":
            return space.as_type(self, args, kwargs)
        factor = kwargs[_SCALED[name]].realize() if kwargs.keys() == {_SCALED.get(name)} else None
        if factor is not None and (factor.is_read or isinstance(factor, TensorValue)):
            return space.scaled(name, [self, *args], factor)
        if name in ("new_tensor", "new"):
            return space.new_like(self, name, args, kwargs)
        result = graph_call_method(space, name, [self, *args], kwargs)
        # In-place methods return the tensor itself.
        return self if name.endswith("_") and not name.endswith("__") else result

    def _metadata_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Value:
        if name == "size":
            if not args and not kwargs:
                return shape_value(space, self.metadata().shape)
            index = (args or list(kwargs.values()))[0].realize().as_python()
            try:
                return new_number(space, self.metadata().shape[index])
            except (IndexError, TypeError):
                raise GraphBreak("FJ0111", "Tensor.size() with a dimension out of range")
        if name in _UNGUARDED_METHODS and self.obj is not None and self.source is not None:
            if not args and not kwargs:
                return self.asked(space, getattr(torch.Tensor, name))
        if name in ("dim", "ndimension") and not args and not kwargs:
            return ConstantValue(len(self.metadata().shape))
        real = [a.realize().as_python() if not isinstance(a.realize(), TensorValue)
                else a.realize().fake(space) for a in args]  # type: ignore[attr-defined]  # fmt: skip
        named = {k: v.realize().as_python() for k, v in kwargs.items()}
        if name == "stride" and self.obj is None and self.example is not None:
            self.example.meta.check_stride(*real, **named)
        try:
            return new_number(space, getattr(self.fake(space), name)(*real, **named))
        except (RuntimeError, TypeError, IndexError) as error:
            raise GraphBreak("FJ0111", f"Tensor.{name}(): {error}")

    def plain_getitem(self, space: Space, key: Value) -> Result:
        scalar: Any = key.realize()
        if hasattr(scalar, "number"):
            check_scalar(scalar.now)
            key = scalar.number()
        by_data = space.indexed_by_data(self, key.realize())
        if by_data is not None:
            return by_data
        if key.realize().is_symbolic and key.python_type() is int:  # indexing fixes the number
            return graph_call(space, torch.select, [self, ConstantValue(0), key], {})
        return graph_call(space, operator.getitem, [self, key], {})

    def plain_setitem(self, space: Space, key: Value, value: Value) -> None:
        kind = value.realize().python_type()
        if issubclass(kind, numpy.floating) and not issubclass(kind, float):
            raise GraphBreak("FJ0132", f"assigning a {kind.__name__} of numpy, which torch refuses")
        graph_call(space, operator.setitem, [self, key, value], {})

    def plain_len(self, space: Space) -> Value:
        shape = self.metadata().shape
        if len(shape) == 0:
            return space.raise_error(TypeError, "len() of a 0-d tensor")
        return new_number(space, shape[0])

    def plain_items(self, space: Space) -> list[Value]:
        if len(self.metadata().shape) == 0:
            space.raise_error(TypeError, "iteration over a 0-d tensor")
        parts = graph_call_method(space, "unbind", [self, ConstantValue(0)], {})
        return space.items(parts)

    def expect(self, space: Space, truth: bool) -> bool:
        if not self.is_plain or space.torch_function.asks_modes:
            return False
        if self.example is None or not space.task.may_expect:
            return False
        meta = self.example.meta
        # On other devices an operation that the check guards (an index) may do lasting harm.
        plain = meta.device.type == "cpu" and meta.is_plain and not meta.symbolic
        if not plain or math.prod(meta.shape) != 1 or space.builder.mutated_inputs:
            return False
        space.effects.expect(self, truth)
        space.builder.checked = True
        return True

    def truth(self, space: Space) -> bool:
        if self in space.effects.expected:
            return space.effects.expected[self]
        override = self.special(space, "__bool__")
        if override is not None:
            return space.truth(space.now(override))
        if (decided := space.state_decides(self)) is not None:
            return decided
        raise GraphBreak(
            "FJ0101",
            "the truth value of a tensor depends on its data",
            "Use torch.where or torch.cond, or accept the break.",
        )

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        return space.raise_error(TypeError, f"{self.cls.__name__!r} object is not callable")


def autograd_arguments(names: tuple[str, ...], args: Args, kwargs: Kwargs) -> dict[str, Value]:
    """The arguments by name; GraphBreak where there is one too many."""
    if len(args) > len(names) or not kwargs.keys() <= set(names[len(args) :]):
        raise GraphBreak("FJ0117", "autograd is called with other arguments than it takes")
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _backward(space: Space, tensor: TensorValue, args: Args, kwargs: Kwargs) -> Result:
    names = ("gradient", "retain_graph", "create_graph", "inputs")
    named = autograd_arguments(names, args, kwargs)
    if "gradient" in named:
        named["grad_tensors"] = named.pop("gradient")
    return space.call(space.constant(torch.autograd.backward), [tensor], named)


def _is_wanted(args: Args, kwargs: Kwargs) -> bool | None:
    """What ``requires_grad_`` is called with; None: not in the usual way."""
    given = [*args, *kwargs.values()]
    if len(given) > 1 or not kwargs.keys() <= {"requires_grad"}:
        return None
    wanted = given[0].realize() if given else ConstantValue(True)
    known = wanted.as_python() if wanted.is_constant else None
    return known if type(known) is bool else None


def _is_leaf(tensor: torch.Tensor) -> bool:
    return tensor.is_leaf


@wraps(torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
def wrap_tensor(space: Space, source: Source, obj: torch.Tensor) -> Value:
    """An existing tensor; everything the graph may depend on is guarded."""
    if obj.layout is not torch.strided or obj.is_quantized or obj.is_nested:
        return wrap_opaque(space, source, obj)
    example = wrap_sizes(space, source, obj)
    if example is None:
        space.guard(source, "TENSOR_MATCH", obj)
    there = space.task.expected(obj)
    return space.remember(obj, TensorValue(None, example, type(there), there, source))


# -- graph calls -----------------------------------------------------------------------------------


def to_fx(space: Space, value: Value) -> Any:
    """The fx argument for a value: a node, a constant, or a nest of them."""
    value = value.realize()
    if isinstance(value, TensorValue):
        return value.proxy(space)
    convert = value.to_fx
    if convert is not None:
        return convert(space)
    if value.is_constant:
        known = value.as_python()
        if isinstance(known, numpy.generic):
            check_scalar(known)
            return known.item()
        return known
    if type(value) is ListValue:
        return [to_fx(space, item) for item in value.items]
    if isinstance(value, TupleValue):
        return tuple(to_fx(space, item) for item in value.items)
    if isinstance(value, SliceValue):
        return slice(*(to_fx(space, part) for part in (value.start, value.stop, value.step)))
    container = value.container
    if container is not None and (
        container.is_constant or type(container) in (ListValue, TupleValue)
    ):
        check_unasked(space, value.python_type())
        return to_fx(space, container)
    if issubclass(value.python_type(), torch.Tensor):
        raise GraphBreak("FJ0113", f"a {value.describe()} is passed to a torch operation")
    raise GraphBreak("FJ0121", f"a {value.describe()} is passed to a torch operation")


def check_unasked(space: Space, cls: type) -> None:
    """A graph break if torch, asking for ``__torch_function__``, calls a method of the class."""
    for name in ("__getattr__", "__getattribute__"):
        found = space.class_attribute(cls, name)
        if found is not None and is_user_class(found.owner):
            raise GraphBreak("FJ0121", f"torch asks a {cls.__name__} object by {name}()")


def check_scalar(scalar: numpy.generic) -> None:
    """A graph break if torch takes a scalar of numpy for something else than the number in it."""
    if not isinstance(scalar, (numpy.integer, numpy.floating, complex)):
        kind = type(scalar).__name__
        raise GraphBreak("FJ0132", f"numpy's {kind} beside a tensor, which torch takes for a float")


def from_fx(space: Space, node: Any, example: Any, operands: Iterable[Value] = ()) -> Value:
    """The value of a graph node's result. An operation that has nothing to do (``x.contiguous()``)
    returns its operand: the very object, with its class, its attributes and its gradient."""
    if isinstance(example, Example):
        for value in operands:
            if isinstance(value, TensorValue) and value.example is example:
                return value
        if space.wrappers and (part := space.part_of_operand(example)) is not None:
            return part
        if example.meta.symbolic:
            space.builder.symbol_nodes.in_sizes(node, example, space.builder.symbols)
        wraps = example.meta.wraps
        made = space.wrapper(node, example, operands) if wraps else TensorValue(node, example)
        made.step = space.step
        return made
    if isinstance(example, (tuple, list)) and type(example) is not torch.Size:
        items: list[Value] = []
        for i, part in enumerate(example):
            if isinstance(part, (Example, tuple, list)):
                items.append(from_fx(space, *space.builder.unpack(node, example, i), operands))
            else:
                items.append(new_number(space, part))
        if type(example) is list:
            return ListValue(items)
        if type(example) is not tuple and hasattr(example, "_fields"):
            return named_tuple(space, type(example), items)
        return TupleValue(items, None, type(example))
    if isinstance(example, (torch.SymInt, torch.SymFloat)):
        # A number that depends on data.
        space.builder.symbol_nodes.made.setdefault(str(example.node.expr), node)
    elif isinstance(example, torch.SymBool):  # of a symbol that is 0 or 1
        for symbol in example.node.expr.free_symbols:
            number = space.builder.record(torch.sym_ite, (node, 1, 0), torch.sym_ite(example, 1, 0))
            space.builder.symbol_nodes.made.setdefault(str(symbol), number)
    return new_number(space, example)


def _has_read(items: list[Value]) -> bool:
    return any(item.is_read for item in items)


def _operands(
    space: Space, target: Any, args: Args, kwargs: Kwargs
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if any(arg.is_read or (type(arg) is ListValue and _has_read(arg.items)) for arg in args):
        args = space.beside_tensors(target, args)
    kwargs = {name: value.realize() for name, value in kwargs.items()}
    if any(value.is_read or value.is_symbolic for value in kwargs.values()):
        kwargs = space.named_tensors(target, kwargs)
    positional = tuple([to_fx(space, arg) for arg in args])
    named = {name: to_fx(space, value) for name, value in kwargs.items()}
    if config.capture_dynamic_output_shape_ops:
        _ = space.builder.symbols  # sizes may become some
    return positional, named


def graph_call(space: Space, target: Any, args: Args, kwargs: Kwargs) -> Value:
    """Add a ``call_function`` node."""
    fx_args, fx_kwargs = _operands(space, target, args, kwargs)
    changed = space.effects.has_set(set_default_devices)
    if (
        (changed or torch._C._len_torch_function_stack())
        and fx_kwargs.get("device") is None
        and target in _device_constructors()
    ):  # the graph runs in the block that it starts in
        blocks = default_devices()
        fx_kwargs["device"] = blocks[-1] if blocks else torch.device(torch._C._get_default_device())
    leaf = fx_kwargs.pop("requires_grad", False)
    node, example = space.builder.call_function(target, fx_args, fx_kwargs)
    if "out" in kwargs:
        out = kwargs["out"].realize()
        if isinstance(out, TensorValue):
            return out
    made = from_fx(space, node, example, _returnable(space, args, kwargs))
    return made if leaf is False else space.require_gradient(made, leaf)


def graph_call_method(space: Space, name: str, args: Args, kwargs: Kwargs) -> Value:
    """Add a ``call_method`` node; ``args[0]`` is the receiver."""
    if (own := replaced_method(name)) is not None:
        return graph_call(space, own, args, kwargs)
    fx_args, fx_kwargs = _operands(space, name, args, kwargs)
    leaf = fx_kwargs.pop("requires_grad", False)
    node, example = space.builder.call_method(name, fx_args, fx_kwargs)
    made = from_fx(space, node, example, _returnable(space, args, kwargs))
    return made if leaf is False else space.require_gradient(made, leaf)


def _returnable(space: Space, args: list[Value], kwargs: dict[str, Value]) -> list[Value]:
    """The operands that the operation may return as they are."""
    if space.transforms:  # which wrap them, perhaps anew
        return []
    found = []
    for arg in (*args, *kwargs.values()):
        value = arg.realize()
        parts = value.items if isinstance(value, (ListValue, TupleValue)) else [value]
        found += [part.realize() for part in parts]
    return found


def tensor_call(space: Space, target: Any, *args: Value, **kwargs: Value) -> TensorValue:
    """The node of an operation that returns one tensor: a function, or a method by its name."""
    call = graph_call_method if isinstance(target, str) else graph_call
    made = call(space, target, list(args), kwargs)
    assert isinstance(made, TensorValue)
    return made


_INPLACE_OPERATORS = frozenset(getattr(operator, names[2]) for names in BINARY_METHODS.values())


def tensor_operator(space: Space, function: Any, *operands: Value) -> Value:
    """An operator with at least one tensor operand."""
    if function is operator.imatmul:  # tensors have no in-place matmul
        function = operator.matmul
    result = graph_call(space, function, list(operands), {})
    return operands[0] if function in _INPLACE_OPERATORS else result
