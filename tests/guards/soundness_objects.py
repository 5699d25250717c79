"""Rows of the soundness table: attributes of objects and classes, functions, globals, builtins."""

import abc
import builtins
import collections
import copy
import copyreg
import dataclasses
import enum
import functools
import types

import numpy
import torch
from soundness import FREE, NEEDED, add, row

X = torch.arange(6.0).reshape(2, 3)


def fresh_class(**members):
    """A new class with a few members, so that rows may change it."""

    def __init__(self):
        self.a = 2

    return type("Thing", (), {"__init__": __init__, "b": 3, **members})


# -- instances ----------------------------------------------------------------------------------


@row(NEEDED)
def object_attribute_int(w):
    o = fresh_class()()
    return lambda x: x * o.a, (X,), lambda: setattr(o, "a", 5)


@row(FREE)
def object_attribute_equal_int(w):
    o = fresh_class()()
    o.a = 10**9
    return lambda x: x * o.a, (X,), lambda: setattr(o, "a", int("1000000000"))


@row(NEEDED)
def object_attribute_of_a_dict_held_elsewhere(w):
    o = fresh_class()()
    held = [vars(o)]
    return lambda x: x * held[0]["a"], (X,), lambda: setattr(o, "a", 5)


@row(NEEDED)
def object_attribute_of_a_dict_that_is_given(w):
    o = fresh_class()()
    return lambda x, d: x * d["a"], (X, vars(o)), lambda: setattr(o, "a", 5)


@row(NEEDED)
def object_attribute_added_to_an_empty_dict_held_elsewhere(w):
    o = type("Thing", (), {})()
    held = {"of": vars(o)}
    return lambda x: x * (1 + len(held["of"])), (X,), lambda: setattr(o, "a", 5)


VALUES = {
    "float": (2.0, 2.5), "bool": (True, False), "str": ("ab", "abc"), "none": (None, 1),
    "int_to_float": (2, 2.0), "int_to_bool": (1, True), "zero_sign": (0.0, -0.0),
    "nan": (1.0, float("nan")), "complex": (1j, 2j), "bytes": (b"a", b"bb"),
    "tuple": ((1, 2), (1, 3)), "nested_tuple": ((1, (2, 3)), (1, (2, 4))),
    "tuple_length": ((1, 2), (1, 2, 3)), "dtype": (torch.float32, torch.float64),
    "range": (range(3), range(4)), "slice": (slice(0, 1), slice(0, 2)),
    "frozenset": (frozenset({1}), frozenset({1, 2})),
    "device": (torch.device("cpu"), torch.device("meta")), "list": ([1, 2], [1, 3]),
    "dict": ({"p": 1}, {"p": 2}), "set": ({1, 2}, {1, 3}), "ellipsis": (..., None),
    "size": (torch.Size([2]), torch.Size([3])), "list_to_tuple": ([1], (1,)),
    "tensor_to_none": (torch.ones(3), None),
}  # fmt: skip


def describe(value):
    """Python code that depends on everything in a value."""
    if value is None:
        return 0
    if value is ...:
        return 1
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, bool):
        return 10 if value else 20
    if isinstance(value, (int, complex)):
        return value
    if isinstance(value, float):
        return 7.0 if value != value else (value + 1) * (-1 if str(value)[0] == "-" else 1)
    if isinstance(value, (str, bytes, torch.Size, tuple, list, range)):
        total = len(value) + (100 if isinstance(value, tuple) else 0)
        for item in value:
            if not isinstance(item, (str, bytes)):
                total = total * 3 + describe(item)
        return total
    if isinstance(value, (set, frozenset)):
        return sum(value)
    if isinstance(value, dict):
        return sum(value.values())
    if isinstance(value, slice):
        return value.stop
    if isinstance(value, torch.dtype):
        return 1 if value == torch.float32 else 2
    return 3 if value.type == "cpu" else 4


def _value_row(old, new):
    def make(w):
        o = fresh_class()()
        o.a = old

        def f(x):
            return x * describe(o.a), type(o.a).__name__

        return f, (X,), lambda: setattr(o, "a", new)

    return make


for _kind, (_old, _new) in VALUES.items():
    add(f"object_attribute_{_kind}", NEEDED, _value_row(_old, _new))


@row(FREE)
def object_attribute_not_read(w):
    o = fresh_class()()
    return lambda x: x * o.b, (X,), lambda: setattr(o, "a", 5)


