"""Whether a program can tell when an object ends: by a ``__del__``, by a weak reference.

In: an existing object. Out: yes or no, as far as can be seen now. Next room: interpreter.
"""

from __future__ import annotations

import gc
import sys
import types
import weakref
from collections import Counter
from collections.abc import Container, Iterator
from typing import Any

import torch

from framejit import native
from framejit.values.core.base import is_user_class

#: More objects than this are not looked through: one of them may be noticed.
_LOOKED_AT = 200
_OF_LAYERS = 2000
#: They keep nothing whose end is seen.
HOLD_NOTHING = (
    torch.Tensor, torch.dtype, torch.device, int, float, complex, str, bytes,
    bool, type(None), type, types.ModuleType, types.CodeType,
)  # fmt: skip
_OR_LAYERS = (*HOLD_NOTHING, torch.nn.Module)
_ENDS_UNNOTICED = (*HOLD_NOTHING, types.FunctionType, types.BuiltinFunctionType)
#: Layers that the program may let go, by address; None: any. Only their ends are looked for:
#: libraries make weak references to layers, too.
Layers = Container[int] | None

#: Weak references that torch does not make: it has classes of its own.
_PLAIN = (weakref.ReferenceType, weakref.KeyedRef)


def has_own_end(cls: type) -> bool:
    """Has the class a ``__del__``? Its metaclass is not asked."""
    mro = type.__getattribute__(cls, "__mro__")
    return any("__del__" in type.__getattribute__(base, "__dict__") for base in mro)


def layers_of_slots(slots: tuple[Any, ...]) -> set[int]:
    """The layers that nothing holds but the slots of a continuation, and what only these hold. An
    object in a slot is an argument of a tail call, and an item of ``slots``."""
    known = {id(obj): obj for obj in slots}
    counted = Counter({key: 2 * times for key, times in Counter(map(id, slots)).items()})
    owned: set[int] = set()
    layers: set[int] = set()
    todo, own = list(known), 2  # references: by `known`, and the argument
    while todo and len(known) < _OF_LAYERS:
        key = todo.pop()
        if key in owned or sys.getrefcount(known[key]) != counted[key] + own:
            continue
        owned.add(key)
        cls = type(known[key])
        if issubclass(cls, torch.nn.Module):
            layers.add(key)
        if not issubclass(cls, HOLD_NOTHING):
            todo += _count_held(known[key], known, counted)
    return layers


def _count_held(obj: Any, known: dict[int, Any], counted: Counter[int]) -> list[int]:
    held = [one for one in _held(obj) if gc.is_tracked(one)]
    keys = [id(one) for one in held]
    known.update(zip(keys, held, strict=True))
    counted.update(keys)
    return keys


def _held(obj: Any) -> list[Any]:
    """What an object holds; of a function not its module, of a frame not its function."""
    held = gc.get_referents(obj)
    if type(obj) is types.FunctionType:
        namespace, names = obj.__globals__, obj.__builtins__  # type: ignore[attr-defined]
        return [one for one in held if one is not namespace and one is not names]
    if type(obj) is types.FrameType:
        code = obj.f_code
        held = [
            one for one in held if type(one) is not types.FunctionType or one.__code__ is not code
        ]  # fmt: skip
        if is_divided(code):  # nor what goes on after it
            held = [one for one in held if not _holds_continuation(one)]
    return held


def _holds_continuation(obj: Any) -> bool:
    held = gc.get_referents(obj) if type(obj) is types.CellType else ()
    return any(issubclass(type(one), native.CompiledFunction) for one in held)


def end_is_seen(obj: Any, layers: Layers = ()) -> bool:
    """Can the program tell when the last reference to the object itself goes?"""
    cls = type(obj)  # isinstance() would ask the user's `__class__`
    if issubclass(cls, types.GeneratorType):
        if obj.gi_frame is not None:  # whoever it is given to may start it
            return True
    elif has_own_end(cls):
        return True
    if issubclass(cls, weakref.ReferenceType):
        return obj.__callback__ is not None  # which is not called any more
    # Parameters and classes have weak references that are not the program's own; theirs are looked
    # at when somebody follows them.
    if issubclass(cls, torch.Tensor) and not issubclass(cls, torch.nn.Parameter):
        return any(type(reference) in _PLAIN for reference in weakref.getweakrefs(obj))
    if issubclass(cls, torch.nn.Module) and not (layers is None or id(obj) in layers):
        return False
    if _distributes(cls):
        return False
    return not issubclass(cls, _ENDS_UNNOTICED) and any(
        map(_is_the_programs, weakref.getweakrefs(obj))
    )


