"""Kernels for the CPU are compiled together: one command for several, and files for each."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._inductor import config, cpp_builder
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.utils import fresh_cache

import framejit
from framejit.backends import inductor_kernels, inductor_runtime


def several(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for step in range(4):  # a kernel after each product, no two alike
        x = (x @ w).sin() * (step + 1) + x.softmax(-1).sum(0)
    return x


def arguments() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(9, 9), (torch.randn(9, 9) * 0.3).requires_grad_()]


@contextlib.contextmanager
def commands(threads: int) -> Iterator[list[str]]:
    """The files that the compiler is called for, with empty caches."""
    framejit.reset()  # equal graphs that were compiled before would not be compiled again
    called: list[str] = []
    build = cpp_builder.CppBuilder.build

    def noting(builder: Any) -> None:
        name = Path(builder.get_target_file_path()).name
        if "header" not in name:  # torch's, once per process
            called.append(name)
        build(builder)

    with (
        fresh_cache(),
        config.patch(compile_threads=threads),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(cpp_builder.CppBuilder, "build", noting)
        yield called


def trained(call: Any) -> list[torch.Tensor]:
    x, w = arguments()
    result = call(x, w)
    result.square().sum().backward()
    assert w.grad is not None
    return [result.detach(), w.grad]


def kernels(called: list[str]) -> list[str]:
    return [name for name in called if ".main" in name]


def loaded(wrapper: str) -> dict[str, Any]:
    """What Inductor makes of the code around a graph."""
    scope: dict[str, Any] = {"async_compile": AsyncCompile()}
    exec(f"{wrapper}async_compile.wait(globals())", scope)
    return scope


@pytest.mark.parametrize("threads", [1, 2])
def test_one_command_for_what_one_thread_compiles(threads: int) -> None:
    with commands(threads) as called:
        got = trained(framejit.compile(several, backend="inductor"))
    torch.testing.assert_close(got, trained(several), rtol=1e-5, atol=1e-5)
    assert len([name for name in called if "together" in name]) == 2 * threads, called
    assert not kernels(called)


def test_what_does_not_compile_together_compiles_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inductor_kernels, "_HEAD", "#error together\n")
    with commands(1) as called:
        got = trained(framejit.compile(several, backend="inductor"))
    torch.testing.assert_close(got, trained(several), rtol=1e-5, atol=1e-5)
    assert len(kernels(called)) > 3


def test_kernels_with_directives_compile_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A macro of one kernel would hold for the next one."""
    header = "#include <torch/csrc/inductor/cpp_prefix.h>"
    source = f'{header}\n#define TWO 2\nextern "C" void kernel(float* a) {{ *a = TWO; }}\n'
    wrapper = "".join(
        f"{name} = async_compile.cpp_pybinding(['float*'], r'''\n{source}// {name}\n''')\n\n"
        for name in ("one", "other", "third")
    )
    with commands(1) as called:
        inductor_kernels.prepare(wrapper)
        assert len(called) == len(kernels(called)) == 3
        scope = loaded(wrapper)
        numbers = torch.zeros(1)
        scope["third"](numbers)
    assert numbers == 2 and len(kernels(called)) == 3


def test_alike_kernels_and_errors_keep_their_own_functions() -> None:
    header = "#include <torch/csrc/inductor/cpp_prefix.h>"
    bodies = ["*a = 1;", 'throw std::runtime_error("no");', "*a += helper();", "*a = 1;"]
    wrapper = "".join(
        f"k{i} = async_compile.cpp_pybinding(['float*'], '''\n{header}\n"
        f"static float helper() {{ return {i}; }}\n"
        f"extern \"C\"  void  kernel(float* a) {{ {body} }}\n''')\n\n"
        for i, body in enumerate(bodies)
    )
    with commands(1) as called:
        inductor_kernels.prepare(wrapper)
        scope = loaded(wrapper)
        numbers = torch.zeros(1)
        scope["k0"](numbers)
        scope["k2"](numbers)
        assert numbers == 3
        with pytest.raises(RuntimeError, match="no"):
            scope["k1"](numbers)
        with pytest.raises(RuntimeError, match="requires 1 args"):
            scope["k3"]()
    assert len(called) == 1


_SECOND = """
import sys
from torch._inductor import cpp_builder

build = cpp_builder.CppBuilder.build

def refuse(builder):
    name = builder.get_target_file_path()
    assert ".main" not in name and ".together" not in name, name
    build(builder)

cpp_builder.CppBuilder.build = refuse
sys.path.insert(0, {folder!r})
import framejit, torch
from test_kernels_together import several, trained

got = trained(framejit.compile(several, backend="inductor"))
torch.testing.assert_close(got, trained(several), rtol=1e-5, atol=1e-5)
print("the same")
"""


def test_another_process_finds_them() -> None:
    with commands(1) as called:
        trained(framejit.compile(several, backend="inductor"))
        assert called
        text = _SECOND.format(folder=str(Path(__file__).parent))
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", text], capture_output=True, text=True,
            env={**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1"},
        )  # fmt: skip
    assert run.stdout == "the same\n", run.stderr[-2000:]


def test_a_package_has_them_once(tmp_path: Path) -> None:
    path = tmp_path / "model.fjp"
    with commands(1):
        compiled = framejit.compile(several, backend="inductor")
        got = trained(compiled)
        compiled.save_package(path)
    before = len(inductor_runtime._libraries)
    with commands(1) as called:
        loaded = framejit.load_package(path, several, backend="inductor")
        assert all(map(torch.equal, trained(loaded), got))
    assert not called
    assert len(inductor_runtime._libraries) == before + 2  # of forward and of backward
