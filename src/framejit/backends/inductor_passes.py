"""What framejit changes in graphs of ATen operators before Inductor generates code for them.

In: Inductor's settings. Out: the settings with passes over each graph, which count in the
keys of Inductor's caches. Used by inductor. Next: Inductor.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import torch.fx

from . import channels_last, numbers_once


def settings_with_passes(settings: Mapping[str, Any]) -> dict[str, Any]:
    """``settings``, with framejit's passes after the one that the user has chosen."""
    from torch._inductor import config  # slow optional dependency

    chosen = settings.get("post_grad_custom_pre_pass", config.post_grad_custom_pre_pass)
    return {**settings, "post_grad_custom_pre_pass": _with_passes(chosen)}


@functools.cache
def _passes() -> Any:
    from torch._inductor.custom_graph_pass import (  # slow optional dependency
        CustomGraphPass,
        get_hash_for_files,
    )

    class Passes(CustomGraphPass):
        def __init__(self, chosen: Any) -> None:
            self.chosen = chosen

        def __call__(self, graph: torch.fx.Graph) -> None:
            if self.chosen is not None:
                self.chosen(graph)
            channels_last.spread_channels_last(graph)
            numbers_once.compute_numbers_once(graph)

        def uuid(self) -> Any:
            """Part of the key of Inductor's cache; None: what is compiled is not cached."""
            ours = get_hash_for_files((__file__, channels_last.__file__, numbers_once.__file__))
            if self.chosen is None:
                return ours
            theirs = getattr(self.chosen, "uuid", lambda: None)()
            return None if theirs is None else (ours, theirs)

        def __reduce__(self) -> Any:
            """Inductor may compile in another process."""
            return _with_passes, (self.chosen,)

    return Passes


def _with_passes(chosen: Any) -> Any:
    return _passes()(chosen)