def _distributes(cls: type) -> bool:
    """Of torch's books about what it distributes, to which its own tables refer weakly?"""
    return str(type.__getattribute__(cls, "__module__")).startswith("torch.distributed.")


def _is_the_programs(reference: Any) -> bool:
    """Guards and torch (which knows the generations of modules) refer to objects weakly, too."""
    if type(reference) is native.GuardReference:
        return False
    module = getattr(getattr(reference, "__callback__", None), "__module__", None)
    return not str(module).startswith("torch.")


def _may_be_noticed(obj: Any, layers: Layers) -> bool:
    """Is it of a kind whose end a program looks at, once it has started it or refers to it?"""
    cls = type(obj)
    if issubclass(cls, torch.nn.Module):
        return layers is None or id(obj) in layers
    if issubclass(cls, _ENDS_UNNOTICED):
        return issubclass(cls, torch.Tensor)
    return issubclass(cls, types.GeneratorType) or is_user_class(cls)


def noticed_parts(obj: Any, layers: Layers) -> Iterator[Any]:
    """Of an existing object and what it holds: what a program may notice the end of."""
    unnoticed = _OR_LAYERS if layers == () else HOLD_NOTHING
    todo, seen = [obj], {id(obj)}
    while todo and len(seen) < (_LOOKED_AT if layers == () else _OF_LAYERS):
        one = todo.pop()
        cls = type(one)
        if _may_be_noticed(one, layers):
            yield one
        if issubclass(cls, unnoticed) or cls is types.FrameType or _distributes(cls):
            continue
        for held in _held(one):
            if id(held) not in seen and not issubclass(type(held), type):
                seen.add(id(held))
                todo.append(held)


def keeps_what_is_seen(obj: Any, layers: Layers) -> bool:
    """The same of the object and everything that it keeps (a temporary folder, say)."""
    return search_what_is_seen(obj, layers) is not False


def search_what_is_seen(obj: Any, layers: Layers, inside: bool = False) -> bool | None:
    """The same, or (``inside``) only of what it keeps; None if that is too much to look through."""
    unnoticed = _OR_LAYERS if layers == () else HOLD_NOTHING
    limit = _LOOKED_AT if layers == () else _OF_LAYERS
    todo, seen = [obj], {id(obj)}
    handlers: set[Any] = set()
    while todo:
        one = todo.pop()
        if end_is_seen(one, layers) and not (inside and one is obj):
            return True
        kind = type(one)
        if (issubclass(kind, unnoticed) or _distributes(kind)) and not (inside and one is obj):
            continue
        if issubclass(type(one), BaseException):
            trace = BaseException.__getattribute__(one, "__traceback__")
            if trace is not None and is_divided(trace.tb_frame.f_code):
                handlers.add(function_of(trace.tb_frame.f_code))
        if type(one) is types.FrameType and _is_not_left(one, handlers):
            continue
        for held in _held(one):
            if id(held) not in seen and gc.is_tracked(held):
                seen.add(id(held))
                todo.append(held)
        if len(seen) > limit:
            return None
    return False


def function_of(code: types.CodeType) -> tuple[str, str, int]:
    """What the code of a function and the parts that it was divided into have in common."""
    return code.co_filename, code.co_name, code.co_firstlineno


def is_divided(code: types.CodeType) -> bool:
    """Does a function that was divided at a graph break go on in another frame?"""
    return any(name.startswith("fj:next") for name in code.co_freevars)


def _is_not_left(frame: types.FrameType, handlers: set[Any]) -> bool:
    """Is a frame that a traceback keeps none of the program's, or does it still run? The function
    that has caught the error goes on, perhaps in another frame."""
    module = frame.f_globals.get("__name__")
    if module is None:  # a made one, which keeps what one that is left does
        return False
    module = str(module)
    own = module.startswith("framejit.") and module != "framejit.generated"
    if own or function_of(frame.f_code) in handlers:
        return True
    running: types.FrameType | None = sys._getframe()
    while running is not None and running is not frame:
        running = running.f_back
    return running is frame
