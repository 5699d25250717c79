"""What was compiled for one graph serves for others that are alike.

Layers between graph breaks, and blocks that are compiled one by one, give graphs that differ in
nothing but the tensors that they are called with. In: a backend that takes graphs with regions,
which calls one subgraph with several sets of tensors, and a graph with its inputs. Out: what the
backend returned for a graph that is alike, for as long as somebody uses that. Used by the compiler.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch.fx

from ..graph.alike import description
from ..graph.repeats import REGIONS
from ..graph.splits import DIVIDE
from .compile import is_watched
from .registry import CompilerFn, takes_all_regions, takes_regions

_compiled: weakref.WeakValueDictionary[Hashable, Callable[..., Any]] = weakref.WeakValueDictionary()
_CONFIGURATIONS = ("torch._inductor.config", "torch._functorch.config")


def key_of(
    backend: CompilerFn, module: torch.fx.GraphModule, examples: Sequence[Any]
) -> Hashable | None:
    """Equal for graphs that the backend compiles to the same; None if this one is like no other."""
    if not takes_regions(backend) or getattr(backend, "keeps_inputs", False) or is_watched():
        return None
    described = description(module, examples)
    if described is None:
        return None
    known = [sys.modules[name] for name in _CONFIGURATIONS if name in sys.modules]
    settings = tuple([config.get_hash() for config in known])  # type: ignore[attr-defined]
    return backend, settings, described


def find(
    key: Hashable | None, backend: CompilerFn, module: torch.fx.GraphModule
) -> Callable[..., Any] | None:
    """What was compiled for a graph like this, if it is still in use. A graph with regions is
    compiled for itself, so that people are told of them."""
    known = None if key is None else _compiled.get(key)
    regions = module.meta.get(REGIONS) if known is not None else None
    if regions is not None and regions(everywhere=takes_all_regions(backend)):
        return None
    if known is not None:
        for one in (REGIONS, DIVIDE):  # they hold the recording
            module.meta.pop(one, None)
    return known


def keep(key: Hashable | None, compiled: Callable[..., Any], module: torch.fx.GraphModule) -> None:
    """Let graphs like this share what was compiled, unless that is the graph itself."""
    if key is not None and getattr(compiled, "__self__", None) is not module:
        if type(compiled).__weakrefoffset__:
            _compiled[key] = compiled
