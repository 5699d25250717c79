"""Existing programs with framejit: `torch.compile` and its controls mean framejit's for a while.

In: `install`, or ``framejit run``. Out: other functions in ``torch`` and ``torch.compiler``, until
`uninstall` puts the original ones back. What was compiled stays compiled with what compiled it.
Next: cli.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.compiler

from framejit import api
from framejit.backends import list_backends
from framejit.backends.registry import takes
from framejit.regions import Region, Restore, compile_nothing_new, use_nothing_compiled
from framejit.settings import Backend

#: (the object, the attribute, what was there), while framejit is installed.
_replaced: list[tuple[Any, str, Any]] = []
_installs = 0
_backend: str | Backend | None = None
_default_backend: str | Backend = "inductor"
_lock = threading.Lock()


class Installed:
    """What `install` returns: ``with framejit.install(): ...`` uninstalls at the end."""

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *error: object) -> None:
        uninstall()


def install(backend: str | Backend | None = None) -> Installed:
    """Make ``torch.compile``, ``Module.compile`` and ``torch.compiler``'s controls use framejit.

    Call it before the program's decorators run; `uninstall` takes it back, as does the end of
    ``with framejit.install():``. Installing twice needs uninstalling twice. ``backend`` is used
    instead of whatever the program asks for. Raises exc.UnknownBackend or TypeError for a bad one.
    """
    global _installs, _backend
    if backend is not None:
        api.Settings(backend=backend)
    with _lock:
        _installs += 1
        if backend is not None:
            _backend = backend
        if _installs == 1:
            for owner, name, new in _replacements():
                _replaced.append((owner, name, getattr(owner, name)))
                setattr(owner, name, new)
    return Installed()


def uninstall() -> None:
    """Take `install` back; does nothing when it was not called."""
    global _installs, _backend
    with _lock:
        _installs = max(_installs - 1, 0)
        if _installs == 0:
            _backend = None
            _as_usual()  # a stance that the program has set ends, too
            while _replaced:
                setattr(*_replaced.pop())


def _replacements() -> list[tuple[Any, str, Any]]:
    return [
        (torch, "compile", compile_like_torch),
        (torch.compiler, "reset", api.reset),
        (torch.compiler, "disable", disable_like_torch),
        (torch.compiler, "allow_in_graph", api.allow_in_graph),
        (torch.compiler, "assume_constant_result", api.assume_constant_result),
        (torch.compiler, "list_backends", list_backends),
        (torch.compiler, "set_default_backend", set_default_backend),
        (torch.compiler, "get_default_backend", lambda: _default_backend),
        (torch.compiler, "set_stance", Stance),
        (torch.compiler, "nested_compile_region", region_like_torch),
    ]


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

    ``name``, ``recompile_limit``, ``isolate_recompiles`` (entries are never shared) and
    ``dynamic_shapes`` (``shapes_spec`` in torch 2.13; what varies is found out) are accepted
    and have no effect; so is the option ``guard_filter_fn``: no guard is ever left out.
    """
    if torch.compiler.is_exporting():
        return model
    if options is not None:
        ours = {key: value for key, value in options.items() if key not in _NO_OPTIONS}
        options = ours or None
    chosen = _backend or backend or _default_backend
    if _backend is not None or not takes(chosen, "mode"):  # they were meant for another one
        mode = None
    if _backend is not None or not takes(chosen, "options"):
        options = None

    compile_it = functools.partial(
        api.compile, fullgraph=fullgraph, dynamic=dynamic, mode=mode, options=options,
        disable=disable, backend=chosen,
    )  # fmt: skip
    if model is None:
        return lambda model: _with_steps(compile_it(model), compile_it)
    return _with_steps(compile_it(model), compile_it)


compile_like_torch.__qualname__ = "torch.compile"  # what Python says where arguments do not fit

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
        context = {"compiler": "dynamo", "dynamo_ctx": None, "original_forward": made.forward}
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


def set_default_backend(backend: str | Backend) -> None:
    """What ``torch.compile`` uses when no backend is named."""
    global _default_backend
    api.Settings(backend=backend)
    _default_backend = backend


class Stance(Region):
    """``torch.compiler.set_stance``: a call, a ``with`` block, or a decorator.

    "default", "force_eager" (nothing compiled is used), "eager_on_recompile" (nothing new is
    compiled) and "fail_on_recompile" (a call that nothing compiled fits raises exc.NothingFits) are
    known. Raises ValueError for others. It holds for the thread.
    """

    _current: threading.local = threading.local()

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
        force_backend: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if stance not in _STANCES:
            known = ", ".join(map(repr, _STANCES))
            raise ValueError(f"stance must be one of {known}, not {stance!r} [FJ0210]")
        self.stance = stance
        self._previous: Restore | None = self.start()  # the call itself sets it

    def __enter__(self) -> Stance:
        if self._previous is None:
            return super().__enter__()  # type: ignore[no-any-return]
        self._threads.__dict__.setdefault("restores", []).append(self._previous)
        self._previous = None
        return self

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self._previous is not None:  # it was meant for the function only
            self._previous()
            self._previous = None

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call

    def start(self) -> Restore:
        return _STANCES[self.stance]()


def _as_usual() -> Restore:
    from framejit.native import set_dispatch_enabled, set_run_only

    enabled, run_only = set_dispatch_enabled(True), set_run_only(0)

    def restore() -> None:
        set_dispatch_enabled(enabled)
        set_run_only(run_only)

    return restore


_STANCES: dict[str, Callable[[], Restore]] = {
    "default": _as_usual,
    "force_eager": use_nothing_compiled,
    "eager_on_recompile": compile_nothing_new,
    "fail_on_recompile": lambda: compile_nothing_new(strict=True),
    "eager_then_compile": _as_usual,
    "aot_eager_then_compile": _as_usual,
}
