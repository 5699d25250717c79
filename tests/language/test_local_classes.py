"""Classes made and changed by the program: class statements in a function, assigned class
attributes, classes that are made anew on each call and live across a break."""

from __future__ import annotations

import abc
import collections
import dataclasses
import functools
import warnings
from typing import NamedTuple

import pytest
import torch

from checking import check

X = torch.arange(6.0).reshape(2, 3)


class K:
    n = 0

    def bump(self):
        type(self).n += 1
        K.m = 3
        return K.n


class KK(K):
    pass


def class_attribute_is_written(x):
    K.n = 0
    K.n = 5
    K.z = x * 2
    r = x + K.n + K.z
    del K.z
    K.n = 0
    return r


def class_attribute_that_counts(x):
    k = K()
    k.bump()
    k.bump()
    r = x + K.n
    K.n = 0
    return r


def class_attribute_of_a_subclass(x):
    KK.n = 7
    a = x + K.n + KK.n
    del KK.n
    return a + KK.n


def method_is_replaced_for_a_while(x):
    old = K.bump
    K.bump = lambda self: 9
    try:
        return x + K().bump()
    finally:
        K.bump = old


def deleting_a_class_attribute_that_is_missing(x):
    try:
        del K.nope
    except AttributeError as e:
        return x + 1, str(e)


def assigning_to_a_builtin_class(x):
    try:
        int.foo = 3
    except TypeError as e:
        return x + 1, str(e)


def local_class_over_a_break(x):
    class L:
        """doc"""

        f = 3
        y = x

        def __init__(self, q):
            self.q = q

        def go(self, v):
            return v * self.f + self.y

        @property
        def pp(self):
            return self.q + 1

        @pp.setter
        def pp(self, v):
            self.q = v

        @staticmethod
        def st(a):
            return a + 1

        @classmethod
        def cm(cls, a):
            return cls(a)

        def __add__(self, o):
            return L(self.q + o.q)

    l = L.cm(4)
    l.pp = 7
    print("esc")
    return l.go(x) + l.pp + L.st(2) + (l + l).q + L.f, L.__doc__, L.__name__, isinstance(l, L)


def super_in_a_local_class(x):
    class A:
        def f(self, v):
            return v + 1

    class B(A):
        def f(self, v):
            return super().f(v) * 2

    return B().f(x), issubclass(B, A)


def super_in_a_local_class_over_a_break(x):
    class A:
        def f(self, v):
            return v + 1

    class B(A):
        def f(self, v):
            print("in B")
            return super().f(v) * 2

    b = B()
    y = b.f(x)
    print(type(b).__name__, B.__mro__[1].__name__)
    return b.f(y)


def methods_write_a_closure(x):
    log = []
    seen = {}

    class A:
        def add(self, v):
            log.append(v)
            seen[len(log)] = v
            return v + len(log)

    a = A()
    y = a.add(x)
    z = a.add(y)
    print(len(log))
    w = a.add(z)
    return w, log, seen


def abstract_class(x):
    class A(abc.ABC):
        @abc.abstractmethod
        def f(self): ...

    class B(A):
        def f(self):
            return 3

    try:
        A()
    except TypeError as e:
        print(e)
    return x + B().f()


def abstract_class_over_a_break(x):
    class A(abc.ABC):
        @abc.abstractmethod
        def f(self): ...

        @property
        @abc.abstractmethod
        def g(self): ...

        @classmethod
        @abc.abstractmethod
        def h(cls): ...

    print(end="")

    class B(A):
        f = g = h = 3

    left = sorted(A.__abstractmethods__), sorted(B.__abstractmethods__)
    return x + B().f, left, A.f.__isabstractmethod__


def descriptor_with_a_name(x):
    class D:
        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, obj, cls):
            return obj.__dict__.get(self.name, 2)

        def __set__(self, obj, v):
            obj.__dict__[self.name] = v

    class A:
        d = D()

    a = A()
    y = x * a.d
    a.d = 5
    print("d")
    return y + a.d


def cached_property_of_a_local_class(x):
    class A:
        @functools.cached_property
        def v(self):
            return x.sum() + 1

    a = A()
    return a.v + a.v


def local_exception(x):
    class E(Exception):
        pass

    try:
        raise E("hey")
    except E as e:
        return x + 1, str(e)


