"""Rows of the soundness table: how long, empty or full things are; namespaces; iterators."""

import collections
import contextvars
import decimal
import functools
import inspect
import itertools
import operator
import re
import threading
import types
import weakref

import numpy
import torch
from soundness import FREE, NEEDED, add, row

import framejit

X = torch.arange(6.0).reshape(2, 3)
NAN = float("nan")


class Number(int):
    pass


class Thing:
    a = 2


def content(name, expected, function, old, change, after=1):
    """A row in which an argument is changed in place, or replaced by what ``change`` returns."""

    def make(w):
        value = old()

        def changed():
            new = change(value)
            return None if new is None else (X, new)

        return function, (X, value), changed

    add(f"content_{name}", expected, make, after)


def of_globals(text, **names):
    """A function with globals of its own, and these."""
    namespace = {"torch": torch, **names}
    exec(text, namespace)
    return namespace["f"], namespace


# -- truth and length -----------------------------------------------------------------------------

content("list_truth", NEEDED, lambda x, k: x * 2 if k else x, lambda: [1], lambda k: k.clear())
content("list_truth_only", FREE, lambda x, k: x * 2 if k else x, lambda: [1], lambda k: k.append(2))
content("set_truth", NEEDED, lambda x, k: x * 2 if k else x, lambda: {1}, lambda k: k.clear())
content("set_truth_only", FREE, lambda x, k: x * 2 if k else x, lambda: {1}, lambda k: k.add(2))
content("set_order_of_an_empty_one", NEEDED, lambda x, k: (x + 1, list(k)), set,
        lambda k: k.add(2))  # fmt: skip
content("set_in_the_order_of_another", NEEDED, lambda x, k: (x + 1, list(k)),
        lambda: {8, 16}, lambda k: {16, 8})  # fmt: skip
content("set_as_an_element", NEEDED, lambda x, k: (x + 1, {k: 3}),
        lambda: frozenset([8, 16]), lambda k: frozenset([16, 8]))  # fmt: skip
content("dict_of_objects", NEEDED, lambda x, k: x * sum(k.values()), lambda: {Thing(): 2},
        lambda k: k.update({Thing(): 3}))  # fmt: skip


@row(NEEDED)
def content_dict_length_after_pop(w):
    def f(x, k):
        taken = k.pop("a")
        result = x * len(k)
        k["a"] = taken
        return result

    k = {"a": 1, "b": 2}
    return f, (X, k), lambda: k.update(c=3)


@row(NEEDED)
def content_dict_truth_after_pop(w):
    def f(x, k):
        taken = k.pop("a")
        result = x * 2 if k else x
        k["a"] = taken
        return result

    k = {"a": 1, "b": 2}
    return f, (X, k), lambda: k.pop("b") and None


@row(NEEDED)
def content_dict_stored_and_removed(w):
    def f(x, k):
        k["a"] = 5
        del k["a"]
        return x + 1, k

    k = {"b": 1}
    return f, (X, k), lambda: k.update(a=7)


# -- namespaces -----------------------------------------------------------------------------------


@row(NEEDED)
def content_globals_keys(w):
    f, namespace = of_globals("def f(x): return x * len(list(globals()))")
    return f, (X,), lambda: namespace.update(more=1)


@row(NEEDED)
def content_globals_as_an_argument(w):
    f, namespace = of_globals("def f(x, d): return x * d['g'] * g", g=2)
    return f, (X, namespace), lambda: (X, {"g": 3})


@row(NEEDED)
def content_class_dict_keys(w):
    cls = type("Cls", (), {"a": 1})
    return lambda x: x * len(list(cls.__dict__)), (X,), lambda: setattr(cls, "b", 3)


@row(NEEDED)
def content_proxy_of_a_known_class(w):
    one, other = type("Cls", (), {"a": 2}), type("Cls", (), {"a": 3})

    def f(x, p):
        return x * one.__dict__["a"] * p["a"]

    return f, (X, one.__dict__), lambda: (X, other.__dict__)


@row(NEEDED)
def content_proxy_of_a_written_class(w):
    cls, other = type("Cls", (), {"a": 2}), type("Cls", (), {"a": 7})

    def f(x, p):
        cls.a = 5
        result = x * p["a"]
        cls.a = 2
        return result

    return f, (X, cls.__dict__), lambda: (X, other.__dict__)


