"""Functions, methods, closures' cells and C functions.

In: function objects with their sources, or code and cells put together by the program. Out: a call
becomes a `CallRequest` (the interpreter inlines the frame), a graph node (torch functions), a
lookaside's result, or a graph break. Next room: interpreter.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

from torch._ops import OpOverload, OpOverloadPacket

from framejit.exc import GraphBreak
from framejit.source import Source
from framejit.values.containers.live_dicts import namespace_of
from framejit.values.containers.mappings import DictValue
from framejit.values.containers.sequences import TupleValue
from framejit.values.core import complaints, inline_policy
from framejit.values.core.base import Args, CallRequest, Declared, Kwargs, Value
from framejit.values.core.constants import ConstantValue, constant_value, fold
from framejit.values.core.knowledge import Way, known_once
from framejit.values.core.methods import builtin, check_bound, check_found
from framejit.values.core.namespaces import codes, own_attribute, own_globals, store_own
from framejit.values.core.registry import Result, wraps
from framejit.values.core.space import Space
from framejit.values.objects.cells import CellValue
from framejit.values.objects.generators import GeneratorValue

_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_CODE_ATTRIBUTES = ("__name__", "__qualname__", "__module__", "__doc__")
#: What C fields of functions hold; everything else is in their ``__dict__``.
_FIELDS = frozenset(
    name for cls in types.FunctionType.__mro__ for name, raw in vars(cls).items()
    if type(raw) in (types.MemberDescriptorType, types.GetSetDescriptorType)
)  # fmt: skip


#: What a function made here gets from ``MAKE_FUNCTION``.
_MADE_OF = {"__defaults__": "defaults", "__kwdefaults__": "kwdefaults", "__closure__": "cell_tuple"}
#: What else can be assigned, and what it must be.
_ASSIGNED: dict[str, Any] = {
    "__name__": str, "__qualname__": str, "__doc__": object, "__module__": object,
    "__annotations__": dict, "__annotate__": (Callable, types.NoneType), "__type_params__": tuple,
}  # fmt: skip
#: What of an existing function is read with a guard.
_READ = (*_CODE_ATTRIBUTES, *_MADE_OF, "__annotations__",
         *_FIELDS & {"__type_params__", "__annotate__"})  # fmt: skip


def _docstring(code: types.CodeType) -> str | None:
    cells = tuple([types.CellType() for _ in code.co_freevars])
    return types.FunctionType(code, {}, closure=cells or None).__doc__


class FunctionValue(Declared):
    """A Python function: an existing one (``function``) or one made by the captured program."""

    code: types.CodeType
    globals: dict[str, Any]
    name: str = ""
    defaults: Value | None = None
    kwdefaults: Value | None = None
    #: The ``__closure__`` of one made here, and its cells.
    cell_tuple: Value | None = None
    closure: list[CellValue] | None = None
    function: Any = None
    source: Source | None = None
    obj: Any = None
    #: What the program assigned to its fields; the rest is in ``namespace``.
    attributes: dict[str, Value] = {}
    namespace: Any = None
    mutated: bool = False
    kind = types.FunctionType

    def __post_init__(self) -> None:
        self.name = self.name or self.code.co_qualname
        self.obj = self.function

    def describe(self) -> str:
        return f"function {self.name}"

    # -- calling -----------------------------------------------------------------------------------

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        way, detail = known_once(space, self.function, self.code, self.globals)
        if way is Way.TRACED or (
            way in (Way.NODE, Way.REPLACED) and space.is_handed_on(self.globals, args, kwargs)
        ):
            return self.inline(space, args, kwargs)
        if way is Way.REPLACED:
            return detail(space, args, kwargs)
        if way is Way.NODE:
            return space.call_in_graph(self.function, args, kwargs, self)
        if way is Way.REPLACED_CODE:
            return detail(space, [self, *args], kwargs)
        if way is Way.MARKED:
            return self._call_marked(space, detail, args, kwargs)
        if way is Way.UNWRAPPED:
            cell, reason = detail
            wrapped = self.cells(space)[cell].contents
            inner = getattr(wrapped.realize(), "function", None) if wrapped is not None else None
            kept_out = reason == inline_policy.KEPT_OUT and not inline_policy.is_uncovered(inner)
            if wrapped is not None and not kept_out:
                return space.call(wrapped, args, kwargs)
            detail = inline_policy.KEPT_OUT if wrapped is not None else reason
        raise GraphBreak("FJ0131", f"calling {self.name}(): {detail}")

    def _call_marked(self, space: Space, mark: str, args: Args, kwargs: Kwargs) -> Result:
        hidden = self.function.__dict__.get("_torchdynamo_orig_callable")
        if hidden is not None and inline_policy.is_uncovered(hidden):
            original = space.now(self.getattr(space, "_torchdynamo_orig_callable"))
            return space.call(original, args, kwargs)
        return _call_marked(space, self, mark, args, kwargs)

    def inline(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        """Bind the arguments and ask for a frame, whatever the policy says."""
        slots = self.bind(space, args, kwargs)
        if self.code.co_flags & _SUSPENDS:
            if self.code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
                raise GraphBreak("FJ0138", f"calling the coroutine function {self.name}()")
            return GeneratorValue(CallRequest(self, slots), space.step)
        return CallRequest(self, slots)

    def bind(self, space: Space, args: Args, kwargs: Kwargs) -> list[Value | None]:
        """Arguments to slots, in localsplus order; the closure's cells follow."""
        code = self.code
        count, total = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames
        slots: list[Value | None] = [None] * (
            code.co_nlocals + sum(c not in names for c in code.co_cellvars) + len(code.co_freevars)
        )
        if len(args) > count:
            if not code.co_flags & inspect.CO_VARARGS:
                return self.complain(space, args, kwargs)
            slots[:count] = args[:count]
        else:
            slots[: len(args)] = args
        position = total
        if code.co_flags & inspect.CO_VARARGS:
            slots[position] = TupleValue(list(args[count:]))
            position += 1
        extra: dict[str, Value] = {}
        for name, value in kwargs.items():
            try:
                index = names.index(name, code.co_posonlyargcount, total)
            except ValueError:
                extra[name] = value
                continue
            if slots[index] is not None:
                return self.complain(space, args, kwargs)
            slots[index] = value
        if code.co_flags & inspect.CO_VARKEYWORDS:
            pairs: dict[Any, tuple[Value, Value]]
            pairs = {k: (ConstantValue(k), v) for k, v in extra.items()}
            slots[position] = DictValue(pairs)
        elif extra:
            return self.complain(space, args, kwargs)
        if None in slots[:total] and not self._fill_defaults(space, slots, count, total):
            return self.complain(space, args, kwargs)
        closure = self.cells(space)
        if closure:
            slots[len(slots) - len(closure) :] = closure
        return slots

    def _fill_defaults(
        self, space: Space, slots: list[Value | None], count: int, total: int
    ) -> bool:
        missing = [i for i in range(count) if slots[i] is None]
        if missing:
            values = self.default_values(space)
            first = count - len(values)
            for i in missing:
                if i < first:
                    return False
                slots[i] = values[i - first]
        for i in range(count, total):
            if slots[i] is None:
                name = self.code.co_varnames[i]
                value = self.keyword_default(space, name)
                if value is None:
                    return False
                slots[i] = value
        return True

    def complain(self, space: Space, args: Args, kwargs: Kwargs) -> Any:
        """The arguments do not fit: raise what CPython says when as many are bound to a function
        with the same parameters."""
        code, flags = self.code, inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
        total = code.co_argcount + code.co_kwonlyargcount
        count = total + (code.co_flags & flags).bit_count()
        empty = _nothing.__code__
        parameters = empty.replace(
            co_argcount=code.co_argcount, co_posonlyargcount=code.co_posonlyargcount,
            co_kwonlyargcount=code.co_kwonlyargcount, co_varnames=code.co_varnames[:count],
            co_nlocals=count, co_flags=empty.co_flags | code.co_flags & flags,
        )  # fmt: skip
        defaults = (None,) * len(self.default_values(space))
        function = types.FunctionType(parameters, {}, code.co_name, defaults)
        function.__qualname__ = self.name
        names = code.co_varnames[code.co_argcount : total]
        function.__kwdefaults__ = {
            name: None for name in names if self.keyword_default(space, name) is not None
        }
        space.run_real(function, *[None] * len(args), **dict.fromkeys(kwargs))
        raise GraphBreak("FJ0137", f"the arguments of {self.name}() do not fit")

    def default_values(self, space: Space) -> list[Value]:
        """The values of ``__defaults__``; guarded in number, lazy in content."""
        if self.defaults is None and self.function is not None:
            defaults = self.function.__defaults__
            assert self.source is not None
            self.defaults = space.load(self.source.child("attr", "__defaults__"), defaults)
        if self.defaults is None:
            return []
        value = self.defaults.realize()
        if value.is_none():
            return []
        return space.items(value)

    def keyword_default(self, space: Space, name: str) -> Value | None:
        """The default of a keyword-only parameter, if it has one."""
        if self.kwdefaults is None and self.function is not None:
            assert self.source is not None
            self.kwdefaults = space.load(
                self.source.child("attr", "__kwdefaults__"), self.function.__kwdefaults__
            )
        if self.kwdefaults is None:
            return None
        value = self.kwdefaults.realize()
        key = ConstantValue(name)
        if value.is_none() or not space.contains(value, key):
            return None
        return space.now(space.getitem(value, key))

    def cells(self, space: Space) -> list[CellValue]:
        """The closure's cells."""
        if self.closure is None:
            self.closure = []
            if self.function is not None and self.function.__closure__:
                assert self.source is not None
                closure = self.source.child("attr", "__closure__")
                for i, cell in enumerate(self.function.__closure__):
                    value = space.load(closure.child("index", i), cell).realize()
                    assert isinstance(value, CellValue)
                    self.closure.append(value)
        return self.closure

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        """A C-level method of functions: binding by hand."""
        if name != "__get__" or kwargs or not 1 <= len(args) <= 2:
            raise GraphBreak("FJ0133", f"calling {name}() of a {self.describe()}")
        receiver = args[0].realize()
        if receiver.is_none():
            return self
        return MethodValue(self, receiver)

    # -- attributes --------------------------------------------------------------------------------

    def getattr(self, space: Space, name: str) -> Result:
        if name in self.attributes:
            return self.attributes[name]
        if name == "__code__":
            return ConstantValue(self.code)
        if name == "__globals__":
            return space.globals_value(self.globals)
        if self.function is None:
            if name in _CODE_ATTRIBUTES:
                known = {
                    "__name__": self.name.rpartition(".")[2], "__qualname__": self.name,
                    "__module__": self.globals.get("__name__"),
                    "__doc__": _docstring(self.code),
                }  # fmt: skip
                return constant_value(space, known[name])
            if name in _MADE_OF:
                value = getattr(self, _MADE_OF[name])
                return value if value is not None else ConstantValue(None)
            if name == "__annotations__":
                return self._annotations(space)
            if name in ("__annotate__", "__type_params__") and name in _FIELDS:
                return constant_value(space, () if name == "__type_params__" else None)
        elif name in _READ:
            assert self.source is not None
            if name == "__annotations__":
                _check_computed(self.function)
            return space.load(self.source.child("attr", name), getattr(self.function, name))
        if name == "__dict__":
            return namespace_of(space, self)  # type: ignore[return-value]
        own = own_attribute(space, self, name) if name not in _FIELDS else None
        if own is not None:
            return own
        return space.generic_getattr(self, name)

    def _annotations(self, space: Space) -> Value:
        """Those of a function made here: given to it, or made when they are first asked for."""
        annotate = self.attributes.get("__annotate__")
        if annotate is None or annotate.is_none():
            return self.attributes.setdefault("__annotations__", DictValue({}))
        made = space.call_now(annotate, [ConstantValue(1)], {}).realize()
        if made.python_type() is not dict:
            raise GraphBreak("FJ0152", f"__annotate__ of {self.describe()} returns no dict")
        self.attributes["__annotations__"] = made
        # Written last: assigning annotations would take it away.
        self.attributes["__annotate__"] = self.attributes.pop("__annotate__")
        return made

    def setattr(self, space: Space, name: str, value: Value) -> None:
        if name not in _FIELDS:
            store_own(space, self, name, value)
            return
        fits = issubclass(value.realize().python_type(), _ASSIGNED.get(name, ()))
        if not fits or (name == "__annotate__" and self.function is not None):
            raise GraphBreak("FJ0152", f"assigning {name} of {self.describe()}")
        if name == "__annotations__" and "__annotate__" in _FIELDS:
            self.attributes["__annotate__"] = ConstantValue(None)
        if name == "__annotate__" and not value.is_none():
            self.attributes.pop("__annotations__", None)
        if name == "__qualname__" and self.function is None:
            self.name = str(value.realize().as_python())
        self.attributes[name] = value
        self.mutated = True
        space.changed(self)

    def delattr(self, space: Space, name: str) -> None:
        if name in _FIELDS:
            raise GraphBreak("FJ0152", f"deleting {name} of {self.describe()}")
        if own_attribute(space, self, name) is None:
            text = f"'function' object has no attribute {name!r}"
            space.raise_error(AttributeError, text)
        store_own(space, self, name, None)


