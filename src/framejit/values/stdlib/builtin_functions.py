"""The functions of ``builtins``: what runs instead when captured code calls them.

In: a call with symbolic arguments. Out: a value, or the frame of a Python function that must run.
Pure functions of constants are folded; what depends on addresses, on the process or on tensors'
data is a graph break. Conversions and iteration are in builtin_classes. Next: interpreter.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from typing import Any

from framejit.exc import FrameSeen, GraphBreak
from framejit.values.containers.folding import (
    NotConstantError,
    fold,
    folded,
    folds,
    python_of,
)
from framejit.values.containers.iterators import CallableIterator
from framejit.values.containers.live_dicts import globals_value
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.sets import SetValue
from framejit.values.core import polyfills
from framejit.values.core.base import NULL, Args, Kwargs, Raised, Value, type_name
from framejit.values.core.complaints import sorting_takes_any_truth
from framejit.values.core.inline_policy import is_library
from framejit.values.core.methods import (
    Element,
    builtin,
    elements,
    index_of,
    is_tensor,
    stand_in,
)
from framejit.values.core.registry import (
    LOOKASIDES,
    NAMED_LOOKASIDES,
    Handler,
    Result,
    lookaside,
    refuses,
)
from framejit.values.core.space import Space
from framejit.values.core.symbolic import SymbolicValue
from framejit.values.objects.functions import call_polyfill
from framejit.values.objects.generators import GeneratorValue
from framejit.values.objects.instances import ObjectValue
from framejit.values.objects.local_classes import class_from_parts
from framejit.values.objects.text import format_value


def _name_of(space: Space, value: Value) -> str:
    """An attribute's name; TypeError in the program when it is not a string."""
    value = value.realize()
    if value.python_type() is not str:
        kind = type_name(value.python_type())
        space.raise_error(TypeError, f"attribute name must be string, not {kind!r}")
    return str(value.as_python())


# -- classes and attributes ------------------------------------------------------------------------


builtin(len, 1)(Space.len)


@lookaside(type)
def _type(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) == 1 and not kwargs:
        return space.class_value(args[0].python_type())
    if len(args) == 3 and not kwargs:
        return class_from_parts(space, args)
    raise GraphBreak("FJ0154", "making a class")


@builtin(getattr, 2, 3)
def _getattr(space: Space, value: Value, name: Value, default: Value | None = None) -> Result:
    text = _name_of(space, name)
    if default is None:
        return space.getattr(value, text)
    try:
        return space.getattr_now(value, text)
    except Raised as signal:
        if signal.is_a(AttributeError):
            return default
        raise


@builtin(hasattr, 2)
def _hasattr(space: Space, value: Value, name: Value) -> Any:
    return _getattr(space, value, name, NULL) is not NULL


@builtin(setattr, 3)
def _setattr(space: Space, value: Value, name: Value, new: Value) -> None:
    space.setattr(value, _name_of(space, name), new)


@builtin(delattr, 2)
def _delattr(space: Space, value: Value, name: Value) -> None:
    space.delattr(value, _name_of(space, name))


@builtin(callable, 1)
def _callable(space: Space, value: Value) -> Any:
    return space.class_attribute(value.python_type(), "__call__") is not None


@builtin(vars, 0, 1)
def _vars(space: Space, value: Value | None = None) -> Result:
    if value is None:
        return _reads_locals("vars() without an argument", "FJ0142")(space, [], {})
    found = _getattr(space, value, space.constant("__dict__"), NULL)
    if found is NULL:
        space.raise_error(TypeError, "vars() argument must have __dict__ attribute")
    return found


builtin(globals, 0)(lambda space: globals_value(space, space.running.namespace))
builtin(repr, 1)(lambda space, value: format_value(space, value, "r", ""))
builtin(ascii, 1)(lambda space, value: format_value(space, value, "a", ""))


@builtin(format, 1, 2)
def _format(space: Space, value: Value, spec: Value | None = None) -> Value:
    if spec is not None and not issubclass(spec.python_type(), str):
        wrong = "None" if spec.is_none() else type_name(spec.python_type())
        return space.raise_error(TypeError, f"format() argument 2 must be str, not {wrong}")
    text = "" if spec is None else spec.realize().as_python()
    return format_value(space, value, None, text)


refuses("FJ0130", {
    print: "print() writes to the outside",
    dir: "dir()",
    input: "input() reads from the outside",
    open: "open() reads from the outside",
    compile: "compile() makes code",
})  # fmt: skip


def _reads_locals(reason: str, identifier: str = "FJ0130") -> Handler:
    """The handler of what gives the frame's variables, to the program or to the code that it runs
    without namespaces of its own."""

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        elsewhere = len(args) > 1 and not args[1].is_none()
        shared = not elsewhere and space.running.shares_locals()
        raise (FrameSeen if shared else GraphBreak)(identifier, reason)

    return handler


