"""comptime: each call at inlining depths 0, 1 and 3, and inside closures; nothing in eager code."""

import subprocess
import sys

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit import comptime, exc

#: A call of the context that prints -> what it prints, at least.
SHOWN = {
    "print": (lambda ctx: ctx.print("here", ctx.get_local("k")), ["here 5"]),
    "print_locals": (lambda ctx: ctx.print_locals(), ["k = 5", "y = Tensor float32[3] on cpu"]),
    "print_stack": (lambda ctx: ctx.print_stack(), ["in program", "in bottom", "ACT(action)"]),
    "print_value_stack": (lambda ctx: ctx.print_value_stack(), ["- "]),
    "print_bytecode": (lambda ctx: ctx.print_bytecode(), ["at offset", "LOAD_GLOBAL", "RETURN"]),
    "print_graph": (lambda ctx: ctx.print_graph(), ["placeholder", "operator.add"]),
    "print_guards": (lambda ctx: ctx.print_guards(), ["local 'x' TENSOR_MATCH Tensor float32[3]"]),
    "get_local": (lambda ctx: ctx.print(ctx.get_local("y").shape), ["(3,)"]),
    "outer local": (lambda ctx: ctx.print(ctx.get_local("depth", stacklevel=1)), None),
    "is_dynamic": (
        lambda ctx: ctx.print(ctx.is_dynamic("y"), ctx.is_dynamic("k")),
        ["False False"],
    ),  # fmt: skip
    "assert_static": (lambda ctx: ctx.assert_static("y"), []),
    "force_static": (lambda ctx: ctx.force_static("y"), []),
    "add_fact": (lambda ctx: ctx.add_fact(ctx.get_local("y").shape[0] == 3), []),
    "fake": (lambda ctx: ctx.print(type(ctx.get_local("y").fake()).__name__), ["FakeTensor"]),
    "expression": (lambda ctx: ctx.print(ctx.get_local("k").expression + 1), ["6"]),
    "python_type": (lambda ctx: ctx.print(ctx.get_local("y").python_type()), ["torch.Tensor"]),
}


def run_action(ctx, name):
    SHOWN[name.value][0](ctx)


ACT = framejit.comptime(run_action)


def bottom(x, action):
    k = 5
    y = x + k
    ACT(action)
    return y * 2


def middle(x, action, depth):
    return bottom(x, action) if depth == 1 else middle(x, action, depth - 1)


def program(x, action, depth):
    k = 5
    y = x + k
    if depth == 0:
        ACT(action)
        return y * 2
    return middle(x, action, depth)


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("name", SHOWN)
def test_each_call_at_each_depth(name, depth, capsys):
    if name == "outer local" and depth == 0:
        pytest.skip("there is no outer function")
    expected = program(torch.ones(3), name, depth)
    assert capsys.readouterr().out == ""
    backend = CountingBackend()
    compiled = framejit.compile(program, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(torch.ones(3), name, depth), expected)
    printed = capsys.readouterr().out
    parts = SHOWN[name][1]
    for part in [str(depth if depth < 2 else 1)] if parts is None else parts:
        if not (part in ("in bottom", "ACT(action)", "in program") and depth == 0):
            assert part in printed
    if name == "print_stack":
        assert printed.count("File ") == depth + 1 + (depth > 0)
    torch.testing.assert_close(compiled(torch.ones(3), name, depth), expected)
    assert capsys.readouterr().out == "", "it runs once per compilation"
    assert len(backend.graphs) == 1
    assert backend.ops == (2 if depth == 0 else 3)  # the unused sum of the outer function


def run(function, *args, **settings):
    return framejit.compile(function, backend="eager", fullgraph=True, **settings)(*args)


def test_free_variables_cells_arguments_and_locals_are_printed(capsys):
    scale = 3

    def f(x, n):
        y = x * scale

        def inner(z):
            comptime.print(x)
            comptime.print(scale)
            comptime.print("n", n)
            comptime.print([y, 1], (z,))

            @framejit.comptime
            def _(ctx):
                ctx.print("closed over", y, n, z.is_constant)

            def deeper():
                comptime.print("two levels", y, scale)
                return z

            return deeper() + y

        return inner(y + 1)

    torch.testing.assert_close(run(f, torch.ones(3), 4), torch.full((3,), 7.0))
    tensor = "Tensor float32[3] on cpu"
    assert capsys.readouterr().out.splitlines() == [
        tensor, "3", "n 4", f"[{tensor}, 1] ({tensor},)", f"closed over {tensor} 4 False",
        f"two levels {tensor} 3",
    ]  # fmt: skip


