"""Runs a script or a module in this process as ``python SCRIPT`` and ``python -m MODULE`` do.

In: what follows ``framejit run``. Out: the program, run as the module ``__main__`` with its
own ``sys.argv`` and ``sys.path``, and with the stack depth that it has in Python; its errors as
Python shows them. Next: cli.
"""

from __future__ import annotations

import builtins
import io
import os
import pkgutil
import runpy
import sys
import threading
import types
from importlib.machinery import FileFinder, SourceFileLoader
from typing import Any

from framejit import native

#: The files whose frames are above a script's own.
_RUNNERS = (__file__, runpy.__file__, runpy.run_path.__code__.co_filename)


def run(script: str, arguments: list[str], module: bool, for_good: bool) -> None:
    """Run ``script``: a file, a folder or archive with a ``__main__.py``, or a module's name.

    ``for_good``: it is what this process is for. It stays ``__main__`` for what happens when the
    process ends (functions of atexit, say), and its threads are waited for. Raises OSError for a
    file that cannot be read, and SystemExit for everything that ends the program but its end.
    """
    if not module:
        os.stat(script)  # that it is not there is the command's error; all others are the program's
    main = types.ModuleType("__main__")
    before = sys.modules["__main__"], sys.argv, list(sys.path)
    sys.modules["__main__"] = main
    try:
        sys.argv = [script, *arguments]
        _set_path(os.getcwd() if module else os.path.dirname(os.path.realpath(script)), for_good)
        if module:
            code, known = _parts(runpy._get_module_details(script, runpy._Error))  # type: ignore[attr-defined]
            sys.argv[0] = str(known["__file__"])
        else:
            code, known = _file(os.path.abspath(script), for_good)
        vars(main).update(__builtins__=builtins, __annotations__={}, **known)
        native.evaluate(code, vars(main))
    except SystemExit:
        raise
    except runpy._Error as error:  # type: ignore[attr-defined]  # nothing was found that can be run
        raise SystemExit(f"framejit: {error}") from None
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in _RUNNERS:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        raise SystemExit(130 if isinstance(error, KeyboardInterrupt) else 1) from None
    finally:
        if not for_good:
            sys.modules["__main__"], sys.argv, sys.path[:] = before
        else:
            for thread in threading.enumerate():
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join()


def _set_path(folder: str, for_good: bool) -> None:
    """The first entry of ``sys.path`` is the program's, and no longer this command's."""
    if not sys.flags.safe_path:
        sys.path[: 1 if for_good else 0] = [folder]


def _file(path: str, for_good: bool) -> tuple[types.CodeType, dict[str, Any]]:
    """The code of a file, and what Python puts into its ``__main__``."""
    if not isinstance(pkgutil.get_importer(path), (type(None), FileFinder)) or os.path.isdir(path):
        _set_path(path, for_good)
        return _parts(runpy._get_main_module_details(runpy._Error))  # type: ignore[attr-defined]
    with io.open_code(path) as file:
        code = pkgutil.read_code(file)  # type: ignore[attr-defined]
        if code is None:
            file.seek(0)
            code = compile(file.read(), path, "exec", dont_inherit=True)
    return code, {
        "__file__": path, "__cached__": None, "__package__": None, "__spec__": None,
        "__loader__": SourceFileLoader("__main__", path),
    }  # fmt: skip


def _parts(details: tuple[str, Any, types.CodeType]) -> tuple[types.CodeType, dict[str, Any]]:
    _, spec, code = details
    return code, {
        "__file__": spec.origin, "__cached__": spec.cached, "__package__": spec.parent,
        "__spec__": spec, "__loader__": spec.loader,
    }  # fmt: skip
