"""Sums of sizes and ints that vary, among facts: what became a known number is still a summand."""

import random
import subprocess
import sys
import types

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, compare_outcomes

TORCH_ITSELF = """
import torch
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

env = ShapeEnv(duck_shape=False)
def size(value, name):
    source = ConstantSource(name)
    symbol = env.create_symbol(value, source, dynamic_dim=DimDynamic.DYNAMIC)
    return env.create_symintnode(symbol, hint=value, source=source)
x, y, z = size(3, "x"), size(4, "y"), size(5, "z")
total = x + y
assert total == 7
print((total + z).node.expr == z.node.expr)
"""


def test_pytorch_still_forgets_summands():
    """When this fails, `graph.symbols._mend_sums` can go."""
    found = subprocess.run(
        [sys.executable, "-c", TORCH_ITSELF], capture_output=True, text=True, check=True
    )
    assert found.stdout == "True\n"


def list_of_length(x, y, z):
    n = len(x) + len(y)
    mask = [1] * n
    return len(mask), n + len(z), torch.zeros(n + z.shape[0]).shape


def key_of_dict(x, y, z):
    n = len(x) + len(y)
    return {n: "n"}[n], n + len(z), len(z) + n


def turns_of_loop(x, y, z):
    n = x.shape[0] + y.shape[0]
    total = 0
    for k in range(n):
        total += k + len(z)
    return total, n + len(z)


def equal_to_another(x, y, z):
    n = len(x) + len(y)
    if n == len(z) + len(x):
        return n + len(x), torch.ones(n + len(y))
    return n + len(z), torch.ones(n + len(x) + len(z))


def twice_the_same(x, y, z):
    n = len(x) + len(y) + len(z)
    assert len(x) == len(y)
    return n + len(x), n + n, n + len(z)


def inside_operations(x, y, z):
    n = torch.cat([x, y]).shape[0]
    rows = [0] * n
    both = torch.cat([x, y, z])
    table = both.view(1, -1).expand(2, -1).reshape(-1)
    padded = torch.nn.functional.pad(z, (0, n))
    convolved = torch.nn.functional.conv1d(both.view(1, 1, -1), torch.ones(1, 1, 2), padding=1)
    return len(rows), both, table, padded, convolved, torch.cat([torch.cat([x, y]) + 1, z])


PROGRAMS = [
    list_of_length, key_of_dict, turns_of_loop, equal_to_another, twice_the_same, inside_operations,
]  # fmt: skip


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_sums_behind_facts(program, backend):
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    for sizes in [(3, 3, 4), (4, 4, 5), (6, 6, 2)]:
        args = [torch.arange(float(size)) for size in sizes]
        compare_outcomes(Outcome(program, args, {}), Outcome(compiled, args, {}))


def test_a_sum_behind_a_fact_still_varies():
    """The other summand is no constant: one entry serves all its values."""
    backend = CountingBackend()
    compiled = framejit.compile(list_of_length, backend=backend, fullgraph=True)
    for last in (4, 5, 6, 7):
        args = [torch.ones(3), torch.ones(4), torch.ones(last)]
        compare_outcomes(Outcome(list_of_length, args, {}), Outcome(compiled, args, {}))
    assert len(compiled.entries) == 2


# -- random programs -------------------------------------------------------------------------------

