"""Builtin and library functions written in Python, traced through like the user's own code.

In: a call of a C function that itself calls user code, or that makes a lazy iterator. Out: frames
that the interpreter inlines, so that a graph break inside a user's callback can be continued.
Everything here also runs as plain Python, with the semantics of the original.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import torch

_MISSING = object()


# -- sorting and choosing ---------------------------------------------------------------------


def sort_order(order: list[int], keys: list[Any], reverse: bool) -> None:
    """Sort positions by their keys; CPython's own sort asks for the comparisons of a capture."""
    order.sort(key=keys.__getitem__, reverse=reverse)


def sort_list(items: list[Any], key: Callable[[Any], Any] | None, reverse: bool) -> None:
    """``items.sort(key=key, reverse=reverse)``; meanwhile the list is empty."""
    saved = items[:]
    order = list(range(len(saved)))
    items.clear()
    try:
        sort_order(order, saved if key is None else [key(item) for item in saved], reverse)
        if items:
            raise ValueError("list modified during sort")
    finally:
        items[:] = [saved[i] for i in order]


def sort_new(items: list[Any], key: Callable[[Any], Any] | None, reverse: bool) -> list[Any]:
    """``sorted(items, key=key, reverse=reverse)``; ``items`` is a list of our own."""
    sort_list(items, key, reverse)
    return items


def extreme_by_key(least: bool, iterable: Any, key: Callable[[Any], Any], default: Any) -> Any:
    """``min`` or ``max`` of ``iterable`` with ``key=``; ``default`` is a tuple of at most one."""
    items = iter(iterable)
    for best in items:  # noqa: B007 - it is the first one
        break
    else:  # not where StopIteration is handled, which would be the error's context
        return default[0] if default else min(()) if least else max(())
    extreme = key(best)
    for item in items:
        value = key(item)
        if value < extreme if least else value > extreme:
            best, extreme = item, value
    return best


# -- functools --------------------------------------------------------------------------------


def reduce(
    function: Callable[[Any, Any], Any], iterable: Iterable[Any], initial: Any = _MISSING, /
) -> Any:
    """``functools.reduce``."""
    iterator = iter(iterable)
    if initial is _MISSING:
        total = next(iterator, _MISSING)
        if total is _MISSING:
            raise TypeError("reduce() of empty iterable with no initial value")
    else:
        total = initial
    for item in iterator:
        total = function(total, item)
    return total


class CompareKey:
    """What ``functools.cmp_to_key(compare)`` makes of each element."""

    def __init__(self, compare: Callable[[Any, Any], Any], obj: Any) -> None:
        self.compare = compare
        self.obj = obj

    def order(self, other: Any) -> Any:
        if not isinstance(other, CompareKey):
            raise TypeError("other argument must be K instance")
        return self.compare(self.obj, other.obj)

    def __lt__(self, other: Any) -> bool:
        return self.order(other) < 0

    def __gt__(self, other: Any) -> bool:
        return self.order(other) > 0

    def __le__(self, other: Any) -> bool:
        return self.order(other) <= 0

    def __ge__(self, other: Any) -> bool:
        return self.order(other) >= 0

    def __eq__(self, other: Any) -> bool:
        return self.order(other) == 0


