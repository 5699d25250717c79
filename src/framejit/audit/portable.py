"""Objects of one process for another one: what a script of an audit starts from.

In: any objects, and the namespaces that their code uses. Out: a pickle, and tensors' memory in the
safetensors format. Functions and classes that no import leads to (of ``__main__``, of closures)
travel by value; tensors that share memory still do. Next: script.
"""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
import types
from typing import Any

import torch

from framejit import tensor_file
from framejit.audit.comparison import storage_key
from framejit.audit.reach import is_foreign, used_in

_NOT_COPIED = ("__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "_abc_impl")


class Writer(pickle.Pickler):
    """Pickles; modules are added to ``live``, unless ``inside_live`` says to pickle them."""

    def __init__(self, file: Any, live: list[Any], inside_live: bool) -> None:
        super().__init__(file, protocol=4)
        self.live, self.inside_live = live, inside_live
        self.memory: list[torch.Tensor] = []
        self._storages: dict[int, int] = {}
        #: By module: the globals of functions that travel by value, and the names they use.
        self.spaces: dict[str, tuple[dict[str, Any], set[str]]] = {}

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, torch.TypedStorage):
            return self._memory(obj)
        if isinstance(obj, types.ModuleType):
            return "module", obj.__name__
        if isinstance(obj, torch.nn.Module) and not self.inside_live:
            known = [one is obj for one in self.live]
            if True not in known:
                self.live.append(obj)
            return "live", known.index(True) if True in known else len(known)
        return None

    def _memory(self, storage: torch.TypedStorage) -> Any:
        """Which memory, and what it is read as."""
        untyped = storage._untyped_storage
        place = self._storages.setdefault(untyped._cdata, len(self.memory))
        if place == len(self.memory):
            empty = torch.empty(0, dtype=torch.uint8, device=untyped.device)
            self.memory.append(empty.set_(untyped))  # type: ignore[call-overload]
        return "memory", place, storage.dtype

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, torch.Tensor):
            if type(obj) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer):
                raise pickle.PicklingError(f"a tensor of class {type(obj).__qualname__}")
            if obj.layout is not torch.strided or storage_key(obj) is None:
                raise pickle.PicklingError(f"a tensor of layout {obj.layout}")
            if obj.grad_fn is not None:
                return _result, (obj.detach().requires_grad_(),)
        if isinstance(obj, types.FunctionType) and not importable(obj):
            space = obj.__globals__
            name = str(space.get("__name__"))
            self.spaces.setdefault(name, (space, set()))[1].update(used_in(obj.__code__).names)
            made = marshal.dumps(obj.__code__), name, obj.__closure__
            state = obj.__defaults__, obj.__kwdefaults__, vars(obj), obj.__qualname__
            return _function, made, state, None, None, _fill_function
        if isinstance(obj, types.CellType):
            try:
                return _made, ("CellType",), (obj.cell_contents,), None, None, _fill_cell
            except ValueError:
                return _made, ("CellType",)
        if isinstance(obj, type) and not importable(obj):
            content = {k: v for k, v in vars(obj).items() if k not in _NOT_COPIED
                       and not isinstance(v, types.MemberDescriptorType)}  # fmt: skip
            slots = {"__slots__": content.pop("__slots__")} if "__slots__" in content else {}
            made = type(obj), obj.__name__, obj.__bases__, slots, obj.__qualname__, obj.__module__  # type: ignore
            return _class, made, content, None, None, _fill_class
        if isinstance(obj, types.MappingProxyType):
            return _made, ("MappingProxyType", dict(obj))
        return NotImplemented


def importable(obj: Any) -> bool:
    """Does a name in a module, which another process can import, lead to this object?"""
    module = getattr(obj, "__module__", None)
    if module in (None, "__main__") or (module == "builtins" and isinstance(obj, type)):
        return module == "builtins"
    found: Any = sys.modules.get(str(module))
    if getattr(found, "__spec__", None) is None and not is_foreign(str(module)):
        return False
    for part in obj.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is obj


def dump(
    content: Any, live: list[Any], spaces: dict[str, dict[str, Any]], limit: int,
    inside_live: bool = False,
) -> tuple[bytes, bytes]:  # fmt: skip
    """``content`` as a pickle, and the memory of its tensors. ``spaces``: for namespaces of
    functions that travel by value, the names that count. Raises what pickling raises, and
    ValueError for memory of more than ``limit`` bytes."""
    file = io.BytesIO()
    writer = Writer(file, live, inside_live)
    writer.dump(content)
    told: set[tuple[str, str]] = set()
    order: list[str] = []
    while more := {(name, key) for name, (_, used) in writer.spaces.items() for key in used} - told:
        told |= more
        for name in sorted({name for name, _ in more}):
            space = {**writer.spaces[name][0], **spaces.get(name, {})}
            order.append(name)
            keys = [key for of, key in sorted(more) if of == name and key in space]
            writer.dump({key: space[key] for key in keys})
    if sum(map(len, writer.memory)) > limit:
        raise ValueError(f"the inputs have more than {limit >> 20} MiB")
    return marshal.dumps([order, file.getvalue()]), tensor_file.dump(writer.memory)


# -- and back --------------------------------------------------------------------------------------

_spaces: dict[str, dict[str, Any]] = {}


class Reader(pickle.Unpickler):
    """The other way. ``storages`` are the tensors' memory, as bytes."""

    def __init__(self, file: Any, live: list[Any], storages: list[torch.Tensor]) -> None:
        super().__init__(file)
        self.live, self.storages = live, storages

    def persistent_load(self, row: Any) -> Any:
        kind, which, *rest = row
        if kind == "module":
            return importlib.import_module(which)
        if kind == "live":
            return self.live[which]
        storage = self.storages[which].untyped_storage()
        return torch.TypedStorage(wrap_storage=storage, dtype=rest[0], _internal=True)


def load(data: bytes, tensors: bytes, live: list[Any]) -> Any:
    """What `dump` was given, anew; ``live`` are the objects that it added there."""
    names, inner = marshal.loads(data)
    storages = [t.clone() for t in tensor_file.load(memoryview(bytearray(tensors)))]
    reader = Reader(io.BytesIO(inner), live, storages)
    content = reader.load()
    for name in names:
        _space(name).update(reader.load())
    return content


def _space(name: str) -> dict[str, Any]:
    if name not in _spaces:
        _spaces[name] = {"__name__": name, "__builtins__": __builtins__}
    return _spaces[name]


def _function(code: bytes, space: str, closure: Any) -> types.FunctionType:
    return types.FunctionType(marshal.loads(code), _space(space), None, None, closure)


def _fill_function(function: Any, state: Any) -> None:
    function.__defaults__, function.__kwdefaults__, attributes, function.__qualname__ = state
    vars(function).update(attributes)


def _made(kind: str, *args: Any) -> Any:
    return getattr(types, kind)(*args)


def _result(leaf: torch.Tensor) -> torch.Tensor:
    """What an operation made."""
    return leaf.view_as(leaf)


def _fill_cell(cell: Any, state: Any) -> None:
    (cell.cell_contents,) = state


def _class(meta: Any, name: str, bases: Any, slots: Any, qualname: str, module: str) -> Any:
    return meta(name, bases, {**slots, "__qualname__": qualname, "__module__": module})


def _fill_class(cls: Any, content: dict[str, Any]) -> None:
    for name, value in content.items():
        try:
            setattr(cls, name, value)
        except (AttributeError, TypeError):  # what the class has made itself
            continue