def test_every_shortcut_exists_and_does_nothing_in_eager_code(capsys):
    for name in ("print", "print_locals", "print_stack", "print_value_stack", "print_bytecode",
                 "print_graph", "print_guards", "breakpoint", "graph_break", "assert_static",
                 "force_static"):  # fmt: skip
        shortcut = getattr(comptime, name)
        assert shortcut(torch.ones(1)) is None and "Does nothing in eager code" in shortcut.__doc__
    comptime(lambda ctx: ctx.print("never"))
    assert capsys.readouterr().out == ""


def test_the_shortcuts_show_the_same(capsys):
    def f(x, n):
        y = x + 1
        comptime.print_locals()
        comptime.print_stack()
        comptime.print_value_stack()
        comptime.print_bytecode()
        comptime.print_graph()
        comptime.print_guards()
        comptime.assert_static(y)
        comptime.force_static(y)
        return y * n

    run(f, torch.ones(3), 2)
    printed = capsys.readouterr().out
    for part in ("n = 2", "in f", "at offset", "operator.add", "TENSOR_MATCH"):
        assert part in printed


def test_a_graph_break_can_be_asked_for(capsys):
    def f(x):
        x = x + 1
        comptime.graph_break("to look")
        comptime(lambda ctx: ctx.graph_break("again"))
        return x * 2

    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend)
    framejit.counters.clear()
    torch.testing.assert_close(compiled(torch.ones(3)), f(torch.ones(3)))
    assert len(backend.graphs) == 2 and backend.ops == 2
    assert framejit.counters["graph_break"] == {
        "comptime asked for a graph break: to look": 1,
        "comptime asked for a graph break: again": 1,
    }
    with pytest.raises(exc.Unsupported, match="FJ0135"):
        run(f, torch.ones(3))


def test_dynamic_sizes_are_seen_asserted_and_made_static(capsys):
    def f(x, static):
        comptime(lambda ctx: ctx.print(ctx.is_dynamic("x"), ctx.get_local("x").shape[0]))
        if static:
            comptime.force_static(x)
        return x * x.shape[0]

    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend, dynamic=True)
    for size in (5, 6):
        torch.testing.assert_close(compiled(torch.ones(size), False), f(torch.ones(size), False))
    assert len(backend.graphs) == 1
    assert capsys.readouterr().out.startswith("True s")
    for size in (5, 6):
        torch.testing.assert_close(compiled(torch.ones(size), True), f(torch.ones(size), True))
    assert len(backend.graphs) == 3

    def g(x):
        comptime.assert_static(x)
        return x + 1

    run(g, torch.ones(5))
    with pytest.raises(exc.ComptimeError, match="is dynamic") as caught:
        run(g, torch.ones(5), dynamic=True)
    text = str(caught.value)
    assert "comptime.assert_static(x)" in text and __file__ in text and "FJ0208" in text
    assert len(text.splitlines()) <= 6


def test_facts_about_sizes_become_guards():
    def f(x):
        comptime(lambda ctx: ctx.add_fact(ctx.get_local("x").shape[0] > 3))
        return x + 1 if x.shape[0] > 3 else x - 1

    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend, dynamic=True, fullgraph=True)
    for size in (5, 9, 4):
        torch.testing.assert_close(compiled(torch.ones(size)), torch.full((size,), 2.0))
    assert len(backend.graphs) == 1
    (fact,) = [g for g in framejit.guards(compiled)[0].guards if g.kind == "SHAPE_MATCH"]
    assert fact.name == "local 'x'.size(0) >= 4" and "test_comptime" in fact.line[0]
    with pytest.raises(exc.ComptimeError, match="does not hold"):
        compiled(torch.ones(2))


def test_errors_of_the_function_are_the_users_own():
    def f(x):
        comptime(lambda ctx: ctx.get_local("nothing"))
        return x + 1

    with pytest.raises(exc.ComptimeError, match="no variable 'nothing'") as caught:
        run(f, torch.ones(3))
    assert isinstance(caught.value.__cause__, NameError)
    assert len(str(caught.value).splitlines()) <= 6
    with pytest.raises(TypeError, match="callable"):
        framejit.comptime(3)


