"""``backward`` and ``torch.autograd.grad`` in captured code, and what they leave behind."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framejit
from checking import Comparison, CountingBackend, check
from repeating import ALL, Regions, Stack


def leaves():
    return [torch.arange(6.0).reshape(2, 3).requires_grad_() for _ in range(2)]


def stored(*tensors):
    return [tensor.grad for tensor in tensors]


def shared_gradient(v, w):
    (v + w).backward(torch.ones(2, 3))
    v.grad.mul_(2)
    return stored(v, w)


def expanded_gradient(v, w):
    (v.sum() + w.mean()).backward()
    return [grad.stride() for grad in stored(v, w)], stored(v, w)


def transposed(v, w):
    turned = (v.t() @ w).sum()
    turned.backward()
    return stored(v, w)


def one_is_not_reached(v, w):
    (v * 2).sum().backward()
    return stored(v, w)


def in_two_steps(v, w):
    loss = (v * w).sum()
    loss.backward(retain_graph=True)
    first = v.grad.clone()
    loss.backward()
    return first, stored(v, w), v.grad is v.grad


def added_up(v, w):
    for factor in (1, 2, 3):
        (v * w * factor).sum().backward()
    return stored(v, w)


def only_for_some(v, w):
    (v * w).sum().backward(inputs=[w])
    return stored(v, w)


def of_several(v, w):
    torch.autograd.backward([v * 2, (v * w).sum()], [w.detach(), None])
    return stored(v, w)


def by_autograd(v, w):
    loss = (v.exp() * w).sum()
    (first,) = torch.autograd.grad(loss, v, retain_graph=True)
    return first, torch.autograd.grad(loss, [v, w])


def unused(v, w):
    return torch.autograd.grad((v * v).sum(), [v, w], allow_unused=True)


def zeros_for_the_unused(v, w):
    return torch.autograd.grad((v * v).sum(), [v, w], materialize_grads=True)


def by_result(v, w):
    y = v * w
    z = y.sin()
    return torch.autograd.grad(z.sum(), y)[0], z.detach()


def twice(v, w):
    (slope,) = torch.autograd.grad((v**3 * w).sum(), v, create_graph=True)
    return torch.autograd.grad(slope.square().sum(), [v, w])


def in_batches(v, w):
    rows = (v * w).sin().sum(1)
    jacobian = torch.autograd.grad(rows, [v, w], torch.eye(2), True, is_grads_batched=True)
    (rows.sum() * jacobian[0].square().sum()).backward()
    return jacobian, stored(v, w)


def in_batches_twice(v, w):
    rows = (v**3 * w).sum(1)
    (slopes,) = torch.autograd.grad(rows, v, torch.eye(2), create_graph=True, is_grads_batched=True)
    return torch.autograd.grad(slopes.square().sum(), [v, w])


def leaf_of_its_own(v, w):
    inner = (v * 2).detach().requires_grad_()
    (inner * w).sum().backward()
    return inner.grad, stored(v, w)


def new_leaf(v, w):
    inner = torch.zeros(2, 3, requires_grad=True)
    ((inner + v) * w).sum().backward()
    return inner.grad, stored(v, w)


def in_no_grad(v, w):
    loss = (v * w).sum()
    with torch.no_grad():
        loss.backward()
        v.add_(v.grad)
    return loss.detach(), v + 0


def assigned(v, w):
    v.grad = w.detach() * 2
    (v * w).sum().backward()
    return stored(v, w)


def twice_among_the_inputs(v, w):
    (v * w).sum().backward(inputs=[v, v])
    return stored(v, w)


def leaf_and_result(v, w):
    torch.autograd.backward([v, (v * w).sum()], [w.detach(), None])
    return stored(v, w)


def view_of_the_given(v, w):
    given = w.detach() * 2
    v.view(6).backward(given.view(6))
    given.add_(1)
    return stored(v, w)


def results_beside(v, w):
    """One that the gradient does not reach is computed between what it goes through."""
    beside, copied = w * 2, v.clone()
    (v * 2).sum().backward(retain_graph=True)
    return beside.detach(), copied.detach(), stored(v, w)


def leaf_like_another(v, w):
    inner = torch.zeros_like(v, requires_grad=True)
    other = v.new_zeros((2, 3), requires_grad=True)
    ((inner + other) * w).sum().backward()
    return inner.grad, other.grad, stored(v, w)


def of_an_iterator(v, w):
    return torch.autograd.grad((v * w).sum(), iter([v, w]))


class Straight(torch.autograd.Function):
    """It saves nothing, so there is nothing to be used up."""

    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


#: Each with how many graphs two calls take, of which the second finds gradients.
PROGRAMS = {
    shared_gradient: 2, expanded_gradient: 2, transposed: 2, one_is_not_reached: 2,
    in_two_steps: 2, added_up: 2, only_for_some: 2, of_several: 2, by_autograd: 1, unused: 1,
    in_batches: 2, in_batches_twice: 1,
    zeros_for_the_unused: 1,
    by_result: 1, twice: 1, leaf_of_its_own: 2, new_leaf: 2, in_no_grad: 2, assigned: 2,
    twice_among_the_inputs: 2, leaf_and_result: 2, view_of_the_given: None, results_beside: 2,
    leaf_like_another: 2, of_an_iterator: 1,
}  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program, backend):
    ours, eager = leaves(), leaves()
    compiled = framejit.compile(program, backend=backend, fullgraph=PROGRAMS[program] is not None)
    for _ in range(2):
        Comparison().compare((program(*eager), eager), (compiled(*ours), ours), "")
        for got, expected in zip(ours, eager, strict=True):
            Comparison().compare(expected.grad, got.grad, "gradient")


@pytest.mark.parametrize("program", [p for p in PROGRAMS if PROGRAMS[p] is not None])
def test_number_of_graphs(program):
    counting, given = CountingBackend(), leaves()
    compiled = framejit.compile(program, backend=counting)
    for _ in range(3):
        compiled(*given)
    assert len(counting.graphs) == PROGRAMS[program]


def loss_and_more(w):
    hidden = w.exp()
    loss = (hidden * 2).sum()
    loss.backward()
    return hidden, loss, loss * 3, w.sum() + 1


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_is_used_up_says_so(backend):
    """And what is not can be differentiated."""
    compiled = framejit.compile(loss_and_more, backend=backend, fullgraph=True)
    found = []
    for function in (loss_and_more, compiled):
        w = torch.ones(3, requires_grad=True)
        results = function(w)
        said = []
        for result in results:
            try:
                said.append(result.sum().backward())
            except RuntimeError as error:
                said.append(str(error))
        found.append((said, [r.requires_grad for r in results], [r.is_leaf for r in results],
                      [r.detach() for r in results], w.grad))  # fmt: skip
    assert "second time" in found[0][0][1]
    Comparison().compare(*found, "")


def half_used_up(v, w):
    hidden = v.exp()
    (hidden * 2).sum().backward()
    return hidden * w.sin()


def test_a_result_that_is_used_up_in_part_ends_the_graph():
    found = []
    counting = CountingBackend()
    for function in (half_used_up, framejit.compile(half_used_up, backend=counting)):
        v, w = leaves()
        result = function(v, w)
        found.append((torch.autograd.grad(result.sum(), w), v.grad))
    Comparison().compare(*found, "")
    assert len(counting.graphs) == 2


def goes_on_in_what_was_before(loss):
    loss.backward()
    return loss.detach() * 2


def test_a_loss_from_elsewhere():
    w = torch.ones(3, requires_grad=True)
    compiled = framejit.compile(goes_on_in_what_was_before, backend="eager")
    assert compiled((w * w).sum()).item() == 6
    torch.testing.assert_close(w.grad, torch.full((3,), 2.0))


def refused(w):
    return torch.autograd.grad(w * 2, w)


def refused_twice(w):
    loss = w.exp().sum()
    loss.backward()
    loss.backward()


@pytest.mark.parametrize("program", [refused, refused_twice])
def test_errors_are_those_of_autograd(program):
    check(program, torch.ones(3, requires_grad=True), graphs=1)


class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x)
        return x * w

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0], None


def none_for_one(v, w):
    Half.apply(v, w).sum().backward()
    return stored(v, w)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_gradient_that_a_function_does_not_give_stays_none(backend):
    found = []
    for function in (none_for_one, framejit.compile(none_for_one, backend=backend)):
        found.append(function(*leaves()))
    assert found[0][1] is None
    Comparison().compare(*found, "")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_come_and_go(backend):
    def step(w):
        (w * w).sum().backward()
        found, w.grad = w.grad, None
        return found

    compiled = framejit.compile(step, backend=backend)
    w = torch.ones(3, requires_grad=True)
    seen = []
    torch.testing.assert_close(compiled(w), torch.full((3,), 2.0))
    handle = w.register_hook(lambda gradient: gradient * 5)
    torch.testing.assert_close(compiled(w), torch.full((3,), 10.0))
    handle.remove()
    torch.testing.assert_close(compiled(w), torch.full((3,), 2.0))
    w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad))
    torch.testing.assert_close(compiled(w), torch.full((3,), 2.0))
    assert len(seen) == 1


def plain_step(model, optimizer):
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def test_repeated_blocks_of_a_step_are_compiled_once():
    def run(compile):
        torch.manual_seed(0)
        model = Stack(6)
        step = compile(plain_step(model, torch.optim.SGD(model.parameters(), lr=0.1)))
        return [step(torch.randn(2, 5, 8)) for _ in range(3)], dict(model.named_parameters())

    regions = Regions()
    got = run(lambda f: framejit.compile(f, backend=regions, options=ALL, fullgraph=True))
    Comparison().compare(run(lambda f: f), got, "")
    assert regions.calls[0] == {"region_Block": 6}


def test_a_finally_ends_no_error_and_no_graph():
    """What may raise stands in a ``try``, and parameters are written to after it."""
    table, optimizers = nn.Embedding(500, 600), []
    optimizers.append(torch.optim.SGD(table.parameters(), lr=0.1))
    noted = []

    def step(index):
        try:
            loss = table(index).square().sum()
        finally:
            noted.append("looked up")
        F.relu(loss).backward()
        optimizers[0].step()
        optimizers[0].zero_grad()

    counting = CountingBackend()
    compiled = framejit.compile(step, backend=counting)
    compiled(torch.tensor([1, 2]))
    assert len(counting.graphs) == 1 and noted == ["looked up"]
    with pytest.raises(IndexError):
        compiled(torch.tensor([1, 5000]))


def independent_losses(v, w):
    one, two = (v * v).sum(), (w * w).sum()
    one.backward(retain_graph=True)
    return one, two


def with_a_result_that_it_does_not_use(v, w):
    one, two = (v * v).sum(), (w * w).sum()
    found = torch.autograd.grad(one, [v, w], retain_graph=True, allow_unused=True)
    return found, one, two


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [independent_losses, with_a_result_that_it_does_not_use])
def test_results_that_are_differentiated_apart(program, backend):
    found = []
    for function in (program, framejit.compile(program, backend=backend)):
        v, w = leaves()
        *_, one, two = result = function(v, w)
        before = stored(v, w)
        two.backward()
        one.backward()
        found.append((result, before, stored(v, w)))
    assert found[0][0] is not None
    Comparison().compare(*found, "")


def straight(w):
    loss = Straight.apply(w).sum()
    loss.backward()
    return loss


def exponential(w):
    loss = w.exp().sum()
    loss.backward()
    return loss


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [straight, exponential])
def test_a_loss_is_differentiated_again(program, backend):
    """By any way there is."""
    ways = [
        lambda loss, w: loss.backward(),
        lambda loss, w: loss.backward(inputs=[w]),
        lambda loss, w: torch.autograd.grad(loss, w),
        lambda loss, w: torch.autograd.grad(loss, w, allow_unused=True),
    ]
    for way in ways:
        found = []
        for function in (program, framejit.compile(program, backend=backend)):
            w = torch.ones(3, requires_grad=True)
            loss = function(w)
            try:
                found.append((way(loss, w), w.grad))
            except RuntimeError as error:
                found.append((str(error), w.grad))
        Comparison().compare(*found, "")


def in_a_transform_and_out(w):
    inner = torch.func.grad(lambda x: (x**3).sum())(w)
    (inner * w).sum().backward()
    return w.grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_no_transform_stays_entered(backend):
    w, again = [torch.arange(3.0, requires_grad=True) for _ in range(2)]
    compiled = framejit.compile(in_a_transform_and_out, backend=backend)
    Comparison().compare(in_a_transform_and_out(w), compiled(again), "")
    assert torch._C._functorch.maybe_current_level() is None


SCHEDULED = [("SGD", {"momentum": 0.9}), ("SGD", {"foreach": True}), ("RMSprop", {}),
             ("Adadelta", {}), ("AdamW", {"foreach": True}), ("NAdam", {"foreach": True}),
             ("Adam", {"weight_decay": 0.1}), ("Adagrad", {"foreach": True})]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(("name", "options"), SCHEDULED)
def test_a_learning_rate_that_changes_compiles_nothing(name, options, backend):
    def run(compile):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = getattr(torch.optim, name)(model.parameters(), lr=0.1, **options)
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

        step = compile(plain_step(model, optimizer))
        captured = []
        for _ in range(6):
            before = framejit.counters["frames"]["total"]
            step(torch.randn(3, 4))
            captured.append(framejit.counters["frames"]["total"] - before)
            scheduler.step()
        return dict(model.named_parameters()), captured

    expected, _ = run(lambda f: f)
    got, captured = run(lambda f: framejit.compile(f, backend=backend))
    assert captured[3:] == [0, 0, 0]
    for parameter in expected:
        torch.testing.assert_close(got[parameter], expected[parameter])


@pytest.mark.filterwarnings("ignore::framejit.exc.FramejitWarning")
def test_a_step_that_a_backend_cannot_compile_runs_as_plain_python():
    """Also where it has written to gradients that were there."""
    losses = []
    for compile in (lambda f: f, lambda f: framejit.compile(f, backend="aot_eager")):
        torch.manual_seed(0)
        model = nn.LSTM(3, 2)

        @compile
        def step(x, model=model):
            loss = model(x)[0].sum()
            loss.backward()
            return loss.detach()

        results = [step(torch.ones(4, 1, 3)) for _ in range(3)]
        losses.append((results, [p.grad for p in model.parameters()]))
    Comparison().compare(*losses, "")


def last_one_fails(v, w):
    inner = w.detach().requires_grad_()
    (v * 2).sum().backward()
    size = inner.abs()
    with torch.no_grad():
        w.mul_(0.9)
    size.sum().backward()


def test_what_came_before_an_error_stays():
    found = []
    for function in (last_one_fails, framejit.compile(last_one_fails, backend="eager")):
        v, w = leaves()
        with pytest.raises(RuntimeError, match="modified by an inplace"):
            function(v, w)
        found.append((stored(v, w), w))
    Comparison().compare(*found, "")


def with_a_condition(loss):
    if not torch.isfinite(loss):
        raise ValueError("the loss is no number any more")
    return loss


def with_an_assertion(loss):
    assert not torch.isnan(loss), "nan"
    return loss


def of_a_distribution(loss):
    normal = torch.distributions.Normal(loss, 1.0, validate_args=True)
    return -normal.log_prob(torch.ones(())) + 0 * loss


@pytest.mark.parametrize("checked", [with_a_condition, with_an_assertion, of_a_distribution])
def test_a_check_before_backward(checked):
    """Its error is the program's; the graph goes on to what the optimizer writes."""

    def train(compile, factors):
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            loss = checked(model(x).square().mean())
            loss.backward()
            optimizer.step()
            return loss.detach()

        step, results = compile(step), []
        for factor in factors:
            try:
                results.append(step(torch.arange(12.0).reshape(3, 4) / 12 * factor))
            except (ValueError, AssertionError) as error:
                results.append((type(error), str(error)))
        return results, dict(model.named_parameters()), [p.grad for p in model.parameters()]

    counting = CountingBackend()
    expected = train(lambda f: f, [1, 1, 1, torch.nan, 1])
    compiled = framejit.compile
    Comparison().compare(
        expected, train(lambda f: compiled(f, backend="eager"), [1, 1, 1, torch.nan, 1]), ""
    )
    train(lambda f: compiled(f, backend=counting), [1, 1, 1])
    assert len(counting.graphs) == 4  # at the first step, and later


