"""Functions that were compiled already, met again inside captured code.

In: `native.CompiledFunction` objects (what ``framejit.compile`` returns) with their sources. Out:
calls of the functions they wrap, which become part of the current graph. A compiled function
never changes its function, so its identity is all that is guarded. Next room: interpreter.
"""

from __future__ import annotations

from typing import Any

from framejit import native
from framejit.source import Source
from framejit.values.core.base import Args, Declared, Kwargs, Value
from framejit.values.core.constants import wrap_opaque
from framejit.values.core.registry import Result, wraps_classes
from framejit.values.core.space import Space
from framejit.values.objects.functions import BoundBuiltin, MethodValue


class CompiledFunctionValue(Declared):
    """A compiled function; everything but its identity is that of ``function``."""

    obj: Any
    function: Value
    source: Source | None

    def python_type(self) -> type:
        return type(self.obj)

    def describe(self) -> str:
        return f"compiled {self.function.realize().describe()}"

    def call(self, space: Space, args: Args, kwargs: Kwargs) -> Result:
        return space.call(self.function, args, kwargs)

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        """The methods that a function has: as a class attribute it is bound to instances."""
        if name == "__call__":
            return self.call(space, args, kwargs)
        if name == "__get__" and args and not kwargs:
            bound = args[0].realize()
            return self if bound.is_none() else MethodValue(self, bound)
        return space.generic_getattr(self, name)

    def getattr(self, space: Space, name: str) -> Result:
        if name == "__wrapped__":
            return self.function
        if name in ("__call__", "__get__"):
            return BoundBuiltin(self, name)
        return space.getattr(self.function, name)


@wraps_classes(lambda cls: issubclass(cls, native.CompiledFunction))
def _wrap_compiled(space: Space, source: Source, obj: native.CompiledFunction) -> Value:
    function = obj.function
    if function is None:
        return wrap_opaque(space, source, obj)
    space.guard(source, "ID_MATCH", obj)
    label = f"function {function.__module__}.{function.__qualname__}"
    inner = space.load(space.const_source(function, label), function)
    return space.remember(obj, CompiledFunctionValue(obj, inner, source))
