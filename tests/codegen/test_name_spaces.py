"""Names that users write and names that framejit makes never meet in a generated function.

Every variable of a generated function is a slot of the program's frames or spelled so that no
source text can spell it, whatever the program calls its variables.
"""

from __future__ import annotations

import itertools
import types

import pytest
import torch

import framejit
from checking import Outcome, check, compare_outcomes
from framejit.codegen.function import Draft

X = torch.tensor([1.0, 3.0])

#: What programs call their variables: names of torch's and Python's operations, of framejit's own
#: helpers, of placeholders and nodes of graphs, and of what steppable files call things.
WORDS = [
    "mean", "add", "add_1", "mul", "sub", "pow_1", "tensor", "sum", "sum_1", "relu", "input",
    "self", "list",
    "l_x_", "l_x", "t", "getitem", "getitem_1", "fj_like", "fj_graph", "fj_inputs", "fj",
    "result_mean", "list_1", "dict", "tuple", "const", "stack_0", "stack", "x_2", "output", "graph",
    "arange", "size", "s0", "number_s0", "_", "__", "function", "object", "unused", "callee",
    "iter", "print",
    "len", "range", "type", "id", "__name__", "torch", "l_mean", "mean_1", "rand", "zip",
]  # fmt: skip

STATISTICS = """
def f({0}, {1}, x):
    {0} = {0} + x.mean()
    {2} = [x.mean(), {1}]
    print({0}.sum())
    {3} = (x - {0}).pow(2).mean()
    {2}.append({3} * {1})
    {1} = lambda: {0} + {3}
    print({2}[0])
    return {0}, {1}(), {2}, {3}, x.sum(), x.relu()
"""
RETURNED = """
def f({0}, {1}, x):
    {2} = x + 1
    {3} = x.mean() * x.sum()
    return {2}, {0}, {1}, {3} - x.relu(), x, [{2}, {0}], {{"{1}": {1}}}
"""
LOOP = """
def f({0}, {1}, x):
    {2} = 0
    for {3}, {1} in enumerate(x.tolist()):
        {2} = {2} + {0}.add({1}).mul({3}).sum()
        print({3}, end="")
    try:
        {3} = [{0} for {0} in range(2)]
        {1} = 1 // ({0}.sum().item() * 0)
    except ZeroDivisionError as {3}_:
        {3} = str({3}_)
    return {0}, {1}, {2}, {3}
"""
NUMBERS = """
def f({0}, {1}, x):
    {2} = len(x) + {1}
    {3} = x.sum().item() + {0}.mean().item()
    return x.reshape({2} - {1}), {0}, {1}, {2}, {3}, torch.zeros({2})
"""


def _program(text, words):
    namespace = {"torch": torch}
    exec(text.format(*words), namespace)
    return namespace["f"]


def _word_groups():
    return [tuple(WORDS[(i + k * 13) % len(WORDS)] for k in range(4)) for i in range(len(WORDS))]


@pytest.mark.parametrize("words", _word_groups(), ids=lambda words: words[0])
@pytest.mark.parametrize("text", [STATISTICS, RETURNED], ids=["statistics", "returned"])
def test_any_word_can_name_a_variable(text, words):
    if text is STATISTICS and "print" in words:
        pytest.skip("the program prints")
    graphs = 3 if text is STATISTICS else 1
    check(_program(text, words), torch.tensor(5.0), torch.tensor(2.0), X, graphs=graphs)


@pytest.mark.parametrize("words", _word_groups()[::7], ids=lambda words: words[0])
@pytest.mark.parametrize("text", [LOOP, NUMBERS], ids=["loop", "numbers"])
def test_any_word_in_loops_and_with_numbers_that_vary(text, words):
    if {"print", "enumerate", "range", "len", "torch"} & set(words):
        pytest.skip("the program uses it")
    check(_program(text, words), X + 1, 4, X, graphs=3)
    compiled = framejit.compile(_program(text, words), backend="eager")
    eager = _program(text, words)
    for n in (2, 3, 5):
        args = torch.ones(n), n, torch.arange(float(n))
        compare_outcomes(Outcome(eager, args, {}), Outcome(compiled, args, {}))


