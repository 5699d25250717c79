"""Operators whose results PyTorch's own C++ code finds for tensors on the ``meta`` device.

Python functions that torch registers for meta tensors are in ``OpOverload.py_kernels`` and hide
those in C++. Which operators have one varies: torch 2.15 left ``stack`` and ``arange`` to C++. A
fake tensor has the dispatch keys of the device that it stands for, so a C++ kernel for meta tensors
has to be asked by its key: by the tensors' own keys the kernel of the CPU would read their memory.
"""

from __future__ import annotations

from typing import Any

import torch

_META = torch._C.DispatchKey.Meta
_has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key


def is_left_to_cpp(func: Any) -> bool:
    """Is no Python function registered for meta tensors?"""
    return _META not in func.py_kernels


def has_cpp_kernel(func: Any) -> bool:
    """Is there a kernel in C++ for meta tensors, and no Python function over it?"""
    return is_left_to_cpp(func) and _has_kernel(func.name(), "Meta")
