"""What of an object may change, by kind: how it is noted, compared, and put back in place.

In: an object. Out: the `Aspect`s of its class; each takes the content as plain references, says
whether two contents are the same, puts one back, and names the objects inside. What cannot be put
back raises `NotSaveable`. Next: reach.
"""

from __future__ import annotations

import array
import contextvars
import enum
import functools
import inspect
import io
import mmap
import queue
import random
import socket
import threading
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from operator import is_
from typing import Any

import numpy
import torch

from framejit.audit.comparison import (
    ATOMS,
    MISSING,
    Comparison,
    dict_of,
    differences,
    entries_of,
    grad_of,
    read_slot,
    slots_of,
    storage_key,
)
from framejit.values.core.inline_policy import is_library_of_python

#: (what it is called, the object)
Parts = Iterable[tuple[str, Any]]


class NotSaveable(Exception):
    """An object cannot be put back to what it was."""


class Aspect:
    """One kind of content. Names are for messages: they are made when somebody asks."""

    #: Has parts, and never changes.
    fixed = False

    def take(self, obj: Any) -> Any:
        """The content now. Raises NotSaveable."""
        raise NotImplementedError

    def same(self, one: Any, two: Any) -> bool:
        """Has nothing changed between these two?"""
        return len(one) == len(two) and all(map(is_, one, two))

    def unchanged(self, obj: Any, content: Any) -> bool:
        """Is ``content`` what ``obj`` holds now?"""
        return self.same(content, self.take(obj))

    def put(self, obj: Any, content: Any) -> None:
        """Make ``content`` the content, in place. Raises NotSaveable."""
        raise NotImplementedError

    def parts(self, content: Any) -> Parts:
        """The objects inside, with their names."""
        return ((f"[{i}]", part) for i, part in enumerate(content))

    def inside(self, content: Any) -> Iterable[Any]:
        """The objects of `parts`."""
        return [part for _, part in self.parts(content)]

    def seen(self, content: Any) -> Any:
        """What programs see of it, to be compared."""
        return content

    def difference(self, path: str, one: Any, two: Any, comparison: Comparison) -> str | None:
        """How the second of two contents differs from the first."""
        return differences([(path, self.seen(one), self.seen(two))], comparison)


class _Given(Aspect):
    """What two functions read and write; without the second it cannot change."""

    def __init__(
        self, read: Callable[[Any], Any], write: Callable[[Any, Any], Any] | None = None
    ) -> None:
        self.read, self.write, self.fixed = read, write, write is None

    def take(self, obj: Any) -> Any:
        return self.read(obj)

    def put(self, obj: Any, content: Any) -> None:
        if self.write is not None:
            self.write(obj, content)


class _Parts(_Given):
    """A sequence of parts."""

    def inside(self, content: Any) -> Iterable[Any]:
        return content  # type: ignore[no-any-return]


def _write_deque(obj: Any, content: Any) -> None:
    deque.clear(obj)
    deque.extend(obj, content)


def _write_set(obj: Any, content: Any) -> None:
    set.clear(obj)
    set.update(obj, content)


def _write_variable(obj: Any, content: Any) -> None:
    if content[0] is MISSING:
        raise NotSaveable(f"the context variable {obj.name}, which had no value")
    obj.set(content[0])


class _Dict(Aspect):
    def take(self, obj: Any) -> Any:
        return dict(entries_of(obj)) if isinstance(obj, OrderedDict) else dict.copy(obj)

    def same(self, one: Any, two: Any) -> bool:
        return super().same(one, two) and all(map(is_, one.values(), two.values()))

    def unchanged(self, obj: Any, content: Any) -> bool:
        if dict.__len__(obj) != len(content):
            return False
        if not content or isinstance(obj, OrderedDict):
            return not content or super().unchanged(obj, content)
        return all(map(is_, dict.values(obj), content.values())) and all(
            map(is_, dict.__iter__(obj), content)
        )

    def put(self, obj: Any, content: Any) -> None:
        write = dict.__setitem__
        if isinstance(obj, OrderedDict):
            OrderedDict.clear(obj)
            write = OrderedDict.__setitem__  # type: ignore[assignment]
        elif not super().same(list(dict.keys(obj)), list(content)):
            dict.clear(obj)
        for key, value in content.items():
            write(obj, key, value)

    def parts(self, content: Any) -> Parts:
        for key, value in content.items():
            if type(key) is not str:
                yield f" key {key!r:.40}" if isinstance(key, ATOMS) else " key", key
            yield f"[{key!r:.40}]" if isinstance(key, ATOMS) else "[...]", value

    def inside(self, content: Any) -> Iterable[Any]:
        keys = [key for key in content if type(key) is not str]
        return [*keys, *content.values()] if keys else content.values()  # type: ignore[no-any-return]


