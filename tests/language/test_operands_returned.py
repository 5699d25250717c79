"""Operations that have nothing to do return their operand: the same object, with its class, its
attributes and its gradient. Parameters of a class of the program's are parameters."""

from __future__ import annotations

import copy
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import framejit
from backends.agreement import agrees
from checking import CountingAround, CountingBackend, Outcome, compare_outcomes


def parameter():
    made = nn.Parameter(torch.ones(2, 2))
    made.tag, made.grad = "p", torch.ones(2, 2)
    return made


def marked():
    made = torch.ones(2, 2)
    made.tag = "t"
    return made


OPERATIONS = {
    "contiguous": lambda x: x.contiguous(),
    "to": lambda x: x.to(torch.float32),
    "to the other's": lambda x: x.to(x),
    "float": lambda x: x.float(),
    "plus": lambda x: +x,
    "a keyword": lambda x: torch.positive(input=x),
    "dropout": lambda x: F.dropout(x, 0.5, training=False),
    "real": torch.real,
    "flatten": lambda x: x.flatten(0, 0),
    "a list": lambda x: torch.broadcast_tensors(x, x)[1],
    "of a list": lambda x: torch.atleast_2d([x, x])[0],
    "in place": lambda x: x.requires_grad_(),
    "another one": lambda x: x.view(2, 2),
    "a copy": lambda x: x.to(torch.float32, copy=True),
}


def described(operation, x):
    made = operation(x)
    return (
        made is x, type(made), isinstance(made, nn.Parameter), isinstance(made, nn.Buffer),
        getattr(made, "tag", None), made.is_leaf and made.grad is None, made * 2,
    )  # fmt: skip


@pytest.mark.parametrize("make", [parameter, marked, lambda: nn.Buffer(torch.ones(2, 2))])
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name, make):
    backend, operation = CountingBackend(), OPERATIONS[name]
    compiled = framejit.compile(described, backend=backend)
    for _ in range(2):
        expected = Outcome(described, (operation, make()), {})
        compare_outcomes(expected, Outcome(compiled, (operation, make()), {}))
    assert len(backend.graphs) == 1


class Tagged(torch.Tensor):
    pass


def layer_of_tagged():
    made = nn.Linear(2, 2)
    made.weight = nn.Parameter(torch.ones(2, 2).as_subclass(Tagged))
    return made


def counted(module, x):
    return [isinstance(one, nn.Parameter) for one in module._parameters.values()], x * 2


def assigned(module, x):
    module.other = module.weight
    return list(module._parameters), sorted(vars(module)), x * 2


@pytest.mark.parametrize("function", [counted, assigned])
def test_parameters_of_a_class_of_the_programs(function):
    agrees(function, lambda: (layer_of_tagged(), torch.ones(2)), graphs=1)


def without_dropout(x):
    y = F.dropout(x, 0.5, training=False)
    same = y is x, torch.dropout(x, 0.5, False) is x, F.dropout(x, 0.0) is x
    y.add_(1)
    return same, x * 2


def test_dropout_that_drops_nothing_of_sizes_that_vary():
    counting = CountingBackend()
    compiled = framejit.compile(without_dropout, backend=counting)
    for size in (2, 3, 4):
        compare_outcomes(*[Outcome(f, [torch.ones(size)], {}) for f in (without_dropout, compiled)])
    assert len(counting.graphs) == 2 and counting.ops == 10


def without_varying_dropout(x, y, p):
    batched, added = F.dropout3d(x, p, False), F.dropout3d(y, p, training=False)
    added += 1
    flat = F.dropout1d(y[0], p / 2, False), F.dropout1d(y[0, 0], p, training=False)
    flat[1].mul_(2)
    kept = F.dropout(x, p=p, training=False) is x, torch.feature_dropout(y, p, False) is y
    kept += F.dropout3d(y, p, False, True) is y, F.dropout1d(y[0], p, False, inplace=True) is y
    return batched is x, added is y, batched, added, flat, kept


@pytest.mark.parametrize("name", ["eager", "aot_eager"])
def test_dropout_that_drops_nothing_with_a_probability_that_varies(name):
    """Operands without a batch come back as views of what they are."""
    counting = CountingAround(name)
    compiled = framejit.compile(without_varying_dropout, backend=counting)
    for p in (0.25, 0.5, 1.0, 0.0, 1.5):
        args = [torch.ones(2, 2, 2, 2, 2), torch.arange(16.0).reshape(2, 2, 2, 2), p]
        outcomes = [
            Outcome(f, copy.deepcopy(args), {}) for f in (without_varying_dropout, compiled)
        ]
        compare_outcomes(*outcomes)
    assert len(counting.graphs) == 2  # 1.5 is an error


@pytest.mark.parametrize("dropout", [F.dropout, F.dropout2d, F.alpha_dropout, torch.dropout])
def test_a_number_is_no_answer_to_whether_dropout_trains(dropout):
    def run(x, drops):
        return dropout(x, 0.0, drops), x + 1

    counting = CountingBackend()
    compiled = framejit.compile(run, backend=counting)
    for drops in (True, 1, False, 0):
        args = torch.ones(2, 2, 2, 2), drops
        compare_outcomes(*[Outcome(f, list(args), {}) for f in (run, compiled)])
    assert len(counting.graphs) == 2


def replaced(x, given):
    groups = re.match("(a)|(b)", "a").groups(given)
    named = re.match("(?P<k>a)|(?P<l>b)", "a").groupdict(given)
    groups[1].append(1)
    return groups[1] is given, named["l"] is given, x + 1


def test_functions_that_are_computed_while_capturing():
    """They give back the list that they are given."""
    agrees(replaced, lambda: (torch.ones(2), []), graphs=1)


def buffer_of_its_own(module, x):
    module.other = torch.nn.Buffer(x * 2)
    marked = x * 3
    marked._is_param = True
    module.marked = marked
    return list(module._buffers), list(module._parameters), sorted(vars(module))


def test_a_member_that_the_program_makes():
    agrees(buffer_of_its_own, lambda: (torch.nn.Linear(2, 2), torch.ones(2)), graphs=2)


def written_lists(x, y):
    kept, rows = [x, y], (x, y)
    added = torch._foreach_add_(kept, 1)
    scaled = torch._foreach_mul_(rows, [2, x.shape[0]])
    divided = torch._foreach_addcdiv_(self=kept, tensor1=kept, tensor2=[x + 9, y + 9], value=0.5)
    again = torch._foreach_addcdiv_(kept, kept, [x + 9, y + 9], [0.5, 0.25])
    made = torch._foreach_neg(kept)
    added.append(x * 2)
    return added is kept, scaled is rows, divided is kept, again is kept, type(made), made, kept


def test_lists_whose_tensors_are_written():
    """The list itself is returned, of the class that the program gave it."""
    agrees(written_lists, lambda: (torch.ones(2), torch.ones(3)), graphs=1)
