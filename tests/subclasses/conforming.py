"""Programs with tensors of classes that are made of others, and how each is held against plain
Python: values may change, what a class tells of its tensors may not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional
from torch.utils._pytree import tree_map
from wrapping import Pair, Scaled

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend


class Program(NamedTuple):
    """``make(values)`` gives arguments that look alike for all ``values``; ``other()`` gives some
    that look otherwise. ``graphs``: how many a call of each is, where it is not one."""

    run: Callable[..., Any]
    make: Callable[[float], tuple[Any, ...]]
    other: Callable[[], tuple[Any, ...]]
    graphs: int = 1


class Masked(torch.Tensor):
    """Elements, and which of them are there; a reduction leaves out the others."""

    @staticmethod
    def __new__(cls, elements, there, fill=0.0):
        return torch.Tensor._make_wrapper_subclass(
            cls, elements.shape, strides=elements.stride(), dtype=elements.dtype,
            device=elements.device, requires_grad=elements.requires_grad,
        )  # fmt: skip

    def __init__(self, elements, there, fill=0.0):
        self.elements, self.there, self.fill = elements, there, fill

    def __repr__(self):
        return "Masked"

    def __tensor_flatten__(self):
        return ["elements", "there"], {"fill": self.fill}

    @staticmethod
    def __tensor_unflatten__(inner, told, size, stride):
        return Masked(inner["elements"], inner["there"], told["fill"])

    def filled(self):
        return torch.where(self.there, self.elements, self.fill)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        aten, kwargs = torch.ops.aten, kwargs or {}
        first = next(one for one in args if isinstance(one, cls))
        if func in (aten.sum.default, aten.sum.dim_IntList):
            return func(torch.where(first.there, first.elements, 0), *args[1:], **kwargs)
        if func is aten.mean.default:
            return torch.where(first.there, first.elements, 0).sum() / first.there.sum()
        there = [one.there for one in args if isinstance(one, cls)]
        plain = tree_map(lambda one: one.elements if isinstance(one, cls) else one, args)
        made = func(*plain, **kwargs)
        common = there[0] if len(there) == 1 else there[0] & there[1]
        if func in (aten.t.default, aten.transpose.int, aten.view.default):
            common = func(common, *args[1:], **kwargs)
        return cls(made, common, first.fill)


class Turned(torch.Tensor):
    """A plain tensor, whose sums are doubled by ``__torch_function__``, and its sums alone."""

    @staticmethod
    def __new__(cls, data):
        return torch.Tensor._make_subclass(cls, data)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        made = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(made, torch.Tensor) and func is torch.add:
            return made * 2.0
        return made


class Unit(torch.Tensor):
    """A tensor with a unit, which decides what an operation gives."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        made = super().__torch_function__(func, types, args, kwargs or {})
        units = [one.unit for one in args if isinstance(one, cls) and hasattr(one, "unit")]
        if isinstance(made, cls) and units:
            made.unit = "*".join(units) if func is torch.mul else units[0]
            if func is torch.mul and units[0] == "km":
                return made * 1000.0
        return made


def x(values=0.0, rows=2):
    return torch.arange(3.0 * rows).reshape(rows, 3) + values


def pair(values=0.0, tag="m", rows=2):
    return Pair(x(values, rows), x(values, rows) * 2 + 1, tag)


def scaled(values=1.0, factor=2.0):
    return Scaled(
        torch.full((4, 3), int(values) + 1, dtype=torch.int8), torch.tensor(values + 0.5),
        {"factor": factor},
    )  # fmt: skip


def masked(values=0.0, fill=0.0, rows=2):
    return Masked(x(values, rows), x(0.0, rows) % 2 < 1 + values % 2, fill)


def unit(values=0.0, name="m"):
    made = x(values).as_subclass(Unit)
    made.unit = name
    return made


def jagged(values=0.0, rows=(2, 3, 4)):
    content = torch.arange(4.0 * sum(rows)).reshape(-1, 4) / 10 + values
    offsets = torch.cat([torch.zeros(1, dtype=torch.long), torch.tensor(rows).cumsum(0)])
    limits = {"min_seqlen": min(rows), "max_seqlen": max(rows)}
    return torch.nested.nested_tensor_from_jagged(content, offsets, **limits)


