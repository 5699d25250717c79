"""``vars(o)`` and ``o.__dict__``: an object and its dict are one, however they are reached."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import enum
import functools
import pickle
import sys
import types
from collections import OrderedDict

import pytest
import torch

import framejit
from checking import CountingBackend, check

PROGRAMS = []


def program(make, graphs):
    def register(function):
        PROGRAMS.append(pytest.param(function, make, graphs, id=function.__name__))
        return function

    return register


class A:
    k = 1

    def __init__(s, n=1):
        s.n = n
        s.m = 2


class S:
    __slots__ = ("x", "y", "__dict__")


class S2:
    __slots__ = ("x", "y")


class D(dict):
    pass


class L(list):
    pass


class OD(OrderedDict):
    pass


class E(ValueError):
    pass


class Net(torch.nn.Module):
    def __init__(s):
        super().__init__()
        s.lin = torch.nn.Linear(2, 2)
        s.bn = torch.nn.BatchNorm1d(2)
        s.k = 1
        with torch.no_grad():
            s.lin.weight.fill_(1.0)
            s.lin.bias.fill_(0.0)

    def forward(s, x):
        return s.bn(s.lin(x)) * s.k


x1 = lambda: torch.ones(2)

x2 = lambda: torch.ones(2, 2)


@program(lambda: (A(), x1()), 1)
def written_through_both(o, t):
    d = vars(o)
    print(end="")
    d["q"] = t + 1
    o.n = 9
    return d["n"], o.q, d is o.__dict__


@program(lambda: (A(), x1()), 1)
def methods_of_the_dict(o, t):
    d = o.__dict__
    d.update(a=1, b=t)
    d.pop("n")
    print(end="")
    o.n = 4
    del d["a"]
    return list(d), d.setdefault("zz", t + 1), o.zz


@program(lambda: (A(), x1()), 1)
def cleared(o, t):
    d = o.__dict__
    d.clear()
    o.x = t + 1
    return list(vars(o)), hasattr(o, "n")


@program(lambda: (types.SimpleNamespace(a=1, b=2), x1()), 1)
def simple_namespace(ns, t):
    ns.c = t + 1
    d = vars(ns)
    del ns.a
    d["a"] = 3
    return list(d), ns.a, "b" in d, repr(ns)


@program(lambda: (argparse.Namespace(lr=0.1), x1()), 1)
def argparse_namespace(ns, t):
    cfg = vars(ns)
    cfg["x"] = t + 1
    ns.y = cfg["lr"]
    print(end="")
    cfg.pop("lr")
    return list(cfg), "lr" in ns, ns


@program(lambda: (lambda o: (o, vars(o), x1()))(A()), 1)
def dict_beside_the_object(o, d, t):
    d["n"] = t + 1
    o.m = 5
    return o.n, d["m"], d is vars(o)


@program(lambda: (lambda o: (vars(o), o, x1()))(A()), 1)
def dict_before_the_object(d, o, t):
    d["n"] = t + 1
    o.m = 5
    return o.n, d["m"], d is vars(o), list(d)


@program(lambda: (lambda o: ([vars(o)], {"o": o}, x1()))(A()), 1)
def in_containers(l, m, t):
    l[0]["w"] = t + 1
    m["o"].n += 1
    del m["o"].m
    return list(l[0]), l[0]["n"], m["o"].w


@program(lambda: (A(), A(), x1()), 1)
def two_objects_share_one(a, b, t):
    b.__dict__ = a.__dict__
    b.n = t + 1
    print(end="")
    a.z = 3
    return a.n is b.n, b.z, a.__dict__ is b.__dict__


@program(lambda: (A(), x1()), 1)
def replaced_by_another(a, t):
    old = a.__dict__
    a.__dict__ = {"v": t + 1}
    old["n"] = 7
    print(end="")
    a.u = 1
    return list(vars(a)), old["n"], hasattr(a, "n"), a.k


@program(lambda: (x1(),), 1)
def of_a_new_object(t):
    a = A()
    d = vars(a)
    d["x"] = t + 1
    a.y = 2
    print(end="")
    d["z"] = 3
    return list(vars(a)), d is a.__dict__, a.z


@program(lambda: (x1(),), 1)
def of_a_new_object_replaced(t):
    a = A()
    d = vars(a)
    a.__dict__ = {"p": t + 1}
    print(end="")
    return list(d), a.p, vars(a) is d


@program(lambda: (x1(),), 1)
def two_new_objects_share_one(t):
    a = A()
    b = A()
    b.__dict__ = a.__dict__
    a.n = t + 1
    print(end="")
    b.q = 1
    return a.q, b.n is a.n


@program(lambda: (Net(), x2()), 2)
def parameters_of_a_module(m, t):
    p = m.lin._parameters
    p["weight"] = torch.nn.Parameter(torch.zeros(2, 2))
    return m.lin(t)


@program(lambda: (lambda m: (m, m.lin._parameters, x2()))(Net()), 2)
def parameters_beside_the_module(m, p, t):
    w = p.pop("weight")
    p["weight"] = torch.nn.Parameter(w.detach() * 2)
    return m.lin(t), list(p)


@program(lambda: (lambda m: (m.bn._buffers, m, x2()))(Net()), 1)
def buffers_before_the_module(b, m, t):
    b["running_mean"] = t[0] + 1
    y = m.eval()(t)
    return y, b is m.bn._buffers, list(b)


@program(lambda: (Net(), x2()), 1)
def buffers_over_a_break(m, t):
    b = m.bn._buffers
    print(end="")
    b["running_mean"] = t[0] + 5
    m.eval()
    return m(t)


@program(lambda: (Net(), x2()), 2)
def of_a_module(m, t):
    d = vars(m)
    d["k"] = 3
    y = m(t)
    print(end="")
    d["k"] = 4
    return y, m.k, m(t)


@program(lambda: (Net(), x2()), 1)
def modules_of_a_module(m, t):
    mods = m._modules
    mods["lin"] = torch.nn.Identity()
    print(end="")
    mods["extra"] = torch.nn.ReLU()
    return m(t), m.extra.__class__, list(mods)


@program(lambda: (x1(),), 1)
def of_a_new_function(t):
    def g():
        return 1

    g.a = t + 1
    d = g.__dict__
    d["b"] = 2
    print(end="")
    g.c = d["b"]
    return list(vars(g)), g.b, g.__name__


@program(lambda: (E(1), x1()), 1)
def of_an_exception(e, t):
    e.x = t + 1
    d = vars(e)
    d["y"] = 2
    print(end="")
    return list(d), e.y, e.args


@program(lambda: (x1(),), 1)
def of_a_raised_exception(t):
    e = E("a")
    e.x = 2
    d = vars(e)
    d["y"] = t + 1
    try:
        raise e
    except E as g:
        print(end="")
        return list(vars(g)), g is e, g.y, d is vars(g)


@program(lambda: (OrderedDict(a=1), x1()), 1)
def of_an_ordered_dict(o, t):
    o.meta = t + 1
    d = vars(o)
    d["b"] = 2
    print(end="")
    return list(d), o.b, list(o), o


@program(lambda: (x1(),), 1)
def of_a_new_ordered_dict(t):
    o = OrderedDict(a=1)
    o.meta = t + 1
    vars(o)["q"] = 2
    print(end="")
    return o, o.q, vars(o)


@program(lambda: (D(a=1), L([1]), OD(), x1()), 1)
def of_instances_of_containers(d, l, o, t):
    d.x = 1
    l.x = t + 1
    o.x = 2
    vars(d)["y"] = 3
    vars(l)["y"] = 4
    vars(o)["y"] = 5
    print(end="")
    return d.y, l.y, o.y, list(vars(d)), list(vars(l)), list(vars(o)), d, l, o


@program(lambda: (x1(),), 1)
def of_new_instances_of_containers(t):
    d = D(a=1)
    d.x = 1
    l = L([1])
    l.x = t + 1
    o = OD(b=2)
    o.x = 3
    print(end="")
    return vars(d), vars(l), vars(o), d, l, o


@program(lambda: (S(), x1()), 1)
def beside_a_slot(o, t):
    o.x = 1
    o.q = t + 1
    d = vars(o)
    d["x"] = 5
    print(end="")
    d["y"] = 2
    return list(d), o.x, hasattr(o, "y"), d["x"]


@program(lambda: (S2(), x1()), 1)
def slots_emptied(o, t):
    o.x = 1
    o.y = t + 1
    del o.x
    try:
        o.x
    except AttributeError as e:
        a = str(e)
    try:
        del o.x
    except AttributeError as e:
        b = str(e)
    print(end="")
    try:
        del o.x
    except AttributeError as e:
        c = str(e)
    return a, b, c, hasattr(o, "x"), o.y


@dataclasses.dataclass
class DC:
    a: int
    b: object = None


@program(lambda: (DC(1), x1()), 1)
def of_a_dataclass(o, t):
    d = vars(o)
    d["a"] = t + 1
    print(end="")
    o.c = 1
    return dataclasses.asdict(o).keys(), list(d), o.a


@program(lambda: (A(), x1()), 1)
def copied(o, t):
    o.extra = t + 1
    c = copy.copy(o)
    vars(c)["n"] = 10
    print(end="")
    return o.n, c.n, list(vars(c)), c.extra is o.extra


@program(lambda: (A(), x1()), 1)
def pickled(o, t):
    o.extra = 1
    s = pickle.dumps(o)
    r = pickle.loads(s)
    return vars(r), t + 1


@program(lambda: (A(), x1()), 1)
def getstate(o, t):
    st = o.__getstate__() if hasattr(o, "__getstate__") else vars(o)
    st["n"] = 5
    return o.n, t + 1, st is o.__dict__


@program(lambda: (A(), x1()), 1)
def iterated_over(o, t):
    out = []
    for k, v in vars(o).items():
        out.append(k)
    o.zz = t + 1
    for k in vars(o):
        out.append(k)
    return out, len(vars(o)), "zz" in vars(o), vars(o) == {"n": 1}


@program(lambda: (A(), x1()), 1)
def grows_while_iterated_over(o, t):
    try:
        for k in vars(o):
            o.__dict__[k + "x"] = 1
    except RuntimeError as e:
        return str(e), list(vars(o)), t + 1


@program(lambda: (A(), x1()), 1)
def iterator_over_a_break(o, t):
    it = iter(vars(o))
    next(it)
    print(end="")
    o.n = t + 1
    return list(it)


@program(lambda: (A(), x1()), 1)
def two_names(o, t):
    a = vars(o)
    b = o.__dict__
    print(end="")
    a["u"] = t + 1
    return b["u"] is o.u, a is b


@program(lambda: (A(), x1()), 1)
def deleted_over_a_break(o, t):
    del o.n
    print(end="")
    o.n = t + 1
    return list(vars(o))


@program(lambda: (A(), x1()), 1)
def deleted_and_stored(o, t):
    del o.n
    o.n = t + 1
    del o.m
    o.w = 1
    o.m = 2
    return list(vars(o)), len(vars(o))


@program(lambda: ({"a": 1, "b": 2}, x1()), 1)
def plain_dict_deleted_and_stored(d, t):
    del d["a"]
    d["a"] = t + 1
    n = len(d)
    del d["a"]
    d["c"] = 1
    d["a"] = 2
    return list(d), n, len(d)


@program(lambda: ({"a": 1, "b": 2}, x1()), 1)
def plain_dict_popped_and_stored(d, t):
    v = d.pop("a")
    d["a"] = v
    d.pop("a")
    n = len(d)
    d["a"] = t + 1
    del d["b"]
    return d, n, bool(d)


@program(lambda: (types.SimpleNamespace(a=types.SimpleNamespace(b=1)), x1()), 1)
def nested_namespaces(o, t):
    o.a.b += 1
    vars(o.a)["c"] = t + 1
    print(end="")
    o.a.b += 1
    return vars(o.a), o


@program(lambda: (functools.partial(max, 1), x1()), 1)
def of_a_partial(p, t):
    p.x = 1
    vars(p)["y"] = t + 1
    print(end="")
    return list(vars(p)), p.y, p(3)


@program(lambda: (x1(),), 1)
def of_a_new_partial(t):
    p = functools.partial(max, 1)
    p.x = 1
    vars(p)["y"] = t + 1
    print(end="")
    return list(vars(p)), p.y, p(3)


class Desc:
    def __get__(s, o, c=None):
        return "desc" if o is not None else s

    def __set__(s, o, v):
        o.__dict__["_d"] = v


class H:
    d = Desc()

    @property
    def n(s):
        return s.__dict__["n"]

    @n.setter
    def n(s, v):
        s.__dict__["n"] = v


@program(lambda: (H(), x1()), 1)
def behind_descriptors(h, t):
    h.d = t + 1
    h.n = 3
    vars(h)["d"] = 5
    print(end="")
    return h.d, h.n, list(vars(h)), vars(h)["d"]


@program(lambda: (x1(),), 1)
def new_object_behind_descriptors(t):
    h = H()
    h.d = t + 1
    h.n = 3
    vars(h)["d"] = 5
    print(end="")
    return h.d, h.n, list(vars(h)), vars(h)["d"]


class Borg:
    shared = {}

    def __init__(s):
        s.__dict__ = s.shared


@program(lambda: (x1(),), 1)
def borg(t):
    Borg.shared.clear()
    a = Borg()
    b = Borg()
    a.x = t + 1
    print(end="")
    r = b.x is a.x, vars(a) is Borg.shared
    return r


@program(lambda: (Borg(), Borg(), x1()), 1)
def borgs_as_arguments(a, b, t):
    a.x = t + 1
    b.y = 2
    r = b.x is a.x, a.y
    a.__dict__.clear()
    return r, hasattr(b, "x")


class C(enum.Enum):
    R = 1


@program(lambda: (x1(),), 1)
def of_an_enum_member(t):
    return vars(C.R)["_value_"], list(vars(C.R)), t + 1


@program(lambda: (A(), x1()), 1)
def names_that_are_no_identifiers(o, t):
    setattr(o, "a b", t + 1)
    vars(o)["c d"] = 2
    print(end="")
    return getattr(o, "c d"), list(vars(o))


@program(lambda: (A(), x1()), 1)
def key_that_is_no_name(o, t):
    vars(o)[3] = t + 1
    print(end="")
    return list(vars(o)), vars(o)[3]


@program(lambda: (x1(),), 1)
def proxy_of_a_class(t):
    p = vars(A)
    A.k += 1
    v = p["k"] == A.k
    A.new = 1
    r = v, "new" in p
    del A.new
    A.k = 1
    return r, t + 1


@program(lambda: (x1(),), 1)
def proxy_of_a_class_over_a_break(t):
    p = A.__dict__
    print(end="")
    A.k += 1
    v = p["k"] == A.k
    A.new = 1
    r = v, "new" in p
    del A.new
    A.k = 1
    return r, t + 1


MOD = types.ModuleType("modx")
sys.modules["modx"] = MOD
MOD.counter = 0
MOD.z = 1


@program(lambda: (x1(),), 1)
def of_a_python_module(t):
    d = vars(MOD)
    MOD.counter = 3
    r = d["counter"] == MOD.counter
    d["q"] = t + 1
    s = MOD.q is d["q"]
    del MOD.q
    return r, s, "q" in d


def given_python_module(d, t):
    d["z"] = 5
    r = MOD.z
    MOD.z = 1
    return r, d["z"], d is MOD.__dict__, t + 1


G1 = 1


@program(lambda: (x1(),), 1)
def globals_of_the_function(t):
    global G1
    g = globals()
    g["G1"] = 7
    r = G1
    G1 = 1
    return r, g["G1"], t + 1


def given_globals(g, t):
    global G1
    g["G1"] = 7
    r = G1
    G1 = 1
    return r, g["G1"], t + 1


@program(lambda: (A(), x1()), 1)
def updated_in_place(o, t):
    o.__dict__ |= {"n": t + 1}
    o.__dict__.update({"g": 1})
    return o.n, list(vars(o))


@program(lambda: (A(), A(2), x1()), 1)
def taken_from_another(a, b, t):
    b.__dict__.update(a.__dict__)
    b.__dict__ = dict(a.__dict__, e=t + 1)
    return vars(b), vars(a) == vars(b), b.n


@program(lambda: (A(), x1()), 1)
def replaced_by_a_number(o, t):
    try:
        o.__dict__ = 3
    except TypeError as e:
        return str(e), t + 1


@program(lambda: (A(), x1()), 1)
def replaced_by_a_local_dict(o, t):
    d = {"n": 3}
    o.__dict__ = d
    d["w"] = t + 1
    print(end="")
    d["v"] = 1
    return o.w, o.v, vars(o) is d


@program(lambda: (Net(), x2()), 1)
def metadata_of_a_state_dict(m, t):
    sd = m.state_dict()
    return dict(sd._metadata), list(sd), t + 1


@program(lambda: (Net(), x2()), 1)
def copied_module(m, t):
    c = copy.copy(m)
    c.k = 5
    c.lin = torch.nn.Identity()
    return m(t), c.k, m.k, list(c._modules), type(m.lin)


@program(lambda: (Net(), x2()), 1)
def buffers_replaced(m, t):
    m._buffers = dict(m._buffers)
    m._buffers["new"] = t
    m.register_buffer("o", t + 1)
    return list(m._buffers), m.o, m.new


@program(lambda: (Net(), x2()), 1)
def module_deleted_and_stored(m, t):
    del m.lin
    m.lin = torch.nn.Identity()
    m.bn.eval()
    return m(t), list(m._modules)


@program(lambda: (Net(), x2()), 1)
def attribute_of_a_module_moves(m, t):
    del m.k
    m.k = 4
    m.w2 = 1
    print(end="")
    return list(vars(m))[-3:], m.k * t


class GA:
    def __init__(s):
        s.a = 1

    def __getattr__(s, n):
        if n.startswith("_"):
            raise AttributeError(n)
        return s.__dict__.setdefault(n, n + "!")


@program(lambda: (GA(), x1()), 1)
def getattr_stores(o, t):
    return o.q, list(vars(o)), o.q, t + 1


class SA:
    def __setattr__(s, n, v):
        s.__dict__[n] = v * 2


@program(lambda: (SA(), x1()), 1)
def setattr_doubles(o, t):
    o.a = 1
    o.b = t
    print(end="")
    o.c = 3
    return list(vars(o)), o.a, o.b, o.c


class AttrDict(dict):
    def __init__(s, *a, **k):
        super().__init__(*a, **k)
        s.__dict__ = s


@program(lambda: (AttrDict(a=1), x1()), 1)
def dict_that_is_its_own(o, t):
    o["b"] = t + 1
    r = o.b
    o.c = 3
    return r, o["c"], list(o)


@program(lambda: (x1(),), 1)
def new_dict_that_is_its_own(t):
    o = AttrDict(a=1)
    o["b"] = t + 1
    r = o.b
    o.c = 3
    print(end="")
    o.d = 4
    return r, o["c"], list(o), o["d"]


@program(lambda: (A(), x1()), 1)
def dict_held_twice(o, t):
    l = [vars(o), vars(o)]
    l[0]["n"] = t + 1
    print(end="")
    return l[0] is l[1], l[1]["n"] is o.n, l[1] is vars(o)


@program(lambda: (x1(),), 1)
def dict_of_a_new_object_held_twice(t):
    o = A()
    l = [vars(o), vars(o)]
    l[0]["n"] = t + 1
    print(end="")
    return l[0] is l[1], l[1]["n"] is o.n, l[1] is vars(o)


@program(lambda: (x1(),), 1)
def dict_outlives_the_object(t):
    o = A()
    d = vars(o)
    del o
    d["r"] = t + 1
    print(end="")
    return d


@program(lambda: (A(),), 1)
def read_as_a_whole(o):
    return (
        o.__dict__.copy(),
        o.__dict__ == {"n": 1, "m": 2},
        {**vars(o)},
        dict(vars(o)),
        sorted(vars(o).items()),
        max(vars(o)),
        torch.ones(1),
    )


@pytest.mark.parametrize("function, make, graphs", PROGRAMS)
def test_program(function, make, graphs):
    check(function, *make(), graphs=graphs)


@pytest.mark.parametrize(
    "function, given", [(given_python_module, vars(MOD)), (given_globals, globals())]
)
def test_globals_as_an_argument(function, given):
    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend)
    expected = function(given, x1())
    for _ in range(2):
        got = compiled(given, x1())
        assert got[:-1] == expected[:-1] and torch.equal(got[-1], expected[-1])
    assert len(backend.graphs) == 1


def of_a_function(f, t):
    f.a = 1
    d = vars(f)
    d["b"] = t + 1
    print(end="")
    f.c = 3
    del f.a
    return list(d), f.b, d is f.__dict__


def test_of_a_function():
    check(
        of_a_function,
        x1(),
        graphs=1,
        make=lambda: functools.partial(of_a_function, lambda: 1),
        ops=1,
    )


class Net2(torch.nn.Module):
    """What follows is run with a compiled module beside its original: they share one dict."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.k = 1
        with torch.no_grad():
            self.linear.weight.fill_(1.0)
            self.linear.bias.fill_(0.0)

    def forward(self, x):
        return self.linear(x) * self.k

    def step(self, x):
        return self(x) + 1


