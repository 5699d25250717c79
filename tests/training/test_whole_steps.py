"""Training steps compiled as one function: losses, parameters, gradients and states are eager's."""

import copy
import dataclasses

import pytest
import torch
from loops import LOOPS, OPTIMIZERS, second_order, with_optimizer

import framejit
from checking import CountingAround
from framejit.report import events


def state(loop):
    """Everything that a step changes."""
    found = {}
    for number, module in enumerate(loop.modules):
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            found[f"{number}.{name}"] = tensor
            found[f"{number}.{name}.grad"] = tensor.grad
    for number, optimizer in enumerate(loop.optimizers):
        kept = optimizer.state_dict()["state"]
        for key, values in kept.items():
            for name, value in values.items():
                found[f"optimizer {number}.{key}.{name}"] = value
    return found


def agree(got, wanted, tolerance):
    assert got.keys() == wanted.keys()
    for name, expected in wanted.items():
        if not isinstance(expected, torch.Tensor):
            torch.testing.assert_close(
                got[name], expected, msg=name, rtol=tolerance, atol=tolerance
            )
            continue
        assert isinstance(got[name], torch.Tensor), name
        assert got[name].stride() == expected.stride(), name
        assert got[name].requires_grad == expected.requires_grad, name
        torch.testing.assert_close(
            got[name], expected, atol=tolerance, rtol=tolerance, msg=lambda m, n=name: f"{n}: {m}"
        )


def compare(make, backend, tolerance, steps=None):
    """Runs the loop as plain Python and compiled; returns how many graphs each step made."""
    torch.manual_seed(0)
    eager = make()
    torch.manual_seed(0)
    loop = make()
    step = framejit.compile(loop.step, backend=backend)
    made = []
    for i, (one, two) in enumerate(zip(eager.batches[:steps], loop.batches, strict=False)):
        torch.manual_seed(i)
        expected = eager.step(*copy.deepcopy(one))
        torch.manual_seed(i)
        before = len(backend.graphs)
        got = step(*two)
        made.append(len(backend.graphs) - before)
        torch.testing.assert_close(got, expected, atol=tolerance, rtol=tolerance)
        agree(state(loop), state(eager), tolerance)
        for one in (eager, loop):
            one.after()
    return made


#: AOTAutograd takes long for these; others are as large and contain what they do.
LONG = ("step_of_t5", "step_of_gpt2", "step_of_bert", "step_of_llama", "checkpointed_llama")


def cases():
    for make in LOOPS:
        yield pytest.param(make, "eager", id=f"{make.__name__}-eager")
        marks = [pytest.mark.slow] if make.__name__ in LONG else []
        yield pytest.param(make, "aot_eager", id=f"{make.__name__}-aot_eager", marks=marks)


@pytest.mark.parametrize(("make", "backend"), cases())
def test_a_step_is_one_graph(make, backend):
    made = compare(make, CountingAround(backend), 1e-5)
    if LOOPS[make] is not None:
        assert made[2:] == [0] * len(made[2:])
        assert sum(made) <= 2 and max(made) <= LOOPS[make], made


def label(value):
    return "-".join([f"{k}={v}" for k, v in value.items()]) if isinstance(value, dict) else None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(("name", "options", "graphs"), OPTIMIZERS, ids=label)
def test_optimizers(name, options, graphs, backend):
    made = compare(with_optimizer(name, **options), CountingAround(backend), 1e-5)
    assert max(made) == 1 and sum(made) <= graphs, made


@pytest.mark.parametrize("name", ["SGD", "Adam", "ASGD", "Adafactor", "NAdam"])
def test_a_scheduler_that_rests(name):
    """The learning rate stays what it is for some steps; when it changes, nothing is compiled."""

    def make():
        loop = with_optimizer(name, lr=0.1)()
        scheduler = torch.optim.lr_scheduler.MultiStepLR(loop.optimizers[0], [3, 7])
        return dataclasses.replace(loop, after=scheduler.step)

    assert compare(make, CountingAround("eager"), 1e-5) == [1, 1, *[0] * 8]


@pytest.mark.parametrize("several", [True, False])
def test_averaged_model(several):
    """It branches on how often it was updated, which a buffer counts."""

    def make():
        loop = with_optimizer("SGD", lr=0.1)()
        average = torch.optim.swa_utils.get_ema_multi_avg_fn(0.9)
        options = {"multi_avg_fn": average} if several else {}
        model = torch.optim.swa_utils.AveragedModel(loop.modules[0], use_buffers=True, **options)

        def step(x, y):
            loss = loop.step(x, y)
            model.update_parameters(loop.modules[0])
            return loss

        return dataclasses.replace(loop, step=step, modules=[*loop.modules, model])

    assert compare(make, CountingAround("eager"), 1e-5) == [1, 1, *[0] * 8]


def test_second_order_has_graphs_for_each_length_of_its_history():
    """It branches on numbers in tensors, so each iteration is some graphs, and computes with all
    that its history has; when that is full, nothing is compiled any more."""

    def make():
        return second_order(history_size=4)

    with events.recording(events.GraphBreak, events.RecompileLimit) as seen:
        made = compare(make, CountingAround("eager"), 1e-5)
    assert made == [16, 4, *[0] * 8]
    reasons = ["float() of a tensor depends on its data"] * 4
    reasons += ["the truth value of a tensor depends on its data"] * 15
    assert sorted(event.reason for event in seen) == reasons  # the limit of recompiles was not met


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("make", LOOPS, ids=lambda make: make.__name__)
def test_in_double_precision(make, backend):
    torch.set_default_dtype(torch.float64)
    try:
        made = compare(make, CountingAround(backend), 1e-10)
    finally:
        torch.set_default_dtype(torch.float32)
    if LOOPS[make] is not None:
        assert sum(made) <= 2, made


WITH_INDUCTOR = ("mlp", "convolutions", "gan", "tied", "step_of_bert", "step_of_gpt2",
                 "step_of_llama", "checkpointed")  # fmt: skip
#: Models that normalise and rotate in single precision, whatever the dtype of their parameters.
IN_SINGLE_PRECISION = {"step_of_llama": 1e-6}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", WITH_INDUCTOR)
def test_with_inductor(name):
    """It adds in another order, and Adam divides by what is left of gradients that are zero but for
    rounding: so there is something to divide by."""
    wanted = next(make for make in LOOPS if make.__name__ == name)

    def make():
        loop = wanted()
        for group in [group for one in loop.optimizers for group in one.param_groups]:
            if "eps" in group:
                group["eps"] = 1e-3
        return loop

    torch.set_default_dtype(torch.float64)
    try:
        made = compare(make, CountingAround("inductor"), IN_SINGLE_PRECISION.get(name, 1e-10))
    finally:
        torch.set_default_dtype(torch.float32)
    assert sum(made) <= 2, made
