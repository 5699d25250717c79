"""`compile` on every kind of callable: same results, same kind of object, one graph each."""

import copy
import functools
import inspect
import operator
import pickle
import sys
import types
import typing

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit.report import events


def ops_of(graph):
    return [node.op for node in graph.graph.nodes]


@pytest.fixture
def backend():
    return CountingBackend()


def affine(x: torch.Tensor, scale: float = 2.0, *, shift=1) -> torch.Tensor:
    """Scale and shift."""
    return x * scale + shift


affine.note = "an attribute"


class Model:
    def __init__(self, factor):
        self.factor = factor

    def run(self, x):
        return x.sin() * self.factor

    @framejit.compile(backend="eager")
    def decorated(self, x, extra=0):
        return x.cos() * self.factor + extra

    @staticmethod
    @framejit.compile(backend="eager")
    def static(x):
        return x + 1

    @classmethod
    @framejit.compile(backend="eager")
    def of_class(cls, x):
        return x * len(cls.__name__)

    def __call__(self, x):
        return x - self.factor


X = torch.randn(4, generator=torch.Generator().manual_seed(0))


def test_a_function_keeps_what_people_see(backend):
    compiled = framejit.compile(affine, backend=backend)
    assert torch.equal(compiled(X, shift=3), affine(X, shift=3))
    assert compiled.__name__ == "affine"
    assert compiled.__qualname__ == affine.__qualname__
    assert compiled.__module__ == affine.__module__
    assert compiled.__doc__ == "Scale and shift."
    assert compiled.__wrapped__ is affine
    assert compiled.note == "an attribute"
    assert inspect.signature(compiled) == inspect.signature(affine)
    assert callable(compiled)
    assert len(backend.graphs) == 1


def test_all_ways_to_pass_arguments(backend):
    def f(a, /, b, *rest, c=1, **more):
        return a + b * c + sum(rest) + sum(more.values())

    compiled = framejit.compile(f, backend=backend, fullgraph=True)
    for args, kwargs in [
        ((X, 2), {}),
        ((X,), {"b": 2}),
        ((X, 2, 3, 4), {"c": 5}),
        ((X, 2), {"c": 3, "d": X, "e": 1}),
    ]:
        assert torch.equal(compiled(*args, **kwargs), f(*args, **kwargs))


def test_wrong_arguments_give_pythons_own_error(backend):
    compiled = framejit.compile(affine, backend=backend)
    for args, kwargs in [((), {}), ((X, 1, 2), {}), ((X,), {"nope": 1})]:
        with pytest.raises(TypeError) as expected:
            affine(*args, **kwargs)
        with pytest.raises(TypeError) as got:
            compiled(*args, **kwargs)
        assert str(got.value) == str(expected.value)
    assert backend.graphs == []


def test_decorator_with_and_without_arguments():
    @framejit.compile
    def default(x):
        return x

    @framejit.compile(backend="eager", fullgraph=True)
    def configured(x):
        return x * 3

    assert default.__name__ == "default"
    assert torch.equal(configured(X), X * 3)


def test_lambda(backend):
    assert torch.equal(framejit.compile(lambda x: x * 2, backend=backend)(X), X * 2)
    assert len(backend.graphs) == 1


def test_closures_see_their_variables_change(backend):
    factor = 2

    def f(x):
        return x * factor

    compiled = framejit.compile(f, backend=backend)
    assert torch.equal(compiled(X), X * 2)
    factor = 3
    assert torch.equal(compiled(X), X * 3)
    assert len(backend.graphs) == 2


def test_bound_method(backend):
    model = Model(3)
    compiled = framejit.compile(model.run, backend=backend)
    assert compiled.__self__ is model
    assert compiled.__name__ == "run"
    assert inspect.signature(compiled) == inspect.signature(model.run)
    assert torch.equal(compiled(X), model.run(X))
    model.factor = 5
    assert torch.equal(compiled(X), model.run(X))
    assert len(backend.graphs) == 2


def test_decorated_methods():
    one, two = Model(3), Model(4)
    assert torch.equal(one.decorated(X), X.cos() * 3)
    assert torch.equal(two.decorated(X, extra=1), X.cos() * 4 + 1)
    assert torch.equal(Model.decorated(two, X), X.cos() * 4)
    assert torch.equal(one.static(X), X + 1)
    assert torch.equal(Model.of_class(X), X * 5)


def test_callable_instance(backend):
    model = Model(3)
    compiled = framejit.compile(model, backend=backend)
    assert torch.equal(compiled(X), X - 3)
    assert compiled.__self__ is model
    assert len(backend.graphs) == 1


