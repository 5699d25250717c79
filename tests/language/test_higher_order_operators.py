"""Operators that take functions: one graph each, equal to plain Python, gradients too."""

import pytest
import torch
from torch._higher_order_ops.map import map as higher_order_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

import framejit
from checking import Comparison, CountingBackend, check

X = torch.linspace(-1, 2, 12).reshape(4, 3)
W = torch.linspace(0.5, 1.5, 3)


def weights():
    return W.clone().requires_grad_()


PROGRAMS = {}


def program(reference):
    """Register a program with the plain Python that it must equal."""

    def register(function):
        PROGRAMS[function.__name__] = (function, reference)
        return function

    return register


@program(lambda x, w: torch.where(x.sum() > 0, (x * w).sin(), x - w))
def cond(x, w):
    return torch.cond(x.sum() > 0, lambda t: (t * w).sin(), lambda t: t - w, (x,))


@program(lambda x, w: {"a": x * 2 + 1, "b": (x * w, 3)})
def cond_with_a_structure(x, w):
    return torch.cond(
        w.sum() > 0,
        lambda t: {"a": t * 2 + 1, "b": (t * w, 3)},
        lambda t: {"a": t.sin().view(4, 3), "b": (t - w, 3)},
        (x,),
    )


def _looped(x, w):
    i = torch.tensor(0)
    while i < 5:
        i, x = i + 1, x * w + i
    return i, x


@program(_looped)
def loop(x, w):
    return while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, t * w + i), (torch.tensor(0), x))


@program(lambda x, w: (x.sum(0) * w, torch.stack([x[: i + 1].sum(0) * w for i in range(4)])))
def scanned(x, w):
    return scan(lambda c, t: (c + t * w, c + t * w), torch.zeros(3), x)


@program(lambda x, w: x.flip(1).cumsum(1).flip(1))
def scanned_backwards(x, w):
    def step(carry, t):
        total = carry["sum"] + t
        return {"sum": total}, total * 1

    return scan(step, {"sum": torch.zeros(4)}, x, dim=1, reverse=True)[1]


@program(lambda x, w: torch.stack([row.sin() * w for row in x]))
def mapped(x, w):
    return higher_order_map(lambda row, k: row.sin() * k, x, w)


@program(lambda x, w: torch.stack([(row * w).cumsum(0) for row in x]) + 1)
def vmapped(x, w):
    return torch.vmap(lambda row: (row * w).cumsum(0))(x) + 1


@program(lambda x, w: 3 * x**2 * w)
def grad(x, w):
    return torch.func.grad(lambda t: (t**3 * w).sum())(x)


@program(lambda x, w: ((3 * x**2 * w, x**3), (x**3 * w).sum()))
def grad_and_value(x, w):
    def f(t, k):
        return (t**3 * k).sum()

    return torch.func.grad_and_value(f, argnums=(0, 1))(x, w.expand(4, 3))


@program(lambda x, w: torch.stack([torch.diag(row.cos() * w) for row in x]))
def jacobians(x, w):
    one = torch.vmap(torch.func.jacrev(lambda t: t.sin() * w))(x)
    two = torch.func.jacfwd(lambda t: t.sin() * w)(x[0])
    return one + 0 * two


@program(lambda x, w: torch.diag(6 * x[0] * w))
def hessian(x, w):
    return torch.func.hessian(lambda t: (t**3 * w).sum())(x[0])


@program(lambda x, w: (x.sin() * w, 2 * x.cos() * w))
def vjp(x, w):
    out, pull = torch.func.vjp(lambda t: t.sin() * w, x)
    return out, pull(torch.full_like(out, 2.0))[0]


@program(lambda x, w: (x.sin() * w, 2 * x.cos() * w))
def jvp(x, w):
    return torch.func.jvp(lambda t: t.sin() * w, (x,), (torch.full_like(x, 2.0),))


NO_GRADIENT = {"loop"}  # torch refuses it, or the reference has none


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph(name):
    function, reference = PROGRAMS[name]
    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend, fullgraph=True)
    for scale in (1.0, 1.0, 3.0):
        with torch.no_grad():
            expected, got = reference(X * scale, W), compiled(X * scale, W)
            torch.testing.assert_close(got, expected)
    assert len(backend.graphs) == 1


