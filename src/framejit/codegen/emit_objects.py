"""Classes, objects, functions and exceptions to expressions.

In: values. Out: AST expressions, registered with `codegen.emit`; the statements that write
attributes. Objects are made without ``__init__`` and get their attributes later. Next:
emit_iterators, codegen.effects.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterable, Mapping
from typing import Any

from framejit.codegen.emit import Emitter, builds, call, emits
from framejit.codegen.emit_containers import fill_namespace, hashing, write_container
from framejit.codegen.emit_generators import kept_in_traceback
from framejit.values.core.base import Unmaterialisable, Value
from framejit.values.core.namespaces import entries
from framejit.values.objects.cells import CellValue
from framejit.values.objects.classes import ClassValue, SuperValue
from framejit.values.objects.descriptors import ObjectMethodValue, is_data_descriptor
from framejit.values.objects.exceptions import ExceptionValue, Made, TracebackValue
from framejit.values.objects.functions import BoundBuiltin, FunctionValue, MethodValue
from framejit.values.objects.instances import SCALARS, ObjectValue, PropertyValue
from framejit.values.objects.local_classes import DescriptorValue
from framejit.values.objects.partials import PartialValue
from framejit.values.stdlib.cached_functions import CachedFunctionValue
from framejit.values.torch.made_wrappers import MadeWrapper
from framejit.values.torch.overrides import Block
from framejit.values.torch.subclasses import SubclassValue


@emits(ClassValue)
def _class(out: Emitter, value: ClassValue) -> ast.expr:
    making = value.making
    if making is None:
        return out.cls(value.cls)
    arguments = out.values(making.args)
    if making.names is not None:
        cell = {} if making.cell is None else {"__classcell__": making.cell}
        names = {**making.names, **cell}
        keys: list[ast.expr | None] = [ast.Constant(key) for key in names]
        arguments.append(ast.Dict(keys, out.values(list(names.values()))))
        for part in making.names.values():
            _settle_abstract(out, part)
    keywords = out.keywords(making.kwargs)
    made = out.keep(value, "class", ast.Call(out.constant(making.function), arguments, keywords))
    for key, order in making.orders.items():
        out.made.setdefault(order, ast.Attribute(made, key, ast.Load()))
    for function, options in making.behind:
        keywords = [ast.keyword(key, ast.Constant(v)) for key, v in options.items()]
        out.statement(ast.Call(out.constant(function), [made], keywords))

    def fill() -> None:
        for key, v in out.space.class_writes.get(value.cls, {}).items():
            if (making.names or {}).get(key) is not v:
                write_class(out, made, key, v)

    out.later(value, fill)
    return made


def _settle_abstract(out: Emitter, value: Value) -> None:
    """The metaclass asks the functions of a class whether they are abstract."""
    value = value.realize()
    if isinstance(value, DescriptorValue):
        for part in value.parts.values():
            _settle_abstract(out, part)
    elif isinstance(value, FunctionValue) and "__isabstractmethod__" in entries(value):
        out.complete(value.namespace)


def write_class(out: Emitter, target: ast.expr, key: str, value: Value | None) -> None:
    """Assign or delete one attribute of a class."""
    if value is None:
        out.statement(call(out.constant(type.__delattr__), target, ast.Constant(key)))
    else:
        setter = out.constant(type.__setattr__)
        out.statement(call(setter, target, ast.Constant(key), out.value(value)))


@builds(ObjectValue)
def _object(out: Emitter, value: ObjectValue) -> ast.expr:
    container = value.container
    base = object if container is None else container.python_type()
    parts: list[ast.expr] = [out.cls(value.cls), out.constant(base)]
    keys: list[Any] = []
    fixed = base in (tuple, frozenset) or base in SCALARS
    if base in (tuple, frozenset):
        if base is frozenset:
            keys = list(container.keys(out.space))
        parts.append(ast.Tuple(out.values(list(container.items)), ast.Load()))
    elif fixed:
        parts.append(out.value(container))
    made = out.keep(value, "object", hashing(out, keys, out.helper("new_object"), *parts))

    if container is not None and not fixed:
        out.made[container] = made
        out.later(container, lambda: write_container(out, made, container, new=True))
    attributes: dict[str, Value | None] = {
        key: v for key, v in value.attributes.items() if v is not None
    }
    if attributes:
        out.later(value, lambda: write_attributes(out, made, value, attributes))
    _later_attributes(out, made, value)
    return made


@builds(SubclassValue)
def _tensor(out: Emitter, value: SubclassValue) -> ast.expr:
    tensor, cls = out.value(value.origin), out.cls(value.cls)
    helper = "with_class" if value.has_own_origin else "as_subclass"
    made = out.keep(value, "tensor", call(out.helper(helper), tensor, cls))
    _later_attributes(out, made, value)
    return made


@builds(MadeWrapper)
def _made_wrapper(out: Emitter, value: MadeWrapper) -> ast.expr:
    value.check_buildable()
    keys: list[ast.expr | None] = [ast.Constant(key) for key in value.options]
    options = ast.Dict(keys, out.values(list(value.options.values())))
    parts = [out.cls(value.cls), out.value(value.size), options, out.constant({})]
    made = out.keep(value, "tensor", call(out.helper("make_wrapper"), *parts))
    _later_attributes(out, made, value)
    return made


@emits(Block)
def _block(out: Emitter, value: Block) -> ast.expr:
    if value.before is not None:
        raise Unmaterialisable(value.entered, f"a {value.describe()} that is entered")
    return out.keep(value, "block", call(out.constant(value.cls)))


@emits(PropertyValue)
def _property(out: Emitter, value: PropertyValue) -> ast.expr:
    raise Unmaterialisable(value.step, f"a {value.describe()} is needed for real")


def write_attributes(
    out: Emitter, target: ast.expr, owner: Value, attributes: Mapping[str, Value | None]
) -> None:
    """Write slots, and what is in the ``__dict__`` of ``owner``, as ``object.__setattr__`` does."""
    names = list(attributes)

    def write(names: list[str], values: list[ast.expr]) -> None:
        keys = ast.Tuple([ast.Constant(key) for key in names], ast.Load())
        out.statement(call(out.helper("set_attributes"), target, keys, *values))

    def one(position: int, part: ast.expr) -> None:
        write([names[position]], [part])

    write(names, out.parts(owner, list(attributes.values()), one))


def _later_attributes(out: Emitter, made: ast.expr, value: ObjectValue | SubclassValue) -> None:
    """What is in the ``__dict__`` of a new object, also behind a descriptor's back."""
    own, namespace = entries(value), value.namespace
    if not own or getattr(namespace, "owner", None) is not value:
        return

    def is_hidden(key: Any) -> bool:
        found = out.space.class_attribute(value.cls, key) if type(key) is str else None
        return type(key) is not str or (found is not None and is_data_descriptor(found.raw))

    if any(map(is_hidden, own)):
        fill_namespace(out, made, value)
    else:
        attributes: dict[str, Value | None] = {key: pair[1] for key, pair in own.items()}
        out.later(namespace, lambda: write_attributes(out, made, namespace, attributes))


