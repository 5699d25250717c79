"""Attributes that programs give to tensors: existing ones, and those that graphs make."""

from __future__ import annotations

import pytest
import torch

import framejit
from checking import CountingBackend, check, said

X = torch.arange(6.0).reshape(2, 3)


def of_a_result(x):
    y = x + 1
    y.factor = 3
    y.parts = [x, "text"]
    y.parts.append(y.factor)
    return y * y.factor, y, len(y.parts)


def of_an_argument(x):
    x.factor = 3
    x.itself = x
    return x * x.factor, hasattr(x, "missing")


def of_a_result_that_refers_to_itself(x):
    y = x * 2
    y.root, y.source = y, x
    return y.root.source + 1, y


def deleted_again(x):
    y = x + 1
    y.note = 1
    before = hasattr(y, "note"), getattr(y, "other", None)
    del y.note
    return before, hasattr(y, "note"), y


def kept_in_place(x):
    y = x + 1
    y.note = "kept"
    z = y.mul_(2).view(2, 3).contiguous()
    same = y.contiguous()
    return y.add_(1).note, hasattr(z, "note"), same.note, y, z


def only_through_an_attribute(x):
    y = x + 1
    y.hidden = x * 2
    return [y]


@pytest.mark.parametrize(
    "program",
    [
        of_a_result, of_an_argument, of_a_result_that_refers_to_itself, deleted_again,
        kept_in_place, only_through_an_attribute,
    ],
)  # fmt: skip
def test_one_graph(program):
    result = check(program, X, graphs=1, fullgraph=True)
    assert result.ops


def contents(tensor):
    return {name: str(content) for name, content in vars(tensor).items()}


@pytest.mark.parametrize("program", [of_a_result, of_an_argument, only_through_an_attribute])
def test_what_lands_on_the_tensor(program):
    compiled = framejit.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        given, plain = X.clone(), X.clone()
        got, expected = compiled(given), program(plain)
        assert contents(given) == contents(plain)
        pairs = zip(got, expected, strict=True)
        assert [contents(g) for g, _ in pairs if isinstance(g, torch.Tensor)] == [
            contents(e) for e in expected if isinstance(e, torch.Tensor)
        ]


def test_an_attribute_that_comes_and_goes():
    def run(x):
        return x * x.factor if hasattr(x, "factor") else x

    backend = CountingBackend()
    compiled = framejit.compile(run, backend=backend, fullgraph=True)
    for factor in (None, 2, None, 2, 5):
        x = X.clone()
        if factor is not None:
            x.factor = factor
        assert torch.equal(compiled(x), run(x))
    assert len(backend.graphs) <= 2


def test_attributes_over_a_graph_break():
    def run(x):
        y = x + 1
        y.note = [1]
        print(y.note)
        y.note.append(2)
        return y * len(y.note), y.note

    check(run, X, graphs=2, ops=2)


def test_attributes_that_the_class_has():
    def run(x):
        y = x + 1
        deleted = said(delattr, y, "shape"), said(delattr, y, "other")
        return y * 2, deleted, said(setattr, y, "shape", 1)

    check(run, X, graphs=2)


def test_attributes_of_a_parameter():
    layer = torch.nn.Linear(3, 3)

    def run(x):
        layer.weight.uses = getattr(layer.weight, "uses", 0) + 1
        return layer(x)

    compiled = framejit.compile(run, backend="eager", fullgraph=True)
    for count in (1, 2, 3):
        assert torch.equal(compiled(X), layer(X))
        assert layer.weight.uses == count


def marked(x):
    y = x.sin()
    y.marks = getattr(x, "marks", 0) + 1
    return y


def test_calls_that_are_repeated():
    def run(x):
        for _ in range(6):
            x = marked(x)
        return x, x.marks

    check(run, X, graphs=1, ops=6, fullgraph=True)


@pytest.mark.parametrize("apart", [torch.utils.checkpoint.checkpoint, torch.vmap])
def test_functions_that_are_traced_on_the_side(apart):
    def run(x):
        x = x * 2
        y = apart(marked)(x) if apart is torch.vmap else apart(marked, x, use_reentrant=False)
        return y, hasattr(y, "marks"), x + 1

    backend = CountingBackend()
    compiled = framejit.compile(run, backend=backend)
    for _ in range(2):
        got, expected = compiled(X), run(X)
        assert torch.equal(got[0], expected[0]) and got[1] == expected[1]
    assert backend.graphs
