"""Replays the log of effects: existing objects get the state that the captured program gave them.

In: `Effects` and an emitter. Out: statements, one per changed object, in the order of the first
changes. Next: codegen.function.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

import torch

from framejit.codegen.emit import Emitter, call
from framejit.codegen.emit_containers import write_container
from framejit.codegen.emit_generators import kept_in_traceback
from framejit.codegen.emit_objects import (
    keep_in_traceback,
    set_attributes,
    write_attributes,
    write_class,
)
from framejit.exc import GraphBreak
from framejit.values.containers.deques import DequeValue
from framejit.values.containers.mappings import DictValue, InstanceDictValue
from framejit.values.containers.sequences import ListValue
from framejit.values.containers.sets import SetValue
from framejit.values.containers.started_iterators import StartedIterator
from framejit.values.core.base import Unmaterialisable
from framejit.values.core.constants import ConstantValue
from framejit.values.objects.cells import CellValue
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.exceptions import ExceptionValue
from framejit.values.objects.functions import FunctionValue
from framejit.values.objects.instances import ObjectValue
from framejit.values.stdlib.process import ContextVarValue
from framejit.values.stdlib.varying_calls import CacheHit, VaryingCall
from framejit.values.stdlib.warned import IssuedWarning
from framejit.values.torch.leaves import final_flag, final_gradient
from framejit.values.torch.subclasses import SubclassValue
from framejit.values.torch.tensors import TensorValue
from framejit.values.torch.torch_functions import STATE
from framejit.values.torch.wrappers import WrapperValue


def register(out: Emitter) -> None:
    """Existing objects are to be changed before anything depends on their content."""
    for value in out.space.effects.changed:
        writer = _WRITERS.get(type(value))
        if writer is None:
            raise GraphBreak("FJ0152", f"changing a {value.describe()}")
        if isinstance(value, StartedIterator):  # while what it goes over is as it was
            writer(out, value)
            continue
        if isinstance(value, ObjectValue):
            content = value.container
            # A container that noted its change itself is written in its own turn.
            if getattr(content, "mutated", False) and content not in out.space.effects.changed:
                out.later(content, functools.partial(_write_content, out, value))
        out.later(value, functools.partial(writer, out, value))


def replay(out: Emitter) -> None:
    """Emit everything that the capture changed outside itself."""
    out.values(out.space.torch_function.modes)
    out.flush()
    for (_, name), change in out.space.effects.globals.items():
        content = out.value(change.value) if change.value is not None else out.helper("DELETED")
        namespace = out.constant(change.namespace, "globals")
        out.statement(call(out.helper("write_globals"), namespace, ast.Constant(name), content))
    out.flush()


def replay_state(out: Emitter) -> None:
    """Emit the changes of torch's global state that are still in force at the end."""
    effects = out.space.effects
    for (setter, selector), before in effects.state.items():
        getter = STATE[setter][0]
        now = getter(*selector)
        if now != before:
            args = [out.constant(a) for a in (*selector, now)]
            out.statement(call(out.constant(setter), *args))
    over = out.space.torch_function
    if over.blocks:
        raise Unmaterialisable(over.blocks[0], "a block without __torch_function__ is left open")
    for mode in over.modes:
        out.statement(call(out.constant(torch._C._push_on_torch_function_stack), out.value(mode)))
    change = effects.nesting
    function = torch.autocast_increment_nesting if change > 0 else torch.autocast_decrement_nesting
    for _ in range(abs(change)):
        out.statement(call(out.constant(function)))
    if out.space.builder.last_clearings():
        out.statement(call(out.constant(torch.clear_autocast_cache)))


def _write_container(out: Emitter, value: Any) -> None:
    if isinstance(value, SetValue) and value.restored:
        return
    write_container(out, out.value(value), value, new=False)


def _write_content(out: Emitter, value: ObjectValue) -> None:
    write_container(out, out.value(value), value.container, new=False)


def _write_object(out: Emitter, value: ObjectValue) -> None:
    target = out.value(value)
    if value.attributes:
        write_attributes(out, target, value, value.attributes)


def _write_exception(out: Emitter, value: ExceptionValue) -> None:
    _write_object(out, value)
    if value.trace:
        trace = out.constant(value.trace, "trace")
        out.statement(call(out.helper("add_trace"), out.value(value), trace))
    keep_in_traceback(out, value, kept_in_traceback(value))


def _write_cell(out: Emitter, value: CellValue) -> None:
    target = out.value(value)
    if value.contents is None:
        out.statement(call(out.helper("empty_cell"), target))
    else:
        out.statement(call(out.helper("set_cell"), target, out.value(value.contents)))


def _write_function(out: Emitter, value: FunctionValue) -> None:
    set_attributes(out, out.value(value), value.attributes)


def _write_context(out: Emitter, value: ContextVarValue) -> None:
    for token in value.pending:
        out.value(token)


def _write_class(out: Emitter, value: ClassValue) -> None:
    target = out.value(value)
    if value.making is None:
        for key, v in out.space.class_writes[value.cls].items():
            write_class(out, target, key, v)


def _write_iterator(out: Emitter, value: StartedIterator) -> None:
    if value.taken:  # else another iterator takes from it
        out.statement(call(out.helper("advance"), out.value(value), ast.Constant(value.taken)))


def _write_tensor(out: Emitter, value: TensorValue) -> None:
    attributes: dict[str, Any] = {}
    if value.replaced:
        attributes["data"] = TensorValue(value.node, value.example)
    gradient = final_gradient(out.space, value)
    if gradient is not None:
        attributes["grad"] = gradient
    attributes.update(value.hook_dicts or {})
    flag = final_flag(out.space, value)
    if flag is not None:
        attributes["requires_grad"] = ConstantValue(flag)
    set_attributes(out, out.value(value), attributes)
    if value.let_go:
        out.statement(call(out.constant(torch.Tensor.detach_), out.value(value)))


def _write_cache_hit(out: Emitter, value: CacheHit) -> None:
    if value in out.made:  # before one that varies
        return
    arguments, keywords = out.values(value.args), out.keywords(value.kwargs)
    out.statement(ast.Call(out.value(value.function), arguments, keywords))


def _write_warning(out: Emitter, value: IssuedWarning) -> None:
    place = value.place
    arguments = [
        out.value(value.message), out.value(value.category), ast.Constant(place.filename),
        ast.Constant(place.line), out.constant(place.namespace, "globals"),
    ]  # fmt: skip
    out.statement(call(out.helper("issue_warning"), *arguments))


_WRITERS: dict[type, Callable[[Emitter, Any], None]] = {
    ListValue: _write_container,
    DequeValue: _write_container,
    DictValue: _write_container,
    InstanceDictValue: _write_container,
    SetValue: _write_container,
    ObjectValue: _write_object,
    ExceptionValue: _write_exception,
    CellValue: _write_cell,
    FunctionValue: _write_function,
    ContextVarValue: _write_context,
    ClassValue: _write_class,
    TensorValue: _write_tensor,
    SubclassValue: _write_tensor,
    WrapperValue: _write_tensor,
    StartedIterator: _write_iterator,
    CacheHit: _write_cache_hit,
    VaryingCall: _write_cache_hit,
    IssuedWarning: _write_warning,
}
