"""What a ``FakeTensorMode`` has before anything asks for settings of ``torch._dynamo``.

``FakeTensorMode.__init__`` imports ``torch._dynamo``; `begin` does the part of it that needs none.
Since torch 2.14 ``torch.nested`` loads ``_internal`` when it is asked for, by name.
"""

from __future__ import annotations

import importlib
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorConverter, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

#: What only ``FakeTensorMode.__init__`` sets.
LATE = frozenset(
    {"allow_fallback_kernels", "propagate_real_tensors", "allow_scalar_outputs", "cache_enabled"}
    | {"cache_crosscheck_enabled", "_stack_trace", "_stack"}
)


def begin(mode: FakeTensorMode) -> bool:
    """Set what needs no ``torch._dynamo``. True: the settings ask for a mode that has it all."""
    TorchDispatchMode.__init__(mode)
    import torch._functorch.config as settings

    known: dict[str, Any] = {
        "fake_tensor_converter": FakeTensorConverter(),
        "static_shapes": True,
        "shape_env": None,
        "enter_stack": [],
        "in_kernel_invocation": False,
        "allow_non_fake_inputs": False,
        "allow_meta": settings.fake_tensor_allow_meta,
        "_allow_unsafe_data_ptr_access": settings.fake_tensor_allow_unsafe_data_ptr_access,
        "_mode_key": torch._C._TorchDispatchModeKey.FAKE,
    }
    tensor_id = importlib.import_module("torch.nested._internal.nested_tensor")._tensor_id_counter
    known["nt_tensor_id_counter"] = known["nt_tensor_id_initial_count"] = tensor_id
    mode.__dict__.update(known)
    return bool(settings.fake_tensor_propagate_real_tensors)
