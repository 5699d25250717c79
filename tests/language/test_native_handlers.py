"""Handlers that are entered because an operation between two graphs raises: what they do, and what
comes after them, is captured."""

from __future__ import annotations

import contextlib
import sys

import pytest
import torch

import framejit
from checking import check


@framejit.disable
def ext(x, n=1):
    if n:
        raise ValueError("ext")
    return 5


class Ctx:
    def __init__(self, swallow=True):
        self.swallow = swallow

    def __enter__(self):
        print("enter")
        return self

    def __exit__(self, *a):
        print("exit", a[0], str(a[1]))
        return self.swallow


def error_is_used(x):
    y = x + 1
    try:
        ext(x)
    except ValueError as e:
        y = y * 2
        print(str(e), e.args, e.__traceback__.tb_lineno)
        y = y + 1
    return y.sin() + 1


def handler_in_a_loop(x):
    y = x + 1
    for i in range(3):
        try:
            y = y * 2
            ext(x, i)
        except ValueError as e:
            y = y + 1
        else:
            y = y.cos()
        finally:
            y = y + 3
    return y.sin() + 1


def with_that_swallows(x):
    y = x + 1
    with Ctx():
        ext(x)
    return y.sin() + 1


def inner(x):
    try:
        x = x * 2
        ext(x)
    except TypeError:
        x = x - 1
    except (ValueError, KeyError):
        x = x * 3
    return x + 1


def handler_in_a_callee(x):
    y = inner(x)
    return y.sin()


def callee_that_raises(x):
    x = x * 2
    ext(x)
    return x


def error_from_a_callee(x):
    try:
        x = callee_that_raises(x + 1)
    except ValueError:
        x = x.cos() + 1
    return x.sin()


def bare_raise_in_a_handler(x):
    try:
        try:
            ext(x)
        except ValueError as e:
            x = x * 2
            raise
        finally:
            x = x + 1
    except ValueError as e:
        x = x.sin() + len(e.args)
    return x.cos()


def raise_from_in_a_handler(x):
    try:
        try:
            ext(x)
        except ValueError as e:
            x = x * 2
            raise KeyError("k") from e
    except KeyError as e:
        print(repr(e.__cause__), repr(e.__context__))
        x = x.sin() + 1
    return x.cos()


def raised_in_a_handler(x):
    try:
        try:
            x = x + 1
            raise TypeError("t")
        except TypeError as e:
            x = x * 2
            ext(x)
    except ValueError as e:
        print(repr(e.__cause__), repr(e.__context__), sys.exc_info()[0])
        x = x.sin() + 1
    return x.cos()


def finally_without_except(x):
    x = x + 1
    try:
        ext(x)
    finally:
        x = x * 2
        print(x.sum().item())
    return x


def continue_in_a_handler(x):
    xs = []
    for i in range(3):
        try:
            xs.append(ext(x, i % 2))
        except ValueError:
            continue
        x = x + 1
    return x.cos() * sum(xs)


def handler_in_a_generator(x):

    def g():
        try:
            yield (x + 1)
            ext(x)
        except ValueError:
            yield (x + 2)

    for t in g():
        x = x * t
    return x


def break_in_a_handler(x):
    while True:
        try:
            ext(x)
            x = x + 1
        except ValueError:
            x = x * 2
            break
        x = x + 10
    return x.cos()


def handlers_in_handlers(x):
    try:
        ext(x)
    except ValueError as e:
        x = x + 1
        ext(x, 0)
        x = x * 2
        try:
            ext(x)
        except ValueError as f:
            x = x.sin()
            print(repr(f.__context__), e is f.__context__)
    return x + 1


def with_does_not_swallow(x):
    try:
        with torch.no_grad(), Ctx(False):
            ext(x)
    except ValueError:
        x = x * 2 + torch.is_grad_enabled()
    return x.sin()


