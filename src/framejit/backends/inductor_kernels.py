"""Compiles the kernels of a graph for the CPU together.

In: the code that Inductor has written around the kernels of a graph. Out: shared objects where
Inductor looks for them, one for several kernels: of a kernel's half second with the compiler four
fifths are torch's headers, which are read once then. What cannot be compiled so is left to
Inductor, which compiles what is missing. Used by inductor, for each graph.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

#: How the code around a graph asks for a kernel: the types of its arguments, and its source.
_CALL = re.compile(r"= async_compile\.cpp_pybinding(\(\[.*?\], r?'''.*?'''\))", re.DOTALL)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)
#: Directives that may hold for what comes after a kernel: all but those that Inductor writes.
_DIRECTIVE = re.compile(
    r"^[ \t]*#[ \t]*"
    r"(?!include\b|pragma\b|define PY_SSIZE_T_CLEAN\b|ifdef Py_GIL_DISABLED\b|endif\b)",
    re.MULTILINE,
)

_HEAD = "#define PY_SSIZE_T_CLEAN\n#include <Python.h>\n#include <cstring>\n"
_KERNEL = """
namespace framejit_{number} {{
#define kernel framejit_kernel_{number}
#define PyInit_kernel framejit_make_{number}
{source}
#undef PyInit_kernel
#undef kernel
}}
"""
#: A module has the kernel of its file, or all, by the names of their files, in another file.
_TAIL = """
static PyObject* (*const framejit_makers[])(void) = {{{makers}}};
static const char* const framejit_members[] = {{{members}}};

static int framejit_add(PyObject* module, PyObject* file, size_t number, const char* name) {{
  PyObject* made = framejit_makers[number]();
  if (!made) return -1;
  PyObject* member = PyUnicode_FromString(framejit_members[number]);
  PyObject* kernel = PyObject_GetAttrString(made, "kernel");
  int failed = !member || !kernel || PyObject_SetAttrString(made, "__file__", file) < 0 ||
      PyObject_SetAttrString(made, "member", member) < 0 ||
      PyObject_SetAttrString(module, name, kernel) < 0;
  Py_XDECREF(member);
  Py_XDECREF(kernel);
  Py_DECREF(made);
  return failed ? -1 : 0;
}}

static int framejit_fill(PyObject* module) {{
  PyObject* file = PyObject_GetAttrString(module, "__file__");
  const char* path = file ? PyUnicode_AsUTF8(file) : nullptr;
  if (!path) {{
    Py_XDECREF(file);
    return -1;
  }}
  const char* slash = std::strrchr(path, '/');
  const char* own = slash ? slash + 1 : path;
  size_t count = sizeof(framejit_members) / sizeof(*framejit_members), found = count;
  for (size_t i = 0; i < count; i++) {{
    size_t length = std::strlen(framejit_members[i]);
    if (!std::strncmp(own, framejit_members[i], length) && own[length] == '.') found = i;
  }}
  int failed = 0;
  if (found < count) failed = framejit_add(module, file, found, "kernel");
  for (size_t i = 0; found == count && !failed && i < count; i++) {{
    failed = framejit_add(module, file, i, framejit_members[i]);
  }}
  Py_DECREF(file);
  return failed;
}}

static PyModuleDef_Slot framejit_slots[] = {{
    {{Py_mod_exec, reinterpret_cast<void*>(framejit_fill)}},
#ifdef Py_GIL_DISABLED
    {{Py_mod_gil, Py_MOD_GIL_NOT_USED}},
#endif
    {{0, nullptr}}}};
static PyModuleDef framejit_module = {{
    PyModuleDef_HEAD_INIT, "kernel", nullptr, 0, nullptr, framejit_slots,
    nullptr, nullptr, nullptr}};

