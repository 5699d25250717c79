"""What AOTAutograd finds around it while a backend compiles, and what must not be left behind.

In: a graph with its real inputs. Out: a block in which whoever uses AOTAutograd or Inductor, a
backend of ours or a callable of the user's, finds a tracing context: its fake mode knows the inputs
with the very symbols of their sizes. The mode is made when somebody asks for it, which many
backends never do. Used by dividing and compile.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.fx
from torch._guards import TracingContext, tracing
from torch._subclasses.fake_tensor import FakeTensorMode

from ..graph import global_state
from ..graph.fakes import forget_described
from ..graph.symbol_nodes import fake_inputs
from .memory import save_old_content

_TAG = " old content, no notes"


_noted = threading.local()


class Refused(Exception):
    """A graph that AOTAutograd cannot take as it is was about to be traced."""


class PartContext(TracingContext):
    """The context of a graph of ours, or of a part of one."""

    #: What AOTAutograd raised while it traced the graph, before it called any compiler.
    untraceable: Exception | None = None


class Context(PartContext):
    """The context of one graph. ``whole``: AOTAutograd may trace the graph as it is."""

    def __init__(self, gm: torch.fx.GraphModule, inputs: list[Any], whole: bool = True) -> None:
        self.gm: torch.fx.GraphModule | None = gm
        self.inputs = inputs
        self.whole = whole
        #: Did somebody ask for the mode although the graph cannot be traced as it is?
        self.refused = False
        self._mode: FakeTensorMode | None = None
        self._fakes: list[Any] = []  # the mode refers to them weakly
        super().__init__(None)

    @property
    def fake_mode(self) -> FakeTensorMode | None:  # type: ignore[override]
        if self._mode is None and self.gm is not None:
            if not self.whole:
                self.refused = True
                raise Refused
            _change_aotautograd()
            with tracing(None):  # reasoning about sizes asks as well
                self._mode = self._made(self.gm)
        return self._mode

    @fake_mode.setter
    def fake_mode(self, mode: FakeTensorMode | None) -> None:
        self._mode = mode

    def _made(self, gm: torch.fx.GraphModule) -> FakeTensorMode:
        """A mode of its own: fakes that the capture changed in place must not be met again."""
        known = fake_inputs(gm, self.inputs)
        if known is None:
            from torch.fx.experimental.symbolic_shapes import ShapeEnv  # slow optional dependency

            # Without a ShapeEnv AOTAutograd would not use its cache.
            mode = FakeTensorMode(shape_env=ShapeEnv())
            self._fakes = [as_fake(value, mode) for value in self.inputs]
            return mode
        mode, self._fakes = known
        for value, fake in zip(self.inputs, self._fakes, strict=True):
            if fake is not value:
                mode.fake_tensor_converter.set_tensor_memo(value, fake)
        return mode

    @property
    def asked(self) -> bool:
        """Has somebody asked for the mode?"""
        return self._mode is not None

    def settle(self) -> None:
        """The graph is compiled: let go of the user's tensors. The backward graph, compiled later,
        meets the mode again."""
        if self._mode is not None:
            forget_described(self._mode)
        self.gm, self.inputs, self._fakes = None, [], []


@functools.cache
def _change_aotautograd() -> None:
    """From now on, forward graphs of ours keep copies of what they write to and backward needs, and
    leave no notes about sizes that vary in the ``__dict__`` of tensors, and it is known which
    graphs of ours cannot be traced, whoever calls AOTAutograd. What is detached is what it was."""
    from torch._functorch import aot_autograd  # whoever asks has imported it
    from torch._functorch._aot_autograd import graph_compile
    from torch._functorch._aot_autograd import runtime_wrappers as wrappers

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                context = TracingContext.try_get()
                if isinstance(context, PartContext):
                    context.untraceable = error
                raise

        return run

    divide, wrap = graph_compile._partition_joint_graph_into_fw_bw, wrappers._create_runtime_wrapper

    def keeping(graph: Any, inputs: Any, metadata: Any, *rest: Any) -> tuple[Any, Any, int]:
        forward, backward, count = divide(graph, inputs, metadata, *rest)
        if isinstance(TracingContext.try_get(), PartContext):
            noting(save_old_content)(forward, metadata, count)
        return forward, backward, count

    def amended(compiled: Any, *, runtime_metadata: Any, **options: Any) -> Callable[..., Any]:
        if isinstance(TracingContext.try_get(), PartContext):
            runtime_metadata.dynamic_outputs = False
            runtime_metadata.dynamic_saved_tensors_idxs.clear()
            detached_as_they_are(runtime_metadata.output_info)
        return wrap(compiled, runtime_metadata=runtime_metadata, **options)

    for stage in ("create_aot_state", "aot_stage1_graph_capture"):
        setattr(aot_autograd, stage, noting(getattr(aot_autograd, stage)))
    graph_compile._partition_joint_graph_into_fw_bw = keeping  # type: ignore[assignment]
    wrappers._create_runtime_wrapper = amended  # type: ignore[assignment]


def detached_as_they_are(results: list[Any]) -> None:
    """AOTAutograd makes a result without a gradient that lies like one with a gradient in the same
    memory (``v.detach()`` beside ``v``) from the latter, and views that as it has viewed the tensor
    that both are views of: a transposed one is transposed twice. Without a list of views it goes by
    sizes and strides."""
    from torch._functorch._aot_autograd.schemas import OutputType  # whoever asks has imported it

    for index, one in enumerate(results):
        like_another = one.output_type is OutputType.alias_of_intermediate_base_is_user_output
        if like_another and not one.requires_grad:
            results[index] = dataclasses.replace(one, view_meta_sequence=None)


def as_fake(value: Any, mode: FakeTensorMode) -> Any:
    """The twin of a tensor that ``mode`` knows, or a new one of constant sizes."""
    if not isinstance(value, torch.Tensor):
        return value
    return mode.from_tensor(value, static_shapes=True)


@contextlib.contextmanager
def entered(context: Context) -> Iterator[Context]:
    """Compile the context's graph in this block."""
    with tracing(context):
        try:
            yield context
        finally:
            context.settle()


