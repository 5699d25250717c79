"""``torch.func`` and ``torch.vmap``: captured as eager mode runs them, operation by operation."""

from __future__ import annotations

import contextlib
import functools
from collections import OrderedDict, defaultdict

import pytest
import torch
from torch import nn
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    vjp,
    vmap,
)
from torch.utils.checkpoint import checkpoint

import framejit.api
from checking import CountingBackend, check

torch.manual_seed(0)
X = torch.randn(4, 3)
W = torch.randn(3, 2)
LINEAR = nn.Linear(3, 2)
PARAMETERS = {name: p.detach() for name, p in LINEAR.named_parameters()}
LOG = []


def loss(parameters, row):
    return functional_call(LINEAR, parameters, (row,)).pow(2).sum()


def vmap_of_a_function(x):
    return vmap(lambda row: row @ W)(x)


def vmap_of_vmap(x):
    return vmap(vmap(lambda a, b: a * b + 1), in_dims=(0, None))(x, x[0])


def dimensions_in_and_out(x):
    return vmap(lambda a, b: (a + b, a.sum()), in_dims=(1, -1), out_dims=(1, 0))(x, x * 2)


def dicts_and_lists(x):
    def f(parts, scale):
        return {"sum": parts["a"] + parts["b"][0], "rest": [parts["a"] * scale]}

    return vmap(f, in_dims=({"a": 0, "b": 0}, None))({"a": x, "b": [x * 2]}, 3.0)


def one_result_twice_and_the_whole_tensor(x):
    def f(row):
        y = row * 2
        return y, y, x.sum() + row

    return vmap(f)(x)


def per_sample_gradients(x):
    return vmap(grad(loss), in_dims=(None, 0))(PARAMETERS, x)


def value_beside_the_gradient(x):
    def f(t, scale):
        y = (t**3).sum() * scale
        return y, (t * 2, {"y": y})

    first, beside = grad(f, has_aux=True)(x, 2.0)
    second, (value, more) = grad_and_value(f, has_aux=True)(x, scale=3.0)
    return first, beside, second, value, more


def gradients_of_several_arguments(x):
    return grad(lambda a, b: (a["x"] * b).sum(), argnums=(0, 1))({"x": x}, x + 1)


def argument_that_is_not_used(x):
    return grad(lambda a, b: (b**2).sum() + 0 * a.sum(), argnums=(0, 1))(x, x + 1)


def without_gradients_outside(x):
    with torch.no_grad():
        y = grad(lambda t: (t**2).sum())(x)
        with torch.no_grad():
            return y, torch.is_grad_enabled()


def no_grad_inside(x):
    def f(t):
        with torch.no_grad():
            c = t**2
        return (t * 3 - c).sum()

    return grad(f)(x), torch.is_grad_enabled()


def second_derivative(x):
    return grad(lambda t: grad(lambda s: (s**4).sum())(t).sum())(x)


def jacobian_of_a_function(x):
    return jacrev(lambda t: t.sin() * 2)(x[0]), jacrev(lambda a, b: a @ b, argnums=(0, 1))(x[0], W)


def jacobian_per_row(x):
    return vmap(jacrev(lambda t: t.tanh() @ W))(x)


def effects_inside(x):
    def f(row):
        LOG.append(tuple(row.shape))
        return row * len(LOG)

    LOG.clear()
    return vmap(f)(x), list(LOG)


def written_inside(x):
    def f(row):
        y = torch.zeros_like(row)
        y.add_(row)
        y[0] = 5
        return y

    return vmap(f)(x)


def random_numbers(x):
    torch.manual_seed(3)
    return vmap(lambda row: row + torch.rand(3), randomness="different")(x), torch.rand(1)


def a_print_inside(x):
    def f(row):
        print("inside")
        return row * 2

    return vmap(f)(x + 1) - 1


def a_tensor_that_stays_inside(x):
    kept = []

    def f(row):
        kept.append(row * 2)
        return row + 1

    y = vmap(f)(x)
    return y, len(kept)


def empty_batch(x):
    return vmap(lambda row: row + 1)(x[:0]).shape


def an_error_inside(x):
    try:
        return vmap(lambda row: row @ X)(x)
    except RuntimeError:
        return x + 1


