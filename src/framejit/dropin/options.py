"""What a program says in ``torch._dynamo.config`` and ``torch.compiler.config``.

In: these modules, if the program has imported them, read before each capture, so that it does not
matter when and how they are set. Out: options of `framejit.config`; one warning for each of the
others, with what happens instead. Next: functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from framejit.dropin.stances import first_calls_are_plain
from framejit.dropin.table import switches
from framejit.report import messages

_MODULES = ("torch._dynamo.config", "torch.compiler.config")


class _Set(NamedTuple):
    """An option that the program has set."""

    name: str
    value: Any
    default: Any


def advice() -> dict[str, Any]:
    """The options of `framejit.config` that follow; says once what else was set."""
    changes: dict[str, Any] = dict(_logs())
    if first_calls_are_plain():
        changes["eager_first"] = True
    for one in _set_options():
        row = switches().get(one.name)
        if row is not None and row.option:
            for name, value in _CONVERTED.get(one.name, _same)(row.option, one.value):
                changes[name] = value
        elif one.value != one.default and (row is None or one.value != row.always):
            does = "framejit does not know it" if row is None else row.does
            if row is None or not row.obeyed:
                messages.warn_switch(f"{one.name} = {one.value!r}", does)
    return changes


def _set_options() -> Iterator[_Set]:
    for module_name in _MODULES:
        module = sys.modules.get(module_name)
        for name, entry in getattr(module, "_config", {}).items():
            # An alias stands in the module that it is an alias of.
            if entry.alias is None and not module._is_default(name):  # type: ignore[union-attr]
                yield _Set(f"{module_name}.{name}", getattr(module, name), entry.default)


def _same(option: str, value: Any) -> Iterator[tuple[str, Any]]:
    yield option, value


def _at_least_one(option: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, int):
        yield option, max(int(value), 1)


def _only_true(option: str, value: Any) -> Iterator[tuple[str, Any]]:
    if value:
        yield option, True


def _no_dynamic_shapes(option: str, value: Any) -> Iterator[tuple[str, Any]]:
    if not value:
        yield from ((option, False), ("specialize_int", True), ("specialize_float", True))


#: How values become those of framejit, where they are not the same.
_CONVERTED: dict[str, Callable[[str, Any], Iterator[tuple[str, Any]]]] = {
    "torch._dynamo.config.recompile_limit": _at_least_one,
    "torch._dynamo.config.dynamic_shapes": _no_dynamic_shapes,
    "torch._dynamo.config.verbose": _only_true,
}

#: The names of ``TORCH_LOGS`` and `torch._logging.set_logs`, and the logs of framejit.
_LOGS = {
    "graph": "graph", "graph_code": "graph", "graph_sizes": "graph", "aot_graphs": "",
    "guards": "guards", "recompiles": "recompiles", "recompiles_verbose": "recompiles",
    "graph_breaks": "breaks", "bytecode": "bytecode,code",
}  # fmt: skip


def _logs() -> Iterator[tuple[str, Any]]:
    """Logs that the program has turned on by the names of ``torch``."""
    from framejit import config

    state = getattr(sys.modules.get("torch._logging._internal"), "log_state", None)
    names = getattr(state, "artifact_names", ())
    wanted = {ours for theirs in names if (ours := _LOGS.get(theirs))}
    if wanted:
        parts = {part for ours in wanted for part in ours.split(",")}
        yield "logs", config.logs | parts
