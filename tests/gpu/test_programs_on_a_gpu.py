"""Programs, models and training steps on a GPU: captured, compiled, packaged, as plain Python."""

import contextlib
import copy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

import framejit
from checking import CountingBackend, check
from repeating import ALL, Regions, Stack
from small_models import MODELS, bert, resnet18
from threads import in_threads

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
from test_zoo_models import compare_inference, compare_training  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.fixture(autouse=True)
def exact():
    """Convolutions and products in full precision, as those that they are compared with."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    yield
    torch.backends.cudnn.allow_tf32 = before


def randn(*shape):
    return torch.randn(*shape, device="cuda")


def on_the_gpu(make):
    """A model of the zoo and its inputs, moved."""
    model, inputs = make()
    moved = {k: v.cuda() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
    return model.cuda(), moved


# -- programs --------------------------------------------------------------------------------------


def there_and_back(x):
    return x.cpu().add(1).cuda(non_blocking=True) * 2


def by_device(x):
    if x.is_cuda and x.device.type == "cuda" and x.device.index == 0 and x.get_device() == 0:
        return x + torch.zeros(3, device=x.device), str(x.device)
    return x - 1, ""


def made_on(x):
    with torch.device("cuda"):
        made = torch.arange(3)
    return x + made, torch.full((3,), 2.0, device="cuda:0") + x, torch.ones_like(x)


def what_there_is(x):
    if torch.cuda.is_available() and torch.cuda.device_count() > 0:
        facts = torch.cuda.get_device_name(), torch.cuda.get_device_capability(x.device)
        return x * 2, torch.cuda.is_bf16_supported(), torch.version.cuda, facts
    return x


def under_autocast(x):
    with torch.autocast("cuda", dtype=torch.bfloat16):
        y = x @ x
    with torch.amp.autocast("cuda", dtype=torch.float16):
        z = F.linear(x, x)
    return y, z, torch.is_autocast_enabled("cuda")


def numbers_of_both(x):
    return x.sum() + torch.tensor(2.0), x * torch.tensor(3), torch.where(x > 0, x, 0.0)


def a_failing_mix(x):
    return x + torch.ones(3)


def the_number_there_is(x):
    return x / torch.cuda.device_count(), torch.cuda.current_device()


@pytest.mark.parametrize(
    "program",
    [there_and_back, by_device, made_on, what_there_is, numbers_of_both, the_number_there_is],
)
def test_one_graph(program):
    check(program, randn(3), graphs=1, fullgraph=True)


def test_autocast():
    check(under_autocast, randn(3, 3), graphs=1, fullgraph=True)


def test_an_error_of_devices():
    check(a_failing_mix, randn(3), graphs=1)


def on_a_stream(x):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        y = x * 2
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    return y + 1


def with_events(x):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    y = x @ x
    end.record()
    end.synchronize()
    return y, start.elapsed_time(end) >= 0


def on_a_device(x):
    with torch.cuda.device(0):
        y = torch.ones(3, 3, device="cuda") + x
    return y, torch.cuda.get_device_name(), torch.cuda.get_device_capability()


def measured(x):
    before = torch.cuda.memory_allocated()
    y = x.new_empty(1000)
    torch.cuda.empty_cache()
    return torch.cuda.memory_allocated() > before, y.shape


def pinned(x):
    return torch.ones(3, 3).pin_memory().to("cuda", non_blocking=True) + x


@pytest.mark.parametrize(
    ("program", "graphs"),
    [(on_a_stream, 2), (with_events, 1), (on_a_device, 1), (measured, 1), (pinned, 2)],
)
def test_the_outside_world(program, graphs):
    check(program, randn(3, 3), graphs=graphs)


def test_the_same_function_on_both_devices():
    backend = CountingBackend()
    compiled = framejit.compile(lambda x: torch.sin(x) + 1, backend=backend)
    for device in ("cpu", "cuda", "cpu", "cuda"):
        x = torch.randn(3, device=device)
        assert compiled(x).device == x.device
        torch.testing.assert_close(compiled(x), torch.sin(x) + 1)
    assert len(backend.graphs) == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_random_numbers(backend):
    def f(x):
        return F.dropout(x, 0.5), torch.rand(3, device="cuda"), torch.rand(2)

    compiled = framejit.compile(f, backend=backend, fullgraph=True)
    x = torch.ones(100, device="cuda")
    for seed in range(3):
        results = []
        for run in (f, compiled):
            torch.manual_seed(seed)
            results.append((*run(x), torch.rand(1, device="cuda"), torch.rand(1)))
        torch.testing.assert_close(*results, rtol=0, atol=0)


def test_random_numbers_around_a_break():
    def f(x):
        torch.manual_seed(3)
        y = F.dropout(x, 0.5)
        torch.cuda.synchronize()
        torch.manual_seed(7)
        return y, F.dropout(x, 0.5), torch.cuda.get_rng_state()

    check(f, torch.ones(100, device="cuda"), graphs=2)


def test_two_threads_with_streams_of_their_own():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).cuda()
    compiled = framejit.compile(model, backend="eager")
    failed = []

    def work(seed):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream), torch.no_grad():
            x = torch.full((4, 8), float(seed), device="cuda")
            for _ in range(50):
                if not torch.equal(compiled(x), model(x)):
                    failed.append(seed)

    in_threads(work, range(4))
    assert not failed


# -- models ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_models(make, backend):
    compare_inference(*on_the_gpu(make), backend, 1e-3)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor", "cudagraphs"])
@pytest.mark.parametrize("make", [bert, resnet18], ids=lambda make: make.__name__)
def test_training(make, backend):
    compare_training(*on_the_gpu(make), backend, 1e-3)


def test_mixed_precision_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)).cuda()
    losses = {}
    for name in ("plain", "framejit"):
        twin = copy.deepcopy(model)
        optimizer = torch.optim.AdamW(twin.parameters(), 1e-2)
        scaler = torch.amp.GradScaler("cuda")
        run = framejit.compile(twin, backend="aot_eager") if name == "framejit" else twin
        torch.manual_seed(1)
        losses[name] = []
        for _ in range(8):
            x, y = randn(8, 16), randn(8, 4)
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.mse_loss(run(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            losses[name].append(loss.item())
    assert losses["framejit"] == pytest.approx(losses["plain"], rel=1e-2)


@pytest.mark.parametrize("name", ["aot_eager", "inductor"])
@pytest.mark.parametrize("train", [False, True])
def test_repeated_layers(name, train):
    torch.manual_seed(0)
    model = Stack(6).cuda()
    twin = copy.deepcopy(model)
    backend = Regions(name)
    compiled = framejit.compile(twin, backend=backend, fullgraph=True, options=ALL)
    for _ in range(2):
        x = randn(2, 5, 8)
        with torch.set_grad_enabled(train):
            expected, got = model(x), compiled(x)
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
        if train:
            expected.sum().backward()
            got.sum().backward()
            for one, two in zip(model.parameters(), twin.parameters(), strict=True):
                torch.testing.assert_close(two.grad, one.grad, atol=1e-3, rtol=1e-3)
    assert any(backend.calls)


def test_sizes_that_vary_through_inductor():
    backend = Regions("inductor")
    compiled = framejit.compile(lambda x: (x.softmax(-1) * x.shape[0]).sum(0), backend=backend)
    for rows in (3, 5, 7, 64, 1000):
        x = randn(rows, 9)
        torch.testing.assert_close(compiled(x), (x.softmax(-1) * rows).sum(0))
    assert len(backend.graphs) == 2


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune-no-cudagraphs"])
def test_modes_in_training(mode):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).cuda()
    twin = copy.deepcopy(model)
    compiled = framejit.compile(twin, mode=mode)
    optimizers = [torch.optim.SGD(m.parameters(), 0.1) for m in (model, twin)]
    for _ in range(8):
        x = randn(8, 16)
        losses = []
        for run, optimizer in zip((model, compiled), optimizers):
            optimizer.zero_grad()
            loss = run(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_decoding_with_a_cache_and_cuda_graphs():
    """The cache is written in place, its address stays, the position changes."""

    class Step(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("cache", torch.zeros(16, 8))
            self.linear = nn.Linear(8, 8)

        def forward(self, x, position):
            self.cache.index_copy_(0, position, self.linear(x))
            return self.cache.sum(0)

    model = Step().cuda().requires_grad_(False)
    twin = copy.deepcopy(model)
    compiled = framejit.compile(twin, mode="reduce-overhead")
    kept = []
    for at in range(12):
        x, position = randn(1, 8), torch.tensor([at], device="cuda")
        kept.append((compiled(x, position), model(x, position)))
    for got, expected in kept:
        torch.testing.assert_close(got, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(twin.cache, model.cache, atol=1e-4, rtol=1e-4)


PROGRAM = """
    import sys
    import framejit, torch
    torch.manual_seed(0)
    layers = torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2)
    model = torch.nn.Sequential(*layers).cuda()
    x = torch.linspace(-1, 1, 12, device="cuda").reshape(3, 4)
    compiled = framejit.compile(model)
    if sys.argv[1] == "load":
        compiled.load_package(sys.argv[2])
    with torch.no_grad(), framejit.run(strict=True) if sys.argv[1] == "load" else torch.no_grad():
        torch.testing.assert_close(compiled(x), model(x))
    if sys.argv[1] == "save":
        compiled.save_package(sys.argv[2])
