"""Errors that exist already and are raised once more: their tracebacks, causes and contexts grow as
in plain Python, whether they are raised in captured code or by what a break runs."""

from __future__ import annotations

import contextlib

import pytest
import torch

from checking import check, lines_of

x = torch.tensor([1.0, -2.0])


def fails(n):
    if n == 0:
        raise ValueError("fails")
    fails(n - 1)


def numbers():
    yield 1
    fails(1)


@contextlib.contextmanager
def translated():
    try:
        yield
    except ValueError as error:
        raise KeyError("translated") from error


def p01_given_error(x, error):
    def f():
        raise error

    try:
        f()
    except ValueError as caught:
        return x + 1, caught is error


def p02_raised_three_times(x):
    error = ValueError(5)

    def f():
        raise error

    for _ in range(2):
        try:
            f()
        except ValueError:
            print("caught")
    x = x + 1
    f()


def p03_in_the_same_frame(x):
    error = None
    try:
        fails(1)
    except ValueError as caught:
        error = caught
    print("caught")
    try:
        raise error
    except ValueError as again:
        return x + 1, again


def p04_through_breaks(x, log):
    def f(n):
        try:
            if n == 0:
                raise ValueError(n)
            f(n - 1)
        finally:
            print(n)

    try:
        f(2)
    except ValueError as error:
        log.append(error)
    return x + 1


def p05_without_traceback(x):
    try:
        fails(1)
    except ValueError as caught:
        error = caught.with_traceback(None)
    try:
        raise error
    except ValueError as again:
        return x + 1, again


def p06_traceback_removed(x):
    try:
        fails(1)
    except ValueError as caught:
        caught.__traceback__ = None
        error = caught
    print("break")
    return x + 1, error


def p07_traceback_of_another(x):
    try:
        fails(1)
    except ValueError as caught:
        error = KeyError(1).with_traceback(caught.__traceback__)
    return x + 1, error


def p08_chain(x, log):
    def inner():
        try:
            fails(1)
        except ValueError as error:
            raise KeyError(1) from error

    def middle():
        try:
            inner()
        except KeyError:
            print("handled")
            raise TypeError(2)

    try:
        middle()
    except TypeError as error:
        log.append(error)
    return x + 1


def p09_of_a_generator(x, log):
    for end in (None, "break"):
        try:
            for n in numbers():
                x = x + n
                if end:
                    print(end)
        except ValueError as error:
            log.append(error)
    return x


def p10_of_a_with_block(x, log):
    for end in (None, "break"):
        try:
            with translated():
                if end:
                    print(end)
                fails(0)
        except KeyError as error:
            log.append(error)
    return x + 1


def p11_raised_in_a_handler_of_another(x):
    try:
        fails(0)
    except ValueError as caught:
        error = caught
    print("break")
    try:
        try:
            raise KeyError(1)
        except KeyError:
            raise error
    except ValueError as again:
        return x + 1, again


#: (program, arguments, graphs)
PROGRAMS = [
    (p01_given_error, lambda: [ValueError("given")], 1),
    (p02_raised_three_times, list, 1),
    (p03_in_the_same_frame, list, 1),
    (p04_through_breaks, lambda: [[]], 1),
    (p05_without_traceback, list, 1),
    (p06_traceback_removed, list, 1),
    (p07_traceback_of_another, list, 1),
    (p08_chain, lambda: [[]], 1),
    (p09_of_a_generator, lambda: [[]], 1),
    (p10_of_a_with_block, lambda: [[]], 1),
    (p11_raised_in_a_handler_of_another, list, 1),
]


@pytest.mark.parametrize(("program", "arguments", "graphs"), PROGRAMS)
def test_program(program, arguments, graphs) -> None:
    check(program, x, *arguments(), graphs=graphs)


def test_lines_are_compared() -> None:
    """`check` sees where errors have been."""
    try:
        fails(1)
    except ValueError as error:
        names = [name for _, name, _ in lines_of(error)]
    assert names == ["test_lines_are_compared", "fails", "fails"]