_LEAVES = ["len(x)", "y.shape[0]", "z.size(0)", "x.numel()", "i", "j", "1", "2", "3"]
_SUMS = [
    "{a} + {b}", "{a} + {b}", "{a} + {b}", "{a} + {b} + {c}", "{a} * 2 + {b}", "{a} - {b} + {c}",
    "max({a}, {b}) + {c}", "sum([{a}, {b}, {c}])",
]  # fmt: skip
_STATEMENTS = [
    "out.append(len([1] * abs({n})))",
    "out.append({{{n}: 1}}[{n}])",
    "for k in range(abs({n}) % 4): out.append(k + {n})",
    "out.append({n} == {m})",
    "if {n} > {m}: out.append({n} + len({t}))",
    "assert {n} == {n} + 0",
    "out.append([0, 1, 2, 3][{n} % 4] + {n})",
    "out.append(f'{{{n}}}')",
    "out.append(torch.zeros(abs({n}) + {t}.shape[0]).shape)",
    "out.append(torch.cat([x, y, z]).shape[0] + {n})",
    "out.append(torch.cat([x, {t}]).view(-1, 1).expand(-1, 2).reshape(-1).shape)",
    "out.append({t}.new_ones(abs({n}) + 1).sum())",
    "out.append(torch.nn.functional.pad({t}, (1, abs({n}))).shape)",
    "out.append(F.conv1d({t}.view(1, 1, -1), torch.ones(1, 1, 2), padding=1).shape)",
    "out.append(torch.arange(abs({n}) + i))",
    "out.append(({t}.unsqueeze(0) + y.unsqueeze(1)).reshape(-1).shape[0] + {n})",
    "out.append((torch.cat([x, y]) * {n}, torch.cat([y, z]) + 1))",
]


def random_program(seed):
    """A function of three vectors and two ints that makes sums and finds facts about them."""
    choose = random.Random(seed)
    names, lines = ["len(x)", "i"], ["out = []"]
    for number in range(choose.randint(4, 9)):
        if choose.random() < 0.55:
            a, b, c = (choose.choice([*names, *_LEAVES]) for _ in range(3))
            lines.append(f"n{number} = " + choose.choice(_SUMS).format(a=a, b=b, c=c))
            names.append(f"n{number}")
        else:
            n, m, t = choose.choice(names), choose.choice(names), choose.choice("xyz")
            lines.append(choose.choice(_STATEMENTS).format(n=n, m=m, t=t))
    lines.append("return out, [" + ", ".join(f"{name} + len(z)" for name in names) + "]")
    text = "def program(x, y, z, i, j):\n" + "".join(f"    {line}\n" for line in lines)
    space = types.SimpleNamespace(torch=torch, F=torch.nn.functional)
    exec(compile(text, f"<sums {seed}>", "exec"), vars(space))
    return space.program, text


def compare_random_program(seed, backend):
    program, text = random_program(seed)
    compiled = framejit.compile(program, backend=backend)
    choose = random.Random(seed)
    with framejit.config.patch(raise_internal_errors=True):
        for _ in range(3):
            args = [torch.arange(float(choose.randint(2, 9))) for _ in range(3)]
            args += [choose.randint(1, 9), choose.randint(1, 9)]
            try:
                compare_outcomes(Outcome(program, args, {}), Outcome(compiled, args, {}))
            except AssertionError as error:
                sizes = [len(vector) for vector in args[:3]]
                raise AssertionError(f"{text}sizes {sizes}, ints {args[3:]}: {error}") from error


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_programs(first):
    for seed in range(first, first + 50):
        compare_random_program(seed, "eager")


def test_random_programs_with_aot_autograd():
    for seed in range(300, 340):
        compare_random_program(seed, "aot_eager")


def test_remainders_of_products_of_sums():
    """sympy says of ``i * (2 * j + 2) / 6`` that it is a whole number."""

    def function(x, i, j):
        k = i * (2 * j + 2)
        parts = k % 6, k // 6, (k + i) // 6, (k + 6) // 6, divmod(k, 6), k % -6, k % 6 == 0
        return x + k % 6, parts, k * (2 * i + 2) % 12, x.new_ones(k % 6 + 1)

    backend = CountingBackend()
    compiled = framejit.compile(function, backend=backend)
    for i, j in (3, 2), (3, 5), (2, 3), (2, 4), (5, 4), (1, 7), (3, 3), (-2, 5):
        args = [torch.ones(1), i, j]
        compare_outcomes(Outcome(function, args, {}), Outcome(compiled, args, {}))
    assert len(backend.graphs) < 5
