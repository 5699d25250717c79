"""The fastest backend of each graph, kept in a file, and the backend 'autotuned' that obeys it.

In: results of trials. Out: a JSON file of winners by machine and by graph, `config.winners`; a
backend that looks a graph up and compiles it with its winner or the default one. Next: report.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.fx

from framejit import config
from framejit.autotune.trial import Candidate, Result
from framejit.backends import configured_backend, register_backend
from framejit.exc import FramejitWarning, UnknownBackend, warn
from framejit.files import replacing

VERSION = 1
DEFAULT = "inductor"


class WinnersWarning(FramejitWarning):
    """A file of winners was ignored, or a winner could not be used."""


def default_path() -> Path:
    """`config.winners`, or a file in the user's cache folder."""
    if config.winners:
        return Path(config.winners)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "framejit" / "winners.json"


def machine() -> str:
    """What a measurement is true for: processor, threads, GPU, and the release of PyTorch."""
    parts = [_processor(), f"{torch.get_num_threads()} threads"]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    return ", ".join([*parts, f"torch {torch.__version__}"])


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def read(path: str | os.PathLike[str]) -> dict[str, str]:
    """Winners on this machine by graph; none if there is no such file. Raises ValueError."""
    known = _machines(Path(path)).get(machine(), {})
    return {str(key): str(winner) for key, winner in known.items()}


def _machines(path: Path) -> dict[str, dict[str, str]]:
    """The file's content by machine. Raises ValueError, OSError."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    if not isinstance(data, dict) or data.get("framejit winners") != VERSION:
        raise ValueError(f"{path} is no file of winners of this release of framejit")
    found: dict[str, dict[str, str]] = data.get("machines", {})
    return found


def keep(path: str | os.PathLike[str], results: Iterable[Result]) -> None:
    """Add winners to the file; other machines and graphs in it stay. Raises OSError."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        machines = _machines(target)
    except (OSError, ValueError):  # it is written anew
        machines = {}
    mine = machines.setdefault(machine(), {})
    mine.update({r.subgraph.key: r.winner for r in results if r.winner is not None})
    text = json.dumps({"framejit winners": VERSION, "machines": machines}, indent=1, sort_keys=True)
    with replacing(target) as file:
        file.write(f"{text}\n".encode())


class AutotunedBackend:
    """Each graph with the backend that won on this machine; see `framejit.autotune`.

    ``options`` may hold ``winners``, the path of another file, and ``default``, the backend for
    graphs without a winner ("inductor"). Raises ValueError for other options.
    """

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        options = dict(options or {})
        self.path = options.pop("winners", None)
        default = options.pop("default", DEFAULT)
        if not isinstance(self.path, (str, os.PathLike, type(None))):
            raise _bad_option("winners", self.path, "a path")
        if not isinstance(default, str):
            raise _bad_option("default", default, "the name of a backend")
        self.default = Candidate.parse(default)
        if options:
            raise ValueError(
                f"the backend 'autotuned' has no option {min(options)!r}; it has 'winners' (a "
                "path) and 'default' (a backend)"
            )
        self.__name__ = "autotuned"
        self._read: tuple[Any, dict[str, str]] = (None, {})

    def configured(self, mode: str | None, options: dict[str, Any] | None) -> AutotunedBackend:
        """The same backend with other settings."""
        if mode is not None:
            raise ValueError("the backend 'autotuned' has no modes: winners bring theirs")
        return AutotunedBackend(options)

    def __call__(
        self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any]
    ) -> Callable[..., Any]:
        winner = self.winner(gm, example_inputs)
        if winner is not None and winner != str(self.default):
            try:
                return _compile(Candidate.parse(winner), gm, example_inputs)
            except (UnknownBackend, ValueError) as error:
                warn(f"{winner} won for a graph, but cannot be used: {error}", WinnersWarning)
        return _compile(self.default, gm, example_inputs)

    def winner(self, gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> str | None:
        """What won for this graph on this machine."""
        from framejit.autotune.subgraphs import graph_key  # only programs that were tuned need it

        known = self._winners()
        key = graph_key(gm, example_inputs) if known else None
        return None if key is None else known.get(key)

    def _winners(self) -> dict[str, str]:
        """The file's content, read again when it has changed."""
        path = Path(self.path) if self.path is not None else default_path()
        try:
            stamp = (path, path.stat().st_mtime_ns)
        except OSError:
            return {}
        if self._read[0] != stamp:
            try:
                self._read = (stamp, read(path))
            except (ValueError, OSError) as error:
                warn(f"winners are ignored: {error}", WinnersWarning)
                self._read = (stamp, {})
        return self._read[1]


def _compile(chosen: Candidate, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
    return configured_backend(chosen.backend, chosen.mode)(gm, inputs)


def _bad_option(name: str, value: Any, wanted: str) -> ValueError:
    what = f"the option {name!r} of the backend 'autotuned' is {value!r}"
    return ValueError(f"{what}, a {type(value).__name__}: it must be {wanted} [FJ0213]")


autotuned = register_backend(AutotunedBackend(), name="autotuned")
