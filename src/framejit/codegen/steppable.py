"""Generated functions as files that a debugger shows and steps through.

In: the AST of a generated function. Out: its code with the lines of a file that holds its text,
under names that Python can read. Done when a debugger is attached or `config.code_folder` is set:
tracebacks then show that file instead of the user's lines. The same program gives the same file
names. Next: function.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
import os
import re
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from framejit import config, native
from framejit.files import replacing

_DEBUGGERS = ("bdb", "pdb", "pydevd", "_pydevd", "debugpy", "pudb", "ipdb")


def wanted() -> bool:
    """Is the function that is being generated to be steppable?"""
    return bool(config.code_folder) or debugger_attached()


def debugger_attached() -> bool:
    """Did a debugger set the trace function of this thread? (Coverage tools set one, too.)"""
    tracer = native.resting_tracer() or sys.gettrace()
    if tracer is None:
        return False
    owner = getattr(tracer, "__self__", tracer)
    classes = type(owner).__mro__ if owner is not tracer else ()
    modules = [getattr(tracer, "__module__", None), *[cls.__module__ for cls in classes]]
    return any(str(module).startswith(_DEBUGGERS) for module in modules)


def compiled(module: ast.Module, code: types.CodeType, namespace: dict[str, Any]) -> types.CodeType:
    """The code of ``module``, with its text in a file if one can be written.

    ``namespace`` gets the names under which the text has what the AST calls otherwise.
    """
    names = _Names(module)
    names.visit(module)
    place = f"{code.co_filename}:{code.co_firstlineno}"
    title = f"# What framejit runs for {code.co_qualname} ({place})"
    text = f"{title}\n\n{ast.unparse(module)}\n"
    for name, readable in names.readable.items():
        if name in namespace:
            namespace[readable] = namespace[name]
    path = _write(code, text)
    if path is None:
        return compile(module, code.co_filename, "exec", dont_inherit=True)
    linecache.checkcache(path)
    return compile(ast.parse(text, path), path, "exec", dont_inherit=True)


def _write(code: types.CodeType, text: str) -> str | None:
    folder = config.code_folder or os.path.join(tempfile.gettempdir(), f"framejit-{os.getuid()}")
    stem = Path(code.co_filename).stem
    digest = hashlib.sha256(f"{code.co_filename}\n{text}".encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.]+", "_", f"{stem}.{code.co_qualname}")[:100]
    path = os.path.join(os.path.abspath(folder), f"{name}.{digest}.py")
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.path.exists(path):
            with replacing(path) as file:
                file.write(text.encode())
    except OSError:
        return None
    return path


class _Names(ast.NodeVisitor):
    """Gives everything a name that Python's parser takes: ``fj:graph 1`` becomes ``fj_graph_1``,
    unless a variable of the program has that name."""

    def __init__(self, module: ast.Module) -> None:
        self.readable: dict[str, str] = {}
        spelled = [
            getattr(node, "id", getattr(node, "arg", None))
            for node in ast.walk(module) if isinstance(node, (ast.Name, ast.arg))
        ]  # fmt: skip
        self._taken = {name for name in spelled if name is not None and name.isidentifier()}

    def _name(self, name: str) -> str:
        known = self.readable.get(name)
        if known is None:
            known = re.sub(r"\W", "_", name)
            if known != name:
                while known in self._taken:
                    known += "_"
                self._taken.add(known)
            self.readable[name] = known
        return known

    def visit_Name(self, node: ast.Name) -> None:
        node.id = self._name(node.id)

    def visit_arg(self, node: ast.arg) -> None:
        node.arg = self._name(node.arg)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name is not None:
            node.name = self._name(node.name)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        node.name = self._name(node.name)
        self.generic_visit(node)