@row(FREE)
def object_attribute_written_only(w):
    o = fresh_class()()

    def f(x):
        o.last = 4
        return x + 1

    return f, (X,), lambda: setattr(o, "last", 100)


@row(FREE)
def object_attribute_carried_only(w):
    o = fresh_class()()

    def f(x):
        return x + 1, o.a

    return f, (X,), lambda: setattr(o, "a", 17)


@row(FREE)
def object_attribute_copied_only(w):
    o, p = fresh_class()(), fresh_class()()

    def f(x):
        p.a = o.a
        return x + 1

    return f, (X,), lambda: setattr(o, "a", "other")


@row(NEEDED)
def object_attribute_added_shadows_class(w):
    o = fresh_class()()
    return lambda x: x * o.b, (X,), lambda: setattr(o, "b", 5)


@row(NEEDED)
def object_attribute_deleted(w):
    o = fresh_class()()
    o.b = 7
    return lambda x: x * o.b, (X,), lambda: delattr(o, "b")


@row(NEEDED)
def object_attribute_deleted_raises(w):
    o = fresh_class()()
    return lambda x: x * o.a, (X,), lambda: delattr(o, "a")


@row(NEEDED)
def object_hasattr(w):
    o = fresh_class()()
    return lambda x: x * (2 if hasattr(o, "z") else 3), (X,), lambda: setattr(o, "z", 5)


@row(NEEDED)
def object_getattr_default(w):
    o = fresh_class()()
    return lambda x: x * getattr(o, "z", 9), (X,), lambda: setattr(o, "z", 5)


@row(NEEDED)
def object_dict_replaced(w):
    o = fresh_class()()
    return lambda x: x * o.a, (X,), lambda: setattr(o, "__dict__", {"a": 8})


@row(FREE)
def object_dict_replaced_equal(w):
    o = fresh_class()()
    return lambda x: x * o.a, (X,), lambda: setattr(o, "__dict__", {"a": 2})


@row(NEEDED)
def object_dict_written(w):
    o = fresh_class()()
    return lambda x: x * o.a, (X,), lambda: o.__dict__.__setitem__("a", 8)


@row(NEEDED)
def object_dict_iterated(w):
    o = fresh_class()()
    return lambda x: x * len(vars(o)), (X,), lambda: setattr(o, "new", 8)


@row(NEEDED)
def object_class_replaced(w):
    o, other = fresh_class()(), fresh_class(b=11)
    return lambda x: x * o.b, (X,), lambda: setattr(o, "__class__", other)


@row(NEEDED)
def object_replaced_in_cell(w):
    cls = fresh_class()
    o = cls()

    def f(x):
        return x * o.a

    def change():
        nonlocal o
        o = cls()
        o.a = 6

    return f, (X,), change


@row(FREE)
def object_replaced_by_equal_one(w):
    cls = fresh_class()
    o = cls()

    def f(x):
        return x * o.a

    def change():
        nonlocal o
        o = cls()

    return f, (X,), change


@row(NEEDED)
def object_nested_attribute(w):
    o = fresh_class()()
    o.child = fresh_class()()
    o.child.child = fresh_class()()
    return lambda x: x * o.child.child.a, (X,), lambda: setattr(o.child.child, "a", 7)


@row(NEEDED)
def object_nested_object_replaced(w):
    o, q = fresh_class()(), fresh_class()()
    o.child = fresh_class()()
    q.a = 12
    return lambda x: x * o.child.a, (X,), lambda: setattr(o, "child", q)


class Slotted:
    __slots__ = ("p", "q")

    def __init__(self):
        self.p = 2


@row(NEEDED)
def slot_value(w):
    o = Slotted()
    return lambda x: x * o.p, (X,), lambda: setattr(o, "p", 3)


@row(NEEDED)
def slot_deleted(w):
    o = Slotted()
    return lambda x: x * o.p, (X,), lambda: delattr(o, "p")


@row(NEEDED)
def slot_filled(w):
    o = Slotted()
    return lambda x: x * getattr(o, "q", 5), (X,), lambda: setattr(o, "q", 3)


@row(FREE)
def slot_not_read(w):
    o = Slotted()
    return lambda x: x * o.p, (X,), lambda: setattr(o, "q", 3)


