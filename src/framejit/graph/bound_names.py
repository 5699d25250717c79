"""Functions of torch by their names in the code of graphs: those that the graph calls, whatever the
names mean when the code runs.

In: the function that fx has written for a graph, and its nodes. Out: nothing; where the code says
``torch.nn.functional.relu``, it finds the function of the node, also if the program has put another
one in its place, which may call the first one in turn. Next room: backends.

`own_method` is the same for methods: a graph that calls ``x.sum()`` would call what is on the class
by then.
"""

from __future__ import annotations

import contextlib
import functools
import keyword
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.fx.graph import PythonCode
from torch.fx.graph_module import _forward_from_src
from torch.fx.node import _get_qualified_name
from torch.overrides import handle_torch_function

#: What the program may replace by assigning to a module or a class.
_REPLACEABLE = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)


class _Names(types.ModuleType):
    """A module as the code of one graph sees it: with what the graph calls. (torch.jit.script looks
    into modules only.)"""

    def __init__(self, real: Any) -> None:
        super().__init__(real.__name__)
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def bind(forward: Any, nodes: Iterable[torch.fx.Node]) -> None:
    """Have the code of a graph call the functions of its nodes."""
    names = forward.__globals__
    for node in nodes:
        target: Any = node.target
        if node.op != "call_function" or type(target) not in _REPLACEABLE:
            continue
        *path, last = _get_qualified_name(target).split(".")
        if path and path[0] == "torch" and names.get("torch") is not None:
            _place(names, path, last, target)


def _place(names: dict[str, Any], path: list[str], last: str, target: Any) -> None:
    holder = names
    for step in path:
        known = holder.get(step)
        if not isinstance(known, _Names):
            real = names["torch"] if holder is names else getattr(holder["_real"], step)
            known = holder[step] = _Names(real)
        holder = known.__dict__
    holder[last] = target


@functools.cache
def own_method(name: str) -> Callable[..., Any]:
    """torch's own method of tensors, as a function, for graphs that are captured while another one
    is in its place."""
    method = getattr(torch._C.TensorBase, name)

    def function(tensor: torch.Tensor, /, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):  # fx traces the code of graphs with stand-ins
            return handle_torch_function(function, (tensor,), tensor, *args, **kwargs)
        with torch._C.DisableTorchFunction():  # a mode would be given what is on the class
            return method(tensor, *args, **kwargs)

    function.__name__ = function.__qualname__ = f"own_method_{name}"
    return function


@contextlib.contextmanager
def spellable(nodes: Iterable[torch.fx.Node]) -> Iterator[None]:
    """While code is written: no code can say ``torch.ops.aten.random.from``."""
    called = {
        node: node.target for node in nodes
        if isinstance(node.target, torch._ops.OpOverload)
        and keyword.iskeyword(node.target._overloadname)
    }  # fmt: skip
    for node, overload in called.items():
        node.target = _as_function(overload)
    try:
        yield
    finally:
        for node, overload in called.items():
            node.target = overload


def written(graph: torch.fx.Graph) -> tuple[Any, PythonCode]:
    """A graph as a function of a module and its inputs, and the code of that."""
    with spellable(graph.nodes):
        made = graph.python_code("self")
    return _forward_from_src(made.src, made.globals, {}), made


@functools.cache
def _as_function(overload: torch._ops.OpOverload) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        return overload(*args, **kwargs)

    function.__name__ = function.__qualname__ = str(overload).replace(".", "_")
    return function


def __getattr__(name: str) -> Any:  # graphs that are pickled name these functions
    prefix, _, method = name.partition("own_method_")
    if prefix or not hasattr(torch._C.TensorBase, method):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return own_method(method)
