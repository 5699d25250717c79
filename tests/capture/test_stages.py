"""Each stage of a capture alone: what is before it is made here, what is after it does not run."""

import ast
import functools
import operator

import torch

from framejit.capture.generating import generate
from framejit.capture.graphs import CompiledGraph, Graph, compile_graph, finish_graph
from framejit.capture.planning import plan_guards
from framejit.capture.target import Target
from framejit.capture.tracing import Call, Driver, trace
from framejit.graph.builder import GraphBuilder
from framejit.interpreter.outcomes import Again, Broken, Returned
from framejit.interpreter.side_run import compute
from framejit.native import GuardTree
from framejit.values.core.space import Task
from framejit.values.object_space import ObjectSpace

SCALE = 3


def never(*args):
    raise AssertionError("a stage runs that was not asked for")


def traced(function, *slots, break_at=None, may_expect=False, met=None):
    """The first stage; the breaks that it reports go into ``met``."""
    task = Task(function.__globals__, may_expect, compute=compute)
    space = ObjectSpace(GraphBuilder(), task=task)
    driver = Driver(
        compile_graph=never,
        make_break=lambda frame, innermost: never,
        answer=never,
        check_break=never if met is None else lambda broken, strict: met.append(broken),
        deoptimise=never,
        may_expect=may_expect,
        whole=False,
        may_wait=False,
    )
    target = Target(function.__code__, function.__globals__, None)
    return trace(Call(target, slots), driver, break_at or {}, space)


def operations(nodes):
    return [node.name for node in nodes if node.op.startswith("call")]


# -- trace -----------------------------------------------------------------------------------------


def doubled(x, log):
    log.append("doubled")
    return (x * 2).relu()


def test_a_call_is_traced_and_nothing_of_it_is_done():
    log = []
    found = traced(doubled, torch.ones(2), log)
    assert isinstance(found.outcome, Returned)
    assert operations(found.space.builder.graph.nodes) == ["mul", "relu"]
    assert operations(found.draft.output_nodes()) == ["relu"]
    assert log == []


def test_a_trace_ends_at_a_graph_break():
    def speaks(x):
        y = x + 1
        print("hello")
        return y * 2

    met = []
    found = traced(speaks, torch.ones(2), met=met)
    assert isinstance(found.outcome, Broken) and met == [found.outcome]
    assert found.outcome.identifier == "FJ0130"
    assert operations(found.space.builder.graph.nodes) == ["add"]


def test_a_step_that_must_not_be_captured_is_an_outcome():
    def fails(x):
        try:
            raise ValueError("no")
        finally:
            x = x + 1

    again = traced(fails, torch.ones(2))
    assert isinstance(again, Again) and again.cause.raises
    met = []
    found = traced(fails, torch.ones(2), break_at={again.step: again.cause}, met=met)
    assert isinstance(found.outcome, Broken) and met == [found.outcome]
    assert operations(found.space.builder.graph.nodes) == []


def test_a_value_that_cannot_be_built_is_an_outcome():
    def caches(x):
        cached = functools.lru_cache(lambda n: n + 1)
        cached(1)
        return cached, x + 1

    again = traced(caches, torch.ones(2))
    assert isinstance(again, Again) and again.step > 0 and again.cause.identifier == "FJ0161"


def test_a_graph_with_something_taken_for_granted_ends_before_it_writes():
    def checks(x, y):
        if x.sum() < 0:
            raise ValueError("negative")
        y.add_(1)
        return x

    found = traced(checks, torch.ones(2), torch.ones(2), may_expect=True, met=[])
    assert isinstance(found.outcome, Broken) and found.space.effects.expected
    assert not found.space.builder.mutated_inputs
    found = traced(checks, torch.ones(2), torch.ones(2), met=[])
    assert isinstance(found.outcome, Broken) and not found.space.effects.expected


def test_nothing_is_taken_for_granted_after_a_write():
    def checks(x, y):
        y.add_(1)
        if x.sum() < 0:
            raise ValueError("negative")
        return x

    found = traced(checks, torch.ones(2), torch.ones(2), may_expect=True, met=[])
    assert isinstance(found.outcome, Broken) and not found.space.effects.expected


# -- finish the graph ------------------------------------------------------------------------------


