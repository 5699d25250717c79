"""What a program asks about the accelerators of this machine, and where tensors are made.

In: calls of the questions of `torch.cuda`, `torch.accelerator` and `torch.cpu`, and those for the
blocks of ``with torch.device(...)`` and the like. Out: constants, with a guard on what the answer
depends on, so that a package says nothing untrue on another machine: the accelerators that there
are, and the current one where there are several; what the CPU can do. Of blocks, their objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils._device import DeviceContext

from framejit.exc import GraphBreak
from framejit.graph import instalments
from framejit.graph.global_state import function_modes, set_default_devices
from framejit.values.core.base import Args, Kwargs, Value
from framejit.values.core.constants import ConstantValue, fold, guard_state
from framejit.values.core.registry import LOOKASIDES, Result
from framejit.values.core.space import Space


@functools.cache
def how_many() -> tuple[bool, int]:
    """Whether torch can use a GPU, and the number of accelerators; it starts none."""
    return torch.cuda.is_available(), torch.accelerator.device_count()


@functools.cache
def which() -> tuple[tuple[str, tuple[int, int]], ...]:
    """Name and capability of every GPU."""
    return tuple(
        (torch.cuda.get_device_name(index), torch.cuda.get_device_capability(index))
        for index in range(torch.cuda.device_count())
    )


@functools.cache
def processor() -> tuple[tuple[str, Any], ...]:
    """What the CPU can do."""
    return tuple(sorted(torch.cpu.get_capabilities().items()))


def _answers(question: Callable[..., Any], assumed: Callable[[], Any]) -> None:
    """Answer ``question`` now, and assume that ``assumed`` stays what it is."""

    def handler(space: Space, args: Args, kwargs: Kwargs) -> Value:
        answer = fold(space, question, args, kwargs, question.__name__)  # raises what eager raises
        guard_state(space, question.__name__, assumed, assumed())
        if assumed is which and torch.cuda.device_count() > 1:  # of which the current one is asked
            current = torch.cuda.current_device
            instalments.apart("which device is the current one")
            guard_state(space, current.__name__, current, current())
        return answer

    LOOKASIDES[question] = handler


_QUESTIONS: dict[Callable[..., Any], Callable[[], Any]] = {
    **dict.fromkeys(
        (
            torch.cuda.is_available, torch.cuda.device_count, torch.accelerator.is_available,
            torch.accelerator.device_count, torch.accelerator.current_accelerator,
            torch._C._get_accelerator,
        ),
        how_many,
    ),
    torch.cuda.is_bf16_supported: which,
    torch.cuda.get_device_capability: which,
    torch.cuda.get_device_name: which,
    torch.cuda.current_device: torch.cuda.current_device,
    torch.accelerator.current_device_index: torch.accelerator.current_device_index,
    torch.cuda.is_initialized: torch.cuda.is_initialized,
    torch.cuda.is_current_stream_capturing: torch.cuda.is_current_stream_capturing,
    **{
        found: processor for name, found in vars(torch.cpu).items()
        if name.startswith("_is_") and name.endswith("_supported")
    },
}  # fmt: skip
for _question, _assumed in _QUESTIONS.items():
    _answers(_question, _assumed)


class _ModeAt(NamedTuple):
    """One of the ``TorchFunctionMode``s being executed, counted from the outermost."""

    position: int

    def __repr__(self) -> str:
        return f"torch function mode {self.position} of "

    def __call__(self, _: Any) -> Any:
        return torch._C._get_function_stack_at(self.position)


def device_block(space: Space, index: int) -> Result:
    """The object of a ``with torch.device(...)`` block, counted from the outermost mode."""
    modes = function_modes()
    if not space.effects.has_set(set_default_devices):
        source = space.const_source(torch, "torch").child("call", _ModeAt(index))
        return space.load(source, modes[index])
    if type(modes[index]) is not DeviceContext:
        raise GraphBreak("FJ0124", "a torch function mode inside of another device")
    # Perhaps the program's own block, in whose place capturing has put another object.
    return space.call(space.class_value(DeviceContext), [ConstantValue(modes[index].device)], {})
