"""functools, math and copy: what runs instead when captured code calls their C functions.

In: calls with symbolic arguments, existing ``functools.partial`` objects. Out:
values, or frames of `polyfills`. What is written in Python in those modules is traced through.
Next: interpreter.
"""

from __future__ import annotations

import bisect
import collections
import copy
import copyreg
import functools
import heapq
import math
import os
import posixpath
import re
import types
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple, TypeGuard

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.deques import DequeValue
from framejit.values.containers.folding import fold, folds
from framejit.values.containers.live_dicts import namespace_of
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.containers.set_operands import copy_as
from framejit.values.containers.sets import SetValue
from framejit.values.containers.slices import SliceValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Kwargs, Raised, Value, is_user_class
from framejit.values.core.constants import ConstantValue
from framejit.values.core.methods import builtin, container_of, count_error, scalar_of
from framejit.values.core.namespaces import instance_dict, store_own
from framejit.values.core.registry import (
    CODE_LOOKASIDES,
    LOOKASIDES,
    Handler,
    Result,
    lookaside,
    refuses,
    wraps,
)
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue, new_instance
from framejit.values.objects.descriptors import ObjectMethodValue
from framejit.values.objects.functions import FunctionValue, call_polyfill
from framejit.values.objects.instances import ObjectValue
from framejit.values.objects.partials import PartialValue, refuse_placeholders

# -- functools -------------------------------------------------------------------------------------


@wraps(functools.partial)
def _wrap_partial(space: Space, source: Source, obj: functools.partial[Any]) -> Value:
    """An existing partial: its shape is guarded, its parts when they are looked at."""
    space.guard(source, "TYPE_MATCH", functools.partial)
    arguments, keywords = source.child("attr", "args"), source.child("attr", "keywords")
    space.guard(arguments, "LEN_MATCH", len(obj.args))
    space.guard(keywords, "DICT_KEYS", tuple(obj.keywords))
    function = space.load(source.child("attr", "func"), obj.func)
    args = [space.load(arguments.child("index", i), arg) for i, arg in enumerate(obj.args)]
    given = {k: space.load(keywords.child("item", k), v) for k, v in obj.keywords.items()}
    return space.remember(obj, PartialValue(function, args, given, source, obj, space))