LOOKASIDES[locals] = _reads_locals("locals() gives the frame's variables")
LOOKASIDES[eval] = _reads_locals("eval() runs code that is not known")
LOOKASIDES[exec] = _reads_locals("exec() runs code that is not known")


def _shows_frames(name: str, what: str = "looks at the running frames") -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        library = is_library(str(space.running.namespace.get("__name__")))
        raise (GraphBreak if library else FrameSeen)("FJ0130", f"{name}() {what}")

    return handler


for _function in (
    sys._getframe, sys._current_frames, sys.settrace, sys.setprofile, inspect.currentframe,
    inspect.stack,
):  # fmt: skip
    LOOKASIDES[_function] = _shows_frames(_function.__name__)
LOOKASIDES[builtins.breakpoint] = _shows_frames("breakpoint", "stops in a debugger")
NAMED_LOOKASIDES["pdb", "set_trace"] = _shows_frames("pdb.set_trace", "stops in a debugger")


# -- iteration -------------------------------------------------------------------------------------


@builtin(iter, 1, 2)
def _iter(space: Space, value: Value, sentinel: Value | None = None) -> Value:
    if sentinel is not None:
        if space.class_attribute(value.python_type(), "__call__") is None:
            space.raise_error(TypeError, "iter(v, w): v must be callable")
        return CallableIterator(value, sentinel)
    return space.iter(value)


@builtin(next, 1, 2)
def _next(space: Space, iterator: Value, default: Value | None = None) -> Value:
    iterator = iterator.realize()
    if not hasattr(iterator.python_type(), "__next__"):
        space.run_real(next, stand_in(iterator))
    if default is None and isinstance(iterator, (GeneratorValue, ObjectValue)):
        # Their StopIteration carries a value.
        return space.now(space.call_special(iterator, "__next__", [], "is not an iterator"))
    item = space.next(iterator)
    if item is not None:
        return item
    return space.raise_error(StopIteration) if default is None else default


def _search(space: Space, iterable: Value, wanted: bool) -> bool:
    """Is the truth value of an element this one?"""
    iterator = space.iter(iterable)
    while (item := space.next(iterator)) is not None:
        if space.truth(item) is wanted:
            return True
    return False


builtin(any, 1)(lambda space, iterable: _search(space, iterable, True))
builtin(all, 1)(lambda space, iterable: not _search(space, iterable, False))


@builtin(sum, 1, 2, "start")
def _sum(space: Space, iterable: Value, start: Value | None = None) -> Value:
    total = space.constant(0) if start is None else start.realize()
    if issubclass(total.python_type(), (str, bytes, bytearray)):
        space.iter(iterable)
        space.run_real(sum, (), stand_in(total))
    run: list[Value] | None = [total] if _is_number(total) else None
    items = iterable.realize().items_now(space)
    for item in space.each(iterable) if items is None else items:
        if run is not None and _is_number(item):
            run.append(item.realize())
            continue
        if run is not None:
            total, run = _sum_of_numbers(space, run), None
        total = space.now(space.binary("+", total, item))
    return total if run is None else _sum_of_numbers(space, run)


def _is_number(value: Value) -> bool:
    value = value.realize()
    if value.is_constant:
        return isinstance(value.as_python(), (int, float, complex))
    return isinstance(value, SymbolicValue)


#: Does `sum` keep what is lost in additions of floats, and adds it in the end?
_KEEPS_WHAT_IS_LOST = sum([1e100, 1.0, -1e100]) == 1.0


def _sum_of_numbers(space: Space, run: list[Value]) -> Value:
    """CPython's `sum` of the numbers at the beginning, the first of which is the start. Where they
    are added one by one, numbers that vary may stay so."""
    inexact = (n for n, item in enumerate(run) if item.python_type() not in (int, bool))
    one_by_one = not _KEEPS_WHAT_IS_LOST or next(inexact, len(run)) >= len(run) - 2
    if one_by_one and not all(item.is_constant for item in run):
        total, *items = run
        for item in items:
            total = space.now(space.binary("+", total, item))
        return total
    start, *numbers = [item.as_python() for item in run]
    return space.constant(space.run_real(sum, numbers, start))


