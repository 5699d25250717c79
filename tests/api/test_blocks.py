"""`optimize`, `run`, `disable`, `skip`: as blocks and as decorators."""

import random
import threading
import time

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend
from framejit import native


def toy_example(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


NAMES = [["abs_1", "add", "truediv", "sum_1", "lt"], ["mul", "mul_1"], ["mul"]]


def operations(graph):
    return [n.name for n in graph.graph.nodes if n.op.startswith("call")]


def inputs(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(10, generator=generator), torch.randn(10, generator=generator)


def as_decorator(backend):
    return framejit.optimize(backend)(toy_example)


def as_call(backend):
    return framejit.compile(toy_example, backend=backend)


def in_one_block(backend):
    def call(a, b):
        with framejit.optimize(backend):
            return toy_example(a, b)

    return call


@pytest.fixture
def backend():
    before = native.hook_state()  # torch's, if it was left there
    yield CountingBackend()
    framejit.reset()
    assert native.current_context() is None
    assert native.hook_state() == before != "ours"


@pytest.mark.parametrize("form", [as_decorator, as_call, in_one_block])
def test_the_readme_example_gives_three_graphs(form, backend):
    function = form(backend)
    for seed in range(100):
        a, b = inputs(seed)
        assert torch.equal(function(a, b), toy_example(a, b))
    graphs = sorted(map(operations, backend.graphs), key=len, reverse=True)
    assert graphs == NAMES
    assert len(backend.graphs) == 3
    first = backend.graphs[0].graph
    (output,) = first.find_nodes(op="output")
    assert [n.name for n in output.args[0]] == ["truediv", "lt"]
    assert [n.name for n in first.find_nodes(op="placeholder")] == ["a", "b"]


def helper(x):
    return x.sin() + 1


def caller(x):
    y = helper(x)
    print("", end="")
    return helper(y) * 2


def test_a_block_captures_nested_calls(backend):
    x = torch.ones(3)
    expected = caller(x)
    with framejit.optimize(backend):
        assert torch.equal(caller(x), expected)
        assert torch.equal(helper(x), x.sin() + 1)
    assert len(backend.graphs) == 3
    caller(x)
    assert len(backend.graphs) == 3


def test_code_of_the_block_itself_runs_as_it_is(backend):
    with framejit.optimize(backend):
        x = torch.ones(3).sin()
    assert backend.graphs == [] and x.shape == (3,)


def test_blocks_nest_and_end_on_exceptions(backend):
    other = CountingBackend()
    x = torch.ones(3)
    with framejit.optimize(backend):
        outer = native.current_context()
        with pytest.raises(ZeroDivisionError), framejit.optimize(other):
            helper(x)
            raise ZeroDivisionError
        assert native.current_context() is outer
        helper(x)
    assert (len(backend.graphs), len(other.graphs)) == (1, 1)


def test_one_optimize_object_can_be_entered_again(backend):
    region = framejit.optimize(backend)
    x = torch.ones(3)
    with region, region:
        helper(x)
    with region:
        helper(x)
    assert native.current_context() is None
    assert len(backend.graphs) == 1


def test_a_block_is_the_threads_own(backend):
    seen = []
    with framejit.optimize(backend):
        thread = threading.Thread(target=lambda: seen.append(native.current_context()))
        thread.start()
        thread.join()
    assert seen == [None]


def test_optimize_decorates_modules_and_methods(backend):
    net = nn.Linear(3, 2)
    x = torch.randn(4, 3)
    assert torch.equal(framejit.optimize(backend)(net)(x), net(x))

    class Thing:
        @framejit.optimize(backend)
        def scale(self, x):
            return x * 3

    assert torch.equal(Thing().scale(x), x * 3)
    assert len(backend.graphs) == 2


def test_nopython_is_fullgraph(backend):
    @framejit.optimize(backend, nopython=True)
    def f(x):
        y = x + 1
        print(y.sum())
        return y

    with pytest.raises(framejit.exc.Unsupported):
        f(torch.ones(2))
    with framejit.optimize(backend, nopython=True):
        with pytest.raises(framejit.exc.Unsupported):
            caller(torch.ones(2))


def test_disabled_optimize_does_nothing(backend):
    with framejit.optimize(backend, disable=True):
        helper(torch.ones(2))
    assert framejit.optimize(backend, disable=True)(helper) is helper
    assert backend.graphs == []


# -- run -------------------------------------------------------------------------------------------


def test_run_uses_what_is_there_and_compiles_nothing(backend):
    compiled = framejit.compile(helper, backend=backend)
    compiled(torch.ones(3))
    with framejit.run():
        assert torch.equal(compiled(torch.ones(3)), helper(torch.ones(3)))
        assert torch.equal(compiled(torch.ones(4)), helper(torch.ones(4)))
    assert len(backend.graphs) == 1
    compiled(torch.ones(4))
    assert len(backend.graphs) == 2


def test_run_uses_what_a_block_compiled(backend):
    calls = []

    def counting(gm, inputs):
        def call(*args):
            calls.append(1)
            return gm(*args)

        return call

    with framejit.optimize(counting):
        helper(torch.ones(3))
    with framejit.run():
        helper(torch.ones(3))
        helper(torch.ones(4))
    assert len(calls) == 2
    helper(torch.ones(3))
    assert len(calls) == 2


def test_run_as_decorator(backend):
    compiled = framejit.compile(helper, backend=backend)

    @framejit.run
    def serve(x):
        """Serve."""
        return compiled(x)

    assert serve.__doc__ == "Serve."
    assert torch.equal(serve(torch.ones(3)), helper(torch.ones(3)))
    assert backend.graphs == []
    assert torch.equal(framejit.run(compiled)(torch.ones(3)), helper(torch.ones(3)))
    compiled(torch.ones(3))
    assert len(backend.graphs) == 1


# -- disable and skip ------------------------------------------------------------------------------


@framejit.disable
def not_captured(x):
    """Not captured."""
    return helper(x) + 1


def uses_disabled(x):
    y = x * 2
    y = not_captured(y)
    return y.cos()


def test_disable_breaks_and_runs_everything_below_as_python(backend):
    x = torch.ones(3)
    compiled = framejit.compile(uses_disabled, backend=backend)
    assert torch.equal(compiled(x), uses_disabled(x))
    assert [operations(g) for g in backend.graphs] == [["mul"], ["cos"]]
    assert not_captured.__doc__ == "Not captured."
    (reason,) = framejit.counters["graph_break"]
    assert "framejit.disable" in reason


def test_disable_inside_a_block(backend):
    with framejit.optimize(backend):
        not_captured(torch.ones(3))
    assert backend.graphs == []


def test_disable_as_block(backend):
    compiled = framejit.compile(helper, backend=backend)
    with framejit.optimize(backend), framejit.disable():
        helper(torch.ones(3))
        compiled(torch.ones(3))
    assert backend.graphs == []
    compiled(torch.ones(3))
    assert len(backend.graphs) == 1


def test_blocks_inside_of_captured_code_end_with_it(backend):
    """What runs after the call is not looked at."""

    def program(x, block):
        y = x + 1
        with block:
            y = y * 2
        return y - 1

    compiled = framejit.compile(program, backend=backend)
    for block in (framejit.disable(), framejit.run(), framejit.optimize(backend)):
        assert torch.equal(compiled(torch.ones(3), block), torch.full((3,), 3.0))
        backend.graphs.clear()
        helper(torch.ones(3))
        assert backend.graphs == []
    for wrapped in (framejit.disable(helper), framejit.run(helper)):
        framejit.compile(wrapped, backend=backend)(torch.ones(3))
        helper(torch.ones(3))
        assert backend.graphs == []


def test_disable_with_parentheses_and_on_methods(backend):
    class Thing:
        @framejit.disable()
        def low(self, x):
            return x.sin()

        def high(self, x):
            return self.low(x + 1) * 2

    thing = Thing()
    compiled = framejit.compile(thing.high, backend=backend)
    assert torch.equal(compiled(torch.ones(3)), thing.high(torch.ones(3)))
    assert len(backend.graphs) == 2
    assert framejit.disable(thing.low).__self__ is thing


def test_disable_on_modules(backend):
    torch.manual_seed(0)
    first, second = nn.Linear(3, 3), nn.Linear(3, 3)
    model = nn.Sequential(first, framejit.disable(second))
    x = torch.randn(2, 3)
    compiled = framejit.compile(model, backend=backend)
    assert torch.equal(compiled(x), second(first(x)))
    assert len(backend.graphs) == 1
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_disable_on_a_module_class(backend):
    @framejit.disable
    class Low(nn.Linear):
        pass

    class High(nn.Module):
        def __init__(self):
            super().__init__()
            self.low = Low(3, 3)

        def forward(self, x):
            return self.low(x + 1) * 2

    high = High()
    x = torch.randn(2, 3)
    assert torch.equal(framejit.compile(high, backend=backend)(x), high(x))
    assert sum(map(operations, backend.graphs), []) == ["add", "mul"]


def test_disable_passes_exceptions_and_restores(backend):
    @framejit.disable
    def fails(x):
        raise KeyError("mine")

    def f(x):
        try:
            return fails(x + 1)
        except KeyError:
            return x - 1

    compiled = framejit.compile(f, backend=backend)
    assert torch.equal(compiled(torch.ones(3)), torch.zeros(3))
    assert torch.equal(compiled(torch.ones(3)), torch.zeros(3))


def test_skip_leaves_the_frame_but_captures_below(backend):
    @framejit.skip
    def middle(x):
        x = x + 100
        return helper(x)

    def top(x):
        return middle(x * 2).cos()

    compiled = framejit.compile(top, backend=backend)
    x = torch.ones(3)
    assert torch.equal(compiled(x), top(x))
    assert [operations(g) for g in backend.graphs] == [["mul"], ["sin", "add"], ["cos"]]


def test_disable_not_recursive_is_skip(backend):
    def middle(x):
        return helper(x + 100)

    marked = framejit.disable(middle, recursive=False)
    with framejit.optimize(backend):
        marked(torch.ones(3))
    assert [operations(g) for g in backend.graphs] == [["sin", "add"]]


# -- directives ------------------------------------------------------------------------------------


def test_graph_break(backend):
    def f(x):
        x = x + 1
        framejit.graph_break()
        return x * 2

    assert torch.equal(framejit.compile(f, backend=backend)(torch.ones(2)), f(torch.ones(2)))
    assert [operations(g) for g in backend.graphs] == [["add"], ["mul"]]
    assert framejit.graph_break() is None


def test_allow_in_graph(backend):
    @framejit.allow_in_graph
    def opaque(x):
        time.perf_counter()  # nobody looks inside
        return x + 1

    def f(x):
        return opaque(x) * 2

    compiled = framejit.compile(f, backend=backend, fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), f(torch.ones(2)))
    assert [operations(g) for g in backend.graphs] == [["opaque", "mul"]]


def test_disallow_in_graph(backend):
    functions = [torch.special.expit]
    framejit.disallow_in_graph(functions)

    def f(x):
        return torch.special.expit(x + 1) * 2

    assert torch.equal(framejit.compile(f, backend=backend)(torch.ones(2)), f(torch.ones(2)))
    assert [operations(g) for g in backend.graphs] == [["add"], ["mul"]]
    framejit.directives.unmark(torch.special.expit)


def test_assume_constant_result(backend):
    calls = []

    @framejit.assume_constant_result
    def setting():
        calls.append(1)
        return random.Random(0).randint(5, 5)

    def f(x):
        return x * setting()

    compiled = framejit.compile(f, backend=backend, fullgraph=True)
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 5.0))
    compiled(torch.ones(2))
    assert len(calls) == 1 and len(backend.graphs) == 1


