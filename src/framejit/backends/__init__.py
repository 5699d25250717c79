"""The backends room: what turns a captured graph into something fast to call.

In: an `fx.GraphModule` with its real example inputs. Out: a callable that takes the inputs
and returns a tuple or list of the graph's outputs. Backends are found by name in the registry;
each lives in one file and imports its compiler only when it is used. Next room: codegen.
"""

from . import aot, cudagraphs, eager, inductor, torchscript
from .aot import aot_autograd
from .compile import compile_graph
from .exported import onnxrt, tvm
from .piecewise import piecewise
from .registry import (
    configured_backend,
    doctor,
    list_backends,
    lookup_backend,
    register_backend,
)

__all__ = [
    "aot",
    "aot_autograd",
    "compile_graph",
    "configured_backend",
    "cudagraphs",
    "doctor",
    "eager",
    "inductor",
    "list_backends",
    "lookup_backend",
    "onnxrt",
    "piecewise",
    "register_backend",
    "torchscript",
    "tvm",
]
