"""The state of exceptions: what their C classes keep of the arguments, before and after breaks."""

from __future__ import annotations

import sys

import pytest
import torch

import framejit
from checking import CountingBackend, check, check_between
from framejit import config

X = torch.ones(1)
FIELDS = (
    "value", "code", "errno", "strerror", "filename", "filename2", "characters_written", "name",
    "path", "msg", "obj", "lineno", "offset", "text", "end_lineno", "object", "start", "end",
    "reason", "encoding", "message", "exceptions",
)  # fmt: skip


class Own(Exception):
    def __init__(self, a, b):
        self.a = a
        super().__init__(b)


class NeverInitialised(StopIteration):
    def __init__(self, *args):
        pass


class Numbered(OSError):
    def __init__(self, n):
        super().__init__(n, "message")


class Unparsed(OSError):
    def __init__(self, n):
        self.n = n


class Plain(OSError):
    pass


class Named(ImportError):
    def __init__(self, text):
        super().__init__(text, name="n", path="p")


class Increased(SystemExit):
    def __init__(self, code):
        super().__init__(code + 1)


class OwnArgs(Exception):
    def __init__(self, a):
        Exception.__init__(self, a)
        self.args = (a, a)


class Group(ExceptionGroup):
    pass


class Decoding(UnicodeDecodeError):
    pass


class Watched(Exception):
    def __setattr__(self, name, value):
        print("set", name)
        super().__setattr__(name, value)


MADE = [
    "StopIteration(5)", "StopIteration()", "StopIteration(x, 2)", "SystemExit(3)", "SystemExit()",
    "SystemExit(1, 2)", "SystemExit(x)", "OSError(2, 't')", "OSError(2, 't', 'file')",
    "OSError(2, 't', 'file', None, 'other')", "OSError('t')", "OSError(x)",
    "FileNotFoundError(1, 't')", "BlockingIOError(11, 't', 5)", "KeyError('k')", "KeyError(x)",
    "ImportError('t', name='n', path='p')", "ModuleNotFoundError('t', name='n')",
    "NameError('t', name='n')", "AttributeError('t', name='n', obj=x)", "AttributeError('t')",
    "SyntaxError('t', ('f', 1, 2, 'text'))", "SyntaxError('t', ('f', 1, 2, 'text', 3, 4))",
    "SyntaxError('t')", "UnicodeDecodeError('utf8', b'ab', 0, 1, 'r')",
    "UnicodeEncodeError('utf8', 'ab', 0, 1, 'r')", "UnicodeTranslateError('ab', 0, 1, 'r')",
    "ExceptionGroup('g', [ValueError(1), TypeError(x)])", "BaseExceptionGroup('g', [Own(1, 2)])",
    "BaseExceptionGroup('g', (KeyboardInterrupt(),))", "Group('g', [ValueError(1)])",
    "ValueError(ValueError(1))", "Exception([1, x])", "StopAsyncIteration(4)", "AssertionError()",
    "MemoryError('t')", "Own(1, x)", "NeverInitialised(1, 2)", "Numbered(2)", "Unparsed(2)",
    "Plain(2, 't')", "Plain('t')", "Named('t')", "Increased(4)", "OwnArgs(x)",
    "Decoding('utf8', b'ab', 0, 1, 'r')", "Watched(1)", "UnicodeDecodeError(1)", "TypeError(n=1)",
]  # fmt: skip


def state(error):
    """All that can be seen of an exception."""
    fields = [(name, getattr(error, name, None)) for name in FIELDS]
    shown = [(n, list(map(state, v)) if n == "exceptions" and v else v) for n, v in fields]
    chain = type(error.__cause__), type(error.__context__), error.__suppress_context__
    return type(error), str(error), repr(error), repr(shown), chain, sorted(vars(error))