@row(NEEDED)
def slot_tensor_dtype(w):
    o = Slotted()
    o.p = torch.ones(3)
    return lambda x: x * o.p, (X,), lambda: setattr(o, "p", torch.ones(3, dtype=torch.float64))


@row(FREE)
def slot_tensor_replaced(w):
    o = Slotted()
    o.p = torch.ones(3)
    return lambda x: x * o.p, (X,), lambda: setattr(o, "p", torch.full((3,), 2.0))


@row(NEEDED)
def dataclass_field(w):
    @dataclasses.dataclass
    class Point:
        a: int
        b: object = dataclasses.field(default_factory=list)

    o = Point(1)
    return lambda x: x * o.a + len(o.b), (X,), lambda: o.b.append(1)


@row(NEEDED)
def named_tuple_field(w):
    point = collections.namedtuple("point", "a b")
    box = [point(1, 2)]
    return lambda x: x * box[0].b, (X,), lambda: box.__setitem__(0, point(1, 5))


# -- classes --------------------------------------------------------------------------------------


@row(NEEDED)
def class_attribute(w):
    cls = fresh_class()
    o = cls()
    return lambda x: x * o.b, (X,), lambda: setattr(cls, "b", 5)


@row(NEEDED)
def class_attribute_of_base(w):
    base = fresh_class()
    o = type("Derived", (base,), {})()
    return lambda x: x * o.b, (X,), lambda: setattr(base, "b", 5)


@row(NEEDED)
def class_attribute_shadowed_in_derived(w):
    cls = type("Derived", (fresh_class(),), {})
    o = cls()
    return lambda x: x * o.b, (X,), lambda: setattr(cls, "b", 5)


@row(NEEDED)
def class_attribute_read_from_class(w):
    cls = fresh_class()
    return lambda x: x * cls.b, (X,), lambda: setattr(cls, "b", 5)


@row(NEEDED)
def class_attribute_deleted(w):
    cls = type("Derived", (fresh_class(),), {"b": 4})
    o = cls()
    return lambda x: x * o.b, (X,), lambda: delattr(cls, "b")


@row(FREE)
def class_attribute_not_read(w):
    cls = fresh_class()
    o = cls()
    return lambda x: x * o.b, (X,), lambda: setattr(cls, "c", 5)


@row(NEEDED)
def class_attribute_list_changed(w):
    cls = fresh_class(items=[1, 2])
    o = cls()
    return lambda x: x * sum(o.items), (X,), lambda: cls.items.append(3)


@row(NEEDED)
def class_bases_replaced(w):
    base, other = fresh_class(), fresh_class(b=13)
    cls = type("Derived", (base,), {})
    o = cls()

    def change():
        cls.__bases__ = (other,)

    return lambda x: x * o.b, (X,), change


@row(NEEDED)
def class_method_patched(w):
    cls = fresh_class(m=lambda self, x: x * 2)
    o = cls()
    return lambda x: o.m(x), (X,), lambda: setattr(cls, "m", lambda self, x: x * 3)


@row(NEEDED)
def method_on_instance(w):
    cls = fresh_class(m=lambda self, x: x * 2)
    o = cls()
    return lambda x: o.m(x), (X,), lambda: setattr(o, "m", lambda x: x * 3)


@row(NEEDED)
def method_code_replaced(w):
    cls = fresh_class(m=lambda self, x: x * 2)
    o = cls()
    return (
        lambda x: o.m(x),
        (X,),
        lambda: setattr(cls.m, "__code__", (lambda self, x: x * 3).__code__),
    )


@row(NEEDED)
def classmethod_patched(w):
    cls = fresh_class(m=classmethod(lambda c, x: x * 2))
    return lambda x: cls.m(x), (X,), lambda: setattr(cls, "m", classmethod(lambda c, x: x * 3))


@row(NEEDED)
def staticmethod_patched(w):
    cls = fresh_class(m=staticmethod(lambda x: x * 2))
    o = cls()
    return lambda x: o.m(x), (X,), lambda: setattr(cls, "m", staticmethod(lambda x: x * 3))


@row(NEEDED)
def property_input(w):
    o = fresh_class(p=property(lambda self: self.a * 2))()
    return lambda x: x * o.p, (X,), lambda: setattr(o, "a", 9)


