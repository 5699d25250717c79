"""Programs that the fuzzer of tests/fuzz found to behave otherwise compiled, made small."""

from __future__ import annotations

import traceback

import pytest
import torch

import framejit
from checking import CountingBackend, check


class Box:
    def __init__(self, n=0):
        self.n = n


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


def test_an_attribute_deleted_again_needs_not_exist():
    def program(x, box):
        box.extra = 1
        del box.extra
        return x + box.n

    check(program, torch.ones(2), Box(2), graphs=1, ops=1)
    with_extra = Box(2)
    with_extra.extra = 5
    compiled = framejit.compile(program, backend="eager")
    compiled(torch.ones(2), with_extra)
    assert not hasattr(with_extra, "extra")
    compiled(torch.ones(2), with_extra)


def test_a_deleted_attribute_must_exist():
    def program(x, box):
        del box.n
        return x + 1

    box_eager, box = Box(), Box()
    compiled = framejit.compile(program, backend="eager")
    for run, target in ((program, box_eager), (compiled, box)):
        run(torch.ones(2), target)
        with pytest.raises(AttributeError, match="n") as caught:
            run(torch.ones(2), target)
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert last.line == "del box.n"


def test_hasattr_of_what_is_removed_later():
    def program(x, box):
        return x + (1 if hasattr(box, "n") else 2)

    box = Box()
    compiled = framejit.compile(program, backend="eager")
    assert compiled(torch.zeros(1), box).item() == 1
    del box.n
    assert compiled(torch.zeros(1), box).item() == 2


def test_a_name_that_is_looked_at_for_nothing_must_exist():
    namespace = {}
    exec("def p04(x):\n    flag\n    return x + 1\n", namespace)
    namespace["flag"] = 1
    compiled = framejit.compile(namespace["p04"], backend="eager")
    compiled(torch.zeros(1))
    del namespace["flag"]
    with pytest.raises(NameError, match="flag"):
        compiled(torch.zeros(1))


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
        check(program, torch.ones(3), torch.ones(4, 3), torch.tensor([index]), graphs=1)


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


def test_breaks_in_a_deep_recursion():
    def down(x, n):
        if n == 0:
            return x
        framejit.graph_break()
        return down(x + 1, n - 1) * 1

    with framejit.config.patch(recompile_limit=100):
        backend = check(down, torch.ones(1), 60)
    assert 24 < len(backend.graphs) < 62


def test_breaks_in_an_endless_recursion():
    def endless(x):
        framejit.graph_break()
        return endless(x + 1)

    compiled = framejit.compile(endless, backend="eager")
    for _ in range(2):
        with pytest.raises(RecursionError):
            compiled(torch.ones(1))


def test_a_set_without_itself():
    def difference_update(x, seen):
        seen -= seen
        return x + len(seen), seen

    def symmetric_difference(x, seen):
        seen.symmetric_difference_update(seen)
        return x + len(seen), seen

    def intersection_and_union(x, seen):
        seen &= seen
        seen |= seen
        return x + len(seen), seen

    for function in (difference_update, symmetric_difference, intersection_and_union):
        check(function, torch.ones(2), {1, 2}, graphs=1, ops=1)


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


def test_an_attribute_that_tensors_do_not_have():
    def program(x):
        try:
            return x.names
        except AttributeError:
            return x + 1

    check(program, torch.ones(2))


class Cached(property):
    def __init__(self, function):
        property.__init__(self, function)


def test_a_subclass_of_property_made_and_asked_for_its_class():
    def program(x):
        made = Cached(lambda self: 3)
        if isinstance(made, Cached) and isinstance(made, property):
            x = x + 1
        return x * 2

    check(program, torch.ones(2), graphs=1, ops=2, fullgraph=True)

    def kept(x):
        y = x + 1
        return type(Cached(lambda self: 3)), [Cached(lambda self: 3)][0].fget(0), y

    check(kept, torch.ones(2), graphs=1, ops=1)


def test_distributions():
    def program(x):
        normal = torch.distributions.Normal(x, x.exp(), validate_args=False)
        choice = torch.distributions.Categorical(logits=x, validate_args=False)
        return normal.log_prob(x + 1), choice.entropy(), normal.mean

    check(program, torch.ones(2, 3), graphs=1, fullgraph=True)


class Base:
    def step(self, x):
        return x + self.n


class Derived(Base):
    n = 2

    def step(self, x):
        kinds = {self.n for _ in (1, 2)}  # makes a cell of self
        print("between")
        return super().step(x) * len(kinds)


def test_super_after_a_break_where_self_is_a_cell():
    def program(x):
        return Derived().step(x)

    check(program, torch.ones(2), graphs=1, ops=2)


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

    check(program, torch.ones(3, requires_grad=True))


class Plain:
    def __setattr__(self, name, value):
        self.__dict__[name] = value

    @property
    def total(self):
        return 0


def test_the_order_of_attributes_that_a_property_writes():
    def program(x, box):
        box.total += 2
        box.extra = x + 1
        return x * 2

    check(program, torch.ones(2), Plain(), graphs=1, ops=2)
    compiled, box = framejit.compile(program, backend="eager"), Plain()
    compiled(torch.ones(2), box)
    assert list(vars(box)) == ["total", "extra"]


class Growing:
    def __init__(self, number, among):
        self.number, self.among = number, among

    def __lt__(self, other):
        if len(self.among) < 6:
            self.among.append(Growing(self.number - 1, self.among))
        return self.number < other.number

    def __radd__(self, other):
        return other + self.number


def test_lists_that_change_while_the_least_is_looked_for():
    def program(x, numbers):
        seen = []
        popped = max(numbers, key=lambda v: (seen.append(v), numbers.pop())[1])
        among = []
        among += [Growing(v, among) for v in (3, 1)]
        least = min(among).number
        numbers.extend(numbers)
        return x + 1, popped, seen, least, sum(among), len(among), numbers

    check(program, torch.ones(2), [3, 1, 2, 5], graphs=1, ops=1)


def test_the_least_and_the_greatest_of_anything():
    def program(x):
        said = []
        for wrong in (lambda: max([]), lambda: min((), key=abs), lambda: max(v for v in ())):
            try:
                wrong()
            except ValueError as error:
                said.append(str(error))
        first = max((said.append(v), v)[1] for v in (1, 3, 2))
        rest = min([], default=4), max((), key=abs, default=x), max({3, 1}, key=lambda v: -v)
        return said, first, rest, max(x), sum(x), max(x, key=lambda row: -row.dim())

    check(program, torch.tensor([1.0, 3.0]))


class Pair:
    def __init__(self, n, w):
        self.n, self.w = n, w


def test_an_attribute_that_is_deleted_and_written_again():
    def program(x, pair):
        before = list(vars(pair))
        del pair.n
        pair.n = x + 1
        pair.new = 1
        del pair.new
        pair.new = 2
        return before, list(vars(pair)), x * 2

    check(program, torch.ones(2), Pair(1, 2), graphs=1, ops=2)
    compiled, pair = framejit.compile(program, backend="eager"), Pair(1, 2)
    compiled(torch.ones(2), pair)
    assert list(vars(pair)) == ["w", "n", "new"]
