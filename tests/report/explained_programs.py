"""Programs for test_explain; the comments say what becomes of the lines. ``CASES``: by name,
what is compiled and the functions that are captured in it."""

import dataclasses
import logging

import torch
from torch import nn


def helper(x):
    y = x * 2  # captured
    if y.sum() > 0:  # break
        y = y + 1  # captured
    else:
        y = y - 1
    return y  # captured


def program(x, n):
    x = helper(x)  # captured
    print("spoken")  # break
    return x * n  # captured


def no_break(x, n):
    parts = [x * i for i in range(n)]  # captured
    total = sum(parts)  # captured
    if n > 100:  # captured
        total = -total
    return torch.stack([total, x])  # captured


def loop(x, n):
    for i in range(n):  # captured
        x = x + i  # captured
        if i == 1:  # captured
            print("second")  # break
        x = x * 2  # captured
    return x  # captured


def handled(x, n):
    y = x + n  # captured
    try:
        y = y * 2  # captured
        if y.max().item() > 5:  # break
            raise ValueError("too much")  # captured
        y = y - 1
    except ValueError:  # captured
        y = y + 1  # captured
    return y  # captured


def block(x, n):
    with torch.no_grad():  # captured
        y = x * n  # captured
        logging.getLogger("explained").debug("in the block")  # break
        k = y.sum().item()  # break
        z = y + k  # captured
    return z * 2  # captured


def closure(x, n):
    scale = n + 1  # captured

    def inner(z):  # captured
        z = z * scale  # captured
        print("inner", n)  # break
        return z + 1  # captured

    return inner(inner(x))  # captured


@dataclasses.dataclass
class Result:
    value: torch.Tensor
    steps: int


def structured(x, n):
    result = Result(x * n, 0)  # captured
    while result.steps < 2:  # captured
        result.steps += 1  # captured
        result.value = result.value + result.steps  # captured
    kept = {"value": result.value, "all": result.value.nonzero()}  # break
    return kept["value"] - 1, kept["all"]  # captured


def chain(x, n):
    def parts():  # captured
        for i in range(n):  # captured
            yield x * i  # captured

    out = x  # captured
    for part in parts():  # captured
        out = out + part  # captured
    return out.relu(), [v for v in out.tolist() if v > 0]  # break


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.calls = nn.Linear(3, 3), 0

    def forward(self, x, n):
        self.calls += 1  # captured
        h = self.linear(x)  # captured
        h = self.gate(h)  # captured
        return h * n  # captured

    def gate(self, h):
        if h.norm() > 1000:  # break
            h = h / h.norm()
        return torch.tanh(h)  # captured


def nested(x, n):
    def out(k):  # captured
        with torch.no_grad():  # captured
            print("deep", k)  # break
            return x + k  # captured

    return [out(k) for k in (n, n + 1)]  # captured


CASES = {
    "program": (program, [helper, program]), "no_break": (no_break, [no_break]),
    "loop": (loop, [loop]), "handled": (handled, [handled]), "block": (block, [block]),
    "closure": (closure, [closure]), "structured": (structured, [structured]),
    "chain": (chain, [chain]), "net": (Net, [Net.forward, Net.gate]), "nested": (nested, [nested]),
}  # fmt: skip
