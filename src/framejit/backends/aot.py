"""Backends made with AOTAutograd: forward and backward as graphs before anything runs.

In: a captured graph. Out: a callable whose outputs have compiled gradients. `aot_autograd` makes
a backend from compilers for functionalised graphs of ATen operators; 'aot_eager' runs those
graphs as they are, 'aot_eager_decomp_partition' after Inductor's decompositions: together they
tell which stage a problem comes from. AOTAutograd imports torch._dynamo itself: imported late.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._guards import TracingContext

from ..graph.lazy import lazy_graph_modules
from ..graph.outlining import has_regions
from .context import aot_settings
from .dividing import divided
from .handles import with_handles
from .inlining import inlined
from .memory import hide_views
from .registry import register_backend, taking_regions
from .separate import separate_results

GraphCompiler = Callable[..., Any]  # (gm, fake example inputs) -> a callable


def aot_autograd(
    fw_compiler: GraphCompiler,
    bw_compiler: GraphCompiler | None = None,
    partition_fn: Callable[..., Any] | None = None,
    decompositions: dict[Any, Callable[..., Any]] | Callable[[], dict[Any, Any]] | None = None,
    inference_compiler: GraphCompiler | None = None,
    keep_inference_input_mutations: bool = True,
) -> Callable[[torch.fx.GraphModule, Sequence[torch.Tensor]], Callable[..., Any]]:
    """A backend that compiles forward and backward graphs of ATen operators.

    ``bw_compiler`` and ``inference_compiler`` default to ``fw_compiler``; ``partition_fn``, which
    splits the joint graph, to the min-cut partitioner; ``decompositions`` may be a function that
    returns the table. A compiler gets ``(gm, fake example inputs)`` and returns a callable; with
    the option ``regions`` of `framejit.compile`, the graphs may call subgraphs (`regional`).
    """

    def backend(
        gm: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor]
    ) -> Callable[..., Any]:
        # Slow optional dependency: imports torch._dynamo and sympy (2 s).
        from functorch.compile import min_cut_rematerialization_partition
        from torch._functorch.aot_autograd import aot_module_simplified

        partition = partition_fn or min_cut_rematerialization_partition
        table = decompositions() if callable(decompositions) else decompositions

        def compile_forward(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
            with_handles(gm)
            metadata = TracingContext.get().fw_metadata
            if metadata is not None:
                hide_views(gm, metadata)
            return fw_compiler(gm, example_inputs)

        def compile_backward(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
            with_handles(gm)
            return (bw_compiler or fw_compiler)(gm, example_inputs)

        def compile_inference(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
            with_handles(gm)
            if has_regions(gm):  # perhaps with gradients in it, for which regions save
                separate_results(gm)
            return (inference_compiler or fw_compiler)(gm, example_inputs)

        def compile_graph(gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
            with aot_settings(), lazy_graph_modules():
                made: Callable[..., Any] = aot_module_simplified(
                    gm,
                    inputs,
                    fw_compiler=compile_forward,
                    bw_compiler=compile_backward,
                    inference_compiler=compile_inference,
                    partition_fn=_separating(partition) if has_regions(gm) else partition,
                    decompositions=table,
                    keep_inference_input_mutations=keep_inference_input_mutations,
                )
            return made

        return divided(compile_graph, gm, list(example_inputs))

    backend.__name__ = f"aot_autograd({getattr(fw_compiler, '__name__', 'fw_compiler')})"
    return backend


def _separating(partition: Callable[..., Any]) -> Callable[..., Any]:
    """The partitioner, on a graph in which results of regions share memory with nothing."""

    def separating(gm: torch.fx.GraphModule, joint_inputs: Any, **options: Any) -> Any:
        separate_results(gm)
        return partition(gm, joint_inputs, **options)

    return separating


def run_as_is(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """A graph compiler that compiles nothing."""
    from functorch.compile import make_boxed_func  # slow optional dependency

    # The operator that calls subgraphs has no rule for some modes and transforms of PyTorch's.
    flat = inlined(gm) if has_regions(gm) else gm
    boxed: Callable[..., Any] = make_boxed_func(flat.forward)
    return boxed


_run_all = aot_autograd(fw_compiler=run_as_is)


@taking_regions
@register_backend(tags=("debug",))
def aot_eager(
    gm: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor]
) -> Callable[..., Any]:
    """AOTAutograd's graphs, run with PyTorch's own operators."""
    return _run_all(gm, example_inputs)


def _inductor_decompositions() -> dict[Any, Any]:
    from torch._inductor.compile_fx import select_decomp_table  # slow optional dependency

    table: dict[Any, Any] = select_decomp_table()
    return table


_run_all_decomposed = aot_autograd(fw_compiler=run_as_is, decompositions=_inductor_decompositions)


@taking_regions
@register_backend(tags=("debug",))
def aot_eager_decomp_partition(
    gm: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor]
) -> Callable[..., Any]:
    """Like aot_eager, with Inductor's decompositions and the min-cut partitioner."""
    return _run_all_decomposed(gm, example_inputs)
