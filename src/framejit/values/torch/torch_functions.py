"""Functions of torch: which become graph nodes, and the few that framejit handles itself.

In: calls of torch's functions on values. Out: graph nodes (D8: C functions, `torch.functional`,
`torch.nn.functional`, operators), constants for questions about global state (which is guarded as a
whole), and recorded changes of that state. Next room: graph.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.overrides
from torch._ops import OpOverload, OpOverloadPacket

from framejit import directives
from framejit.exc import GraphBreak
from framejit.graph import instalments
from framejit.graph.global_state import (
    SETTERS,
    default_devices,
    determinism,
    dispatch_modes,
    refuse_hooks,
    refused_hooks,
    set_default_devices,
    set_determinism,
)
from framejit.graph.metadata import in_order
from framejit.graph.tensor_class import is_written_in_torch
from framejit.torchcompat import jit_tracing
from framejit.torchcompat.frame_names import RENAMERS
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue, fold, guard_state
from framejit.values.core.registry import (
    LOOKASIDE_RULES,
    LOOKASIDES,
    METHODS,
    NAMED_LOOKASIDES,
    NODE_RULES,
    Handler,
    Result,
    by_identity,
    lookaside,
    refuses,
    wraps,
)
from framejit.values.core.space import Space
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import BuiltinValue
from framejit.values.torch.ragged import ragged_form
from framejit.values.torch.tensors import TensorValue, graph_call, tensor_call

_GRAPH_MODULES = frozenset({"torch.functional", "torch.nn.functional", "torch._lowrank"})
_C_MODULES = frozenset(
    {"torch._C._nn", "torch._C._linalg", "torch._C._fft", "torch._C._special", "torch._C._sparse",
     "torch._C._nested", "torch._C._VariableFunctions"}
)  # fmt: skip
_TENSOR_METHODS_MODULE = "torch._tensor"
#: Where the functions are from that take ``float`` as a dtype: C functions, what calls these.
_TAKE_CLASSES = {None, "torch", *_C_MODULES, *_GRAPH_MODULES}
#: C functions found beside the operators that need the data, or that only make sense eagerly.
_NOT_IN_GRAPH: set[Any] = {
    torch.equal, torch.allclose, torch.from_numpy, torch.frombuffer, torch.tensor, torch.as_tensor,
    torch.asarray, torch.is_nonzero,
}  # fmt: skip
#: Functions that write to the tensors of a list and return that list.
_WRITE_LISTS = {getattr(torch, name) for name in dir(torch) if re.match("_foreach_.*_$", name)}
_C_FUNCTION = types.BuiltinFunctionType

#: Those that become nodes, by their id: only torch's own, so nothing of the user's is kept.
_known: dict[int, Any] = {}


def is_graph_function(function: Any) -> bool:
    """Does a call of this callable become a graph node?"""
    if type(function) is types.FunctionType and function.__module__ in _GRAPH_MODULES:
        return _is_in_place(function)  # which may change
    if id(function) in _known:
        return True
    found = _is_graph_function(function)
    if found:
        _known[id(function)] = function
    return found


NODE_RULES.append(is_graph_function)


def is_of_torch(function: Any) -> bool:
    """Is it an operation on tensors in C?"""
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        return True
    if isinstance(function, types.MethodWrapperType):
        function = function.__self__
    if isinstance(function, types.BuiltinFunctionType):
        owner = function.__self__
        if function.__qualname__.startswith("_VariableFunctions"):
            return True
        name = owner.__name__ if isinstance(owner, types.ModuleType) else ""
        return name in _C_MODULES or (function.__module__ or "") in _C_MODULES
    return getattr(function, "__objclass__", None) is torch._C.TensorBase


def _is_graph_function(function: Any) -> bool:
    if isinstance(function, (OpOverload, OpOverloadPacket, types.BuiltinFunctionType)):
        return function not in _NOT_IN_GRAPH and is_of_torch(function)
    if isinstance(function, types.FunctionType):
        if function.__module__ == _TENSOR_METHODS_MODULE and is_written_in_torch(function):
            return getattr(torch.Tensor, function.__name__, None) is function
    return False


def _is_in_place(function: types.FunctionType) -> bool:
    """Is it what its module has under its name? Others are traced through: where modes are active,
    as when AOTAutograd traces a graph, they go by their names and find what is there instead."""
    name = function.__name__
    known = getattr(sys.modules.get(function.__module__), name, None)
    in_place = known is function and not name.startswith("_verify")
    return in_place and is_written_in_torch(function)


def call_in_graph(space: Space, function: Any, args: Args, kwargs: Kwargs, value: Any) -> Result:
    """Make the node. A Python function with an argument no graph can hold is traced through."""
    if isinstance(function, types.FunctionType) and function.__module__ == _TENSOR_METHODS_MODULE:
        receiver = args[0].realize()
        if isinstance(receiver, TensorValue):
            return receiver.call_method(space, function.__name__, args[1:], kwargs)
    elif getattr(function, "__module__", None) not in _TAKE_CLASSES:
        if any(isinstance(arg.realize(), ClassValue) for arg in (*args, *kwargs.values())):
            raise GraphBreak("FJ0121", "a class is passed to an operator or a function kept whole")
    try:
        made = graph_call(space, ragged_form(function, args, kwargs), args, kwargs)
    except GraphBreak as broken:
        if value is not None and "is passed to a torch operation" in broken.reason:
            return value.inline(space, args, kwargs)
        raise
    if made.is_none() or not (isinstance(function, _C_FUNCTION) and function in _WRITE_LISTS):
        return made
    return args[0] if args else kwargs["self"]


wraps(OpOverload, OpOverloadPacket)(by_identity(BuiltinValue))

# -- questions about types and modes ---------------------------------------------------------------


def _answer(result: Any) -> Callable[..., Value]:
    return lambda space, args, kwargs: ConstantValue(result)


for _function, _result in {
    torch.jit.is_scripting: False,
    torch.jit.is_tracing: False,
    **jit_tracing.QUESTIONS,
    **dict.fromkeys(RENAMERS),
    torch._C._log_api_usage_once: None,
    torch.compiler.is_exporting: False,
    torch._C._functorch.peek_interpreter_stack: None,
    torch._C._are_functorch_transforms_active: False,
}.items():
    LOOKASIDES[_function] = _answer(_result)
NAMED_LOOKASIDES["torch.onnx", "is_in_onnx_export"] = _answer(False)  # torch.onnx is slow to import


@lookaside(torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling)
def _is_compiling(space: Space, args: Args, kwargs: Kwargs) -> Value:
    """True, but not for torch's modules and functions: they would do otherwise than in eager mode,
    which is captured as well. (Kernels for attention are another thing: compilers know them.)"""
    line = space.running.user_line()
    return ConstantValue(line is None or not line[0].startswith(_AS_IN_EAGER))


NAMED_LOOKASIDES["torch._dynamo.external_utils", "is_compiling"] = _is_compiling
_AS_IN_EAGER = tuple(
    os.path.join(os.path.dirname(torch.__file__), *path)
    for path in (("nn", "modules"), ("nn", "functional.py"), ("export",), ("_functorch", "apis.py"))
)


def _current(function: Any) -> None:
    """A question about global state that the entry guards as a whole."""

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Value:
        answer = fold(space, function, args, kwargs, function.__name__)
        changed = any(STATE[setter][0] is function for setter, _ in space.effects.changed_state)
        if function in _NOT_IN_STATE and not changed:
            guard_state(space, function.__name__, function, answer.as_python())
        return answer

    LOOKASIDES[function] = handler


#: Which kernels attention may use: setter -> getter.
_ATTENTION = {
    getattr(torch._C, f"_set_sdp_use_{name}"): getattr(torch._C, f"_get_{name}_sdp_enabled")
    for name in ("cudnn", "flash", "mem_efficient", "math", "overrideable")
}
_ATTENTION[torch._C._set_sdp_priority_order] = torch._C._get_sdp_priority_order
#: Queries without arguments that the native snapshot of the global state does not cover.
_NOT_IN_STATE = frozenset([
    torch.is_anomaly_enabled, torch._C._get_cudnn_enabled, torch.get_num_threads,
    torch.backends.mha.get_fastpath_enabled, torch._C._get_mkldnn_enabled,
    torch.fx._symbolic_trace.is_fx_tracing, torch.fx._symbolic_trace.is_fx_symbolic_tracing,
    *_ATTENTION.values(),
])  # fmt: skip
for _question in (
    torch.is_grad_enabled, torch.is_inference_mode_enabled, torch.get_default_dtype,
    torch.is_autocast_enabled, torch.get_autocast_dtype, torch.is_autocast_cache_enabled,
    torch.get_autocast_cpu_dtype, torch.get_autocast_gpu_dtype, torch.is_autocast_cpu_enabled,
    torch.are_deterministic_algorithms_enabled, torch.is_anomaly_enabled,
    torch.amp.autocast_mode.is_autocast_available, torch._C._is_autocast_available,
    torch._C._get_privateuse1_backend_name,
    torch.finfo, torch.iinfo, torch.promote_types, torch.can_cast, torch.broadcast_shapes,
    torch._C._get_deterministic_algorithms, torch._C._get_deterministic_algorithms_warn_only,
    torch.is_deterministic_algorithms_warn_only_enabled, torch.device,
    *_NOT_IN_STATE,
):  # fmt: skip
    _current(_question)


@lookaside(torch._C._autograd._saved_tensors_hooks_get_disabled_error_message)
def _refused_hooks(space: Space, args: Args, kwargs: Kwargs) -> Value:
    if not space.effects.has_set(refuse_hooks) and not space.transforms:
        guard_state(space, "refused hooks", refused_hooks, refused_hooks())
    return ConstantValue(refused_hooks())


@lookaside(torch._C._len_torch_dispatch_stack)
def _count_modes(space: Space, args: Args, kwargs: Kwargs) -> Value:
    return ConstantValue(dispatch_modes())  # they are part of what entries guard


#: How functions of ``torch._C`` are called that only say something.
_ASKS = re.compile(r"_*(is|has|get|len|are|can)_")


def _only_asks(function: Any) -> bool:
    """Is it such a function, and no operation on tensors?"""
    if type(function) is not types.BuiltinFunctionType or is_graph_function(function):
        return False
    module = function.__module__ or ""
    return module.startswith("torch._C") and _ASKS.match(function.__name__) is not None


def _asked(function: Any) -> Handler:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Value:
        instalments.apart(f"what {function.__name__}() says")
        answer = None if args or kwargs else space.run_real(function)
        if type(answer) not in (bool, int, str):
            raise GraphBreak("FJ0132", f"calling the {BuiltinValue(function, None).describe()}")
        guard_state(space, function.__name__, function, answer)
        return ConstantValue(answer)

    return handler


LOOKASIDE_RULES.append((_only_asks, _asked))


@lookaside(torch.is_tensor)
def _is_tensor(space: Space, args: Args, kwargs: Kwargs) -> Result:
    return LOOKASIDES[isinstance](space, [args[0], space.class_value(torch.Tensor)], {})


def _metadata_function(function: Any, method: str) -> None:
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        receiver = args[0].realize() if args else kwargs.get("input", ConstantValue(None)).realize()
        if not isinstance(receiver, TensorValue):
            raise GraphBreak("FJ0111", f"torch.{method}() of a {receiver.describe()}")
        return receiver.call_method(space, method, args[1:], {})

    LOOKASIDES[function] = handler


for _name in ("is_floating_point", "is_complex", "numel", "is_signed", "is_conj", "is_inference"):
    _metadata_function(getattr(torch, _name), _name)


def _custom_operator(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """What ``torch.library.custom_op`` makes: a call of the operator behind it."""
    definition = args[0].realize()
    real = definition.obj
    if real is None or definition.source is None:
        raise GraphBreak("FJ0121", "calling a custom operator that was defined while capturing")
    space.guard(definition.source, "ID_MATCH", real)
    return call_in_graph(space, real._opoverload, args[1:], kwargs, None)


NAMED_LOOKASIDES["torch._library.custom_ops", "CustomOpDef.__call__"] = _custom_operator


def _records(_: Any) -> bool:
    return torch.autograd._profiler_enabled()


def _check_label(space: Space) -> None:
    """Labels are for a profiler: while one records, they are graph breaks, so that they cover what
    they name. Otherwise nobody sees them."""
    if not space.task.whole:
        asked = space.const_source(torch.autograd, "torch.autograd").child("call", _records)
        space.guard(asked, "ID_MATCH", _records(None))
        if _records(None):
            raise GraphBreak("FJ0130", "a label for the profiler that records")


#: Of a label: does leaving it end what entering it has begun?
_ENDS = "run_callbacks_on_exit"


@lookaside(torch.autograd.profiler.record_function.__enter__)
def _enter_label(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """Nothing begins, so nothing must end where the rest of the frame is plain Python."""
    _check_label(space)
    space.setattr(args[0], _ENDS, ConstantValue(False))
    return args[0]


@lookaside(torch.autograd.profiler.record_function.__exit__)
def _exit_label(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if space.truth(space.getattr_now(args[0], _ENDS)):  # plain Python saw it begin
        _check_label(space)
    space.setattr(args[0], _ENDS, ConstantValue(True))
    return ConstantValue(None)


@lookaside(contextlib.ContextDecorator._recreate_cm)  # type: ignore[attr-defined]
def _as_decorator(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """What a function is wrapped in that such an object decorates."""
    return args[0]


# -- changes of global state -----------------------------------------------------------------------

#: setter -> (getter, number of leading arguments that select what is set).
STATE: dict[Any, tuple[Callable[..., Any], int]] = {
    **SETTERS,
    torch.set_deterministic_debug_mode: (torch.get_deterministic_debug_mode, 0),
    set_determinism: (determinism, 0),
    refuse_hooks: (refused_hooks, 0),
    torch._C._set_default_dtype: (torch.get_default_dtype, 0),
    **{setter: (getter, 0) for setter, getter in _ATTENTION.items()},
    set_default_devices: (default_devices, 0),
}


#: Those that only set what the thread finds.
_OF_THREAD = {*SETTERS, refuse_hooks, set_default_devices}


def _set_state(setter: Any) -> None:
    getter, selectors = STATE[setter]

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Value:
        real = [a.realize().as_python() for a in args]
        if kwargs:
            raise GraphBreak("FJ0124", f"{setter.__name__}() with keyword arguments")
        if selectors and len(real) == selectors:  # the old form without a device type
            raise GraphBreak("FJ0124", f"{setter.__name__}() without a device type")
        if setter not in _OF_THREAD:
            instalments.apart(f"{setter.__name__}() is for all threads")
        selector = tuple(real[:selectors])
        space.effects.remember_state(setter, selector, space.run_real(getter, *selector))
        space.run_real(setter, *real)
        space.builder.call_effect(setter, tuple(real), {})
        return ConstantValue(None)

    LOOKASIDES[setter] = handler


for _setter in STATE:
    if _setter is not set_default_devices:
        _set_state(_setter)


@lookaside(torch.use_deterministic_algorithms)
def _use_deterministic(space: Space, args: Args, kwargs: Kwargs) -> Result:
    mode, warn_only = (value.realize().as_python() for value in _determinism(args, kwargs))
    return LOOKASIDES[set_determinism](space, [ConstantValue((mode, warn_only, mode))], {})


@lookaside(torch._C._set_deterministic_algorithms)
def _set_deterministic(space: Space, args: Args, kwargs: Kwargs) -> Result:
    mode, warn_only = map(space.truth, _determinism(args, kwargs))
    level = ConstantValue(mode * (1 if warn_only else 2))
    return LOOKASIDES[torch.set_deterministic_debug_mode](space, [level], {})


def _determinism(args: Args, kwargs: Kwargs) -> list[Value]:
    named = {**dict(zip(("mode",), args, strict=False)), **kwargs}
    warn_only = named.pop("warn_only", ConstantValue(False))
    mode = named.pop("mode", ConstantValue(None)).realize()
    if named or len(args) > 1 or mode.python_type() is not bool:
        raise GraphBreak("FJ0124", "use_deterministic_algorithms() with other arguments")
    return [mode, warn_only]


@lookaside(torch._C._autograd._saved_tensors_hooks_disable)
def _disable_hooks(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) != 1 or kwargs:
        raise GraphBreak("FJ0118", "saved-tensor hooks are disabled unless there are any")
    return LOOKASIDES[refuse_hooks](space, args, kwargs)


@lookaside(torch._C._autograd._saved_tensors_hooks_enable)
def _enable_hooks(space: Space, args: Args, kwargs: Kwargs) -> Result:
    return LOOKASIDES[refuse_hooks](space, [ConstantValue(None)], {})


def _check_modes(space: Space) -> None:
    if space.torch_function.modes:
        raise GraphBreak("FJ0124", "a device is chosen inside of another mode")


def _enter_device(space: Space, device: torch.device, args: Args, kwargs: Kwargs) -> Value:
    """``with torch.device(...)``: calls in the graph say the device themselves (`graph_call`), so
    only what comes after the graph has to know."""
    _check_modes(space)
    before = default_devices()
    space.effects.remember_state(set_default_devices, (), before)
    set_default_devices((*before, device))
    return ConstantValue(device)


def _exit_device(space: Space, device: torch.device, args: Args, kwargs: Kwargs) -> Value:
    _check_modes(space)
    before = default_devices()
    space.effects.remember_state(set_default_devices, (), before)
    set_default_devices(before[:-1])
    return ConstantValue(None)


METHODS[torch.device, "__enter__"] = _enter_device
METHODS[torch.device, "__exit__"] = _exit_device


_INFERENCE = "inference mode is entered or left"
refuses("FJ0124", {
    torch.inference_mode.__enter__: _INFERENCE, torch.inference_mode.__exit__: _INFERENCE,
    torch.set_default_device: "torch.set_default_device() changes what comes after it",
})  # fmt: skip
for _function in (torch.inference_mode.__enter__, torch.inference_mode.__exit__):
    directives.mark(_function, "skip")  # nothing in them is to be captured either


def _nest(function: Callable[[], int], step: int) -> None:
    @lookaside(function)
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Value:
        # Not in the graph: the code around it does it, however the backend runs the graph.
        level = function()
        space.effects.nest(step, level)
        return ConstantValue(level)


_nest(torch.autocast_increment_nesting, 1)
_nest(torch.autocast_decrement_nesting, -1)


def _recurrent(function: Any) -> None:
    @lookaside(function)
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        # Packed sequences come with their lengths, hence one argument later.
        first = 4 if args[3].realize().python_type() is bool else 5
        dropout, training = args[first + 1 : first + 3]
        if space.truth(dropout) and space.truth(training):
            raise GraphBreak("FJ0121", "dropout in a recurrent layer, which compilers leave out")
        return graph_call(space, function, args, kwargs)


for _function in (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu):
    _recurrent(_function)


def _in_order(function: Any, channels_last: bool) -> None:
    """The kernel for the CPU returns elements in order (or as ``channels_last``); PyTorch's rule
    for fake tensors keeps the strides of the operand."""

    @lookaside(function)
    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        made = tensor_call(space, function, *args, **kwargs)
        known = made.metadata()
        dims = range(len(known.shape))
        orders = [dims, [0, *dims[2:], 1]] if channels_last and len(dims) > 3 else [dims]
        looks = [([known.shape[d] for d in o], [known.stride[d] for d in o]) for o in orders]
        if known.device.type != "cpu" or any(in_order(*look) for look in looks):
            return made
        return made.call_method(space, "contiguous", [], {})


for _function in (torch.nn.functional.batch_norm, torch.batch_norm):
    _in_order(_function, True)
for _function in (torch.nn.functional.logsigmoid, torch.nn.functional.rrelu, torch.rrelu):
    _in_order(_function, False)


@lookaside(torch.clear_autocast_cache)
def _clear_cache(space: Space, args: Args, kwargs: Kwargs) -> Value:
    space.builder.call_effect(torch.clear_autocast_cache, (), {})
    return ConstantValue(None)
