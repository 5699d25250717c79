"""Puts a generated function together: parameters, the graph call, objects, effects, the way out.

In: the outcome of a capture and the compiled graph. Out: a Python function and its text. Positions
of the nodes are the user's, so that tracebacks point into the user's source. Next room: compiler.
"""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable, Container, Iterable
from typing import Any, NamedTuple

import torch

from framejit import native
from framejit.bytecode.frame_point import FramePoint, leaves_result
from framejit.bytecode.liveness import live_slots
from framejit.bytecode.release import tables
from framejit.codegen import (  # noqa: F401 - the first ones register their emitters
    cached_calls,
    emit_arrays,
    emit_iterators,
    emit_objects,
    emit_process,
    emit_tensors,
    steppable,
)
from framejit.codegen.effects import register, replay, replay_state
from framejit.codegen.emit import Emitter, call, name
from framejit.codegen.emit_generators import held_by, keeps_what_acts, kept_in_older_traceback
from framejit.interpreter.dropped import reached
from framejit.interpreter.frame import Frame
from framejit.interpreter.onlookers import may_be_looked_at
from framejit.interpreter.outcomes import Broken, Returned
from framejit.values.core.base import NULL, Value, is_user_class
from framejit.values.core.constants import ConstantValue
from framejit.values.core.ends import HOLD_NOTHING, keeps_what_is_seen, noticed_parts
from framejit.values.core.operations import LazyValue
from framejit.values.core.space import Space
from framejit.values.objects.functions import BoundBuiltin
from framejit.values.objects.generators import GeneratorValue
from framejit.values.objects.instances import ObjectValue
from framejit.values.objects.local_classes import is_anonymous
from framejit.values.torch.tensors import TensorValue

GRAPH = "fj:graph"
#: `Recovery.settled`.
SETTLED = "fj:settled"
_INPUTS = "fj:inputs"
#: From this many inputs on, the graph gets them in a tuple that the native dispatch fills: passing
#: them through the generated function would cost more than checking them.
TUPLE_INPUTS = 12
#: How many inlined calls go on in one continuation; the callers of a deeper recursion wait in calls
#: of their own, so that state and code do not grow with its depth.
JOINED_LIMIT = 24


class Recovery(NamedTuple):
    """What to do when the graph raises (D13)."""

    #: Called with the error and every slot; returns the rest of the work, in plain Python.
    deoptimise: Callable[..., Any]
    #: May the graph raise for some data?
    raises: bool
    #: Whether the segment can always run again and the graph draws random numbers.
    random: bool
    #: Torch's global state that the graph changes: setter, what it selects, value at the start.
    restore: list[tuple[Any, tuple[Any, ...], Any]]
    #: Whether it is known by now that the segment cannot run again, if that may come to be so.
    settled: Callable[[], bool] | None = None


#: Line, last line, column, last column.
Position = tuple[int, int, int, int]
#: See `native.Entry`.
Layout = tuple[tuple[int, ...], tuple[int, ...]]


class Generated(NamedTuple):
    """A generated function."""

    function: types.FunctionType
    text: str
    layout: Layout | None


