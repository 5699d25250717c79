"""``flex_attention``: attention whose scores and masks are computed by the program's functions.

In: the call that ``torch.nn.attention.flex_attention`` makes for compilers. Out: one node, with the
two functions as nested graphs. Next room: graph.
"""

from __future__ import annotations

from typing import Any

from framejit.exc import GraphBreak
from framejit.values.containers.folding import python_of
from framejit.values.containers.sequences import TupleValue
from framejit.values.core import polyfills
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import NAMED_LOOKASIDES, Result
from framejit.values.core.space import Space
from framejit.values.objects.functions import call_polyfill
from framejit.values.torch.nesting import Nested, Terms, stand_in, trial
from framejit.values.torch.tensors import TensorValue, from_fx, tensor_call, to_fx

_NAMES = (
    "query", "key", "value", "score_mod", "block_mask", "scale", "kernel_options",
    "score_mod_other_buffers", "mask_mod_other_buffers",
)  # fmt: skip


def _body(space: Space, function: Value, inputs: list[TensorValue], what: str) -> Nested:
    """The nested graph of a function of single numbers; it may return one of them as it is."""
    if space.transforms:
        raise GraphBreak("FJ0123", f"{what} in a transform of torch.func")
    before, space.maps_indices = space.maps_indices, True
    try:
        result, stretch = trial(space, function, list(inputs), Terms(what))
    finally:
        space.maps_indices = before
    if not isinstance(result.realize(), TensorValue):
        raise GraphBreak("FJ0123", f"{what} returns something else than a tensor")
    return Nested(space, result, stretch)


def _number(space: Space, query: TensorValue, **dtype: Value) -> TensorValue:
    made = tensor_call(space, "new_empty", query, TupleValue([]), **dtype)
    return stand_in(space, made)


def _flex_attention(space: Space, args: Args, kwargs: Kwargs) -> Result:
    import torch  # not the operator's module: it is imported by programs that use it

    named = dict(zip(_NAMES, args[1:], strict=False)) | kwargs
    if any(name in named for name in _NAMES[7:]):
        raise GraphBreak("FJ0123", "flex_attention() with tensors for its functions")
    query = named["query"].realize()
    if not isinstance(query, TensorValue):
        raise GraphBreak("FJ0123", "flex_attention() of something else than tensors")
    *mask, mask_mod = space.items(named["block_mask"])
    places = [_number(space, query, dtype=ConstantValue(torch.int32)) for _ in range(4)]
    score = _number(space, query)
    own = [tensor.proxy(space) for tensor in (score, *places)]
    parts = []
    for name, function, inputs in (("score_mod", named["score_mod"], [score, *places]),
                                   ("mask_mod", mask_mod, places)):  # fmt: skip
        body = _body(space, function, inputs, f"the {name} of flex_attention()")
        given = own[len(own) - len(inputs) :]
        lifted = body.lifted(given)
        body.unpacked = True
        parts.append((body.node(f"flex_attention_{name}", [*given, *lifted]), tuple(lifted)))
    (score_node, of_score), (mask_node, of_mask) = parts
    first = [to_fx(space, named[name]) for name in _NAMES[:3]]
    blocks = (*[to_fx(space, one) for one in mask], mask_node)
    rest = [to_fx(space, named["scale"]), python_of(named["kernel_options"])]
    node, example = space.builder.call_function(
        torch.ops.higher_order.flex_attention,
        (*first, score_node, blocks, *rest, of_score, of_mask), {},
    )  # fmt: skip
    return from_fx(space, node, example)


def _mark_static(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """``torch._dynamo.mark_static(x, dim)`` in captured code: the size is a constant then."""
    named: dict[str, Any] = dict(zip(("t", "index"), args, strict=False)) | kwargs
    tensor = named["t"].realize()
    if not isinstance(tensor, TensorValue):
        raise GraphBreak("FJ0131", "mark_static() of something else than a tensor")
    sizes = space.items(space.getattr_now(tensor, "shape"))
    index = named.get("index", ConstantValue(None)).realize().as_python()
    for dim in range(len(sizes)) if index is None else [index] if type(index) is int else index:
        sizes[dim].as_python()
    return ConstantValue(None)


def _annotate(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """Notes for whoever reads the graph change nothing that it computes."""
    return call_polyfill(space, polyfills.no_context, [])


NAMED_LOOKASIDES["torch.fx.traceback", "annotate"] = _annotate
NAMED_LOOKASIDES["torch._higher_order_ops.flex_attention", "FlexAttentionHOP.__call__"] = (
    _flex_attention
)
NAMED_LOOKASIDES["torch._dynamo.decorators", "mark_static"] = _mark_static