def test_breakpoint_stops_with_the_context(monkeypatch, capsys):
    seen = []

    def stop():
        seen.append(sys._getframe(1).f_locals["ctx"].get_local("y"))

    monkeypatch.setattr(sys, "breakpointhook", stop)

    def f(x):
        y = x + 1
        comptime.breakpoint()
        comptime(lambda ctx: ctx.breakpoint())
        return y

    run(f, torch.ones(3))
    assert [str(value) for value in seen] == ["Tensor float32[3] on cpu"] * 2
    assert "test_comptime.py" in capsys.readouterr().out


def test_breakpoint_has_the_users_line_in_sight(tmp_path):
    (tmp_path / "user.py").write_text("""
import torch, framejit

def helper(z, k):
    w = z * k
    framejit.comptime.breakpoint()
    return w

def f(x):
    return helper(x + 1, 3)

print(framejit.compile(f, backend="eager", fullgraph=True)(torch.ones(2)))
""")
    done = subprocess.run(
        [sys.executable, tmp_path / "user.py"],
        input="p w, k, ctx.get_local('x', stacklevel=1)\nn\nc\n", capture_output=True, text=True,
    )  # fmt: skip
    tensor = "<comptime value Tensor float32[2] on cpu>"
    here = ["> user.py(6)helper()", "-> framejit.comptime.breakpoint()"]
    before = ["framejit: compiling user.py:6; the state is in `ctx`", *here,
              f"(Pdb) ({tensor}, <comptime value 3>, {tensor})"]  # fmt: skip
    stepped = (
        ["(Pdb) --Return--", "> user.py(6)helper()->None", here[1]],
        [f"(Pdb) {here[0]}", here[1]],  # pdb of CPython 3.13 has stopped one step earlier
    )
    lines = done.stdout.replace(f"{tmp_path}/", "").splitlines()
    assert lines[:4] == before and lines[4:-1] in stepped, done.stderr
    assert lines[-1] == "(Pdb) tensor([6., 6.])"


def test_keyword_arguments_reach_the_function():
    seen = []

    @comptime
    def note(ctx, a, b=2, *, c=3):
        seen.append([getattr(v, "value", v) for v in (a, b, c)])

    def f(x):
        note(1, b=7)
        note(b=5, a=2, c=9)
        return x + 1

    framejit.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
    assert seen == [[1, 7, 3], [2, 5, 9]]


def test_any_callable_and_only_one():
    called = []

    class Noting:
        def __call__(self, ctx):
            called.append(type(ctx).__name__)

    noting = Noting()

    def f(x):
        comptime(noting)
        return x + 1

    framejit.compile(f, backend="eager", fullgraph=True)(torch.ones(2))
    assert called == ["ComptimeContext"]

    def wrong(x):
        comptime()
        return x + 1

    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        framejit.compile(wrong, backend="eager")(torch.ones(2))


def test_shortcuts_take_what_is_static():
    def f(x, n):
        comptime.assert_static(x.shape[0])
        comptime.assert_static(3)
        comptime.assert_static(n)
        comptime.force_static(n)
        comptime.assert_static(x)
        assert not comptime.is_dynamic(x)
        comptime.add_fact(n > 2)
        return x * n

    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend, fullgraph=True, dynamic=False)
    assert torch.equal(compiled(torch.ones(4), 5), f(torch.ones(4), 5))
    assert len(backend.graphs) == 1
    with pytest.raises(exc.ComptimeError, match=r"fact comptime.add_fact\(n > 2\) does not hold"):
        compiled(torch.ones(4), 2)


def test_sizes_and_comparisons_of_what_varies(capsys):
    def f(x, n):
        comptime(lambda ctx: ctx.add_fact(ctx.get_local("n") > 2))
        assert comptime.is_dynamic(n) or not framejit.is_compiling()
        comptime(lambda ctx: ctx.print(ctx.is_dynamic(ctx.get_local("x").shape[0])))
        return x * n

    backend = CountingBackend()
    compiled = framejit.compile(f, backend=backend, dynamic=True)
    for n in (5, 6):
        assert torch.equal(compiled(torch.ones(4), n), torch.ones(4) * n)
    assert len(backend.graphs) == 1
    assert capsys.readouterr().out == "True\n"
    with pytest.raises(exc.ComptimeError, match="> 2 does not hold"):
        compiled(torch.ones(4), 2)

    def g(x):
        comptime(lambda ctx: ctx.assert_static(ctx.get_local("x").shape[0]))
        return x + 1

    with pytest.raises(exc.ComptimeError, match="is dynamic"):
        framejit.compile(g, backend="eager", dynamic=True)(torch.ones(4))
    assert framejit.compile(g, backend="eager")(torch.ones(4)).sum() == 8
