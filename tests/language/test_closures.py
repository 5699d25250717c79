"""Closures, cells, nonlocal and global in programs."""

from __future__ import annotations

import contextlib
import functools

import torch

import framejit
from checking import check, check_between

x = torch.tensor([1.0, -2.0, 3.0])
y = torch.tensor([0.5, 4.0, -1.0])

TOTAL = 0
SCALE = 2.0
TABLE = {"calls": 0}
LATER = None


def one(function, *args, **kwargs):
    """One graph that holds all operations."""
    return check(function, *args, fullgraph=True, graphs=1, **kwargs)


def test_closure_is_read():
    w = torch.ones(3)
    n = 3
    one(lambda a: a * w + n, x, ops=2)


def test_nonlocal_inside():
    def f(a):
        n = 0

        def step():
            nonlocal n, a
            n += 1
            a = a * n

        for _ in range(3):
            step()
        return a, n

    one(f, x, ops=3)


def test_nonlocal_of_outer():
    def make():
        count = 0
        last = None

        def f(a):
            nonlocal count, last
            count += 1
            last = a * count
            return last, count

        return f

    check(None, x, make=make, calls=1, fullgraph=True, graphs=1, ops=1)


def test_nonlocal_three_deep():
    def f(a):
        v = a

        def one_():
            def two():
                def three():
                    nonlocal v
                    v = v + 1
                    return v

                three()
                return three()

            return two() + v

        return one_(), v

    one(f, x, ops=3)


def test_counter_closure_made_inside():
    def f(a):
        def counter():
            n = 0

            def step(by=1):
                nonlocal n
                n += by
                return n

            return step

        c, d = counter(), counter()
        return a * c() + c(5) + d(), c(), d()

    one(f, x)


def test_closure_made_outside():
    def make():
        def counter():
            n = 0

            def step():
                nonlocal n
                n += 1
                return n

            return step

        step = counter()
        return lambda a: (a * step() + step(), step())

    check(None, x, make=make, calls=1, fullgraph=True, graphs=1, ops=2)


def test_two_share_a_cell():
    def f(a):
        value = a

        def get():
            return value

        def put(v):
            nonlocal value
            value = v

        put(get() + 1)
        put(get() * 2)
        return get(), value

    one(f, x, ops=2)


def test_two_existing_share_a_cell():
    def make():
        value = 1

        def get():
            return value

        def put(v):
            nonlocal value
            value = v

        def f(a):
            put(get() + 1)
            return a * get(), value

        return f

    check(None, x, make=make, calls=1, fullgraph=True, graphs=1, ops=1)


def test_global_is_written():
    def f(a):
        global TOTAL
        TOTAL = 5
        TOTAL += 1
        return a + TOTAL

    one(f, x)
    assert TOTAL == 6


def test_global_holds_tensor():
    def f(a):
        global LATER
        LATER = a * 2
        return LATER + 1

    one(f, x)
    assert torch.equal(LATER, x * 2)


def test_global_created_and_deleted():
    def f(a):
        global FRESH
        FRESH = 3
        b = a * FRESH
        del FRESH
        try:
            return b, FRESH
        except NameError as error:
            return b, str(error)

    one(f, x)
    assert "FRESH" not in globals()


def test_global_container():
    def f(a):
        TABLE["calls"] = 7
        TABLE["new"] = a
        return a * TABLE["calls"], len(TABLE)

    one(f, x)
    TABLE.pop("new")


def test_global_written_in_a_callee():
    def bump():
        global TOTAL
        TOTAL = 10
        return TOTAL

    one(lambda a: a + bump() + TOTAL, x)


def test_returned_closure():
    def f(a):
        n = 2
        b = a * n

        def g(c):
            nonlocal n
            n += 1
            return b + c * n

        return g

    def g(a):
        h = f(a)
        return h(a), h(a)

    one(g, x)
    import framejit

    compiled = framejit.compile(f, backend="eager")
    theirs, ours = f(x), compiled(x)
    for _ in range(3):
        assert torch.equal(theirs(x), ours(x))


def test_returned_closures_share():
    def f(a):
        n = 0

        def inc():
            nonlocal n
            n += 1
            return n

        def get():
            return n

        inc()
        return a + n, inc, get

    import framejit

    compiled = framejit.compile(f, backend="eager", fullgraph=True)
    _, inc, get = compiled(x)
    assert get() == 1
    assert inc() == 2
    assert get() == 2


def test_unbound_local_and_free():
    def f(a):
        def g():
            return later

        try:
            g()
        except NameError as error:
            text = str(error)
        later = 3
        try:
            a = a + missing  # noqa: F821
        except NameError as error:
            text += str(error)
        return a * g(), text

    one(f, x, ops=1)


def test_local_that_is_unbound():
    def f(a, flag):
        if flag:
            v = 1
        try:
            return a + v
        except UnboundLocalError as error:
            return a, str(error)

    one(f, x, True)
    check_between(f, x, False, graphs=1, ops=2)


def test_deleted_local_and_cell():
    def f(a):
        v = a + 1

        def get():
            return v  # noqa: F821

        w = get()
        del v
        try:
            get()
        except NameError as error:
            return w, str(error)

    one(f, x)


def test_comprehension_sees_cells():
    def f(a):
        n = 3
        return [a * n * i for i in range(2)] + [(lambda: n + i)() for i in range(2)]

    one(f, x)


def test_defaults_and_cells():
    def f(a):
        out = []
        for i in range(3):

            def g(k=i):
                return a * k + i  # noqa: B023

            out.append(g)
        return [g() for g in out]

    one(f, x)