def an_error_of_sizes(x):
    try:
        return vmap(lambda a, b: a + b)(x, x[1:])
    except ValueError as error:
        return str(error)


def views_inside(x):
    y = x.clone()
    vmap(lambda row: row[:2])(y).add_(1)
    return y, vmap(lambda row: row.unsqueeze(0), out_dims=1)(x).stride()


def vmap_inside_of_jvp(x):
    return jvp(lambda v: vmap(lambda row: row.sin() * W[:, 0])(v), (x,), (x,))


def jvp_inside_of_jvp(x):
    return jvp(lambda v: jvp(torch.sin, (v,), (v * 2,))[1], (x,), (x,))


def jvp_inside_of_vmap_and_grad(x):
    rows = vmap(lambda row: jvp(torch.sin, (row,), (row,))[1])(x)
    return rows, grad(lambda v: jvp(torch.sin, (v,), (v,))[1].sum())(x)


def hessian_inside_of_vmap(x):
    return vmap(hessian(lambda row: (row.sin() * row * W[:, 1]).sum()))(x + 1) * 2


def vmap_inside_of_hessian_and_vjp(x):
    def total(v):
        return vmap(torch.sin)(v).sum()

    value, pull = vjp(lambda v: vmap(grad(lambda row: row.pow(3).sum()))(v), x)
    return hessian(total)(x[0]), value, pull(x)[0]


def closures_written_inside(x):
    seen = []

    def f(v):
        seen.append(v.shape)
        return (v * x).sum()

    return grad(f)(x), jacfwd(f)(x), seen


def effects_under_vjp(x):
    seen = []
    value, pull = vjp(lambda v: (seen.append(1), v.sin())[1], x)
    print("once", len(seen))
    return value, seen


def changed_before_it_is_pulled_back(x):
    scale = [2]
    value, pull = vjp(lambda v: (v * scale[0]).sum(), x)
    scale[0] = 5
    return value, pull(torch.tensor(3.0)), scale


def random_under_vjp(x):
    torch.manual_seed(3)
    value, pull = vjp(lambda v: torch.nn.functional.dropout(v * 2), x)
    return value, pull(x), torch.rand(2)


def structures_under_vjp(x):
    value, pull = vjp(lambda a, b: [a * b["w"], (a.sum(),)], x, {"w": x + 1})
    aux = vjp(lambda v: (v.cos(), {"z": v * 2}), x, has_aux=True)
    return value, pull(value), pull([x, (x.sum(),)]), aux[0], aux[1](x), aux[2]


def rows_pulled_back(x):
    value, pull = vjp(torch.sin, x)
    return value, vmap(pull)(torch.stack([x, x * 2])), grad(lambda v: pull(v)[0].sum())(x)


def derivatives_of_what_was_pulled_back(x):
    y = x.clone().requires_grad_()
    with torch.no_grad():
        quiet = vjp(torch.sin, y)[1](x)[0]
    (loud,) = vjp(torch.sin, y)[1](x)
    return quiet.requires_grad, torch.autograd.grad(loud.sum(), y)


def the_pull_back_itself(x):
    pull = vjp(torch.sin, x)[1]
    return pull(x * 2), callable(pull), pull.__name__


def three_deep(x):
    def rows(v):
        return vmap(grad(lambda row: row.pow(3).sum()))(v)

    columns = vmap(lambda row: vmap(grad(torch.sin))(row))(x)
    return grad(lambda v: rows(v).sum())(x), jacrev(lambda v: rows(v).sum(0))(x), columns