class Draft:
    """A function being generated: first what it needs of the graph, then its code."""

    def __init__(
        self, out: Emitter, outcome: Returned | Broken, make_break: Callable[..., Any],
        answer: Callable[..., Any], left_before: Iterable[tuple[Value, int, Frame]] = (),
    ) -> None:  # fmt: skip
        self.out = out
        #: What must hold before the graph runs.
        self.checks_before = cached_calls.checks(out)
        cached_calls.make(out)
        register(out)
        exit_values = _exit_values(out, outcome, make_break, answer)
        replay(out)
        for error, position, frame in left_before:
            kept = kept_in_older_traceback(error, position, frame)
            emit_objects.keep_in_traceback(out, error, kept)
        way_out = exit_values()
        out.finish()
        self.exit = ast.Return(way_out)
        replay_state(out)
        #: What the program has let go of before the graph: its memory is free for that.
        self.before: list[ast.stmt] = [
            ast.Expr(
                call(
                    out.constant(setattr), out.value(value), ast.Constant("grad"),
                    ast.Constant(None),
                )
            )
            for value in out.space.effects.released
        ]  # fmt: skip
        #: What must hold before anything of this is done.
        self.checks: list[ast.stmt] = [
            ast.Expr(call(out.helper("expect"), out.value(value), ast.Constant(truth)))
            for value, truth in out.space.effects.expected.items()
        ]

    def output_nodes(self) -> list[Any]:
        """The graph nodes whose values the function needs."""
        return [value.node for value in self.out.outputs]

    def function(
        self,
        code: types.CodeType,
        graph: Callable[..., Any] | None,
        inputs: list[ast.expr],
        captures: list[str],
        places: tuple[Position, Position],
        recovery: Recovery | None = None,
    ) -> Generated:
        """The finished function, its source text, and how it gets its arguments; ``places``: where
        the graph starts, and where the function ends."""
        out, (first, last) = self.out, places
        body = list(self.checks_before)
        layout = None
        if graph is not None:
            out.namespace[GRAPH] = graph
            layout = self._layout(inputs, captures)
            if layout is not None:
                captures = [*[captures[i] for i in layout[0]], _INPUTS]
                inputs = [ast.Starred(name(_INPUTS), ast.Load())]
            result: ast.expr = call(name(GRAPH), *inputs)
            names = list(out.outputs.values())
            if names:
                target = ast.Tuple([ast.Name(n, ast.Store()) for n in names], ast.Store())
                body.append(ast.Assign([target], result))
            else:
                body.append(ast.Expr(result))
        body += [*out.computations, *self.checks]
        if body:
            if recovery is not None:
                if recovery.raises and recovery.settled is not None and self.before:
                    out.namespace[SETTLED] = recovery.settled
                    settled = ast.If(call(name(SETTLED)), self.before, [])
                    body.insert(len(self.checks_before), settled)
                body = [ast.Try(body, _handlers(out, recovery), [], [])]
                if recovery.random:
                    before = ast.Name(_RANDOM_BEFORE, ast.Store())
                    body.insert(0, ast.Assign([before], call(out.helper("random_state"))))
                if not recovery.raises:
                    body = [*self.before, *body]
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
        if steppable.wanted():
            compiled = steppable.compiled(module, code, out.namespace)
        else:
            compiled = compile(module, code.co_filename, "exec", dont_inherit=True)
        inner = next(c for c in compiled.co_consts if isinstance(c, types.CodeType))
        inner = inner.replace(co_name=code.co_name, co_qualname=code.co_qualname)
        out.namespace["__builtins__"] = builtins
        out.namespace["__name__"] = "framejit.generated"
        function = types.FunctionType(inner, out.namespace, code.co_name)
        return Generated(function, ast.unparse(module), layout)

    def _layout(self, inputs: list[ast.expr], captures: list[str]) -> Layout | None:
        """Which captured values are arguments, and the positions of the graph's inputs, if it gets
        those in a tuple (`native.Entry`)."""
        if len(inputs) < TUPLE_INPUTS:
            return None
        positions = {slot: -1 - i for i, slot in enumerate(self.out.slot_names)}
        positions |= {captured: i for i, captured in enumerate(captures)}
        found = [positions.get(i.id) if isinstance(i, ast.Name) else None for i in inputs]
        used = {
            node.id
            for statement in (
                *self.before,
                *self.checks_before,
                *self.out.computations,
                *self.out.statements,
                self.exit,
            )
            for node in ast.walk(statement)
            if isinstance(node, ast.Name)
        }
        shown = tuple([i for i, captured in enumerate(captures) if captured in used])
        in_tuple = tuple([position for position in found if position is not None])
        return (shown, in_tuple) if len(in_tuple) == len(inputs) else None


_RANDOM_BEFORE = "fj:random before"


def _handlers(out: Emitter, recovery: Recovery) -> list[ast.ExceptHandler]:
    """The handlers around the graph call: nothing is replayed yet, the segment may run again."""
    error = ast.Name("fj:error", ast.Load())
    restore: list[ast.stmt] = [
        ast.Expr(call(out.constant(setter), *[out.constant(a) for a in (*selector, before)]))
        for setter, selector, before in reversed(recovery.restore)
    ]
    slots: list[ast.expr] = [name(slot) for slot in out.slot_names]
    out.namespace["fj:deoptimise"] = recovery.deoptimise
    again: list[ast.stmt] = [ast.Return(call(name("fj:deoptimise"), error, *slots))]
    if recovery.random:  # what is drawn again must be the same
        again.insert(0, ast.Expr(call(out.helper("restore_random"), name(_RANDOM_BEFORE))))
    kind: ast.expr = out.constant(Exception, "Exception")
    handlers = [ast.ExceptHandler(kind, "fj:error", [*restore, *again])]
    if restore:
        kind = out.constant(BaseException, "BaseException")
        handlers.append(ast.ExceptHandler(kind, None, [*restore, ast.Raise()]))
    return handlers