@contextlib.contextmanager
def context_of(gm: torch.fx.GraphModule, inputs: list[Any]) -> Iterator[PartContext]:
    """The context of ``gm`` that is there already, or a new one in this block. Who compiles a part
    has made its own, of whose mode the inputs are."""
    known = TracingContext.try_get()
    of_part = isinstance(known, PartContext) and not isinstance(known, Context)
    if of_part or (isinstance(known, Context) and known.gm is gm and known.whole):
        assert isinstance(known, PartContext)
        yield known
        return
    with entered(Context(gm, inputs)) as context:
        yield context


@contextlib.contextmanager
def refusals() -> Iterator[list[Exception]]:
    """What AOTAutograd raised for graphs, or parts of them, that run as they are therefore."""
    before = getattr(_noted, "errors", None)
    found: list[Exception] = []
    _noted.errors = found
    try:
        yield found
    finally:
        _noted.errors = before


def note_refused(error: Exception) -> None:
    """A graph runs as it is."""
    if (errors := getattr(_noted, "errors", None)) is not None:
        errors.append(error)


@functools.cache
def patched(config: Any, **changes: Any) -> Any:
    """A context manager that changes settings of torch's, the same one each time: torch makes a
    context variable for each, which the thread's context holds for good."""
    return config.patch(**changes)


@contextlib.contextmanager
def aot_settings(donate: bool = False, generators: bool = False) -> Iterator[None]:
    """What is compiled in this block allows ``backward(retain_graph=True)``, as eager does: the
    backward graph does not reuse the memory of what was saved for it, unless ``donate``.
    Saved-tensor hooks get all that is saved, inputs of the graph as well. Random operations that
    backward runs again on a GPU draw from the default generator, which `torch.manual_seed` reaches,
    unless they may have ``generators`` of their own, as Inductor's CUDA graphs need. Backward runs
    without the autocast of the forward pass, as it does where ``backward()`` is called after the
    block, unless the user has set ``backward_pass_autocast``."""
    from torch._functorch import config  # imports functorch

    # In caches there may be code of others, which saves what it writes to later on.
    tag = torch.compiler.config.cache_key_tag.removesuffix(_TAG) + _TAG
    tagged = patched(torch.compiler.config, cache_key_tag=tag)
    hooked = patched(config, donated_buffer=donate, saved_tensors_hooks_filtering_mode="all")
    drawn = patched(config, graphsafe_rng_functionalization=generators)
    usual = config.backward_pass_autocast == "same_as_forward"
    bare = patched(config, backward_pass_autocast="off") if usual else contextlib.nullcontext()
    with tagged, hooked, drawn, bare:
        yield
    metadata = getattr(TracingContext.try_get(), "fw_metadata", None)
    if metadata is not None and metadata.bw_donated_idxs is None:
        metadata.bw_donated_idxs = []  # None would be taken for "some" when backward runs


@contextlib.contextmanager
def preserved_state() -> Iterator[None]:
    """Put torch's global settings, function modes and all random states back after a block."""
    state, refused = global_state.current(), global_state.refused_hooks()
    autocast = global_state.Autocast.now()
    depth = global_state.transform_depth()
    modes = global_state.function_modes()
    python_random = random.getstate()
    cpu_random = torch.default_generator.get_state()
    gpu_random = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    try:
        yield
    finally:
        global_state.leave_transforms(depth, refused)
        _set_function_modes(modes)
        state.set()
        autocast.set()
        random.setstate(python_random)
        torch.default_generator.set_state(cpu_random)
        if gpu_random is not None:
            torch.cuda.set_rng_state_all(gpu_random)


def _set_function_modes(modes: list[Any]) -> None:
    now = global_state.function_modes()
    if len(now) == len(modes) and all(a is b for a, b in zip(now, modes, strict=True)):
        return
    for _ in now:
        torch._C._pop_torch_function_stack()
    for mode in modes:
        torch._C._push_on_torch_function_stack(mode)
