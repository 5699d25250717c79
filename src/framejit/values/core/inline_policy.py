"""Which Python code is traced through, and which is run as it is after a graph break.

In: a code object and its globals. Out: None (trace it), or the reason not to. The rule (D8): all
Python code is traced through, except modules of the standard library that deal with the outside
world or with frames, and framejit and the compiler stacks themselves. Next room: interpreter.
"""

from __future__ import annotations

import builtins
import sys
import types
from typing import Any

from framejit.exc import GraphBreak

#: Standard library modules whose Python code is ordinary computation.
_TRACED_STDLIB = frozenset(
    [
        "_collections_abc", "_weakrefset", "abc", "bisect", "collections", "contextlib", "copy",
        "copyreg", "dataclasses", "decimal", "enum", "fractions", "functools", "heapq", "inspect",
        "itertools", "keyword", "math", "numbers", "operator", "os", "reprlib",
        "statistics",
        "string", "textwrap", "types", "typing", "_py_abc", "colorsys", "queue", "cmath", "dis",
        "token", "graphlib", "pprint", "json", "weakref", "genericpath", "posixpath",
    ]
)  # fmt: skip
#: Packages that are never looked into.
_OPAQUE_PACKAGES = (
    "torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx", "torch._subclasses",
    "torch.jit", "torch.onnx", "torch.package", "torch.distributed", "torch.multiprocessing",
    "torch.utils.data", "torch._logging", "torch.profiler", "torch.export", "torch.cuda",
    "torch.serialization", "torch._tensor_str", "torch.hub", "torch.testing",
    "torch.autograd.gradcheck", "torch.autograd.forward_ad",
    "torch._library", "torch.library", "torch._ops", "torch._higher_order_ops", "torch._prims",
    "torch._refs", "torch._decomp", "torch._meta_registrations", "torch.ao", "sympy", "numpy",
)  # fmt: skip
#: Modules of framejit whose Python is what captured code calls.
_OWN = ("framejit.values.core.polyfills", "framejit.strictness")
_EXCEPTIONS = (
    "torch.distributed.distributions", "torch.fx.graph_module", *_OWN,
    "torch.cuda.amp", "torch.export._unlift", "torch.export._tree_utils", "torch.fx._pytree",
    "torch._functorch.apis", "torch._functorch.vmap", "torch._functorch.functional_call",
    "torch._higher_order_ops.associative_scan", "torch.distributed.distributed_c10d",
    "torch.distributed.device_mesh", "torch.distributed._mesh_layout", "torch.distributed._pycute",
    "torch.distributed._functional_collectives", "torch.distributed.algorithms._checkpoint",
    "torch.distributed.tensor._api", "torch.distributed.tensor._dtensor_spec",
    "torch.distributed.tensor.parallel", "torch.distributed.tensor.experimental._func_map",
    "torch.testing._internal",
)  # fmt: skip

#: Functions that torch puts around others to keep books: the free variable that holds the other.
_BOOKKEEPING = {
    "_script_if_tracing.<locals>.wrapper": "fn",
    "_disable_dynamo.<locals>.inner": "fn",
    "run_only_function.<locals>.call": "function",
    "nonstrict_trace.<locals>.wrapped": "traceable_fn",
    "wrap_dunder_call_ctx_manager.<locals>.inner": "func",
    "mark_compile_region.<locals>.wrap.<locals>.inner": "func",
    "install_generation_tagging_init.<locals>.patched_init": "init",
    "install_generation_tagging_init.<locals>.patched_setstate": "setstate",
}


def wrapped_cell(code: types.CodeType) -> int | None:
    """The position of the closure cell with the function to call instead, if there is one."""
    name = _BOOKKEEPING.get(code.co_qualname)
    return code.co_freevars.index(name) if name in code.co_freevars else None  # type: ignore[arg-type]


#: Modules whose functions torch keeps away from ``torch.compile``, but that are ordinary code.
_UNCOVERED = ("torch.optim.",)


def is_uncovered(function: Any) -> bool:
    """May this function, which torch itself marked as not to be compiled, be traced through?"""
    return str(getattr(function, "__module__", None) or "").startswith(_UNCOVERED)


_refusals: dict[types.CodeType, str | None] = {}