def test_callable_instance_whose_class_gets_another_call(backend):
    class Affine:
        def __call__(self, x, scale=2):
            return x * scale

    class Child(Affine):
        pass

    model = Child()
    compiled = framejit.compile(model, backend=backend)
    assert torch.equal(compiled(X, 3), X * 3)
    Affine.__call__ = lambda self, x, *, shift: x - shift
    for _ in range(2):
        assert torch.equal(compiled(X, shift=1), X - 1)
    with pytest.raises(TypeError, match="positional"):
        compiled(X, 3)
    Child.__call__ = operator.methodcaller("sum")  # no function, so it is not bound
    assert torch.equal(compiled(X), X.sum())
    Child.__call__ = torch.neg
    assert torch.equal(compiled(X), -X)
    del Child.__call__
    assert torch.equal(compiled(X, shift=1), X - 1)
    assert len(backend.graphs) == 2 and backend.ops == 2


def test_module_whose_class_gets_another_call(backend):
    class Layer(torch.nn.Linear):
        pass

    layer = Layer(3, 3)
    compiled = framejit.compile(layer, backend=backend)
    x = torch.ones(3)
    assert torch.equal(compiled(x), layer(x))
    Layer.__call__ = lambda self, x: x + 1
    assert torch.equal(compiled(x), x + 1)
    del Layer.__call__
    assert torch.equal(compiled(x), layer(x))
    assert len(backend.graphs) == 3 and backend.ops == 3


def test_attributes_of_a_function():
    def f(x, scale=2.0, *, shift=1):
        return x * scale + shift + len(outer)

    outer = [1]
    compiled = framejit.compile(f, backend="eager")
    for name in ("__code__", "__defaults__", "__kwdefaults__", "__closure__", "__globals__"):
        assert getattr(compiled, name) is getattr(f, name)
    with pytest.raises(AttributeError):
        compiled.__defaults__ = (3.0,)
    assert inspect.signature(compiled) == inspect.signature(f)


def test_torch_jit_trace_sees_plain_python(backend):
    compiled = framejit.compile(lambda x: x.sin() * 2, backend=backend)
    for _ in range(2):
        traced = torch.jit.trace(compiled, X, check_trace=False)
        assert "aten::sin" in str(traced.graph)
        assert torch.equal(traced(X + 1), (X + 1).sin() * 2)
        assert torch.equal(compiled(X), X.sin() * 2)
    assert len(backend.graphs) == 1 and backend.ops == 2


def test_partial(backend):
    compiled = framejit.compile(functools.partial(affine, scale=5.0), backend=backend)
    assert isinstance(compiled, functools.partial)
    assert torch.equal(compiled(X, shift=2), X * 5 + 2)
    assert len(backend.graphs) == 1


def test_keywords_of_a_partial_that_change(backend):
    plain = functools.partial(affine, scale=5.0)
    compiled = framejit.compile(plain, backend=backend)
    assert torch.equal(compiled(X, shift=2), plain(X, shift=2))
    plain.keywords["scale"] = 7.0
    assert torch.equal(compiled(X, shift=2), X * 7 + 2)
    del plain.keywords["scale"]
    assert torch.equal(compiled(X, scale=3.0, shift=2), X * 3 + 2)
    assert len(backend.graphs) == 2  # the scale is a symbol from the second on


def test_c_function(backend):
    compiled = framejit.compile(torch.sin, backend=backend)
    assert compiled.__name__ == "sin"
    assert torch.equal(compiled(X), X.sin())


def test_wrapped_function_is_compiled_inside_out(backend):
    def twice(f):
        @functools.wraps(f)
        def call(x):
            return f(f(x))

        return call

    compiled = framejit.compile(twice(lambda x: x + 1), backend=backend, fullgraph=True)
    assert torch.equal(compiled(X), X + 1 + 1)
    assert len(backend.graphs) == 1


def test_compiling_a_compiled_function_starts_from_the_original():
    first, second = CountingBackend(), CountingBackend()
    once = framejit.compile(affine, backend=first)
    again = framejit.compile(once, backend=second)
    assert again.__wrapped__ is affine
    again(X)
    assert (len(first.graphs), len(second.graphs)) == (0, 1)


def test_compiled_objects_share_nothing():
    first, second = CountingBackend(), CountingBackend()
    one, two = (framejit.compile(affine, backend=b) for b in (first, second))
    one(X), two(X), two(X)
    assert (len(first.graphs), len(second.graphs)) == (1, 1)


def test_compiled_functions_call_each_other_in_one_graph(backend):
    inner = framejit.compile(lambda x: x.sin(), backend="eager")

    def outer(x):
        return inner(x) + 1

    compiled = framejit.compile(outer, backend=backend, fullgraph=True)
    assert torch.equal(compiled(X), X.sin() + 1)
    assert backend.ops == 2


def test_compiling_while_captured_code_runs(backend):
    """The new function is on the stack of the continuation and breaks once more."""

    def inner(x):
        print("inner")
        return x * 2 + 1

    def f(x):
        made = framejit.compile(inner, backend="eager")
        return made(x + 1) * 2

    compiled, x = framejit.compile(f, backend=backend), torch.arange(3.0)
    with framejit.config.patch(raise_internal_errors=True):
        for _ in range(2):
            torch.testing.assert_close(compiled(x), f(x))
    # Before the break, after it; and before it once more, for the second function.
    assert [graph.count("call_function") for graph in map(ops_of, backend.graphs)] == [1, 3, 1]


