"""More kinds of classes of tensors, and programs with their objects: classes that extend classes,
that tell lists of themselves, whose parts may be missing, with properties, class methods and
operators of their own, and parameters of classes of their own."""

from __future__ import annotations

import copy
import dataclasses
import enum
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map
from wrapping import Pair, x

#: Programs by name, each with what makes its arguments, and how many graphs and breaks there are.
PROGRAMS: dict[str, tuple[Any, Any, tuple[int, int]]] = {}


def program(make, graphs=1, breaks=0):
    """Note a program."""

    def noted(function):
        PROGRAMS[function.__name__] = function, make, (graphs, breaks)
        return function

    return noted


class Tagged(Pair):
    """Tells more than the class that it extends."""

    @staticmethod
    def __new__(cls, a, b, tag=None, extra=0):
        return Pair.__new__(cls, a, b, tag)

    def __init__(self, a, b, tag=None, extra=0):
        super().__init__(a, b, tag)
        self.extra = extra

    def __tensor_flatten__(self):
        names, tag = super().__tensor_flatten__()
        return names, (tag, self.extra)

    @classmethod
    def __tensor_unflatten__(cls, inner, told, size, stride):
        return cls(inner["a"], inner["b"], *told)

    @property
    def both(self):
        return self.a + self.b + self.extra

    @classmethod
    def zeros(cls, *size):
        return cls(torch.zeros(size), torch.zeros(size), "zeros")

    @staticmethod
    def joined(one, other):
        return Tagged(one.a, other.b, (one.tag, other.tag), one.extra + other.extra)


class Blocks(torch.Tensor):
    """Tells lists and dicts, which its operations make longer."""

    @staticmethod
    def __new__(cls, content, sizes, names, shape):
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=content.dtype)

    def __init__(self, content, sizes, names, shape):
        self.content, self.sizes, self.rows = content, list(sizes), {"rows": list(names)}

    def __repr__(self):
        return "Blocks"

    def __tensor_flatten__(self):
        return ["content"], [self.sizes, self.rows, tuple(self.shape)]

    @classmethod
    def __tensor_unflatten__(cls, inner, told, size, stride):
        return cls(inner["content"], told[0], told[1]["rows"], told[2] if size is None else size)

    def total(self):
        return sum(self.sizes)

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        first = next(one for one in tree_leaves((args, kwargs)) if isinstance(one, cls))
        plain = tree_map(lambda one: one.content if isinstance(one, cls) else one, args)
        made, names = func(*plain, **(kwargs or {})), first.rows["rows"]
        if isinstance(made, torch.Tensor):
            made = cls(made, first.sizes, [*names, len(names)], made.shape)
        return return_and_correct_aliasing(func, args, kwargs or {}, made)


class Kind(enum.Enum):
    AS_IS = 1
    NEGATED = 2


@dataclasses.dataclass(frozen=True)
class Told:
    kind: Kind
    dtype: torch.dtype
    scale: float = 1.0


class Missing(torch.Tensor):
    """One of its parts may be missing; a table says which functions it has of its own."""

    functions: dict[Any, Any] = {}

    @staticmethod
    def __new__(cls, inner, bias=None, kind=Kind.AS_IS, scale=1.0):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner, bias=None, kind=Kind.AS_IS, scale=1.0):
        self.inner, self.bias, self.kind, self.scale = inner, bias, kind, scale

    def __repr__(self):
        return "Missing"

    def __tensor_flatten__(self):
        names = ["inner"] if self.bias is None else ["inner", "bias"]
        return names, Told(self.kind, self.dtype, self.scale)

    @staticmethod
    def __tensor_unflatten__(inner, told, size, stride):
        return Missing(inner["inner"], inner.get("bias"), told.kind, told.scale)

    def plain(self):
        made = self.inner * self.scale
        made = made if self.bias is None else made + self.bias
        return -made if self.kind is Kind.NEGATED else made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        own = cls.functions.get(func)
        if own is not None:
            return own(*args, **(kwargs or {}))
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        plain = tree_map(lambda one: one.plain() if isinstance(one, cls) else one, args)
        return func(*plain, **(kwargs or {}))


def _linear(y, weight, bias=None):
    made = functional.linear(y, weight.inner) * weight.scale
    return made if weight.bias is None else made + weight.bias.sum()


