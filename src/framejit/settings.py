"""The arguments of `compile` and `optimize`, checked once, each with one clear error.

In: what the user passed. Out: a `Settings` record with the backend resolved to a callable. Nothing
is imported of a backend before it compiles its first graph. Next room: api.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from framejit.backends import lookup_backend

#: Modes of the inductor backend, as in ``torch.compile``.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")

Backend = Callable[..., Callable[..., Any]]


@dataclass(frozen=True)
class Settings:
    """How to compile: everything that `compile` takes besides the thing to compile."""

    backend: str | Backend = "inductor"
    fullgraph: bool = False
    dynamic: bool | None = None
    mode: str | None = None
    options: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.backend, str) and not callable(self.backend):
            raise TypeError(
                "backend must be the name of a backend or a callable f(gm, example_inputs), "
                f"not {_a(self.backend)}"
            )
        if isinstance(self.backend, str):
            lookup_backend(self.backend)  # raises UnknownBackend
        if not isinstance(self.fullgraph, bool):
            raise TypeError(f"fullgraph must be True or False, not {self.fullgraph!r}")
        if self.dynamic is not None and not isinstance(self.dynamic, bool):
            raise TypeError(f"dynamic must be True, False or None, not {self.dynamic!r}")
        if self.mode is not None and self.options is not None:
            raise ValueError("mode and options cannot both be given")
        if self.mode is not None and self.mode not in MODES:
            names = ", ".join(map(repr, MODES))
            raise ValueError(f"mode must be one of {names}, not {self.mode!r}")
        if self.options is not None and not isinstance(self.options, Mapping):
            raise TypeError(f"options must be a dict, not {_a(self.options)}")

    @property
    def backend_name(self) -> str:
        """The name that messages and events use."""
        if isinstance(self.backend, str):
            return self.backend
        return getattr(self.backend, "__name__", type(self.backend).__name__)

    def compiler_function(self) -> Backend:
        """The backend as a callable ``f(gm, example_inputs)``, with mode and options bound."""
        function = self.backend
        if isinstance(function, str):
            function = lookup_backend(function)
        extra: dict[str, Any] = {}
        if self.mode is not None and self.mode != "default":
            extra["mode"] = self.mode
        if self.options is not None:
            extra["options"] = dict(self.options)
        return functools.partial(function, **extra) if extra else function

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for settings that may share what was compiled."""
        options = None
        if self.options is not None:
            options = tuple(sorted((name, repr(value)) for name, value in self.options.items()))
        backend = self.backend if isinstance(self.backend, str) else id(self.backend)
        return (backend, self.fullgraph, self.dynamic, self.mode, options)


def _a(value: object) -> str:
    return (
        f"{type(value).__name__} {value!r}"
        if isinstance(value, (int, str))
        else (f"an instance of {type(value).__name__}")
    )
