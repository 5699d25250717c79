"""Tensors in the safetensors format, and back.

In: tensors. Out: bytes that any safetensors reader reads: a length, a JSON header, the raw data.
The library of that name copies what it reads and aligns it to 8 bytes; these tensors stay where the
file is mapped, and lie where Inductor's kernels want them. Next: package.
"""

from __future__ import annotations

import json
import struct
from typing import Any

import torch

from framejit.exc import PackageError

_TYPES: dict[str, torch.dtype] = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool, "C64": torch.complex64,
    "U16": torch.uint16, "U32": torch.uint32, "U64": torch.uint64,
    "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip
#: Where a tensor starts in the file, in bytes; Inductor's kernels rely on as much.
ALIGNMENT = 64
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


def saveable(tensor: torch.Tensor) -> bool:
    """Can this tensor be written? Plain, strided ones of the usual types can."""
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout is torch.strided
    return plain and tensor.dtype in _NAMES and tensor.device.type != "meta"


def dump(tensors: list[torch.Tensor]) -> bytes:
    """All tensors, contiguous, named by their position; strides and devices are noted."""
    header: dict[str, Any] = {}
    chunks: list[bytes] = []
    position = 0
    notes = []
    for number, tensor in enumerate(tensors):
        data = tensor.detach().to("cpu").contiguous()
        raw = bytes(data.reshape(-1).view(torch.uint8).numpy()) if data.numel() else b""
        gap = -position % ALIGNMENT
        if gap:  # readers of the format want every byte to belong to a tensor
            header[f"padding {number}"] = {
                "dtype": "U8", "shape": [gap], "data_offsets": [position, position + gap],
            }  # fmt: skip
            chunks.append(bytes(gap))
            position += gap
        header[str(number)] = {
            "dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape),
            "data_offsets": [position, position + len(raw)],
        }  # fmt: skip
        notes.append([str(tensor.device), list(tensor.stride()), tensor.requires_grad])
        chunks.append(raw)
        position += len(raw)
    header["__metadata__"] = {"tensors": json.dumps(notes)}
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    return struct.pack("<Q", len(text)) + text + b"".join(chunks)


def load(data: memoryview) -> list[torch.Tensor]:
    """The tensors of a part, in its memory. Raises PackageError if it is not what `dump` writes."""
    try:
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(bytes(data[8 : 8 + length]))
        notes = json.loads(header["__metadata__"]["tensors"])
        return [
            _tensor(header[str(number)], data[8 + length :], *note)
            for number, note in enumerate(notes)
        ]
    except (ValueError, KeyError, TypeError, struct.error, RuntimeError) as error:
        raise PackageError(f"the constants of a package cannot be read: {error}") from error


def _tensor(
    row: dict[str, Any], data: memoryview, device: str, strides: list[int], grad: bool
) -> torch.Tensor:
    start, end = row["data_offsets"]
    dtype, shape = _TYPES[row["dtype"]], row["shape"]
    if start == end:
        made = torch.empty(shape, dtype=dtype)
    else:
        made = torch.frombuffer(data[start:end], dtype=dtype).reshape(shape)
    if list(made.stride()) != strides:
        laid_out = torch.empty_strided(shape, strides, dtype=dtype)
        made = laid_out.copy_(made)
    return made.to(device).requires_grad_(grad)
