"""Calls under ``functools.cache`` and ``lru_cache``: what the caches hold, and what they will.

In: cached functions that exist or that the program makes, and calls of them. Out: the results, as
guards on what the caches hold; the calls, made for real after the graph.
Next: codegen.effects.
"""

from __future__ import annotations

import dataclasses
import functools
from itertools import repeat
from typing import Any, ClassVar, NamedTuple

from framejit import native
from framejit.exc import GraphBreak
from framejit.graph import instalments
from framejit.source import Source
from framejit.values.containers.sequences import ListValue, TupleValue
from framejit.values.core.base import Args, Declared, Kwargs, Raised, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.effects import Effects
from framejit.values.core.keys import key_of, pin, real_object
from framejit.values.core.namespaces import own_attribute, store_own
from framejit.values.core.registry import CODE_LOOKASIDES, Result, by_identity, lookaside, wraps
from framejit.values.core.space import Space
from framejit.values.objects.functions import FunctionValue, function_value
from framejit.values.stdlib.varying_calls import (
    CacheHit,
    VaryingCall,
    can_be_checked,
    containers_in,
    described,
    has_changed,
    is_fixed,
    key_within,
    may_be_key,
    now,
    numbers_in,
    pin_objects,
    varies,
)
from framejit.values.torch.tensors import TensorValue

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

    def is_held(self, function: Any) -> bool:
        """Does the cache hold the result?"""
        try:
            self(function)
        except LookupError:
            return False
        return True

    def ask(self, function: Any) -> Any:
        """Call the function, which runs if the result is not there."""
        return function(*self.args, **dict(self.kwargs))

    def __repr__(self) -> str:
        """For messages: ``cached[3](global 'table')``."""
        named = [f"{name}={value!r}" for name, value in self.kwargs]
        return f"cached[{', '.join([*map(repr, self.args), *named])}]"


#: Calls that were made for an entry's guards, by identity: its first run leaves them out.
_MADE_ALREADY: dict[int, _Cached] = {}
#: Calls that captures have made, since only the real one knows the new object that it gives, and
#: that the program has not come to yet. Captures may start again, or end before.
_AHEAD: list[tuple[_Cached, Any]] = []


def _make_ahead(asked: _Cached, function: Any) -> Any:
    _AHEAD[:] = [(one, other) for one, other in _AHEAD if one.is_held(other)]
    _AHEAD.append((asked, function))
    return asked.ask(function)


def _is_ahead(asked: _Cached, function: Any) -> bool:
    """Has a capture made this call of the program, which comes to it now?"""
    for position, (one, other) in enumerate(_AHEAD):
        if other is function and one == asked:
            del _AHEAD[position]
            return True
    return False


@dataclasses.dataclass(slots=True, frozen=True)
class FirstCalls:
    """The calls of cached functions that a capture noted, in order. ``missed``: a cache did not
    hold one of them, so that they are made before the guards hold."""

    noted: list[tuple[_Cached, Any]]
    missed: bool

    def make(self, before: FirstCalls | None) -> None:
        """Make them; the entry will not make them again. ``before``: those of a capture of the same
        call that came to nothing after they were made."""
        made = before is not None and before.missed
        for asked, _ in before.noted if before is not None else ():
            _MADE_ALREADY.pop(id(asked), None)
        for asked, function in self.noted if made or self.missed else ():
            if not made and not _is_ahead(asked, function):
                asked.ask(function)
            _MADE_ALREADY[id(asked)] = asked


def first_calls(effects: Effects) -> FirstCalls:
    """What a capture noted of calls of existing cached functions."""
    noted = _noted(effects)
    return FirstCalls(noted, bool(effects.first_calls) or any(pair in _AHEAD for pair in noted))


def _noted(effects: Effects) -> list[tuple[_Cached, Any]]:
    return [
        (value.args[0].as_python(), value.args[1].obj)  # type: ignore[attr-defined]
        for value in effects.changed
        if isinstance(value, CacheHit) and not isinstance(value.function, CachedFunctionValue)
    ]


def repeat_call(asked: _Cached, function: Any) -> None:
    """Make a call of a cached function that was looked up: it is counted, and its result becomes
    the newest one."""
    if not _MADE_ALREADY or _MADE_ALREADY.pop(id(asked), None) is None:
        asked.ask(function)


