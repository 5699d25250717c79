"""A `GraphModule` that writes and compiles its Python code only when somebody needs it.

In: an `fx.Graph`. Out: a module that behaves as `fx.GraphModule` does; ``recompile()`` only marks
the code as out of date, and ``forward``, calling, ``code``, printing and pickling bring it up to
date first. A backend that compiles the graph itself never pays for code it does not run.
"""

from __future__ import annotations

import linecache
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.graph import PythonCode
from torch.fx.graph_module import GraphModule


class _CompileOnAccess:
    """Stands where ``forward`` will be; reading it compiles the code."""

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        if instance is None:
            return _forward_of_class
        instance.real_recompile()
        return instance.forward


def _forward_of_class(self: Any, *args: Any, **kwargs: Any) -> Any:
    """`type(gm).forward`, read from the class while the code is out of date."""
    return self.forward(*args, **kwargs)


def _forget_source(filename: str) -> None:
    """Drop what fx keeps for tracebacks through code that is gone; fx itself keeps it for good."""
    loader = getattr(torch.fx.graph_module, "_loader", None)
    if loader is not None and loader.eval_cache.pop(filename, None) is not None:
        linecache.cache.pop(filename, None)


class LazyGraphModule(GraphModule):
    """``LazyGraphModule.real_recompiles`` counts how often code was generated, in all of them."""

    real_recompiles = 0

    forward = _CompileOnAccess()  # type: ignore[assignment]

    def recompile(self) -> PythonCode:  # type: ignore[return]
        """Mark the code as out of date. It is generated when it is needed; `real_recompile`
        does that at once and returns it."""
        cls = type(self)
        if "forward" in cls.__dict__ and "_code" in self.__dict__:
            del cls.forward
        self.__dict__.pop("_code", None)

    def real_recompile(self) -> PythonCode:
        """Generate and compile the code now."""
        LazyGraphModule.real_recompiles += 1
        made = super().recompile()
        code = type(self).forward.__code__  # type: ignore[attr-defined]
        weakref.finalize(code, _forget_source, code.co_filename).atexit = False
        return made

    def _up_to_date(self) -> None:
        if "_code" not in self.__dict__:
            self.real_recompile()

    @property
    def code(self) -> str:
        self._up_to_date()
        return self._code

    def __str__(self) -> str:
        self._up_to_date()
        return super().__str__()

    def print_readable(self, *args: Any, **kwargs: Any) -> str:
        self._up_to_date()
        return super().print_readable(*args, **kwargs)

    def to_folder(self, *args: Any, **kwargs: Any) -> Any:
        self._up_to_date()
        return super().to_folder(*args, **kwargs)

    def __reduce__(self) -> Any:
        return self._with_eager_recompile(super().__reduce__)

    def __reduce_package__(self, exporter: Any) -> Any:
        return self._with_eager_recompile(lambda: GraphModule.__reduce_package__(self, exporter))

    def __reduce_deploy__(self, importer: Any) -> Any:
        reduce = getattr(super(), "__reduce_deploy__")  # noqa: B009 (gone in some releases)
        return self._with_eager_recompile(lambda: reduce(importer))

    def _with_eager_recompile(self, reduce: Callable[[], Any]) -> Any:
        # fx takes the code to pickle from what recompile() returns.
        python_code = self.real_recompile()
        self.__dict__["recompile"] = lambda: python_code
        try:
            function, (body, *rest), *more = reduce()
        finally:
            del self.__dict__["recompile"]
        body.pop("recompile", None)
        return (function, (body, *rest), *more)


class CapturedGraph(torch.fx.Graph):
    """An `fx.Graph` whose `print_tabular` works without the ``tabulate`` package."""

    def print_tabular(self) -> None:
        try:
            import tabulate  # type: ignore[import-untyped]  # noqa: F401  optional dependency
        except ImportError:
            print(self.tabular())
        else:
            super().print_tabular()

    def tabular(self) -> str:
        """The nodes as a text table."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [
            [str(cell) for cell in (n.op, n.name, n.target, n.args, n.kwargs)] for n in self.nodes
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(5)]
        rows.insert(1, ["-" * width for width in widths])
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        return "\n".join(lines)

    def __deepcopy__(self, memo: Any = None) -> CapturedGraph:
        copied = super().__deepcopy__(memo)
        copied.__class__ = type(self)
        return copied  # type: ignore[return-value]
