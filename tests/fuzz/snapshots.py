"""What a program can see of objects, as plain data that can be compared.

In: objects. Out: nested tuples; each mutable object and each tensor's memory has a number, so two
snapshots are equal only when the same things are shared. Objects of two copies of one program give
equal snapshots when they are alike.
"""

from __future__ import annotations

import collections
import functools
import itertools
import re
import threading
import types
from typing import Any

import torch
from torch.utils.hooks import RemovableHandle

from framejit.native import CompiledFunction

_PLAIN = (int, float, complex, str, bytes, bool, type(None), range, slice)
_PLAIN += (torch.dtype, torch.device)  # type: ignore[assignment]
_ITERATOR_LIMIT = 20
#: An address, in decimal or hexadecimal form.
_ADDRESS = re.compile(r"\d{13,}|0x[0-9a-f]{8,}")


def without_addresses(text: str) -> str:
    """A text without what two copies of a program do not share."""
    return _ADDRESS.sub("<address>", text)


def hashed_by_address(value: Any) -> bool:
    """Is the place of ``value`` in a set a matter of addresses, which two copies do not share?"""
    if isinstance(value, (tuple, frozenset)):
        return any(map(hashed_by_address, value))
    known = (object.__hash__, torch.Tensor.__hash__, types.MethodType.__hash__)
    return isinstance(value, int) and value > 10**12 or type(value).__hash__ in known


_SEQUENCES = (list, tuple, collections.deque)
_ABSENT = object()


def _attribute(value: Any, name: str) -> Any:
    owner = type if isinstance(value, type) else object
    try:
        return owner.__getattribute__(value, name)
    except AttributeError:
        return _ABSENT


class Numbers:
    """A tensor's numbers, equal to others that were computed in another order."""

    def __init__(self, data: torch.Tensor) -> None:
        self.data = data.clone()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Numbers):
            return NotImplemented
        one, two = self.data, other.data
        if one.dtype != two.dtype or one.shape != two.shape:
            return False
        if not one.is_floating_point() and not one.is_complex():
            return torch.equal(one, two)
        relative, absolute = (2e-2, 1e-2) if one.dtype.itemsize == 2 else (1e-4, 1e-5)
        return torch.allclose(one, two, relative, absolute, True)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.data.tolist())