class CachedFunctionValue(Declared):
    """A function under ``functools.lru_cache``; ``function`` is set on one made while capturing.

    An existing one, called with constants and existing objects, is looked into now and, as a guard,
    before each later call. What it does not hold is computed beside it, if that is all its function
    does and there is room for it, and put there when the capture has come to its end; a new object
    is made by the real call at once, since the program sees which one it is. Else the call is a
    graph break, as with tensors and new objects as arguments, which the cache would keep. With
    numbers that vary it is traced through if its results cannot be stale.
    """

    obj: Any
    source: Source | None
    function: Value | None = None
    #: What the decorator was made with; None without one.
    options: dict[str, Value] | None = None
    step: int = -1
    #: What it holds, oldest first; of an existing one, what was traced in this capture.
    known: dict[Any, Value] = {}
    #: Results of the calls that will be its first ones.
    first: dict[_Cached, Any] = {}
    #: Of one made while capturing: does it hold or count something?
    called: bool = False
    namespace: Any = None
    kind = functools._lru_cache_wrapper
    #: Were calls of it captured whose arguments vary, and what classes had arguments that may be
    #: equal?
    varies: bool = False
    classes: dict[Any, Any] = {}
    #: The cached functions that were traced through since it was emptied.
    traced: ClassVar[list[Any]] = []

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

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        size = self.option("maxsize", 128)
        if size is not None and size <= 0:
            raise self._break("counts its calls")
        if self.function is not None:
            return self._call_new(space, args, kwargs, size)
        values = [value.realize() for value in (*args, *kwargs.values())]
        reals = [value.as_python() if value.is_constant else real_object(value) for value in values]
        if self.varies or not space.task.trusts_caches or any(
            (real is None and not value.is_constant) or isinstance(value, TensorValue)
            or varies(value) for real, value in zip(reals, values, strict=True)
        ):  # fmt: skip
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
            except LookupError:
                if space.compute is None:
                    return self._trace(space, args, kwargs)
                if asked not in self.first:
                    self.first[asked] = self._first_call(space, asked)
                result = self.first[asked]
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
        assert space.compute is not None and self.source is not None
        effects, arguments = space.effects, (asked.args, dict(asked.kwargs))
        self.traced.clear()
        made = space.compute(self.obj.__wrapped__, *arguments, True)
        changed = made is not None and has_changed(space, made.space)
        found = None if made is None or changed else made.value  # it sees what is there
        missed = [*effects.first_calls, self.obj, *self.traced]
        known = found is not None and not any(map(_overflows, missed, repeat(missed)))
        if found is not None and known and found.is_constant:
            result = found.as_python()
        elif found is not None and known and not self.traced and _is_data(found):
            result = self.obj.__wrapped__(*arguments[0], **arguments[1])
        elif found is not None and known and instalments.going_on() is None:
            # The program gets the one that the cache holds.
            ahead = list(_AHEAD)
            for pair in _noted(effects):  # caches know the order of their calls
                if pair in ahead:
                    ahead.remove(pair)
                else:
                    _make_ahead(*pair)
            return _make_ahead(asked, self.obj)
        else:
            space.task.may_happen_first(f"{self.obj.__qualname__}() is called, which is cached")
            if effects.first_calls.count(self.obj) == len(self.first):  # else one may make this
                space.guard(self.source.child("call", asked), "ABSENT")
            after = "runs for the first time after the program has changed something"
            raise self._break(after if changed else "runs, and does more than compute")
        effects.first_calls[:] = missed
        return result

    def _trace(self, space: Space, args: Args, kwargs: Kwargs) -> Value:
        """Inline the call. What the cache holds for it, if anything, is checked in each run."""
        values = [value.realize() for value in (*args, *kwargs.values())]
        if not all(map(may_be_key, values)):
            raise self._break("keeps an argument that is no constant")
        checked = space.task.compute is not None
        if checked and not space.task.may_expect:
            raise self._break("may hold something else, for arguments that vary")
        forms = [described(value) for value in values]
        form, classes = (*kwargs, *[one for one, _ in forms]), [other for _, other in forms]
        if self.classes.setdefault(form, classes) != classes:
            raise self._break("may hold what it computed for equal arguments of other classes")
        for value in values:
            pin_objects(space, value)
        key = (*kwargs, *[key_within(space, value) for value in values])
        found = self.known.get(key)
        self.varies = True
        if found is None:
            found = self.known[key] = self._computed(space, args, kwargs, checked)
        if checked:
            self._hold(space, VaryingCall(self, args, kwargs, found, False), key)
        return found

    def _computed(self, space: Space, args: Args, kwargs: Kwargs, checked: bool) -> Value:
        """What the function computes for arguments that vary."""
        self.traced.append(self.obj)
        if space.compute is not None:  # of the calls in it, this says everything, too
            named = {name: now(value) for name, value in kwargs.items()}
            made = space.compute(self.obj.__wrapped__, tuple(map(now, args)), named, False)
            if made is None:
                raise self._break("runs, and does more than compute")
            if has_changed(space, made.space):
                raise self._break("runs after the program has changed what it may read")
        builder, effects = space.builder, space.effects
        before = effects.count, builder.draws_random, len(builder.sequence)
        numbers = [one for value in (*args, *kwargs.values()) for one in numbers_in(value)]
        found = self._inside(space, args, kwargs)
        if any(map(is_fixed, numbers)) and not space.task.whole:  # for each number a graph
            raise self._break("does not compute with a number that varies, but looks at it")
        if before != (effects.count, builder.draws_random, len(builder.sequence)):
            raise self._break("runs, and does more than compute")
        given = [part for value in (*args, *kwargs.values()) for part in containers_in(value)]
        if not can_be_checked(found) or any(part in given for part in containers_in(found)):
            raise self._break("returns an object that may change, for arguments that vary")
        if checked:
            call = VaryingCall(self, args, kwargs, found, self.option("typed", False))
            effects.expect_in_cache(call)
        return found

    def _hold(self, space: Space, call: VaryingCall, key: Any) -> None:
        """The parts of the result are the cache's. A call in another one is not made for real: if
        that is a miss, it makes it, too."""
        owner = None if space.compute is None else (self.obj, key)
        held = space.effects.held_by_caches
        for part in containers_in(call.result):
            known = held.get(part)
            if known is not None and owner is not None and known != owner:
                raise self._break("returns what another cached function returns")
            held[part] = owner if known is None else known
        if owner is not None:
            space.effects.note(call)

    def _inside(self, space: Space, args: Args, kwargs: Kwargs) -> Value:
        """What the function computes. Calls of cached functions in it are not noted: the call that
        is made for real after the graph makes them, too, if it is a miss."""
        compute, space.compute = space.compute, None
        try:
            return space.call_now(self.wrapped(space), args, kwargs)
        except Raised:
            raise self._break("raised") from None
        finally:
            space.compute = compute

    def _note(self, space: Space, function: Value, args: Args, kwargs: Kwargs) -> None:
        if space.compute is not None:
            space.effects.note(CacheHit(function, args, kwargs))

    def _call_new(self, space: Space, args: Args, kwargs: Kwargs, size: int | None) -> Value:
        self.called = True
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
        if name == "__dict__" and self.function is not None:
            raise GraphBreak("FJ0156", f"__dict__ of a new {self.describe()}")
        own = None if name == "__dict__" else own_attribute(space, self, name)
        if own is not None:
            return own
        if self.function is None:
            return space.generic_getattr(self, name)
        if name == "__wrapped__":
            return self.function
        known = name in functools.WRAPPER_ASSIGNMENTS
        return space.getattr(self.function, name) if known else space.generic_getattr(self, name)

    def setattr(self, space: Space, name: str, value: Value) -> None:
        store_own(space, self, name, value)


