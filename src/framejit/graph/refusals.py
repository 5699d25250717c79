"""Whether an operation whose result nobody needs raises for tensors of such dtypes.

In: a node, and what is known of its arguments. Out: whether its kernel may refuse them. Fake
tensors do not tell, and a backend may leave the operation out: it is run once, on zeros.
Next: builder.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from .metadata import Example
from .propagation import invoke
from .silence import quiet

#: More elements than this are not made.
_LIMIT = 1 << 24
_CPU = torch.device("cpu")


class _Unlike(Exception):
    """There is nothing like this to try it on."""


def may_be_refused(node: torch.fx.Node, example: Callable[[torch.fx.Node], Any]) -> bool:
    """Does the operation raise for zeros, or is that not known?"""
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(quiet)
            stack.enter_context(torch.no_grad())
            for device in ("cpu", "cuda"):
                stack.enter_context(torch.autocast(device, enabled=False))
            args, kwargs = torch.fx.map_arg(
                (node.args, node.kwargs), lambda argument: _zeros(example(argument))
            )
            invoke(node.target, args, kwargs)
    except Exception:
        return True
    return False


def _zeros(value: Any) -> Any:
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return value.node.hint
    if not isinstance(value, Example):
        raise _Unlike
    meta = value.meta
    # A GPU does not recover from an index that is out of range.
    index = meta.device != _CPU and not (meta.dtype.is_floating_point or meta.dtype.is_complex)
    if meta.keys is not None or meta.layout is not torch.strided or index:
        raise _Unlike
    shape, stride = [
        [_zeros(number) if isinstance(number, torch.SymInt) else number for number in numbers]
        for numbers in (meta.shape, meta.stride)
    ]
    if sum((n - 1) * step for n, step in zip(shape, stride, strict=True)) > _LIMIT:
        raise _Unlike
    made = torch.empty_strided(shape, stride, dtype=meta.dtype, device=meta.device)
    return made.zero_()
