"""Code that runs while a program is compiled: `comptime` and what it gets to see.

In: calls of `comptime` and its shortcuts in captured code, at any depth of inlining. Out: the
user's function is run once, at compile time, with a `ComptimeContext`; the graph holds nothing of
it. In eager code all of this does nothing. Next room: api.
"""

from __future__ import annotations

import ast
import operator
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from framejit.exc import ComptimeError, GraphBreak
from framejit.graph import instalments
from framejit.guards.plan import Guard, guards_of
from framejit.native import HookContext, set_context
from framejit.report.messages import source_line
from framejit.report.printouts import bytecode_text, graph_table
from framejit.values.core.base import NULL, Value
from framejit.values.core.constants import ConstantValue
from framejit.values.core.registry import CODE_LOOKASIDES, LOOKASIDES
from framejit.values.core.space import Space
from framejit.values.core.symbolic import SymbolicValue, check
from framejit.values.objects.cells import CellValue
from framejit.values.objects.functions import FunctionValue
from framejit.values.torch.tensors import TensorValue

if TYPE_CHECKING:
    from framejit.interpreter.frame import Frame


def _comparison(compare: Callable[[Any, Any], Any]) -> Callable[[Any, object], Any]:
    """A method of `ComptimeValue` that compares a number."""

    def compared(self: ComptimeValue, other: object) -> Any:
        if not (self.is_constant or isinstance(self._value, SymbolicValue)):
            return NotImplemented
        return compare(self.expression, other)

    return compared


class ComptimeValue:
    """A value of the captured program while it is compiled: there is no data yet.

    ``print`` shows it as the program would see it: constants as they are, tensors with dtype, sizes
    and device, numbers that vary as expressions. Comparisons of numbers make conditions for
    `ComptimeContext.add_fact`.
    """

    def __init__(self, context: ComptimeContext, value: Value) -> None:
        self._context = context
        self._value = value.realize()

    def python_type(self) -> type:
        """Its class."""
        return self._value.python_type()

    @property
    def is_constant(self) -> bool:
        """Is it known while compiling?"""
        return self._value.is_constant

    @property
    def is_dynamic(self) -> bool:
        """May it, or a size of it, differ from call to call?"""
        return any(not isinstance(part, int) for part in self._parts()) or self._value.is_symbolic

    @property
    def value(self) -> Any:
        """The Python object of a constant. Raises TypeError for anything else."""
        if not self.is_constant:
            raise TypeError(f"{self} is no constant")
        return self._value.as_python()

    @property
    def shape(self) -> tuple[Any, ...]:
        """A tensor's sizes: ints, and `torch.SymInt` where they vary. TypeError for others."""
        return tuple(self._tensor().metadata().shape)

    @property
    def expression(self) -> Any:
        """A number as PyTorch computes with it: a `torch.SymInt` or the like, or the constant."""
        if isinstance(self._value, SymbolicValue):
            return self._value.sym
        return self.value

    def fake(self) -> Any:
        """A fake tensor that is like this tensor. Raises TypeError for what is no tensor."""
        return self._tensor().fake(self._context._space)

    def assert_static(self) -> None:
        """Raise `exc.ComptimeError` at the user's line if it, or a size of it, may vary."""
        if self.is_dynamic:
            raise ComptimeError(f"{self} is dynamic, and the program says that it is static")

    def force_static(self) -> None:
        """Compile for the sizes, or the number, of this call; others are compiled again."""
        if isinstance(self._value, SymbolicValue):
            self._value.as_python()
        for part in self._parts():
            int(part)
        self._context._poll()

    __eq__ = _comparison(operator.eq)
    __ne__ = _comparison(operator.ne)
    __lt__ = _comparison(operator.lt)
    __le__ = _comparison(operator.le)
    __gt__ = _comparison(operator.gt)
    __ge__ = _comparison(operator.ge)
    __hash__ = object.__hash__

    def _tensor(self) -> TensorValue:
        if not isinstance(self._value, TensorValue):
            raise TypeError(f"{self} is no tensor")
        return self._value

    def _parts(self) -> tuple[Any, ...]:
        if isinstance(self._value, TensorValue):
            return tuple(self._value.metadata().shape)
        return ()

    def __str__(self) -> str:
        if self.is_constant:
            return str(self.value)
        return _text(self._context._space, self._value)

    def __repr__(self) -> str:
        return f"<comptime value {self}>"