def _overflows(function: Any, missed: list[Any]) -> bool:
    """Has the cache of this function no room for so many calls that it does not hold yet?"""
    info = function.cache_info()
    return info.maxsize is not None and info.currsize + missed.count(function) > info.maxsize


@lookaside(functools.lru_cache)
def _lru_cache(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """``lru_cache(function)``, or the decorator that ``lru_cache(maxsize, typed)`` gives."""
    first = args[0].realize() if len(args) == 1 and not kwargs else None
    if first is not None and space.class_attribute(first.python_type(), "__call__") is not None:
        return _new_cached(space, first, None)
    made = function_value(space, functools.lru_cache)
    assert isinstance(made, FunctionValue)
    return made.inline(space, args, kwargs)


def _make_cached(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """What a decorator made by ``lru_cache(maxsize, typed)`` does."""
    made, *functions = args
    assert isinstance(made, FunctionValue)
    if len(functions) != 1 or kwargs:
        return made.complain(space, functions, kwargs)
    options = {}
    for name, cell in zip(made.code.co_freevars, made.cells(space), strict=True):
        assert cell.contents is not None
        cell.contents.realize().as_python()
        options[name] = cell.contents
    return _new_cached(space, functions[0].realize(), options)


def _new_cached(space: Space, function: Value, options: dict[str, Value] | None) -> Value:
    if space.class_attribute(function.python_type(), "__call__") is None:
        space.raise_error(TypeError, "the first argument must be callable")
    own = space.getattr_now(function, "__dict__") if isinstance(function, FunctionValue) else None
    if own is not None and space.truth(own):
        raise GraphBreak("FJ0167", "functools.lru_cache copies the attributes of its function")
    return CachedFunctionValue(None, None, function, options, space.step)


CODE_LOOKASIDES[id(functools.lru_cache().__code__)] = _make_cached


wraps(functools._lru_cache_wrapper)(by_identity(CachedFunctionValue))


def _is_data(value: Value) -> bool:
    """Is it known by what it is like, not by its identity?"""
    value = value.realize()
    if type(value) in (TupleValue, ListValue):
        return all(map(_is_data, value.items))  # type: ignore[attr-defined]
    return value.is_constant or type(value) is TensorValue
