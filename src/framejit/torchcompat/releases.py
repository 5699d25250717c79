"""Which releases of torch framejit is tested with, and the error of a build for other releases.

The one comparison of torch's version: other modules ask for what they need. Pre-releases and
patches count as the release that they belong to.
"""

from __future__ import annotations

import platform
import re
from pathlib import Path

import torch

OLDEST, NEWEST = (2, 13), (2, 15)


class OtherBuild(ImportError):
    """The native part was built for another release of torch, or of Python."""


def release(version: str) -> tuple[int, int]:
    """Major and minor number; zeros for what is no version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def is_tested(version: str = torch.__version__) -> bool:
    """Is this a release that all tests run with?"""
    return OLDEST <= release(version) <= NEWEST


def missing_build(folder: Path) -> ImportError:
    """Why ``folder`` has no native part that this Python can load."""
    built = sorted(file.name.split(".")[1] for file in folder.glob("_C.*.*"))
    here = f"{platform.python_implementation()} {platform.python_version()}"
    if built:
        return OtherBuild(f"its C++ part was built for {', '.join(built)} (this is {here})")
    return ImportError("framejit's C++ part is not built: install framejit with pip")
