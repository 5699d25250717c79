"""What generated functions call: small, fixed helpers that build and change Python objects.

In: parts. Out: objects, made with the builtin classes' own methods, never a user's override.
Next: codegen.emit.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from itertools import (  # type: ignore[attr-defined]
    _grouper,
    chain,
    dropwhile,
    groupby,
    islice,
    takewhile,
)
from operator import not_
from typing import Any
from warnings import warn_explicit

import torch

from framejit import native
from framejit.bytecode.assemble import with_location
from framejit.bytecode.model import Place, Positions
from framejit.graph.wrapping import make_wrapper
from framejit.native import DELETED
from framejit.values.core.ends import is_divided


def new_cell() -> types.CellType:
    """An empty closure cell."""
    return types.CellType()


def set_cell(cell: types.CellType, value: Any) -> None:
    """Fill a cell."""
    cell.cell_contents = value


def empty_cell(cell: types.CellType) -> None:
    """Empty a cell."""
    if _filled(cell):
        del cell.cell_contents


def _filled(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def assign_list(target: list[Any], items: list[Any]) -> None:
    """Replace a list's content."""
    list.__setitem__(target, slice(None), items)


def changed_set(made: set[Any], changes: tuple[tuple[Any, ...], ...]) -> set[Any]:
    """Call methods of a set, one after the other."""
    for method, *arguments in changes:
        method(made, *arguments)
    return made


def write_globals(namespace: dict[str, Any], name: str, value: Any) -> None:
    """Assign or delete a global."""
    if value is DELETED:
        namespace.pop(name, None)  # the program may have created it itself
    else:
        namespace[name] = value


def issue_warning(
    message: str | Warning, category: type[Warning], filename: str, line: int,
    namespace: dict[str, Any],
) -> None:  # fmt: skip
    """What ``warnings.warn`` does for a line of code with these globals."""
    registry = namespace.setdefault("__warningregistry__", {})
    module = namespace.get("__name__", "<string>")
    warn_explicit(message, category, filename, line, module, registry)


def new_function(
    code: types.CodeType,
    namespace: dict[str, Any],
    name: str,
    defaults: tuple[Any, ...] | None,
    kwdefaults: dict[str, Any] | None,
    closure: tuple[Any, ...] | None,
) -> types.FunctionType:
    """What MAKE_FUNCTION makes."""
    made = types.FunctionType(code, namespace, code.co_name, defaults, closure)
    made.__kwdefaults__ = kwdefaults
    made.__qualname__ = name
    return made


_set_context: Any = vars(BaseException)["__context__"].__set__


def new_exception(
    cls: type[BaseException],
    base: type[BaseException],
    trace: tuple[Place, ...],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *inits: tuple[tuple[Any, ...], dict[str, Any]],
) -> Any:
    """An exception instance as its class in C (``base``) makes it and, with each of ``inits``,
    initialises it; what its own classes do is done already.

    One that was raised while capturing gets a traceback of the user's lines (file, function, line
    and columns of each frame); CPython relies on an exception that is being handled having one.
    Its context is the error that is handled around this call, unless another is assigned later.
    """
    made = base.__new__(cls, *args, **kwargs)
    for arguments, keywords in inits:
        base.__init__(made, *arguments, **keywords)
    if trace and (handled := sys.exception()) is not None:
        _set_context(made, handled)
    return add_trace(made, trace)


def add_trace(error: BaseException, trace: tuple[Place, ...]) -> BaseException:
    """``error`` has passed these places of the user's, the outermost first."""
    for place in reversed(trace):
        located(error, place)
    return error


def located(error: BaseException, place: Place) -> BaseException:
    """``error`` with a place of the user's at the head of its traceback."""
    frame = _frame_in(*place)
    trace = types.TracebackType(error.__traceback__, frame, frame.f_lasti, place[2][0] or 0)
    return BaseException.with_traceback(error, trace)


def keep_in_traceback(error: BaseException, position: int, called: bool, *objects: Any) -> None:
    """A frame at this position in the traceback of ``error``, if there still is one, keeps the
    objects, and that which has ``called`` the compiled function: it has ended, so nobody asks for
    its trace function, and those who clear frames let go of it. A tuple lets go of its last item
    first."""
    at = error.__traceback__
    while at is not None and position:
        at, position = at.tb_next, position - 1
    if at is not None:
        caller = _caller() if called else at.tb_frame.f_back
        at.tb_frame.f_trace = (caller, *objects[::-1])  # type: ignore[assignment]


