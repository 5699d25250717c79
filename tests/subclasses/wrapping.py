"""Classes of tensors made of tensors, for the tests of this folder, and objects of them."""

from __future__ import annotations

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_map


def x():
    return torch.arange(6.0).reshape(2, 3)


class Pair(torch.Tensor):
    """Two tensors of one shape; operations are done on both."""

    @staticmethod
    def __new__(cls, a, b, tag=None):
        return torch.Tensor._make_wrapper_subclass(
            cls, a.size(), strides=a.stride(), storage_offset=a.storage_offset(), dtype=a.dtype,
            device=a.device, requires_grad=a.requires_grad,
        )  # fmt: skip

    def __init__(self, a, b, tag=None):
        self.a, self.b, self.tag = a, b, tag

    def __repr__(self):
        return "Pair"

    def __tensor_flatten__(self):
        return ["a", "b"], self.tag

    @staticmethod
    def __tensor_unflatten__(inner, tag, size, stride):
        return Pair(inner["a"], inner["b"], tag)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        def parts(name):
            def part(one):
                return getattr(one, name) if isinstance(one, cls) else one

            return func(*tree_map(part, args), **tree_map(part, kwargs or {}))

        tags = [one.tag for one in args if isinstance(one, cls)]
        first, second = parts("a"), parts("b")
        if isinstance(first, torch.Tensor):
            made = cls(first, second, tags[0] if tags else None)
        elif isinstance(first, (list, tuple)):
            tag = tags[0] if tags else None
            made = type(first)(cls(*both, tag) for both in zip(first, second, strict=True))
        else:
            made = first
        return return_and_correct_aliasing(func, args, kwargs or {}, made)


class Scaled(torch.Tensor):
    """A quantised weight: whole numbers, a scale, and how they are to be used."""

    @staticmethod
    def __new__(cls, numbers, scale, how):
        return torch.Tensor._make_wrapper_subclass(cls, numbers.shape, dtype=scale.dtype)

    def __init__(self, numbers, scale, how):
        self.numbers, self.scale, self.how = numbers, scale, how

    def __repr__(self):
        return "Scaled"

    def __tensor_flatten__(self):
        return ["numbers", "scale"], self.how

    @classmethod
    def __tensor_unflatten__(cls, inner, how, size, stride):
        return cls(inner["numbers"], inner["scale"], how)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        if func in (torch.ops.aten.detach.default, torch.ops.aten.alias.default):
            one = args[0]
            return cls(func(one.numbers), func(one.scale), one.how)
        full = [
            a.numbers.to(a.scale.dtype) * a.scale * a.how["factor"] if isinstance(a, cls) else a
            for a in args
        ]
        return func(*full, **(kwargs or {}))


def pair(offset=0.0, tag=None):
    return Pair(x() + offset, x() * 2 + offset, tag)


def scaled(factor=1.0, rows=4):
    return Scaled(torch.ones(rows, 3, dtype=torch.int8), torch.tensor(0.5), {"factor": factor})


def tensors(value):
    """The plain tensors in results."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
    elif hasattr(value, "__tensor_flatten__"):
        for name in value.__tensor_flatten__()[0]:
            yield from tensors(getattr(value, name))
    elif isinstance(value, torch.Tensor):
        yield value
