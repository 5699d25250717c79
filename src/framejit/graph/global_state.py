"""Torch's process-wide settings that an operation's result depends on, as one interned object.

In: the state torch is in right now. Out: a `GlobalState` that is compared by identity (part of
every metadata key), can be put back later (`applied`), and says whether results may be cached.
Used by propagation, by graphs that are rolled back, and by `backends.compile`.
"""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import importlib
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch._functorch import eager_transforms
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _disable_current_modes

from framejit.native import replaced_attribute
from framejit.torchcompat import jit_tracing

_C: Any = torch._C
#: Whom operations ask by ``__torch_function__``: modes and classes, only modes, or nobody.
ENABLED = _C._TorchFunctionState.ENABLED
WITHOUT_CLASSES = _C._TorchFunctionState.SUBCLASSES_DISABLED
OFF = _C._TorchFunctionState.ALL_DISABLED
asked_functions: Callable[[], Any] = _C._get_torch_function_state
ask_functions: Callable[[Any], None] = _C._set_torch_function_state

_grad_enabled = torch.is_grad_enabled
_inference_enabled = torch.is_inference_mode_enabled
_default_dtype = torch.get_default_dtype
_autocast_enabled = torch._C._is_any_autocast_enabled
_function_modes = torch._C._len_torch_function_stack
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._functorch.peek_interpreter_stack

#: Kernel choices that change strides of results (memory formats, attention outputs).
_SWITCHES = tuple(
    getattr(torch._C, name)
    for name in (
        "_get_mkldnn_enabled",
        "_get_cudnn_enabled",
        "_get_flash_sdp_enabled",
        "_get_mem_efficient_sdp_enabled",
        "_get_math_sdp_enabled",
        "_get_cudnn_sdp_enabled",
        "_get_deterministic_algorithms",
    )
    if hasattr(torch._C, name)
)
_AUTOCAST_DEVICES = ("cpu", "cuda", "xpu", "mps", "hpu", "mtia", "maia", "privateuseone")


