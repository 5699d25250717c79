"""Exported programs: one graph that computes what plain Python does, and nothing else happens."""

import os
import subprocess
import sys
import textwrap
import warnings
from collections import namedtuple
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

import framejit
from framejit.exc import ExportError, Unsupported

warnings.filterwarnings("ignore", category=FutureWarning)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.linear = nn.Linear(8, 8)
        self.register_buffer("scale", torch.full((8,), 2.0), persistent=False)
        self.twice = self.linear
        self.calls = 0

    def forward(self, x, *, bias=None):
        y = self.twice(self.linear(self.norm(x))) * self.scale
        return {"y": y, "input": x, "name": "block", "parts": (y.sum(-1), bias)}


class Tensors(Block):
    """What torch.export can save: it has no texts among the results."""

    def forward(self, x):
        return {"y": super().forward(x)["y"]}


def same(got, expected):
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(got, expected)
    elif isinstance(expected, dict):
        assert list(got) == list(expected)
        same(list(got.values()), list(expected.values()))
    elif isinstance(expected, (list, tuple)):
        assert type(got) is type(expected) and len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            same(one, other)
    else:
        assert got == expected


def calls_in(exported):
    return sum(node.op == "call_function" for node in exported.graph.nodes)


def test_a_module_keeps_the_names_of_its_members():
    model = Block().eval()
    x, bias = torch.randn(4, 8), torch.ones(1)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    exported = framejit.export(model, (x,), {"bias": bias})
    same(exported.module()(x, bias=bias), model(x, bias=bias))
    assert exported.state_dict.keys() == model.state_dict().keys()
    assert exported.graph_signature.user_inputs == ("x", "bias")
    assert calls_in(exported) >= 4
    same(dict(model.state_dict()), before)


def test_statistics_are_written_when_the_program_runs_and_not_before():
    model, other = Block(), Block()
    other.load_state_dict(model.state_dict())
    x = torch.randn(4, 8)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    exported = framejit.export(model, (x,))
    same(dict(model.state_dict()), before)
    program = exported.module()
    same(program(x), other(x))
    same(program(x * 2), other(x * 2))
    for name in ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked"):
        torch.testing.assert_close(program.state_dict()[name], other.state_dict()[name])


def test_sizes_that_vary():
    def function(x, others):
        if x.shape[0] > 2:
            x = x * 2
        return torch.cat([x, *others]).reshape(-1, 4).sum(0)

    x, others = torch.randn(5, 4), [torch.randn(3, 4), torch.randn(2, 4)]
    batch = Dim("batch", min=3, max=64)
    exported = framejit.export(
        function, (x, others), dynamic_shapes={"x": {0: batch}, "others": [{0: Dim.AUTO}, None]}
    )
    for size, other in ((5, 3), (17, 9)):
        arguments = torch.randn(size, 4), [torch.randn(other, 4), torch.randn(2, 4)]
        same(exported.module()(*arguments), function(*arguments))
    assert "_dynamo_weak_dynamic_indices" not in x.__dict__


def test_a_branch_on_a_size_is_a_constraint():
    def function(x):
        return x * 2 if x.shape[0] > 4 else x - 1

    with pytest.raises(Exception, match="[Cc]onstraint"):
        framejit.export(
            function, (torch.randn(6, 2),), dynamic_shapes={"x": {0: Dim("n", min=2, max=9)}}
        )
    exported = framejit.export(
        function, (torch.randn(6, 2),), dynamic_shapes={"x": {0: Dim("n", min=5, max=9)}}
    )
    x = torch.randn(8, 2)
    same(exported.module()(x), function(x))


Pair = namedtuple("Pair", "first second")
WEIGHT = torch.randn(3, 3)


def test_arguments_and_results_of_every_kind():
    def function(pair, scale, flag, *more, key):
        total = pair.first @ WEIGHT + scale
        for one in more:
            total = total + one if flag else total - one
        return Pair(total, [pair.second, None, key]), more[0]

    arguments = Pair(torch.randn(2, 3), torch.ones(1)), 2.5, True, torch.ones(3), torch.ones(1)
    exported = framejit.export(function, arguments, {"key": "k"})
    same(exported.module()(*arguments, key="k"), function(*arguments, key="k"))


def test_what_python_hides():
    class Config:
        depth = 3

    def wrapped(function):
        def call(*args, **kwargs):
            return function(*args, **kwargs)

        return call

    @wrapped
    def function(x, n=2):
        table = {i: x + i for i in range(Config.depth)}
        try:
            return sum(table.values()) * table[9]
        except KeyError:
            return sum(v for k, v in sorted(table.items()) if k < n)

    x = torch.randn(4)
    same(framejit.export(function, (x,)).module()(x), function(x))


calls = []
COUNT = 0


def test_a_program_that_does_more_is_refused_with_its_line():
    def appends(x):
        calls.append(1)
        return x + 1

    def counts(x):
        global COUNT
        COUNT += 1
        return x + 1

    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = 0

        def forward(self, x):
            self.seen += 1
            return x + self.seen

    module = Counts()
    for program, what in ((appends, "calls"), (counts, "COUNT"), (module, "self")):
        with pytest.raises(
            ExportError, match=rf"(?s)does more.*{what}.*test_exported_programs\.py:\d+"
        ):
            framejit.export(program, (torch.ones(2),))
    assert calls == [] and COUNT == 0 and module.seen == 0


def test_what_is_put_back_is_no_change():
    class Guarded(nn.Module):
        def __init__(self):
            super().__init__()
            self.busy = False

        def forward(self, x):
            self.busy = True
            try:
                return x.relu()
            finally:
                self.busy = False

    module, x = Guarded(), torch.randn(3)
    same(framejit.export(module, (x,)).module()(x), module(x))


