"""Traceable wrapper subclasses: tensors made of tensors, by ``__tensor_flatten__``.

In: existing tensors of classes with a ``__torch_dispatch__`` that say what they consist of, and
results of operations on them. Out: values whose nodes are these tensors themselves: what an
operation returns, their own code says, run on fakes; backends take them apart. The class, the parts
and all else that ``__tensor_flatten__`` tells are guarded. Next room: graph.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import _C
from torch._subclasses.fake_tensor import FakeTensor

from framejit.exc import GraphBreak
from framejit.graph.metadata import Example
from framejit.graph.opaque import is_handle_class
from framejit.source import Source
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import wrap_opaque
from framejit.values.core.registry import Rank, Result, wraps, wraps_classes
from framejit.values.core.space import Space
from framejit.values.torch.outside import look_over
from framejit.values.torch.ragged import check_offsets, ragged_parts, size_of, sizes_of
from framejit.values.torch.reach import change_in_reach, reach_of
from framejit.values.torch.shared_state import shared, state_of
from framejit.values.torch.subclasses import SubclassValue, is_seen_by_class_only
from framejit.values.torch.tensors import TensorValue, from_fx, wrap_tensor
from framejit.values.torch.told import flattened, guard_told


class Unseen(NamedTuple):
    """A question to a tensor, of which its class's ``__torch_function__`` is not told."""

    question: Callable[[torch.Tensor], Any]

    def __repr__(self) -> str:
        return f"{self.question.__name__}()"

    def __call__(self, tensor: torch.Tensor) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            return self.question(tensor)


