"""Programs for packages, and the process that saves or loads them: ``python package_programs.py``.

``save DIRECTORY BACKEND NAME...`` compiles, calls and saves; ``load`` loads and calls, and prints
one JSON line per program: what was captured and compiled, and whether the results are right.
"""

import dataclasses
import enum
import functools
import json
import sys
import warnings
from pathlib import Path

import numpy
import torch
from torch import nn

import framejit
from framejit.report import events


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    scale: float


class Section:
    def __enter__(self):
        LINES.append("enter")
        return self

    def __exit__(self, *error):
        LINES.append("exit")
        return False


LINES = []


def times(x, k):
    return plus(x * k)


def plus(x):
    return shifted(x) + 1


def shifted(x):
    return x - 0.5


def three_breaks(x):
    for i in range(3):
        x = times(x, i + 1)
        with Section():
            print("at", i)
            x = x.relu()
    if x.sum() > 0:
        x = x + 1
    return x * 2, [x]


def grad_modes(x, scale):
    with torch.no_grad():
        print("only the mode is changed in front of this")
        y = x * scale
        print("and left behind that")
        y = y + 1
    with torch.no_grad():
        w = scale * 3
        print("between", torch.is_grad_enabled())
        w = w.relu()
    return x * scale * y, w, w.requires_grad, torch.is_grad_enabled()


def in_grad_modes(compiled, x):
    scale = torch.full((3,), 2.0, requires_grad=True)
    product, *rest = compiled(x, scale)
    product.sum().backward()
    return product, rest, scale.grad


def make_closure(n=2.0):
    weight = torch.full((3,), n)
    k = 2.5

    def closure(x):
        print("hello")
        return x * k + weight

    return closure


def saves(x, scale):
    """The backward graph may reuse the memory of what this saves."""
    h = torch.tanh(x.outer(scale) @ x.outer(x))
    return (h * h.sin()).sum()


def repeated_backward(compiled, x):
    scale = torch.full((3,), 0.5, requires_grad=True)
    loss = compiled(x, scale)
    return [torch.autograd.grad(loss, scale, retain_graph=keep)[0] for keep in (True, True, False)]


def losses(x, scale):
    h = (x * scale).exp()
    return h.sum(), (x * h.detach() * scale).sin().sum()


def backward_of_each(compiled, x):
    found = []
    for size in (3, 4, 5):
        scale = torch.full((size,), 0.5, requires_grad=True)
        for loss in compiled(x[:1] + torch.arange(size), scale):
            loss.backward()
            found.append(scale.grad.clone())
    return found


def states(x, scale):
    y = x * scale
    z = y.sin()
    return y, z, z * y


def gradients_between(compiled, x):
    found = []
    for _ in range(3):
        scale = torch.full((3,), 0.5, requires_grad=True)
        y, z, last = compiled(x, scale)
        y.retain_grad()
        z.register_hook(lambda gradient: gradient * 2)
        last.sum().backward()
        found += [y.grad, scale.grad]
    return found


def dataclass_argument(batch):
    return Batch(batch.x * batch.scale, batch.scale + 1)


def make_local_class():
    class Local:
        def __init__(self, a):
            self.a = a

        def shifted(self, x):
            return x + self.a

    def local_class(x, obj):
        return obj.shifted(x).sin()

    return local_class, Local(3)


def raising(x):
    try:
        x = x + 1
        print("before")
        x.view(17)
    except RuntimeError as error:
        return x, type(error).__name__
    return x, None


def mutation(x, d):
    d["y"] = x + 1
    x.mul_(2)
    return d


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.0)
        self.second = nn.Linear(8, 2)
        self.register_buffer("offset", torch.ones(2))

    def forward(self, x):
        return self.second(self.drop(self.first(x).relu())) + self.offset


def make_net():
    torch.manual_seed(0)
    return Net()


def net_in_three_modes(compiled, x):
    out = []
    compiled.train()
    out.append(compiled(x))
    out[0].sum().backward()
    out.append([p.grad.clone() for p in compiled.parameters()])
    compiled.eval()
    out.append(compiled(x))
    with torch.no_grad():
        out.append(compiled(x))
    compiled.zero_grad()
    return out


def training(compiled, x):
    x = x.clone().requires_grad_()
    out = compiled(x)
    out.sum().backward()
    grads = [p.grad.clone() for p in compiled.parameters()]
    compiled.zero_grad()
    return [out.detach(), x.grad, *grads]


def sizes(compiled, x):
    return [compiled(torch.ones(n, 4)) for n in (3, 5, 7, 2, 11)]


@functools.lru_cache(4)
def halved(n):
    return [n // 2, n - n // 2], (n, "n")


def by_halves(x):
    parts, named = halved(x.shape[0])
    return x * parts[0] + parts[1], parts, named


def sizes_in_a_cache(compiled, x):
    """One of the results in the cache is not what would be computed."""
    halved.cache_clear()
    halved(7)[0][0] = 99
    return *sizes(compiled, x), halved(2)[0] is compiled(torch.ones(2, 4))[1]


def plain(compiled, *args):
    return compiled(*args)


def make_autograd_function():
    """A class that the graph calls and that only guards on its content lead to."""

    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            return (x * scale).round() / scale

        @staticmethod
        def backward(ctx, grad):
            return grad * (ctx.saved_tensors[0].abs() < 1), None

    return lambda x: Rounded.apply(x, 4.0).sum()


def make_optimizer_step():
    """Parameters are keys of the optimizer's state: guards compare their identity."""
    net = make_net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)

    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach(), [p.detach().clone() for p in net.parameters()]

    return step


