"""Leaves of autograd that captured code makes, or stops being.

In: ``requires_grad_()``, new parameters, and assignments to ``requires_grad``, ``data`` and
``grad``. Out: nodes, and what is to be written to existing tensors after the graph. Next room:
graph.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass_type

from framejit.exc import GraphBreak
from framejit.graph.gradients import differentiable_reach
from framejit.graph.nested import checkpointed
from framejit.values.core.base import Args, Kwargs, Unmaterialisable, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.effects import Graded
from framejit.values.core.registry import Result, lookaside
from framejit.values.core.space import Space
from framejit.values.torch.subclasses import SubclassValue
from framejit.values.torch.tensors import TensorValue, from_fx, tensor_call
from framejit.values.torch.wrappers import WrapperValue


def require_gradient(space: Space, tensor: TensorValue, wanted: bool | None) -> TensorValue:
    """``tensor.requires_grad_(wanted)``; None is what is not known to be a bool."""
    if type(wanted) is not bool or space.transforms:
        raise GraphBreak("FJ0111", "Tensor.requires_grad_()")
    if wanted is bool(tensor.metadata().requires_grad):
        return tensor
    if space.task.alone:
        raise GraphBreak("FJ0111", "Tensor.requires_grad_()")
    if tensor.obj is not None:
        return _switch(space, tensor, wanted)
    if not wanted or tensor.node in space.effects.made_leaves:
        raise GraphBreak("FJ0111", "requires_grad_(False) of a tensor that was made for this call")
    space.builder.make_leaf(tensor.node)
    space.effects.made_leaves[tensor.node] = Graded(tensor, space.step)
    return tensor


def _switch(space: Space, tensor: TensorValue, wanted: bool) -> TensorValue:
    """The same for an existing tensor. Operations that come now take a tensor with the same
    elements; a leaf of the graph's own cannot be handed out, nor what it makes differentiable."""
    if tensor.replaced or tensor.let_go or not _is_existing_leaf(space, tensor):
        raise GraphBreak("FJ0111", "requires_grad_() of a tensor that is no leaf")
    builder = space.builder
    before = tensor.proxy(space), tensor.example
    own = [tensor.node] if tensor.switched is None else [tensor.node, tensor.switched[0]]
    if wanted and builder.has_views(own):  # they begin to require gradients as well
        raise GraphBreak("FJ0111", "requires_grad_() of a tensor that has views")
    if any(user.target is checkpointed for node in own for user in node.users):
        raise GraphBreak("FJ0111", "requires_grad_() of a tensor that a checkpoint uses")
    if tensor.switched is None:
        tensor.switched = _stand_in(space, tensor, tensor, wanted)
    (tensor.node, tensor.example), tensor.switched = tensor.switched, before
    space.effects.switched.setdefault(tensor, space.step)
    space.changed(tensor)
    return tensor


def _is_existing_leaf(space: Space, tensor: TensorValue) -> bool:
    plain = tensor.source is not None and tensor.cls is type(tensor.obj)
    if type(tensor) is SubclassValue and not tensor.leaves_functions_alone():
        return False  # its override would be asked again after the graph
    return plain and space.truth(space.now(tensor.getattr(space, "is_leaf")))


@lookaside(torch.detach_)
def _detach_in_place(space: Space, args: Args, kwargs: Kwargs) -> Result:
    tensor = args[0].realize() if len(args) == 1 and not kwargs else None
    if not isinstance(tensor, TensorValue):
        raise GraphBreak("FJ0111", "Tensor.detach_() with unusual arguments")
    return tensor.call_method(space, "detach_", [], {})


def let_go_of_history(space: Space, tensor: TensorValue) -> bool:
    """``tensor.detach_()``, where that does more than nothing: operations that come now take a
    tensor with the same elements. (As a node, backends that compute gradients would take away what
    was computed of the tensor before, too, or leave an existing tensor as it is.)"""
    existing, history = tensor.original(space), bool(tensor.metadata().requires_grad)
    if existing.obj is not None and existing.source is not None:
        if space.truth(space.now(existing.asked(space, torch.Tensor._is_view))):
            raise GraphBreak("FJ0111", "Tensor.detach_() of a view")
    if not history:
        return False
    usual = existing is tensor and type(tensor) is TensorValue and tensor.cls is torch.Tensor
    if not usual or tensor.replaced or tensor.switched or space.task.alone or space.transforms:
        raise GraphBreak("FJ0111", "Tensor.detach_() of an unusual tensor with a history")
    if tensor.obj is None:
        _let_go_of_own(space, tensor)
    elif _is_existing_leaf(space, tensor):
        _switch(space, tensor, wanted=False)
    elif tensor.source is not None:
        before = tensor.proxy(space), tensor.example
        _check_alone(space, tensor)
        tensor.node, tensor.example = _detached(space, tensor)
        tensor.switched, tensor.let_go = before, True
        space.effects.let_go_of_history(before[0], space.step)
        space.effects.switched.setdefault(tensor, space.step)
        space.changed(tensor)
    else:
        raise GraphBreak("FJ0111", "Tensor.detach_() of a tensor that only Python knows")
    return True


