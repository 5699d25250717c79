"""The public functions: `compile`, `optimize`, `run`, `disable` and their like.

In: the user's functions, modules and blocks. Out: compiled objects, and blocks in which frames are
captured. This is the last room: it binds compiler, backends and directives together, and nothing
imports it but the package's front door.
"""

from __future__ import annotations

import functools
import os
import threading
import types
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import torch

from framejit import directives
from framejit.callables import (
    Compiler,
    compile_callable,
    compiled_function_of,
    compilers,
    disable_module,
    new_compiler,
    supported,
)
from framejit.native import CompiledFunction
from framejit.regions import (
    Region,
    Restore,
    compile_nothing_new,
    disabled_function,
    run_only_function,
    use_nothing_compiled,
    watch_frames,
)
from framejit.report import events, messages
from framejit.settings import Backend, Settings, checked_flag
from framejit.values.core.registry import LOOKASIDES

F = TypeVar("F", bound=Callable[..., Any])

#: Blocks that are entered again with the same backend and settings use what they compiled before.
#: The least recently used ones are forgotten.
_blocks: OrderedDict[tuple[Any, ...], tuple[Settings, Compiler]] = OrderedDict()
_BLOCK_LIMIT = 64


def compile(
    model: Any = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Backend = "inductor",
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
    background: bool = False,
    disable: bool = False,
    recompile_limit: int | None = None,
    package: str | os.PathLike[str] | None = None,
    key: bytes | None = None,
) -> Any:
    """Compile a function, method, callable or ``nn.Module``; also usable as a decorator.

    Args:
        model: What to compile. Without it, the result is a decorator.
        fullgraph: A graph break is an error (`exc.Unsupported`) instead of a continuation.
        dynamic: Whether sizes of inputs may vary: True, False, or None for static sizes first.
        backend: The name of a backend (`list_backends`), or any callable
            ``f(gm: fx.GraphModule, example_inputs: list[Tensor])`` that returns a callable.
        mode: A mode of the inductor backend, as in ``torch.compile``.
        options: Options for the backend; not together with ``mode``.
        background: No call waits for captures, which go on a little in each, or for the backend,
            which works in another process: until then calls run as plain Python. See `wait`.
        disable: Return ``model`` as it is (`load_package` accepts that, too).
        recompile_limit: How many entries each compiled frame may hold, instead of
            ``config.recompile_limit``.
        package: A file of compiled code (`load_package`). What is there and fits is used, a warning
            says why it is not; what is compiled besides is added when the process ends. Several
            objects may share a file (see also `packaged`).
        key: The secret that ``package`` is signed with; it is read only if it is.

    Returns:
        The same kind of object. A function keeps its name, signature and docstring; a module is an
        instance of its class that shares all its state with ``model``, which stays eager.

    Raises:
        TypeError, ValueError, exc.UnknownBackend: For bad arguments, which are named.
    """
    settings = Settings(
        backend=backend, fullgraph=fullgraph, dynamic=dynamic, mode=mode, options=options,
        background=background, recompile_limit=recompile_limit,
    )  # fmt: skip
    checked_flag(disable, "disable")
    if package is not None:
        messages.checked_path(package, "package")
    elif key is not None:
        raise TypeError("key is the secret of a package: give package= as well [FJ0210]")

    def compiled(model: Any) -> Any:
        made = compile_callable(_required(model), settings)
        inner = compiled_function_of(made)
        if package is not None and inner is not None:
            from framejit.package import package_file  # not needed by programs without packages

            package_file(package, key).add(inner, takes_turns=True)
        elif inner is not None and (block := packaged._innermost()) is not None:
            block._add(inner)
        return made

    if model is None:
        return lambda model: _required(model) if disable else compiled(model)
    return model if disable else compiled(model)


def _required(model: Any) -> Any:
    if model is None:
        raise TypeError(
            "model must be a function, a method, a callable or an nn.Module, not None [FJ0210]"
        )
    return model


class optimize(Region):
    """Capture every frame that runs inside a block; or, as a decorator, compile a callable.

    ``with optimize(my_backend): ...`` also captures the functions that are called in the block, at
    any depth; blocks with the same backend and settings share what was compiled, until `reset`.
    ``@optimize(my_backend)`` is `compile` with the same settings. ``nopython=True`` means
    ``fullgraph=True``.
    """

    def __init__(
        self,
        backend: str | Backend = "inductor",
        *,
        nopython: bool = False,
        dynamic: bool | None = None,
        mode: str | None = None,
        options: Mapping[str, Any] | None = None,
        disable: bool = False,
    ) -> None:
        super().__init__()
        checked_flag(nopython, "nopython")
        self.settings = Settings(
            backend=backend, fullgraph=nopython, dynamic=dynamic, mode=mode, options=options
        )
        self.disable = checked_flag(disable, "disable")

    def __call__(self, model: F) -> F:
        model = _required(model)
        return model if self.disable else compile_callable(model, self.settings)

    def start(self) -> Restore:
        if self.disable or not supported():
            return lambda: None
        return watch_frames(_block(self.settings).hook_context)


