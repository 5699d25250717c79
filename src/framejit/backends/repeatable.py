"""Backward graphs: compiled by one thread at a time, and run again although they reuse memory.

In: the callable that AOTAutograd or Inductor returned for a graph in training. Inductor's backward
graph writes into saved tensors that nobody else can see ("donated buffers"), which spares
allocations; PyTorch then refuses ``backward(retain_graph=True)``. Out: the same callable; where
autograd keeps what was saved, the backward graph gets copies; gradients that come in are made
dense; to differentiate twice is an error that names the user's line. Next: `inductor_artifact`,
which saves it all.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch

from .exclusive import exclusive
from .inductor_runtime import Boxed, copied, dense, differentiated_once


class UnknownObjects(Exception):
    """What Inductor returned is not made as it is known here."""


class Found(NamedTuple):
    """The objects of AOTAutograd and Inductor behind a compiled callable."""

    graphs: list[Any]  # CompiledFxGraph
    metadata: list[Any]  # ViewAndMutationMeta
    functions: list[type]  # autograd.Function
    backwards: list[Any]  # _AutogradBackwardCompiler: makes the backward graph when it runs first


class RepeatableBackward:
    """In place of ``_AutogradBackwardCompiler.get_or_compile``."""

    def __init__(self, compiler: Any) -> None:
        self.compiler = compiler
        self.compile = compiler.get_or_compile
        self.donated = donated(compiler)
        compiler.get_or_compile = self
        if compiler.compiled_bw is not None:
            self._let_repeat()

    def __call__(self, *, saved_tensors_use_once: bool) -> Boxed:
        compiled: Boxed | None = self.compiler.compiled_bw
        if compiled is None:
            with exclusive():
                compiled = self.compile(saved_tensors_use_once=True)
            self._let_repeat()
            assert compiled is not None
        if saved_tensors_use_once or not self.donated:
            return compiled
        repeat = functools.partial(_run_copied, compiled, self.donated)
        repeat._boxed_call = True  # type: ignore[attr-defined]  # takes its arguments in a list
        return repeat

    def _let_repeat(self) -> None:
        """Inductor has read what it may write to; AOTAutograd refuses to repeat if it is told."""
        self.compiler.fw_metadata.bw_donated_idxs = []


def donated(compiler: Any) -> list[int]:
    """The positions among a backward graph's arguments that it may write to."""
    made = compiler.get_or_compile
    if isinstance(made, RepeatableBackward):
        return made.donated
    return list(compiler.fw_metadata.bw_donated_idxs or ())


def _run_copied(compiled: Boxed, donated: list[int], args: list[Any]) -> Any:
    return compiled(copied(args, donated))


def prepare_backward(compiled: Callable[..., Any], place: str) -> None:
    """From now on ``backward(retain_graph=True)`` works, as in eager mode; to differentiate twice
    is an error that names the ``place`` of the graph; and a backward graph that is compiled when it
    first runs waits until no other thread compiles."""
    try:
        found = search(compiled)
    except UnknownObjects:
        return
    for compiler in found.backwards:
        if not isinstance(compiler.get_or_compile, RepeatableBackward):
            RepeatableBackward(compiler)

    def double_backward(ctx: Any, run: Callable[[], Any], args: list[Any]) -> Any:
        return differentiated_once(run, args, place)

    for function in found.functions:
        prologue = function._bw_prologue_fn  # type: ignore[attr-defined]
        if getattr(prologue, "func", None) is _with_dense_gradients:
            continue  # prepared already
        function._double_backward = staticmethod(double_backward)  # type: ignore[attr-defined]
        function._bw_prologue_fn = staticmethod(  # type: ignore[attr-defined]
            functools.partial(_with_dense_gradients, prologue)
        )


def _with_dense_gradients(prologue: Callable[..., Any], *args: Any) -> Any:
    """Operations outside of the graph may give sparse gradients for its results, or ones that have
    a history and are laid out otherwise: AOTAutograd copies these in place, as leaves."""
    gradients = args[-1]
    gradients[:] = [dense(gradient) for gradient in gradients]
    with torch.no_grad():
        return prologue(*args)


# -- finding ---------------------------------------------------------------------------------------

_LIMIT = 5000


def _is_made(function: type) -> bool:
    """Has AOTAutograd made it? The program's own are found where a graph runs as it is."""
    return function.__module__.startswith("torch._functorch.")


_MEMBERS = ("compiled_fw", "compiled_bw", "metadata", "_backward_impl")


def search(compiled: Any) -> Found:
    """Walk from wrapper to wrapper through closures, bound objects and generated functions."""
    found = Found([], [], [], [])
    seen: set[int] = set()
    todo = [compiled]
    while todo:
        obj = todo.pop()
        if id(obj) in seen or isinstance(obj, (torch.Tensor, types.ModuleType, str, int)):
            continue
        seen.add(id(obj))
        if len(seen) > _LIMIT:
            raise UnknownObjects
        kind = type(obj).__name__
        if kind == "CompiledFxGraph":
            found.graphs.append(obj)
        elif kind == "ViewAndMutationMeta":
            found.metadata.append(obj)
        elif kind == "_AutogradBackwardCompiler":
            found.backwards.append(obj)
            todo.append(obj.compiled_bw)
        elif isinstance(obj, type):
            if issubclass(obj, torch.autograd.Function) and _is_made(obj):
                found.functions.append(obj)
                members = [vars(obj).get(name) for name in _MEMBERS]
                todo += [getattr(member, "__func__", member) for member in members]
        else:
            todo.extend(_referred(obj))
    return found


def _referred(obj: Any) -> Iterator[Any]:
    if isinstance(obj, functools.partial):
        yield from (obj.func, *obj.args, *obj.keywords.values())
    elif isinstance(obj, types.FunctionType):
        for cell in obj.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:
                continue
        yield vars(obj).get("__wrapped__")
        if obj.__globals__.get("__name__") not in sys.modules:  # generated: a namespace of its own
            yield from obj.__globals__.values()
    elif isinstance(obj, (list, tuple)) and len(obj) < 50:
        yield from obj
    elif isinstance(obj, (types.MethodType, types.BuiltinMethodType)):
        yield obj.__self__
        yield getattr(obj, "__func__", None)
    elif type(obj).__module__.startswith(("torch._functorch", "torch._inductor")):
        yield from vars(obj).values() if hasattr(obj, "__dict__") else ()
