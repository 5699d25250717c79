"""Rows of the soundness table: `torch.nn.Module` — members, hooks, training mode, parameters."""

import copy

import torch
from soundness import ALLOWED, FREE, NEEDED, REPEATED, add, row
from torch import nn

X = torch.arange(6.0).reshape(2, 3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.table = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Linear(4, 4)})
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.register_buffer("offset", torch.ones(4))
        self.register_buffer("absent", None)
        self.scale = 2.0
        self.plain = torch.ones(4)

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = layer(x)
        x = self.table["b"](self.table["a"](x)) * self.scale + self.offset
        if self.absent is not None:
            x = x + self.absent
        return self.drop(self.norm(x)) * self.plain

    def extra_repr(self):
        return ""


class Repeated(nn.Module):
    """One network many times, each with its own parameters."""

    def __init__(self, make_net):
        super().__init__()
        self.nets = nn.ModuleList(make_net() for _ in range(6))

    def forward(self, x):
        return sum([net(x) for net in self.nets])


def module(name, expected, change, train=False, make_net=Net, after=1, grad=False):
    """A row in which a module is changed; and one in which that module is one of many."""

    def repeated(w):
        torch.manual_seed(0)
        nets = Repeated(make_net).train(train)
        if not grad:
            w.enter(torch.no_grad())
        return nets, (X,), lambda: change(nets.nets[4]) and None

    add(f"repeated_{name}", expected, repeated, after, table=REPEATED)

    def make(w):
        torch.manual_seed(0)
        net = make_net()
        net.train(train)
        if not grad:
            w.enter(torch.no_grad())
        return net, (X,), lambda: change(net) and None

    add(f"module_{name}", expected, make, after)


def no(*_):
    """Changes return nothing."""


module("attribute", NEEDED, lambda m: setattr(m, "scale", 3.0))
module("attribute_new", FREE, lambda m: setattr(m, "other", 3.0))
module("attribute_deleted", NEEDED, lambda m: delattr(m, "scale"), after=30)
module("plain_tensor_replaced", FREE, lambda m: setattr(m, "plain", torch.zeros(4)))
module("plain_tensor_dtype", NEEDED, lambda m: setattr(m, "plain", torch.zeros(4).double()))
module("train", NEEDED, lambda m: no(m.train()))
module("eval", NEEDED, lambda m: no(m.eval()), train=True)
module("train_of_used_child", NEEDED, lambda m: no(m.drop.train()))
module("train_of_unaffected_child", ALLOWED, lambda m: no(m.first.train()))
module("eval_again", FREE, lambda m: no(m.eval()))
module("dropout_p", NEEDED, lambda m: setattr(m.drop, "p", 0.0), train=True)
module("batchnorm_momentum", NEEDED, lambda m: setattr(m.norm, "momentum", 0.5), train=True)
module("batchnorm_eps", NEEDED, lambda m: setattr(m.norm, "eps", 0.5))
module(
    "submodule_replaced_other_class",
    NEEDED,
    lambda m: setattr(m, "first", nn.Sequential(nn.Linear(3, 4))),
)
module("submodule_replaced_same_class", FREE, lambda m: setattr(m, "first", nn.Linear(3, 4)))
module(
    "submodule_replaced_other_bias",
    NEEDED,
    lambda m: setattr(m, "first", nn.Linear(3, 4, bias=False)),
)
module("module_list_append", NEEDED, lambda m: no(m.layers.append(nn.Linear(4, 4))))
module("module_list_setitem", NEEDED, lambda m: m.layers.__setitem__(1, nn.Tanh()))
module("module_list_del", NEEDED, lambda m: m.layers.__delitem__(0))
module("module_list_shared", ALLOWED, lambda m: m.layers.__setitem__(1, m.layers[0]))
module("module_dict_setitem", NEEDED, lambda m: m.table.__setitem__("a", nn.Tanh()))
module("module_dict_other_key", ALLOWED, lambda m: m.table.__setitem__("c", nn.Tanh()))
# It raises; a comprehension that is a part of its function (CPython 3.12) has a handler for that.
module("module_dict_del", NEEDED, lambda m: m.table.__delitem__("b"), after=2)
module("forward_patched", NEEDED, lambda m: setattr(m, "forward", lambda x: x * 2))
module(
    "child_forward_patched",
    NEEDED,
    lambda m: setattr(m.first, "forward", lambda x: torch.ones(2, 4)),
)
module("class_replaced", NEEDED, lambda m: setattr(m.table["a"], "__class__", nn.Tanh))
module("dict_replaced", FREE, lambda m: setattr(m, "__dict__", dict(m.__dict__)))
module(
    "parameters_dict_replaced",
    FREE,
    lambda m: m.first.__dict__.update(_parameters=dict(m.first._parameters)),
)

