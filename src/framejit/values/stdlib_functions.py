"""functools, math and copy: what runs instead when captured code calls their C functions.

In: calls with symbolic arguments, existing ``functools.partial`` and ``lru_cache`` objects. Out:
values, or frames of `polyfills`. What is written in Python in those modules is traced through.
Next: interpreter.
"""

from __future__ import annotations

import bisect
import collections
import copy
import functools
import heapq
import math
import re
import types
from collections import defaultdict
from typing import Any, NamedTuple

from framejit import native
from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values import polyfills
from framejit.values.base import Value
from framejit.values.builtin_functions import builtin, call_polyfill, folds
from framejit.values.classes import ClassValue
from framejit.values.constants import ConstantValue
from framejit.values.deques import DequeValue
from framejit.values.exceptions import ExceptionValue
from framejit.values.folding import fold
from framejit.values.functions import FunctionValue
from framejit.values.keys import key_of, pin, real_object
from framejit.values.mappings import DictValue, new_dict
from framejit.values.methods import Result
from framejit.values.namespaces import namespace_of, own_attribute, store_own
from framejit.values.objects import ObjectValue, instance_dict
from framejit.values.sequences import ListValue, SliceValue, TupleValue
from framejit.values.set_operands import copy_as
from framejit.values.sets import SetValue
from framejit.values.space import (
    CODE_LOOKASIDES,
    LOOKASIDES,
    Handler,
    Space,
    lookaside,
    wraps,
)
from framejit.values.tensors import TensorValue

# -- functools -------------------------------------------------------------------------------------