def _block(settings: Settings) -> Compiler:
    """The compiler that all blocks with these settings share."""
    key = settings.key
    found = _blocks.get(key)
    if found is None:
        # The settings are kept, so a backend's id in the key cannot be given to another object.
        found = _blocks[key] = (settings, new_compiler(settings))
        while len(_blocks) > _BLOCK_LIMIT:
            _blocks.popitem(last=False)
    _blocks.move_to_end(key)
    return found[1]


class _RunOnly(Region):
    def __init__(self, strict: bool) -> None:
        super().__init__()
        self.strict = strict

    def __call__(self, fn: Any) -> Any:
        return run(fn, strict=self.strict)

    def start(self) -> Restore:
        restores = [compile_nothing_new(self.strict)]
        if _blocks:  # what the last optimize() block compiled is used, too
            _, compiler = next(reversed(_blocks.values()))
            restores.append(watch_frames(compiler.hook_context))

        def restore() -> None:
            for one in reversed(restores):
                one()

        return restore


def run(fn: Any = None, *, strict: bool = False) -> Any:
    """Use what is compiled and compile nothing new; inputs that nothing fits run as plain Python.

    ``with run(): ...`` for a block; ``run(fn)``, ``@run`` or ``@run(strict=True)`` for a callable,
    which captured code calls as any other. With ``strict`` a call
    of a compiled object that nothing fits raises exc.NothingFits, which says why.
    """
    checked_flag(strict, "strict")
    if fn is None:
        return _RunOnly(strict)
    return _wrapped(fn, functools.partial(run_only_function, strict=strict), "run")


def disable(fn: Any = None, recursive: bool = True) -> Any:
    """Run a callable, or a block, and all it calls, as plain Python.

    ``@disable``, ``disable(fn)``, ``disable(module)``, ``with disable(): ...``. With
    ``recursive=False`` only ``fn`` itself is not captured, what it calls is (see `skip`).
    """
    if not checked_flag(recursive, "recursive"):
        return skip(fn)
    if fn is None:
        return _Disabled()
    if isinstance(fn, torch.nn.Module):
        return disable_module(fn)
    if isinstance(fn, type) and issubclass(fn, torch.nn.Module):
        fn.forward = disabled_function(fn.forward)
        return fn
    return _wrapped(fn, disabled_function, "disable")


class _Disabled(Region):
    """What ``disable()`` returns: good for ``with disable():`` and for ``@disable()``."""

    def start(self) -> Restore:
        return use_nothing_compiled()

    def __call__(self, fn: F) -> F:
        return disable(fn)


def _wrapped(fn: Any, make: Callable[[Any], Any], name: str) -> Any:
    if isinstance(fn, types.MethodType):
        return types.MethodType(make(fn.__func__), fn.__self__)
    if isinstance(fn, (type, staticmethod, classmethod)) or not callable(fn):
        raise TypeError(
            f"fn must be a function, a method or a callable, not {_a(fn)}: {name}(fn) [FJ0210]"
        )
    return make(fn)


def skip(fn: Any = None) -> Any:
    """Do not capture the frame of ``fn``; what it calls is still captured. Returns ``fn``."""
    if fn is None:
        return skip
    return _mark(fn, "skip")


def allow_in_graph(fn: Any) -> Any:
    """Put calls of ``fn`` into graphs as they are, without looking inside.

    ``fn`` (or a list of functions) must take and return tensors and constants, and must not depend
    on anything else: nothing inside it is guarded.
    """
    return _mark(fn, "allow_in_graph")


def disallow_in_graph(fn: Any) -> Any:
    """Never put calls of ``fn`` (or of a list of functions) into a graph: break there instead."""
    return _mark(fn, "disallow_in_graph")


def assume_constant_result(fn: Any) -> Any:
    """Call ``fn`` while capturing and take its result for a constant, without a guard."""
    return _mark(fn, "assume_constant_result")


def region(fn: Any = None) -> Any:
    """Say that calls of ``fn`` repeat, so that they are traced once and compiled once.

    Equal layers of a model are found without it. It is for what is smaller or called less often: a
    marked function is recorded from its first call on, and two equal calls of one operation are
    enough for a region of the compiled graph. ``torch.compiler.nested_compile_region`` means the
    same. What the function computes does not change, nor what eager calls do.

    Args:
        fn: A function, a method, an ``nn.Module`` or a class of modules (whose ``forward`` is
            meant). Without it, the result is a decorator.

    Returns:
        ``fn`` itself.

    Raises:
        TypeError: For anything else.
    """
    if fn is None:
        return region
    target: Any = fn.function if isinstance(fn, CompiledFunction) else fn
    if isinstance(target, torch.nn.Module) or _is_module_class(target):
        target = target.forward
    target = getattr(target, "__func__", target)
    if not isinstance(target, types.FunctionType):
        raise TypeError(
            "fn must be a Python function, a method, an nn.Module or a class of modules, "
            f"not {_a(fn)}: region(fn) [FJ0210]"
        )
    directives.mark_region(target)
    return fn


