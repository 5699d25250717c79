"""The object space: everything the interpreter may ask of values, and what one capture knows.

In: Python objects with their sources (`load`, `wrap`) and operations on values. Out: values, graph
nodes in ``builder``, facts on sources, effects to replay. The interpreter sees only the operations
in `OPERATIONS`; a `Result` is a value, or a `CallRequest` when a Python frame must run first.
Next room: interpreter.
"""

from __future__ import annotations

import builtins
import itertools
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from framejit.classes import is_known_by_identity
from framejit.exc import GraphBreak, NotYet
from framejit.graph.builder import GraphBuilder
from framejit.shapes.policy import Policy, Seen
from framejit.source import Source
from framejit.values.core import complaints
from framejit.values.core.amounts import limited_items, run_limited
from framejit.values.core.base import (
    CallRequest,
    Raised,
    Value,
    is_user_class,
    type_name,
)
from framejit.values.core.class_lookup import ClassLookup
from framejit.values.core.effects import Effects
from framejit.values.core.operations import LazyValue
from framejit.values.core.registry import WRAP_RULES, WRAPPERS, Result
from framejit.values.core.running import Running

if TYPE_CHECKING:
    from framejit.values.containers.mappings import DictValue
    from framejit.values.containers.set_operands import Operand
    from framejit.values.containers.sets import SetValue


class Computed(NamedTuple):
    """What a function that only computes has returned, and the space in which it ran."""

    value: Value
    space: Space


class Task(NamedTuple):
    """What a capture is told."""

    #: The globals of the function that is being compiled.
    home: dict[str, Any] | None = None
    #: May truth values that depend on data be taken for granted?
    may_expect: bool = False
    #: Is a graph break an error, so that labels for a profiler that records make none?
    whole: bool = True
    #: The calls that may be repeated instead of executed again.
    recordings: Any = None
    #: May the capture be left to the next call (`NotYet`)?
    may_wait: bool = False
    #: Is it a call that is captured alone, perhaps in vain?
    alone: bool = False
    #: Then: what of torch's global state the program around it has changed.
    outside: frozenset[Any] = frozenset()
    #: What calling a function with these arguments computes, None if it does anything else. The
    #: last argument: may calls in it find their results in caches?
    compute: Callable[[Any, tuple[Any, ...], dict[str, Any], bool], Computed | None] | None = None
    #: Does a hook do nothing but compute, for a tensor like this?
    is_pure_hook: Callable[[Any, Any], tuple[bool, Any]] = lambda hook, like: (False, None)
    #: Are calls of cached functions looked up? Else it counts what the functions do.
    trusts_caches: bool = True
    #: What will be there instead of a tensor without content; None: the capture is for tensors as
    #: they are.
    stand_in: Callable[[Any], Any] | None = None

    def may_happen_first(self, what: str) -> None:
        """Leave the capture to the next call, if a graph break would be an error and the program
        does ``what`` once only."""
        if self.whole and self.may_wait:
            raise NotYet(what)

    def expected(self, tensor: Any) -> Any:
        """The tensor that the captured program has where ``tensor`` is now."""
        return tensor if self.stand_in is None else self.stand_in(tensor)


