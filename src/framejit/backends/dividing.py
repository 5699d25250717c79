"""Graphs as AOTAutograd can take them: cut in parts, floats as tensors, without idle dropout.

In: a graph, its inputs, and a function that compiles graphs with AOTAutograd. Out: what runs all of
it. `in_context` calls a backend of which it is not known whether it uses AOTAutograd: when it turns
out to, on a graph that AOTAutograd cannot take as it is, the backend gets the parts. Next: compile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode

from ..exc import GraphBreak
from ..graph.builder import ONCE, WRITES
from ..graph.errors import begins_at
from ..graph.gradients import exact_gradients
from ..graph.idle_dropouts import operand_of_idle, returned
from ..graph.inner_results import Inner, with_inner_results
from ..graph.lazy import LazyGraphModule
from ..graph.nested import hooks_around, with_hooks, without_hooks
from ..graph.outlining import has_regions
from ..graph.parts import PARTS, Part
from ..graph.ragged import traceable
from ..graph.second_order import differentiable_twice
from ..graph.silence import unwarned
from ..graph.symbol_nodes import symbolic_inputs
from ..graph.uneven import divided_when_uneven
from .context import (
    Context,
    PartContext,
    Refused,
    aot_settings,
    as_fake,
    context_of,
    entered,
    note_refused,
    patched,
    preserved_state,
)
from .kept_autocast import KeptAutocast, changes_autocast
from .repeatable import prepare_backward
from .segments import Segment, assemble
from .strides import keep_strides
from .tensor_scalars import has_numbers_to_change, has_scaled_numbers, use_tensors

GraphCompiler = Callable[..., Any]  # (gm, example inputs) -> a callable


def in_context(backend: GraphCompiler, gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    """``backend(gm, inputs)`` in a tracing context."""

    def compile_graph(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        # Parts are told by the positions of their nodes; each is made traceable for itself.
        with aot_settings(), traceable(gm, inputs if whole else ()):
            return backend(gm, inputs)

    def compile_whole(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        compiled = compile_graph(gm, inputs)
        if context.asked:
            prepare_backward(compiled, begins_at(gm))
        return compiled

    whole = _is_whole(gm)
    with entered(Context(gm, inputs, whole)) as context:
        try:
            with preserved_state():
                compiled = _compiled(compile_whole, gm, inputs)
        except Exception:
            if not context.refused:
                raise
    return divided(compile_graph, gm, inputs) if context.refused else compiled


def _compiled(compile_graph: GraphCompiler, gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
    """``compile_graph(gm, inputs)``; the graph as it is if AOTAutograd cannot trace it: it runs as
    recorded, and AOTAutograd may not see which elements a write reaches, forget that it has
    resolved a conjugate, lose count of the gradients of views, ask for a history that eager mode
    does not ask for, or find an error that is one only where backward is called. A graph with
    regions is compiled flat then."""
    try:
        if not torch.is_grad_enabled():
            return compile_graph(gm, inputs)
        # AOTAutograd in anomaly mode tells where such errors begin.
        with unwarned("Error detected in .*Backward"):
            return compile_graph(gm, inputs)
    except Exception as error:
        if has_regions(gm) or not _is_refusal(error):
            raise
        note_refused(error)
        return gm.forward


def _is_refusal(error: Exception) -> bool:
    """Did AOTAutograd raise it because it cannot trace the graph? Floats that are to be built in
    are another matter (`with_floats`), and so are graphs that are to be divided, and hooks that do
    more than compute."""
    context = TracingContext.try_get()
    if not isinstance(context, PartContext) or context.untraceable is not error:
        return False
    from torch.fx.passes._tensorify_python_scalars import (  # AOTAutograd has imported it
        TensorifyScalarRestartAnalysis,
    )

    return not isinstance(error, (Refused, GraphBreak, TensorifyScalarRestartAnalysis))


def _is_whole(gm: torch.fx.GraphModule) -> bool:
    """Can AOTAutograd take the graph as it is?"""
    known = symbolic_inputs(gm)
    return not (
        gm.meta.get(PARTS) is not None
        or hooks_around() is not None
        or (known is not None and float_symbols(known.symbols.env))
        or gm.meta.get(WRITES)
        or has_scaled_numbers(gm)
        or (WRITES in gm.meta and _idle_dropouts(gm))
        or changes_autocast(gm)
    )


def divided(
    compile_graph: GraphCompiler, gm: torch.fx.GraphModule, inputs: list[Any]
) -> Callable[..., Any]:
    """``compile_graph(gm, inputs)``, or what runs the graph's parts one after the other (`parts`).
    AOTAutograd makes a node of autograd's graph for each."""
    with context_of(gm, inputs) as context:
        mode, place = context.fake_mode, begins_at(gm)
        assert mode is not None
        once = gm.meta.get(ONCE)

        def prepared(gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
            # A trace that fails may have set torch's state, and the next one begins as this one.
            with preserved_state(), traceable(gm, inputs):
                compiled: Callable[..., Any] = compile_graph(gm, inputs)
            if not (torch.is_grad_enabled() and any(map(_has_gradient, inputs))):
                return compiled
            prepare_backward(compiled, place)
            return differentiable_twice(compiled, lambda: None if once else gm.forward, place)

        def compile_part(gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
            if has_numbers_to_change(gm):
                gm = owned_copy(gm)
                use_tensors(gm, {})
            hooks = hooks_around()
            if hooks is None:
                gm = without_idle_dropout(gm)
                return with_floats(functools.partial(_compiled, prepared), gm, inputs, mode)
            owned = owned_copy(without_idle_dropout(gm))
            with_hooks(owned, hooks)
            return without_hooks(with_floats(prepared, owned, inputs, mode))

        parts, strided = gm.meta.get(PARTS), gm.meta.get(WRITES)
        if parts is not None and not parts:
            return gm.forward
        if strided:
            gm = owned_copy(gm)
            keep_strides(gm, strided)
        if parts is not None:
            return in_parts(compile_part, gm, inputs, mode, parts)
        if changes_autocast(gm):
            gm = owned_copy(gm)
            KeptAutocast().enclose(gm)
        return compile_part(gm, inputs)


def parts_of(gm: torch.fx.GraphModule, parts: list[Part]) -> list[Segment]:
    """The nodes of each part."""
    nodes = list(gm.graph.nodes)
    return [Segment(*[[nodes[i] for i in some] for some in part[:3]]) for part in parts]


def _has_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def in_parts(
    compile_graph: GraphCompiler, gm: torch.fx.GraphModule, inputs: list[Any],
    mode: FakeTensorMode, parts: list[Part],
) -> Callable[..., Any]:  # fmt: skip
    """What runs the parts of ``gm`` one after the other; ``compile_graph`` gets each with inputs
    that are fake. Each begins and ends under the autocast that the graph begins with."""
    fakes = [as_fake(value, mode) for value in inputs]
    values = dict(zip(gm.graph.find_nodes(op="placeholder"), fakes, strict=True))
    segments = parts_of(gm, parts)
    todo, autocast = iter(zip(segments, parts, strict=True)), KeptAutocast()
    from torch._dispatch.python import enable_python_dispatcher  # imports functorch

    def wrap(module: torch.fx.GraphModule, _: list[int]) -> Callable[..., Any]:
        segment, part = next(todo)
        given = [values[node] for node in segment.inputs]
        autocast.enclose(module)
        if part.compiled:
            # Each needs a context of its own, which its backward graph meets again.
            with preserved_state(), tracing(PartContext(mode)):
                compiled = compile_graph(module, given)
        # The grad mode that one sets is what the next one begins with. (Composite operators in C++
        # want sizes that are numbers; their Python forms do not.)
        with mode, enable_python_dispatcher():
            values.update(zip(segment.outputs, module.forward(*given), strict=True))
        if not part.compiled:
            return lambda *arguments: module.forward(*arguments)
        run = compiled
        if part.reached is not None:
            run = exact_gradients(run, [frozenset(found) for found in part.reached])
        inner = Inner.of_lists(part.inner)
        if inner.links:
            met: list[bool] | None = None if inner.again else []
            if met is not None:  # as recorded, once somebody looks
                run = divided_when_uneven(run, module.forward, (), None, met)
            run = with_inner_results(run, lambda: module, inner, met)
        return lambda *arguments: run(*arguments)  # not every callable can be given a name

    return assemble(gm, segments, None, wrap).forward


def without_idle_dropout(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Dropout that drops nothing returns its very operand, so that a write to its result is one to
    the operand; AOTAutograd would make a copy. The same graph if there is no such dropout."""
    idle = _idle_dropouts(gm)
    if not idle:
        return gm
    names = {node.name for node in idle}
    owned = owned_copy(gm)
    for node in list(owned.graph.nodes):
        if node.name in names:
            operand = operand_of_idle(node.target, node.args, node.kwargs)
            with owned.graph.inserting_before(node):
                made = returned(node.target, operand, node.args, node.kwargs)
            node.replace_all_uses_with(made)
            owned.graph.erase_node(node)
    owned.recompile()
    return owned


def _idle_dropouts(gm: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in gm.graph.nodes
            if operand_of_idle(node.target, node.args, node.kwargs) is not None]  # fmt: skip


def with_floats(
    compile_graph: GraphCompiler, gm: torch.fx.GraphModule, inputs: list[Any], mode: Any
) -> Callable[..., Any]:
    """``compile_graph(gm, inputs)``, for graphs that may take floats which vary. Where AOTAutograd
    cannot let them vary, they are built in: reading them makes a condition, so the entry holds for
    these values."""
    positions = [i for i, value in enumerate(inputs) if isinstance(value, torch.SymFloat)]
    floats = float_symbols(mode.shape_env)
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
    # Its cache would return code for other floats, without their conditions.
    uncached = patched(config, enable_autograd_cache=False, enable_remote_autograd_cache=False)
    try:
        while True:
            for name in built_in:
                TensorifyState.specialize(name)
            owned, given = owned_copy(gm), list(inputs)
            placeholders = owned.graph.find_nodes(op="placeholder")
            for position, name in symbols.items():
                if name in built_in:
                    value: Any = float(inputs[position])
                    placeholders[position].replace_all_uses_with(value)
            gone = {symbols[i] for i in _floats_as_tensors(owned, given, mode, positions)}
            for name in gone - built_in:  # there is nothing left to be built in
                TensorifyState.specialize(name)
            try:
                with uncached:
                    return _with_tensors(compile_graph(owned, given), positions)
            except TensorifyScalarRestartAnalysis:
                if built_in == floats:
                    raise
                found = {name for name in floats if TensorifyState.should_specialize(name)}
                found -= gone - built_in
                built_in = found if found > built_in else floats
    finally:
        TensorifyState.clear()


def float_symbols(env: Any) -> set[str]:
    """The names of floats that vary."""
    return {str(symbol) for symbol in env.backed_var_to_val if symbol.is_integer is None}


def _floats_as_tensors(
    gm: torch.fx.GraphModule, inputs: list[Any], mode: Any, positions: list[int]
) -> list[int]:
    """AOTAutograd takes floats that vary as tensors without dimensions: change the graph and its
    inputs to that. Returns the positions of those that the graph does not read as floats."""
    placeholders = gm.graph.find_nodes(op="placeholder")
    tensors: dict[torch.fx.Node, torch.fx.Node] = {}
    items: dict[torch.fx.Node, int] = {}
    for position in positions:
        node, number = placeholders[position], inputs[position]
        with mode, torch.inference_mode(False):  # an inference tensor would not keep the number
            fake = torch.empty((), dtype=torch.float64)
        setattr(fake, "item_memo", number)  # noqa: B010 (FakeTensor has it, Tensor does not)
        with gm.graph.inserting_after(placeholders[-1]):
            item = gm.graph.call_method("item", (node,))
        node.replace_all_uses_with(item, delete_user_cb=lambda user, item=item: user is not item)
        item.meta["example_value"] = number
        tensors[item] = node
        items[item] = position
        node.meta = {"example_value": fake}
        inputs[position] = fake
    use_tensors(gm, tensors)
    gm.recompile()
    left = set(gm.graph.find_nodes(op="call_method", target="item"))
    return [position for item, position in items.items() if item not in left]


def _with_tensors(compiled: Callable[..., Any], positions: list[int]) -> Callable[..., Any]:
    """``compiled``, called with numbers where `_floats_as_tensors` has put tensors."""

    def run(*arguments: Any) -> Any:
        given = list(arguments)
        for position in positions:
            given[position] = torch.tensor(given[position], dtype=torch.float64)
        return compiled(*given)

    return run


def owned_copy(gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same graph, to be changed; the one that was given is still shown to people."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    return LazyGraphModule(gm, graph)
