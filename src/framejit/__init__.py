"""framejit: a JIT compiler that makes unmodified PyTorch programs faster.

``framejit.compile(fn_or_module)`` is all that most programs need. This module holds public names
only; docs/architecture.md says how a call travels through the rooms behind them.
"""

from __future__ import annotations

from framejit import config, exc
from framejit.report import progress as _progress  # noqa: F401 - it listens from now on
from framejit.report.counters import counters
from framejit.version import __version__

try:
    from framejit.api import (
        allow_in_graph,
        assume_constant_result,
        compile,
        disable,
        disallow_in_graph,
        graph_break,
        is_compiling,
        load_package,
        optimize,
        packaged,
        region,
        reset,
        run,
        skip,
        wait,
    )
    from framejit.audit import audit
    from framejit.autotune import record
    from framejit.backends import list_backends, piecewise, register_backend
    from framejit.comptime import comptime
    from framejit.dropin import install, uninstall
    from framejit.exporting import export
    from framejit.inspection import explain, guards, report
    from framejit.report.logs import set_logs
    from framejit.shapes.marks import mark_dynamic, mark_static, maybe_mark_dynamic
    from framejit.shapes.profile import load_profile, save_profile
except Exception as _error:
    from framejit.eager_only import stand_in as _stand_in

    globals().update(_stand_in(_error))

__all__ = [
    "__version__",
    "allow_in_graph",
    "assume_constant_result",
    "audit",
    "compile",
    "comptime",
    "config",
    "counters",
    "disable",
    "disallow_in_graph",
    "exc",
    "explain",
    "export",
    "graph_break",
    "guards",
    "install",
    "is_compiling",
    "list_backends",
    "load_package",
    "load_profile",
    "mark_dynamic",
    "mark_static",
    "maybe_mark_dynamic",
    "optimize",
    "packaged",
    "piecewise",
    "record",
    "region",
    "register_backend",
    "report",
    "reset",
    "run",
    "save_profile",
    "set_logs",
    "skip",
    "uninstall",
    "wait",
]