"""


def test_a_package_in_a_second_process(tmp_path):
    path = tmp_path / "model.package"
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    for action in ("save", "load"):
        done = subprocess.run(
            [sys.executable, str(program), action, str(path)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert path.exists()


@contextlib.contextmanager
def default_device(name):
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


def test_a_default_device():
    def f(x):
        return x + torch.ones(3), torch.arange(3), torch.tensor([1.0])

    with default_device("cuda"):
        check(f, torch.ones(3), graphs=1, fullgraph=True)


# -- what behaves otherwise than on a CPU ----------------------------------------------------------


def _with_dropout(block, x):
    return F.dropout(F.gelu(block(x)), 0.5)


class Checkpointed(nn.Module):
    """Its blocks are computed again in backward, with the same random numbers."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(_with_dropout, block, x, use_reentrant=False)
        return x


class Recurrent(nn.Module):
    def __init__(self, cls):
        super().__init__()
        self.inner = cls(8, 8, num_layers=2, batch_first=True)

    def forward(self, x):
        return self.inner(x)[0]


class Attention(nn.Module):
    """Kernels for attention give results whose strides depend on the kernel."""

    def __init__(self, causal):
        super().__init__()
        self.causal, self.qkv = causal, nn.Linear(64, 192)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 4, 16)).transpose(1, 3).unbind(2)
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


