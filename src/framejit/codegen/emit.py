"""Values to expressions: how each kind of value is loaded or built in a generated function.

In: a value. Out: an AST expression; objects with an identity are built once, by a statement. What
can be changed may be made empty and filled later, so that things can refer to each other; what
cannot be changed is made when its parts exist. Existing objects get what the program wrote to them
in the same way. Positions of iterators come last. Next: emit_containers, emit_objects,
emit_iterators, codegen.effects, codegen.function.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from framejit.codegen.runtime import HELPERS
from framejit.graph.expressions import OPERATIONS, Tree
from framejit.interpreter.frame import HandledValue
from framejit.source import Source
from framejit.values.containers.started_iterators import StartedIterator
from framejit.values.core.base import NULL, Unmaterialisable, Value
from framejit.values.core.carried import CarriedSum, NewNumber
from framejit.values.core.constants import ConstantValue, OpaqueValue, PythonModuleValue
from framejit.values.core.operations import LazyValue
from framejit.values.core.space import Space
from framejit.values.core.symbolic import SymbolicValue
from framejit.values.identity import is_shared
from framejit.values.objects.classes import ClassValue, NewMethodValue
from framejit.values.objects.compiled_functions import CompiledFunctionValue
from framejit.values.objects.functions import BuiltinValue
from framejit.values.objects.text import TextValue
from framejit.values.stdlib.process import ContextVarValue
from framejit.values.torch.read_numbers import ReadNumber
from framejit.values.torch.tensors import TensorValue
from framejit.values.torch.torch_library import WeakReferenceValue

_LITERALS = (type(None), bool, int, float, str, bytes, type(Ellipsis))
#: Python limits the length of numbers in texts, and so of those in generated code.
_WRITTEN_BITS = 2000


def name(text: str) -> ast.Name:
    """A load of a name (which need not be an identifier)."""
    return ast.Name(text, ast.Load())


def call(function: ast.expr, *args: ast.expr) -> ast.Call:
    """A call with positional arguments."""
    return ast.Call(function, list(args), [])


class Unfinished(Unmaterialisable):
    """A value is needed while it is being built: what needs it must be filled later."""

    def __init__(self, value: Value) -> None:
        super().__init__(getattr(value, "step", -1), f"a {value.describe()} that contains itself")
        self.value = value


class Emitter:
    """Collects the statements of one generated function and the names of its namespace."""

    def __init__(self, space: Space, slot_names: list[str]) -> None:
        self.space = space
        self.slot_names = slot_names
        self.statements: list[ast.stmt] = []
        #: What is computed of numbers and texts before them, when nothing is changed yet.
        self.computations: list[ast.stmt] = []
        self.namespace: dict[str, Any] = {}
        #: Graph results that the function needs, in order: value -> name.
        self.outputs: dict[TensorValue, str] = {}
        #: The names of those that have been made leaves of autograd.
        self.leaves: set[str] = set()
        self.made: dict[Value, ast.expr] = {}
        #: State that several iterators share, by the identity of the shared part.
        self.shared: dict[int, ast.expr] = {}
        #: The symbols that the function needs, with the names of their parameters.
        self.symbols: dict[str, str] = {}
        #: What is being built, and what is being filled.
        self.building: set[Value] = set()
        self.filling: set[Value] = set()
        #: What is still to be filled (or, existing, to be changed), in order.
        self._pending: dict[Any, Callable[[], None]] = {}
        self._last: list[Callable[[], None]] = []
        self._constants: dict[int, str] = {}
        #: Equal literals become one object when the function is compiled: the first of them.
        self._literals: dict[tuple[type, Any], Any] = {}
        self._captures: dict[Source, str] = {}
        self._taken = set(slot_names)

    # -- names -------------------------------------------------------------------------------------

    def fresh(self, text: str) -> str:
        """A name for something of the generator's own: nothing else in the function has it, and no
        source text can spell it, so it is no variable of the program (D15)."""
        made, number = text, 1
        while made in self._taken or made.isidentifier():
            number += 1
            made = f"{text} #{number}"
        self._taken.add(made)
        return made

    def helper(self, helper_name: str) -> ast.Name:
        """A function of `codegen.runtime`."""
        self.namespace[f"fj:{helper_name}"] = HELPERS[helper_name]
        return name(f"fj:{helper_name}")

    def constant(self, obj: Any, label: str = "const") -> ast.expr:
        """Any object that the entry itself holds."""
        kind = type(obj)
        written = kind in _LITERALS and (kind is not int or obj.bit_length() <= _WRITTEN_BITS)
        if written and self._literals.setdefault((kind, obj), obj) is obj:
            return ast.Constant(obj)
        known = self._constants.get(id(obj))
        if known is None:
            known = self._constants[id(obj)] = f"fj:{label} {len(self._constants)}"
            self.namespace[known] = obj
        return name(known)

    def load(self, source: Source) -> ast.expr:
        """The value at ``source``: a slot, something the entry holds, or a capture."""
        if source.base is None:
            if source.accessor == "slot":
                return name(self.slot_names[source.key])
            return self.constant(source.key)
        source.captured = True
        return name(self.capture_name(source))

    def cls(self, cls: type) -> ast.expr:
        """A class: made by the program, known by its structure, or the entry's own."""
        source = self.space.local_classes.get(cls)
        if source is not None:
            return self.load(source)
        known = self.space.known_value(cls)
        if isinstance(known, ClassValue) and known.making is not None:
            return self.value(known)
        return self.constant(cls)

    def symbol(self, symbol_name: str) -> ast.expr:
        """The value of a symbol: a parameter after the captures, or a result of the graph."""
        node = self.space.builder.symbol_nodes.result(symbol_name)
        if node is None:
            if symbol_name not in self.symbols:
                self.symbols[symbol_name] = self.fresh(f"number {symbol_name}")
            return name(self.symbols[symbol_name])
        return name(self.output(TensorValue(node, None)))

    def output(self, value: TensorValue) -> str:
        """The local that gets this result of the graph."""
        known = self.outputs.get(value)
        if known is None:
            same = (label for other, label in self.outputs.items() if other.node is value.node)
            known = next(same, None)
        if known is None:
            known = self.outputs[value] = self.fresh(f"result {value.node.name}")
        return known

    def is_loaded(self, source: Source) -> bool:
        """Does the function load this source by name?"""
        return source in self._captures

    def capture_name(self, source: Source) -> str:
        """The parameter through which a captured source comes in."""
        known = self._captures.get(source)
        if known is None:
            known = self._captures[source] = self.fresh(source.name)
        return known

    def statement(self, expression: ast.expr) -> None:
        """Evaluate for the effect."""
        self.statements.append(ast.Expr(expression))

    @contextlib.contextmanager
    def first(self) -> Iterator[None]:
        """Statements go in front of all others, which may use what they make."""
        outer, self.statements = self.statements, self.computations
        try:
            yield
        finally:
            self.statements = outer

    def assign(self, label: str, expression: ast.expr) -> ast.Name:
        """Keep a result under a fresh name."""
        text = self.fresh(f"{label} {len(self._taken)}")
        self.statements.append(ast.Assign([ast.Name(text, ast.Store())], expression))
        return name(text)

    # -- values ------------------------------------------------------------------------------------

    def value(self, value: Value) -> ast.expr:
        """The expression for ``value``; makes the object now if it does not exist yet."""
        if type(value) is LazyValue:
            if value.value is None or (value.value.is_symbolic and value.source.accessor != "call"):
                return self.load(value.source)
            value = value.value
        known = self.made.get(value)
        if known is not None:
            return known
        if value in self.building:
            raise Unfinished(value)
        emitter = EMITTERS.get(type(value))
        if emitter is None:
            raise Unmaterialisable(
                getattr(value, "step", -1), f"a {value.describe()} cannot be built for real"
            )
        self.building.add(value)
        try:
            return emitter(self, value)
        finally:
            self.building.discard(value)

    def values(self, values: list[Value]) -> list[ast.expr]:
        """The expressions for several values."""
        return [self.value(v) for v in values]

    def keywords(self, values: dict[str, Value]) -> list[ast.keyword]:
        """The keyword arguments of a call."""
        return [ast.keyword(key, self.value(value)) for key, value in values.items()]

    def keep(self, value: Value, label: str, expression: ast.expr) -> ast.expr:
        """Make the object of ``value`` once; returns its name."""
        made = self.made[value] = self.assign(label, expression)
        return made

    def later(self, value: Any, fill: Callable[[], None]) -> None:
        """Fill an object when everything it may refer to can be named."""
        self._pending[value] = fill

    def complete(self, value: Value) -> None:
        """Fill an object now, if that has been put off: something depends on its content."""
        if value in self.building or value in self.filling:
            raise Unfinished(value)
        fill = self._pending.pop(value, None)
        if fill is not None:
            self.filling.add(value)
            fill()
            self.filling.discard(value)

    def flush(self) -> None:
        """Run what was put off."""
        while self._pending:
            self.complete(next(iter(self._pending)))

    def last(self, statement: Callable[[], None]) -> None:
        """Emit something when all objects have their content."""
        self._last.append(statement)

    def finish(self) -> None:
        """Run what comes last."""
        self.flush()
        while self._last:  # they refer to the emitter
            self._last.pop(0)()

    def parts(
        self,
        owner: Value,
        values: Sequence[Value | None],
        assign: Callable[[int, ast.expr], None],
    ) -> list[ast.expr]:
        """The expressions for what ``owner`` is filled with; None deletes. What depends on its
        content, or waits for it, is assigned in place of a None when it is filled."""
        made: list[ast.expr] = []
        for position, value in enumerate(values):
            if value is None:
                made.append(self.helper("DELETED"))
                continue
            try:
                made.append(self.value(value))
            except Unfinished:
                made.append(ast.Constant(None))
                late = functools.partial(self._late, assign, position, value)
                self.later((owner, position), late)
        return made

    def _late(self, assign: Callable[[int, ast.expr], None], position: int, value: Value) -> None:
        assign(position, self.value(value))

    def build(
        self,
        value: Value,
        label: str,
        display: Callable[[], ast.expr],
        empty: Callable[[], ast.expr],
        fill: Callable[[ast.expr], None],
    ) -> ast.expr:
        """A mutable container: written as one display; made empty, and filled later, if its content
        needs something that is being built."""
        try:
            expression = display()
        except Unfinished as problem:
            if problem.value not in self.building and problem.value not in self.filling:
                raise
            made = self.keep(value, label, empty())
            self.later(value, lambda: fill(made))
            return made
        return self.keep(value, label, expression)


