"""Graphs that raise for some data: the program goes on as plain Python, from where it started."""

from __future__ import annotations

import contextlib
import traceback

import pytest
import torch

import framejit
from checking import CountingBackend, Outcome, check, compare_outcomes
from framejit.backends.registry import lookup_backend

table = torch.arange(4.0)


def write_and_try(x, i):
    x.add_(1)
    try:
        return table[i] + x
    except IndexError:
        return x * 10


def write_and_suppress(x, i):
    x.add_(1)
    with contextlib.suppress(IndexError):
        return table[i] + x
    return x * 5


def write_and_note(x, i, log):
    x.add_(1)
    log.append("in")
    y = table[i] + x
    log.append("behind")
    return y


def write_views(x, i):
    x[0] += 1
    x[1:].mul_(2)
    try:
        return table[i] + x[:1]
    except IndexError:
        return x * 10


def batch_norm(x, i, module):
    y = module(x)
    return y + table[i]


def draw(x, i):
    y = torch.rand(1)
    return table[i] + y + x


def unused_check(x, i):
    table[i]
    return x + 1


def unused_embedding(x, i):
    try:
        torch.nn.functional.embedding(i, table[:, None])
    except IndexError:
        return x * 3
    return x + 1


def unused_tuple(x, i):
    try:
        torch.linalg.inv_ex(torch.eye(2) * (9 - i), check_errors=True)
    except RuntimeError:
        return x * 3
    return x + 1


def integer_division(x, i):
    try:
        torch.tensor([5, 6]) // (i - 9)
    except RuntimeError:
        return x * 3
    return x + 1


def positive_definite(x, i):
    try:
        torch.linalg.cholesky(torch.eye(2) * (5 - i))
    except RuntimeError:
        return x * 0
    return x + 1


def makes_log():
    return ([],)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("function", "graphs", "ops", "more"),
    [(write_and_try, 1, 3, tuple), (write_and_suppress, 1, 3, tuple),
     (write_and_note, 1, 3, makes_log), (write_views, 1, 8, tuple),
     # Plain Python calls the module, which is then captured by itself.
     (batch_norm, 2, 6, lambda: (torch.nn.BatchNorm1d(1),)), (draw, 1, 4, tuple),
     (unused_check, 1, 2, tuple), (unused_embedding, 1, 3, tuple), (unused_tuple, 1, 6, tuple),
     (integer_division, 1, 4, tuple), (positive_definite, 1, 5, tuple)],
)  # fmt: skip
def test_same_error_as_eager(function, graphs, ops, more, backend) -> None:
    counting = CountingBackend()

    def run(module, examples):
        counting(module, examples)
        return lookup_backend(backend)(module, examples)

    compiled = framejit.compile(function, backend=run)
    ours, theirs = more(), more()
    x, y = torch.zeros(3, 1) + 2, torch.zeros(3, 1) + 2
    for index in (0, 9, 9, 1):
        i = torch.tensor([index])
        torch.manual_seed(index)
        expected = Outcome(function, (x, i, *theirs), {})
        drawn = torch.rand(1)
        torch.manual_seed(index)
        got = Outcome(compiled, (y, i, *ours), {})
        compare_outcomes(expected, got)
        assert torch.equal(drawn, torch.rand(1)), "the random state"
    assert (len(counting.graphs), counting.ops) == (graphs, ops)


def test_gradients_of_a_written_input() -> None:
    """Its history cannot be undone: the graph ends before what may raise."""

    def function(a, i):
        x = a * 1
        return inner(x, i)

    def inner(x, i):
        x.mul_(2)
        try:
            return x * table[i]
        except IndexError:
            return x * 10

    for index in (0, 9):
        counting = CountingBackend()
        compiled = framejit.compile(inner, backend=counting)
        a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
        inner(a * 1, torch.tensor([index])).backward()
        compiled(b * 1, torch.tensor([index])).backward()
        assert torch.equal(a.grad, b.grad)
        assert counting.graphs[0].graph.find_nodes(op="call_method", target="mul_")
        assert not counting.graphs[0].graph.find_nodes(
            op="call_function", target=__import__("operator").getitem
        )