def _caller() -> types.FrameType | None:
    """The program's innermost running frame that will not go on in another one."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame and (
        is_divided(frame.f_code) or str(frame.f_globals.get("__name__")).startswith("framejit.")
    ):
        frame = frame.f_back
    return frame


def _frame_in(filename: str, name: str, positions: Positions) -> types.FrameType:
    """A frame that tracebacks show as the user's; it has no caller."""
    code = _nothing.__code__
    line = positions[0] or 0
    table = with_location(len(code.co_code) // 2, positions, line)
    code = code.replace(
        co_filename=filename, co_name=name, co_qualname=name, co_firstlineno=line,
        co_linetable=table,
    )  # fmt: skip
    frame: types.FrameType = types.FunctionType(code, {})().gi_frame
    return frame


def _nothing() -> Iterator[None]:
    yield


class Unexpected(Exception):
    """A truth value is not the one that was taken for granted (`Effects.expected`), or a cache
    holds something else (`Effects.expected_in_caches`)."""


def expect(condition: torch.Tensor, truth: bool) -> None:
    """Raise `Unexpected` unless the condition has this truth value."""
    if bool(condition) is not truth:
        raise Unexpected(f"a condition was {not truth}, which is an error of the program")


#: Where a value is looked for: its position among those given, ``~position`` for an object that is
#: known by its identity, or the name of a class of containers and the patterns of the parts.
Pattern = int | tuple[Any, ...]
_CONTAINERS = {kind.__name__: kind for kind in (tuple, list, dict, torch.Size)}


def expect_cached(
    function: Any, args: tuple[Any, ...], names: tuple[str, ...], typed: bool, pattern: Pattern,
    parts: tuple[Any, ...],
) -> None:  # fmt: skip
    """Raise `Unexpected` if a function under ``lru_cache`` holds for this call something other than
    what the pattern describes. ``names``: those of the last arguments."""
    count = len(args) - len(names)
    keywords = tuple(chain.from_iterable(zip(names, args[count:], strict=True)))
    types = tuple(map(type, args)) if typed else ()
    try:
        held = native.cached_result(function, args[:count], keywords, types)
    except LookupError:
        return
    if not _matches(held, pattern, parts):
        name = getattr(function, "__qualname__", "a function")
        raise Unexpected(f"the cache of {name}() holds something else than the function computes")


def _matches(held: Any, pattern: Pattern, parts: tuple[Any, ...]) -> bool:
    if isinstance(pattern, int):
        part = parts[max(pattern, ~pattern)]
        if pattern < 0:
            return held is part
        if type(held) is not type(part):
            return False
        return repr(held) == repr(part) if isinstance(part, float) else bool(held == part)
    kind, *patterns = pattern
    if type(held) is not _CONTAINERS[kind]:
        return False
    items = tuple(chain.from_iterable(held.items()) if type(held) is dict else held)
    return len(items) == len(patterns) and all(
        _matches(item, one, parts) for item, one in zip(items, patterns, strict=True)
    )


def advance(iterator: Iterator[Any], count: int) -> Iterator[Any]:
    """Skip ``count`` elements."""
    for _ in islice(iterator, count):
        pass
    return iterator


def iterator_at(iterator: Any, state: int) -> Any:
    """An iterator over a tuple at a position."""
    iterator.__setstate__(state)
    return iterator


class Given:
    """Gives an iterator of the program's to a class in C that asks for one: its own ``__iter__``
    has been called already."""

    __slots__ = ("iterator",)

    def __init__(self, iterator: Iterator[Any]) -> None:
        self.iterator = iterator

    def __iter__(self) -> Iterator[Any]:
        return self.iterator


def decided(kind: Any, predicate: Any, iterator: Iterator[Any]) -> Any:
    """An ``itertools.takewhile`` or ``dropwhile`` whose predicate has failed once."""
    made = kind(predicate, iterator)
    if hasattr(made, "__setstate__"):
        made.__setstate__(1)
        return made
    # It has forgotten its predicate: what fails for one more element is as good.
    made = kind(bool if kind is takewhile else not_, chain((kind is dropwhile,), iterator))
    next(made, None)
    return made


def started_groupby(
    iterator: Iterator[Any], function: Any, key: Any, target: Any, *value: Any
) -> Any:
    """An ``itertools.groupby`` that has read an element with this key, ``value`` unless its group
    has given it already."""
    made: Any = groupby(iterator, function)
    if value:
        made.__setstate__((key, value[0], target))
    else:
        made.__setstate__((key, None, key))
        next(_grouper(made, key))
    return made


def ended_by_index() -> Iterator[Any]:
    """An ended iterator over an object that has only ``__getitem__``."""
    made: Iterator[Any] = iter(ByIndex())  # type: ignore[call-overload]
    list(made)
    return made


class ByIndex:
    """It has only ``__getitem__``, and nothing in it."""

    def __getitem__(self, index: int) -> Any:
        raise IndexError


def set_position(iterator: Any, target: list[Any], position: int) -> None:
    """Put an iterator over a list at a position, which the list may be too short for."""
    length = list.__len__(target)
    list.extend(target, [None] * (position + 1 - length))
    iterator.__setstate__(position)
    list.__delitem__(target, slice(length, None))


def answer(thunk: Callable[[], Any], result: Any) -> Any:
    """Run ``thunk`` (a constructor's call of ``__init__``) and return ``result``, the object."""
    return new_object(thunk(), result)


def new_object(returned: Any, made: Any) -> Any:
    """What a constructor returns when its ``__init__`` has returned."""
    if returned is not None:
        raise TypeError(f"__init__() should return None, not {type(returned).__name__!r}")
    return made


def started_generator(function: Callable[..., Iterator[Any]], *state: Any) -> Iterator[Any]:
    """A generator that is suspended where ``function`` goes on."""
    made = function(*state)
    next(made)
    return made


def array(tensor: torch.Tensor) -> Any:
    """The ndarray on a tensor's memory."""
    return tensor.resolve_conj().resolve_neg().numpy()


def own_array(tensor: torch.Tensor) -> Any:
    """An array that owns its data, as numpy's new ones do, unless others hold the memory, too."""
    holders = torch._C._storage_Use_Count(tensor.untyped_storage()._cdata)  # type: ignore
    return array(tensor).copy(order="K") if holders == _ALONE else array(tensor)


#: The tensor, and the storage that was asked for.
_ALONE = 2


def scalar(tensor: torch.Tensor) -> Any:
    """What numpy gives in place of an array without dimensions."""
    return array(tensor)[()]


def random_state() -> tuple[Any, list[torch.Tensor] | None]:
    """The state of the default generators."""
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    return native.cpu_random_state(), cuda


def restore_random(state: tuple[Any, list[torch.Tensor] | None]) -> None:
    """Undo what was drawn since `random_state`."""
    native.restore_cpu_random_state(state[0])
    if state[1] is not None:
        torch.cuda.set_rng_state_all(state[1])


def new_leaf(tensor: torch.Tensor, cls: type, requires_grad: bool) -> torch.Tensor:
    """A leaf of autograd: the tensor itself, or a parameter with its elements."""
    if cls is torch.Tensor:
        return tensor.requires_grad_()
    return torch.Tensor._make_subclass(cls, tensor, requires_grad)


def leaf_of_parts(tensor: torch.Tensor, is_parameter: bool, requires_grad: bool) -> torch.Tensor:
    """A tensor made of tensors as a leaf of autograd, or marked as `torch.nn.Parameter` does it."""
    if requires_grad:
        with torch._C.DisableTorchFunctionSubclass():  # the class has been asked
            tensor.requires_grad_()
    if is_parameter:
        tensor._is_param = True  # type: ignore[attr-defined]
    return tensor


def as_subclass(tensor: torch.Tensor, cls: type) -> torch.Tensor:
    """``tensor.as_subclass(cls)`` of one without gradients."""
    return tensor.as_subclass(cls)


def with_class(tensor: torch.Tensor, cls: type) -> torch.Tensor:
    """``tensor``, which nobody else has, as an object of ``cls``: a new object would be no part of
    how other results were computed."""
    try:
        tensor.__class__ = cls  # type: ignore[assignment]
    except TypeError:  # its objects are laid out otherwise
        with torch.set_grad_enabled(tensor.requires_grad):
            return tensor.as_subclass(cls)
    return tensor


HELPERS: dict[str, Any] = {
    name: globals()[name]
    for name in (
        "changed_set", "new_cell", "set_cell", "empty_cell", "assign_list", "write_globals",
        "issue_warning", "new_function", "keep_in_traceback",
        "new_exception", "add_trace", "advance", "iterator_at", "set_position", "answer",
        "started_generator", "started_groupby", "decided", "ended_by_index", "random_state",
        "restore_random", "expect", "expect_cached", "new_leaf", "leaf_of_parts", "as_subclass",
        "with_class", "array", "own_array", "scalar",
    )
} | {"make_wrapper": make_wrapper} | {
    name: getattr(native, name)
    for name in ("DELETED", "new_object", "set_attributes", "with_hashes", "write_dict")
} | {"method": types.MethodType, "given": Given}  # fmt: skip
