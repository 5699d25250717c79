"""Backend 'cudagraphs': kernels are launched once, recorded, and replayed as CUDA graphs.

In: forward and backward graphs from AOTAutograd. Out: functions that run a segment twice to warm
up, then record it, then replay it: inputs whose address changes are copied in, those that the
segment writes to are copied back, outputs are cloned. What cannot be recorded (the CPU, results
whose size depends on data) runs between the segments. Without a GPU everything runs like that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch._ops import OpOverload

from framejit.forks import Lock

from ..exc import warn
from .aot import aot_autograd, run_as_is
from .memory import Memory, nodes_in, tensors_of
from .registry import register_backend
from .segments import Segment, assemble, cut

#: Calls of a segment, for each combination of shapes, before it is recorded.
WARM_UP = 2
#: Recordings of one segment; other shapes run without.
LIMIT = 16
#: How often inputs may be found elsewhere, and all be recorded again, before only parameters are
#: taken to stay where they are.
PATIENCE = 4

_Run = Callable[..., Sequence[Any]]


class Cuda:
    """CUDA graphs. All share one memory pool: outputs are cloned before anything else runs. The
    tests have something of the kind for the CPU."""

    device_type = "cuda"

    def __init__(self) -> None:
        self._pool: Any = None
        self._lock = Lock()

    def warm_up(self, run: Callable[[], Any]) -> Any:
        """Run for real."""
        here, aside = torch.cuda.current_stream(), torch.cuda.Stream()
        aside.wait_stream(here)
        with torch.cuda.stream(aside):
            result = run()
        here.wait_stream(aside)
        for value in result:
            if isinstance(value, torch.Tensor):
                value.record_stream(here)
        return result

    def record(self, run: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
        """The recording, whose ``replay`` does the same again on the same memory, and what ``run``
        returned; nothing is computed."""
        with self._lock:
            if self._pool is None:
                self._pool = torch.cuda.graph_pool_handle()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                result = run()
        return graph, result


# -- replaying one segment -------------------------------------------------------------------------


class Replayer:
    """A segment: ``run(*inputs)`` gives its outputs, ``mutated`` are the inputs it writes to."""

    def __init__(self, run: _Run, mutated: Sequence[int], platform: Cuda) -> None:
        self._run = run
        self._mutated = frozenset(mutated)
        self._platform = platform
        self._variants: dict[tuple[Any, ...], _Variant] = {}
        self._lock = Lock()

    def __call__(self, *inputs: Any) -> Sequence[Any]:
        key = tuple(
            (value.shape, value.stride(), value.dtype) if isinstance(value, torch.Tensor) else value
            for value in inputs
        )
        with self._lock:
            variant = self._variants.get(key)
            if variant is None:
                if len(self._variants) >= LIMIT or not all(map(_can_be_copied, inputs)):
                    return self._run(*inputs)
                variant = self._variants[key] = _Variant(self._run, self._mutated, self._platform)
            return variant(inputs)


class _Variant:
    """A segment for inputs of certain shapes."""

    def __init__(self, run: _Run, mutated: frozenset[int], platform: Cuda) -> None:
        self._run, self._mutated, self._platform = run, mutated, platform
        self._calls = 0
        #: Address by input, while it has been the same in every call: read and written in place.
        self._fixed: dict[int, int] = {}
        self._moves = 0
        self._recorded: torch.cuda.CUDAGraph | None = None
        self._inputs: list[Any] = []
        self._outputs: Sequence[Any] = ()

    def __call__(self, inputs: Sequence[Any]) -> Sequence[Any]:
        now = {i: x.data_ptr() for i, x in enumerate(inputs) if isinstance(x, torch.Tensor)}
        if self._calls == 0:
            self._fixed = now
        elif any(now[i] != address for i, address in self._fixed.items()):
            self._moves += self._recorded is not None
            impatient = self._moves >= PATIENCE
            self._fixed = {
                i: at for i, at in self._fixed.items()
                if now[i] == at and not (impatient and type(inputs[i]) is torch.Tensor)
            }  # fmt: skip
            self._recorded = None
        if self._calls < WARM_UP:
            self._calls += 1
            return self._platform.warm_up(lambda: self._run(*inputs))  # type: ignore[no-any-return]
        with torch.no_grad():
            if self._recorded is None:
                self._record(inputs, now)
            assert self._recorded is not None
            copied = [i for i in now if i not in self._fixed]
            for i in copied:
                _copy(self._inputs[i], inputs[i])
            self._recorded.replay()
            for i in copied:
                if i in self._mutated:
                    _copy(inputs[i], self._inputs[i])
            return [_clone(x) if isinstance(x, torch.Tensor) else x for x in self._outputs]

    def _record(self, inputs: Sequence[Any], tensors: dict[int, int]) -> None:
        self._inputs = [
            _clone(x.detach()) if i in tensors and i not in self._fixed else x
            for i, x in enumerate(inputs)
        ]
        self._recorded, self._outputs = self._platform.record(lambda: self._run(*self._inputs))
        # The recording knows addresses; holding these tensors would hold the user's memory.
        self._inputs = [None if i in self._fixed else x for i, x in enumerate(self._inputs)]


def _unexpanded(tensor: torch.Tensor) -> torch.Tensor:
    """Each element once: dimensions of stride 0 have one entry."""
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor = tensor.narrow(dim, 0, 1)
    return tensor


def _can_be_copied(value: Any) -> bool:
    """Every element that remains is at a place of its own."""
    if not isinstance(value, torch.Tensor):
        return True
    extent = 1
    plain = _unexpanded(value)
    for stride, size in sorted(zip(plain.stride(), plain.shape, strict=True)):
        if size > 1 and stride < extent:
            return False
        extent += stride * (size - 1)
    return True


def _copy(target: torch.Tensor, source: torch.Tensor) -> None:
    _unexpanded(target).copy_(_unexpanded(source))


def _clone(tensor: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides."""
    made = torch.empty_strided(
        tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device
    )
    _copy(made, tensor)
    return made


