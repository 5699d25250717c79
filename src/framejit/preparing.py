"""Calls that are compiled before they can be made: the weights, or the arguments, have no content.

In: a compiled object and the arguments of a call, some of whose tensors, or of its parameters, are
on meta or fake. Out: the entry for that call, as it will be once real tensors are there; nothing of
the program is executed. Next room: callables.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch._C._dynamo.eval_frame import set_eval_frame
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from framejit import config
from framejit.backends.exclusive import exclusive
from framejit.compiled_frame import CompiledFrame
from framejit.exc import PrepareError
from framejit.graph.global_state import default_devices, set_default_devices
from framejit.graph.stand_ins import StandIns, device_of, has_no_content
from framejit.report import events, messages


def prepare(compiled: CompiledFrame, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Compile ``compiled`` for a call with ``args`` and ``kwargs``, as it will be once the tensors
    without content among them, and in the modules among them, are replaced.

    Raises PrepareError, and what capturing raises.
    """
    slots = slots_of(compiled, args, kwargs)
    before, devices = set_eval_frame(None), default_devices()
    try:
        with exclusive(), config.advised(), _disable_current_modes():
            set_default_devices(tuple([one for one in devices if one.type != "meta"]))
            _prepare(compiled, slots, _stand_ins(compiled, [*args, *kwargs.values()]))
    finally:
        set_default_devices(devices)
        set_eval_frame(before)


def _prepare(compiled: CompiledFrame, slots: tuple[Any, ...], stand_ins: StandIns) -> None:
    function: Any = compiled.function
    if not compiled.target.is_start_of(function):
        compiled.recode(function)
    for entry in compiled.entries:
        if compiled.tree_for(entry, slots, stand_ins).check(slots) is not None:
            return
    name, turns = compiled.target.name, compiled.compiler.turns
    if config.disable or compiled.skipped is not None:
        skipped = compiled.skipped
        why = "framejit.config.disable is on" if skipped is None else skipped.reason
        raise PrepareError(f"{name} cannot be prepared: {why}")
    if turns is None:
        _compile(compiled, slots, stand_ins)
        return
    turns.begin(wait=True)
    try:
        _compile(compiled, slots, stand_ins)
    finally:
        turns.leave(used=True)


def _compile(compiled: CompiledFrame, slots: tuple[Any, ...], stand_ins: StandIns) -> None:
    """Make the entry, if there is none that waits in a package."""
    compiler, name = compiled.compiler, compiled.target.name
    if compiler.library is not None and compiler.library.will_fit(compiled, slots, stand_ins):
        return
    with events.following(), events.recording(events.CallSkipped, events.FrameSkipped) as left:
        entry = compiler.compile_entry(compiled, slots, stand_ins=stand_ins)
    if entry is None:
        why = left[-1].reason if left else "it runs as plain Python"
        raise PrepareError(f"{name} cannot be prepared: {why}")
    broke = compiled.origins[id(entry)].broke
    if broke is not None:
        messages.warn_prepared_in_part(name, broke.filename, broke.line, broke.reason)


def slots_of(
    compiled: CompiledFrame, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Any, ...]:
    """What the dispatch makes of a call: the arguments as Python binds them, then the cells of the
    closure. Raises the TypeError of the call."""
    function: Any = compiled.function
    code = function.__code__
    bare = types.FunctionType(code, {}, code.co_name, function.__defaults__, function.__closure__)
    bare.__kwdefaults__ = function.__kwdefaults__  # without what says it had another signature
    try:
        bound = inspect.signature(bare).bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{code.co_qualname}() {error}") from None
    bound.apply_defaults()
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[:count]
    return (*[bound.arguments[name] for name in names], *(function.__closure__ or ()))


def _stand_ins(compiled: CompiledFrame, given: Sequence[Any]) -> StandIns:
    """What stands in for the tensors of a call; those that are easily found are made at once."""
    found: list[torch.Tensor] = []
    for one in pytree.tree_leaves(list(given)):
        if isinstance(one, torch.nn.Module):
            found += [*one.parameters(), *one.buffers()]
        elif isinstance(one, torch.Tensor):
            found.append(one)
    stand_ins = StandIns(device_of(found))
    name = compiled.target.name
    for tensor in found:
        if tensor.device.type == "meta" and not has_no_content(tensor):
            kind = type(tensor).__qualname__
            raise PrepareError(f"{name} cannot be prepared: a {kind} is on meta")
        try:
            stand_ins.of(tensor)
        except (RuntimeError, AssertionError, TypeError) as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise PrepareError(f"{name} cannot be prepared: {first}") from error
    return stand_ins