def _nothing() -> None: ...


def _call_marked(
    space: Space, value: FunctionValue | BuiltinValue, mark: str, args: Args,
    kwargs: Kwargs,
) -> Result:  # fmt: skip
    """A function that the user marked (``disable``, ``allow_in_graph``, ...)."""
    function: Any = value.function
    if mark == "allow_in_graph":
        return space.call_in_graph(function, args, kwargs, None)
    if mark == "assume_constant_result":
        if space.task.alone:  # who repeats the call would take its result as well
            raise GraphBreak(
                "FJ0161", f"{value.describe()} is called while the program is captured"
            )
        return fold(space, function, args, kwargs, value.describe())
    if mark == "graph_break":
        given = [a.realize() for a in (*args, *kwargs.values())]
        why = f": {given[0].as_python()}" if given and given[0].is_constant else ""
        raise GraphBreak("FJ0135", f"framejit.graph_break() was called{why}")
    shown = value.name if isinstance(value, FunctionValue) else value.describe()
    raise GraphBreak("FJ0134", f"{shown} is marked with framejit.{mark}")


@wraps(types.FunctionType)
def _wrap_function(space: Space, source: Source, obj: types.FunctionType) -> Value:
    local, own = space.in_local_class(source), None
    if local:  # exec and eval make its code and its globals anew
        space.guard(source.child("call", codes), "EQUALS_MATCH", codes(obj))
        own = own_globals(obj)
        if own is not None:
            space.guard(source.child("call", own_globals), "EQUALS_MATCH", own)
    else:
        space.guard(source, "FUNCTION_MATCH", obj.__code__)
    pinned = not local and source.accessor in ("const", "type_attr")  # by identity
    if own is None and not pinned:
        space.guard(source.child("attr", "__globals__"), "ID_MATCH", obj.__globals__)
    return _existing(space, source, obj)