def test_disable_argument_returns_the_model():
    assert framejit.compile(affine, disable=True) is affine
    assert framejit.compile(disable=True)(affine) is affine


def test_recursion(backend):
    def power(x, n):
        return x if n == 0 else power(x, n - 1) * x

    assert torch.equal(framejit.compile(power, backend=backend)(X, 3), power(X, 3))


# -- copying and pickling ------------------------------------------------------------------------


@framejit.compile(backend="eager")
def module_level(x):
    return x * 2


def plain(x):
    return x * 3


def test_a_decorated_function_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(module_level)) is module_level
    assert copy.copy(module_level) is module_level
    assert copy.deepcopy({"f": module_level})["f"] is module_level


def test_a_compiled_function_that_no_name_leads_to_is_pickled_with_its_settings():
    compiled = framejit.compile(plain, backend="eager", fullgraph=True)
    loaded = pickle.loads(pickle.dumps(compiled))
    assert loaded.__wrapped__ is plain
    assert torch.equal(loaded(X), X * 3)


def test_recursion_is_as_deep_as_pythons(backend):
    depth = sys.getrecursionlimit() - len(inspect.stack()) - 60

    @framejit.compile(backend=backend)
    def down(x, n):
        return down(x + 1, n - 1) if n else x

    with framejit.disable():
        assert torch.equal(down(torch.zeros(1), depth), torch.full((1,), float(depth)))
    with framejit.config.patch(inline_depth_limit=10):
        assert torch.equal(down(torch.zeros(1), 35), torch.full((1,), 35.0))


def test_reset_does_not_forget_what_cannot_be_captured(backend):
    @framejit.compile(backend=backend)
    def generates(x):
        yield x + 1

    for _ in range(2):
        assert torch.equal(*generates(X), X + 1)
        framejit.reset()
    assert backend.graphs == []


def test_reset_does_not_tell_again_what_is_skipped(backend):
    @framejit.disable
    def left_alone(x):
        return x + 1

    def generated(x):
        yield x + 1

    kept = [framejit.compile(function, backend=backend) for function in (left_alone, generated)]
    before = dict(framejit.counters["skipped"])
    with events.recording(events.FrameSkipped) as seen:
        framejit.reset()
    assert not seen and dict(framejit.counters["skipped"]) == before
    assert torch.equal(kept[0](torch.ones(2)), torch.full((2,), 2.0))
    assert not backend.graphs


def test_reset_forgets_entries(backend):
    compiled = framejit.compile(affine, backend=backend)
    compiled(X), compiled(X)
    assert len(backend.graphs) == 1
    framejit.reset()
    compiled(X), compiled(X)
    assert len(backend.graphs) == 2


def _yields(x):
    yield x + 1


async def _waits(x):
    return x + 1


@pytest.mark.parametrize("function", [_yields, _waits])
def test_a_generator_is_no_whole_graph(function):
    with pytest.raises(framejit.exc.Unsupported, match=f"(?s)FJ0301.*in {function.__name__}"):
        framejit.compile(function, backend="eager", fullgraph=True)
    made = framejit.compile(function, backend="eager")(X)
    assert type(made) in (types.GeneratorType, types.CoroutineType)
    made.close()


def test_methods_that_classes_make_class_methods_of() -> None:
    class Base:
        @framejit.compile(backend="eager")
        def __init_subclass__(cls, by=2):
            cls.scale = torch.ones(1) * by

        @framejit.compile(backend="eager")
        def __class_getitem__(cls, item):
            return cls, torch.ones(1) * item

        @framejit.compile(backend="eager")
        def __new__(cls, x):
            made = object.__new__(cls)
            made.x = x + 1
            return made

    class Derived(Base, by=3):
        pass

    assert Derived.scale == 3 and "scale" not in Base.__dict__
    assert Derived[4] == (Derived, torch.tensor([4.0])) and Base[5] == (Base, torch.tensor([5.0]))
    assert type(Derived(1)) is Derived and Derived(torch.ones(1)).x == 2


def annotated(x: int, y: "torch.Tensor" = None) -> str:
    return str(x)


def test_annotations_are_those_of_the_function():
    compiled = framejit.compile(annotated, backend="eager")
    assert compiled.__annotations__ == annotated.__annotations__
    assert typing.get_type_hints(compiled) == typing.get_type_hints(annotated)
    assert inspect.signature(compiled) == inspect.signature(annotated)
    assert functools.wraps(compiled)(lambda: 0).__annotations__ == annotated.__annotations__
    assert framejit.compile(lambda x: x, backend="eager").__annotations__ == {}
