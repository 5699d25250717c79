"""Calls of numpy as operations of torch: how ``torch._numpy`` does them, recorded call by call.

In: a function of numpy and values. Out: graph nodes, and what the call returns. A call is first
*rehearsed*: numpy and ``torch._numpy`` do it on two sets of made-up arrays of these shapes, dtypes
and layouts. Only when both results agree (classes, dtypes, layout, values, what is written, what
shares memory with what) is it recorded, so nothing depends on a list of what ``torch._numpy`` gets
right. Next room: graph.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch
from torch.overrides import TorchFunctionMode

from framejit.exc import GraphBreak
from framejit.graph.fakes import isolated
from framejit.graph.silence import quiet
from framejit.values.containers.calling_iterators import IndexIterator
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.slices import SliceValue
from framejit.values.core.base import Args, Declared, Kwargs, Raised, Unmaterialisable, Value
from framejit.values.core.constants import ConstantValue, guard_state
from framejit.values.core.registry import (
    BINARY,
    BINARY_METHODS,
    COMPARE,
    COMPARE_METHODS,
    INPLACE,
    UNARY,
    UNARY_METHODS,
    Result,
)
from framejit.values.core.space import Space
from framejit.values.core.symbolic import SYMBOLIC_TYPES, SymbolicValue
from framejit.values.numpy.agreement import (
    Differs,
    Leaf,
    form_of,
    holds,
    made_up_numbers,
    numpy_on_torch,
    same_numbers,
    torch_dtype,
)
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import BoundBuiltin
from framejit.values.torch.tensors import (
    _VIEW_ATTRIBUTES,
    TensorValue,
    graph_call,
    graph_call_method,
    tensor_call,
)

#: Functions whose result torch may choose differently from numpy.
_UNSURE = frozenset(["argsort", "argpartition", "unique", "set_default_dtype", "from_dlpack"])
#: Functions whose result has no particular values.
_UNINITIALISED = frozenset(["empty", "empty_like"])

#: Elements of an array above which nothing is rehearsed.
_TOO_LARGE = 1 << 24


class ArrayValue(Declared):
    """An ndarray, or a numpy scalar that an operation on arrays gave. ``tensor`` shares its memory;
    ``cls`` is the class, ``obj`` the existing array; ``owns``: numpy gives it data of its own."""

    tensor: TensorValue
    cls: type
    obj: Any = None
    source: Any = None
    owns: bool = False

    def python_type(self) -> type:
        return self.cls

    @property
    def is_scalar(self) -> bool:
        """A numpy scalar: it never changes."""
        return issubclass(self.cls, numpy.generic)

    def getattr(self, space: Space, name: str) -> Result:
        if name == "__class__":
            return space.class_value(self.cls)
        attribute = getattr(self.cls, name, None)
        if attribute is None:
            return space.generic_getattr(self, name)
        if callable(attribute):
            return BoundBuiltin(self, name)
        if name == "strides" and 0 in self.tensor.fake(space).shape:
            raise GraphBreak("FJ0132", "strides of an array without elements, which new ones lack")
        if name == "base" and self.obj is None and self.tensor.step:
            raise Unmaterialisable(self.tensor.step, "whose memory a new array uses")
        return call_numpy(space, operator.attrgetter(name), [self], {})

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        if name in _NEED_DATA:
            raise GraphBreak("FJ0102", f"{self.cls.__name__}.{name}() needs the array's data")
        operation = _DUNDERS.get(name)
        if operation is not None and len(args) == 1 and not operation[1] and not kwargs:
            return call_numpy(space, operation[0], [self, *args], {})
        if name == "__getitem__" and len(args) == 1:
            return self.getitem(space, args[0])
        if name == "__setitem__" and len(args) == 2:
            self.setitem(space, *args)
            return ConstantValue(None)
        return call_numpy(space, getattr(numpy.ndarray, name, None), [self, *args], kwargs)

    def getitem(self, space: Space, key: Value) -> Result:
        index, shape = key.realize(), self.tensor.metadata().shape
        if shape and isinstance(index, ConstantValue) and type(index.value) is int:
            size = self.len(space).realize().as_python()
            if not -size <= index.value < size:
                where = f"is out of bounds for axis 0 with size {size}"
                space.raise_error(IndexError, f"index {index.value} {where}")
        return call_numpy(space, operator.getitem, [self, key], {})

    def setitem(self, space: Space, key: Value, value: Value) -> None:
        value = value.realize()
        if isinstance(value, ArrayValue) and value is not self:  # they may overlap
            value = ArrayValue(clone(space, value.tensor), value.cls)
        call_numpy(space, operator.setitem, [self, key, value], {})

    def binary_op(
        self, space: Space, op: str, other: Value, reflected: bool, inplace: bool
    ) -> Value | None:
        function = (INPLACE if inplace and not self.is_scalar else BINARY)[op]
        operands = [other, self] if reflected else [self, other]
        return call_numpy(space, function, operands, {})

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        return call_numpy(space, COMPARE[op], [self, other], {})

    def len(self, space: Space) -> Value:
        shape = self.tensor.metadata().shape
        if not shape:
            kind = f"object of type 'numpy.{self.cls.__name__}' has no len()"
            space.raise_error(TypeError, kind if self.is_scalar else "len() of unsized object")
        return space.constant(shape[0])

    def items_now(self, space: Space) -> list[Value] | None:
        size = self.len(space).realize().as_python()
        return [space.now(self.getitem(space, ConstantValue(i))) for i in range(size)]

    def iter(self, space: Space) -> Value:
        if not self.tensor.metadata().shape:
            kind = f"'numpy.{self.cls.__name__}' object is not iterable"
            space.raise_error(TypeError, kind if self.is_scalar else "iteration over a 0-d array")
        return IndexIterator(space, self, 0)

    def contains(self, space: Space, item: Value) -> Value:
        raise GraphBreak("FJ0102", "`in` on an array needs its data")

    def truth(self, space: Space) -> bool:
        raise GraphBreak("FJ0101", "the truth value of an array depends on its data")


#: What takes numbers out of an array.
_NEED_DATA = frozenset([
    "item", "tolist", "tobytes", "__float__", "__int__", "__bool__", "__index__", "__complex__",
    "__contains__", "__array__", "__format__", "__repr__", "__str__", "__hash__", "__iter__",
])  # fmt: skip


def clone(space: Space, tensor: TensorValue) -> TensorValue:
    """A copy of it in the graph."""
    return tensor_call(space, torch.clone, tensor)


@contextlib.contextmanager
def _numpys_defaults() -> Iterator[None]:
    """numpy's own default dtypes, whatever those of torch's compiler are set to."""
    from torch._numpy import _dtypes_impl

    before = _dtypes_impl._default_dtypes
    defaults: Any = _dtypes_impl.DefaultDTypes(torch.float64, torch.complex128, torch.int64)
    _dtypes_impl._default_dtypes = defaults
    try:
        yield
    finally:
        _dtypes_impl._default_dtypes = before


def counterpart(function: Any) -> Any:
    """The function of ``torch._numpy`` that does what this one of numpy does, or None."""
    library = numpy_on_torch()
    name = getattr(function, "__name__", "")
    if name in _UNSURE:
        return None
    if function in _DIVISIONS:
        return functools.partial(_divide, function)
    if isinstance(function, (operator.attrgetter, types.BuiltinFunctionType)) and (
        getattr(function, "__module__", "") == "_operator" or not name
    ):
        return function  # an operator, an attribute: looked up on either kind of array
    if isinstance(function, type):
        return getattr(library, name, None) if issubclass(function, numpy.generic) else None
    if getattr(numpy.ndarray, name, None) is function:
        return getattr(library.ndarray, name, None)
    for home, there in ((numpy, library), *_submodules(library)):
        if getattr(home, name, None) is function:
            found = getattr(there, name, None)
            return found if callable(found) else None
    return None


_DIVISIONS = (operator.truediv, operator.itruediv, numpy.true_divide)


def _divide(function: Any, one: Any, two: Any, **kwargs: Any) -> Any:
    """A quotient of whole numbers has numpy's default dtype, not torch's."""
    library = numpy_on_torch()
    whole = [
        not library.issubdtype(x.dtype, library.inexact) if isinstance(x, library.ndarray)
        else isinstance(x, int) for x in (one, two)
    ]  # fmt: skip
    if all(whole) and function is not operator.itruediv:
        one, two = [
            x.astype(library.float64) if isinstance(x, library.ndarray) else float(x)
            for x in (one, two)
        ]
    function = library.true_divide if function is numpy.true_divide else function
    return function(one, two, **kwargs)


def _submodules(library: Any) -> Iterator[tuple[Any, Any]]:
    for name in ("linalg", "fft"):
        yield getattr(numpy, name), getattr(library, name)


def call_numpy(space: Space, function: Any, args: Args, kwargs: Kwargs) -> Value:
    """``function(*args, **kwargs)`` of numpy: a constant if no array comes out and none goes in,
    else recorded as torch's operations."""
    what = getattr(function, "__name__", None) or "this attribute of an array"
    there = counterpart(function)
    if there is None:
        raise GraphBreak("FJ0132", f"numpy's {what} is not captured")
    guard_state(space, "numpy's error state", _raises_errors, raises := _raises_errors())
    if raises:
        raise GraphBreak("FJ0132", "numpy reports errors of computations as exceptions or calls")
    try:
        with isolated():
            answers = [_rehearse(function, there, args, kwargs, seed, what) for seed in (0, 1)]
    except Differs as error:
        raise GraphBreak("FJ0132", f"numpy's {what}: {error}")
    arrays = _arrays([*args, *kwargs.values()])
    if not arrays and not holds(Leaf, answers[0][1]):
        _each([*args, *kwargs.values()], _pin)
        return space.constant(answers[0][0])
    if answers[0][1] != answers[1][1]:
        raise GraphBreak("FJ0102", f"what numpy's {what} returns depends on the data")
    _check_world(space)
    recorder = _Recorder(space)
    converted = _Conversion(recorder.array, recorder.symbol)
    with _numpys_defaults(), recorder:
        given = [converted(arg, function) for arg in args]
        named = {key: converted(value, function) for key, value in kwargs.items()}
        try:
            made = there(*given, **named)
        except (GraphBreak, Raised):
            raise
        except Exception as error:
            raise GraphBreak("FJ0132", f"numpy's {what} on tensors: {error}")
    if space.builder.world.symbols_if_any is not None:
        space.builder.symbols.poll()
    return _answer(recorder, arrays, *answers[0], made, what)


