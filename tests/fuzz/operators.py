"""Torch's operators with operands that they take: what torch's own tests and its schemas know.

In: a source of random numbers. Out: a `Sample`: ways to write a call, and its operands. Tensors of
a sample stand for a shape, a dtype and, where they are small, values.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import random
import re
import unittest.mock
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

_RARER = (torch.float64, torch.int64, torch.bool, torch.complex64, torch.bfloat16)
_DTYPES = (torch.float32,) * 6 + _RARER
#: Their results are memory without content, their operands are functions, or a number that they do
#: not know ends the process.
_UNSETTLED = re.compile(
    r"empty|resize|set_|jiterator|_sparse|sparse_|to_mkldnn|backward|_jvp|cudnn|native_batch_norm"
    r"|segment_reduce|grid_sampler|^random_?$"
)
_UNSETTLED_SCHEMA = re.compile(
    rf"{_UNSETTLED.pattern}|spars|mkldnn|miopen|cuda|quant|^_(?!foreach)|fbgemm"
    r"|^(rename|refine|align|names|from_file|data|retain_grad|requires_grad|record|pin|storage|swap)"
    r"|_copy$|numpy|_thnn|lift|fused|_state|_coalesced|indices$|values$|^values|coalesce|is_set_to|dense"
    r"|nonzero_static|^q_|_(csr|csc|bsr|bsc)|crow|ccol|version|seed|^(Size|Generator|device|save|wait|item)$"
    r"|^sym_|autocast|^batch_norm_|qparams|^is_grad_enabled|^(smm|hspmm|sspaddmm|grad|output_nr|numel|dim)$"
)
_MOST_SAMPLES = 14
_LARGEST = 3000


@dataclass
class Sample:
    """One call: each of ``forms`` is a template of one, with ``{}`` for the operands."""

    name: str
    forms: list[str]
    operands: list[Any]
    keywords: dict[str, Any] = field(default_factory=dict)
    differentiable: bool = False
    dtype: torch.dtype = torch.float32


@functools.cache
def _databases() -> tuple[list[Any], list[Any]]:
    """The operators of torch's tests, and its schemas."""
    # It takes seconds, and would forbid that tests set torch's flags from then on.
    with unittest.mock.patch("torch.backends.disable_global_flags"):
        from torch.testing._internal.common_methods_invocations import op_db

    tested = [one for one in op_db if not _UNSETTLED.search(one.name)]
    schemas = []
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        if space == "aten" and not _UNSETTLED_SCHEMA.search(name) and _forms(name):
            schemas.append(schema)
    return tested, sorted(schemas, key=lambda schema: (schema.name, schema.overload_name))


def _resolved(path: str) -> Any:
    found: Any = torch
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def _forms(name: str) -> list[str]:
    """How a call of an operator may be written."""
    found = []
    if callable(_resolved(name)):
        found.append(f"torch.{name}({{all}})".replace("torch.nn.functional.", "F."))
    if hasattr(torch.Tensor, name):
        found.append(f"{{first}}.{name}({{rest}})")
    if hasattr(torch.Tensor, f"{name}_") and not name.startswith("__"):
        found.append(f"{{first}}.{name}_({{rest}})")
    return found


def sample(rng: random.Random) -> Sample:
    """A call that torch makes without an error."""
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = _tested(rng) if rng.random() < 0.65 else _by_schema(rng)
        if found is not None:
            numbers = [*numbers_in(found.operands), *numbers_in(list(found.keywords.values()))]
            if numbers or rng.random() < 0.1:
                return found


def _tested(rng: random.Random) -> Sample | None:
    """One of the samples of torch's tests."""
    operator = rng.choice(_databases()[0])
    allowed = [dtype for dtype in _DTYPES if dtype in operator.dtypes]
    forms = _forms(operator.name)
    if not allowed or not forms:
        return None
    dtype = rng.choice(allowed)
    torch.manual_seed(0)
    try:
        made = operator.sample_inputs("cpu", dtype, requires_grad=False)
        samples = list(itertools.islice(made, _MOST_SAMPLES))
    except Exception:  # noqa: BLE001 - a library that is not there
        return None
    if not samples:
        return None
    one = rng.choice(samples)
    operands, keywords = [one.input, *one.args], dict(one.kwargs)
    if not all(map(_plain, [*operands, *keywords.values()])):
        return None
    if operator.supports_out and forms[0].startswith("torch."):
        forms.append(forms[0].replace("{all}", "{all}, out={out}"))
    _add_keywords(rng, operator.name, operands, keywords)
    return Sample(operator.name, forms, operands, keywords, operator.supports_autograd, dtype)


