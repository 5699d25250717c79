"""`framejit.region` and ``torch.compiler.nested_compile_region``: calls that users say repeat."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framejit
from repeating import Regions


def small(x, weight):
    return F.gelu(x @ weight)


def of_small(small):
    """A function that calls it twice, which is too little for a region that nobody marked."""

    def f(x, first, second):
        return small(small(x, first) * 2, second).sum()

    return f


def compared(f, *tensors):
    """The calls of each subgraph, after a comparison of results and gradients."""
    regions = Regions()
    results = []
    for run in (f, framejit.compile(f, backend=regions, fullgraph=True)):
        leaves = [t.clone().requires_grad_() for t in tensors]
        out = run(*leaves)
        results.append([out, *torch.autograd.grad(out, leaves)])
    torch.testing.assert_close(*results)
    return regions.calls


def matrices(count):
    torch.manual_seed(0)
    return [torch.randn(4, 4) for _ in range(count)]


def fresh_small():
    """A copy, as marks stay."""
    return type(small)(small.__code__, small.__globals__)


def test_two_calls_of_two_operations_are_a_region_where_the_user_says_so():
    assert compared(of_small(fresh_small()), *matrices(3)) == [{}]
    assert compared(of_small(framejit.region(fresh_small())), *matrices(3)) == [{"region_small": 2}]


@pytest.mark.parametrize("options", [{}, {"max_reuse_entries": 2}])
def test_the_marks_of_torch_mean_the_same(options):
    marked = torch.compiler.nested_compile_region(fresh_small(), **options)
    assert compared(of_small(marked), *matrices(3)) == [{"region_small": 2}]


def test_install_replaces_the_mark_of_torch():
    with framejit.install():
        given = fresh_small()
        marked = torch.compiler.nested_compile_region(max_reuse_entries=4)(given)
        assert marked is given
    assert compared(of_small(marked), *matrices(3)) == [{"region_small": 2}]


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))

    def forward(self, x):
        return torch.sin(x) * self.weight


def scales(mark):
    class Marked(Scale):
        def forward(self, x):
            return super().forward(x)

    mark(Marked)
    return nn.Sequential(Marked(), Marked(), Marked())


def mark_by_torch(cls):
    cls.forward = torch.compiler.nested_compile_region(cls.forward)


@pytest.mark.parametrize(
    "mark",
    [
        framejit.region,
        lambda cls: framejit.region(cls.forward),
        lambda cls: framejit.region(cls()),
        lambda cls: framejit.region(cls().forward),
        mark_by_torch,
    ],
    ids=["class", "function", "module", "method", "torch"],
)
def test_modules_are_marked_by_what_they_compute(mark):
    model = scales(mark)
    regions = Regions()
    x = torch.randn(2, 4, requires_grad=True)
    compiled = framejit.compile(model, backend=regions, fullgraph=True)
    torch.testing.assert_close(compiled(x), model(x))
    assert list(regions.calls[0].values()) == [3]


def test_a_marked_function_in_a_layer_is_part_of_the_larger_region():
    norm = framejit.region(fresh_small())

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.other = (nn.Parameter(torch.randn(4, 4)) for _ in range(2))

        def forward(self, x):
            x = norm(x, self.weight)
            for _ in range(4):
                x = torch.tanh(x * 2 + 1)
            return norm(x, self.other)

    model = nn.Sequential(*[Layer() for _ in range(6)])
    regions = Regions()
    x = torch.randn(2, 4, requires_grad=True)
    compiled = framejit.compile(model, backend=regions, fullgraph=True)
    torch.testing.assert_close(compiled(x), model(x))
    assert max(regions.calls[0].values()) == 6


def test_calls_that_differ_stay_apart():
    @framejit.region
    def power(x, exponent):
        return (x * 2) ** exponent

    def f(x):
        return sum(power(x, i) for i in range(3)) + sum(power(x, 2) for _ in range(3))

    regions = Regions()
    x = torch.randn(4, requires_grad=True)
    torch.testing.assert_close(framejit.compile(f, backend=regions)(x), f(x))
    assert list(regions.calls[0].values()) == [4]


def test_a_region_that_writes_to_its_argument():
    @framejit.region
    def bump(x):
        x.add_(1)
        return x * 2

    def f(x):
        y = x.clone()
        return bump(y) + bump(y)

    regions = Regions()
    torch.testing.assert_close(
        framejit.compile(f, backend=regions)(torch.ones(3)), f(torch.ones(3))
    )
    assert regions.calls == [{"region_bump": 2}]


def test_a_mark_changes_nothing_of_an_eager_call():
    given = fresh_small()
    assert framejit.region(given) is given
    assert framejit.region()(given) is given
    torch.testing.assert_close(given(*matrices(2)), small(*matrices(2)))


@pytest.mark.parametrize("wrong", [3, "forward", torch.sin, int, object()])
def test_what_cannot_be_marked_is_refused(wrong):
    with pytest.raises(TypeError, match=r"fn must be a Python function.*region\(fn\) \[FJ0210\]"):
        framejit.region(wrong)
