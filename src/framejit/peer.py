"""Living beside ``torch.compile`` in one process: its frame hook and ours may both be active.

In: code that framejit made, and functions of ``torch.compile``'s machinery that our hook meets.
Out: marks that keep its hook out of our code, and compiled objects that keep ours out of its work.
Uses the C part of torch only; nothing of the peer is imported. Next room: compiler.
"""

from __future__ import annotations

import inspect
import types
from typing import Any

from torch._C._dynamo import eval_frame

from framejit.native import CompiledFunction, Entry, GuardTree

_SKIP_ALL = eval_frame._FrameExecStrategy(
    eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP
)
_SKIP_FRAME = eval_frame._FrameExecStrategy(
    eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT
)
#: Besides the peer's, what prints our own reports.
_MACHINERY = ("torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx", "framejit.report")
#: The part of it whose functions compile, or are compiled; the rest is code as any other, once a
#: user asks for it: a function that ``torch.func.grad`` made is in ``torch._functorch``, what calls
#: a graph module of the user's is in ``torch.fx``.
_COMPILES = (
    "torch._dynamo", "torch._inductor", "torch._functorch.aot_autograd",
    "torch._functorch._aot_autograd", "framejit.report",
)  # fmt: skip
#: What runs the top-level code of modules: an import is no part of the program to compile.
_IMPORTS = "importlib._bootstrap"
_SUSPENDS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def keep_out(code: types.CodeType) -> None:
    """The peer's hook must look neither at frames of ``code`` nor at what they call.

    For generated functions, break functions and continuations: the peer cannot read spliced code.
    """
    eval_frame.set_code_exec_strategy(code, _SKIP_ALL)


def is_machinery(function: types.FunctionType, asked_for: bool = False) -> bool:
    """Does the function belong to the peer's compiler, or print reports, or import modules, so that
    nothing it calls concerns us? ``asked_for``: the user has it compiled by name."""
    name = str(function.__globals__.get("__name__") or "")
    if function.__code__.co_flags & _SUSPENDS:
        return False
    return name == _IMPORTS or any(
        name == package or name.startswith(package + ".")
        for package in (_COMPILES if asked_for else _MACHINERY)
    )


def left_alone(function: types.FunctionType) -> CompiledFunction:
    """A compiled object for the frame hook that runs ``function`` with the hook switched off.

    An entry without guards always fits, and entries run without our hook.
    """
    code = function.__code__
    namespace = function.__globals__
    positional, keyword_only = code.co_argcount, code.co_kwonlyargcount
    names = code.co_varnames[positional : positional + keyword_only]
    cells = len(code.co_freevars)

    def call(*slots: Any) -> Any:
        arguments = slots[:positional]
        keywords = dict(zip(names, slots[positional : positional + keyword_only], strict=True))
        rest = list(slots[positional + keyword_only : len(slots) - cells])
        if code.co_flags & inspect.CO_VARARGS:
            arguments += rest.pop(0)
        if code.co_flags & inspect.CO_VARKEYWORDS:
            keywords.update(rest.pop(0))
        closure = slots[len(slots) - cells :] if cells else None
        same = types.FunctionType(code, namespace, function.__name__, None, closure)
        return same(*arguments, **keywords)

    eval_frame.set_code_exec_strategy(call.__code__, _SKIP_FRAME)
    compiled = CompiledFunction(function, None)
    compiled.add_entry(Entry(GuardTree([], None), call))
    return compiled