def _place(tree: ast.AST, where: Position) -> None:
    line, end_line, column, end_column = where
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword, ast.excepthandler)):
            node.lineno, node.end_lineno = line, end_line
            node.col_offset, node.end_col_offset = column, end_column


def _exit_values(
    out: Emitter, outcome: Returned | Broken, make_break: Callable[..., Any],
    answer: Callable[..., Any],
) -> Callable[[], ast.expr]:  # fmt: skip
    """Build everything the way out needs; what it returns makes its expression. ``make_break``:
    the break function of a frame; ``answer``: what a constructor's call returns."""
    if isinstance(outcome, Returned):
        result = out.value(outcome.value)
        return lambda: result
    _keep_shared(out.space, outcome.frames)
    states = [_state(out, frame, i, outcome) for i, frame in enumerate(outcome.frames)]
    overrides = [
        out.value(frame.result) if frame.result is not None else None for frame in outcome.frames
    ]

    last = outcome.frames[-1]
    held = held_by(last) if last.raises and last.instruction.op == "RERAISE" else []

    def expression() -> ast.expr:
        if held:  # the traceback has the frame already, and does not get that of the break
            emit_objects.keep_in_traceback(out, last.before[-1], [(0, held, False)])
        tail = out.constant(native.tail, "tail")
        thunk: ast.expr | None = None
        for depth in range(len(outcome.frames) - 1, -1, -1):
            frame = outcome.frames[depth]
            target = make_break(frame, thunk is None)
            arguments = list(states[depth])
            if thunk is not None:  # a name: hundreds of nested calls would be too deep to compile
                arguments.append(out.assign("callee", thunk))
            # A caller that keeps the result goes on in one continuation with what it called: its
            # thunk runs the operation only and returns the call of the continuation after it.
            joined = depth > 0 and len(outcome.frames) - depth <= JOINED_LIMIT and not frame.seen
            joined = joined and leaves_result(call_point(outcome.frames[depth - 1]))
            start = out.constant(native.step, "step") if joined else tail
            thunk = call(start, out.constant(target, "break"), *arguments)
            result = overrides[depth]
            if result is not None:
                joining = out.constant(answer, "answer") if joined else out.helper("answer")
                thunk = call(start, joining, thunk, result)
        assert thunk is not None
        return thunk

    return expression


def _state(out: Emitter, frame: Frame, depth: int, outcome: Broken) -> list[ast.expr]:
    """The arguments of the frame's break function: every slot, then the stack without NULLs."""
    innermost = depth == len(outcome.frames) - 1
    live = live_slots_of(frame)
    return [
        ast.Constant(None) if value is None else out.value(value)
        for value in (
            *[value if i in live else None for i, value in enumerate(frame.slots)],
            *[value for value in _stack(frame, innermost) if value is not NULL],
        )
    ]


def _stack(frame: Frame, innermost: bool) -> list[Value]:
    """The stack of a frame of a break, with methods unbound as CPython looks them up for calls."""
    stack = list(frame.before if innermost else frame.stack)
    for i, value in enumerate(stack):
        null = i + 1 if tables.NULL_ABOVE else i - 1
        if type(value) is BoundBuiltin and 0 <= null < len(stack) and stack[null] is NULL:
            if (method := value.unbound()) is not None:
                start = min(i, null)
                stack[start : start + 2] = ConstantValue(method), value.receiver
    return stack


def call_point(frame: Frame, innermost: bool = False) -> FramePoint:
    """Where a frame of a break is: before the instruction, or waiting for its call."""
    stack = _stack(frame, innermost)
    nulls = frozenset(i for i, value in enumerate(stack) if value is NULL)
    return FramePoint(frame.info.code, frame.index, live_slots_of(frame), nulls, len(stack))


def hands_over(frame: Frame) -> bool:
    """Does a call at a break get something whose end the program may see?"""
    if frame.instruction.op != "CALL":
        return False
    return any(
        keeps_what_is_seen(one.obj, _layers(one)) if getattr(one, "obj", None) is not None
        else isinstance(one, (ObjectValue, GeneratorValue))
        for one in reached(frame.operands())
    )  # fmt: skip


