"""When a size or a number becomes a symbol: not at first, but when it is seen to differ.

In: tensors and numbers that a capture looks at, by the stable name of their source. Out: which
dimensions and strides vary, with the user's bounds; whether a number does. One `Seen` per compiled
frame remembers what captures met; the profile can fill it before the first one. Next: values.
"""

from __future__ import annotations

import copy
import math
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from framejit import config, native
from framejit.graph.metadata import Limits

#: From so many different objects at one place on, captures assume none any more.
_DIFFERENT_OBJECTS = 8
#: So many different decisions on the number in a tensor are made while capturing.
_DECISIONS = 8


#: What a size was so far.
History = tuple[int | frozenset[int], ...]


class TensorSeen:
    """Sizes and strides of one input; None for one that varied. ``histories``: per dimension what
    earlier runs say of it, if they do, and the sizes that it had, one after the other."""

    __slots__ = ("histories", "sizes", "strides")

    def __init__(self, sizes: Sequence[int], strides: Iterable[int]) -> None:
        self.sizes: list[int | None] = [*sizes]
        self.strides: list[int | None] = [*strides]
        self.histories: list[History] = [(size,) for size in sizes]

    def merge(self, sizes: Sequence[int], strides: Iterable[int | None]) -> None:
        """Note another occurrence."""
        self.follow(sizes)
        self.sizes = [a if a == b else None for a, b in zip(self.sizes, sizes, strict=True)]
        self.strides = [a if a == b else None for a, b in zip(self.strides, strides, strict=True)]

    def merge_told(
        self, known: Sequence[int | None], sizes: Sequence[int], strides: Sequence[int | None]
    ) -> None:
        """Note what another process knows of this input, and how large it is there now."""
        self.sizes = [a if a == b else None for a, b in zip(self.sizes, known, strict=True)]
        self.strides = [a if a == b else None for a, b in zip(self.strides, strides, strict=True)]
        pairs = zip(self.histories, sizes, strict=True)  # also where a size stays what it was:
        self.histories = [(*past, size) for past, size in pairs]  # sizes are compared by place

    def follow(self, sizes: Sequence[int]) -> None:
        """Note how the sizes went on."""
        pairs = zip(self.histories, sizes, strict=True)
        self.histories = [past if past[-1:] == (size,) else (*past, size) for past, size in pairs]


class NumberSeen:
    """An int or float; ``varied`` when two different ones were met."""

    __slots__ = ("value", "varied")

    def __init__(self, value: int | float, varied: bool = False) -> None:
        self.value = value
        self.varied = varied

    def merge(self, value: int | float) -> None:
        """Note another occurrence."""
        self.varied = self.varied or value != self.value


class _Told(NamedTuple):
    """What earlier runs say of one input."""

    sizes: set[int]
    strides: set[int]
    #: Per dimension the numbers of groups.
    groups: dict[int, set[int]]