#: (program, graphs, operations captured)
PROGRAMS = [
    (vmap_of_a_function, 1, 6), (vmap_of_vmap, 1, 13), (dimensions_in_and_out, 1, 10),
    (dicts_and_lists, 1, 10), (one_result_twice_and_the_whole_tensor, 1, 10),
    (per_sample_gradients, 1, 27), (value_beside_the_gradient, 1, 35),
    (gradients_of_several_arguments, 1, 20), (argument_that_is_not_used, 1, 23),
    (without_gradients_outside, 1, 17), (no_grad_inside, 1, 17), (second_derivative, 1, 25),
    (jacobian_of_a_function, 1, 47), (jacobian_per_row, 1, 24), (effects_inside, 1, 6),
    (written_inside, 1, 8), (random_numbers, 1, 8), (a_print_inside, 2, 2),
    (a_tensor_that_stays_inside, 1, 7), (empty_batch, 1, 6), (an_error_inside, 1, 1),
    (an_error_of_sizes, 1, 1), (views_inside, 1, 12), (vmap_inside_of_jvp, 1, 4),
    (jvp_inside_of_jvp, 1, 4), (jvp_inside_of_vmap_and_grad, 1, 23), (hessian_inside_of_vmap, 2, 2),
    (vmap_inside_of_hessian_and_vjp, 1, 32), (closures_written_inside, 1, 15),
    (effects_under_vjp, 1, 10), (changed_before_it_is_pulled_back, 1, 14),
    (random_under_vjp, 1, 14), (structures_under_vjp, 1, 38), (rows_pulled_back, 1, 33),
    (derivatives_of_what_was_pulled_back, 2, 26), (the_pull_back_itself, 1, 12),
    (three_deep, 1, 85),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", [p[0] for p in (*PROGRAMS[:9], *PROGRAMS[11:14])])
def test_gradients(function, backend):
    compiled = framejit.api.compile(function, backend=backend)
    found = []
    for run in (function, compiled, compiled):
        x = X.clone().requires_grad_()
        sum(t.sin().sum() for t in leaves(run(x))).backward()
        found.append(x.grad)
    for got in found[1:]:
        torch.testing.assert_close(got, found[0])


def leaves(result):
    if isinstance(result, torch.Tensor):
        return [result] if result.requires_grad else []
    if not isinstance(result, (dict, list, tuple)):
        return []
    parts = result.values() if isinstance(result, dict) else result
    return [leaf for part in parts for leaf in leaves(part)]


def test_a_break_in_what_is_one_node():
    def note(x):
        LOG.append(1)
        return x * 2

    LOG.clear()
    check(lambda x: torch.func.jacfwd(note)(x[0]) + 1, X, graphs=2, ops=2)
    assert len(LOG) == 4


def _squares(x):
    return (x.sin() * x).sum()


def _rows(x):
    y = x * 2
    y.add_(1)
    return y.sin()


MADE = {  # functions that torch made outside of captured code
    "grad": (grad(_squares), X[0]),
    "grad_and_value": (grad_and_value(_squares), X[0]),
    "grad of argnums": (grad(lambda a, b: (a * b).sum(), argnums=(0, 1)), X[0], X[1]),
    "vmap": (vmap(_rows), X),
    "vmap of grad": (vmap(grad(_squares)), X),
    "jacrev": (jacrev(_rows), X[0]),
    "jacfwd": (jacfwd(torch.tanh), X[0]),
    "hessian": (hessian(_squares), X[0]),
    "functionalize": (torch.func.functionalize(_rows), X),
    "functional_call": (functools.partial(functional_call, LINEAR), PARAMETERS, X),
    "checkpoint": (functools.partial(checkpoint, torch.tanh, use_reentrant=False), X),
    "checkpoint with gradients": (
        functools.partial(checkpoint, torch.tanh, use_reentrant=False), X.clone().requires_grad_(),
    ),
    "record_function": (torch.profiler.record_function("label")(_rows), X),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_what_torch_made_of_a_function_is_compiled(name):
    function, *args = MADE[name]
    check(function, *args, graphs=1, fullgraph=True)
    backend = CountingBackend()
    called_inside = framejit.api.compile(lambda *a: function(*a), backend=backend, fullgraph=True)
    torch.testing.assert_close(called_inside(*args), function(*args))
    assert len(backend.graphs) == 1


def test_functionalize_that_copies_views():
    made = torch.func.functionalize(lambda x: x.view(-1) + 1, remove="mutations_and_views")
    check(lambda x: made(x * 2) + 1, X, graphs=2, ops=2)


def test_a_break_under_record_function():
    @torch.profiler.record_function("label")
    def function(x):
        y = x + 1
        print("between")
        return y * 2

    check(function, X, graphs=2, ops=2)


def test_sizes_that_vary():
    backend = CountingBackend()
    compiled = framejit.api.compile(vmap_of_a_function, backend=backend)
    for rows in (4, 5, 6, 7):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(compiled(x), vmap_of_a_function(x))
    assert len(backend.graphs) == 2


def test_an_error_leaves_no_transform_behind():
    def program(x, index):
        return vmap(lambda row: row[index])(x)

    compiled = framejit.api.compile(program, backend="eager")
    torch.testing.assert_close(compiled(X, torch.tensor([0, 1])), X[:, :2])
    with pytest.raises(IndexError):
        compiled(X, torch.tensor([0, 7]))
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0
    torch.testing.assert_close(compiled(X, torch.tensor([2, 1])), X[:, [2, 1]])


@pytest.mark.parametrize("made", [
    hessian(lambda row: (row.sin() * row).sum()), torch.func.jacfwd(torch.func.jacrev(torch.sin)),
])  # fmt: skip
def test_what_cannot_be_imagined_leaves_no_transform_behind(made):
    check(lambda x: vmap(made)(x + 1) * 2, X, graphs=2, ops=2)
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0
    torch.testing.assert_close(vmap(made)(X), vmap(made)(X))


def functionalized(function):
    return lambda x: (y := torch.func.functionalize(function)(x), x.mul_(2), y is x)


@pytest.mark.parametrize("function, graphs", [
    (lambda a: a.add_(1), None),
    (lambda a: a.add_(1).view(-1), None),
    (lambda a: a[0].add_(1), None),
    (lambda a: (a.clone().add_(1), a.view(-1)), 1),
    (lambda a: a, 1),
    (lambda a: a.add_(1) * 2, None),
])  # fmt: skip
def test_what_functionalize_returns_shares_no_memory_that_it_writes_to(function, graphs):
    check(functionalized(function), X, graphs=graphs)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(t):
        return t**2

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 * ctx.saved_tensors[0]


def _writes_outside(x):
    y = x * 2
    return torch.func.functionalize(lambda a: y.add_(a))(x), y


@pytest.mark.parametrize("function, graphs", [
    (lambda x: torch.func.functionalize(Square.apply)(x), None),
    (_writes_outside, None),
    (lambda x: torch.func.functionalize(lambda a: (a.mul_(2), x * 2)[1])(x), None),
    (lambda x: torch.func.functionalize(lambda a, b: (a is b, a * b))(x, x), None),
    (lambda x: torch.func.functionalize(lambda a: (a is x, type(a).__name__, a * 2))(x), 1),
    (lambda x: torch.func.functionalize(lambda a: {"a": [a, a * 2]})(x)["a"][0] is x, None),
    (lambda x: torch.func.functionalize(lambda a: a.contiguous() is a)(x), None),
    (lambda x: torch.func.functionalize(lambda a: a.float() is x)(x), None),
    (lambda x: torch.func.functionalize(lambda a: torch.atleast_1d(a) is a)(x + 1), None),
    (lambda x: torch.func.functionalize(lambda a: len({a, a.float()}))(x), None),
    (lambda x: (y := x + 1, torch.func.functionalize(lambda a: a is y)(y)), None),
    (lambda x: torch.func.functionalize(lambda a: a.requires_grad_(False))(x), None),
    (lambda x: torch.func.functionalize(lambda a: torch.vmap(torch.sin)(a))(x), 1),
])  # fmt: skip
def test_what_functions_under_functionalize_see(function, graphs):
    check(function, X, graphs=graphs)


def test_requires_grad_under_functionalize():
    seen = torch.func.functionalize(lambda a: (a * 2, a.requires_grad, isinstance(a, nn.Parameter)))
    check(seen, X.clone().requires_grad_(), graphs=0, ops=0)
    check(seen, nn.Parameter(X), graphs=0, ops=0)


class Owner:
    def method(self, v):
        """Squares."""
        return v**2

    def __call__(self, v):
        return v**2


@pytest.mark.parametrize("make", [
    vmap, jacrev, jacfwd, grad, grad_and_value, hessian, torch.func.functionalize,
])  # fmt: skip
def test_names_of_what_transforms_make(make):
    def program(x):
        named, plain = make(_squares), make(Owner())
        method = make(Owner().method)
        texts = [(f.__name__, f.__qualname__, f.__doc__) for f in (named, plain, method)]
        return texts, named.__wrapped__ is _squares, sorted(vars(named)), x + 1

    check(program, X[0], graphs=1, ops=1, fullgraph=True)


def test_names_of_a_pull_back():
    def program(x):
        pull = vmap(vjp(torch.sin, x)[1])
        return pull.__name__, pull.__qualname__, pull.__module__, pull.__annotations__, x + 1

    check(program, X[0], graphs=1, fullgraph=True, ops=10)


def _aux(make, beside):
    def program(x):
        try:
            return make(lambda v: ((v**2).sum(), beside(v)), has_aux=True)(x)
        except RuntimeError as error:
            return str(error)

    return program


@pytest.mark.parametrize("make", [grad, grad_and_value])
@pytest.mark.parametrize("beside, graphs", [
    (lambda v: 3, None), (lambda v: {"a": [v, 1]}, None), (lambda v: {"a": [v, v * 2]}, 1),
])  # fmt: skip
def test_what_a_function_under_grad_returns_beside(make, beside, graphs):
    check(_aux(make, beside), X[0], graphs=graphs)


@pytest.mark.parametrize("inner", [
    lambda v: grad(lambda w: (w**3).sum())(v), lambda v: vjp(lambda w: w**3, v)[1](v)[0],
    lambda v: jacrev(lambda w: w**3)(v),
])  # fmt: skip
def test_gradients_inside_of_reentrant_checkpoints(inner):
    def program(x):
        y = x.clone().requires_grad_()
        checkpoint(inner, y, use_reentrant=True).sum().backward()
        return y.grad

    check(program, X[0], graphs=3)


@pytest.mark.parametrize("make", [
    vmap, grad, jacrev, jacfwd, lambda f: vmap(grad(f)), lambda f: lambda x: vjp(f, x),
])  # fmt: skip
def test_an_error_that_the_program_catches_leaves_no_transform(make):
    def program(x):
        try:
            make(lambda v: [v * 2, [][-1]])(x)
        except IndexError:
            return x + 1

    check(program, X, graphs=1, ops=1)
    assert torch._C._functorch.get_dynamic_layer_stack_depth() == 0


class Existing:
    mapped = defaultdict(int, a=torch.arange(3.0))


def kinds_of_containers(x, y):
    def weigh(given):
        kinds = ("list", "tuple", "dict", "OrderedDict", "defaultdict")
        first = given[0] if isinstance(given, (list, tuple)) else given["a"]
        return first * kinds.index(type(given).__name__) + len(given)

    def loss(given):
        return (given["a"] * y).sum()

    several = ([x, y], (x, y), {"a": x}, OrderedDict(a=x), defaultdict(list, a=x), Existing.mapped)
    gradients = [grad(loss)(one) for one in several[2:]]
    factories = [one.default_factory for one in gradients[2:]]
    return [vmap(weigh)(one) for one in several], gradients, factories


def test_functions_get_containers_of_the_kind_that_was_given():
    check(kinds_of_containers, torch.arange(3.0), torch.ones(3), graphs=1, ops=89)


HOOKS = torch.autograd.graph.disable_saved_tensors_hooks


@pytest.mark.parametrize("catches", [False, True])
def test_where_saved_tensor_hooks_are_refused_stays_as_it_was(catches):
    """Transforms refuse such hooks while they run, and put back what was there before."""

    def program(x, message):
        with HOOKS(message) if message else contextlib.nullcontext():
            try:
                found = grad(lambda v: (v * v[5 if catches else 0]).sum())(x)
            except IndexError:
                found = None
            return found, torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()

    def outside(x, message):
        with HOOKS(message) if message else contextlib.nullcontext():
            found = compiled(x)
            return found, torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()

    backend = CountingBackend()
    compiled = framejit.compile(grad(lambda v: (v * v[0]).sum()), backend=backend)
    for message in (None, "mine", "other", None, "mine"):
        check(program, X[0], message, graphs=int(not catches))
        assert outside(X[0], message)[1] == message
    assert len(backend.graphs) == 3


def test_hooks_stay_allowed_where_a_transform_meets_those_of_a_checkpoint():
    def program(x):
        try:
            checkpoint(lambda v: grad(lambda w: (w * w).sum())(v), x, use_reentrant=False)
        except RuntimeError as error:
            return str(error), torch._C._autograd._saved_tensors_hooks_is_enabled()

    check(program, X[0], graphs=1)
    assert torch._C._autograd._saved_tensors_hooks_is_enabled()
