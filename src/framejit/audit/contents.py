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
import gc
import inspect
import io
import mmap
import queue
import random
import socket
import threading
import types
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from operator import is_
from typing import Any

import numpy
import torch

from framejit.audit.comparison import (
    ATOMS,
    MISSING,
    entries_of,
    grad_of,
    read_slot,
    slots_of,
)
from framejit.audit.tensors import TensorContent
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
        return ()

    def same(self, one: Any, two: Any) -> bool:
        """Has nothing changed between these two?"""
        return len(one) == len(two) and all(map(is_, one, two))

    def unchanged(self, obj: Any, content: Any) -> bool:
        """Is ``content`` what ``obj`` holds now?"""
        return self.same(content, self.take(obj))

    def put(self, obj: Any, content: Any) -> None:
        """Make ``content`` the content, in place. Raises NotSaveable."""

    def parts(self, content: Any) -> Parts:
        """The objects inside, with their names."""
        return ((f"[{i}]", part) for i, part in enumerate(content))

    def inside(self, content: Any) -> Iterable[Any]:
        """The objects of `parts`."""
        return [part for _, part in self.parts(content)]

    def seen(self, content: Any) -> Any:
        """What programs see of it, to be compared."""
        return content


class _Fixed(Aspect):
    """What cannot change has parts all the same."""

    fixed = True

    def __init__(self, read: Any) -> None:
        self.read = read

    def take(self, obj: Any) -> Any:
        return tuple(self.read(obj))

    def inside(self, content: Any) -> Iterable[Any]:
        return content  # type: ignore[no-any-return]


class _List(Aspect):
    def take(self, obj: Any) -> Any:
        return list(list.__iter__(obj))

    def put(self, obj: Any, content: Any) -> None:
        list.__setitem__(obj, slice(None), content)

    def inside(self, content: Any) -> Iterable[Any]:
        return content  # type: ignore[no-any-return]


class _Deque(Aspect):
    def take(self, obj: Any) -> Any:
        return list(deque.__iter__(obj))

    def put(self, obj: Any, content: Any) -> None:
        deque.clear(obj)
        deque.extend(obj, content)


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


class _Set(Aspect):
    def take(self, obj: Any) -> Any:
        return set.copy(obj)

    def same(self, one: Any, two: Any) -> bool:
        return super().same(one, two)

    def put(self, obj: Any, content: Any) -> None:
        set.clear(obj)
        set.update(obj, content)


class _Bytes(Aspect):
    """Mutable buffers."""

    def take(self, obj: Any) -> Any:
        return bytes(obj)

    def same(self, one: Any, two: Any) -> bool:
        return bool(one == two)

    def put(self, obj: Any, content: Any) -> None:
        new = array.array(obj.typecode, content) if isinstance(obj, array.array) else content
        obj[:] = new

    def parts(self, content: Any) -> Parts:
        return ()


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


class _Attributes(Aspect):
    """The class, slots, and which dict holds the other attributes."""

    def take(self, obj: Any) -> Any:
        content = {"__class__": type(obj)}
        if type(obj).__dictoffset__:
            content["__dict__"] = _dict_of(obj)
        for name, slot in slots_of(type(obj)).items():
            content[name] = read_slot(slot, obj)
        return content

    def same(self, one: Any, two: Any) -> bool:
        return all(map(is_, one.values(), two.values()))

    def put(self, obj: Any, content: Any) -> None:
        if type(obj) is not content["__class__"]:
            object.__setattr__(obj, "__class__", content["__class__"])
        for name, slot in slots_of(type(obj)).items():
            if content[name] is not MISSING:
                slot.__set__(obj, content[name])
            elif read_slot(slot, obj) is not MISSING:
                slot.__delete__(obj)
        if "__dict__" in content and content["__dict__"] is not _dict_of(obj):
            wanted = content["__dict__"]
            object.__setattr__(obj, "__dict__", {} if wanted is None else wanted)

    def parts(self, content: Any) -> Parts:
        return (("." + name, part) for name, part in content.items())

    def inside(self, content: Any) -> Iterable[Any]:
        return content.values()  # type: ignore[no-any-return]


