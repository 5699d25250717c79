"""Backend 'onnxrt': the graph exported to ONNX and run by ONNX Runtime, for inference on the CPU.

In: a captured graph. Out: a function that calls an inference session. Needs the packages
``onnxruntime`` and ``onnxscript``; they are imported when the first graph is compiled.
"""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from .exported import exported
from .registry import register_backend


@register_backend
def onnxrt(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """ONNX Runtime's CPU provider. Raises ValueError where gradients are needed."""
    program = exported(gm, example_inputs, "onnxrt")
    if program is None:
        return gm.forward
    import onnxruntime  # optional dependency

    model = _model(program)
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


def _model(exported_program: Any) -> bytes:
    """The program as a serialised ONNX model; its inputs are called as the program's."""
    silence = io.StringIO()
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(silence):
            warnings.simplefilter("ignore")
            program = torch.onnx.export(exported_program, dynamo=True, verbose=False)
    finally:
        logging.disable(level)
    assert program is not None
    model: bytes = program.model_proto.SerializeToString()
    return model
