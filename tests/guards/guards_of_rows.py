"""``python tests/guards/guards_of_rows.py`` writes ``guards_of_rows.txt``: what each row of the
soundness table is guarded on, and what its change makes of that.

A section per row, or for several whose guards are the same: the names of the rows, then ``frame:
its function`` and a guard a line, in the order in which they are checked. What a change adds to
that or takes away follows with ``+`` and ``-``; of continuations that it adds, the name.
With ``--differing``, on another release of CPython, a file of the sections that differ there.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parents[1]))

import soundness_arguments  # noqa: F401 - its rows
import soundness_contents  # noqa: F401
import soundness_identity  # noqa: F401
import soundness_modules  # noqa: F401
import soundness_objects  # noqa: F401
import soundness_state  # noqa: F401
import soundness_training  # noqa: F401
import torch
from soundness import ROWS, Row, World, _call
from torch.utils.hooks import RemovableHandle

import framejit
from framejit.torchcompat import jit_tracing

FILE = Path(__file__).with_suffix(".txt")
#: The sections that are otherwise on this release of CPython: offsets of instructions, and what
#: classes have, differ. Not there for the release that ``FILE`` is made on.
OWN_FILE = FILE.with_suffix(f".{sys.implementation.cache_tag}.txt")
#: Said by every entry.
_USUAL = ("backend ", "torch GLOBAL_STATE grad mode on, default dtype float32\n")
_TRACING = frozenset(function.__name__ for function in jit_tracing.QUESTIONS)
_PLACE = re.compile(r"(\.py):\d+")
#: What the profiler's classes have for their own use, which differs by release as well.
_PRIVATE = re.compile(r"^(class torch\.autograd\.profiler\.(?:\w+\.)+)_(?!_)\w+$")


def guards_of(row: Row) -> tuple[list[str], list[str]]:
    """The lines of a row: after the first call, and what is new after its change."""
    torch.manual_seed(0)
    with contextlib.ExitStack() as stack:
        stack.enter_context(_no_hooks_before())
        function, args, change = row.make(World(stack))
        compiled = framejit.compile(function, backend="eager")
        _call(compiled, args)
        first = _entries(compiled)
        changed = change()
        _call(compiled, changed if isinstance(changed, tuple) else args)
        return _lines(first), _differences(first, _entries(compiled))


@contextlib.contextmanager
def _no_hooks_before() -> Iterator[None]:
    """Hooks are guarded by their numbers, which count on while the process lives; and torch keeps
    of which kind the first one for all modules was."""
    known = RemovableHandle.next_id
    RemovableHandle.next_id = 1
    try:
        with mock.patch.object(torch.nn.modules.module, "_global_is_full_backward_hook", None):
            yield
    finally:
        RemovableHandle.next_id = max(known, RemovableHandle.next_id)


Entries = dict[str, list[list[str]]]  # by frame


def _entries(compiled: object) -> Entries:
    found: Entries = {}
    for entry in framejit.guards(compiled):
        lines = [_shown(guard.name, guard.kind, guard.payload) for guard in entry.guards]
        lines = [line for line in lines if not line.startswith(_USUAL)]
        found.setdefault(entry.frame, []).append([line.rstrip() for line in lines])
    return found


def _shown(name: str, kind: str, payload: str) -> str:
    """A guard without what differs from process to process, or when lines are added to the file
    that it is about; which of its questions about tracing torch asks differs by release."""
    if name.removeprefix("global torch._C.") in _TRACING:
        name = "global torch._C.(is it tracing?)"
    name = _PRIVATE.sub(r"\1(a private name)", name)
    if name.endswith(".__globals__") or name.startswith("hash("):
        payload = ""
    if ".py:" in payload:  # shortened in the middle, and the numbers may be there
        payload = _PLACE.sub(r"\1", payload.partition(" ... ")[0])
    return f"{name} {kind} {payload}\n"


def _lines(entries: Entries) -> list[str]:
    found = []
    for frame, several in entries.items():
        for lines in several:
            found += [f"frame: {frame}", *lines]
    return found


def _differences(first: Entries, second: Entries) -> list[str]:
    found = []
    for frame, several in second.items():
        known = first.get(frame, [])
        for lines in several[len(known) :]:
            if not known:
                if ".__resume_at_" in frame:  # after a break that was not there
                    found.append(f"+ frame: {frame}")
                continue  # C code may call a frame only once in a process
            found.append(f"frame: {frame}")
            compared = difflib.unified_diff(known[-1], lines, n=0, lineterm="")
            found += [f"{line[0]} {line[1:]}" for line in list(compared)[2:] if line[0] in "+-"]
    return found


def sections(rows: list[Row]) -> str:
    """The whole file."""
    same: dict[str, list[str]] = {}
    changes: dict[str, list[str]] = {}
    for row in rows:
        first, changed = guards_of(row)
        same.setdefault("\n".join(first), []).append(row.name)
        changes[row.name] = changed
    parts = []
    for text, names in same.items():
        parts.append("\n".join([f"[{name}]" for name in names] + [text]))
        for name in names:
            if changes[name]:
                parts.append("\n".join([f"[{name}, changed]", *changes[name]]))
    return "\n\n".join(parts) + "\n"


def differing(rows: list[Row]) -> str:
    """The whole file of sections that are otherwise on this release."""
    usual = _read(FILE)
    parts = []
    for row in rows:
        for name, lines in zip((row.name, f"{row.name}, changed"), guards_of(row), strict=True):
            if lines != usual.get(name, []):
                parts.append("\n".join([f"[{name}]", *lines]))
    return "\n\n".join(parts) + "\n"


def written() -> dict[str, list[str]]:
    """The lines of all sections by their names."""
    found = _read(FILE)
    if OWN_FILE.exists():
        found.update(_read(OWN_FILE))
    return found


def _read(file: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for section in file.read_text().removesuffix("\n").split("\n\n"):
        lines = section.split("\n")
        names = [line for line in lines if line.startswith("[")]
        found.update(dict.fromkeys((name[1:-1] for name in names), lines[len(names) :]))
    return found


if __name__ == "__main__":
    if "--differing" in sys.argv:
        OWN_FILE.write_text(differing(ROWS))
    else:
        FILE.write_text(sections(ROWS))
