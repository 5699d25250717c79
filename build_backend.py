"""Setuptools' build backend, but builds happen with the torch that is installed.

The C++ part fits the release of torch that it was compiled with, and pip builds in an environment
of its own, where it would install the newest. So the build asks for the torch of the environment
that framejit is installed into; the newest one is right only where there is none.
"""

import re
import sysconfig
from importlib.metadata import distributions

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ANY_TORCH = "torch>=2.13,<2.16"


def required_torch() -> str:
    """The requirement of the build: the release in the environment that pip works for.

    pip starts the interpreter of that environment, with a search path of its own.
    """
    places = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    for torch in distributions(name="torch", path=sorted(places)):
        if release := re.match(r"\d+\.\d+\.\d+", torch.version):
            return f"torch=={release[0]}"
    return ANY_TORCH


def get_requires_for_build_wheel(config_settings: dict | None = None) -> list[str]:
    """Setuptools would run setup.py to find out, which needs torch."""
    return [required_torch()]


get_requires_for_build_editable = get_requires_for_build_wheel
get_requires_for_build_sdist = get_requires_for_build_wheel