@builds(ExceptionValue)
def _exception(out: Emitter, value: ExceptionValue) -> ast.expr:
    def given(made: Made) -> list[ast.expr]:
        if issubclass(value.base, BaseExceptionGroup):  # it copies a list
            for part in made.args:
                out.complete(part.realize())
        keys: list[ast.expr | None] = [ast.Constant(key) for key in made.kwargs]
        keywords = ast.Dict(keys, out.values(list(made.kwargs.values())))
        return [ast.Tuple(out.values(made.args), ast.Load()), keywords]

    inits = [ast.Tuple(given(made), ast.Load()) for made in value.inits]
    made = out.keep(
        value, "exception",
        call(
            out.helper("new_exception"), out.cls(value.cls), out.constant(value.base),
            out.constant(value.trace, "trace"), *given(value.made), *inits,
        ),
    )  # fmt: skip
    attributes: dict[str, Value | None] = {
        key: v
        for key, v in value.attributes.items()
        # The program may hold the very tuple that it has read.
        if v is not None and (key not in value.read or key == "args") and key != "__traceback__"
    }
    if attributes:
        out.later(value, lambda: write_attributes(out, made, value, attributes))
    fill_namespace(out, made, value)
    out.later((value, "frames"), lambda: keep_in_traceback(out, value, kept_in_traceback(value)))
    return made