class ComptimeContext:
    """What a function given to `comptime` gets: the state of the compilation at this point.

    ``stacklevel`` 0 is the function that contains the call, 1 the function that called it, and so
    on up to the function that is compiled; calls are inlined. This class is stable API.
    """

    def __init__(self, space: Space, frame: Frame) -> None:
        self._space = space
        self._frame = frame

    # -- looking

    def print(self, value: Any = "", *values: Any) -> None:
        """Print values: of the program (`ComptimeValue`), or anything else."""
        print(*[value, *values])

    def get_local(self, name: str, stacklevel: int = 0) -> ComptimeValue:
        """The value of a variable: an argument, a local, a cell or a free variable.

        Raises NameError when there is none of that name.
        """
        found = self._locals(stacklevel).get(name)
        if found is None:
            function = self._at(stacklevel).info.code.co_qualname
            raise NameError(f"{function}() has no variable {name!r} here")
        return ComptimeValue(self, found)

    def is_dynamic(self, value: ComptimeValue | str | int | torch.SymInt) -> bool:
        """May a value (or the local of this name), or a size of it, differ from call to call?"""
        return self._value(value).is_dynamic

    def print_locals(self, stacklevel: int = 0) -> None:
        """Print every variable that has a value."""
        for name, value in self._locals(stacklevel).items():
            print(f"{name} = {_text(self._space, value.realize())}")

    def print_stack(self) -> None:
        """Print where the program is: the functions from the compiled one to this one."""
        for frame in self._frame.chain():
            filename, line = frame.line
            print(f'  File "{filename}", line {line}, in {frame.info.code.co_name}')
            code = source_line(filename, line)
            if code:
                print(f"    {code}")

    def print_value_stack(self, stacklevel: int = 0) -> None:
        """Print the stack of operands of CPython's interpreter, the top last."""
        for value in self._at(stacklevel).before:
            text = "NULL" if value is NULL else _text(self._space, value.realize())
            print(f"- {text}")

    def print_bytecode(self, stacklevel: int = 0) -> None:
        """Print the bytecode of the function."""
        frame = self._at(stacklevel)
        print(f"at offset {frame.instruction.offset}:")
        print(bytecode_text(frame.info.code))

    def print_graph(self) -> None:
        """Print the graph so far as a table."""
        self._space.builder.flatten()
        print(graph_table(self._space.builder.graph))

    def guards(self) -> list[Guard]:
        """The guards so far."""
        roots = [*self._space.slot_roots, *self._space.const_roots.values()]
        return guards_of(roots)

    def print_guards(self) -> None:
        """Print the guards so far, one a line."""
        for guard in self.guards():
            print(guard)

    # -- acting

    def breakpoint(self) -> None:
        """Stop in the debugger, as Python's ``breakpoint()``: at the user's line, its variables
        as `ComptimeValue`s and this context as ``ctx``."""
        frame = self._frame
        filename, line = frame.line
        print(f"framejit: compiling {filename}:{line}; the state is in `ctx`")
        variables = {name: ComptimeValue(self, v) for name, v in self._locals(0).items()}
        # Runs as the user's line, to which the debugger comes back in the second turn of the loop.
        stop = ast.parse("for _ in (0,): breakpoint()")
        for node in ast.walk(stop):
            if isinstance(node, (ast.stmt, ast.expr)):
                node.lineno = node.end_lineno = line
        code = compile(stop, filename, "exec", dont_inherit=True)
        name = frame.info.code.co_name
        exec(code.replace(co_name=name, co_qualname=name), frame.globals, variables | {"ctx": self})

    def graph_break(self, reason: str = "") -> None:
        """End the graph here; the next one begins after the call."""
        why = f": {reason}" if reason else ""
        raise GraphBreak("FJ0135", f"comptime asked for a graph break{why}")

    def assert_static(self, value: ComptimeValue | str | int | torch.SymInt) -> None:
        """Raise `exc.ComptimeError` if a value (or local), or a size of it, may vary."""
        self._value(value).assert_static()

    def force_static(self, value: ComptimeValue | str | int | torch.SymInt) -> None:
        """Compile for the sizes, or the number, of this call."""
        self._value(value).force_static()

    def add_fact(self, condition: Any) -> None:
        """Assume a condition over sizes: ``ctx.add_fact(ctx.get_local("x").shape[0] > 3)``.

        The compiler relies on it, and it becomes a guard; where the sizes are static it is checked
        at once. Raises `exc.ComptimeError` when it does not hold in this call, TypeError for what
        is no condition.
        """
        if isinstance(condition, ComptimeValue):
            condition = condition.expression
        text = str(condition)
        if isinstance(condition, bool):
            holds = condition
            caller = sys._getframe(1)  # a function of the user's, or the shortcut below
            filename, line = caller.f_code.co_filename, caller.f_lineno
            if filename == __file__:
                filename, line = self._frame.line
            text = source_line(filename, line) or text
        else:
            if type(condition).__name__ != "SymBool":
                raise TypeError(f"a condition over sizes is needed, not {condition!r}")
            holds = check(self._space, SymbolicValue(condition))
            self._poll()
        if not holds:
            raise ComptimeError(f"the fact {text} does not hold in this call")

    # -- inside

    def _poll(self) -> None:
        symbols = self._space.builder.world.symbols_if_any
        if symbols is not None:
            symbols.poll()

    def _value(self, value: ComptimeValue | str | int | torch.SymInt) -> ComptimeValue:
        if isinstance(value, str):
            return self.get_local(value)
        if isinstance(value, torch.SymInt):
            return ComptimeValue(self, SymbolicValue(value))
        if isinstance(value, int):
            return ComptimeValue(self, ConstantValue(value))
        if not isinstance(value, ComptimeValue):
            raise TypeError(
                "a ComptimeValue, the name of a variable or a size is needed, not "
                f"{type(value).__name__} {value!r}"
            )
        return value

    def _at(self, stacklevel: int) -> Frame:
        frames = self._frame.chain()
        if not 0 <= stacklevel < len(frames):
            raise ValueError(f"stacklevel must be from 0 to {len(frames) - 1}, not {stacklevel}")
        return frames[-1 - stacklevel]

    def _locals(self, stacklevel: int) -> dict[str, Value]:
        frame = self._at(stacklevel)
        found: dict[str, Value] = {}
        for name, value in zip(frame.info.slot_names, frame.slots, strict=True):
            inner = value.contents if isinstance(value, CellValue) else value
            if inner is not None and inner is not NULL:
                found[name] = inner
        return found