def test_is_compiling(backend):
    def f(x):
        return x + 1 if framejit.is_compiling() else x - 1

    compiled = framejit.compile(f, backend=backend, fullgraph=True)
    assert torch.equal(compiled(torch.zeros(2)), torch.ones(2))
    assert torch.equal(f(torch.zeros(2)), -torch.ones(2))


def test_marks_of_torch_compiler_are_honoured(backend):
    @torch.compiler.disable
    def low(x):
        return x.sin()

    def f(x):
        return low(x + 1) * 2

    compiled = framejit.compile(f, backend=backend)
    assert torch.equal(compiled(torch.ones(2)), f(torch.ones(2)))
    assert sum(map(operations, backend.graphs), []) == ["add", "mul"]


def test_imports_inside_are_not_captured(tmp_path, monkeypatch):
    (tmp_path / "fresh_for_framejit.py").write_text(
        "import torch\nfrom torch import fx\n@fx.wrap\ndef h(x): return x + 1\n"
        "def make(n): return torch.ones(n)\nmade = [make(i) for i in range(1, 9)]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))

    def f(x):
        y = x * 2
        import fresh_for_framejit

        return fresh_for_framejit.h(y) + 1

    backend = CountingBackend()
    assert torch.equal(framejit.compile(f, backend=backend)(torch.ones(1)), torch.full((1,), 4.0))
    assert len(backend.graphs) == 2 and backend.ops == 3
