"""Nested tensors of the layout ``torch.jagged``: operations on them are nodes, sizes of ragged
dimensions are asked of the tensors, and what varies from batch to batch compiles nothing again."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

import framejit
from checking import CountingBackend
from framejit.backends.registry import lookup_backend
from framejit.graph.parts import PARTS
from framejit.report import events

BACKENDS = ["eager", "aot_eager"]


def offsets(*lengths):
    return torch.cat([torch.zeros(1, dtype=torch.long), torch.tensor(lengths).cumsum(0)])


def content(*lengths):
    return torch.randn(sum(lengths), 4, generator=torch.Generator().manual_seed(sum(lengths)))


def ragged(*lengths):
    limits = {"min_seqlen": min(lengths), "max_seqlen": max(lengths)}
    return torch.nested.nested_tensor_from_jagged(content(*lengths), offsets(*lengths), **limits)


def related(*lengths):
    x = ragged(*lengths)
    return x, x * 2


def parts(*lengths):
    return content(*lengths), offsets(*lengths)


class Box:
    pass


def box(*lengths):
    made = Box()
    made.x = ragged(*lengths)
    return made


def looks(value):
    """Plain tensors and constants in a result, in order."""
    if isinstance(value, (tuple, list)):
        return [part for item in value for part in looks(item)]
    if isinstance(value, torch.Tensor) and value.is_nested:
        own = value.dim(), value.shape[0], value._ragged_idx, value.requires_grad
        return [own, value.values().detach(), value.offsets()]
    return [torch.SymInt if isinstance(value, torch.SymInt) else value]


def same(program, makes, graphs=1, backend="eager", breaks=0):
    """Assert that the program does on each of the arguments what plain Python does, and leaves them
    as that does."""
    counting, inner = CountingBackend(), lookup_backend(backend)
    compiled = framejit.compile(program, backend=lambda m, e: inner(counting(m, e), e))
    with events.recording(events.GraphBreak) as found:
        for make in makes:
            given, taken = make(), make()
            expected = [looks(program(*given)), looks(list(given))]
            got = [looks(compiled(*taken)), looks(list(taken))]
            for one, two in zip(expected, got, strict=True):
                assert [type(part) for part in two] == [type(part) for part in one]
                for wanted, part in zip(one, two, strict=True):
                    if isinstance(wanted, torch.Tensor):
                        torch.testing.assert_close(part, wanted)
                    elif not isinstance(wanted, Box):
                        assert part == wanted
    assert len(found) == breaks, [one.reason for one in found]
    assert len(counting.graphs) == graphs
    return counting.ops


def pointwise(x):
    return torch.sin(x) * 2, functional.relu(x), x + x * 2, x.to(torch.float64), x.detach()


def layers(x):
    y = functional.linear(x, torch.ones(3, 4), torch.ones(3))
    return functional.layer_norm(y, (3,)), y @ torch.ones(3, 2)


def reductions(x):
    return torch.softmax(x, -1), x.sum(-1), x.mean(1), x.amax(1), x.sum()


def accessors(x):
    return x.values() * 2, x.offsets(), x.lengths(), x.dim(), x._ragged_idx, x.layout, x.is_nested


def shapes(x):
    return x.shape, x.size(), x.size(0), x.size(1), x.shape[-1] * 2, len(x.shape), x * x.size(0)


def reshapes(x):
    return x.reshape(x.shape[0], x.shape[1], 2, 2), x.unflatten(-1, [2, 2]).transpose(1, 2)


def pieces(x):
    return x.chunk(2, -1), x.unsqueeze(-1), torch.cat([x, x * 2], -1), x[..., :2]


def padded(x):
    return torch.nested.to_padded_tensor(x, 0.0) + 1


def compares(x):
    y = x * 2
    return y.shape == x.shape, x.shape[1] == y.shape[1], x.size(1) != 3, x.shape[1] == 7, y


def conditional(x):
    return x * 2 if x.shape[1] == (x + 1).shape[1] and x.size(1) > 1 else x


def in_place(x):
    x.add_(1)
    x.mul_(2)
    return x * 3


def in_its_content(x):
    x.values().mul_(3)
    return x + 1


PROGRAMS = {
    pointwise: 7, layers: 6, reductions: 5, accessors: 2, shapes: 1, reshapes: 4, pieces: 7,
    padded: 2, compares: 1, conditional: 2, in_place: 3, in_its_content: 3,
}  # fmt: skip
LENGTHS = [(2, 3, 4), (2, 3, 4), (5, 2, 3), (3, 3, 9)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_one_graph_serves_batches_of_other_lengths(program, backend):
    makes = [lambda lengths=lengths: (ragged(*lengths),) for lengths in LENGTHS]
    assert same(program, makes, backend=backend) == PROGRAMS[program]


def made(values, lengths):
    x = torch.nested.nested_tensor_from_jagged(values, lengths)
    y = torch.nested.nested_tensor_from_jagged(values * 2, lengths)
    return x + y, x.shape == y.shape, (x * 2).sum(), x


@pytest.mark.parametrize("backend", BACKENDS)
def test_made_in_the_program(backend):
    makes = [lambda lengths=lengths: parts(*lengths) for lengths in LENGTHS]
    assert same(made, makes, backend=backend, graphs=2) == 2 * 6  # static content first

    def of_list(a, b):
        return torch.nested.as_nested_tensor([a, b], layout=torch.jagged) * 2

    makes = [lambda: (torch.ones(2, 3), torch.ones(4, 3))] * 2
    same(of_list, makes, backend=backend)


def test_in_an_object():
    def program(holder):
        return holder.x * 2, holder.x.shape

    assert same(program, [lambda n=n: (box(*n),) for n in LENGTHS]) == 1


def two(x, y):
    return x.shape[1] == y.shape[1], x.shape == y.shape, x * 2, y * 3


def added(x, y):
    return torch.where(x > 0, x, y) + y


@pytest.mark.parametrize("backend", BACKENDS)
def test_which_offsets_are_one_tensor_is_guarded(backend):
    def alone():
        return ragged(2, 3, 4), ragged(2, 3, 4)

    def together():
        return related(2, 3, 4)

    def others():
        return related(5, 2, 3)

    for order in ([alone, together, alone, others], [together, alone, others, alone]):
        same(two, order, graphs=2, backend=backend)
    assert same(added, [together, others], backend=backend) == 3
    compiled = framejit.compile(added, backend="eager")
    compiled(*together())
    for function in (added, compiled):
        with pytest.raises(RuntimeError, match="broadcast"):
            function(*alone())


def test_what_needs_the_lengths_is_a_graph_break():
    def unbinds(x):
        return [part.sum() for part in (x * 2).unbind()]

    def prints(x):
        y = x * 2
        print("between")
        return y + x, y.shape[1] == x.shape[1]

    same(unbinds, [lambda: (ragged(2, 3, 4),)], breaks=1, graphs=2)
    same(prints, [lambda n=n: (ragged(*n),) for n in LENGTHS], breaks=1, graphs=2)


def test_other_kinds_compile_again():
    def program(x):
        return x * 2

    def turned():
        return (ragged(2, 3, 4).transpose(1, 2),)

    def exact():
        return (ragged(2, 3, 4).double(),)

    def deep():
        return (ragged(2, 3, 4).unflatten(-1, [2, 2]),)

    makes = [lambda: (ragged(2, 3, 4),), turned, exact, deep]
    same(program, makes + makes, graphs=4)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.into = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.norm, self.out = nn.LayerNorm(4), nn.Linear(4, 4)

    def forward(self, x):
        heads = [layer(x).unflatten(-1, [2, 2]).transpose(1, 2) for layer in self.into]
        made = functional.scaled_dot_product_attention(*heads)
        return x + self.out(self.norm(made.transpose(1, 2).flatten(-2)))


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x):
        return x + self.down(self.norm(functional.gelu(self.up(x))))


def leaf(*lengths):
    given = list(content(*lengths).split(lengths))
    return torch.nested.nested_tensor(given, layout=torch.jagged, requires_grad=True), None


def of_leaf(*lengths):
    values = content(*lengths).requires_grad_()
    limits = {"min_seqlen": min(lengths), "max_seqlen": max(lengths)}
    return torch.nested.nested_tensor_from_jagged(values, offsets(*lengths), **limits), values


def without_gradient(*lengths):
    return ragged(*lengths), None


def trained(model, forward, make):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    left = []
    for lengths in LENGTHS:
        x, values = make(*lengths)
        loss = forward(x).values().square().mean()
        loss.backward()
        left += [loss.detach(), [p.grad.clone() for p in model.parameters()]]
        if values is not None:
            left.append(values.grad)
        elif x.requires_grad:
            left += [x.grad.values(), x.grad.offsets()]
        optimizer.step()
        optimizer.zero_grad()
    return left


@pytest.mark.parametrize(
    "backend", [*BACKENDS, pytest.param("inductor", marks=pytest.mark.slow)]
)  # fmt: skip
@pytest.mark.parametrize("make", [without_gradient, leaf, of_leaf])
@pytest.mark.parametrize("cls, graphs", [(Perceptron, 1), (Attention, 2)])
def test_training(cls, graphs, make, backend):
    """Without a GPU attention looks at the lengths, between two graphs."""
    counting, inner = CountingBackend(), lookup_backend(backend)
    torch.manual_seed(0)
    plain, model = cls(), cls()
    model.load_state_dict(plain.state_dict())
    compiled = framejit.compile(model, backend=lambda m, e: inner(counting(m, e), e))
    torch.testing.assert_close(trained(model, compiled, make), trained(plain, plain, make))
    assert len(counting.graphs) == graphs


class Norms(nn.Module):
    """Its results have a gradient, and one graph of autograd's or two."""

    def __init__(self, one):
        super().__init__()
        self.first, self.second, self.one = nn.LayerNorm(4), nn.LayerNorm(4), one

    def forward(self, x):
        y = self.first(x * 2)
        z = y if self.one else self.second(x)
        return y.values(), torch.nested.to_padded_tensor(z, 0.0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("one, operations, parts", [(True, 4, 1), (False, 5, 2)])
def test_results_with_gradients(one, operations, parts, backend):
    inner, graphs = lookup_backend(backend), []
    plain, model = Norms(one), Norms(one)
    compiled = framejit.compile(model, backend=lambda m, e: inner(graphs.append(m) or m, e))
    with events.recording(events.BackendFailed) as failed:
        for lengths in LENGTHS:
            (values, pads), (expected, padding) = (
                compiled(ragged(*lengths)),
                plain(ragged(*lengths)),
            )
            torch.testing.assert_close((values, pads), (expected, padding))
            for first, second in ((pads, values), (padding, expected)):
                first.square().sum().backward(retain_graph=one)
                second.square().sum().backward()
            for got, wanted in zip(model.parameters(), plain.parameters(), strict=True):
                torch.testing.assert_close(got.grad, wanted.grad)
    assert not failed and len(graphs) == 1
    assert sum(node.op.startswith("call") for node in graphs[0].graph.nodes) == operations
    assert len(graphs[0].meta[PARTS] or [()]) == parts


def test_a_package_refuses_them(tmp_path):
    compiled = framejit.compile(pointwise, backend="eager")
    compiled(ragged(2, 3, 4))
    with pytest.raises(framejit.exc.PackageError):
        compiled.save_package(tmp_path / "saved")
