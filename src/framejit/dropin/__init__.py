"""Existing programs with framejit: `torch.compile` and its controls mean framejit's for a while.

In: `install`, or ``framejit run``. Out: other functions in ``torch``, ``torch.compiler`` and, once
the program has imported it, ``torch._dynamo``, until `uninstall` puts the original ones back. What
was compiled stays compiled with what compiled it. switches.toml says what becomes of each switch.
Next: cli.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from framejit import api, backends, config
from framejit.dropin import compiling, functions, options
from framejit.dropin.replacing import Replacements, when_imported
from framejit.dropin.stances import Stance, as_usual
from framejit.forks import Lock
from framejit.settings import Backend

_replacements = Replacements()
_installs = 0
_lock = Lock()


class Installed:
    """What `install` returns: ``with framejit.install(): ...`` uninstalls at the end."""

    def __enter__(self) -> Installed:
        return self

    def __exit__(self, *error: object) -> None:
        uninstall()


def install(
    backend: str | Backend | None = None, *, only: str | Sequence[str] | None = None
) -> Installed:
    """Make ``torch.compile``, ``Module.compile`` and ``torch.compiler``'s controls use framejit.

    Call it before the program's decorators run; `uninstall` takes it back, as does the end of
    ``with framejit.install():``. Installing twice needs uninstalling twice. ``backend`` is used
    instead of whatever the program asks for. ``only``: functions and modules of these Python
    modules and packages are compiled by framejit, all others by ``torch.compile`` itself, say those
    that a library compiles for its own use. What ``torch._dynamo`` and its options say is obeyed as
    ``framejit doctor --switches`` says. Raises exc.UnknownBackend or TypeError for bad arguments.
    """
    global _installs
    if backend is not None:
        api.Settings(backend=backend)
    names = (only,) if isinstance(only, str) else only
    if names is not None and not all(isinstance(name, str) for name in names):
        raise TypeError(f"only must be names of Python modules, not {only!r} [FJ0210]")
    with _lock:
        _installs += 1
        compiling.choose(backend, None if names is None else tuple(names))
        if _installs == 1:
            _replace()
    return Installed()


def uninstall() -> None:
    """Take `install` back; does nothing when it was not called."""
    global _installs
    with _lock:
        _installs = max(_installs - 1, 0)
        if _installs == 0:
            compiling.forget()
            as_usual()  # a stance that the program has set ends, too
            _replacements.undo()


def _replace() -> None:
    compiling.original = torch.compile
    _replacements.put(torch, {"compile": compiling.compile_like_torch})
    _replacements.put(
        torch.compiler,
        {
            "reset": api.reset,
            "disable": compiling.disable_like_torch,
            "allow_in_graph": api.allow_in_graph,
            "assume_constant_result": api.assume_constant_result,
            "list_backends": backends.list_backends,
            "set_default_backend": compiling.set_default_backend,
            "get_default_backend": compiling.get_default_backend,
            "set_stance": Stance,
            "substitute_in_graph": functions.substitute_in_graph,
            "nested_compile_region": compiling.region_like_torch,
        },
    )
    _replacements.later(config.follow(options.advice))
    adapt = functools.partial(functions.adapt, replacements=_replacements)
    _replacements.later(when_imported("torch._dynamo", adapt))