class WrapperValue(SubclassValue):
    """A tensor of such a class."""

    own_identity = False
    #: What an existing one tells of itself that the program may change.
    told: Any = ()
    #: Is it being asked for that, and does the graph need nothing of what it reads?
    is_telling: bool = False
    #: How many changes of the program were found to be out of reach of its class's code.
    writes_seen: int = 0
    #: Attributes that the program has written to and the class's code does not look at.
    unread: frozenset[str] = frozenset()
    #: Has the program written to another one?
    has_new_state: bool = False
    #: Has the program made a parameter of it?
    is_parameter: bool = False
    original = TensorValue.original

    def asked(self, space: Space, question: Any) -> Value:
        return TensorValue.asked(self, space, Unseen(question))

    def getattr(self, space: Space, name: str) -> Result:
        if name == "shape":
            return sizes_of(space, self)
        if self.is_telling:
            return super().getattr(space, name)
        looked_at: Any = self.obj
        if looked_at is None:
            looked_at = self.fake(space)
        if name in looked_at.__tensor_flatten__()[0]:
            if isinstance(getattr(looked_at, name), torch.Tensor):
                return self._part(space, name)
        if self.obj is None:
            if name == "__dict__":
                raise GraphBreak("FJ0156", f"__dict__ of a {self.describe()} that is a result")
            found = space.class_attribute(self.cls, name)
            if found is not None and type(found.raw) is types.MemberDescriptorType:  # a slot
                content = space.run_real(getattr, looked_at, name)
                return shared(space).value(self.cls, content)
            if name in vars(looked_at):
                if found is not None:
                    raise GraphBreak("FJ0113", f"attribute {name!r} of a {self.describe()}")
                return self._own(space, name, looked_at)
        return super().getattr(space, name)

    def _own(self, space: Space, name: str, fake: torch.Tensor) -> Value:
        """What a result has as an attribute; it is the result's from now on."""
        namespace = space.namespace_of(self)
        assert namespace is not None
        pair = namespace.pairs.get(name)
        if pair is None:
            content = shared(space).value(self.cls, vars(fake)[name])
            pair = namespace.pairs[name] = space.constant(name), content
        return pair[1]

    def settle(self, space: Space) -> dict[str, Value]:
        """A result is handed out: whatever a backend puts there, its attributes hold what operands
        hold where its class's code has taken that from them. Returns those in slots."""
        slots: dict[str, Value] = {}
        fake = None if self.example is None else self.example._fake
        if self.obj is None and not self.is_made and fake is not None:
            for name, obj in state_of(fake).items():
                if isinstance(obj, torch.Tensor) or not shared(space).shares(obj):
                    continue
                if name in vars(fake):
                    self._own(space, name, fake)
                else:
                    slots[name] = shared(space).value(self.cls, obj)
        return slots

    def shared_parts(self, space: Space) -> dict[str, Value]:
        """The parts of a result that are others' as well, or have been taken out."""
        if self.obj is not None or self.is_made or self.example.meta.requires_grad:
            return {}
        fake: Any = self.example.fake
        found = {
            name: shared(space).part_outside(getattr(fake, name))
            for name in fake.__tensor_flatten__()[0]
            if name in state_of(fake)
        }
        return {name: part for name, part in found.items() if part is not None}

    def _part(self, space: Space, name: str) -> Value:
        """One of the tensors that it consists of: for the graph it is taken out of this one."""
        self._check_told(space)
        if self.obj is None or self.source is None:
            return shared(space).part(getattr(self.example.fake, name)) or self.take(space, name)
        known = space.builder.part_of(super().proxy(space), name)  # the class is not asked
        part = self.part(space, name)
        if not isinstance(part, TensorValue):
            raise GraphBreak("FJ0113", f"a part of a {self.describe()} that is no tensor")
        if part.node is None:
            part.node, part.example = known
        return part

    def take(self, space: Space, name: str) -> Value:
        """A part of a result that it has of no operand."""
        return from_fx(space, *space.builder.part_of(super().proxy(space), name))

    def part(self, space: Space, name: str) -> Value:
        """What an existing one has as an attribute."""
        return space.now(SubclassValue.getattr(self, space, name)).realize()

    def proxy(self, space: Space) -> Any:
        self._check_told(space)
        self._check_in_reach(space)
        if self.node is None:
            space.wrappers.append(self)
        return super().proxy(space)

    def fake(self, space: Space) -> torch.Tensor:
        seen, self.writes_seen = self.writes_seen, space.effects.writes  # no code of the class runs
        try:
            return super().fake(space)
        finally:
            self.writes_seen = seen

    def _check_told(self, space: Space) -> None:
        changed = self.has_new_state or any(getattr(one, "mutated", False) for one in self.told)
        if self.obj is None and self.example is not None and space.shared is not None:
            changed = changed or not space.shared.is_unchanged(self.example.fake)
        if changed:
            raise GraphBreak("FJ0113", f"what a {self.describe()} tells of itself has changed")

    def _check_in_reach(self, space: Space) -> None:
        """Operations run the class's code, which must see what it would see now."""
        writes = space.effects.writes
        if writes and writes != self.writes_seen:
            found = change_in_reach(space, self.cls, self.obj)
            if found is not None:
                what = f"code of a {self.describe()} may see that {found} has changed"
                raise GraphBreak("FJ0113", what)
            self.writes_seen = writes

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if name == "size" and not kwargs and len(args) < 2:
            dim = args[0].realize().as_python() if args else None
            if dim is None:
                return sizes_of(space, self)
            if type(dim) is int and -len(self.metadata().shape) <= dim < len(self.metadata().shape):
                return size_of(space, self, dim % len(self.metadata().shape))
        return super().call_method(space, name, args, kwargs)

    def become_parameter(self) -> None:
        """What `torch.nn.Parameter` notes on a tensor whose class it cannot change."""
        vars(self.example.fake)["_is_param"] = True
        self.is_parameter = True

    def has_gradient(self) -> bool:
        cls: Any = self.cls
        if cls.__torch_function__ is _C._disabled_torch_function_impl:
            return True
        if not self.leaves_functions_alone() or self.obj is None:
            return False
        with _C.DisableTorchFunctionSubclass():
            return self.obj.grad is None or isinstance(self.obj.grad, self.cls)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        if name == "grad" and self.has_gradient():
            space.assign_gradient(self, value.realize())
            return
        shown: Any = self.fake(space) if self.obj is None else self.obj
        if name in shown.__tensor_flatten__()[0] or self.original(space) is not self:
            raise GraphBreak("FJ0112", f"assigning attribute {name!r} of a {self.describe()}")
        super().setattr(space, name, value)
        self._note_written(space, name)

    def delattr(self, space: Space, name: str) -> None:
        if self.obj is None and (name not in self.unread or name in vars(self.fake(space))):
            raise GraphBreak("FJ0152", f"deleting attribute {name!r} of a {self.describe()}")
        super().delattr(space, name)
        self._note_written(space, name)

    def _note_written(self, space: Space, name: str) -> None:
        if reach_of(space, self.cls).may_read(name):
            self.has_new_state = True
        else:
            self.unread |= {name}


def made_of_others(
    space: Space, node: Any, example: Example, operands: Iterable[Value]
) -> WrapperValue:
    """The value of a result that is a tensor made of others."""
    value = WrapperValue(node, example, example.meta.python_type)
    shared(space).note_result(example.fake, operands, functools.partial(value.take, space))
    return value


