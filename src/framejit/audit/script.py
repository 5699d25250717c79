"""A mismatch as a script that shows it: what is called, with which inputs, and what was compiled.

In: a call whose runs differ, in the state it began in. Out: ``NAME.py`` to run and to read,
``NAME.pickle`` and ``NAME.safetensors`` with what it starts from. Arguments that the difference
does not need are left out, earlier calls are there only where it needs what they compiled. Next:
call.
"""

from __future__ import annotations

import inspect
import os
import platform
import re
import sys
import textwrap
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch

from framejit import config
from framejit.audit import portable
from framejit.audit.snapshot import GENERATORS
from framejit.files import replacing
from framejit.graph import global_state
from framejit.version import __version__

#: Seconds for making a script smaller.
BUDGET = 10.0
#: Lines of graphs in a script.
_GRAPH_LINES = 300
#: Tensors' memory in a script, and in what is kept of calls that compiled something.
LIMIT = 1 << 28
EARLIER_LIMIT = 1 << 25
EARLIER_CALLS = 4

_SCRIPT = '''"""{name} ({place}), compiled with {backend!r}, does something else than plain Python:

{difference}

Found by framejit.audit with framejit {version}, torch {torch}, Python {python}.
Run it with `python {file}`: it says whether that is still so. {note}
"""

import sys

sys.path.extend(path for path in {path!r} if path not in sys.path)

import framejit  # noqa: E402
from framejit.audit.script import Case  # noqa: E402

# What is called:
#
{source}
#
# With:
#
{inputs}

case = Case({file!r}, __file__)  # reads the .pickle and .safetensors beside this file
compiled = framejit.compile(case.target, backend=case.backend or {backend!r}, fullgraph={fullgraph},
                            dynamic={dynamic})
for args, kwargs in case.earlier:
    compiled(*args, **kwargs)
case.prepare()  # torch's settings and random numbers
try:
    with case.audit(rtol={rtol}, atol={atol}, gradients={gradients}) as audit:
        compiled(*case.args, **case.kwargs)
except framejit.exc.AuditMismatch as error:
    sys.exit(str(error))
print(audit.summary())

# The graphs as they were compiled:
#
{graphs}
'''


class Earlier:
    """The arguments of a call that compiled something. Objects of the process, such as modules, are
    not kept alive."""

    def __init__(self, args: Any, kwargs: Any, spaces: dict[str, dict[str, Any]]) -> None:
        live: list[Any] = []
        self.data = portable.dump((args, kwargs), live, spaces, EARLIER_LIMIT)
        self.live = [weakref.ref(obj) for obj in live]

    def call(self) -> tuple[Any, Any]:
        """The arguments again. Raises ReferenceError."""
        live = [reference() for reference in self.live]
        if any(obj is None for obj in live):
            raise ReferenceError("an argument is gone")
        made: tuple[Any, Any] = portable.load(*self.data, live)
        return made


def namespaces(snapshot: Any) -> dict[str, dict[str, Any]]:
    """By module: the globals that code names, as they were before the call."""
    found: dict[str, dict[str, Any]] = {}
    for names in snapshot.reach.spaces.values():
        if isinstance(names.owner, dict):
            values = {k: v for k, v in names.values.items() if k in names.owner}
            found[str(names.owner.get("__name__"))] = values
    return found


class Reduced:
    """The smallest call that was found to show the difference."""

    def __init__(self, call: Any, shows: Callable[..., bool], earlier: list[Earlier]) -> None:
        self.shows, self.until = shows, time.monotonic() + BUDGET
        _, args, kwargs = call.call
        self.args, self.kwargs = [*args], {**kwargs}
        self.earlier: list[Earlier] = []
        self.first = 1 if call.compiled.stands_for_call else 0
        self.found = self._try([])
        if not self.found and self._try(earlier):
            self.found, self.earlier = True, earlier
            for one in list(earlier):
                rest = [other for other in self.earlier if other is not one]
                if rest and self._try(rest):
                    self.earlier = rest
        if self.found:
            self._reduce(self.args, range(self.first, len(self.args)))
            self._reduce(self.kwargs, list(self.kwargs))

    def _try(self, earlier: list[Earlier]) -> bool:
        in_time = time.monotonic() < self.until
        return in_time and self.shows(earlier, tuple(self.args), self.kwargs)

    def _reduce(self, arguments: Any, keys: Iterable[Any]) -> None:
        """Put None, or one row, in place of what the difference does not need."""
        for key in keys:
            whole = arguments[key]
            for smaller in _smaller(whole):
                arguments[key] = smaller
                if self._try(self.earlier):
                    break
                arguments[key] = whole


def _smaller(value: Any) -> list[Any]:
    if value is None or isinstance(value, (bool, int, float, str)):
        return []
    if isinstance(value, torch.Tensor) and value.dim() and value.shape[0] > 1:
        with torch.no_grad():
            rows = [value.detach()[:n].clone().requires_grad_(value.requires_grad) for n in (1, 2)]
        return [None, *rows[: 1 + (value.shape[0] > 2)]]
    return [None]


