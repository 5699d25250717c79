"""Hooks of autograd that captured code puts in place: on saved tensors, on gradients.

In: hooks as values: existing callables, or functions, methods and partials that the program makes.
Out: nodes that put the hooks in place for real (`backends.saved_hooks` makes those on saved tensors
part of the graphs where they only compute; those on gradients must, and AOTAutograd traces them).
Hooks are callables of the entry, made once: so what they hold must stay as it is while they live,
and what they change must not be looked at in the same capture. Next room: graph.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple

import torch

from framejit.exc import GraphBreak
from framejit.graph.global_state import refused_hooks
from framejit.graph.nested import (
    HeldHook,
    close_hooks,
    hook_gradient,
    note_made,
    open_hooks,
    remove_hook,
)
from framejit.values.containers.sequences import TupleValue
from framejit.values.core.base import Args, Kwargs, Unmaterialisable, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.effects import Graded
from framejit.values.core.inline_policy import is_library, names_in
from framejit.values.core.keys import real_object
from framejit.values.core.namespaces import entries, instance_namespace
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.objects.cells import CellValue
from framejit.values.objects.classes import ClassValue
from framejit.values.objects.functions import FunctionValue, MethodValue
from framejit.values.objects.partials import PartialValue
from framejit.values.torch.arrivals import HandleValue, number_of_handle, watch
from framejit.values.torch.tensors import TensorValue

#: Makes an object of the program with these tensors in the places that need one.
Maker = Callable[[Sequence[Any]], Any]


class Variable(NamedTuple):
    """A free variable of a function: its cell, what that held, the function's code, its name."""

    cell: CellValue
    held: Value | None
    code: types.CodeType
    name: str


class Hooks(NamedTuple):
    """Hooks that the program has put in place together."""

    #: The step in which it did so.
    step: int
    #: Does the graph do so? Without gradients nothing is saved.
    recorded: bool
    makers: tuple[Maker, ...]
    #: The tensors that they use.
    tensors: list[TensorValue]
    #: The variables of functions among them.
    cells: list[Variable]
    #: The tensor whose gradient they are called with; None: a pair for saved tensors.
    tensor: TensorValue | None = None


