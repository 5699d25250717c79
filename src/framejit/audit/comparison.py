"""Compares what two runs of one program gave: values, types, and which parts are the same object.

In: two objects, of the run that is right and of the other one. Out: nothing, or a `Difference` that
says where. Objects and tensors' memory of one run are paired with those of the other, so parts that
are shared in one run only are found. Next: snapshot.
"""

from __future__ import annotations

import array
import enum
import functools
import gc
import math
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy
import torch

ATOMS = (
    int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented), range,
    slice, torch.dtype, torch.device, torch.layout, torch.memory_format, enum.Enum,
)  # fmt: skip
_BY_NAME = (types.ModuleType, types.BuiltinFunctionType, types.CodeType)
#: Python may or may not make equal immutable objects anew.
_REMADE = (*ATOMS, *_BY_NAME, tuple, frozenset, types.MethodType)
_MEMBERS = {
    cls: {name: vars(cls)[name] for name in names}
    for cls, names in (
        (types.FunctionType, ("__defaults__", "__kwdefaults__")),
        (types.CellType, ("cell_contents",)),
        (types.MethodType, ("__func__", "__self__")),
        (functools.partial, ("func", "args", "keywords")),
        (property, ("fget", "fset", "fdel")),
        (staticmethod, ("__func__",)),
        (classmethod, ("__func__",)),
    )
}
#: Of a tensor: what a program can see, besides its content.
_PROPERTIES = ("dtype", "device", "shape", "requires_grad", "is_leaf", "layout")


class Difference(AssertionError):
    """Two runs differ; the text says where and how."""


class Tolerance(NamedTuple):
    """By how much floating-point numbers may differ; None: as `torch.testing.assert_close`."""

    rtol: float | None = None
    atol: float | None = None

    @property
    def exact(self) -> bool:
        return self.rtol == 0 and self.atol == 0

    def of(self, dtype: Any) -> tuple[float, float]:
        """Relative and absolute, for numbers that were computed with ``dtype``."""
        default = 1e-3 if dtype in (numpy.float16, torch.float16, torch.bfloat16) else 1.3e-6
        return (
            default if self.rtol is None else self.rtol,
            1e-5 if self.atol is None else self.atol,
        )