class Seen:
    """What the captures of one frame met: (source's name, kind or number of dimensions) -> what."""

    def __init__(self) -> None:
        self.tensors: dict[tuple[str, int], TensorSeen] = {}
        self.numbers: dict[tuple[str, str], NumberSeen] = {}
        #: Names of lengths that captures had to fix, although they vary.
        self.fixed: set[str] = set()
        #: Source's name -> how many objects were assumed to be there, and the last of them.
        self.objects: dict[str, tuple[int, weakref.ref[Any]]] = {}
        #: (source's name, size) -> the keys of a dict; None if it had others as well.
        self.keys: dict[tuple[str, int], frozenset[int] | None] = {}
        #: Names of numbers in tensors -> what was decided on them, and how.
        self.decided: dict[str, set[Any]] = {}
        self._told: dict[tuple[str, int], _Told] = {}

    def copy(self) -> Seen:
        """What was met so far; what is met from now on does not change it."""
        other = Seen()
        other.tensors = {key: copy.copy(one) for key, one in self.tensors.items()}
        for one in other.tensors.values():
            one.histories = [*one.histories]
        other.numbers = {key: copy.copy(one) for key, one in self.numbers.items()}
        other.fixed, other.objects, other._told = {*self.fixed}, {**self.objects}, self._told
        other.keys = {**self.keys}
        other.decided = {name: {*answers} for name, answers in self.decided.items()}
        return other

    def tell_tensor(
        self, name: str, ndim: int, sizes: Iterable[int], strides: Iterable[int],
        groups: Iterable[tuple[int, int]],
    ) -> None:  # fmt: skip
        """These dimensions of an input are known to vary; ``groups`` are pairs of a dimension and
        the number of a group that it was in, of dimensions with equal sizes."""
        known = self._told.setdefault((name, ndim), _Told(set(), set(), {}))
        known.sizes.update(sizes)
        known.strides.update(strides)
        for dim, group in groups:
            known.groups.setdefault(dim, set()).add(group)

    def tell_number(self, name: str, kind: str) -> None:
        """This number is known to vary."""
        self.numbers[name, kind] = NumberSeen(0, varied=True)

    def decides(self, name: str, answer: Any) -> bool:
        """Note that a capture decides something on the number in a tensor; may it?"""
        known = self.decided.setdefault(name, set())
        if len(known) < _DECISIONS:
            known.add(answer)
        return answer in known

    def changes(self, name: str, obj: Any) -> bool:
        """Note that a capture assumes this very object; are there too many of them?"""
        count, known = self.objects.get(name, (0, None))
        if (known is None or known() is not obj) and native.supports_weakrefs(obj):
            count += 1
            self.objects[name] = count, native.GuardReference(obj)
        return count > _DIFFERENT_OBJECTS

    def keys_vary(self, name: str, keys: frozenset[int]) -> bool:
        """Note the keys of a dict, which are numbers; were there others before, as many?"""
        key = name, len(keys)
        if self.keys.setdefault(key, keys) != keys:
            self.keys[key] = None
        return self.keys[key] is None

    def tensor(self, name: str, sizes: tuple[int, ...], strides: tuple[int, ...]) -> TensorSeen:
        """Note a tensor; what is known of its source now."""
        known = self.tensors.get((name, len(sizes)))
        if known is not None:
            known.merge(sizes, strides)
            return known
        known = self.tensors[name, len(sizes)] = TensorSeen(sizes, strides)
        told = self._told.get((name, len(sizes)))
        if told is not None:
            for dim in range(len(sizes)):
                if dim in told.sizes:
                    known.sizes[dim] = None
                if dim in told.strides:
                    known.strides[dim] = None
                if dim in told.groups:
                    known.histories[dim] = frozenset(told.groups[dim]), sizes[dim]
        return known

    def on_all_ranks(self, told: Iterable[Iterable[Sequence[Any]]]) -> None:
        """Note what each of several processes sees, this one among them: of each input its name,
        what is known of its sizes, how large it is now, and its strides."""
        rows = [{(row[0], len(row[2])): row[1:] for row in rank} for rank in told]
        for key, tensor in self.tensors.items():
            for row in rows:
                if key in row:
                    tensor.merge_told(*row[key])

    def together(self) -> Iterator[list[tuple[tuple[str, int], int]]]:
        """Which sizes have varied, those that have always been equal together: as the keys of
        tensors, and dimensions."""
        groups: dict[History, list[tuple[tuple[str, int], int]]] = {}
        for key, tensor in self.tensors.items():
            for dim, size in enumerate(tensor.sizes):
                if size is None:
                    groups.setdefault(tensor.histories[dim], []).append((key, dim))
        yield from groups.values()


class Shape(NamedTuple):
    """How an input tensor varies."""

    dims: dict[int, Limits]
    strides: frozenset[int]
    #: Dimensions that a user marked: they must not turn out to have one size.
    marked: frozenset[int]
    #: What the sizes were, of dimensions that nobody has said anything about: those that have
    #: always been equal are assumed to remain so.
    histories: dict[int, History]


