"""Graphs that AOTAutograd gets in parts: results with gradients of their own, fused optimizers."""

import warnings

import pytest
import torch
import torch.nn.functional as F
from counted_parts import Parts

import framejit
from checking import Comparison, CountingBackend
from framejit.audit.comparison import Tolerance

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def same(program, counts, backend=None, tolerance=None, breaks=0):
    """``program(compile)`` in eager mode and compiled; ``counts``: `Parts.counts`."""
    torch.manual_seed(0)
    expected = program(lambda f: f)
    torch.manual_seed(0)
    parts = Parts()
    got = program(lambda f: framejit.compile(f, backend=backend or parts))
    Comparison(tolerance).compare(expected, got, "result")
    if backend is None:
        assert parts.counts == counts
        assert sum(framejit.counters.get("graph_break", {}).values()) == breaks
    return parts


def linears(count):
    torch.manual_seed(0)
    return torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(count)])


def taken(model, *leaves):
    """All gradients, None included; they start over."""
    found = [p.grad for p in (*model.parameters(), *leaves)]
    for p in (*model.parameters(), *leaves):
        p.grad = None
    return found


def two_losses(compile, sizes=(2, 3, 4, 4)):
    """Random numbers and writes in both, sizes, a detached tensor from one to the other."""
    model, seen = linears(3), torch.zeros(2)

    @compile
    def f(x):
        h, g = torch.relu(model[0](x)), torch.tanh(model[1](x))
        seen[0] += 1
        h = F.dropout(h, 0.5) * 2
        seen[1] += h.detach().sum()
        g = model[2](F.dropout(g, 0.5) * h.detach().mean())
        return h.sum(), g.sum(), g * x.size(0), h.detach(), x.size(0) * 2

    out = []
    for size in sizes:
        x = torch.arange(3.0 * size).view(size, 3).requires_grad_()
        one, two, third, *rest = f(x)
        one.backward()
        out.append(taken(model, x))
        (third.sum() if size == 4 else two).backward()
        out += [taken(model, x), one, two, third, *rest, seen.clone()]
    return out


def test_two_losses():
    parts = same(two_losses, (2, 4, 0))
    drawing = [
        [node for node in gm.graph.nodes if str(node.target).startswith("aten.native_dropout")]
        for gm in parts.forward
    ]
    assert [len(found) for found in drawing] == [1, 1, 1, 1]


def test_two_losses_with_inductor():
    def program(compile):
        model = linears(2)
        f = compile(lambda x: (model[0](x).sin().sum(), model[1](x).cos().sum()))
        out = []
        for size in (2, 3, 4):
            one, two = f(torch.ones(size, 3))
            one.backward(retain_graph=True)
            out.append(taken(model))
            two.backward()
            one.backward()
            out.append(taken(model))
        return [[g if g is None else g.round(decimals=4) for g in found] for found in out]

    same(program, None, "inductor")


def test_the_two_steps_of_a_gan():
    def program(compile):
        make, judge = linears(2)
        steps = [torch.optim.SGD(m.parameters(), 0.1) for m in (make, judge)]

        @compile
        def losses(z, x):
            fake = make(z)
            real = F.softplus(-judge(x)).mean() + F.softplus(judge(fake.detach())).mean()
            return real, F.softplus(-judge(fake)).mean()

        out = []
        for _ in range(2):
            second, first = losses(torch.randn(4, 3), torch.randn(4, 3))
            second.backward()
            out.append([p.grad.clone() for p in judge.parameters()])
            assert all(p.grad is None for p in make.parameters())
            first.backward()
            for step in steps:
                step.step()
                step.zero_grad()
            out.append([p.detach().clone() for p in (*make.parameters(), *judge.parameters())])
        return out

    same(program, (1, 2, 0))


def test_hooks_accumulation_and_repeated_backward():
    def program(compile):
        model, calls = linears(2), []
        for name, p in model.named_parameters():
            p.register_hook(lambda g, name=name: calls.append(name) or g * 2)
        model[0].weight.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad.clone()))
        f = compile(lambda x: (model[0](x).exp(), model[1](x).exp()))
        for _ in range(2):
            one, two = f(torch.ones(2, 3))
            one.register_hook(lambda g: calls.append(g) or g * 3)
            one.retain_grad()
            one.sum().backward(retain_graph=True)
            one.sum().backward()
            calls.append(one.grad)
            two.sum().backward()
            with pytest.raises(RuntimeError, match="second time"):
                two.sum().backward()
        return [c for c in calls if not isinstance(c, str)], taken(model), len(calls)

    same(program, (1, 2, 0))