def for_some(loss, v, w):
    loss.backward(inputs=[v], retain_graph=True)
    return torch.autograd.grad(loss, [v, w], allow_unused=True)


def test_a_gradient_that_comes_to_leaves_from_elsewhere():
    """Python computes it: the graph knows nothing of the way there."""
    found = []
    for function in (for_some, framejit.compile(for_some, backend="eager")):
        v, w = leaves()
        found.append((function((v * w).sum(), v, w), stored(v, w)))
    assert found[0][1][0] is not None
    Comparison().compare(*found, "")


def nesting():
    """How deep autocast is nested."""
    try:
        return torch.autocast_increment_nesting() - 1
    finally:
        torch.autocast_decrement_nesting()


def in_autocast(v, w):
    with torch.autocast("cpu", torch.bfloat16):
        loss = (v @ w.t()).float().sum()
        loss.backward()
    return v.grad + 0


def begins_in_autocast(v, w):
    with torch.autocast("cpu", torch.bfloat16):
        framejit.graph_break()
        hidden = v @ w.t()
    (hidden.float() * 2).sum().backward()
    return v.grad + 0


@pytest.mark.parametrize("program", [in_autocast, begins_in_autocast])
def test_autocast_ends_where_it_should(program):
    found = []
    for function in (program, framejit.compile(program, backend="eager")):
        v, w = leaves()
        found.append([function(v, w) for _ in range(2)])
        assert nesting() == 0
    Comparison().compare(*found, "")