@row(NEEDED)
def property_patched(w):
    cls = fresh_class(p=property(lambda self: self.a * 2))
    o = cls()
    return lambda x: x * o.p, (X,), lambda: setattr(cls, "p", property(lambda self: self.a * 3))


@row(NEEDED)
def property_added(w):
    cls = fresh_class()
    o = cls()
    return lambda x: x * o.a, (X,), lambda: setattr(cls, "a", property(lambda self: 50))


@row(NEEDED)
def cached_property_content(w):
    cls = fresh_class(p=functools.cached_property(lambda self: 6))
    cls.__dict__["p"].__set_name__(cls, "p")
    o = cls()
    o.p  # noqa: B018 - fills it
    return lambda x: x * o.p, (X,), lambda: o.__dict__.update(p=4)


@row(NEEDED)
def user_descriptor_state(w):
    class Descriptor:
        k = 2

        def __get__(self, obj, owner):
            return self.k

        def __set__(self, obj, value):
            raise AttributeError

    d = Descriptor()
    o = fresh_class(p=d)()
    return lambda x: x * o.p, (X,), lambda: setattr(d, "k", 3)


@row(NEEDED)
def getattr_hook(w):
    cls = fresh_class(__getattr__=lambda self, name: 4)
    o = cls()
    return lambda x: x * o.zz, (X,), lambda: setattr(cls, "__getattr__", lambda self, name: 5)


@row(NEEDED)
def getattr_hook_added(w):
    cls = fresh_class()
    o = cls()
    return (
        lambda x: x * getattr(o, "zz", 3),
        (X,),
        lambda: setattr(cls, "__getattr__", lambda self, name: 5),
    )


@row(NEEDED)
def getattribute_added(w):
    cls = fresh_class()
    o = cls()
    return lambda x: x * o.a, (X,), lambda: setattr(cls, "__getattribute__", lambda self, name: 5)


@row(NEEDED)
def special_method_bool(w):
    cls = fresh_class(__bool__=lambda self: True)
    o = cls()
    return lambda x: x * (2 if o else 3), (X,), lambda: setattr(cls, "__bool__", lambda self: False)


@row(NEEDED)
def special_method_bool_added(w):
    cls = fresh_class()
    o = cls()
    return lambda x: x * (2 if o else 3), (X,), lambda: setattr(cls, "__bool__", lambda self: False)


@row(NEEDED)
def special_method_len(w):
    cls = fresh_class(__len__=lambda self: 4)
    o = cls()
    return lambda x: x * len(o), (X,), lambda: setattr(cls, "__len__", lambda self: 5)


@row(NEEDED)
def special_method_call(w):
    cls = fresh_class(__call__=lambda self, x: x * 2)
    o = cls()
    return lambda x: o(x), (X,), lambda: setattr(cls, "__call__", lambda self, x: x * 3)


@row(NEEDED)
def special_method_eq_added(w):
    cls = fresh_class()
    o, p = cls(), cls()
    return (
        lambda x: x * (2 if o == p else 3),
        (X,),
        lambda: setattr(cls, "__eq__", lambda self, other: True),
    )


@row(NEEDED)
def special_method_add(w):
    cls = fresh_class(__add__=lambda self, other: other * 2)
    o = cls()
    return lambda x: o + x, (X,), lambda: setattr(cls, "__add__", lambda self, other: other * 3)


@row(NEEDED)
def constructor_patched(w):
    cls = fresh_class()

    def change():
        def __init__(self):
            self.a = 40

        cls.__init__ = __init__

    return lambda x: x * cls().a, (X,), change


@row(NEEDED)
def metaclass_attribute(w):
    meta = type("Meta", (type,), {"m": 2})
    cls = meta("Thing", (), {})
    return lambda x: x * cls.m, (X,), lambda: setattr(meta, "m", 3)


@row(NEEDED)
def metaclass_attribute_shadowed(w):
    meta = type("Meta", (type,), {"m": 2})
    cls = meta("Thing", (), {})
    return lambda x: x * cls.m, (X,), lambda: setattr(cls, "m", 3)


@row(NEEDED)
def metaclass_property(w):
    meta = type("Meta", (type,), {"m": property(lambda cls: cls.k), "k": 2})
    cls = meta("Thing", (), {})
    return lambda x: x * cls.m, (X,), lambda: setattr(cls, "k", 3)


