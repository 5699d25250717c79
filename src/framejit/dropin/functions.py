"""Functions and classes of ``torch._dynamo``, which mean framejit's while it is installed.

In: the package, once the program has imported it (nothing here does). Out: replaced functions, and
framejit's errors as subclasses of the peer's, until all is put back. Next: the package itself.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from framejit import api, backends, exc
from framejit.dropin import compiling, modules
from framejit.dropin.replacing import Replacements
from framejit.dropin.stances import Stance
from framejit.inspection import explain
from framejit.report import events
from framejit.strictness import ErrorOnBreak
from framejit.values.core.registry import LOOKASIDES
from framejit.values.objects.functions import call_polyfill


def adapt(peer: Any, replacements: Replacements) -> None:
    """``torch._dynamo`` has been imported: its functions mean framejit's."""
    new = {
        "optimize": _optimizing(peer.optimize), "optimize_assert": optimize_assert,
        "OptimizedModule": modules.recognising(peer.OptimizedModule), "set_stance": Stance,
        "error_on_graph_break": ErrorOnBreak, "substitute_in_graph": substitute_in_graph,
        "run": api.run, "allow_in_graph": api.allow_in_graph, "explain": explain_like_torch,
        "disallow_in_graph": api.disallow_in_graph, "forbid_in_graph": api.disallow_in_graph,
        "list_backends": backends.list_backends, "lookup_backend": backends.lookup_backend,
        "register_backend": _registering(peer.register_backend), "reset": _both(peer.reset),
    }  # fmt: skip
    replacements.put(peer, new)
    replacements.put(peer.eval_frame, {"OptimizedModule": new["OptimizedModule"]})
    replacements.later(_errors_of(peer.exc))
    replacements.later(_counting(peer.utils.counters))


def _both(theirs: Callable[[], None]) -> Callable[[], None]:
    """``torch._dynamo.reset``: both compilers forget what they have compiled."""

    def reset() -> None:
        theirs()
        api.reset()

    return reset