class Comparison:
    """Compares two object graphs, including which parts are the same object.

    ``shared`` are the ids of objects that both runs had before they began, and ``memory`` the
    tensors' memory (``StorageImpl``s): such an object equals only itself, and its content is
    compared elsewhere. ``consume``: iterators may be used up.
    """

    def __init__(
        self,
        tolerance: Tolerance | None = None,
        shared: Collection[int] = (),
        memory: Collection[int] = (),
        consume: bool = False,
    ) -> None:
        self.tolerance = tolerance or Tolerance()
        self.shared = shared
        self.memory = memory
        self.consume = consume
        self.pairs: dict[int, tuple[Any, Any]] = {}
        self.back: dict[int, Any] = {}
        self.storages: dict[int, int] = {}
        self.storages_back: dict[int, int] = {}

    def compare(self, expected: Any, got: Any, path: str) -> None:
        """Raise Difference unless both are alike; ``path`` says where we are."""
        if got is expected:
            return
        for one in (expected, got):
            if id(one) in self.shared and not isinstance(one, _REMADE):
                raise Difference(f"{path}: {_short(got)}, not {_short(expected)}: another object")
        self.compare_classes(type(expected), type(got), path)
        if isinstance(expected, ATOMS) and not isinstance(expected, numpy.generic):
            self.compare_atoms(expected, got, path)
        elif isinstance(expected, type):
            self.compare_classes(expected, got, path)
        elif isinstance(expected, _BY_NAME):
            _require(got == expected, path, got, expected)
        elif self.paired(expected, got, path):
            self.compare_content(expected, got, path)

    def paired(self, expected: Any, got: Any, path: str) -> bool:
        """Remember that these two correspond to each other. False: they are known already."""
        known = self.pairs.get(id(expected))
        if known is not None or id(got) in self.back:
            same = known is not None and known[1] is got
            if same or not isinstance(expected, _REMADE):
                if not same:
                    raise Difference(f"{path}: shared with another object in only one of both")
                return False
        self.pairs[id(expected)] = (expected, got)
        self.back[id(got)] = got
        return True

    def compare_classes(self, expected: type, got: type, path: str) -> None:
        """Classes are the same, or made by the same ``class`` statement of the program."""
        if got is expected:
            return
        names = [(cls.__module__, cls.__qualname__) for cls in (expected, got)]
        if names[0] != names[1] or "<locals>" not in names[0][1]:
            raise Difference(f"{path}: {got}, not {expected}")

    def compare_atoms(self, expected: Any, got: Any, path: str) -> None:
        """Numbers, texts and the like."""
        if isinstance(expected, (float, complex)) and type(expected) in (float, complex):
            if _same_number(expected, got):
                return
            rtol, atol = self.tolerance.of(torch.float64)
            near = not self.tolerance.exact and abs(got - expected) <= atol + rtol * abs(expected)
            _require(near, path, got, expected)
            return
        _require(got == expected, path, got, expected)

    def compare_content(self, expected: Any, got: Any, path: str) -> None:
        """`compare` for objects with parts."""
        if isinstance(expected, torch.Tensor):
            self.compare_tensors(expected, got, path)
        elif isinstance(expected, (numpy.ndarray, numpy.generic)):
            self.compare_arrays(expected, got, path)
        elif isinstance(expected, (list, tuple, deque)):
            self.compare_sequences(items_of(expected), items_of(got), path)
        elif isinstance(expected, dict):
            self.compare_dicts(expected, got, path)
        elif isinstance(expected, (set, frozenset)):
            ours, theirs = (self.keys_of(elements) for elements in (expected, got))
            _require(theirs == ours, path, theirs, ours)
        elif isinstance(expected, (bytearray, memoryview, array.array)):
            _require(bytes(got) == bytes(expected), path, got, expected)
        elif isinstance(expected, types.FunctionType):
            self.compare_functions(expected, got, path)
        elif isinstance(expected, BaseException):
            self.compare_errors(expected, got, path)
        elif hasattr(type(expected), "__next__") and not hasattr(expected, "__dict__"):
            self.compare_iterators(expected, got, path)
        self.compare_attributes(expected, got, path)

    def compare_sequences(self, expected: list[Any], got: list[Any], path: str) -> None:
        if len(got) != len(expected):
            raise Difference(f"{path}: {len(got)} elements, not {len(expected)}")
        for i, (one, two) in enumerate(zip(expected, got, strict=True)):
            self.compare(one, two, f"{path}[{i}]")

    def compare_dicts(self, expected: Any, got: Any, path: str) -> None:
        """Keys in their order, and values. An `OrderedDict` has an order of its own."""
        ours, theirs = _unmarked(entries_of(expected)), _unmarked(entries_of(got))
        if len(theirs) != len(ours):
            names = [[key for key, _ in entries] for entries in (theirs, ours)]
            raise Difference(f"{path}: keys {_short(names[0])}, not {_short(names[1])}")
        if isinstance(expected, defaultdict):
            self.compare(expected.default_factory, got.default_factory, f"{path}.default_factory")
        for i, ((key, one), (other, two)) in enumerate(zip(ours, theirs, strict=True)):
            self.compare(key, other, f"{path} key {i}")
            self.compare(one, two, f"{path}[{_short(key)}]")

    def keys_of(self, elements: Any) -> list[Any]:
        """The elements of a set as something that can be compared; the order counts for numbers."""
        if all(isinstance(element, (int, float)) for element in elements):
            return list(elements)
        if all(isinstance(e, (int, str, float, type(None), tuple)) for e in elements):
            return sorted(elements, key=repr)
        return sorted(
            f"object {id(element)}" if id(element) in self.shared else type(element).__qualname__
            for element in elements
        )

    def compare_functions(self, expected: Any, got: Any, path: str) -> None:
        _require(got.__qualname__ == expected.__qualname__, path, got, expected)
        _require(got.__code__ == expected.__code__, f"{path}.__code__", got, expected)
        for name, one, two in zip(
            expected.__code__.co_freevars,
            expected.__closure__ or (),
            got.__closure__ or (),
            strict=True,
        ):
            self.compare(one, two, f"{path}.{name}")

    def compare_iterators(self, expected: Any, got: Any, path: str) -> None:
        """Iterators written in C: what they still give."""
        if self.consume:
            self.compare(list(expected), list(got), f"{path} (rest)")
            return
        if isinstance(expected, types.GeneratorType):
            _require(got.__qualname__ == expected.__qualname__, path, got, expected)
            return
        try:
            ours, theirs = expected.__reduce__(), got.__reduce__()
        except TypeError:
            return
        self.compare_sequences(list(ours), list(theirs), f"{path} (rest)")

    def compare_attributes(self, expected: Any, got: Any, path: str) -> None:
        """``__dict__``, slots, and what some classes written in C have in their place."""
        ours, theirs = dict_of(expected), dict_of(got)
        if not isinstance(expected, types.FunctionType) and (ours or theirs):
            self.compare_dicts(ours or {}, theirs or {}, f"{path}.__dict__")
        cls: Any = type(expected)
        members = _MEMBERS.get(cls) or slots_of(cls)
        for name, slot in members.items():
            one, two = (read_slot(slot, obj) for obj in (expected, got))
            self.compare(one, two, f"{path}.{name}")

    # -- tensors and arrays ------------------------------------------------------------------------

    def compare_tensors(self, expected: torch.Tensor, got: torch.Tensor, path: str) -> None:
        """Everything that a program can see of tensors."""
        for name in _PROPERTIES:
            one, two = getattr(expected, name), getattr(got, name)
            if two != one:
                raise Difference(f"{path}.{name}: {two}, not {one}")
        if self.compare_memory(expected, got, path):
            self.compare_values(expected, got, path)
        self.compare(grad_of(expected), grad_of(got), f"{path}.grad")

    def compare_memory(self, expected: torch.Tensor, got: torch.Tensor, path: str) -> bool:
        """Strides and which memory it is. False: the values are compared elsewhere."""
        if expected.layout is not torch.strided:
            return True
        strides = [
            t.stride() if self.tolerance.exact else _steps(t.shape, t.stride())
            for t in (expected, got)
        ]
        if strides[0] != strides[1]:
            raise Difference(f"{path}: strides {got.stride()}, not {expected.stride()}")
        keys = [storage_key(tensor) for tensor in (expected, got)]
        if keys[0] is None or keys[1] is None:
            return True
        if got.storage_offset() != expected.storage_offset():
            offsets = got.storage_offset(), expected.storage_offset()
            raise Difference(f"{path}: storage offset {offsets[0]}, not {offsets[1]}")
        known = keys[0] in self.memory or keys[1] in self.memory
        ours = keys[0] if known else self.storages.setdefault(keys[0], keys[1])
        theirs = keys[0] if known else self.storages_back.setdefault(keys[1], keys[0])
        if (ours, theirs) != ((keys[1], keys[0])):
            raise Difference(f"{path}: shares memory with another tensor in only one of both")
        return not known

    def compare_values(self, expected: torch.Tensor, got: torch.Tensor, path: str) -> None:
        """Elements, by the tolerance."""
        if expected.device.type == "meta":
            return
        with torch.no_grad():
            expected, got = _comparable(expected.detach()), _comparable(got.detach())
            strided = expected.layout is torch.strided
            if self.tolerance.exact and strided and torch.equal(expected, got):
                return
            try:
                torch.testing.assert_close(
                    got, expected, rtol=self.tolerance.rtol, atol=self.tolerance.atol,
                    equal_nan=True, check_stride=False,
                )  # fmt: skip
            except AssertionError as error:
                text = str(error).replace("\n\n", "\n").replace("\n", "; ")
                raise Difference(f"{path}: {text}") from None

    def compare_arrays(self, expected: Any, got: Any, path: str) -> None:
        """Arrays or scalars of numpy; captured as torch's operations, they agree nearly."""
        _require(got.dtype == expected.dtype, f"{path}.dtype", got.dtype, expected.dtype)
        _require(got.shape == expected.shape, f"{path}.shape", got.shape, expected.shape)
        if isinstance(expected, numpy.ndarray):
            steps = [_steps(array.shape, array.strides) for array in (expected, got)]
            _require(steps[0] == steps[1], f"{path}.strides", *reversed(steps))
            ours, theirs = expected.flags.writeable, got.flags.writeable
            _require(ours == theirs, f"{path}.flags.writeable", theirs, ours)
        if expected.dtype == object:
            self.compare_sequences(expected.reshape(-1).tolist(), got.reshape(-1).tolist(), path)
        elif expected.dtype.kind in "fc":
            near = 2e-3 if expected.dtype == numpy.float16 else 1e-5
            if not numpy.allclose(got, expected, near, near, equal_nan=True):
                raise Difference(f"{path}: {_short(got)}, not {_short(expected)}")
        else:
            _require(numpy.array_equal(got, expected), path, got, expected)

    # -- exceptions --------------------------------------------------------------------------------

    def compare_errors(
        self, expected: BaseException | None, got: BaseException | None, path: str
    ) -> None:
        """Exceptions with all their causes, contexts and notes."""
        while expected is not None and got is not None and expected is not got:
            self.compare_error(expected, got, path)
            one, two, name = expected.__cause__, got.__cause__, f"{path}.__cause__"
            if one is None or two is None or self.paired(one, two, name):
                self.compare_errors(one, two, name)
            expected, got, path = expected.__context__, got.__context__, f"{path}.__context__"
            if expected is not None and got is not None and not self.paired(expected, got, path):
                return
        if (expected is None) != (got is None):
            raise Difference(f"{path}: {got!r}, not {expected!r}")

    def compare_error(self, expected: BaseException, got: BaseException, path: str) -> None:
        """Exceptions without those that they are chained to."""
        if type(got) is not type(expected):
            self.compare_classes(type(expected), type(got), path)
        texts = [_error_text(error) for error in (expected, got)]
        _require(texts[0] == texts[1], path, got, expected)
        for name in ("__suppress_context__", "__notes__"):
            one, two = getattr(expected, name, None), getattr(got, name, None)
            _require(one == two, f"{path}.{name}", two, one)


