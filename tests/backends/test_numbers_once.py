"""Numbers that larger tensors are computed from are computed once, not for each element."""

import pickle
import re

import pytest
import torch
from torch import nn
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.utils import fresh_cache, run_and_get_code
from torch.fx.experimental.proxy_tensor import make_fx

import framejit
from checking import Outcome, compare_outcomes
from framejit.audit.comparison import Tolerance
from framejit.backends.inductor import InductorBackend
from framejit.backends.inductor_passes import settings_with_passes
from framejit.backends.numbers_once import compute_numbers_once


def kept(function, *args):
    """Which operators' results are kept, of a function's graph."""
    gm = make_fx(function, tracing_mode="fake")(*args)
    compute_numbers_once(gm.graph)
    gm.graph.lint()
    gm.recompile()
    torch.testing.assert_close(gm(*args), function(*args), rtol=0, atol=0)
    marks = [node for node in gm.graph.nodes if "computed_once" in str(node.target)]
    return [mark.args[0].target.overloadpacket.__name__ for mark in marks]


NUMBER, TENSOR = torch.tensor(3.0, dtype=torch.float64), torch.arange(6.0).reshape(2, 3)


def test_what_is_kept_is_what_larger_tensors_meet():
    assert kept(lambda n, x: x * (1 - 0.9**n).sqrt(), NUMBER, TENSOR) == ["sqrt"]


def test_all_that_follows_from_a_kept_number_is_cheap_again():
    def function(n, x):
        power = 0.9**n
        return x * power, x + (power + 1)

    assert kept(function, NUMBER, TENSOR) == ["pow"]


@pytest.mark.parametrize(
    "function",
    [
        lambda n, x: x * n,
        lambda n, x: x * (1 - n) + 2,
        lambda n, x: (0.9**n, x + 1),
        lambda n, x: x.exp() * 2,
        lambda n, x: x * x.sum(),
    ],
    ids=["what is in memory", "sums", "results", "no number", "sums of many elements"],
)
def test_nothing_is_kept_without_need(function):
    assert kept(function, NUMBER, TENSOR) == []


def test_a_number_that_is_a_view_of_what_was_computed_is_kept():
    assert kept(lambda n, x: x / n.exp().reshape(1, 1), NUMBER, TENSOR) == ["view"]


def loops(code):
    """The bodies of loops over vectors in C++ code."""
    return re.findall(r"for\(int64_t x0.*?\n        }\n", code, re.DOTALL)


def test_optimizers_take_powers_of_their_step_outside_loops():
    def trained(compiled):
        torch.manual_seed(0)
        weights = [nn.Parameter(torch.randn(16, n)) for n in (16, 17)]
        optimizer = torch.optim.AdamW(weights, lr=0.1)

        def step():
            optimizer.zero_grad()
            loss = sum(weight.square().mean() for weight in weights)
            loss.backward()
            optimizer.step()
            return loss.detach()

        run = framejit.compile(step, backend="inductor") if compiled else step
        with torch._inductor.config.patch(force_disable_caches=True):
            codes = [run_and_get_code(run)[1] for _ in range(3)]
        return weights, optimizer, codes[1] if compiled else []

    before = framejit.counters["frames"]["total"]
    weights, optimizer, (code,) = trained(True)
    assert framejit.counters["frames"]["total"] - before == 2  # the first step makes the state
    assert code.count("std::pow(") == 4
    assert loops(code) and not any("pow" in loop for loop in loops(code))
    expected, plain, _ = trained(False)
    for weight, wanted in zip(weights, expected, strict=True):
        torch.testing.assert_close(weight, wanted, rtol=0, atol=1e-5)
        for name, state in plain.state[wanted].items():
            torch.testing.assert_close(optimizer.state[weight][name], state, rtol=0, atol=1e-5)


def test_numbers_that_are_written_to_afterwards():
    def function(n, x):
        factor = torch.exp(n)
        y = x * factor
        n += 1
        factor *= 2
        return y, x + factor, n * 2

    compiled = framejit.compile(function, backend="inductor", fullgraph=True)
    for number in (1.0, 2.0):
        expected, got = (
            Outcome(each, (torch.tensor(number), torch.arange(40.0)), {})
            for each in (function, compiled)
        )
        compare_outcomes(expected, got, Tolerance(1e-6, 1e-6))


class Noted(CustomGraphPass):
    """A pass of the user's."""

    def __init__(self, name):
        self.name, self.ran = name, 0

    def __call__(self, graph):
        self.ran += 1

    def uuid(self):
        return self.name


def passes_after(chosen):
    settings = settings_with_passes({"post_grad_custom_pre_pass": chosen})
    return settings["post_grad_custom_pre_pass"]


def test_the_passes_that_the_user_chose_run_first_and_count_in_the_key():
    chosen = Noted("one")
    for given in (chosen, [chosen], (chosen,)):
        first, ours = passes_after(given)
        assert first is chosen
        assert pickle.loads(pickle.dumps(ours)).uuid() == ours.uuid()
    assert passes_after(None)[0].uuid() == ours.uuid() is not None
    compiled = framejit.compile(
        lambda x: x + 1, backend="inductor", options={"post_grad_custom_pre_pass": chosen}
    )
    with fresh_cache():  # what it holds is not compiled again
        compiled(TENSOR)
    assert chosen.ran == 1


def test_passes_are_no_setting_of_the_backend():
    assert InductorBackend() == InductorBackend()
    assert InductorBackend().config_patches == {}
