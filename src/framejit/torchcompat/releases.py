"""Which releases of torch framejit is tested with, and the error of those it cannot work with.

The one comparison of torch's version: other modules ask for what they need. Pre-releases and
patches count as the release that they belong to.
"""

from __future__ import annotations

import re

import torch

OLDEST, NEWEST = (2, 13), (2, 15)


class OtherTorch(ImportError):
    """The native part was built for another release of torch."""


def release(version: str) -> tuple[int, int]:
    """Major and minor number; zeros for what is no version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def is_tested(version: str = torch.__version__) -> bool:
    """Is this a release that all tests run with?"""
    return OLDEST <= release(version) <= NEWEST
