"""Runs programs eagerly and compiled, and compares everything that a user can see.

In: a `Program` and a mode. Out: a `Report`: the first difference if there is one, and how much was
captured. A mode says how the program is compiled, see `MODES`.
"""

from __future__ import annotations

import ast
import contextlib
import dis
import io
import itertools
import linecache
import random
import signal
import sys
import traceback
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from program_writer import Program
from snapshots import Snapshot, without_addresses
from torch.utils.hooks import RemovableHandle

import framejit
from checking import captured_again
from framejit.capture.generating import LATE
from framejit.interpreter.forced import forced_break, noted
from framejit.report import events

FILE = "<program>"
#: What is compiled has no second derivative, and says so.
_ONCE = "[FJ0215]"
#: A program that takes longer as plain Python never ends.
EAGER_SECONDS = 2
#: plain: `compile`. breaks: with a graph break at random statements. hook: inside an `optimize`
#: block. limit: with few entries per frame. aot: with AOTAutograd, which makes one node of a graph.
#: regions: so, too, and repeated calls are calls of one subgraph. cut: with a break before one
#: random instruction. again: each capture is made twice. inductor: as by default.
MODES = ("plain", "breaks", "hook", "limit", "aot", "regions", "cut", "again", "inductor")


class Slow(BaseException):
    """A program ran for too long."""


@dataclass
class Report:
    """What came of one program."""

    failure: str = ""
    #: Where the failure is, short: the same for a program that was made smaller.
    signature: str = ""
    skipped: list[str] = field(default_factory=list)
    graphs: int = 0
    breaks: list[str] = field(default_factory=list)
    raised: int = 0
    calls: int = 0
    #: A difference that is known ended the comparison: the error of a graph that had already
    #: written to a tensor (see `LATE`), or second derivatives of what was compiled.
    late: bool = False


class InsertBreaks(ast.NodeTransformer):
    """Puts a graph break after random statements of all functions."""

    def __init__(self, seed: int, share: float = 0.3) -> None:
        self.random = random.Random(seed)
        self.share = share
        self.inside = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.inside += 1
        self.generic_visit(node)
        self.inside -= 1
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if self.inside and isinstance(block, list) and not isinstance(node, ast.ClassDef):
                setattr(node, name, [part for s in block for part in self.with_break(s)])
        return node

    def with_break(self, statement: ast.stmt) -> list[ast.stmt]:
        first = isinstance(statement, (ast.Global, ast.Nonlocal))
        if first or self.random.random() > self.share:
            return [statement]
        return [statement, *ast.parse("framejit.graph_break()").body]


def with_breaks(program: Program, seed: int) -> str:
    """The source with graph breaks at random statements of its own functions."""
    tree = ast.fix_missing_locations(InsertBreaks(seed).visit(ast.parse(program.own)))
    return f"{program.prelude}import framejit\n{ast.unparse(tree)}\n"


def split_call(call: str) -> tuple[str, str]:
    """The function's name and the text of the arguments."""
    name, _, arguments = call.partition(":")
    return name, arguments


class Copy:
    """One copy of a program: a module of its own."""

    def __init__(self, source: str) -> None:
        self.module = sys.modules["program"] = types.ModuleType("program")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            exec(compile(source, FILE, "exec"), self.module.__dict__)
        #: Numbers of hooks are counted by the process: each copy has its own.
        self.next_handle = 0

    def arguments(self, call: str) -> tuple[Any, ...]:
        return eval(call, self.module.__dict__)  # noqa: S307 - written by the fuzzer

    def leaves(self, args: tuple[Any, ...]) -> list[torch.Tensor]:
        """The tensors that may get gradients: parameters of the program, and arguments."""
        found = [*args]
        for value in self.module.__dict__.values():
            found += value.parameters() if isinstance(value, torch.nn.Module) else [value]
        leaves = [one for one in found if isinstance(one, torch.Tensor) and one.is_leaf]
        return [one for one in leaves if one.requires_grad]

    def state(self) -> list[Any]:
        """The globals that a program can change."""
        state = []
        for name, value in self.module.__dict__.items():
            if isinstance(value, type) and value.__module__ == "program":
                plain = {k: v for k, v in vars(value).items() if isinstance(v, int)}
                state.append((name, tuple(plain.items())))
            elif name.startswith("G_") or isinstance(value, (int, list, dict)):
                if not name.startswith("__"):
                    state.append((name, value))
        return state