def of_no_gradients(v, w):
    nn.utils.clip_grad_value_([v, w], 0.1)


def test_what_torch_refuses_to_group_is_refused():
    for function in (of_no_gradients, framejit.compile(of_no_gradients, backend="eager")):
        with pytest.raises(RuntimeError, match="nested_tensorlist"):
            function(*leaves())


def leaf_without_use(v, w):
    (v * w).sum().backward()
    end = v.detach().sum().requires_grad_()
    end.backward()
    return w.grad + 0


def with_changed_weights(v, w):
    """The error is that of what was changed, not that of a second time."""
    loss = (v * w).sum()
    loss.backward(retain_graph=True)
    with torch.no_grad():
        w.add_(1)
    return loss


def slope_of_a_used_up_result(v, w):
    result = v.exp() * w
    result.sum().backward()
    loss = result.sum()
    framejit.graph_break()
    return torch.autograd.grad(loss, result)


def used_up_beside(v, w):
    """With respect to what it does not depend on, it is not used up."""
    loss = (v.detach() * w.exp()).sum()
    loss.backward()
    framejit.graph_break()
    loss.backward(inputs=[v])
    return w.grad + 0


@pytest.mark.parametrize(
    "program",
    [leaf_without_use, with_changed_weights, slope_of_a_used_up_result, used_up_beside],
)
def test_used_up_results(program):
    found = []
    for function in (program, framejit.compile(program, backend="eager")):
        v, w = leaves()
        result = function(v, w)
        said = ""
        if isinstance(result, torch.Tensor) and result.requires_grad:
            with pytest.raises(RuntimeError) as error:
                result.backward()
            said = str(error.value)[:60]
            result = result.detach()
        found.append((result, said, stored(v, w)))
    Comparison().compare(*found, "")