EMITTERS: dict[type, Callable[[Emitter, Any], ast.expr]] = {}


def emits(*kinds: type) -> Callable[[Any], Any]:
    """Register how values of these classes are built."""

    def register(function: Any) -> Any:
        for kind in kinds:
            EMITTERS[kind] = function
        return function

    return register


def builds(*kinds: type) -> Callable[[Any], Any]:
    """The same for values that are built only when they are new: existing ones are loaded."""

    def register(function: Any) -> Any:
        def emitter(out: Emitter, value: Any) -> ast.expr:
            return function(out, value) if value.source is None else out.load(value.source)

        emits(*kinds)(emitter)
        return function

    return register


@emits(ConstantValue)
def _constant(out: Emitter, value: ConstantValue) -> ast.expr:
    if value.source is None or is_shared(value.value):
        return out.constant(value.value)
    return out.load(value.source)


@emits(SymbolicValue)
def _symbolic(out: Emitter, value: SymbolicValue) -> ast.expr:
    return computed(out, value.tree(out.space), value.python_type() is bool)


def computed(out: Emitter, tree: Tree, truth: bool = False) -> ast.expr:
    """An expression over symbols."""
    kind = tree[0]
    if kind == "load":
        derived = out.space.builder.symbols.derived.get(tree[1])
        return out.symbol(tree[1]) if derived is None else computed(out, derived)
    if kind in ("int", "float"):
        return ast.Constant(bool(tree[1]) if truth else tree[1])
    operands = [computed(out, operand) for operand in tree[1:]]
    return call(out.constant(OPERATIONS[kind].compute, kind), *operands)


