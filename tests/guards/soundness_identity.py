"""Rows of the soundness table: presence, identity as a key, kinds of classes, caches."""

import enum
import functools
import threading
import typing

import torch
from soundness import ALLOWED, FREE, NEEDED, add, row

X = torch.arange(6.0).reshape(2, 3)


class Thing:
    """Hashed by its address."""


def thing(**members):
    made = Thing()
    made.__dict__.update(members)
    return made


# -- what is there -----------------------------------------------------------------------------


@row(NEEDED)
def hasattr_deleted(w):
    o = thing(q=1)
    return lambda x: x + 1 if hasattr(o, "q") else x - 1, (X,), lambda: delattr(o, "q")


@row(NEEDED)
def hasattr_other_object(w):
    f = lambda x, o: x + 1 if hasattr(o, "q") else x - 1
    return f, (X, thing(q=1)), lambda: (X, thing())


@row(FREE)
def hasattr_other_value(w):
    o = thing(q=1)
    return lambda x: x + 1 if hasattr(o, "q") else x - 1, (X,), lambda: setattr(o, "q", "text")


@row(NEEDED)
def hasattr_module_parameter(w):
    m = torch.nn.Linear(3, 3)
    f = lambda x: x + 1 if hasattr(m, "bias") else x - 1
    return f, (X,), lambda: delattr(m, "bias")


@row(NEEDED)
def attribute_read_and_dropped(w):
    o = thing(q=1)

    def f(x):
        try:
            o.q
        except AttributeError:
            return x - 1
        return x + 1

    return f, (X,), lambda: delattr(o, "q")


@row(NEEDED)
def slot_read_and_dropped(w):
    class Slotted:
        __slots__ = ("q",)

    o = Slotted()
    o.q = 1
    return lambda x: x + 1 if hasattr(o, "q") else x - 1, (X,), lambda: delattr(o, "q")


@row(NEEDED)
def cell_emptied(w):
    value = 1

    def f(x):
        try:
            value
        except NameError:
            return x - 1
        return x + 1

    def change():
        nonlocal value
        del value

    return f, (X,), change


# -- objects as keys ---------------------------------------------------------------------------

KEYS = {
    "object": Thing,
    "module": torch.nn.ReLU,
    "tensor": lambda: torch.ones(2, 3),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2, 3)),
    "function": lambda: lambda: None,
}
for _name, _make in KEYS.items():

    def _dict(w, make=_make):
        a, b = make(), make()
        table = {a: 1.0, b: 2.0}
        return lambda x, o: x * table[o], (X, a), lambda: (X, b)

    def _set(w, make=_make):
        a, b = make(), make()
        members = {a}
        return lambda x, o: x + 1 if o in members else x - 1, (X, a), lambda: (X, b)

    def _local(w, make=_make):
        a, b = make(), make()
        return lambda x, o, p: x * len({o, p}), (X, a, b), lambda: (X, a, a)

    def _local_others(w, make=_make):
        return lambda x, o, p: x * len({o, p}), (X, make(), make()), lambda: (X, make(), make())

    def _seen(w, make=_make):
        def f(x, *objects):
            seen = {}
            for o in objects:
                if o not in seen:
                    seen[o] = len(seen)
                    x = x + len(seen)
            return x

        a, b, c = make(), make(), make()
        return f, (X, a, b, c), lambda: (X, a, b, a)

    add(f"key_of_dict_{_name}", NEEDED, _dict)
    add(f"member_of_set_{_name}", NEEDED, _set)
    add(f"keys_become_one_{_name}", NEEDED, _local)
    add(f"keys_stay_apart_{_name}", FREE if _name != "function" else ALLOWED, _local_others)
    add(f"seen_before_{_name}", NEEDED, _seen)


@row(NEEDED)
def many_objects_as_keys(w):
    things = [Thing() for _ in range(12)]
    f = lambda x, objects: x * len(set(objects))
    return f, (X, things), lambda: (X, [*things[:11], things[0]])


@row(NEEDED)
def key_with_its_own_equality(w):
    class Key:
        def __init__(self, v):
            self.v = v

        def __hash__(self):
            return hash(self.v)

        def __eq__(self, other):
            return self.v == other.v

    table = {Key(1): 1.0, Key(2): 2.0}
    return lambda x, k: x * table.get(k, 7.0), (X, Key(1)), lambda: (X, Key(2))


SETS = {
    "float": ({1}, {1.0}), "bool": ({1, 2}, {True, 2}), "tuple": ({(1,)}, {(1.0,)}),
    "frozen": (frozenset({1}), frozenset({1.0})),
}  # fmt: skip
for _name, (_one, _two) in SETS.items():

    def _types(w, one=_one, two=_two):
        def f(x, s):
            for k in s:
                x = x.long() * (k if not isinstance(k, tuple) else k[0])
            return x

        return f, (X, one), lambda: (X, two)

    add(f"set_of_other_types_{_name}", NEEDED, _types)


# -- classes, enums, caches ---------------------------------------------------------------------


