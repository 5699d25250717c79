"""A whole program as one graph for others to run: `framejit.export`.

In: a function or module and the arguments of one call. Out: a `torch.export.ExportedProgram`. The
call is captured, not executed: what the capture found out says which tensors the graph takes, what
the result is made of, and whether the program does anything else than to compute. Then torch.export
traces the captured graph, in which nothing of Python is left. Next room: api.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from framejit import config
from framejit.callables import compile_callable, compiled_function_of, original_module
from framejit.exc import ExportError
from framejit.graph.expressions import evaluate
from framejit.graph.metadata import Composition
from framejit.graph.symbol_nodes import symbolic_inputs
from framejit.misses import miss
from framejit.report import messages
from framejit.settings import Settings


class _Captured(Exception):
    """Ends the call that was to be captured, before anything of it is executed."""


class _Recorded(NamedTuple):
    """A call of the graph: what it was given, and what it returned."""

    inputs: list[Any]
    outputs: list[Any]


def export(
    f: Any,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    package: str | os.PathLike[str] | None = None,
) -> torch.export.ExportedProgram:
    """Export a function or an ``nn.Module`` as one graph, from one call that is captured whole.

    The program is captured as `compile` does it with ``fullgraph=True``, without being executed: no
    tensor is written to and nothing is printed. Parameters and buffers keep their names.

    Args:
        f: A function, method or module.
        args: The positional arguments of the call. Arguments that are no tensors become constants.
        kwargs: Its keyword arguments.
        dynamic_shapes: Which sizes vary, as `torch.export.export` takes it.
        package: A file (``.pt2``) for what AOTInductor compiles the program to, which C++ and
            `torch._inductor.aoti_load_package` run.

    Returns:
        What `torch.export.save`, `torch.export.load` and every user of exported programs take.

    Raises:
        exc.Unsupported: It cannot be captured in one graph; names the line.
        exc.ExportError: It does something that a graph cannot: it changes objects or globals (names
            the line), or its result is no tensor of the graph.
        TypeError: For bad arguments, which are named.
    """
    kwargs = dict(kwargs or {})
    if not isinstance(args, tuple):
        raise TypeError(f"args must be a tuple, not {type(args).__name__} [FJ0210]")
    if package is not None:
        messages.checked_path(package, "package")
    if isinstance(f, torch.nn.Module):
        f = original_module(f)
    # One of several ranks may be the one that exports.
    with config.patch(ranks_agree=False), _varying(f, args, kwargs, dynamic_shapes):
        program = _captured(f, args, kwargs)
    exported = torch.export.export(
        program, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False
    )
    if package is not None:
        # Slow optional dependency.
        from torch._inductor import aoti_compile_and_package

        aoti_compile_and_package(exported, package_path=os.fspath(package))
    return exported


# -- capture ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _varying(
    f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic_shapes: Any
) -> Iterator[None]:
    """A block in which the sizes that vary are marked."""
    if dynamic_shapes is None:
        yield
        return
    # What torch.export itself makes of the argument.
    from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path

    changed: list[tuple[torch.Tensor, dict[str, Any]]] = []

    def mark(path: Any, value: Any, dims: Any = None) -> None:
        if not isinstance(value, torch.Tensor) or not dims:
            return
        chosen = dims.items() if isinstance(dims, Mapping) else enumerate(dims)
        indices = [i for i, dim in chosen if dim is not None and not isinstance(dim, int)]
        indices = [i for i in indices if dict(chosen).get(i) is not torch.export.Dim.STATIC]
        changed.append((value, dict(value.__dict__)))
        value.__dict__["_dynamo_weak_dynamic_indices"] = set(indices)

    if hasattr(dynamic_shapes, "dynamic_shapes"):  # ShapesCollection, AdditionalInputs
        dynamic_shapes = dynamic_shapes.dynamic_shapes(f, args, kwargs)
    function = f.forward if isinstance(f, torch.nn.Module) else f
    _tree_map_with_path(mark, _combine_args(function, args, kwargs), dynamic_shapes)
    try:
        yield
    finally:
        for value, before in changed:
            value.__dict__.clear()
            value.__dict__.update(before)


def _captured(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.nn.Module:
    """A module that calls the captured graph and has nothing else to do."""
    graphs: list[torch.fx.GraphModule] = []

    def keep(gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        graphs.append(gm)
        return gm.forward

    compiled = compile_callable(f, Settings(backend=keep, fullgraph=True))
    frame = compiled_function_of(compiled)
    if frame is None:
        raise ExportError("nothing can be captured on this release of Python")
    from framejit.codegen.function import GRAPH  # it is not there on other releases

    def stop(frame: Any, slots: tuple[Any, ...]) -> Any:
        made = miss(frame, slots)
        return made if made is None or isinstance(made, BaseException) else _Captured()

    frame.miss = stop
    with contextlib.suppress(_Captured):
        compiled(*args, **kwargs)
    name = frame.target.name
    if not frame.entries:
        raise ExportError(f"{name} cannot be captured: {_why(frame)}")
    (entry,) = frame.entries
    changes = frame.origins[id(entry)].changes
    if changes:
        raise ExportError(_described(name, changes))
    if not graphs:
        raise ExportError(f"{name} computes nothing with tensors")
    recorded: list[_Recorded] = []

    def record(*inputs: Any) -> Any:
        recorded.append(_Recorded(list(inputs), _outputs(graphs[0], inputs)))
        return recorded[0].outputs

    namespace = entry.function.__globals__
    namespace[GRAPH] = record
    result = compiled(*args, **kwargs)
    plan = frame.plans[id(entry)]
    checks = [] if plan.shapes is None else [check.tree for check in plan.shapes.checks]
    return _Program(f, (args, kwargs), graphs[0], recorded[0], result, checks)


def _why(frame: Any) -> str:
    return "it runs as plain Python" if frame.skipped is None else frame.skipped.reason


def _described(name: str, changes: Sequence[Any]) -> str:
    """The error for a program that does more than to compute."""
    lines = [f"{name} does more than to compute, which an exported program cannot:"]
    for change in changes[:5]:
        place = "" if change.line is None else f" ({change.line[0]}:{change.line[1]})"
        lines.append(f"  it changes {change.what}{place}")
    return "\n".join(lines)


def _outputs(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> list[Any]:
    """Tensors for what the graph returns: what matters is where the program puts them."""
    (returned,) = gm.graph.output_node().args
    assert isinstance(returned, (tuple, list))
    given = dict(zip(gm.graph.find_nodes(op="placeholder"), inputs, strict=True))
    return [given[one] if one in given else torch.empty(0) for one in returned]


# -- the program -----------------------------------------------------------------------------------


class _Program(torch.nn.Module):
    """The captured graph with the arguments, the result and the parameters of the program."""

    _graph: Any

    def __init__(
        self, f: Any, arguments: Any, graph: torch.fx.GraphModule, recorded: _Recorded,
        result: Any, checks: Sequence[Any],
    ) -> None:  # fmt: skip
        super().__init__()
        self.__dict__["_graph"] = graph  # no submodule: its constants are constants
        self._checks = checks
        leaves, self._arguments_spec = pytree.tree_flatten(arguments)
        places: dict[int, Any] = {}
        if isinstance(f, torch.nn.Module):
            places |= self._take_members(f)
        places |= {id(leaf): i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
        known = symbolic_inputs(graph)
        self._symbols = _symbols_in(graph, known)
        self._inputs = [
            self._place(value, places, number)
            for number, value in enumerate(recorded.inputs[len(self._symbols) :])
        ]
        places |= {id(one): ("output", i) for i, one in enumerate(recorded.outputs)}
        found, self._result_spec = pytree.tree_flatten(result)
        varies = bool(self._symbols)
        self._results = [_result(*one, places, varies) for one in _with_places(found, result)]
        function = f.forward if isinstance(f, torch.nn.Module) else f
        with contextlib.suppress(TypeError, ValueError):
            self.__dict__["__signature__"] = inspect.signature(function)
            self.__dict__["forward"] = _with_signature(self._run, inspect.signature(function))

    def _take_members(self, module: torch.nn.Module) -> dict[int, str]:
        """Parameters and buffers under the names that they have in ``module``."""
        places: dict[int, str] = {}
        for name, parameter in module.named_parameters(remove_duplicate=False):
            owner, last = self._owner(name)
            owner.register_parameter(last, parameter)
            places.setdefault(id(parameter), name)
        for name, buffer in module.named_buffers(remove_duplicate=False):
            owner, last = self._owner(name)
            path, _, _ = name.rpartition(".")
            persistent = last not in module.get_submodule(path)._non_persistent_buffers_set
            owner.register_buffer(last, buffer, persistent=persistent)
            places.setdefault(id(buffer), name)
        return places

    def _owner(self, name: str) -> tuple[torch.nn.Module, str]:
        """The module for a member, made with those on the way to it; and the member's name."""
        *path, last = name.split(".")
        owner: torch.nn.Module = self
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, torch.nn.Module())
            following = owner._modules[part]
            assert following is not None
            owner = following
        return owner, last

    def _place(self, value: Any, places: Mapping[int, Any], number: int) -> Any:
        """Where a tensor of the graph comes from: a position among the arguments, or a name. What
        has neither is a constant of the program's, and gets a name."""
        place = places.get(id(value))
        if place is None:
            place = f"constant_{number}"
            if isinstance(value, torch.nn.Parameter):
                self.register_parameter(place, value)
            else:
                self.register_buffer(place, value, persistent=True)
        return place

    def _member(self, name: str) -> Any:
        path, _, last = name.rpartition(".")
        return getattr(self.get_submodule(path), last)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        leaves, _ = pytree.tree_flatten((args, kwargs))
        tensors = [leaves[p] if isinstance(p, int) else self._member(p) for p in self._inputs]
        numbers = {name: tensors[i].shape[dim] for name, (i, dim) in self._symbols.items()}
        for check in self._checks:
            holds = evaluate(check, numbers)
            if not isinstance(holds, bool):
                torch._check(holds)
        outputs = self._graph(*numbers.values(), *tensors)
        results = []
        for kind, value in self._results:
            if kind == "output":
                results.append(outputs[value])
            elif kind == "input":
                results.append(leaves[value] if isinstance(value, int) else self._member(value))
            else:
                results.append(value)
        return pytree.tree_unflatten(results, self._result_spec)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self._run(*args, **kwargs)


