"""CUDA graphs on a GPU: warm-up, recording and replay with the real API."""

import copy

import pytest
import torch
import torch.nn.functional as F

import framejit
from framejit.backends import aot_autograd
from framejit.backends.cudagraphs import WARM_UP, Cuda, compiler_for

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


class Counting(Cuda):
    def __init__(self):
        super().__init__()
        self.warm = self.recorded = self.replayed = 0

    def warm_up(self, run):
        self.warm += 1
        return super().warm_up(run)

    def record(self, run):
        self.recorded += 1
        graph, result = super().record(run)
        replay = graph.replay

        class Replay:
            def replay(_):
                self.replayed += 1
                replay()

            kept = graph

        return Replay(), result


@pytest.fixture
def platform():
    return Counting()


def compiled_with(platform, function, **settings):
    backend = aot_autograd(fw_compiler=compiler_for(platform))
    return framejit.compile(function, backend=backend, fullgraph=True, **settings)


def randn(*shape):
    return torch.randn(*shape, device="cuda")


def test_inference(platform):
    def f(x, y):
        return torch.sin(x) @ y, x + 1

    compiled = compiled_with(platform, f)
    kept = []
    for _ in range(WARM_UP + 6):
        x, y = randn(4, 4), randn(4, 4)
        kept.append((compiled(x, y), f(x, y)))
    for got, expected in kept:
        torch.testing.assert_close(got, expected)
    assert platform.warm == WARM_UP and platform.recorded <= 3 and platform.replayed == 6


def test_writes_and_several_shapes(platform):
    def f(x, state):
        state.mul_(0.5).add_(x)
        return state.sum()

    compiled = compiled_with(platform, f, dynamic=True)
    for turn in range(WARM_UP + 3):
        for size in (3, 5):
            x, state = randn(size), randn(size)
            twin = state.clone()
            torch.testing.assert_close(compiled(x, state), f(x, twin))
            torch.testing.assert_close(state, twin)
    assert platform.replayed >= 6


def test_training(platform):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.GELU(), torch.nn.Flatten(),
        torch.nn.Linear(144, 5),
    ).cuda()  # fmt: skip
    twin = copy.deepcopy(model)
    compiled = compiled_with(platform, twin)
    optimizers = [torch.optim.AdamW(m.parameters(), 1e-3) for m in (model, twin)]
    for _ in range(12):
        x = randn(6, 3, 8, 8)
        losses = []
        for run, optimizer in zip((model, compiled), optimizers):
            optimizer.zero_grad()
            loss = F.mse_loss(run(x), torch.ones(6, 5, device="cuda"))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert platform.recorded >= 2 and platform.replayed >= 2


def test_random_numbers_are_new_in_each_replay(platform):
    compiled = compiled_with(platform, lambda x: F.dropout(x, 0.5))
    x = torch.ones(1000, device="cuda")
    results = [compiled(x) for _ in range(WARM_UP + 4)]
    assert platform.replayed == 4
    assert len({tuple(r.tolist()) for r in results}) == len(results)


def test_the_cpu_and_questions_stand_between(platform):
    def f(x, mask):
        y = torch.relu(x)
        chosen = y[mask]
        return chosen.sum() + y.sum(), (x.cpu() * 2).cuda() + 1

    compiled = compiled_with(platform, f)
    with framejit.config.patch(capture_dynamic_output_shape_ops=True):
        for _ in range(WARM_UP + 3):
            x, mask = randn(8), randn(8) > 0
            torch.testing.assert_close(compiled(x, mask), f(x, mask))
    assert platform.replayed >= 3


@pytest.mark.parametrize("settings", [dict(backend="cudagraphs"), dict(mode="reduce-overhead")])
def test_by_name(settings):
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).cuda()
    compiled = framejit.compile(model, **settings)
    for _ in range(6):
        x = randn(2, 8)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x).clone(), model(x))
