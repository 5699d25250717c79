"""The world of the guard fuzzer: a program, the objects it reads, and all that can change.

Two worlds are made and changed alike; in one of them the program is compiled. Every change is a
function of (world, number): the same number does the same thing in both worlds.
"""

from __future__ import annotations

import contextlib
import types
from typing import Any

import torch

PROGRAM = """
import torch
from torch import nn

SCALE = 2.0
FLAG = True
TABLE = {"k": 1.5, "n": 2}
ORDER = ["a", "b"]

def helper(x, factor=1.0, *, shift=0.0):
    return x * factor + shift

def other_helper(x, factor=3.0, *, shift=1.0):
    return x - factor * shift

class Config:
    __slots__ = ("width", "__dict__")
    mode = "plain"
    def __init__(self):
        self.width = 2
        self.name = "c"
    @property
    def twice(self):
        return self.width * 2

class OtherConfig(Config):
    __slots__ = ()
    mode = "other"
    @property
    def twice(self):
        return self.width * 3

class Block(nn.Module):
    gain = 1.0
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.alpha = 0.5
        self.sizes = [1, 2]
        self.register_buffer("buf", torch.ones(4))
    def forward(self, x):
        x = self.norm(self.linear(x)) * self.alpha * self.gain + self.buf
        if self.training:
            x = x + 1
        for size in self.sizes:
            x = x + size
        return x

def other_forward(self, x):
    return self.linear(x) - 1

def make_closure():
    bonus = 1.0
    def get(x):
        return x + bonus
    def put(value):
        nonlocal bonus
        bonus = value
    return get, put

get, put = make_closure()

def main(net, config, x, extra, table):
    y = net(x)
    if FLAG:
        y = y * SCALE
    y = helper(y) + TABLE["k"]
    if config.mode == "plain":
        y = y + config.width
    else:
        y = y - config.twice
    for name in ORDER:
        if name in table:
            y = y + table[name]
    y = get(y)
    if torch.is_grad_enabled():
        y = y * 1.5
    y = y + torch.ones(1).to(y.dtype) * len(TABLE)
    outs = [t + 1 for t in extra]
    if len(extra) > 1 and extra[0] is extra[1]:
        y = y * 2
    return y, outs, isinstance(extra, tuple), torch.get_default_dtype()
"""


