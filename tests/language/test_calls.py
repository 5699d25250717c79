"""Calls in programs: arguments of every kind, decorators, methods, recursion, wrong arguments."""

from __future__ import annotations

import functools
import types

import pytest
import torch

import framejit
from checking import check

x = torch.tensor([1.0, -2.0, 3.0])
y = torch.tensor([0.5, 4.0, -1.0])


def one(function, *args, **kwargs):
    """One graph that holds all operations."""
    return check(function, *args, fullgraph=True, graphs=1, **kwargs)


def defaults(a, b=2, *rest, c=3, d, **more):
    return a * b + c + d + sum(rest) + sum(more.values())


def positional(a, b, /, c, *, d=1):
    return a + b * c - d


def scaled(factor):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return function(*args, **kwargs) * factor

        return wrapper

    return decorate


@scaled(3)
def decorated(a, *, shift=1):
    """Adds."""
    return a + shift


@scaled(2)
@scaled(5)
def twice_decorated(a):
    return a - 1


class CountCalls:
    def __init__(self, function):
        functools.update_wrapper(self, function)
        self.function = function
        self.calls = 0

    def __call__(self, *args):
        self.calls += 1
        return self.function(*args) + self.calls


def factorial(n, a):
    return a if n <= 0 else factorial(n - 1, a * n)


def even(n, a):
    return a if n == 0 else odd(n - 1, a + 1)


def odd(n, a):
    return -a if n == 0 else even(n - 1, a * 2)


class Layer:
    scale = 2.0

    def __init__(self, weight):
        self.weight = weight

    def forward(self, a):
        return a * self.weight

    @classmethod
    def make(cls, weight):
        return cls(weight * cls.scale)

    @staticmethod
    def shift(a, by=1):
        return a + by

    def __call__(self, a, *args):
        return self.forward(a) + len(args)


class SubLayer(Layer):
    scale = 3.0

    def forward(self, a):
        return super().forward(a) - 1


layer = Layer(4.0)


def test_default_values():
    one(lambda a: defaults(a, d=1), x, ops=5)


def test_all_kinds_of_parameters():
    one(lambda a: defaults(a, 3, 4, 5, c=6, d=7, e=8, f=9), x, ops=5)


def test_star_arguments():
    def f(a, args, kwargs):
        return defaults(a, *args, *[1], **kwargs, **{"z": 3})

    one(f, x, (1, 2), {"d": 4, "e": 5})


def test_positional_only():
    one(lambda a: positional(a, 2, c=3) + positional(a, 1, 2, d=a), x)


def test_partial_functions():
    def f(a):
        p = functools.partial(defaults, a, d=2)
        q = functools.partial(p, 5, c=1)
        return p() + q(7) + p.keywords["d"] + len(q.args)

    one(f, x)


def test_partial_of_method():
    one(lambda a: functools.partial(layer.forward)(a) + functools.partial(Layer.shift, by=3)(a), x)


def test_decorated_functions():
    one(lambda a: decorated(a, shift=2) + len(decorated.__name__) + len(decorated.__doc__), x)


def test_stacked_decorators():
    one(lambda a: twice_decorated(a), x, ops=3)


def test_decorator_made_inside():
    def f(a):
        def deco(g):
            @functools.wraps(g)
            def wrapper(*args):
                return g(*args) + 1

            wrapper.tag = "tag"
            return wrapper

        @deco
        def inner(b):
            return b * 2

        return inner(a), inner.__name__, inner.tag, inner.__wrapped__(a)

    one(f, x)


def test_class_as_decorator_counts_calls():
    def make():
        counted = CountCalls(lambda a: a * 2)

        def f(a):
            return counted(a) + counted(a), counted.calls

        return f

    check(None, x, make=make, fullgraph=True, calls=1, graphs=1, ops=5)


def test_recursive_function():
    one(lambda a: factorial(5, a), x, ops=5)


def test_mutual_recursion():
    one(lambda a: even(5, a), x, ops=6)


def test_inner_recursion():
    def f(a):
        def go(n):
            return a if n == 0 else go(n - 1) + n

        return go(4)

    one(f, x, ops=4)


def test_bound_method():
    def f(a):
        m = layer.forward
        return m(a) + m.__func__(m.__self__, a)

    one(f, x)