def _raises_errors() -> bool:
    return not {*numpy.geterr().values()} <= {"ignore", "warn"}


def _check_world(space: Space) -> None:
    """Modes that change what torch's operations mean are none of numpy's business."""
    if (
        torch.is_autocast_enabled("cpu")
        or torch._C._len_torch_function_stack()
        or space.transforms
        or torch._C._get_default_device() != "cpu"
    ):
        raise GraphBreak("FJ0124", "numpy under autocast, a transform, a device block or a mode")


# -- arguments -------------------------------------------------------------------------------------


def _each(values: list[Value], visit: Callable[[Value], Any]) -> None:
    for value in values:
        value = value.realize()
        if isinstance(value, (ListValue, TupleValue)):
            _each(value.items, visit)
        elif isinstance(value, SliceValue):
            _each(value.parts(), visit)
        else:
            visit(value)


def _arrays(values: list[Value]) -> list[ArrayValue]:
    """The arrays among the arguments, each once, in order."""
    found: dict[ArrayValue, None] = {}
    _each(values, lambda v: found.setdefault(v) if isinstance(v, ArrayValue) else None)
    return list(found)


def _pin(value: Value) -> None:
    if value.is_symbolic:
        value.as_python()


class _Conversion:
    """Arguments as one side takes them: ``array`` and ``number`` say how arrays and numbers that
    vary look there, ``real`` that it is numpy."""

    def __init__(
        self, array: Callable[[Any], Any], number: Callable[[Any], Any], real: bool = False
    ) -> None:
        self.array, self.number, self.real = array, number, real

    def __call__(self, value: Value, function: Any) -> Any:
        value = value.realize()
        if isinstance(value, (ListValue, TupleValue)) and value.python_type() in _SEQUENCES:
            items = [self(item, function) for item in value.items]
            return items if isinstance(value, ListValue) else tuple(items)
        if isinstance(value, SliceValue):
            return slice(*[self(part, function) for part in value.parts()])
        if isinstance(value, ArrayValue):
            return self.array(value)
        if isinstance(value, SymbolicValue):
            return self.number(value)
        if isinstance(value, ClassValue):
            known: Any = value.cls
        elif value.is_constant:
            known = value.as_python()
        else:
            raise GraphBreak("FJ0121", f"a {value.describe()} is passed to numpy")
        return known if self.real else _on_torch(known, function)


