"""Generators in programs: yield from, send, throw, close, expressions."""

from __future__ import annotations

import contextlib

import pytest
import torch

import framejit
from checking import check

x = torch.tensor([1.0, -2.0, 3.0])


def one(function, *args, **kwargs):
    """One graph that holds all operations."""
    return check(function, *args, fullgraph=True, graphs=1, **kwargs)


def count(n):
    for i in range(n):
        yield i


def chain(*parts):
    for part in parts:
        got = yield from part
        if got is not None:
            yield got


def averager():
    total, n, average = 0, 0, None
    while True:
        value = yield average
        if value is None:
            return total
        total = total + value
        n += 1
        average = total / n


def guarded(log):
    try:
        while True:
            try:
                value = yield len(log)
                log.append(value)
            except ValueError as error:
                log.append(str(error))
    finally:
        log.append("closed")


@contextlib.contextmanager
def tagged(log, tag):
    log.append("in " + tag)
    try:
        yield tag.upper()
    except KeyError:
        log.append("swallowed")
    finally:
        log.append("out " + tag)


class Tree:
    def __init__(self, value, *kids):
        self.value, self.kids = value, kids

    def __iter__(self):
        yield self.value
        for kid in self.kids:
            yield from kid


def test_for_over_a_generator():
    def f(a):
        for i in count(4):
            a = a + i
        return a

    one(f, x, ops=4)


def test_next_and_default():
    def f(a):
        g = count(2)
        return a * next(g) + next(g), next(g, "end"), next(g, None)

    one(f, x)


def test_stop_iteration_value():
    def g():
        yield 1
        return 5

    def f(a):
        it = g()
        next(it)
        try:
            next(it)
        except StopIteration as error:
            return a + 1, error.value

    one(f, x)


def test_yield_from_value():
    def inner():
        yield 1
        return "done"

    one(lambda a: (a + 1, list(chain(inner(), count(2), [7]))), x)


def test_send_of_values():
    def f(a):
        g = averager()
        next(g)
        g.send(a)
        r = g.send(a * 3)
        try:
            g.send(None)
        except StopIteration as error:
            return r, error.value

    one(f, x)


def test_throw_and_close():
    def f(a):
        log = []
        g = guarded(log)
        out = [next(g), g.send("s"), g.throw(ValueError("v")), g.throw(ValueError)]
        g.close()
        g.close()
        return a + 1, log, out, next(g, "end")

    one(f, x)


def test_thrown_error_leaves():
    def f(a):
        log = []
        g = guarded(log)
        next(g)
        try:
            g.throw(KeyError("k"))
        except KeyError as error:
            return a + 1, log, str(error)

    one(f, x)


def test_throw_before_start():
    def f(a):
        g = count(3)
        try:
            g.throw(ValueError("early"))
        except ValueError as error:
            return a + 1, str(error), list(g)

    one(f, x)


def test_send_before_start():
    def f(a):
        g = count(3)
        try:
            g.send(1)
        except TypeError as error:
            return a + 1, str(error)

    one(f, x)


def test_generator_expression():
    def f(a):
        n = 2
        g = (a * i * n for i in range(3) if i)
        n = 3
        return sum(g), any(i > 1 for i in count(3)), {k: v for k, v in zip("ab", count(2))}

    one(f, x)


def test_infinite_generator():
    def forever():
        n = 0
        while True:
            yield n
            n += 1

    def f(a):
        for i in forever():
            if i > 3:
                break
            a = a + i
        return a

    one(f, x)


def test_two_generators_in_turn():
    def f(a):
        g, h = count(3), count(3)
        return a + 1, [next(g), next(h), next(g), *h, *g]

    one(f, x)


def test_recursive_generator():
    one(lambda a: (a + sum(Tree(1, Tree(2, Tree(3)), Tree(4))), list(Tree(1, Tree(2)))), x)


def test_generator_as_context_manager():
    def f(a):
        log = []
        with tagged(log, "t") as t:
            a = a + 1
        with tagged(log, "u"):
            raise KeyError("k")
        try:
            with tagged(log, "v"):
                raise ValueError("left")
        except ValueError as error:
            log.append(str(error))
        return a * 2, log, t

    check(f, x, ops=2, graphs=1)


def test_stop_iteration_inside():
    def bad():
        yield 1
        raise StopIteration("x")

    def f(a):
        try:
            list(bad())
        except RuntimeError as error:
            return a + 1, str(error), type(error.__cause__).__name__

    one(f, x)


def test_unstarted_generator_is_returned():
    one(lambda a: (a + 1, count(3)), x)


def test_started_generator_is_returned():
    def f(a):
        g = count(4)
        n = next(g)
        return a + n + 1, g

    check(f, x, graphs=1, ops=2)


