"""Code that looks at the variables of frames: which frames it may find.

In: a frame. Out: does its code name something of the program's that reads ``f_locals``, at whatever
depth? Then it keeps its variables after a graph break, and errors that are caught in it are raised
by plain Python, whose tracebacks have frames with variables. Next: loop, codegen.function.
"""

from __future__ import annotations

import types
import weakref
from typing import Any

from framejit.interpreter.frame import Frame
from framejit.values.core.base import is_user_class
from framejit.values.core.inline_policy import is_library

#: More code than this is not looked through.
_LOOKED_THROUGH = 200
_looked_at: weakref.WeakKeyDictionary[types.CodeType, bool] = weakref.WeakKeyDictionary()


def may_be_looked_at(frame: Frame) -> bool:
    """Does its code name something of the program's that looks at the variables of frames?"""
    code = frame.info.code
    if code not in _looked_at:
        _looked_at[code] = _names_one_that_looks(code, frame.globals)
    return _looked_at[code]


def _names_one_that_looks(code: types.CodeType, namespace: dict[str, Any]) -> bool:
    todo = {code: namespace}
    met = set(todo)
    while todo and len(met) < _LOOKED_THROUGH:
        code, namespace = todo.popitem()
        if "f_locals" in code.co_names or _shows_variables(code):
            return True
        found = {one: namespace for one in code.co_consts if isinstance(one, types.CodeType)}
        for named in code.co_names:
            for function in _functions_of(namespace.get(named)):
                found[function.__code__] = function.__globals__
        todo |= {one: names for one, names in found.items() if one not in met}
        met |= found.keys()
    return False


def _shows_variables(code: types.CodeType) -> bool:
    """Has it a call of the traceback module's that shows the variables of frames?"""
    return any(type(one) is tuple and "capture_locals" in one for one in code.co_consts)


def _functions_of(obj: Any) -> list[types.FunctionType]:
    """The functions of the program behind a name: itself, or the methods of its class."""
    cls = obj if issubclass(type(obj), type) else type(obj)  # its `__class__` may be the program's
    members = [obj]
    if cls is not types.FunctionType and is_user_class(cls):
        members = [*type.__getattribute__(cls, "__dict__").values()]
    return [
        one for one in members
        if type(one) is types.FunctionType and not is_library(str(one.__module__))
    ]  # fmt: skip