@pytest.fixture
def generated(monkeypatch):
    """The functions that are generated, with the names of their slots."""
    made = []
    original = Draft.function

    def function(self, *args):
        result = original(self, *args)
        made.append((result.function, list(self.out.slot_names)))
        return result

    monkeypatch.setattr(Draft, "function", function)
    return made


def _codes(code):
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _codes(const)


def assert_apart(function, slots):
    """Local names are slots or unspellable; global ones are unspellable."""
    code = function.__code__
    own = [name for name in (*code.co_varnames, *code.co_cellvars) if name not in slots]
    assert not [name for name in own if name.isidentifier()], f"{own} beside {slots}"
    assert len(set(code.co_varnames)) == len(code.co_varnames)
    shared = [name for name in function.__globals__ if name.isidentifier()]
    assert set(shared) <= {"__builtins__", "__name__"}
    # No local of the function hides something of the namespace.
    assert not set(code.co_varnames) & set(function.__globals__)
    assert not [c for c in _codes(code) if c is not code], "names of nested code"


@pytest.mark.parametrize("text", [STATISTICS, RETURNED, LOOP, NUMBERS])
def test_made_names_cannot_be_spelled(text, generated):
    f = framejit.compile(_program(text, ("mean", "add", "tensor", "sum")), backend="eager")
    for n in (2, 3, 5):
        f(torch.ones(n), n, torch.arange(float(n)))
    assert generated
    for function, slots in generated:
        assert_apart(function, slots)


class Box:
    def __init__(self, value):
        self.value = value


def _everything(x, box, table):
    class Local:
        kind = box.value

    cell = 1
    made = [Local(), {"k": (x + 1, [x * 2])}, {1, 2}, lambda: cell, Box(x.mean())]
    table["walk"] = iter(made)
    next(table["walk"])
    box.value = slice(1, len(made)), itertools.count(3), (n for n in made)
    print(end="")
    cell += 1
    table["text"] = f"{x.sum().item()} {made[3]()}"
    return made[1], made[4].value, x, ValueError(x), box.value[0]


def test_made_names_cannot_be_spelled_whatever_is_built(generated):
    f = framejit.compile(_everything, backend="eager")
    for n in (2, 3):
        f(torch.arange(float(n)), Box(n), {})
    assert len(generated) >= 3
    for function, slots in generated:
        assert_apart(function, slots)


@pytest.mark.parametrize("words", [WORDS[i : i + 4] for i in range(0, len(WORDS) - 3, 4)])
def test_steppable_files_keep_the_programs_names_apart(words, tmp_path):
    text = RETURNED if "print" in words else STATISTICS
    with framejit.config.patch(code_folder=str(tmp_path)):
        graphs = 3 if text is STATISTICS else 1
        check(_program(text, words), torch.tensor(5.0), torch.tensor(2.0), X, graphs=graphs)
    assert list(tmp_path.iterdir())


def test_names_of_globals_and_of_inlined_calls():
    def helper(mean, add):
        mul = mean * add
        print(end="")
        return mul.sum() + mean.mean(), add

    def f(mean, sum, relu):
        add, mul = helper(mean.relu(), sum)
        relu = relu + add
        return mean, sum, relu, add, mul

    check(f, X, X * 2, X * 3, graphs=2, ops=6)


def test_a_variable_is_not_overwritten_by_a_result_of_its_name():
    def statistics(x):
        mean = x.mean()
        print(end="")
        var = (x - mean).pow(2).mean()
        return mean, var

    check(statistics, X, graphs=2, ops=4)
    check(lambda x, add: (x + 1, add), X, X * 2, graphs=1, ops=1)
    check(lambda t: (t.t(), t), torch.rand(2, 3), graphs=1, ops=1)


def test_initialisers_write_to_a_parameter_called_tensor():
    def f(weight):
        torch.manual_seed(0)
        return torch.nn.init.trunc_normal_(weight, std=0.5), weight

    check(f, torch.zeros(64), graphs=3, ops=8)