_SEQUENCES = (list, tuple, torch.Size)


def _on_torch(known: Any, function: Any) -> Any:
    """A constant as ``torch._numpy`` takes it."""
    if isinstance(known, numpy.dtype) or (
        isinstance(known, type) and issubclass(known, numpy.generic)
    ):
        return numpy_on_torch().dtype(numpy.dtype(known).name)
    if isinstance(known, numpy.generic):
        computes = isinstance(function, numpy.ufunc) or function in _OPERATORS
        exact = isinstance(known, (numpy.floating, numpy.complexfloating))
        if computes or (exact and function not in (numpy.array, numpy.asarray)):
            return numpy_on_torch().ndarray(torch.tensor(known.item(), dtype=torch_dtype(known)))
        return known.item()
    return known


_OPERATORS = frozenset([*BINARY.values(), *INPLACE.values(), *COMPARE.values(), *UNARY.values()])


# -- the rehearsal ---------------------------------------------------------------------------------


def _sample(value: ArrayValue, seed: int) -> Any:
    """A made-up array with this metadata: plain numbers, or such as need care."""
    meta = value.tensor.metadata()
    shape = tuple([_hint(size) for size in meta.shape])
    strides = meta.stride() if callable(meta.stride) else meta.stride
    strides = tuple([_hint(step) for step in strides])
    dtype = torch.empty(0, dtype=meta.dtype).numpy().dtype
    count = 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    if count > _TOO_LARGE:
        raise GraphBreak("FJ0132", "an array is too large to try what numpy does with it")
    generator, few = numpy.random.default_rng(seed), min(max(count, 1), 4099)
    drawn = made_up_numbers(generator, dtype, few, bool(seed))
    flat = numpy.resize(drawn, max(count, 1))
    steps = tuple(step * dtype.itemsize for step in strides)
    if 0 in shape:  # new arrays have no strides then, parts of others have
        steps = (0,) * len(shape) if value.obj is None else value.obj.strides
    return numpy.ndarray(shape, dtype, flat, 0, steps)


