"""Values to expressions: how each kind of value is loaded or built in a generated function.

In: a value. Out: an AST expression; objects with an identity are built once, by a statement.
Things that refer to each other (objects, cells, functions) are made empty first and filled behind.
Next: codegen.effects, codegen.function.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from framejit.codegen.runtime import HELPERS
from framejit.graph.expressions import OPERATIONS, Tree
from framejit.interpreter.frame import HandledValue
from framejit.source import Source
from framejit.values.base import NULL, Unmaterialisable, Value
from framejit.values.carried import CarriedSum, NewNumber
from framejit.values.classes import ClassValue, NewMethodValue, SuperValue
from framejit.values.compiled_functions import CompiledFunctionValue
from framejit.values.constants import ConstantValue, OpaqueValue, PythonModuleValue
from framejit.values.deques import DequeValue
from framejit.values.descriptors import is_data_descriptor
from framejit.values.exceptions import ExceptionValue, TracebackValue
from framejit.values.functions import (
    BoundBuiltin,
    BuiltinValue,
    CellValue,
    FunctionValue,
    MethodValue,
)
from framejit.values.identity import is_shared
from framejit.values.local_classes import DescriptorValue
from framejit.values.mapping_views import DictViewValue
from framejit.values.mappings import DictValue, InstanceDictValue
from framejit.values.objects import (
    SCALARS,
    ObjectMethodValue,
    ObjectValue,
    PropertyValue,
    solid_base,
)
from framejit.values.process import ContextVarValue
from framejit.values.sequences import ListValue, SliceValue, TupleValue
from framejit.values.sets import SetValue
from framejit.values.space import LazyValue, Space
from framejit.values.started_iterators import StartedIterator
from framejit.values.stdlib_functions import CachedFunctionValue, PartialValue
from framejit.values.symbolic import SymbolicValue
from framejit.values.tensors import TensorValue
from framejit.values.text import TextValue
from framejit.values.torch_library import WeakReferenceValue

_LITERALS = (type(None), bool, int, float, str, bytes, type(Ellipsis))


def name(text: str) -> ast.Name:
    """A load of a name (which need not be an identifier)."""
    return ast.Name(text, ast.Load())


def call(function: ast.expr, *args: ast.expr) -> ast.Call:
    """A call with positional arguments."""
    return ast.Call(function, list(args), [])


def call_of_base(out: Emitter, value: Value, method: str) -> ast.expr:
    """A call of the builtin class's own method on a container: a subclass may have another one."""
    base = solid_base(value.python_type())
    return call(out.constant(getattr(base, method, reversed)), out.value(value))


class Emitter:
    """Collects the statements of one generated function and the names of its namespace."""

    def __init__(self, space: Space, slot_names: list[str]) -> None:
        self.space = space
        self.slot_names = slot_names
        self.statements: list[ast.stmt] = []
        #: What is computed of numbers and texts in front of them, when nothing is changed yet.
        self.computations: list[ast.stmt] = []
        self.namespace: dict[str, Any] = {}
        #: Graph results that the function needs, in order: value -> name.
        self.outputs: dict[TensorValue, str] = {}
        self.made: dict[Value, ast.expr] = {}
        #: State that several iterators share, by the identity of the shared part.
        self.shared: dict[int, ast.expr] = {}
        #: The symbols that the function needs, with the names of their parameters.
        self.symbols: dict[str, str] = {}
        #: Generators whose state is being built.
        self.unfinished: set[Value] = set()
        #: The existing objects whose changes have been written.
        self.written: set[Value] = set()
        self._in_progress: dict[Value, None] = {}
        self._pending: list[Callable[[], None]] = []
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
        if type(obj) in _LITERALS and self._literals.setdefault((type(obj), obj), obj) is obj:
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
        """The value of a symbol: a parameter behind the captures, or a result of the graph."""
        node = self.space.builder.symbol_made_by(symbol_name)
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
        emitter = EMITTERS.get(type(value))
        if emitter is None:
            raise Unmaterialisable(
                getattr(value, "step", -1), f"a {value.describe()} cannot be built for real"
            )
        return emitter(self, value)

    def values(self, values: list[Value]) -> list[ast.expr]:
        """The expressions for several values."""
        return [self.value(v) for v in values]

    def keywords(self, values: dict[str, Value]) -> list[ast.keyword]:
        """The keyword arguments of a call."""
        return [ast.keyword(key, self.value(value)) for key, value in values.items()]

    def keep(self, value: Value, label: str, expression: ast.expr) -> ast.expr:
        """Make the object of ``value`` once; the answer is its name."""
        made = self.made[value] = self.assign(label, expression)
        return made

    def later(self, fill: Callable[[], None]) -> None:
        """Fill an object when everything it may refer to can be named."""
        self._pending.append(fill)

    def flush(self) -> None:
        """Run what was put off."""
        while self._pending:
            self._pending.pop(0)()

    def build(
        self, value: Value, label: str, empty: ast.expr, content: Callable[[], ast.expr], fill: str
    ) -> ast.expr:
        """A mutable container: written as one display; made empty first if it contains itself."""
        if value in self._in_progress:
            return self.keep(value, label, empty)  # referred to by its own content
        self._in_progress[value] = None
        expression = content()
        del self._in_progress[value]
        if value in self.made:
            self.statement(call(self.helper(fill), self.made[value], expression))
            return self.made[value]
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


