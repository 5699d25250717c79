"""Writes programs in which torch's operators get Python numbers that vary from call to call.

In: a seed. Out: a `Program`: one or two operators with operands that torch's tests or schemas know
(`operators`), whose numbers are arguments, attributes, items, sizes, numbers out of tensors, or
computed from such. Each call gives other ones; errors of torch are part of what is compared.
"""

from __future__ import annotations

import itertools
import math
import random
import types
import warnings
from typing import Any

import torch
from operators import Sample, sample
from program_writer import Program

PRELUDE = """
import contextlib, math, types
import torch
import torch.nn.functional as F

inf, nan = float('inf'), float('nan')

def T(seed, *shape, dtype=torch.float32, grad=False, top=11, scale=3.7):
    n = 1
    for size in shape: n *= size
    t = (torch.arange(n) * 7 + seed * 5) % top
    t = (t - 4.3) / scale if dtype.is_floating_point or dtype.is_complex else t
    t = t.reshape(shape).to(dtype)
    return t.requires_grad_() if grad else t

def V(values, shape, dtype, grad=False):
    t = torch.tensor(values, dtype=dtype).reshape(shape)
    return t.requires_grad_() if grad else t

G_NS = types.SimpleNamespace()
G_ITEMS = {}
"""

_TRIES = 40
_LARGE = 70