def _text(space: Space, value: Value) -> str:
    if value.is_constant:
        return repr(value.as_python())
    if isinstance(value, SymbolicValue):
        return f"{value.sym} ({value.python_type().__name__} that varies)"
    if isinstance(value, TensorValue):
        metadata = value.metadata()
        sizes = ", ".join(map(str, metadata.shape))
        grad = ", requires_grad" if metadata.requires_grad else ""
        dtype = str(metadata.dtype).removeprefix("torch.")
        return f"{value.python_type().__name__} {dtype}[{sizes}] on {metadata.device}{grad}"
    items = value.items_now(space)
    if items is not None and value.python_type() in (list, tuple):
        inside = ", ".join(_text(space, item.realize()) for item in items)
        if value.python_type() is list:
            return f"[{inside}]"
        return f"({inside},)" if len(items) == 1 else f"({inside})"
    return value.describe()


# -- calls in captured code --------------------------------------------------------------------


def comptime(function: Callable[..., Any]) -> Callable[..., None]:
    """Run ``function(ctx)`` while the code that contains this call is compiled.

    ``framejit.comptime(lambda ctx: ctx.print_graph())`` in compiled code, or ``@framejit.comptime``
    above a function: ``ctx`` is a `ComptimeContext`. A function decorated outside of compiled code
    runs where compiled code calls it, with ``ctx`` in front of its arguments, which are
    `ComptimeValue`s; so are the variables that a function made in compiled code closes over, unless
    they are constants. In eager code nothing happens. What ``function`` raises, the call of the
    compiled function raises. It may run more than once: for each compilation, and again when a
    capture starts over.

    ``comptime.print(value)``, ``comptime.print_locals()``, ``print_stack``, ``print_bytecode``,
    ``print_graph``, ``print_guards``, ``breakpoint``, ``graph_break``, ``assert_static``,
    ``force_static`` and ``add_fact`` are short for the context's methods; so is ``is_dynamic``,
    which is False in eager code.
    """
    if not callable(function):
        raise TypeError(f"function must be callable, not {function!r} [FJ0210]")
    return _at_compile_time(function)


def _at_compile_time(function: Callable[..., Any]) -> Callable[..., None]:
    def in_eager_code(*args: Any, **kwargs: Any) -> None:
        """Does nothing; see `framejit.comptime`."""
        function  # noqa: B018 - the cell that `_decorated` reads

    return in_eager_code