@lookaside(functools.partial)
def _partial(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if not args:
        space.raise_error(TypeError, "type 'partial' takes at least one argument")
    function = args[0].realize()
    refuse_placeholders([*args[1:], *kwargs.values()])
    if isinstance(function, PartialValue):  # nested ones are flattened by CPython
        refuse_placeholders(function.args)
        if not space.truth(instance_dict(space, function)):
            merged = {**function.kwargs, **kwargs}
            return PartialValue(function.function, [*function.args, *args[1:]], merged)
    if space.class_attribute(function.python_type(), "__call__") is None:
        space.raise_error(TypeError, "the first argument must be callable")
    return PartialValue(function, args[1:], dict(kwargs))


class _Dispatch(NamedTuple):
    """Asks the ``dispatch`` of a single-dispatch function for the implementation for a class."""

    cls: type

    def __call__(self, dispatch: Any) -> Any:
        return dispatch(self.cls)


def _dispatch(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """``function.dispatch(cls)``: its cache and its registry are asked, and asked again later."""
    dispatch, cls = args[0].realize(), args[1].realize()
    if not isinstance(dispatch, FunctionValue) or not isinstance(cls, ClassValue):
        raise GraphBreak("FJ0167", "functools.singledispatch with something that is not a class")
    if cls.making is not None or dispatch.source is None:
        raise GraphBreak("FJ0167", "functools.singledispatch on a class made while capturing")
    found = dispatch.function(cls.cls)  # type: ignore[misc]
    return space.load(dispatch.source.child("call", _Dispatch(cls.cls)), found)


_NEW_CASE = "functools.singledispatch makes a function or gets a new case"
refuses("FJ0167", {functools.singledispatch: _NEW_CASE})
for _code in functools.singledispatch.__code__.co_consts:
    if isinstance(_code, types.CodeType) and _code.co_name == "dispatch":
        CODE_LOOKASIDES[id(_code)] = _dispatch
    elif isinstance(_code, types.CodeType) and _code.co_name == "register":
        CODE_LOOKASIDES[id(_code)] = LOOKASIDES[functools.singledispatch]


def _bind_dispatcher(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """The method is made anew: a cache would keep what it is made for by weak references."""
    return call_polyfill(space, polyfills.single_dispatch_method, args[1:])


_bound = functools.singledispatchmethod.__get__.__code__
if "_method_cache" in _bound.co_names:
    CODE_LOOKASIDES[id(_bound)] = _bind_dispatcher


@builtin(functools.reduce, 2, 3)
def _reduce(space: Space, function: Value, iterable: Value, *initial: Value) -> Result:
    try:
        iterator = space.iter(iterable)
    except Raised as error:
        if not error.is_a(TypeError):
            raise
        return space.raise_error(TypeError, "reduce() arg 2 must support iteration")
    return call_polyfill(space, polyfills.reduce, [function, iterator, *initial])


@builtin(collections._count_elements, 2)  # type: ignore[attr-defined]
def _count_elements(space: Space, mapping: Value, iterable: Value) -> Result:
    return call_polyfill(space, polyfills.count_elements, [mapping, iterable])


@builtin(functools.cmp_to_key, 1, 1, "mycmp")
def _cmp_to_key(space: Space, mycmp: Value) -> Result:
    return call_polyfill(space, polyfills.cmp_to_key, [mycmp])


# -- heapq and bisect ------------------------------------------------------------------------------


def _polyfilled(function: Any) -> None:
    replacement = getattr(polyfills, function.__name__)

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        return call_polyfill(space, replacement, args, kwargs)

    def of_heap(space: Space, args: Args, kwargs: Kwargs) -> Result:
        heap = container_of(args[0].realize(), ListValue) if args else None
        fits = len(args) == replacement.__code__.co_argcount and not kwargs
        if heap is None or heap.kind is not list or not fits:
            count_error(space, lambda: function, args, kwargs)
        elif not heap.items:  # which is an error of some
            space.run_real(function, [], *args[1:])
        if heap is not args[0].realize():  # no method of a subclass is asked, nor after a break
            return space.now(call_polyfill(space, replacement, [heap, *args[1:]]))
        return handler(space, args, kwargs)

    LOOKASIDES[function] = handler if function.__module__ == "_bisect" else of_heap


for _name in ("heapify", "heappop", "heapreplace"):
    _polyfilled(getattr(heapq, _name))
    _polyfilled(getattr(heapq, f"_{_name}_max"))
for _name in ("heappush", "heappushpop"):
    _polyfilled(getattr(heapq, _name))
for _name in ("insort_left", "insort_right", "bisect_left", "bisect_right"):
    _polyfilled(getattr(bisect, _name))


# -- math ------------------------------------------------------------------------------------------


for _function in vars(math).values():
    if isinstance(_function, types.BuiltinFunctionType):
        folds(_function)


folds(posixpath.normpath)


@builtin(os.fspath, 1, None, "path")
def _fspath(space: Space, path: Value) -> Value:
    if not issubclass(path.python_type(), (str, bytes)):
        raise GraphBreak("FJ0132", f"os.fspath() of a {path.describe()}")
    return path


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


def is_immutable(value: Value) -> bool:
    """Values that copy and deepcopy hand back as they are: constants, functions, classes."""
    kind = value.python_type()
    functions = types.FunctionType, types.BuiltinFunctionType, functools._lru_cache_wrapper
    return value.is_constant or issubclass(kind, type) or kind in functions


@builtin(copy.copy, 1, 1, "x")
def _copy(space: Space, x: Value) -> Result:
    value = x.realize()
    if is_immutable(value) or isinstance(value, (TupleValue, SliceValue)):
        return value
    if isinstance(value, DictValue):
        if value.cls is types.MappingProxyType:
            space.raise_error(TypeError, "cannot pickle 'mappingproxy' object")
        return value.fresh_copy(space)
    if isinstance(value, SetValue):
        return copy_as(space, value, value.cls)
    if not isinstance(value, ListValue):
        if space.class_attribute(value.python_type(), "__copy__") is not None:
            return space.call_special(value, "__copy__", [], "cannot be copied")
    return _copied(space, value, "copy.copy()", lambda part: part, {})


def _copied(
    space: Space, value: Value, what: str, part: Callable[[Value], Value], memo: dict[Value, Value]
) -> Value:
    """A copy that consists of what ``part`` makes of the parts; ``memo`` knows it before them."""
    cls = value.python_type()
    if isinstance(value, ListValue):
        copied = DequeValue([], value.maxlen) if isinstance(value, DequeValue) else ListValue([])
        memo[value] = copied
        copied.items.extend(map(part, value.items))
        return copied
    if _is_plain_partial(value):
        given = {name: part(arg) for name, arg in value.kwargs.items()}
        return PartialValue(part(value.function), list(map(part, value.args)), given)
    if not _copies_plainly(space, value, cls):
        raise GraphBreak("FJ0165", f"{what} of a {value.describe()}")
    made = memo[value] = new_instance(space, cls, [], {})
    namespace = namespace_of(space, value)
    pairs = () if namespace is None else namespace.items.values()
    state = [(str(name.as_python()), part(content)) for name, content in pairs]
    if state and _asks_for_itself(space, cls) and not _is_restored_plainly(space, made):
        raise GraphBreak("FJ0165", f"{what} of a {value.describe()}")
    for name, content in state:
        store_own(space, made, name, content)
    return made


def _asks_for_itself(space: Space, cls: type) -> bool:
    """Does Python code of the class's look up all attributes of its objects?"""
    found = space.class_attribute(cls, "__getattribute__")
    return found is not None and is_user_class(found.owner)


def _asked(space: Space, value: Value, name: str) -> Value | None:
    """An attribute of the object; None if it has none of this name."""
    try:
        return space.getattr_now(value, name).realize()
    except Raised as signal:
        if signal.is_a(AttributeError):
            return None
        raise


def _reduces_plainly(space: Space, value: Value) -> bool:
    """Are the methods that it is asked for when it is copied those that all objects have?"""
    for name in ("__reduce_ex__", "__reduce__", "__getstate__"):
        found = _asked(space, value, name)
        if type(found) is not ObjectMethodValue:
            return False
        if found.receiver is not value or found.name != name:
            return False
    return True


def _is_restored_plainly(space: Space, made: Value) -> bool:
    """Does a copy that is still empty show its own ``__dict__``, to be filled?"""
    if _asked(space, made, "__setstate__") is not None:
        return False
    return _asked(space, made, "__dict__") is namespace_of(space, made)


def _is_plain_partial(value: Value) -> TypeGuard[PartialValue]:
    """A partial without attributes of its own: a copy has the very ``__dict__`` of the original."""
    if not isinstance(value, PartialValue):
        return False
    return value.namespace is None and value.source is None


def _copies_plainly(space: Space, value: Value, cls: type) -> bool:
    """An ordinary instance whose ``__dict__`` is all its state."""
    if value.attributes is None or getattr(value, "container", None) is not None:
        return False
    if not _is_asked_plainly(space, value, cls):
        return False
    for name in ("__reduce_ex__", "__reduce__", "__getstate__", "__new__"):
        found = space.class_attribute(cls, name)
        if found is None or found.owner is not object:
            return False
    for name in ("__setstate__", "__slots__", "__getnewargs__", "__getnewargs_ex__"):
        if space.class_attribute(cls, name) is not None:
            return False
    registered = _reducer(cls)  # it can be another later
    space.guard(space.class_source(cls).child("call", _reducer), "ID_MATCH", registered)
    return registered is None


#: What is looked for in an object, rather than in its class, to copy it.
_OF_THE_OBJECT = frozenset(
    ("__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__class__",
     "__getnewargs__", "__getnewargs_ex__", "__dict__")
)  # fmt: skip


def _is_asked_plainly(space: Space, value: Value, cls: type) -> bool:
    """Are the methods that copy it, if any, those of its class?"""
    meta = type(cls)
    for owner, name in ((cls, "__getattr__"), (meta, "__getattr__"), (meta, "__copy__")):
        if space.class_attribute(owner, name) is not None:
            return False
    if _asks_for_itself(space, cls) and not _reduces_plainly(space, value):
        return False
    namespace = namespace_of(space, value)
    return namespace is None or _OF_THE_OBJECT.isdisjoint(
        str(key.as_python()) for key, _ in namespace.items.values()
    )


def _reducer(cls: type) -> Any:
    return copyreg.dispatch_table.get(cls)


@builtin(copy.deepcopy, 1, 2, "x", "memo")
def _deepcopy(space: Space, x: Value, memo: Value | None = None) -> Value:
    if memo is not None and not memo.is_none():
        raise GraphBreak("FJ0165", "copy.deepcopy() with a memo")
    return _deep(space, x.realize(), {})


def _deep(space: Space, value: Value, memo: dict[Value, Value]) -> Value:
    """A deep copy; ``memo`` keeps shared parts shared."""
    if is_immutable(value):
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
    if isinstance(value, DictValue) and value.cls is not types.MappingProxyType:
        return _deep_dict(space, value, memo)
    if isinstance(value, SetValue) and all(item.realize().is_constant for item in value.items):
        return memo.setdefault(value, copy_as(space, value, value.cls))
    what = "copy.deepcopy()"
    if isinstance(value, ObjectValue):
        if space.class_attribute(value.cls, "__deepcopy__") is not None:
            raise GraphBreak("FJ0165", f"{what} of a {value.describe()}")
        if _asks_for_itself(space, value.cls) and _asked(space, value, "__deepcopy__") is not None:
            raise GraphBreak("FJ0165", f"{what} of a {value.describe()}")
    return _copied(space, value, what, lambda part: _deep(space, part.realize(), memo), memo)


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
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        finds = function in (re.match, re.search, re.fullmatch)
        given = [args[0], _searched(args[1]), *args[2:]] if finds and len(args) > 1 else args
        return fold(space, function, given, kwargs)

    return handler


def _searched(value: Value) -> Value:
    """A text of a subclass is searched without running code of its class; the match has it."""
    known = value.realize()
    text = known.obj if scalar_of(known) is not None and known.source is not None else None
    return ConstantValue(text, known.source) if isinstance(text, str) else value


for _function in (re.findall, re.split, re.sub, re.subn, re.match, re.search, re.fullmatch):
    LOOKASIDES[_function] = _matching(_function)