def live_slots_of(frame: Frame) -> frozenset[int]:
    """The bound slots that the rest of the frame may still read, or that must not end early; all of
    them if somebody looks at the frame. Found out once, when the frame has broken."""
    if frame.live is None:
        live = live_slots(frame.info, frame.index)
        bound = {i: value for i, value in enumerate(frame.slots) if value is not None}
        seen = frame.seen or (not live.issuperset(bound) and may_be_looked_at(frame))
        kept = {
            i for i, value in bound.items()
            if i in live or seen or keeps_what_acts(value)
            or (frame.raises and _is_simple(value))
        }  # fmt: skip
        if len(kept) < len(bound):
            given = {token for one in reached(frame.handed) for token in _may_be_noticed(one)}
            rest = {i: value for i, value in bound.items() if i not in kept}
            kept |= {
                i for i, value in rest.items()
                if any(_must_stay(one, given) for one in reached([value])) or _is_unknown(value)
            }  # fmt: skip
        frame.live = frozenset(kept)
    return frame.live


def _keep_shared(space: Space, frames: list[Frame]) -> None:
    """Add the variables to `Frame.live` that nothing reads, but that hold what something else holds
    as well: the program may refer to that weakly, or give it a ``__del__``, and let go of it there.
    """
    roots: list[Any] = [*space.effects.changed, *space.class_writes.values()]
    roots += [change.value for change in space.effects.globals.values()]
    dead: dict[Frame, dict[int, list[Value]]] = {}
    for frame in frames:
        live, bound = live_slots_of(frame), enumerate(frame.slots)
        roots += [*[frame.slots[i] for i in live], *_stack(frame, frame is frames[-1])]
        dead[frame] = {
            i: [one for one in reached([value]) if _is_referred_to(one)]
            for i, value in bound if value is not None and i not in live
        }  # fmt: skip
    if any(any(slots.values()) for slots in dead.values()):
        met = {identity for one in reached(roots) for identity in (id(one), id(_object_of(one)))}
        for frame, slots in dead.items():
            frame.live = live_slots_of(frame) | {
                i for i, parts in slots.items()
                if any(id(one) in met or id(_object_of(one)) in met or _is_elsewhere(one)
                       for one in parts)
            }  # fmt: skip


def _object_of(value: Any) -> Any:
    obj = getattr(value, "obj", None)
    return value if obj is None else obj


def _is_referred_to(value: Any) -> bool:
    """Is it such that programs refer to it weakly, or give it a ``__del__`` later?"""
    if not isinstance(value, Value) or value is NULL:
        return False
    kind = type(value.obj) if isinstance(value, LazyValue) else value.python_type()
    if issubclass(kind, torch.nn.Module) and getattr(value, "obj", None) is not None:
        return True  # what it holds may be, too, whether or not anybody has looked there
    if issubclass(kind, (torch.Tensor, torch.nn.Module, types.FunctionType, types.GeneratorType)):
        return False
    return bool(kind.__weakrefoffset__) or is_user_class(kind)


def _is_elsewhere(value: Value) -> bool:
    """Is it an existing object of the program's? Something holds it that is not seen here."""
    obj = getattr(value, "obj", None)
    return obj is not None and is_user_class(type(obj))


def _is_unknown(value: Value) -> bool:
    """Has nobody looked at it? The next call may have something of another kind there, whose end is
    seen even if that of this one is not. A guard says that it has not,
    but of containers, and of classes that each call makes anew."""
    if not isinstance(value, LazyValue) or value.value is not None:
        return False
    kind = type(value.obj)
    if not (is_user_class(kind) or any(kind is one for one in HOLD_NOTHING)):
        return True
    if not is_anonymous(kind):
        value.space.guard(value.source, "TYPE_MATCH", kind)
    return False


def _must_stay(value: Value, given: set[int]) -> bool:
    """Is the end of something that it is seen, or does the broken operation get it, too?"""
    obj = getattr(value, "obj", None)
    if obj is not None and keeps_what_is_seen(obj, _layers(value)):
        return True
    return bool(given) and not given.isdisjoint(_may_be_noticed(value))


def _may_be_noticed(value: Value) -> Iterable[int]:
    """The objects in it that an operation which gets them may start, or make weak references to."""
    obj = getattr(value, "obj", None)
    if obj is not None:
        return map(id, noticed_parts(obj, _layers(value)))
    made = isinstance(value, (ObjectValue, GeneratorValue, TensorValue)) and value.source is None
    return (id(value),) if made else ()


def _layers(value: Value) -> Container[int]:
    return () if value.source is None else value.source.root.layers


def _is_simple(value: Value) -> bool:
    """Is the value there anyway, so that showing it costs nothing that may fail?"""
    return value.source is not None or value.is_constant or isinstance(value, TensorValue)
