"""Backends by name: our own, those that a program registers, and those of installed packages.

In: a name, or a callable, which is its own backend. Out: the callable
``compiler_fn(gm, example_inputs) -> callable``. Packages announce backends as entry points of
the group ``torch_dynamo_backends``; the list is read late, and a package is imported only when
its backend is asked for. Next: compile.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from importlib.metadata import EntryPoint
from typing import Any, NamedTuple, TypeVar

from framejit.forks import Lock

from ..exc import UnknownBackend
from .optional import OPTIONAL, Availability, missing, optional_backends, require

CompilerFn = Callable[..., Callable[..., Any]]

ENTRY_POINT_GROUP = "torch_dynamo_backends"

#: The attribute of backends, and the option, that says whether they take graphs with regions.
REGIONS = "regions"


class _Registered(NamedTuple):
    compiler_fn: CompilerFn
    tags: tuple[str, ...]


_registered: dict[str, _Registered] = {}
_entry_points: dict[str, EntryPoint] | None = None
_lock = Lock()


def register_backend(
    compiler_fn: CompilerFn | None = None,
    name: str | None = None,
    tags: Sequence[str] = (),
) -> Any:
    """Give a backend a name, as a decorator or as a call.

    ``register_backend(name="mine", compiler_fn=f)``, ``@register_backend`` and
    ``@register_backend(name="mine", tags=("debug",))`` are all possible; the name defaults to the
    function's. Returns ``compiler_fn``. Raises TypeError for something that cannot be called,
    ValueError for a name that another backend has.
    """
    if name is not None and (not isinstance(name, str) or not name):
        raise TypeError(f"name must be a string that is not empty, not {name!r} [FJ0213]")
    if compiler_fn is None:
        return functools.partial(register_backend, name=name, tags=tags)
    if not callable(compiler_fn):
        raise TypeError(
            f"a backend must be a callable f(gm, example_inputs), not {type(compiler_fn).__name__}"
            " [FJ0213]"
        )
    if isinstance(tags, str):
        tags = (tags,)
    name = name or getattr(compiler_fn, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"a backend of type {type(compiler_fn).__name__} needs a name= [FJ0213]")
    with _lock:
        known = _registered.get(name)
        if known is not None and known.compiler_fn is not compiler_fn:
            raise ValueError(f"there is a backend called {name!r} already [FJ0213]")
        _registered[name] = _Registered(compiler_fn, tuple(tags))
    return compiler_fn


def unregister_backend(name: str) -> None:
    """Forget a registered backend. Raises UnknownBackend if there is none of that name."""
    with _lock:
        if _registered.pop(name, None) is None:
            raise _unknown(name)


class BackendNames(list[str]):
    """Names that may be passed as ``backend=``. ``missing`` are those that need another package,
    each with the line that says what to install; printing shows them, too."""

    def __init__(self, usable: Iterable[str], missing: dict[str, str]) -> None:
        super().__init__(usable)
        self.missing = missing

    def __str__(self) -> str:
        return "\n".join([", ".join(self), *self.missing.values()])


def list_backends(
    exclude_tags: Collection[str] | None = ("debug", "experimental"),
) -> BackendNames:
    """The sorted names that may be passed as ``backend=``; all of them for None or ().

    A list of strings, whose ``missing`` is a dict: what to install for the backends that could
    not be used. ``print(list_backends())`` shows both.
    """
    excluded = set(exclude_tags or ())
    with _lock:
        names = {
            name for name, backend in _registered.items() if not excluded.intersection(backend.tags)
        }
        names.update(name for name in _installed() if name not in _registered)
    lacking = {name: text for name in sorted({*names, *OPTIONAL}) if (text := missing(name))}
    return BackendNames(sorted(names - lacking.keys()), lacking)


def lookup_backend(backend: str | CompilerFn) -> CompilerFn:
    """The callable for a backend's name; a callable is returned as it is.

    Raises UnknownBackend, with close matches, for a name that nobody registered, and TypeError
    for anything else.
    """
    if not isinstance(backend, str):
        if callable(backend):
            return backend
        raise TypeError(
            "backend= takes a backend's name or a callable f(gm, example_inputs), "
            f"not {type(backend).__name__} [FJ0213]"
        )
    with _lock:
        known = _registered.get(backend)
        if known is not None:
            require(backend)
            return known.compiler_fn
        entry_point = _installed().get(backend)
    if entry_point is None:
        require(backend)
        raise _unknown(backend)
    try:
        compiler_fn = entry_point.load()
    except Exception as error:
        text = str(error).partition("\n")[0]
        raise UnknownBackend(
            f"the backend {backend!r} of an installed package ({entry_point.value}) "
            f"cannot be imported: {type(error).__name__}: {text}"
        ) from error
    if not callable(compiler_fn):
        raise TypeError(f"the backend {backend!r} ({entry_point.value}) is not callable [FJ0213]")
    with _lock:
        return _registered.setdefault(backend, _Registered(compiler_fn, ())).compiler_fn


def backend_name(backend: str | CompilerFn) -> str:
    """What messages and guards call a backend."""
    if isinstance(backend, str):
        return backend
    for name, known in _registered.items():
        if known.compiler_fn is backend:
            return name
    if isinstance(backend, functools.partial):
        return backend_name(backend.func)
    own_name = getattr(backend, "__name__", None)
    return own_name if isinstance(own_name, str) else type(backend).__name__


def configured_backend(
    backend: str | CompilerFn, mode: str | None = None, options: dict[str, Any] | None = None
) -> CompilerFn:
    """The backend with ``torch.compile``-like ``mode`` and ``options`` bound.

    A backend that has a ``configured(mode, options)`` attribute checks them now (inductor);
    others get them as keyword arguments when they are called, if any were given. The option
    ``regions`` is not theirs: it says whether the backend gets graphs with `regions`.
    """
    compiler_fn = lookup_backend(backend)
    if options and REGIONS in options:
        regions = options[REGIONS]
        if not isinstance(regions, bool):
            kind = type(regions).__name__
            raise ValueError(f"the option 'regions' is True or False, not {kind} [FJ0213]")
        rest = {name: value for name, value in options.items() if name != REGIONS}
        return _WithRegions(configured_backend(compiler_fn, mode, rest), regions)
    if mode is None and not options:
        return compiler_fn
    configure = getattr(compiler_fn, "configured", None)
    if configure is not None:
        configured: CompilerFn = configure(mode, options)
        return configured
    given = {"mode": None if mode == "default" else mode, "options": options}
    return functools.partial(compiler_fn, **{key: v for key, v in given.items() if v})


class _WithRegions:
    """A backend for which it was said whether it gets graphs with regions."""

    def __init__(self, compiler_fn: CompilerFn, regions: bool) -> None:
        self.compiler_fn = compiler_fn
        self.regions = regions
        self.__name__ = backend_name(compiler_fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        return self.compiler_fn(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiler_fn, name)  # how packages save what it compiled

    def __eq__(self, other: object) -> bool:
        alike = isinstance(other, _WithRegions) and self.regions is other.regions
        return alike and self.compiler_fn == other.compiler_fn  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.regions, self.compiler_fn))


_Function = TypeVar("_Function", bound=CompilerFn)


def taking_regions(compiler_fn: _Function) -> _Function:
    """Declare that the backend takes graphs with regions."""
    setattr(compiler_fn, REGIONS, True)
    return compiler_fn


def takes_regions(compiler_fn: CompilerFn) -> bool:
    """Does the backend take graphs in which calls of a subgraph, ``invoke_subgraph``, stand for
    repeated layers? It says so by an attribute ``regions``, or its user by an option."""
    return getattr(compiler_fn, REGIONS, False) is True


def takes_all_regions(compiler_fn: CompilerFn) -> bool:
    """Did the user ask for all regions, also for those that cost more time than they save?"""
    return type(compiler_fn) is _WithRegions and compiler_fn.regions


def takes(backend: str | CompilerFn, argument: str) -> bool:
    """Does the backend do anything with ``mode`` or ``options``?"""
    compiler_fn = lookup_backend(backend)
    if hasattr(compiler_fn, "configured"):
        return True
    try:
        parameters = inspect.signature(compiler_fn).parameters
    except (TypeError, ValueError):  # written in C
        return True
    return argument in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def doctor() -> list[Availability]:
    """Every backend that framejit knows of: its own, registered ones, those of installed packages,
    and those whose package is missing, with what to install. Sorted by name."""
    optional = {row.name: row for row in optional_backends()}
    rows = list(optional.values())
    for name in sorted({*_registered, *_installed()} - optional.keys()):
        known = _registered.get(name)
        if known is None:
            detail = f"entry point {_installed()[name].value}"
        else:
            text = (known.compiler_fn.__doc__ or "").strip().partition("\n")[0]
            detail = text or "registered by the program"
        rows.append(Availability(name, True, detail))
    return sorted(rows)


def _installed() -> dict[str, EntryPoint]:
    """Entry points by name, read once."""
    global _entry_points
    if _entry_points is None:
        # Reading the metadata of all installed packages takes tens of milliseconds: late.
        from importlib.metadata import entry_points

        _entry_points = {point.name: point for point in entry_points(group=ENTRY_POINT_GROUP)}
    return _entry_points


def _unknown(name: str) -> UnknownBackend:
    names = list_backends(None)
    close = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    guess = f" Did you mean {' or '.join(repr(match) for match in close)}?" if close else ""
    return UnknownBackend(f"there is no backend {name!r}.{guess} Known: {', '.join(names)}")