class Named(Aspect):
    """Contents are dicts by name."""

    def same(self, one: Any, two: Any) -> bool:
        return all(map(is_, one.values(), two.values()))

    def parts(self, content: Any) -> Parts:
        return ((f".{name}", part) for name, part in content.items())

    def inside(self, content: Any) -> Iterable[Any]:
        return content.values()  # type: ignore[no-any-return]


class _Members(Named):
    """What descriptors of a class written in C read and write."""

    def __init__(self, cls: type, *names: str) -> None:
        self._slots = {name: vars(cls)[name] for name in names}

    def slots(self, cls: type) -> dict[str, Any]:
        """The descriptors by name."""
        return self._slots

    def take(self, obj: Any) -> Any:
        return {name: read_slot(slot, obj) for name, slot in self.slots(type(obj)).items()}

    def put(self, obj: Any, content: Any) -> None:
        for name, slot in self.slots(type(obj)).items():
            if read_slot(slot, obj) is not content[name]:
                if content[name] is MISSING:
                    slot.__delete__(obj)
                else:
                    slot.__set__(obj, content[name])


class _Attributes(_Members):
    """The class, which dict holds the attributes, and slots."""

    def __init__(self) -> None:
        super().__init__(object, "__class__")

    def slots(self, cls: type) -> dict[str, Any]:
        more = {"__dict__": _DICT} if cls.__dictoffset__ else {}
        return {**self._slots, **more, **slots_of(cls)}

    def take(self, obj: Any) -> Any:  # of every object, so it is quick
        cls: Any = type(obj)
        content = {"__class__": cls}
        if cls.__dictoffset__:
            content["__dict__"] = dict_of(obj)
        for name, slot in slots_of(cls).items():
            content[name] = read_slot(slot, obj)
        return content

    def put(self, obj: Any, content: Any) -> None:
        if type(obj) is not content["__class__"]:  # first: slots are those of the class
            object.__setattr__(obj, "__class__", content["__class__"])
        super().put(obj, content)


def _set_dict(obj: Any, wanted: dict[str, Any] | None) -> None:
    object.__setattr__(obj, "__dict__", {} if wanted is None else wanted)


_DICT = property(dict_of, _set_dict)


class _Error(_Members):
    """Exceptions. Where they were raised is put back, and not compared."""

    def seen(self, content: Any) -> Any:
        return {name: part for name, part in content.items() if name != "__traceback__"}


class _Function(_Members):
    def parts(self, content: Any) -> Parts:
        names = content["__code__"].co_freevars
        yield from zip([f" {name}" for name in names], content["__closure__"] or (), strict=False)
        for name in ("__defaults__", "__kwdefaults__", "__dict__"):
            yield f".{name}", content[name]

    def inside(self, content: Any) -> Iterable[Any]:
        return Aspect.inside(self, content)


class _Cell(_Members):
    def parts(self, content: Any) -> Parts:
        return (("", part) for part in content.values())

    def seen(self, content: Any) -> Any:
        return [part for part in content.values() if part is not MISSING]


class State(_Given):
    """Content without parts: buffers, generators of random numbers."""

    def same(self, one: Any, two: Any) -> bool:
        if isinstance(one, torch.Tensor):
            return torch.equal(one, two)
        if isinstance(one, numpy.ndarray):
            return numpy.array_equal(one, two)
        try:
            return bool(one == two)
        except ValueError:  # arrays are inside
            inner = [state.values() if isinstance(state, dict) else state for state in (one, two)]
            return all(map(self.same, *inner))

    def parts(self, content: Any) -> Parts:
        return ()


def _write_bytes(obj: Any, content: bytes) -> None:
    obj[:] = array.array(obj.typecode, content) if isinstance(obj, array.array) else content


class _Array(Aspect):
    """Arrays of numpy: elements, and whether they may be written."""

    def take(self, obj: Any) -> Any:
        return obj.copy(order="K"), obj.flags.writeable

    def same(self, one: Any, two: Any) -> bool:
        a, b = one[0], two[0]
        if one[1] != two[1] or (a.shape, a.dtype) != (b.shape, b.dtype):
            return False
        if a.dtype == object:
            return all(map(is_, a.flat, b.flat))
        return bool(a.tobytes() == b.tobytes())

    def put(self, obj: Any, content: Any) -> None:
        if obj.shape != content[0].shape or obj.dtype != content[0].dtype:
            raise NotSaveable("an array whose shape was changed in place")
        if not obj.flags.writeable:
            obj.flags.writeable = True
        numpy.copyto(obj, content[0])
        obj.flags.writeable = content[1]

    def parts(self, content: Any) -> Parts:
        return super().parts(content[0].flat) if content[0].dtype == object else ()


