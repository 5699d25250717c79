"""Records a program's graphs: what it gives to its backends is saved, to be looked at again later.

In: the graphs that are compiled, or captured from plain Python, in a ``with record(folder):``
block. Out: the files of `subgraphs`. Next: subgraphs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.fx

from framejit.backends.compile import watching
from framejit.backends.context import preserved_state
from framejit.callables import new_compiler, supported
from framejit.exc import FramejitWarning, warn
from framejit.graph.errors import begins_at
from framejit.graph.fakes import isolated
from framejit.regions import watch_frames
from framejit.report.messages import checked_path
from framejit.settings import Settings


class RecordingWarning(FramejitWarning):
    """Some graphs could not be saved."""


class Recording:
    """What a `record` block has saved so far: ``saved`` are paths, ``left_out`` are reasons."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.saved: list[Path] = []
        self.left_out: list[str] = []

    def add(self, gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
        """Save one graph, unless the folder has it already."""
        from . import subgraphs  # only programs that record need it

        settings = subgraphs.current_settings()
        try:
            with preserved_state(), isolated(), torch.no_grad():
                path = subgraphs.save(self.folder, gm, inputs, settings)
        except subgraphs.Unsaveable as problem:
            line = begins_at(gm) or "a graph"
            self.left_out.append(f"{line}: it refers to {problem}")
        else:
            if path not in self.saved:
                self.saved.append(path)


@contextlib.contextmanager
def record(folder: str | os.PathLike[str]) -> Iterator[Recording]:
    """Save every graph of what runs in this block, with its inputs, as files in ``folder``.

    Plain functions and modules are captured and run with PyTorch's own operators; what
    `framejit.compile` made is saved when it is compiled, so call it here for the first time (or
    after `framejit.reset`). The folder is made if it does not exist; graphs that are in it already
    are not saved twice. Yields a `Recording`; a warning names the graphs that could not be saved.
    """
    made = Recording(Path(checked_path(folder, "folder")))
    made.folder.mkdir(parents=True, exist_ok=True)
    with watching(made.add):
        restore = (
            (lambda: None)
            if not supported()
            else watch_frames(new_compiler(Settings(backend="eager")).hook_context)
        )
        try:
            yield made
        finally:
            restore()
    if made.left_out:
        text = "; ".join(made.left_out[:3])
        count = len(made.left_out)
        warn(f"{count} graphs were not saved: {text}", RecordingWarning)
