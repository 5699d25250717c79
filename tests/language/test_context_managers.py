"""``with`` in programs."""

from __future__ import annotations

import contextlib
import logging
import time
import warnings

import torch

from checking import check

x = torch.tensor([1.0, -2.0, 3.0])


def one(function, *args, **kwargs):
    """One graph that holds all operations."""
    return check(function, *args, fullgraph=True, graphs=1, **kwargs)


class Ctx:
    def __init__(self, log, name="c", swallow=False):
        self.log, self.name, self.swallow = log, name, swallow

    def __enter__(self):
        self.log.append("in " + self.name)
        return self.name

    def __exit__(self, kind, value, trace):
        self.log.append(f"out {self.name} {kind and kind.__name__} {value}")
        return self.swallow


def test_plain_manager():
    def f(a):
        log = []
        with Ctx(log) as c:
            a = a + 1
        return a, c, log

    one(f, x)


def test_many_managers():
    def f(a):
        log = []
        with Ctx(log, "p") as p, Ctx(log, "q") as q:
            a = a + 1
        return a, p, q, log

    one(f, x)


def test_exception_is_swallowed():
    def f(a):
        log = []
        with Ctx(log, swallow=True):
            with Ctx(log, "inner"):
                raise ValueError("v")
        return a + 1, log

    one(f, x)


def test_return_inside_with():
    def g(a, log):
        with Ctx(log):
            return a + 1

    def f(a):
        log = []
        return g(a, log), log

    one(f, x)


def test_break_and_continue_inside_with():
    def f(a):
        log = []
        for i in range(4):
            with Ctx(log, str(i)):
                if i == 1:
                    continue
                if i == 2:
                    break
                a = a + i
        return a, log

    check(f, x, fullgraph=True, graphs=1, ops=1)


def test_existing_manager():
    log = []
    ctx = Ctx(log)

    def f(a, c):
        with c:
            a = a * 2
        return a

    one(f, x, ctx)


def test_exit_stack():
    def f(a):
        log = []
        with contextlib.ExitStack() as stack:
            names = [stack.enter_context(Ctx(log, n)) for n in "ab"]
            stack.push(Ctx(log, "c"))
            a = a + 1
        return a, log, names

    check(f, x, graphs=1, ops=1)


def test_nullcontext_and_closing():
    class Thing:
        closed = False

        def close(self):
            self.closed = True

    def f(a):
        t = Thing()
        with contextlib.nullcontext(5) as n, contextlib.closing(t) as u:
            a = a + n
        return a, t.closed, u is t

    check(f, x, ops=1, graphs=1)


def test_manager_as_decorator():
    class Deco(contextlib.ContextDecorator):
        entered = 0

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return False

    @Deco()
    def g(a):
        return a + 1

    check(lambda a: g(a) * 2, x, ops=2, graphs=1)


def test_what_is_no_manager():
    def f(a):
        try:
            with 3:
                pass
        except TypeError as error:
            return a + 1, str(error)

    check(f, x, graphs=1, ops=1)


def test_redirected_output():
    import io

    def f(a):
        out = io.StringIO()
        b = a + 1
        with contextlib.redirect_stdout(out):
            print("hidden")
        print("seen", out.getvalue())
        return b * 2

    check(f, x, graphs=2, ops=2)


def test_warnings_logging_and_time():
    logger = logging.getLogger("framejit.test")

    def f(a):
        print("one")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("careful", stacklevel=1)
        logger.info("unseen")
        print("two", len(caught))
        start = time.time()
        return a + 1 + (time.time() < start)

    check(f, x, calls=1, graphs=2, ops=2)


def test_no_grad_inside_with():
    def f(a):
        with torch.no_grad():
            b = a * 2
        return b + a

    one(f, x.clone().requires_grad_(), ops=None)


def test_enter_raises():
    class Bad:
        def __enter__(self):
            raise KeyError("enter")

        def __exit__(self, *error):
            raise AssertionError

    def f(a):
        try:
            with Bad():
                pass
        except KeyError as error:
            return a + 1, str(error)

    one(f, x)


def test_exit_raises():
    class Bad:
        def __enter__(self):
            return self

        def __exit__(self, *error):
            raise KeyError("exit")

    def f(a):
        try:
            with Bad():
                raise ValueError("body")
        except KeyError as error:
            return a + 1, repr(error.__context__)

    one(f, x)
