"""torch.compile as a decorator, with arguments, and of a lambda."""

import sys

import torch


@torch.compile(backend="eager")
def f(x):
    if x.sum() > 0:
        x = x * 2
    return x + 1


g = torch.compile(lambda x: f(x) - 1, backend="eager", fullgraph=False, dynamic=True)
for n in (2, 3, 4):
    print(f(torch.ones(n)), g(-torch.ones(n)))
print(sys.argv[1:], __name__, torch.compiler.is_compiling())
