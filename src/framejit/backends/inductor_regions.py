"""What Inductor needs to be told so that it compiles graphs with regions rightly.

In: Inductor's settings. Out: the settings for a graph with calls of subgraphs. Imported when there
is one. Used by inductor.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.fx

from ..graph.outlining import has_regions
from . import recomputed, separate


def settings_for_regions(settings: Mapping[str, Any]) -> dict[str, Any]:
    """``settings``, and what graphs with regions need besides."""
    from torch._inductor import config  # slow optional dependency

    _donate_to_no_subgraph()
    _assert_sizes_once()
    chosen = settings.get("custom_partitioner_fn", config.custom_partitioner_fn)
    return {**settings, "custom_partitioner_fn": _partitioner(chosen)}


def _partitioner(chosen: Any) -> Any:
    """The partitioner that would be used otherwise, on a graph in which results of regions share
    memory with nothing."""
    # Inductor has imported them, or is about to.
    from torch._functorch.partitioners import min_cut_rematerialization_partition
    from torch._inductor.custom_graph_pass import CustomPartitionerFn, get_hash_for_files

    partition = chosen or min_cut_rematerialization_partition

    class Separating(CustomPartitionerFn):
        def __call__(
            self, gm: torch.fx.GraphModule, joint_inputs: Sequence[object], **kwargs: Any
        ) -> Any:
            if has_regions(gm):
                separate.separate_results(gm)
                return partition(gm, joint_inputs, **kwargs)
            forward, backward = partition(gm, joint_inputs, **kwargs)  # of one region
            recomputed.recompute_from_results(forward, backward, kwargs["num_fwd_outputs"])
            return forward, backward

        def uuid(self) -> Any:
            """Part of the key of Inductor's cache; None: what is compiled is not cached."""
            ours = get_hash_for_files((__file__, str(recomputed.__file__), str(separate.__file__)))
            if chosen is None:
                return ours
            name = chosen.uuid()
            return None if name is None else (ours, name)

        def __reduce__(self) -> Any:
            """Settings are part of that key as well, pickled."""
            return _partitioner, (chosen,)

    return Separating()


@functools.cache
def _donate_to_no_subgraph() -> None:
    """Inductor takes the positions of the saved tensors that a backward graph may write to for
    positions among the inputs of each subgraph as well, and writes to what is still needed."""
    from torch._inductor.graph import SubgraphLowering  # slow optional dependency

    nothing = property(lambda lowering: None, lambda lowering, positions: None)
    setattr(SubgraphLowering, "bw_donated_idxs", nothing)  # noqa: B010 (an attribute of objects)


@functools.cache
def _assert_sizes_once() -> None:
    """Inductor asserts sizes and strides of a graph's inputs, and those of the inputs of each
    subgraph again whenever it is called: 5 to 15 % of the time of a small layer. A subgraph gets
    inputs of the graph, asserted before the call, and what the graph itself has made."""
    from torch._inductor.codegen.wrapper import SubgraphPythonWrapperCodegen as Subgraph
    from torch._inductor.utils import is_codegen_graph_partition_subgraph as is_part

    assert_sizes = Subgraph.codegen_input_size_asserts

    def assert_sizes_of_parts(wrapper: Any) -> None:
        if is_part(wrapper):  # a part of the graph for CUDA graphs: asserted there alone
            assert_sizes(wrapper)

    setattr(Subgraph, "codegen_input_size_asserts", assert_sizes_of_parts)  # noqa: B010
