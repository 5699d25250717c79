"""The arguments of `compile` and `optimize`, checked once, each with one clear error.

In: what the user passed. Out: a `Settings` record that gives the backend as a callable. Nothing of
a backend is imported before it compiles its first graph. Next room: api.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from framejit.backends import configured_backend, lookup_backend
from framejit.backends.inductor import MODES
from framejit.backends.registry import REGIONS, backend_name, takes

Backend = Callable[..., Callable[..., Any]]


@dataclass(frozen=True)
class Settings:
    """How to compile: everything that `compile` takes besides the thing to compile.

    Raises TypeError, ValueError or exc.UnknownBackend for a bad argument, and names it.
    """

    backend: str | Backend = "inductor"
    fullgraph: bool = False
    dynamic: bool | None = None
    mode: str | None = None
    options: Mapping[str, Any] | None = None
    #: Are graphs compiled in another process, while calls run them as they are?
    background: bool = False
    recompile_limit: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.backend, str):
            lookup_backend(self.backend)  # raises UnknownBackend
        elif not callable(self.backend):
            raise TypeError(
                "backend must be the name of a backend or a callable f(gm, example_inputs), "
                f"not {_a(self.backend)} [FJ0210]"
            )
        checked_flag(self.fullgraph, "fullgraph")
        if self.dynamic is not None and not isinstance(self.dynamic, bool):
            raise TypeError(f"dynamic must be True, False or None, not {_a(self.dynamic)} [FJ0210]")
        if self.options is not None and not isinstance(self.options, Mapping):
            raise TypeError(f"options must be a dict, not {_a(self.options)} [FJ0210]")
        limit = self.recompile_limit
        if limit is not None and (type(limit) is not int or limit < 1):
            raise TypeError(f"recompile_limit must be a number from 1 on, not {_a(limit)} [FJ0210]")
        if self.mode is not None and self.options is not None:
            raise ValueError("mode and options cannot both be given [FJ0210]")
        if self.mode is not None and self.backend == "inductor" and self.mode not in MODES:
            names = ", ".join(map(repr, MODES))
            raise ValueError(f"mode must be one of {names}, not {self.mode!r} [FJ0210]")
        if checked_flag(self.background, "background"):
            self._check_background()
        for argument in ("mode", "options"):
            given = getattr(self, argument)
            if argument == "options" and given is not None:
                given = {name: value for name, value in given.items() if name != REGIONS}
            if given not in (None, "default", {}) and not takes(self.backend, argument):
                raise ValueError(
                    f"{argument} does nothing with backend {self.name!r}, which takes none: leave "
                    "it out [FJ0210]"
                )

    def _check_background(self) -> None:
        """Another process must know the backend, and its results must find the way here."""
        function = lookup_backend(self.backend) if isinstance(self.backend, str) else None
        if not hasattr(function, "deserialize"):
            raise ValueError(
                "background=True needs the name of a backend whose results can be given to another "
                f"process, such as 'inductor', not {self.name!r} [FJ0210]"
            )

    @property
    def name(self) -> str:
        """The backend's name for messages and events."""
        return backend_name(self.backend)

    def compiler_function(self) -> Backend:
        """The backend as a callable ``f(gm, example_inputs)``, with mode and options bound."""
        options = None if self.options is None else dict(self.options)
        return configured_backend(self.backend, self.mode, options)

    @property
    def stable(self) -> dict[str, Any]:
        """The same in every process: what a package notes of how it was compiled."""
        options = sorted((name, repr(value)) for name, value in (self.options or {}).items())
        return {
            "backend": self.name, "fullgraph": self.fullgraph, "dynamic": self.dynamic,
            "mode": self.mode, "options": [list(pair) for pair in options],
        }  # fmt: skip

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for settings that may share what was compiled."""
        options = None
        if self.options is not None:
            options = tuple(sorted((name, repr(value)) for name, value in self.options.items()))
        backend = self.backend if isinstance(self.backend, str) else id(self.backend)
        shared = self.background, self.recompile_limit
        return (backend, self.fullgraph, self.dynamic, self.mode, options, *shared)


def checked_flag(value: object, name: str) -> bool:
    """``value``, which has to be True or False. Raises TypeError."""
    if not isinstance(value, bool):
        raise TypeError(f"{name} must be True or False, not {_a(value)} [FJ0210]")
    return value


def _a(value: object) -> str:
    if isinstance(value, (int, str)):
        return f"{type(value).__name__} {value!r}"
    return f"an instance of {type(value).__name__}"