def _let_go_of_own(space: Space, tensor: TensorValue) -> None:
    """The same for a result of the graph."""
    effects, node = space.effects, tensor.node
    if tensor.keeps_gradients(space) or node in effects.watched:
        raise GraphBreak("FJ0111", "Tensor.detach_() of a tensor whose gradient is waited for")
    _check_alone(space, tensor)
    tensor.node, tensor.example = _detached(space, tensor)
    effects.let_go_of_history(node, space.step)


def _check_alone(space: Space, tensor: TensorValue) -> None:
    """GraphBreak if it is a view, which refuses, or has views: what is written to one gives its
    base a history."""
    builder, own = space.builder, tensor.example
    found = builder.has_views([tensor.node])
    for one in builder.operations.values() if tensor.obj is None else ():
        found = found or (own not in one.examples and builder.share(tensor.node, [one.node]))
        if own in one.examples:
            break
    if found:
        raise GraphBreak("FJ0111", "Tensor.detach_() of a tensor with a history, and of views")


@lookaside(torch.nn.Parameter)
def _new_parameter(space: Space, args: Args, kwargs: Kwargs) -> Result:
    names = ("data", "requires_grad")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    data = given.get("data", ConstantValue(None)).realize()
    if len(args) > len(names) or not kwargs.keys() <= set(names[len(args) :]) or space.transforms:
        raise GraphBreak("FJ0153", "making a torch.nn.Parameter in another way than usual")
    if data.is_none():
        data = tensor_call(space, torch.empty, ConstantValue(0))
    flag = given.get("requires_grad", ConstantValue(True)).realize()
    if isinstance(data, WrapperValue):
        made = _marked(space, data)
    elif isinstance(data, TensorValue) and data.cls in (torch.Tensor, torch.nn.Parameter):
        made = TensorValue(*_detached(space, data), torch.nn.Parameter)
        made.step = space.step
    else:
        raise GraphBreak("FJ0153", f"making a torch.nn.Parameter of a {data.describe()}")
    return require_gradient(space, made, flag.as_python() if flag.is_constant else None)


def _marked(space: Space, data: WrapperValue) -> TensorValue:
    """A parameter made of a tensor that consists of tensors: of its own class, which says what
    ``detach()`` is."""
    made = from_fx(space, *_detached(space, data)) if data.leaves_functions_alone() else None
    if type(made) is not WrapperValue or made.cls is not data.cls:
        raise GraphBreak("FJ0153", f"making a torch.nn.Parameter of a {data.describe()}")
    made.become_parameter()
    return made


def _detached(space: Space, tensor: TensorValue) -> tuple[Any, Any]:
    node, example = space.builder.call_method("detach", (tensor.proxy(space),), {})
    space.builder.operations[node].called = False  # by the program
    return node, example


def _stand_in(
    space: Space, tensor: TensorValue, elements: TensorValue, leaf: bool
) -> tuple[Any, Any]:
    """Node and example of what operations take for an existing tensor from here on."""
    node, example = _detached(space, elements)
    if leaf:
        operation = space.builder.make_leaf(node)
        node, operation.sets_state = operation.node, False
        space.effects.made_leaves[node] = Graded(tensor, space.step)
    return node, example


def replace_data(space: Space, tensor: TensorValue, value: Value) -> None:
    """``tensor.data = value``. Operations that come now take the other elements; the tensor itself
    gets them after the graph."""
    if not isinstance(value, TensorValue):
        raise GraphBreak("FJ0112", f"assigning a {value.describe()} to the data of a tensor")
    if tensor.node is not None and _is_all_of(value.node, tensor.node):
        if _sizes(value) == _sizes(tensor):
            return  # what `tensor.data += ...` ends with
    old, new = tensor.metadata(), value.metadata()
    alike = (old.dtype, old.device, old.layout) == (new.dtype, new.device, new.layout)
    existing = tensor.switched is None and _is_existing_leaf(space, tensor)
    usual = existing and alike and value.cls in (torch.Tensor, torch.nn.Parameter)
    resized = tensor.assigned_grad is not None and repr(old.shape) != repr(new.shape)
    if not usual or resized or space.transforms or space.task.alone:
        raise GraphBreak("FJ0112", "assigning something unusual to the data of a tensor")
    effects, before = space.effects, tensor.proxy(space)
    node, example = _stand_in(space, tensor, value, bool(old.requires_grad))
    effects.replaced[before] = space.step
    effects.switched.setdefault(tensor, space.step)
    tensor.node, tensor.example, tensor.replaced = node, example, True
    space.changed(tensor)