def _existing(space: Space, source: Source, function: types.FunctionType) -> Value:
    value = FunctionValue(
        function.__code__, function.__globals__, name=function.__qualname__, function=function,
        source=source,
    )  # fmt: skip
    return space.remember(function, value)


def function_value(space: Space, function: Any) -> Value:
    """The value of a function of framejit itself (a polyfill): never changes, needs no guard."""
    known = space.known_value(function)
    if known is not None:
        return known
    source = space.const_source(function, f"framejit.{function.__name__}")
    return _existing(space, source, function)


def _check_computed(function: Any) -> None:
    """GraphBreak where annotations are code that CPython runs when they are asked for (3.14), and
    that reads variables: those may change before, or may not be there yet."""
    known = getattr(function, "__type_params__", ())
    for cell in getattr(getattr(function, "__annotate__", None), "__closure__", None) or ():
        if cell == types.CellType() or not any(cell.cell_contents is one for one in known):
            raise GraphBreak("FJ0152", "annotations that refer to variables around the function")
    try:
        assert function.__annotations__ is not None
    except Exception as error:
        raise GraphBreak("FJ0152", f"annotations that cannot be looked up: {error}")


class MethodValue(Declared):
    """A bound method."""

    function: Value
    receiver: Value
    source: Source | None = None
    kind = types.MethodType

    def describe(self) -> str:
        return f"method of {self.receiver.describe()}"

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        return self.function.realize().call(space, [self.receiver, *args], kwargs)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        """A C-level method of methods: they are bound for good."""
        if name != "__get__" or kwargs or not 1 <= len(args) <= 2 or args[0].realize().is_none():
            raise GraphBreak("FJ0132", f"calling {name}() of a {self.describe()}")
        return self

    def getattr(self, space: Space, name: str) -> Result:
        if name in ("__func__", "__self__"):
            return self.function if name == "__func__" else self.receiver
        own = name != "__doc__" and space.class_attribute(types.MethodType, name)
        if own or name == "__class__":
            return space.generic_getattr(self, name)
        return space.getattr(self.function, name)

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        if op not in ("==", "!=") or not isinstance(other, MethodValue):
            return None
        same = space.is_(self.receiver, other.receiver) and space.is_(self.function, other.function)
        return ConstantValue(same is (op == "=="))


