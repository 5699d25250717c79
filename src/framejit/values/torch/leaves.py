"""Leaves of autograd that captured code makes, or stops being.

In: ``requires_grad_()`` and assignments to ``requires_grad``. Out: nodes, and what is to be written
to existing tensors after the graph. Next room: graph.
"""

from __future__ import annotations

from framejit.exc import GraphBreak
from framejit.graph.nested import checkpointed
from framejit.values.core.base import Unmaterialisable
from framejit.values.core.effects import Graded
from framejit.values.core.space import Space
from framejit.values.torch.tensors import TensorValue


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
    plain = tensor.source is not None and tensor.cls is type(tensor.obj)
    if not (plain and space.truth(space.now(tensor.getattr(space, "is_leaf")))):
        raise GraphBreak("FJ0111", "requires_grad_() of a tensor that is no leaf")
    builder = space.builder
    before = tensor.proxy(space), tensor.example
    own = [tensor.node] if tensor.switched is None else [tensor.node, tensor.switched[0]]
    if wanted and builder.has_views(own):  # they begin to require gradients as well
        raise GraphBreak("FJ0111", "requires_grad_() of a tensor that has views")
    if any(user.target is checkpointed for node in own for user in node.users):
        raise GraphBreak("FJ0111", "requires_grad_() of a tensor that a checkpoint uses")
    if tensor.switched is None:
        node, example = builder.call_method("detach", (tensor.node,), {})
        builder.operations[node].called = False  # by the program
        if wanted:
            operation = builder.make_leaf(node)
            node, operation.sets_state = operation.node, False
            space.effects.made_leaves[node] = Graded(tensor, space.step)
        tensor.switched = node, example
    (tensor.node, tensor.example), tensor.switched = tensor.switched, before
    space.effects.switched.setdefault(tensor, space.step)
    space.changed(tensor)
    return tensor


def final_flag(space: Space, tensor: TensorValue) -> bool | None:
    """What ``requires_grad`` of an existing tensor is to be set to; None: it is as it was.

    Raises Unmaterialisable where that is not all that the program did to it."""
    if tensor.switched is None:
        return None
    before = tensor.obj.requires_grad
    is_input = tensor.node.op == "placeholder"
    other = tensor.switched[1] if is_input else tensor.example
    own = [tensor.node, tensor.switched[0]]
    inputs = [one.node for one in space.builder.placeholders if one.node not in own]
    shared = not before and any(space.builder.share(node, own) for node in inputs)
    if shared or other.changed or bool(other.meta.requires_grad) is before:
        step = space.effects.switched[tensor]
        raise Unmaterialisable(step, "requires_grad_() of a tensor that is changed in place")
    return None if is_input else not before