class Space(ClassLookup):
    """One capture's world."""

    # What later rooms do; `object_space.ObjectSpace` says who.
    #: A value for a Python constant that needs no guard (made by the program or by us).
    constant: Callable[..., Value]
    #: Apply the descriptor protocol to what a class lookup found.
    bind_class_attribute: Callable[..., Result]
    binary: Callable[..., Result]
    unary: Callable[..., Result]
    compare: Callable[..., Result]
    division: Callable[..., Result]
    is_: Callable[..., bool]
    new_exception: Callable[..., Any]
    make_exception: Callable[..., Result]
    note_read: Callable[..., None]
    adopt: Callable[..., bool]
    object_method: Callable[..., Result]
    bound_by_hand: Callable[..., Result]
    text_of: Callable[..., Value]
    format_value: Callable[..., Value]
    exception_text: Callable[..., Value]
    namespace_of: Callable[..., DictValue | None]
    globals_value: Callable[..., Value]
    constant_tuple: Callable[..., Value]
    list_value: Callable[[list[Value]], Value]
    iter_constant: Callable[..., Value]
    iter_sequence: Callable[..., Value]
    reversed_sequence: Callable[..., Value]
    new_view: Callable[..., Value]
    as_set: Callable[..., SetValue | None]
    operand_of: Callable[..., Operand]
    existing_set: Callable[..., Value]
    sort_in_place: Callable[..., Result]
    call_in_graph: Callable[..., Result]
    module_member: Callable[..., Value | None]
    module_setattr: Callable[..., bool]
    array_of: Callable[..., Value]
    watch_gradient: Callable[..., Value]
    is_leaf: Callable[..., bool]
    hook_leaf: Callable[..., Result]
    hook_dict: Callable[..., Value]
    assign_hook_dict: Callable[..., None]
    require_gradient: Callable[..., Value]
    replace_data: Callable[..., None]
    let_go_of_history: Callable[..., bool]
    assign_gradient: Callable[..., None]
    scaled: Callable[..., Result]
    of_data: Callable[..., Value | None]
    indexed_by_data: Callable[..., Result | None]
    new_like: Callable[..., Result]
    as_type: Callable[..., Result]
    beside_tensors: Callable[..., list[Value]]
    named_tensors: Callable[..., dict[str, Value]]
    state_decides: Callable[..., bool | None]
    number_for_optimizer: Callable[..., Value | None]
    is_overridden: Callable[..., bool]
    is_handed_on: Callable[..., bool]
    intercept: Callable[..., Result | None]
    intercept_method: Callable[..., Result | None]
    accessed: Callable[..., Result | None]
    as_subclass: Callable[..., Value]
    new_tensor: Callable[..., Value]
    wrapper: Callable[..., Any]
    part_of_operand: Callable[..., Value | None]

    def __init__(
        self, builder: GraphBuilder, policy: Policy | None = None, task: Task | None = None
    ) -> None:
        #: What the capture is told.
        self.task = task or Task()
        super().__init__(self.task.home, builder.changes)
        self.builder = builder
        #: What may vary from call to call.
        self.policy = policy or Policy(False, Seen())
        self.effects = Effects(self.changes, self.task.outside, lambda: self.running.user_line())
        #: Who is asked by ``__torch_function__``.
        self.torch_function = self.effects.torch_function
        #: The latest exception that was made up.
        self.made_up: Value | None = None
        #: What is being handled around the compiled code; later this would be an error of ours.
        self.handled_around = sys.exception()
        #: The existing tensors that became graph inputs, in order.
        self.graph_inputs: list[Any] = []
        #: The existing objects that the program uses as keys; are they to be known by identity?
        self.keys: dict[Value, None] = {}
        self.pin_keys = False
        #: Whose content containers inside objects of subclasses are.
        self.holders: dict[Value, Value] = {}
        #: Are there keys with the program's own ``__hash__``? Are they not to be compared any more
        #: than they have been, and which ones has the current search found equal?
        self.user_keys = False
        self.settled = False
        self.found_equal: list[tuple[Any, Any]] | None = None
        #: `Task.compute`; None while this is being found out.
        self.compute = self.task.compute
        #: How many transforms of ``torch.func`` the program is in, and how many levels they make.
        self.transforms = self.levels = 0
        #: Is each call of the program's function one for many places, which its tensors name?
        self.maps_indices = False
        #: Has it been in one?
        self.transformed = False
        #: The values of ``__dict__`` of objects that the program makes.
        self.new_namespaces: list[Any] = []
        self._globals: dict[tuple[int, str], Value] = {}
        #: The builtins found for names that are not globals.
        self._builtins: dict[tuple[int, str], Value] = {}
        #: What is known about the callables that were called, by id (`knowledge.known_once`).
        self.ways: dict[int, tuple[Any, Any]] = {}

    def close(self) -> None:
        """The capture is over."""
        self.forget()
        for table in (self._globals, self._builtins, self.ways, self.holders):
            table.clear()
        for namespace in self.new_namespaces:  # no cycles
            namespace.owner = None
        self.new_namespaces = []
        self.graph_inputs, self.effects = [], Effects(self.changes)
        self.handled_around = None
        self.builder.close()

    @property
    def is_repeatable(self) -> bool:
        """Is what was found out said by facts on sources, and nothing else?"""
        by_address = self.keys or self.user_keys
        classes = self.class_writes or self.local_classes
        return not (by_address or classes or self.transformed)

    def begin(self, running: Running) -> None:
        """From now on ``running`` leads the capture."""
        self.running = running
        self.builder.begin(running)

    @property
    def step(self) -> int:
        """The number of the instruction being executed, for values that may be unmaterialisable."""
        return self.running.steps

    def has_read(self, names: Iterable[tuple[int, str]]) -> bool:
        """Has one of these globals (by the id of their dict) been read, and may be bound anew?"""
        found = [self._globals[name].realize() for name in names if name in self._globals]
        return any(value.is_constant or value.is_symbolic for value in found)

    # -- values of existing objects ---------------------------------------------------------------

    def class_value(self, cls: type) -> Value:
        """The value of such a class."""
        return self.load(self.class_source(cls), cls)

    def load(self, source: Source, obj: Any) -> Value:
        """The value at ``source``, not yet looked at."""
        value = self._loaded.get(source)
        if value is None:
            value = self._loaded[source] = LazyValue(self, source, obj)
            source.read = True
        return value

    def class_at(self, source: Source | None) -> type | None:
        """The class of the object at ``source``, if that was loaded."""
        value = None if source is None else self._loaded.get(source)
        return type(value.obj) if isinstance(value, LazyValue) else None

    def wrap(self, source: Source, obj: Any) -> Value:
        """The value that represents ``obj``; its kind is guarded. One object, one value."""
        if self.task.alone:
            self.facts_before.setdefault(source, len(source.facts))
        known = self._known.get(id(obj)) or self._first_met(obj, source)
        if known is not None:
            value = known[1]
            if value.source is not None and value.source is not source:
                self.guard(source, "SAME_OBJECT", value.source)
            return value
        kind = type(obj)
        if not is_known_by_identity(obj if issubclass(kind, type) else kind):
            raise GraphBreak(
                "FJ0157", "the metaclass of a class has its own __eq__() or __hash__()"
            )
        maker = WRAPPERS.get(kind)
        if maker is None:
            for _, predicate, rule_maker in WRAP_RULES:
                if predicate(type(obj)):
                    maker = rule_maker
                    break
            else:  # the last rule accepts everything
                raise AssertionError(f"no wrap rule for {type(obj)}")
        if self.task.alone:
            return self.look(source, maker, obj)
        return maker(self, source, obj)

    def _first_met(self, obj: Any, source: Source) -> tuple[Any, Value] | None:
        """An object that was noted elsewhere, and its value there."""
        noted = self.noted.get(id(obj))
        if noted is None or noted[1] is source:
            return None
        self.load(noted[1], obj).realize()
        return self._known.get(id(obj))

    # -- globals -----------------------------------------------------------------------------------

    def load_global(self, namespace: dict[str, Any], name: str) -> Value:
        """A global of ``namespace``, else a builtin; raises NameError into the program."""
        key = (id(namespace), name)
        if not self.effects.globals:
            value = self._globals.get(key) or self._builtins.get(key)
            if value is not None:
                return value
        value = self.own_global(namespace, name)
        if value is None:
            scope = namespace.get("__builtins__", builtins)
            scope = scope.__dict__ if isinstance(scope, types.ModuleType) else scope
            source = self.globals_source(scope).child("item", name)
            if name not in scope:
                self.guard(source, "ABSENT")
                self.raise_error(NameError, f"name {name!r} is not defined", name=name)
            value = self._builtins[key] = self.load(source, scope[name])
        return value

    def own_global(self, namespace: dict[str, Any], name: str) -> Value | None:
        """A global of ``namespace`` itself; absence is guarded."""
        changed = self.effects.globals_value(namespace, name)
        if changed is not None:
            return changed.value
        key = (id(namespace), name)
        value = self._globals.get(key)
        if value is None:
            if self.known_value(namespace) in self.effects.changed:
                raise GraphBreak("FJ0156", "a dict turns out to be the globals of a function")
            source = self.globals_source(namespace).child("item", name)
            if name not in namespace:
                self.guard(source, "ABSENT")
                return None
            value = self._globals[key] = self.load(source, namespace[name])
        return value

    def store_global(self, namespace: dict[str, Any], name: str, value: Value | None) -> None:
        """Assign a global, or delete it (``value`` None)."""
        if namespace is vars(builtins):  # names are looked up there without a look at what changed
            raise GraphBreak("FJ0152", f"assigning builtins.{name}")
        known = self.known_value(namespace)
        if known is not None and not getattr(known, "is_live", False):
            raise GraphBreak("FJ0156", "a dict turns out to be the globals of a function")
        self.effects.store_global(namespace, name, value)

    def changed(self, value: Value) -> None:
        """The state of ``value`` has changed; what exists outside is written after the graph."""
        if value.source is not None:
            self.effects.note(value)
        else:
            self.changes.note()
            if value in self.effects.held_by_caches:
                raise GraphBreak("FJ0167", "what a functools.lru_cache holds is changed")

    # -- raising into the program ------------------------------------------------------------------

    def raise_error(self, cls: type[BaseException], *args: Any, name: str | None = None) -> Any:
        """Raise an exception in the captured program, made of values or of constants; ``name`` is
        what a NameError is about."""
        given = [arg if isinstance(arg, Value) else self.constant(arg) for arg in args]
        error = self.new_exception(cls, given)
        if name is not None:
            error.attributes["name"] = self.constant(name)
        self.made_up = error
        raise Raised(error)

    def raise_real(self, error: BaseException) -> Any:
        """Raise a real exception (from folding constants) in the captured program."""
        try:
            args = [self.constant(a) for a in error.args]
        except GraphBreak:
            raise GraphBreak("FJ0145", f"{type(error).__name__}: {error}")
        made = self.new_exception(type(error), args)
        for name, content in vars(error).items():  # what a Python __init__ has kept
            noted = type(content) is list  # `add_note` of what C code adds
            notes = [self.constant(one) for one in content] if noted else []
            made.attributes[name] = self.list_value(notes) if noted else self.constant(content)
        if isinstance(error, (NameError, ImportError)):
            made.attributes["name"] = self.constant(error.name)
        raise Raised(made)

    def run_real(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """What a function without effects returns for real objects, run now; an exception that it
        raises, or what it asks of values, is raised in the captured program."""
        try:
            return run_limited(function, args, kwargs)
        except (GraphBreak, Raised):
            raise
        except Exception as error:
            return self.raise_real(error)

    def now(self, result: Result) -> Value:
        """Run a pending frame at once (its value is needed in the middle of an operation)."""
        if type(result) is CallRequest:
            return self.running.run_request(result)
        return result  # type: ignore[return-value]

    # -- attributes that classes have --------------------------------------------------------------

    def generic_getattr(self, value: Value, name: str) -> Result:
        """``object.__getattribute__`` for values whose kind has no instance attributes."""
        cls = value.python_type()
        found = self.class_attribute(cls, name)
        if found is not None:
            return self.bind_class_attribute(found, value, cls, name)
        if name == "__class__":
            return self.class_value(cls)
        return self.raise_error(
            AttributeError, f"{type_name(cls)!r} object has no attribute {name!r}"
        )

    def special_method(self, value: Value, name: str) -> Value | None:
        """The special method ``name`` as Python looks it up (on the class, never the instance)."""
        cls = value.python_type()
        found = self.class_attribute(cls, name)
        if found is None or found.raw is None:
            return None
        return self.now(self.bind_class_attribute(found, value, cls, name))

    def overriding(self, value: Value, cls: type, name: str) -> Value | None:
        """The special method that Python code has put in place of ``object``'s or ``type``'s,
        bound; any callable may be there (``__setattr__ = dict.__setitem__``)."""
        found = self.class_attribute(cls, name)
        if found is None:
            return None
        if type(found.raw) is types.WrapperDescriptorType and found.raw.__name__ == name:
            return None
        return self.now(self.bind_class_attribute(found, value, cls, name))

    def call_special(self, value: Value, name: str, args: list[Value], complaint: str) -> Any:
        """Call a special method; TypeError in the program when the class does not have it."""
        method = self.special_method(value, name)
        if method is None:
            cls = value.python_type()
            return self.raise_error(TypeError, f"{type_name(cls)!r} object {complaint}")
        return self.call(method, args, {})

    # -- operations --------------------------------------------------------------------------------

    def getattr(self, value: Value, name: str) -> Result:
        value = value.realize()
        try:
            result = value.getattr(self, name)
        except Raised as error:
            self.note_read(error.value, value, name)
            raise
        if type(result) is CallRequest:
            result.reads = value, name
        return result

    def getattr_now(self, value: Value, name: str) -> Value:
        """`getattr` with a property's or ``__getattr__``'s frame run at once."""
        return self.now(self.getattr(value, name))

    def setattr(self, value: Value, name: str, new: Value) -> None:
        value.realize().setattr(self, name, new)
        self.changes.note()

    def delattr(self, value: Value, name: str) -> None:
        value.realize().delattr(self, name)
        self.changes.note()

    def call(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> Result:
        return function.realize().call(self, args, kwargs)

    def call_now(
        self, function: Value, args: list[Value], kwargs: dict[str, Value] | None = None
    ) -> Value:
        """Call, and run the callee's frame to its end."""
        return self.now(function.realize().call(self, args, kwargs or {}))

    def equal(self, left: Value, right: Value) -> bool:
        """``left is right or left == right``, as containers compare their elements."""
        left, right = left.realize(), right.realize()
        if left is right:
            return True
        # Objects that are not one now may be one in the next call, whatever `==` says of them.
        asked = is_user_class(left.python_type()) or is_user_class(right.python_type())
        if asked and self.is_(left, right):
            return True
        if self.truth(self.now(self.compare("==", left, right))):
            return True
        return not asked and self.is_(left, right)

    def contains(self, container: Value, item: Value) -> bool:
        return self.truth(container.realize().contains(self, item))

    def search(self, iterable: Value, item: Value) -> bool:
        """Is ``item`` among what iterating gives? Nothing after it is asked for."""
        iterator = self.iter(iterable)
        while (element := self.next(iterator)) is not None:
            if self.equal(element, item):
                return True
        return False

    def truth(self, value: Value) -> bool:
        return value.realize().truth(self)

    def expect(self, value: Value, truth: bool) -> bool:
        return value.realize().expect(self, truth)

    def getitem(self, value: Value, key: Value) -> Result:
        return value.realize().getitem(self, key)

    def setitem(self, value: Value, key: Value, new: Value) -> None:
        value.realize().setitem(self, key, new)
        self.changes.note()

    def delitem(self, value: Value, key: Value) -> None:
        value.realize().delitem(self, key)
        self.changes.note()

    def len(self, value: Value) -> Value:
        return value.realize().len(self)

    def iter(self, value: Value) -> Value:
        return value.realize().iter(self)

    def next(self, iterator: Value) -> Value | None:
        value = iterator.realize().next(self)
        self.changes.note()
        return value

    def each(self, value: Value) -> Iterator[Value]:
        """The elements one by one: what is done with one is done before the next is asked for."""
        value = value.realize()
        known = value.items_now(self)
        if known is not None:
            return iter(known)  # a list may change meanwhile
        iterator = self.iter(value)
        return iter(lambda: self.next(iterator), None)

    def items(self, value: Value) -> list[Value]:
        """All elements of an iterable, in order."""
        return limited_items(self.each(value))

    def unpack(self, value: Value, count: int) -> list[Value]:
        """The elements of ``value``, which must be exactly ``count``; one more is asked for."""
        items = list(itertools.islice(self.each(value), count + 1))
        if len(items) > count:
            whole = value.realize().items_now(self) or items
            kind = value.realize().python_type()
            self.raise_error(ValueError, complaints.too_many_values(kind, count, len(whole)))
        if len(items) < count:
            self.raise_error(
                ValueError, f"not enough values to unpack (expected {count}, got {len(items)})"
            )
        return items