# -- what can be recorded --------------------------------------------------------------------------

_aten = torch.ops.aten
#: They wait for the GPU or ask it for a value.
_REFUSED = frozenset([
    _aten.embedding_dense_backward.default, _aten._local_scalar_dense.default,
    _aten.item.default, _aten.is_pinned.default,
])  # fmt: skip
_UNSAFE_TAGS = frozenset([
    torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output, torch.Tag.cudagraph_unsafe,
])  # fmt: skip
_INDEXING = frozenset([
    _aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default,
    _aten._unsafe_index.Tensor, _aten._unsafe_index_put.default,
])  # fmt: skip


def replayable(node: torch.fx.Node, device: torch.device) -> bool:
    """Does the node work on ``device`` alone, without asking for a value?"""
    if node.op != "call_function":
        return False
    held = [value for one in [node, *node.all_input_nodes] for value in tensors_of(one)]
    if not held:  # arithmetic on sizes: the same for each combination of shapes
        return "val" in node.meta and not isinstance(node.target, OpOverload)
    if any(value.device != device or value.is_sparse for value in held):
        return False
    if not isinstance(node.target, OpOverload) or node.target in _REFUSED:
        return False
    if _UNSAFE_TAGS.intersection(node.target.tags):
        return False
    if node.target in _INDEXING:  # masks become indices, and how many is asked
        masks = [t.dtype in (torch.bool, torch.uint8) for n in nodes_in(node.args[1])
                 for t in tensors_of(n)]  # fmt: skip
        return not any(masks)
    return True


def compiler_for(platform: Cuda) -> Callable[..., Any]:
    """A compiler for AOTAutograd's graphs that records with ``platform``."""

    def with_graphs(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        return run_as_is(_with_segments(gm, platform), example_inputs)

    return with_graphs


def _with_segments(gm: torch.fx.GraphModule, platform: Cuda) -> torch.fx.GraphModule:
    devices = {
        value.device for node in gm.graph.nodes for value in tensors_of(node)
        if value.device.type == platform.device_type
    }  # fmt: skip
    if len(devices) != 1:
        if not devices:
            warn("cudagraphs: no operation of the graph is on a CUDA device; it runs without")
        return gm  # none, or several that would have to wait for each other
    memory = Memory(gm.graph)
    made_here = {n for n in gm.graph.nodes if n.op == "call_function"}
    if any(memory.writes(node) & made_here for node in gm.graph.nodes):
        return gm  # AOTAutograd leaves writes to inputs only: a graph from somewhere else
    (device,) = devices
    pieces = cut(gm.graph, memory, lambda node: replayable(node, device))
    if not any(isinstance(piece, Segment) for piece in pieces):
        return gm

    def wrap(module: torch.fx.GraphModule, mutated: list[int]) -> Callable[..., Any]:
        replayer = Replayer(module.forward, mutated, platform)
        return lambda *inputs: replayer(*inputs)

    return assemble(gm, pieces, memory, wrap)


_on_cuda = aot_autograd(fw_compiler=compiler_for(Cuda()))


@register_backend
def cudagraphs(
    gm: torch.fx.GraphModule, example_inputs: Sequence[torch.Tensor]
) -> Callable[..., Any]:
    """CUDA graphs of PyTorch's own kernels, through AOTAutograd; trains, too."""
    return _on_cuda(gm, example_inputs)


register_backend(cudagraphs, name="aot_cudagraphs", tags=("debug",))