def cmp_to_key(mycmp: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """``functools.cmp_to_key``."""

    def make(obj: Any) -> CompareKey:
        return CompareKey(mycmp, obj)

    return make


# -- collections ------------------------------------------------------------------------------


def count_elements(mapping: Any, iterable: Iterable[Any]) -> None:
    """``collections._count_elements``, which Counter uses."""
    get = mapping.get
    for element in iterable:
        mapping[element] = get(element, 0) + 1


# -- heapq and bisect -------------------------------------------------------------------------
#
# The functions of heapq use the methods of list, also where a subclass has its own.


def sift_down(heap: list[Any], start: int, position: int, largest: bool) -> None:
    """Move the element at ``position`` towards the root, as far as ``start``."""
    get, put = list.__getitem__, list.__setitem__
    item = get(heap, position)
    while position > start:
        parent = (position - 1) >> 1
        above = get(heap, parent)
        if not (above < item if largest else item < above):
            break
        put(heap, position, above)
        position = parent
    put(heap, position, item)


def sift_up(heap: list[Any], position: int, largest: bool) -> None:
    """Move the element at ``position`` to a leaf, then to its place."""
    get, put = list.__getitem__, list.__setitem__
    end, start = list.__len__(heap), position
    item = get(heap, position)
    child = 2 * position + 1
    while child < end:
        right = child + 1
        if right < end:
            if largest:
                if not get(heap, right) < get(heap, child):
                    child = right
            elif not get(heap, child) < get(heap, right):
                child = right
        put(heap, position, get(heap, child))
        position = child
        child = 2 * position + 1
    put(heap, position, item)
    sift_down(heap, start, position, largest)


def heapify(heap: list[Any], /, largest: bool = False) -> None:
    """``heapq.heapify``."""
    for position in reversed(range(list.__len__(heap) // 2)):
        sift_up(heap, position, largest)


def heappush(heap: list[Any], item: Any, /) -> None:
    """``heapq.heappush``."""
    list.append(heap, item)
    sift_down(heap, 0, list.__len__(heap) - 1, False)


def heappop(heap: list[Any], /, largest: bool = False) -> Any:
    """``heapq.heappop``."""
    if not list.__len__(heap):
        raise IndexError("index out of range")
    last = list.pop(heap)
    if list.__len__(heap):
        first = list.__getitem__(heap, 0)
        list.__setitem__(heap, 0, last)
        sift_up(heap, 0, largest)
        return first
    return last


def heapreplace(heap: list[Any], item: Any, /, largest: bool = False) -> Any:
    """``heapq.heapreplace``."""
    if not list.__len__(heap):
        raise IndexError("index out of range")
    first = list.__getitem__(heap, 0)
    list.__setitem__(heap, 0, item)
    sift_up(heap, 0, largest)
    return first


def heappushpop(heap: list[Any], item: Any, /) -> Any:
    """``heapq.heappushpop``."""
    if list.__len__(heap) and list.__getitem__(heap, 0) < item:
        return heapreplace(heap, item)
    return item


def insort_right(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> None:
    """``bisect.insort_right``."""
    a.insert(bisect_right(a, x if key is None else key(x), lo, hi, key=key), x)


def insort_left(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> None:
    """``bisect.insort_left``."""
    a.insert(bisect_left(a, x if key is None else key(x), lo, hi, key=key), x)


def bisect_right(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> int:
    """``bisect.bisect_right``."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        if x < (a[middle] if key is None else key(a[middle])):
            hi = middle
        else:
            lo = middle + 1
    return lo


def bisect_left(a: Any, x: Any, lo: int = 0, hi: Any = None, *, key: Any = None) -> int:
    """``bisect.bisect_left``."""
    if lo < 0:
        raise ValueError("lo must be non-negative")
    if hi is None:
        hi = len(a)
    while lo < hi:
        middle = (lo + hi) // 2
        if (a[middle] if key is None else key(a[middle])) < x:
            lo = middle + 1
        else:
            hi = middle
    return lo


# -- operator ---------------------------------------------------------------------------------


def get_items(obj: Any, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """``operator.itemgetter(*keys)(obj)`` with more than one key."""
    return tuple([obj[key] for key in keys])


# -- torch.autograd.Function ------------------------------------------------------------------


class FunctionContext:
    """What ``forward`` and ``backward`` see as ``ctx`` while they are traced."""

    def __init__(self, *args: Any) -> None:
        self._tensors: tuple[Any, ...] = ()
        self.needs_input_grad = tuple(
            [isinstance(a, torch.Tensor) and a.requires_grad for a in args]
        )

    def save_for_backward(self, *tensors: Any) -> None:
        self._tensors = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        return self._tensors

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        return self._tensors

    def save_for_forward(self, *tensors: Any) -> None:
        return None

    def mark_dirty(self, *tensors: Any) -> None:
        return None

    def mark_non_differentiable(self, *tensors: Any) -> None:
        return None

    def set_materialize_grads(self, value: bool) -> None:
        return None


def function_forward(cls: Any, context: Any, *args: Any) -> Any:
    """What ``autograd.Function.apply`` calls."""
    if cls.setup_context is torch.autograd.function._SingleLevelFunction.setup_context:
        return cls.forward(context, *args)
    output = cls.forward(*args)
    cls.setup_context(context, args, output)
    return output


def function_backward(cls: Any, context: Any, *gradients: Any) -> Any:
    """What autograd calls with the gradients of the outputs."""
    return cls.backward(context, *gradients)


# -- operations with a number that is read out of a tensor -------------------------------------


def addcdiv(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """``Tensor.addcdiv`` with a number that is read: in single precision for shorter dtypes."""
    if self.dtype.itemsize > 2:
        return self + tensor1 * value / tensor2
    return (self.float() + tensor1.float() * value / tensor2.float()).to(self.dtype)


def addcdiv_(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """``Tensor.addcdiv_`` with a number that is read."""
    if self.dtype.itemsize > 2:
        return self.add_(tensor1 * value / tensor2)
    return self.copy_(addcdiv(self, tensor1, tensor2, value))


def addcmul(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """``Tensor.addcmul`` with a number that is read: in single precision for shorter dtypes."""
    if self.dtype.itemsize > 2:
        return self + tensor1 * value * tensor2
    return (self.float() + tensor1.float() * value * tensor2.float()).to(self.dtype)


def addcmul_(self: Any, tensor1: Any, tensor2: Any, value: Any) -> Any:
    """``Tensor.addcmul_`` with a number that is read."""
    if self.dtype.itemsize > 2:
        return self.add_(tensor1 * value * tensor2)
    return self.copy_(addcmul(self, tensor1, tensor2, value))


def call_with(function: Any, args: Any, kwargs: Any) -> Any:
    """A call with the arguments as they are."""
    return function(*args, **kwargs)


def call_with_one(function: Any, argument: Any) -> Any:
    """A call with one argument."""
    return function(argument)


def round_trip(pack: Any, unpack: Any, saved: Any) -> Any:
    """What becomes of a tensor that is saved for backward under hooks."""
    return unpack(pack(saved))


def new_handle(self: Any, hooks_dict: Any, number: Any, extra_dict: Any = None) -> None:
    """``RemovableHandle.__init__`` with the number of the handle."""
    self.hooks_dict_ref = weakref.ref(hooks_dict)
    self.id = number
    self.extra_dict_ref = ()
    if isinstance(extra_dict, dict):
        self.extra_dict_ref = (weakref.ref(extra_dict),)
    elif isinstance(extra_dict, list):
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra_dict)