@row(NEEDED)
def metaclass_replaced(w):
    meta = type("Meta", (type,), {"m": 2})
    other = type("Meta", (type,), {"m": 3})
    cls = meta("Thing", (), {})
    return lambda x: x * cls.m, (X,), lambda: setattr(cls, "__class__", other)


@row(NEEDED)
def metaclass_call(w):
    meta = type("Meta", (type,), {"__call__": lambda cls: 2})
    cls = meta("Thing", (), {})
    return lambda x: x * cls(), (X,), lambda: setattr(meta, "__call__", lambda cls: 3)


@row(FREE)
def class_doc(w):
    class Named:
        """Old."""

    obj = Named()
    return lambda x: (x + 1, type(obj).__doc__), (X,), lambda: setattr(Named, "__doc__", "New")


@row(NEEDED)
def class_module(w):
    class Named:
        pass

    obj = Named()
    return lambda x: (x + 1, type(obj).__module__), (X,), lambda: setattr(Named, "__module__", "m")


@row(NEEDED)
def class_name(w):
    cls = fresh_class()
    return lambda x: x * len(cls.__name__), (X,), lambda: setattr(cls, "__name__", "Other_name")


@row(NEEDED)
def isinstance_after_class_change(w):
    cls, other = fresh_class(), fresh_class()
    o = cls()
    return (
        lambda x: x * (2 if isinstance(o, cls) else 3),
        (X,),
        lambda: setattr(o, "__class__", other),
    )


@row(NEEDED)
def isinstance_after_abc_register(w):
    class Base(abc.ABC):
        pass

    cls = fresh_class()
    o = cls()
    return lambda x: x * (2 if isinstance(o, Base) else 3), (X,), lambda: Base.register(cls)


@row(NEEDED)
def isinstance_of_global_class_replaced(w):
    cls, other = fresh_class(), fresh_class()
    o = cls()
    names = {"kind": cls}
    return (
        lambda x: x * (2 if isinstance(o, names["kind"]) else 3),
        (X,),
        lambda: names.update(kind=other),
    )


@row(NEEDED)
def issubclass_after_bases_change(w):
    base, other = fresh_class(), fresh_class()
    cls = type("Derived", (base,), {})

    def change():
        cls.__bases__ = (other,)

    return lambda x: x * (2 if issubclass(cls, base) else 3), (X,), change


@row(NEEDED)
def super_after_bases_change(w):
    class Base:
        def value(self):
            return 2

    class Derived(Base):
        def value(self):
            return super().value() + 1

    class Between(Base):
        def value(self):
            return 7

    o = Derived()

    def change():
        Derived.__bases__ = (Between,)

    return lambda x: x * o.value(), (X,), change


@row(NEEDED, after=4)  # it breaks
def reducer_of_a_copied_class(w):
    cls = fresh_class()
    o, other = cls(), cls()
    other.a = 3

    def change():
        copyreg.pickle(cls, lambda _: (lambda: other, ()))

    return lambda x: x * copy.copy(o).a, (X,), change


@row(NEEDED)
def class_attribute_dict_of_enum(w):
    class Color(enum.Enum):
        RED = 1
        BLUE = 2

    o = fresh_class()()
    o.a = Color.RED
    return lambda x: x * o.a.value, (X,), lambda: setattr(o, "a", Color.BLUE)


@row(NEEDED)
def super_target_patched(w):
    class Base:
        def m(self, x):
            return x * 2

    class Derived(Base):
        def m(self, x):
            return super().m(x) + 1

    def change():
        Base.m = lambda self, x: x * 3

    o = Derived()
    return lambda x: o.m(x), (X,), change


# -- functions ------------------------------------------------------------------------------------


def _helper(k=2, *, j=3):
    def g(x, k=k, *, j=j):
        return x * k + j

    return g


@row(NEEDED)
def function_code(w):
    g = _helper()
    return (
        lambda x: g(x),
        (X,),
        lambda: setattr(g, "__code__", (lambda x, k=1, *, j=1: x - k - j).__code__),
    )


@row(NEEDED)
def function_defaults(w):
    g = _helper()
    return lambda x: g(x), (X,), lambda: setattr(g, "__defaults__", (7,))


@row(NEEDED)
def function_defaults_removed(w):
    g = _helper()
    return lambda x: g(x), (X,), lambda: setattr(g, "__defaults__", None)


