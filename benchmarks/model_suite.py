"""A model of each architecture that timm has, as a suite of `benchmarks/suites.py`.

Of each of timm's modules the smallest of a few variants, with random weights, as a program that
runs it forward. What is the smallest is found on the meta device, when the model is run.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

# A torchvision that does not fit this torch must not stop timm.
sys.path.append(str(Path(__file__).parents[1] / "tests"))
import conftest  # noqa: F401

# isort: split
import timm

#: What the names of small variants have in them.
_SMALL = re.compile("atto|femto|pico|nano|tiny|mini|xxs|xs|small|lite|18|_s0|_t0|050|_b0|_a0")
#: So many variants of a module are looked at.
_LOOKED_AT = 5
#: So many parameters are too many for a process beside others.
_MOST = 150_000_000


class Architecture:
    """One of timm's modules."""

    variant_test_name = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def smallest(self) -> str:
        """The smallest of the variants whose names promise that they are small."""
        names = timm.list_models(module=self.name)
        names.sort(key=lambda name: (not _SMALL.search(name), len(name), name))
        with torch.device("meta"):
            sizes = {
                name: sum(p.numel() for p in timm.create_model(name).parameters())
                for name in names[:_LOOKED_AT]
            }
        return min(sizes, key=lambda name: (sizes[name], name))

    @functools.cached_property
    def op(self) -> Any:
        """The model, with random weights."""
        torch.manual_seed(0)
        return timm.create_model(self.smallest()).eval()

    def samples(self) -> Iterator[tuple[list[Any], dict[str, Any]]]:
        """Two images, as large as the model wants them."""
        if sum(p.numel() for p in self.op.parameters()) <= _MOST:
            yield [torch.randn(2, *self.op.default_cfg["input_size"])], {}


timm_models = [Architecture(name) for name in timm.list_modules() if timm.list_models(module=name)]