class _Writer:
    """Writes one function with its calls."""

    def __init__(self, rng: random.Random) -> None:
        self.random = rng
        self.calls = rng.choice((3, 3, 4, 5))
        #: Parameters of the function, with the text that each call gives for them.
        self.given: dict[str, list[str]] = {}
        #: What is set before each call: an assignment for each of them.
        self.settings: list[list[str]] = []
        self.lines: list[str] = []
        #: What else the program may use: names of numbers.
        self.numbers: list[str] = []
        self.tensors: list[tuple[str, torch.Tensor]] = []
        #: One size may be another one in later calls, wherever it is met.
        self.other_size: dict[int, int] = {}

    # --- numbers -----------------------------------------------------------------------------

    def values(self, base: Any) -> list[Any]:
        """A number for each call; those of the first are the sample's."""
        return [base, *[self.another(base) for _ in range(self.calls - 1)]]

    def another(self, base: Any) -> Any:
        pick = self.random.random()
        if isinstance(base, bool):
            return self.random.choice((base, not base, not base, int(not base)))
        if pick < 0.2:
            return base
        if isinstance(base, int):
            if pick < 0.9:
                near = (base + 1, base - 1, base * 2, base + 2, 0, 1, -base, 2, 3)
                found = self.random.choice(near)
                return found if abs(found) <= max(abs(base), _LARGE) else base
            return self.random.choice((-1, True, base + 0.5, float(base), 7))
        if isinstance(base, complex):
            return self.random.choice((base * 2, base + 1, base.real, 0j, 2))
        if not math.isfinite(base):
            return self.random.choice((base, 2.0, -base, 0.5))
        near = (base * 2, base + 0.5, base / 3, -base, base + 1, base * 1.1, 1 - base)
        return self.random.choice((*near, *near, 0.0, 1.0, int(base), -0.0, True, 0.1))

    def number(self, base: Any) -> str:
        """The text of a number in the program."""
        if self.random.random() < 0.2:
            return repr(base)
        pick = self.random.random()
        if self.numbers and pick < 0.12 and type(base) is int:
            return self.random.choice(self.numbers)
        if type(base) is int and pick < 0.24 and self.tensors:
            name, tensor = self.random.choice(self.tensors)
            if tensor.dim():
                dim = self.random.randrange(tensor.dim())
                less = tensor.shape[dim] - base
                text = f"{name}.shape[{dim}]"
                return f"{text} - {less}" if less > 0 else f"{text} + {-less}" if less else text
        values = self.values(base)
        if not isinstance(base, bool) and pick > 0.72:
            return self.computed(values)
        name = self.source(values)
        self.numbers += [name] * (type(base) is int)
        return name

    def computed(self, values: list[Any]) -> str:
        """An expression with these values."""
        kind = self.random.randrange(8 if type(values[0]) is int else 6)
        if kind == 0:
            return f"{self.source([v - 1 for v in values])} + 1"
        if kind == 1:
            return f"{self.source([v * 2 for v in values])} / 2"
        if kind == 2:
            return f"-{self.source([-v for v in values])}"
        if kind == 3:
            return f"max({self.source(values)}, -3)" if _ordered(values) else self.source(values)
        if kind == 4:
            text = self.source(values)
            return f"({text} if {text} else {values[0]!r})"
        if kind == 5:
            return f"{self.source([v + 0.5 for v in values])} - 0.5"
        if kind == 6:
            return f"int({self.source([float(v) + 0.25 for v in values])})"
        return f"{self.source([v * 2 for v in values])} // 2"

    def source(self, values: list[Any]) -> str:
        """A place that has one of ``values`` in each call."""
        kind = self.random.random()
        made = f"n{len(self.given) + len(self.settings)}"
        if kind < 0.6:
            self.given[made] = [repr(value) for value in values]
            return made
        if kind < 0.75:
            self.settings.append([f"G_NS.{made} = {value!r}" for value in values])
            return f"G_NS.{made}"
        if kind < 0.85:
            self.settings.append([f"G_ITEMS['{made}'] = [{value!r}]" for value in values])
            return f"G_ITEMS['{made}'][0]"
        self.given[made] = [f"torch.tensor({value!r})" for value in values]
        line = f"m{made} = {made}.item()"
        self.lines.append(line)
        return f"m{made}"

    # --- operands ------------------------------------------------------------------------------

    def tensor(self, value: torch.Tensor, grad: bool) -> str:
        """The name of a parameter for a tensor like ``value``."""
        name = f"x{len(self.given) + len(self.settings)}"
        texts, seed = [], self.random.randrange(9)
        for number in range(self.calls):
            shape = [self.other_size.get(s, s) if number else s for s in value.shape]
            texts.append(_tensor_text(value, shape, seed + number, grad))
        self.given[name] = texts
        self.tensors.append((name, value))
        return name

    def operand(self, value: Any, grad: bool) -> str:
        """The text of an operand of a sample."""
        if isinstance(value, torch.Tensor):
            return self.tensor(value, grad)
        if isinstance(value, (int, float, complex)):
            return self.number(value)
        if isinstance(value, (list, tuple)):
            parts = [self.operand(part, grad) for part in value]
            if isinstance(value, list):
                return f"[{', '.join(parts)}]"
            return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
        if isinstance(value, slice):
            parts = [self.operand(p, grad) for p in (value.start, value.stop, value.step)]
            return f"slice({', '.join(parts)})"
        if isinstance(value, torch.device):
            return f"torch.{value!r}"
        return "..." if value is Ellipsis else repr(value)

    def statement(self, one: Sample, result: str) -> None:
        """Write a call; its result has the name ``result``."""
        grad = one.differentiable and self.random.random() < 0.35
        form = self.random.choice(one.forms)
        operands = [self.operand(value, grad) for value in one.operands]
        keywords = [f"{name}={self.operand(v, grad)}" for name, v in one.keywords.items()]
        if not operands and "{first}" in form:
            form = one.forms[0]
        if "{first}" in form and "_({" in form or form.endswith("_({all})"):
            first = operands[0]
            self.lines.append(f"w{result} = {first}.clone()" if grad else f"w{result} = {first}")
            operands[0] = f"w{result}"
        out = ""
        if "{out}" in form:
            out = self.tensor(torch.ones((0,), dtype=one.dtype), False)
        every, rest = ", ".join([*operands, *keywords]), ", ".join([*operands[1:], *keywords])
        first = operands[0] if operands else ""
        text = form.replace("{all}", every).replace("{rest}", rest).replace("{first}", first)
        self.lines.append(f"{result} = {text.replace('{out}', out)}")

    def afterwards(self, result: str) -> None:
        """Something else with the result, and numbers."""
        pick = self.random.random()
        if pick < 0.5:
            return
        name, base = f"{result}b", self.random.choice((2, 0.5, 1, 3, 1.5))
        if pick < 0.6:
            self.lines.append(f"{name} = {result} * {self.number(base)}")
        elif pick < 0.68:
            self.lines.append(f"{name} = {result}[..., : {self.number(2)}]")
        elif pick < 0.74:
            self.lines.append(f"{name} = {result}[{self.number(0)}]")
        elif pick < 0.8:
            self.lines.append(f"{name} = torch.full(({self.number(2)},), {self.number(base)})")
        elif pick < 0.86:
            written = f"{name}[..., {self.number(0)}] = {self.number(base)}"
            self.lines += [f"{name} = {result}.clone()", written]
        elif pick < 0.92 and self.numbers:
            number = self.random.choice(self.numbers)
            self.lines.append(f"{name} = {result} if {number} > {self.number(1)} else {number}")
        else:
            self.lines.append(f"{name} = {self.number(base)}, {result}")