@row(FREE)
def function_defaults_unused(w):
    g = _helper()
    return lambda x: g(x, 4, j=1), (X,), lambda: setattr(g, "__defaults__", (7,))


@row(NEEDED)
def function_kwdefaults(w):
    g = _helper()
    return lambda x: g(x), (X,), lambda: setattr(g, "__kwdefaults__", {"j": 9})


@row(NEEDED)
def function_kwdefaults_in_place(w):
    g = _helper()
    return lambda x: g(x), (X,), lambda: g.__kwdefaults__.update(j=9)


@row(NEEDED)
def function_closure_cell(w):
    k = 2

    def g(x):
        return x * k

    def change():
        nonlocal k
        k = 3

    return lambda x: g(x), (X,), change


@row(NEEDED)
def function_same_code_other_closure(w):
    def make(k):
        return lambda x: x * k

    box = {"g": make(2)}
    return lambda x: box["g"](x), (X,), lambda: box.update(g=make(3))


@row(FREE)
def function_same_code_equal_closure(w):
    def make(k):
        return lambda x: x * k

    box = {"g": make(2)}
    return lambda x: box["g"](x), (X,), lambda: box.update(g=make(2))


@row(NEEDED)
def function_same_code_other_globals(w):
    code = compile("lambda x: x * k", "<row>", "eval")
    one, two = eval(code, {"k": 2}), eval(code, {"k": 3})
    two.__code__ = one.__code__
    box = {"g": one}
    return lambda x: box["g"](x), (X,), lambda: box.update(g=two)


@row(NEEDED)
def function_attribute(w):
    g = _helper()
    g.k = 2
    return lambda x: x * g.k, (X,), lambda: setattr(g, "k", 5)


@row(NEEDED)
def function_name(w):
    g = _helper()
    return lambda x: x * len(g.__name__), (X,), lambda: setattr(g, "__name__", "longer")


@row(NEEDED)
def root_function_defaults(w):
    def f(x, k=2):
        return x * k

    return f, (X,), lambda: setattr(f, "__defaults__", (3,))


@row(NEEDED)
def root_function_kwdefaults(w):
    def f(x, *, k=2):
        return x * k

    return f, (X,), lambda: setattr(f, "__kwdefaults__", {"k": 3})


@row(NEEDED)
def root_function_code(w):
    def f(x):
        return x * 2

    def g(x):
        return x * 3

    return f, (X,), lambda: setattr(f, "__code__", g.__code__)


@row(NEEDED)
def root_function_code_with_other_parameters(w):
    def f(x, y=1):
        return x * 2 + y

    def g(x, y=1, z=4):
        t = x * 3
        return t + y

    def change():
        f.__code__ = g.__code__
        f.__defaults__ = (1, 4)

    return f, (X,), change


@row(NEEDED)
def root_closure_cell(w):
    k = 2

    def f(x):
        return x * k

    def change():
        nonlocal k
        k = 3

    return f, (X,), change


@row(FREE)
def root_closure_cell_unused(w):
    k = 2

    def f(x):
        return x * 2 if x is not None else k

    def change():
        nonlocal k
        k = 3

    return f, (X,), change


@row(FREE)
def root_closure_counter(w):
    k = 0.5
    seen = []

    def f(x):
        nonlocal k
        k = 1.5
        return x * 2

    def change():
        nonlocal k
        k = 30

    return f, (X,), change


@row(NEEDED)
def partial_arguments(w):
    box = {"g": functools.partial(torch.mul, other=2)}
    return lambda x: box["g"](x), (X,), lambda: box.update(g=functools.partial(torch.mul, other=3))


@row(NEEDED)
def partial_function(w):
    box = {"g": functools.partial(torch.mul, other=2)}
    return lambda x: box["g"](x), (X,), lambda: box.update(g=functools.partial(torch.add, other=2))


@row(NEEDED)
def partial_keywords_in_place(w):
    g = functools.partial(lambda x, k: x * k, k=2)
    return lambda x: g(x), (X,), lambda: g.keywords.update(k=3)


@row(NEEDED)
def partial_keyword_added(w):
    g = functools.partial(lambda x, k=1, j=1: x * k + j, k=2)
    return lambda x: g(x), (X,), lambda: g.keywords.update(j=3)


@row(NEEDED)
def partial_keyword_removed(w):
    g = functools.partial(lambda x, k=1: x * k, k=2)
    return lambda x: g(x), (X,), lambda: g.keywords.clear()


