"""Names, rollback, dead code and the finished module."""

import copy
import operator
import pickle
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import make_fx

from framejit.graph import GraphBuilder, LazyGraphModule
from framejit.graph.lazy import lazy_graph_modules
from framejit.graph.leader import Leader
from framejit.graph.names import placeholder_name
from framejit.graph.node_meta import NodeMeta


class Told(Leader):
    """A leader that says where the program is."""

    def __init__(self, trace):
        self.trace = trace

    def stack_trace(self):
        return self.trace


def readme_graph():
    builder = GraphBuilder()
    builder.begin(Told("line 1"))
    a, _ = builder.add_input("L['a']", torch.randn(10))
    x, _ = builder.call_function(torch.abs, (a,), {})
    x, _ = builder.call_function(operator.add, (x, 1), {})
    x, _ = builder.call_function(operator.truediv, (a, x), {})
    b, _ = builder.add_input("L['b']", torch.randn(10))
    s, _ = builder.call_method("sum", (b,), {})
    s, _ = builder.call_function(operator.lt, (s, 0), {})
    return builder, [x, s]


def finished_readme_graph():
    builder, outputs = readme_graph()
    return builder.finish(outputs)


def names(gm):
    return [node.name for node in gm.graph.nodes]


def test_names_of_the_readme_example():
    gm, inputs = finished_readme_graph()
    assert names(gm) == ["a", "b", "abs_1", "add", "truediv", "sum_1", "lt", "output"]
    assert len(inputs) == 2 and gm.meta == {} and type(gm).__name__ == "GraphModule"
    quotient, less = gm(*inputs)
    assert (
        torch.equal(quotient, inputs[0] / (torch.abs(inputs[0]) + 1)) and less.dtype == torch.bool
    )


@pytest.mark.parametrize(
    "source, name",
    [
        ("a", "a"),
        ("L['a']", "a"),
        ("L['self'].encoder.layer[0].weight", "l_self_encoder_layer_0_weight"),
        ("G['scale']", "g_scale"),
        ("G[my.module].scale", "g_my_module_scale"),
        ("L['d']['key with spaces']", "l_d_key_with_spaces"),
        ("add", "l_add"),
        ("add_1", "l_add_1"),
        ("sum", "l_sum"),
        ("lambda", "l_lambda"),
        ("type(x).y", "type_x_y"),
        ("0", "l_0"),
        ("", "l_input"),
    ],
)
def test_placeholder_names(source, name):
    assert placeholder_name(source) == name


def test_placeholders_leave_operation_names_alone():
    builder = GraphBuilder()
    add, _ = builder.add_input("add", torch.ones(2))
    mul, _ = builder.add_input("mul_1", torch.ones(2))
    same, _ = builder.add_input("L['add']", torch.ones(3))
    x, _ = builder.call_function(operator.add, (add, 1), {})
    for expected in ("mul", "mul_1"):
        x, _ = builder.call_function(operator.mul, (x, mul), {})
        assert x.name == expected
    assert [one.node.name for one in builder.placeholders] == ["l_add", "l_mul_1", "l_add_1"]


