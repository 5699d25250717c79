"""A tour of framejit: every idea in one file that runs.

    python docs/tour.py

Read it from the top. Each chapter shows one idea with real objects of the compiler and checks what
it says. The order is the way of a call: a function is captured, becomes a graph, guards and a
generated function; a graph break, a side effect, a changed argument, a size that varies; at the end
the tools that show all this.
"""

from __future__ import annotations

import contextlib
import io
import sys
import types
from typing import Any

import torch

import framejit
from framejit import comptime
from framejit.report import events

x = torch.ones(3)


def same(got: Any, expected: Any) -> None:
    """Results of compiled code are those of plain Python."""
    torch.testing.assert_close(got, expected)


# -- 1. Capturing ----------------------------------------------------------------------------------
#
# `framejit.compile` returns an object that looks like the function. Its first call executes the
# function's *bytecode*, symbolically: the stack holds values that represent objects, and operations
# of torch become nodes of a graph instead of being run.


def scale(t: torch.Tensor, factor: float) -> torch.Tensor:
    """Two operations."""
    parts = [t * factor, t + 1]
    return sum(parts)  # type: ignore[return-value]


def chapter_1_capturing() -> None:
    """The list, the loop inside `sum` and the float are gone: they were Python, done while
    capturing. What is left is the graph."""
    graphs: list[torch.fx.GraphModule] = []

    def backend(gm: torch.fx.GraphModule, example_inputs: list[Any]) -> Any:
        """A backend is any function like this one: it gets a graph, and returns a callable."""
        graphs.append(gm)
        return gm.forward

    compiled = framejit.compile(scale, backend=backend)
    same(compiled(x, 2.0), scale(x, 2.0))
    (graph,) = graphs
    operations = [node.target.__name__ for node in graph.graph.nodes if node.op == "call_function"]
    assert operations == ["mul", "add", "add", "add"]  # sum() starts with 0 + ...
    assert compiled.__name__ == "scale" and compiled.__doc__ == "Two operations."


# -- 2. Guards -------------------------------------------------------------------------------------
#
# While capturing, framejit relied on things: `t` is a float32 tensor with three elements, `factor`
# is 2.0, `sum` is the builtin. Each is a *fact* about a *source* (where the value came from). The
# facts are checked in C++ before the graph is used again.


def chapter_2_guards() -> None:
    """Every assumption is a guard that can be read; one that fails means another capture."""
    compiled = framejit.compile(scale, backend="eager", dynamic=False)
    compiled(x, 2.0)
    (entry,) = framejit.guards(compiled)
    texts = [str(guard) for guard in entry.guards]
    assert any(text.startswith("local 't' TENSOR_MATCH Tensor float32[3]") for text in texts)
    assert any(text.startswith("local 'factor' EQUALS_MATCH 2.0") for text in texts)

    with events.recording(events.Recompile) as recompiles:
        same(compiled(x, 2.0), scale(x, 2.0))  # the guards hold
        same(compiled(x, 3.0), scale(x, 3.0))  # they do not
    (recompile,) = recompiles
    assert recompile.reasons[0].startswith(
        "local 'factor' EQUALS_MATCH: it was 2.0, now it is 3.0 (assumed at "
    )
    assert len(framejit.guards(compiled)) == 2  # both entries stay


# -- 3. Dispatch -----------------------------------------------------------------------------------
#
# The compiled object is written in C++. A call binds the arguments to slots, asks the guards of
# each entry, and calls that entry's function. No Python frame is entered for this, and no frame
# hook is needed. What cannot change without leaving a trace in a dict's version is not even looked
# at.


def chapter_3_dispatch() -> None:
    """A compiled object is a native one; guards read without running the user's code."""
    compiled = framejit.compile(scale, backend="eager")
    assert isinstance(compiled, framejit.native.CompiledFunction)
    compiled(x, 2.0)
    (entry,) = compiled.entries
    before = entry.hits
    for _ in range(3):
        compiled(x, 2.0)
    assert entry.hits == before + 3


# -- 4. The generated function ---------------------------------------------------------------------
#
# An entry's function is Python, made as an AST: call the graph, build the objects that the program
# built, do what it did to the world, return. Its positions are the user's lines, so that errors
# point there.


def pack(t: torch.Tensor) -> dict[str, Any]:
    return {"double": t * 2, "sizes": list(t.shape), "again": (t, t)}


def chapter_4_generated_code() -> None:
    """The code can be read; names with a colon cannot clash with the user's."""
    explanation = framejit.explain(pack)(x)
    (entry,) = explanation.entries
    assert "fj:graph(t)" in entry.code and "= [3]" in entry.code and "(t, t)" in entry.code
    result = explanation.result
    assert result["again"][0] is x and result["again"][0] is result["again"][1]


