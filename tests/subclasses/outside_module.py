"""Settings and functions of another module, which code of classes of tensors looks at."""

from __future__ import annotations

SCALE = 1.0


def scaled(value):
    return value * SCALE