@dataclasses.dataclass(slots=True, eq=False)
class GlobalState:
    """One combination of settings. Made by `current` only, so equal states are one object."""

    grad: bool
    inference: bool
    default_dtype: torch.dtype
    autocast: tuple[tuple[str, bool, torch.dtype], ...]
    autocast_cache: bool
    cacheable: bool

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Run a block under these settings; what was set before is put back after it."""
        before = current()
        with contextlib.ExitStack() as stack:
            if self.inference != before.inference:
                stack.enter_context(torch.inference_mode(self.inference))
            self.set()
            try:
                yield
            finally:
                before.set()

    def set(self) -> None:
        torch._C._set_grad_enabled(self.grad)
        if torch.get_default_dtype() is not self.default_dtype:
            torch.set_default_dtype(self.default_dtype)
        if _read_autocast() != self.autocast:
            wanted = {device: (on, dtype) for device, on, dtype in self.autocast}
            for device, on, _ in _read_autocast():
                if on and device not in wanted:
                    torch.set_autocast_enabled(device, False)
            for device, (on, dtype) in wanted.items():
                torch.set_autocast_enabled(device, on)
                torch.set_autocast_dtype(device, dtype)
        if torch.is_autocast_cache_enabled() is not self.autocast_cache:
            torch.set_autocast_cache_enabled(self.autocast_cache)


class Autocast(NamedTuple):
    """All settings of autocast, those of devices for which it is off included."""

    devices: tuple[tuple[str, bool, torch.dtype], ...]
    cache: bool

    @classmethod
    def now(cls) -> Autocast:
        """What is set now."""
        devices = [
            (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
            for device in torch._C._autocast_supported_devices()
        ]
        return cls(tuple(devices), torch.is_autocast_cache_enabled())

    def off(self) -> Autocast:
        """The same, off for all devices."""
        return self._replace(devices=tuple([(one, False, dtype) for one, _, dtype in self.devices]))

    def set(self) -> None:
        """Set it again."""
        for device, on, dtype in self.devices:
            torch.set_autocast_enabled(device, on)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(self.cache)


#: What sets the state that any operation runs under -> what tells it, and how many leading
#: arguments of both select what is set.
SETTERS: dict[Any, tuple[Callable[..., Any], int]] = {
    torch._C._set_grad_enabled: (torch.is_grad_enabled, 0),
    torch.set_autocast_enabled: (torch.is_autocast_enabled, 1),
    torch.set_autocast_dtype: (torch.get_autocast_dtype, 1),
    torch.set_autocast_cache_enabled: (torch.is_autocast_cache_enabled, 0),
}

_states: dict[tuple[Any, ...], GlobalState] = {}


def current() -> GlobalState:
    """The state torch is in now; about one microsecond."""
    autocast = _read_autocast() if _autocast_enabled() else ()
    # Modes and function transforms run code of their own around every operation.
    plain = not (_function_modes() or _dispatch_modes()) and _transforms() is None
    key = (
        _grad_enabled(),
        _inference_enabled(),
        _default_dtype(),
        autocast,
        torch.is_autocast_cache_enabled(),
        plain,
        *[switch() for switch in _SWITCHES],
    )
    state = _states.get(key)
    if state is None:
        state = _states[key] = GlobalState(*key[:6])
    return state


def shared() -> tuple[Any, ...]:
    """What of the state is that of all threads."""
    return (_default_dtype(), *[switch() for switch in _SWITCHES])


@contextlib.contextmanager
def unseen(classes: bool = True) -> Iterator[None]:
    """A block in which the user's hooks on saved tensors, ``TorchDispatchMode``s and, with
    ``classes``, classes of tensors see nothing: they are called for what the program computes, not
    for what is found out about it."""
    before = torch._C._autograd._saved_tensors_hooks_set_tracing(True)
    count = _dispatch_modes()
    asked = asked_functions()
    if classes and asked == ENABLED:
        ask_functions(WITHOUT_CLASSES)
    try:
        if count:
            _unseen_modes.append(count)
            with _disable_current_modes():
                yield
        else:
            yield
    finally:
        if count:
            _unseen_modes.pop()
        torch._C._autograd._saved_tensors_hooks_set_tracing(before)
        ask_functions(asked)


_unseen_modes: list[int] = []


def dispatch_modes() -> int:
    """How many ``TorchDispatchMode``s the program is in."""
    return _dispatch_modes() + sum(_unseen_modes)


def runs_foreign_code() -> bool:
    """Does something run code of its own around every operation: a ``TorchFunctionMode`` of the
    user's, a transform of ``torch.func``, ``torch.jit.trace``? What is captured under it would be
    its business."""
    if _transforms() is not None or jit_tracing.is_tracing():
        return True
    return any(type(mode) is not DeviceContext for mode in function_modes())


#: Builtins that framejit and torch do their own work with.
_BUILTINS = {
    name: obj for name, obj in vars(builtins).items()
    if callable(obj) and not name.startswith("_")
    and name not in ("breakpoint", "copyright", "credits", "exit", "help", "input", "license",
                     "open", "print", "quit")
}  # fmt: skip


def builtins_are_replaced() -> bool:
    """Has somebody put another object in place of a builtin, say ``mock.patch``? A capture
    would run on it as well."""
    return not _BUILTINS.items() <= vars(builtins).items()


def what_is_replaced() -> str | None:
    """The same in words, or what of the classes of tensors is replaced (`tensor_class`): a capture,
    and what compiles its graph, would run on it as well."""
    return "a builtin function" if builtins_are_replaced() else replaced_attribute()


def transform_depth() -> int:
    """How many transforms of ``torch.func`` are active."""
    return int(torch._C._functorch.get_dynamic_layer_stack_depth())


def under_hooks() -> bool:
    """Are saved-tensor hooks in place?"""
    return torch._C._autograd._top_saved_tensors_default_hooks(True) is not None


def refused_hooks() -> str | None:
    """Why saved-tensor hooks are refused now, in words; None where they are not."""
    message: str | None = torch._C._autograd._saved_tensors_hooks_get_disabled_error_message()
    return message


def refuse_hooks(message: str | None) -> None:
    """Refuse saved-tensor hooks from now on, or no more."""
    if message is None:
        torch._C._autograd._saved_tensors_hooks_enable()
    else:
        torch._C._autograd._saved_tensors_hooks_disable(message)


def determinism() -> tuple[bool, bool, bool]:
    """What ``torch.use_deterministic_algorithms`` sets: for eager mode, and for Inductor."""
    inductor: Any = importlib.import_module("torch._inductor.config")
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        inductor.deterministic,
    )


def set_determinism(wanted: tuple[bool, bool, bool]) -> None:
    """Set what `determinism` says."""
    torch.use_deterministic_algorithms(wanted[0], warn_only=wanted[1])
    inductor: Any = importlib.import_module("torch._inductor.config")
    inductor.deterministic = wanted[2]


def leave_transforms(depth: int, refused: str | None) -> None:
    """Leave the transforms that a graph entered and did not leave, because it raised. ``refused``:
    what `refused_hooks` said before."""
    if transform_depth() > depth:
        torch._C._functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)
        torch._C._functorch.set_inplace_requires_grad_allowed(False)
        # Their own `finally` may have met another transform on top, and not counted them out.
        stack = torch._C._functorch.get_interpreter_stack() or ()
        forward = [one for one in stack if one.key() == torch._C._functorch.TransformType.Jvp]
        eager_transforms.JVP_NESTING = len(forward)
    if refused_hooks() != refused:
        refuse_hooks(refused)


def let_go(error: BaseException | None) -> None:
    """Empty the frames that an error has left. They may hold what puts the thread's dispatch keys
    back to what they were inside of a transform: whenever that goes, and not only now."""
    before = [getattr(torch._C, f"_dispatch_tls_local_{which}_set")() for which in
              ("include", "exclude")]  # fmt: skip
    seen = []
    with torch._C._ForceDispatchKeyGuard(*before):
        while error is not None and error not in seen:
            seen.append(error)
            traceback.clear_frames(error.__traceback__)
            error = error.__cause__ or error.__context__


def function_modes() -> list[Any]:
    """The ``TorchFunctionMode``s being executed, the innermost last."""
    return [torch._C._get_function_stack_at(index) for index in range(_function_modes())]


def default_devices() -> tuple[torch.device, ...]:
    """The devices of the ``with torch.device(...)`` blocks being executed, the innermost last."""
    return tuple([mode.device for mode in function_modes() if type(mode) is DeviceContext])


def set_default_devices(devices: tuple[torch.device, ...]) -> None:
    """Enter and leave ``with torch.device(...)`` blocks, so that these are being executed."""
    now = default_devices()
    while now[: len(devices)] != devices[: len(now)] or len(now) > len(devices):
        torch._C._pop_torch_function_stack()
        now = now[:-1]
    for device in devices[len(now) :]:
        torch._C._push_on_torch_function_stack(DeviceContext(device))


def _read_autocast() -> tuple[tuple[str, bool, torch.dtype], ...]:
    """The devices for which autocast is on, with their low-precision types."""
    if not _autocast_enabled():
        return ()
    return tuple(
        (device, True, torch.get_autocast_dtype(device))
        for device in _AUTOCAST_DEVICES
        if torch.is_autocast_enabled(device)
    )