@row(NEEDED)
def partial_argument_added(w):
    def added(x, *others):
        return x + sum(others)

    g = functools.partial(added, X)
    return lambda x: g(x), (X,), lambda: g.__setstate__((added, (X, 1), {}, {}))


@row(NEEDED)
def deque_of_another_length_limit(w):
    box = {"d": collections.deque([1, 2], maxlen=2)}
    change = {"d": collections.deque([1, 2], maxlen=3)}
    return lambda x: x * (box["d"].maxlen or 0), (X,), lambda: box.update(change)


@row(NEEDED)
def deque_becomes_a_list(w):
    box = {"d": collections.deque([1, 2])}
    return lambda x: x * (3 - isinstance(box["d"], list)), (X,), lambda: box.update(d=[1, 2])


@row(NEEDED)
def class_attribute_becomes_a_property(w):
    cls = fresh_class(n=2)
    o = cls()

    def refused(self):
        raise AttributeError

    return lambda x: x * (2 + hasattr(o, "n")), (X,), lambda: setattr(cls, "n", property(refused))


@row(NEEDED)
def array_becomes_a_tensor(w):
    box = {"a": numpy.ones(2, numpy.float32)}
    change = {"a": torch.ones(2)}
    return lambda x: x * (2 + isinstance(box["a"], torch.Tensor)), (X,), lambda: box.update(change)


@row(NEEDED)
def mapping_proxy_becomes_a_dict(w):
    box = {"m": types.MappingProxyType({"k": 2})}
    return lambda x: x * box["m"]["k"], (X,), lambda: box.update(m={"k": 3})


@row(NEEDED)
def custom_operator_replaced(w):
    def made(name, factor):
        def scaled(x: torch.Tensor) -> torch.Tensor:
            return x * factor

        operator = torch.library.custom_op(f"soundness_{id(w)}::{name}", scaled, mutates_args=())
        operator.register_fake(torch.empty_like)
        return operator

    box = {"op": made("doubled", 2)}
    other = made("tripled", 3)
    return lambda x: box["op"](x), (X,), lambda: box.update(op=other)


@row(NEEDED)
def bound_method_receiver(w):
    cls = fresh_class(m=lambda self, x: x * self.a)
    o, p = cls(), cls()
    p.a = 9
    box = {"g": o.m}
    return lambda x: box["g"](x), (X,), lambda: box.update(g=p.m)


@row(NEEDED)
def builtin_function_replaced(w):
    box = {"g": torch.sin}
    return lambda x: box["g"](x), (X,), lambda: box.update(g=torch.cos)


# -- globals and builtins -------------------------------------------------------------------------


def globals_row(text, change, expected=NEEDED, **names):
    def make(w):
        namespace = {"torch": torch, "__name__": "row", **copy.deepcopy(names)}
        exec(f"def f(x):\n    {text}\n", namespace)
        return namespace["f"], (X,), lambda: change(namespace)

    return make


def add_globals(name, *args, expected=NEEDED, **names):
    add(f"global_{name}", expected, globals_row(*args, **names))


add_globals("rebound", "return x * K", lambda n: n.update(K=3), K=2)
add_globals("deleted", "return x * K", lambda n: n.pop("K"), K=2)
add_globals("equal", "return x * K", lambda n: n.update(K=int("2000")), K=2000, expected=FREE)
add_globals("not_read", "return x * K", lambda n: n.update(J=3), K=2, expected=FREE)
add_globals("new_name", "return x * K", lambda n: n.update(extra=3), K=2, expected=FREE)
add_globals("shadows_builtin", "return x * len((1, 2))", lambda n: n.update(len=lambda t: 7))
add_globals("function", "return x * g()", lambda n: n.update(g=lambda: 3), g=lambda: 2)
add_globals("list_changed", "return x * K[0]", lambda n: n["K"].__setitem__(0, 3), K=[2])
add_globals("dict_changed", "return x * K['a']", lambda n: n["K"].update(a=3), K={"a": 2})
add_globals("tensor", "return x * K", lambda n: n.update(K=torch.ones(1)), K=torch.zeros(3))
add_globals(
    "tensor_same_kind", "return x * K", lambda n: n.update(K=torch.ones(3)), K=torch.zeros(3),
    expected=FREE,
)  # fmt: skip
add_globals(
    "written_only", "global K; K = 4; return x + 1", lambda n: n.update(K=9), K=2, expected=FREE
)
add_globals(
    "torch_rebound",
    "return torch.sin(x)",
    lambda n: n.update(torch=types.SimpleNamespace(sin=lambda x: x)),
)