def _program(text):
    namespace = dict(globals())
    exec(
        f"def program(x, stop):\n    error = {text}\n    args = error.args\n"
        "    if stop:\n        print(end='')\n    return error, args\n",
        namespace,
    )
    return namespace["program"]


@pytest.mark.parametrize("text", MADE)
@pytest.mark.parametrize("stop", [False, True])
def test_state(text, stop, capsys):
    program = _program(text)

    def run(function):
        try:
            error, args = function(X, stop)
        except Exception as raised:  # noqa: BLE001 - the program's own
            return "raised", state(raised), capsys.readouterr().out
        return state(error), error.args is args, capsys.readouterr().out

    with config.patch(raise_internal_errors=True):
        compiled = framejit.compile(program, backend="eager")
        expected = run(program)
        assert run(compiled) == run(compiled) == expected


def test_it_is_captured():
    def make(x, e):
        errors = [
            OSError(2, "t", "file"), ImportError("t", name="n"), Increased(3), StopIteration(x),
            UnicodeDecodeError("utf8", b"ab", 0, 1, "r"), Numbered(2), NameError("t", name=x),
        ]  # fmt: skip
        texts = [str(e) for e in errors[:3]], repr(errors[0]), errors[0].strerror
        return texts, errors[3].value + 1, errors[2].code, errors[4].reason, errors[6].name * 2

    check(make, X, None, graphs=1, ops=2, fullgraph=True)


def test_state_that_the_program_changes():
    def change(x):
        stop, missing, leave = StopIteration(1), OSError(2, "t"), SystemExit(1)
        first = stop.value
        stop.__init__(2)
        missing.errno, missing.z = 7, None
        leave.code = 9
        print(str(missing))
        return first, stop.value, stop.args, missing.errno, vars(missing), leave.code, leave.args

    check_between(change, X, graphs=2, ops=2)


def test_attributes_are_written_behind_the_class():
    def make(x):
        error = Watched(1)
        error.x = x
        print("break")
        return error.x, error.args

    check_between(make, X, graphs=2, ops=2)


def test_value_of_a_generator():
    def numbers():
        yield 1
        return "returned"

    def exhaust(x):
        made = numbers()
        next(made)
        try:
            next(made)
        except StopIteration as error:
            print(end="")
            return error.value, x + 1

    check(exhaust, X, graphs=1, ops=1)


def info(x):
    return x + 1, sys.exc_info()[0], repr(sys.exception())


def context(x):
    try:
        raise KeyError(1)
    except KeyError as error:
        return x + 1, repr(error.__context__), repr(sys.exception())


def after_a_break(x):
    x = x + 1
    print(end="")
    return x * 2, repr(sys.exc_info()[1]), [repr(sys.exception()) for _ in range(2)]


def again(x):
    raise  # noqa: PLE0704


class ContextOf:
    """Looks at the context of an error when it is shown."""

    def __init__(self, error):
        self.error = error

    def __repr__(self):
        return repr(self.error.__context__)


def handed_out(x):
    try:
        raise KeyError(1)
    except KeyError as error:
        return x + 1, ContextOf(error)


def raised_again(x):
    try:
        raise KeyError(1)
    except KeyError as error:
        held = ContextOf(error)
        if held.error.args:
            raise


@pytest.mark.parametrize(
    "function", [info, context, after_a_break, again, handed_out, raised_again]
)
def test_errors_that_are_handled_around_the_compiled_code(function):
    def handled(call, error):
        try:
            if error is not None:
                raise error
            return call(X)
        except LookupError:
            return call(X)

    def outcome(call, error):
        try:
            return repr(handled(call, error))
        except Exception as raised:
            return repr(raised), repr(raised.__context__)

    backend = CountingBackend()
    with config.patch(raise_internal_errors=True):
        compiled = framejit.compile(function, backend=backend)
        for error in (IndexError(1), None, KeyError(2), IndexError(3)):
            assert outcome(compiled, error) == outcome(function, error)
    assert backend.graphs or function in (again, raised_again)
