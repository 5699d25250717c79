"""Results of a graph that others are computed from: hooks on them, and gradients asked for."""

import warnings
import weakref

import pytest
import torch
import torch.nn.functional as F
from counted_parts import Parts
from torch import nn
from torch.autograd.graph import get_gradient_edge, register_multi_grad_hook

import framejit
from checking import Comparison
from framejit.audit.comparison import Tolerance


def same(program, graphs, tolerance=None):
    """As in eager mode; ``graphs``: captured (again, where one is divided), with a backward, and
    without."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*FJ0235")
        expected, backend = program(lambda f: f), Parts()
        got = program(lambda f: framejit.compile(f, backend=backend))
    Comparison(tolerance).compare(expected, got, "result")
    assert not framejit.counters.get("graph_break")
    assert backend.counts == graphs


def leaves():
    return [torch.full((2, 2), n, requires_grad=True) for n in (0.3, 0.7)]


def chain(x, w):
    y = x * w
    z = y.sin()
    return y, z, z * y + x


def test_hooks_hear_the_whole_gradient_and_change_it():
    def program(compile):
        f, out = compile(chain), []
        for _ in range(3):
            x, w = leaves()
            y, z, last = f(x, w)
            for name, one in (("y", y), ("z", z), ("last", last)):
                one.register_hook(lambda g, name=name: out.append((name, g)) or g * 3)
            last.sum().backward()
            out += [x.grad, w.grad, y.grad_fn is z.grad_fn]
        return out

    same(program, (2, 4, 0))


def test_gradients_are_retained():
    def program(compile):
        f, out = compile(chain), []
        for _ in range(3):
            x, w = leaves()
            y, z, last = f(x, w)
            y.retain_grad()
            z.retain_grad()
            (last.sum() + y.exp().sum()).backward(retain_graph=True)
            out += [y.grad.clone(), z.grad.clone(), x.grad.clone()]
            last.sum().backward()
            out += [y.grad, z.grad, x.grad, w.grad]
        return out

    same(program, (2, 4, 0))


def asked(which):
    def program(compile):
        f, out = compile(chain), []
        for _ in range(3):
            x, w = leaves()
            y, z, last = f(x, w)
            inputs = {"y": [y], "z, w": [z, w], "all": [x, y, z, w], "x": [x]}
            edge = get_gradient_edge(y)
            wanted = [edge] if which == "edge" else inputs[which]
            out.append(torch.autograd.grad(last.sum(), wanted, retain_graph=True))
            last.sum().backward(inputs=[w] if which == "x" else [y, w])
            out += [x.grad, y.grad if which != "x" else None, w.grad]
        return out

    return program


@pytest.mark.parametrize("which", ["y", "z, w", "all", "edge"])
def test_gradients_are_asked_for(which):
    same(asked(which), (2, 4, 0))


def test_a_graph_that_nobody_looks_into_stays_whole():
    same(asked("x"), (1, 1, 0))


def test_results_are_let_go_of_and_versions_stay():
    def program(compile):
        f, out = compile(chain), []
        for _ in range(2):
            x, w = leaves()
            y, z, last = f(x, w)
            out.append([(one._version, one._is_view(), one.is_leaf) for one in (y, z, last)])
            last.mul_(2)
            out.append(last._version)
            last.sum().backward()
            out.append(x.grad)
            gone = [weakref.ref(one) for one in (y, z, last)]
            del y, z, last
            out.append([one() is None for one in gone])
        return out

    same(program, (1, 1, 0))


@pytest.mark.parametrize("which", ["x", "y"])
def test_derivatives_of_gradients(which):
    def program(compile):
        f, out = compile(chain), []
        for _ in range(2):
            x, w = leaves()
            y, z, last = f(x, w)
            (g,) = torch.autograd.grad(last.sum(), {"x": x, "y": y}[which], create_graph=True)
            out += [g, torch.autograd.grad(g.sum(), [x, w, y, z], allow_unused=True)]
        return out

    same(program, (2, 4, 0), Tolerance(1e-6, 1e-6))


def test_one_hook_of_several():
    def program(compile):
        f, out = compile(chain), []
        for _ in range(2):
            x, w = leaves()
            results = f(x, w)
            register_multi_grad_hook(results, out.extend)
            results[2].sum().backward(retain_graph=True)
            results[1].sum().backward()
            out.append(x.grad)
        return out

    same(program, (2, 4, 0))


def test_in_a_part_of_a_graph():
    """It is a part since `more` shares nothing with the others; it is computed again each time."""

    def program(compile):
        f, out = compile(lambda x, w: (*chain(x, w), x.exp())), []
        for _ in range(2):
            x, w = leaves()
            y, _, last, more = f(x, w)
            y.register_hook(lambda g: out.append(g) or g * 2)
            (last + more).sum().backward()
            out.append(x.grad)
        return out

    same(program, (1, 2, 0))


def test_with_an_unbounded_derivative():
    def program(compile):
        f, out = compile(lambda x, w: ((y := x * w), y * 2, (y - 0.21).sqrt())), []
        for _ in range(2):
            x, w = leaves()
            y, z, _ = f(x, w)
            y.retain_grad()
            z.sum().backward()
            out += [y.grad, x.grad]
        return out

    same(program, (2, 4, 0))


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.norm = nn.LayerNorm(4)

    def forward(self, x):
        found = []
        for layer in self.layers:
            x = self.norm(x + layer(x).relu())
            found.append(x)
        return found


@pytest.mark.parametrize("autocast", [False, True])
def test_hidden_states_of_a_model(autocast):
    def program(compile):
        torch.manual_seed(0)
        model, out = Layers(), []
        compiled = compile(model)
        for _ in range(2):
            model.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                states = compiled(torch.ones(2, 4))
            for state in states:
                state.retain_grad()
            states[-1].float().square().sum().backward()
            out += [[one.grad for one in states], [one.grad for one in model.parameters()]]
        return out

    same(program, (2, 4, 0), Tolerance(1e-5, 1e-6))


def dropped(x, w):
    y = x * w
    return y, F.dropout(y)


def added(x, w):
    y = x + w
    return y, y * 2


@pytest.mark.parametrize("function", [dropped, added])
def test_what_cannot_run_again_warns_once(function):
    """And is right from the next call on."""

    def program(compile):
        f, out = compile(function), []
        for _ in range(3):
            x, w = leaves()
            y, z = f(x, w)
            if function is added:
                with torch.no_grad():
                    w.add_(1)
            y.retain_grad()
            z.sum().backward()
            out += [z, y.grad, x.grad, w.grad]
        return out

    torch.manual_seed(0)
    expected, backend = program(lambda f: f), Parts()
    torch.manual_seed(0)
    with pytest.warns(UserWarning, match=rf"line \d+, in {function.__name__} .*FJ0235") as found:
        got = program(lambda f: framejit.compile(f, backend=backend))
    assert len([one for one in found if "FJ0235" in str(one.message)]) == 1
    assert got[1] is None and backend.counts == (2, 3, 0)
    got[1] = expected[1]
    Comparison().compare(expected, got, "result")