@builtin(types.MethodType, 2)
def _make_method(space: Space, function: Value, receiver: Value) -> Result:
    function, receiver = function.realize(), receiver.realize()
    if space.class_attribute(function.python_type(), "__call__") is None:
        space.raise_error(TypeError, "first argument must be callable")
    if receiver.is_none():
        space.raise_error(TypeError, "instance must not be None")
    return MethodValue(function, receiver)


@wraps(types.MethodType)
def _wrap_method(space: Space, source: Source, obj: types.MethodType) -> Value:
    space.guard(source, "TYPE_MATCH", types.MethodType)
    function = space.load(source.child("attr", "__func__"), obj.__func__)
    receiver = space.load(source.child("attr", "__self__"), obj.__self__)
    return space.remember(obj, MethodValue(function, receiver, source))


class BoundBuiltin(Declared):
    """A C-level method bound to a symbolic value: ``[].append``, ``"a".join``, ``d.items``.

    ``raw`` is the C descriptor when the receiver's class would find another (``super()``). CPython
    binds nothing where a method is only looked up to be called: ``is_operand``."""

    receiver: Value
    name: str
    raw: Any = None
    source: Source | None = None
    is_operand: bool = False

    def unbound(self) -> Any:
        """The method that CPython calls with the receiver if nothing is bound; None if it binds."""
        mro = self.receiver.python_type().__mro__ if self.is_operand and self.raw is None else ()
        owned = (type.__getattribute__(cls, "__dict__").get(self.name) for cls in mro)
        found = next((one for one in owned if one is not None), None)
        return found if type(found) is types.MethodDescriptorType else None

    def python_type(self) -> type:
        raw = self.raw
        if raw is None:
            raw = getattr(self.receiver.python_type(), self.name, None)  # a class method: None
        slot = type(raw) is types.WrapperDescriptorType
        return types.MethodWrapperType if slot else types.BuiltinMethodType

    def describe(self) -> str:
        return f"method {self.receiver.python_type().__name__}.{self.name}"

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        if type(self.raw) is types.ClassMethodDescriptorType:
            way, detail = known_once(space, self.raw)
            if way is Way.REPLACED:
                return detail(space, [self.receiver, *args], kwargs)
        method = self.receiver, self.name, self.raw
        if (override := space.intercept_method(*method, args, kwargs)) is not None:
            return override
        check_bound(space, self.receiver, self.raw)
        return call_builtin_method(space, self.receiver, self.name, args, kwargs)

    def getattr(self, space: Space, name: str) -> Result:
        if name == "__name__":
            return ConstantValue(self.name)
        if name == "__qualname__" and self.python_type() is types.BuiltinMethodType:
            owner = self.receiver.realize().obj
            cls = owner if isinstance(owner, type) else self.receiver.python_type()
            return ConstantValue(f"{cls.__qualname__}.{self.name}")
        if name == "__self__":
            return self.receiver
        return space.generic_getattr(self, name)

    def hash_key(self, space: Space) -> Any:
        """Each lookup binds anew, and all that it makes are equal."""
        raise GraphBreak("FJ0157", f"a {self.describe()} is used as a key of a dict or set")

    def compare_op(self, space: Space, op: str, other: Value) -> Value | None:
        if not isinstance(other, BoundBuiltin) or op not in ("==", "!="):
            return None
        same = (other.name, other.raw) == (self.name, self.raw)
        return ConstantValue((same and space.is_(self.receiver, other.receiver)) == (op == "=="))


