"""Runs what Inductor compiled, without Inductor: for packages.

In: the parts that `inductor_artifact` made. Out: a callable. The wrapper's code runs in a namespace
that provides what Inductor's own header would import; kernels are loaded from shared objects in
memory; training goes through an autograd function that does what AOTAutograd's does for the cases
that `inductor_artifact` lets through. Imports neither torch._inductor nor torch._dynamo nor sympy.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import itertools
import json
import marshal
import math
import os
import tempfile
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

from framejit import tensor_file
from framejit.graph.second_order import differentiable_twice, no_second_derivative, recorded

VERSION = 6
Parts = Mapping[str, Any]
Boxed = Callable[[list[Any]], Any]


# -- what the wrapper's code refers to -------------------------------------------------------------


class ExternKernels:
    """Operators that Inductor calls through its table of external kernels."""

    mm = staticmethod(torch.mm)
    bmm = staticmethod(torch.bmm)
    addmm = staticmethod(torch.addmm)
    baddbmm = staticmethod(torch.baddbmm)
    addmv = staticmethod(torch.addmv)
    convolution = staticmethod(torch.convolution)
    _int_mm = staticmethod(torch._int_mm)

    @staticmethod
    def bias_addmm(
        inp: torch.Tensor, mat1: torch.Tensor, mat2: torch.Tensor, *,
        out: torch.Tensor | None = None, alpha: float = 1, beta: float = 1,
    ) -> torch.Tensor:  # fmt: skip
        """`addmm` with a bias that may be broadcast."""
        return torch.addmm(inp, mat1, mat2, out=out, alpha=alpha, beta=beta)


def _assert_metadata(
    result: torch.Tensor | None, size: Any, stride: Any, dtype: torch.dtype, name: str = ""
) -> None:
    """An operator of the program's own gives what its fake implementation said (torch 2.14 on)."""
    if result is None:
        return
    if result.dtype != dtype:
        raise RuntimeError(
            f"expected dtype {dtype} but got {result.dtype}\nError in op: {name}\n"
            "The operator's fake implementation is wrong: see torch.library.opcheck"
        )
    torch._C._dynamo.guards.assert_size_stride(result, size, stride, name)  # type: ignore[attr-defined]


def _align(size: int) -> int:
    return (size + 63) & -64


def _provided() -> dict[str, Any]:
    guards: Any = torch._C._dynamo.guards  # type: ignore[attr-defined]  # C functions
    ops: Any = torch.ops
    return {
        "torch": torch, "math": math, "inf": math.inf, "nan": math.nan,
        "nanj": complex(0, math.nan), "device": torch.device,
        "empty_strided": torch.empty_strided, "extern_kernels": ExternKernels, "align": _align,
        "aten": ops.aten, "inductor_ops": ops.inductor, "_quantized": ops._quantized,
        "assert_size_stride": guards.assert_size_stride,
        "assert_tensor_metadata": _assert_metadata,
        "assert_alignment": guards.assert_alignment,
        "empty_strided_cpu": guards._empty_strided_cpu,
        "empty_strided_cpu_pinned": guards._empty_strided_cpu_pinned,
        "empty_strided_cuda": guards._empty_strided_cuda,
        "empty_strided_xpu": guards._empty_strided_xpu,
        "empty_strided_mtia": guards._empty_strided_mtia,
        "reinterpret_tensor": guards._reinterpret_tensor,
        "alloc_from_pool": ops.inductor._alloc_from_pool,
        "empty_strided_p2p": None,
        "maybe_profile": contextlib.nullcontext,
        "run_intermediate_hooks": lambda name, value: None,
    }  # fmt: skip


#: Names that the wrapper's code may read.
PROVIDED = frozenset(_provided())


# -- kernels ---------------------------------------------------------------------------------------

_numbers = itertools.count()
_libraries: dict[str, Any] = {}


def _kernel(part: str, member: str, data: Any) -> Callable[..., Any]:
    """A function in a shared object. Equal objects (the part is named by its hash) share one."""
    known = _libraries.get(part)
    if known is None:
        known = _libraries[part] = _load_extension(data)
    kernel: Callable[..., Any] = getattr(known, member)
    return kernel