# -- parameters and buffers -----------------------------------------------------------------------

module(
    "parameter_replaced", FREE, lambda m: setattr(m.first, "weight", nn.Parameter(torch.ones(4, 3)))
)
module("parameter_shape", NEEDED, lambda m: setattr(m.first, "bias", nn.Parameter(torch.ones(1))))
module("parameter_to_none", NEEDED, lambda m: setattr(m.first, "bias", None))
module("parameter_requires_grad", NEEDED, lambda m: no(m.first.weight.requires_grad_(False)))
module(
    "parameter_strides",
    NEEDED,
    lambda m: setattr(m.first, "weight", nn.Parameter(torch.ones(3, 4).t())),
)
module("parameter_data", FREE, lambda m: setattr(m.first.weight, "data", torch.ones(4, 3)))
module(
    "parameter_data_strides",
    NEEDED,
    lambda m: setattr(m.first.weight, "data", torch.ones(3, 4).t()),
)
module(
    "parameter_data_dtype",
    NEEDED,
    lambda m: setattr(m.first.weight, "data", torch.ones(4, 3).double()),
    after=30,
)
module("parameter_in_place", FREE, lambda m: no(m.first.weight.data.mul_(2)))
module("parameter_deleted", NEEDED, lambda m: delattr(m.first, "bias"), after=30)
module("buffer_replaced", FREE, lambda m: setattr(m, "offset", torch.zeros(4)))
module("buffer_shape", NEEDED, lambda m: setattr(m, "offset", torch.zeros(1)))
module("buffer_none_to_tensor", NEEDED, lambda m: setattr(m, "absent", torch.ones(4)))
module("buffer_dtype", NEEDED, lambda m: setattr(m, "offset", torch.zeros(4).double()), after=30)
module(
    "parameter_registered_unused",
    ALLOWED,
    lambda m: m.register_parameter("p", nn.Parameter(torch.ones(1))),
)
module("buffer_registered_unused", ALLOWED, lambda m: m.register_buffer("p", torch.ones(1)))
module("double", NEEDED, lambda m: no(m.double()), after=30)
module("to_meta_and_back", FREE, lambda m: no(m.to(torch.float64).to(torch.float32)))
module("requires_grad_all", NEEDED, lambda m: no(m.requires_grad_(False)), grad=True)
module("zero_grad", FREE, lambda m: m.zero_grad(), grad=True)
module("tied_weights", ALLOWED, lambda m: setattr(m.layers[0], "weight", m.layers[1].weight))


def _load_state(m):
    m.load_state_dict({k: torch.full_like(v, 2) for k, v in m.state_dict().items()})


def _assign_state(m):
    m.load_state_dict({k: torch.full_like(v, 2) for k, v in m.state_dict().items()}, assign=True)


def _optimizer(m, cls=torch.optim.SGD):
    optimizer = cls(m.parameters(), lr=0.1)
    with torch.enable_grad():
        nn.Module.__call__(m, X).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def _ema(m):
    other = copy.deepcopy(m)
    with torch.no_grad():
        for p, q in zip(m.parameters(), other.parameters()):
            p.lerp_(q + 1, 0.5)


module("load_state_dict", FREE, _load_state)
module("load_state_dict_assign", FREE, _assign_state)
module("optimizer_step", FREE, _optimizer, grad=True)
module("adam_step", FREE, lambda m: _optimizer(m, torch.optim.Adam), grad=True)
module("ema", FREE, _ema)

# -- hooks ----------------------------------------------------------------------------------------


def _where(child):
    return (lambda m: m.first) if child else (lambda m: m)


for _child in (False, True):
    _at = _where(_child)
    _of = "child_" if _child else ""
    module(f"{_of}forward_hook", NEEDED,
           lambda m, at=_at: no(at(m).register_forward_hook(lambda s, a, o: o * 3)))  # fmt: skip
    module(f"{_of}forward_pre_hook", NEEDED,
           lambda m, at=_at: no(
               at(m).register_forward_pre_hook(lambda s, a: (a[0] * 3,))))  # fmt: skip
    module(f"{_of}forward_hook_with_kwargs", NEEDED,
           lambda m, at=_at: no(at(m).register_forward_hook(
               lambda s, a, k, o: o * 3, with_kwargs=True)))  # fmt: skip
    module(f"{_of}forward_pre_hook_with_kwargs", NEEDED,
           lambda m, at=_at: no(at(m).register_forward_pre_hook(
               lambda s, a, k: ((a[0] * 3,), k), with_kwargs=True)))  # fmt: skip
    module(f"{_of}forward_hook_always_call", NEEDED,
           lambda m, at=_at: no(at(m).register_forward_hook(
               lambda s, a, o: o * 3, always_call=True)), after=3)  # fmt: skip
    module(f"{_of}full_backward_hook", ALLOWED,
           lambda m, at=_at: no(at(m).register_full_backward_hook(lambda s, i, o: None)),
           after=4)  # fmt: skip
    module(f"{_of}full_backward_pre_hook", ALLOWED,
           lambda m, at=_at: no(at(m).register_full_backward_pre_hook(lambda s, o: None)),
           after=4)  # fmt: skip