def test_recursive_closure_memo():
    def f(a):
        memo = {}

        def fib(n):
            if n < 2:
                return n
            if n not in memo:
                memo[n] = fib(n - 1) + fib(n - 2)
            return memo[n]

        return a * fib(12), memo

    one(f, x, ops=1)


def test_closure_list_mutated():
    def make():
        log = []

        def note(v):
            log.append(v)
            return v

        return lambda a: (note(a * 2) + note(a), len(log), log[-1] is a)

    check(None, x, make=make, calls=1, fullgraph=True, graphs=1, ops=2)


def test_cell_holds_list_returned():
    def make():
        seen = []

        def f(a):
            seen.append(a + len(seen))
            return seen

        return f

    check(None, x, make=make, calls=1, fullgraph=True, graphs=1, ops=1)


def test_class_cell():
    class A:
        def name(self):
            return __class__.__name__

    obj = A()
    one(lambda a: (a + 1, obj.name()), x)


def test_argument_is_cell():
    def f(a, n):
        def g():
            nonlocal n
            n = n + 1
            return a * n

        return g() + g(), n

    one(f, x, 2)


def test_cell_across_break():
    def f(a):
        n = 1

        def inc():
            nonlocal n
            n += 1
            return n

        b = a * inc()
        print("n", n)
        return b * inc(), n

    check(f, x, graphs=2, ops=2)


def test_existing_cell_across_break():
    def make():
        n = 0

        def f(a):
            nonlocal n
            n += 1
            b = a * n
            print(n)
            n += 1
            return b * n, n

        return f

    check(None, x, make=make, calls=1, graphs=2, ops=2)


def test_global_across_break():
    def f(a):
        global TOTAL
        TOTAL = 1
        b = a + TOTAL
        print(TOTAL)
        TOTAL = TOTAL + 1
        return b * TOTAL

    check(f, x, graphs=2, ops=2)


def test_new_cell_in_each_iteration():
    def f(a):
        def make(i):
            def get():
                return i * a

            return get

        gets = [make(i) for i in range(3)]
        return sum(g() for g in gets)

    one(f, x)


def test_builtin_shadowed_by_a_global():
    def f(a):
        len = lambda v: 5  # noqa: E731, A001
        return a * len([])

    one(f, x)


def test_empty_cells_of_functions_over_a_break():
    def f(x):
        def free():
            return late

        seen = []
        for function in (free, free):
            print(end="")
            try:
                function()
            except NameError as error:
                seen.append(error.name)
            print([function.__name__])
        late = 1
        return x + free(), seen

    check(f, torch.ones(2), graphs=1, ops=1)


def test_empty_free_variables_over_a_break():
    def f(x):
        def get():
            return late

        def drop():
            nonlocal late
            del late

        seen = []
        for function in (get, drop):
            try:
                eval("function()", {"function": function})
            except NameError as error:
                seen.append((type(error), str(error), error.name))
        late = 1
        return x + get(), seen

    check(f, torch.ones(2), graphs=1, ops=1)


def cells_of_a_made_function(x):
    y = x * 2

    def uses(a):
        return later + y + a

    plain = lambda v: v  # noqa: E731
    try:
        uses.__closure__[0].cell_contents
    except ValueError as error:
        seen = str(error)
    later = x + 1
    cells = uses.__closure__
    found = [cell.cell_contents for cell in cells]
    return plain.__closure__, seen, cells, cells is uses.__closure__, found, uses


def test_cells_of_a_made_function():
    def shown(x):
        *rest, uses = cells_of_a_made_function(x)
        return *rest, uses(1)

    check(shown, torch.ones(2), graphs=1, ops=4, fullgraph=True)
    uses = framejit.compile(cells_of_a_made_function, backend="eager")(torch.ones(2))[-1]
    cells = framejit.compile(lambda: uses.__closure__, backend="eager")()
    assert cells is uses.__closure__


def annotations_of_a_made_function(x):
    plain = lambda v: v  # noqa: E731
    seen = plain.__annotations__
    seen["v"] = int
    wrapped = functools.wraps(plain)(lambda *args: 1)
    same = seen is plain.__annotations__ is wrapped.__annotations__
    return same, x + 1, plain.__annotations__, seen


def test_annotations_of_a_made_function():
    check(annotations_of_a_made_function, torch.ones(2), graphs=1, ops=1, fullgraph=True)


def fields_that_cannot_be_assigned(x):
    def made(a: int = 1):
        return a

    seen = []
    for name, value in [
        ("__closure__", None), ("__globals__", {}), ("__builtins__", {}), ("__name__", 5),
        ("__qualname__", None), ("__annotations__", 3), ("__defaults__", 3), ("__module__", 4),
    ]:  # fmt: skip
        try:
            setattr(made, name, value)
        except (AttributeError, TypeError) as error:
            seen.append(str(error))
    return seen, made.__module__, x + 1


def test_fields_that_cannot_be_assigned():
    check(fields_that_cannot_be_assigned, torch.ones(2), graphs=1, ops=1)


def c_attributes_of_made_objects(x):
    made = lambda v: v  # noqa: E731
    error = ValueError(1)
    with torch.no_grad(), contextlib.suppress(ValueError):
        names = made.__builtins__ is not None, made.__annotations__, made.__globals__ is globals()
        return names, error.__context__, error.__suppress_context__, x + 1


def test_c_attributes_of_made_objects():
    check(c_attributes_of_made_objects, torch.ones(2), graphs=1, ops=2)