def write_large(x, i):
    x.add_(1)
    try:
        return table[i] + x[:1]
    except IndexError:
        return x[:1] * 10


def write_large_behind(x, i):
    try:
        y = table[i] + x[:1]
    except IndexError:
        y = x[:1] * 10
    x.add_(1)
    return y


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("function", "graphs", "ops"), [(write_large, 3, 5), (write_large_behind, 1, 3)]
)
def test_large_inputs_are_not_copied(function, graphs, ops, backend) -> None:
    """The graph ends at the second of what may raise and the write: that runs as plain Python.

    The handler is captured.
    """
    counting = CountingBackend()

    def run(module, examples):
        counting(module, examples)
        return lookup_backend(backend)(module, examples)

    compiled = framejit.compile(function, backend=run)
    x, y = torch.zeros(1 << 20), torch.zeros(1 << 20)
    for index in (0, 9, 9):
        i = torch.tensor([index])
        assert torch.equal(compiled(y, i), function(x, i))
        assert torch.equal(x, y)
    assert (len(counting.graphs), counting.ops) == (graphs, ops)


def test_backward_takes_no_part_in_what_nobody_wants() -> None:
    def function(a):
        try:
            torch.linalg.cholesky(a)
        except RuntimeError:
            return a * 3
        return a * 2

    compiled = framejit.compile(function, backend="aot_eager")
    for sign in (1, -1):
        ours = (torch.eye(2) * sign).requires_grad_()
        theirs = (torch.eye(2) * sign).requires_grad_()
        compiled(ours).sum().backward()
        function(theirs).sum().backward()
        assert torch.equal(ours.grad, theirs.grad)


def broken(module, examples):
    def run(*tensors):
        raise RuntimeError("broken kernel")

    return run


def wrong_count(module, examples):
    return lambda *tensors: 3


@pytest.mark.parametrize("backend", [broken, wrong_count])
def test_a_backend_that_is_at_fault(backend, recwarn) -> None:
    def function(x):
        return x + 1

    framejit.counters.clear()
    compiled = framejit.compile(function, backend=backend)
    for _ in range(3):
        assert torch.equal(compiled(table), table + 1)
    told = [str(w.message) for w in recwarn if "is at fault in" in str(w.message)]
    assert len(told) == 1 and f"{backend.__name__!r}" in told[0]
    assert f"test_raising_graphs.py:{function.__code__.co_firstlineno}" in told[0]
    assert framejit.counters["backend_failed"] == {backend.__name__: 3}


def test_a_backend_is_not_blamed_for_data(recwarn) -> None:
    compiled = framejit.compile(write_and_try, backend="eager")
    for index in (0, 9, 9):
        compiled(torch.zeros(1), torch.tensor([index]))
    assert not [w for w in recwarn if "is at fault" in str(w.message)]


def product_or_text(x, w):
    try:
        return torch.nn.functional.linear(x, w)  # fake tensors accept weights of another dtype
    except RuntimeError as error:
        return str(error)


def products_or_texts(x, w):
    return [product_or_text(x, w), product_or_text(x, w.to(x.dtype))]


@pytest.mark.parametrize("function", [product_or_text, products_or_texts])
def test_backend_is_not_blamed_for_caught_errors(function, recwarn) -> None:
    compiled = framejit.compile(function, backend="eager")
    arguments = torch.ones(1, 2), torch.ones(2, 2, dtype=torch.float64)
    for _ in range(2):
        assert str(compiled(*arguments)) == str(function(*arguments))
    assert not [w for w in recwarn if "is at fault" in str(w.message)]


def unused_product(m, w):
    m @ w
    return m + 1


def unused_and_used_in_vain(m, w):
    (m @ w).t() + 1
    return m + 1


