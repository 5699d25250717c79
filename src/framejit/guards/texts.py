"""Short words for values in printed guards: what was expected, what was found.

In: any Python object. Out: one line that runs no code of the user (no foreign ``__repr__``) and
shows no addresses, so the same program prints the same guards in every process.
Used by `kinds` and `plan`.
"""

from __future__ import annotations

import enum
import re
import types
from typing import Any, NamedTuple

import torch

from framejit.source import Source

_LIMIT = 80
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


class TensorText(NamedTuple):
    """The metadata of a tensor that a TENSOR_MATCH guard compares; keeps no tensor alive."""

    type_name: str
    dtype: str
    device: str
    shape: tuple[Any, ...]
    stride: tuple[Any, ...] | None
    requires_grad: bool

    @classmethod
    def of(cls, tensor: torch.Tensor) -> TensorText:
        """Read ``tensor``'s metadata; also works for sparse and nested tensors."""
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
            str(tensor.dtype).removeprefix("torch."),
            str(tensor.device),
            shape,
            stride,
            tensor.requires_grad,
        )

    def __str__(self) -> str:
        grad = " with requires_grad" if self.requires_grad else ""
        return f"{self.type_name} {self.dtype}{_size(self.shape)} on {self.device}{grad}"

    def difference(self, now: TensorText) -> tuple[str, str]:
        """(then, now) in words, naming only what differs."""
        if self.type_name != now.type_name:
            return f"a {self.type_name}", f"a {now.type_name}"
        if self.dtype != now.dtype:
            return f"dtype {self.dtype}", f"dtype {now.dtype}"
        if self.device != now.device:
            return f"device {self.device}", f"device {now.device}"
        if len(self.shape) != len(now.shape):
            return (
                f"{len(self.shape)} dimensions {_size(self.shape)}",
                f"{len(now.shape)} dimensions {_size(now.shape)}",
            )
        for dim, (then, current) in enumerate(zip(self.shape, now.shape, strict=True)):
            if then != current:
                return f"size {then} at dimension {dim}", f"size {current} at dimension {dim}"
        if self.requires_grad != now.requires_grad:
            return f"requires_grad={self.requires_grad}", f"requires_grad={now.requires_grad}"
        if self.stride != now.stride:
            return f"strides {self.stride}", f"strides {now.stride}"
        return f"{self} and its dispatch keys", "the same metadata with other dispatch keys"


def _size(shape: tuple[Any, ...]) -> str:
    return "[" + ", ".join(map(str, shape)) + "]"


def text_of(obj: Any) -> str:
    """One line for any object."""
    text = _text(obj, depth=0)
    return text if len(text) <= _LIMIT else text[: _LIMIT - 3] + "..."


def _text(obj: Any, depth: int) -> str:
    cls = type(obj)
    if cls in _PLAIN or cls in _TORCH_PLAIN:
        return repr(obj)
    form = _CONTAINERS.get(cls)
    if form is not None:
        if depth > 2:
            return form.format("...")
        items = [_text(item, depth + 1) for item in list(obj)[:8]]
        if cls in (set, frozenset):
            items.sort()  # hash order differs from process to process
        more = ", ..." if len(obj) > 8 else "," if cls is tuple and len(obj) == 1 else ""
        return form.format(", ".join(items) + more)
    if isinstance(obj, torch.Tensor):
        return str(TensorText.of(obj))
    if isinstance(obj, type):
        return f"class {obj.__module__}.{obj.__qualname__}"
    if isinstance(obj, types.ModuleType):
        return f"module {obj.__name__}"
    if isinstance(obj, types.CodeType):
        return f"the code of {obj.co_qualname}()"
    if isinstance(obj, types.FunctionType):
        return f"function {obj.__module__}.{obj.__qualname__}"
    if isinstance(obj, types.MethodType):
        return f"method {getattr(obj.__func__, '__qualname__', '?')}"
    if isinstance(obj, _C_FUNCTIONS):
        return f"function {obj.__qualname__}"
    if isinstance(obj, enum.Enum):
        return f"{cls.__qualname__}.{obj.name}"
    if isinstance(obj, dict):
        return f"a {cls.__qualname__} with {dict.__len__(obj)} keys"
    article = "an" if cls.__qualname__[:1] in "AEIOUaeiou" else "a"
    return f"{article} {cls.__qualname__} object"


_ROOT = re.compile(r"\b([LG])\[('[^']*'|[^'\]]*)\]")


def shown_name(source: Source) -> str:
    """A source in the form of printed guards: ``local 'self'.weight``, ``global 'torch'`` for the
    compiled function's own globals, ``global torch.nn.functional.linear`` for those of another
    module (``global builtins.abs``)."""
    return _ROOT.sub(lambda m: f"{'local' if m[1] == 'L' else 'global'} {m[2]}", source.name)


def shown_place(source: Source) -> str:
    """The same where nothing is: not ``local 'self'.weight``, which may well exist elsewhere, but
    ``local 'self'._buffers['weight']``."""
    base = source.base
    if source.accessor != "item" or base is None or base.base is None:
        return shown_name(source)
    return f"{shown_name(base)}[{source.key!r}]"


#: torch's numbers for the dtypes that can be a default.
_DTYPES = {5: "float16", 6: "float32", 7: "float64", 15: "bfloat16"}


def state_text(flags: dict[str, int], modes: tuple[Any, ...]) -> str:
    """Torch's global state in words: grad mode and default dtype always, the rest if unusual."""
    def dtype(name: str) -> str:
        return _DTYPES.get(flags[name], f"dtype {flags[name]}")

    words = [f"grad mode {'on' if flags['grad'] else 'off'}"]
    words.append(f"default dtype {dtype('default_dtype')}")
    if flags["inference"]:
        words.append("inference mode")
    for device, shown in (("cpu", "the CPU"), ("cuda", "CUDA")):
        if flags[f"autocast_{device}"]:
            words.append(f"autocast on {shown} to {dtype(f'autocast_dtype_{device}')}")
    if flags["deterministic"]:
        words.append("deterministic algorithms")
    if flags["torch_dispatch_modes"]:
        words.append(f"{flags['torch_dispatch_modes']} torch dispatch modes")
    words.extend(f"under {type(mode).__name__}" for mode in modes)
    return ", ".join(words)