def test_unbound_method():
    one(lambda a: Layer.forward(layer, a) + SubLayer.forward(SubLayer(2.0), a), x)


def test_class_and_static_methods():
    one(lambda a: SubLayer.make(2.0)(a) + Layer.make(1.0).shift(a) + layer.shift(a, 2), x)


def test_callable_object():
    one(lambda a: layer(a, 1, 2) + SubLayer(1.5)(a), x)


def test_lambdas_are_called():
    def f(a):
        add = lambda p, q=1, *r, **k: p + q + len(r) + len(k)  # noqa: E731
        return add(a) + add(a, 2, 3, z=4) + (lambda: a)()

    one(f, x)


def test_functions_in_containers():
    table = {"relu": torch.relu, "neg": lambda t: -t, "layer": layer}

    def f(a):
        for name in ("relu", "neg", "layer"):
            a = table[name](a)
        return [g(a) for g in (torch.sin, torch.Tensor.cos, layer.forward)]

    one(f, x, ops=7)


@pytest.mark.parametrize(
    "call",
    [
        lambda a: defaults(a),
        lambda a: defaults(),
        lambda a: positional(a, b=1, c=2),
        lambda a: positional(a, 1, 2, 3),
        lambda a: positional(a, 1, 2, e=3),
        lambda a: positional(a, 1, 2, c=3),
        lambda a: Layer(),
        lambda a: Layer(1, 2),
        lambda a: layer.forward(),
        lambda a: layer.forward(a, a, a),
        lambda a: (lambda: a)(1),
        lambda a: (lambda p, q: a)(q=1),
        lambda a: (lambda *, p, q, r: a)(),
        lambda a: (lambda p, q, r, s: a)(),
        lambda a: (lambda p, q=1: a)(1, 2, 3),
        lambda a: (lambda p, /, q: a)(p=1),
        lambda a: (3)(a),
        lambda a: "text"(a),
        lambda a: None(),
        lambda a: layer.missing(a),
        lambda a: len(3),
    ],
)
def test_wrong_arguments_caught(call):
    def f(a):
        b = a + 1
        try:
            call(b)
        except (TypeError, AttributeError) as error:
            return b * 2, str(error)
        return b

    one(f, x, ops=2)


def test_wrong_arguments_leave():
    check(lambda a: positional(a + 1), x, graphs=1, ops=1)


def test_keyword_order():
    def show(**kwargs):
        return list(kwargs)

    one(lambda a: (a + 1, show(z=1, a=2, **{"m": 3})), x)


def test_default_is_mutable():
    def make():
        def remember(item, seen=[]):  # noqa: B006
            seen.append(item)
            return len(seen)

        return lambda a: (a * remember(1), remember(2))

    check(None, x, make=make, fullgraph=True, calls=1, graphs=1, ops=1)


def test_default_changed_by_local():
    def f(a):
        fs = [lambda b, i=i: b * i for i in range(4)]
        gs = [lambda b: b * i for i in range(4)]  # noqa: B023
        return sum(g(a) for g in fs), sum(g(a) for g in gs)

    one(f, x)


def test_many_results():
    def pair(a):
        return a + 1, {"k": a * 2}

    def f(a):
        p, d = pair(a)
        return {**d, "p": p}, *pair(a)

    one(f, x)


def test_function_attributes():
    def f(a):
        def g(b: int, c: float = 2.0) -> str:
            """Doc."""
            return b * c

        g.calls = 1
        g.calls += 1
        return g(a), g.calls, g.__name__, g.__doc__, g.__defaults__, g.__qualname__

    one(f, x)


def test_existing_function_attribute_written():
    def make():
        def g(b):
            g.calls += 1
            return b + g.calls

        g.calls = 0

        def f(a):
            return g(g(a)), g.calls

        return f

    check(None, x, make=make, fullgraph=True, calls=1, graphs=1, ops=2)


def test_partialmethod_and_reduce():
    class A:
        def act(self, kind, a):
            return a * kind

        double = functools.partialmethod(act, 2)

    obj = A()

    def f(a):
        return obj.double(a) + functools.reduce(lambda p, q: p + q, [a, a, a], a)

    check(f, x, graphs=1, ops=5)


