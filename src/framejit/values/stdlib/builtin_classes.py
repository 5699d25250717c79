"""The classes of ``builtins``, called: conversions, containers, and the lazy iterators.

In: a call with symbolic arguments. Out: a new value of that class. Numbers made from tensors depend
on the tensors' data and are graph breaks. Next: interpreter.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque

from framejit.exc import GraphBreak
from framejit.values.containers.calling_iterators import ReversedIndexIterator
from framejit.values.containers.deques import DequeValue
from framejit.values.containers.folding import fold, fold_if_constant, folds
from framejit.values.containers.iterators import (
    DequeIterator,
    EnumerateIterator,
    FilterIterator,
    MapIterator,
    ReversedIterator,
    ZipIterator,
)
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, SequenceValue, TupleValue
from framejit.values.containers.set_operands import copy_as
from framejit.values.containers.slices import SliceValue
from framejit.values.core.base import Args, Kwargs, Value, is_user_class, type_name
from framejit.values.core.methods import (
    as_returned,
    builtin,
    elements,
    elements_for_tuple,
    index_of,
    is_tensor,
    stand_in,
)
from framejit.values.core.registry import LOOKASIDES, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.text import format_value

# -- containers ------------------------------------------------------------------------------------


@builtin(list, 0, 1)
def _list(space: Space, iterable: Value | None = None) -> Value:
    return ListValue([] if iterable is None else list(elements(space, iterable)))


@builtin(tuple, 0, 1)
def _tuple(space: Space, iterable: Value | None = None) -> Value:
    if iterable is None:
        return TupleValue([])
    iterable = iterable.realize()
    if iterable.python_type() is tuple:
        return iterable
    return TupleValue(list(elements_for_tuple(space, iterable)))


builtin(set, 0, 1)(lambda space, iterable=None: copy_as(space, iterable, set))


@builtin(frozenset, 0, 1)
def _frozenset(space: Space, iterable: Value | None = None) -> Value:
    if iterable is not None and iterable.realize().is_constant:
        if iterable.python_type() is frozenset:
            return iterable.realize()
    return copy_as(space, iterable, frozenset)


def _make_dict(cls: type) -> None:
    def make(space: Space, args: Args, kwargs: Kwargs) -> Result:
        value = DictValue({}, None, None, cls)
        value.do___init__(space, *args, kwargs=kwargs)
        return value

    LOOKASIDES[cls] = make


for _cls in (dict, OrderedDict, defaultdict):
    _make_dict(_cls)


@builtin(deque, 0, 2, "iterable", "maxlen")
def _deque(space: Space, iterable: Value | None = None, maxlen: Value | None = None) -> Value:
    limit = None
    if maxlen is not None and not maxlen.is_none():
        is_int = issubclass(maxlen.python_type(), int)  # ``__index__`` is not asked
        limit = index_of(space, maxlen) if is_int else stand_in(maxlen.realize())
        space.run_real(deque, (), limit)
    value = DequeValue([], limit)
    if iterable is not None:
        value.do_extend(space, iterable)
    return value


@builtin(slice, 1, 3)
def _slice(space: Space, *bounds: Value) -> Value:
    none = space.constant(None)
    if len(bounds) == 1:
        return SliceValue(none, bounds[0], none)
    return SliceValue(bounds[0], bounds[1], bounds[2] if len(bounds) == 3 else none)


@builtin(range, 1, 3)
def _range(space: Space, *bounds: Value) -> Value:
    return space.constant(space.run_real(range, *[index_of(space, bound) for bound in bounds]))


# -- lazy iterators --------------------------------------------------------------------------------


@builtin(enumerate, 1, 2, "start", "iterable")
def _enumerate(space: Space, iterable: Value, start: Value | None = None) -> Value:
    count = 0 if start is None else index_of(space, start)
    return EnumerateIterator(space.iter(iterable), count)


@builtin(zip, 0, -1, "strict")
def _zip(space: Space, *iterables: Value, strict: Value | None = None) -> Value:
    exact = strict is not None and space.truth(strict)
    iterators = [space.iter(iterable) for iterable in iterables]
    return ZipIterator(iterators, exact)


#: CPython 3.14 has it.
_OF_MAP = ["strict"] if "strict" in (map.__text_signature__ or "") else []


@builtin(map, 2, -1, *_OF_MAP)
def _map(space: Space, function: Value, *iterables: Value, strict: Value | None = None) -> Value:
    exact = strict is not None and space.truth(strict)
    return MapIterator(function, [space.iter(iterable) for iterable in iterables], exact)


@builtin(filter, 2)
def _filter(space: Space, function: Value, iterable: Value) -> Value:
    return FilterIterator(filter, None if function.is_none() else function, space.iter(iterable))


@builtin(reversed, 1)
def _reversed(space: Space, value: Value) -> Result:
    value = value.realize()
    if isinstance(value, DequeValue):
        return DequeIterator(value, space.step, reverse=True)
    if isinstance(value, SequenceValue):
        return ReversedIterator(value)
    if value.is_constant:
        constant = value.as_python()
        if isinstance(constant, range):
            return space.iter(space.constant(constant[::-1]))
        if isinstance(constant, (str, bytes, tuple)):
            items = value.items_now(space) or []
            return ReversedIterator(TupleValue(items))
    cls = value.python_type()
    method = space.special_method(value, "__reversed__")
    if method is not None:
        return space.call(method, [], {})
    hidden = space.class_attribute(cls, "__reversed__") is not None  # it is None
    if hidden or is_tensor(value) or space.class_attribute(cls, "__getitem__") is None:
        return space.raise_error(TypeError, f"{type_name(cls)!r} object is not reversible")
    return ReversedIndexIterator(space, value, index_of(space, space.len(value)) - 1)


# -- numbers and text ------------------------------------------------------------------------------


def _convert(cls: type, specials: tuple[str, ...]) -> None:
    """``int``, ``float`` and ``complex``."""

    def make(space: Space, args: Args, kwargs: Kwargs) -> Result:
        number = getattr(args[0].realize(), "number", None) if len(args) == 1 else None
        if number is not None:  # of a scalar of numpy
            return LOOKASIDES[cls](space, [number()], kwargs)
        folded = fold_if_constant(space, cls, args, kwargs)
        if folded is not None:
            return folded
        value = args[0].realize() if args else next(iter(kwargs.values())).realize()
        if is_tensor(value):
            read = space.of_data(value, specials[0]) if len(args) == 1 and not kwargs else None
            if read is not None:
                return read
            raise GraphBreak(
                "FJ0102",
                f"{cls.__name__}() of a tensor depends on its data",
                "keep the value in a tensor, or accept the graph break",
            )
        if len(args) == 1 and not kwargs:
            for special in specials:
                method = space.special_method(value, special)
                if method is not None:
                    answer = space.call_now(method, []).realize()
                    if answer.is_symbolic and answer.python_type() is cls:
                        return answer
                    return space.constant(as_returned(space, value, special, answer, cls))
            kind = value.python_type()
            if is_user_class(kind) and not issubclass(kind, (int, float, complex, str, bytes)):
                space.run_real(cls, stand_in(value))
        return fold(space, cls, args, kwargs)

    LOOKASIDES[cls] = make


_convert(int, ("__int__", "__index__", "__trunc__"))
_convert(float, ("__float__", "__index__"))
_convert(complex, ("__complex__", "__float__", "__index__"))


builtin(bool, 0, 1)(lambda space, value=None: value is not None and space.truth(value))


@lookaside(str)
def _str(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) == 1 and not kwargs:
        return format_value(space, args[0], "s", "")
    return fold(space, str, args, kwargs)


folds(bytes)