def test_each_part_leaves_out_the_gradients_that_eager_leaves_out():
    def program(compile):
        model, out = linears(3), []

        @compile
        def f(x):
            shared = model[0](x).exp()
            return shared, model[1](shared), model[2](x).exp()

        for index in (0, 1, 2, 0):
            x = torch.ones(2 + index, 3, requires_grad=True)
            f(x)[index].sum().backward()
            out.append(taken(model, x))
        return out

    same(program, (2, 4, 0))


def test_autocast_and_no_grad_around_the_cut():
    def program(compile):
        model = linears(2)

        @compile
        def f(x):
            with torch.autocast("cpu", torch.bfloat16):
                one = model[0](x).exp()
                with torch.no_grad():
                    scale = model[1](x).mean()
                    x = x * scale.float()
                two = model[1](x).exp()
                third = model[0](x)
            return one, two, third * torch.is_autocast_enabled("cpu"), scale

        one, two, third, scale = f(torch.ones(2, 3))
        two.float().sum().backward()
        first = taken(model)
        one.float().sum().backward()
        second = taken(model)
        third.float().sum().backward()
        return first, second, taken(model), [t.dtype for t in (one, two, third)], scale

    same(program, (1, 3, 0))


@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
@pytest.mark.parametrize("outside", [None, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("inside", [None, torch.bfloat16, torch.float16])
def test_a_part_that_begins_under_another_autocast_than_the_graph(outside, inside, backend):
    def program(compile):
        model = linears(2).append(torch.nn.Conv1d(1, 1, 1))

        @compile
        def f(x):
            with torch.autocast("cpu", torch.bfloat16):
                one = model[0](x)
                with torch.autocast("cpu", inside, enabled=inside is not None):
                    two = model[1](x)
                    third = model[2](x[:, None])
            return one, two, third, model[1](x)

        out = []
        for _ in range(2):
            # Casts of another type than the outer one's would come from the cache.
            with torch.autocast("cpu", outside, outside is not None, cache_enabled=False):
                results = f(torch.ones(2, 3))
                state = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
            for result in reversed(results):
                result.float().sum().backward()
                out.append(taken(model))
            out.append((results, state))
        return out

    tolerance = Tolerance(1e-2, 1e-2) if backend == "inductor" else None
    same(program, (1, 4, 0), backend, tolerance)


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("backend", [None, "aot_eager", "inductor"])
def test_graphs_that_break_under_autocast_are_compiled(backend, gradients):
    def program(compile):
        model, state = linears(2), []

        @compile
        def f(x):
            with torch.autocast("cpu", torch.float16, cache_enabled=False):
                one = model[0](x)
                torch._dynamo.graph_break()
                state.append((torch.get_autocast_dtype("cpu"), torch.is_autocast_cache_enabled()))
                two = model[1](one)
            return one, two, model[1](x)

        out = []
        for _ in range(2):
            with torch.set_grad_enabled(gradients):
                results = f(torch.ones(2, 3))
            if gradients:
                sum(result.float().sum() for result in results).backward()
            out.append((results, taken(model), torch.get_autocast_dtype("cpu")))
        return out, state

    tolerance = Tolerance(1e-2, 1e-2) if backend == "inductor" else None
    with warnings.catch_warnings(action="error", category=framejit.exc.FramejitWarning):
        counts = (2, 3, 0) if gradients else (2, 0, 2)
        same(program, counts, backend, tolerance, breaks=1)


@pytest.mark.parametrize(
    "f, parts",
    [
        (lambda m, x: (m[0](x).exp(), m[0](x).cos()), 2),  # the same leaves only
        (lambda m, x: (lambda h: (h.sin(), h.cos()))(m[0](x)), 1),
        (lambda m, x: (m[0](x).exp(), x.view(-1), x[0], m[1].weight.t()), 1),  # views of inputs
        (lambda m, x: (lambda v: (v.sin(), v.exp()))(x.view(-1)), 2),
        (lambda m, x: (m[0](x).exp(), m[1](x).exp().detach()), 1),
    ],
)
def test_what_hangs_together(f, parts):
    def program(compile):
        model = linears(2)
        x = torch.ones(2, 3, requires_grad=True)
        results = compile(lambda x: f(model, x))(x)
        sum(t.sum() for t in results if t.requires_grad).backward()
        return results, taken(model, x)

    same(program, (1, parts, 0))


def test_plain_backends_see_one_graph():
    backend = CountingBackend()
    torch.manual_seed(0)
    expected = two_losses(lambda f: f)
    torch.manual_seed(0)
    got = two_losses(lambda f: framejit.compile(f, backend=backend))
    Comparison().compare(expected, got, "result")
    assert len(backend.graphs) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda p: torch.optim.Adam(p, fused=True),
        lambda p: torch.optim.AdamW(p, amsgrad=True, fused=True),
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, fused=True),
        lambda p: torch.optim.Adagrad(p, lr_decay=0.1, fused=True),
    ],
)
def test_fused_optimizers(make):
    """Their kernels run as they are, between what is compiled."""

    def program(compile):
        (model,) = linears(1)
        optimizer = make(model.parameters())
        step, out = compile(optimizer.step), []
        for size in (2, 3, 4):
            model(torch.randn(size, 3)).sum().backward()
            step()
            optimizer.zero_grad()
            out.append([p.detach().clone() for p in model.parameters()])
        return out, optimizer.state_dict()["state"]

    parts = same(program, (2, 0, 4))  # the last sets the grad mode
    fused = [n for gm in parts.inference for n in gm.graph.nodes if "_fused" in str(n.target)]
    assert not fused