def unused_softmax_of_integers(m, w):
    torch.softmax(m.long(), -1)
    return m + 1


def unused_product_in_a_try(m, w):
    try:
        torch.nn.functional.linear(m, w)
    except RuntimeError as error:
        return str(error), m + 1
    return m + 1


def unused_product_that_is_converted(m, w):
    with torch.autocast("cpu"):
        m.float() @ w
    return m + 1


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "function",
    [unused_product, unused_and_used_in_vain, unused_softmax_of_integers, unused_product_in_a_try,
     unused_product_that_is_converted],
)  # fmt: skip
def test_unused_operations_that_raise_for_their_dtypes(function, dynamic):
    """Fake tensors do not tell, and AOTAutograd leaves out what nobody needs."""
    compiled = framejit.compile(function, backend="aot_eager", dynamic=dynamic)
    args = (torch.ones(2, 2, dtype=torch.float64), torch.ones(2, 2))
    for _ in range(2):
        compare_outcomes(Outcome(function, args, {}), Outcome(compiled, args, {}))


def test_unused_operations_that_run_are_left_to_the_backend():
    backend = CountingBackend()
    framejit.compile(unused_product, backend=backend)(torch.ones(2, 2), torch.ones(2, 2))
    (graph,) = backend.graphs
    (output,) = [node for node in graph.graph.nodes if node.op == "output"]
    assert backend.ops == 2 and len(output.args[0]) == 1


class Refused(Exception):
    pass


def first_graph_only(error):
    """A backend that raises ``error`` from the second graph on."""
    seen = []

    def backend(gm, inputs):
        seen.append(gm)
        if len(seen) > 1:
            raise error
        return gm.forward

    return backend


class Held:
    def __init__(self):
        self.log = []

    def __enter__(self):
        self.log.append("enter")

    def __exit__(self, kind, value, trace):
        self.log.append(("exit", kind and kind.__name__))


def through_with(x, held):
    with held:
        y = x + 1
        print("break")
        return y * 2


def through_finally(x, held):
    try:
        y = x + 1
        print("break")
        y = y * 2
    finally:
        held.log.append("finally")
    return y


def inner_with(x, held):
    y = x + 1
    with held:
        print("break")
    return y * 2


def through_a_caller(x, held):
    try:
        y = inner_with(x, held) + 1
    except ZeroDivisionError:
        return x
    finally:
        held.log.append("caller")
    return y


def caught_in_place(x, held):
    for i in range(2):
        try:
            y = x + i
            print("break")
            y = y * 2
        except (Exception, KeyboardInterrupt) as error:
            held.log.append(type(error).__name__)
            continue
    return x * 3


@pytest.mark.parametrize("error", [Refused("no"), KeyboardInterrupt()], ids=["error", "interrupt"])
@pytest.mark.parametrize("function, log, leaves", [
    (through_with, ["enter", ("exit", "NAME")], True),
    (through_finally, ["finally"], True),
    (through_a_caller, ["enter", ("exit", "NAME"), "caller"], True),
    (caught_in_place, ["NAME"], False),
])  # fmt: skip
def test_a_backend_that_fails_in_the_middle_of_a_block(function, log, leaves, error, capfd):
    """The rest of the frame meets what is raised while it is compiled: blocks are left properly."""
    name = "KeyboardInterrupt" if isinstance(error, KeyboardInterrupt) else "BackendCompilerFailed"
    held, compiled = Held(), framejit.compile(function, backend=first_graph_only(error))
    with pytest.raises(BaseException) if leaves else contextlib.nullcontext() as raised:
        compiled(torch.ones(2), held)
    wanted = [("exit", name) if item == ("exit", "NAME") else item for item in log]
    assert held.log == [name if item == "NAME" else item for item in wanted]
    assert capfd.readouterr().out.startswith("break\n")
    if leaves:
        assert type(raised.value).__name__ == name
        assert raised.traceback[-1].name != "_miss"