class _Watched(Aspect):
    """What can only be seen to stay the same. ``read`` gives a state, which is compared, and parts
    with their names; ``why`` says of an object what cannot be undone."""

    def __init__(self, read: Callable[[Any], tuple[Any, dict[str, Any]]], why: str) -> None:
        self.read, self.why = read, why

    def take(self, obj: Any) -> Any:
        return self.read(obj)

    def same(self, one: Any, two: Any) -> bool:
        return bool(one[0] == two[0])

    def put(self, obj: Any, content: Any) -> None:
        raise NotSaveable(self.why.format(obj))

    def parts(self, content: Any) -> Parts:
        return content[1].items()  # type: ignore[no-any-return]

    def seen(self, content: Any) -> Any:
        return None  # what has changed ends the audit


class _Iterator(_Watched):
    """Iterators over sequences, which can be set to a position."""

    def put(self, obj: Any, content: Any) -> None:
        if not content[0] or not self.take(obj)[0]:
            super().put(obj, content)
        obj.__setstate__(content[0][0])

    def seen(self, content: Any) -> Any:
        return [*content[1].values(), *content[0]]


def _position(obj: Any) -> tuple[Any, dict[str, Any]]:
    _, over, *position = obj.__reduce__()
    if position == [None]:  # since CPython 3.12, of a range: what is left
        raise NotSaveable(f"an iterator ({type(obj).__qualname__})")
    return position, {f"[{i}]": part for i, part in enumerate(over)}


def _progress(obj: Any) -> tuple[Any, dict[str, Any]]:
    """Of an iterator written in C: all that it is made of. Objects are compared by identity."""
    try:
        parts = _flat(obj.__reduce__()[1:])
    except (TypeError, AttributeError):
        raise NotSaveable(f"an iterator ({type(obj).__qualname__})") from None
    state = [part if isinstance(part, ATOMS) else id(part) for part in parts]
    return state, {f"[{i}]": part for i, part in enumerate(parts)}


def _flat(value: Any) -> list[Any]:
    if type(value) is tuple:
        return [part for inner in value for part in _flat(inner)]
    return [value]


def _unstarted(obj: Any) -> tuple[Any, dict[str, Any]]:
    """Of a generator that is at its start or its end, or runs."""
    frame = obj.gi_frame
    if frame is None or obj.gi_running:
        return "ended" if frame is None else "running", {}
    if inspect.getgeneratorstate(obj) != inspect.GEN_CREATED:
        raise NotSaveable("a generator")
    return "new", {f"[{i}]": part for i, part in enumerate(frame.f_locals.values(), 1)}


class _Refused(Aspect):
    def __init__(self, why: str) -> None:
        self.why = why

    def take(self, obj: Any) -> Any:
        raise NotSaveable(self.why)


_HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks")


class TensorContent:
    """A tensor's metadata, memory, gradient, hooks and version; the elements are the memory's."""

    __slots__ = ("alias", "grad", "grad_fn", "hooks", "key", "leaf", "requires_grad", "version")

    def __init__(self, t: torch.Tensor) -> None:
        self.key = storage_key(t)
        self.alias = t.detach()
        self.requires_grad, self.leaf = t.requires_grad, t.is_leaf
        self.grad, self.grad_fn = grad_of(t), t.grad_fn
        self.hooks = {name: getattr(t, name) for name in _HOOKS}
        self.version = None if t.is_inference() else t._version

    @property
    def layout(self) -> tuple[Any, ...]:
        """What ``set_``, ``resize_`` and ``data = ...`` change."""
        a = self.alias
        return self.key, a.dtype, tuple(a.shape), a.stride(), a.storage_offset()

    def is_of(self, t: torch.Tensor) -> bool:
        """Has the tensor this layout in this memory?"""
        a = self.alias
        if t.device.type == "meta":
            return TensorContent(t).layout == self.layout
        return t.dtype is a.dtype and t.device == a.device and t.is_set_to(a)

    def on(self, storage: torch.UntypedStorage) -> torch.Tensor:
        """The elements, read from a copy of the memory."""
        a = self.alias
        empty = torch.empty(0, dtype=a.dtype, device=a.device)
        return empty.set_(storage, a.storage_offset(), a.shape, a.stride())  # type: ignore