def _other_kind(one):
    kind = Kind.NEGATED if one.kind is Kind.AS_IS else Kind.AS_IS
    return Missing(one.inner, one.bias, kind, one.scale)


Missing.functions = {functional.linear: _linear, torch.square: _other_kind}


class Low(torch.Tensor):
    """Notes which classes an operation was given."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        made = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(made, Low):
            made.who = "low: " + ", ".join(sorted(one.__name__ for one in types))
        return made


class High(Low):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        made = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(made, Low):
            made.who = "high, " + getattr(made, "who", "nobody")
        return made


class Grouped(nn.Parameter):
    """A parameter that knows its group."""

    def __new__(cls, data, requires_grad=True, group="others"):
        made = torch.Tensor._make_subclass(cls, data, requires_grad)
        made.group = group
        return made

    def doubled(self):
        return self * 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Grouped(x(), group="special"), Grouped(x() * 2)

    def forward(self, y):
        return self.first.doubled() + self.second * y


class Mixed(nn.Module):
    """A parameter and a buffer that are made of others, beside plain ones."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(Tagged(torch.randn(4, 3), torch.randn(4, 3), "w"))
        self.register_buffer("offset", Pair(torch.ones(4), torch.zeros(4)))
        self.head = nn.Linear(4, 2)

    def forward(self, y):
        return self.head(y @ self.weight.a.t()) + self.weight.sum().a


class Around:
    """No tensor, but asked as one."""

    def __init__(self, tensor):
        self.tensor = tensor

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [one.tensor if isinstance(one, cls) else one for one in args]
        return Around(func(*plain, **(kwargs or {})))


def tagged(offset=0.0, tag="m", extra=2):
    return Tagged(x() + offset, x() * 2 + offset, tag, extra)


def leaf():
    return Tagged(x(), x() + 1, "p", 3).requires_grad_()


@program(lambda: (tagged(), tagged(1.0, "n", 5)))
def extended(t, u):
    made = Tagged.joined(t, u)
    kinds = type(t + 1) is Tagged, isinstance(t, Pair), (t + 1).extra
    told = super(Tagged, t).__tensor_flatten__()[1]
    return t.both, made, (made * 2).both, Tagged.zeros(2, 3) + t, kinds, told


@program(lambda: (tagged(), Pair(x(), x() + 3, "p")))
def several_classes(t, u):
    return t.both * 2, u * 2, (u + u).a + t.b, [type(one).__name__ for one in (t, u)]


@program(lambda: (Blocks(x(), [1, 1], ["r"], (2, 3)), 2))
def lists_that_are_told(t, factor):
    u = t * factor
    rows = t.rows["rows"] + u.rows["rows"]
    t.sizes.append(3)
    return u, u.sizes, u.rows, t.total(), rows, u.content + 1


@program(lambda: (Missing(x(), None), Missing(x() + 1, x(), Kind.NEGATED, 2.0), x() * 0 + 1))
def missing_parts(one, two, y):
    layers = functional.linear(y, one), functional.linear(y, two)
    return layers, torch.square(one).kind, torch.square(two).kind, one + two, two.plain()


@program(lambda: (tagged(),))
def written(t):
    t.add_(1)
    t.mul_(t)
    t[:, 1] = 7.0
    t[0].zero_()
    t.clamp_(max=5)
    t.copy_(t * 2)
    return t, t.sum(), t.a


@program(lambda: (tagged(),))
def viewed(t):
    flat = t.view(-1)
    flat[2:].mul_(3)
    turned = t.t()
    turned.add_(1)
    left, right = t.split([1, 2], 1)
    right.neg_()
    return t, flat, turned, left, right, flat.is_contiguous(), turned.stride()


@program(lambda: (lambda t: (t, t.view(-1)))(tagged()))
def given_with_a_view(t, flat):
    flat.add_(1)
    return t * 2, flat * 3


@program(lambda: (leaf(), x()))
def differentiated(t, y):
    loss = ((t * y).relu() ** 2).sum()
    loss.backward()
    return loss.detach(), t.grad, t.grad.both, t.is_leaf


@program(lambda: ([tagged(v).requires_grad_() for v in (0.0, 1.0)],))
def stepped(parameters):
    loss = sum((one * one).sum() for one in parameters)
    gradients = torch.autograd.grad(loss, parameters)
    with torch.no_grad():
        made = [one - 0.1 * g for one, g in zip(parameters, gradients, strict=True)]
        for one, gradient in zip(parameters, gradients, strict=True):
            one.add_(gradient, alpha=-0.1)
    return made, gradients


