"""`RENAMERS`: functions that only change how a frame is called in tracebacks.

Since torch 2.14 the decorators that context managers make (``torch.no_grad()``) write the manager's
name into the code of the wrapper: an assignment to ``__code__`` that nothing but a traceback sees.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.utils._contextlib

RENAMERS: tuple[Callable[..., Any], ...] = tuple(
    getattr(torch.utils._contextlib, name)
    for name in ("_set_stack_frame_name",)
    if hasattr(torch.utils._contextlib, name)
)