def _optimizing(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """``torch._dynamo.optimize``, which ``torch.compile`` itself calls as well."""

    def optimize(*args: Any, **kwargs: Any) -> Any:
        if compiling.is_torchs_own_call():
            return theirs(*args, **kwargs)
        return OptimizeLikeTorch(*args, **kwargs)

    return optimize


def _registering(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """``torch._dynamo.register_backend``: the name is known to both compilers."""

    def register_backend(compiler_fn: Any = None, name: str | None = None, tags: Any = ()) -> Any:
        if compiler_fn is None:
            return lambda compiler_fn: register_backend(compiler_fn, name, tags)
        if not str(getattr(compiler_fn, "__module__", "")).startswith("torch."):
            backends.register_backend(compiler_fn, name=name, tags=tags)
        return theirs(compiler_fn, name, tags)

    return register_backend


class OptimizeLikeTorch(api.optimize):
    """`framejit.optimize` with the signature of ``torch._dynamo.optimize``."""

    def __init__(
        self, backend: Any = "inductor", *, nopython: bool = False, disable: bool = False,
        dynamic: bool | None = None, **others: Any,
    ) -> None:  # fmt: skip
        super().__init__(backend, nopython=nopython, disable=disable, dynamic=dynamic)
        self.others = {name: given for name, given in others.items() if name == "recompile_limit"}

    def __call__(self, model: Any) -> Any:
        settings = self.settings
        return compiling.compile_like_torch(
            model, backend=settings.backend, fullgraph=settings.fullgraph, disable=self.disable,
            dynamic=settings.dynamic, **self.others,
        )  # fmt: skip


def optimize_assert(backend: Any = "inductor", **others: Any) -> OptimizeLikeTorch:
    """``torch._dynamo.optimize_assert``: a graph break is an error."""
    return OptimizeLikeTorch(backend, nopython=True, **others)


def substitute_in_graph(
    original_fn: Callable[..., Any], **others: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``torch.compiler.substitute_in_graph``: captured code that calls ``original_fn`` calls the
    decorated function instead. Raises TypeError for what is no function.
    """
    if not callable(original_fn) or isinstance(original_fn, type):
        raise TypeError(f"substitute_in_graph expects a function but got {original_fn!r} [FJ0210]")

    def decorate(traceable_fn: Callable[..., Any]) -> Callable[..., Any]:
        if not isinstance(traceable_fn, types.FunctionType):
            raise TypeError(
                f"@substitute_in_graph(...) expects a function but got {traceable_fn!r} [FJ0210]"
            )

        def call(space: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
            return call_polyfill(space, traceable_fn, args, kwargs)

        LOOKASIDES[original_fn] = call
        return original_fn

    return decorate


# -- what programs ask -----------------------------------------------------------------------------


@dataclass
class BreakReason:
    """Why a graph ends: ``reason``, and where in ``user_stack``."""

    reason: str
    user_stack: list[str]
    graph_break: bool = True


@dataclass
class ExplainOutput:
    """What ``torch._dynamo.explain(f)(...)`` returns."""

    graphs: list[torch.fx.GraphModule]
    break_reasons: list[BreakReason]
    ops_per_graph: list[list[Any]] = field(default_factory=list)
    out_guards: list[Any] = field(default_factory=list)
    compile_times: str = ""

    @property
    def graph_count(self) -> int:
        """The number of graphs."""
        return len(self.graphs)

    @property
    def graph_break_count(self) -> int:
        """The number of breaks between them."""
        return len(self.break_reasons)

    @property
    def op_count(self) -> int:
        """The number of operations in all graphs."""
        return sum(map(len, self.ops_per_graph))

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}",
                 f"Op Count: {self.op_count}", "Break Reasons:"]  # fmt: skip
        for number, one in enumerate(self.break_reasons, 1):
            lines += [f"  Break Reason {number}:", f"    Reason: {one.reason}"]
            lines += [f"      {place}" for place in one.user_stack]
        return "\n".join(lines)


def explain_like_torch(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """`framejit.explain` as ``torch._dynamo.explain``: its result has that one's attributes."""

    def inner(*args: Any, **kwargs: Any) -> ExplainOutput:
        graphs: list[torch.fx.GraphModule] = []

        def keep(module: torch.fx.GraphModule, examples: list[Any]) -> Any:
            graphs.append(module)
            return module.forward

        happened = explain(f, backend=keep)(*args, **kwargs)
        reasons = [BreakReason(one.reason, [one.place]) for one in happened.breaks]
        calls = ("call_function", "call_method", "call_module")
        operations = [[n.target for n in gm.graph.nodes if n.op in calls] for gm in graphs]
        return ExplainOutput(graphs, reasons, operations, happened.guards)

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner


# -- errors and counters ---------------------------------------------------------------------------

#: framejit's errors, and those of the peer that programs catch in their place.
_ERRORS = {
    exc.Unsupported: ("Unsupported",),
    exc.BackendCompilerFailed: ("BackendCompilerFailed",),
    exc.UnknownBackend: ("InvalidBackend",),
    exc.RecompileRefused: ("RecompileError", "FailOnRecompileLimitHit"),
    exc.MarkContradicted: ("UserError",),
    exc.InternalError: ("InternalTorchDynamoError",),
}


def _errors_of(theirs: Any) -> Callable[[], None]:
    """``except`` asks for real base classes, so framejit's errors get those of the peer."""
    before = {ours: ours.__bases__ for ours in _ERRORS}
    for ours, names in _ERRORS.items():
        found = [getattr(theirs, name) for name in names if hasattr(theirs, name)]
        ours.__bases__ = (*before[ours], *found)

    def back() -> None:
        for ours, bases in before.items():
            ours.__bases__ = bases

    return back


def _counting(counters: Any) -> Callable[[], None]:
    """``torch._dynamo.utils.counters`` counts what framejit captures."""

    def count(event: events.Event) -> None:
        match event:
            case events.CaptureStart():
                counters["frames"]["total"] += 1
            case events.CaptureEnd() if event.outcome == "compiled":
                counters["frames"]["ok"] += 1
            case events.GraphCompiled():
                counters["stats"]["unique_graphs"] += 1
                counters["stats"]["calls_captured"] += event.operations
            case events.GraphBreak():
                counters["graph_break"][event.reason] += 1

    return events.subscribe(count)