def _load_extension(data: Any) -> Any:
    # Where Inductor's kernels look for the function that reads a tensor's address.
    address = torch._C._dynamo.guards._torchinductor_pyobject_tensor_data_ptr  # type: ignore[attr-defined]
    os.environ["_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR"] = str(address)
    # CPython remembers extension modules by their name, and the dynamic linker libraries by the
    # text of their path: both must be new ones each time.
    number = next(_numbers)
    name = f"framejit_kernel_{number}.kernel"
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("framejit")
        spelling = "".join("./" if number >> bit & 1 else "/" for bit in range(24))
        try:
            _write(handle, data)
            return _import(name, f"/proc/self/fd/{spelling}{handle}")
        finally:
            os.close(handle)
    handle, path = tempfile.mkstemp(suffix=".so")
    try:
        _write(handle, data)
        os.close(handle)
        return _import(name, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _write(handle: int, data: Any) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _import(name: str, path: str) -> Any:
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


# -- graphs ----------------------------------------------------------------------------------------


def deserialize(
    parts: Parts, module: Callable[[], torch.fx.GraphModule]
) -> Callable[..., Any] | None:
    """The callable, or None when another release of framejit wrote the parts. ``module``: the
    recorded graph."""
    plan = json.loads(bytes(parts["plan"]))
    if plan["version"] != VERSION:
        return None
    forward = _graph(plan["forward"], "forward", parts) if plan["forward"] else _nothing
    disable_amp = torch._C._is_any_autocast_enabled()
    if "training" not in plan:
        run = _inference(forward, plan, disable_amp)
    else:
        backward = _graph(plan["backward"], "backward", parts)
        run = _training(forward, backward, plan, disable_amp)
        run = differentiable_twice(run, lambda: recorded(module()), plan["training"]["place"])
    return run if plan["grad_mode"] is None else _leaving(run, plan["grad_mode"])


def _nothing(args: list[Any]) -> list[Any]:
    return []


def _leaving(run: Callable[..., Any], grad_mode: bool) -> Callable[..., Any]:
    """A graph that ends inside of ``torch.no_grad()``, or after one that it did not enter."""

    def leave(*args: Any) -> Any:
        outputs = run(*args)
        torch._C._set_grad_enabled(grad_mode)
        return outputs

    return leave


def _graph(row: dict[str, Any], role: str, parts: Parts) -> Boxed:
    namespace: dict[str, Any] = {"__name__": "framejit.inductor", **_provided()}
    for name, (part, member) in row["kernels"].items():
        namespace[name] = _kernel(part, member, parts[part])
    code = marshal.loads(parts[f"{role}.code"])
    assert isinstance(code, types.CodeType)
    exec(code, namespace)
    if row["constants"]:
        constants = tensor_file.load(memoryview(parts[f"{role}.constants"]))
        namespace.update(zip(row["constants"], constants, strict=True))
    call: Boxed = namespace["call"]
    return call


def _without_amp(call: Boxed, disable_amp: bool) -> Boxed:
    """The graph has its casts in it; autocast must not add more."""
    if not disable_amp:
        return call

    def run(args: list[Any]) -> Any:
        with torch._C._DisableAutocast():
            return call(args)

    return run


def _inference(call: Boxed, plan: dict[str, Any], disable_amp: bool) -> Callable[..., Any]:
    call = _without_amp(call, disable_amp)
    versions, returned = plan["versions"], plan["inputs_returned"]
    set_grad = torch._C._set_grad_enabled

    def run(*args: Any) -> Any:
        if versions:
            torch.autograd.graph.increment_version([args[i] for i in versions])
        grad = torch.is_grad_enabled()
        if grad:
            set_grad(False)
        try:
            outputs = call(list(args))
        finally:
            if grad:
                set_grad(True)
        return _with_inputs(outputs, args, returned) if returned else outputs

    return run


def _with_inputs(outputs: Any, args: tuple[Any, ...], returned: list[list[int]]) -> list[Any]:
    """Outputs that are inputs are the very objects."""
    outputs = list(outputs)
    for position, source in returned:
        outputs[position] = args[source]
    return outputs


def _training(
    forward: Boxed, backward: Boxed, plan: dict[str, Any], disable_amp: bool
) -> Callable[..., Any]:
    """What AOTAutograd's runtime does, for graphs without aliased outputs."""
    run_forward, run_backward = _without_amp(forward, disable_amp), _without_amp(backward, True)
    rows = plan["training"]
    returns, returned, versions = plan["returns"], plan["inputs_returned"], plan["versions"]
    saved, unchecked, symints = [slice(*ends) for ends in rows["saved"]]
    tangents = [(number, _layout(layout)) for number, layout in rows["tangents"]]

    class CompiledFunction(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:  # type: ignore[override]
            outputs = list(run_forward(list(args)))
            ctx.save_for_backward(*[_detached(x) for x in outputs[saved]])
            ctx.unchecked = [_detached(x) for x in outputs[unchecked]]
            ctx.symints = outputs[symints]
            results = outputs[:returns]
            for position in rows["unsafe_views"]:
                results[position] = torch.ops.aten._unsafe_view(
                    results[position], results[position].shape
                )
            for position, _ in returned:  # not a result as far as autograd is concerned
                results[position] = None
            fixed = [results[i] for i in rows["not_differentiable"]]
            ctx.mark_non_differentiable(*[x for x in fixed if isinstance(x, torch.Tensor)])
            ctx._materialize_non_diff_grads = False
            return tuple(results)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            _check_backward(rows)
            args = [*ctx.symints, *ctx.saved_tensors, *ctx.unchecked]
            args += [_coerced(grads[number], layout) for number, layout in tangents]
            ctx.maybe_clear_saved_tensors()
            if rows["donated"] and _kept():
                args = copied(args, rows["donated"])
            if torch.is_grad_enabled() and rows["inputs_require_grad"]:
                return differentiated_once(lambda: run_backward(args), args, rows["place"])
            return tuple(run_backward(args))

    def run(*args: Any) -> Any:
        if versions:
            torch.autograd.graph.increment_version([args[i] for i in versions])
        replay = torch._C._is_view_replay_enabled()
        torch._C._set_view_replay_enabled(True)
        try:
            with torch.enable_grad():
                outputs: Any = CompiledFunction.apply(*args)  # type: ignore[no-untyped-call]
        finally:
            torch._C._set_view_replay_enabled(replay)
        return _with_inputs(outputs, args, returned) if returned else outputs

    return run


def _detached(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach() if tensor._is_view() else tensor


def _layout(layout: Any) -> Any:
    if isinstance(layout, str):
        return getattr(torch, layout)
    size, stride = layout
    return torch.Size(size), tuple(stride)


def _coerced(grad: Any, layout: Any) -> Any:
    """A gradient with the memory layout that the backward graph was compiled for."""
    if not isinstance(grad, torch.Tensor):
        return grad
    grad = dense(grad)
    if isinstance(layout, torch.memory_format):
        return grad.contiguous(memory_format=layout)
    size, stride = layout
    if grad.shape == size and grad.stride() == stride:
        return grad
    made = torch.empty_strided(
        size, stride, dtype=grad.dtype, device=grad.device, requires_grad=grad.requires_grad
    )
    made.copy_(grad)
    return made


def dense(value: Any) -> Any:
    """The same tensor with a place in memory for each element; anything else as it is."""
    sparse = isinstance(value, torch.Tensor) and value.layout is not torch.strided
    return value.to_dense() if sparse else value


def _kept() -> bool:
    """Whether the backward that runs now may run again (``retain_graph=True``)."""
    return torch._C._autograd._get_current_graph_task_keep_graph()  # type: ignore[attr-defined,no-any-return]


def copied(args: list[Any], positions: list[int]) -> list[Any]:
    """``args`` with copies, of the same strides, in the places that a graph may write to."""
    args = list(args)
    for position in positions:
        tensor = args[position]
        args[position] = torch.empty_strided(
            tensor.size(), tensor.stride(), dtype=tensor.dtype, device=tensor.device
        ).copy_(tensor)
    return args


def _check_backward(rows: dict[str, Any]) -> None:
    if torch._C._functorch.peek_interpreter_stack() is not None:
        raise RuntimeError("a compiled backward cannot run inside vmap, grad or vjp")
    if rows["deterministic"] is False and torch.are_deterministic_algorithms_enabled():
        raise RuntimeError(
            "this backward was compiled while torch.use_deterministic_algorithms(False) was set, "
            "and runs under torch.use_deterministic_algorithms(True)"
        )


def differentiated_once(run: Callable[[], Any], args: list[Any], place: str) -> Any:
    """The gradients that ``run`` returns for ``args``; to ask for theirs is an error."""

    class CompiledFunctionBackward(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *unused: Any) -> Any:  # type: ignore[override]
            return tuple(run())

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            raise RuntimeError(no_second_derivative(place))

    inputs = list(args)
    if not any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs):
        inputs.insert(0, torch.empty(0, requires_grad=True))
    return CompiledFunctionBackward.apply(*inputs)  # type: ignore[no-untyped-call]