def local_subclass_of_list(x):
    class L(list):
        def total(self):
            return sum(self)

    l = L([1, 2, x])
    return l.total()


def metaclass_with_call(x):
    class M(type):
        def __call__(cls, *a):
            return super().__call__(*a)

    class A(metaclass=M):
        v = 3

    return x + A().v


def slots_of_a_local_class(x):
    class A:
        __slots__ = ("a", "b")

        def __init__(self):
            self.a = 1

    a = A()
    a.b = 3
    return x + a.a + a.b


def local_dataclass(x):
    @dataclasses.dataclass
    class Q:
        a: int
        b: int = 3

    return Q(3).a * x + Q(1).b


def local_named_tuple(x):
    P = collections.namedtuple("P", "a b")
    p = P(x, x + 1)
    return p.a * p.b


def local_named_tuple_over_a_break(x):
    P = collections.namedtuple("P", "a b")
    p = P(x, x + 1)
    print("h")
    return p.a * p.b


def type_with_three_arguments(x):
    A = type("A", (), {"v": 3})
    return x + A().v


def init_subclass_that_registers(x):
    reg = []

    class A:
        def __init_subclass__(cls, **kw):
            reg.append(cls.__name__)

    class B(A):
        pass

    return x + len(reg)


def local_class_kept_by_its_instances(x):
    class Box:
        def __init__(self, v):
            self.v = v

    boxes = [Box(x), Box(x + 1)]
    print(len(boxes))
    return sum(b.v for b in boxes), type(boxes[0]) is type(boxes[1])


def class_returned_from_factory(x):
    def make(scale):
        class Scaled:
            def __call__(self, v):
                return v * scale

        return Scaled

    two, three = make(2), make(3)
    print(two is three, two.__name__)
    return two()(x) + three()(x)


def named_tuple_statement(x):
    class P(NamedTuple):
        a: int
        b: int = 3

    p = P(1)
    return x + p.a + p.b


def local_dataclass_factory(x):
    @dataclasses.dataclass(order=True)
    class Q:
        a: int
        items: list = dataclasses.field(default_factory=list)
        double: object = dataclasses.field(default_factory=lambda: [2], repr=False)

    q, r = Q(1), Q(2)
    q.items.append(3)
    return x + q.double[0], q.items, r.items, q < r, repr(q)


def local_dataclass_escapes(x):
    @dataclasses.dataclass
    class Q:
        a: int
        b: int = 4

    q = Q(1)
    y = x * q.b
    print(q, [f.name for f in dataclasses.fields(Q)])
    return y + q.a, dataclasses.asdict(q)


def local_frozen_dataclass(x):
    @dataclasses.dataclass(frozen=True)
    class Q:
        a: int
        b: str = "t"

    try:
        Q(1).a = 3
    except dataclasses.FrozenInstanceError as error:
        return {Q(1): x + 1, Q(2): x}[Q(1)], str(error)


def mixin_of_a_global_class(x):
    class Counting(K):
        def bump(self):
            self.calls = 1
            return self.n

    c = Counting()
    return x + c.bump() + c.calls


def decorated_class(x):
    def named(cls):
        cls.label = cls.__name__ + "!"
        return cls

    @named
    class A:
        pass

    return x + len(A.label), A().label


def class_attribute_is_a_tensor(x):
    class Params:
        weight = x * 2
        bias = x.sum()

    Params.bias = Params.bias + 1
    p = Params()
    print("made")
    return p.weight + p.bias


def class_body_with_loops(x):
    class Table:
        rows = []
        for i in range(3):
            rows.append(i * 2)
        del i
        if len(rows) > 2:
            extra = 5

    return x + Table.rows[2] + Table.extra, hasattr(Table, "i")


def class_body_breaks(x):
    class Loud:
        y = x + 1
        print("in the body")
        z = y * 2

    return Loud.z + Loud.y


def class_attribute_before_and_after_a_break(x):
    K.n = 2
    print(K.n, KK.n)
    y = x + KK.n
    K.n = 0
    return y, K.n


def nested_classes(x):
    class Outer:
        class Inner:
            k = 4

        def get(self):
            return self.Inner.k

    return x * Outer().get() + Outer.Inner.k