class PartialValue(Value):
    """``functools.partial(function, *args, **kwargs)``."""

    __slots__ = ("args", "function", "kwargs", "namespace", "obj")

    def __init__(
        self,
        function: Value,
        args: list[Value],
        kwargs: dict[str, Value],
        source: Source | None = None,
        obj: Any = None,
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.source = source
        self.obj = obj
        self.namespace: Any = None

    def python_type(self) -> type:
        return functools.partial

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        return space.call(self.function, [*self.args, *args], {**self.kwargs, **kwargs})

    def getattr(self, space: Space, name: str) -> Result:
        if name == "func":
            return self.function
        if name == "args":
            return TupleValue(list(self.args))
        if name == "keywords":
            return new_dict(space, self.kwargs)
        if name == "__dict__":
            return instance_dict(space, self)
        return own_attribute(space, self, name) or space.generic_getattr(self, name)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        if name in vars(functools.partial):
            raise GraphBreak("FJ0152", f"assigning {name} of a functools.partial")
        store_own(space, self, name, value)


@wraps(functools.partial)
def _wrap_partial(space: Space, source: Source, obj: functools.partial[Any]) -> Value:
    """An existing partial: its shape is guarded, its parts when they are looked at."""
    space.guard(source, "TYPE_MATCH", functools.partial)
    arguments, keywords = source.child("attr", "args"), source.child("attr", "keywords")
    space.guard(arguments, "LEN_MATCH", len(obj.args))
    space.guard(keywords, "DICT_KEYS", tuple(obj.keywords))
    value = PartialValue(
        space.load(source.child("attr", "func"), obj.func),
        [space.load(arguments.child("index", i), arg) for i, arg in enumerate(obj.args)],
        {k: space.load(keywords.child("item", k), v) for k, v in obj.keywords.items()},
        source,
        obj,
    )
    return space.remember(obj, value)


@lookaside(functools.partial)
def _partial(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    if not args:
        space.raise_error(TypeError, "type 'partial' takes at least one argument")
    function = args[0].realize()
    if isinstance(function, PartialValue):  # nested ones are flattened by CPython
        if not space.truth(instance_dict(space, function)):
            merged = {**function.kwargs, **kwargs}
            return PartialValue(function.function, [*function.args, *args[1:]], merged)
    if function.is_constant:
        space.raise_error(TypeError, "the first argument must be callable")
    return PartialValue(function, args[1:], dict(kwargs))


#: Entries of a package are being tried: what is not in a cache yet is put there.
FILLING: list[bool] = []


class _Cached(NamedTuple):
    """Looks up what a cached function holds for a call, which changes nothing in the cache."""

    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    types: tuple[type, ...]
    typed: bool

    def __call__(self, function: Any) -> Any:
        keywords = tuple([part for pair in self.kwargs for part in pair])
        types = self.types if self.typed else ()
        try:
            return native.cached_result(function, self.args, keywords, types)
        except LookupError:
            if not FILLING:
                raise
            return self.ask(function)

    def ask(self, function: Any) -> Any:
        """Call the function, which runs if the result is not there."""
        return function(*self.args, **dict(self.kwargs))

    def __repr__(self) -> str:
        """For messages: ``cached[3](global 'table')``."""
        named = [f"{name}={value!r}" for name, value in self.kwargs]
        return f"cached[{', '.join([*map(repr, self.args), *named])}]"


#: Calls that a capture made for the first time: generated code will make them, too.
_MADE_ALREADY: set[tuple[Any, _Cached]] = set()


def repeat_call(asked: _Cached, function: Any) -> None:
    """Make a call of a cached function that was looked up: it is counted, and its result becomes
    the newest one."""
    if _MADE_ALREADY and (function, asked) in _MADE_ALREADY:
        _MADE_ALREADY.discard((function, asked))
    else:
        asked.ask(function)


class CacheHit(Value):
    """A call of an existing cached function, to be made for real behind the graph."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.source = None

    def python_type(self) -> type:
        return object


class CachedFunctionValue(Value):
    """A function under ``functools.lru_cache``; ``function`` is set on one made while capturing.

    An existing one, called with constants and existing objects, is looked into now and, as a guard,
    before each later call. What it does not hold is computed now, if that is all its function does;
    else the call is a graph break, as with tensors and new objects, which the cache would keep.
    With numbers that vary it is traced through.
    """

    __slots__ = ("function", "hit", "known", "namespace", "obj", "options", "step")

    def __init__(
        self, obj: Any, source: Source | None, function: Value | None = None,
        options: dict[str, Value] | None = None, step: int = -1,
    ) -> None:  # fmt: skip
        self.obj = obj
        self.source = source
        self.function = function
        #: What the decorator was made with; None without one.
        self.options = options
        #: What it holds, oldest first; of an existing one, what was traced in this capture.
        self.known: dict[Any, Value] = {}
        #: Has it answered from its cache, which it is told behind the graph?
        self.hit = False
        self.namespace: Any = None
        self.step = step

    def python_type(self) -> type:
        return functools._lru_cache_wrapper

    def wrapped(self, space: Space) -> Value:
        """The function below the cache."""
        if self.function is not None:
            return self.function
        assert self.source is not None
        return space.load(self.source.child("attr", "__wrapped__"), self.obj.__wrapped__)

    def option(self, name: str, default: Any) -> Any:
        """``maxsize`` or ``typed``."""
        if self.function is None:
            if not hasattr(self.obj, "cache_parameters"):  # the decorator is not done with it
                raise self._break("is called before it is made")
            return self.obj.cache_parameters()[name]
        given = self.options.get(name) if self.options else None
        return default if given is None else given.realize().as_python()

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        size = self.option("maxsize", 128)
        if size is not None and size <= 0:
            raise self._break("counts its calls")
        if self.function is not None:
            return self._call_new(space, args, kwargs, size)
        values = [value.realize() for value in (*args, *kwargs.values())]
        reals = [
            value.as_python() if value.is_constant else real_object(value) for value in values
        ]
        if any(
            (real is None and not value.is_constant) or isinstance(value, TensorValue)
            for real, value in zip(reals, values, strict=True)
        ):
            if not all(value.is_constant or value.is_symbolic for value in values):
                raise self._break("keeps an argument that is no constant")
            return self._trace(space, args, kwargs)
        for value in values:
            if not value.is_constant:
                pin(space, value)
        named = tuple(zip(kwargs, reals[len(args) :], strict=True))
        typed = self.option("typed", False)
        asked = _Cached(tuple(reals[: len(args)]), named, tuple(map(type, reals)), typed)
        assert self.source is not None
        try:
            hash(asked)
            try:
                result = asked(self.obj)
                self.hit = True
            except LookupError:
                if space.is_pure is None:
                    return self._trace(space, args, kwargs)
                if self.hit and self.obj.cache_info().currsize == size:
                    raise self._break("makes room in its cache")  # in the order of its hits
                result = self._first_call(space, asked)
        except GraphBreak:
            raise
        except Exception as error:
            raise self._break("raised") from error
        repeat = space.constant(repeat_call)
        self._note(space, repeat, [ConstantValue(asked), self], {})
        return space.load(self.source.child("call", asked), result)

    def _break(self, what: str) -> GraphBreak:
        name = getattr(self.obj, "__qualname__", "a function")
        return GraphBreak("FJ0167", f"{name}() under functools.lru_cache {what}")

    def _first_call(self, space: Space, asked: _Cached) -> Any:
        """What the function computes for a call that its cache knows nothing of."""
        assert space.is_pure is not None
        if not space.is_pure(self.obj.__wrapped__, asked.args, dict(asked.kwargs)):
            assert self.source is not None
            space.guard(self.source.child("call", asked), "ABSENT")
            raise self._break("runs, and does more than compute")
        _MADE_ALREADY.add((self.obj, asked))
        return asked.ask(self.obj)

    def _trace(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        values = [value.realize() for value in (*args, *kwargs.values())]
        keys = [value if value.is_symbolic else key_of(space, value) for value in values]
        key = (*keys, *kwargs, *[value.python_type() for value in values])
        found = self.known.get(key)
        if found is None:
            before = space.effects.count, space.builder.draws_random
            found = self.known[key] = self._inside(space, args, kwargs)
            if before != (space.effects.count, space.builder.draws_random):
                raise self._break("runs, and does more than compute")
            if not _stays(found):
                raise self._break("answers an object that may change, for arguments that vary")
        if all(value.is_constant or value.is_symbolic for value in values):
            self._note(space, self, args, kwargs)
        return found

    def _inside(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """What the function computes. Calls of cached functions in it are not noted: the call that
        is made for real behind the graph makes them, too, if it is a miss."""
        is_pure, space.is_pure = space.is_pure, None
        try:
            return space.call_now(self.wrapped(space), args, kwargs)
        finally:
            space.is_pure = is_pure

    def _note(
        self, space: Space, function: Value, args: list[Value], kwargs: dict[str, Value]
    ) -> None:
        if space.is_pure is not None:
            space.changes += 1
            space.effects.note(CacheHit(function, args, kwargs))

    def _call_new(
        self, space: Space, args: list[Value], kwargs: dict[str, Value], size: int | None
    ) -> Value:
        values = [value.realize() for value in (*args, *kwargs.values())]
        kinds = tuple([value.python_type() for value in values])
        alone = kinds in ((int,), (str,)) and not kwargs
        shown = kinds if alone or self.option("typed", False) else ()
        key = tuple([key_of(space, value) for value in values]), tuple(kwargs), shown
        found = self.known.pop(key, None)
        if found is None:
            found = space.call_now(self.wrapped(space), args, kwargs)
            inner = self.known.pop(key, None)  # a call of itself was faster
            found = found if inner is None else inner
            if size is not None and len(self.known) >= size:
                del self.known[next(iter(self.known))]
        self.known[key] = found
        return found

    def getattr(self, space: Space, name: str) -> Result:
        if name in ("cache_clear", "cache_info", "cache_parameters"):
            raise GraphBreak("FJ0167", f"{name}() of a functools.lru_cache")
        own = own_attribute(space, self, name)
        if own is not None:
            return own
        if self.function is None:
            return space.generic_getattr(self, name)
        if name == "__dict__":
            raise GraphBreak("FJ0156", f"__dict__ of a new {self.describe()}")
        return self.function if name == "__wrapped__" else space.getattr(self.function, name)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        store_own(space, self, name, value)


@lookaside(functools.lru_cache)
def _lru_cache(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    """``lru_cache(function)``, or the decorator that ``lru_cache(maxsize, typed)`` gives."""
    if len(args) == 1 and not kwargs and not args[0].realize().is_constant:
        return CachedFunctionValue(None, None, args[0].realize(), None, space.step)
    options = dict(zip(("maxsize", "typed"), args, strict=False)) | kwargs
    for option in options.values():
        option.realize().as_python()
    return PartialValue(space.constant(_cached_with), [], options)


def _cached_with(function: Any, **options: Any) -> Any:
    """What a decorator made by ``lru_cache(...)`` does."""
    return functools.lru_cache(**options)(function)


@lookaside(_cached_with)
def _make_cached(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    return CachedFunctionValue(None, None, args[0].realize(), kwargs, space.step)


@wraps(functools._lru_cache_wrapper)
def _wrap_cached(space: Space, source: Source, obj: Any) -> Value:
    """An existing cached function, known by identity."""
    space.guard(source, "ID_MATCH", obj)
    return space.remember(obj, CachedFunctionValue(obj, source))


class _Dispatch(NamedTuple):
    """Asks the ``dispatch`` of a single-dispatch function for the implementation for a class."""

    cls: type

    def __call__(self, dispatch: Any) -> Any:
        return dispatch(self.cls)


def _dispatch(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    """``function.dispatch(cls)``: its cache and its registry are asked, and asked again later."""
    dispatch, cls = args[0].realize(), args[1].realize()
    if not isinstance(dispatch, FunctionValue) or not isinstance(cls, ClassValue):
        raise GraphBreak("FJ0167", "functools.singledispatch with something that is not a class")
    if cls.making is not None or dispatch.source is None:
        raise GraphBreak("FJ0167", "functools.singledispatch on a class made while capturing")
    found = dispatch.function(cls.cls)  # type: ignore[misc]
    return space.load(dispatch.source.child("call", _Dispatch(cls.cls)), found)


@lookaside(functools.singledispatch)
def _singledispatch(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    raise GraphBreak("FJ0167", "functools.singledispatch makes a function or gets a new case")


for _code in functools.singledispatch.__code__.co_consts:
    if isinstance(_code, types.CodeType) and _code.co_name == "dispatch":
        CODE_LOOKASIDES[id(_code)] = _dispatch
    elif isinstance(_code, types.CodeType) and _code.co_name == "register":
        CODE_LOOKASIDES[id(_code)] = _singledispatch


@lookaside(functools.reduce)
def _reduce(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
    if not 2 <= len(args) <= 3 or kwargs:
        raise GraphBreak("FJ0137", "functools.reduce() with arguments that do not fit")
    return call_polyfill(space, polyfills.reduce, args)


@builtin(collections._count_elements, 2)  # type: ignore[attr-defined]
def _count_elements(space: Space, mapping: Value, iterable: Value) -> Result:
    return call_polyfill(space, polyfills.count_elements, [mapping, iterable])


@builtin(functools.cmp_to_key, 1, 1, "mycmp")
def _cmp_to_key(space: Space, mycmp: Value) -> Result:
    return call_polyfill(space, polyfills.cmp_to_key, [mycmp])


# -- heapq and bisect ------------------------------------------------------------------------------


def _polyfilled(function: Any, replacement: Any, *more: bool) -> None:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Result:
        extra = [space.constant(flag) for flag in more]
        return call_polyfill(space, replacement, [*args, *extra], kwargs)

    LOOKASIDES[function] = handler


for _name in ("heapify", "heappush", "heappop", "heapreplace", "heappushpop"):
    _polyfilled(getattr(heapq, _name), getattr(polyfills, _name))
for _name in ("heapify", "heappop", "heapreplace"):
    _polyfilled(getattr(heapq, f"_{_name}_max"), getattr(polyfills, _name), True)
for _name in ("insort_left", "insort_right", "bisect_left", "bisect_right"):
    _polyfilled(getattr(bisect, _name), getattr(polyfills, _name))


# -- math ------------------------------------------------------------------------------------------


for _function in vars(math).values():
    if isinstance(_function, types.BuiltinFunctionType):
        folds(_function)


@builtin(math.prod, 1, 1, "start")
def _prod(space: Space, iterable: Value, start: Value | None = None) -> Value:
    total = space.constant(1) if start is None else start
    for item in space.items(iterable):
        total = space.now(space.binary("*", total, item))
    return total


@builtin(math.fsum, 1)
def _fsum(space: Space, iterable: Value) -> Value:
    return fold(space, math.fsum, [TupleValue(space.items(iterable))], {})


# -- copy ------------------------------------------------------------------------------------------


def _stays(value: Value) -> bool:
    """Is it as good as another one that was computed in the same way? A tensor is not: the cache
    holds one object, which the program may have changed."""
    value = value.realize()
    if type(value) is TupleValue:
        return all(map(_stays, value.items))
    return value.is_symbolic or _is_immutable(value)


def _is_immutable(value: Value) -> bool:
    """Values that copy and deepcopy hand back as they are: constants, functions, classes."""
    if value.is_constant or isinstance(value, CachedFunctionValue):
        return True
    kind = value.python_type()
    return issubclass(kind, type) or kind in (types.FunctionType, types.BuiltinFunctionType)


@builtin(copy.copy, 1, 1, "x")
def _copy(space: Space, x: Value) -> Result:
    value = x.realize()
    if _is_immutable(value) or isinstance(value, (TupleValue, SliceValue)):
        return value
    if isinstance(value, DequeValue):
        return value.do_copy(space)
    if isinstance(value, ListValue):
        return ListValue(list(value.items))
    if isinstance(value, DictValue):
        return value.fresh_copy(space)
    if isinstance(value, SetValue):
        return copy_as(space, value, value.cls)
    if isinstance(value, PartialValue):
        return PartialValue(value.function, list(value.args), dict(value.kwargs))
    cls = value.python_type()
    found = space.class_attribute(cls, "__copy__")
    if found is not None:
        return space.call_special(value, "__copy__", [], "cannot be copied")
    if not _copies_plainly(space, value, cls):
        raise GraphBreak("FJ0165", f"copy.copy() of a {value.describe()}")
    return call_polyfill(space, polyfills.copy_object, [value])


def _copies_plainly(space: Space, value: Value, cls: type) -> bool:
    """An ordinary instance whose ``__dict__`` is all its state."""
    if getattr(value, "attributes", None) is None or getattr(value, "container", None) is not None:
        return False
    for name in ("__reduce_ex__", "__reduce__", "__getstate__", "__new__"):
        found = space.class_attribute(cls, name)
        if found is None or found.owner is not object:
            return False
    for name in ("__setstate__", "__slots__", "__getnewargs__", "__getnewargs_ex__"):
        if space.class_attribute(cls, name) is not None:
            return False
    return True


@builtin(copy.deepcopy, 1, 2, "x", "memo")
def _deepcopy(space: Space, x: Value, memo: Value | None = None) -> Value:
    if memo is not None and not memo.is_none():
        raise GraphBreak("FJ0165", "copy.deepcopy() with a memo")
    return _deep(space, x.realize(), {})


def _deep(space: Space, value: Value, memo: dict[Value, Value]) -> Value:
    """A deep copy; ``memo`` keeps shared parts shared."""
    if _is_immutable(value):
        return value
    known = memo.get(value)
    if known is not None:
        return known
    if isinstance(value, TupleValue):
        items = [_deep(space, item.realize(), memo) for item in value.items]
        if all(new is old.realize() for new, old in zip(items, value.items, strict=True)):
            return value
        made: Value = TupleValue(items, None, value.cls)
        return memo.setdefault(value, made)
    if isinstance(value, ListValue):
        copied = DequeValue([], value.maxlen) if isinstance(value, DequeValue) else ListValue([])
        memo[value] = copied
        copied.items.extend(_deep(space, item.realize(), memo) for item in value.items)
        return copied
    if isinstance(value, DictValue) and value.cls is not types.MappingProxyType:
        return _deep_dict(space, value, memo)
    if isinstance(value, SetValue):
        plain = all(item.realize().is_constant for item in value.items)
        if plain:
            return memo.setdefault(value, copy_as(space, value, value.cls))
    if isinstance(value, PartialValue):
        return PartialValue(
            _deep(space, value.function.realize(), memo),
            [_deep(space, arg.realize(), memo) for arg in value.args],
            {name: _deep(space, arg.realize(), memo) for name, arg in value.kwargs.items()},
        )
    cls = value.python_type()
    if isinstance(value, ObjectValue) and not isinstance(value, ExceptionValue):
        own = space.class_attribute(cls, "__deepcopy__")
        if own is None and _copies_plainly(space, value, cls):
            return _deep_object(space, value, memo)
    raise GraphBreak("FJ0165", f"copy.deepcopy() of a {value.describe()}")


def _deep_object(space: Space, value: ObjectValue, memo: dict[Value, Value]) -> Value:
    made = memo[value] = ObjectValue(value.cls, step=space.step)
    namespace = namespace_of(space, value)
    if namespace is not None:
        for name, content in namespace.items.values():
            store_own(space, made, str(name.as_python()), _deep(space, content.realize(), memo))
    return made


def _deep_dict(space: Space, value: DictValue, memo: dict[Value, Value]) -> Value:
    made = DictValue({}, None, None, value.cls)
    if value.cls is defaultdict:
        made.default_factory = value.factory(space)
    memo[value] = made
    for key in value.keys_in_order(space):
        pair = value.lookup(space, key)
        assert pair is not None
        copied = _deep(space, pair[0].realize(), memo)
        made.store(space, key, copied, _deep(space, pair[1].realize(), memo))
    return made


# -- re ------------------------------------------------------------------------------------------


def _matching(function: Any) -> Handler:
    return lambda space, args, kwargs: fold(space, function, args, kwargs)


for _function in (re.findall, re.split, re.sub, re.subn, re.match, re.search, re.fullmatch):
    LOOKASIDES[_function] = _matching(_function)
