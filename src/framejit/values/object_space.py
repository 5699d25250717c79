"""The space with the operations of all rooms.

In: what the rooms define. Out: the space of a capture, whose abstract part (`space.Space`) is all
that they know of each other upwards. Next room: interpreter.
"""

from __future__ import annotations

from framejit.values import operators
from framejit.values.containers.iterators import ReversedIterator, SequenceIterator, iter_constant
from framejit.values.containers.live_dicts import globals_value, namespace_of
from framejit.values.containers.mapping_views import DictViewValue
from framejit.values.containers.sequences import ListValue, constant_tuple
from framejit.values.containers.set_operands import as_set, operand_of
from framejit.values.containers.sets import existing_set
from framejit.values.core.base import Value
from framejit.values.core.carried import carried_sum
from framejit.values.core.constants import constant_value
from framejit.values.core.registry import Result
from framejit.values.core.space import Space
from framejit.values.identity import identical
from framejit.values.numpy.arrays import array_of
from framejit.values.objects.descriptors import bind
from framejit.values.objects.exceptions import make_exception, new_exception, note_read
from framejit.values.objects.local_classes import adopt, guard_class, written_attribute
from framejit.values.objects.object_methods import bound_by_hand, object_method
from framejit.values.objects.text import exception_text, format_value, text_of, text_operator
from framejit.values.stdlib.builtin_functions import sort_in_place
from framejit.values.torch import overrides
from framejit.values.torch.data_numbers import indexed_by_data, of_data
from framejit.values.torch.hooks import watch_gradient
from framejit.values.torch.leaf_hooks import assign_hook_dict, hook_dict, hook_leaf, is_leaf
from framejit.values.torch.leaves import (
    assign_gradient,
    let_go_of_history,
    replace_data,
    require_gradient,
)
from framejit.values.torch.new_tensors import as_type, new_like
from framejit.values.torch.nn_modules import module_member, module_setattr
from framejit.values.torch.read_numbers import (
    beside_tensors,
    named_tensors,
    number_for_optimizer,
    scaled,
    state_decides,
)
from framejit.values.torch.subclasses import as_subclass, new_tensor
from framejit.values.torch.torch_functions import call_in_graph
from framejit.values.torch.wrappers import made_of_others, part_of_operand


class ObjectSpace(Space):
    """Every function here takes the space first: it is a method."""

    constant = constant_value
    bind_class_attribute = bind
    unary = operators.unary
    compare = operators.compare
    division = operators.division
    is_ = identical
    new_exception = new_exception
    make_exception = make_exception
    note_read = note_read
    written_attribute = written_attribute
    guard_class = guard_class
    adopt = adopt
    object_method = object_method
    bound_by_hand = bound_by_hand
    text_of = text_of
    format_value = format_value
    exception_text = exception_text
    namespace_of = namespace_of
    globals_value = globals_value
    constant_tuple = constant_tuple
    list_value = ListValue
    iter_constant = iter_constant
    iter_sequence = SequenceIterator
    reversed_sequence = ReversedIterator
    new_view = DictViewValue
    as_set = as_set
    operand_of = operand_of
    existing_set = existing_set
    sort_in_place = sort_in_place
    call_in_graph = call_in_graph
    module_member = module_member
    module_setattr = module_setattr
    array_of = array_of
    watch_gradient = watch_gradient
    is_leaf = is_leaf
    hook_leaf = hook_leaf
    hook_dict = hook_dict
    assign_hook_dict = assign_hook_dict
    require_gradient = require_gradient
    replace_data = replace_data
    let_go_of_history = let_go_of_history
    assign_gradient = assign_gradient
    scaled = scaled
    of_data = of_data
    indexed_by_data = indexed_by_data
    new_like = new_like
    as_type = as_type
    beside_tensors = beside_tensors
    named_tensors = named_tensors
    state_decides = state_decides
    number_for_optimizer = number_for_optimizer
    is_overridden = overrides.is_overridden
    is_handed_on = overrides.is_handed_on
    intercept = overrides.intercept
    intercept_method = overrides.intercept_method
    accessed = overrides.accessed
    as_subclass = as_subclass
    new_tensor = new_tensor

    wrapper = made_of_others
    part_of_operand = part_of_operand

    def binary(self, op: str, left: Value, right: Value, inplace: bool = False) -> Result:
        """``left op right`` (``op`` as in the source text, without the ``=`` of in-place forms)."""
        if op in ("+", "-"):
            carried = carried_sum(self, op, left, right)
            if carried is not None:
                return carried
        if op in ("+", "%"):
            text = text_operator(self, op, left, right)
            if text is not None:
                return text
        return operators.binary(self, op, left.realize(), right.realize(), inplace)