def descriptor_behind_its_back(x):
    class D:
        def __get__(self, obj, cls):
            return obj.__dict__["d"] * 2

        def __set__(self, obj, v):
            obj.__dict__["d"] = v

    class A:
        d = D()

    a = A()
    a.d = x
    print(sorted(vars(a)))
    return a.d, a.__dict__["d"]


def local_exception_leaves(x):
    class Problem(ValueError):
        code = 3

    def fail(v):
        raise Problem("no")

    try:
        y = x + 1
        fail(y)
    except ValueError as error:
        return y + error.code, str(error), type(error).__name__


def local_class_is_pickled_by_name(x):
    class A:
        pass

    return x + 1, A.__qualname__, A.__module__ == __name__


def lambda_and_partial_attributes(x):
    class A:
        f = lambda self, v: v + 1
        g = functools.partial(lambda *given: given[0] * given[-1], 3)  # a method since 3.14

    a = A()
    return a.f(x) + a.g(2)


def operators_of_a_local_class(x):
    class V:
        def __init__(self, t):
            self.t = t

        def __add__(self, o):
            return V(self.t + (o.t if isinstance(o, V) else o))

        __radd__ = __add__

        def __eq__(self, o):
            return isinstance(o, V)

        def __hash__(self):
            return 7

        def __getitem__(self, i):
            return self.t[i]

        def __len__(self):
            return len(self.t)

        def __contains__(self, i):
            return i == 1

        def __bool__(self):
            return False

    v = 1 + V(x) + V(x) + 2
    return v[0], len(v), 1 in v, 2 in v, V(x) == v, {v: 1}[V(x)], bool(v)


#: (program, graphs, operations captured)
class Registry(type):
    scale = 3

    @property
    def double(cls):
        return cls.factor * 2

    def times(cls, x):
        return x * cls.factor

    def __len__(cls):
        return 5

    def __getitem__(cls, index):
        return cls.factor + index

    def __iter__(cls):
        yield cls.factor
        yield cls.double

    def __contains__(cls, item):
        return item == cls.factor

    def __getattr__(cls, name):
        if name.startswith("made_"):
            return name[5:]
        raise AttributeError(name)


class Counting(type):
    made = 0

    def __new__(mcs, name, bases, namespace):
        mcs.made += 1
        return super().__new__(mcs, name, bases, namespace)


def metaclass_with_methods(x):
    class C(metaclass=Registry):
        factor = 4

        def use(self, x):
            return x * self.factor

    kinds = type(C) is Registry, isinstance(C, Registry), isinstance(C(), C), C.scale
    return C().use(x) + C.double, C.times(x), kinds, len(C), C[1], list(C), 4 in C, C.made_late


def metaclass_comes_from_a_base(x):
    class Base(metaclass=Registry):
        factor = 2

    class Derived(Base):
        def use(self):
            return x * type(self).double

    try:
        Derived().missing
    except AttributeError as error:
        return Derived().use(), Derived.__mro__[1] is Base, str(error)


def metaclass_over_a_break(x):
    class C(metaclass=Registry):
        factor = 4

    y = C.times(x)
    print(len(C))
    return y + C.double, C.times(x)


def metaclass_that_counts(x):
    class C(metaclass=Counting):
        factor = 2

    return x * C.factor + 1


def metaclass_made_by_the_program(x):
    class Meta(type):
        def triple(cls, x):
            return x * 3

    class C(metaclass=Meta):
        pass

    return C.triple(x), type(C) is Meta


def named_tuple_statement_with_methods(x):
    class P(NamedTuple):
        """A pair."""

        a: torch.Tensor
        b: float = 2.0

        def total(self):
            return self.a.sum() * self.b

        @property
        def first(self):
            return self.a[0]

    p = P(x)
    q = p._replace(b=3.0)
    u, v = q
    return (
        p.total(), q.total(), u * v, p.first, P._fields, P.__doc__, P._field_defaults,
        isinstance(p, tuple), len(p), p._asdict()["b"], P.__annotations__["b"],
    )  # fmt: skip


def named_tuple_statement_over_a_break(x):
    class P(NamedTuple):
        a: torch.Tensor
        b: float = 2.0

    p = P(x + 1)
    print(P.__name__, p.b)
    return p.a * p.b, p._fields, type(p).__name__


