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
    if local is not None:
        source_name = local.group(2)
    if source_name.isidentifier():
        # A local called `add` would push the operation's node to `add_1`.
        return f"l_{source_name}" if _is_operation_name(source_name) else source_name
    name = _NOT_WORD.sub("_", source_name).strip("_")
    head, _, rest = name.partition("_")
    if head in ("L", "G"):
        name = f"{head.lower()}_{rest}" if rest else head.lower()
    if not name.isidentifier():
        name = f"l_{name}" if name else "input"
    return f"l_{name}" if _is_operation_name(name) else name


def _is_operation_name(name: str) -> bool:
    return not _operation_names().isdisjoint((name, _SUFFIX.sub("", name)))


@functools.cache
def _operation_names() -> frozenset[str]:
    # Not hasattr(torch, ...): that would import torch.onnx for a local called `onnx`.
    homes = (torch, torch.nn.functional, operator, builtins)
    names = {name for home in homes for name in vars(home)}
    # `self` is what the graph's own function calls its module.
    return frozenset(names.union(dir(torch.Tensor), keyword.kwlist, ["self"]))