def test_fused_optimizers_in_one_graph():
    """Where parts would write to what others have made, as they do in the first step, the graph is
    run as it is."""

    def program(compile):
        (model,) = linears(1)
        optimizer = torch.optim.Adam(model.parameters(), fused=True)

        def step(x):
            model(x).sum().backward()
            optimizer.step()
            optimizer.step()
            return [p.detach().clone() for p in model.parameters()]

        run = compile(step)
        return [run(torch.ones(2, 3)) for _ in range(3)], optimizer.state_dict()["state"]

    same(program, (2, 0, 3))


def viewed_after(x, y):
    with torch.no_grad():
        print(end="")
        first = y.argmax(0)
    return x.transpose(0, 1).exp().sum(), y[first].sum()


def viewed_alone(x, y):
    with torch.no_grad():
        print(end="")
    return x.transpose(0, 1), y * 1


def viewed_before_and_inside(x, y):
    before = x.transpose(0, 1)
    with torch.no_grad():
        inside = x.view(-1)
    return before, inside, x * y


def indexed_alone(x, y):
    with torch.no_grad():
        row = x[0]
    return row * 2, x * y


def indexed_result(x, y):
    z = x * y
    with torch.no_grad():
        row = z[0]
    return row, z


def chunks_of_a_result(x, y):
    z = (x * y).sin()
    with torch.no_grad():
        parts = z.chunk(2)
    return parts[0], z.sum(), parts[1] * x.cos()[1:], y.exp()


def indexed_with_gradients(x, y):
    z = x * y
    row = z[0]
    with torch.no_grad():
        place = row.argmax()
    return row[place], z


VIEWERS = [viewed_after, viewed_alone, viewed_before_and_inside, indexed_alone, indexed_result,
           chunks_of_a_result, indexed_with_gradients]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", VIEWERS)
def test_views_in_another_grad_mode(program, backend):
    found = []
    compiled = framejit.compile(program, backend=backend)
    for function in (program, compiled):
        x, y = (torch.arange(4.0).reshape(2, 2).requires_grad_() for _ in range(2))
        results = function(x, y)
        sum(result.sum() for result in results).backward()
        found.append(([r.requires_grad for r in results], x.grad.tolist(), y.grad.tolist()))
    assert found[0] == found[1]
    assert len(compiled.entries) == 1