def with_weights_changed_in_between(layer, x):
    """A checkpoint computes again with what the weights are by then."""
    y = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sin()
    with torch.no_grad():
        layer.weight.mul_(2)
    y.sum().backward()
    return layer.weight.grad


def test_a_checkpoint_finds_its_weights_when_it_computes_again():
    found = []
    for compile in (lambda f: f, lambda f: framejit.compile(f, backend="eager", fullgraph=True)):
        torch.manual_seed(0)
        layer = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
        layer.weight = layer[0].weight
        found.append(compile(with_weights_changed_in_between)(layer, torch.ones(2, 3)))
    Comparison().compare(*found, "")


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 + ctx.saved_tensors[0] * 0


def test_what_autograd_has_let_go_of_is_asked_by_python():
    def twice(x):
        y = Doubled.apply(x).sum()
        y.backward()
        y.backward()

    with framejit.optimize("eager"), pytest.raises(RuntimeError, match="second time"):
        twice(torch.ones(3, requires_grad=True))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_function_of_the_program_where_compilers_fail(backend):
    """A graph with a gradient that AOTAutograd cannot trace runs as it is: it calls the program's
    own classes."""
    results = []
    for compile in (lambda f: f, lambda f: framejit.compile(f, backend=backend)):
        torch.manual_seed(0)
        first, last = nn.Linear(4, 4), nn.Linear(4, 4)

        @compile
        def step(x, first=first, last=last):
            loss = (Straight.apply(last(first(x).tanh())) * x).mean()
            with torch.no_grad():
                for parameter in last.parameters():
                    if parameter.grad is not None:
                        parameter -= 0.1 * parameter.grad
            try:
                loss.backward()
            except RuntimeError as error:
                return str(error)[:20]
            return loss.detach()

        made = [step(torch.ones(3, 4)) for _ in range(3)]
        results.append((made, [p.grad for p in (*first.parameters(), *last.parameters())]))
    Comparison().compare(*results, "steps")


def scaled_by_a_view(v, w):
    """Autograd refuses the view: the leaf is written to after it was taken, without gradients."""
    (v * w).sum().backward()
    with torch.no_grad():
        rows = v.view(3, 2)
        norms = rows.norm(dim=1, keepdim=True)
    with torch.no_grad():
        v.div_(norms.sum())
        if norms.mean() == 0:
            norms = norms + 1
        mean = rows.mean()
    return mean, stored(v, w)


def test_a_view_without_a_graph():
    check(scaled_by_a_view, *leaves(), graphs=1)