def test_generator_as_an_argument():
    def f(a, n):
        g = iter(range(n))
        return a + sum(v for v in g)

    one(f, x, 4)


def test_existing_generator():
    def make():
        g = count(4)
        return lambda a: a + next(g)

    check(None, x, make=make, calls=1, graphs=1, ops=1)


def test_generator_across_a_break():
    def f(a):
        for i in count(3):
            a = a + i
            print(i)
        return a

    check(f, x, graphs=3, ops=3)


def test_close_swallows_exit():
    def stubborn():
        try:
            yield 1
        except GeneratorExit:
            yield 2

    def f(a):
        g = stubborn()
        next(g)
        try:
            g.close()
        except RuntimeError as error:
            return a + 1, str(error)

    one(f, x)


def test_yield_in_with_and_finally():
    def g(log):
        try:
            yield 1
            yield 2
        finally:
            log.append("fin")

    def f(a):
        log = []
        for i in g(log):
            a = a + i
            log.append(i)
        return a, log

    one(f, x)


def test_unpacked_generators():
    def f(a):
        p, q = count(2)
        r, *s = count(4)
        return a + p + q, r, s, max(count(5)), sorted(count(3), reverse=True), tuple(count(2))

    one(f, x)


def test_yield_from_delegates_send_throw():
    def outer(log):
        try:
            yield from guarded(log)
        except KeyError:
            yield "caught"

    def f(a):
        log = []
        g = outer(log)
        next(g)
        g.send("z")
        g.throw(ValueError("w"))
        return a + 1, g.throw(KeyError("k")), log

    check(f, x, graphs=1, ops=1)


def test_membership_and_handled_exceptions():
    def g():
        try:
            raise ValueError("in")
        except ValueError:
            yield 1
            raise

    def f(a):
        it = g()
        n = next(it)
        try:
            raise KeyError("mine")
        except KeyError:
            try:
                next(it)
            except ValueError as error:
                text = str(error)
        return a + n, text, 2 in count(3), 9 in count(3)

    check(f, x, graphs=1, ops=1)


def test_async_generators_break():
    async def co(a):
        return a

    def f(a):
        c = co(1)
        b = a + 1
        c.close()
        return b

    check(f, x, graphs=1, ops=1)


# -- dropped half-way ------------------------------------------------------------------------------


def closing(a, log, tag="closed"):
    """Yields with gradients off, and notes when it is closed."""
    try:
        with torch.no_grad():
            yield a * 2
            yield a * 3
    finally:
        log.append(tag)


def noting(a, log, tag):
    try:
        yield a * 2
    finally:
        log.append(tag)


def outer_closing(a, log):
    try:
        yield from closing(a, log, "inner")
    finally:
        log.append("outer")


def first_of(items):
    for item in items:
        return item


class Holder:
    def __init__(self, items):
        self.items = items


def drop_by_break(a, log):
    for v in closing(a, log):
        break
    log.append("behind")
    return v * a


def drop_by_break_inside_a_call(a, log):
    v = first_of(closing(a, log))
    log.append("behind")
    return v * a


def drop_by_del(a, log):
    items = closing(a, log)
    v = next(items)
    log.append("before")
    del items
    return v * a, torch.is_grad_enabled()


def drop_by_new_value(a, log):
    items = closing(a, log)
    v = next(items)
    items = log.append("before")
    return v * a


def drop_by_return(a, log):
    def inner():
        items = closing(a, log)
        return next(items)

    v = inner()
    log.append("behind")
    return v * a


def drop_at_the_end(a, log):
    items = closing(a, log)
    return next(items) * a


def drop_the_holder(a, log):
    holder = Holder(closing(a, log))
    v = next(holder.items)
    other = holder
    del holder
    log.append("held")
    other.items = None
    log.append("behind")
    return v * a


def drop_through_zip(a, log):
    for v, _ in zip(closing(a, log), "ab"):
        break
    log.append("behind")
    return v * a


def drop_yield_from(a, log):
    for v in outer_closing(a, log):
        break
    return v * a


def drop_by_exception(a, log):
    try:
        for v in closing(a, log):
            log.append("raises")
            raise ValueError
    except ValueError:
        log.append("except")
    return v * a


def drop_with_traceback(a, log):
    def inner():
        items = closing(a, log)
        next(items)
        raise ValueError

    try:
        inner()
    except ValueError:
        log.append("except")
    log.append("behind")
    return a * 2


def drop_expression(a, log):
    found = any(v is not None for v in closing(a, log))
    log.append("behind")
    return a * 2 if found else a


def not_dropped(a, log):
    items = closing(a, log)
    v = next(items)
    log.append("between")
    return v * next(items), list(items)


def two_at_once(a, log):
    one, two = noting(a, log, "one"), noting(a, log, "two")
    return next(one) * next(two) * a