def _hint(size: Any) -> int:
    hint = size if isinstance(size, int) else size.node.hint
    if hint is None:
        raise GraphBreak("FJ0103", "the size of an array depends on data")
    return int(hint)


def _number_now(value: SymbolicValue) -> Any:
    return value.sym.node.hint


def _rehearse(
    function: Any, there: Any, args: Args, kwargs: Kwargs, seed: int, what: str
) -> tuple[Any, Any]:
    """(numpy's result, the form of it) on made-up arrays; `Differs` unless both agree."""
    arrays = _arrays([*args, *kwargs.values()])
    ours = {a: _sample(a, seed + 2 * i) for i, a in enumerate(arrays)}
    theirs = {a: torch.from_numpy(_sample(a, seed + 2 * i)) for i, a in enumerate(arrays)}
    scalar = {a: ours[a][()] if a.is_scalar else ours[a] for a in arrays}
    real = _Conversion(scalar.__getitem__, _number_now, real=True)
    given = [real(arg, function) for arg in args]
    named = {key: real(value, function) for key, value in kwargs.items()}
    with quiet, numpy.errstate(all="ignore"):
        try:
            answer = function(*given, **named)
        except Exception as error:
            raise Differs(f"{type(error).__name__}: {error}")
        if not arrays and not holds(numpy.ndarray, answer):
            return answer, None
        with _numpys_defaults(), torch.no_grad():
            wrap = numpy_on_torch().ndarray
            other = _Conversion(lambda a: wrap(theirs[a]), _number_now)
            try:
                made = there(
                    *[other(arg, function) for arg in args],
                    **{key: other(value, function) for key, value in kwargs.items()},
                )
            except Exception as error:
                raise Differs(f"torch has no such operation ({type(error).__name__}: {error})")
            compare = what not in _UNINITIALISED
            form = form_of(answer, made, list(ours.values()), list(theirs.values()), compare)
            for one, two in zip(ours.values(), theirs.values(), strict=True):
                same_numbers(one, two.numpy())
    return answer, form


# -- the recording ---------------------------------------------------------------------------------

_DUNDERS: dict[str, tuple[Any, bool]] = {
    **{names[0]: (BINARY[op], False) for op, names in BINARY_METHODS.items()},
    **{names[1]: (BINARY[op], True) for op, names in BINARY_METHODS.items()},
    **{names[2]: (INPLACE[op], False) for op, names in BINARY_METHODS.items()},
    **{names[0]: (COMPARE[op], False) for op, names in COMPARE_METHODS.items()},
    **{name: (UNARY[op], False) for op, name in UNARY_METHODS.items()},
}