def test_a_finished_graph_takes_what_it_needs():
    def needs_two(unused, x, y):
        pair = unused, x
        return pair[1].sum() + y

    x, y = torch.ones(2), torch.ones(3)
    graph = finish_graph(traced(needs_two, torch.ones(1), x, y))
    assert operations(graph.module.graph.nodes) == ["sum_1", "add"] and graph.operations == 2
    assert graph.examples[0] is x and graph.examples[1] is y and len(graph.inputs) == 2
    assert torch.equal(graph.module(x, y)[0], x.sum() + y)
    assert graph.watch is None and graph.saved == () and not graph.expects


def test_a_finished_graph_knows_what_it_writes_to():
    def writes(x, y):
        x.add_(1)
        return y * 2

    graph = finish_graph(traced(writes, torch.ones(2), torch.ones(2)))
    assert graph.watch.watched == (0, 1) and graph.watch.written == {0}


def test_where_nothing_is_recorded_there_is_no_graph():
    def counts(n):
        return n + 1

    graph = finish_graph(traced(counts, 1))
    assert graph == Graph()
    assert compile_graph(graph, never) == CompiledGraph()


# -- compile ---------------------------------------------------------------------------------------


def recorded(function):
    graph = torch.fx.Graph()
    graph.output((graph.call_function(function, (graph.placeholder("x"), 1)),))
    return torch.fx.GraphModule({}, graph)


def test_a_graph_is_compiled_whoever_made_it():
    module, x, seen = recorded(operator.add), torch.ones(2), []

    def backend(gm, examples):
        seen.append((gm, examples))
        return lambda x: (x * 100,)

    compiled = compile_graph(Graph(module, [x], operations=1), backend)
    assert seen == [(module, [x])]
    assert compiled.run(x)[0].tolist() == [100, 100]
    assert compiled.call.module is module and not compiled.call.care.unseen


def test_a_graph_of_the_users_code_cannot_run_twice():
    def users(x, y):
        return x + y

    def backend(gm, examples):
        return gm.forward

    graph = Graph(recorded(users), [torch.ones(2)], operations=1)
    assert compile_graph(graph, backend).call.care.unseen
    graph = Graph(recorded(users), [torch.ones(2)], operations=1, expects=True)
    assert compile_graph(graph, backend) == Again()


# -- plan the guards -------------------------------------------------------------------------------


def scaled(x, flags):
    return x * SCALE if flags["on"] else x


def test_guards_of_a_trace():
    found = traced(scaled, torch.ones(2), {"on": True})
    entry = plan_guards(found, finish_graph(found))
    guards = {(guard.name, guard.kind) for guard in entry.plan.guards()}
    assert {("local 'x'", "TENSOR_MATCH"), ("global 'SCALE'", "EQUALS_MATCH")} <= guards
    assert [ast.unparse(argument) for argument in entry.arguments] == ["x"]
    assert entry.captures == []
    tree = GuardTree(entry.plan.nodes)
    assert tree.check((torch.zeros(2), {"on": True})) == ()
    assert tree.check((torch.zeros(2), {"on": False})) is None
    assert tree.check((torch.zeros(3), {"on": True})) is None


def test_guards_load_what_the_graph_needs():
    def weighted(x, module):
        return x * module.weight

    linear = torch.nn.Linear(2, 2)
    found = traced(weighted, torch.ones(2), linear)
    entry = plan_guards(found, finish_graph(found))
    assert len(entry.captures) == 1 and len(entry.arguments) == 2
    (weight,) = GuardTree(entry.plan.nodes).check((torch.zeros(2), linear))
    assert weight is linear.weight


# -- generate --------------------------------------------------------------------------------------


def test_a_function_is_generated_for_any_graph():
    found = traced(doubled, torch.ones(2), [])
    entry = plan_guards(found, finish_graph(found))
    compiled = CompiledGraph(run=lambda x: (x * 100,))
    made = generate(found, compiled, entry, lambda may_raise: never)
    log = []
    assert made.function(torch.ones(2), log).tolist() == [100, 100]
    assert log == ["doubled"]


def test_a_graph_that_raises_leaves_the_call_to_others():
    def raises(x):
        raise RuntimeError("no memory")

    found = traced(doubled, torch.ones(2), [])
    entry = plan_guards(found, finish_graph(found))
    made = generate(found, CompiledGraph(raises), entry, lambda may_raise: lambda *args: args)
    x, log = torch.ones(2), []
    error, *slots = made.function(x, log)
    assert str(error) == "no memory" and slots[0] is x and slots[1] is log
    assert log == []
