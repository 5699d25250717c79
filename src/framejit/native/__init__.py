"""The C++ part: guard checks, dispatch, tail calls and the frame hook.

In: guard trees (from guards/) and generated functions (from codegen/). Out: `CompiledFunction`,
whose call checks guards and runs an entry without a Python frame of its own. Raises
`OtherBuild` with a torch or a Python that it was not built for. `_C.pyi` holds the types; the C++
files each start with what goes in and out.
"""

import importlib
from pathlib import Path

# torch first: the extension links to its libraries without knowing where they are.
import torch

from framejit.torchcompat.releases import OtherBuild, missing_build

try:
    importlib.import_module("framejit.native._C")
except ModuleNotFoundError:
    raise missing_build(Path(__file__).parent) from None
except ImportError as error:  # it says so, or has symbols that this torch does not have
    raise OtherBuild(f"{error} (torch {torch.__version__} is installed)") from error

from framejit.native._C import (
    CHECKS,
    DELETED,
    CompiledFunction,
    Entry,
    GlobalState,
    GuardReference,
    GuardTree,
    HookContext,
    TailCall,
    bound_method,
    c_attribute,
    cached_result,
    call_handed,
    cpu_random_state,
    current_context,
    evaluate,
    exchange_handler,
    has_generic_getattr,
    hook_state,
    is_plain_leaf,
    is_run_only,
    link_results,
    new_object,
    quiet_hooks,
    replaced_attribute,
    resting_tracer,
    restore_cpu_random_state,
    result_layout,
    set_attributes,
    set_auditor,
    set_context,
    set_dispatch_enabled,
    set_run_only,
    set_unseen_files,
    step,
    supports_weakrefs,
    tail,
    type_version,
    watch_attributes,
    with_hashes,
    write_dict,
)

__all__ = [
    "CHECKS",
    "DELETED",
    "CompiledFunction",
    "Entry",
    "GlobalState",
    "GuardReference",
    "GuardTree",
    "HookContext",
    "TailCall",
    "bound_method",
    "c_attribute",
    "cached_result",
    "call_handed",
    "cpu_random_state",
    "current_context",
    "evaluate",
    "exchange_handler",
    "has_generic_getattr",
    "hook_state",
    "is_plain_leaf",
    "is_run_only",
    "link_results",
    "new_object",
    "quiet_hooks",
    "replaced_attribute",
    "resting_tracer",
    "restore_cpu_random_state",
    "result_layout",
    "set_attributes",
    "set_auditor",
    "set_context",
    "set_dispatch_enabled",
    "set_run_only",
    "set_unseen_files",
    "step",
    "supports_weakrefs",
    "tail",
    "type_version",
    "watch_attributes",
    "with_hashes",
    "write_dict",
]