# -- parts of objects, past what subclasses define -------------------------------------------------


def items_of(sequence: Any) -> list[Any]:
    """The elements of a list, tuple or deque."""
    base: Any
    for base in (list, tuple, deque):
        if isinstance(sequence, base):
            return list(base.__iter__(sequence))
    raise TypeError(f"no sequence: {sequence!r}")


def entries_of(mapping: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """Keys and values in the mapping's own order: `dict.items` of an OrderedDict has another."""
    if isinstance(mapping, OrderedDict):
        return [(key, dict.__getitem__(mapping, key)) for key in OrderedDict.__iter__(mapping)]
    return list(dict.items(mapping))


def _unmarked(entries: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Without the marks that torch's compilers leave among the attributes of tensors."""
    return [e for e in entries if type(e[0]) is not str or not e[0].startswith("_dynamo_")]


def dict_of(obj: Any) -> dict[str, Any] | None:
    """The object's ``__dict__``, or None. Looking at an OrderedDict's would make one: modules have
    many that are empty."""
    lazy = type(obj) is OrderedDict
    if not type(obj).__dictoffset__ or (lazy and not obj and not gc.get_referents(obj)):
        return None
    try:
        found = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return found if isinstance(found, dict) and (found or not lazy) else None


@functools.lru_cache(maxsize=4096)
def slots_of(cls: type) -> dict[str, Any]:
    """The descriptors of what ``__slots__`` names in a class and its bases."""
    return {
        name: value
        for base in reversed(cls.__mro__)
        if "__slots__" in vars(base)
        for name, value in vars(base).items()
        if isinstance(value, types.MemberDescriptorType)
    }


class _Missing:
    """Takes the place of what is not set."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = _Missing()


def read_slot(slot: Any, obj: Any) -> Any:
    """What the slot holds, or `MISSING`."""
    try:
        return slot.__get__(obj, type(obj))
    except (AttributeError, ValueError):  # the latter of cells
        return MISSING


def grad_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The gradient, without the warning where there cannot be one."""
    return tensor.grad if tensor.is_leaf or tensor.retains_grad else None


def _comparable(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor that torch can compare: it cannot with this kind of complex numbers."""
    if tensor.dtype is torch.complex32:
        return torch.view_as_real(tensor.resolve_conj())
    return tensor


def storage_key(tensor: torch.Tensor) -> int | None:
    """Names the memory of a tensor; None where there is none."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError):
        return None


def _same_number(one: Any, two: Any) -> bool:
    """Equal, both not a number, and of the same sign also where they are zero."""
    if isinstance(one, complex):
        return _same_number(one.real, two.real) and _same_number(one.imag, two.imag)
    if math.isnan(one) or math.isnan(two):
        return math.isnan(one) and math.isnan(two)
    return bool(one == two and math.copysign(1, one) == math.copysign(1, two))


def _error_text(error: BaseException) -> Any:
    if isinstance(error, RecursionError):
        return None  # it says where the stack ended
    if isinstance(error, RuntimeError):
        return str(error).splitlines()[:1]  # torch's name C++ frames after that
    return str(error)


def _steps(shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """The strides that say where elements are: compilers choose the others as they like."""
    return [step for size, step in zip(shape, strides, strict=True) if size > 1]


def _require(holds: Any, path: str, got: Any, expected: Any) -> None:
    if not holds:
        raise Difference(f"{path}: {_short(got)}, not {_short(expected)}")


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__qualname__}, whose repr raises {type(error).__name__}>"
    return text if len(text) <= 200 else text[:197] + "..."


def differences(pairs: Iterable[tuple[str, Any, Any]], comparison: Comparison) -> str | None:
    """The first difference among (path, expected, got), as text."""
    try:
        for path, expected, got in pairs:
            comparison.compare(expected, got, path)
    except Difference as difference:
        return str(difference)
    return None