def _dict_of(obj: Any) -> Any:
    """The object's ``__dict__``, or None. Looking at an OrderedDict's would make one: modules have
    many that are empty."""
    lazy = type(obj) is OrderedDict
    if lazy and not obj and not gc.get_referents(obj):
        return None
    try:
        found = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return None
    return None if lazy and not found else found


class _Members(Aspect):
    """Attributes that can be read and written by name."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def take(self, obj: Any) -> Any:
        return {name: getattr(obj, name, MISSING) for name in self.names}

    def same(self, one: Any, two: Any) -> bool:
        return all(map(is_, one.values(), two.values()))

    def put(self, obj: Any, content: Any) -> None:
        for name, value in content.items():
            if value is not getattr(obj, name, MISSING):
                setattr(obj, name, value)

    def parts(self, content: Any) -> Parts:
        return ((f".{name}", part) for name, part in content.items())

    def inside(self, content: Any) -> Iterable[Any]:
        return content.values()  # type: ignore[no-any-return]


class _Error(_Members):
    """Exceptions. Where they were raised is put back, and not compared."""

    def seen(self, content: Any) -> Any:
        return {name: part for name, part in content.items() if name != "__traceback__"}


class _Cell(Aspect):
    def take(self, obj: Any) -> Any:
        try:
            return (obj.cell_contents,)
        except ValueError:
            return ()

    def put(self, obj: Any, content: Any) -> None:
        if content:
            obj.cell_contents = content[0]
        elif self.take(obj):
            del obj.cell_contents

    def parts(self, content: Any) -> Parts:
        return (("", part) for part in content)


class _State(Aspect):
    """Objects that give and take their state as a whole: generators of random numbers."""

    def __init__(self, read: Any, write: Any) -> None:
        self.read, self.write = read, write

    def take(self, obj: Any) -> Any:
        return self.read(obj)

    def same(self, one: Any, two: Any) -> bool:
        if isinstance(one, torch.Tensor):
            return torch.equal(one, two)
        return repr(one) == repr(two)

    def put(self, obj: Any, content: Any) -> None:
        self.write(obj, content)

    def parts(self, content: Any) -> Parts:
        return ()


class _Iterator(Aspect):
    """Iterators over sequences, which can be set to a position."""

    def take(self, obj: Any) -> Any:
        _, over, *position = obj.__reduce__()
        return (*over, *position)

    def same(self, one: Any, two: Any) -> bool:
        return len(one) == len(two) == 2 and one[0] is two[0] and one[1] == two[1]

    def put(self, obj: Any, content: Any) -> None:
        if len(self.take(obj)) != 2 or len(content) != 2:
            raise NotSaveable(f"a {type(obj).__name__} that came to its end")
        obj.__setstate__(content[1])


class _Watched(Aspect):
    """Other iterators written in C. What they are made of is put back, they themselves are not."""

    def take(self, obj: Any) -> Any:
        try:
            return _flat(obj.__reduce__()[1:])
        except (TypeError, AttributeError):
            raise NotSaveable(f"an iterator ({type(obj).__qualname__})") from None

    def same(self, one: Any, two: Any) -> bool:
        return len(one) == len(two) and all(
            a is b or (isinstance(a, ATOMS) and a == b) for a, b in zip(one, two, strict=True)
        )

    def put(self, obj: Any, content: Any) -> None:
        raise NotSaveable(f"an iterator ({type(obj).__qualname__}) that has moved")


def _flat(value: Any) -> list[Any]:
    if type(value) is tuple:
        return [part for inner in value for part in _flat(inner)]
    return [value]


class _Cache(Aspect):
    """`functools.lru_cache`: what it holds cannot be put back, only seen to stay the same."""

    def take(self, obj: Any) -> Any:
        return obj.cache_info().misses, obj.__wrapped__

    def same(self, one: Any, two: Any) -> bool:
        return bool(one[0] == two[0])

    def put(self, obj: Any, content: Any) -> None:
        raise NotSaveable(f"the cache of {obj.__wrapped__.__qualname__}, which was filled")

    def parts(self, content: Any) -> Parts:
        return ((".__wrapped__", content[1]),)

    def seen(self, content: Any) -> Any:
        return None


class _Queue(_Cache):
    """`queue.SimpleQueue`: as much is known of it."""

    def take(self, obj: Any) -> Any:
        return (obj.qsize(),)

    def put(self, obj: Any, content: Any) -> None:
        raise NotSaveable("a queue that was used")

    def parts(self, content: Any) -> Parts:
        return ()


class _Variable(Aspect):
    """`contextvars.ContextVar`"""

    def take(self, obj: Any) -> Any:
        return (obj.get(MISSING),)

    def put(self, obj: Any, content: Any) -> None:
        if content[0] is MISSING:
            raise NotSaveable(f"the context variable {obj.name}, which had no value")
        obj.set(content[0])


class _Refused(Aspect):
    def __init__(self, why: str) -> None:
        self.why = why

    def take(self, obj: Any) -> Any:
        raise NotSaveable(self.why)


class _Generator(Aspect):
    """Generators that are at their start or their end, and stay there."""

    def take(self, obj: Any) -> Any:
        frame = obj.gi_frame
        if frame is None or obj.gi_running:
            return ("ended" if frame is None else "running",)
        if inspect.getgeneratorstate(obj) != inspect.GEN_CREATED:
            raise NotSaveable("a generator")
        return ("new", *frame.f_locals.values())

    def same(self, one: Any, two: Any) -> bool:
        return bool(one[0] == two[0])

    def put(self, obj: Any, content: Any) -> None:
        raise NotSaveable("a generator that was started")


class _Tensor(Aspect):
    def take(self, obj: Any) -> Any:
        if obj.layout is not torch.strided or obj.is_quantized or obj.is_nested:
            raise NotSaveable(f"a tensor of layout {obj.layout}")
        if torch.nn.parameter.is_lazy(obj):
            raise NotSaveable("a parameter that has no shape yet")
        if torch._C._functorch.is_functorch_wrapped_tensor(obj):
            raise NotSaveable("a tensor of a transform of torch.func")
        return TensorContent(obj)

    def same(self, one: Any, two: Any) -> bool:
        return (
            one.version == two.version and one.grad is two.grad and one.grad_fn is two.grad_fn
            and one.requires_grad == two.requires_grad and all(map(is_, one.hooks, two.hooks))
            and one.layout == two.layout
        )  # fmt: skip

    def unchanged(self, obj: Any, content: Any) -> bool:
        a = content.alias
        if obj.device.type == "meta" or obj.layout is not a.layout:
            return super().unchanged(obj, content)
        return (
            grad_of(obj) is content.grad and obj.grad_fn is content.grad_fn
            and obj.requires_grad == content.requires_grad
            and obj._backward_hooks is content.hooks[0]
            and obj._post_accumulate_grad_hooks is content.hooks[1]
            and (content.version is None or obj._version == content.version)
            and obj.dtype is a.dtype and obj.device == a.device and obj.is_set_to(a)
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
        if now.hooks[0] is not content.hooks[0]:
            obj._backward_hooks = content.hooks[0]
        if now.hooks[1] is not content.hooks[1]:
            obj._post_accumulate_grad_hooks = content.hooks[1]
        if content.version is not None and obj._version != content.version:
            torch._C._autograd._unsafe_set_version_counter((obj,), (content.version,))  # type: ignore

    def parts(self, content: Any) -> Parts:
        yield ".grad", content.grad
        yield "._backward_hooks", content.hooks[0]
        yield "._post_accumulate_grad_hooks", content.hooks[1]

    def inside(self, content: Any) -> Iterable[Any]:
        return content.grad, *content.hooks

    def seen(self, content: Any) -> Any:
        return {
            "data": content.alias, "requires_grad": content.requires_grad,
            "is_leaf": content.leaf, "grad": content.grad, "hooks": content.hooks,
        }  # fmt: skip


_FUNCTION = _Members("__code__", "__defaults__", "__kwdefaults__", "__closure__", "__dict__")


class _Function(Aspect):
    take, same, put = _FUNCTION.take, _FUNCTION.same, _FUNCTION.put

    def parts(self, content: Any) -> Iterator[tuple[str, Any]]:
        names = content["__code__"].co_freevars
        yield from zip([f" {name}" for name in names], content["__closure__"] or (), strict=False)
        for name in ("__defaults__", "__kwdefaults__", "__dict__"):
            yield f".{name}", content[name]


#: By the C-level class; subclasses have it as well.
_KINDS: dict[type, Aspect] = {
    list: _List(), dict: _Dict(), set: _Set(), deque: _Deque(), tuple: _Fixed(tuple.__iter__),
    frozenset: _Fixed(frozenset.__iter__), bytearray: _Bytes(), array.array: _Bytes(),
    numpy.ndarray: _Array(), torch.Tensor: _Tensor(),
    types.FunctionType: _Function(), types.CellType: _Cell(),
    types.MethodType: _Fixed(lambda obj: (obj.__func__, obj.__self__)),
    threading.local: _Fixed(lambda obj: (obj.__dict__,)),
    functools.partial: _Fixed(lambda obj: (obj.func, obj.args, obj.keywords)),
    property: _Fixed(lambda obj: (obj.fget, obj.fset, obj.fdel)),
    staticmethod: _Fixed(lambda obj: (obj.__func__,)),
    classmethod: _Fixed(lambda obj: (obj.__func__,)),
    memoryview: _Fixed(lambda obj: (obj.obj,)), queue.SimpleQueue: _Queue(),
    functools._lru_cache_wrapper: _Cache(), contextvars.ContextVar: _Variable(),
    random.Random: _State(random.Random.getstate, random.Random.setstate),
    torch.Generator: _State(torch.Generator.get_state, torch.Generator.set_state),
    numpy.random.Generator: _State(
        lambda obj: obj.bit_generator.state,
        lambda obj, state: setattr(obj.bit_generator, "state", state),
    ),
    numpy.random.RandomState: _State(
        numpy.random.RandomState.get_state, numpy.random.RandomState.set_state
    ),
    BaseException: _Error(
        "args", "__cause__", "__context__", "__suppress_context__", "__traceback__"
    ),
    types.GeneratorType: _Generator(), types.CoroutineType: _Refused("a coroutine"),
    types.AsyncGeneratorType: _Refused("an asynchronous generator"),
    io.IOBase: _Refused("a file"), io.TextIOWrapper: _Refused("a file"),
    io._io._IOBase: _Refused("a file"), socket.socket: _Refused("a socket"),  # type: ignore
    mmap.mmap: _Refused("a mapped file"),
}  # fmt: skip
_SEQUENCES: list[Any] = [[], (), "", b"", range(0), bytearray()]
_KINDS |= {type(iter(_made)): _Iterator() for _made in _SEQUENCES}
_KINDS[type(reversed([]))] = _Iterator()

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
        return (_Attributes(),) if own else ()
    if issubclass(cls, type):
        return ()
    if issubclass(cls, torch.Tensor):
        if cls.__torch_dispatch__ is not _DISABLED_DISPATCH and cls is not torch.Tensor:
            return (_Refused(f"a tensor of class {cls.__qualname__}"),)
    elif cls not in _KINDS and _is_tool(cls):
        return ()
    aspects = [aspect for base in cls.__mro__ for kind, aspect in _KINDS.items() if base is kind]
    aspects = aspects[:1]
    if not aspects and not _of_python(base := _solid_base(cls)):
        if hasattr(base, "__next__"):
            aspects.append(_Watched())
        elif why := _unknown(base):
            return (_Refused(why),)
    if not issubclass(cls, types.FunctionType) and (cls.__dictoffset__ or slots_of(cls)):
        aspects.append(_Attributes())
    return tuple(aspects)


def _is_tool(cls: type) -> bool:
    return f"{cls.__module__}.".startswith(_TOOLS) and not issubclass(cls, torch.nn.Module)


def _of_python(cls: type) -> bool:
    """Was this class made by a ``class`` statement?"""
    heap, immutable = cls.__flags__ & 1 << 9, cls.__flags__ & 1 << 8
    return cls is object or bool(heap and not immutable and "__module__" in vars(cls)
                                 and not type(cls).__module__.startswith(("pybind11", "nanobind")))


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