class Snapshot:
    """Takes one snapshot of several roots; ``nodes``: with the names of nodes of autograd, and with
    each number as it is."""

    def __init__(self, nodes: bool = True) -> None:
        self.nodes = nodes
        self.numbers: dict[int, int] = {}
        self.memory: dict[int, int] = {}
        self.alive: list[Any] = []
        self.iterators: list[Any] = []

    def take(self, value: Any) -> Any:
        """``value`` as plain data."""
        if isinstance(value, _PLAIN) and type(value).__module__ in ("builtins", "torch"):
            return type(value).__name__, without_addresses(repr(value))
        if isinstance(value, torch.Size):
            return "Size", tuple(value)
        if type(value) is tuple:
            return "tuple", tuple(self.take(v) for v in value)
        if isinstance(value, (types.ModuleType, types.BuiltinFunctionType)):
            return "built-in", getattr(value, "__qualname__", value.__name__)
        if isinstance(value, type):
            return "class", value.__qualname__
        known = self.numbers.get(id(value))
        if known is not None:
            return "again", known
        self.numbers[id(value)] = len(self.numbers)
        self.alive.append(value)
        name = "NameError" if isinstance(value, UnboundLocalError) else type(value).__name__
        return name, *self.content(value)

    def content(self, value: Any) -> tuple[Any, ...]:
        """The parts of an object."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, types.FunctionType):
            cells = [self.cell(cell) for cell in value.__closure__ or ()]
            return value.__qualname__, self.take(value.__defaults__), cells
        if isinstance(value, CompiledFunction):
            return (self.take(value.function),)
        if isinstance(value, types.MethodType):
            return self.take(value.__func__), self.take(value.__self__)
        if isinstance(value, functools.partial):
            return self.take(value.func), self.take(value.args), self.take(value.keywords)
        if isinstance(value, BaseException):
            return self.error(value)
        if isinstance(value, RemovableHandle) and not self.nodes:
            return ()  # AOTAutograd makes handles, too: their numbers are counted by the process
        if isinstance(value, threading.Thread):
            return ()  # its name and number come from a counter of the process
        if hasattr(type(value), "__next__"):
            self.iterators.append(value)
            return ()
        parts: list[Any] = []
        if isinstance(value, dict):
            # `dict.items` does not know the order of an OrderedDict; a subclass may have its own.
            ordered = isinstance(value, collections.OrderedDict)
            items = (collections.OrderedDict if ordered else dict).items(value)
            parts.append([(self.take(k), self.take(v)) for k, v in items])
        elif isinstance(value, _SEQUENCES):
            base = next(kind for kind in _SEQUENCES if isinstance(value, kind))
            parts.append([self.take(v) for v in base.__iter__(value)])
        elif isinstance(value, (set, frozenset)):
            members = list((set if isinstance(value, set) else frozenset).__iter__(value))
            if any(map(hashed_by_address, members)):
                members.sort(key=lambda member: repr(Snapshot(self.nodes).take(member)))
            parts.append([self.take(v) for v in members])
        # Not by methods of the program's, which may note that they are asked.
        slots = [n for cls in type(value).__mro__ for n in vars(cls).get("__slots__", ())]
        found = [(n, _attribute(value, n)) for n in slots]
        parts.append([(n, self.take(part)) for n, part in found if part is not _ABSENT])
        own = _attribute(value, "__dict__")
        if own is not _ABSENT:
            parts.append([(k, self.take(v)) for k, v in own.items()])
        return tuple(parts)

    def cell(self, cell: types.CellType) -> Any:
        try:
            return self.take(cell.cell_contents)
        except ValueError:
            return "empty"

    def tensor(self, value: torch.Tensor) -> tuple[Any, ...]:
        """Everything a program can see of a tensor."""
        if torch._C._functorch.is_functorch_wrapped_tensor(value):
            # It has left its transform, after an error: torch refuses nearly all questions.
            return "of a transform", str(value.dtype), tuple(value.shape)
        data = value.detach()
        memory = self.memory.setdefault(data.untyped_storage()._cdata, len(self.memory))
        node = value.grad_fn and (value.grad_fn.name() if self.nodes else "some")
        numbers = repr(data.tolist()) if self.nodes else Numbers(data)
        return (
            str(value.dtype), tuple(value.shape), value.stride(), value.storage_offset(), memory,
            value.requires_grad, value.is_leaf, node, numbers,
            self.take(value.grad if value.is_leaf else None),
        )  # fmt: skip

    def error(self, error: BaseException) -> tuple[Any, ...]:
        """An exception with its causes."""
        try:
            text: Any = without_addresses(str(error))
        except Exception as failed:  # noqa: BLE001 - the program's own method: part of the snapshot
            text = repr(failed)
        if isinstance(error, RuntimeError):
            text = text.splitlines()[:1]
        if isinstance(error, RuntimeError) and not self.nodes:
            text = ""  # it may name a node
        if isinstance(error, (RecursionError, NameError)):
            # Where the stack ends differs; an empty cell of an enclosing function may be called
            # a local variable (see bytecode/continuations.py).
            text = ""
        cause = type(error.__cause__).__name__
        context = type(error.__context__).__name__
        return text, cause, context, error.__suppress_context__

    def rest(self) -> list[Any]:
        """What the iterators that were met still give; they are used up."""
        rest = []
        for iterator in self.iterators:
            try:
                rest.append(self.take(tuple(itertools.islice(iterator, _ITERATOR_LIMIT))))
            except Exception as error:  # noqa: BLE001 - part of the snapshot
                rest.append(self.take(error))
        return rest
