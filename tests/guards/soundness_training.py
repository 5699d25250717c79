"""Rows of the soundness table: gradients that are computed in captured code."""

import torch
from soundness import FREE, NEEDED, row
from torch import nn

X = torch.arange(6.0).reshape(2, 3)


def no(result):
    return None


def pair():
    return nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))


def gradients(loss, tensors):
    """Those that ``backward`` stores; afterwards there are none, as before."""
    loss.backward()
    found = [tensor.grad + 0 for tensor in tensors]
    for tensor in tensors:
        tensor.grad = None
    return found


def of_leaf(w):
    return gradients((w * w).sum(), [w])


def leaf():
    return torch.arange(3.0, requires_grad=True)


@row(NEEDED)
def gradients_of_weights_tied_later(w):
    m = pair()
    return (
        lambda x: gradients(m(x).sum(), [m[0].weight, m[1].weight]), (X,),
        lambda: setattr(m[1], "weight", m[0].weight),
    )  # fmt: skip


@row(NEEDED)
def written_weights_tied_later(w):
    m = pair()

    def double():
        with torch.no_grad():
            m[0].weight.mul_(2)
            m[1].weight.mul_(3)
        return m[0].weight + 0, m[1].weight + 0

    return double, (), lambda: setattr(m[1], "weight", m[0].weight)


@row(FREE)
def gradients_of_other_weights(w):
    m = pair()
    return (
        lambda x: gradients(m(x).sum(), [m[0].weight, m[1].weight]), (X,),
        lambda: setattr(m[1], "weight", nn.Parameter(torch.ones(3, 3))),
    )  # fmt: skip


@row(NEEDED, after=3)
def gradient_of_result_of_an_operation(w):
    return (
        lambda w: torch.autograd.grad((w * w).sum(), w), (leaf(),),
        lambda: ((leaf() * 2).requires_grad_(),),
    )  # fmt: skip


@row(NEEDED, after=3)
def gradient_of_frozen_leaf(w):
    def function(x, w, v):
        loss = (x * w * v).sum()
        return gradients(loss, [t for t in (w, v) if t.requires_grad])

    one, two = leaf(), leaf()
    return function, (X, one, two), lambda: no(two.requires_grad_(False))


@row(NEEDED, after=3)
def hook_of_leaf(w):
    one = leaf()
    return of_leaf, (one,), lambda: one.register_hook(lambda gradient: gradient * 3) and None


@row(NEEDED, after=4)
def hook_of_leaf_after_its_gradient(w):
    one = leaf()

    def triple(tensor):
        tensor.grad = tensor.grad * 3

    return of_leaf, (one,), lambda: one.register_post_accumulate_grad_hook(triple) and None


@row(NEEDED, after=3)
def hook_of_node_that_adds_to_a_gradient(w):
    one = leaf()
    kept = []

    def change():
        node = one.view_as(one).grad_fn.next_functions[0][0]
        kept.extend([node, node.register_prehook(lambda given: (given[0] * 3,))])

    return of_leaf, (one,), change


@row(NEEDED)
def gradient_that_is_there_already(w):
    one = leaf()

    def function(w):
        (w * w).sum().backward()
        found, w.grad = w.grad, None
        return found

    return function, (one,), lambda: setattr(one, "grad", torch.ones(3)) or (one,)


@row(NEEDED)
def same_leaf_twice_with_a_gradient(w):
    def function(v, w):
        for leaf in (v, w):
            leaf.grad.zero_()
        (v * w * w).sum().backward()
        return v.grad + 0, w.grad + 0

    one, two = leaf(), leaf()
    one.grad, two.grad = torch.ones(3), torch.ones(3)
    return function, (one, two), lambda: (one, one)


@row(NEEDED)
def same_leaf_twice(w):
    one, two = leaf(), leaf()
    return lambda v, w: gradients((v * w * w).sum(), [v, w]), (one, two), lambda: (one, one)
