"""Short words for values in printed guards: what was expected, what was found.

In: any Python object. Out: one line that runs no code of the user (no foreign ``__repr__``) and
shows no addresses, so the same program prints the same guards in every process.
Used by `kinds` and `plan`.
"""

from __future__ import annotations

import enum
import functools
import heapq
import itertools
import re
import types
import weakref
from typing import Any, NamedTuple

import torch

from framejit.source import Source

_LIMIT = 80
#: Python limits the length of decimal numbers.
_DECIMAL_BITS = 2000
_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), range)
_TORCH_PLAIN = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_CONTAINERS: dict[type, str] = {
    tuple: "({})",
    list: "[{}]",
    set: "{{{}}}",
    frozenset: "frozenset({{{}}})",
}
_C_FUNCTIONS = (
    types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType, types.MethodWrapperType,
)  # fmt: skip


@functools.cache
def _short(what: torch.dtype | torch.device | torch.layout) -> str:
    """As it is printed, without the module."""
    return str(what).removeprefix("torch.")


class TensorText(NamedTuple):
    """The metadata of a tensor that a TENSOR_MATCH guard compares; keeps no tensor alive."""

    type_name: str
    dtype: str
    device: str
    shape: tuple[Any, ...]
    stride: tuple[Any, ...] | None
    requires_grad: bool
    layout: str = "strided"
    keys: int = 0  # dispatch keys

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorText:
        """Read ``tensor``'s metadata; also works for sparse and nested tensors."""
        with torch._C.DisableTorchFunction():  # its class may have code of the program's for that
            return cls._of(tensor)

    @classmethod
    def _of(cls, tensor: torch.Tensor) -> TensorText:
        shape: tuple[Any, ...]
        stride: tuple[Any, ...] | None = None
        try:
            shape = tuple(tensor.shape)
            if tensor.layout is torch.strided:
                stride = tensor.stride()
        except RuntimeError:  # nested tensors have no one shape
            shape = ("nested",)
        return cls(
            type(tensor).__name__,
            _short(tensor.dtype),
            _short(tensor.device),
            shape,
            stride,
            tensor.requires_grad,
            _short(tensor.layout),
            torch._C._dispatch_keys(tensor).raw_repr(),
        )

    def __str__(self) -> str:
        grad = " with requires_grad" if self.requires_grad else ""
        return f"{self.type_name} {self.dtype}{_size(self.shape)} on {self.device}{grad}"

    def difference(self, now: TensorText) -> tuple[str, str, str]:
        """(then, now, what to do about it) in words, naming only what differs."""
        if self.type_name != now.type_name:
            return f"a {self.type_name}", f"a {now.type_name}", "pass tensors of one class"
        if self.dtype != now.dtype:
            return f"dtype {self.dtype}", f"dtype {now.dtype}", "convert it to one dtype before"
        if self.device != now.device:
            return f"device {self.device}", f"device {now.device}", "move it to one device before"
        if self.layout != now.layout:
            return self.layout, now.layout, "pass tensors of one layout"
        if len(self.shape) != len(now.shape):
            remedy = "reshape it to one number of dimensions before"
            return f"of shape {_size(self.shape)}", f"of shape {_size(now.shape)}", remedy
        for dim, (then, current) in enumerate(zip(self.shape, now.shape, strict=True)):
            if type(then) is type(current) is int and then != current:  # not of ragged dimensions
                remedy = f"framejit.mark_dynamic(tensor, {dim}) before, or compile(dynamic=True)"
                if min(then, current) < 2:
                    remedy = "keep sizes 0 and 1 out: each has code of its own"
                elif self.type_name == "Parameter":  # whose sizes are never symbolic
                    remedy = "compile each module on its own"
                return f"of size {then} at dimension {dim}", f"of size {current}", remedy
        if self.requires_grad != now.requires_grad:
            remedy = "pass it with requires_grad always, or never (detach())"
            words = "without requires_grad", "with requires_grad"
            return words[self.requires_grad], words[now.requires_grad], remedy
        if self.stride != now.stride:
            remedy = "call contiguous() before"
            return f"of strides {self.stride}", f"of strides {now.stride}", remedy
        common = self.keys & now.keys
        return (
            f"{self} with dispatch keys {_keys(self.keys - common)}",
            f"with {_keys(now.keys - common)} instead",
            "pass tensors of one kind (clone() makes a plain one)",
        )