# -- 5. Values -------------------------------------------------------------------------------------
#
# The interpreter knows what an instruction does with the stack. What an *operation* means (an
# attribute, an addition, an item) is asked of the value: a list, a module, a tensor, an instance.
# A value may reply "run this function first": that is how calls are inlined.


class Layer:
    """An ordinary class: attributes, a property, operators."""

    def __init__(self, weight: torch.Tensor) -> None:
        self.weight = weight
        self.calls = 0

    @property
    def double(self) -> torch.Tensor:
        return self.weight * 2

    def __matmul__(self, other: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return other @ self.double


def use(layer: Layer, t: torch.Tensor) -> torch.Tensor:
    return layer @ t


def chapter_5_values() -> None:
    """`@` finds `__matmul__`, which runs a property: two frames, inlined into one graph."""
    layer = Layer(torch.eye(3))
    explanation = framejit.explain(use)(layer, x)
    same(explanation.result, x * 2)
    assert explanation.graph_count == 1 and explanation.op_count == 2
    names = {name for _, _, name in explanation.functions}
    assert names == {"use", "Layer.__matmul__", "Layer.double"}


# -- 6. Side effects -------------------------------------------------------------------------------
#
# Capturing never touches the user's objects. Changes go to the values and into a log; the generated
# function does them after the graph, in the order of the program.


def chapter_6_side_effects() -> None:
    """`calls` is written once per call, with what was computed, and not while capturing."""
    layer = Layer(torch.eye(3))
    compiled = framejit.compile(use, backend="eager")
    for count in (1, 2, 3):
        compiled(layer, x)
        assert layer.calls == count


# -- 7. Graph breaks -------------------------------------------------------------------------------
#
# Some instructions cannot be captured: `print`, `if tensor:`, a call into C. The graph ends there,
# a *break function* executes the one instruction as plain Python, and a *continuation* goes on
# after it. A continuation is the original bytecode after a prefix that restores locals and stack
# and jumps; it is compiled like a function. So a break costs one break, also deep inside inlined
# calls and inside `with` and `try`.


def speak(t: torch.Tensor) -> torch.Tensor:
    t = t + 1
    try:
        print("spoken")
        t = t * 2
    finally:
        t = t - 1
    return t


def speaker(t: torch.Tensor) -> torch.Tensor:
    return speak(t * 3) / 2


def chapter_7_graph_breaks() -> None:
    """Two graphs; the second one holds the rest of `speak` *and* of `speaker`."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        explanation = framejit.explain(speaker)(x)
        same(explanation.result, speaker(x))
    assert out.getvalue() == "spoken\nspoken\n"
    assert [entry.operations for entry in explanation.graphs] == [2, 3]
    assert explanation.graphs[1].frame.startswith("speak.__resume_at_")
    (one,) = explanation.breaks
    assert one.identifier == "FJ0130" and one.code == 'print("spoken")'


# -- 8. Errors -------------------------------------------------------------------------------------
#
# Three families. The user's own exceptions pass through, with the user's traceback. A graph break
# is expected and reported; under `fullgraph=True` it is an error with the line and an identifier. A
# bug of framejit runs the function as plain Python and says so once.


def chapter_8_errors() -> None:
    """Six lines at most, the user's line first, and a page for each identifier."""
    compiled = framejit.compile(speaker, backend="eager", fullgraph=True)
    try:
        compiled(x)
    except framejit.exc.Unsupported as error:
        message = str(error)
    lines = message.splitlines()
    assert lines[0].endswith("[FJ0130]") and len(lines) <= 6
    assert "tour.py" in lines[1] and lines[2].strip() == 'print("spoken")'
    from framejit.report.problems import find

    problem = find("FJ0130")
    assert problem is not None and "framejit.comptime.print" in problem.fix

    def missing(t: torch.Tensor) -> torch.Tensor:
        table = {"a": t}
        return table["b"] + 1

    try:
        framejit.compile(missing, backend="eager")(x)
    except KeyError as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
    assert trace is not None and trace.tb_frame.f_code.co_filename == __file__


# -- 9. Sizes that vary ----------------------------------------------------------------------------
#
# Sizes are constants until they are seen to differ. Then they become symbols; what the program asks
# of them becomes conditions over symbols, checked after the other guards.


def rows(t: torch.Tensor) -> torch.Tensor:
    return t * t.shape[0] if t.shape[0] > 2 else t


def chapter_9_dynamic_shapes() -> None:
    """The first size gets its own graph; the second graph serves all others above 2."""
    compiled = framejit.compile(rows, backend="eager")
    with events.recording(events.GraphCompiled) as graphs:
        for size in (3, 4, 5, 6):
            same(compiled(torch.ones(size)), rows(torch.ones(size)))
    assert len(graphs) == 2
    guards = [str(guard) for guard in framejit.guards(compiled)[1].guards]
    assert any(guard.startswith("local 't'.size(0) >= 3 SHAPE_MATCH") for guard in guards)


# -- 10. Modules -----------------------------------------------------------------------------------
#
# A compiled module is an instance of a class made for it that shares the module's state: only
# calling it differs. Guards look through the module's dicts by their versions.


def chapter_10_modules() -> None:
    """No wrapper; a changed attribute is noticed, `train()` and back costs no recompile."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
    compiled = framejit.compile(model.eval(), backend="eager")
    assert isinstance(compiled, torch.nn.Sequential)
    assert list(compiled.state_dict()) == list(model.state_dict())
    same(compiled(x), model(x))
    with events.recording(events.CaptureStart) as captures:
        model.train()
        model.eval()
        compiled(x)
        assert not captures
        model[0] = torch.nn.Linear(3, 3)  # of the same kind: its parameters are simply used
        same(compiled(x), model(x))
        assert not captures
        model[0] = torch.nn.Linear(3, 2)
        same(compiled(x), model(x))
        assert len(captures) == 1


# -- 11. Training ----------------------------------------------------------------------------------
#
# Graphs are forward graphs. Backends such as aot_eager and inductor derive the backward from them;
# the compiled graph is one node of the autograd graph.


def chapter_11_training() -> None:
    """Gradients are those of plain Python."""
    weight = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)

    def loss(w: torch.Tensor) -> torch.Tensor:
        return (w * x).sin().sum()

    framejit.compile(loss, backend="aot_eager")(weight).backward()
    assert weight.grad is not None
    same(weight.grad, weight.detach().cos())


# -- 12. Looking inside ----------------------------------------------------------------------------
#
# Everything that happens is one event in one stream. Counters, logs, explanations, the HTML page
# and the tests read it.


def chapter_12_reports() -> None:
    """An explanation prints; `to_html` writes a page with the marked source."""
    with events.recording() as stream, contextlib.redirect_stdout(io.StringIO()):
        explanation = framejit.explain(speaker)(x)
    kinds = [type(event).__name__ for event in stream]
    assert kinds == [
        "CaptureStart", "GraphBreak", "BackendStart", "GraphCompiled", "CaptureEnd", "EntryAdded",
        "CaptureStart", "BackendStart", "GraphCompiled", "CaptureEnd", "EntryAdded",
    ]  # fmt: skip
    marks = explanation.marks(__file__)
    first = speak.__code__.co_firstlineno
    assert [marks.get(first + i) for i in (1, 3, 4)] == ["captured", "break", "captured"]
    assert str(explanation).startswith("2 graphs, 1 graph break, 5 operations")
    assert "<svg" in explanation._repr_html_()


# -- 13. Code that runs while compiling ------------------------------------------------------------


def chapter_13_comptime() -> None:
    """`comptime` shows the compiler's state at a line, without a graph break."""

    def f(t: torch.Tensor) -> torch.Tensor:
        y = t * 2

        @framejit.comptime
        def _(ctx: Any) -> None:
            ctx.print("y is", ctx.get_local("y"))
            ctx.print_graph()

        comptime.print(t)
        return y + 1

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        same(framejit.compile(f, backend="eager", fullgraph=True)(x), x * 3)
    printed = out.getvalue()
    assert "y is Tensor float32[3] on cpu" in printed and "operator.mul" in printed


# -- 14. Frames instead of functions ---------------------------------------------------------------
#
# `with framejit.optimize(...)` installs CPython's frame hook (PEP 523) for its thread: every
# function that starts in the block is compiled, nothing needs to be decorated. `framejit run
# script.py` makes `torch.compile` in an existing script mean framejit.


def chapter_14_blocks() -> None:
    """Functions called in the block are compiled; after it they are plain Python again."""
    with events.recording(events.GraphCompiled) as graphs:
        with framejit.optimize("eager"):
            same(scale(x, 2.0), x * 3 + 1)
        assert len(graphs) == 1
        scale(x, 5.0)
        assert len(graphs) == 1
    original = torch.compile
    with framejit.install():
        assert torch.compile is not original
    assert torch.compile is original


def chapters() -> list[types.FunctionType]:
    """The chapters in order."""
    return [
        value for name, value in globals().items()
        if name.startswith("chapter_") and isinstance(value, types.FunctionType)
    ]  # fmt: skip


def main() -> int:
    """Run every chapter."""
    for chapter in chapters():
        chapter()
        title = chapter.__name__.removeprefix("chapter_").replace("_", " ")
        print(f"{title}: {' '.join((chapter.__doc__ or '').split())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