@row(NEEDED)
def protocol_is_met_later(w):
    @typing.runtime_checkable
    class P(typing.Protocol):
        def foo(self): ...

    class B:
        pass

    b = B()
    f = lambda x: x + 1 if isinstance(b, P) else x - 1
    return f, (X,), lambda: setattr(B, "foo", lambda self: 1)


@row(NEEDED)
def protocol_is_met_by_the_instance(w):
    @typing.runtime_checkable
    class P(typing.Protocol):
        foo: int

    f = lambda x, b: x + 1 if isinstance(b, P) else x - 1
    return f, (X, thing()), lambda: (X, thing(foo=1))


@row(NEEDED)
def class_attribute_becomes_a_descriptor(w):
    class D:
        pass

    class A:
        d = D()

    a = A()
    f = lambda x: x * (2 if isinstance(a.d, D) else a.d)
    return f, (X,), lambda: setattr(D, "__get__", lambda self, o, t: 5)


@row(NEEDED)
def enum_attribute(w):
    class E(enum.Enum):
        A = 1

    E.A.extra = 2.0
    return lambda x, e: x * e.extra, (X, E.A), lambda: setattr(E.A, "extra", 9.0)


@row(NEEDED)
def enum_attribute_added(w):
    class E(enum.Enum):
        A = 1

    return lambda x: x * getattr(E.A, "extra", 3.0), (X,), lambda: setattr(E.A, "extra", 9.0)


@row(NEEDED)
def enum_method_shadowed(w):
    class E(enum.Enum):
        A = 1

        def scaled(self, x):
            return x * 2

    return lambda x: E.A.scaled(x), (X,), lambda: setattr(E.A, "scaled", lambda x: x)


@row(NEEDED)
def enum_mutable_value(w):
    class E(enum.Enum):
        A = [1]

    return lambda x, e: x * e.value[0], (X, E.A), lambda: E.A.value.__setitem__(0, 5)


@row(FREE)
def cached_function_reads_what_changed(w):
    state = thing(v=1.0)

    @functools.lru_cache
    def cached(k):
        return k * state.v

    return lambda x: x * cached(2), (X,), lambda: setattr(state, "v", 5.0)


@row(NEEDED)
def cached_function_cleared(w):
    state = thing(v=1.0)

    @functools.lru_cache
    def cached(k):
        return k * state.v

    def change():
        state.v = 5.0
        cached.cache_clear()

    return lambda x: x * cached(2), (X,), change


@row(NEEDED)
def thread_local_attribute(w):
    local = threading.local()
    local.v = 3.0
    f = lambda x: x * getattr(local, "v", 9.0)
    return f, (X,), lambda: setattr(local, "v", 4.0)


@row(ALLOWED)
def layout_of_a_tensor(w):
    f = lambda t: isinstance(t, torch.FloatTensor)
    return f, (X.to_sparse(),), lambda: (X,)


# -- a tensor is another one ---------------------------------------------------------------------


def alias_of_a_tensor(name, change, look, undo):
    """One tensor is changed while another one is looked at; then they are the same."""

    def make(w):
        def f(x, one, other):
            change(one)
            seen = look(other)
            undo(one)
            return x + 1, seen

        def fresh():
            made = torch.nn.Parameter(torch.ones(2, 3), requires_grad=False)
            made.grad = torch.ones(2, 3)
            return made

        one, same = thing(t=fresh()), fresh()
        return (
            lambda x, a, b: f(x, a.t, b.t),
            (X, one, thing(t=fresh())),
            lambda: (X, thing(t=same), thing(t=same)),
        )

    add(f"alias_of_a_{name}_tensor", NEEDED, make)


def turn(t):
    t.t_()


def look_at_sizes(t):
    return tuple(t.shape), t.stride()


def forget_gradient(t):
    t.grad = None


alias_of_a_tensor("transposed", turn, look_at_sizes, turn)
alias_of_a_tensor("squeezed", lambda t: t.unsqueeze_(0), lambda t: t.dim(), lambda t: t.squeeze_(0))
alias_of_a_tensor("differentiated", forget_gradient, lambda t: t.grad is None, lambda t: None)


class Unlike:
    """Equal to nothing, itself included; containers ask whether it is the object before that."""

    def __eq__(self, other):
        return False

    __hash__ = object.__hash__


IN_CONTAINERS = {
    "in_a_list": lambda x, a, b: (x + 1, a in [b]),
    "counted": lambda x, a, b: (x + 1, [b].count(a)),
    "of_equal_tuples": lambda x, a, b: (x + 1, (a, 1) == (b, 1)),
    "of_unequal_lists": lambda x, a, b: (x + 1, [a] != [b]),
    "of_equal_dicts": lambda x, a, b: (x + 1, {1: a} == {1: b}),
}


def becomes_one_object(function):
    def make(w):
        one, other = Unlike(), Unlike()
        return function, (X, one, other), lambda: (X, other, other)

    return make


def becomes_two_objects(function):
    def make(w):
        one, other = Unlike(), Unlike()
        return function, (X, one, one), lambda: (X, one, other)

    return make


for name, function in IN_CONTAINERS.items():
    add(f"two_objects_become_one_{name}", NEEDED, becomes_one_object(function))
    add(f"one_object_becomes_two_{name}", NEEDED, becomes_two_objects(function))
