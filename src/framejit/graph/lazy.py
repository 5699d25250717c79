"""A `GraphModule` that writes and compiles its Python code only when somebody needs it.

In: an `fx.Graph`. Out: a module that behaves as `fx.GraphModule` does; ``recompile()`` only marks
the code as out of date, and ``forward``, calling, ``code``, printing and pickling bring it up to
date first. A backend that compiles the graph itself never pays for code it does not run.
"""

from __future__ import annotations

import contextlib
import linecache
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.fx._lazy_graph_module as fx_lazy
from torch.fx.graph import PythonCode
from torch.fx.graph_module import GraphModule

from framejit.forks import Lock

from ..report.printouts import graph_table


class _CompileOnAccess:
    """In place of ``forward``; reading it compiles the code."""

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        of_class = instance is None
        if of_class:
            instance = owner.__dict__.get("_only_instance", lambda: None)()
        if instance is None:
            return _forward_of_class
        instance.real_recompile()
        return getattr(owner if of_class else instance, "forward")  # noqa: B009 (compiled now)


def _forward_of_class(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`forward` as a function, read from a class that is not that of one graph."""
    return self.forward(*args, **kwargs)


#: Per file of generated code: a reference to the code. The registry of `weakref.finalize` is left
#: to the program, which may look at it.
_sources: dict[str, weakref.ref[Any]] = {}


def _forget_source(filename: str) -> None:
    """Drop what fx keeps for tracebacks through code that is gone; fx itself keeps it for good."""
    _sources.pop(filename, None)
    loader = getattr(torch.fx.graph_module, "_loader", None)
    if loader is not None and loader.eval_cache.pop(filename, None) is not None:
        linecache.cache.pop(filename, None)


class LazyGraphModule(fx_lazy._LazyGraphModule):
    """``LazyGraphModule.real_recompiles`` counts how often code was generated, in all of them.

    It is one of fx's own lazy modules to those who ask: AOTAutograd's cache and fx's pickler must
    know that ``recompile()`` does not return the code.
    """

    real_recompiles = 0
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
        cls = type(self)
        if "forward" in cls.__dict__ and "_code" in self.__dict__:
            del cls.forward
        self.__dict__.pop("_code", None)

    def _real_recompile(self) -> PythonCode:
        """Generate and compile the code now."""
        LazyGraphModule.real_recompiles += 1
        made = GraphModule.recompile(self)
        code = type(self).forward.__code__  # type: ignore[attr-defined]
        name = code.co_filename
        _sources[name] = weakref.ref(code, lambda _: _forget_source(name))
        return made

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


class CapturedGraph(torch.fx.Graph):
    """An `fx.Graph` whose `print_tabular` works without the ``tabulate`` package."""

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