@row(NEEDED)
def content_proxy_becomes_that_of_a_written_class(w):
    cls, other = type("Cls", (), {"a": 2}), type("Cls", (), {"a": 2})

    def f(x, p):
        cls.a = 5
        result = x * p["a"]
        cls.a = 2
        return result

    return f, (X, other.__dict__), lambda: (X, cls.__dict__)


@row(NEEDED)
def content_namespace_and_its_object(w):
    one, other = Thing(), Thing()
    one.b, other.b = 2, 3

    def f(x, d, o):
        d["b"] += 0
        return x * d["b"] * o.b

    return f, (X, one.__dict__, one), lambda: (X, one.__dict__, other)


# -- iterators ------------------------------------------------------------------------------------


def tensors(n=20):
    return [torch.full((3,), float(i)) for i in range(n)]


def ended():
    iterator = iter([])
    list(iterator)
    return iterator


content("iterator_kind", NEEDED, lambda x, k: x * next(k), lambda: iter(tensors()),
        lambda k: tensors())  # fmt: skip
content("iterator_ends", NEEDED, lambda x, k: x * next(k, 5), lambda: iter(tensors()),
        lambda k: list(k) and None)  # fmt: skip
content("iterator_goes_on", NEEDED, lambda x, k: x * next(k, 5), ended,
        lambda k: iter(tensors()))  # fmt: skip
content("map_function", NEEDED, lambda x, k: x * next(k),
        lambda: map(lambda t: t + 1, itertools.repeat(torch.ones(3))),
        lambda k: map(lambda t: t + 2, itertools.repeat(torch.ones(3))))  # fmt: skip
content("map_becomes_a_filter", NEEDED, lambda x, k: x * next(k),
        lambda: map(torch.exp, itertools.repeat(torch.ones(1))),
        lambda k: filter(torch.exp, itertools.repeat(torch.ones(1))))  # fmt: skip
content("map_of_two", NEEDED, lambda x, k: x * next(k),
        lambda: map(max, itertools.repeat(torch.ones(1))),
        lambda k: map(max, itertools.repeat(torch.ones(1)),
                      itertools.repeat(torch.ones(1) + 1)), after=2)  # fmt: skip

# -- what C keeps ---------------------------------------------------------------------------------


@row(NEEDED)
def content_cached_function_replaced(w):
    def made(n):
        return functools.lru_cache(lambda k: k + n)

    return lambda x, k: x * k(1), (X, made(1)), lambda: (X, made(2))


@row(NEEDED, packaged=False)
def content_context_variable_set(w):
    variable = contextvars.ContextVar("v")

    def change():
        w.undo(variable.reset, variable.set(3))

    return lambda x: x * variable.get(2), (X,), change


@row(NEEDED, packaged=False)
def content_context_variable_replaced(w):
    one, other = contextvars.ContextVar("v", default=2), contextvars.ContextVar("w", default=3)
    return lambda x, v: x * v.get(), (X, one), lambda: (X, other)


@row(NEEDED)
def content_signature_defaults(w):
    def g(a, b=2):
        return a

    f = lambda x: x * inspect.signature(g).parameters["b"].default
    return f, (X,), lambda: setattr(g, "__defaults__", (3,))


@row(NEEDED)
def content_signature_keyword_defaults(w):
    def g(a, *, b=2):
        return a

    f = lambda x: x * inspect.signature(g).parameters["b"].default
    return f, (X,), lambda: setattr(g, "__kwdefaults__", {"b": 3})


@row(NEEDED)
def content_bases_replaced(w):
    class Base:
        pass

    class Other:
        pass

    class Derived(Base):
        pass

    o = Derived()
    f = lambda x: x * 2 if isinstance(o, Base) else x
    return f, (X,), lambda: setattr(Derived, "__bases__", (Other,))


content("getter", NEEDED, lambda x, k: x * k((1, 2)), lambda: operator.itemgetter(0),
        lambda k: operator.itemgetter(1))  # fmt: skip
content("partial_becomes_a_function", NEEDED, lambda x, k: k(x),
        lambda: functools.partial(torch.mul, X), lambda k: lambda x: x + 1)  # fmt: skip
content("partial_more_arguments", NEEDED, lambda x, k: k(x),
        lambda: functools.partial(lambda *a: a[0] * len(a)),
        lambda k: functools.partial(lambda *a: a[0] * len(a), X))  # fmt: skip
content("partial_of_equal_functions", NEEDED, lambda x, k: k(x), lambda: functools.partial(max, X),
        lambda k: functools.partial(max, X, X, key=torch.sum))  # fmt: skip