class _Tensor(Aspect):
    def take(self, obj: Any) -> Any:
        if obj.layout is not torch.strided or obj.is_quantized or obj.is_nested:
            raise NotSaveable(f"a tensor of layout {obj.layout}")
        if torch.nn.parameter.is_lazy(obj):
            raise NotSaveable("a parameter that has no shape yet")
        if torch._C._functorch.is_functorch_wrapped_tensor(obj):
            raise NotSaveable("a tensor of a transform of torch.func")
        return TensorContent(obj)

    def unchanged(self, obj: Any, content: Any) -> bool:
        return (
            grad_of(obj) is content.grad and obj.grad_fn is content.grad_fn
            and obj.requires_grad == content.requires_grad
            and all(getattr(obj, name) is hooks for name, hooks in content.hooks.items())
            and (content.version is None or obj._version == content.version)
            and content.is_of(obj)
        )  # fmt: skip

    def put(self, obj: Any, content: Any) -> None:
        now = TensorContent(obj)
        if now.grad_fn is not content.grad_fn or now.leaf != content.leaf:
            raise NotSaveable("a tensor whose history was changed in place")
        if now.layout != content.layout:
            with torch.no_grad():
                obj.data = content.alias
        if now.requires_grad != content.requires_grad:
            obj.requires_grad_(content.requires_grad)
        if now.grad is not content.grad:
            obj.grad = content.grad
        for name, hooks in content.hooks.items():
            if now.hooks[name] is not hooks:
                setattr(obj, name, hooks)
        if content.version is not None and obj._version != content.version:
            torch._C._autograd._unsafe_set_version_counter((obj,), (content.version,))  # type: ignore

    def parts(self, content: Any) -> Parts:
        yield ".grad", content.grad
        yield from ((f".{name}", hooks) for name, hooks in content.hooks.items())

    def inside(self, content: Any) -> Iterable[Any]:
        return content.grad, *content.hooks.values()

    def seen(self, content: Any) -> Any:
        return {
            "data": content.alias, "requires_grad": content.requires_grad,
            "is_leaf": content.leaf, "grad": content.grad, "hooks": [*content.hooks.values()],
        }  # fmt: skip


#: By the C-level class; subclasses have it as well.
_KINDS: dict[type, Aspect] = {
    list: _Parts(list.copy, lambda obj, parts: list.__setitem__(obj, slice(None), parts)),
    set: _Parts(set.copy, _write_set),
    deque: _Parts(lambda obj: [*deque.__iter__(obj)], _write_deque),
    contextvars.ContextVar: _Parts(lambda obj: (obj.get(MISSING),), _write_variable),
    tuple: _Parts(lambda obj: [*tuple.__iter__(obj)]),
    frozenset: _Parts(lambda obj: [*frozenset.__iter__(obj)]),
    types.MethodType: _Parts(lambda obj: (obj.__func__, obj.__self__)),
    threading.local: _Parts(lambda obj: (obj.__dict__,)),
    functools.partial: _Parts(lambda obj: (obj.func, obj.args, obj.keywords)),
    property: _Parts(lambda obj: (obj.fget, obj.fset, obj.fdel)),
    staticmethod: _Parts(lambda obj: (obj.__func__,)),
    classmethod: _Parts(lambda obj: (obj.__func__,)),
    memoryview: _Parts(lambda obj: (obj.obj,)),
    dict: _Dict(), numpy.ndarray: _Array(), torch.Tensor: _Tensor(),
    types.FunctionType: _Function(
        types.FunctionType, "__code__", "__defaults__", "__kwdefaults__", "__closure__", "__dict__"
    ),
    types.CellType: _Cell(types.CellType, "cell_contents"),
    BaseException: _Error(
        BaseException, "args", "__cause__", "__context__", "__suppress_context__", "__traceback__"
    ),
    bytearray: State(bytes, _write_bytes), array.array: State(bytes, _write_bytes),
    random.Random: State(random.Random.getstate, random.Random.setstate),
    torch.Generator: State(torch.Generator.get_state, torch.Generator.set_state),
    numpy.random.Generator: State(
        lambda obj: obj.bit_generator.state,
        lambda obj, state: setattr(obj.bit_generator, "state", state),
    ),
    numpy.random.RandomState: State(
        numpy.random.RandomState.get_state, numpy.random.RandomState.set_state
    ),
    functools._lru_cache_wrapper: _Watched(
        lambda obj: (obj.cache_info().misses, {".__wrapped__": obj.__wrapped__}),
        "the cache of {0.__wrapped__.__qualname__}, which was filled",
    ),
    queue.SimpleQueue: _Watched(lambda obj: (obj.qsize(), {}), "a queue that was used"),
    types.GeneratorType: _Watched(_unstarted, "a generator that was started"),
    types.CoroutineType: _Refused("a coroutine"),
    types.AsyncGeneratorType: _Refused("an asynchronous generator"),
    io.IOBase: _Refused("a file"), io.TextIOWrapper: _Refused("a file"),
    io._io._IOBase: _Refused("a file"), socket.socket: _Refused("a socket"),  # type: ignore
    mmap.mmap: _Refused("a mapped file"),
}  # fmt: skip
_SEQUENCES: list[Any] = [[], (), "", b"", range(0), bytearray()]
_ITERATORS = [*map(iter, _SEQUENCES), reversed([])]
_AT_END = "a {0.__class__.__name__} that came to its end"
_KINDS |= {type(made): _Iterator(_position, _AT_END) for made in _ITERATORS}
_ATTRIBUTES = _Attributes()
_OTHER_ITERATOR = _Watched(_progress, "an iterator ({0.__class__.__qualname__}) that has moved")

