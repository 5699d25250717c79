"""Backends made with AOTAutograd: forward and backward as graphs before anything runs.

In: a captured graph. Out: a callable whose outputs have compiled gradients. `aot_autograd` makes
a backend from compilers for functionalised graphs of ATen operators; 'aot_eager' runs those
graphs as they are, 'aot_eager_decomp_partition' after Inductor's decompositions: together they
tell which stage a problem comes from. AOTAutograd imports torch._dynamo itself: imported late.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.nn import functional

from ..graph.gradients import exact_gradients
from ..graph.lazy import LazyGraphModule, lazy_graph_modules
from ..graph.parts import PARTS
from ..graph.symbol_nodes import fake_inputs, replace_input
from .compile import first_line, preserved_state
from .registry import register_backend
from .repeatable import prepare_backward
from .segments import Segment, assemble

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
    returns the table. A compiler gets ``(gm, fake example inputs)`` and returns a callable.
    """

    def backend(
        gm: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor]
    ) -> Callable[..., Any]:
        # Slow optional dependency: imports torch._dynamo and sympy (2 s).
        from functorch.compile import min_cut_rematerialization_partition
        from torch._functorch.aot_autograd import aot_module_simplified

        table = decompositions() if callable(decompositions) else decompositions
        known = fake_inputs(gm, example_inputs)
        mode, inputs = (None, list(example_inputs)) if known is None else known
        place = first_line(gm)

        def compile_graph(gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
            with tracing_context(mode):
                made: Callable[..., Any] = aot_module_simplified(
                    gm,
                    inputs,
                    fw_compiler=fw_compiler,
                    bw_compiler=bw_compiler or fw_compiler,
                    inference_compiler=inference_compiler or fw_compiler,
                    partition_fn=partition_fn or min_cut_rematerialization_partition,
                    decompositions=table,
                    keep_inference_input_mutations=keep_inference_input_mutations,
                    ignore_shape_env=mode is None,
                )
                prepare_backward(made, place)
            return made

        def compile_part(gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
            return with_floats(compile_graph, without_idle_dropout(gm), inputs, mode)

        return in_parts(compile_part, gm, inputs, mode)

    backend.__name__ = f"aot_autograd({getattr(fw_compiler, '__name__', 'fw_compiler')})"
    return backend


def owned_copy(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same graph, to be changed; the one that was given is still shown to people."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    return LazyGraphModule(gm, graph)


def in_parts(
    compile_graph: GraphCompiler, gm: torch.fx.GraphModule, inputs: list[Any], mode: Any
) -> Callable[..., Any]:
    """``compile_graph(gm, inputs)``, or what runs the graph's parts one behind the other (`parts`).
    AOTAutograd makes a node of autograd's graph for each."""
    parts = gm.meta.get(PARTS)
    if parts is None:
        return compile_graph(gm, inputs)
    if not parts:
        return gm.forward
    nodes = list(gm.graph.nodes)
    known = TracingContext.try_get() if mode is None else TracingContext(mode)
    mode = (known or _context(None)).fake_mode
    fakes = [_fake(value, mode) for value in inputs]
    values = dict(zip(gm.graph.find_nodes(op="placeholder"), fakes, strict=True))
    segments = [Segment(*[[nodes[i] for i in some] for some in part[:3]]) for part in parts]
    todo = iter(zip(segments, parts, strict=True))
    from torch._dispatch.python import enable_python_dispatcher  # imports functorch

    def wrap(module: torch.fx.GraphModule, _: list[int]) -> Callable[..., Any]:
        segment, part = next(todo)
        if not part.compiled:
            return lambda *arguments: module.forward(*arguments)
        given = [values[node] for node in segment.inputs]
        # Each needs a context of its own, which its backward graph meets again.
        with preserved_state(), tracing(TracingContext(mode)):
            compiled = compile_graph(module, given)
        # Composite operators in C++ want sizes that are numbers; their Python forms do not.
        with mode, enable_python_dispatcher():
            values.update(zip(segment.outputs, module.forward(*given), strict=True))
        if part.reached is not None:
            return exact_gradients(compiled, [frozenset(found) for found in part.reached])
        return lambda *arguments: compiled(*arguments)  # not every callable can be given a name

    return assemble(gm, segments, None, wrap).forward


def _fake(value: Any, mode: FakeTensorMode) -> Any:
    if not isinstance(value, torch.Tensor) or isinstance(value, FakeTensor):
        return value
    return mode.from_tensor(value, static_shapes=True)


_DROPOUTS = (
    functional.dropout, functional.dropout2d, functional.dropout3d, functional.alpha_dropout,
    functional.feature_alpha_dropout, torch.dropout, torch.feature_dropout, torch.alpha_dropout,
    torch.feature_alpha_dropout,
)  # fmt: skip


def without_idle_dropout(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Dropout that drops nothing answers its very operand, so that a write to its result is one to
    the operand; AOTAutograd would make a copy. The same graph if there is no such dropout."""
    idle = [node for node in gm.graph.nodes if node.target in _DROPOUTS and _is_idle(*node.args,
            **node.kwargs)]  # fmt: skip
    if not idle:
        return gm
    names = {node.name for node in idle}
    owned = owned_copy(gm)
    for node in list(owned.graph.nodes):
        if node.name in names:
            node.replace_all_uses_with(node.args[0] if node.args else node.kwargs["input"])
            owned.graph.erase_node(node)
    owned.recompile()
    return owned


def _is_idle(
    input: Any, p: Any = 0.5, training: Any = None, inplace: bool = False, train: Any = True
) -> bool:
    return (train if training is None else training) is False or p == 0


def with_floats(
    compile_graph: GraphCompiler, gm: torch.fx.GraphModule, inputs: list[Any], mode: Any
) -> Callable[..., Any]:
    """``compile_graph(gm, inputs)``, for graphs that may take floats which vary. Where AOTAutograd
    cannot let them vary, they are built in: reading them makes a condition, so the entry holds for
    these values."""
    positions = [i for i, value in enumerate(inputs) if isinstance(value, torch.SymFloat)]
    symbols = () if mode is None else mode.shape_env.backed_var_to_val
    floats = {str(symbol) for symbol in symbols if symbol.is_integer is None}
    if not floats:
        return compile_graph(gm, inputs)
    from torch._functorch import config
    from torch.fx.passes._tensorify_python_scalars import (  # imports torch._dynamo
        TensorifyScalarRestartAnalysis,
        TensorifyState,
    )

    # AOTAutograd raises for each float that has to be built in and that it has not been told of,
    # among them those that the graph does not take.
    symbols = {position: str(inputs[position].node.expr) for position in positions}
    built_in = floats - set(symbols.values())
    # Its cache would answer with code for other floats, without their conditions.
    uncached = config.patch(  # type: ignore[attr-defined]
        enable_autograd_cache=False, enable_remote_autograd_cache=False
    )
    try:
        while True:
            for name in built_in:
                TensorifyState.specialize(name)
            owned, given = owned_copy(gm), list(inputs)
            placeholders = owned.graph.find_nodes(op="placeholder")
            for position, name in symbols.items():
                if name in built_in:
                    replace_input(placeholders[position], float(inputs[position]))
            _floats_as_tensors(owned, given, mode, positions)
            try:
                with uncached:
                    return with_tensors(compile_graph(owned, given), positions)
            except TensorifyScalarRestartAnalysis:
                if built_in == floats:
                    raise
                found = {name for name in floats if TensorifyState.should_specialize(name)}
                built_in = found if found > built_in else floats
    finally:
        TensorifyState.clear()


def _floats_as_tensors(
    gm: torch.fx.GraphModule, inputs: list[Any], mode: Any, positions: list[int]
) -> None:
    """AOTAutograd takes floats that vary as tensors without dimensions: change the graph and its
    inputs to that."""
    placeholders = gm.graph.find_nodes(op="placeholder")
    for position in positions:
        node, number = placeholders[position], inputs[position]
        with mode:
            fake = torch.empty((), dtype=torch.float64)
        setattr(fake, "item_memo", number)  # noqa: B010 (FakeTensor has it, Tensor does not)
        with gm.graph.inserting_after(placeholders[-1]):
            item = gm.graph.call_method("item", (node,))
        node.replace_all_uses_with(item, delete_user_cb=lambda user, item=item: user is not item)
        item.meta["example_value"] = number
        node.meta = {"example_value": fake}
        inputs[position] = fake
    gm.recompile()


def with_tensors(compiled: Callable[..., Any], positions: list[int]) -> Callable[..., Any]:
    """``compiled``, called with numbers where `_floats_as_tensors` has put tensors."""

    def run(*arguments: Any) -> Any:
        given = list(arguments)
        for position in positions:
            given[position] = torch.tensor(given[position], dtype=torch.float64)
        return compiled(*given)

    return run


def _context(mode: FakeTensorMode | None) -> TracingContext:
    """The tracing context of whoever compiles, or a new one: the lazily compiled backward needs
    the one that its forward had."""
    known = TracingContext.try_get()
    if known is not None:
        return known
    # A fake mode of its own: fakes that the capture changed in place must not be met again. Without
    # a ShapeEnv AOTAutograd would not use its cache; those who call it with ``mode`` None have to
    # say ``ignore_shape_env`` as well, or sizes and the bases of views become symbols.
    if mode is None:
        from torch.fx.experimental.symbolic_shapes import ShapeEnv  # slow optional dependency

        mode = FakeTensorMode(shape_env=ShapeEnv())
    return TracingContext(mode)


@contextlib.contextmanager
def tracing_context(
    mode: FakeTensorMode | None, donate: bool = False
) -> Iterator[TracingContext]:
    """Compile in this block. What comes out allows ``backward(retain_graph=True)``, as eager does:
    the backward graph does not reuse the memory of what was saved for it, unless ``donate``.
    Saved-tensor hooks get all that is saved, inputs of the graph as well."""
    from torch._functorch import config  # slow optional dependency

    context = _context(mode)
    as_in_eager = config.patch(  # type: ignore[attr-defined]
        donated_buffer=donate, saved_tensors_hooks_filtering_mode="all"
    )
    with tracing(context), as_in_eager, lazy_graph_modules():
        yield context
    metadata = getattr(context, "fw_metadata", None)
    if metadata is not None and metadata.bw_donated_idxs is None:
        metadata.bw_donated_idxs = []  # None would be taken for "some" when backward runs


def run_as_is(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """A graph compiler that compiles nothing."""
    from functorch.compile import make_boxed_func  # slow optional dependency

    boxed: Callable[..., Any] = make_boxed_func(gm.forward)
    return boxed


_run_all = aot_autograd(fw_compiler=run_as_is)


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


@register_backend(tags=("debug",))
def aot_eager_decomp_partition(
    gm: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor]
) -> Callable[..., Any]:
    """Like aot_eager, with Inductor's decompositions and the min-cut partitioner."""
    return _run_all_decomposed(gm, example_inputs)
