"""What is known about a tensor while a graph is captured, without touching its data.

In: a real tensor, or the fake tensor that an operation returned. Out: a `TensorMeta`, interned, so
that two tensors with the same metadata share one object and a cache key costs one pointer.
`Example` represents one tensor *object* of the captured program; its fake tensor is made only
when an operation must really be propagated or a backend looks. Next: propagation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.fx.node import map_aggregate

from ..exc import GraphBreak

if TYPE_CHECKING:
    from .fakes import FakeWorld

_dispatch_keys = torch._C._dispatch_keys

#: Interned metadata; dropped as a whole when it grows beyond this many entries.
MAX_INTERNED = 1 << 17


class Limits(NamedTuple):
    """What a user said about the size of a dimension that varies."""

    low: int | None = None
    high: int | None = None

    def within(self, low: int | None, high: int | None) -> Limits:
        """What is allowed by these limits and by others."""
        lows = [limit for limit in (self.low, low) if limit is not None]
        highs = [limit for limit in (self.high, high) if limit is not None]
        return Limits(max(lows, default=None), min(highs, default=None))


@dataclasses.dataclass(slots=True, eq=False)
class TensorMeta:
    """Immutable. ``keys`` is None for a plain dense tensor, "inference" for one made in inference
    mode, else the raw dispatch key set (conjugate, negative, sparse, ...). ``stride`` and
    ``storage_offset`` are empty and 0 for layouts without strides.
    """

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    storage_offset: int
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    is_leaf: bool
    python_type: type
    keys: Any
    symbolic: bool = False

    def resized(self, shape: tuple[Any, ...], stride: tuple[Any, ...]) -> TensorMeta:
        """The same with symbols for some of the sizes and strides."""
        return dataclasses.replace(self, shape=shape, stride=stride, symbolic=True)

    @property
    def is_plain(self) -> bool:
        """A dense tensor that can be rebuilt from these facts alone."""
        return self.keys is None or self.keys == "inference"

    @property
    def wraps(self) -> bool:
        """Is it a tensor made of others, whose class says what operations do?"""
        cls = self.python_type
        return cls is not torch.Tensor and not issubclass(cls, torch.nn.Parameter)

    def check_stride(self, dim: int | None = None) -> None:
        """GraphBreak where a result's stride is not known: PyTorch's rules for sizes that vary find
        others for dimensions of one element, which no layout decides on, than its operators."""
        sizes = self.shape if type(dim) is not int else self.shape[dim : dim + 1 or None]
        if self.symbolic and any(type(size) is int and size == 1 for size in sizes):
            raise GraphBreak("FJ0111", "the stride of a dimension of one element")

    def __repr__(self) -> str:
        dtype = str(self.dtype).removeprefix("torch.")
        grad = ", requires_grad" if self.requires_grad else ""
        return f"<{dtype}{list(self.shape)} on {self.device}{grad}>"


_interned: dict[tuple[Any, ...], TensorMeta] = {}


def is_leaf(tensor: torch.Tensor) -> bool:
    """Has it no graph of autograd's? Nor has what no gradient can come from."""
    try:
        return tensor.is_leaf
    except RuntimeError:  # a view whose base was written to in another grad mode: it has no graph
        return False


def describe(
    tensor: torch.Tensor, python_type: type, plain_keys: dict[int, str | None]
) -> TensorMeta:
    """The metadata of a real or fake tensor.

    ``plain_keys`` maps the raw dispatch key sets of plain tensors of that kind to what
    `TensorMeta.keys` says of them.
    """
    raw = _dispatch_keys(tensor).raw_repr()
    keys: Any = plain_keys.get(raw, raw)
    layout = tensor.layout
    strided = layout is torch.strided and not tensor.is_nested
    values: tuple[Any, ...] = (
        tuple(tensor.shape),
        tensor.stride() if strided else (),
        tensor.storage_offset() if strided else 0,
        tensor.dtype,
        tensor.device,
        layout,
        tensor.requires_grad,
        is_leaf(tensor),
        python_type,
        keys,
    )
    try:
        meta = _interned.get(values)
    except TypeError:  # symbolic sizes have no hash: such metadata is never shared
        meta = TensorMeta(*values)
        meta.symbolic = True
        return meta
    if meta is None:
        if len(_interned) >= MAX_INTERNED:
            _interned.clear()
        meta = _interned[values] = TensorMeta(*values)
    return meta


