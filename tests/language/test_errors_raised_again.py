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


def error_given_as_an_argument(x, error):
    def f():
        raise error

    try:
        f()
    except ValueError as caught:
        return x + 1, caught is error


def error_raised_three_times(x):
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


def raised_again_in_the_same_frame(x):
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


def raised_again_through_breaks(x, log):
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


def error_without_traceback(x):
    try:
        fails(1)
    except ValueError as caught:
        error = caught.with_traceback(None)
    try:
        raise error
    except ValueError as again:
        return x + 1, again


def error_whose_traceback_is_removed(x):
    try:
        fails(1)
    except ValueError as caught:
        caught.__traceback__ = None
        error = caught
    print("break")
    return x + 1, error


def error_with_the_traceback_of_another(x):
    try:
        fails(1)
    except ValueError as caught:
        error = KeyError(1).with_traceback(caught.__traceback__)
    return x + 1, error


def chain_of_errors(x, log):
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


def error_of_a_generator(x, log):
    for end in (None, "break"):
        try:
            for n in numbers():
                x = x + n
                if end:
                    print(end)
        except ValueError as error:
            log.append(error)
    return x


def error_of_a_with_block(x, log):
    for end in (None, "break"):
        try:
            with translated():
                if end:
                    print(end)
                fails(0)
        except KeyError as error:
            log.append(error)
    return x + 1


def raised_in_a_handler_of_another(x):
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
    (error_given_as_an_argument, lambda: [ValueError("given")], 1),
    (error_raised_three_times, list, 1),
    (raised_again_in_the_same_frame, list, 1),
    (raised_again_through_breaks, lambda: [[]], 1),
    (error_without_traceback, list, 1),
    (error_whose_traceback_is_removed, list, 1),
    (error_with_the_traceback_of_another, list, 1),
    (chain_of_errors, lambda: [[]], 1),
    (error_of_a_generator, lambda: [[]], 1),
    (error_of_a_with_block, lambda: [[]], 1),
    (raised_in_a_handler_of_another, list, 1),
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