def leaves(result):
    if isinstance(result, torch.Tensor):
        return [result] if result.requires_grad else []
    parts = result.values() if isinstance(result, dict) else result
    parts = parts if not isinstance(result, int) else ()
    return [leaf for part in parts for leaf in leaves(part)]


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in NO_GRADIENT])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(name, backend):
    function, reference = PROGRAMS[name]
    compiled = framejit.compile(function, backend=backend, fullgraph=True)
    found = []
    for run in (reference, compiled, compiled):
        x, w = X.clone().requires_grad_(), weights()
        sum(leaf.sin().sum() for leaf in leaves(run(x, w))).backward()
        found.append((x.grad, w.grad))
    if name == "scanned_backwards":
        assert found[1][1] is None
    for got in found[1:]:
        Comparison().compare(found[0], got, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cond", "loop", "scanned", "mapped", "vmapped", "grad"])
def test_with_inductor(name):
    function, reference = PROGRAMS[name]
    with torch.no_grad():
        Comparison().compare(reference(X, W), framejit.compile(function)(X, W), name)


OPERATORS = {
    "cond": lambda x, f: torch.cond(x.sum() > 0, f, lambda t: t - 1, (x,)),
    "while_loop": lambda x, f: while_loop(lambda t: t.sum() < 9, lambda t: (f(t),), (x,)),
    "scan": lambda x, f: scan(lambda c, t: (c + 1, f(t)), torch.zeros(3), x),
    "map": lambda x, f: higher_order_map(f, x),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_a_side_effect_is_left_to_torch(name):
    """It refuses most of them, and knows which it can run; fullgraph names the function."""
    seen = []

    def noting(t):
        seen.append(1)
        return t + 1

    def f(x):
        return OPERATORS[name](x, noting)

    with pytest.raises(RuntimeError) as plain:
        f(X)
    with pytest.raises(RuntimeError) as caught:
        framejit.compile(f, backend="eager")(X)
    assert type(caught.value) is type(plain.value) and not seen
    with pytest.raises(framejit.exc.Unsupported, match="changes something outside") as refused:
        framejit.compile(f, backend="eager", fullgraph=True)(X)
    assert __file__ in str(refused.value) and not seen


def twice(t):
    t = t + 1
    return t, t


SHARING = {
    "cond_operand": lambda x: torch.cond(x.sum() > 0, lambda t: t, lambda t: t * 2, (x,)),
    "cond_view": lambda x: torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t[:], (x,)),
    "cond_variable": lambda x: torch.cond(x.sum() > 0, lambda: x, lambda: x * 2, ()),
    "cond_conversion": lambda x: torch.cond(x.sum() > 0, torch.sin, lambda t: t.float(), (x,)),
    "cond_twice": lambda x: torch.cond(x.sum() > 0, twice, lambda t: (t * 2, t * 3), (x,)),
    "cond_given_twice": lambda x: torch.cond(x.sum() > 0, torch.add, torch.sub, (x[:2], x[1:3])),
    "while_loop": lambda x: while_loop(lambda t: t.sum() < 9, lambda t: (t,), (x + 9,)),
    "scan": lambda x: scan(lambda c, t: (c + 1, c), torch.zeros(3), x),
    "scan_twice": lambda x: scan(lambda c, t: twice(c + t), torch.zeros(3), x),
    "map": lambda x: higher_order_map(lambda t: (t * 2, t), x),
}


@pytest.mark.parametrize("name", SHARING)
def test_shared_memory_is_left_to_torch(name):
    """Operands and results of these functions may not be in the same memory."""
    f = SHARING[name]
    with pytest.raises(RuntimeError, match="aliasing"):
        f(X)
    with pytest.raises(RuntimeError, match="aliasing"):
        framejit.compile(f, backend="eager")(X)
    with pytest.raises(framejit.exc.Unsupported, match="share memory"):
        framejit.compile(f, backend="eager", fullgraph=True)(X)


def test_without_gradients_torch_takes_shared_memory():
    compiled = framejit.compile(SHARING["cond_operand"], backend="eager")
    for x in (X, -X - 9):
        with torch.no_grad():
            Comparison().compare(SHARING["cond_operand"](x), compiled(x), "cond")


@pytest.mark.parametrize("operands", [((1,),), (None,), ({"a": [2.5]},)], ids=str)
def test_operands_of_cond_that_are_no_tensors(operands):
    """They are refused, as in eager mode."""

    def f(x):
        return torch.cond(x.sum() > 0, lambda t: x + 1, lambda t: x - 1, operands)

    with pytest.raises(RuntimeError, match="Expect operands to be a tuple"):
        framejit.compile(f, backend="eager")(X)


def test_cond_outside_compiled_code_is_its_own_affair():
    """It compiles itself with torch.compile, and leaves what framejit compiled alone."""

    def branches(x):
        return torch.cond(x.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (x,))

    backend = CountingBackend()
    compiled = framejit.compile(branches, backend=backend)

    @framejit.compile(backend=backend)
    def around(x):
        y = compiled(x) + 1
        framejit.graph_break()
        return y * 2

    for x in (X, -X - 9, X):
        expected = x.sin() if x.sum() > 0 else x.cos()
        torch.testing.assert_close(branches(x), expected)
        torch.testing.assert_close(compiled(x), expected)
        torch.testing.assert_close(around(x), (expected + 1) * 2)
    with framejit.optimize(backend):
        torch.testing.assert_close(branches(X), X.sin())


@torch.library.custom_op("framejit_tests::scaled", mutates_args=())
def scaled(x: torch.Tensor, k: float) -> torch.Tensor:
    return x * k


@scaled.register_fake
def _(x, k):
    return torch.empty_like(x)


scaled.register_autograd(
    lambda ctx, g: (g * ctx.k, None),
    setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
)


@torch.library.custom_op("framejit_tests::add_into", mutates_args=("out",))
def add_into(out: torch.Tensor, x: torch.Tensor) -> None:
    out.add_(x)


def test_custom_operators():
    def f(x, out):
        add_into(out, x.detach())
        return scaled(x.sin(), 3.0).sum() + torch.ops.framejit_tests.scaled(x, 2.0).sum()

    backend = CountingBackend()
    found = []
    for run in (
        f, framejit.compile(f, backend=backend, fullgraph=True),
        framejit.compile(f, backend="aot_eager", fullgraph=True),
    ):  # fmt: skip
        x, out = X.clone().requires_grad_(), torch.zeros(4, 3)
        y = run(x, out)
        y.backward()
        found.append((y, out, x.grad))
    for got in found[1:]:
        Comparison().compare(found[0], got, "custom")
    assert len(backend.graphs) == 1


def _small(v):
    return v.sum() < 9


CARRIED = {
    "strides": lambda x, w: while_loop(_small, lambda v: (v * 2,), (w[:1].expand(3),)),
    "dtype": lambda x, w: while_loop(_small, lambda v: (v.double() * 2,), (w,)),
    "shape": lambda x, w: while_loop(_small, lambda v: (torch.cat([v, v]),), (w,)),
    "layout": lambda x, w: scan(lambda c, v: ((c + v).t(), v * 2), w.outer(w), w.expand(2, 3, 3)),
    "size": lambda x, w: scan(lambda c, v: (torch.cat([c, c]), v * 2), w, x),
}


@pytest.mark.parametrize("name", CARRIED)
def test_loops_that_carry_on_something_else_are_refused_by_torch(name):
    def function(x, w):
        try:
            return CARRIED[name](x, w)
        except Exception as error:
            return type(error).__name__

    torch._dynamo.reset()
    expected = function(X, W)
    assert isinstance(expected, str)
    torch._dynamo.reset()
    assert framejit.compile(function, backend="eager")(X, W) == expected


def test_sizes_that_vary_are_used_in_a_loop():
    def f(x):
        count = x.shape[0]
        return while_loop(
            lambda i, v: i < count, lambda i, v: (i + 1, v * 2 + count), (torch.tensor(0), x)
        )

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    for n in (3, 4, 5):
        Comparison().compare(f(torch.ones(n)), compiled(torch.ones(n)), "")


@pytest.mark.parametrize("name", ["jvp", "jacfwd", "functionalize"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_operators_in_transforms_are_left_to_torch(operator, name):
    """It refuses most of them."""

    def f(x):
        def inner(t):
            OPERATORS[operator](x, lambda row: row * 2)
            return t * 2

        if name == "jvp":
            return torch.func.jvp(inner, (x,), (x,))
        return getattr(torch.func, name)(inner)(x)

    def outcome(function):
        try:
            return function(X + 1)
        except (RuntimeError, AssertionError) as error:
            return type(error).__name__

    Comparison().compare(outcome(f), outcome(framejit.compile(f, backend="eager")), name)


def test_transforms_after_levels_of_forward_mode():
    def program(x):
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x + 1)
            tangent = torch.autograd.forward_ad.unpack_dual(dual.sin()).tangent
        return torch.func.jvp(lambda t: t.sin() * tangent, (x,), (tangent,))

    check(program, torch.arange(3.0), graphs=3, ops=6)
