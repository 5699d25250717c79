"""Calls a backend on a captured graph, and lets nothing of that show in the program.

In: a backend, its name, the graph with its real inputs. Out: a callable. Modes, random state and
other global settings are afterwards as they were; whatever the backend raises becomes one short
`BackendCompilerFailed`, unless the graph itself raises: then that is what the program does, and it
is not compiled. Next room: codegen.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.fx
from torch._subclasses.fake_tensor import FakeTensor

from ..exc import BackendCompilerFailed, FramejitError, GraphBreak
from ..graph import global_state
from ..graph.builder import EXCHANGES
from ..graph.errors import begins_at, first_line
from ..graph.lazy import operation_count
from ..graph.parts import PARTS
from ..graph.plain_inputs import is_of_program
from ..graph.repeats import REGIONS
from ..graph.splits import DIVIDE
from ..graph.tensor_class import own_methods
from ..graph.uneven import UNEVEN
from ..report import events, messages
from . import repro
from .context import preserved_state, refusals
from .dividing import in_context
from .exclusive import exclusive
from .regional import Told, compile_with_regions
from .registry import CompilerFn, backend_name, takes_all_regions, takes_regions

#: Longest line that a message quotes.
_WIDTH = 200


def compile_graph(
    backend: CompilerFn,
    name: str | None,
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    told: Told | None = None,
    refused: Callable[[str], None] | None = None,
) -> Callable[..., Any]:
    """Compile ``gm`` under the state that torch is in now.

    The graph must be traced as it will run, so the caller sets grad mode, autocast and modes as
    they are where the graph starts; dispatch modes and saved-tensor hooks of the user's do not see
    what the backend does. ``name`` defaults to the backend's own. ``told`` gets to know
    which regions were compiled once, or what the backend raises for them, when the flat graph is
    compiled instead; ``refused`` why AOTAutograd cannot trace a graph, which runs as it is then.
    Raises BackendCompilerFailed; KeyboardInterrupt and the like pass.
    """
    if name is None:
        name = backend_name(backend)
    divide = gm.meta.pop(DIVIDE, None)
    splits = getattr(backend, "splits", None)
    if splits is not None:
        _divide(gm, divide, splits, name)
    find_regions = _shown(gm, example_inputs)
    if UNEVEN in gm.meta:
        again = functools.partial(compile_graph, backend, name)
        gm.meta[UNEVEN] = gm.meta[UNEVEN]._replace(compiler=again)
    # Without need they are seen: torch.fx asks proxies the same way, when caches are read.
    classes = any(map(is_of_program, example_inputs))

    def run(gm: torch.fx.GraphModule) -> Any:
        with (
            exclusive(), preserved_state(), own_methods(), global_state.unseen(classes),
            refusals() as found,
        ):  # fmt: skip
            compiled = in_context(backend, gm, list(example_inputs))
        if refused is not None:
            for error in found:
                refused(reason_of(error))
        return compiled

    try:
        compiled = None
        if find_regions is not None and takes_regions(backend):
            find = functools.partial(find_regions, everywhere=takes_all_regions(backend))
            compiled = compile_with_regions(run, gm, find, told)
        if compiled is None:
            compiled = run(gm)
    except (FramejitError, GraphBreak):
        raise
    except Exception as error:
        error.__traceback__ = _without_own_frames(error.__traceback__)
        if error.__traceback__ is None and isinstance(error, TypeError):  # it was not even entered
            text = f"backend {name!r} cannot be called as f(gm, example_inputs): {error}"
            raise BackendCompilerFailed(name, text, "FJ0202") from None
        if not gm.meta.get(EXCHANGES) and _raises(gm, example_inputs):
            return gm.forward  # plain Python then raises it where the program expects it
        text = _describe(name, gm, error)
        path = repro.save(gm, example_inputs, name, error)
        if path is not None:
            text += f"\n  to reproduce it: python {path}"
        raise BackendCompilerFailed(name, text) from error
    if not callable(compiled):
        raise BackendCompilerFailed(
            name,
            f"backend {name!r} returned {type(compiled).__name__}, not a callable. "
            "A backend takes (gm, example_inputs) and returns a function of the inputs.",
            "FJ0202",
        )
    if compiled is gm:  # hooks that the user puts on all modules are not meant for this one
        return gm.forward
    return compiled


def as_recorded(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
    """``gm`` as it is, which takes no time: with PyTorch's own operators."""
    gm.meta.pop(DIVIDE, None)
    _shown(gm, example_inputs)
    return gm.forward


