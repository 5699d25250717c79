"""What `autograd.Function.apply` is in graphs.

In: a class, operands, and, where its functions exchange data with other processes, what captures
have recorded of them. Out: what ``apply`` returns; compilers, which cannot trace operations that
exchange data in place, see what was recorded. Used by the value layer. Next room: backends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from ..torchcompat.function_apply import inherited
from .differentiation import is_dense
from .nested import HeldHook, traced_by

#: Why what was recorded of ``backward`` does not hold for a gradient.
OTHER_STRIDES = "backward writes to a gradient of other strides than it was traced with"


class Bodies(NamedTuple):
    """What was recorded of ``forward`` and ``backward``, for tensors in the order of their places:
    the operands that autograd knows, other tensors and numbers among the operands, what ``forward``
    has recorded that it returns or ``backward`` uses, and the gradients of the results."""

    forward: torch.fx.GraphModule
    backward: torch.fx.GraphModule | None
    #: Tensors and numbers inside of operands, of which autograd knows nothing.
    others: tuple[Any, ...]
    #: Which operands are tensors.
    tensors: tuple[int, ...]
    #: What is returned: the place of a result of `forward`, or a constant in a tuple.
    answers: tuple[Any, ...]
    several: bool
    #: The operands that it writes to and returns: places.
    dirty: tuple[int, ...]
    #: The results that have no gradient.
    constant: tuple[int, ...]
    #: What ``backward`` takes: places.
    used: tuple[int, ...]
    #: What of that ``forward`` has saved for it, so that a later change is noticed: places.
    saved: tuple[int, ...]
    #: Does ``backward`` write to its gradients, or to parts of them?
    writes: tuple[bool, bool]
    #: For each of `tensors` the result of `backward`, or None.
    gradients: tuple[int | None, ...]


def applied(cls: type[torch.autograd.Function]) -> Callable[..., Any]:
    """What ``autograd.Function.apply`` does for ``cls``, as a plain function that generated code of
    graphs can name. ``bodies``: the fields of `Bodies`, where it exchanges data."""

    def apply(*args: Any, bodies: Any = ()) -> Any:
        if bodies and any(map(traced_by, ("FAKE", "FUNCTIONAL", "PROXY"))):
            return _run(Bodies(*bodies), args)
        given = [arg.held[0] if type(arg) is HeldHook else arg for arg in args]
        return inherited(cls)(*given)

    apply.__name__ = cls.__name__
    apply.__qualname__ = cls.__qualname__
    return apply


def is_applied(target: Any) -> bool:
    """Is it what `applied` makes?"""
    return getattr(target, "__code__", None) in applied.__code__.co_consts


def _run(bodies: Bodies, args: tuple[Any, ...]) -> Any:
    made = _Recorded.apply(bodies, *[args[position] for position in bodies.tensors])
    results = [one[0] if isinstance(one, tuple) else made[one] for one in bodies.answers]
    return tuple(results) if bodies.several else results[0]


class _Recorded(torch.autograd.Function):
    """A function of autograd that was recorded. It has the derivative that was recorded, once."""

    @staticmethod
    def forward(ctx: Any, bodies: Bodies, *tensors: torch.Tensor) -> Any:
        made = bodies.forward(*tensors, *bodies.others)
        places = (*tensors, *bodies.others, *made)
        count = 1 + max((one for one in bodies.answers if type(one) is int), default=-1)
        ctx.save_for_backward(*[places[place] for place in bodies.saved])
        ctx.kept = dict.fromkeys(set(bodies.used).difference(bodies.saved))
        ctx.kept.update({p: places[p] for p in ctx.kept if p < len(places)})
        ctx.bodies, ctx.count = bodies, len(places)
        ctx.strides = [one.stride() for one in made[:count]]
        ctx.mark_dirty(*[places[place] for place in bodies.dirty])
        ctx.mark_non_differentiable(*[made[number] for number in bodies.constant])
        return tuple(made[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        bodies = ctx.bodies
        if torch.is_grad_enabled():
            raise RuntimeError("a derivative of what exchanges data with other processes")
        gradients = tuple(
            one if one.stride() == strides else _laid_out(one, strides, *bodies.writes)
            for one, strides in zip(gradients, ctx.strides, strict=True)
        )
        places = {**ctx.kept, **dict(zip(bodies.saved, ctx.saved_tensors, strict=True))}
        places.update({ctx.count + number: one for number, one in enumerate(gradients)})
        with torch.no_grad():
            found = bodies.backward(*[places[place] for place in bodies.used])
        return None, *[None if place is None else found[place] for place in bodies.gradients]


def _laid_out(gradient: torch.Tensor, strides: Any, writes: bool, parts: bool) -> torch.Tensor:
    """A gradient as ``backward`` was traced with. It may write to it: to exchange it whole, it has
    then made a copy of one with gaps or shared elements.

    Raises RuntimeError where it may be the gradient itself that it writes to.
    """
    if writes and (parts or is_dense(gradient)):
        raise RuntimeError(OTHER_STRIDES)
    return gradient.new_empty_strided(gradient.shape, strides).copy_(gradient)
