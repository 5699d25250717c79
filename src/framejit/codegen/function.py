"""Puts a generated function together: parameters, the graph call, objects, effects, the way out.

In: the outcome of a capture and the compiled graph. Out: a Python function and its text. Positions
of the nodes are the user's, so that tracebacks point into the user's source. Next room: compiler.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable
from typing import Any

from framejit.bytecode.liveness import live_slots
from framejit.codegen import emit_iterators  # noqa: F401 - registers its emitters
from framejit.codegen.effects import replay, replay_state
from framejit.codegen.emit import Emitter, call, name
from framejit.interpreter.frame import Frame
from framejit.interpreter.loop import Broken, Returned
from framejit.values.base import NULL
from framejit.values.tensors import TensorValue

GRAPH = "fj:graph"


class Draft:
    """A function being generated: first what it needs of the graph, then its code."""

    def __init__(self, out: Emitter, outcome: Returned | Broken, link: Callable[..., Any]) -> None:
        self.out = out
        # Effects come first in the text only because values must be built before they are stored.
        exit_values = _exit_values(out, outcome, link)
        replay(out)
        way_out = exit_values()
        out.flush()
        self.exit = ast.Return(way_out)
        replay_state(out)

    def output_nodes(self) -> list[Any]:
        """The graph nodes whose values the function needs."""
        return [value.node for value in self.out.outputs]

    def function(
        self,
        code: types.CodeType,
        graph: Callable[..., Any] | None,
        inputs: list[TensorValue],
        captures: list[str],
        first: tuple[int, int, int, int],
        last: tuple[int, int, int, int],
    ) -> tuple[types.FunctionType, str]:
        """The finished function and its source text."""
        out = self.out
        body: list[ast.stmt] = []
        if graph is not None:
            out.namespace[GRAPH] = graph
            result: ast.expr = call(name(GRAPH), *[_input(out, value) for value in inputs])
            names = list(out.outputs.values())
            if names:
                target = ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
                body.append(ast.Assign([target], result))
            else:
                body.append(ast.Expr(result))
        for node in body:
            _place(node, first)
        for node in (*out.statements, self.exit):
            _place(node, last)
        body += [*out.statements, self.exit]
        parameters = [ast.arg(p) for p in (*out.slot_names, *captures)]
        definition = ast.FunctionDef(
            name=code.co_name,
            args=ast.arguments(
                posonlyargs=[], args=parameters, kwonlyargs=[], kw_defaults=[], defaults=[]
            ),
            body=body,
            decorator_list=[],
        )
        line = code.co_firstlineno
        for argument in parameters:
            _place(argument, (line, line, 0, 0))
        definition.lineno = definition.end_lineno = line
        definition.col_offset = definition.end_col_offset = 0
        module = ast.Module([definition], [])
        compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
        inner = next(c for c in compiled.co_consts if isinstance(c, types.CodeType))
        inner = inner.replace(co_qualname=code.co_qualname)
        out.namespace["__builtins__"] = builtins
        out.namespace["__name__"] = "framejit.generated"
        return types.FunctionType(inner, out.namespace, code.co_name), ast.unparse(module)


def _input(out: Emitter, value: TensorValue) -> ast.expr:
    assert value.source is not None
    return out.load(value.source)


def _place(tree: ast.AST, where: tuple[int, int, int, int]) -> None:
    line, end_line, column, end_column = where
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword)):
            node.lineno, node.end_lineno = line, end_line
            node.col_offset, node.end_col_offset = column, end_column


def _exit_values(
    out: Emitter, outcome: Returned | Broken, link: Callable[..., Any]
) -> Callable[[], ast.expr]:
    """Build everything the way out needs; the answer makes its expression."""
    if isinstance(outcome, Returned):
        result = out.value(outcome.value)
        return lambda: result
    states = [_state(out, frame, i, outcome) for i, frame in enumerate(outcome.frames)]
    overrides = [
        out.value(frame.result) if frame.result is not None else None for frame in outcome.frames
    ]

    def expression() -> ast.expr:
        tail = out.constant(link.tail, "tail")  # type: ignore[attr-defined]
        thunk: ast.expr | None = None
        for depth in range(len(outcome.frames) - 1, -1, -1):
            frame = outcome.frames[depth]
            target = link(frame, innermost=thunk is None)
            arguments = states[depth] + ([thunk] if thunk is not None else [])
            thunk = call(tail, out.constant(target, "break"), *arguments)
            result = overrides[depth]
            if result is not None:
                thunk = call(tail, out.helper("answer"), thunk, result)
        assert thunk is not None
        return thunk

    return expression


def _state(out: Emitter, frame: Frame, depth: int, outcome: Broken) -> list[ast.expr]:
    """The arguments of the frame's break function: every slot, then the stack without NULLs."""
    innermost = depth == len(outcome.frames) - 1
    stack = frame.before if innermost else frame.stack
    live = live_slots_of(frame)
    slots: list[ast.expr] = []
    for i, value in enumerate(frame.slots):
        if value is None or (i not in live):
            slots.append(ast.Constant(None))
        else:
            slots.append(out.value(value))
    return slots + [out.value(value) for value in stack if value is not NULL]


def live_slots_of(frame: Frame) -> frozenset[int]:
    """The bound slots that the rest of the frame may still read."""
    live = live_slots(frame.info, frame.index)
    return frozenset(i for i in live if frame.slots[i] is not None)