def _is_module_class(obj: Any) -> bool:
    return isinstance(obj, type) and issubclass(obj, torch.nn.Module)


def _mark(fn: Any, kind: str) -> Any:
    if isinstance(fn, (list, tuple)):
        return [_mark(one, kind) for one in fn]
    target = fn.__func__ if isinstance(fn, types.MethodType) else fn
    if not callable(target):
        raise TypeError(
            f"fn must be a function or a list of functions, not {_a(fn)}: {kind}(fn) [FJ0210]"
        )
    if isinstance(target, CompiledFunction):
        directives.mark(target.function, kind)
    directives.mark(target, kind)
    return fn


def _a(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    return f"an instance of {type(value).__name__}"


def graph_break(reason: str = "") -> None:
    """End the current graph here; the next one starts after it. Does nothing in eager code.

    ``reason`` is shown wherever graph breaks are explained.
    """


directives.mark(graph_break, "graph_break")


def is_compiling() -> bool:
    """True in captured code (of framejit or of ``torch.compile``), False in eager code."""
    return torch.compiler.is_compiling()


LOOKASIDES[is_compiling] = lambda space, args, kwargs: space.constant(True)


def load_package(
    path: str | os.PathLike[str],
    model: Any,
    *,
    key: bytes | None = None,
    skip_source_check: bool = False,
    **settings: Any,
) -> Any:
    """Compile ``model`` with ``settings`` (as `compile` takes them) and load a package into it.

    The same as ``compile(model, **settings).load_package(path, ...)``; without ``settings``, a
    ``model`` that is compiled already stays as it is. A package is code, and only a ``key``
    protects against forged ones. Raises exc.PackageError for a file that is damaged or was made for
    something else.
    """
    if callable(path) and isinstance(model, (str, os.PathLike)):
        raise TypeError("the path comes first: load_package(path, model) [FJ0210]")
    is_compiled = not settings and compiled_function_of(model) is not None
    made = model if is_compiled else compile(_required(model), **settings)
    inner = compiled_function_of(made)
    if inner is not None:
        inner.load_package(path, key=key, skip_source_check=skip_source_check)
    return made


class packaged:
    """Keep everything that is compiled in a block (by `compile`) in one package, at ``path``.

    ``with packaged(path): ...``: what the file holds for an object is used, as with
    ``compile(package=path)``; objects of one name are told apart by the order in which they are
    compiled. When the block ends, and again when the process ends, what was compiled besides is
    written; a block that raises writes nothing. With ``key`` the file is signed, and read only if
    it was signed with it. ``skip_source_check`` as in `load_package`. A file that does not fit is
    not used, with a warning. Raises exc.PackageError if the file cannot be written.
    """

    _blocks = threading.local()

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        key: bytes | None = None,
        skip_source_check: bool = False,
    ) -> None:
        self._path, self._key, self._skip = messages.checked_path(path), key, skip_source_check
        self._alive: list[Any] = []

    @classmethod
    def _innermost(cls) -> packaged | None:
        """The block that this thread is in."""
        entered: list[packaged] = cls._blocks.__dict__.setdefault("entered", [])
        return entered[-1] if entered else None

    def __enter__(self) -> packaged:
        from framejit.package import package_file  # not needed by programs without packages

        self._file = package_file(self._path, self._key)
        self._innermost()
        self._blocks.entered.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._blocks.entered.remove(self)
        if kind is None:
            self._file.save_news()
        else:
            for compiled in self._alive:
                self._file.forget(compiled)
        self._alive.clear()

    def _add(self, compiled: Any) -> None:
        """Take a compiled function into the package."""
        self._alive.append(compiled)  # it may be gone before the block ends
        self._file.add(compiled, self._skip)


def wait(compiled: Any = None, *, timeout: float | None = None) -> bool:
    """Wait until what ``compile(background=True)`` has begun is done.

    Args:
        compiled: A compiled object; None for all of this process.
        timeout: How many seconds to wait at most; None for as long as it takes.

    Returns:
        True when nothing is left to do, False when the time was up before.

    Raises:
        TypeError: ``compiled`` is not a compiled object.
    """
    # It needs the tables of a release, without which everything runs eagerly.
    from framejit.background.deferred import wait as wait_for_background

    if compiled is None:
        return wait_for_background(timeout=timeout)
    inner = compiled_function_of(compiled)
    if inner is None:
        raise TypeError(
            f"compiled must be what framejit.compile returned, not {_a(compiled)} [FJ0210]"
        )
    return wait_for_background(inner.compiler, timeout)


def reset() -> None:
    """Forget everything compiled, in every compiled object and every ``optimize`` block.

    Counters stay; ``counters.clear()`` starts them over.
    """
    _blocks.clear()
    for compiler in list(compilers):
        compiler.reset()
    events.clear()
    messages.forget_warnings()
