"""Exceptions in programs: raised, caught, chained, finally, custom classes.

PYTEST_DONT_REWRITE: the programs assert themselves.
"""

from __future__ import annotations

import contextlib

import pytest
import torch

from checking import check

x = torch.tensor([1.0, -2.0, 3.0])


def one(function, *args, **kwargs):
    """One graph that holds all operations."""
    return check(function, *args, fullgraph=True, graphs=1, **kwargs)


class Problem(Exception):
    code = 7

    def __init__(self, what, *, level=1):
        super().__init__(f"problem: {what}")
        self.what = what
        self.level = level


class Shown(ValueError):
    def __str__(self):
        return f"shown {self.args}"


class Swallow:
    def __init__(self, *kinds):
        self.kinds = kinds
        self.seen = None

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.seen = kind and kind.__name__
        return kind is not None and issubclass(kind, self.kinds)


def fail(kind=ValueError, *args):
    raise kind(*args)


def test_raise_and_catch():
    def f(a):
        try:
            raise ValueError("no", 3)
        except ValueError as error:
            return a + 1, str(error), error.args, type(error).__name__, repr(error)

    one(f, x)


def test_raise_class():
    def f(a):
        try:
            raise ValueError
        except (KeyError, ValueError) as error:
            return a * 2, error.args, str(error)

    one(f, x)


def test_exception_caught_in_the_caller():
    def f(a):
        try:
            fail(KeyError, "k")
        except KeyError as error:
            return a + 1, str(error), error.args[0]

    one(f, x)


def test_else_and_finally():
    def f(a, bad):
        log = []
        try:
            if bad:
                fail()
            log.append("body")
        except ValueError:
            log.append("except")
            a = a * 2
        else:
            log.append("else")
            a = a + 1
        finally:
            log.append("finally")
            a = a - 3
        return a, log

    one(f, x, True, ops=2)
    one(f, x, False, ops=2)


def test_finally_with_return():
    def f(a):
        try:
            raise ValueError("lost")
        finally:
            return a + 1  # noqa: B012

    one(f, x)


def test_return_in_try_and_finally():
    def g(log):
        try:
            return "try"
        finally:
            log.append("finally")

    def f(a):
        log = []
        return a + 1, g(log), log

    one(f, x)


def test_loop_control_in_finally():
    def f(a):
        for i in range(5):
            try:
                if i == 1:
                    continue
                if i == 3:
                    break
                a = a + i
            finally:
                a = a * 2
        return a

    one(f, x)


def test_raised_again():
    def f(a):
        try:
            try:
                fail(ValueError, "inner")
            except ValueError:
                a = a + 1
                raise
        except ValueError as error:
            return a * 2, str(error)

    one(f, x, ops=2)


def test_raise_from_another():
    def f(a):
        try:
            try:
                fail(KeyError, "k")
            except KeyError as error:
                raise ValueError("v") from error
        except ValueError as error:
            return (a + 1, type(error.__cause__).__name__, type(error.__context__).__name__,
                    error.__suppress_context__)  # fmt: skip

    one(f, x)


def test_raise_from_none():
    def f(a):
        try:
            try:
                fail(KeyError, "k")
            except KeyError:
                raise ValueError("v") from None
        except ValueError as error:
            return (a + 1, error.__cause__, type(error.__context__).__name__,
                    error.__suppress_context__)  # fmt: skip

    one(f, x)


def test_context_of_an_exception():
    def f(a):
        try:
            try:
                fail(KeyError, "k")
            except KeyError:
                fail(ValueError, "v")
        except ValueError as error:
            return a + 1, repr(error.__context__), error.__cause__

    one(f, x)


def test_exception_class_of_the_users():
    def f(a):
        try:
            raise Problem("x", level=3)
        except Problem as error:
            return a * error.level, error.what, str(error), error.code, error.args

    one(f, x)


def test_exception_with_its_own_text():
    def f(a):
        try:
            raise Shown(1, "b")
        except ValueError as error:
            return a + 1, str(error), f"{error}", repr(error)

    one(f, x)