def _extreme(
    space: Space,
    choose: Any,
    args: tuple[Value, ...],
    key: Value | None = None,
    default: Value | None = None,
) -> Result:
    if len(args) > 1 and default is not None:
        name = choose.__name__
        space.raise_error(
            TypeError, f"Cannot specify a default for {name}() with multiple positional arguments"
        )
    iterable = args[0].realize() if len(args) == 1 else TupleValue(list(args))
    if key is not None and not key.is_none():
        otherwise = TupleValue([] if default is None else [default])
        least = space.constant(choose is min)
        return call_polyfill(space, polyfills.extreme_by_key, [least, iterable, key, otherwise])
    items = (
        _any_order(space, iterable) if isinstance(iterable, SetValue) else iterable.items_now(space)
    )
    best, op = default, "<" if choose is min else ">"
    try:
        real = [python_of(item) for item in items or ()]
        if real:
            return items[choose(range(len(real)), key=real.__getitem__)]  # type: ignore[index]
    except NotConstantError:
        pass
    except TypeError as error:
        return space.raise_real(error)
    for number, item in enumerate(space.each(iterable) if items is None else items):
        if not (number and best) or space.truth(space.now(space.compare(op, item, best))):
            best = item
    if best is not None:
        return best
    return space.run_real(choose, ())


for _choose in (min, max):
    builtin(_choose, 1, -1, "key", "default")(
        lambda space, *args, _choose=_choose, **named: _extreme(space, _choose, args, **named)
    )


def _any_order(space: Space, value: Value) -> list[Value]:
    """All elements; of a set of plain constants in any order, as the result depends on none."""
    value = value.realize()
    if isinstance(value, SetValue):
        items = [value.values[key] for key in value.keys(space)]
        kinds = {item.python_type() for item in items}
        if len(kinds) <= 1 and kinds <= {int, str}:
            return items
    return list(elements(space, value))


@builtin(sorted, 1, 1, "key", "reverse")
def _sorted(
    space: Space, iterable: Value, key: Value | None = None, reverse: Value | None = None
) -> Result:
    plain = key is None or key.is_none()
    items = _any_order(space, iterable) if plain else list(elements(space, iterable))
    return sort_in_place(space, ListValue(items), key, reverse, new=True)


def sort_in_place(
    space: Space,
    target: ListValue,
    key: Value | None,
    reverse: Value | None,
    new: bool = False,
) -> Result:
    """``target.sort(key=key, reverse=reverse)``; gives the list itself when it is ``new``."""
    if reverse is None:
        backwards = space.constant(False)
    elif sorting_takes_any_truth():
        backwards = space.constant(space.truth(reverse))
    else:
        backwards = space.constant(index_of(space, reverse) != 0)
    if key is None or key.is_none():
        key = space.constant(None)
        items, real = list(target.items), _real_keys(target.items)
        if real is not None:
            order = list(range(len(real)))
            try:
                space.run_real(order.sort, key=real.__getitem__, reverse=space.truth(backwards))
            finally:
                target.items[:] = [items[i] for i in order]
                target.changed(space)
            return target if new else space.constant(None)
    function = polyfills.sort_new if new else polyfills.sort_list
    return call_polyfill(space, function, [target, key, backwards])


def _real_keys(keys: list[Value]) -> list[Any] | None:
    """The keys as Python objects, if they are constants."""
    try:
        return [python_of(key) for key in keys]
    except NotConstantError:
        return None


@lookaside(polyfills.sort_order)
def _sort_order(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """What the sorting polyfill asks: on an error, too, the positions get CPython's order."""
    positions, keys = args[0].realize(), args[1].realize()
    assert isinstance(positions, ListValue) and isinstance(keys, ListValue)
    order, reverse = list(range(len(keys.items))), space.truth(args[2])
    real = _real_keys(keys.items)
    try:
        if real is not None:
            space.run_real(order.sort, key=real.__getitem__, reverse=reverse)
        else:
            wanted: Any = [Element(space, key) for key in keys.items]
            order.sort(key=wanted.__getitem__, reverse=reverse)
    finally:
        positions.items[:] = [space.constant(i) for i in order]
        positions.changed(space)
    return space.constant(None)


# -- numbers ---------------------------------------------------------------------------------------


def _by_method(function: Any, name: str, most: int = 1, *keywords: str) -> None:
    """A function of numbers that asks a special method of other objects."""

    @folded(function, 1, most, *keywords)
    def handler(space: Space, number: Value, ndigits: Value | None = None) -> Result:
        method = space.special_method(number.realize(), name)
        if method is None:
            return space.run_real(function, stand_in(number.realize()))
        return space.call(method, [] if ndigits is None else [ndigits], {})


_by_method(abs, "__abs__")
_by_method(round, "__round__", 2, "ndigits", "number")


@folded(divmod, 2)
def _divmod(space: Space, left: Value, right: Value) -> Result:
    if is_tensor(left) or is_tensor(right):
        raise GraphBreak("FJ0111", "divmod() of a tensor")
    return space.division(left.realize(), right.realize())


@builtin(pow, 2, 3, "mod", "exp", "base")
def _pow(space: Space, base: Value, exp: Value, mod: Value | None = None) -> Result:
    if mod is None or mod.is_none():
        return space.binary("**", base, exp)
    return fold(space, pow, [base, exp, mod], {})


for _pure in (ord, chr, bin, oct, hex):
    folds(_pure)
