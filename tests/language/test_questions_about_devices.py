"""Programs that ask which accelerators there are, with and without one."""

import contextlib

import pytest
import torch
from torch import nn

import framejit
from checking import CountingBackend, check
from framejit.values.torch import devices

CPU = torch.device("cpu")


def how_many(x):
    there = torch.cuda.is_available(), torch.accelerator.is_available(), torch.cuda.is_initialized()
    return x + torch.cuda.device_count() + torch.accelerator.device_count(), there


def what_it_can(x):
    wide = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    return x.to(wide), torch.accelerator.current_accelerator()


def what_the_processor_can(x):
    return x + torch.cpu._is_avx2_supported() + 2 * torch.cpu._is_amx_tile_supported()


@pytest.mark.parametrize("program", [how_many, what_it_can, what_the_processor_can])
def test_one_graph(program):
    check(program, torch.ones(3), graphs=1, fullgraph=True)


@pytest.mark.parametrize(
    "question",
    [torch.cuda.current_device, torch.cuda.get_device_name, torch.cuda.get_device_capability],
)
def test_what_is_raised_without_one(question):
    def program(x):
        try:
            return x + 1, question()
        except (AssertionError, RuntimeError) as error:
            return x - 1, str(error)

    check(program, torch.ones(3), graphs=1, fullgraph=True)


@pytest.mark.parametrize("program", [how_many, what_it_can])
def test_a_package_is_not_for_a_machine_with_other_devices(program, tmp_path, monkeypatch):
    compiled = framejit.compile(program, backend="eager")
    x = torch.ones(3)
    expected = compiled(x)
    compiled.save_package(tmp_path / "package")

    def loaded():
        return framejit.compile(program, backend="eager").load_package(tmp_path / "package")

    with framejit.run(strict=True):
        assert torch.equal(loaded()(x)[0], expected[0])
        monkeypatch.setattr(torch.accelerator, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "another one")
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (9, 0))
        for fact in (devices.how_many, devices.which):
            fact.cache_clear()
        try:
            with pytest.raises(framejit.exc.NothingFits):
                loaded()(x)
        finally:
            for fact in (devices.how_many, devices.which):
                fact.cache_clear()


def autocast_inside(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x
    return y, torch.get_default_device()


def device_inside(x):
    with torch.device("cpu:0"):
        inside = torch.get_default_device()
    with torch.autocast("cpu"):
        return x @ x, inside, torch.get_default_device()


@pytest.mark.parametrize("program", [autocast_inside, device_inside])
def test_blocks_of_devices(program):
    with torch.device("cpu"):
        check(program, torch.ones(3, 3), graphs=1, fullgraph=True)
        with torch.device("cpu:0"):
            check(program, torch.ones(3, 3), graphs=1, fullgraph=True)


def test_another_device_is_captured_again():
    backend = CountingBackend()
    compiled = framejit.compile(lambda x: (x + 1, torch.get_default_device()), backend=backend)
    for device in ("meta", "cpu", "meta"):
        with torch.device(device):
            assert compiled(torch.ones(2))[1].type == device
    assert len(backend.graphs) == 2


def test_a_package_made_inside_of_a_block(tmp_path):
    def program(x):
        return x + torch.ones(2), torch.zeros(1)

    compiled = framejit.compile(program, backend="eager")
    with torch.device("cpu:0"):
        expected = compiled(torch.ones(2))
    compiled.save_package(tmp_path / "package")
    loaded = framejit.compile(program, backend="eager").load_package(tmp_path / "package")
    with framejit.run(strict=True):
        with torch.device("cpu:0"):
            assert all(map(torch.equal, loaded(torch.ones(2)), expected))
        with torch.device("meta"), pytest.raises(framejit.exc.NothingFits):
            loaded(torch.ones(2))


def test_what_asks_for_overriding_methods():
    """Code of torch that would hand its own call to a mode goes on; what only asks is told."""

    def program(x):
        names = torch.overrides.has_torch_function((x,)), torch.overrides.has_torch_function(())
        return x.unflatten(0, (1, 2)), x.norm(), nn.init.zeros_(x * 2), names

    for block in (contextlib.nullcontext(), torch.device("cpu")):
        with block:
            check(program, torch.ones(2, 3, 8), graphs=1, fullgraph=True)


@pytest.mark.parametrize(("block", "ops"), [(contextlib.nullcontext(), 13), (CPU, 45)])
def test_an_encoder_inside_of_a_block(block, ops):
    """Its fast path is not for modes that handle calls of functions."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()

    def program(x, mask):
        return encoder(x + 1, src_key_padding_mask=mask) * 2

    x, mask = torch.ones(2, 4, 8), torch.arange(8).reshape(2, 4) > 5
    with torch.no_grad(), block:
        check(program, x, mask, graphs=1, fullgraph=True, ops=ops)