@emits(ClassValue)
def _class(out: Emitter, value: ClassValue) -> ast.expr:
    making = value.making
    if making is None:
        return out.cls(value.cls)
    arguments = out.values(making.args)
    if making.names is not None:
        cell = {} if making.cell is None else {"__classcell__": making.cell}
        arguments.append(attribute_display(out, {**making.names, **cell}))
    keywords = out.keywords(making.kwargs)
    made = out.keep(
        value, "class", ast.Call(out.constant(making.function), arguments, keywords)
    )
    for function, options in making.behind:
        keywords = [ast.keyword(key, ast.Constant(v)) for key, v in options.items()]
        out.statement(ast.Call(out.constant(function), [made], keywords))

    def fill() -> None:
        for key, v in out.space.class_writes.get(value.cls, {}).items():
            if (making.names or {}).get(key) is not v:
                write_class(out, made, key, v)

    out.later(fill)
    return made


def write_class(out: Emitter, target: ast.expr, key: str, value: Value | None) -> None:
    """Assign or delete one attribute of a class."""
    if value is None:
        out.statement(call(out.constant(type.__delattr__), target, ast.Constant(key)))
    else:
        setter = out.constant(type.__setattr__)
        out.statement(call(setter, target, ast.Constant(key), out.value(value)))


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


@builds(TensorValue)
def _tensor(out: Emitter, value: TensorValue) -> ast.expr:
    return name(out.output(value))


@builds(TupleValue)
def _tuple(out: Emitter, value: TupleValue) -> ast.expr:
    display = ast.Tuple(out.values(value.items), ast.Load())
    if value.cls is not tuple:
        return out.keep(value, "tuple", call(out.cls(value.cls), display))
    if not value.items:
        return display
    return out.keep(value, "tuple", display)


@builds(ListValue)
def _list(out: Emitter, value: ListValue) -> ast.expr:
    return out.build(
        value, "list", ast.List([], ast.Load()),
        lambda: ast.List(out.values(value.items), ast.Load()), "assign_list",
    )  # fmt: skip


@builds(DequeValue)
def _deque(out: Emitter, value: DequeValue) -> ast.expr:
    maxlen = out.constant(value.maxlen)
    factory = out.constant(value.python_type())
    return out.build(
        value, "deque", call(factory, ast.Tuple([], ast.Load()), maxlen),
        lambda: call(factory, ast.List(out.values(value.items), ast.Load()), maxlen),
        "assign_deque",
    )  # fmt: skip


def dict_display(out: Emitter, value: DictValue) -> ast.expr:
    """A dict display with all entries, in order."""
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    for key, item in value.items.values():
        keys.append(out.value(key))
        values.append(out.value(item))
    return ast.Dict(keys, values)


@emits(DictValue)
def _dict(out: Emitter, value: DictValue) -> ast.expr:
    if value.source is not None:
        loaded = out.load(value.source)
        if value.cls is types.MappingProxyType:  # its source is the mapping behind it
            return out.keep(value, "proxy", call(out.constant(value.cls), loaded))
        return loaded
    cls = value.cls
    if cls is dict:
        return out.build(
            value, "dict", ast.Dict([], []), lambda: dict_display(out, value), "assign_dict"
        )
    prefix = []
    if value.default_factory is not None:
        prefix = [out.value(value.default_factory)]
    factory = out.constant(cls)
    return out.build(
        value, "dict", call(factory, *prefix),
        lambda: call(factory, *prefix, dict_display(out, value)), "assign_dict",
    )  # fmt: skip


@emits(InstanceDictValue)
def _instance_dict(out: Emitter, value: InstanceDictValue) -> ast.expr:
    return ast.Attribute(out.value(value.owner), "__dict__", ast.Load())


@emits(DictViewValue)
def _dict_view(out: Emitter, value: DictViewValue) -> ast.expr:
    return out.keep(value, "view", call_of_base(out, value.mapping, value.what))


@builds(SetValue)
def _set(out: Emitter, value: SetValue) -> ast.expr:
    items = ast.List(out.values(value.items), ast.Load())
    return out.keep(value, "set", call(out.constant(value.cls), items))


