"""``__torch_function__``: classes of tensors, other objects, and modes that override torch."""

from __future__ import annotations

import pytest
import torch
from comparing import described, same, same_when_broken, seen
from torch.overrides import TorchFunctionMode

import framejit
from checking import CountingBackend


def x():
    return torch.arange(6.0).reshape(2, 3)


class Plain(torch.Tensor):
    """Only a name."""

    def doubled(self):
        return self * 2

    @property
    def rows(self):
        return self.shape[0]


class Quiet(torch.Tensor):
    """Results are plain tensors."""

    __torch_function__ = torch._C._disabled_torch_function_impl


class Noting(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append((cls.__name__, func.__name__, [t.__name__ for t in types], len(args), kwargs))
        return super().__torch_function__(func, types, args, kwargs or {})


class Turning(Noting):
    """Adds by multiplying."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is torch.add or func is torch.Tensor.add:
            func = torch.mul
        return super().__torch_function__(func, types, args, kwargs)


class Tagged(torch.Tensor):
    """Carries a tag from operands to results."""

    @staticmethod
    def __new__(cls, data, tag=None):
        made = torch.Tensor._make_subclass(cls, data)
        made.tag = tag
        return made

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            result = result.as_subclass(cls)
            result.tag = next(a.tag for a in args if isinstance(a, cls))
        return result


class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        seen.append(func.__name__)
        return NotImplemented


HANDLED = {}


def implements(function):
    def register(handler):
        HANDLED[function] = handler
        return handler

    return register


class Quantity:
    """No tensor, but torch's functions take it."""

    def __init__(self, value, unit):
        self.value, self.unit = value, unit

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED:
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))

    def __add__(self, other):
        return torch.add(self, other)


@implements(torch.add)
def _add(one, other):
    value = other.value if isinstance(other, Quantity) else other
    one_value, unit = (one.value, one.unit) if isinstance(one, Quantity) else (one, other.unit)
    return Quantity(torch.add(one_value, value), unit)


@implements(torch.nn.functional.relu)
def _relu(one, inplace=False):
    return Quantity(torch.nn.functional.relu(one.value), one.unit)


@implements(torch.cat)
def _cat(several, dim=0):
    return Quantity(torch.cat([one.value for one in several], dim), several[0].unit)


