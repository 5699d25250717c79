"""`framejit.compile` and its like with the signatures of ``torch.compile`` and its controls.

In: what a program passes to ``torch.compile``. Out: compiled objects that look to the program like
those that ``torch.compile`` makes. Next: functions.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.compiler

from framejit import api
from framejit.backends.registry import takes
from framejit.callables import original_module
from framejit.dropin import modules, stances
from framejit.dropin.table import switches
from framejit.report import messages
from framejit.settings import Backend

#: What is used instead of whatever the program asks for, if anything is.
_backend: str | Backend | None = None
#: The Python modules whose functions are meant, if not all are.
_only: tuple[str, ...] | None = None
_default_backend: str | Backend = "inductor"
#: ``torch.compile`` itself.
original: Callable[..., Any] = torch.compile


class _Calls(threading.local):
    """Is ``torch.compile`` itself running in this thread?"""

    own: bool = False


_calls = _Calls()


def is_torchs_own_call() -> bool:
    """Does ``torch.compile`` itself ask, not the program?"""
    return _calls.own


def _by_torch(model: Any, given: Mapping[str, Any]) -> Any:
    """What ``torch.compile`` itself makes of it."""
    _calls.own = True
    try:
        return original(model, **given)
    finally:
        _calls.own = False


def choose(backend: str | Backend | None, only: tuple[str, ...] | None) -> None:
    """Compile for this backend, and what these modules define; None changes nothing."""
    global _backend, _only
    _backend = backend if backend is not None else _backend
    _only = only if only is not None else _only


def forget() -> None:
    """Nothing is chosen any more."""
    global _backend, _only
    _backend = _only = None


def _is_meant(model: Any) -> bool:
    if _only is None:
        return True
    defined = type(model) if isinstance(model, torch.nn.Module) else model
    name = str(getattr(defined, "__module__", None) or type(model).__module__)
    return any(name == one or name.startswith(one + ".") for one in _only)


def compile_like_torch(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Backend | None = None,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
    dynamic_shapes: Any = None,
) -> Any:
    """`framejit.compile` with the signature of ``torch.compile``.

    ``name`` and ``isolate_recompiles`` (entries are never shared) are accepted and have no effect.
    So are ``dynamic_shapes`` (``shapes_spec`` in torch 2.13), as what varies is found out, and the
    option ``guard_filter_fn``, as no guard is ever left out: a warning says so once.
    """
    if torch.compiler.is_exporting():
        return model
    given: dict[str, Any] = {"fullgraph": fullgraph, "dynamic": dynamic, "backend": backend,
                             "mode": mode, "options": options, "disable": disable}  # fmt: skip
    if shapes_spec is not None or dynamic_shapes is not None:
        _say("dynamic_shapes=, shapes_spec=")
    if options is not None:
        if "guard_filter_fn" in options:
            _say('options={"guard_filter_fn": ...}')
        ours = {key: value for key, value in options.items() if key not in _NO_OPTIONS}
        options = ours or None
    chosen = _backend or backend or _default_backend
    if _backend is not None or not takes(chosen, "mode"):  # they were meant for another one
        mode = None
    if _backend is not None or not takes(chosen, "options"):
        options = None
    if recompile_limit is not None:
        given["recompile_limit"] = recompile_limit

    def compile_it(model: Any) -> Any:
        if not _is_meant(model):
            return _by_torch(model, given)
        made = api.compile(
            model, fullgraph=fullgraph, dynamic=dynamic, mode=mode, options=options,
            disable=disable, backend=chosen, recompile_limit=recompile_limit,
        )  # fmt: skip
        stances.made(made)
        return modules.known_to_programs(_with_steps(made, compile_it), model)

    return compile_it if model is None else compile_it(model)


compile_like_torch.__qualname__ = "torch.compile"  # what Python says where arguments do not fit


def _say(switch: str) -> None:
    """An argument that has no effect; once."""
    messages.warn_switch(f"torch.compile({switch})", switches()[switch].does)


#: What Lightning's Trainer calls.
_STEPS = ("training_step", "validation_step", "test_step", "predict_step")


def _with_steps(made: Any, compile_it: Callable[[Any], Any]) -> Any:
    """A LightningModule whose steps are compiled, too: the Trainer calls these, not the module.

    Lightning does the same with what PyTorch's ``torch.compile`` returns; its ``to_uncompiled``
    finds the originals where it looks for them.
    """
    libraries = [sys.modules.get(name) for name in ("lightning.pytorch", "pytorch_lightning")]
    classes = tuple(library.LightningModule for library in libraries if library is not None)
    if isinstance(made, classes):
        original = original_module(made).forward
        context = {"compiler": "dynamo", "dynamo_ctx": None, "original_forward": original}
        for name in _STEPS:
            step = context[f"original_{name}"] = getattr(made, name)
            setattr(made, name, compile_it(step))
        made._compiler_ctx = context
    return made


#: Options of torch.compile that are no options of the backend.
_NO_OPTIONS = frozenset(["guard_filter_fn", "use_aoti"])


def disable_like_torch(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """`framejit.disable` with the signature of ``torch.compiler.disable``."""
    if fn is None:
        return lambda fn: disable_like_torch(fn, recursive, reason=reason)
    made = api.disable(fn, recursive)
    if recursive and callable(made) and not isinstance(made, (type, torch.nn.Module)):
        getattr(made, "__func__", made)._torchdynamo_disable = True  # torch.compile obeys it, too
    return made


def region_like_torch(
    fn: Any = None,
    *,
    options: Any = None,
    max_reuse_entries: int = 8,
    reuse_hash_fn: Any = None,
) -> Any:
    """`framejit.region` with the signature of ``torch.compiler.nested_compile_region``.

    The options have no effect: what a region relies on is found out, and checked at each call.
    """
    return api.region(fn)


def get_default_backend() -> str | Backend:
    """What ``torch.compile`` uses when no backend is named."""
    return _default_backend


def set_default_backend(backend: str | Backend) -> None:
    """What ``torch.compile`` uses when no backend is named."""
    global _default_backend
    api.Settings(backend=backend)
    _default_backend = backend