def _ordered(values: list[Any]) -> bool:
    return not any(isinstance(value, complex) for value in values)


def _tensor_text(value: torch.Tensor, shape: list[int], seed: int, grad: bool) -> str:
    """The text that makes a tensor of ``shape`` that is otherwise like ``value``."""
    floating = value.dtype.is_floating_point or value.dtype.is_complex
    tail = f"dtype={value.dtype}" + (", grad=True" if grad and floating else "")
    small = value.numel() <= (1 if floating else 40)
    if small and shape == list(value.shape):
        data = value.detach().flatten().tolist()
        if value.dtype.is_complex:
            data = [complex(round(one.real, 2), round(one.imag, 2)) for one in data]
        elif floating:
            data = [round(one, 2) for one in data]
        return f"V({data}, {tuple(shape)}, {tail})"
    sizes = "".join(f"{size}, " for size in shape)
    if not floating and value.dtype is not torch.bool and value.numel():
        tail += f", top={max(int(value.max()), 0) + 1}"
    text = f"T({seed}, {sizes}{tail})"
    if "grad" in tail or not value.dtype.is_floating_point or not value.numel():
        return text
    return f"{text}.abs()" if bool((value >= 0).all()) else text


def _written(rng: random.Random) -> Program:
    """A program; torch may refuse it."""
    writer = _Writer(rng)
    results = []
    for number in range(rng.choice((1, 1, 2))):
        one = sample(rng)
        sizes = {s for v in one.operands if isinstance(v, torch.Tensor) for s in v.shape if s > 1}
        if rng.random() < 0.3 and sizes:
            size = rng.choice(sorted(sizes))
            writer.other_size[size] = size + rng.choice((1, -1, 2))
        result = f"r{number}"
        writer.statement(one, result)
        writer.afterwards(result)
        results.append(result)
    made = [line.split(" = ")[0] for line in writer.lines if " = " in line]
    kept = sorted({name for name in made if name.isidentifier()})
    body = [*writer.lines, f"return ({', '.join(kept)},)"]
    if rng.random() < 0.12:
        body = ["with torch.no_grad():", *[f"    {line}" for line in body]]
    lines = [f"def program({', '.join(writer.given)}):", *[f"    {line}" for line in body]]
    calls = []
    for number in range(writer.calls):
        if writer.settings:
            set_all = [settings[number] for settings in writer.settings]
            lines += [f"def set{number}():", *[f"    {one}" for one in set_all]]
            calls.append(f"set{number}:()")
        given = "".join(f"{texts[number]}, " for texts in writer.given.values())
        calls.append(f"program:({given})")
    source, dynamic = PRELUDE + "\n".join(lines) + "\n", rng.choice((None, None, True))
    return Program(source, calls, PRELUDE, dynamic=dynamic, has_out=", out=" in source)


def _runs(program: Program) -> bool:
    """Does the first call pass?"""
    module = types.ModuleType("program")
    first = itertools.takewhile(lambda call: not call.startswith("set1:"), program.calls)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(program.source, "<program>", "exec"), module.__dict__)
            for call in itertools.islice(first, 2):
                name, _, arguments = call.partition(":")
                vars(module)[name](*eval(arguments, module.__dict__))  # noqa: S307 - written here
                if name == "program":
                    break
        except Exception:  # noqa: BLE001 - torch refuses it
            return False
    return True


def operator_program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    for _ in range(_TRIES):
        program = _written(rng)
        if _runs(program):
            break
    return program