class Counting(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append((func.__name__, [t.__name__ for t in types], len(args), kwargs))
        return func(*args, **(kwargs or {}))


class AddsByMultiplying(TorchFunctionMode):
    def __init__(self, factor=1):
        self.factor = factor

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in (torch.add, torch.Tensor.add):
            return torch.mul(*args) * self.factor
        return func(*args, **(kwargs or {}))


# -- classes of tensors ----------------------------------------------------------------------------


def operators(a, b):
    return a + b, b + a, a * 2, 2 - a, a @ b.t(), -a, a > b, a == b, a**2, 3 / (a + 1)


def functions(a, b):
    return torch.add(a, b), torch.cat([b, a]), torch.nn.functional.relu(a), torch.where(a > 1, a, b)


def methods(a, b):
    return a.sin().sum(dim=0), b.add(a), a.view(3, 2).t(), a.split(1), a.max(dim=0), a.unbind()


def attributes(a, b):
    return a.shape, a.dtype, a.T, a.ndim, a.requires_grad, a.device, a.dim(), a.size(0), a.mT.shape


def indexing(a, b):
    parts = [row + 1 for row in a]
    first, second = a
    return a[0], a[:, 1:], a[a > 2].shape if False else a[None], len(a), parts, first, second


def in_place(a, b):
    a.add_(1)
    a += b
    a[0] = 7
    b.mul_(a)
    return a


def factories(a, b):
    return torch.zeros_like(a), a.new_ones(2), torch.empty_like(a).shape, a.to(torch.float64)


PROGRAMS = [operators, functions, methods, attributes, indexing, in_place, factories]


@pytest.mark.parametrize("cls", [Plain, Quiet, Noting, Turning, Tagged], ids=lambda c: c.__name__)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_operations_on_tensors_of_a_class(program, cls):
    def make():
        one = x().as_subclass(cls)
        if cls is Tagged:
            one.tag = "m"
        return one, x() + 2

    same(program, make)


def own_methods(a):
    return a.doubled(), a.rows, isinstance(a, Plain), type(a), torch.is_tensor(a)


def as_another_class(a):
    one = a.as_subclass(Plain)
    plain = one.as_subclass(torch.Tensor)
    return one + 1, plain + 1, type(one), one is a, plain is one, a.as_subclass(Quiet) * 2


def kept_intermediate(a):
    b = a + 1
    c = b.as_subclass(Plain)
    c.mul_(2)
    return b, c, b is c


def subclass_first(a, b):
    return torch.add(b, a), b + a, a + b, torch.cat([b, a])


def without_overrides(a):
    with torch._C.DisableTorchFunctionSubclass():
        one = torch.add(a, 1)
        shape = a.shape
    two = torch.add(one, a)
    with torch._C.DisableTorchFunction():
        three = a * 2
    return one, shape, two, three


def super_calls(a):
    return Noting.__torch_function__(torch.sin, (Noting,), (a,)), a.cos()


def refused(a):
    return torch.add(a, 1)


def refused_operator(a):
    return a + 1


def refused_attribute(a):
    return a.shape


def accepted_by_the_other(a, b):
    return torch.add(a, b), a + b


@pytest.mark.parametrize(
    ("program", "classes"),
    [
        (own_methods, [Plain]), (as_another_class, [torch.Tensor]), (as_another_class, [Noting]),
        (kept_intermediate, [torch.Tensor]), (subclass_first, [Turning, Noting]),
        (subclass_first, [Noting, Plain]), (without_overrides, [Noting]), (super_calls, [Noting]),
        (refused, [Refusing]), (refused_operator, [Refusing]), (refused_attribute, [Refusing]),
        (accepted_by_the_other, [Refusing, Plain]),
    ],
    ids=lambda p: p.__name__ if callable(p) else "-".join(c.__name__ for c in p),
)  # fmt: skip
def test_rules_of_dispatch(program, classes):
    fails = program.__name__.startswith(("refused", "accepted")) or classes == [Noting, Plain]
    graphs = 0 if fails else 1
    same(program, lambda: [(x() + i).as_subclass(c) for i, c in enumerate(classes)], graphs)


# -- attributes ------------------------------------------------------------------------------------


def tags(a):
    b = a.sin() + 1
    a.seen = 3
    b.more = [b.tag, a.tag]
    del a.tag
    return b, b.tag, hasattr(a, "tag"), vars(b)["tag"]


def makes_tagged(a):
    b = Tagged(a, "k")
    c = b * 2
    return b, c, c.tag, Tagged(a + 1, tag=[c])


def test_attributes_of_instances():
    def tagged():
        one = Tagged(x(), "m")
        return (one,)

    same(tags, tagged)
    same(makes_tagged, lambda: (x(),))


def test_attributes_are_guarded():
    def scaled(a):
        return a * a.factor

    def make(factor):
        one = x().as_subclass(Plain)
        one.factor = factor
        return one

    graphs = []
    compiled = framejit.compile(scaled, backend=lambda m, _: graphs.append(m) or m, dynamic=False)
    for factor in (2, 2, 5, 2):
        assert torch.equal(compiled(make(factor)), scaled(make(factor)))
    assert len(graphs) == 2


def test_classes_and_their_overrides_are_guarded():
    class Changing(torch.Tensor):
        pass

    def program(a):
        return torch.add(a, 2)

    compiled = framejit.compile(program, backend="eager", fullgraph=True)
    assert type(compiled(x())) is torch.Tensor
    assert type(compiled(x().as_subclass(Plain))) is Plain
    assert type(compiled(x().as_subclass(Changing))) is Changing

    @classmethod
    def multiply(cls, func, types, args=(), kwargs=None):
        return "multiplied"

    Changing.__torch_function__ = multiply
    assert compiled(x().as_subclass(Changing)) == "multiplied"
    assert type(compiled(x().as_subclass(Plain))) is Plain


# -- other objects ---------------------------------------------------------------------------------


def quantities(a):
    one = Quantity(a, "m")
    two = torch.add(one, 1) + a
    three = torch.nn.functional.relu(two)
    return torch.cat([three, one]), a + two


def quantity_argument(one):
    return torch.add(one, one), torch.nn.functional.relu(one)


def not_handled(one):
    try:
        torch.sin(one)
    except TypeError as error:
        return str(error)


def test_objects_that_are_no_tensors():
    same(quantities, lambda: (x() - 2,))
    same(quantity_argument, lambda: (Quantity(x(), "s"),))
    same(not_handled, lambda: (Quantity(x(), "s"),), graphs=0)


# -- modes -----------------------------------------------------------------------------------------


def counted(a):
    with Counting():
        b = a + 1
        c = torch.sin(b).cos()
        d = c[0].sum(dim=0)
        n = b.shape, len(b), torch.zeros(2, device="cpu")
    return b * 2, d, n


def nested_modes(a):
    with AddsByMultiplying(3):
        with Counting():
            b = torch.add(a, 2)
        c = a + 4
    return b, c, a + 4


def mode_and_class(a):
    with Counting(), AddsByMultiplying():
        return torch.add(a, 5), a.shape


def mode_without_classes(a):
    with Counting():
        with torch._C.DisableTorchFunctionSubclass():
            b = torch.add(a, 1)
        with torch._C.DisableTorchFunction():
            c = torch.add(a, 1)
    return b, c


def mode_left_by_an_error(a):
    try:
        with Counting():
            a + 1
            raise ValueError(1)
    except ValueError:
        return a * 2, torch._C._len_torch_function_stack()


def mode_of_a_function(a):
    return under_a_mode(a), a + 3


def under_a_mode(a):
    mode = AddsByMultiplying()
    mode.__enter__()
    try:
        return torch.nn.functional.relu(a + 3)
    finally:
        mode.__exit__(None, None, None)


MODES = [counted, nested_modes, mode_and_class, mode_without_classes, mode_left_by_an_error,
         mode_of_a_function]  # fmt: skip


@pytest.mark.parametrize("cls", [torch.Tensor, Noting], ids=lambda c: c.__name__)
@pytest.mark.parametrize("program", MODES, ids=lambda p: p.__name__)
def test_modes(program, cls):
    same(program, lambda: (x().as_subclass(cls),))


def breaks_in_a_mode(a):
    with Counting():
        b = a + 1
        print(end="")
        c = b * 2
    return c + 1


def breaks_in_an_override(a):
    return a.sin().cos()


class Printing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print(end="")
        seen.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def test_breaks_in_modes_and_overrides():
    same(breaks_in_a_mode, lambda: (x(),), graphs=1, fullgraph=False)
    same(breaks_in_an_override, lambda: (x().as_subclass(Printing),), graphs=2, fullgraph=False)


BROKEN = [
    (operators, [Plain, torch.Tensor]), (in_place, [Noting, torch.Tensor]), (counted, [Noting]),
    (subclass_first, [Turning, Noting]), (without_overrides, [Noting]), (nested_modes, [Plain]),
    (mode_left_by_an_error, [Plain]), (quantities, [torch.Tensor]), (makes_tagged, [torch.Tensor]),
]  # fmt: skip


@pytest.mark.parametrize(("program", "classes"), BROKEN, ids=lambda p: getattr(p, "__name__", ""))
def test_a_break_anywhere_changes_nothing(program, classes):
    def make():
        return [(x() + i).as_subclass(c) for i, c in enumerate(classes)]

    assert same_when_broken(program, make) > 9


# -- training and backends -------------------------------------------------------------------------


class Layer(torch.nn.Module):
    def __init__(self, cls):
        super().__init__()
        torch.manual_seed(0)
        self.weight = torch.randn(4, 3).as_subclass(cls).requires_grad_()
        self.bias = torch.nn.Parameter(torch.randn(4))

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias).relu().sum()


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("cls", [Plain, Quiet])
def test_gradients_reach_parameters_of_a_class(cls, backend):
    expected, module = Layer(cls), Layer(cls)
    compiled = framejit.compile(module, backend=backend, fullgraph=True)
    assert type(module.weight) is cls
    for _ in range(2):
        one, two = expected(x()), compiled(x())
        assert type(two) is type(one)
        torch.testing.assert_close(two.as_subclass(torch.Tensor), one.as_subclass(torch.Tensor))
        one.backward()
        two.backward()
    for name in ("weight", "bias"):
        parameter, got = getattr(expected, name), getattr(module, name)
        assert type(got) is type(parameter)
        assert type(got.grad) is type(parameter.grad)
        with torch._C.DisableTorchFunction():
            torch.testing.assert_close(got.grad, parameter.grad)