def test_singledispatch():
    @functools.singledispatch
    def show(v):
        return 0

    @show.register
    def _(v: int):
        return v + 1

    @show.register(list)
    def _(v):
        return len(v)

    check(lambda a: a * show(3) + show([1, 2]) + show("s"), x, graphs=1, ops=3)


def test_method_called_by_its_name():
    one(lambda a: getattr(layer, "for" + "ward")(a) + getattr(torch, "sin")(a), x)


def test_callable_and_type_checks():
    def f(a):
        return (
            a
            + callable(layer)
            + callable(3) * 2
            + isinstance(layer, Layer)
            + (type(a) is torch.Tensor)
        )

    one(f, x)


def test_args_passed_on():
    def inner(*args, **kwargs):
        return args[0] + args[-1] * kwargs.get("k", 1), len(args)

    def middle(*args, **kwargs):
        kwargs["k"] = kwargs.get("k", 0) + 2
        return inner(*args[::-1], **kwargs)

    def f(a, b):
        kw = {"k": 3}
        r = middle(a, b, a, **kw)
        return r, kw

    one(f, x, y)


def test_method_stored_on_instance():
    class A:
        def __init__(self):
            self.go = self.run

        def run(self, a):
            return a + 1

    obj = A()
    one(lambda a: obj.go(a), x)


def test_method_made_inside():
    class A:
        def __init__(self, w):
            self.w = w
            self.go = self.run
            self.also = lambda a: a * self.w

        def run(self, a):
            return a + self.w

    def f(a):
        obj = A(3)
        return obj.go(a) + obj.also(a), obj.go.__self__ is obj, obj.go == obj.run

    one(f, x)


def test_cached_function():
    @functools.lru_cache
    def size(n):
        return n * 2

    check(lambda a: a * size(3) + size(3), x, graphs=1, ops=2)


class Sizes:
    factor = 2

    @functools.lru_cache(None)
    def scaled(self, n):
        return n * self.factor

    @classmethod
    @functools.lru_cache(None)
    def of_class(cls, n):
        return n + cls.factor


SIZES = Sizes()


def test_lru_cache_as_a_method():
    one(lambda a: a * SIZES.scaled(3) + SIZES.scaled(n=4) - Sizes.scaled(SIZES, 5), x)
    one(lambda a: a * Sizes.of_class(3), x)
    kept = Sizes.scaled.cache_info().currsize
    check(lambda a: a * 2 + Sizes().scaled(2), x, graphs=2, ops=2)  # the cache keeps the new object
    assert Sizes.scaled.cache_info().currsize == kept + 4  # two calls, plain and compiled


def test_unpack_into_call_from_generator():
    one(lambda a: defaults(*(a * i for i in range(1, 4)), d=0), x)


def test_deep_inlining():
    def nest(n, a):
        if n:
            return nest(n - 1, a) + 1
        return a

    one(lambda a: nest(40, a), x, ops=40)


def test_returned_function():
    def f(a):
        def g(b, *, c=2):
            return b * c + a

        return g

    backend = check(lambda a: f(a + 1)(a), x, fullgraph=True, graphs=1, ops=3)
    assert len(backend.graphs) == 1


def test_functions_compared():
    def f(a):
        g = layer.forward
        return a + (g == layer.forward) + (g is layer.forward) * 2 + (factorial is factorial) * 4

    one(f, x)


def test_builtin_with_keywords():
    one(
        lambda a: a + max([1, 5, 3], key=lambda v: -v) + sum([1, 2], start=3) + int("11", base=2), x
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda a: defaults(*3, d=1),
        lambda a: defaults(a, **{"d": 1}, **{"d": 2}),
        lambda a: defaults(a, **3),
        lambda a: defaults(a, **{1: 2}),
    ],
)
def test_wrong_stars_break(call):
    def f(a):
        b = a + 1
        try:
            call(b)
        except TypeError as error:
            return b * 2, str(error)
        return b

    check(f, x, graphs=2, ops=2)


class Visited:
    def visit(self, v=0):
        return v


VISITED = Visited()