def assign_gradient(space: Space, tensor: TensorValue, value: Value) -> None:
    """``tensor.grad = value``."""
    made = tensor.obj is None and tensor.keeps_gradients(space)
    if not (made or (tensor.source and tensor.cls is type(tensor.obj))):
        raise GraphBreak("FJ0112", "assigning the gradient of a result of an operation")
    if type(tensor) is SubclassValue and not tensor.has_gradient():
        raise GraphBreak("FJ0112", f"assigning the gradient of a {tensor.describe()}")
    if not value.is_none():
        _check_gradient(tensor, value)
    tensor.assigned_grad = value
    space.effects.gradients_assigned[tensor] = space.step
    if made:
        return
    space.changed(tensor)
    if not value.is_none():
        space.effects.given_gradient[tensor] = None
    elif tensor.obj.grad is not None and not space.builder.op_count:
        space.effects.released[tensor] = None


def _check_gradient(tensor: TensorValue, value: Value) -> None:
    """GraphBreak where torch may refuse to take it as a gradient."""
    if not isinstance(value, TensorValue) or value is tensor:
        raise GraphBreak("FJ0112", f"assigning a {value.describe()} to the gradient of a tensor")
    own, given = tensor.metadata(), value.metadata()
    wanted = tensor.cls if is_traceable_wrapper_subclass_type(tensor.cls) else torch.Tensor
    looks = [(tuple(m.shape), m.dtype, m.device, m.layout) for m in (own, given)]
    if str(looks[0]) != str(looks[1]) or value.cls is not wanted:
        raise GraphBreak("FJ0112", "assigning to a gradient a tensor that does not look like one")


def final_gradient(space: Space, tensor: TensorValue) -> Value | None:
    """What ``grad`` is to be set to after the graph, if the program has assigned to it.

    Raises Unmaterialisable where torch would refuse that by then."""
    value, step = tensor.assigned_grad, space.effects.gradients_assigned.get(tensor)
    if step is not None and isinstance(value, TensorValue):
        if _sizes(value) != _sizes(tensor):
            raise Unmaterialisable(step, "the shape of a tensor, or of its gradient, is changed")
    return value


def _sizes(tensor: TensorValue) -> list[str]:
    """As texts: comparing symbols would add guards."""
    return list(map(str, tensor.metadata().shape))


def _is_all_of(node: Any, tensor: Any) -> bool:
    """Is it ``tensor.data`` or ``tensor.detach()``?"""
    if node is None or node.op == "placeholder" or node.args[0] is not tensor:
        return False
    return node.target == "detach" or (node.target is getattr and node.args[1] == "data")


def replaced_in(space: Space, results: Iterable[Any]) -> int | None:
    """The step that replaced the elements of what one of these results is computed from, as far as
    autograd knows: it would go on with the new ones."""
    builder, replaced = space.builder, space.effects.replaced
    if not replaced:
        return None
    starts: dict[Any, set[Any]] = {node: {step} for node, step in replaced.items()}
    reach = differentiable_reach(builder, starts, [one.node for one in builder.recorded])
    differentiable = [node for node in results if builder.operations[node].differentiable]
    found = set().union(*[reach.get(node, ()) for node in differentiable])
    return min(found, default=None)


def final_flag(space: Space, tensor: TensorValue) -> bool | None:
    """What ``requires_grad`` of an existing tensor is to be set to; None: it is as it was.

    Raises Unmaterialisable where that is not all that the program did to it."""
    if tensor.switched is None:
        return None
    before = tensor.obj.requires_grad
    is_input = tensor.node.op == "placeholder"
    if tensor.let_go:
        if any(map(space.builder.is_written, (tensor.switched[0], tensor.node))):
            step = space.effects.switched[tensor]
            raise Unmaterialisable(step, "detach_() of a tensor that is changed in place")
        return None
    other = tensor.switched[1] if is_input else tensor.example
    own = [tensor.node, tensor.switched[0]]
    inputs = [one.node for one in space.builder.placeholders if one.node not in own]
    shared = not before and any(space.builder.share(node, own) for node in inputs)
    if shared or other.changed or bool(other.meta.requires_grad) is before:
        step = space.effects.switched[tensor]
        raise Unmaterialisable(step, "requires_grad_() of a tensor that is changed in place")
    return None if is_input else not before