def outcome(
    copy: Copy, function: Any, args: tuple[Any, ...], around: Any, number: int, nodes: bool
) -> dict[str, Any]:
    """Call ``function`` and say what can be seen of it afterwards; of tensors also what made them
    if ``nodes``."""
    torch.manual_seed(7)
    RemovableHandle.next_id = copy.next_handle
    out = io.StringIO()
    result = error = None
    replaced = getattr(copy.module, "replaced", contextlib.nullcontext)
    with contextlib.redirect_stdout(out):
        try:
            with replaced(number), around:
                result = function(*args)
        except Exception as raised:  # noqa: BLE001 - compared
            error = raised
    taken = Snapshot(nodes)
    gradients = backward(result, number) if nodes else slopes(result, copy.leaves(args))
    seen = {
        "raised": taken.take(error),
        "printed": without_addresses(out.getvalue()),
        "result": taken.take(result),
        "arguments": taken.take(args),
        "globals": [taken.take(pair) for pair in copy.state()],
        "backward": gradients,
        "iterators": taken.rest(),
        "generator": hash(bytes(torch.get_rng_state().tolist())),
        "mode": (torch.is_grad_enabled(), torch._C._autograd._saved_tensors_hooks_is_enabled()),
        "handled": repr(sys.exc_info()[1]),
        "late": any(note.startswith(LATE) for note in getattr(error, "__notes__", ())),
        "place": place(error),
    }
    torch.set_grad_enabled(True)
    torch._C._autograd._saved_tensors_hooks_enable()
    copy.next_handle = RemovableHandle.next_id
    if error is not None:  # the variables of the program end now, not at some collection
        traceback.clear_frames(error.__traceback__)
    return seen


def slopes(result: Any, leaves: list[torch.Tensor]) -> list[Any]:
    """The gradients of the tensors of a result; which node fails first may differ."""
    found: list[Any] = []
    for tensor in result if isinstance(result, tuple) else (result,):
        if isinstance(tensor, torch.Tensor) and tensor.grad_fn is not None:
            try:
                some = torch.autograd.grad(
                    tensor.sum(), leaves, retain_graph=True, allow_unused=True
                )
                # How the elements of a gradient lie in memory is nobody's promise.
                flat = [
                    None
                    if g is None
                    else (g.shape, torch.tensor(g.flatten().tolist(), dtype=g.dtype))
                    for g in some
                ]
                found += [None if g is None else Snapshot(False).take(g) for g in flat]
            except RuntimeError as error:
                found.append(_ONCE if _ONCE in str(error) else "an error")
    return found


def backward(result: Any, number: int) -> str:
    """Run backward through some tensors of a result, others in each call; gradients are compared
    with the arguments."""
    found = []
    for value in result if isinstance(result, tuple) else ():
        for tensor in value if isinstance(value, list) else (value,):
            if isinstance(tensor, torch.Tensor) and tensor.grad_fn is not None:
                found.append(tensor.sum())
    found = [t for i, t in enumerate(found) if (i + number) % 3 < 2] or found
    try:
        if found:
            torch.stack([t.double() for t in found]).sum().backward()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""


def place(error: BaseException | None) -> list[int]:
    """The innermost line of the program in an exception's traceback."""
    step, found = None if error is None else error.__traceback__, []
    while step is not None:
        code = step.tb_frame.f_code
        if code.co_filename == FILE and code.co_name != "backward":  # autograd calls that
            found = [line(step, str(error))]
        step = step.tb_next
    return found


def line(step: types.TracebackType, message: str) -> int:
    """The line of one step. CPython runs some pairs of instructions as one, and says that the first
    failed where the second loads a variable without a value."""
    code = dis.get_instructions(step.tb_frame.f_code)
    rest = itertools.dropwhile(lambda instruction: instruction.offset < step.tb_lasti, code)
    first, second = next(rest), next(rest, None)
    if second is not None and second.opname == "LOAD_FAST" and first.argval != second.argval:
        if f"local variable {second.argval!r}" in message and second.positions is not None:
            return second.positions.lineno or 0
    return step.tb_lineno or 0


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `Slow` after ``seconds`` of work, and again where that was lost in a callback; but not
    inside an import, which would leave half a module."""

    def stop(_: int, frame: types.FrameType | None) -> None:
        while frame is not None:
            if frame.f_globals.get("__name__") == "importlib._bootstrap":
                return  # it comes again
            frame = frame.f_back
        raise Slow

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def cut_somewhere(program: Program, seed: int) -> contextlib.AbstractContextManager[Any]:
    """A break before one instruction of the program's own, of those that are captured."""
    with noted() as seen:
        run(program)
    start = program.prelude.count("\n")
    own = [
        (code, index)
        for code, indices in seen.executed.items()
        for index in indices
        if code.co_filename == FILE and code.co_firstlineno > start
    ]
    return forced_break(*random.Random(seed).choice(own)) if own else contextlib.nullcontext()