def attribute_of_one(c, m, x):
    c.k = 7
    return m(x), c(x)


def attribute_of_the_other(c, m, x):
    m.k = 7
    return c(x), c.k


def forward_around_a_call(c, m, x):
    original = c.forward

    def wrapper(*args):
        c.forward = original
        return original(*args) + 1

    c.forward = wrapper
    result = c(x)
    c.forward = original
    return result, c(x)


def deleted_in_one(c, m, x):
    del m.k
    c.k = 9
    print(end="")
    return m(x), c.k, list(vars(c)) == list(vars(m)), vars(c) is vars(m)


def hook_on_a_layer(c, m, x):
    handle = c.linear.register_forward_hook(lambda module, args, out: out * 2)
    result = m(x)
    handle.remove()
    return result, m(x)


def hook_on_the_other(c, m, x):
    handle = m.register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    result = c(x)
    handle.remove()
    return result, c(x)


def layer_replaced(c, m, x):
    c.linear = torch.nn.Identity()
    return m(x), type(c.linear).__name__, list(m._modules)


def mode_of_the_other(c, m, x):
    c.eval()
    before = m.training
    m.train()
    return before, c.training, c.linear.training, x + 1


def buffer_registered(c, m, x):
    c.register_buffer("b", x + 1)
    print(end="")
    m.b = x
    return c.b, list(m.state_dict())


