"""Whether ``torch.jit.trace`` is running, and every function that torch's own code asks.

``_get_tracing_state`` returns an object or None, ``_is_tracing`` a bool. ``nn.Module.__call__``
asks the former until torch 2.13, the latter since 2.14; other code of torch asks either.
"""

from __future__ import annotations

from typing import Any

import torch

#: Each question with its answer where nothing is traced.
QUESTIONS: dict[Any, Any] = {
    getattr(torch._C, name): idle
    for name, idle in (("_get_tracing_state", None), ("_is_tracing", False))
    if hasattr(torch._C, name)
}


def is_tracing() -> bool:
    """Is ``torch.jit.trace`` running in this thread?"""
    return torch.jit.is_tracing()