def refuses(code: types.CodeType, namespace: dict[str, Any]) -> str | None:
    """The reason why this code is not traced through, or None."""
    try:
        return _refusals[code]
    except KeyError:
        pass
    name = namespace.get("__name__") or ""
    reason = _refusals[code] = _refusal(str(name))
    return reason


def has_other_builtins(function: types.FunctionType) -> bool:
    """Does it look for builtins elsewhere than its globals say now? It got its own when it was
    made."""
    scope = function.__globals__.get("__builtins__", builtins)
    if type(scope) is not dict:  # programs may replace isinstance()
        scope = scope.__dict__
    return function.__builtins__ is not scope  # type: ignore[attr-defined]


def check_builtins(function: types.FunctionType | None) -> None:
    """GraphBreak if a function has others; one that is made here has not."""
    if function is not None and has_other_builtins(function):
        reason = "its builtins are not those of its globals"
        raise GraphBreak("FJ0131", f"calling {function.__qualname__}(): {reason}")


#: Why the wrapper of ``torch._disable_dynamo`` is not traced through.
KEPT_OUT = "torch keeps it out of graphs"


def is_own(module: str) -> bool:
    """Is it a module of framejit that is traced through?"""
    return module in _OWN


def _refusal(name: str) -> str | None:
    top = name.partition(".")[0]
    if name == "torch._compile":
        return KEPT_OUT
    for package in _EXCEPTIONS:
        if name.startswith(package):
            return None
    if top in sys.stdlib_module_names and top != "__main__" and top not in _TRACED_STDLIB:
        return f"the standard library module {name} is not traced through"
    for package in _OPAQUE_PACKAGES:
        if name == package or name.startswith(package + "."):
            return f"{package} is not traced through"
    if top == "framejit":
        return "framejit itself is not traced through"
    return None


def goes_on_alone(code: types.CodeType) -> bool:
    """Can its frame be left and gone on with in another one? All variables are parameters of that,
    and ``super()`` complains if there is no first parameter."""
    return code.co_argcount > 0 or "super" not in code.co_names


#: Functions that read what a text names.
_BY_TEXT = frozenset(["getattr", "globals", "hasattr", "vars"])
_IMPURE = frozenset(
    [
        "print", "input", "open", "exec", "eval", "compile", "__import__", "globals", "locals",
        "vars", "dir", "id", "breakpoint", "delattr", "setattr", "getattr", "hasattr", "next",
        "iter", "super", "__build_class__", "memoryview", "bytearray",
    ]
)  # fmt: skip


def is_pure_builtin(function: Any) -> bool:
    """C functions without effects that may be run at once on constants."""
    if type(function) is not types.BuiltinFunctionType:
        return False
    module = function.__module__
    name: str = function.__name__
    if module == "builtins":
        return getattr(builtins, name, None) is function and name not in _IMPURE
    if module in ("math", "cmath", "_operator", "_bisect", "_heapq"):
        return module not in ("_bisect", "_heapq") or name.startswith("bisect")
    if function in (str.maketrans, bytes.maketrans):
        return True
    owner = getattr(function, "__self__", None)
    return owner in (int, float, str, bytes, dict) and name in (
        "fromhex", "from_bytes", "maketrans"
    )  # fmt: skip


def is_library_of_python(name: str) -> bool:
    """A module of the standard library, or what is the module of a named tuple's ``__new__``."""
    top = name.partition(".")[0]
    known = top in sys.stdlib_module_names and top != "__main__"
    return known or top.startswith("namedtuple_")


def is_library(name: str) -> bool:
    """Code whose lines a user did not write: the standard library, torch, framejit."""
    return is_library_of_python(name) or name.partition(".")[0] in ("torch", "framejit")


def names_in(code: types.CodeType) -> frozenset[str]:
    """The globals and attributes that a code object names, with the ones inside it."""
    inner = [names_in(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


def texts_in(code: types.CodeType) -> frozenset[str]:
    """The texts in a code object that name what it reads (``getattr(obj, "name")``)."""
    reads = not _BY_TEXT.isdisjoint(code.co_names)
    own = [one for one in code.co_consts if reads and type(one) is str and one.isidentifier()]
    inner = [texts_in(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return frozenset(own).union(*inner)