def run(
    program: Program, mode: str = "plain", seed: int = 0, seconds: float = 20, ends: bool = False
) -> Report:
    """Run all calls of a program on an eager copy and on a compiled one. ``ends``: it is known to
    end, however slow it is."""
    if mode == "cut":
        with cut_somewhere(program, seed):
            return run(program, "plain", seed, seconds, ends)
    if mode == "again":
        with captured_again():
            return run(program, "plain", seed, seconds, ends)
    report = Report()
    source = program.source
    if mode == "breaks":
        source = with_breaks(program, seed)
    linecache.cache[FILE] = (len(source), None, source.splitlines(True), FILE)
    limit = 2 if mode == "limit" else framejit.config.recompile_limit
    # What raises in one call, and is found to do so, may not once something else is in its place.
    strict = "def replaced(" not in source
    kinds = (
        events.FrameSkipped, events.GraphCompiled, events.GraphBreak, events.InternalFailure,
        events.BackendFailed,
    )  # fmt: skip
    with (
        framejit.config.patch(
            raise_internal_errors=strict, recompile_limit=limit, verify_recordings=program.verified
        ),
        events.recording(*kinds) as seen,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            eager, traced = Copy(source), Copy(source)
            limits = (seconds if ends else EAGER_SECONDS), seconds
            compare_calls(program, mode, eager, traced, report, limits)
        except Slow:
            report.failure = report.failure or "too slow"
            report.signature = report.signature or "slow"
        finally:
            torch.set_grad_enabled(True)
            framejit.reset()
    for event in seen:
        if isinstance(event, events.FrameSkipped):
            report.skipped.append(event.reason)
        elif isinstance(event, events.GraphCompiled):
            report.graphs += 1
        elif isinstance(event, events.InternalFailure) and not report.failure:
            report.failure = report.signature = f"an internal error: {event.reason}"
        elif isinstance(event, events.BackendFailed) and not report.failure:
            report.failure = report.signature = f"a graph does not run: {event.reason}"
        elif isinstance(event, events.GraphBreak):
            report.breaks.append(event.reason)
    return report


def counting(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
    """The backend: runs graphs as they are; whether it looks at one before, its inputs decide."""
    if len(example_inputs) % 2:
        module.graph.lint()
    return module


def compare_calls(
    program: Program,
    mode: str,
    eager: Copy,
    traced: Copy,
    report: Report,
    limits: tuple[float, float],
) -> None:
    """Fill in ``report``; ``limits`` are for one call of the eager copy and the compiled one."""
    around: Any = contextlib.nullcontext
    as_recorded = program.nodes and mode not in ("aot", "regions", "inductor")
    options: dict[str, Any] = {"backend": counting, "dynamic": program.dynamic}
    if mode in ("aot", "regions"):
        options |= {"backend": "aot_eager", "options": {"regions": mode == "regions"}}
    elif mode == "inductor":
        options["backend"] = mode
    functions = {name: vars(traced.module)[name] for name, _ in map(split_call, program.calls)}
    if mode == "hook":
        around = lambda: framejit.optimize(counting)  # noqa: E731
    else:
        for name, plain in functions.items():
            functions[name] = framejit.compile(plain, **options)
    for number, (name, call) in enumerate(map(split_call, program.calls)):
        function, plain = functions[name], vars(eager.module)[name]
        try:
            args, again = eager.arguments(call), traced.arguments(call)
        except Exception:  # noqa: BLE001 - state of earlier calls may not allow this one
            continue
        try:
            with time_limit(limits[0]):
                expected = outcome(
                    eager, plain, args, contextlib.nullcontext(), number, as_recorded
                )
        except (Slow, SystemError, RuntimeError):  # it never ends, or a tensor has a negative size
            return
        report.calls += 1
        report.raised += bool(expected["place"])
        try:
            with time_limit(limits[1]):
                got = outcome(traced, function, again, around(), number, as_recorded)
        except BaseException as error:
            if isinstance(error, Slow):
                raise
            report.failure = f"call {number}: " + "".join(traceback.format_exception(error))
            report.signature = f"crash {type(error).__name__}"
            return
        if got["late"]:
            report.late = True
            if got["mode"] != expected["mode"]:  # blocks clean up, whatever else is lost
                report.failure = f"call {number}: modes {expected['mode']} {got['mode']}"
                report.signature = "mode"
            return
        if _ONCE in got["backward"]:
            report.late = True
            return
        failed = not program.nodes and expected["raised"][0] == "RuntimeError"
        if failed and got["raised"][0] == expected["raised"][0]:
            return  # how far autograd has come before an error is its own affair
        after = expected["backward"]  # where that fails, too, hooks may have been called before
        unsettled = bool(after) if isinstance(after, str) else "an error" in after
        for key, value in expected.items():
            if (
                key == "generator" and not as_recorded
            ):  # random numbers that nobody uses are not drawn
                continue
            if unsettled and key in ("globals", "arguments"):
                continue
            if key == "arguments" and program.has_out and expected["place"]:
                return
            if got[key] != value:
                path, one, two = difference(value, got[key])
                report.failure = (
                    f"call {number} {name}{call}: {key}{path}\n  eager:    {one}\n  compiled: {two}"
                )
                report.signature = key
                if key == "raised":
                    report.signature += f" {name_of(value)} {name_of(got[key])}"
                    report.failure += "\n" + str(got["raised"])[:3000]
                return
        if unsettled:
            return


def name_of(taken: Any) -> str:
    return str(taken[0])


def difference(one: Any, two: Any, path: str = "") -> tuple[str, Any, Any]:
    """The first place where two snapshots differ."""
    if isinstance(one, (list, tuple)) and type(one) is type(two) and len(one) == len(two):
        for number, (a, b) in enumerate(zip(one, two)):
            if a != b:
                return difference(a, b, f"{path}[{number}]")
    return path, one, two