content("partial_one_argument_more", NEEDED, lambda x, k: x * len(k(1)),
        lambda: functools.partial(several, 1),
        lambda k: functools.partial(several, 1, 2))  # fmt: skip
content("partial_one_keyword_more", NEEDED, lambda x, k: x * len(k(1)),
        lambda: functools.partial(several, b=1),
        lambda k: functools.partial(several, b=1, c=2))  # fmt: skip


def several(*args, **kwargs):
    return [*args, *kwargs]


# -- attributes of classes ------------------------------------------------------------------------


@row(NEEDED)
def super_value_goes_on_elsewhere(w):
    class Base:
        a = 1

    class One(Base):
        a = 1

    class Other(Base):
        a = 2

    class Derived(One, Other):
        def m(self):
            return super().a

    o = Derived()
    return lambda x: x * o.m(), (X,), lambda: delattr(One, "a")


@row(NEEDED)
def super_method_moves_to_the_base(w):
    class Base:
        pass

    class One(Base):
        def m(self):
            return 1

    class Other(Base):
        def m(self):
            return 2

    class Derived(One, Other):
        def m(self):
            return super().m()

    def change():
        Base.m = One.m
        del One.m

    o = Derived()
    return lambda x: x * o.m(), (X,), change


@row(NEEDED)
def super_attribute_appears_between(w):
    class Base:
        def m(self):
            return 1

    class One(Base):
        pass

    class Derived(One):
        def m(self):
            return super().m()

    o = Derived()
    return lambda x: x * o.m(), (X,), lambda: setattr(One, "m", lambda self: 2)


@row(NEEDED)
def class_of_a_module_that_was_imported_again(w):
    def imported(k):
        module = types.ModuleType("imported_again")
        module.__dict__.update({f"name_{i}": i for i in range(20)}, k=k)
        exec(_MODULE, module.__dict__)
        return module

    return lambda x, o: o.m(x), (X, imported(2).make()), lambda: (X, imported(3).make())


_MODULE = compile(
    "def make():\n class Local:\n  def m(self, x): return x * k\n return Local()",
    "imported_again.py", "exec",
)  # fmt: skip


def _moved():
    made = collections.OrderedDict(a=1, b=2)
    made.move_to_end("a")
    return made


content("bound_method_of_the_base", NEEDED, lambda x, m: (x + 1, list(m())),
        lambda: _moved().keys, lambda m: dict.keys.__get__(m.__self__), after=3)  # fmt: skip
content("bound_method_of_the_class", NEEDED, lambda x, m: (x + 1, list(m())),
        lambda: dict.keys.__get__(_moved()), lambda m: m.__self__.keys)  # fmt: skip
content("bound_method_other_name", NEEDED, lambda x, m: (x + 1, m(1)),
        lambda: [1, 2, 1].count, lambda m: m.__self__.index)  # fmt: skip
content("bound_method_becomes_a_function", NEEDED, lambda x, m: (x + 1, m(3)),
        lambda: [1, 2, 1].count, lambda m: lambda n: n)  # fmt: skip
content("bound_special_method_of_another", NEEDED, lambda x, m: (x + 1, m(0)),
        lambda: [1, 2].__getitem__, lambda m: {0: 3}.__getitem__)  # fmt: skip
content("bound_special_method_of_the_base", NEEDED, lambda x, m: (x + 1, list(m())),
        lambda: _moved().__iter__, lambda m: dict.__iter__.__get__(m.__self__),
        after=3)  # fmt: skip
content("operator_of_torch", NEEDED, lambda x, k: k(x), lambda: torch.ops.aten.exp.default,
        lambda k: torch.ops.aten.sin.default)  # fmt: skip
content("weak_reference_to_a_function", NEEDED, lambda x, k: k()(x), lambda: weakref.ref(torch.exp),
        lambda k: lambda: torch.sin)  # fmt: skip
content("exception_of_another_class", NEEDED, lambda x, e: (x + 1, type(e).__name__),
        lambda: ValueError("a"), lambda e: TypeError("a"))  # fmt: skip
content("pattern", NEEDED, lambda x, p: (x + 1, p.sub("c", "ab") + "d"),
        lambda: re.compile("a"), lambda p: re.compile("b"))  # fmt: skip
content("numpy_scalar", FREE, lambda x, n: x * n, lambda: numpy.float64(2), lambda n: None)
content("numpy_scalar_tested", NEEDED, lambda x, n: x * 2 if n > 2 else x, lambda: numpy.float64(2),
        lambda n: numpy.float64(3))  # fmt: skip