def picture_layers():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.MaxPool2d(2)).to(
        memory_format=torch.channels_last
    )


LAYERS = {
    "checkpoint": (Checkpointed, (4, 8)),
    "LSTM": (lambda: Recurrent(nn.LSTM), (4, 5, 8)),
    "GRU": (lambda: Recurrent(nn.GRU), (4, 5, 8)),
    "attention": (lambda: Attention(False), (2, 32, 64)),
    "causal attention": (lambda: Attention(True), (2, 32, 64)),
    "half attention": (lambda: Attention(True).half(), (2, 32, 64)),
    "bfloat16 attention": (lambda: Attention(False).bfloat16(), (2, 32, 64)),
    "encoder": (lambda: nn.TransformerEncoderLayer(64, 4, 64, 0.0, batch_first=True), (2, 5, 64)),
    "channels last": (picture_layers, (2, 3, 16, 16)),
    "embedding": (lambda: nn.Sequential(nn.Linear(8, 8), nn.InstanceNorm1d(4)), (2, 4, 8)),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, backend):
    make, shape = LAYERS[name]
    torch.manual_seed(0)
    model = make().cuda()
    twin = copy.deepcopy(model)
    compiled = framejit.compile(twin, backend=backend)
    dtype = next(model.parameters()).dtype
    for train in (True, False, True):
        x = randn(*shape).to(dtype)
        results = []
        for owner, run in ((model.train(train), model), (twin.train(train), compiled)):
            torch.manual_seed(1)
            owner.zero_grad()
            with torch.set_grad_enabled(train):
                result = run(x)
                if train:
                    result.float().square().sum().backward()
            results.append((result, [p.grad for p in owner.parameters()]))
        (one, gradients), (two, others) = results
        assert one.stride() == two.stride() and one.dtype == two.dtype
        tolerance = dict.fromkeys(("atol", "rtol"), 1e-4 if dtype == torch.float32 else 1e-2)
        torch.testing.assert_close(two, one, **tolerance)
        torch.testing.assert_close(others, gradients, **tolerance)


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"foreach": False}, {"capturable": True}])
def test_an_optimizer_step(options):
    torch.manual_seed(0)
    models = [nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).cuda()]
    models.append(copy.deepcopy(models[0]))
    optimizers = [torch.optim.AdamW(m.parameters(), 1e-2, **options) for m in models]

    def step(optimizer, model, x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return norm

    compiled = framejit.compile(step, backend="eager")
    for _ in range(4):
        x = randn(3, 4)
        norms = [run(o, m, x) for run, o, m in zip((step, compiled), optimizers, models)]
        torch.testing.assert_close(*norms)
        for one, two in zip(*(m.parameters() for m in models), strict=True):
            torch.testing.assert_close(two, one)


def test_generators():
    def f(x, generator):
        drawn = torch.rand(3, generator=generator, device="cuda")
        return drawn + x, x.bernoulli(generator=generator)

    compiled = framejit.compile(f, backend="eager")
    x = torch.full((3,), 0.5, device="cuda")
    generators = [torch.Generator("cuda").manual_seed(5) for _ in range(2)]
    for _ in range(3):
        torch.testing.assert_close(f(x, generators[0]), compiled(x, generators[1]), rtol=0, atol=0)


def test_a_kernel_of_the_users():
    pytest.importorskip("triton")
    from doubling_kernel import doubled

    def f(x):
        result = torch.empty_like(x)
        doubled[(1,)](x + 1, result, x.numel(), SIZE=16)
        return result * 3

    check(f, randn(10), graphs=2)


def test_a_program_inside_a_graph_of_the_users():
    """`torch.cuda.graph` around a compiled function: it is recorded as plain Python would be."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).cuda().eval()
    compiled = framejit.compile(model, backend="eager")
    held = randn(4, 8)
    with torch.no_grad():
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(3):
                compiled(held)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = compiled(held)
        for _ in range(3):
            held.copy_(randn(4, 8))
            graph.replay()
            torch.testing.assert_close(result, model(held))


def test_errors_of_memory():
    def f(x):
        return x.new_empty(1 << 50), x + 1

    compiled = framejit.compile(f, backend="eager")
    for run in (f, compiled, compiled):
        with pytest.raises(torch.OutOfMemoryError):
            run(torch.ones(2, device="cuda"))


def test_the_fastest_backend(tmp_path):
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)).cuda().eval()
    x = randn(8, 64)
    with framejit.record(str(tmp_path)), torch.no_grad():
        framejit.compile(model, backend="eager")(x)
    command = [sys.executable, "-m", "framejit", "autotune", str(tmp_path)]
    command += ["--backends", "inductor,cudagraphs,ts", "--repeats", "2"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "cudagraphs" in done.stdout
    print(done.stdout)