def test_naming_does_not_import_modules_of_torch():
    code = (
        "import sys, torch\n"
        "from framejit.graph.names import placeholder_name as p\n"
        "p('x'); before = set(sys.modules)\n"
        "p('onnx'), p('_inductor'), p('export')\n"
        "assert set(sys.modules) == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_is_light():
    code = (
        "import sys, torch, framejit\n"
        "before = set(sys.modules)\n"
        "import framejit.graph, framejit.backends\n"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
        "assert new <= {'framejit', *sys.stdlib_module_names}, new\n"
        "heavy = ('torch._dynamo', 'torch._inductor', 'sympy', 'functorch.compile')\n"
        "assert not [name for name in heavy if name in sys.modules]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_meta_is_made_when_it_is_read():
    gm, _ = finished_readme_graph()
    node = gm.graph.find_nodes(op="call_function", target=torch.abs)[0]
    assert isinstance(node.meta, NodeMeta) and "example_value" in node.meta
    assert not dict.__contains__(node.meta, "example_value")
    shared = copy.copy(node.meta)
    value = node.meta["example_value"]
    assert isinstance(value, FakeTensor) and value.shape == (10,)
    assert node.meta.get("example_value") is value and shared["example_value"] is value
    assert dict(shared) == {"stack_trace": "line 1", "example_value": value}
    assert node.stack_trace == "line 1" and len(node.meta) == 2
    assert {**node.meta} == dict(node.meta.items()) and list(node.meta) == list(node.meta.keys())
    modes = {n.meta["example_value"].fake_mode for n in gm.graph.nodes if n.op != "output"}
    assert len(modes) == 1


def test_meta_behaves_like_a_dict():
    made = []
    meta = NodeMeta({"late": lambda: made.append(1) or 5}, {"now": 1})
    assert len(meta) == 2 and meta and "late" in meta and not made
    assert meta.setdefault("late", 7) == 5 and made == [1]
    meta = NodeMeta({"late": lambda: 5, "other": lambda: 6})
    meta["late"] = 1
    assert meta["late"] == 1 and meta.pop("other") == 6 and meta.get("missing", 3) == 3
    meta.update(other=2, more=3)
    del meta["more"]
    assert meta == {"late": 1, "other": 2} and meta.copy() == meta
    with pytest.raises(KeyError):
        meta["missing"]
    with pytest.raises(KeyError):
        del meta["missing"]
    late = NodeMeta({"late": lambda: 5})
    del late["late"]
    assert not late and repr(late) == "{}"
    assert NodeMeta({"late": lambda: 5}) | {"x": 1} == {"late": 5, "x": 1}
    plain = {}
    plain.update(NodeMeta({"late": lambda: 5}))
    assert plain == {"late": 5} == pickle.loads(pickle.dumps(NodeMeta({"late": lambda: 5})))


def test_stack_traces_may_be_made_late():
    builder = GraphBuilder()
    calls = []
    builder.begin(Told(lambda: calls.append(1) or "late"))
    x, _ = builder.add_input("x", torch.ones(2))
    y, _ = builder.call_function(torch.abs, (x,), {})
    gm, inputs = builder.finish([y])
    gm(*inputs)
    assert not calls
    assert [n.stack_trace for n in gm.graph.find_nodes(op="call_function", target=torch.abs)] == [
        "late"
    ]


def test_example_values_in_any_state():
    builder = GraphBuilder()
    with torch.no_grad():
        w, _ = builder.add_input("w", torch.nn.Parameter(torch.randn(3, 4)))
        v, _ = builder.call_method("abs", (w,), {})
    x, _ = builder.call_function(torch.mul, (w, 2), {})
    y, _ = builder.call_method("view", (x, 12), {})
    gm, _ = builder.finish([v, x, y])
    with torch.inference_mode(), torch.autocast("cpu"):
        values = [n.meta["example_value"] for n in gm.graph.nodes if n.op != "output"]
    assert [v.requires_grad for v in values] == [True, False, True, True]
    assert [v.is_leaf for v in values] == [True, True, False, False]
    assert not any(v.is_inference() for v in values)
    assert isinstance(values[0], torch.nn.Parameter)


def test_results_that_nobody_needs_and_unused_inputs():
    """An operation whose result is not needed stays, since it may raise; an unused input goes."""
    builder = GraphBuilder()
    a, _ = builder.add_input("a", torch.ones(2))
    builder.add_input("b", torch.ones(3))
    c, _ = builder.add_input("c", torch.ones(4))
    builder.call_function(torch.exp, (a,), {})
    builder.call_effect(torch._C._set_grad_enabled, (False,), {})
    y, _ = builder.call_function(torch.abs, (a,), {})
    builder.call_effect(torch._C._set_grad_enabled, (True,), {})
    builder.call_method("add_", (c, 1), {})
    assert torch.is_grad_enabled() and builder.op_count == 5
    gm, inputs = builder.finish([y])
    assert builder.used_inputs == [0, 2] and [len(i) for i in inputs] == [2, 4]
    assert [n.target for n in gm.graph.nodes if n.op.startswith("call")] == [
        torch.exp, torch._C._set_grad_enabled, torch.abs, torch._C._set_grad_enabled, "add_",
    ]  # fmt: skip
    gm.graph.lint()
    gm(*inputs)
    assert inputs[1].tolist() == [2, 2, 2, 2]


def test_what_is_known_of_each_operation():
    builder = GraphBuilder()
    x, _ = builder.add_input("x", torch.ones(4, 4, requires_grad=True))
    y, _ = builder.add_input("y", torch.ones(4, 4))
    view, _ = builder.call_method("t", (y,), {})
    builder.call_method("add_", (view, x), {})
    builder.call_function(torch.rand, (2,), {})
    builder.call_effect(torch._C._set_grad_enabled, (False,), {})
    read, write, draw, state = builder.recorded
    assert read.called and not read.effect and not read.writes
    assert write.effect and write.content and write.strided and write.differentiable
    assert write.written == read.memory == builder.operations[y].memory
    assert draw.random and draw.effect and not draw.differentiable
    assert state.sets_state and state.effect and not state.called
    assert builder.mutated_inputs == [1] and builder.is_written(view)
    assert not builder.is_written(x) and builder.first_effect() is write.node


def test_an_unused_item_of_a_tuple():
    builder = GraphBuilder()
    x, _ = builder.add_input("x", torch.randn(4, 4))
    result, example = builder.call_method("max", (x, 0), {})
    values, _ = builder.unpack(result, example, 0)
    builder.unpack(result, example, 1)
    gm, inputs = builder.finish([values])
    assert names(gm) == ["x", "max_1", "getitem", "output"]
    assert torch.equal(gm(*inputs)[0], inputs[0].max(0).values)


def test_nested_arguments():
    builder = GraphBuilder()
    x, _ = builder.add_input("x", torch.randn(4))
    constant, _ = builder.add_input("constant", torch.arange(4.0))
    other, _ = builder.add_input("other", torch.arange(3))
    stacked, _ = builder.call_function(torch.stack, ([x, constant],), {"dim": 0})
    i, _ = builder.call_function(operator.getitem, (stacked, (slice(None), other)), {})
    y, example = builder.call_method(
        "to", (i,), {"dtype": torch.float64, "memory_format": torch.contiguous_format}
    )
    gm, inputs = builder.finish([y])
    assert builder.op_count == 3 and example.meta.dtype is torch.float64
    x, constant, other = inputs
    assert torch.equal(gm(*inputs)[0], torch.stack([x, constant])[:, other].double())


# -- the lazy module


def chain(length):
    graph = torch.fx.Graph()
    node = graph.placeholder("x")
    for _ in range(length):
        node = graph.call_function(torch.neg, (node,))
    graph.output(node)
    return LazyGraphModule(torch.nn.Module(), graph)


def test_code_is_generated_once_and_only_when_needed():
    LazyGraphModule.real_recompiles = 0
    gm = chain(3)
    gm.recompile()
    copied = copy.deepcopy(gm)
    assert LazyGraphModule.real_recompiles == 0
    x = torch.ones(2)
    assert gm(x).tolist() == [-1, -1] and gm.forward(x).tolist() == [-1, -1]
    assert "neg" in gm.code and "neg" in str(gm)
    assert LazyGraphModule.real_recompiles == 1
    assert copied(x).tolist() == [-1, -1] and LazyGraphModule.real_recompiles == 2


READS = [
    "call", "forward", "code", "print", "pickle", "deepcopy", "script", "trace", "retrace", "nested"
]  # fmt: skip


@pytest.mark.parametrize("first", ["run", "never run"])
@pytest.mark.parametrize("read", READS)
def test_code_is_never_stale(read, first):
    gm = chain(1)
    x = torch.ones(2)
    if first == "run":
        assert gm(x).tolist() == [-1, -1]
    for node in gm.graph.nodes:
        if node.op == "call_function":
            node.target = torch.exp
    gm.recompile()
    if read == "call":
        assert gm(x)[0] > 2
    elif read == "forward":
        assert gm.forward(x)[0] > 2
        assert type(gm).forward(gm, x)[0] > 2
    elif read == "code":
        assert "torch.exp" in gm.code and "torch.neg" not in gm.code
    elif read == "print":
        assert "exp" in str(gm) and "exp" in gm.print_readable(print_output=False)
    elif read == "pickle":
        loaded = pickle.loads(pickle.dumps(gm))
        assert loaded(x)[0] > 2 and "recompile" not in vars(loaded)
    elif read == "deepcopy":
        assert copy.deepcopy(gm)(x)[0] > 2
    elif read == "script":
        scripted = torch.jit.script(gm)
        assert scripted(x)[0] > 2 and "exp" in str(scripted.graph)
    elif read == "trace":
        assert torch.jit.trace(gm, x)(x)[0] > 2
    elif read == "retrace":
        traced = torch.fx.symbolic_trace(gm)
        assert "exp" in traced.code and "neg" not in traced.code
        assert traced(x)[0] > 2
    else:  # called by another module whose code is out of date, too
        outer = torch.fx.Graph()
        outer.output(outer.call_module("inner", (outer.placeholder("x"),)))
        assert LazyGraphModule({"inner": gm}, outer)(x)[0] > 2


def test_modules_of_fx_are_lazy_in_a_block():
    def f(x):
        return torch.neg(x) + 1

    LazyGraphModule.real_recompiles = 0
    with lazy_graph_modules():
        with lazy_graph_modules():
            traced = torch.fx.symbolic_trace(f)
        direct = torch.fx.GraphModule(torch.nn.Module(), traced.graph)
        made = make_fx(f)(torch.ones(2))
        for gm in (traced, direct, made):
            for _ in range(3):
                gm.graph.eliminate_dead_code()
                gm.recompile()
        assert LazyGraphModule.real_recompiles == 0
    assert type(torch.fx.symbolic_trace(f)).__mro__[1] is torch.fx.GraphModule
    plain = torch.fx.GraphModule(torch.nn.Module(), traced.graph)
    assert not isinstance(plain, LazyGraphModule)
    for gm in (traced, direct, made):
        assert isinstance(gm, LazyGraphModule) and gm(torch.ones(2)).tolist() == [0, 0]
    assert LazyGraphModule.real_recompiles == 3


def test_an_error_ends_the_block():
    with pytest.raises(ValueError):
        with lazy_graph_modules():
            raise ValueError
    assert not isinstance(torch.fx.symbolic_trace(lambda x: x + 1), LazyGraphModule)


def test_two_modules_do_not_share_code():
    one, two = chain(1), chain(2)
    x = torch.ones(1)
    assert one(x).item() == -1 and two(x).item() == 1
    two.recompile()
    assert one(x).item() == -1


def test_class_level_forward_before_compilation():
    gm = chain(1)
    assert type(gm).forward(gm, torch.ones(1)).item() == -1


def test_to_folder_and_copy(tmp_path):
    gm = chain(1)
    gm.to_folder(tmp_path / "out")
    assert "neg" in (tmp_path / "out" / "module.py").read_text()
    assert copy.copy(gm)(torch.ones(1)).item() == -1


def test_print_tabular_without_tabulate(capsys, monkeypatch):
    gm, _ = finished_readme_graph()
    monkeypatch.setitem(sys.modules, "tabulate", None)
    gm.graph.print_tabular()
    copy.deepcopy(gm).graph.print_tabular()
    printed = capsys.readouterr().out
    assert printed.count("truediv") >= 2 and printed.splitlines()[0].split() == [
        "opcode", "name", "target", "args", "kwargs",
    ]  # fmt: skip


def test_graphs_are_deterministic():
    first, second = (str(finished_readme_graph()[0].code) for _ in range(2))
    assert first == second


def test_op_errors_leave_the_graph_usable():
    builder, outputs = readme_graph()
    with pytest.raises(Exception, match="raised"):
        builder.call_function(F.linear, (*(one.node for one in builder.placeholders), 3), {})
    gm, inputs = builder.finish(outputs)
    gm(*inputs)


def shifted(tensor):
    return tensor + 1


@pytest.mark.parametrize(
    ("name", "written"),
    [("quotient", "quotient"), ("shifted", "shifted"), ("torch", "torch_1"), ("len", "len_1")],
)
def test_nodes_keep_their_names_in_code(name, written):
    """Unless it is one that the code needs. The name of a function that the graph calls is free:
    the function gets another one."""
    gm, inputs = finished_readme_graph()
    graph = gm.graph
    node = next(node for node in graph.nodes if node.name == "truediv")
    with graph.inserting_after(node):
        called = graph.call_function(shifted, (node,))
    node.replace_all_uses_with(called, delete_user_cb=lambda user: user is not called)
    assert graph.python_code("self").src == torch.fx.Graph.python_code(graph, "self").src
    expected = gm(*inputs)
    node.name = name
    gm.recompile()
    assert all(map(torch.equal, gm(*inputs), expected))
    assert all(map(torch.equal, gm(*inputs), torch.fx.Interpreter(gm).run(*inputs)))
    assert f"    {written} = a / add" in graph.python_code("self").src


def test_two_nodes_of_one_name_are_two_values():
    gm, inputs = finished_readme_graph()
    expected = gm(*inputs)
    nodes = {node.name: node for node in gm.graph.nodes}
    nodes["truediv"].name = nodes["add"].name
    gm.recompile()
    assert all(map(torch.equal, gm(*inputs), expected))