def named_tuple_with_a_wrong_default(x):
    try:

        class P(NamedTuple):
            a: int = 1
            b: int

    except TypeError as error:
        return x + 1, str(error)


def init_subclass_that_calls_super(x):
    made = []

    class Base:
        def __init_subclass__(cls, scale=1, **rest):
            super().__init_subclass__(**rest)
            cls.scale = scale
            made.append(cls.__name__)

    class One(Base, scale=3):
        pass

    class Two(Base):
        pass

    try:

        class Three(Base, other=1):
            pass

    except TypeError as error:
        made.append(str(error))
    return x * One.scale + Two.scale, made


def class_method_in_c_through_super(x):
    class Table(dict):
        @classmethod
        def fromkeys(cls, keys, value=0):
            made = super().fromkeys(keys, value)
            made["more"] = x + 1
            return made

    return dict(Table.fromkeys("ab", 2))


def order_of_bases_leaves(x):
    class Base:
        pass

    class Derived(Base):
        pass

    order, bases, listed = Derived.__mro__, Derived.__bases__, Derived.mro()
    inside = order[1] is Base, order is Derived.__mro__, bases == (Base,)
    print(end="")
    seen = order[0] is Derived, order[1] is Base, bases[0] is Base, listed[1] is Base
    return x + 1, inside, seen, order is Derived.__mro__, bases is Derived.__bases__


def partials_warn():
    """Does a partial that is read from a class warn? (CPython 3.13: it will be a method.)"""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        type("A", (), {"g": functools.partial(int)})().g
    return bool(caught)


PARTIALS_WARN = partials_warn()

PROGRAMS = [
    (class_attribute_is_written, 1, 3), (class_attribute_that_counts, 1, 1),
    (class_attribute_of_a_subclass, 1, 3), (method_is_replaced_for_a_while, 1, 1),
    (deleting_a_class_attribute_that_is_missing, 1, 1), (assigning_to_a_builtin_class, 1, 1),
    (local_class_over_a_break, 1, 6), (super_in_a_local_class, 1, 2),
    (super_in_a_local_class_over_a_break, 2, 4), (methods_write_a_closure, 2, 3),
    (abstract_class, 1, 1), (abstract_class_over_a_break, 1, 1), (descriptor_with_a_name, 2, 2),
    (cached_property_of_a_local_class, 1, 3), (local_exception, 1, 1),
    (local_subclass_of_list, 1, 1), (metaclass_with_call, 1, 1), (slots_of_a_local_class, 1, 2),
    (local_dataclass, 1, 2), (local_named_tuple, 1, 2), (local_named_tuple_over_a_break, 2, 2),
    (type_with_three_arguments, 1, 1), (init_subclass_that_registers, 1, 1),
    (local_class_kept_by_its_instances, 2, 3), (class_returned_from_factory, 1, 3),
    (named_tuple_statement, 1, 2), (local_dataclass_factory, 1, 1), (local_dataclass_escapes, 2, 2),
    (local_frozen_dataclass, 1, 1), (mixin_of_a_global_class, 1, 2), (decorated_class, 1, 1),
    (class_attribute_is_a_tensor, 2, 4), (class_body_with_loops, 1, 2), (class_body_breaks, 1, 1),
    (class_attribute_before_and_after_a_break, 1, 1), (nested_classes, 1, 2),
    (descriptor_behind_its_back, 1, 1), (local_exception_leaves, 1, 2),
    (local_class_is_pickled_by_name, 1, 1), (lambda_and_partial_attributes, 1 + PARTIALS_WARN, 2),
    (operators_of_a_local_class, 1, 4), (metaclass_with_methods, 1, 3),
    (metaclass_comes_from_a_base, 1, 1), (metaclass_over_a_break, 2, 3),
    (metaclass_that_counts, 1, 2), (metaclass_made_by_the_program, 1, 1),
    (named_tuple_statement_with_methods, 1, 6), (named_tuple_statement_over_a_break, 2, 2),
    (named_tuple_with_a_wrong_default, 1, 1), (init_subclass_that_calls_super, 1, 2),
    (class_method_in_c_through_super, 1, 1), (order_of_bases_leaves, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize("function, graphs, ops", PROGRAMS, ids=[p[0].__name__ for p in PROGRAMS])
def test_program(function, graphs, ops):
    check(function, X, graphs=graphs, ops=ops)