@builds(SliceValue)
def _slice(out: Emitter, value: SliceValue) -> ast.expr:
    parts = out.values(value.parts())
    return out.keep(value, "slice", call(out.constant(slice), *parts))


@builds(ObjectValue)
def _object(out: Emitter, value: ObjectValue) -> ast.expr:
    base: type = object
    content: list[ast.expr] = []
    if value.container is not None:
        base = value.container.python_type()
        if base in (tuple, frozenset):
            content = [ast.Tuple(out.values(list(value.container.items)), ast.Load())]
        elif base in SCALARS:
            content = [out.value(value.container)]
    made = out.keep(
        value, "object",
        call(out.helper("new_object"), out.cls(value.cls), out.constant(base), *content),
    )  # fmt: skip

    def fill() -> None:
        if value.container is not None and not content:
            write_container(out, made, value.container, new=True)
        attributes: dict[str, Value | None] = {
            k: v for k, v in value.attributes.items() if v is not None
        }
        write_attributes(out, made, value, attributes)

    out.later(fill)
    return made


@emits(PropertyValue)
def _property(out: Emitter, value: PropertyValue) -> ast.expr:
    raise Unmaterialisable(value.step, f"a {value.describe()} is needed for real")


def write_attributes(
    out: Emitter, target: ast.expr, value: ObjectValue, attributes: dict[str, Value | None]
) -> None:
    """Write what is in slots or in the instance's ``__dict__``, also behind a descriptor's back."""

    def is_hidden(key: str) -> bool:
        found = out.space.class_attribute(value.cls, key)
        c_level = (types.MemberDescriptorType, types.GetSetDescriptorType)
        return (
            found is not None and is_data_descriptor(found.raw) and type(found.raw) not in c_level
        )

    for hidden, keys in itertools.groupby(attributes, is_hidden):  # their order can be seen
        run = {key: attributes[key] for key in keys}
        if hidden:
            namespace = ast.Attribute(target, "__dict__", ast.Load())
            out.statement(call(out.helper("write_dict"), namespace, attribute_display(out, run)))
        else:
            names = ast.Tuple([ast.Constant(key) for key in run], ast.Load())
            values = attribute_values(out, run)
            out.statement(call(out.helper("set_attributes"), target, names, *values))


def attribute_display(out: Emitter, attributes: dict[str, Value | None]) -> ast.expr:
    """Attribute names with their values; deleted ones are marked."""
    return ast.Dict([ast.Constant(key) for key in attributes], attribute_values(out, attributes))


def attribute_values(out: Emitter, attributes: dict[str, Value | None]) -> list[ast.expr]:
    """The values of attributes, or the mark of deleted ones."""
    return [out.value(v) if v is not None else out.helper("DELETED") for v in attributes.values()]


def write_container(out: Emitter, target: ast.expr, container: Any, new: bool) -> None:
    """Give an object of a container subclass its content, through the base class only."""
    if isinstance(container, DictValue):
        if new or container.rewritten:
            if container.items or not new:
                write = out.helper("write_dict" if new else "assign_dict")
                out.statement(call(write, target, dict_display(out, container)))
        else:
            out.statement(call(out.helper("write_dict"), target, written_display(out, container)))
        if new and container.default_factory is not None:
            factory = ast.Constant("default_factory")
            out.statement(
                call(out.constant(setattr), target, factory, out.value(container.default_factory))
            )
    elif isinstance(container, DequeValue):
        items = ast.List(out.values(container.items), ast.Load())
        moved = ast.Constant(new or container.version > 0)
        out.statement(call(out.helper("assign_deque"), target, items, moved))
    elif isinstance(container, ListValue):
        if not container.loaded:  # what was there has not been looked at: only append
            items = ast.List(out.values(container.tail), ast.Load())
            out.statement(call(out.constant(list.extend), target, items))
        elif container.items or not new:
            items = ast.List(out.values(container.items), ast.Load())
            out.statement(call(out.helper("assign_list"), target, items))
    elif isinstance(container, SetValue) and container.log and not new:
        for method, arguments in container.log:
            function = out.constant(getattr(set, method))
            out.statement(call(function, target, *out.values(arguments)))
    elif isinstance(container, SetValue):
        content = call(out.constant(set), ast.List(out.values(container.items), ast.Load()))
        out.statement(call(out.helper("assign_set"), target, content))


def written_display(out: Emitter, container: DictValue) -> ast.expr:
    """The single keys that were stored or deleted."""
    keys: list[ast.expr | None] = []
    values: list[ast.expr] = []
    for key, pair in container.written.items():
        keys.append(out.value(pair[0]) if pair is not None else _key(out, key))
        values.append(out.value(pair[1]) if pair is not None else out.helper("DELETED"))
    return ast.Dict(keys, values)


