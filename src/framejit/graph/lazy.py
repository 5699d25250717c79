"""A `GraphModule` that writes and compiles its Python code only when somebody needs it.

In: an `fx.Graph`. Out: a module that behaves as `fx.GraphModule` does; ``recompile()`` only marks
the code as out of date, and ``forward``, calling, ``code``, printing and pickling bring it up to
date first. A backend that compiles the graph itself never pays for code it does not run.
"""

from __future__ import annotations

import contextlib
import linecache
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.fx._lazy_graph_module as fx_lazy
from torch.fx.graph import PythonCode, _illegal_names, _Namespace
from torch.fx.graph_module import GraphModule

from framejit.forks import Lock
from framejit.graph.bound_names import bind, spellable, written

from ..report.printouts import graph_table

_expanding = Lock()


class _CompileOnAccess:
    """In place of ``forward``; reading it compiles the code."""

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        of_class = instance is None
        if of_class:
            instance = owner.__dict__.get("_only_instance", lambda: None)()
        if instance is None:
            return _forward_of_class
        _compile_for_calls(instance)
        return getattr(owner if of_class else instance, "forward")  # noqa: B009 (compiled now)


def _forward_of_class(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`forward` as a function, read from a class that is not that of one graph."""
    return self.forward(*args, **kwargs)


#: Per file of generated code: a reference to the code. The registry of `weakref.finalize` is left
#: to the program, which may look at it.
_sources: dict[str, weakref.ref[Any]] = {}


def _remember_source(code: types.CodeType) -> None:
    name = code.co_filename
    _sources[name] = weakref.ref(code, lambda _: _forget_source(name))


def _forget_source(filename: str) -> None:
    """Drop what fx keeps for tracebacks through code that is gone; fx itself keeps it for good."""
    _sources.pop(filename, None)
    loader = getattr(torch.fx.graph_module, "_loader", None)
    if loader is not None and loader.eval_cache.pop(filename, None) is not None:
        linecache.cache.pop(filename, None)


class _ExpandOnAccess:
    """The graph of a module; where a node stands for a call of several operations, these are put in
    its place before anybody sees it."""

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        own = instance.__dict__
        if "_expand" in own:
            with _expanding:
                if "_expand" in own:
                    own["_expand"]()
                    for name in ("_expand", "_calls"):
                        own.pop(name, None)
        try:
            return own["_graph"]
        except KeyError:
            raise AttributeError("_graph") from None

    def __set__(self, instance: Any, graph: torch.fx.Graph) -> None:
        instance.__dict__["_graph"] = graph


class LazyGraphModule(fx_lazy._LazyGraphModule):
    """``LazyGraphModule.real_recompiles`` counts how often code was generated, in all of them.

    It is one of fx's own lazy modules to those who ask: AOTAutograd's cache and fx's pickler must
    know that ``recompile()`` does not return the code.
    """

    real_recompiles = 0
    _graph = _ExpandOnAccess()
    #: torch.jit.script would compile the other properties, too.
    __jit_unused_properties__ = ["code", *GraphModule.__jit_unused_properties__]

    forward = _CompileOnAccess()  # type: ignore[assignment]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        made = super().__new__(cls, *args, **kwargs)
        # fx makes a class for each module; tools that look at the class want this one's code.
        setattr(type(made), "_only_instance", weakref.ref(made))  # noqa: B010 (of a new class)
        return made

    def recompile(self) -> None:  # type: ignore[override]
        """Mark the code as out of date. It is generated when it is needed."""
        cls, own = type(self), self.__dict__
        of_calls = own.pop("_called_nodes", None) is not None
        if "forward" in cls.__dict__ and ("_code" in own or of_calls):
            del cls.forward
        own.pop("_code", None)

    def _real_recompile(self) -> PythonCode:
        """Generate and compile the code now."""
        LazyGraphModule.real_recompiles += 1
        with spellable(self.__dict__["_graph"].nodes):
            made = GraphModule.recompile(self)
        self.__dict__.pop("_called_nodes", None)
        forward: Any = type(self).forward
        bind(forward, self.__dict__["_graph"].nodes)
        _remember_source(forward.__code__)
        return made

    def __deepcopy__(self, memo: Any) -> Any:
        self.graph  # noqa: B018 (what is copied is its content)
        return super().__deepcopy__(memo)

    def _needs_recompile(self) -> bool:  # type: ignore[override]
        return "_code" not in self.__dict__ or "forward" not in type(self).__dict__

    def to_folder(self, *args: Any, **kwargs: Any) -> Any:
        self.real_recompile()
        return super().to_folder(*args, **kwargs)


_lock = Lock()
_open_blocks = 0
_new_module = GraphModule.__new__


def _new_lazy_module(cls: type[GraphModule], *args: Any, **kwargs: Any) -> Any:
    lazy = cls in (GraphModule, fx_lazy._LazyGraphModule)
    return _new_module(LazyGraphModule if lazy else cls, *args, **kwargs)


@contextlib.contextmanager
def lazy_graph_modules() -> Iterator[None]:
    """Opt in: in this block, every ``fx.GraphModule`` that is made (by tracing, transforming,
    partitioning or directly) is lazy, so that passes which recompile after each change cost
    nothing. What other threads make meanwhile is lazy, too, and works the same."""
    global _open_blocks
    with _lock:
        _open_blocks += 1
        GraphModule.__new__ = _new_lazy_module  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        with _lock:
            _open_blocks -= 1
            if not _open_blocks:
                GraphModule.__new__ = _new_module  # type: ignore[method-assign]


def expand_with(module: LazyGraphModule, expand: Callable[[], None], calls: dict[Any, Any]) -> None:
    """Nodes of the graph stand for calls of several operations (`Composite`), in whose place
    ``expand`` puts these as soon as somebody asks for the graph. ``calls``: what each stands for,
    for as long as it does."""
    module.__dict__["_expand"], module.__dict__["_calls"] = expand, calls


def outer_graph(module: GraphModule) -> torch.fx.Graph:
    """The graph as it is: calls of several operations may be one node."""
    graph: torch.fx.Graph = module.__dict__["_graph"]
    return graph


def _calls_in(module: GraphModule) -> dict[Any, Any]:
    """The nodes of `outer_graph` that are calls of several operations."""
    calls: dict[Any, Any] = module.__dict__.get("_calls") or {}
    return calls


def targets_in(module: GraphModule) -> set[Any]:
    """What a graph calls."""
    calls = _calls_in(module)
    targets = {node.target for node in outer_graph(module).nodes if node not in calls}
    return targets.union(*[template.targets for template in _templates(module)])


def operation_count(module: GraphModule) -> int:
    """How many operations a graph has."""
    outer = sum(node.op.startswith("call") for node in outer_graph(module).nodes)
    return outer + sum(template.count - template.width for template in _templates(module))


def _templates(module: GraphModule) -> list[Any]:
    return [call.template for call in _calls_in(module).values()]


def _compile_for_calls(module: LazyGraphModule) -> None:
    """Compile what runs when the module is called, if that is out of date; calls of several
    operations are calls there, too."""
    with _expanding:
        calls = _calls_in(module)
        if not calls or "_code" in module.__dict__:
            module.real_recompile()
            return
        LazyGraphModule.real_recompiles += 1
        graph = outer_graph(module)
        for node, call in calls.items():
            node.target = call.template.function
        function, made = written(graph)
        bind(function, graph.nodes)
        setattr(type(module), "forward", function)  # noqa: B010 (of a class of its own)
        module._lineno_map, module._prologue_start = made._lineno_map, made._prologue_start
        module.__dict__["_called_nodes"] = list(graph.nodes)
        _remember_source(function.__code__)


def called_nodes(module: GraphModule) -> list[torch.fx.Node]:
    """The nodes of the graph as its code has them."""
    nodes = module.__dict__.get("_called_nodes")
    return list(module.graph.nodes) if nodes is None else nodes


def is_as_recorded(compiled: Any, module: Any) -> bool:
    """Is what a backend returned for a graph the graph itself?"""
    own = getattr(compiled, "__self__", None) is module
    return compiled is module or (own and compiled.__name__ == "forward")


class CapturedGraph(torch.fx.Graph):
    """An `fx.Graph` whose code is written faster, and whose `print_tabular` works without the
    ``tabulate`` package."""

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """The same code, where nodes have names that they can have there. fx looks for new ones,
        which takes as long as the rest."""
        names = {node.name for node in self.nodes}
        if len(names) < len(self.nodes) or not names.isdisjoint(_illegal_names):
            return super().python_code(root_module, **options)
        namespace = _Namespace()
        namespace._used_names.update(names)
        return self._python_code(root_module, namespace, **options)

    def print_tabular(self) -> None:
        try:
            import tabulate  # type: ignore[import-untyped]  # noqa: F401  optional dependency
        except ImportError:
            print(graph_table(self))
        else:
            super().print_tabular()

    def __deepcopy__(self, memo: Any = None) -> CapturedGraph:
        copied = super().__deepcopy__(memo)
        copied.__class__ = type(self)
        return copied  # type: ignore[return-value]