def several(compiled, x):
    return [compiled(x) for _ in range(3)]


def enum_and_recurrence():
    class Mode(enum.Enum):
        UP = 1
        DOWN = 2

    torch.manual_seed(0)
    cell = nn.GRU(3, 3)
    return lambda x, mode: cell(x[None])[0] + mode.value, (X, Mode.DOWN), plain


class Clipping:
    limit = 1.5

    def hook(self, gradient, scale=1.0):
        return gradient.clamp(max=self.limit) * scale


CLIPPING = Clipping()


def with_hooks(x):
    """Hooks that each call makes: a lambda, a function with a closure, a method, a partial."""
    scale, shift = 3.0, float(x.shape[0])

    def double(gradient, *, more=1.0):
        return CLIPPING.hook(gradient * shift) + more

    made = [x * 2, x.exp(), x + 1, x.sin()]
    hooks = [
        lambda gradient, by=shift: gradient * scale + by, double, CLIPPING.hook,
        functools.partial(double, more=CLIPPING.limit),
    ]  # fmt: skip
    for tensor, hook in zip(made, hooks, strict=True):
        tensor.register_hook(hook)
    return made[0].sum() + made[1].prod() + made[2].sum() * 2 + made[3].sum()


def hooked(compiled, x):
    x = x.clone().requires_grad_()
    compiled(x).backward()
    return x.grad


def arrays(x, array):
    array[0] = 3
    made = numpy.sin(array) + numpy.float32(1)
    return torch.from_numpy(made) * x, made.dtype, made.dtype == numpy.float32


def constants(x):
    return x * torch.tensor([[row + 0.25 * i for i in range(3)] for row in range(8)])


X = torch.arange(3.0) - 0.7


def local_case():
    function, obj = make_local_class()
    return function, (X, obj), plain


#: name -> () -> (what to compile, arguments, how to call it)
PROGRAMS = {
    "three_breaks": lambda: (three_breaks, (X,), plain),
    "grad_modes": lambda: (grad_modes, (X,), in_grad_modes),
    "repeated_backward": lambda: (saves, (X,), repeated_backward),
    "losses": lambda: (losses, (X,), backward_of_each),
    "states": lambda: (states, (X,), gradients_between),
    "closure": lambda: (make_closure(), (X,), plain),
    "dataclass": lambda: (dataclass_argument, (Batch(X, 2.0),), plain),
    "local_class": local_case,
    "raising": lambda: (raising, (X,), plain),
    "mutation": lambda: (mutation, (X.clone(), {}), plain),
    "method": lambda: (make_net().forward, (torch.ones(3, 4),), plain),
    "three_modes": lambda: (make_net(), (torch.ones(3, 4),), net_in_three_modes),
    "sizes": lambda: (make_net().eval(), (torch.ones(3, 4),), sizes),
    "sizes_in_a_cache": lambda: (by_halves, (torch.ones(3, 4),), sizes_in_a_cache),
    "training": lambda: (make_net(), (torch.ones(3, 4),), training),
    "autograd_function": lambda: (
        make_autograd_function(), (X.clone().requires_grad_(),), plain,
    ),
    "hooks": lambda: (with_hooks, (X,), hooked),
    "enum_and_recurrence": enum_and_recurrence,
    "constants": lambda: (constants, (X,), plain),
    "arrays": lambda: (arrays, (X.clone(), numpy.zeros(3, numpy.float32)), plain),
    # The last: torch.optim imports torch._dynamo itself.
    "optimizer": lambda: (make_optimizer_step(), (torch.ones(3, 4),), several),
}  # fmt: skip


def flat(value):
    """The tensors and plain values in a result."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flat(item)]
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in flat(item)]
    if dataclasses.is_dataclass(value):
        return flat(list(vars(value).values()))
    return [value]


TOLERANCE = 1e-5


def same(one, two):
    if isinstance(one, torch.Tensor):
        return torch.allclose(one, two, atol=TOLERANCE, rtol=TOLERANCE)
    return one == two


def run(mode, directory, backend, name):
    target, args, call = PROGRAMS[name]()
    expected = flat(call(target, *args))
    target, args, call = PROGRAMS[name]()
    dynamic = True if name.endswith("_batches") else None
    compiled = framejit.compile(target, backend=backend, dynamic=dynamic)
    path = Path(directory) / f"{name}.package"
    framejit.counters.clear()
    with events.recording(events.CaptureStart, events.GraphCompiled) as seen:
        if mode == "load":
            compiled.load_package(path)
        got = flat(call(compiled, *args))
    if mode == "save":
        compiled.save_package(path)
    return {
        "name": name,
        "right": len(got) == len(expected) and all(map(same, expected, got)),
        "captured": [e.name for e in seen if isinstance(e, events.CaptureStart)],
        "compiled": sum(isinstance(e, events.GraphCompiled) for e in seen),
        "prefix": sys.prefix, "torch": torch.__file__,
        "modules": [m for m in ("torch._dynamo", "sympy") if m in sys.modules],
    }  # fmt: skip


def main(mode, directory, backend, *names):
    warnings.simplefilter("error", framejit.exc.FramejitWarning)
    with framejit.config.patch(raise_internal_errors=True):
        for name in names or PROGRAMS:
            print("\n#" + json.dumps(run(mode, directory, backend, name)))


if __name__ == "__main__":
    main(*sys.argv[1:])