def layered(values=0.0, tag="in"):
    return Pair(pair(values, tag), pair(values + 1, tag), "out")


def _in_place(t):
    t.add_(1)
    t[0].mul_(3)
    return t * 2, t.a


def _shown(t):
    u = t * 3
    return t.a + u.b, t.tag, u.tag, type(u) is Pair, u.shape, u.dtype, u.requires_grad


def _made(a, b):
    t = Pair(a + 1, b, "made")
    return t * 2, t, t.a is b


def _told_matters(t):
    return t * (2 if t.tag == "m" else 3)


def _fill_matters(t):
    return t.filled() * 2, t.sum(), t.fill


def _masked_block(t, weight):
    y = (t * 2 + t).t()
    return y.sum(0), y.mean(), (y * weight).elements


def _ragged_block(t):
    y = functional.linear(t, torch.ones(8, 4), torch.ones(8))
    return functional.layer_norm(functional.gelu(y), (8,)) + t.shape[0], y.values().sum()


def _one(make):
    return lambda values: (make(values),)


LOCAL = {
    "pair computes": Program(
        lambda t: (torch.sin(t) * 2, (t + t).sum(), t @ t.t()), _one(pair),
        lambda: (pair(0.0, "n"),),
    ),
    "pair views": Program(
        lambda t: (t.view(3, 2).t().contiguous(), t[:, 1:], t.unbind()), _one(pair),
        lambda: (pair(0.0, "n"),),
    ),
    "pair in place": Program(_in_place, _one(pair), lambda: (pair(0.0, None),)),
    "pair attributes": Program(_shown, _one(pair), lambda: (pair(0.0, "n"),)),
    "pair told": Program(_told_matters, _one(pair), lambda: (pair(0.0, "n"),)),
    "pair lists": Program(
        lambda t: (torch.cat([t, t + 1]), torch.stack([t, t]), t.split(1)), _one(pair),
        lambda: (pair(0.0, ("n", 1)),),
    ),
    "pair beside plain": Program(
        lambda t, y: (t + y, y * t, torch.where(y > 2, t, t + 1)), lambda v: (pair(v), x(v)),
        lambda: (pair(0.0, "n"), x()),
    ),
    "pair made": Program(
        _made, lambda v: (x(v), x(v + 1)), lambda: (x().double(), x().double()),
    ),
    "pair of pairs": Program(
        lambda t: (t * 2, t.a.b + 1, (t + t).a), _one(layered), lambda: (layered(0.0, "other"),),
    ),
    "pair norm": Program(
        lambda t: functional.layer_norm(functional.gelu(t), (3,)).softmax(-1), _one(pair),
        lambda: (pair(0.0, "n"),),
    ),
    "scaled weight": Program(
        functional.linear, lambda v: (x(v), scaled(v)), lambda: (x(), scaled(1.0, 3.0)),
    ),
    "scaled twice": Program(
        lambda y, w: functional.linear(functional.linear(y, w).relu().t()[:3].t(), w) + w.scale,
        lambda v: (x(v), scaled(v)), lambda: (x(), scaled(1.0, 3.0)),
    ),
    "scaled made": Program(
        lambda w, y: functional.linear(
            y, Scaled((w * 2).round().to(torch.int8), w.abs().amax(), {"factor": 1.0})
        ),
        lambda v: (x(v), x(v)), lambda: (x(0.0, 4), x()),
    ),
    "masked sums": Program(
        lambda t: (t.sum(), t.sum(1), t.mean(), t + t), _one(masked), lambda: (masked(0.0, 1.0),),
    ),
    "masked methods": Program(_fill_matters, _one(masked), lambda: (masked(0.0, 7.0),)),
    "masked block": Program(
        _masked_block, lambda v: (masked(v), torch.ones(3, 2) * v),
        lambda: (masked(0.0, 1.0), torch.ones(3, 2)),
    ),
    "masked pairs": Program(
        lambda t, u: ((t * u).sum(), (t + u).there), lambda v: (masked(v), masked(v + 1)),
        lambda: (masked(0.0, 1.0), masked()),
    ),
    "jagged computes": Program(
        lambda t: (torch.sin(t) * 2 + t, t.softmax(-1), t.sum(-1)), _one(jagged),
        lambda: (jagged().double(),),
    ),
    "jagged block": Program(_ragged_block, _one(jagged), lambda: (jagged(0.0, (2, 4)),)),
    "jagged padded": Program(
        lambda t: torch.nested.to_padded_tensor(t, 0.0) * 2, _one(jagged),
        lambda: (jagged().double(),),
    ),
    "jagged sizes": Program(
        lambda t: (t.reshape(t.shape[0], t.shape[1], 2, 2), t.shape == (t * 2).shape),
        _one(jagged), lambda: (jagged(0.0, (2, 4)),),
    ),
    "jagged made": Program(
        lambda v, o: torch.nested.nested_tensor_from_jagged(v * 2, o).sum(-1),
        lambda v: (jagged(v).values(), jagged().offsets()),
        lambda: (jagged().values().double(), jagged().offsets()),
    ),
    "jagged parts": Program(
        lambda t: (t.values() * 2, t.offsets().diff(), torch.cat([t, t], -1)), _one(jagged),
        lambda: (jagged(0.0, (2, 4)),),
    ),
    "doubled sums": Program(
        lambda a, b: (torch.add(a, b), a * b, torch.add(a, 1) - b),
        lambda v: (Turned(x(v)), Turned(x(v + 1))), lambda: (Turned(x().double()),) * 2,
    ),
    "doubled sums in a row": Program(
        lambda a, b: torch.add(torch.add(a, b), a).relu(),
        lambda v: (Turned(x(v)), Turned(x(v + 1))), lambda: (Turned(x()), x()),
    ),
    "units": Program(
        lambda a, b: torch.mul(a, b) + 1, lambda v: (unit(v), unit(v + 1)),
        lambda: (unit(0.0, "km"), unit()),
    ),
}  # fmt: skip