class _Recorder(TorchFunctionMode):
    """While ``torch._numpy`` runs on fake tensors, what it asks of torch becomes graph nodes."""

    def __init__(self, space: Space) -> None:
        super().__init__()
        self.space = space
        #: The tensors that it has seen, by the identity of their fakes (which are kept alive).
        self.known: dict[int, tuple[Any, Value]] = {}

    def symbol(self, value: SymbolicValue) -> Any:
        self.known[id(value.sym)] = (value.sym, value)
        return value.sym

    def fake(self, value: TensorValue) -> torch.Tensor:
        fake = value.fake(self.space)
        self.known[id(fake)] = (fake, value)
        return fake

    def array(self, value: ArrayValue) -> Any:
        with torch._C.DisableTorchFunction():
            fake = self.fake(value.tensor)
        return numpy_on_torch().ndarray(fake)

    def tensor(self, fake: torch.Tensor) -> TensorValue:
        known = self.known.get(id(fake))
        if known is None or not isinstance(known[1], TensorValue):
            raise GraphBreak("FJ0121", "numpy makes a tensor out of nothing")
        return known[1]

    def value(self, obj: Any) -> Value:
        """What ``torch._numpy`` passes to torch."""
        if isinstance(obj, torch.Tensor):
            return self.tensor(obj)
        if isinstance(obj, (list, tuple)) and type(obj) is not torch.Size:
            items = [self.value(item) for item in obj]
            return ListValue(items) if isinstance(obj, list) else TupleValue(items)
        if isinstance(obj, slice):
            return SliceValue(*[self.value(part) for part in (obj.start, obj.stop, obj.step)])
        known = self.known.get(id(obj)) if isinstance(obj, SYMBOLIC_TYPES) else None
        return known[1] if known is not None else self.space.constant(obj)

    def object(self, value: Value) -> Any:
        """What torch returns."""
        value = value.realize()
        if isinstance(value, TensorValue):
            return self.fake(value)
        if isinstance(value, (ListValue, TupleValue)):
            items = [self.object(item) for item in value.items]
            return items if isinstance(value, ListValue) else value.python_type()(items)
        return self.symbol(value) if isinstance(value, SymbolicValue) else value.as_python()

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        space, name = self.space, getattr(function, "__name__", "")
        if name == "__get__":
            name = function.__self__.__name__
            if name not in _VIEW_ATTRIBUTES:
                return function(*args)
            return self.object(space.now(space.getattr(self.tensor(args[0]), name)))
        kwargs = dict(kwargs or {})
        if function in (torch.tensor, torch.as_tensor):
            if kwargs.get("dtype") is None:  # as it is now: the graph runs under other defaults
                kwargs["dtype"] = torch.tensor(*args, **kwargs).dtype
            function = torch.tensor
        given = [self.value(arg) for arg in args]
        named = {key: self.value(arg) for key, arg in kwargs.items()}
        method = getattr(torch.Tensor, name, None) is function
        if method and name in _DUNDERS and not named:
            target, reflected = _DUNDERS[name]
            made: Any = graph_call(space, target, given[::-1] if reflected else given, {})
            return args[0] if target in INPLACE.values() else self.object(made)
        if method:
            receiver = given[0]
            assert isinstance(receiver, TensorValue)
            return self.object(space.now(receiver.call_method(space, name, given[1:], named)))
        return self.object(space.call_now(space.constant(function), given, named))


def _answer(
    recorder: _Recorder, arrays: list[ArrayValue], answer: Any, form: Any, made: Any, what: str
) -> Value:
    """The value of what the call returned, put together as the rehearsal did."""
    space = recorder.space
    if type(form) is list:
        if not isinstance(made, (tuple, list)) or len(made) != len(form):
            raise GraphBreak("FJ0132", f"numpy's {what} on tensors answers something else")
        items = [
            _answer(recorder, arrays, *parts, what)
            for parts in zip(answer, form, made, strict=True)
        ]
        return ListValue(items) if type(answer) is list else TupleValue(items)
    if not isinstance(form, Leaf):
        if isinstance(made, SYMBOLIC_TYPES):
            return recorder.value(made)
        return space.constant(form[0])
    if form.argument is not None:
        return arrays[form.argument]
    tensor = recorder.tensor(made.tensor)
    if form.copied:
        tensor = clone(space, tensor)
    if form.contiguous and not tensor.fake(space).is_contiguous():
        tensor = graph_call_method(space, "contiguous", [tensor], {})  # type: ignore[assignment]
    value = ArrayValue(tensor, form.cls)
    value.owns = form.owns
    return value