def part_of_operand(space: Space, example: Example) -> Value | None:
    """The part that an operation has returned as it is, if it has."""
    fake = example._fake
    if fake is None or example.meta.requires_grad:
        return None
    known = shared(space).part(fake)
    return known if isinstance(known, TensorValue) and known.example is not example else None


def is_traceable(cls: Any) -> bool:
    """Does the class say what its objects are made of, and what operations on them do?"""
    if not issubclass(cls, torch.Tensor) or issubclass(cls, FakeTensor):
        return False
    says = hasattr(cls, "__tensor_flatten__") and hasattr(cls, "__tensor_unflatten__")
    return says and not is_seen_by_class_only(cls)


@wraps_classes(is_traceable, Rank.KIND)
def _wrap_wrapper(space: Space, source: Source, obj: Any) -> Value:
    if obj.layout not in (torch.strided, torch.jagged):
        raise GraphBreak("FJ0114", f"a {type(obj).__name__} that is not dense")
    try:
        told = flattened(obj)
        inner = {name: getattr(obj, name) for name in told[0]}
    except Exception as error:  # it may be in the middle of its __init__
        raise GraphBreak("FJ0113", f"what a {type(obj).__name__} is made of: {error}") from error
    if not inner:  # AOTAutograd refuses them
        raise GraphBreak("FJ0113", f"a {type(obj).__name__}, which is made of no tensor")
    look_over(space, type(obj))
    value = WrapperValue(None, None, type(obj), obj, source)
    space.remember(obj, value)
    value.is_telling = True
    value.told = guard_told(space, value, told)
    value.is_telling = False
    space.policy.parts = ragged_parts(obj) if obj.is_nested else {}
    try:
        parts: dict[str, Any] = {name: value.part(space, name) for name in inner}
    finally:
        space.policy.parts = {}
    for name, part in inner.items():
        known = parts[name]
        if known.source is not None and is_handle_class(known.python_type()):
            space.guard(known.source, "ID_MATCH", part)
        elif not (isinstance(known, TensorValue) or known.is_constant):
            raise GraphBreak("FJ0113", f"a part of a {value.describe()} that is no tensor")
    if obj.is_nested:
        space.guard(source, "TENSOR_MATCH", (obj, 1))
        check_offsets(space, parts)
        value.example = _composed(space, obj, parts)
    else:
        value.example = _varying(space, source, obj, parts)
    return value


@wraps(FakeTensor)
def _wrap_fake(space: Space, source: Source, obj: FakeTensor) -> Value:
    """A fake tensor, which stands for a real one if somebody says so."""
    return (wrap_opaque if space.task.stand_in is None else wrap_tensor)(space, source, obj)


def _composed(space: Space, obj: torch.Tensor, parts: dict[str, Any]) -> Any:
    """What is known of a tensor, made of what is known of its parts: their sizes may vary."""
    world = space.builder.world
    _ = space.builder.symbols  # backends that trace the graph need some
    known = {name: part.example or world.example_of(part.obj) for name, part in parts.items()}
    return world.composed(obj, known)


def _varying(space: Space, source: Source, obj: torch.Tensor, parts: dict[str, Any]) -> Any:
    """The same where sizes of a dense tensor follow from those of its parts that vary; None, and
    all sizes are guarded, where they do not."""
    usual = not (isinstance(obj, torch.nn.Parameter) or obj._is_view())
    usual = usual and all(isinstance(part, TensorValue) for part in parts.values())
    varies = usual and any(one.example and one.example.meta.symbolic for one in parts.values())
    if varies and (obj.is_leaf or not obj.requires_grad):
        example = _composed(space, obj, parts)
        shape, stride = example.meta.shape, example.meta.stride
        free = [dim for dim, size in enumerate(shape) if isinstance(size, torch.SymInt)]
        free_strides = [dim for dim, step in enumerate(stride) if isinstance(step, torch.SymInt)]
        if free and _now(shape) == tuple(obj.shape) and _now(stride) == obj.stride():
            space.guard(source, "TENSOR_MATCH", (obj, 0, tuple(free), tuple(free_strides)))
            for dim in free:
                space.builder.symbols.require(source, "size", dim, shape[dim])
            for dim in free_strides:
                space.builder.symbols.require(source, "stride", dim, stride[dim])
            return example
        space.builder.world.forget_input(obj)
    space.guard(source, "TENSOR_MATCH", obj)
    return None


def _now(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes or strides as they are now."""
    return tuple(n.node.hint if isinstance(n, torch.SymInt) else n for n in sizes)
