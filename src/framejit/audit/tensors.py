"""What of a tensor may change, noted without copying its memory.

In: a tensor. Out: its metadata, gradient, hooks and version; the elements are the memory's, which
is noted once for all its tensors. Next: contents.
"""

from __future__ import annotations

from typing import Any

import torch

from framejit.audit.comparison import grad_of, storage_key


class TensorContent:
    """A tensor's metadata, memory, gradient, hooks and version; the elements are the memory's."""

    __slots__ = ("alias", "grad", "grad_fn", "hooks", "key", "leaf", "requires_grad", "version")

    def __init__(self, t: torch.Tensor) -> None:
        self.key = storage_key(t)
        self.alias = t.detach()
        self.requires_grad, self.leaf = t.requires_grad, t.is_leaf
        inference = t.is_inference()
        self.grad = grad_of(t)
        self.grad_fn = t.grad_fn
        self.hooks = [t._backward_hooks, t._post_accumulate_grad_hooks]  # type: ignore[attr-defined]
        self.version = None if inference else t._version

    @property
    def layout(self) -> tuple[Any, ...]:
        """What ``set_``, ``resize_`` and ``data = ...`` change."""
        a = self.alias
        return self.key, a.dtype, tuple(a.shape), a.stride(), a.storage_offset()

    def on(self, storage: torch.UntypedStorage) -> torch.Tensor:
        """The elements, read from a copy of the memory."""
        a = self.alias
        empty = torch.empty(0, dtype=a.dtype, device=a.device)
        return empty.set_(storage, a.storage_offset(), a.shape, a.stride())  # type: ignore
