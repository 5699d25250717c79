"""Graph breaks that tensors and torch cause: title, cause, example and what to do.

In: nothing. Out: `TEXT`, read by `problems`. A test runs every example. Next: problems.
"""

TEXT = '''
=== FJ0101 Python branches on the data of a tensor
An `if`, `while`, `and`, `or`, `not` or `assert` asks for the truth value of a tensor. Which way the
program goes is known only when the graph has run.
---
@framejit.compile(backend="eager")
def f(x):
    if x.sum() > 0:
        x = x + 1
    return x * 2

f(torch.ones(3))
---
Choose between two results with `torch.where(condition, a, b)`, use `torch.cond` for two larger
branches, or decide on something that is known without the data (a shape, a flag). The break is also
a correct answer: two graphs with the `if` between them.
=== FJ0102 The data of a tensor is needed as a Python value
`item()`, `tolist()`, `float(t)`, `int(t)`, `in`, or a tensor as an index takes a value
out of the graph.
---
@framejit.compile(backend="eager")
def f(x):
    return x * x.sum().item()

f(torch.ones(3))
---
Keep the value a tensor (`x * x.sum()`), move the line behind the compiled function, or set
`framejit.config.capture_scalar_outputs = True`, which captures `item()` as a number that is known
when the graph runs.
=== FJ0103 The size of a result depends on data
`nonzero`, `unique`, masked indexing and the like return as many elements as the data says.
---
@framejit.compile(backend="eager")
def f(x):
    return torch.nonzero(x) * 2

f(torch.ones(3))
---
Compute with a mask of full size (`torch.where`), or set
`framejit.config.capture_dynamic_output_shape_ops = True`.
=== FJ0104 A number that is known only when the graph runs is needed before
A number that is known only when the graph runs (captured by `capture_scalar_outputs` or
`capture_dynamic_output_shape_ops`) is compared or looked at while capturing, or a size is computed
with a function that guards cannot repeat.
---
framejit.config.capture_scalar_outputs = True

@framejit.compile(backend="eager")
def f(x):
    n = x.sum().item()
    return x + 1 if n > 2 else x

f(torch.ones(3))
framejit.config.capture_scalar_outputs = False
---
Say what is true of the number before (`torch._check(n > 2)`), or keep it a tensor and use
`torch.where`.
=== FJ0106 An operator cannot run on tensors without data
Graphs are recorded with tensors that have a shape and no data. This operator does not say what
shape it answers (it has no fake implementation), or reads the memory of its arguments.
---
torch.library.define("docs::double", "(Tensor x) -> Tensor")

@torch.library.impl("docs::double", "CPU")
def double(x):
    return x * 2

@framejit.compile(backend="eager")
def f(x):
    return torch.ops.docs.double(x) + 1

f(torch.ones(3))
---
Register one: `@torch.library.register_fake("docs::double")` above a function of the same arguments
that returns a tensor of the right shape, dtype and device.
=== FJ0108 An operation raises while it is recorded
The operation raises on tensors without data, so it is expected to raise for real. It runs as plain
Python and the exception is the program's own. Under `fullgraph=True` this is an error only if the
real operation does not raise.
---
@torch.library.custom_op("docs::strict", mutates_args=())
def strict(x: torch.Tensor) -> torch.Tensor:
    return x + 1

@strict.register_fake
def _(x):
    raise ValueError("not today")

@framejit.compile(backend="eager")
def f(x):
    return strict(x) * 2

f(torch.ones(3))
---
Nothing, if the exception is meant. Otherwise correct the fake implementation of the operator.
=== FJ0109 An exception leaves the compiled function
The captured program raises an exception that nothing in it catches. The graph ends there, and the
exception is raised as in plain Python.
---
@framejit.compile(backend="eager")
def f(x, size):
    if x.shape[0] != size:
        raise ValueError(f"expected {size} rows")
    return x + 1

try:
    f(torch.ones(3), 4)
except ValueError:
    pass
---
Nothing: the error is the program's own.
=== FJ0111 A tensor's attribute or method cannot be recorded
Some methods change what a tensor is or call back into Python: `requires_grad_()`, `backward()`,
`register_hook()` of a hook with effects.
---
@framejit.compile(backend="eager")
def f(x):
    y = x * 2
    y.requires_grad_()
    return y + 1

f(torch.ones(3))
---
Do it before or behind the compiled function: prepare leaves and call `loss.backward()` outside.
=== FJ0112 An attribute of a tensor is assigned
Tensors are nodes of the graph while capturing; attributes put on them would be lost.
---
@framejit.compile(backend="eager")
def f(x):
    x.note = "seen"
    return x + 1

f(torch.ones(3))
---
Return the information beside the tensor, or keep it in a dict.
=== FJ0113 A tensor subclass has behaviour of its own
A class with `__torch_function__` or `__torch_dispatch__` gives operations another meaning, which a
graph would lose. Parameters of lazy modules are such tensors until the module's first call.
---
class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs)

@framejit.compile(backend="eager")
def f(x):
    return torch.add(x, 1)

f(torch.ones(3).as_subclass(Logged))
---
Unwrap the tensor before the compiled function (`x.as_subclass(torch.Tensor)`).
=== FJ0114 A tensor of an unusual kind
Sparse, nested, quantized and other tensors whose memory is not described by sizes and strides.
---
@framejit.compile(backend="eager")
def f(x):
    return torch.nested.nested_tensor([x, x]).unbind()[0] + 1

f(torch.ones(3))
---
Convert to a dense tensor before the compiled function, or accept the break.
=== FJ0115 Tensors are being transformed around the compiled function
The call runs inside `torch.func` (`grad`, `vmap`) or under a fake tensor mode, so its tensors are
not real.
---
kept = []

def keep(x):
    kept.append(x)
    return (x * x).sum()

@framejit.compile(backend="eager")
def f(x):
    return x + 1

def outer(x):
    keep(x)
    return f(x).sum()

torch.func.grad(keep)(torch.ones(3))
f(kept[0])
---
Compile the transformed function: `framejit.compile(torch.func.grad(f))`.
=== FJ0116 An operation writes to a tensor in a way that is not captured
The target of an in-place operation shares elements with itself or with what is read, or it is an
input that gets another shape or other strides as well (`x.t_()`).
---
@framejit.compile(backend="eager")
def f(x):
    x[1:].add_(x[:-1])
    return x

try:
    f(torch.ones(3))
except RuntimeError:
    pass
---
Copy first: `x[1:].add_(x[:-1].clone())`.
=== FJ0117 A call works on the autograd graph
`torch.autograd.grad`, `backward` and the like run the backward pass, which exists only when the
forward pass has really run.
---
@framejit.compile(backend="eager")
def f(x):
    return torch.autograd.grad((x * x).sum(), x)[0]

f(torch.ones(3, requires_grad=True))
---
Compile the forward pass and differentiate outside, or write `torch.func.grad`, which is captured.
=== FJ0118 Hooks on saved tensors that cannot be opened in a graph
Hooks that change variables or objects of the call that makes them, or what the same graph looks at,
and hooks that are still open where a graph ends.
---
@framejit.compile(backend="eager")
def f(x):
    seen = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: seen.append(t.shape) or t, lambda t: t):
        return x.sin() * 2, seen

f(torch.ones(3, requires_grad=True))
---
Let the hooks only compute what they return, or put the `with` block around the call.
=== FJ0119 A form of autograd.Function that is not captured
The Function is applied with keyword arguments, defines `vjp`-like extras, or uses tensors that are
not arguments.
---
SCALE = torch.ones(3, requires_grad=True)

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * SCALE

    @staticmethod
    def backward(ctx, g):
        return g * SCALE

@framejit.compile(backend="eager")
def f(x):
    return Scale.apply(x) + 1

f(torch.ones(3, requires_grad=True))
---
Pass every tensor as a positional argument; define `forward`, `setup_context` and `backward` only.
=== FJ0120 A form of checkpoint that is not captured
`torch.utils.checkpoint.checkpoint` is captured with `use_reentrant=False`, and without
`context_fn`.
---
from torch.utils.checkpoint import checkpoint

@framejit.compile(backend="eager")
def f(x):
    return checkpoint(torch.sin, x) + 1

f(torch.ones(3, requires_grad=True))
---
Write `checkpoint(function, *args, use_reentrant=False)`.
=== FJ0121 An argument of an operation cannot stand in a graph
Operations in a graph take tensors, numbers, strings, and lists and dicts of those.
---
@framejit.compile(backend="eager")
def f(x):
    return torch.tensor([x.sum(), 1.0]) + 1

f(torch.ones(3))
---
Build tensors out of tensors with `torch.stack` or `torch.cat`; pass plain values to operations.
=== FJ0122 A function given to an operator has side effects
The functions given to `torch.cond`, `map`, `torch.func.jvp` and the like become graphs of their own
and must only compute.
---
seen = []

def note(x):
    seen.append(1)
    return x * 2

@framejit.compile(backend="eager")
def f(x):
    return torch.func.jacfwd(note)(x) + 1

f(torch.ones(3))
---
Return what shall be remembered, and do the rest behind the operator.
=== FJ0123 A form of a higher-order operator that is not captured
The operator is called with arguments of another kind than framejit records: keyword arguments,
structures that differ, something else than tensors.
---
@framejit.compile(backend="eager")
def f(x):
    return torch.vmap(torch.sin, chunk_size=1)(x) + 1

f(torch.ones(3))
---
Give the operator positional tensors, and functions that return the same structure.
=== FJ0124 A setting of torch is changed in a form that is not captured
Most settings (grad mode, autocast, ...) are captured; these change what is made behind the call.
---
@framejit.compile(backend="eager")
def f(x):
    torch.set_default_device("cpu")
    return x + torch.ones(3)

f(torch.ones(3))
torch.set_default_device(None)
---
Set it before the compiled function, or write `with torch.device(...)`.
'''