module("state_dict_hook", FREE, lambda m: no(m.register_state_dict_post_hook(lambda *a: None)))
module("load_state_dict_hook", FREE,
       lambda m: no(m.register_load_state_dict_post_hook(lambda *a: None)))  # fmt: skip


def _hooked(remove):
    class Hooked(Net):
        def __init__(self):
            super().__init__()
            self.__dict__["handle"] = self.first.register_forward_hook(lambda s, a, o: o * 3)

    return Hooked


module("hook_removed", NEEDED, lambda m: m.handle.remove(), make_net=_hooked(True))
module("second_hook", NEEDED, lambda m: no(m.first.register_forward_hook(lambda s, a, o: o + 1)),
       make_net=_hooked(True))  # fmt: skip
module("hook_prepended", NEEDED,
       lambda m: no(m.first.register_forward_hook(lambda s, a, o: o + 1, prepend=True)),
       make_net=_hooked(True))  # fmt: skip


def global_hook(name, register, hook, expected=NEEDED, after=1):
    def make(w):
        torch.manual_seed(0)
        net = Net().eval()
        w.enter(torch.no_grad())
        return net, (X,), lambda: w.undo(register(hook).remove)

    add(f"global_{name}", expected, make, after)


_G = torch.nn.modules.module
global_hook("forward_hook", _G.register_module_forward_hook, lambda s, a, o: o * 2, after=12)
global_hook(
    "forward_pre_hook", _G.register_module_forward_pre_hook, lambda s, a: (a[0] * 2,), after=12
)
global_hook("backward_hook", _G.register_module_full_backward_hook, lambda s, i, o: None,
            ALLOWED, after=30)  # fmt: skip


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))
        self.seen = 0

    def forward(self, x):
        self.last_shape = x.shape
        self.last = x
        return x * self.weight


module("written_attributes", FREE, lambda m: setattr(m, "last", None), make_net=Counter)
module("unread_counter", FREE, lambda m: setattr(m, "seen", 9), make_net=Counter)


@row(NEEDED)
def module_argument(w):
    one, two = nn.Linear(3, 3), nn.Tanh()
    return lambda x, m: m(x), (X, one), lambda: (X, two)


@row(FREE)
def module_argument_same_kind(w):
    one, two = nn.Linear(3, 3), nn.Linear(3, 3)
    return lambda x, m: m(x), (X, one), lambda: (X, two)


@row(FREE)
def function_with_module_state_loaded(w):
    m = nn.Linear(3, 3)
    return (
        lambda x: m(x).sum(),
        (X,),
        lambda: no(m.load_state_dict({k: v + 1 for k, v in m.state_dict().items()})),
    )


@row(FREE)
def lora_swap(w):
    class Lora(nn.Module):
        def __init__(self):
            super().__init__()
            self.base = nn.Linear(3, 3)
            self.a = nn.ParameterDict({"x": nn.Parameter(torch.ones(3, 1))})

        def forward(self, x):
            return self.base(x) + x @ self.a["x"] @ self.a["x"].t()

    m = Lora()
    return m, (X,), lambda: m.a.__setitem__("x", nn.Parameter(torch.full((3, 1), 2.0)))


@row(NEEDED)
def parameter_list_append(w):
    m = nn.Module()
    m.ps = nn.ParameterList([nn.Parameter(torch.ones(3))])
    return lambda x: x * sum(list(m.ps)), (X,), lambda: no(m.ps.append(nn.Parameter(torch.ones(3))))


@row(NEEDED)
def sequential_insert(w):
    m = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    return lambda x: m(x), (X,), lambda: no(m.insert(1, nn.Tanh()))


@row(NEEDED)
def weight_norm_added(w):
    m = nn.Linear(3, 3)
    return (
        lambda x: m(x), (X,), lambda: no(torch.nn.utils.parametrizations.weight_norm(m))
    )  # fmt: skip


@row(NEEDED)
def method_of_module(w):
    class Two(nn.Module):
        k = 2

        def features(self, x):
            return x * self.k

    m = Two()
    return lambda x: m.features(x), (X,), lambda: setattr(m, "k", 3)
