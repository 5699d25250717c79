"""Why an operation cannot be captured, in words that a user understands, and where a graph raised.

In: the exception that an operation raised on fake tensors. Out: a `GraphBreak` that names the
operation as the program does; `PropagationError` if the operation will raise for real as well. Of
the error of a graph that ran operation by operation: its node, and the user's place that this was
recorded from. Graphs that a backend compiled tell nothing.
"""

from __future__ import annotations

import os
import re
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
    UnsupportedMutationAliasingException,
    UnsupportedOperatorException,
)

from ..exc import GraphBreak
from .lazy import called_nodes

if TYPE_CHECKING:
    from ..bytecode.model import Place

#: What stands for PyTorch's functions while capturing is no place of the user's.
_OWN_FILES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")
_PLACE = re.compile(r'File "([^"]+)", line (\d+), in (.+)')


class PropagationError(GraphBreak):
    """The operation raised on fake tensors, so it will for real: ``__cause__`` says what."""

    raises = True

    def __init__(self, identifier: str, reason: str) -> None:
        super().__init__(identifier, reason)
        # Autograd knows how views were made; that is lost for those that a compiled graph returns.
        self.as_it_is = "modified inplace" in reason


class WrongResult(TypeError):
    """What a backend compiled does not return what the graph does."""


class Late(BaseException):
    """An error of a graph that cannot run again: the program's blocks clean up when it passes them,
    but none of its handlers deals with what the variables of its frame know nothing of."""

    def __init__(self, error: Exception) -> None:
        super().__init__(*error.args)
        self.error = error


def as_graph_break(target: Any, error: Exception) -> GraphBreak:
    name = name_of(target)
    if isinstance(error, GraphBreak):
        return error
    if isinstance(error, DataDependentOutputException):
        return GraphBreak("FJ0102", f"the result of {name} depends on the data in a tensor")
    if isinstance(error, DynamicOutputShapeException):
        return GraphBreak(
            "FJ0103", f"the shape of what {name} returns depends on the data in a tensor"
        )
    if isinstance(error, UnsupportedOperatorException):
        return GraphBreak(
            "FJ0106",
            f"the operator {error} has no fake (shape-only) implementation",
            "register one with torch.library.register_fake",
        )
    if isinstance(error, (UnsupportedFakeTensorException, UnsupportedMutationAliasingException)):
        return GraphBreak("FJ0106", f"{name} cannot be traced: {first_line(error)}")
    if type(error).__name__ == "GuardOnDataDependentSymNode":  # its module imports sympy
        return GraphBreak(
            "FJ0104", f"{name} branches on a size that depends on the data in a tensor"
        )
    text = str(error)
    if "data pointer of Tensor" in text or "data_ptr" in text:
        return GraphBreak("FJ0106", f"{name} reads the memory of a tensor directly")
    return PropagationError(
        "FJ0108", f"{name} raised {type(error).__name__}: {text or 'no message'}"
    )


def name_of(target: Any) -> str:
    """How messages name an operation: ``torch.nonzero``, ``Tensor.item``."""
    if isinstance(target, str):
        return f"Tensor.{target}"
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return f"torch.ops.{target}"
    name = getattr(target, "__name__", None) or str(target)
    module = getattr(target, "__module__", None) or ""
    if module == "_operator":
        return f"operator.{name}"
    if getattr(torch, name, None) is target:
        return f"torch.{name}"
    if module in ("torch._C._nn", "torch.nn.functional"):
        return f"torch.nn.functional.{name}"
    return f"{module}.{name}" if module else name


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, or its type's name."""
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__


def failing_node(
    module: torch.fx.GraphModule, error: BaseException
) -> tuple[torch.fx.Node | None, TracebackType | None]:
    """The node of ``module`` that raised ``error`` and the traceback from there on; twice None when
    the module's own code did not run."""
    forward = type(module).__dict__.get("forward")
    code, lines = getattr(forward, "__code__", None), getattr(module, "_lineno_map", None)
    start = getattr(module, "_prologue_start", None)
    trace = error.__traceback__
    while trace is not None and code is not None and lines and start is not None:
        if trace.tb_frame.f_code is code:
            index = lines.get(trace.tb_lineno - start)
            nodes = called_nodes(module)
            known = index is not None and index < len(nodes)
            return (nodes[index], trace) if known else (None, None)
        trace = trace.tb_next
    return None, None


def begins_at(gm: torch.fx.GraphModule) -> str:
    """The line of the graph's first operation: the innermost one that is not PyTorch's own."""
    first = next((node for node in gm.graph.nodes if node.op.startswith("call_")), None)
    trace = "" if first is None else str(first.meta.get("stack_trace") or "")
    lines = [found.group() for found in _PLACE.finditer(trace)]
    torch_files = f'File "{os.path.dirname(torch.__file__)}'
    own = [line for line in lines if not line.startswith(torch_files)]
    return (own or lines or [""])[-1]


def place_of(node: torch.fx.Node) -> Place | None:
    """File, function and line of the user's operation that ``node`` was recorded from."""
    places = _PLACE.findall(str(node.meta.get("stack_trace") or ""))
    found = [place for place in places if not place[0].startswith(_OWN_FILES)]
    if not found:
        return None
    filename, line, name = found[-1]
    return filename, name, (int(line), None, None, None)