def test_a_set_that_holds_what_it_held_is_no_change():
    class Registering(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("table", torch.arange(3.0), persistent=False)

        def forward(self, x):
            self.register_buffer("table", self.table.to(x.dtype), persistent=False)
            return x + self.table

    class Adding(nn.Module):
        def __init__(self):
            super().__init__()
            self.seen = {"a"}

        def forward(self, x):
            self.seen.add("b")
            return x * len(self.seen)

    module, x = Registering(), torch.randn(3)
    exported = framejit.export(module, (x,))
    same(exported.module()(x), module(x))
    assert exported.state_dict == {} and module._non_persistent_buffers_set == {"table"}
    with pytest.raises(ExportError, match=r"(?s)does more.*seen"):
        framejit.export(Adding(), (x,))


class Box:
    """Tensors that torch.export can tell apart only once it knows the class."""

    def __init__(self, first, second):
        self.first, self.second = first, second


@pytest.fixture
def known_box():
    pytree.register_pytree_node(
        Box, lambda box: ([box.first, box.second], None), lambda parts, _: Box(*parts)
    )
    yield
    pytree._deregister_pytree_node(Box)


def _boxed(x):
    return {"box": [Box(x + 1, x)], "n": 2}


def test_objects_among_results_that_are_registered(known_box):
    x = torch.randn(3)
    exported = framejit.export(_boxed, (x,))
    got, expected = exported.module()(x), _boxed(x)
    assert type(got["box"][0]) is Box
    same(vars(got["box"][0]), vars(expected["box"][0]))
    assert calls_in(exported) == 1 and got["n"] == 2


@pytest.mark.parametrize(
    ("function", "place"),
    [
        (_boxed, r"result\['box'\]\[0\] is of class test_exported_programs\.Box"),
        (lambda x: (x + 1, x.dtype), r"result\[1\] is of class torch\.dtype"),
        (lambda x: [x + 1, {1, 2}], r"result\[1\] is of class builtins\.set"),
        (lambda x: Box(x + 1, x), r"the result is of class .*Box"),
        (lambda x: Pair(x + 1, iter([x])), r"result\.second is of class builtins\.list_iterator"),
    ],
)
def test_what_cannot_be_returned_is_named(function, place):
    with pytest.raises(ExportError, match=place + ".*register_pytree_node"):
        framejit.export(function, (torch.randn(3),))


def test_breaks_name_their_line():
    def function(x):
        print("seen")
        return x + 1

    with pytest.raises(Unsupported, match=r"test_exported_programs\.py"):
        framejit.export(function, (torch.ones(2),))


def test_bad_arguments():
    with pytest.raises(TypeError, match="args must be a tuple"):
        framejit.export(torch.sin, [torch.ones(2)])
    with pytest.raises(ExportError, match="computes nothing"):
        framejit.export(lambda x: 3, (torch.ones(2),))


LOADS = """
import torch
exported = torch.export.load({path!r})
x = torch.arange(32.0).reshape(4, 8)
torch.save(exported.module()(x)["y"], {result!r})
"""
RUNS = """
import torch
program = torch._inductor.aoti_load_package({path!r})
x = torch.arange(32.0).reshape(4, 8)
torch.save(program(x)["y"], {result!r})
"""


def in_another_process(text, tmp_path, path):
    result = os.fspath(tmp_path / "result")
    text = textwrap.dedent(text).format(path=os.fspath(path), result=result)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return torch.load(result)


def test_another_process_loads_it(tmp_path):
    model = Tensors().eval()
    x = torch.arange(32.0).reshape(4, 8)
    torch.export.save(framejit.export(model, (x,)), tmp_path / "program.pt2")
    same(in_another_process(LOADS, tmp_path, tmp_path / "program.pt2"), model(x)["y"])


@pytest.mark.slow
def test_another_process_runs_what_is_compiled_ahead_of_time(tmp_path):
    model = Tensors().eval()
    x = torch.arange(32.0).reshape(4, 8)
    framejit.export(model, (x,), package=tmp_path / "program.pt2")
    same(in_another_process(RUNS, tmp_path, tmp_path / "program.pt2"), model(x)["y"])


CACHE = """
import sys
sys.path.insert(0, {tests!r})
import torchvision_operators, torch, transformers, framejit
from transformers.integrations.executorch import register_dynamic_cache_export_support

torch.manual_seed(0)
config = transformers.LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, vocab_size=50,
)
model, x = transformers.LlamaForCausalLM(config).eval(), torch.arange(6)[None]
with torch.no_grad():
    try:
        framejit.export(model, (x,), {{"use_cache": True}})
    except framejit.exc.ExportError as error:
        assert "past_key_values" in str(error) and "DynamicCache" in str(error), error
    else:
        raise AssertionError
    register_dynamic_cache_export_support()
    exported = framejit.export(model, (x,), {{"use_cache": True}})
    got, expected = exported.module()(x, use_cache=True), model(x, use_cache=True)
torch.testing.assert_close(got.logits, expected.logits)
assert type(got.past_key_values) is type(expected.past_key_values)
for one, other in zip(got.past_key_values.layers, expected.past_key_values.layers, strict=True):
    torch.testing.assert_close((one.keys, one.values), (other.keys, other.values))
assert sum(node.op == "call_function" for node in exported.graph.nodes) > 50
torch.save(got.logits, {result!r})
"""


@pytest.mark.slow
def test_caches_of_models_are_results_once_they_are_registered(tmp_path):
    tests = os.fspath(Path(__file__).parents[1])
    made = in_another_process(CACHE.replace("{tests!r}", repr(tests)), tmp_path, tmp_path)
    assert made.shape == (1, 6, 50)
