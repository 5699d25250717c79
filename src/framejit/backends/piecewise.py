"""A backend that gives another one pieces of graphs: what is between them runs as it is.

In: a backend, and operations that it is not to have (attention, say, that is not compiled or not
captured in CUDA graphs). Out: a backend that packages can save if the other one's results can be.
Where a graph may be cut was found out when it was captured (`graph.splits`). Next: compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.fx

from ..graph.builder import WRITES
from ..graph.parts import PARTS, Part
from ..graph.ragged import traceable
from .context import aot_settings, context_of
from .dividing import in_parts, owned_copy, parts_of
from .registry import CompilerFn, backend_name, configured_backend
from .segments import assemble
from .strides import keep_strides


def piecewise(
    backend: str | CompilerFn = "inductor",
    *,
    at: Iterable[Any],
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Piecewise:
    """A backend that compiles what lies between the operations ``at``, piece by piece.

    Args:
        backend: Gets the pieces, each as a graph of its own, in the program's order. The inputs of
            later pieces are fake tensors, as nothing has been executed yet.
        at: The operations that run as they are: custom operators (what `torch.library.custom_op`
            returns, ``torch.ops.library.name``, or the text ``"library::name"``), and functions of
            torch's.
        mode: As `compile` takes it, for ``backend``.
        options: The same.

    Raises:
        TypeError: ``at`` holds something else, or nothing.
        exc.UnknownBackend: There is no backend of that name.
    """
    chosen = [at] if isinstance(at, str) else list(at)
    if not chosen:
        raise TypeError("at= must hold the operations at which graphs are split [FJ0213]")
    return Piecewise(configured_backend(backend, mode, options), map(_key, chosen))


def _key(operation: Any) -> Any:
    """What `_keys_of` gives for a node of that operation."""
    name = getattr(operation, "_qualname", operation)  # of a custom operator's definition
    if isinstance(name, str) and name.count("::") == 1:
        return name
    if isinstance(operation, torch._ops.OpOverloadPacket):
        return operation._qualified_op_name
    if isinstance(operation, torch._ops.OpOverload) or callable(operation):
        return operation
    raise TypeError(
        "at= takes operators, their names ('library::name') and functions of torch's, not "
        f"{operation!r} [FJ0213]"
    )


def _keys_of(target: Any) -> set[Any]:
    packet = getattr(target, "overloadpacket", target)
    name = getattr(packet, "_qualified_op_name", None)
    full = target.name() if isinstance(target, torch._ops.OpOverload) else None
    return {target, name, full} - {None}


class _Pieces:
    """A graph that runs in pieces, and what those were compiled to, in order."""

    def __init__(
        self, run: Callable[..., Any], pieces: list[tuple[torch.fx.GraphModule, Any]]
    ) -> None:
        self.run = run
        self.pieces = pieces

    def __call__(self, *inputs: Any) -> Any:
        return self.run(*inputs)


class Piecewise:
    """What `piecewise` returns. Equal arguments make equal backends."""

    def __init__(self, compiler_fn: CompilerFn, at: Iterable[Any]) -> None:
        self.compiler_fn = compiler_fn
        self.at = frozenset(at)
        names = sorted(getattr(one, "__name__", str(one)) for one in self.at)
        self.__name__ = f"piecewise({backend_name(compiler_fn)}, at {', '.join(names)})"

    def splits(self, node: torch.fx.Node) -> bool:
        """Does this operation run as it is?"""
        return not self.at.isdisjoint(_keys_of(node.target))

    def __call__(self, gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
        parts = gm.meta.get(PARTS)
        if not parts or not self._are_ours(gm, parts):
            return self.compiler_fn(gm, example_inputs)
        pieces: list[tuple[torch.fx.GraphModule, Any]] = []

        def compile_piece(piece: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
            with aot_settings(), traceable(piece, inputs):
                pieces.append((piece, self.compiler_fn(piece, inputs)))
            return pieces[-1][1]

        with context_of(gm, example_inputs) as context:
            mode = context.fake_mode
            assert mode is not None
            run = in_parts(compile_piece, self._as_it_runs(gm), example_inputs, mode, parts)
        return _Pieces(run, pieces)

    def _are_ours(self, gm: torch.fx.GraphModule, parts: list[Part]) -> bool:
        """Was the graph cut at our operations? Else AOTAutograd needs the parts."""
        nodes = list(gm.graph.nodes)
        found = [self.splits(nodes[part.nodes[0]]) for part in parts if not part.compiled]
        return bool(found) and all(found)

    def _as_it_runs(self, gm: torch.fx.GraphModule) -> torch.fx.GraphModule:
        if gm.meta.get(WRITES):
            strided = gm.meta[WRITES]
            gm = owned_copy(gm)
            keep_strides(gm, strided)
        return gm

    # -- packages

    def serialize(self, compiled: Any, gm: torch.fx.GraphModule) -> dict[str, bytes] | None:
        """What the other backend gives away of each piece, or of the graph that has none."""
        inner = getattr(self.compiler_fn, "serialize", None)
        if inner is None:
            return None
        several = compiled.pieces if isinstance(compiled, _Pieces) else [(gm, compiled)]
        parts: dict[str, bytes] = {}
        for number, (piece, run) in enumerate(several):
            made = inner(run, piece)
            if made is None:
                return None
            parts |= {f"{number} {name}": data for name, data in made.items()}
        return parts

    def deserialize(
        self, parts: Mapping[str, Any], module: Callable[[], torch.fx.GraphModule]
    ) -> Callable[..., Any] | None:
        """The way back, in another process."""
        inner = getattr(self.compiler_fn, "deserialize", None)
        if inner is None:
            return None

        def loaded(number: int, piece: Callable[[], torch.fx.GraphModule]) -> Any:
            start = f"{number} "
            own = {
                name.removeprefix(start): p for name, p in parts.items() if name.startswith(start)
            }
            return inner(own, piece)

        gm = module()
        cut = gm.meta.get(PARTS)
        if not cut or not self._are_ours(gm, cut):
            return loaded(0, module)  # type: ignore[no-any-return]
        gm = self._as_it_runs(gm)
        segments, todo = parts_of(gm, cut), iter(cut)
        pieces: list[tuple[torch.fx.GraphModule, Any]] = []

        def wrap(piece: torch.fx.GraphModule, _: list[int]) -> Callable[..., Any]:
            if not next(todo).compiled:
                return lambda *inputs: piece.forward(*inputs)
            pieces.append((piece, loaded(len(pieces), lambda: piece)))
            run = pieces[-1][1]
            return lambda *inputs: run(*inputs)

        run = assemble(gm, segments, None, wrap).forward
        return None if any(one is None for _, one in pieces) else _Pieces(run, pieces)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Piecewise):
            return NotImplemented
        return self.at == other.at and self.compiler_fn == other.compiler_fn

    def __hash__(self) -> int:
        return hash((self.at, self.compiler_fn))