def test_hierarchy_of_exceptions():
    def f(a):
        names = []
        for kind in (KeyError, IndexError, ZeroDivisionError, OSError, Problem):
            try:
                raise kind("q")
            except LookupError:
                names.append("lookup")
            except ArithmeticError:
                names.append("arithmetic")
            except Problem:
                names.append("problem")
            except Exception:
                names.append("other")
        return a + 1, names

    check(f, x, graphs=1, ops=1)


@pytest.mark.parametrize(
    "act",
    [
        lambda a: {"a": 1}["b"],
        lambda a: [1, 2][5],
        lambda a: (1, 2)[-3],
        lambda a: 1 / 0,
        lambda a: 1 % 0,
        lambda a: int("z"),
        lambda a: [].pop(),
        lambda a: {}.pop("k"),
        lambda a: set().pop(),
        lambda a: {1}.remove(2),
        lambda a: [1].remove(2),
        lambda a: [1].index(2),
        lambda a: "a".index("b"),
        lambda a: next(iter([])),
        lambda a: max([]),
        lambda a: 1 + "a",
        lambda a: "a" + 1,
        lambda a: [1] + (2,),
        lambda a: None + 1,
        lambda a: None.x,
        lambda a: getattr(3, "zz"),
        lambda a: a.zz,
        lambda a: torch.zz,
        lambda a: undefined_name,  # noqa: F821
        lambda a: len(5),
        lambda a: 3 in 5,
        lambda a: iter(5),
        lambda a: 5[0],
        lambda a: {[]: 1},
        lambda a: {}[[]],
        lambda a: sorted([1, "a"]),
        lambda a: int(None),
        lambda a: "%d" % "s",
        lambda a: "{} {}".format(1),  # noqa: F524
        lambda a: f"{3:zz}",
        lambda a: chr(-1),
        lambda a: (lambda p, q: p)(*[1, 2, 3]),
        lambda a: dict([(1, 2, 3)]),
        lambda a: [p for p, q in [(1,)]],
        lambda a: isinstance(1, 2),
        lambda a: "a" < 1,
        lambda a: -"a",
        lambda a: (1, 2).__setitem__(0, 1),
        lambda a: fail(AssertionError, "msg"),
        lambda a: fail(StopIteration, 4),
        lambda a: range(1, 2, 0),
        lambda a: list(zip([1], [], strict=True)),
        lambda a: slice(1, "a").indices(3),
        lambda a: {**{1: 2}, **3},
        lambda a: [*4],
    ],
)
def test_errors_of_operations(act):
    def f(a):
        try:
            act(a)
        except Exception as error:
            return a + 1, type(error).__name__, str(error)
        return a

    one(f, x)


def test_unpacking_errors():
    def f(a):
        texts = []
        for items in ([1], [1, 2, 3], 5, None):
            try:
                p, q = items
            except (TypeError, ValueError) as error:
                texts.append(str(error))
            try:
                p, q, *r = items
            except (TypeError, ValueError) as error:
                texts.append(str(error))
        return a + 1, texts

    one(f, x)


def test_assert_statement():
    def f(a, n):
        try:
            assert n > 3, f"n is {n}"
            assert n
        except AssertionError as error:
            return a + 1, str(error)
        return a * 2

    one(f, x, 2)
    one(f, x, 5)


def test_hasattr_and_getattr():
    def f(a):
        class_ = Swallow()
        return a + hasattr(class_, "no"), getattr(class_, "no", 5), hasattr(class_, "seen")

    one(f, x)


def test_suppressed_exception():
    def f(a):
        with contextlib.suppress(KeyError, ValueError):
            a = a + 1
            fail(ValueError)
            a = a * 100
        return a * 2

    check(f, x, ops=2, graphs=1)


def test_swallowing_exit():
    def f(a):
        with Swallow(ValueError) as s:
            fail(ValueError, "gone")
        with Swallow() as t:
            a = a + 1
        try:
            with Swallow(KeyError):
                fail(ValueError, "stays")
        except ValueError as error:
            return a * 2, s.seen, t.seen, str(error)

    one(f, x)


