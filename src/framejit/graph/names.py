"""Readable placeholder names that leave operation names alone.

In: a source's name such as ``L['self'].encoder.layer[0].weight`` or a plain local's name.
Out: an identifier such as ``l_self_encoder_layer_0_weight`` or ``a``. The same source gives the
same name in every process. `fx` itself resolves what is left of collisions with a suffix.
"""

from __future__ import annotations

import builtins
import functools
import keyword
import operator
import re

import torch

_PLAIN_LOCAL = re.compile(r"^L\[(['\"])([A-Za-z_]\w*)\1\]$")
_NOT_WORD = re.compile(r"\W+")
_SUFFIX = re.compile(r"_\d+$")


def placeholder_name(source_name: str) -> str:
    """The identifier for a graph input that comes from ``source_name``."""
    local = _PLAIN_LOCAL.match(source_name)
    name = source_name if local is None else local[2]
    if not name.isidentifier():
        name = _NOT_WORD.sub("_", name).strip("_")
        if name.startswith(("L_", "G_")) or name in ("L", "G"):
            name = name[0].lower() + name[1:]
    # A local called `add` would push the operation's node to `add_1`.
    base, known = name, _operation_names()
    if name[-1:].isdigit():
        base = _SUFFIX.sub("", name)
    taken = name in known or base in known
    return f"l_{name or 'input'}" if taken or not name.isidentifier() else name


@functools.cache
def _operation_names() -> frozenset[str]:
    # Not hasattr(torch, ...): that would import torch.onnx for a local called `onnx`.
    homes = (torch, torch.nn.functional, operator, builtins)
    names = {name for home in homes for name in vars(home)}
    # `self` is what the graph's own function calls its module.
    return frozenset(names.union(dir(torch.Tensor), keyword.kwlist, ["self"]))