def keep_in_traceback(
    out: Emitter, error: Value, kept: Iterable[tuple[int, list[Value], bool]]
) -> None:
    """The frames at these positions in the traceback of an error hold objects, and perhaps the
    frame that has called the compiled function."""
    for position, held, called in kept:
        values = out.values(held)
        objects = [out.value(error), ast.Constant(position), ast.Constant(called), *values]
        out.statement(call(out.helper("keep_in_traceback"), *objects))


@emits(TracebackValue)
def _traceback(out: Emitter, value: TracebackValue) -> ast.expr:
    return ast.Attribute(out.value(value.exception), "__traceback__", ast.Load())


@builds(CellValue)
def _cell(out: Emitter, value: CellValue) -> ast.expr:
    made = out.keep(value, "cell", call(out.helper("new_cell")))
    contents = value.contents
    if contents is not None:
        fill = out.helper("set_cell")
        out.later(value, lambda: out.statement(call(fill, made, out.value(contents))))
    return made


@builds(FunctionValue)
def _function(out: Emitter, value: FunctionValue) -> ast.expr:
    none = ast.Constant(None)
    made = out.keep(
        value, "function",
        call(
            out.helper("new_function"), out.constant(value.code, "code"),
            out.constant(value.globals, "globals"), ast.Constant(value.name),
            *[
                none if part is None else out.value(part)
                for part in (value.defaults, value.kwdefaults, value.cell_tuple)
            ],
        ),
    )  # fmt: skip
    if value.attributes:
        out.later(value, lambda: set_attributes(out, made, value.attributes))
    fill_namespace(out, made, value)
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
    receiver, raw = out.value(value.receiver), value.raw
    bound: ast.expr = ast.Attribute(receiver, value.name, ast.Load())
    if raw is not None and not value.receiver.is_none():  # which nothing is bound to
        # The base class's own method, whatever the receiver's class overrides.
        of_class = [ast.Constant(None)] if type(raw) is types.ClassMethodDescriptorType else []
        bound = call(ast.Attribute(out.constant(raw), "__get__", ast.Load()), *of_class, receiver)
    return out.keep(value, "method", bound)


@emits(DescriptorValue)
def _descriptor(out: Emitter, value: DescriptorValue) -> ast.expr:
    none = ast.Constant(None)
    parts = [out.value(value.parts[n]) if n in value.parts else none for n in value.fields]
    return out.keep(value, value.kind.__name__, call(out.constant(value.kind), *parts))


@emits(SuperValue)
def _super(out: Emitter, value: SuperValue) -> ast.expr:
    made = call(out.constant(super), out.cls(value.cls), out.value(value.receiver))
    return out.keep(value, "super", made)


@emits(CachedFunctionValue)
def _cached_function(out: Emitter, value: CachedFunctionValue) -> ast.expr:
    if value.function is None:
        assert value.source is not None
        return out.load(value.source)
    if value.called:
        raise Unmaterialisable(value.step, "a functools.lru_cache that holds something")
    if entries(value.function):  # which lru_cache() would copy
        raise Unmaterialisable(value.step, "a functools.lru_cache older than an attribute")
    decorate = out.constant(functools.lru_cache)
    if value.options is not None:
        decorate = ast.Call(decorate, [], out.keywords(value.options))
    made = out.keep(value, "cached", call(decorate, out.value(value.function)))
    fill_namespace(out, made, value)
    return made


@builds(PartialValue)
def _partial(out: Emitter, value: PartialValue) -> ast.expr:
    function, known = out.value(value.function), value.parts
    keywords = [] if "keywords" in known else out.keywords(value.given)
    arguments = [function, *out.values(value.args)]
    made = out.keep(
        value, "partial", ast.Call(out.constant(functools.partial), arguments, keywords)
    )
    if known:  # the program has these objects, too
        positional, named = [
            out.value(known[name]) if name in known else ast.Attribute(made, name, ast.Load())
            for name in ("args", "keywords")
        ]
        state = ast.Tuple([function, positional, named, ast.Constant(None)], ast.Load())
        setter = functools.partial.__setstate__  # type: ignore[attr-defined]
        out.statement(call(out.constant(setter), made, state))
    fill_namespace(out, made, value)
    return made