class Example:
    """One tensor object of the captured program: what it looks like now.

    Its identity is the identity of the tensor in the user's program: ``y = x.add_(1)`` gives the
    example of ``x`` again. ``meta`` is replaced when an in-place operation changes the tensor,
    also through another view of the same memory.
    """

    __slots__ = (
        "_fake", "born", "cacheable", "changed", "composition", "depth", "group", "meta",
        "owns_storage", "recipe", "world",
    )  # fmt: skip

    def __init__(self, world: FakeWorld, meta: TensorMeta, recipe: Any = None) -> None:
        self.world = world
        self.meta = meta
        self.born = meta  # as it was when made: what `recipe` None rebuilds
        #: Has ``meta`` been replaced, if only for a time?
        self.changed = False
        self.recipe = recipe
        self.group: list[Example] | None = None  # examples that may share memory, itself included
        self.depth = 0  # how many recipes must run before this one's
        #: Has the program a tensor here, on a memory that it has arrays on as well?
        self.owns_storage = False
        # Not with symbolic sizes, nor when the fake knows its data (made from Python numbers).
        self.cacheable = not (meta.symbolic or meta.wraps)
        #: How an existing tensor is made of others, if sizes of these vary.
        self.composition: Composition | None = None
        self._fake: torch.Tensor | None = None

    @property
    def fake(self) -> torch.Tensor:
        """The fake tensor; made on first use, then always the same object."""
        fake = self._fake
        return self.world.materialize(self) if fake is None else fake

    @property
    def sharing(self) -> Sequence[Example]:
        """The examples that may share memory with it, itself included."""
        return self.group or (self,)

    @property
    def reshaped(self) -> bool:
        """Has an operation changed the sizes or strides of an existing tensor?"""
        if self.meta is self.born:
            return False
        looks = [(m.shape, m.stride, m.storage_offset) for m in (self.meta, self.born)]
        return str(looks[0]) != str(looks[1])  # comparing symbols would add guards

    def __repr__(self) -> str:
        return f"<Example {self.meta!r}>"


class Composition(NamedTuple):
    """A tensor that is made of others: its class, what it tells beside them, and they."""

    cls: Any
    context: Any
    size: Any
    stride: Any
    requires_grad: bool
    parts: dict[str, Example]


def join(examples: list[Example]) -> None:
    """Note that these examples may share memory from now on."""
    found = {id(m): m for example in examples for m in example.sharing}
    members = list(found.values())
    for member in members:
        member.group = members


def memory_of_all(examples: Iterable[Example]) -> set[int]:
    """The ids of all examples that may share memory with these."""
    return {id(member) for example in examples for member in example.sharing}


def examples_in(value: Any) -> list[Example]:
    """The examples inside a result, in order."""
    found: list[Example] = []

    def note(part: Any) -> Any:
        if isinstance(part, Example):
            found.append(part)
        return part

    map_aggregate(value, note)
    return found


def in_order(shape: Sequence[Any], stride: Sequence[Any]) -> bool:
    """Do the elements of such a tensor lie one after the other? Those of layouts without strides
    lie as they always do."""
    if not stride:
        return True
    step: Any = 1
    for size, found in zip(reversed(shape), reversed(stride), strict=True):
        if str(size) != "1" and str(found) != str(step):  # comparing symbols would add guards
            return False
        step = step * size
    return True


def memory_key(example: Example) -> int:
    """Identifies the memory that an example may share with others."""
    return id(example.group or example)