def _context(space: Space) -> ComptimeContext:
    if space.task.alone:
        raise GraphBreak("FJ0160", "the program runs code while it is compiled")
    return ComptimeContext(space, space.running.frame)


def _run(
    context: ComptimeContext, function: Callable[..., Any], *args: Any, **kwargs: Any
) -> Value:
    """Run the user's function; what it raises is the user's to see."""
    instalments.apart("a function given to comptime")
    hook: HookContext | None = set_context(None)
    try:
        function(context, *args, **kwargs)
    except GraphBreak:
        raise
    except ComptimeError as error:
        raise _placed(context, error) from error.__cause__
    except Exception as error:
        text = f"a function given to comptime raised {type(error).__name__}: {error}"
        own = error.__traceback__  # this function's
        error.__traceback__ = own.tb_next if own is not None else None
        raise _placed(context, ComptimeError(text)) from error
    finally:
        set_context(hook)
    return ConstantValue(None)


def _placed(context: ComptimeContext, error: ComptimeError) -> ComptimeError:
    filename, line = context._frame.line
    code = source_line(filename, line)
    text = str(error).removesuffix(f" [{error.identifier}]")
    return ComptimeError(f'{text}\n  File "{filename}", line {line}\n    {code}')


def _real_function(context: ComptimeContext, value: Value) -> Callable[..., Any]:
    """The user's function as something to call now."""
    value = value.realize()
    if not isinstance(value, FunctionValue):
        found = value.obj
        return found if callable(found) else value.as_python()  # type: ignore[no-any-return]
    if value.function is not None:
        return value.function
    cells = []
    for cell in value.cells(context._space):
        inner = None if cell.contents is None else cell.contents.realize()
        if inner is None:
            cells.append(types.CellType())
        elif inner.is_constant:
            cells.append(types.CellType(inner.as_python()))
        elif isinstance(inner, FunctionValue):
            cells.append(types.CellType(_real_function(context, inner)))
        else:
            cells.append(types.CellType(ComptimeValue(context, inner)))
    return types.FunctionType(value.code, value.globals, value.name, None, tuple(cells))


def _comptime(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) != 1 or kwargs:
        raise GraphBreak("FJ0137", "comptime() takes one function")  # and raises when it runs
    (given,) = args
    context = _context(space)
    return _run(context, _real_function(context, given))


def _decorated(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    decorated, *rest = args
    assert isinstance(decorated, FunctionValue)
    (cell,) = decorated.cells(space)
    assert cell.contents is not None
    context = _context(space)
    function = _real_function(context, cell.contents)
    return _run(
        context, function, *[ComptimeValue(context, value) for value in rest],
        **{name: ComptimeValue(context, value) for name, value in kwargs.items()},
    )  # fmt: skip


LOOKASIDES[comptime] = _comptime
CODE_LOOKASIDES[id(_at_compile_time(print).__code__)] = _decorated


def _shortcut(name: str) -> None:
    method = getattr(ComptimeContext, name)
    eager = False if name == "is_dynamic" else None

    def takes_data(value: ComptimeValue) -> bool:
        if name in ("assert_static", "force_static", "is_dynamic"):
            return value.python_type() is str  # the name of a variable
        return name != "print"

    def shortcut(*args: Any, **kwargs: Any) -> Any:
        return eager

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        context, answer = _context(space), eager

        def call(context: ComptimeContext, *values: ComptimeValue) -> None:
            nonlocal answer
            given = [v.value if v.is_constant and takes_data(v) else v for v in values]
            answer = method(context, *given, **{key: v.as_python() for key, v in kwargs.items()})

        _run(context, call, *[ComptimeValue(context, value) for value in args])
        return ConstantValue(answer)

    shortcut.__name__ = name
    shortcut.__qualname__ = f"comptime.{name}"
    shortcut.__doc__ = f"{method.__doc__}\n\nDoes nothing in eager code."
    LOOKASIDES[shortcut] = handler
    setattr(comptime, name, shortcut)


for _name in (
    "print", "print_locals", "print_stack", "print_value_stack", "print_bytecode", "print_graph",
    "print_guards", "breakpoint", "graph_break", "assert_static", "force_static", "add_fact",
    "is_dynamic",
):  # fmt: skip
    _shortcut(_name)