#: What PyTorch's `mark_dynamic` and the like leave on a tensor.
_MARKS = frozenset(
    f"_dynamo_{what}"
    for what in (
        "dynamic_indices", "unbacked_indices", "weak_dynamic_indices", "static_indices",
        "dynamic_range",
    )
)  # fmt: skip


class Policy:
    """Decides for one compiled frame. ``dynamic`` is the argument of `compile`."""

    def __init__(self, dynamic: bool | None, seen: Seen) -> None:
        self._dynamic = dynamic
        #: By identity: dimensions of a tensor that vary because of what it is a part of.
        self.parts: dict[int, frozenset[int]] = {}
        self.seen = seen

    @property
    def dynamic(self) -> bool | None:
        """Do sizes vary: True, False, or None for those that were seen to?"""
        if self._dynamic is None and not config.assume_static:
            return True
        return self._dynamic

    def tensor(self, name: str, tensor: torch.Tensor, fixed: bool) -> Shape | None:
        """Which dimensions of an input vary; ``fixed`` for parameters, whose sizes never do."""
        marks = tensor.__dict__
        fixed = fixed and config.fixed_parameter_sizes
        if fixed and not self.parts and _MARKS.isdisjoint(marks):
            self.seen.tensor(name, tensor.shape, tensor.stride())
            return None
        marked: set[int] = set(marks.get("_dynamo_dynamic_indices", ()))
        marked |= set(marks.get("_dynamo_unbacked_indices", ()))
        hinted: set[int] = set(marks.get("_dynamo_weak_dynamic_indices", ()))
        hinted |= self.parts.get(id(tensor), frozenset())
        static: set[int] = set(marks.get("_dynamo_static_indices", ()))
        sizes, strides = tuple(tensor.shape), tensor.stride()
        known, varied = self.seen.tensor(name, sizes, strides), set[int]()
        dynamic = self.dynamic
        if dynamic is False:
            marked, hinted = set(), set()
        elif fixed or not (dynamic or config.automatic_dynamic):
            pass
        elif dynamic:
            varied = set(range(len(sizes)))
        else:
            varied = {dim for dim, size in enumerate(known.sizes) if size is None}
        dims = {dim for dim in (varied | hinted) - static | marked if sizes[dim] > 1}
        if not dims and all(stride is not None for stride in known.strides):
            return None
        ranges: dict[int, Limits] = {}
        for mark in marks.get("_dynamo_dynamic_range", ()):
            ranges[mark.dim] = ranges.get(mark.dim, Limits()).within(mark.min, mark.max)
        if fixed or dynamic is False or not (dynamic or config.automatic_dynamic):
            free: frozenset[int] = frozenset()
        else:
            free = frozenset(dim for dim, stride in enumerate(known.strides) if stride is None)
        if not dims and not free:
            return None
        limits = {dim: ranges.get(dim, Limits()) for dim in sorted(dims)}
        told = marked | hinted
        alone = dynamic is not None
        histories = {
            dim: known.histories[dim] for dim in dims - told if len(known.histories[dim]) > 1
        }
        return Shape(limits, free, frozenset(marked & dims), {} if alone else histories)

    def number(self, name: str, value: Any, argument: bool) -> bool:
        """Whether an int or float is a symbol. ``argument``: it is part of a call's arguments, if
        all sizes of these vary (`dynamic`)."""
        kind = type(value).__name__
        known = self.seen.numbers.get((name, kind))
        if known is None:
            known = self.seen.numbers[name, kind] = NumberSeen(value)
            if not argument:
                return False
        else:
            known.merge(value)
        if self.dynamic is False or name in self.seen.fixed:
            return False
        if config.specialize_int if type(value) is int else config.specialize_float:
            return False
        if type(value) is float and (value == 0 or not math.isfinite(value)):
            return False  # 0.0 and -0.0 are equal and not the same
        if type(value) is int and abs(value) >= 1 << 62:
            return False
        if argument and type(value) is int and value not in (0, 1):
            return True
        return known.varied and config.automatic_dynamic