def _plain(value: Any) -> bool:
    """Can ``value`` be written as text?"""
    if isinstance(value, torch.Tensor):
        strided = value.layout is torch.strided and not value.is_quantized
        return type(value) is torch.Tensor and strided and value.numel() <= _LARGEST
    if isinstance(value, (list, tuple)):
        return type(value) in (list, tuple, torch.Size) and all(map(_plain, value))
    if isinstance(value, slice):
        return all(map(_plain, (value.start, value.stop, value.step)))
    known = (int, float, complex, str, torch.dtype, torch.device, torch.memory_format, torch.layout)
    return value is None or value is Ellipsis or isinstance(value, known)


def _add_keywords(
    rng: random.Random, name: str, operands: list[Any], keywords: dict[str, Any]
) -> None:
    """Some keyword arguments that the sample leaves out, with their defaults."""
    known = _defaults(name)
    for parameter, (position, default) in known.items():
        free = parameter not in keywords and (position is None or position >= len(operands))
        if free and rng.random() < 0.3:
            keywords[parameter] = default


@functools.cache
def _defaults(name: str) -> dict[str, tuple[int | None, Any]]:
    """Parameters with numbers as defaults: their positions; None: by keyword only."""
    function = _resolved(name)
    found: dict[str, tuple[int | None, Any]] = {}
    if inspect.isfunction(function):
        for position, parameter in enumerate(inspect.signature(function).parameters.values()):
            if isinstance(parameter.default, (int, float)) and parameter.name != "_stacklevel":
                place = None if parameter.kind is parameter.KEYWORD_ONLY else position
                found[parameter.name] = place, parameter.default
        return found
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name.replace('.', '_')}")
    for schema in schemas[:1]:
        for position, argument in enumerate(schema.arguments):
            numbers = isinstance(argument.default_value, (int, float))
            if argument.has_default_value() and numbers and "dtype" not in argument.name:
                place = None if argument.kwarg_only else position
                found[argument.name] = place, argument.default_value
    return found


def _by_schema(rng: random.Random) -> Sample | None:
    """Operands made up by what a schema says of them."""
    schema = rng.choice(_databases()[1])
    name = schema.name.partition("::")[2]
    forms = _forms(name)
    operands: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument in schema.arguments:
        if argument.is_out or argument.name == "out":
            return None
        if argument.has_default_value() and rng.random() < 0.5:
            continue
        make = _MAKERS.get(str(argument.type).removeprefix("Optional[").removesuffix("]"))
        make = _MAKERS.get(str(argument.type), make)
        if make is None:
            if argument.has_default_value():
                continue
            return None
        value = make(rng, argument.name)
        if argument.kwarg_only or len(keywords) or len(operands) < schema.arguments.index(argument):
            keywords[argument.name] = value
        else:
            operands.append(value)
    if forms[0].startswith("torch.") and not name.endswith("_"):
        forms.append(forms[0].replace("{all}", "{all}, out={out}"))
    return Sample(name, forms, operands, keywords, True)


def _some_tensor(rng: random.Random, name: str) -> torch.Tensor:
    if "ind" in name:
        return torch.randint(0, 3, rng.choice([(4,), (3, 4), (3,)]))
    if "mask" in name or "condition" in name:
        return torch.arange(12).reshape(3, 4) % 2 == 0
    shape = rng.choice([(3, 4), (3, 4), (3, 4), (4,), (2, 3, 4), (4, 4), ()])
    dtype = rng.choice((torch.float32,) * 5 + (torch.float64, torch.int64))
    return torch.ones(shape, dtype=dtype)


def _some_int(rng: random.Random, name: str) -> int:
    return rng.choice((0, -1, 1)) if "dim" in name or "axis" in name else rng.choice((1, 2, 3, 0))


def _some_number(rng: random.Random, name: str) -> Any:
    return rng.choice((2, 0.5, 1.5, -1, 1, 0.0, 3, True))


def _some_ints(rng: random.Random, name: str) -> list[int]:
    return [_some_int(rng, name) for _ in range(rng.choice((1, 2, 2, 3)))]


_MAKERS: dict[str, Callable[[random.Random, str], Any]] = {
    "Tensor": _some_tensor, "number": _some_number, "int": _some_int,
    "float": lambda rng, name: rng.choice((0.5, 1.5, 1e-3, 1.0, 0.0)),
    "bool": lambda rng, name: rng.choice((True, False)),
    "List[int]": _some_ints,
    "List[number]": lambda rng, name: [_some_number(rng, name) for _ in range(2)],
    "List[float]": lambda rng, name: [rng.choice((0.5, 2.0)) for _ in range(2)],
    "List[Tensor]": lambda rng, name: [_some_tensor(rng, name) for _ in range(2)],
}  # fmt: skip


def numbers_in(value: Any) -> Iterator[Any]:
    """The Python numbers of an operand."""
    if isinstance(value, (int, float, complex)):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from numbers_in(part)
    elif isinstance(value, slice):
        yield from numbers_in([value.start, value.stop, value.step])