def _with_signature(function: Callable[..., Any], signature: inspect.Signature) -> Any:
    def forward(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    forward.__signature__ = signature  # type: ignore[attr-defined]
    return forward


def _symbols_in(graph: torch.fx.GraphModule, known: Any) -> dict[str, tuple[int, int]]:
    """The numbers that the graph takes: of which input they are which size. Raises ExportError."""
    if known is None:
        return {}
    placeholders = [str(node.target) for node in graph.graph.find_nodes(op="placeholder")]
    taken = placeholders[: len(placeholders) - len(known.metas)]
    sizes: dict[str, tuple[int, int]] = {}
    for number, meta in enumerate(known.metas):
        if isinstance(meta, Composition):
            raise ExportError("an argument is a tensor made of others, whose sizes vary")
        for dim, size in enumerate(meta.shape):
            if isinstance(size, torch.SymInt):
                tree = known.symbols.tree(size)
                if tree[0] == "load":
                    sizes.setdefault(tree[1], (number, dim))
    missing = [name for name in taken if name not in sizes]
    if missing:
        raise ExportError(f"{missing[0]} varies and is no size of an argument")
    return {name: sizes[name] for name in taken}


def _with_places(found: Sequence[Any], result: Any) -> Iterator[tuple[Any, Callable[[], str]]]:
    """The parts of a result, each with what says where in it that is."""

    def place(number: int) -> str:
        try:
            path, _ = pytree.tree_flatten_with_path(result)[0][number]
        except ValueError:  # a class that is registered without names of its parts
            return "a part of the result"
        return f"result{pytree.keystr(path)}" if path else "the result"

    for number, one in enumerate(found):
        yield one, functools.partial(place, number)


def _result(
    value: Any, name: Callable[[], str], places: Mapping[int, Any], varies: bool
) -> tuple[str, Any]:
    """What a part of the result is: an output of the graph, an argument, a constant. ``name`` says
    where it is."""
    place = places.get(id(value))
    if isinstance(place, tuple):
        return place
    if place is not None:
        return "input", place
    if isinstance(value, torch.Tensor):
        raise ExportError(f"{name()} is a tensor that is made outside of the graph")
    if varies and isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ExportError(f"{name()} is {value}, which may depend on sizes that vary")
    if not _is_known(value):
        cls = type(value)
        raise ExportError(
            f"{name()} is of class {cls.__module__}.{cls.__qualname__}, which an exported program "
            "cannot return: return its tensors, or, if it consists of parts, register it with "
            "torch.utils._pytree.register_pytree_node (a dataclass with "
            "torch.export.register_dataclass)"
        )
    return "constant", value


def _is_known(value: Any) -> bool:
    """Is it what torch.export takes as a result?"""
    from torch._functorch._aot_autograd.utils import KNOWN_TYPES  # slow, and asked for at the end
    from torch._library.opaque_object import is_opaque_value

    return isinstance(value, tuple(KNOWN_TYPES)) or is_opaque_value(value)