@row(NEEDED)
def builtin_added(w):
    def f(x):
        try:
            return x * framejit_row_name  # noqa: F821
        except NameError:
            return x

    w.undo(lambda: builtins.__dict__.pop("framejit_row_name", None))
    return f, (X,), lambda: setattr(builtins, "framejit_row_name", 4)


@row(NEEDED)
def builtin_replaced(w):
    old = builtins.input
    w.undo(setattr, builtins, "input", old)
    builtins.input = lambda: 2
    return lambda x: x * input(), (X,), lambda: setattr(builtins, "input", lambda: 50)


@row(NEEDED)
def python_module_attribute(w):
    module = types.ModuleType("row_module")
    module.k = 2
    return lambda x: x * module.k, (X,), lambda: setattr(module, "k", 3)


@row(NEEDED)
def python_module_attribute_added(w):
    module = types.ModuleType("row_module")
    return lambda x: x * getattr(module, "k", 2), (X,), lambda: setattr(module, "k", 3)


@row(NEEDED)
def python_module_getattr_appears(w):
    module = types.ModuleType("row_module")
    change = lambda: setattr(module, "__getattr__", lambda name: 3)  # noqa: E731
    return lambda x: x * getattr(module, "k", 2), (X,), change


@row(NEEDED)
def python_module_getattr_then_attribute(w):
    module = types.ModuleType("row_module")
    module.__getattr__ = lambda name: 2
    return lambda x: x * module.k, (X,), lambda: setattr(module, "k", 3)


@row(NEEDED)
def python_module_getattr_state(w):
    module = types.ModuleType("row_module")
    state = {"k": 2}
    module.__getattr__ = lambda name: state[name]
    return lambda x: x * module.k, (X,), lambda: state.update(k=3)


@row(NEEDED)
def torch_function_patched(w):
    old = torch.nn.functional.relu
    w.undo(setattr, torch.nn.functional, "relu", old)
    return (
        lambda x: torch.nn.functional.relu(x),
        (X,),
        lambda: setattr(torch.nn.functional, "relu", lambda x: x * 9),
    )


@row(NEEDED)
def torch_op_patched(w):
    w.undo(setattr, torch, "sin", torch.sin)
    return lambda x: torch.sin(x), (X,), lambda: setattr(torch, "sin", torch.cos)


@row(NEEDED)
def tensor_method_patched(w):
    def undo():
        del torch.Tensor.relu

    w.undo(lambda: "relu" in torch.Tensor.__dict__ and undo())
    return lambda x: x.relu(), (X,), lambda: setattr(torch.Tensor, "relu", lambda x: x * 9)


@row(NEEDED)
def objects_that_are_keys_get_eq(w):
    cls = fresh_class()
    one, other = cls(), cls()

    def change():
        cls.__eq__ = lambda self, other: type(other) is cls
        cls.__hash__ = lambda self: 1

    return lambda x: x * len({one, other}), (X,), change


@row(NEEDED)
def objects_that_are_keys_lose_hash(w):
    cls = fresh_class()
    one = cls()
    return lambda x: x * len({one: 1}), (X,), lambda: setattr(cls, "__hash__", None)


@row(NEEDED)
def hidden_object_becomes_a_descriptor(w):
    class Hidden:
        def __get__(self, instance, owner):
            return 5

    def change():
        Hidden.__set__ = lambda self, instance, value: None

    o = fresh_class(a=Hidden())()
    return lambda x: x * o.a, (X,), change


@row(NEEDED)
def enum_gets_truth(w):
    made = enum.Enum("Made", "A B")
    change = lambda: setattr(made, "__bool__", lambda self: False)  # noqa: E731
    return lambda x, e: x * 2 if e else x * 3, (X, made.A), change


@row(NEEDED)
def enum_gets_eq(w):
    made = enum.Enum("Made", "A B")

    def change():
        made.__eq__ = lambda self, other: True
        made.__hash__ = lambda self: 1

    return lambda x, e: x * len({e, made.B}), (X, made.A), change
