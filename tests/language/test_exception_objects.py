"""Exceptions as objects: names, contexts and causes, what may be stored in them, and what catches
them."""

from __future__ import annotations

import pytest
import torch

from checking import check, check_between, said

X = torch.arange(3.0)


class Bare:
    """No attributes of its own."""


def names_of_errors(x):
    one = Bare()
    seen = []
    for place, name in ((one, "foo"), (0, "bar"), (Bare, "foo"), ([], "x"), (x, "foo"), ("a", "")):
        try:
            getattr(place, name)
        except AttributeError as error:
            seen.append((error.name, error.obj is place))
    try:
        one.missing
    except AttributeError as error:
        seen.append((error.name, error.obj is one))
    try:
        one.missing()
    except AttributeError as error:
        seen.append((error.name, error.obj is one))
    try:
        del one.missing
    except AttributeError as error:
        seen.append((error.name, error.obj))
    try:
        no_such_name  # noqa: B018, F821
    except NameError as error:
        seen.append(error.name)
    return x + 1, seen


def names_of_errors_of_the_users(x):
    class Hooks:
        @property
        def held(self):
            raise AttributeError("mine")

        def __getattr__(self, name):
            raise AttributeError("no " + name)

        def above(self):
            return super().nothing

    one, seen = Hooks(), []
    for read in (lambda: one.held, lambda: one.other, lambda: getattr(one, "a"), one.above):  # noqa: B009
        try:
            read()
        except AttributeError as error:
            kind = type(error.obj).__name__
            seen.append((str(error), error.name, kind, error.__context__))
    return x + 1, seen


def unbound_names(x):
    def free():
        return late

    def local():
        if x is None:
            mine = 1
        return mine

    seen = []
    for function in (free, local):
        try:
            function()
        except NameError as error:
            seen.append((str(error), error.name))
    late = 1
    return x + late, seen


def object_of_an_error_over_a_break(x):
    try:
        (0).nothing  # noqa: B018
    except AttributeError as error:
        kept = error
    print("break")
    return x + 1, kept.name, kept.obj


def context_after_a_break(x):
    try:
        try:
            raise KeyError(1)
        except KeyError:
            made = ValueError("a")
            print("break")
            raise made
    except ValueError as error:
        return x + 1, repr(error.__context__)


def no_cycle_of_contexts(x):
    try:
        try:
            raise KeyError(1)
        except KeyError as first:
            try:
                raise ValueError(2)
            except ValueError as error:
                second = error
                raise first  # noqa: B904
    except KeyError as error:
        return x + 1, repr(error.__context__), repr(second.__context__)


def context_of_an_existing_error(x):
    existing = KeyError(3)
    print("break")
    try:
        try:
            raise ValueError(1)
        except ValueError:
            raise existing  # noqa: B904
    except KeyError as error:
        return x + 1, repr(error.__context__)


class Reads:
    @property
    def value(self):
        print("property")
        raise AttributeError("no value")

    def __get__(self, one, cls):
        print("descriptor")
        raise AttributeError("no member")


class Holds:
    member = Reads()

    def __getattribute__(self, name):
        if name == "other":
            print("hook")
            raise AttributeError("no other")
        return super().__getattribute__(name)


def names_of_errors_over_breaks(x):
    seen = []
    for one, name in ((Reads(), "value"), (Holds(), "member"), (Holds(), "other")):
        try:
            getattr(one, name)
        except AttributeError as error:
            seen.append((str(error), error.name, error.obj is one))
    return x + 1, seen


def caught_by_what_is_no_class(x):
    found = []
    for classes in (
        [ValueError], (KeyError, (ValueError,)), (ValueError, 3), (int, ValueError), (), 3, "a",
        (KeyError, ValueError), int, {ValueError: 1}, torch.ones(1),
    ):  # fmt: skip
        try:
            try:
                raise ValueError("raised")
            except classes:
                found.append("caught")
        except (TypeError, ValueError) as error:
            found.append((type(error), str(error)))
    return found


def test_only_classes_of_errors_are_caught():
    check_between(caught_by_what_is_no_class, X, graphs=1, ops=3)


def stored_in_exceptions(x):
    error, text, made = OSError(1, "a"), UnicodeDecodeError("utf8", b"a", 0, 1, "r"), ImportError()
    out = [
        said(setattr, error, "characters_written", "q"), said(setattr, text, "start", "q"),
        said(setattr, text, "start", 1 << 70),
    ]  # fmt: skip
    error.errno, text.reason, made.name = "x", "z", [1]
    out += [said(getattr, error, "characters_written"), said(setattr, error, "__cause__", 3)]
    return out, error.errno, str(text), text.start, made.name


def stored_in_a_made_exception(x):
    error = RuntimeError(0)
    print(end="")
    error.args, error.__cause__, error.__suppress_context__ = (1, 2), ValueError(3), False
    out = [said(setattr, error, "__cause__", 3), said(setattr, error, "args", 3)]
    error.args = [4]
    return out, error.args, repr(error.__cause__)


def stored_tensor_in_an_exception(x):
    return said(setattr, BlockingIOError(1, "b"), "characters_written", x)


def test_an_existing_error_names_the_attribute():
    def run(x, error):
        class Missing:
            def __getattr__(self, name):
                raise error

        out, one = [x + 1], Missing()
        for name in ("first", "second"):
            try:
                getattr(one, name)
            except AttributeError as caught:
                out += [caught is error, caught.name, caught.obj is one]
        return out

    check(run, torch.ones(3), AttributeError("mine"), graphs=1, ops=1)


def all_clauses_of_try(x):
    out = []
    for v in ("1", "q", None):
        try:
            out.append(int(v))
        except ValueError:
            out.append("v")
        except TypeError as e:
            out.append(type(e).__name__)
        else:
            out.append("ok")
        finally:
            out.append("f")
    return x + 1, out


def cause_and_context_of_an_error(x):
    try:
        try:
            {}["k"]
        except KeyError as e:
            raise ValueError("v") from e
    except ValueError as e:
        return x + 1, repr(e.__cause__), e.__context__ is e.__cause__


#: (program, graphs, operations captured)
PROGRAMS = [
    (names_of_errors, 1, 1), (names_of_errors_of_the_users, 1, 1), (unbound_names, 1, 1),
    (object_of_an_error_over_a_break, 1, 1), (context_after_a_break, 1, 1),
    (no_cycle_of_contexts, 1, 1), (context_of_an_existing_error, 1, 1),
    (names_of_errors_over_breaks, 1, 1), (all_clauses_of_try, 1, 1),
    (cause_and_context_of_an_error, 1, 1),
]  # fmt: skip


@pytest.mark.parametrize(
    "program, graphs, ops", PROGRAMS, ids=[row[0].__name__ for row in PROGRAMS]
)
def test_program(program, graphs, ops):
    check(program, X, graphs=graphs, ops=ops)


#: (program, graphs, operations captured)
BETWEEN = [
    (stored_in_exceptions, 2, 2), (stored_in_a_made_exception, 2, 2),
    (stored_tensor_in_an_exception, 2, 2),
]  # fmt: skip


@pytest.mark.parametrize("program, graphs, ops", BETWEEN, ids=[row[0].__name__ for row in BETWEEN])
def test_between_operations(program, graphs, ops):
    check_between(program, X, graphs=graphs, ops=ops)