def shown(value: Any) -> Any:
    """What can be seen of a result; tensors in it are plain."""
    if isinstance(value, (list, tuple)):
        return [type(value), *map(shown, value)]
    if not isinstance(value, torch.Tensor):
        return type(value) if isinstance(value, torch.SymInt) else value
    with torch._C.DisableTorchFunctionSubclass():
        looks = [type(value).__name__, value.dtype, value.dim(), value.requires_grad]
        if hasattr(value, "__tensor_flatten__"):
            names, told = value.__tensor_flatten__()
            return [*looks, (told,), *(shown(getattr(value, name)) for name in names)]
        own = {key: one for key, one in vars(value).items() if not key.startswith("_")}
        return [*looks, tuple(value.shape), own, value.detach().as_subclass(torch.Tensor)]


def check_equal(got: Any, expected: Any) -> None:
    """Assert that two results that `shown` describes are equal."""
    assert type(got) is type(expected)
    if isinstance(got, list):
        assert len(got) == len(expected)
        for one, two in zip(got, expected, strict=True):
            check_equal(one, two)
    elif isinstance(got, torch.Tensor):
        torch.testing.assert_close(got, expected)
    else:
        assert got == expected, f"{got}, not {expected}"


def conforms(program: Program, backend: str) -> None:
    """Assert that the program does what plain Python does, and that what is compiled serves all
    values but nothing that looks otherwise."""
    counting, inner = CountingBackend(), lookup_backend(backend)
    compiled = framejit.compile(
        program.run, backend=lambda m, e: inner(counting(m, e), e), fullgraph=True, dynamic=False
    )

    def same(make: Callable[[], tuple[Any, ...]], graphs: int) -> None:
        plain, taken = make(), make()
        check_equal(shown(compiled(*taken)), shown(program.run(*plain)))
        check_equal(shown(taken), shown(plain))
        assert len(counting.graphs) == graphs

    for values in (0.0, 1.0, 0.0):
        same(lambda values=values: program.make(values), program.graphs)
    same(program.other, 2 * program.graphs)
    same(lambda: program.make(2.0), 2 * program.graphs)


def graphs_of_peer(program: Program) -> int | None:
    """How many graphs `torch.compile` makes of a call; None where it fails."""
    counting = CountingBackend()
    torch._dynamo.reset()
    try:
        torch.compile(program.run, backend=counting)(*program.make(0.0))
    except Exception:  # noqa: BLE001 - it is no subject here
        return None
    return len(counting.graphs)