def test_exit_stack():
    def f(a):
        log = []
        with contextlib.ExitStack() as stack:
            stack.callback(log.append, "first")
            stack.callback(log.append, "second")
            s = stack.enter_context(Swallow(ValueError))
            a = a + 1
            fail(ValueError)
        return a * 2, log, s.seen

    check(f, x, graphs=1, ops=2)


def test_nested_handlers():
    def f(a):
        out = []
        try:
            try:
                fail(KeyError, 1)
            except KeyError as one_:
                out.append(str(one_))
                try:
                    fail(ValueError, 2)
                except ValueError as two:
                    out.append(str(two))
                    out.append(repr(two.__context__))
                raise
        except KeyError as three:
            out.append(repr(three))
            out.append(three.__context__)
        return a + 1, out

    one(f, x)


def test_name_unbound_after_except():
    def f(a):
        try:
            fail()
        except ValueError as error:
            pass
        try:
            error
        except NameError as other:
            return a + 1, str(other)

    one(f, x)


def test_stop_iteration_as_an_exception():
    def f(a):
        it = iter([1])
        next(it)
        try:
            next(it)
        except StopIteration as error:
            return a + 1, error.value, next(it, "end")

    one(f, x)


def test_raise_of_what_is_no_exception():
    def f(a):
        try:
            raise 3
        except TypeError as error:
            text = str(error)
        try:
            raise ValueError("v") from 5
        except TypeError as error:
            return a + 1, text, str(error)

    check(f, x, graphs=1, ops=1)


def test_bare_raise_without_an_exception():
    def f(a):
        try:
            raise
        except RuntimeError as error:
            return a + 1, str(error)

    check(f, x, graphs=1, ops=1)


def test_exception_groups():
    def f(a):
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError as group:
            a = a + len(group.exceptions)
        except* KeyError:
            a = a * 2
        return a

    check(f, x, graphs=2, ops=2)


def test_exception_leaves_with_its_cause():
    def f(a):
        b = a + 1
        try:
            fail(KeyError, "k")
        except KeyError as error:
            raise Problem(b.shape) from error

    check(f, x, graphs=1, ops=1)


def test_exception_leaves_after_a_print():
    def f(a):
        print("before")
        b = a + 1
        try:
            fail(KeyError, "k")
        finally:
            print("finally", b.shape)

    check(f, x, graphs=1, ops=1)


def test_exception_returned_and_stored():
    def f(a):
        saved = None
        try:
            fail(Problem, "kept")
        except Problem as error:
            saved = error
        return a + 1, saved

    one(f, x)


def test_exception_argument_raised():
    def f(a, error):
        try:
            raise error
        except ValueError as caught:
            return a + 1, caught is error, str(caught)

    check(f, x, ValueError("given"), graphs=1, ops=1)


def test_loop_with_retry():
    def f(a):
        tries = 0
        while True:
            try:
                tries += 1
                if tries < 3:
                    raise Problem(tries)
                break
            except Problem as error:
                a = a + error.what
        return a, tries

    one(f, x, ops=2)


def test_add_note_breaks():
    def f(a):
        try:
            error = ValueError("v")
            error.add_note("n")
            raise error
        except ValueError as e:
            return a + 1, e.__notes__

    check(f, x, graphs=1, ops=1)


def test_key_error_of_missing_key():
    class D(dict):
        def __missing__(self, key):
            raise KeyError(f"no {key}")

    def f(a):
        try:
            D()["z"]
        except KeyError as error:
            return a + 1, str(error)

    one(f, x)


def test_exception_equality_and_isinstance():
    def f(a):
        e = ValueError(1)
        return a + 1, isinstance(e, Exception), e == ValueError(1), e in (e,), e.__traceback__

    one(f, x)


def test_exception_of_the_users_whose_state_changes():
    def f(a):
        try:
            raise Problem("p")
        except Problem as error:
            error.level += 5
            error.args = ("new", 2)
            return a * error.level, str(error), error.args

    one(f, x)


@pytest.mark.parametrize("error", [Problem("p"), ValueError(1), KeyError("k")])
def test_an_existing_one_is_initialised_again(error):
    def f(a, error):
        Exception.__init__(error, "new", 2)
        return a + 1, error.args, str(error)

    one(f, x, error)
