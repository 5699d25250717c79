"""Backend 'tvm': the graph exported to Relax and compiled by Apache TVM, for inference on the CPU.

In: a captured graph. Out: a function that calls a Relax virtual machine. Needs the package
``apache-tvm``, which is imported when the first graph is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx

from .exported import exported
from .registry import register_backend


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