#: Libraries whose objects are tools: what they hold is not the program's state.
_TOOLS = (
    "logging.", "threading.", "concurrent.", "multiprocessing.", "asyncio.", "importlib.", "re.",
    "ast.", "subprocess.", "warnings.", "inspect.", "unittest.", "typing.", "abc.", "ctypes.",
    "framejit.", "torch._", "torch.fx.", "torch.jit.", "torch.distributed.", "torch.library.",
    "torch.autograd.graph.", "torch.utils.hooks.",
)  # fmt: skip
_PLAIN = (*ATOMS, torch.Size, types.CodeType, types.BuiltinFunctionType, types.ModuleType)
_DISABLED_DISPATCH = torch._C._disabled_torch_dispatch_impl


@functools.lru_cache(maxsize=8192)
def aspects_of(cls: type) -> tuple[Aspect, ...]:
    """What may change of the instances of a class; for classes and modules see `reach`."""
    if issubclass(cls, _PLAIN) and not hasattr(cls, "__next__"):
        tool_or_member = _is_tool(cls) or issubclass(cls, enum.Enum)
        own = _of_python(cls) and cls.__dictoffset__ and not tool_or_member
        return (_ATTRIBUTES,) if own else ()
    if issubclass(cls, type):
        return ()
    if issubclass(cls, torch.Tensor):
        if cls.__torch_dispatch__ is not _DISABLED_DISPATCH and cls is not torch.Tensor:
            return (_Refused(f"a tensor of class {cls.__qualname__}"),)
    elif cls not in _KINDS and _is_tool(cls):
        return ()
    aspects = [_KINDS[base] for base in cls.__mro__ if base in _KINDS][:1]
    if not aspects and not _of_python(base := _solid_base(cls)):
        if hasattr(base, "__next__"):
            aspects.append(_OTHER_ITERATOR)
        elif why := _unknown(base):
            return (_Refused(why),)
    if not issubclass(cls, types.FunctionType) and (cls.__dictoffset__ or slots_of(cls)):  # type: ignore[arg-type]
        aspects.append(_ATTRIBUTES)
    return tuple(aspects)


def _is_tool(cls: type) -> bool:
    return f"{cls.__module__}.".startswith(_TOOLS) and not issubclass(cls, torch.nn.Module)


def _of_python(cls: type) -> bool:
    """Was this class made by a ``class`` statement?"""
    heap, immutable = cls.__flags__ & 1 << 9, cls.__flags__ & 1 << 8
    if not heap or immutable or "__module__" not in vars(cls):
        return cls is object
    return not type(cls).__module__.startswith(("pybind11", "nanobind"))


def _solid_base(cls: type) -> type:
    """The first class written in C."""
    return next((base for base in cls.__mro__ if not _of_python(base)), object)


def _unknown(cls: type) -> str:
    """Why objects of a class that is written in C cannot be put back; "" if there is no need to."""
    module = cls.__module__.partition(".")[0]
    if is_library_of_python(cls.__module__) or module in ("torch", "numpy", "framejit"):
        return ""
    if cls.__hash__ is not None and cls.__hash__ is not object.__hash__:
        return ""  # by value, so it does not change
    return f"an object of {cls.__module__}.{cls.__qualname__}, which is written in C"
