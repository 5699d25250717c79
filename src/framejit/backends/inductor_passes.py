"""What framejit changes in graphs of ATen operators before Inductor generates code for them.

In: Inductor's settings. Out: the settings with a pass over each graph, which counts in the keys of
Inductor's caches. Used by inductor. Next: Inductor.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch.fx

from . import channels_last, numbers_once


def settings_with_passes(settings: Mapping[str, Any]) -> dict[str, Any]:
    """``settings``, with framejit's pass after those that the user has chosen."""
    from torch._inductor import config  # slow optional dependencies
    from torch._inductor.custom_graph_pass import get_custom_graph_passes

    chosen = settings.get("post_grad_custom_pre_pass", config.post_grad_custom_pre_pass)
    passes = (*get_custom_graph_passes(chosen), _make_pass())
    return {**settings, "post_grad_custom_pre_pass": passes}


@functools.cache
def _pass_class() -> Any:
    from torch._inductor.custom_graph_pass import (  # slow optional dependency
        CustomInferenceAwareGraphPass,
        get_hash_for_files,
    )

    class Passes(CustomInferenceAwareGraphPass):
        def __call__(  # type: ignore[override]
            self, graph: torch.fx.Graph, is_inference: bool
        ) -> None:
            channels_last.spread_channels_last(graph, is_inference)
            numbers_once.compute_numbers_once(graph)

        def uuid(self) -> Any:
            """Part of the key of Inductor's cache."""
            return get_hash_for_files((__file__, channels_last.__file__, numbers_once.__file__))

        def __reduce__(self) -> Any:
            """Inductor may compile in another process."""
            return _make_pass, ()

    return Passes


def _make_pass() -> Any:
    return _pass_class()()
