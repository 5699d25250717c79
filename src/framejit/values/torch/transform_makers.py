"""Functions that ``torch.func`` makes and calls later, as what they were made of.

In: calls of `vmap(f)`, `grad(f)` and their like, and what they return. Out: the calls of
`transforms`. Next: hooks.
"""

from __future__ import annotations

from typing import Any

import torch
import torch._functorch.apis
import torch._functorch.vmap
import torch.func

from framejit.exc import GraphBreak
from framejit.graph.functions import is_applied
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.registry import CODE_LOOKASIDES, LOOKASIDES, Result, lookaside
from framejit.values.core.space import Space
from framejit.values.torch.nesting import (
    rebuild,
)
from framejit.values.torch.tensors import TensorValue
from framejit.values.torch.torch_library import as_written
from framejit.values.torch.transforms import Jacobian, entered, jacrev, plain_numbers, transform


def _maker(function: Any) -> Any:
    """torch's code around functions, run as it is: all it does is to make another."""

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        return as_written(space, function, args, kwargs)

    return handler


def _options_of(space: Space, made: Any) -> dict[str, Value]:
    """What a function that torch.func made keeps in its cells."""
    cells = zip(made.code.co_freevars, made.cells(space), strict=True)
    return {name: cell.contents for name, cell in cells}


def _made_jacobian(name: str) -> Any:
    """A call of what ``torch.func.jacrev`` or ``jacfwd`` has returned outside."""

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Result:
        made, *operands = args
        options = _options_of(space, made)
        function, argnums = options.pop("func"), options.pop("argnums")
        given = {key: value.realize().as_python() for key, value in options.items()}
        chunk_size, has_aux = given.pop("chunk_size", None), given.pop("has_aux", False)
        if kwargs or (has_aux and name != "jacrev") or given.pop("_preallocate_and_copy", False):
            raise GraphBreak("FJ0123", f"torch.func.{name}() with options")
        numbers = plain_numbers(argnums)
        if name == "jacrev":
            return jacrev(space, function, Jacobian(numbers, chunk_size, has_aux), operands)
        return transform(space, name, function, operands, {"argnums": numbers, **given})

    return handler


def _made_functional(space: Space, args: Args, kwargs: Kwargs) -> Result:
    """A call of what ``torch.func.functionalize`` makes: how the function computes is the
    backend's business. But it gets other tensor objects, and writes to operands when it ends."""
    made, *operands = args
    options = _options_of(space, made)
    what = "torch.func.functionalize()"
    if not space.truth(options["reapply_views"]):
        raise GraphBreak("FJ0123", f"{what} that makes copies of views")
    builder = space.builder
    originals: dict[Value, TensorValue] = {}

    def wrap(tensor: TensorValue) -> Value:
        if tensor.python_type() is not torch.Tensor or tensor.metadata().requires_grad:
            raise GraphBreak("FJ0123", f"{what} of a tensor that requires a gradient")
        if tensor.proxy(space) in [known.node for known in originals.values()]:
            raise GraphBreak("FJ0123", f"{what} of one tensor twice")
        wrapped = TensorValue(tensor.node, tensor.example)
        originals[wrapped] = tensor
        return wrapped

    operands = [rebuild(operand, wrap) for operand in operands]
    kwargs = {name: rebuild(operand, wrap) for name, operand in kwargs.items()}
    start = len(builder.recorded)
    with entered(space, 0):
        result = space.now(space.call(options["func"], operands, kwargs))
    inside = [operation.node for operation in builder.recorded[start:]]
    if any(is_applied(node.target) for node in inside):
        raise GraphBreak("FJ0123", f"an autograd.Function under {what}")
    used = {operand for node in inside for operand in node.all_input_nodes}
    if any(map(builder.is_written, used.difference(inside))):
        raise GraphBreak("FJ0123", f"{what} of a function that writes to a tensor of outside")
    return rebuild(result, lambda tensor: originals.get(tensor, tensor))


@lookaside(torch.func.jvp)
def _jvp(space: Space, args: Args, kwargs: Kwargs) -> Result:
    if len(args) != 3 or kwargs:
        raise GraphBreak("FJ0123", "torch.func.jvp() with options")
    function, primals, tangents = args
    return transform(space, "jvp", function, space.items(primals), {}, space.items(tangents))


for _made, _handler in (
    (torch.func.jacrev, _made_jacobian("jacrev")),
    (torch.func.jacfwd, _made_jacobian("jacfwd")),
    (torch.func.functionalize, _made_functional),
):
    LOOKASIDES[_made] = _maker(_made)
    CODE_LOOKASIDES[id(_made(lambda: None).__code__)] = _handler
LOOKASIDES[torch.func.hessian] = _maker(torch.func.hessian)