def tell_refused(gm: torch.fx.GraphModule, shown: dict[str, Any], reason: str) -> None:
    """Say that AOTAutograd cannot trace ``gm``, which runs as it is; ``shown``: of which frame it
    is, and its backend."""
    events.emit(events.GraphRefused(**shown, reason=reason))
    messages.warn_refused(shown["backend"], begins_at(gm), reason)


def reason_of(error: Exception) -> str:
    """What a backend says in one line."""
    return f"{type(error).__name__}: {first_line(error)}"


def _divide(
    gm: torch.fx.GraphModule, divide: Callable[..., Any] | None, splits: Callable[..., bool],
    name: str,
) -> None:  # fmt: skip
    """Note on a graph how it is cut for a backend that is not to have some operations."""
    if gm.meta.get(PARTS) is not None:
        return  # it comes from a package, or AOTAutograd cannot have it whole
    if divide is not None:
        gm.meta[PARTS], kept = divide(splits)
        for operation, reason in kept:
            messages.warn_not_split(name, operation, begins_at(gm), reason)


def _shown(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
    """Show a graph to those who watch; what finds its regions, which holds the recording, is taken
    from it."""
    find_regions = gm.meta.pop(REGIONS, None)
    for watcher in getattr(_watchers, "active", ()):
        watcher(gm, example_inputs)
    return find_regions


def _without_own_frames(trace: types.TracebackType | None) -> types.TracebackType | None:
    """The part of a traceback that begins in the backend: this room's frames come before it."""
    room = os.path.dirname(__file__)
    while trace is not None and os.path.dirname(trace.tb_frame.f_code.co_filename) == room:
        trace = trace.tb_next
    return trace


def _raises(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> bool:
    """Does the graph raise when its operations are executed? On copies of its inputs."""
    try:
        with exclusive(), preserved_state(), own_methods(), global_state.unseen():
            inputs = [_copied(value) for value in example_inputs]
            try:
                gm.forward(*inputs)
            except Exception:
                return True
    except Exception:  # there is nothing to execute it on
        return False
    return False


def _copied(value: Any) -> Any:
    if isinstance(value, (torch.SymInt, torch.SymFloat)):
        return value.node.hint
    if not isinstance(value, torch.Tensor):
        return value
    if isinstance(value, FakeTensor):
        raise TypeError("a fake tensor has no data")
    with torch.enable_grad():
        leaf = value.detach().clone().requires_grad_(value.requires_grad)
        return leaf if value.is_leaf else leaf.clone()


Watcher = Callable[[torch.fx.GraphModule, Sequence[Any]], None]
_watchers = threading.local()


@contextlib.contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """In this block and thread, ``watcher(gm, example_inputs)`` sees what is compiled before its
    backend does."""
    before = getattr(_watchers, "active", ())
    _watchers.active = (*before, watcher)
    try:
        yield
    finally:
        _watchers.active = before


def is_watched() -> bool:
    """Does somebody watch what this thread compiles?"""
    return bool(getattr(_watchers, "active", ()))


def _describe(name: str, gm: torch.fx.GraphModule, error: Exception) -> str:
    """A few lines: who failed, on what, for which of the user's lines, with what message, where."""
    operations = operation_count(gm)
    noun = "operation" if operations == 1 else "operations"
    lines = [f"backend {name!r} raised {type(error).__name__} on a graph of {operations} {noun}:"]
    text = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    lines += [f"  {line[:_WIDTH]}" for line in text[:3] or ["(no message)"]]
    if len(text) > 3:
        lines.append(f"  ... {len(text) - 3} more lines in the exception below")
    place = begins_at(gm)
    if place:
        lines.insert(1, f"  the graph begins at {place}")
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        last = frames[-1]
        lines.append(f"  at {last.filename}:{last.lineno} in {last.name}")
    return "\n".join(lines)