@emits(CarriedSum, NewNumber)
def _carried(out: Emitter, value: CarriedSum | NewNumber) -> ast.expr:
    if type(value) is CarriedSum and value.value is not None:
        return out.value(value.value)
    with out.first():
        total = ast.BinOp(out.value(value.base), ast.Add(), ast.Constant(value.step))
        return out.keep(value, "sum", total)


@emits(TextValue)
def _text(out: Emitter, value: TextValue) -> ast.expr:
    if not value.is_open:
        return ast.Constant(value.now)
    template, arguments = "", []
    with out.first():
        for part in value.parts:
            if isinstance(part, str):
                template += part.replace("{", "{{").replace("}", "}}")
                continue
            argument, form, spec = out.value(part.value), part.form, part.spec
            if form == "%":
                one = ast.Tuple([argument], ast.Load())
                argument, form, spec = ast.BinOp(ast.Constant(spec), ast.Mod(), one), None, ""
            arguments.append(argument)
            if "{" in spec or "}" in spec:
                arguments.append(ast.Constant(spec))
                spec = "{}"
            template += "{" + (f"!{form}" if form else "") + (f":{spec}" if spec else "") + "}"
        form_text = ast.Attribute(ast.Constant(template), "format", ast.Load())
        return out.keep(value, "text", call(form_text, *arguments))


@emits(OpaqueValue, CompiledFunctionValue, StartedIterator, ContextVarValue)
def _sourced(out: Emitter, value: Any) -> ast.expr:
    return out.load(value.source)


@builds(WeakReferenceValue)
def _weak_reference(out: Emitter, value: WeakReferenceValue) -> ast.expr:
    assert value.target is not None
    reference = call(out.constant(weakref.ref), out.value(value.target))
    return out.keep(value, "weak reference", reference)


@emits(PythonModuleValue)
def _module(out: Emitter, value: PythonModuleValue) -> ast.expr:
    return out.constant(value.module)


@emits(BuiltinValue)
def _builtin(out: Emitter, value: BuiltinValue) -> ast.expr:
    return out.constant(value.function)


@emits(NewMethodValue)
def _new_method(out: Emitter, value: NewMethodValue) -> ast.expr:
    return out.constant(value.raw)


@emits(type(NULL))
def _null(out: Emitter, value: Value) -> ast.expr:
    raise Unmaterialisable(-1, "NULL is not a value")


@emits(ReadNumber)
def _read_number(out: Emitter, value: ReadNumber) -> ast.expr:
    item = ast.Attribute(out.value(value.tensor), "item", ast.Load())
    return out.keep(value, "number", call(item))


@emits(HandledValue)
def _handled(out: Emitter, value: HandledValue) -> ast.expr:
    return out.value(value.handled)