def test_sizes_vary():
    def program(a):
        return (a * 2).sum(dim=0) + a.shape[0]

    graphs = []
    compiled = framejit.compile(program, backend=lambda m, _: graphs.append(m) or m, fullgraph=True)
    for size in (3, 4, 5, 6):
        a = torch.ones(size, 2).as_subclass(Plain)
        got = compiled(a)
        assert type(got) is Plain
        assert torch.equal(got, program(a))
    assert len(graphs) == 2


def made_of_a_parameter(w):
    y = (w * 2).as_subclass(Plain)
    z = y + 1
    return y, z, z.as_subclass(torch.Tensor), (z * y).sum()


def made_of_a_leaf(w):
    y = w.as_subclass(Plain)
    plain = y.as_subclass(torch.Tensor)
    return y, plain, y[0], (y * plain).sum() + y[0].sum()


def differentiated_after_a_break(w):
    *results, loss = made_of_a_leaf(w)
    print("break")
    return torch.autograd.grad(loss, results, allow_unused=True)


@pytest.mark.parametrize("program", [made_of_a_parameter, made_of_a_leaf])
def test_gradients_come_to_results_of_a_class(program):
    def gradients(function):
        *results, loss = function(x().requires_grad_())
        found = torch.autograd.grad(loss, results, allow_unused=True)
        return [described(one) for one in found], [type(one.grad_fn) for one in results]

    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    assert gradients(compiled) == gradients(compiled) == gradients(program)
    assert len(backend.graphs) == 1


def test_gradients_come_to_results_of_a_class_after_a_break():
    same(differentiated_after_a_break, lambda: [x().requires_grad_()], 1, fullgraph=False)


class SaysNames(torch.Tensor):
    said = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        SaysNames.said.append((str(func), f"{func!r}"))
        return super().__torch_function__(func, types, args, kwargs or {})


def test_texts_of_operations_are_their_names():
    op = torch.ops.aten.add.Tensor

    def program(a, op):
        SaysNames.said.clear()
        b = torch.Tensor.add(a, 1).mul(2)
        texts = str(op), repr(op), f"{torch.ops.aten.add}", repr(torch.Tensor.shape)
        return b, texts, list(SaysNames.said)

    same(program, lambda: [x().as_subclass(SaysNames), op], ops=2)
