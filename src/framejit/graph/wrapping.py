"""New tensors that are made of tensors.

In: a class, a size, and what the attributes are. Out: an object of the class, which has had no code
of the class run for it. Called by graphs and by generated functions. Next room: backends.
"""

from __future__ import annotations

from typing import Any

import torch


def make_wrapper(
    cls: Any, size: Any, options: dict[str, Any], attributes: dict[str, Any]
) -> torch.Tensor:
    """``Tensor._make_wrapper_subclass(cls, size, **options)`` with these attributes."""
    made: torch.Tensor = torch.Tensor._make_wrapper_subclass(cls, size, **options)
    vars(made).update(attributes)
    return made