class World:
    """One copy of everything."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.program: dict[str, Any] = {"__name__": "fuzzed", "__builtins__": __builtins__}
        exec(compile(PROGRAM, "<fuzzed>", "exec"), self.program)
        self.net = self.program["Block"]()
        self.first_forward = self.program["Block"].forward
        self.config = self.program["Config"]()
        self.x = torch.arange(8.0).reshape(2, 4)
        self.extra: Any = [torch.ones(2), torch.zeros(2)]
        self.table: Any = {"a": 1.0}
        self.modes: dict[str, Any] = {}
        self.hooks: list[Any] = []
        self.main = self.program["main"]

    @property
    def args(self) -> tuple[Any, ...]:
        return (self.net, self.config, self.x, self.extra, self.table)

    @contextlib.contextmanager
    def active(self) -> Any:
        """The modes of this world, in force."""
        with contextlib.ExitStack() as stack:
            dtype = torch.get_default_dtype()
            stack.callback(torch.set_default_dtype, dtype)
            for make in self.modes.values():
                manager = make()
                if manager is not None:
                    stack.enter_context(manager)
            yield


CHANGES: dict[str, Any] = {}


def change(function: Any) -> Any:
    CHANGES[function.__name__] = function
    return function


# -- globals, functions, closures ----------------------------------------------------------------


@change
def set_scale(w, n):
    w.program["SCALE"] = [2.0, 3.0, -0.0, 2.0][n % 4]


@change
def set_flag(w, n):
    w.program["FLAG"] = [True, False, 1, ""][n % 4]


@change
def unrelated_global(w, n):
    w.program["UNREAD"] = n


@change
def table_in_place(w, n):
    w.program["TABLE"][["k", "n", "z"][n % 3]] = float(n % 5)


@change
def table_replaced(w, n):
    w.program["TABLE"] = dict(w.program["TABLE"], k=float(n % 2))


@change
def table_shrinks(w, n):
    w.program["TABLE"].pop("z", None)


@change
def order_in_place(w, n):
    order = w.program["ORDER"]
    order.append("ab"[n % 2]) if len(order) < 3 else order.pop()


@change
def order_replaced(w, n):
    w.program["ORDER"] = [["a", "b"], ["b"], ("a",)][n % 3]


@change
def helper_replaced(w, n):
    w.program["helper"], w.program["other_helper"] = (
        w.program["other_helper"], w.program["helper"],
    )  # fmt: skip


@change
def helper_defaults(w, n):
    w.program["helper"].__defaults__ = (float(n % 3),)


@change
def helper_kwdefaults(w, n):
    if n % 2:
        w.program["helper"].__kwdefaults__ = {"shift": float(n % 3)}
    else:
        w.program["helper"].__kwdefaults__["shift"] = float(n % 4)


@change
def helper_code(w, n):
    one, other = w.program["helper"], w.program["other_helper"]
    one.__code__, other.__code__ = other.__code__, one.__code__


@change
def shadowed_builtin(w, n):
    if "len" in w.program:
        del w.program["len"]
    else:
        w.program["len"] = lambda thing: 7


@change
def closure(w, n):
    w.program["put"](float(n % 3))


# -- objects -------------------------------------------------------------------------------------


@change
def slot(w, n):
    w.config.width = n % 3


@change
def unread_attribute(w, n):
    w.config.name = str(n)


@change
def instance_attribute(w, n):
    if "mode" in vars(w.config):
        del w.config.mode
    else:
        w.config.mode = ["plain", "own"][n % 2]


@change
def class_attribute(w, n):
    w.program["Config"].mode = ["plain", "class"][n % 2]


@change
def object_class(w, n):
    w.config.__class__ = w.program[["Config", "OtherConfig"][n % 2]]


@change
def object_dict(w, n):
    w.config.__dict__ = {"name": "d"} if n % 2 else {"mode": "dict", "name": "d"}


@change
def another_object(w, n):
    w.config = w.program[["Config", "OtherConfig"][n % 2]]()


@change
def property_of_class(w, n):
    w.program["Config"].twice = property(
        [lambda self: self.width * 2, lambda self: self.width + 10][n % 2]
    )


# -- modules -------------------------------------------------------------------------------------


@change
def train(w, n):
    w.net.train(bool(n % 2))


@change
def train_of_a_part(w, n):
    w.net.norm.train(bool(n % 2))


@change
def alpha(w, n):
    w.net.alpha = [0.5, 0.25, 1][n % 3]


@change
def class_gain(w, n):
    w.program["Block"].gain = float(n % 3)


@change
def instance_gain(w, n):
    if "gain" in vars(w.net):
        del w.net.gain
    else:
        w.net.gain = 4.0


@change
def sizes(w, n):
    w.net.sizes[n % 2] = n % 4


@change
def new_sizes(w, n):
    w.net.sizes = [[1, 2], [1, 2, 3], (2, 1)][n % 3]


@change
def parameter_in_place(w, n):
    with torch.no_grad():
        w.net.linear.weight.mul_(0.5).add_(n % 3)


@change
def parameter_replaced(w, n):
    torch.manual_seed(n)
    w.net.linear.weight = torch.nn.Parameter(torch.randn(4, 4))


@change
def parameter_data(w, n):
    w.net.linear.weight.data = [torch.ones(4, 4), torch.eye(4), torch.ones(4, 4).t()][n % 3].clone()


@change
def parameter_frozen(w, n):
    w.net.linear.weight.requires_grad_(bool(n % 2))


@change
def bias_removed(w, n):
    w.net.linear.bias = None if n % 2 else torch.nn.Parameter(torch.ones(4))


@change
def buffer_replaced(w, n):
    w.net.buf = torch.full((4,), float(n % 3))


@change
def buffer_dtype(w, n):
    w.net.buf = w.net.buf.to([torch.float32, torch.float64][n % 2])


@change
def submodule_replaced(w, n):
    torch.manual_seed(n)
    w.net.norm = [torch.nn.BatchNorm1d(4), torch.nn.Identity(), torch.nn.LayerNorm(4)][n % 3]


@change
def same_state(w, n):
    w.net.load_state_dict({k: v.clone() for k, v in w.net.state_dict().items()})


@change
def hook_added(w, n):
    target = [w.net, w.net.linear, w.net.norm][n % 3]
    if n % 2:
        w.hooks.append(target.register_forward_hook(lambda m, args, out: out + 1))
    else:
        w.hooks.append(target.register_forward_pre_hook(lambda m, args: (args[0] * 2,)))


@change
def hook_removed(w, n):
    if w.hooks:
        w.hooks.pop(n % len(w.hooks)).remove()


@change
def instance_forward(w, n):
    if "forward" in vars(w.net):
        del w.net.forward
    else:
        w.net.forward = types.MethodType(w.program["other_forward"], w.net)


@change
def class_forward(w, n):
    w.program["Block"].forward = [w.first_forward, w.program["other_forward"]][n % 2]


@change
def module_dict_replaced(w, n):
    w.net.__dict__ = dict(w.net.__dict__)


@change
def another_module(w, n):
    torch.manual_seed(n)
    w.net = w.program["Block"]()
    w.hooks.clear()


# -- arguments -----------------------------------------------------------------------------------


@change
def argument_values(w, n):
    w.x = torch.full_like(w.x, n)


@change
def argument_size(w, n):
    w.x = torch.arange(float(4 * (2 + n % 3))).reshape(-1, 4)


@change
def argument_dtype(w, n):
    w.x = w.x.to([torch.float32, torch.float64, torch.int64][n % 3])


@change
def argument_strides(w, n):
    w.x = torch.arange(12.0).reshape(4, 3).t() if n % 2 else torch.ones(3, 4)


@change
def argument_requires_grad(w, n):
    w.x = w.x.detach().float().requires_grad_(bool(n % 2))


@change
def argument_resized_in_place(w, n):
    w.x = w.x.detach()
    w.x.data = torch.ones(2 + n % 2, 4)


@change
def extra_alias(w, n):
    one = torch.ones(2)
    w.extra = [one, one] if n % 2 else [one, one.clone()]


@change
def extra_kind(w, n):
    w.extra = [tuple(w.extra), list(w.extra), list(w.extra)[:1]][n % 3]


@change
def extra_in_place(w, n):
    if isinstance(w.extra, list) and w.extra:
        w.extra[0] = torch.full((1 + n % 2,), float(n))


@change
def table_argument(w, n):
    w.table = [{"a": 1.0}, {"b": 2.0}, {"b": 1.0, "a": 1.0}, {}, {"a": torch.ones(1)}][n % 5]


# -- modes ---------------------------------------------------------------------------------------


@change
def grad_mode(w, n):
    w.modes["grad"] = [torch.enable_grad, torch.no_grad, torch.inference_mode][n % 3]


@change
def autocast(w, n):
    w.modes["autocast"] = lambda: torch.autocast("cpu", torch.bfloat16, enabled=bool(n % 2))


@change
def default_dtype(w, n):
    w.modes["dtype"] = lambda: torch.set_default_dtype([torch.float32, torch.float64][n % 2])


@change
def default_device(w, n):
    w.modes["device"] = lambda: torch.device("cpu") if n % 2 else None


def outcome(world: World, function: Any) -> Any:
    """What a call in this world does: its result or error, and the module's state after it."""
    torch.manual_seed(7)
    with world.active():
        try:
            result = function(*world.args)
        except Exception as error:  # noqa: BLE001 - compared
            return type(error), str(error).splitlines()[:1]
        y, *rest = result
        return (
            y.detach().clone(),
            y.requires_grad,
            rest,
            {name: value.clone() for name, value in world.net.state_dict().items()},
        )
