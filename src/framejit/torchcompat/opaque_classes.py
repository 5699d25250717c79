"""What torch says of classes that are registered with it as opaque.

Torch 2.13 has *values* and *references*; since 2.14 they are *constants* and *symbolic*, and the
old questions still have answers but log a warning each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch._library import opaque_object


def _question(name: str, before: str) -> Callable[[Any], bool]:
    found: Callable[[Any], bool] = getattr(opaque_object, name, None) or getattr(
        opaque_object, before
    )
    return found


MemberType = opaque_object.MemberType
get_member_type = opaque_object.get_member_type
is_constant = _question("is_opaque_constant_type", "is_opaque_value_type")
is_reference = _question("is_opaque_symbolic_type", "is_opaque_reference_type")
