"""Every part of the global state is noticed, named in words, and found again when put back."""

import contextlib

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from framejit.guards.texts import state_difference
from framejit.native import GlobalState, GuardTree


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def setting(set_value, new, old):
    set_value(new)
    try:
        yield
    finally:
        set_value(old)


def now(state):
    """What differs from ``state`` now, in words."""
    return state_difference(state.export(), GlobalState().export())[1]


CHANGES = {
    "grad mode off": torch.no_grad,
    "inference mode": torch.inference_mode,
    "forward_grad 0": lambda: torch.autograd.forward_ad._set_fwd_grad_enabled(False),
    "autocast on the CPU to bfloat16": lambda: torch.autocast("cpu"),
    "autocast_dtype_cpu float16": lambda: setting(
        lambda v: torch.set_autocast_dtype("cpu", v), torch.float16, torch.bfloat16
    ),
    "autocast_dtype_cuda bfloat16": lambda: setting(
        lambda v: torch.set_autocast_dtype("cuda", v), torch.bfloat16, torch.float16
    ),
    "autocast_cache 0": lambda: setting(torch.set_autocast_cache_enabled, False, True),
    "deterministic algorithms": lambda: setting(torch.use_deterministic_algorithms, True, False),
    "default dtype float64": lambda: setting(torch.set_default_dtype, torch.float64, torch.float32),
    "torch_function_state": torch._C.DisableTorchFunctionSubclass,
    "under FunctionMode": FunctionMode,
    "1 torch dispatch mode": DispatchMode,
    "keys_excluded": lambda: torch._C._AutoDispatchBelowAutograd(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_change(name):
    state = GlobalState()
    tree = GuardTree([(-1, "slot", 0, [], -1)], state)
    assert state.check() and tree.check((1,)) == ()
    with CHANGES[name]():
        assert not state.check()
        assert name in now(state)
        assert tree.check((1,)) is None and tree.explain((1,)) == (-1, -2)
        inside = GlobalState()
        assert inside.check()
    assert state.check() and tree.check((1,)) == ()
    assert not inside.check()


def test_blocks_of_autocast_count_where_they_are_said_to():
    one, other = GlobalState(), GlobalState()
    one.require_autocast_level(0)
    again = GlobalState(*one.export()[:2])
    with torch.autocast("cpu", enabled=False):
        assert not one.check() and not again.check() and other.check()
        assert state_difference(one.export(), GlobalState().export()) == (
            "0 blocks of autocast", "1 block of autocast"
        )  # fmt: skip
        other.require_autocast_level(1)
        assert other.check()
    assert one.check() and again.check() and not other.check()
    with pytest.raises(TypeError):
        one.require_autocast_level("deep")


def test_warn_only():
    state = GlobalState()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        assert now(state) == "deterministic algorithms"
    finally:
        torch.use_deterministic_algorithms(False)


def test_modes_are_compared_by_identity():
    first, second = FunctionMode(), FunctionMode()
    with first:
        state = GlobalState()
        assert state.check()
        with second:
            assert not state.check()
    with second:
        assert not state.check()
        assert now(state) == "others: under FunctionMode, no saved-tensor hooks"
    with first:
        assert state.check()


def test_device_contexts_are_compared_by_device():
    with torch.device("meta"):
        state = GlobalState()
    with torch.device("meta"):
        assert state.check()
    with torch.device("cpu"):
        assert not state.check()


def test_form():
    with pytest.raises(TypeError):
        GlobalState(1)
    with pytest.raises(TypeError):
        GuardTree([], 3)
