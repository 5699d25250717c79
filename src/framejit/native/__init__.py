"""The C++ part: guard checks, dispatch, tail calls and the frame hook.

In: guard trees (from guards/) and generated functions (from codegen/). Out: `CompiledFunction`,
whose call checks guards and runs an entry without a Python frame of its own. Imports no other room.
`_C.pyi` holds the types; the C++ files each start with what goes in and out.
"""

# torch first: the extension links to its libraries without knowing where they are.
import torch  # noqa: F401

from framejit.native._C import (
    DELETED,
    CompiledFunction,
    Entry,
    GlobalState,
    GuardReference,
    GuardTree,
    HookContext,
    TailCall,
    cached_result,
    cpu_random_state,
    current_context,
    dict_version,
    evaluate,
    has_generic_getattr,
    hook_state,
    is_run_only,
    new_object,
    resting_tracer,
    restore_cpu_random_state,
    set_attributes,
    set_auditor,
    set_context,
    set_dispatch_enabled,
    set_run_only,
    step,
    tail,
    type_version,
    with_hashes,
    write_dict,
)

__all__ = [
    "DELETED",
    "CompiledFunction",
    "Entry",
    "GlobalState",
    "GuardReference",
    "GuardTree",
    "HookContext",
    "TailCall",
    "cached_result",
    "cpu_random_state",
    "current_context",
    "dict_version",
    "evaluate",
    "has_generic_getattr",
    "hook_state",
    "is_run_only",
    "new_object",
    "resting_tracer",
    "restore_cpu_random_state",
    "set_attributes",
    "set_auditor",
    "set_context",
    "set_dispatch_enabled",
    "set_run_only",
    "step",
    "tail",
    "type_version",
    "with_hashes",
    "write_dict",
]
