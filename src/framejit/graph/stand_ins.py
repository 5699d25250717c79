"""Tensors that are still to come: those on meta, and fake ones, as the tensors they stand for.

In: a tensor without content. Out: one on the device where its content will be, whose memory nobody
reads or writes, so that large ones take none on a CPU. Those that share memory share it here, too.
Next: builder.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .metadata import is_leaf

_META = torch.device("meta")
_CPU = torch.device("cpu")


def has_no_content(tensor: Any) -> bool:
    """Is it a tensor on meta, or a fake one?"""
    cls = type(tensor)
    if cls is FakeTensor:
        return True
    plain = cls in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return plain and tensor.device.type == "meta"


def device_of(tensors: Iterable[torch.Tensor]) -> torch.device:
    """Where the tensors on meta among ``tensors`` will be: where the others are. ValueError if that
    is not known."""
    found = {tensor.device for tensor in tensors} - {_META, _CPU}
    if len(found) > 1:
        named = ", ".join(sorted(map(str, found)))
        raise ValueError(f"tensors on meta may stand for tensors on any of {named} [FJ0210]")
    return found.pop() if found else _CPU


class StandIns:
    """The tensors in place of those without content, one for each. ``device``: for those on meta;
    fake tensors say where they are."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        #: By identity; the originals are kept alive.
        self._made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._storages: dict[tuple[torch.device, int], torch.UntypedStorage] = {}

    def of(self, tensor: Any) -> Any:
        """What will be there instead of ``tensor``: itself, if it has content. Raises what torch
        does when there is no such device, or not enough memory on it."""
        known = self._made.get(id(tensor))
        if known is not None:
            return known[1]
        if not has_no_content(tensor):
            return tensor
        made = self._like(tensor)
        self._made[id(tensor)] = (tensor, made)
        return made

    def _like(self, tensor: Any) -> torch.Tensor:
        is_fake = type(tensor) is FakeTensor
        device = tensor.device if is_fake else self._device
        shape, strides = tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride()))
        offset = int(tensor.storage_offset())
        with torch.inference_mode(tensor.is_inference()):
            base = tensor._base if tensor._is_view() else None
            if base is not None and base.dtype == tensor.dtype:
                base = self.of(base)
                with torch.set_grad_enabled(tensor.requires_grad):
                    return base.as_strided(shape, strides, offset)
            made = torch.empty(0, dtype=tensor.dtype, device=device)
            made.set_(self._storage(tensor, device), offset, shape, strides)
        cls = torch.nn.Parameter if getattr(tensor, "_is_param", False) else type(tensor)
        if issubclass(cls, torch.nn.Parameter):
            made = torch.nn.Parameter(made, tensor.requires_grad)
        elif tensor.requires_grad:
            made.requires_grad_()
            if not is_leaf(tensor):
                with torch.enable_grad():
                    made = made.as_strided(shape, strides, offset)
        own = _without_own_attributes(tensor) if is_fake else tensor.__dict__
        made.__dict__.update(own)
        return made

    def _storage(self, tensor: torch.Tensor, device: torch.device) -> torch.UntypedStorage:
        storage = tensor.untyped_storage()
        key = device, storage._cdata
        known = self._storages.get(key)
        if known is None:
            known = torch.UntypedStorage(storage.nbytes(), device=device)
            self._storages[key] = known
        return known


def _without_own_attributes(fake: Any) -> dict[str, Any]:
    """The attributes that the program has given to a fake tensor."""
    plain = FakeTensor(fake.fake_mode, torch.empty(0, device=_META), fake.device)
    usual = vars(plain).keys() | {"_is_param"}
    return {name: value for name, value in vars(fake).items() if name not in usual}