def _key(out: Emitter, key: Any) -> ast.expr:
    target = getattr(key, "target", key)
    return out.value(target) if isinstance(target, Value) else out.constant(target)


@builds(ExceptionValue)
def _exception(out: Emitter, value: ExceptionValue) -> ast.expr:
    given = value.args(out.space) if value.given is None else value.given
    args = ast.Tuple(out.values(given), ast.Load())
    made = out.keep(
        value, "exception",
        call(
            out.helper("new_exception"), out.cls(value.cls), args,
            out.constant(value.trace, "trace"),
        ),
    )  # fmt: skip
    attributes = {
        key: v
        for key, v in value.attributes.items()
        if v is not None and key not in ("args", "__traceback__", "value", "exceptions")
        and not (type(v) is ConstantValue and (v.value is None or v.value is False))
    }  # fmt: skip

    if attributes:
        out.later(lambda: set_attributes(out, made, attributes))
    return made


@emits(TracebackValue)
def _traceback(out: Emitter, value: TracebackValue) -> ast.expr:
    return ast.Attribute(out.value(value.exception), "__traceback__", ast.Load())


@builds(CellValue)
def _cell(out: Emitter, value: CellValue) -> ast.expr:
    made = out.keep(value, "cell", call(out.helper("new_cell")))
    contents = value.contents
    if contents is not None:
        out.later(lambda: out.statement(call(out.helper("set_cell"), made, out.value(contents))))
    return made


@builds(FunctionValue)
def _function(out: Emitter, value: FunctionValue) -> ast.expr:
    none = ast.Constant(None)
    closure: ast.expr = none
    if value.closure:
        closure = ast.Tuple(out.values(list(value.closure)), ast.Load())
    made = out.keep(
        value, "function",
        call(
            out.helper("new_function"), out.constant(value.code, "code"),
            out.constant(value.globals, "globals"), ast.Constant(value.name),
            out.value(value.defaults) if value.defaults is not None else none,
            out.value(value.kwdefaults) if value.kwdefaults is not None else none, closure,
        ),
    )  # fmt: skip
    if value.attributes:
        out.later(lambda: set_attributes(out, made, value.attributes))
    return made


def set_attributes(out: Emitter, target: ast.expr, attributes: dict[str, Value]) -> None:
    """Assign attributes as the program would."""
    for key, v in attributes.items():
        out.statement(call(out.constant(setattr), target, ast.Constant(key), out.value(v)))


@builds(MethodValue)
def _method(out: Emitter, value: MethodValue) -> ast.expr:
    return out.keep(
        value, "method",
        call(out.helper("method"), out.value(value.function), out.value(value.receiver)),
    )  # fmt: skip


@builds(BoundBuiltin, ObjectMethodValue)
def _bound_builtin(out: Emitter, value: Any) -> ast.expr:
    raw = value.raw
    if raw is not None:  # the base class's own method, whatever the receiver's class overrides
        of_class = [ast.Constant(None)] if type(raw) is types.ClassMethodDescriptorType else []
        bind = ast.Attribute(out.constant(raw), "__get__", ast.Load())
        return out.keep(value, "method", call(bind, *of_class, out.value(value.receiver)))
    bound = ast.Attribute(out.value(value.receiver), value.name, ast.Load())
    return out.keep(value, "method", bound)


@emits(DescriptorValue)
def _descriptor(out: Emitter, value: DescriptorValue) -> ast.expr:
    none = ast.Constant(None)
    parts = [out.value(value.parts[n]) if n in value.parts else none for n in value.fields]
    return out.keep(value, value.kind.__name__, call(out.constant(value.kind), *parts))


@emits(SuperValue)
def _super(out: Emitter, value: SuperValue) -> ast.expr:
    return call(out.constant(super), out.cls(value.cls), out.value(value.receiver))


@emits(HandledValue)
def _handled(out: Emitter, value: HandledValue) -> ast.expr:
    return out.value(value.handled)


@emits(CachedFunctionValue)
def _cached_function(out: Emitter, value: CachedFunctionValue) -> ast.expr:
    if value.function is None:
        assert value.source is not None
        return out.load(value.source)
    if value.known:
        raise Unmaterialisable(value.step, "a functools.lru_cache that holds something")
    decorate = ast.Call(out.constant(functools.lru_cache), [], out.keywords(value.options))
    made = out.keep(value, "cached", call(decorate, out.value(value.function)))
    set_attributes(out, made, value.attributes)
    return made


@builds(PartialValue)
def _partial(out: Emitter, value: PartialValue) -> ast.expr:
    keywords = out.keywords(value.kwargs)
    arguments = [out.value(value.function), *out.values(value.args)]
    made = out.keep(
        value, "partial", ast.Call(out.constant(functools.partial), arguments, keywords)
    )
    if value.attributes:
        out.later(lambda: set_attributes(out, made, value.attributes))
    return made