def methods_of_both(c, m, x):
    return c.step(x), m.step(x), isinstance(c, Net2), type(c).__name__, c.__class__.__name__


def forward_deleted(c, m, x):
    original = m.forward
    c.forward = lambda y: original(y) * 5
    result = m(x), c(x)
    del c.forward
    return result, m(x)


def dict_of_the_other(c, m, x):
    d = vars(m)
    d["k"] = 4
    print(end="")
    c.k += 1
    return d["k"], m(x), c(x)


@pytest.mark.parametrize(
    "function",
    [
        attribute_of_one, attribute_of_the_other, forward_around_a_call, deleted_in_one,
        hook_on_a_layer, hook_on_the_other, layer_replaced, mode_of_the_other, buffer_registered,
        methods_of_both, forward_deleted, dict_of_the_other,
    ],
)  # fmt: skip
def test_compiled_module_beside_its_original(function):
    x, module, original = torch.ones(1, 2), Net2(), Net2()
    backend = CountingBackend()
    shadow = framejit.compile(original, backend=backend)
    compiled = framejit.compile(function, backend=backend)
    for _ in range(2):
        expected, got = function(module, module, x), compiled(shadow, original, x)
        assert str(got) == str(expected)
        assert list(vars(original)) == list(vars(module))
    assert backend.graphs