def _own_methods_of_a_method(m, x):
    shown = (m.__str__() == str(m), m.__repr__() == repr(m), m.__format__("") == format(m))
    compared = m.__eq__(m), m.__ne__(VISITED.visit), m.__hash__() == hash(m), m.__sizeof__()
    return shown, compared, m.__class__, m.__getattribute__("__self__") is VISITED, x + 1


def _call_of_a_call(m, x):
    calls = m.__call__, plus.__call__, len.__call__, [].append.__call__
    results = calls[0](3), calls[1](x), calls[2]([1]), calls[3](2), [*map(calls[0], (1, 2))]
    return results, [(c.__name__, c.__qualname__, type(c)) for c in calls], calls[0] is m


def _names_of_methods(m, x):
    bound = [].append, {}.get, "".join, (1).__add__, x.sin, m.__init__, object().__str__
    return [(b.__name__, b.__qualname__) for b in bound], x + 1


def _wrapped_methods(m, x):
    @functools.wraps(m)
    def around(v: int):
        return m(v)

    @functools.wraps(lambda v: v)
    def plain(v: int):
        return v

    names = around.__name__, around.__qualname__, plain.__annotations__
    return names, around.__wrapped__ is m, around(x) + 1


def plus(a):
    return a + 1


@pytest.mark.parametrize("program, graphs", [
    (_own_methods_of_a_method, None), (_call_of_a_call, None), (_names_of_methods, 1),
    (_wrapped_methods, 1),
])  # fmt: skip
def test_attributes_of_callables(program, graphs):
    check(program, VISITED.visit, torch.ones(2), graphs=graphs, ops=1)


def message(function):
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)


def _arguments_of_objects_methods(x):
    thing = Visited()
    return x + 1, [message(call) for call in (
        lambda: [].__str__(1, 2), lambda: thing.__str__(1), lambda: object.__format__(thing),
        lambda: thing.__format__(1), lambda: thing.__eq__(), lambda: thing.__ne__(1, 2),
        lambda: thing.__hash__(3), lambda: thing.__getattribute__([]),
        lambda: thing.__getattribute__("a", "b"), lambda: thing.__setattr__(3, 4),
        lambda: thing.__setattr__("a"), lambda: thing.__delattr__(3), lambda: thing.__str__(a=1),
        lambda: object.__setattr__(thing, [], 4),
    )]  # fmt: skip


def test_arguments_of_methods_of_object():
    one(_arguments_of_objects_methods, x)


def test_what_cannot_be_unpacked_into_arguments():
    def taking(*args, **kwargs):
        return args, kwargs

    def f(a, n):
        errors = []
        for call in (lambda: taking(*n), lambda: taking(**n), lambda: ",".join(n)):
            try:
                call()
            except TypeError as error:
                errors.append(str(error))
        return a + 1, errors

    compiled = framejit.compile(f, backend="eager")
    for n in (1, 2, 7, 2.5, 3.5, 9.5, None):
        assert repr(compiled(torch.ones(1), n)) == repr(f(torch.ones(1), n))


def test_fields_of_an_existing_function_are_assigned():
    def g():
        "first"

    def f(x):
        g.__name__, g.__doc__ = "renamed", "second"
        g.__qualname__ = "outer.renamed"
        return x * 2

    framejit.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
    assert (g.__name__, g.__doc__, g.__qualname__) == ("renamed", "second", "outer.renamed")


class WithCompiled:
    by = 3

    @framejit.compile(backend="eager")
    def method(self, x):
        return x * self.by


def test_compiled_functions_in_captured_code():
    @framejit.compile(backend="eager")
    def double(x):
        return x * 2

    def f(x, obj):
        bound = obj.method
        made = [bound(x), WithCompiled.method(obj, x), double.__call__(x), double.__get__(x)()]
        kinds = type(double) is type(WithCompiled.method), bound.__self__ is obj
        return made, kinds, double.__get__(None, WithCompiled) is double, double.__wrapped__(x)

    check(f, torch.ones(2), WithCompiled(), graphs=1, ops=5)


@pytest.mark.parametrize("args", [(5, 1), (len, None), (len, [1]), (len,)])
def test_methods_made_of_any_callable(args):
    def f(x):
        try:
            return x + types.MethodType(*args)()
        except TypeError as error:
            return x + 1, str(error)

    check(f, torch.ones(2), graphs=1, ops=1)
