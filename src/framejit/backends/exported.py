"""A graph for compilers that only compute: ONNX Runtime and TVM.

In: a captured graph. Out: a `torch.export.ExportedProgram`, or None where results alone would not
do: gradients, numbers that vary, written inputs, results that share memory with inputs, changes of
torch's global state. Next: onnxrt, tvm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.fx

from .memory import Memory
from .optional import require
from .torchscript import is_fixed, needs_gradients


def exported(gm: torch.fx.GraphModule, inputs: Sequence[Any], backend: str) -> Any:
    """The program, or None if the graph must run as it is. Raises UnknownBackend if the backend's
    package is missing, ValueError where gradients are needed: running such a graph as it is would
    not be what was asked for."""
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