@lookaside(torch._C._autograd._push_saved_tensors_default_hooks)
def _open(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if space.transforms:
        raise GraphBreak("FJ0118", "saved-tensor hooks are opened inside of a transform")
    if refused_hooks() is not None:
        raise GraphBreak("FJ0118", "saved-tensor hooks are opened where they are refused")
    tensors: list[TensorValue] = []
    cells: list[Variable] = []
    makers = tuple([_maker(space, hook, tensors, cells) for hook in args])
    hooks = Hooks(space.step, torch.is_grad_enabled(), makers, tensors, cells)
    space.effects.open(hooks)
    if hooks.recorded:
        builder = space.builder
        made = makers if tensors else [make(()) for make in makers]
        modules = [builder.add_module("hook", HeldHook(hook)) for hook in made]
        nodes = [tensor.proxy(space) for tensor in tensors]
        builder.call_effect(open_hooks, (*modules, *nodes), {})
    return ConstantValue(None)


@lookaside(torch._C._autograd._pop_saved_tensors_default_hooks)
def _close(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if not space.effects.open_hooks:
        raise GraphBreak("FJ0118", "saved-tensor hooks end that began before")
    if space.effects.close_hooks().recorded:
        space.builder.call_effect(close_hooks, (), {})
    return ConstantValue(None)


class HeldHandle(HandleValue):
    """The handle of a hook that the graph holds."""

    node: Any

    def call_method(self, space: Space, name: str, args: Args, kwargs: Kwargs) -> Result:
        space.builder.call_effect(remove_hook, (self.node,), {})
        return ConstantValue(None)


def watch_gradient(space: Space, tensor: TensorValue, method: str, args: list[Value]) -> Value:
    """``tensor.register_hook(hook)`` or ``tensor.retain_grad()`` of what the graph has made.

    Python does it where the graph cannot. A result that the graph itself has used would get only
    part of its gradient: then the graph ends right after it.
    """
    why = f"Tensor.{method}() of a tensor that was used before"
    used = bool(tensor.step and tensor.node.users)
    step = tensor.step + 1 if used else space.step
    if method == "retain_grad" and not args and not space.transforms and not space.task.alone:
        if tensor.metadata().requires_grad and tensor.node not in space.effects.made_leaves:
            space.effects.retaining.setdefault(tensor.node, Graded(tensor, step))
            return ConstantValue(None)
    tensors: list[TensorValue] = []
    cells: list[Variable] = []
    is_leaf = tensor.node in space.effects.made_leaves
    try:
        if method == "retain_grad" or len(args) != 1 or space.transforms:
            raise GraphBreak("FJ0111", f"Tensor.{method}()")
        if is_leaf or not tensor.metadata().requires_grad:
            raise GraphBreak("FJ0111", "Tensor.register_hook() where the graph cannot do it")
    except GraphBreak as broken:
        if used:
            raise Unmaterialisable(step, why) from broken
        raise
    hook = None
    try:
        makers = (_maker(space, args[0], tensors, cells),)
        if not tensors and space.task.is_pure_hook(made := makers[0](()), tensor.fake(space))[0]:
            hook = made
    except GraphBreak:
        hook = None  # it is traced, whatever it uses
    if hook is None or tensor.node in space.effects.watched:
        return watch(space, tensor, args[0], step)
    space.effects.hooks.append(Hooks(step, True, makers, tensors, cells, tensor))
    builder = space.builder
    module = builder.add_module("hook", HeldHook(hook))
    node = builder.call_effect(hook_gradient, (module, tensor.proxy(space)), {})
    number_of_handle(space)
    return HeldHandle(space.step, node)


def _maker(space: Space, value: Value, tensors: list[TensorValue], cells: list[Variable]) -> Maker:
    """How to make the object that a value represents. Existing ones are known by identity."""
    value = value.realize()

    def part(inner: Value) -> Maker:
        return _maker(space, inner, tensors, cells)

    if value.is_constant:
        constant = value.as_python()
        return lambda given: constant
    if isinstance(value, TensorValue):
        if value not in tensors:
            tensors.append(value)
        index = tensors.index(value)
        return lambda given: given[index]
    real = value.function if isinstance(value, FunctionValue) else real_object(value)
    if real is not None and (value.source is not None or isinstance(value, ClassValue)):
        space.guard(value.source, "ID_MATCH", real)
        return lambda given: real
    if isinstance(value, MethodValue):
        parts = part(value.function), part(value.receiver)
        return lambda given: note_made(types.MethodType(*[make(given) for make in parts]))
    if isinstance(value, PartialValue) and not entries(value):
        function, arguments = part(value.function), [part(arg) for arg in value.args]
        keywords = {name: part(arg) for name, arg in value.kwargs.items()}
        return lambda given: note_made(functools.partial(
            function(given), *[make(given) for make in arguments],
            **{name: make(given) for name, make in keywords.items()},
        ))  # fmt: skip
    if type(value) is TupleValue and value.python_type() is tuple:
        items = [part(item) for item in value.items]
        return lambda given: tuple([make(given) for make in items])
    if isinstance(value, FunctionValue) and not entries(value):
        if value.attributes.keys() <= {"__annotations__", "__annotate__"}:
            return _function_maker(space, value, part, cells)
    raise GraphBreak(
        "FJ0118", f"a hook of autograd uses a {value.describe()} that was made for this call"
    )


def held_callable(space: Space, value: Value, what: str, variables: bool = False) -> Any:
    """The callable that a value represents, for the graph to hold. With ``variables`` it may use
    some of this call, if they stay as they are."""
    tensors: list[TensorValue] = []
    cells: list[Variable] = []
    make = _maker(space, value, tensors, cells)
    if tensors or (cells and not variables):
        raise GraphBreak("FJ0120", f"{what} that uses variables of this call")
    if cells:
        space.effects.hooks.append(Hooks(space.step, False, (), [], cells))
    return make(())


def _function_maker(
    space: Space, value: FunctionValue, part: Callable[[Value], Maker], cells: list[Variable]
) -> Maker:
    code, namespace = value.code, value.globals
    closure: list[Maker | None] = []
    for cell, name in zip(value.cells(space), code.co_freevars, strict=True):
        cells.append(Variable(cell, cell.contents, code, name))
        if cell.contents is value:
            raise GraphBreak("FJ0118", "a hook of autograd calls itself")
        closure.append(None if cell.contents is None else part(cell.contents))
    defaults = [part(default) for default in value.default_values(space)]
    names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    known = {name: value.keyword_default(space, name) for name in names}
    keywords = {name: part(default) for name, default in known.items() if default is not None}

    def make(given: Sequence[Any]) -> Any:
        held = [types.CellType() if c is None else types.CellType(c(given)) for c in closure]
        function = types.FunctionType(
            code, namespace, None, tuple([c(given) for c in defaults]), tuple(held)
        )
        function.__kwdefaults__ = {name: c(given) for name, c in keywords.items()} or None
        return note_made(function)

    return make


# -- what the capture must not have done ----------------------------------------------------------


def reached(objects: Iterable[Any]) -> tuple[dict[int, Any], set[tuple[int, str]]]:
    """The mutable objects that calling these can get at (those of torch aside), and the names of
    globals that it can read or write, by the id of their dict."""
    found: dict[int, Any] = {}
    names: set[tuple[int, str]] = set()
    seen: dict[int, Any] = {}
    waiting = list(objects)
    while waiting:
        obj = waiting.pop()
        if id(obj) in seen:
            continue
        seen[id(obj)] = obj
        kind = type(obj)
        if kind is types.FunctionType:
            if is_library(obj.__module__ or ""):
                continue
            for cell in obj.__closure__ or ():
                found[id(cell)] = cell
                waiting += [cell.cell_contents] if cell != types.CellType() else []
            waiting += [*(obj.__defaults__ or ()), *(obj.__kwdefaults__ or {}).values()]
            for name in names_in(obj.__code__):
                if name in obj.__globals__:
                    names.add((id(obj.__globals__), name))
                    waiting.append(obj.__globals__[name])
        elif kind is types.MethodType:
            waiting += [obj.__func__, obj.__self__]
        elif kind is functools.partial:
            waiting += [obj.func, *obj.args, *obj.keywords.values()]
        elif isinstance(obj, type):
            if not is_library(obj.__module__) and obj.__module__ != "builtins":
                found[id(obj)] = obj
        elif isinstance(obj, (list, tuple, dict, set)):
            found[id(obj)] = obj
            waiting += obj.values() if isinstance(obj, dict) else obj
        elif not isinstance(obj, (torch.Tensor, types.ModuleType)) and hasattr(obj, "__dict__"):
            found[id(obj)] = obj
            namespace = instance_namespace(obj)
            found[id(namespace)] = namespace
            waiting += (namespace or {}).values()
            call = inspect.getattr_static(kind, "__call__", None)
            waiting += [call] if isinstance(call, types.FunctionType) else []
    return found, names


class Surrounding:
    """Hooks on saved tensors that are active around the call: they run while the graph does, but
    what the program changes is written after it."""

    def __init__(
        self, space: Space, pair: Iterable[Any], is_pure: Callable[[torch.Tensor], bool]
    ) -> None:
        self.space, self.is_pure = space, is_pure
        self.objects, self.names = reached(pair)
        #: The first step that saved tensors.
        self.step = 0
        self.pure: bool | None = None

    def only_compute(self) -> bool:
        """Do they neither change nor look at anything but the tensor?"""
        if self.pure is None:
            inputs = self.space.builder.inputs
            like = next((t for t in inputs if t.is_floating_point()), torch.empty(2))
            self.pure = self.is_pure(like)
        return self.pure

    def before_saving(self) -> None:
        """An operation is about to be recorded that saves tensors."""
        space, effects = self.space, self.space.effects
        if not torch.is_grad_enabled():
            return
        self.step = self.step or space.step
        if effects.writes and (self._uses_changed() or not self.only_compute()):
            raise GraphBreak("FJ0118", "a saved-tensor hook may use what was changed before it")

    def _uses_changed(self) -> bool:
        changed = {id(value.obj) for value in self.space.effects.changed}
        named = not self.names.isdisjoint(self.space.effects.globals)
        return named or not self.objects.keys().isdisjoint(changed)

    def unsettled(self) -> tuple[int, GraphBreak] | None:
        """The same as of the function below."""
        space = self.space
        looked_at = {id(obj) for obj, _, _ in space.looked_at()}
        apart = self.objects.keys().isdisjoint(looked_at) and not space.has_read(self.names)
        if not self.step or apart or self.only_compute():
            return None
        why = "a saved-tensor hook may change what is looked at beside it"
        return self.step, GraphBreak("FJ0118", why)


def unsettled(
    space: Space, left: Container[Value], is_pure: Callable[[Hooks, list[Any]], bool]
) -> tuple[int, GraphBreak] | None:
    """The capture has ended: may the hooks that the program put in place be what the entry holds?
    If not, the step that must not be captured, and why. ``left``: the cells that may be assigned
    to."""
    effects = space.effects
    for hooks in effects.hooks:
        made = [make([None] * len(hooks.tensors)) for make in hooks.makers]
        objects, names = reached(made)
        changed = {id(value.obj) for value in effects.changed}
        looked_at = {id(obj) for obj, _, _ in space.looked_at()}
        why = None
        if hooks in effects.open_hooks:
            why = "saved-tensor hooks are open where the graph ends"
        elif any(v.cell.contents is not v.held or v.cell in left for v in hooks.cells):
            why = "a variable that a hook of autograd uses changes later"
        elif not (objects.keys().isdisjoint(changed) and names.isdisjoint(effects.globals)):
            why = "what a hook of autograd uses is changed in front of the graph"
        elif hooks.tensor is not None:
            if not is_pure(hooks, made) or space.builder.is_written(hooks.tensor.node):
                why = "Tensor.register_hook() of a hook that does more than compute"
        elif not objects.keys().isdisjoint(looked_at) or space.has_read(names):
            if hooks.tensors or not is_pure(hooks, made):
                why = "a saved-tensor hook may change what is looked at beside it"
        if why is not None:
            gradient = hooks.tensor is not None
            return hooks.step, GraphBreak("FJ0111", why) if gradient else GraphBreak("FJ0118", why)
    return None