def exc_info_in_a_handler(x):
    try:
        ext(x)
    except ValueError:
        print(sys.exc_info()[1])
        x = x * 2
        print(sys.exc_info()[1])
    print(sys.exc_info()[1])
    return x + 1


def comprehensions_in_handlers(x):
    a = [ext(x, 0) if i else 2 for i in range(2)]
    try:
        b = [ext(x + i, i) for i in range(2)]
    except ValueError:
        b = x.sin()
    return b * a[1] + a[0]


def leaves_from_a_handler(x):
    try:
        ext(x)
    except ValueError as e:
        x = x * 2
        ext(x)
    return x


def finally_after_a_handler(x):
    try:
        try:
            ext(x)
        except TypeError:
            x = x * 7
        except (KeyError, ValueError) as e:
            x = x * 2
            ext(x)
            x = x * 3
        finally:
            x = x + 1
            print("f", sys.exc_info()[0])
    except ValueError as e:
        x = x.sin()
        print(repr(e.__context__))
    return x.cos()


def recursion_in_a_handler(x):

    def rec(x, n):
        try:
            if n == 0:
                ext(x)
            return rec(x + 1, n - 1)
        except ValueError:
            x = x * 2
            if n < 2:
                raise
            return x

    return rec(x, 3).sin()


def local_class_from_none(x):

    class E(Exception):
        pass

    try:
        try:
            ext(x)
        except ValueError as e:
            raise E(str(e)) from None
    except E as e:
        print(e.__suppress_context__, repr(e.__context__), e)
        x = x * 2
    return x + 1


def two_contexts(x):
    for i in range(2):
        with Ctx() as c, torch.no_grad():
            x = x * 2
            ext(x, i)
            x = x * 3
        x = x + 1
    return x


def cells_in_handlers(x):

    def cell():
        nonlocal x
        try:
            ext(x)
        except ValueError:
            x = x * 2
        return lambda: x + 1

    f = cell()
    x = x * 3
    return f()


def suppress_and_stack(x):
    with contextlib.suppress(ValueError):
        x = x * 2
        ext(x)
    with contextlib.ExitStack() as st:
        st.callback(print, "cb")
        st.enter_context(Ctx())
        x = x * 2
        ext(x)
    return x + 1


def error_of_a_c_operation(x):
    d = {}
    try:
        d[[1]] = ext(x, 0)
    except TypeError as e:
        x = x * 2
        print(e)
    return x + 1


def finally_raises(x):
    try:
        try:
            ext(x)
        finally:
            x = x * 2
            ext(x)
    except ValueError as e:
        x = x + 3
        print(repr(e.__context__))
    return x + 1


PROGRAMS = [
    (error_is_used, 3, 5), (handler_in_a_loop, 4, 12), (with_that_swallows, 2, 3),
    (handler_in_a_callee, 2, 4), (error_from_a_callee, 2, 5), (bare_raise_in_a_handler, 1, 5),
    (raise_from_in_a_handler, 2, 4), (raised_in_a_handler, 2, 5), (finally_without_except, 2, 3),
    (continue_in_a_handler, 2, 4), (handler_in_a_generator, 2, 3), (break_in_a_handler, 1, 2),
    (handlers_in_handlers, 4, 4), (with_does_not_swallow, 1, 4), (exc_info_in_a_handler, 2, 2),
    (comprehensions_in_handlers, 3, 5), (leaves_from_a_handler, 1, 1),
    (finally_after_a_handler, 4, 4), (recursion_in_a_handler, 2, 7), (local_class_from_none, 1, 2),
    (two_contexts, 5, 8), (cells_in_handlers, 1, 3), (suppress_and_stack, 3, 3),
    (error_of_a_c_operation, 2, 2), (finally_raises, 3, 3),
]  # fmt: skip


@pytest.mark.parametrize(("program", "graphs", "ops"), PROGRAMS)
def test_program(program, graphs, ops) -> None:
    check(program, torch.ones(2), graphs=graphs, ops=ops)
