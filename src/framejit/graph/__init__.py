"""The graph room: operations recorded as `torch.fx` nodes, with the metadata of their results.

In: operations that the values room decides to capture. Out: an `fx.GraphModule` and the real
tensors to call it with. Nothing is computed; metadata comes from a cache or from fake tensors.
Next room: backends.
"""

from .builder import GraphBuilder
from .errors import PropagationError
from .global_state import GlobalState
from .lazy import LazyGraphModule
from .metadata import Example, TensorMeta
from .propagation import CacheStatistics, clear_cache

__all__ = [
    "CacheStatistics",
    "Example",
    "GlobalState",
    "GraphBuilder",
    "LazyGraphModule",
    "PropagationError",
    "TensorMeta",
    "clear_cache",
]
