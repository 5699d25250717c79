"""Classes that are registered with torch as opaque: constants, and handles of something outside.

In: classes. Out: whether equal objects of one are interchangeable (``typ="value"``), or each stays
what it is as long as it lives (``typ="reference"``: a device mesh), and what their members say once
and for all. Next: holding, values.
"""

from __future__ import annotations

import enum

from ..classes import is_known_by_identity
from ..torchcompat.opaque_classes import MemberType, get_member_type, is_constant, is_reference


def is_value_class(cls: type) -> bool:
    """Are objects of the class constants, known by what they are equal to?"""
    return is_known_by_identity(cls) and not issubclass(cls, enum.Enum) and is_constant(cls)


def is_handle_class(cls: type) -> bool:
    """Does an object of the class stay what it is, so that to be the same one is enough?"""
    return is_known_by_identity(cls) and is_reference(cls)


def is_computed(cls: type, name: str) -> bool:
    """Is this member of such a class asked for while capturing, and the answer a constant?"""
    return get_member_type(cls, name) is MemberType.USE_REAL