def call_builtin_method(
    space: Space, receiver: Value, name: str, args: Args, kwargs: Kwargs
) -> Result:
    """Run the C-level method ``name`` on a value of a builtin kind (or on its container part)."""
    receiver = receiver.realize()
    called = (FunctionValue, MethodValue, BuiltinValue, BoundBuiltin)
    if name == "__call__" and isinstance(receiver, called):
        return space.call(receiver, args, kwargs)
    method = receiver.call_method
    if method is None:
        raise GraphBreak("FJ0132", f"calling {name}() of a {receiver.describe()}")
    return method(space, name, args, kwargs)


class BuiltinValue(Declared):
    """A C function, or an unbound C method such as ``list.append``."""

    function: Any
    source: Source | None
    obj: Any = None

    def __post_init__(self) -> None:
        self.obj = self.function

    def python_type(self) -> type:
        return type(self.function)

    def describe(self) -> str:
        module = getattr(self.function, "__module__", None) or ""
        name = getattr(self.function, "__qualname__", repr(self.function))
        name = self.function.__name__ if name.startswith("pybind11_") else name  # of a compiler
        return f"C function {module + '.' if module not in ('', 'builtins') else ''}{name}"

    def getattr(self, space: Space, name: str) -> Result:
        if name in _CODE_ATTRIBUTES:
            return constant_value(space, getattr(self.function, name, None))
        if isinstance(self.function, (OpOverload, OpOverloadPacket)):
            return constant_value(space, space.run_real(getattr, self.function, name))
        return space.generic_getattr(self, name)

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        function = self.function
        way, detail = known_once(space, function)
        if (override := space.intercept(function, args, kwargs)) is not None:
            return override
        if way is Way.REPLACED:
            return detail(space, args, kwargs)
        if way is Way.NODE:
            return space.call_in_graph(function, args, kwargs, None)
        if way is Way.MARKED:
            return _call_marked(space, self, detail, args, kwargs)
        if way is Way.METHOD:
            return self._call_method(space, args, kwargs)
        if way is Way.FOLDED:
            return fold(space, function, args, kwargs, self.describe())
        raise GraphBreak("FJ0132", f"calling the {self.describe()}")

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        """A C-level method of descriptors: binding by hand."""
        return space.bound_by_hand(self, name, args, kwargs)

    def _call_method(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        """A method of a C class, with what it is called on as its first argument."""
        function = self.function
        if not args:
            raise GraphBreak("FJ0132", f"calling {self.describe()} without a receiver")
        name, owner = function.__name__, function.__objclass__
        if owner is object:
            return space.object_method(name, args, kwargs)
        kind = args[0].realize().python_type()
        if not issubclass(kind, owner):
            return space.raise_error(TypeError, complaints.method_of_another(function, kind))
        check_found(kind, function)
        return call_builtin_method(space, args[0], name, args[1:], kwargs)


def call_polyfill(space: Space, function: Any, args: Args, kwargs: Kwargs | None = None) -> Result:
    """Call a Python function of `polyfills`: its frame is traced like the user's own code."""
    return space.call(function_value(space, function), args, kwargs or {})