def twice(function, *arguments):
    """Call ``function`` for each of ``arguments`` eagerly and compiled; all outcomes."""
    outcomes = []
    for run in (function, framejit.compile(function, backend=CountingBackend())):
        here = []
        for make in arguments:
            try:
                here.append(run(make()))
            except Exception as error:
                here.append((type(error), str(error)))
        outcomes.append(here)
    return outcomes


def test_an_operation_whose_result_is_not_needed_raises():
    def program(x):
        torch.softmax(x, 0)
        return x + 1

    check(program, torch.ones(3), graphs=1, ops=2)
    eager, compiled = twice(program, lambda: torch.ones(3, dtype=torch.int64))
    assert eager == compiled and eager[0][0] is NotImplementedError


def test_overlapping_memory_is_not_written():
    def program(x):
        y = x * 1
        try:
            y += y[0, 0]
        except RuntimeError as error:
            return y, str(error)[:21]
        return y, ""

    check(program, torch.ones(2, 3), graphs=1, ops=2)
    assert program(torch.ones(2, 3))[1] == "unsupported operation"


def test_a_tensor_whose_elements_share_memory_is_not_written():
    def program(x):
        try:
            x.expand(2, 3).add_(1)
        except RuntimeError:
            return x - 1
        return x

    check(program, torch.ones(3), graphs=2, ops=2)


def test_an_integer_tensor_takes_no_fractions():
    def program(x, n):
        x += 1
        try:
            n[0].mul_(x)
        except RuntimeError as error:
            return x, str(error)
        return x, n

    check(program, torch.ones(3), torch.ones(2, 3, dtype=torch.int64), graphs=1, ops=2)
    check(program, torch.ones(3), torch.ones(2, 3, dtype=torch.float64), graphs=1, ops=3)


def test_a_graph_that_raises_before_it_writes_runs_again_as_python():
    def program(x, table, index):
        try:
            row = torch.nn.functional.embedding(index, table)
            x.add_(1)
        except IndexError:
            return x - 1
        return row.sum()

    for index in (1, 9):
        check(program, torch.ones(3), torch.ones(4, 3), torch.tensor([index]), graphs=1, ops=3)


def test_a_graph_that_raises_after_it_has_written_says_where():
    def program(x, table, index):
        x.add_(1)
        y = x * 2
        return torch.nn.functional.embedding(index, table) + y

    compiled = framejit.compile(program, backend="eager")
    x = torch.ones(3)
    with pytest.raises(IndexError) as caught:
        compiled(x, torch.ones(4, 3), torch.tensor([9]))
    assert x.tolist() == [2, 2, 2]
    lines = [step.line for step in traceback.extract_tb(caught.value.__traceback__)]
    assert "return torch.nn.functional.embedding(index, table) + y" in lines


def test_an_integer_tensor_is_not_scaled_by_a_fraction():
    def program(x, n):
        x += 1
        try:
            raise KeyError(1)
        except KeyError:
            n[0] *= 0.5
        return x

    check(program, torch.ones(3), torch.ones(2, 3, dtype=torch.int64), graphs=1, ops=2)
    check(program, torch.ones(3), torch.ones(2, 3), graphs=1, ops=4)


def test_a_graph_that_raises_draws_its_random_numbers_once():
    def program(x, w):
        noise = torch.rand_like(x)
        return noise, x @ w

    compiled = framejit.compile(program, backend="eager")
    states = []
    for run in (program, compiled):
        torch.manual_seed(7)
        with pytest.raises(RuntimeError, match="dtype"):
            run(torch.ones(2, 3, dtype=torch.float64), torch.ones(3, 3))
        states.append(torch.get_rng_state())
    assert torch.equal(*states)


def test_a_view_that_has_lost_its_graph():
    def program(leaf):
        row = leaf.clone()
        with torch.no_grad():
            row[0] *= 0
        row[0] = 0.0  # raises: the view and the write are in different grad modes

    check(program, torch.ones(3, requires_grad=True), graphs=1, ops=7)
