"""Backends that only compute, for inference on the CPU: 'onnxrt' and 'tvm'.

In: a captured graph. Out: a function that calls what ONNX Runtime or Apache TVM made of the graph,
which is exported for them. A graph where results alone would not do runs as it is: with numbers
that vary, written inputs, results that share memory with inputs, changes of torch's global state.
Their packages are imported when the first graph is compiled.
"""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from ..graph.silence import unwarned
from .memory import Memory
from .optional import require
from .registry import register_backend
from .torchscript import is_fixed, needs_gradients


def exported(gm: torch.fx.GraphModule, inputs: Sequence[Any], backend: str) -> Any:
    """The `torch.export.ExportedProgram`, or None if the graph must run as it is. Raises
    UnknownBackend if the backend's package is missing, ValueError where gradients are needed:
    running such a graph as it is would not be what was asked for."""
    require(backend)
    if needs_gradients(inputs):
        raise ValueError(f"{backend} computes no gradients: call it under torch.no_grad()")
    if not is_fixed(gm, inputs):
        return None
    from torch.export import export  # slow: imports torch._dynamo

    program = export(gm, tuple(value.detach() for value in inputs), strict=False)
    memory = Memory(program.graph)
    touched = memory.roots(program.graph.output_node())
    touched = touched.union(*[memory.writes(node) for node in program.graph.nodes])
    return None if any(node.op == "placeholder" for node in touched) else program


@register_backend
def onnxrt(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """ONNX Runtime's CPU provider. Raises ValueError where gradients are needed."""
    program = exported(gm, example_inputs, "onnxrt")
    if program is None:
        return gm.forward
    import onnxruntime  # optional dependency

    model = _onnx_model(program)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    given = list(program.graph_signature.user_inputs)
    wanted = [given.index(name) for name in names]

    def run(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        arrays = {
            name: tensors[position].detach().contiguous().numpy()
            for name, position in zip(names, wanted, strict=True)
        }
        return tuple([torch.from_numpy(array) for array in session.run(None, arrays)])

    return run


def _onnx_model(exported_program: Any) -> bytes:
    """The program as a serialised ONNX model; its inputs are called as the program's."""
    silence = io.StringIO()
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with unwarned(), contextlib.redirect_stdout(silence):
            program = torch.onnx.export(exported_program, dynamo=True, verbose=False)
    finally:
        logging.disable(level)
    assert program is not None
    model: bytes = program.model_proto.SerializeToString()
    return model


@register_backend
def tvm(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """Apache TVM, untuned. Raises ValueError where gradients are needed."""
    program = exported(gm, example_inputs, "tvm")
    if program is None:
        return gm.forward
    # Optional dependency.
    from tvm import compile as build
    from tvm import cpu, relax, runtime
    from tvm.relax.frontend.torch import from_exported_program

    machine = relax.VirtualMachine(build(from_exported_program(program), target="llvm"), cpu())
    main = machine["main"]

    def run(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        given = [runtime.from_dlpack(tensor.detach().contiguous()) for tensor in tensors]
        return tuple([torch.from_dlpack(result) for result in main(*given)])

    return run