@program(lambda: (leaf(),))
def detached(t):
    one, two, three = t.detach(), t.clone(), t.data
    flags = [each.requires_grad for each in (one, two, three)]
    return one, two.detach(), flags, one.is_leaf, type(three) is Tagged, one.extra


@program(lambda: (tagged(),), graphs=1, breaks=2)
def copied(t):
    one, two = copy.deepcopy(t), copy.copy(t)
    one.add_(1)
    return t, one, type(one), one.extra, two


@program(lambda: (tagged(),))
def converted(t):
    same = t.float() is t, t.to("cpu") is t, t.contiguous() is t
    made = t.double(), torch.zeros_like(t), t.new_zeros(2, 3), torch.ones_like(t) * t
    return same, made, t.to(torch.float64).dtype, t.half().a.dtype, t.type_as(t)


@program(lambda: (tagged(), [tagged(1.0), tagged(2.0)], {"k": tagged(3.0)}))
def kept(t, several, named):
    several.append(t * 2)
    named["n"] = named.pop("k") + several[0]
    return torch.stack(several), named, [one for one in several if one.tag == "m"]


@program(lambda: (Mixed(), x()))
def in_a_module(module, y):
    state = module.state_dict()
    kinds = [type(one).__name__ for one in module.parameters()]
    is_parameter = isinstance(module.weight, nn.Parameter), type(state["weight"]) is Tagged
    return module(y).detach(), list(state), state["weight"], is_parameter, kinds, module.offset * 2


@program(lambda: (Mixed(), Mixed()))
def loaded(module, other):
    with torch.no_grad():
        for one in other.parameters():
            one.add_(1)
    module.load_state_dict(other.state_dict())
    return module.weight.detach(), other.weight.detach(), module.head.weight.detach()


@program(lambda: (tagged(), x()), graphs=1, breaks=0)
def parameters_made(t, y):
    one, two = nn.Parameter(t), nn.Parameter(t * 2, requires_grad=False)
    flags = [(isinstance(p, nn.Parameter), p.requires_grad, type(p)) for p in (one, two)]
    return (one * y).detach(), flags, two


@program(lambda: (tagged(), tagged(1.0)))
def in_lists(t, u):
    several = [t, u]
    torch._foreach_add_(several, 1.0)
    return torch._foreach_mul(several, 2.0), t, u


@program(lambda: (tagged(),))
def in_modes(t):
    with torch.no_grad():
        one = t * 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        two = t @ t.t()
    return one, two, two.dtype


@program(lambda: (x().as_subclass(Low), x().as_subclass(High), x()))
def priorities(low, high, y):
    both = low + high, high + low, y + low, low - y, 2 - high, y @ high.t()
    return both, (low + high).who, high[0].who, torch.where(y > 1, low, high), 2**low


@program(lambda: (x(), x() + 2))
def becoming(a, b):
    made = a.as_subclass(Low) + (b * 2).as_subclass(High)
    plain = made.as_subclass(torch.Tensor)
    return made, made.who, plain, type(plain) is torch.Tensor, torch.Tensor._make_subclass(Low, a)


@program(lambda: (Layer(), x()))
def parameters_of_a_class(module, y):
    made = module(y)
    made.sum().backward()
    with torch.no_grad():
        for one in module.parameters():
            one.sub_(one.grad * 0.1)
    first = module.first
    module.second.grad = first.grad * 2
    return made.detach(), [one.group for one in module.parameters()], first.grad, type(first)


@program(lambda: (x().as_subclass(High), x() + 1), graphs=2, breaks=2)
def gradients_that_are_asked_for(t, gradient):
    t.grad = gradient * 2
    return t.grad + 1


@program(lambda: (Layer(), x()), graphs=1, breaks=2)
def frozen(module, y):
    module.first.requires_grad_(False)
    module.second.requires_grad = False
    return module(y), module.first.requires_grad


@program(lambda: (Around(x()), x()))
def no_tensors(one, y):
    made = torch.add(one, y)
    return made.tensor, torch.mul(y, made).tensor, torch.sum(made).tensor


_peer = torch.compile(lambda t, y: (t * y).relu(), backend="eager")


@program(lambda: (tagged(), x()), graphs=2, breaks=1)
def calling_the_peer(t, y):
    return _peer(t + 1, y) * 2