content("numpy_scalar_item", NEEDED, lambda x, n: x * len(str(n.item())),
        lambda: numpy.float64(0.0), lambda n: numpy.float64(-0.0))  # fmt: skip
content("numpy_scalar_kind", NEEDED, lambda x, n: (x + 1, type(n).__name__),
        lambda: numpy.float64(2), lambda n: numpy.float32(2))  # fmt: skip
content("numpy_dtype", NEEDED, lambda x, d: (x + 1, d.itemsize), lambda: numpy.dtype("float32"),
        lambda d: numpy.dtype("float64"))  # fmt: skip
content("numpy_function", NEEDED, lambda x, f: f(x.numpy()), lambda: numpy.sin,
        lambda f: numpy.cos)  # fmt: skip
content("int_subclass", NEEDED, lambda x, k: x * k, lambda: Number(2), lambda k: Number(3))
content("frozenset_of_objects", NEEDED, lambda x, k: x * len(k),
        lambda: frozenset([Thing(), Thing()]), lambda k: [1, 2, 3])  # fmt: skip
content("frozenset_of_others", NEEDED, lambda x, k: (x + 1, torch.exp in k),
        lambda: frozenset([torch.sin, torch.exp]),
        lambda k: frozenset([torch.sin, torch.cos]))  # fmt: skip
content("nan_as_a_key", NEEDED, lambda x, k: (x + 1, k[1] in {k[0]: 1}), lambda: [NAN, NAN],
        lambda k: [NAN, float("nan")])  # fmt: skip


@row(NEEDED)
def counter_of_calls_of_another_class(w):
    o = Thing()
    o.calls = 1

    def f(x):
        o.calls += 1
        return x + 1, o.__dict__

    return f, (X,), lambda: setattr(o, "calls", Number(1))


@row(NEEDED)
def decimal_precision(w):
    context = decimal.getcontext()
    w.undo(setattr, context, "prec", context.prec)
    f = lambda x: (x + 1, str(decimal.Decimal(1) / 3))
    return f, (X,), lambda: setattr(context, "prec", 5)


@row(NEEDED)
def thread_local_attribute_added(w):
    local = threading.local()
    return lambda x: x * getattr(local, "a", 2), (X,), lambda: setattr(local, "a", 3)


@row(NEEDED)
def module_hook_finds_more(w):
    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            if name in found:
                return 3
            raise AttributeError(name)

    found, module = [], Lazy("lazy")
    return lambda x: x * getattr(module, "a", 2), (X,), lambda: found.append("a")


@row(NEEDED, after=9)
def profiler_starts(w):
    def f(x):
        with torch.profiler.record_function("label"):
            return x + 1

    return f, (X,), lambda: w.enter(torch.profiler.profile()) and None


@row(NEEDED, packaged=False)
def function_made_by_exec_has_other_globals(w):
    def made(k):
        namespace = {"k": k}
        exec("class Local:\n def m(self, x): return x * k\n", namespace)
        return namespace["Local"]()

    return lambda x, o: o.m(x), (X, made(2)), lambda: (X, made(3))


@row(NEEDED, packaged=False)
def compiled_function_replaced(w):
    def made(k):
        return framejit.compile(lambda x: x + k, backend="eager")

    return lambda x, k: k(x), (X, made(1)), lambda: (X, made(2))


@row(NEEDED)
def hashes_of_texts(w):
    return lambda x, k: x * (hash(k) % 7 + 1), (X, "a"), lambda: (X, "b")


@row(NEEDED)
def getter_of_a_list(w):
    places = [0, 1]
    getter = operator.itemgetter(places)
    return lambda x: getter(x), (X,), lambda: places.append(0)


@row(NEEDED)
def getter_of_a_tensor(w):
    held = torch.ones(3)
    caller = operator.methodcaller("add", held, alpha=2)
    return lambda x: caller(x), (X,), lambda: held.add_(1).resize_(1) and None


@row(NEEDED)
def module_of_another_class(w):
    class Lazy(types.ModuleType):
        def __getattr__(self, name):
            return 2

    class Switch:
        def __get__(self, module, cls):
            return 3

        def __set__(self, module, value):
            raise AttributeError

    class Other(Lazy):
        a = Switch()

    module = Lazy("lazy")
    return lambda x: x * module.a, (X,), lambda: setattr(module, "__class__", Other)
