"""torch.compiler's controls: disable, stances, marks, reset."""

import torch
from torch._dynamo import mark_dynamic


@torch.compiler.disable
def plain(x):
    return x * 3


@torch.compiler.disable(recursive=True, reason="slow")
def plain_too(x):
    return x - 1


@torch.compiler.assume_constant_result
def number():
    return 7


@torch.compile(backend="eager")
def f(x):
    return plain_too(plain(x + 1)) * number() + torch.compiler.is_compiling()


print(f(torch.ones(2)))
with torch.compiler.set_stance("force_eager"):
    print(f(torch.ones(3)))
torch.compiler.set_stance("eager_on_recompile")
print(f(torch.ones(4, dtype=torch.float64)))
torch.compiler.set_stance("fail_on_recompile")
print(f(torch.ones(2)))
torch.compiler.set_stance("default")
x = torch.ones(5)
mark_dynamic(x, 0)
print(f(x), "eager" in torch.compiler.list_backends(None))
torch.compiler.reset()
print(f(torch.ones(2)))
