"""Functions of numbers that vary: what runs instead of the handlers of plain ones.

In: calls of builtins and of math with a `SymbolicValue` among the arguments. Out: a number that
varies, or the plain handler's result for the number as it is. Next room: interpreter.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import torch

from framejit.values.containers.folding import fold
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import LOOKASIDES, Handler, Result
from framejit.values.core.space import Space
from framejit.values.core.symbolic import (
    _EXACT,
    _FUNCTIONS,
    _ONLY_DERIVED,
    _TESTS,
    _derived,
    _int,
    _square_root,
    compute,
    plain,
)
from framejit.values.torch.read_numbers import choose_read, compute_read


def _is_symbolic(value: Value) -> bool:
    return value.realize().is_symbolic


def _varies(value: Value) -> bool:
    realized = value.realize()
    return realized.is_symbolic or realized.is_read


def _override(function: Any, symbolic: Any, low: int = 1, high: int = 1) -> None:
    """Calls of ``function`` on plain positional numbers become ``symbolic`` ones if they can."""
    before = LOOKASIDES.get(function)

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        if not kwargs and low <= len(args) <= high and any(map(_is_symbolic, args)):
            answer = compute(space, symbolic, [arg.realize() for arg in args])
            if answer is not None:
                return answer
        fixed = [plain(arg.realize()) if _is_symbolic(arg) else arg for arg in args]
        if before is not None:
            return before(space, fixed, kwargs)
        return fold(space, function, fixed, kwargs)

    LOOKASIDES[function] = handler


def _identity(number: Any) -> Any:
    return number


def _more_extreme(
    space: Space, known: Value, item: Value, function: Any, symbolic: Any, wins: Any
) -> Value | None:
    """The smaller or greater one: an int and a float are compared, as the result is one of them."""
    kinds = {known.python_type(), item.python_type()}
    if known.is_read or item.is_read:
        answer = compute_read(space, wins, [item, known])
        if answer is not None and kinds == {float}:
            return choose_read(space, answer, item, known)
        return None if answer is None else item if space.truth(answer) else known
    if kinds == {int} or type(known) is type(item) is ConstantValue:
        return compute(space, symbolic if kinds == {int} else function, [known, item])
    if kinds == {float}:
        return _derived(space, _EXACT[function], [known, item])
    answer = compute(space, wins, [item, known]) if kinds == {int, float} else None
    return None if answer is None else item if space.truth(answer) else known


def _extreme(function: Any, symbolic: Any, wins: Any) -> None:
    before = LOOKASIDES[function]

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        items = args
        if len(args) == 1 and not kwargs:
            given = args[0].realize()
            if isinstance(given, ListValue):
                items = given.items  # changes, perhaps, while elements are compared
            elif given.python_type() not in (set, frozenset):
                items = space.items(given)  # an iterator is used up by that
                args = [ListValue(items)]
        if kwargs or len(items) < 2 or not any(map(_varies, items)):
            return before(space, args, kwargs)
        answer: Value | None = items[0].realize()
        for item in items[1:]:
            if answer is not None:
                answer = _more_extreme(space, answer, item.realize(), function, symbolic, wins)
        if answer is None:
            return before(space, [plain(arg.realize()) for arg in items], kwargs)
        return answer

    LOOKASIDES[function] = handler


def _divmod(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) == 2 and any(map(_is_symbolic, args)):
        numbers = all(issubclass(arg.realize().python_type(), (int, float)) for arg in args)
        if numbers and space.truth(args[1]):  # it has a complaint of its own about zero
            return TupleValue([space.now(space.binary(op, args[0], args[1])) for op in ("//", "%")])
        args = [plain(arg.realize()) for arg in args]
    return _plain_divmod(space, args, kwargs)


_plain_divmod: Handler


def install() -> None:
    """Called last, when the other modules of the room have registered their functions."""
    global _plain_divmod
    table: tuple[tuple[Any, Any], ...] = (
        (int, _int), (float, torch.sym_float), (abs, abs), (operator.index, _identity),
        (math.floor, math.floor), (math.ceil, math.ceil), (math.trunc, torch.sym_int),
        (math.sqrt, _square_root), (torch.sym_int, torch.sym_int),
        (torch.sym_float, torch.sym_float), *_FUNCTIONS.items(),
        *[(function, function) for function in (*_ONLY_DERIVED, *_TESTS) if function is not round],
    )  # fmt: skip
    for function, symbolic in table:
        _override(function, symbolic)
    _override(round, round, 1, 2)
    for function in (torch.sym_max, torch.sym_min):
        _override(function, function, 2, 2)
    _extreme(min, torch.sym_min, operator.lt)
    _extreme(max, torch.sym_max, operator.gt)
    _plain_divmod = LOOKASIDES[divmod]
    LOOKASIDES[divmod] = _divmod