def test_modules_that_share_a_dict_later():
    def f(c, m, x):
        c.k = 7
        return m(x)

    compiled, x = framejit.compile(f, backend="eager"), torch.ones(1, 2)
    assert compiled(Net2(), Net2(), x).tolist() == [[2.0, 2.0]]
    module = Net2()
    shadow = framejit.compile(module, backend="eager")
    assert compiled(shadow, module, x).tolist() == [[14.0, 14.0]]
    module = Net2()
    assert compiled(module, module, x).tolist() == [[14.0, 14.0]]


def test_dict_of_another_object_later():
    def f(d, o, t):
        d["n"] = 5
        return t * o.n

    compiled, t = framejit.compile(f, backend="eager"), torch.ones(1)
    first, second = A(), A()
    assert compiled(vars(first), second, t).item() == 1
    assert compiled(vars(second), second, t).item() == 5
    assert compiled({}, second, t).item() == 5
    assert compiled(vars(first), A(), t).item() == 1


MADE = types.ModuleType("made")


def dicts_of_a_class_and_a_module(x):
    shown, names = vars(A), vars(MADE)
    taken = shown.copy(), dict(shown), names.copy(), {**names}, copy.copy(names)
    lengths = [len(one) for one in taken] == [len(shown)] * 2 + [len(names)] * 3
    return x + 1, lengths, bool(shown), not names, bool(taken[0]), list(taken[2]), taken[0]["k"]


def test_dicts_of_classes_and_modules_are_copied_with_what_is_in_them():
    check(dicts_of_a_class_and_a_module, torch.ones(2), graphs=1, ops=1)


def test_a_member_of_a_class_that_cannot_be_called():
    def f(x):
        class Made:
            @property
            def p(self):
                return 1

            @classmethod
            def c(cls):
                return 2

        found = []
        for name in ("p", "c"):
            try:
                vars(Made)[name](x)
            except TypeError as error:
                found.append(str(error))
        return x + 1, found

    check(f, torch.ones(2), graphs=1, ops=1)