PyMODINIT_FUNC PyInit_kernel(void) {{ return PyModuleDef_Init(&framejit_module); }}
"""

_here = threading.local()


@contextlib.contextmanager
def together() -> Iterator[None]:
    """What Inductor loads in this block has its kernels compiled together."""
    _prepare_what_is_loaded()
    before, _here.active = getattr(_here, "active", False), True
    try:
        yield
    finally:
        _here.active = before


@functools.cache
def _prepare_what_is_loaded() -> None:
    from torch._inductor.codecache import PyCodeCache  # Inductor is about to compile

    load = PyCodeCache.load_by_key_path

    def load_by_key_path(key: str, path: str, *args: Any, **kwargs: Any) -> Any:
        if getattr(_here, "active", False):
            prepare(Path(path).read_text())
        return load(key, path, *args, **kwargs)

    setattr(PyCodeCache, "load_by_key_path", load_by_key_path)  # noqa: B010 (a method)


class _Pending:
    """In place of a future of Inductor's: a kernel that is compiled now, or by Inductor when it is
    loaded."""

    def __init__(self, build: Callable[[], None]) -> None:
        self.build = build
        self.future: Any = None

    def result(self) -> None:
        if self.future is not None:
            with contextlib.suppress(Exception):  # Inductor tries it then, and says what is wrong
                self.future.result()


class _Kernel(NamedTuple):
    """A kernel that is to be compiled."""

    pending: _Pending
    lock: str
    options: Any  # Inductor's BuildOptionsBase
    target: Path
    #: The command, but for the names of files.
    command: str

    @property
    def source(self) -> Path:
        return self.target.with_suffix(".cpp")

    @property
    def member(self) -> str:
        """Its name among those that were compiled together."""
        return self.target.stem


def prepare(wrapper: str) -> None:
    """Compile the kernels of the code around a graph that are in no cache yet, if there are more of
    them than Inductor may compile at once."""
    from torch._inductor.async_compile import AsyncCompile, get_compile_threads

    threads = max(1, get_compile_threads())
    texts = dict.fromkeys(_CALL.findall(wrapper))
    if len(texts) <= threads:
        return
    pending = _missing([ast.literal_eval(text) for text in texts])
    kernels = [kernel for one in pending if (kernel := _kernel(one)) is not None]
    tasks: dict[_Pending, Callable[[], None]] = {}
    if len(kernels) > threads:
        for chunk in _chunks(kernels, threads):
            tasks.update(dict.fromkeys([kernel.pending for kernel in chunk], _compiling(chunk)))
    futures: dict[Callable[[], None], Any] = {}
    for one in pending:
        task = tasks.get(one, one.build)
        if task not in futures:
            futures[task] = None
            with contextlib.suppress(Exception):  # one thread compiles at once: see `_Pending`
                futures[task] = AsyncCompile.submit(task)
        one.future = futures[task]


def _missing(kernels: list[Any]) -> list[_Pending]:
    """What has to be compiled. From now on Inductor waits for it where it loads it."""
    from torch._inductor.codecache import CppPythonBindingsCodeCache as Cache

    found: list[_Pending] = []

    def note(build: Callable[[], None]) -> _Pending:
        found.append(_Pending(build))
        return found[-1]

    for types, source in kernels:
        Cache.load_pybinding_async(types, source, submit_fn=note)
    return found


def _kernel(pending: _Pending) -> _Kernel | None:
    """What Inductor would do, or None if that is something else than compiling one file."""
    build: Any = pending.build
    try:
        lock, (builder,) = build.args
        target = Path(builder.get_target_file_path())
        command = builder.get_command_line().replace(str(target.with_suffix("")), "")
        options = vars(builder)["_build_option"]
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    kernel = _Kernel(pending, lock, options, target, command)
    if not kernel.source.is_file() or target.suffix != ".so":
        return None
    return None if _DIRECTIVE.search(kernel.source.read_text()) else kernel


def _chunks(kernels: list[_Kernel], count: int) -> list[list[_Kernel]]:
    """As many as may be compiled at once, about equally long, each with one command."""
    commands: dict[str, list[_Kernel]] = {}
    for kernel in kernels:
        commands.setdefault(kernel.command, []).append(kernel)
    chunks = []
    for alike in commands.values():
        alike.sort(key=lambda kernel: -kernel.source.stat().st_size)
        chunks += [chunk for i in range(count) if (chunk := alike[i::count])]
    return chunks


def _compiling(kernels: list[_Kernel]) -> Callable[[], None]:
    """What compiles these with one command."""
    from torch._inductor.codecache import write
    from torch._inductor.cpp_builder import CppBuilder
    from torch.utils._filelock import FileLock

    if len(kernels) == 1:
        return kernels[0].pending.build
    _, path = write(_source(kernels), "together.cpp", extra=kernels[0].command)
    source = Path(path)
    together = CppBuilder(
        name=source.stem, sources=path, BuildOption=kernels[0].options,
        output_dir=str(source.parent),
    )  # fmt: skip
    made = Path(together.get_target_file_path())

    def run() -> None:
        with FileLock(kernels[0].lock + ".together"):
            if not made.exists():
                together.build()
        for kernel in kernels:
            with FileLock(kernel.lock):
                if not kernel.target.exists():
                    _put(made, kernel.target)

    return run


def _put(made: Path, target: Path) -> None:
    """``target`` is, all at once, the same file, or a copy."""
    try:
        os.link(made, target)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        part = target.with_suffix(f".{os.getpid()}")
        shutil.copyfile(made, part)
        part.replace(target)


def _source(kernels: list[_Kernel]) -> str:
    """One source for all: each kernel with its bindings in a namespace."""
    texts = [kernel.source.read_text() for kernel in kernels]
    includes = dict.fromkeys(line.strip() for text in texts for line in _INCLUDE.findall(text))
    parts = [
        _KERNEL.format(number=number, source=_INCLUDE.sub("", text))
        for number, text in enumerate(texts)
    ]
    makers = ", ".join(f"framejit_{i}::framejit_make_{i}" for i in range(len(texts)))
    members = ", ".join(f'"{kernel.member}"' for kernel in kernels)
    tail = _TAIL.format(makers=makers, members=members)
    return _HEAD + "\n".join(includes) + "\n" + "".join(parts) + tail