def drop_behind_a_break(a, log):
    items = closing(a, log)
    v = next(items)
    print(len(log))
    return v * a


def test_dropped_generators_are_closed():
    a = torch.ones(2, requires_grad=True)
    for function, ops in [
        (drop_by_break, 4), (drop_by_break_inside_a_call, 4), (drop_by_del, 4),
        (drop_by_new_value, 4), (drop_by_return, 4), (drop_at_the_end, 4),
        (drop_the_holder, 4), (drop_through_zip, 4), (drop_yield_from, 4),
        (drop_by_exception, 4), (drop_with_traceback, 4), (drop_expression, 4),
        (not_dropped, 5),
    ]:  # fmt: skip
        one(function, a, [], ops=ops)
        assert torch.is_grad_enabled(), function


def test_dropped_at_an_unknown_moment():
    a = torch.ones(2, requires_grad=True)
    for function, graphs, ops in ((two_at_once, 1, 4), (drop_behind_a_break, 2, 3)):
        check(function, a, [], graphs=graphs, ops=ops)
        assert torch.is_grad_enabled(), function


def test_throw_into_yield_from():
    def f(a, log):
        items = outer_closing(a, log)
        v = next(items)
        items.close()
        log.append("behind")
        again = outer_closing(a, log)
        next(again)
        try:
            again.throw(ValueError("thrown"))
        except ValueError as error:
            log.append(str(error))
        return v + 1

    def g(a, log):
        def relay():
            got = yield from guarded(log)
            return got

        items = relay()
        next(items)
        log.append(items.throw(ValueError("once")))
        log.append(items.send(3))
        return a + 1

    one(f, x, [])
    one(g, x, [])


def returned_once(x):
    finished = guarded_count()
    for _ in finished:
        x = x + 1
    try:
        next(finished)
    except StopIteration as error:
        return x, error.value
    return x


def guarded_count():
    yield 1
    return "end"


def returned_to_yield_from(x):
    finished = guarded_count()
    list(finished)

    def outer():
        got = yield from finished
        yield x + 1, got

    return list(outer())


def test_a_generator_gives_its_return_value_once():
    one(returned_once, x)
    one(returned_to_yield_from, x)


def test_a_running_generator_that_resumes_itself_goes_on():
    def outcome(call):
        try:
            return call()
        except ValueError as error:
            return str(error)

    def function(x):
        def walk():
            yield outcome(lambda: next(made))
            yield outcome(lambda: made.send(None))
            yield outcome(lambda: made.throw(KeyError("k")))
            yield outcome(made.close)
            yield 5

        made = walk()
        return x + 1, list(made), list(made)

    check(function, torch.ones(2), graphs=1, ops=1)


class Own(ValueError):
    """Of the program."""


@pytest.mark.parametrize("started", [False, True])
@pytest.mark.parametrize(
    "thrown",
    [
        (ValueError,), (ValueError, "a"), (ValueError, ("a", "b")), (ValueError, ()),
        (ValueError, None), (ValueError, ValueError("v")), (ValueError, Own("o")),
        (ValueError, KeyError("k")), (Own, ValueError("v")), (ValueError("v"),),
        (ValueError("v"), None), (ValueError("v"), 1), (int,), (5,), (), ("text",), (int, 5),
        (ValueError, "a", None), (ValueError, "a", 5), (ValueError, "a", None, None),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_thrown(started, thrown):
    def walk():
        try:
            yield 1
        except ValueError as error:
            yield type(error), error.args

    def program(x):
        made = walk()
        if started:
            next(made)
        try:
            return x + 1, made.throw(*thrown)
        except Exception as error:  # noqa: BLE001 - it is what is compared
            return x + 2, type(error), error.args

    caught = program(torch.zeros(2))[0][0] == 1
    graphs = 2 if thrown == (ValueError, "a", 5) else 1
    check(program, torch.ones(2), graphs=graphs, ops=1 if caught else 2)


def test_errors_go_through_context_managers_without_a_break():
    @contextlib.contextmanager
    def caught():
        try:
            yield
        except ValueError as error:
            log.append(str(error))

    log = []

    def program(x):
        y = x * 2
        with caught():
            raise ValueError("a")
        return y + 1, log.pop()

    check(program, torch.ones(2), graphs=1, ops=2)


def test_generators_that_are_returned_keep_all_arguments():
    def walk(first, *rest, by=2, **others):
        yield from (first, rest, by, others)

    def program(x):
        return x + 1, walk(1, 2, 3, by=4, more=5), walk(1, more=4), walk(2, 3)

    compiled = framejit.compile(program, backend="eager")
    for expected, found in zip(program(x)[1:], compiled(x)[1:], strict=True):
        assert list(expected) == list(found)
