"""Stances of ``torch.compiler.set_stance``: what calls of compiled objects do for a while.

In: the name of a stance, or a backend that is forced. Out: switches of this thread, and compilers
that work for another backend, until the stance ends. Next: options.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

from framejit import api
from framejit.callables import compilers
from framejit.forks import Lock
from framejit.regions import Region, Restore, compile_nothing_new, use_nothing_compiled
from framejit.settings import Backend, Settings

#: Is the first call of each compiled frame plain Python in this thread?
_first_calls = threading.local()
_KNOWN = (
    "default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile",
    "aot_eager_then_compile",
)  # fmt: skip


class Stance(Region):
    """``torch.compiler.set_stance``: a call, a ``with`` block, or a decorator.

    "default", "force_eager" (nothing compiled is used), "eager_on_recompile" (nothing new is
    compiled), "fail_on_recompile" (a call that nothing compiled fits raises exc.NothingFits), and
    "eager_then_compile" or "aot_eager_then_compile" (the first call of each compiled function is
    plain Python) are known. Raises ValueError for others. ``force_backend`` compiles with that
    backend, in all threads; the rest holds for the thread.
    """

    def __init__(
        self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False,
        force_backend: str | Backend | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if stance not in _KNOWN:
            known = ", ".join(map(repr, _KNOWN))
            raise ValueError(f"stance must be one of {known}, not {stance!r} [FJ0210]")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set [FJ0210]")
        self.stance = stance
        self.force_backend = force_backend
        self._settings = None if force_backend is None else Settings(backend=force_backend)
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
        restores: list[Restore] = [as_usual()]
        if self.stance == "force_eager":
            restores.append(use_nothing_compiled())
        elif self.stance in ("eager_on_recompile", "fail_on_recompile"):
            restores.append(compile_nothing_new(strict=self.stance == "fail_on_recompile"))
        elif self.stance != "default":
            _first_calls.plain = True
        if self._settings is not None:
            restores.append(_force(self._settings))

        def restore() -> None:
            for one in reversed(restores):
                one()

        return restore


def as_usual() -> Restore:
    """No stance at all, for this thread."""
    from framejit.native import set_dispatch_enabled, set_run_only

    enabled, run_only = set_dispatch_enabled(True), set_run_only(0)
    plain = first_calls_are_plain()
    _first_calls.plain = False
    unforced = _force(None)

    def restore() -> None:
        set_dispatch_enabled(enabled)
        set_run_only(run_only)
        _first_calls.plain = plain
        unforced()

    return restore


def first_calls_are_plain() -> bool:
    """Does a stance of this thread ask for that?"""
    return bool(getattr(_first_calls, "plain", False))


#: The backend that is forced, and how its compilers are given back.
_forced: list[tuple[Settings, list[Restore]]] = []
_lock = Lock()


def _force(settings: Settings | None) -> Restore:
    """Every compiled object compiles with these settings' backend, or with its own again."""
    with _lock:
        before = [one for one, _ in _forced]
        while _forced:
            for give_back in reversed(_forced.pop()[1]):
                give_back()
        if settings is not None:
            _forced.append((settings, []))
            for compiler in list(compilers):
                _take(compiler)

    def restore() -> None:
        if [one for one, _ in _forced] != before:
            _force(before[0] if before else None)

    return restore


def _take(compiler: Any) -> None:
    settings, restores = _forced[-1]
    restores.append(compiler.use_backend(settings.compiler_function(), settings.name))


def made(compiled: Any) -> None:
    """Something has just been compiled: a backend that is forced is its own, too."""
    inner = api.compiled_function_of(compiled)
    with _lock:
        if _forced and inner is not None:
            _take(inner.compiler)