def _keys(keys: int) -> str:
    names = str(torch._C.DispatchKeySet.from_raw_repr(keys))
    return names.removeprefix("DispatchKeySet(").rstrip(")") or "none"


def _size(shape: tuple[Any, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def text_of(obj: Any) -> str:
    """One line for any object."""
    text = _text(obj, depth=0)
    half = _LIMIT // 2 - 2  # the end often tells what the beginning does not
    return text if len(text) <= _LIMIT else f"{text[:half]} ... {text[-half:]}"


def _text(obj: Any, depth: int) -> str:
    cls = type(obj)  # isinstance() would ask the user's `__class__`
    if cls is int and obj.bit_length() > _DECIMAL_BITS:
        return hex(obj)
    if cls in _PLAIN or cls in _TORCH_PLAIN:
        return repr(obj)
    form = _CONTAINERS.get(cls)
    if form is not None:
        if depth > 2:
            return form.format("...")
        texts = (_text(item, depth + 1) for item in obj)
        unordered = cls in (set, frozenset)  # hash order differs from process to process
        items = heapq.nsmallest(8, texts) if unordered else list(itertools.islice(texts, 8))
        more = ", ..." if len(obj) > 8 else "," if cls is tuple and len(obj) == 1 else ""
        return form.format(", ".join(items) + more)
    if issubclass(cls, torch.Tensor):
        return str(TensorText.of(obj))
    if issubclass(cls, type):
        return f"class {obj.__module__}.{obj.__qualname__}"
    if issubclass(cls, types.ModuleType):
        return f"module {obj.__name__}"
    if issubclass(cls, slice):
        parts = (obj.start, obj.stop, obj.step)
        return f"slice({', '.join(_text(part, depth + 1) for part in parts)})"
    if issubclass(cls, types.CodeType):
        place = f"{obj.co_filename.rpartition('/')[2]}:{obj.co_firstlineno}"
        return f"the code of {obj.co_qualname}() at {place}"
    if issubclass(cls, types.FunctionType):
        return f"function {obj.__module__}.{obj.__qualname__}"
    if issubclass(cls, types.MethodType):
        return f"method {getattr(obj.__func__, '__qualname__', '?')}"
    if issubclass(cls, _C_FUNCTIONS):
        return f"function {_c_name(obj)}"
    if issubclass(cls, enum.Enum):
        return f"{cls.__qualname__}.{obj.name}"
    if issubclass(cls, dict):
        keys = dict.__len__(obj)
        return f"a {cls.__qualname__} with {keys} key{'' if keys == 1 else 's'}"
    article = "an" if cls.__qualname__[:1] in "AEIOUaeiou" else "a"
    return f"{article} {cls.__qualname__} object"


def _c_name(function: Any) -> str:
    """The name that users write: ``torch.relu``, not that of the class that C++ keeps it in."""
    owner, dot, name = function.__qualname__.rpartition(".")
    if owner == "TensorBase":
        return f"torch.Tensor.{name}"
    module = getattr(function, "__module__", None) or ""
    if module.startswith("torch"):
        return f"{module}.{name}"
    return f"{owner}{dot}{name}"


_ROOT = re.compile(r"\b([LG])\[('[^']*'|[^'\]]*)\]")


def shown_name(source: Source) -> str:
    """A source in the form of printed guards: ``local 'self'.weight``, ``global 'torch'`` for the
    compiled function's own globals, ``global torch.nn.functional.linear`` for those of another
    module (``global builtins.abs``), ``intermediate value 0`` for what has no name of its own when
    a continuation begins."""
    name = _ROOT.sub(_root_name, source.name)
    step: Source | None = source
    while step is not None:
        key = recall(step.key)
        if isinstance(key, torch.Tensor) and step.label:  # <Parameter 0>: which one is that?
            kind = TensorText.of(key)
            more = f"{step.label[:-1]}, {kind.dtype}{_size(kind.shape)}>"
            name = name.replace(f"[{step.label}]", f"[{more}]")
        step = step.base
    return name


def _root_name(found: re.Match[str]) -> str:
    if found[1] == "L" and found[2].startswith("'stack "):
        return f"intermediate value {found[2][7:-1]}"
    return f"{'local' if found[1] == 'L' else 'global'} {found[2]}"


def shown_place(source: Source) -> str:
    """The same where nothing is: not ``local 'self'.weight``, which may well exist elsewhere, but
    ``local 'self'._buffers['weight']``."""
    base = source.base
    if source.accessor != "item" or base is None or base.base is None:
        return shown_name(source)
    return shown_name(source) if source.label else f"{shown_name(base)}[{source.key!r}]"


#: torch's numbers for the dtypes that can be a default.
_DTYPES = {5: "float16", 6: "float32", 7: "float64", 15: "bfloat16"}


#: What `native.GlobalState.export` gives: flags, __torch_function__ modes, saved-tensor hooks?
State = tuple[dict[str, int], tuple[Any, ...], bool]


def state_text(state: State) -> str:
    """Torch's global state in words: grad mode and default dtype always, the rest if unusual."""
    return ", ".join(
        text for name, text in _state_words(state).items()
        if name in ("grad", "default_dtype") or not text.startswith("no ")
    )  # fmt: skip


def state_difference(then: State, now: State) -> tuple[str, str]:
    """(then, now) in words, naming only what differs."""
    flags = dict(now[0], autocast_level_required=then[0]["autocast_level_required"])
    if not flags["autocast_level_required"]:
        flags["autocast_level"] = then[0]["autocast_level"]
    now = flags, *now[1:]
    words = [_state_words(state) for state in (then, now)]
    differing = [name for name in words[0] if words[0][name] != words[1][name]]
    if differing:
        before, after = (", ".join(one[name] for name in differing) for one in words)
        return before, after
    differing = [name for name in then[0] if then[0][name] != now[0][name]]
    if differing:
        before, after = (
            ", ".join(f"{name} {_flag(name, flags[name])}" for name in differing)
            for flags in (then[0], now[0])
        )
        return before, after
    what = ", ".join(words[0][name] for name in ("modes", "hooks"))
    return what, f"others: {what}"


def _flag(name: str, value: int) -> str:
    if name.startswith("keys"):
        return _keys(value)
    return _dtype(value) if "dtype" in name else str(value)


def _dtype(number: int) -> str:
    return _DTYPES.get(number, f"dtype {number}")


def _state_words(state: State) -> dict[str, str]:
    flags, modes, hooks = state
    words = {
        "grad": f"grad mode {'on' if flags['grad'] else 'off'}",
        "default_dtype": f"default dtype {_dtype(flags['default_dtype'])}",
        "inference": "inference mode" if flags["inference"] else "no inference mode",
    }
    if flags["inference"]:
        words["grad"] = "grad mode off"
    for device, shown in (("cpu", "the CPU"), ("cuda", "CUDA")):
        on = f"autocast on {shown} to {_dtype(flags[f'autocast_dtype_{device}'])}"
        words[device] = on if flags[f"autocast_{device}"] else f"no autocast on {shown}"
    if flags["autocast_level_required"]:
        level = flags["autocast_level"]
        words["level"] = f"{level} block{'' if level == 1 else 's'} of autocast"
    number = flags["torch_dispatch_modes"]
    words["deterministic"] = f"{'' if flags['deterministic'] else 'no '}deterministic algorithms"
    words["dispatch"] = f"{number or 'no'} torch dispatch mode{'' if number == 1 else 's'}"
    words["modes"] = ", ".join(map(_mode, modes)) or "no __torch_function__ mode"
    replaced = flags["attributes_replaced"]
    words["attributes"] = f"{'' if replaced else 'no '}replaced attributes of tensors"
    words["hooks"] = f"{'' if hooks else 'no '}saved-tensor hooks"
    return words


def _mode(mode: Any) -> str:
    if type(mode) is torch.utils._device.DeviceContext:
        return f"device {mode.device} as the default"
    return f"under {type(mode).__name__}"


class Gone:
    """In place of an object that has died since the guard was made."""

    def __repr__(self) -> str:
        return "an object that no longer exists"


GONE = Gone()


class Weak(NamedTuple):
    """A payload held weakly."""

    reference: weakref.ref[Any]


def recall(payload: Any) -> Any:
    """The payload, given what `Kind.remember` kept."""
    if type(payload) is Weak:
        target = payload.reference()
        return GONE if target is None else target
    return payload
