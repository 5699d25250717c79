"""Data-parallel training: few graphs and breaks, and what plain Python computes."""

import data_parallel
import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._functorch.aot_autograd import make_boxed_func as boxed
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

import framejit
from framejit.backends.aot import aot_autograd
from framejit.report import events

WAYS = ["outside", "inside"]


def _trained(rank, make, how, backend="eager", **more):
    return data_parallel.compared(make, how, backend, **more)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", WAYS)
def test_a_model_is_one_graph(ranks, how, backend):
    assert ranks.run(_trained, data_parallel.blocks, how, backend) == [(1, 0)] * 2


def _whole(rank):
    model = data_parallel.wrapped(data_parallel.blocks, "plain", None)
    counted = data_parallel.Counted("eager")
    compiled = framejit.compile(model, backend=counted, fullgraph=True)
    x, _ = data_parallel.batch(0)
    with events.recording(events.GraphBreak, events.StepAround) as met:
        assert torch.equal(compiled(x), model(x))
    return counted.graphs, [(type(one), one.identifier) for one in met]


def test_what_goes_around_a_model_is_no_break(ranks):
    """And so no error under fullgraph."""
    around = (events.StepAround, data_parallel.AROUND_MODULES)
    assert ranks.run(_whole) == [(1, [around, around])] * 2


@pytest.mark.parametrize("how", WAYS)
def test_buffers_are_those_of_the_first_process(ranks, how):
    assert ranks.run(_trained, data_parallel.Convolutions, how) == [(1, 0)] * 2


def _with(rank, how, options, backend):
    return data_parallel.compared(data_parallel.blocks, how, backend, options=options)


OPTIONS = [
    {"find_unused_parameters": True}, {"static_graph": True}, {"gradient_as_bucket_view": True},
    {"bucket_cap_mb": 0.0001}, {"broadcast_buffers": False},
]  # fmt: skip


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: next(iter(options)))
def test_options_of_the_reducer(ranks, how, options):
    for backend in ("eager", "aot_eager"):
        assert ranks.run(_with, how, options, backend) == [(1, 0)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("how", WAYS)
def test_buckets_with_inductor(ranks, how):
    assert ranks.run(_with, how, {"bucket_cap_mb": 0.0001}, "inductor") == [(1, 0)] * 2


def _second(step):
    return {"second": step % 2 == 1}


def _unused(rank, how, backend):
    options = {"find_unused_parameters": True}
    return data_parallel.compared(
        data_parallel.Branches, how, backend, options=options, arguments=_second
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", WAYS)
def test_unused_parameters(ranks, how, backend):
    graphs = [graphs for graphs, _ in ranks.run(_unused, how, backend)]
    assert graphs == [2, 2]


def _second_elsewhere(step):
    return {"second": dist.get_rank() == 1 and step % 2 == 1}


def _apart(rank, how, backend):
    options = {"find_unused_parameters": True}
    return data_parallel.compared(
        data_parallel.Branches, how, backend, options=options, arguments=_second_elsewhere
    )


@pytest.mark.parametrize("how", WAYS)
def test_processes_that_compile_different_things(ranks, how):
    """One is still compiling while the other has gone on."""
    assert ranks.run(_apart, how, "aot_eager") == [(1, 0), (2, 0)]


def _accumulated(rank, how, backend):
    return data_parallel.compared(data_parallel.blocks, how, backend, accumulate=3)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("how", WAYS)
def test_gradients_are_accumulated_without_talking(ranks, how, backend):
    assert ranks.run(_accumulated, how, backend) == [(1, 0)] * 2


def _hooked(rank, how):
    def prepare(model):
        model.register_comm_hook(None, default_hooks.fp16_compress_hook)

    return data_parallel.compared(data_parallel.blocks, how, "aot_eager", prepare=prepare)


@pytest.mark.parametrize("how", WAYS)
def test_communication_hooks(ranks, how):
    assert ranks.run(_hooked, how) == [(1, 0)] * 2


def _overlapped(rank, how):
    """What happens in a step, when the reducer knows in which order gradients come."""
    happened = []

    def noting(module, inputs):
        def backward(*arguments):
            happened.append("backward")
            return module.forward(*arguments)

        return boxed(backward)

    def exchanges(state, bucket):
        happened.append("exchange")
        return default_hooks.allreduce_hook(None, bucket)

    backend = aot_autograd(lambda module, inputs: boxed(module.forward), noting)
    options = {"bucket_cap_mb": 0.015}  # of layers of 16 KiB
    left, steps = [], []
    for way in ("plain", how):
        model = data_parallel.wrapped(
            lambda: data_parallel.blocks(width=64), way, backend, **options
        )
        model.register_comm_hook(None, exchanges)
        for step in range(3):
            happened.clear()
            x, y = data_parallel.batch(step, width=64)
            nn.functional.mse_loss(model(x), y).backward()
        steps.append(list(happened))
        left.append([parameter.grad.clone() for parameter in model.parameters()])
    torch.testing.assert_close(left[1], left[0])
    return steps


@pytest.mark.parametrize("how", WAYS)
def test_gradients_are_exchanged_while_others_are_computed(ranks, how):
    """Of one graph, where several buckets are."""
    for plain, compiled in ranks.run(_overlapped, how):
        assert plain == ["exchange"] * 3
        assert compiled[:2] == ["backward", "exchange"] and compiled.count("backward") == 3
        assert ("backward", "backward") not in zip(compiled, compiled[1:], strict=False)


def _whole_steps(rank, backend):
    def trained(compiles):
        model = data_parallel.wrapped(data_parallel.blocks, "plain", None)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

        def step(x, y):
            optimizer.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        step = compiles(step)
        return [
            step(*data_parallel.batch(i)) for i in range(data_parallel.STEPS)
        ], model.state_dict()

    counted = data_parallel.Counted(backend)
    with events.recording(events.GraphBreak) as breaks:
        got = trained(lambda step: framejit.compile(step, backend=counted))
    torch.testing.assert_close(got, trained(lambda step: step))
    return counted.graphs, {event.identifier for event in breaks}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_whole_steps(ranks, backend):
    """The model, the loss, the optimizer (once without and once with momenta); Python has the
    reducer before and after the model, and backward, in which it talks."""
    assert ranks.run(_whole_steps, backend) == [(4, {"FJ0126", "FJ0117"})] * 2
