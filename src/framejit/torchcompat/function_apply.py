"""`APPLY`: what lies under the name ``apply`` in the class ``torch.autograd.Function``.

Until torch 2.13 it is a ``classmethod`` around a Python function, and a bound method has that
function. Since 2.14 it is a method of a C class, which binds to a class without a Python function.
"""

from __future__ import annotations

from typing import Any

import torch

_declared: Any = vars(torch.autograd.Function)["apply"]
APPLY: Any = getattr(_declared, "__func__", _declared)


def inherited(cls: type[torch.autograd.Function]) -> Any:
    """``cls.apply`` as if no class had overridden it: an override is captured itself."""
    return _declared.__get__(None, cls)