def write(call: Any, reduced: Reduced) -> str:
    """The path of the script. Raises what pickling and writing raise."""
    folder = call.auditor.folder or config.audit_folder or "framejit_audit"
    os.makedirs(folder, exist_ok=True)
    compiled, compiler = call.compiled, call.compiled.compiler
    name = re.sub(r"\W+", "_", compiled.target.name).strip("_") or "call"
    number = 1
    while os.path.exists(path := os.path.join(folder, f"{name}_{number}.py")):
        number += 1
    stem = Path(path).with_suffix("")
    spaces = namespaces(call.snapshot)
    function, args, kwargs = call.call[0], reduced.args, reduced.kwargs
    target = args[0] if compiled.stands_for_call else function
    earlier = [one.call() for one in reduced.earlier]
    backend = _backend_of(compiler)
    content = {
        "target": target, "args": args[reduced.first :], "kwargs": kwargs, "backend": backend,
        "earlier": [(one[reduced.first :], two) for one, two in earlier],
        "settings": global_state.current(),
        "random": [state.take(generator) for _, generator, state in GENERATORS],
        "modules": {name: _plain(values) for name, values in spaces.items()
                    if getattr(sys.modules.get(name), "__spec__", None) is not None},
    }  # fmt: skip
    data, tensors = portable.dump(content, [], spaces, LIMIT, inside_live=True)
    with replacing(f"{stem}.safetensors") as file:
        file.write(tensors)
    with replacing(f"{stem}.pickle") as file:
        file.write(data)
    with replacing(path) as file:
        file.write(_text(call, reduced, path).encode("utf-8", "backslashreplace"))
    return path


def _backend_of(compiler: Any) -> Any:
    """The program's own backend; None for one that a name leads to."""
    from framejit.backends.registry import list_backends

    return None if compiler.backend_name in list_backends(None) else compiler.backend


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """The globals that are data."""
    return {
        name: value for name, value in values.items()
        if not callable(value) and not inspect.ismodule(value) and not isinstance(value, type)
    }  # fmt: skip


def _text(call: Any, reduced: Reduced, path: str) -> str:
    compiled, compiler = call.compiled, call.compiled.compiler
    note = ""
    if not reduced.found:
        note = "\n\nCompiled anew, the call shows no difference: it needs what others compiled."
    elif reduced.earlier:
        note = "\n\nIt needs what earlier calls compiled: see `case.earlier`."
    function, target = call.call[0], compiled.target
    return _SCRIPT.format(
        name=target.name, place=f"{target.code.co_filename}:{target.line}",
        backend=compiler.backend_name, version=__version__, torch=torch.__version__,
        python=platform.python_version(), note=note, file=os.path.basename(path),
        difference=textwrap.indent(str(call.difference).replace('"""', "'''"), "    "),
        path=[os.path.abspath(folder) for folder in sys.path if os.path.isdir(folder or ".")],
        source=_comment(_source(function, reduced)), inputs=_comment(_inputs(reduced)),
        fullgraph=compiler.fullgraph, dynamic=compiler.dynamic, rtol=call.tolerance.rtol,
        atol=call.tolerance.atol,
        gradients=bool(call.auditor.gradients), graphs=_comment(_graphs(compiler)),
    )  # fmt: skip


def _comment(text: str) -> str:
    return "\n".join(f"#     {line}".rstrip() for line in text.splitlines()) or "#     nothing"


def _source(function: Any, reduced: Reduced) -> str:
    shown = function
    if reduced.first and reduced.args:  # the __call__ of its class; what it does is in forward
        shown = getattr(type(reduced.args[0]), "forward", function)
    try:
        return textwrap.dedent(inspect.getsource(shown))
    except (OSError, TypeError):
        return f"{function.__qualname__}, whose source cannot be read"


def _inputs(reduced: Reduced) -> str:
    lines = [_described(value) for value in reduced.args]
    lines += [f"{name}={_described(value)}" for name, value in reduced.kwargs.items()]
    return "\n".join(lines)


def _described(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        grad = ", requires_grad" if value.requires_grad else ""
        return f"{str(value.dtype)[6:]}{list(value.shape)}{grad}"
    if isinstance(value, torch.nn.Module):
        return f"the module {type(value).__qualname__}"
    text = repr(value) if not hasattr(value, "__dict__") else f"a {type(value).__qualname__}"
    return text if len(text) < 300 else text[:297] + "..."


def _graphs(compiler: Any) -> str:
    lines: list[str] = []
    for frame in compiler.frames():
        for number, entry in enumerate(frame.entries):
            origin = frame.origins.get(id(entry))
            graph = getattr(getattr(origin, "call", None), "module", None)
            lines.append(f"{frame.target.name}, entry {number}, used {entry.hits} times")
            lines += [] if graph is None else str(graph.graph).strip().splitlines()[1:]
    if len(lines) > _GRAPH_LINES:
        lines = [*lines[:_GRAPH_LINES], f"and {len(lines) - _GRAPH_LINES} lines more"]
    return "\n".join(lines)


class Case:
    """What a script starts from: ``target``, ``args``, ``kwargs``, ``backend`` (None: by name) and
    ``earlier`` (args and kwargs of calls to make first)."""

    def __init__(self, name: str, script: str) -> None:
        stem = Path(script).resolve().with_name(name).with_suffix("")
        tensors = stem.with_suffix(".safetensors").read_bytes()
        content = portable.load(stem.with_suffix(".pickle").read_bytes(), tensors, [])
        for module, values in content["modules"].items():
            vars(__import__(module, fromlist=["*"])).update(values)
        self.target, self.args, self.kwargs = (content[k] for k in ("target", "args", "kwargs"))
        self.backend, self.earlier = content["backend"], content["earlier"]
        self._content = content

    def audit(self, **settings: Any) -> Any:
        """An audit that ends with the first mismatch, and writes no script."""
        from framejit.audit import audit

        made = audit(on_mismatch="raise", **settings)
        made.writes = False
        return made

    def prepare(self) -> None:
        """Torch's settings and the generators of random numbers, as before the call."""
        self._content["settings"].set()
        for (_, generator, state), content in zip(GENERATORS, self._content["random"], strict=True):
            state.put(generator, content)
